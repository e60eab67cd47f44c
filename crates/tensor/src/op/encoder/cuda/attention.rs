//! The self-attention of the encoder on the GPU, without materialised attention weights.

use std::sync::Arc;

use super::{DeviceOffsets, Saved, Steps};
use crate::cuda::{
    Buffer, Call, CudaBackwardCtx, Grid, dim, kernels,
    param::{Float, Int, Mask, Ptr},
};
use crate::op::encoder::{Block, Stack};
use crate::{Dropout, Precision, Result};

kernels! {
    pub(crate) ATTENTION_KERNELS:
    /// Attention in `f32`.
    fn self_attention_forward(
        qkv: Ptr, bias: Ptr, starts: Ptr, weight_starts: Ptr, mask: Mask, out: Ptr, logs: Ptr, n_heads: Int, width: Int,
        stride: Int, scale: Float,
    );
    /// The same with biases.
    fn self_attention_forward_biased(
        qkv: Ptr, bias: Ptr, biases: Ptr, starts: Ptr, weight_starts: Ptr, mask: Mask, out: Ptr, logs: Ptr,
        n_heads: Int, width: Int, stride: Int, scale: Float,
    );
    /// The gradient of `qkv` in `f32`.
    fn self_attention_backward(
        qkv: Ptr, bias: Ptr, starts: Ptr, weight_starts: Ptr, mask: Mask, out: Ptr, d_out: Ptr, logs: Ptr, d_qkv: Ptr,
        n_heads: Int, width: Int, stride: Int, scale: Float,
    );
    /// The same with biases, which their gradients replace.
    fn self_attention_backward_biased(
        qkv: Ptr, bias: Ptr, biases: Ptr, starts: Ptr, weight_starts: Ptr, mask: Mask, out: Ptr, d_out: Ptr, logs: Ptr,
        d_qkv: Ptr, n_heads: Int, width: Int, stride: Int, scale: Float,
    );
    /// Attention on tensor cores.
    fn self_attention_forward_mma(
        qkv: Ptr, bias: Ptr, starts: Ptr, weight_starts: Ptr, mask: Mask, out: Ptr, logs: Ptr, n_heads: Int, width: Int,
        stride: Int, scale: Float,
    );
    /// The same with biases.
    fn self_attention_forward_mma_biased(
        qkv: Ptr, bias: Ptr, biases: Ptr, starts: Ptr, weight_starts: Ptr, mask: Mask, out: Ptr, logs: Ptr,
        n_heads: Int, width: Int, stride: Int, scale: Float,
    );
    /// The gradient of `qkv` on tensor cores.
    fn self_attention_backward_mma(
        qkv: Ptr, bias: Ptr, starts: Ptr, weight_starts: Ptr, mask: Mask, out: Ptr, d_out: Ptr, logs: Ptr, d_qkv: Ptr,
        n_heads: Int, width: Int, stride: Int, scale: Float,
    );
    /// The same with biases, which their gradients replace.
    fn self_attention_backward_mma_biased(
        qkv: Ptr, bias: Ptr, biases: Ptr, starts: Ptr, weight_starts: Ptr, mask: Mask, out: Ptr, d_out: Ptr, logs: Ptr,
        d_qkv: Ptr, n_heads: Int, width: Int, stride: Int, scale: Float,
    );
    /// Attention on tensor cores over at most 64 tokens.
    fn self_attention_forward_short(
        qkv: Ptr, bias: Ptr, starts: Ptr, weight_starts: Ptr, mask: Mask, out: Ptr, logs: Ptr, n_heads: Int, width: Int,
        stride: Int, scale: Float,
    );
    /// The same with biases.
    fn self_attention_forward_short_biased(
        qkv: Ptr, bias: Ptr, biases: Ptr, starts: Ptr, weight_starts: Ptr, mask: Mask, out: Ptr, logs: Ptr,
        n_heads: Int, width: Int, stride: Int, scale: Float,
    );
    /// The gradient of `qkv` on tensor cores over at most 64 tokens.
    fn self_attention_backward_short(
        qkv: Ptr, bias: Ptr, starts: Ptr, weight_starts: Ptr, mask: Mask, out: Ptr, d_out: Ptr, logs: Ptr, d_qkv: Ptr,
        n_heads: Int, width: Int, stride: Int, scale: Float,
    );
    /// The same with biases, which their gradients replace.
    fn self_attention_backward_short_biased(
        qkv: Ptr, bias: Ptr, biases: Ptr, starts: Ptr, weight_starts: Ptr, mask: Mask, out: Ptr, d_out: Ptr, logs: Ptr,
        d_qkv: Ptr, n_heads: Int, width: Int, stride: Int, scale: Float,
    );
}

type Forward = fn(Ptr, Ptr, Ptr, Ptr, Mask, Ptr, Ptr, Int, Int, Int, Float) -> Call<11>;
type BiasedForward = fn(Ptr, Ptr, Ptr, Ptr, Ptr, Mask, Ptr, Ptr, Int, Int, Int, Float) -> Call<12>;
type Backward = fn(Ptr, Ptr, Ptr, Ptr, Mask, Ptr, Ptr, Ptr, Ptr, Int, Int, Int, Float) -> Call<13>;
type BiasedBackward = fn(Ptr, Ptr, Ptr, Ptr, Ptr, Mask, Ptr, Ptr, Ptr, Ptr, Int, Int, Int, Float) -> Call<14>;

/// The kernels of one way to compute attention.
#[derive(Clone, Copy)]
struct AttentionKernels {
    forward: Forward,
    biased_forward: BiasedForward,
    backward: Backward,
    biased_backward: BiasedBackward,
}

const IN_F32: AttentionKernels = AttentionKernels {
    forward: self_attention_forward,
    biased_forward: self_attention_forward_biased,
    backward: self_attention_backward,
    biased_backward: self_attention_backward_biased,
};
const ON_TENSOR_CORES: AttentionKernels = AttentionKernels {
    forward: self_attention_forward_mma,
    biased_forward: self_attention_forward_mma_biased,
    backward: self_attention_backward_mma,
    biased_backward: self_attention_backward_mma_biased,
};
const OF_SHORT_SEQUENCES: AttentionKernels = AttentionKernels {
    forward: self_attention_forward_short,
    biased_forward: self_attention_forward_short_biased,
    backward: self_attention_backward_short,
    biased_backward: self_attention_backward_short_biased,
};

/// The longest sequence whose scores a warp holds in registers.
const MAX_SHORT: usize = 64;

/// How attention is computed.
pub(super) struct AttentionPlan {
    kernels: AttentionKernels,
    pub(super) grid: Grid,
    /// Values between rows in shared memory.
    stride: u32,
}

impl Stack {
    pub(super) fn attention_plan(&self, precision: Precision, is_backward: bool) -> AttentionPlan {
        let width = self.d_model / self.n_heads;
        let longest = self.batch.longest();
        let n_tiles = if is_backward { 4 } else { 3 };
        let (kernels, threads, stride, bytes) = if precision == Precision::F32 {
            // An odd number of 16-byte units in a row avoids bank conflicts.
            let stride = 4 * (width.div_ceil(4) | 1);
            let bytes = 4 * (n_tiles * 64 * stride + 64 * 68 + 64);
            (IN_F32, 256, stride, bytes)
        } else if longest <= MAX_SHORT {
            let bytes = precision.bytes();
            let rows = longest.next_multiple_of(16).max(16);
            // The same; in backward two tiles are reused for attention weights.
            let unit = 16 / bytes;
            let stride = unit * ((8 * width.div_ceil(8) / unit) | 1);
            let weights = if is_backward { 2 * rows * stride.max(MAX_SHORT + unit) } else { 0 };
            let threads = if is_backward { 4 * rows } else { 2 * rows };
            let bytes = bytes * (2 * rows * stride + weights) + 16;
            (OF_SHORT_SEQUENCES, threads, stride, bytes)
        } else {
            // Whole blocks of 8 columns for tensor cores; at least as wide as a row of weights.
            let stride = (8 * width.div_ceil(8) + 4).max(68);
            let bytes = 4 * (n_tiles * 64 * stride + 3 * 64);
            (ON_TENSOR_CORES, 256, stride, bytes)
        };
        let blocks = (dim(self.batch.len() * self.n_heads), 1);
        let grid = Grid { blocks, threads: (dim(threads), 1), shared: dim(bytes) };
        AttentionPlan { kernels, grid, stride: dim(stride) }
    }

    /// The number of heads, their width, and the factor of scores.
    fn head_sizes(&self) -> (u32, u32, f32) {
        let width = self.d_model / self.n_heads;
        #[expect(clippy::cast_possible_truncation, reason = "the scale is rounded once")]
        let scale = (1.0 / (width as f64).sqrt()) as f32;
        (dim(self.n_heads), dim(width), scale)
    }

    /// The attention output `[T, D]`, and the logarithm of each softmax denominator `[T, heads]`. `bias` is that of `qkv`; scores have
    /// those at `biases`, unless it is 0.
    pub(super) fn attention(
        &self,
        run: &Steps<'_>,
        (bias, biases): (u64, u64),
        offsets: &DeviceOffsets,
        qkv: &Buffer,
        dropout: Dropout,
    ) -> Result<(Arc<Buffer>, Arc<Buffer>)> {
        let t = self.rows();
        let (attended, logs) = (run.alloc_elems(t * self.d_model)?, run.cuda.alloc_f32(t * self.n_heads)?);
        let (heads, width, scale) = self.head_sizes();
        let AttentionPlan { kernels, grid, stride } = self.attention_plan(run.cuda.precision, false);
        let (sequences, weights, mask) = (offsets.sequences, offsets.weights, dropout.mask_words());
        let (qkv, out, at) = (qkv.ptr(), attended.ptr(), logs.ptr());
        if biases == 0 {
            let kernel = kernels.forward;
            run.cuda.launch(grid, kernel(qkv, bias, sequences, weights, mask, out, at, heads, width, stride, scale))?;
        } else {
            let kernel = kernels.biased_forward;
            run.cuda.launch(
                grid,
                kernel(qkv, bias, biases, sequences, weights, mask, out, at, heads, width, stride, scale),
            )?;
        }
        Ok((attended, logs))
    }

    /// The gradient of `qkv`, `[T, 3D]`. Those of the scores replace the biases at `biases`, unless it is 0.
    pub(super) fn attention_backward(
        &self,
        block: &Block,
        saved: &Saved,
        (d_attended, biases): (&Buffer, u64),
        offsets: &DeviceOffsets,
        ctx: &CudaBackwardCtx<'_>,
    ) -> Result<Arc<Buffer>> {
        let run = Steps { cuda: ctx.cuda() };
        let d_qkv = run.alloc_elems(self.rows() * 3 * self.d_model)?;
        let (heads, width, scale) = self.head_sizes();
        let AttentionPlan { kernels, grid, stride } = self.attention_plan(run.cuda.precision, true);
        let (qkv, bias, mask) = (saved.qkv.ptr(), ctx.tape.ptr(block.vars.qkv[1]), block.dropouts[0].mask_words());
        let (sequences, weights) = (offsets.sequences, offsets.weights);
        let (out, d_out, logs, to) = (saved.attended.ptr(), d_attended.ptr(), saved.logs.ptr(), d_qkv.ptr());
        if biases == 0 {
            let kernel = kernels.backward;
            run.cuda.launch(
                grid,
                kernel(qkv, bias, sequences, weights, mask, out, d_out, logs, to, heads, width, stride, scale),
            )?;
        } else {
            let kernel = kernels.biased_backward;
            run.cuda.launch(
                grid,
                kernel(qkv, bias, biases, sequences, weights, mask, out, d_out, logs, to, heads, width, stride, scale),
            )?;
        }
        Ok(d_qkv)
    }
}
