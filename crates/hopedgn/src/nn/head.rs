//! Heads: from the embedding of a pair, its statistics and its walks, to a logit.

use std::sync::Arc;

use ctdg::statistics::{N_STATISTICS, SOURCE};
use ctdg::walks::WalkConfig;
use hopedgn_tensor::{Activation, Dropout, ParameterId, Shape, Tape, Tensor, Var};

use super::{Linear, ParamBuilder, WalkEmbedding};
use crate::Result;
use crate::collate::{Input, StatisticsSettings};

/// Dropout site of the statistics, away from those of the models.
const DROPOUT_SITE: u64 = 1 << 16;

/// Width of the hidden layer of an [`ActivityHead`].
const ACTIVITY_WIDTH: usize = 64;

/// Names of the constants that standardise statistics, shift and scale. They are saved with the weights and never trained.
pub(crate) const STATISTICS_SCALING: [&str; 2] = ["statistics.shift", "statistics.scale"];

/// The same of the walks beside a pair's embedding.
pub(crate) const WALKS_SCALING: [&str; 2] = ["walks.shift", "walks.scale"];

impl ParamBuilder<'_> {
    /// The head over the embeddings of a pair's two nodes, each of this width, and what `statistics` names.
    pub fn pair_head(&mut self, width: usize, statistics: &StatisticsSettings) -> Result<PairHead> {
        self.head(2 * width, width, statistics)
    }

    /// The head over an embedding of `n_in` values with a hidden layer of this width. With `n_in` 0 it reads statistics and
    /// walks alone.
    pub fn head(&mut self, n_in: usize, width: usize, statistics: &StatisticsSettings) -> Result<PairHead> {
        let walks = statistics.walks.config();
        let mut of_walks = None;
        if let Some(config) = walks {
            of_walks = Some((config, self.scaling(WALKS_SCALING, config.n_features())?, self.walks(&config, width)?));
        }
        let statistics = statistics.enabled.then(|| self.statistics(statistics, width)).transpose()?;
        let n_beside = usize::from(statistics.is_some()) + usize::from(of_walks.is_some());
        let n_in = n_in + n_beside * width;
        let (hidden, out) = (self.linear("head.hidden", n_in, width)?, self.linear("head.out", width, 1)?);
        Ok(PairHead { statistics, walks: of_walks, hidden, activation: Activation::Relu, out })
    }

    /// A perceptron over standardised statistics.
    fn statistics(&mut self, settings: &StatisticsSettings, width: usize) -> Result<StatisticsEmbedding> {
        let n_columns = settings.n_columns();
        Ok(StatisticsEmbedding {
            scaling: self.scaling(STATISTICS_SCALING, n_columns)?,
            hidden: self.linear("statistics.hidden", n_columns, settings.d_stats)?,
            out: self.linear("statistics.out", settings.d_stats, width)?,
            with_triads: settings.triads,
        })
    }

    /// The head of a source's activity.
    pub fn activity_head(&mut self) -> Result<ActivityHead> {
        Ok(ActivityHead {
            scaling: self.scaling(STATISTICS_SCALING, N_STATISTICS)?,
            hidden: self.linear("activity.hidden", SOURCE.len(), ACTIVITY_WIDTH)?,
            out: self.linear("activity.out", ACTIVITY_WIDTH, 1)?,
        })
    }

    /// Constants that leave numbers as they are, until those of the data replace them.
    fn scaling(&mut self, [shift, scale]: [&str; 2], width: usize) -> Result<Scaling> {
        let mut constant = |name: &str, value: f32| match self.parameters.id(name) {
            Some(known) => Ok(known),
            None => self.parameters.add(name, Tensor::full(Shape::Vector(width), value)),
        };
        Ok(Scaling { shift: constant(shift, 0.0)?, scale: constant(scale, 1.0)? })
    }
}

/// `(x + shift) · scale`, with constants of the training data.
#[derive(Debug, Clone, Copy)]
struct Scaling {
    shift: ParameterId,
    scale: ParameterId,
}

impl Scaling {
    /// `[B, N]`.
    fn forward(self, tape: &mut Tape<'_>, values: &Arc<Tensor>) -> Result<Var> {
        let values = tape.input(Arc::clone(values)); // [B, N]
        let n_pairs = tape.shape(values).rows();
        let [shift, scale] = [self.shift, self.scale].map(|id| tape.frozen(id));
        let shift = tape.repeat_row(shift, n_pairs)?;
        let scale = tape.repeat_row(scale, n_pairs)?;
        let shifted = tape.add(values, shift)?;
        Ok(tape.mul(shifted, scale)?)
    }
}

/// Statistics of a pair as an embedding: `W₂ GELU(W₁ s + b₁) + b₂`.
#[derive(Debug, Clone, Copy)]
struct StatisticsEmbedding {
    scaling: Scaling,
    hidden: Linear,
    out: Linear,
    with_triads: bool,
}

impl StatisticsEmbedding {
    /// `[B, d]`.
    fn forward(self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let standardised = self.scaling.forward(tape, input.statistics()?)?; // [B, N]
        let hidden = self.hidden.forward(tape, standardised, Some(Activation::Gelu))?;
        let hidden = tape.dropout(hidden, dropout.site(DROPOUT_SITE));
        self.out.forward(tape, hidden, None)
    }
}

/// Logit of a pair from its embedding `h`, and from the embeddings `s` of its statistics and `r` of its walks where the model reads
/// them: `W₂ ReLU(W₁ [h ‖ s ‖ r] + b₁) + b₂`.
///
/// ```
/// # use hopedgn::{collate::{Input, PastInput, StatisticsSettings}, nn::ParamBuilder, tensor::{Dropout, Parameters, Tape, Tensor}};
/// # let mut parameters = Parameters::default();
/// let head = ParamBuilder::new(&mut parameters, 0).pair_head(3, &StatisticsSettings::default())?; // without statistics
/// let mut tape = Tape::new(&parameters);
/// let nodes = tape.input(Tensor::matrix(4, 3, vec![1.0; 12])?); // both nodes of two pairs
/// let logits = head.forward_nodes(&mut tape, nodes, &Input::from(PastInput::Nothing), Dropout::NONE)?; // [2, 1]
/// assert_eq!(tape.read(logits)?.len(), 2);
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct PairHead {
    statistics: Option<StatisticsEmbedding>,
    walks: Option<(WalkConfig, Scaling, WalkEmbedding)>,
    hidden: Linear,
    activation: Activation,
    out: Linear,
}

impl PairHead {
    /// The same with another activation of the hidden layer.
    #[must_use]
    pub fn with_activation(self, activation: Activation) -> Self {
        Self { activation, ..self }
    }

    /// Whether it reads statistics.
    #[must_use]
    pub fn reads_statistics(self) -> bool {
        self.statistics.is_some()
    }

    /// Whether those have columns for triads.
    #[must_use]
    pub fn reads_triads(self) -> bool {
        self.statistics.is_some_and(|embedding| embedding.with_triads)
    }

    /// The walks it reads, if any.
    #[must_use]
    pub fn walks(self) -> Option<WalkConfig> {
        self.walks.map(|(config, ..)| config)
    }

    /// `[B, 1]` for `nodes` `[2B, d]`: source, destination, source of the next pair, …
    pub fn forward_nodes(self, tape: &mut Tape<'_>, nodes: Var, input: &Input, dropout: Dropout) -> Result<Var> {
        let (rows, cols) = (tape.shape(nodes).rows(), tape.shape(nodes).cols());
        let pairs = tape.reshape(nodes, rows / 2, 2 * cols)?; // [B, 2d]
        self.forward(tape, Some(pairs), input, dropout)
    }

    /// `[B, 1]` for the embeddings of pairs `[B, n]`; nothing for a model of statistics alone.
    pub fn forward(self, tape: &mut Tape<'_>, pairs: Option<Var>, input: &Input, dropout: Dropout) -> Result<Var> {
        let statistics = self.statistics.map(|embedding| embedding.forward(tape, input, dropout)).transpose()?;
        let of_walks = |(_, scaling, embedding): (_, Scaling, WalkEmbedding)| {
            let standardised = scaling.forward(tape, &input.walks()?.pairs)?; // [B, W]
            embedding.forward(tape, standardised)
        };
        let walks = self.walks.map(of_walks).transpose()?;
        let joined: Vec<Var> = pairs.into_iter().chain(statistics).chain(walks).collect();
        let joined = if let [only] = joined[..] { only } else { tape.concat(&joined)? }; // [B, n + 2d]
        let hidden = self.hidden.forward(tape, joined, Some(self.activation))?; // [B, d]
        self.out.forward(tape, hidden, None)
    }
}

/// How active a source is: `g(u, t)`, from its statistics alone.
///
/// ```
/// # use hopedgn::{collate::{Input, PastInput}, nn::ParamBuilder, tensor::{Parameters, Tape, Tensor}};
/// # use hopedgn::ctdg::statistics::N_STATISTICS;
/// # let mut parameters = Parameters::default();
/// let head = ParamBuilder::new(&mut parameters, 0).activity_head()?;
/// let statistics = Some(Tensor::matrix(2, N_STATISTICS, vec![0.5; 2 * N_STATISTICS])?.into());
/// let input = Input { statistics, ..Input::from(PastInput::Nothing) };
/// let mut tape = Tape::new(&parameters);
/// let activity = head.forward(&mut tape, &input)?; // [2, 1]
/// let activity = tape.read(activity)?;
/// assert_eq!(activity[0], activity[1]);
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ActivityHead {
    scaling: Scaling,
    hidden: Linear,
    out: Linear,
}

impl ActivityHead {
    /// `[B, 1]`.
    pub fn forward(self, tape: &mut Tape<'_>, input: &Input) -> Result<Var> {
        let standardised = self.scaling.forward(tape, input.statistics()?)?; // [B, N]
        let source = tape.columns(standardised, SOURCE.start, SOURCE.len())?;
        let hidden = self.hidden.forward(tape, source, Some(Activation::Gelu))?;
        self.out.forward(tape, hidden, None)
    }
}
