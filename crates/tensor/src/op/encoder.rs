//! Transformer encoder: pre-norm blocks over packed sequences, then means of rows, as one fused operation.
//!
//! It computes what the separate operations would, but saves far less for backward: of each LayerNorm the normalised
//! rows, of the GELU its derivative (times the dropout mask), one residual stream and one gradient of it.
//!
//! The last block's second feed-forward layer is applied after the mean, since mean(g·Wᵀ + b) = mean(g)·Wᵀ + b: it has one
//! row for each pool instead of one for each token.

mod cpu;
mod cuda;
#[cfg(test)]
mod tests;

use crate::tape::dispatch;
use crate::{Dropout, Error, Heads, Ragged, Relations, Result, Shape, Tape, Var};
pub(crate) use cuda::{ATTENTION_KERNELS, BIAS_KERNELS, KERNELS, MAX_HEAD_WIDTH, MAX_WIDTH};

/// The weights of one pre-norm transformer block as variables; each pair is `[weight, bias]`.
#[derive(Debug, Clone, Copy)]
pub struct BlockVars {
    /// Scale and shift of the LayerNorm before attention, `[D]` each.
    pub norm1: [Var; 2],
    /// The projection to queries, keys and values, `[3D, D]` and `[3D]`.
    pub qkv: [Var; 2],
    /// The output projection of attention, `[D, D]` and `[D]`.
    pub out: [Var; 2],
    /// Scale and shift of the LayerNorm before the feed-forward layers, `[D]` each.
    pub norm2: [Var; 2],
    /// The first feed-forward layer, `[F, D]` and `[F]`.
    pub up: [Var; 2],
    /// The second feed-forward layer, `[D, F]` and `[D]`.
    pub down: [Var; 2],
}

/// The options of [`Tape::encoder`].
#[derive(Debug, Clone, Copy)]
pub struct EncoderConfig {
    /// The heads of attention.
    pub heads: Heads,
    /// Dropout; each use in each block takes a [site](Dropout::site) of its own.
    pub dropout: Dropout,
}

/// What is added to the scores of attention, before the softmax.
#[derive(Debug, Clone)]
pub struct AttentionBias {
    /// `[relations.n_rows(), n_blocks · heads]`: the biases of each relation, block by block.
    pub table: Var,
    /// Which row belongs to which pair of tokens.
    pub relations: Relations,
}

impl Tape<'_> {
    /// Pre-norm transformer blocks over packed sequences `x` `[T, D]`, then the mean of each of `pools`, `[pools, D]`.
    ///
    /// A token attends to all tokens of its own sequence in `batch`; `pools` divides the same T rows, possibly differently.
    /// An empty pool gives zeros. Block `i` is
    ///
    /// ```text
    /// x += drop₁(out(attention(norm1(x))))    with drop₀ on the attention weights
    /// x += drop₃(down(drop₂(gelu(up(norm2(x))))))
    /// ```
    ///
    /// where dropₖ is `dropout.site(4 · i + k)`. The last block has no drop₃, so that the mean can be taken before the last
    /// layer, which saves a seventh of the work.
    ///
    /// On the CPU it runs on the calling thread whatever [`Threads`](crate::Threads) the tape has: large batches are split
    /// into chunks.
    pub fn encoder(
        &mut self,
        x: Var,
        blocks: &[BlockVars],
        config: EncoderConfig,
        batch: &Ragged,
        pools: &Ragged,
    ) -> Result<Var> {
        self.encode(x, blocks, config, [batch, pools], None)
    }

    /// [`Tape::encoder`] whose attention has a bias: head `h` of block `i` adds column `i · heads + h` of the table's row for a pair of
    /// tokens to their score, q·k/√d.
    ///
    /// The table usually comes from other operations; its gradient is summed in a fixed order.
    #[expect(clippy::too_many_arguments, reason = "those of the encoder, and the bias")]
    pub fn biased_encoder(
        &mut self,
        x: Var,
        blocks: &[BlockVars],
        config: EncoderConfig,
        batch: &Ragged,
        pools: &Ragged,
        bias: &AttentionBias,
    ) -> Result<Var> {
        let (rows, cols) = (bias.relations.n_rows(), blocks.len() * config.heads.0);
        if self.shape(bias.table) != Shape::Matrix(rows, cols) {
            return Err(self.shape_error("encoder", "the table of biases", bias.table, Shape::Matrix(rows, cols)));
        }
        if !bias.relations.fits(batch) {
            return Err(Error::Relations {
                found: "relations of other sequences".to_owned(),
                expected: "those of the batch".to_owned(),
            });
        }
        self.encode(x, blocks, config, [batch, pools], Some(bias))
    }

    fn encode(
        &mut self,
        x: Var,
        blocks: &[BlockVars],
        config: EncoderConfig,
        [batch, pools]: [&Ragged; 2],
        bias: Option<&AttentionBias>,
    ) -> Result<Var> {
        let d_model = self.shape(x).cols();
        for (what, rows) in [("x, beside its batch,", batch), ("x, beside its pools,", pools)] {
            if self.shape(x) != Shape::Matrix(rows.total(), d_model) {
                return Err(self.shape_error("encoder", what, x, format_args!("[{}, D]", rows.total())));
            }
        }
        if config.heads.0 == 0 || d_model == 0 || !d_model.is_multiple_of(config.heads.0) {
            let needed = format_args!("[T, D] with D a multiple of {} heads", config.heads.0).to_string();
            return Err(self.shape_error("encoder", "x", x, needed));
        }
        let mut blocks_with_sizes = Vec::with_capacity(blocks.len());
        for (index, &vars) in (0..).zip(blocks) {
            let d_hidden = self.check_block(&vars, d_model)?;
            let dropouts = [0, 1, 2, 3].map(|place| config.dropout.site(4 * index + place));
            blocks_with_sizes.push(Block { vars, d_hidden, dropouts });
        }
        let (blocks, batch, pools, bias) = (blocks_with_sizes, batch.clone(), pools.clone(), bias.cloned());
        dispatch!(self.encoder(Stack { x, blocks, batch, pools, bias, n_heads: config.heads.0, d_model }))
    }

    /// The width of the block's feed-forward layer.
    fn check_block(&self, vars: &BlockVars, d: usize) -> Result<usize> {
        let f = self.shape(vars.up[0]).rows();
        let expected = [
            ("the scale and shift before attention", vars.norm1, [Shape::Vector(d), Shape::Vector(d)]),
            ("the input of attention", vars.qkv, [Shape::Matrix(3 * d, d), Shape::Vector(3 * d)]),
            ("the output of attention", vars.out, [Shape::Matrix(d, d), Shape::Vector(d)]),
            ("the scale and shift before the feed-forward layers", vars.norm2, [Shape::Vector(d), Shape::Vector(d)]),
            ("the first feed-forward layer", vars.up, [Shape::Matrix(f, d), Shape::Vector(f)]),
            ("the second feed-forward layer", vars.down, [Shape::Matrix(d, f), Shape::Vector(d)]),
        ];
        for (what, vars, needed) in expected {
            for (var, needed) in vars.into_iter().zip(needed) {
                if self.shape(var) != needed {
                    return Err(self.shape_error("encoder", what, var, needed));
                }
            }
        }
        Ok(f)
    }
}

impl BlockVars {
    fn all(&self) -> impl Iterator<Item = Var> + use<> {
        [self.norm1, self.qkv, self.out, self.norm2, self.up, self.down].into_iter().flatten()
    }
}

/// A stack of blocks whose shapes have been checked.
pub(crate) struct Stack {
    x: Var,
    blocks: Vec<Block>,
    batch: Ragged,
    pools: Ragged,
    bias: Option<AttentionBias>,
    n_heads: usize,
    d_model: usize,
}

impl Stack {
    /// `x`, the weights of all blocks, and the table of biases.
    fn operands(&self) -> Vec<Var> {
        let weights = self.blocks.iter().flat_map(|block| block.vars.all());
        std::iter::once(self.x).chain(weights).chain(self.bias.iter().map(|bias| bias.table)).collect()
    }

    fn output_shape(&self) -> Shape {
        Shape::Matrix(self.pools.len(), self.d_model)
    }
}

/// The variables of a block, the width of its feed-forward layer, and its dropouts: of the attention weights, after
/// attention, of the hidden rows, after the second feed-forward layer.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    vars: BlockVars,
    d_hidden: usize,
    dropouts: [Dropout; 4],
}
