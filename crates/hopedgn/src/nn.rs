//! Layers that models share: parameters under a name, and what is computed with them.

use ctdg::random::Stream;
use hopedgn_tensor::{Activation, BlockVars, ParameterId, Parameters, Shape, Tape, Tensor, Var, init};

use crate::Result;

/// Adds layers to a model. Each draws from a random stream of its own name, so that a model without some layer starts
/// with the same weights everywhere else.
pub(crate) struct Layers<'p> {
    parameters: &'p mut Parameters,
    seed: u64,
}

impl<'p> Layers<'p> {
    pub(crate) fn new(parameters: &'p mut Parameters, seed: u64) -> Self {
        Self { parameters, seed }
    }

    pub(crate) fn linear(&mut self, name: &str, n_in: usize, n_out: usize) -> Result<Linear> {
        let tensors = init::linear(&mut self.random(name), n_in, n_out);
        self.add(name, tensors)
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

    /// Frequencies from 1 down to 10⁻⁹ in equal steps of their logarithm, no phase.
    pub(crate) fn time_encoding(&mut self, name: &str, width: usize) -> Result<TimeEncoding> {
        #[expect(clippy::cast_possible_truncation, reason = "computed in f64, kept in f32")]
        let frequency = |i: usize| 10_f64.powf(-9.0 * i as f64 / (width.max(2) - 1) as f64) as f32;
        let frequencies = Tensor::matrix(width, 1, (0..width).map(frequency).collect())?;
        Ok(TimeEncoding {
            frequency: self.parameters.add(format!("{name}.frequency"), frequencies)?,
            phase: self.parameters.add(format!("{name}.phase"), Tensor::zeros(Shape::Vector(width)))?,
        })
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

    fn vars(self, tape: &mut Tape<'_>) -> [Var; 2] {
        [tape.parameter(self.weight), tape.parameter(self.bias)]
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
