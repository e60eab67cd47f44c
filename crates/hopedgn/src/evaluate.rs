//! Evaluation passes of the protocol: AP and AUC per batch and over the split, and ranking.

mod beside_heuristics;
mod calibration;
mod links;
mod model_scorer;
mod pipeline;
mod range;
mod ranking;
mod window;

use ctdg::event::EventId;
use ctdg::heuristic::Heuristic;
use ctdg::mite::PairQuery;
use ctdg::negative::NegativeKind;
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::collate::PairBatch;
use crate::score::Output;

pub use crate::metrics::{Evaluation, RankingMetrics, RankingTest, TestedEvents};
pub use beside_heuristics::Evaluator;
pub(crate) use beside_heuristics::{PASSES, put};
pub use links::{draw_negatives, evaluate};
pub use model_scorer::ModelScorer;
pub use range::TestRange;
pub use ranking::rank;
pub(crate) use ranking::{RankedEvents, rank_some};
pub use window::Window;

/// Kinds of negative pairs.
///
/// ```
/// use hopedgn::evaluate::Negatives;
///
/// assert_eq!(Negatives::ALL.map(Negatives::as_str), ["random", "historical", "inductive"]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Negatives {
    /// The true source with a random destination: the setting that papers report first.
    Random,
    /// Pairs that interacted before, but not at this time.
    Historical,
    /// Of those, pairs that first interacted after the training part.
    Inductive,
}

impl Negatives {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Random, Self::Historical, Self::Inductive];

    /// The name in files and on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        NegativeKind::from(self).as_str()
    }

    /// The output of a model that answers against them: random ones keep the source, others change it.
    #[must_use]
    pub fn output(self) -> Output {
        match self {
            Self::Random => Output::Partner,
            Self::Historical | Self::Inductive => Output::Pair,
        }
    }
}

impl From<Negatives> for NegativeKind {
    fn from(negatives: Negatives) -> Self {
        match negatives {
            Negatives::Random => Self::Random,
            Negatives::Historical => Self::Historical,
            Negatives::Inductive => Self::Inductive,
        }
    }
}

/// A scorer of pairs: a model or a heuristic. Batches come in order of time.
///
/// ```
/// # use hopedgn::{*, ctdg::split::SplitMode, model::{ModelConfig, build}, task::Task, tensor::Weights};
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// # let task = Task::new(&events, SplitMode::Dyglib)?;
/// # use hopedgn::{Result, collate::PairBatch, ctdg::{event::EventId, negative::Pass}};
/// use hopedgn::{callbacks::NoCallback, evaluate::{Negatives, Scorer, evaluate}};
///
/// struct Successor; // node i writes to node i + 1
/// impl Scorer for Successor {
///     fn score(&mut self, _: &[EventId], pairs: PairBatch<'_>) -> Result<Vec<f32>> {
///         Ok(pairs.queries.iter().map(|of| f32::from(of.dst.0 == (of.src.0 + 1) % 10)).collect())
///     }
/// }
/// let metrics = evaluate(&task, Pass::Test, Negatives::Random, 50, &mut [Successor], &mut NoCallback)?;
/// assert!(metrics.is_some_and(|metrics| metrics[0].auc > 0.8));
/// # Ok::<(), hopedgn::Error>(())
/// ```
pub trait Scorer {
    /// Scores `pairs` for the events of `batch`. An empty `batch` continues the previous one.
    fn score(&mut self, batch: &[EventId], pairs: PairBatch<'_>) -> Result<Vec<f32>>;

    /// Number of batches of `n_queries` that it prefers in one call, where there are `n_batches`.
    fn batches_per_call(&self, n_queries: usize, n_batches: usize) -> usize {
        let _ = (n_queries, n_batches);
        1
    }

    /// Scores several batches in order. `queries` holds two for each event of each batch.
    fn score_all(&mut self, batches: &[&[EventId]], queries: &[PairQuery]) -> Result<Vec<f32>> {
        let mut scores = Vec::with_capacity(queries.len());
        for batch in batches {
            let of_batch = &queries[scores.len()..scores.len() + 2 * batch.len()];
            scores.extend(self.score(batch, PairBatch::new(of_batch).padded_in_groups_of(batch.len()))?);
        }
        Ok(scores)
    }

    /// Scores one window after another and hands each to `consume` with its scores. A scorer may look at later windows meanwhile.
    fn score_windows<'e>(
        &mut self,
        windows: &mut (dyn Iterator<Item = Result<Window<'e>>> + Send),
        consume: &mut dyn FnMut(Window<'e>, Vec<f32>) -> Result<()>,
    ) -> Result<()> {
        window::one_by_one(self, windows, consume)
    }
}

impl Scorer for Box<dyn Heuristic + Send + '_> {
    fn score(&mut self, batch: &[EventId], pairs: PairBatch<'_>) -> Result<Vec<f32>> {
        Ok(self.as_mut().score(batch, pairs.queries)?)
    }
}

impl Scorer for Box<dyn Scorer + '_> {
    fn score(&mut self, batch: &[EventId], pairs: PairBatch<'_>) -> Result<Vec<f32>> {
        self.as_mut().score(batch, pairs)
    }

    fn batches_per_call(&self, n_queries: usize, n_batches: usize) -> usize {
        self.as_ref().batches_per_call(n_queries, n_batches)
    }

    fn score_all(&mut self, batches: &[&[EventId]], queries: &[PairQuery]) -> Result<Vec<f32>> {
        self.as_mut().score_all(batches, queries)
    }

    fn score_windows<'e>(
        &mut self,
        windows: &mut (dyn Iterator<Item = Result<Window<'e>>> + Send),
        consume: &mut dyn FnMut(Window<'e>, Vec<f32>) -> Result<()>,
    ) -> Result<()> {
        self.as_mut().score_windows(windows, consume)
    }
}
