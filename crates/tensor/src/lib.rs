//! Tensors, reverse-mode automatic differentiation, Adam and checkpoints, on the CPU and on NVIDIA GPUs.
//!
//! # How it fits together
//! A model registers its weights in [`Parameters`] under dotted names. A forward pass calls the operations of a [`Tape`];
//! [`Tape::backward`] runs them in reverse and adds to [`Gradients`], from which [`Adam`] updates the weights.
//! [`TrainState`] does all of that on a [`Device`], with the same forward code on the CPU and on a GPU.
//!
//! ```
//! use hopedgn_tensor::{Adam, AdamConfig, Gradients, Parameters, Shape, Tape, Tensor};
//!
//! let mut parameters = Parameters::default();
//! let weight = parameters.add("head.weight", Tensor::zeros(Shape::Matrix(1, 2)))?;
//! let mut adam = Adam::new(AdamConfig::default(), &parameters);
//!
//! let mut tape = Tape::new(&parameters);
//! let x = tape.input(Tensor::matrix(2, 2, vec![1.0, 0.0, 0.0, 1.0])?);
//! let weight_var = tape.parameter(weight);
//! let logits = tape.linear(x, weight_var, None, None)?; // [2, 1]
//! let loss = tape.bce_with_logits(logits, &[1.0, 0.0], 2)?;
//!
//! let mut gradients = Gradients::zeros(&parameters);
//! tape.backward(loss, &mut gradients)?;
//! adam.step(&mut parameters, &gradients);
//! let weight = parameters.get(weight).values();
//! assert!(weight[0] > 0.0 && weight[1] < 0.0);
//! # Ok::<(), hopedgn_tensor::Error>(())
//! ```
//!
//! # Rules
//! - Sequences of any lengths are packed as rows with offsets ([`Ragged`]); there is no padding.
//! - Results on the CPU are bit-identical for any number of threads, and a row's result does not depend on other rows.
//! - Dropout is a value passed to an operation ([`Dropout`], [`Mode`]), not a state of the model.
//! - Where values live is private ([`Device`]): [`TrainState`] and [`Weights`] own them.

mod adam;
mod checkpoint;
mod chunks;
mod cuda;
mod device;
mod error;
mod gemm;
mod group;
mod indices;
pub mod init;
mod math;
pub mod measure;
mod op;
mod parallel;
mod parameters;
mod ragged;
mod relations;
mod scratch;
mod tape;
mod tensor;
#[cfg(test)]
mod testkit;
mod train_state;
#[cfg(test)]
mod transformer_tests;
mod vector;

pub use adam::{Adam, AdamConfig};
pub use checkpoint::{load, load_extras, load_metadata, save, save_with_extras};
pub use device::{CudaOptions, Device, Precision};
pub use error::{Error, Result};
pub use group::{ProcessGroup, Transport};
pub use indices::Indices;
pub use op::activation::Activation;
pub use op::cross_attention::AttentionConfig;
pub use op::dropout::{Dropout, Mode};
pub use op::encoder::{AttentionBias, BlockVars, EncoderConfig};
pub use op::loss::BceTerm;
pub use op::pad_ragged::PadRagged;
pub use op::self_attention::Heads;
pub use op::state_table::StateTable;
pub use parallel::Threads;
pub use parameters::{ParameterId, Parameters};
pub use ragged::Ragged;
pub use relations::Relations;
pub use tape::{Gradients, PendingValues, Tape, Var};
pub use tensor::{Shape, Tensor};
pub use train_state::{StepResult, TrainState, Weights};
pub use vector::ln_1p;
