//! Tensors that learn: shapes, reverse-mode differentiation, kernels, Adam and checkpoints. Knows nothing of graphs.
//!
//! # How it fits together
//! A model registers its weights in [`Parameters`] under dotted names. A forward pass writes operations onto a [`Tape`];
//! [`Tape::backward`] walks it from the end and adds to [`Gradients`], which [`Adam`] turns into the next weights.
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
//! - Results are bit-identical for any number of threads, and a row's result does not depend on the rows beside it.
//! - Dropout is a value handed to an operation ([`Dropout`], [`Mode`]), not a state of the model.
//! - Where values live is this crate's affair ([`Device`]): [`TrainState`] and [`Weights`] own them, callers see them through
//!   methods only.

mod adam;
#[cfg(test)]
mod block;
mod checkpoint;
mod chunks;
mod cuda;
mod device;
mod error;
mod gemm;
mod indices;
pub mod init;
mod math;
pub mod measure;
mod op;
mod parallel;
mod parameters;
mod ragged;
mod scratch;
mod state_table;
mod tape;
mod tensor;
#[cfg(test)]
mod testkit;
mod train_state;
mod vector;

pub use adam::{Adam, AdamConfig};
pub use checkpoint::{load, load_beside, save, save_beside};
pub use device::{CudaOptions, Device, Precision};
pub use error::{Error, Result};
pub use indices::Indices;
pub use op::activation::Activation;
pub use op::attention::Heads;
pub use op::cross_attention::AttentionForm;
pub use op::dropout::{Dropout, Mode};
pub use op::encoder::{BlockVars, EncoderForm};
pub use op::pad_ragged::PadRagged;
pub use parallel::Threads;
pub use parameters::{ParameterId, Parameters};
pub use ragged::Ragged;
pub use state_table::StateTable;
pub use tape::{Gradients, Tape, Var};
pub use tensor::{Shape, Tensor};
pub use train_state::{Step, TrainState, Weights};
pub use vector::ln_1p;
