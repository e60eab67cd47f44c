//! Layers that models share: parameters under a name, and what is computed with them.

mod entries;
mod memory_updater;
mod parts;
mod post_norm;
mod temporal;

use std::sync::Arc;

use ctdg::random::Stream;
use hopedgn_tensor::{Activation, BlockVars, PadRagged, ParameterId, Parameters, Shape, Tape, Tensor, Var, init};

use crate::collate::{Hop, MiteIntervals};
use crate::config::ModelConfig;
use crate::{Error, Result};

pub(crate) use entries::HopFeatures;
pub(crate) use memory_updater::{Cell, MemoryUpdater};
pub(crate) use parts::Part;
pub(crate) use post_norm::PostNorm;
pub(crate) use temporal::{Attended, TemporalAttention, TemporalWidths, padding_keys};

/// The width that the experiments of the literature pad features to, and draw weights for.
pub(crate) const PADDED_FEATURES: usize = 172;

/// Adds layers to a model. Each draws from a random stream of its own name, so that a model without some layer starts
/// with the same weights everywhere else.
pub(crate) struct ParamBuilder<'p> {
    parameters: &'p mut Parameters,
    seed: u64,
}

impl<'p> ParamBuilder<'p> {
    pub(crate) fn new(parameters: &'p mut Parameters, seed: u64) -> Self {
        Self { parameters, seed }
    }

    pub(crate) fn linear(&mut self, name: &str, n_in: usize, n_out: usize) -> Result<Linear> {
        let tensors = init::linear(&mut self.random(name), n_in, n_out);
        self.add(name, tensors)
    }

    /// A linear layer from `n_in` values a row, drawn as if there were `drawn_as` of them.
    pub(crate) fn linear_as(&mut self, name: &str, n_in: usize, drawn_as: usize, n_out: usize) -> Result<Linear> {
        let bound = 1.0 / (drawn_as.max(1) as f64).sqrt();
        let mut random = self.random(name);
        let weight = init::uniform(&mut random, Shape::Matrix(n_out, n_in), bound);
        let bias = init::uniform(&mut random, Shape::Vector(n_out), bound);
        self.add(name, (weight, bias))
    }

    /// The weight `[n_out, n_in]` of a layer without a bias, drawn as if it had `drawn_as` inputs.
    pub(crate) fn weight(&mut self, name: &str, n_in: usize, drawn_as: usize, n_out: usize) -> Result<ParameterId> {
        let bound = 1.0 / (drawn_as.max(1) as f64).sqrt();
        let weight = init::uniform(&mut self.random(name), Shape::Matrix(n_out, n_in), bound);
        Ok(self.parameters.add(format!("{name}.weight"), weight)?)
    }

    /// A layer norm.
    pub(crate) fn norm(&mut self, name: &str, width: usize) -> Result<Norm> {
        Ok(Norm(self.add(name, init::layer_norm(width))?))
    }

    /// A linear layer from `n_in` values a row that is drawn as if there were `drawn_as` of them; without input it is
    /// its bias alone.
    pub(crate) fn channel(
        &mut self,
        name: &str,
        n_in: Option<usize>,
        drawn_as: usize,
        n_out: usize,
    ) -> Result<Channel> {
        let bound = 1.0 / (drawn_as.max(1) as f64).sqrt();
        let bias = init::uniform(&mut self.random(&format!("{name}.bias")), Shape::Vector(n_out), bound);
        let weight = n_in.map(|n_in| init::uniform(&mut self.random(name), Shape::Matrix(n_out, n_in), bound));
        Ok(Channel {
            weight: weight.map(|weight| self.parameters.add(format!("{name}.weight"), weight)).transpose()?,
            bias: self.parameters.add(format!("{name}.bias"), bias)?,
        })
    }

    /// A table `[rows, cols]` of the standard normal distribution.
    pub(crate) fn normal(&mut self, name: &str, rows: usize, cols: usize) -> Result<ParameterId> {
        let table = init::normal(&mut self.random(name), Shape::Matrix(rows, cols));
        Ok(self.parameters.add(name, table)?)
    }

    /// [`frequencies`] and no phase.
    pub(crate) fn time_encoding(&mut self, name: &str, width: usize) -> Result<TimeEncoding> {
        Ok(TimeEncoding {
            frequency: self.parameters.add(format!("{name}.frequency"), frequencies(width)?)?,
            phase: self.parameters.add(format!("{name}.phase"), Tensor::zeros(Shape::Vector(width)))?,
        })
    }

    /// What makes a token's intervals an embedding, where the model has them.
    pub(crate) fn mite(&mut self, config: &ModelConfig) -> Result<Option<MiteEmbedding>> {
        if !config.mite {
            return Ok(None);
        }
        let hidden = self.linear("mite.hidden", config.mite_slots().width(), config.d_mite)?;
        let out = self.linear("mite.out", config.d_mite, config.d_mite)?;
        Ok(Some(MiteEmbedding { slots: config.mite_slots(), hidden, out }))
    }

    /// The head over the embeddings of a pair's two nodes.
    pub(crate) fn pair_head(&mut self, width: usize) -> Result<PairHead> {
        let hidden = self.linear("head.hidden", 2 * width, width)?;
        Ok(PairHead { hidden, out: self.linear("head.out", width, 1)? })
    }

    /// A pre-norm transformer block.
    pub(crate) fn block(&mut self, name: &str, width: usize) -> Result<Block> {
        let [attention_in, attention_out] = ["attention.in", "attention.out"].map(|part| format!("{name}.{part}"));
        let qkv = init::attention_in(&mut self.random(&attention_in), width);
        let out = init::attention_out(&mut self.random(&attention_out), width);
        Ok(Block {
            norm1: self.add(&format!("{name}.norm1"), init::layer_norm(width))?,
            qkv: self.add(&attention_in, qkv)?,
            out: self.add(&attention_out, out)?,
            norm2: self.add(&format!("{name}.norm2"), init::layer_norm(width))?,
            up: self.linear(&format!("{name}.up"), width, 4 * width)?,
            down: self.linear(&format!("{name}.down"), 4 * width, width)?,
        })
    }

    fn add(&mut self, name: &str, (weight, bias): (Tensor, Tensor)) -> Result<Linear> {
        Ok(Linear {
            weight: self.parameters.add(format!("{name}.weight"), weight)?,
            bias: self.parameters.add(format!("{name}.bias"), bias)?,
        })
    }

    fn random(&self, name: &str) -> impl FnMut() -> f64 + use<> {
        let mut stream = Stream::named(self.seed, &format!("init/{name}"));
        move || stream.unit()
    }
}

/// Weight `[N, K]` and bias `[N]`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Linear {
    weight: ParameterId,
    bias: ParameterId,
}

impl Linear {
    /// `activation(x · weightᵀ + bias)`, `[M, N]` for `x` `[M, K]`.
    pub(crate) fn forward(self, tape: &mut Tape<'_>, x: Var, activation: Option<Activation>) -> Result<Var> {
        let [weight, bias] = self.vars(tape);
        Ok(tape.linear(x, weight, Some(bias), activation)?)
    }

    /// Weight and bias.
    pub(crate) fn vars(self, tape: &mut Tape<'_>) -> [Var; 2] {
        [tape.parameter(self.weight), tape.parameter(self.bias)]
    }
}

/// Scale and shift of a layer norm.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Norm(Linear);

impl Norm {
    pub(crate) fn forward(self, tape: &mut Tape<'_>, x: Var) -> Result<Var> {
        let [scale, shift] = self.0.vars(tape);
        Ok(tape.layer_norm(x, scale, shift)?)
    }
}

/// A linear layer over one kind of feature; where there is none, its bias.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Channel {
    weight: Option<ParameterId>,
    bias: ParameterId,
}

impl Channel {
    /// `[n_rows, N]`; `x` `[n_rows, K]` is made only where it is needed.
    pub(crate) fn forward<'p>(
        self,
        tape: &mut Tape<'p>,
        n_rows: usize,
        x: impl FnOnce(&mut Tape<'p>) -> Result<Var>,
    ) -> Result<Var> {
        let bias = tape.parameter(self.bias);
        let Some(weight) = self.weight else { return Ok(tape.repeat_row(bias, n_rows)?) };
        let x = x(tape)?;
        let weight = tape.parameter(weight);
        Ok(tape.linear(x, weight, Some(bias), None)?)
    }

    /// The sum of what each channel makes of its input `[M, K]`, `[M, N]`, as one product. Channels have an input exactly
    /// where they have a weight, and at least one does.
    pub(crate) fn sum(tape: &mut Tape<'_>, channels: &[(Self, Option<Var>)]) -> Result<Var> {
        let (mut inputs, mut weights, mut sum) = (Vec::new(), Vec::new(), None);
        for &(channel, x) in channels {
            inputs.extend(x);
            weights.extend(channel.weight.map(|weight| tape.parameter(weight)));
            let bias = tape.parameter(channel.bias);
            sum = Some(if let Some(sum) = sum { tape.add(sum, bias)? } else { bias });
        }
        if let ([x], [weight]) = (&inputs[..], &weights[..]) {
            return Ok(tape.linear(*x, *weight, sum, None)?);
        }
        let (x, weight) = (tape.concat(&inputs)?, tape.concat(&weights)?); // [M, ΣK], [N, ΣK]
        Ok(tape.linear(x, weight, sum, None)?)
    }
}

/// A token's intervals as an embedding: two layers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MiteEmbedding {
    slots: PadRagged,
    hidden: Linear,
    out: Linear,
}

impl MiteEmbedding {
    /// `[R, Dm]` for the meetings of `R` nodes.
    pub(crate) fn forward(self, tape: &mut Tape<'_>, met: Option<&MiteIntervals>) -> Result<Var> {
        let met = met.ok_or(Error::MissingInput)?;
        let intervals = tape.input(Arc::clone(&met.intervals));
        let x = tape.pad_ragged(intervals, &met.lists, self.slots)?; // [R, 2·K] or [R, 4·K]
        let x = self.hidden.forward(tape, x, Some(Activation::Relu))?;
        self.out.forward(tape, x, None)
    }
}

/// From the embeddings of a pair's two nodes to its logit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PairHead {
    hidden: Linear,
    out: Linear,
}

impl PairHead {
    /// `[B, 1]` for `nodes` `[2B, d]`: source, destination, source of the next pair, … .
    pub(crate) fn forward(self, tape: &mut Tape<'_>, nodes: Var) -> Result<Var> {
        let (rows, cols) = (tape.shape(nodes).rows(), tape.shape(nodes).cols());
        let pairs = tape.reshape(nodes, rows / 2, 2 * cols)?;
        let hidden = self.hidden.forward(tape, pairs, Some(Activation::Relu))?; // [B, d]
        self.out.forward(tape, hidden, None)
    }
}

/// cos(frequency · age + phase).
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeEncoding {
    frequency: ParameterId,
    phase: ParameterId,
}

impl TimeEncoding {
    /// `[T, Dt]` for `ages` `[T, 1]`.
    pub(crate) fn forward(self, tape: &mut Tape<'_>, ages: Var) -> Result<Var> {
        let (frequency, phase) = (tape.parameter(self.frequency), tape.parameter(self.phase));
        Ok(tape.linear(ages, frequency, Some(phase), Some(Activation::Cos))?)
    }

    /// How long ago the entries of a hop were met, `[entries, Dt]`.
    pub(crate) fn of_hop(self, tape: &mut Tape<'_>, hop: &Hop) -> Result<Var> {
        let ages = tape.input(Arc::clone(&hop.ages));
        self.forward(tape, ages)
    }

    /// The encoding of no time at all, `[n_rows, Dt]`.
    pub(crate) fn of_now(self, tape: &mut Tape<'_>, n_rows: usize) -> Result<Var> {
        let now = tape.input(Tensor::zeros(Shape::Matrix(1, 1)));
        let now = self.forward(tape, now)?;
        Ok(tape.repeat_row(now, n_rows)?)
    }
}

/// The frequencies that time encodings start with, `[width, 1]`: from 1 down to 10⁻⁹ in equal steps of their logarithm.
pub(crate) fn frequencies(width: usize) -> Result<Tensor> {
    #[expect(clippy::cast_possible_truncation, reason = "computed in f64, kept in f32")]
    let frequency = |i: usize| 10_f64.powf(-9.0 * i as f64 / (width.max(2) - 1) as f64) as f32;
    Ok(Tensor::matrix(width, 1, (0..width).map(frequency).collect())?)
}

/// Zeros, `[n_rows, width]`.
pub(crate) fn zeros(tape: &mut Tape<'_>, n_rows: usize, width: usize) -> Result<Var> {
    let row = tape.input(Tensor::zeros(Shape::Vector(width)));
    Ok(tape.repeat_row(row, n_rows)?)
}

/// One pre-norm transformer block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    norm1: Linear,
    qkv: Linear,
    out: Linear,
    norm2: Linear,
    up: Linear,
    down: Linear,
}

impl Block {
    pub(crate) fn vars(self, tape: &mut Tape<'_>) -> BlockVars {
        BlockVars {
            norm1: self.norm1.vars(tape),
            qkv: self.qkv.vars(tape),
            out: self.out.vars(tape),
            norm2: self.norm2.vars(tape),
            up: self.up.vars(tape),
            down: self.down.vars(tape),
        }
    }
}
