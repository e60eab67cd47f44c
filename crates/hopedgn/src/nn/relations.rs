//! Biases of attention from relations among tokens.

use std::sync::Arc;

use hopedgn_tensor::{Activation, AttentionBias, Tape};

use super::{Linear, ParamBuilder};
use crate::Result;
use crate::collate::{N_RELATION_FEATURES, RelationInput};

/// Width of the hidden layer.
const D_HIDDEN: usize = 16;

/// A perceptron from a [relation](RelationInput) to a bias for each head of each block.
///
/// ```
/// # use hopedgn::{collate::RelationInput, nn::ParamBuilder, tensor::{Parameters, Ragged, Relations, Tape, Tensor}};
/// # let mut parameters = Parameters::default();
/// let bias = ParamBuilder::new(&mut parameters, 0).relation_bias(2 * 2)?; // two blocks of two heads
/// // Two tokens of nodes that never met.
/// let features = Tensor::matrix(2, 4, vec![0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])?.into();
/// let of_tokens = Relations::new(&Ragged::from_lengths([2]), vec![0, 1], Vec::new(), Ragged::from_lengths([0]))?;
/// let mut tape = Tape::new(&parameters);
/// let biases = bias.forward(&mut tape, &RelationInput { features, of_tokens })?;
/// assert_eq!(tape.read(biases.table)?.len(), 2 * 4);
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct RelationBias {
    hidden: Linear,
    out: Linear,
}

impl ParamBuilder<'_> {
    /// Biases for `n_heads` heads, those of all blocks together.
    pub fn relation_bias(&mut self, n_heads: usize) -> Result<RelationBias> {
        let hidden = self.linear("relations.hidden", N_RELATION_FEATURES, D_HIDDEN)?;
        Ok(RelationBias { hidden, out: self.linear("relations.out", D_HIDDEN, n_heads)? })
    }
}

impl RelationBias {
    /// The biases of all tokens: a table `[K, heads]` of the `K` different relations.
    pub fn forward(self, tape: &mut Tape<'_>, input: &RelationInput) -> Result<AttentionBias> {
        let x = tape.input(Arc::clone(&input.features)); // [K, 4]
        let x = self.hidden.forward(tape, x, Some(Activation::Gelu))?; // [K, 16]
        let table = self.out.forward(tape, x, None)?; // [K, heads]
        Ok(AttentionBias { table, relations: input.of_tokens.clone() })
    }
}
