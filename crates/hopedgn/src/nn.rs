//! Neural network layers over a [`Tape`]: linear, layer norm, attention, time encoding, MITE, memory update.
//!
//! A layer is a small `Copy` value that holds the ids of its parameters; the values live in [`Parameters`], and
//! `forward` records the computation on a [`Tape`]. [`ParamBuilder`] creates layers and draws their initial values. Shapes use
//! the letters of [`crate::model`].
//!
//! ```
//! use hopedgn::nn::ParamBuilder;
//! use hopedgn_tensor::{Parameters, Tensor, Device, Weights};
//!
//! let mut parameters = Parameters::default();
//! let linear = ParamBuilder::new(&mut parameters, 0).linear("out", 3, 2)?;
//! let weights = Weights::new(&Device::cpu(), parameters)?;
//! let rows = weights.evaluate(&[()], |tape, ()| -> hopedgn::Result<Vec<f32>> {
//!     let x = tape.input(Tensor::matrix(4, 3, vec![1.0; 12])?); // [4, 3]
//!     let y = linear.forward(tape, x, None)?; // [4, 2]
//!     Ok(tape.read(y)?)
//! })?;
//! assert_eq!(rows.concat().len(), 4 * 2);
//! # Ok::<(), hopedgn::Error>(())
//! ```

mod head;
mod hop_features;
mod input_columns;
mod memory_updater;
mod relations;
mod temporal_attention;
mod time_encoding;
mod transformer;
mod walks;

use std::sync::Arc;

use ctdg::random::RandomStream;
use hopedgn_tensor::{Activation, PadRagged, ParameterId, Parameters, Shape, Tape, Tensor, Var, init};

use crate::collate::{MiteIntervals, MiteSettings};
use crate::{Error, Result};

pub use head::{ActivityHead, PairHead};
pub(crate) use head::{STATISTICS_SCALING, WALKS_SCALING};
pub use hop_features::HopFeatures;
pub use input_columns::InputColumns;
pub use memory_updater::{Memories, MemoryCell, MemoryUpdater, MemoryWidths};
pub use relations::RelationBias;
pub use temporal_attention::{PaddingKeys, TemporalAttention, TemporalAttentionInput, TemporalAttentionWidths};
pub use time_encoding::{TimeEncoding, frequencies};
pub use transformer::{CrossAttentionInput, PostNormBlock, PreNormBlock};
pub use walks::WalkEmbedding;

/// The feature width that DyGLib pads to. Weights are initialised as if features had it, so that runs compare.
pub const PADDED_FEATURES: usize = 172;

/// Creates layers and initialises their parameters.
///
/// Each layer draws from a random stream of its own name: adding or removing a layer leaves the initial values of all others
/// unchanged. A `fan_in` argument is the number of inputs that the initialisation assumes, as PyTorch's
/// `1 / sqrt(fan_in)` bound does; it may exceed the inputs that there are.
///
/// ```
/// use hopedgn::{nn::ParamBuilder, tensor::Parameters};
///
/// let mut parameters = Parameters::default();
/// let mut builder = ParamBuilder::new(&mut parameters, 0);
/// builder.linear("hidden", 3, 8)?;
/// builder.layer_norm("norm", 8)?;
/// assert!(builder.linear("hidden", 3, 8).is_err()); // the name is taken
/// let names: Vec<&str> = parameters.iter().map(|(_, name, _)| name).collect();
/// assert_eq!(names, ["hidden.weight", "hidden.bias", "norm.weight", "norm.bias"]);
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug)]
pub struct ParamBuilder<'p> {
    parameters: &'p mut Parameters,
    seed: u64,
}

impl<'p> ParamBuilder<'p> {
    /// Adds to `parameters`, with values drawn from `seed`.
    pub fn new(parameters: &'p mut Parameters, seed: u64) -> Self {
        Self { parameters, seed }
    }

    /// A linear layer, initialised as PyTorch's `nn.Linear(n_in, n_out)`.
    pub fn linear(&mut self, name: &str, n_in: usize, n_out: usize) -> Result<Linear> {
        let tensors = init::linear(&mut self.random(name), n_in, n_out);
        self.add(name, tensors)
    }

    /// A linear layer with the initialisation of one with `fan_in` inputs.
    pub fn linear_with_fan_in(&mut self, name: &str, n_in: usize, fan_in: usize, n_out: usize) -> Result<Linear> {
        let bound = 1.0 / (fan_in.max(1) as f64).sqrt();
        let mut random = self.random(name);
        let weight = init::uniform(&mut random, Shape::Matrix(n_out, n_in), bound);
        let bias = init::uniform(&mut random, Shape::Vector(n_out), bound);
        self.add(name, (weight, bias))
    }

    /// The weight `[n_out, n_in]` of a linear layer without bias.
    pub fn weight(&mut self, name: &str, n_in: usize, fan_in: usize, n_out: usize) -> Result<ParameterId> {
        let bound = 1.0 / (fan_in.max(1) as f64).sqrt();
        let weight = init::uniform(&mut self.random(name), Shape::Matrix(n_out, n_in), bound);
        Ok(self.parameters.add(format!("{name}.weight"), weight)?)
    }

    /// A layer norm over `width` values.
    pub fn layer_norm(&mut self, name: &str, width: usize) -> Result<LayerNorm> {
        Ok(LayerNorm(self.add(name, init::layer_norm(width))?))
    }

    /// A linear layer that is its bias alone where `n_in` is none.
    pub fn channel(&mut self, name: &str, n_in: Option<usize>, fan_in: usize, n_out: usize) -> Result<Channel> {
        let bound = 1.0 / (fan_in.max(1) as f64).sqrt();
        let bias = init::uniform(&mut self.random(&format!("{name}.bias")), Shape::Vector(n_out), bound);
        let weight = n_in.map(|n_in| init::uniform(&mut self.random(name), Shape::Matrix(n_out, n_in), bound));
        Ok(Channel {
            weight: weight.map(|weight| self.parameters.add(format!("{name}.weight"), weight)).transpose()?,
            bias: self.parameters.add(format!("{name}.bias"), bias)?,
        })
    }

    /// An embedding table `[rows, cols]`, standard normal as PyTorch's `nn.Embedding`.
    pub fn embedding(&mut self, name: &str, rows: usize, cols: usize) -> Result<ParameterId> {
        let table = init::normal(&mut self.random(name), Shape::Matrix(rows, cols));
        Ok(self.parameters.add(name, table)?)
    }

    /// The embedding of MITE, where the model reads it.
    pub fn mite(&mut self, settings: &MiteSettings) -> Result<Option<MiteEmbedding>> {
        if !settings.enabled {
            return Ok(None);
        }
        let (slots, d_mite) = (settings.slots(), settings.d_mite);
        let hidden = self.linear("mite.hidden", slots.width(), d_mite)?;
        let out = self.linear("mite.out", d_mite, d_mite)?;
        Ok(Some(MiteEmbedding { slots, hidden, out }))
    }

    fn add(&mut self, name: &str, (weight, bias): (Tensor, Tensor)) -> Result<Linear> {
        Ok(Linear {
            weight: self.parameters.add(format!("{name}.weight"), weight)?,
            bias: self.parameters.add(format!("{name}.bias"), bias)?,
        })
    }

    fn random(&self, name: &str) -> impl FnMut() -> f64 + use<> {
        let mut stream = RandomStream::named(self.seed, &format!("init/{name}"));
        move || stream.unit()
    }
}

/// `y = x · Wᵀ + b` with weight `W` `[n_out, n_in]` and bias `b` `[n_out]`.
///
/// ```
/// # use hopedgn::{nn::ParamBuilder, tensor::{Activation, Parameters, Tape, Tensor}};
/// # let mut parameters = Parameters::default();
/// let linear = ParamBuilder::new(&mut parameters, 0).linear("out", 3, 2)?;
/// let mut tape = Tape::new(&parameters);
/// let x = tape.input(Tensor::matrix(4, 3, vec![1.0; 12])?); // [4, 3]
/// let y = linear.forward(&mut tape, x, Some(Activation::Relu))?; // [4, 2]
/// assert!(tape.read(y)?.iter().all(|&y| y >= 0.0));
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Linear {
    weight: ParameterId,
    bias: ParameterId,
}

impl Linear {
    /// `activation(x · Wᵀ + b)`, `[M, n_out]` for `x` `[M, n_in]`.
    pub fn forward(self, tape: &mut Tape<'_>, x: Var, activation: Option<Activation>) -> Result<Var> {
        let [weight, bias] = self.vars(tape);
        Ok(tape.linear(x, weight, Some(bias), activation)?)
    }

    /// `x · Wᵀ`, without the bias.
    pub fn forward_without_bias(self, tape: &mut Tape<'_>, x: Var) -> Result<Var> {
        let weight = tape.parameter(self.weight);
        Ok(tape.linear(x, weight, None, None)?)
    }

    /// The bias, `[n_out]`.
    pub fn bias(self, tape: &mut Tape<'_>) -> Var {
        tape.parameter(self.bias)
    }

    /// Weight and bias on the tape.
    fn vars(self, tape: &mut Tape<'_>) -> [Var; 2] {
        [tape.parameter(self.weight), tape.parameter(self.bias)]
    }
}

/// Layer norm with scale and shift.
///
/// ```
/// # use hopedgn::{nn::ParamBuilder, tensor::{Parameters, Tape, Tensor}};
/// # let mut parameters = Parameters::default();
/// let norm = ParamBuilder::new(&mut parameters, 0).layer_norm("norm", 2)?;
/// let mut tape = Tape::new(&parameters);
/// let x = tape.input(Tensor::matrix(1, 2, vec![3.0, 7.0])?);
/// let y = norm.forward(&mut tape, x)?;
/// let y = tape.read(y)?;
/// assert!((y[0] + 1.0).abs() < 1e-4 && (y[1] - 1.0).abs() < 1e-4); // mean 0, variance 1
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct LayerNorm(Linear);

impl LayerNorm {
    /// `[M, width]` for `x` `[M, width]`.
    pub fn forward(self, tape: &mut Tape<'_>, x: Var) -> Result<Var> {
        let [scale, shift] = self.0.vars(tape);
        Ok(tape.layer_norm(x, scale, shift)?)
    }
}

/// A linear layer over features that a dataset may lack: then the output is the bias.
///
/// ```
/// # use hopedgn::{nn::ParamBuilder, tensor::{Parameters, Tape}};
/// # let mut parameters = Parameters::default();
/// let channel = ParamBuilder::new(&mut parameters, 0).channel("edges", None, 172, 2)?; // no edge features
/// let mut tape = Tape::new(&parameters);
/// let y = channel.forward(&mut tape, 3, |_| unreachable!())?; // [3, 2]
/// let y = tape.read(y)?;
/// assert_eq!(y[..2], y[2..4]);
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Channel {
    weight: Option<ParameterId>,
    bias: ParameterId,
}

/// A [`Channel`] and its input `[M, n_in]`, which is there exactly where the channel has a weight.
///
/// ```
/// # use hopedgn::{nn::{Channel, ChannelInput, ParamBuilder}, tensor::{Parameters, Tape, Tensor}};
/// # let mut parameters = Parameters::default();
/// # let mut builder = ParamBuilder::new(&mut parameters, 0);
/// let (times, edges) = (builder.channel("times", Some(1), 1, 2)?, builder.channel("edges", None, 172, 2)?);
/// let mut tape = Tape::new(&parameters);
/// let x = Some(tape.input(Tensor::matrix(3, 1, vec![1.0, 2.0, 3.0])?));
/// let inputs = [ChannelInput { channel: times, x }, ChannelInput { channel: edges, x: None }];
/// let sum = Channel::sum(&mut tape, &inputs)?; // [3, 2]
/// assert_eq!(tape.read(sum)?.len(), 3 * 2);
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ChannelInput {
    /// The layer.
    pub channel: Channel,
    /// What it reads.
    pub x: Option<Var>,
}

impl Channel {
    /// `[n_rows, n_out]`; `x` computes the input `[n_rows, n_in]` and is called only where there is a weight.
    pub fn forward<'p>(
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

    /// The sum of the outputs of several channels, `[M, n_out]`, as one matrix product. At least one has an input.
    pub fn sum(tape: &mut Tape<'_>, channels: &[ChannelInput]) -> Result<Var> {
        let (mut inputs, mut weights, mut biases) = (Vec::new(), Vec::new(), None);
        for &ChannelInput { channel, x } in channels {
            inputs.extend(x);
            weights.extend(channel.weight.map(|weight| tape.parameter(weight)));
            let bias = tape.parameter(channel.bias);
            biases = Some(if let Some(sum) = biases { tape.add(sum, bias)? } else { bias });
        }
        if let ([x], [weight]) = (&inputs[..], &weights[..]) {
            return Ok(tape.linear(*x, *weight, biases, None)?);
        }
        let (x, weight) = (tape.concat(&inputs)?, tape.concat(&weights)?); // [M, Σ n_in], [n_out, Σ n_in]
        Ok(tape.linear(x, weight, biases, None)?)
    }
}

/// MITE as an embedding: intervals in fixed slots, then a two-layer perceptron.
///
/// ```
/// # use hopedgn::{collate::{MiteIntervals, MiteSettings}, nn::ParamBuilder, tensor::{Parameters, Ragged, Tape, Tensor}};
/// # let mut parameters = Parameters::default();
/// let settings = MiteSettings { enabled: true, k: 2, d_mite: 4, ..MiteSettings::default() };
/// let mite = ParamBuilder::new(&mut parameters, 0).mite(&settings)?.expect("MITE is on");
/// let intervals = Tensor::matrix(1, 1, vec![0.7])?.into(); // one event with the source
/// let intervals = MiteIntervals { intervals, lists: Ragged::from_lengths([1, 0]) };
/// let mut tape = Tape::new(&parameters);
/// let embedding = mite.forward(&mut tape, Some(&intervals))?; // [1, 4]
/// assert_eq!(tape.read(embedding)?.len(), 4);
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct MiteEmbedding {
    slots: PadRagged,
    hidden: Linear,
    out: Linear,
}

impl MiteEmbedding {
    /// `[R, Dm]` for the intervals of `R` nodes.
    pub fn forward(self, tape: &mut Tape<'_>, mite: Option<&MiteIntervals>) -> Result<Var> {
        let mite = mite.ok_or(Error::MissingInput)?;
        let intervals = tape.input(Arc::clone(&mite.intervals));
        let x = tape.pad_ragged(intervals, &mite.lists, self.slots)?; // [R, 2k], or [R, 4k] with valid bits
        let x = self.hidden.forward(tape, x, Some(Activation::Relu))?; // [R, Dm]
        self.out.forward(tape, x, None)
    }
}

/// Zeros, `[n_rows, width]`.
///
/// ```
/// # use hopedgn::{nn::zeros, tensor::{Parameters, Tape}};
/// # let parameters = Parameters::default();
/// let mut tape = Tape::new(&parameters);
/// let rows = zeros(&mut tape, 2, 3)?;
/// assert_eq!(tape.read(rows)?, [0.0; 6]);
/// # Ok::<(), hopedgn::Error>(())
/// ```
pub fn zeros(tape: &mut Tape<'_>, n_rows: usize, width: usize) -> Result<Var> {
    let row = tape.input(Tensor::zeros(Shape::Vector(width)));
    Ok(tape.repeat_row(row, n_rows)?)
}
