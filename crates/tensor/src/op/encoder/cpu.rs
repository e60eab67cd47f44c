//! The transformer encoder on the CPU. All buffers are [`scratch`] memory, which a thread reuses for its next chunk.

mod bias;
mod block;
mod mean;

use super::{AttentionBias, BlockVars, Stack};
use crate::gemm;
use crate::op::self_attention::cpu::Sequence;
use crate::scratch::{self, Scratch};
use crate::tape::{BackwardCtx, CpuTape, GradSink};
use crate::vector::add_to;
use crate::{Result, Tensor, Var};
use bias::{BlockBias, SequenceBias};
use block::{BlockSizes, Linear, SavedAttention, SavedFeedForward, Weights};

impl CpuTape<'_> {
    pub(crate) fn encoder(&mut self, stack: Stack) -> Result<Var> {
        let (operands, shape) = (stack.operands(), stack.output_shape());
        let requires_grad = self.any_requires_grad(&operands);
        let mut values = scratch::take_zeros(shape.len());
        let saved = stack.cpu_forward(self, requires_grad, &mut values);
        let backward = move |grad: Scratch, ctx: &BackwardCtx<'_>, sink: &mut GradSink<'_>| {
            stack.cpu_backward(saved, grad, ctx, sink);
        };
        Ok(self.push(&operands, Tensor::from_parts(shape, values), backward))
    }
}

impl BlockVars {
    fn weights<'a>(&self, value: impl Fn(Var) -> &'a Tensor, weight: impl Fn(Var) -> gemm::Weight<'a>) -> Weights<'a> {
        let norm = |vars: [Var; 2]| vars.map(|var| value(var).values());
        let linear = |[matrix, bias]: [Var; 2]| Linear { weight: weight(matrix), bias: value(bias).values() };
        Weights {
            vars: *self,
            norm1: norm(self.norm1),
            qkv: linear(self.qkv),
            out: linear(self.out),
            norm2: norm(self.norm2),
            up: linear(self.up),
            down: linear(self.down),
        }
    }
}

/// What the forward pass saves for backward, block by block.
type Saved = Vec<(SavedAttention, SavedFeedForward)>;

impl Stack {
    fn sequences(&self, sizes: &BlockSizes) -> Vec<Sequence> {
        sizes.attention.sequences(&self.batch)
    }

    /// The biases of a block; `value` finds their table.
    fn bias_of<'a>(&'a self, block: usize, value: impl Fn(Var) -> &'a Tensor) -> Option<BlockBias<'a>> {
        let AttentionBias { table, relations } = self.bias.as_ref()?;
        let (cols, first_col) = (self.blocks.len() * self.n_heads, block * self.n_heads);
        Some(BlockBias { relations, table: value(*table).values(), cols, first_col })
    }

    fn cpu_forward(&self, tape: &CpuTape<'_>, requires_grad: bool, values: &mut [f32]) -> Saved {
        let mut saved = Saved::new();
        let x_values = tape.value(self.x).values();
        let mut x = scratch::take(x_values.len());
        x.copy_from_slice(x_values);
        for (index, block) in self.blocks.iter().enumerate() {
            let sizes = BlockSizes::new(block, self.n_heads, self.d_model);
            let weights = block.vars.weights(|var| tape.value(var), |var| tape.weight(var));
            let biases = self.bias_of(index, |var| tape.value(var)).map_or_else(Vec::new, BlockBias::of_sequences);
            let attended = sizes.attention_forward(&weights, (&self.sequences(&sizes), &biases), &mut x);
            let ffn = if index + 1 < self.blocks.len() {
                sizes.ffn(&weights, &mut x)
            } else {
                let ffn = sizes.ffn_means(&weights, &x, &self.pools);
                sizes.down(&weights, &ffn.hidden, values);
                mean::clear_empty(values, &self.pools);
                ffn
            };
            if requires_grad {
                saved.push((attended, ffn));
            }
        }
        let mut means = scratch::take_zeros(values.len());
        mean::add_means(&x, &self.pools, &mut means);
        add_to(values, &means);
        saved
    }

    fn cpu_backward(self, saved: Saved, mut grad: Scratch, ctx: &BackwardCtx<'_>, sink: &mut GradSink<'_>) {
        mean::clear_empty(&mut grad, &self.pools);
        let mut dx = scratch::take_zeros(self.batch.total() * self.d_model);
        mean::add_mean_gradients(&grad, &self.pools, &mut dx);
        let n_blocks = self.blocks.len();
        for (index, (block, (attended, ffn))) in self.blocks.iter().zip(saved).enumerate().rev() {
            let sizes = BlockSizes::new(block, self.n_heads, self.d_model);
            let weights = block.vars.weights(|var| ctx.value(var), |var| ctx.weight(var));
            if index + 1 < n_blocks {
                sizes.ffn_backward(&weights, ffn, &mut dx, sink);
            } else {
                sizes.ffn_means_backward(&weights, ffn, (&self.pools, &grad), &mut dx, sink);
            }
            let bias = self.bias_of(index, |var| ctx.value(var));
            let biases: Vec<SequenceBias<'_>> = bias.map_or_else(Vec::new, BlockBias::of_sequences);
            let mut d_table = bias.map_or_else(Scratch::default, BlockBias::zero_gradients);
            let saved = (&attended, &*self.sequences(&sizes));
            sizes.attention_backward(&weights, saved, (&biases, &mut d_table), &mut dx, sink);
            if let Some(bias) = &self.bias {
                sink.accumulate_with(bias.table, |sum| add_to(sum, &d_table));
            }
        }
        sink.accumulate(self.x, dx);
    }
}
