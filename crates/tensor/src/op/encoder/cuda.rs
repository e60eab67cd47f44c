//! The transformer encoder on the GPU, as a fixed sequence of GEMMs and kernels.
//!
//! Shapes: T tokens, D model width, F width of the feed-forward layer, P pools. The residual stream is `f32` and saved once
//! before each LayerNorm; activations between GEMMs have the element type of GEMM operands.

#![expect(clippy::many_single_char_names, reason = "matrices and their sizes are named as in the formulas")]

mod attention;
mod bias;

use std::sync::Arc;

use super::{Block, Stack};
use crate::cuda::{
    Buffer, Context, CudaBackwardCtx, CudaTape, Gemm, Grid, add_column_sums_elem, add_partials, check_row_count, dim,
    kernels,
};
use crate::{Dropout, Error, Result, Var};
pub(crate) use attention::ATTENTION_KERNELS;
pub(crate) use bias::BIAS_KERNELS;
use bias::DeviceBias;

kernels! {
    pub(crate) KERNELS:
    /// Adds a branch to the residual stream and normalises it; rows of up to 256 values.
    fn residual_norm_8(
        x: Ptr, branch: Ptr, bias: Ptr, mask: Mask, x_new: Ptr, y: Ptr, stats: Ptr, scale: Ptr, shift: Ptr, rows: Int,
        cols: Int,
    );
    /// The same for rows of up to 1024 values.
    fn residual_norm_32(
        x: Ptr, branch: Ptr, bias: Ptr, mask: Mask, x_new: Ptr, y: Ptr, stats: Ptr, scale: Ptr, shift: Ptr, rows: Int,
        cols: Int,
    );
    /// Adds the input gradient of a LayerNorm to `dx`; rows of up to 256 values.
    fn norm_backward_8(
        dy: Ptr, x: Ptr, stats: Ptr, scale: Ptr, dx: Ptr, branch: Ptr, mask: Mask, partials: Ptr, rows: Int, cols: Int,
    );
    /// The same for rows of up to 1024 values.
    fn norm_backward_32(
        dy: Ptr, x: Ptr, stats: Ptr, scale: Ptr, dx: Ptr, branch: Ptr, mask: Mask, partials: Ptr, rows: Int, cols: Int,
    );
    /// `hidden = dropout(gelu(pre + bias))`.
    fn gelu_forward(pre: Ptr, bias: Ptr, mask: Mask, hidden: Ptr, rows: Int, cols: Int, strip: Int);
    /// The means of the same over pools.
    fn gelu_means(pre: Ptr, bias: Ptr, mask: Mask, pools: Ptr, means: Ptr, cols: Int);
    /// The input gradient of `gelu_forward`, in place, with partial column sums.
    fn gelu_backward(
        grads: Ptr, pre: Ptr, bias: Ptr, mask: Mask, partials: Ptr, rows: Int, cols: Int, strip: Int,
    );
    /// The input gradient of `gelu_means`, written over `pre`, with partial column sums.
    fn gelu_means_backward(
        means: Ptr, pre: Ptr, bias: Ptr, mask: Mask, partials: Ptr, pools: Ptr, cols: Int,
    );
    /// The means of `x` over pools, plus the feed-forward output and its bias.
    fn pool_means(x: Ptr, fed: Ptr, bias: Ptr, pools: Ptr, values: Ptr, cols: Int);
    /// The input gradient of `pool_means`.
    fn pool_means_backward(grads: Ptr, pools: Ptr, dx: Ptr, copy: Ptr, cols: Int);
}

/// The most blocks of the LayerNorm backward and of GELU: about as many as a large GPU runs at once.
const NORM_BLOCKS: usize = 396;
const GELU_BLOCKS: usize = 528;

/// The offsets of sequences and pools on the GPU, in one buffer.
struct DeviceOffsets {
    #[expect(dead_code, reason = "keeps the memory of the pointers alive")]
    memory: Arc<Buffer>,
    sequences: u64,
    /// Σ length² of the preceding sequences: the position of a sequence's attention weights in the dropout mask.
    weights: u64,
    pools: u64,
}

/// What a block saves for backward.
struct Saved {
    x: Arc<Buffer>,
    y1: Arc<Buffer>,
    stats1: Arc<Buffer>,
    qkv: Arc<Buffer>,
    attended: Arc<Buffer>,
    logs: Arc<Buffer>,
    x1: Arc<Buffer>,
    y2: Arc<Buffer>,
    stats2: Arc<Buffer>,
    pre: Arc<Buffer>,
    /// The hidden rows after GELU, or their means over pools.
    hidden: Arc<Buffer>,
}

/// What is added to the residual stream before the next LayerNorm: the output of a GEMM, without its bias.
struct Branch {
    rows: Arc<Buffer>,
    bias: u64,
    dropout: Dropout,
}

/// The largest model and head widths of the kernels.
pub(crate) const MAX_WIDTH: usize = 1024;
pub(crate) const MAX_HEAD_WIDTH: usize = 128;

const NO_MASK: [u32; 4] = [0; 4];

impl CudaTape<'_> {
    pub(crate) fn encoder(&mut self, stack: Stack) -> Result<Var> {
        self.check_deferred()?;
        check_row_count("an encoder over more than 2³¹ rows", stack.batch.total())?;
        let d_head = stack.d_model / stack.n_heads;
        let hidden_fits = stack.blocks.iter().all(|block| block.d_hidden.is_multiple_of(4));
        if d_head > MAX_HEAD_WIDTH || stack.d_model > MAX_WIDTH || !hidden_fits {
            let operation =
                "an encoder wider than 1024, with heads wider than 128, or of a hidden width not divisible by 4";
            return Err(Error::NotOnGpu { operation });
        }
        if stack.attention_plan(self.cuda().precision, true).grid.shared > self.cuda().max_shared_memory {
            let operation = "attention over heads this wide, for which this GPU has too little shared memory (bf16 \
                             needs less)";
            return Err(Error::NotOnGpu { operation });
        }
        let (operands, shape) = (stack.operands(), stack.output_shape());
        let requires_grad = self.any_requires_grad(&operands);
        let offsets = stack.upload_offsets(self.cuda())?;
        let values = self.cuda().alloc_f32(shape.len())?;
        let bias = stack.spread_bias(self, &offsets)?;
        let saved = stack.cuda_forward(self, (&offsets, bias.as_ref()), &values, requires_grad)?;
        let backward = move |grad: Arc<Buffer>, ctx: &mut CudaBackwardCtx<'_>| {
            stack.cuda_backward(saved, (&offsets, bias.as_ref()), &grad, ctx)
        };
        Ok(self.push(&operands, shape, values, backward))
    }
}

impl Stack {
    fn upload_offsets(&self, cuda: &Arc<Context>) -> Result<DeviceOffsets> {
        let mut sum = 0_u64;
        // 64-bit numbers, the lower half first.
        let squares = self.batch.ranges().flat_map(|range| {
            let before = sum;
            sum += (range.len() * range.len()) as u64;
            #[expect(clippy::cast_possible_truncation, reason = "both halves are saved")]
            [before as u32, (before >> 32) as u32]
        });
        let mut all: Vec<u32> = squares.collect();
        let sequences = all.len();
        all.extend(self.batch.offsets().iter().map(|&at| dim(at)));
        let pools = all.len();
        all.extend(self.pools.offsets().iter().map(|&at| dim(at)));
        let memory = cuda.upload(&all)?;
        let at = |index: usize| memory.ptr() + 4 * index as u64;
        Ok(DeviceOffsets { sequences: at(sequences), weights: at(0), pools: at(pools), memory })
    }

    fn rows(&self) -> usize {
        self.batch.total()
    }

    fn cuda_forward(
        &self,
        tape: &CudaTape<'_>,
        (offsets, attention_bias): (&DeviceOffsets, Option<&DeviceBias>),
        values: &Arc<Buffer>,
        requires_grad: bool,
    ) -> Result<Vec<Saved>> {
        let (cuda, t, d) = (tape.cuda(), self.rows(), self.d_model);
        let run = Steps { cuda };
        let mut saved = Vec::new();
        let mut x = tape.buffer_or_copy(self.x)?;
        let mut branch: Option<Branch> = None;
        let mut ffn: Option<(Arc<Buffer>, u64)> = None;
        for (index, block) in self.blocks.iter().enumerate() {
            let f = block.d_hidden;
            let (x0, y1, stats1) = run.norm((&x, branch.take()), block.vars.norm1.map(|var| tape.ptr(var)), t, d)?;
            let qkv = run.alloc_elems(t * 3 * d)?;
            run.linear(&y1, tape.gemm_operand(block.vars.qkv[0])?.ptr, &qkv, (t, d, 3 * d))?;
            let biases = (tape.ptr(block.vars.qkv[1]), attention_bias.map_or(0, |bias| bias.of_block(index)));
            let (attended, logs) = self.attention(&run, biases, offsets, &qkv, block.dropouts[0])?;
            let out = run.alloc_elems(t * d)?;
            run.linear(&attended, tape.gemm_operand(block.vars.out[0])?.ptr, &out, (t, d, d))?;
            let out = Branch { rows: out, bias: tape.ptr(block.vars.out[1]), dropout: block.dropouts[1] };
            let (x1, y2, stats2) = run.norm((&x0, Some(out)), block.vars.norm2.map(|var| tape.ptr(var)), t, d)?;
            let pre = run.alloc_elems(t * f)?;
            run.linear(&y2, tape.gemm_operand(block.vars.up[0])?.ptr, &pre, (t, d, f))?;
            let (up_bias, mask) = (tape.ptr(block.vars.up[1]), block.dropouts[2].mask_words());
            let down = tape.gemm_operand(block.vars.down[0])?;
            let hidden;
            if index + 1 < self.blocks.len() {
                hidden = run.alloc_elems(t * f)?;
                let (grid, strip) = gelu_grid(t, f);
                cuda.launch(grid, gelu_forward(pre.ptr(), up_bias, mask, hidden.ptr(), dim(t), dim(f), strip))?;
                let rows = run.alloc_elems(t * d)?;
                run.linear(&hidden, down.ptr, &rows, (t, f, d))?;
                branch = Some(Branch { rows, bias: tape.ptr(block.vars.down[1]), dropout: block.dropouts[3] });
            } else {
                let p = self.pools.len();
                hidden = run.alloc_elems(p * f)?;
                let (grid, pools) = (strip_grid(f, p), offsets.pools);
                cuda.launch(grid, gelu_means(pre.ptr(), up_bias, mask, pools, hidden.ptr(), dim(f)))?;
                let rows = run.alloc_elems(p * d)?;
                run.linear(&hidden, down.ptr, &rows, (p, f, d))?;
                ffn = Some((rows, tape.ptr(block.vars.down[1])));
            }
            x = Arc::clone(&x1);
            if requires_grad {
                saved.push(Saved { x: x0, y1, stats1, qkv, attended, logs, x1, y2, stats2, pre, hidden });
            }
        }
        let (rows, bias) = ffn.as_ref().map_or((0, 0), |(rows, bias)| (rows.ptr(), *bias));
        let grid = strip_grid(d, self.pools.len());
        cuda.launch(grid, pool_means(x.ptr(), rows, bias, offsets.pools, values.ptr(), dim(d)))?;
        Ok(saved)
    }

    fn cuda_backward(
        self,
        saved: Vec<Saved>,
        (offsets, attention_bias): (&DeviceOffsets, Option<&DeviceBias>),
        grad: &Buffer,
        ctx: &mut CudaBackwardCtx<'_>,
    ) -> Result<()> {
        let cuda = Arc::clone(ctx.cuda());
        let run = Steps { cuda: &cuda };
        let (t, d, p) = (self.rows(), self.d_model, self.pools.len());
        let dx = cuda.alloc_f32(t * d)?;
        let table = self.table_gradients(&cuda)?;
        let mut branch = run.alloc_elems(p * d)?;
        cuda.launch(strip_grid(d, p), pool_means_backward(grad.ptr(), offsets.pools, dx.ptr(), branch.ptr(), dim(d)))?;
        for (index, (block, saved)) in self.blocks.iter().zip(saved).enumerate().rev() {
            let f = block.d_hidden;
            let is_last = index + 1 == self.blocks.len();
            let rows = if is_last { p } else { t };
            let bias = is_last.then_some(block.vars.down[1]);
            run.parameter_gradients(&branch, &saved.hidden, (rows, d, f), (block.vars.down[0], bias), ctx)?;
            let d_hidden = run.alloc_elems(rows * f)?;
            run.input_gradient(&branch, ctx.tape.gemm_operand(block.vars.down[0])?.ptr, &d_hidden, (rows, d, f))?;
            let d_pre = self.gelu_backward(block, &saved, (d_hidden, is_last), offsets, ctx)?;

            run.parameter_gradients(&d_pre, &saved.y2, (t, f, d), (block.vars.up[0], None), ctx)?;
            let dy = run.alloc_elems(t * d)?;
            run.input_gradient(&d_pre, ctx.tape.gemm_operand(block.vars.up[0])?.ptr, &dy, (t, f, d))?;
            drop(d_pre);
            branch = run.alloc_elems(t * d)?;
            let norm = (&*saved.x1, &*saved.stats2, block.vars.norm2);
            let sums = Some((&branch, block.dropouts[1], block.vars.out[1]));
            run.norm_backward((&dy, &dx), norm, sums, (t, d), ctx)?;

            run.parameter_gradients(&branch, &saved.attended, (t, d, d), (block.vars.out[0], None), ctx)?;
            let d_attended = run.alloc_elems(t * d)?;
            run.input_gradient(&branch, ctx.tape.gemm_operand(block.vars.out[0])?.ptr, &d_attended, (t, d, d))?;
            let biases = attention_bias.map_or(0, |bias| bias.of_block(index));
            let d_qkv = self.attention_backward(block, &saved, (&d_attended, biases), offsets, ctx)?;
            if let (Some(bias), Some(table)) = (attention_bias, &table) {
                self.sum_bias(&cuda, (bias, table), offsets, index)?;
            }
            run.parameter_gradients(
                &d_qkv,
                &saved.y1,
                (t, 3 * d, d),
                (block.vars.qkv[0], Some(block.vars.qkv[1])),
                ctx,
            )?;
            run.input_gradient(&d_qkv, ctx.tape.gemm_operand(block.vars.qkv[0])?.ptr, &dy, (t, 3 * d, d))?;
            let before = index.checked_sub(1).map(|before| self.blocks[before]);
            // A fresh buffer: the gradient stream may still be reading the old one.
            branch = run.alloc_elems(if before.is_some() { t * d } else { 0 })?;
            let sums = before.as_ref().map(|before| (&branch, before.dropouts[3], before.vars.down[1]));
            run.norm_backward((&dy, &dx), (&*saved.x, &*saved.stats1, block.vars.norm1), sums, (t, d), ctx)?;
        }
        table.map_or(Ok(()), |table| self.accumulate_bias(table, ctx))?;
        ctx.accumulate(self.x, dx)
    }

    /// The input gradient of GELU, and that of its bias.
    fn gelu_backward(
        &self,
        block: &Block,
        saved: &Saved,
        (d_hidden, is_last): (Arc<Buffer>, bool),
        offsets: &DeviceOffsets,
        ctx: &mut CudaBackwardCtx<'_>,
    ) -> Result<Arc<Buffer>> {
        let cuda = Arc::clone(ctx.cuda());
        let (t, f, p) = (self.rows(), block.d_hidden, self.pools.len());
        let (grid, strip) = if is_last { (strip_grid(f, p), 0) } else { gelu_grid(t, f) };
        let strips = grid.blocks.1 as usize;
        let partials = cuda.alloc_f32(strips * f)?;
        let (bias, mask) = (ctx.tape.ptr(block.vars.up[1]), block.dropouts[2].mask_words());
        let (hidden, pre, sums) = (d_hidden.ptr(), saved.pre.ptr(), partials.ptr());
        let result = if is_last {
            cuda.launch(grid, gelu_means_backward(hidden, pre, bias, mask, sums, offsets.pools, dim(f)))?;
            Arc::clone(&saved.pre)
        } else {
            cuda.launch(grid, gelu_backward(hidden, pre, bias, mask, sums, dim(t), dim(f), strip))?;
            d_hidden
        };
        let stream = ctx.grad_stream(&[block.vars.up[1]])?;
        let to = ctx.grad_sum_on(stream, block.vars.up[1])?;
        if to != 0 {
            add_partials(&cuda, stream, &partials, (strips, f), &[to])?;
        }
        Ok(result)
    }
}

/// A grid over strips of rows, or pools: a block has 8 warps and 128 columns.
fn strip_grid(f: usize, strips: usize) -> Grid {
    Grid { blocks: (dim(f.div_ceil(128)), dim(strips)), threads: (32, 8), shared: 0 }
}

/// The grid of GELU over strips of equal size, and that size.
fn gelu_grid(t: usize, f: usize) -> (Grid, u32) {
    let strips = (GELU_BLOCKS / f.div_ceil(128)).max(1);
    let strip = t.div_ceil(strips).next_multiple_of(8).max(32);
    (strip_grid(f, t.div_ceil(strip)), dim(strip))
}

/// The steps that all blocks share.
struct Steps<'c> {
    cuda: &'c Arc<Context>,
}

impl Steps<'_> {
    /// Memory for `count` GEMM operand elements.
    fn alloc_elems(&self, count: usize) -> Result<Arc<Buffer>> {
        self.cuda.alloc(self.cuda.precision.bytes() * count)
    }

    /// `out = x · Wᵀ`.
    fn linear(&self, x: &Buffer, weight: u64, out: &Buffer, (m, k, n): (usize, usize, usize)) -> Result<()> {
        let (a, c) = (x.ptr(), out.ptr());
        let gemm = Gemm {
            a,
            transpose_a: false,
            b: weight,
            transpose_b: true,
            c,
            m,
            n,
            k,
            accumulate: false,
            c_is_f32: false,
            bias: 0,
        };
        self.cuda.gemm(&gemm)
    }

    /// `out = dy · W`: the input gradient of a layer from `n_in` to `n_out`.
    fn input_gradient(
        &self,
        dy: &Buffer,
        weight: u64,
        out: &Buffer,
        (m, n_out, n_in): (usize, usize, usize),
    ) -> Result<()> {
        let (a, c) = (dy.ptr(), out.ptr());
        let (n, k) = (n_in, n_out);
        let gemm = Gemm {
            a,
            transpose_a: false,
            b: weight,
            transpose_b: false,
            c,
            m,
            n,
            k,
            accumulate: false,
            c_is_f32: false,
            bias: 0,
        };
        self.cuda.gemm(&gemm)
    }

    /// Adds dyᵀ · x to the gradient of a weight, and the column sums of dy to that of a bias, on the gradient stream.
    fn parameter_gradients(
        &self,
        dy: &Arc<Buffer>,
        x: &Arc<Buffer>,
        (rows, n_out, n_in): (usize, usize, usize),
        (weight, bias): (Var, Option<Var>),
        ctx: &mut CudaBackwardCtx<'_>,
    ) -> Result<()> {
        let stream = ctx.grad_stream(&[weight, bias.unwrap_or(weight)])?;
        let to = bias.map_or(Ok(0), |bias| ctx.grad_sum_on(stream, bias))?;
        if to != 0 {
            add_column_sums_elem(self.cuda, stream, dy.ptr(), (rows, n_out), to)?;
        }
        if let Some(target) = ctx.grad_target_on(stream, weight)? {
            let (a, b, c) = (dy.ptr(), x.ptr(), target.ptr);
            let (m, n, k, accumulate) = (n_out, n_in, rows, target.accumulate);
            let gemm =
                Gemm { a, transpose_a: true, b, transpose_b: false, c, m, n, k, accumulate, c_is_f32: true, bias: 0 };
            self.cuda.gemm_on(stream, &gemm)?;
        }
        self.cuda.keep_alive(stream, [dy, x]);
        Ok(())
    }

    /// The residual stream with the branch added, its LayerNorm, and each row's mean and 1/σ.
    fn norm(
        &self,
        (x, branch): (&Arc<Buffer>, Option<Branch>),
        [scale, shift]: [u64; 2],
        t: usize,
        d: usize,
    ) -> Result<(Arc<Buffer>, Arc<Buffer>, Arc<Buffer>)> {
        let after = if branch.is_some() { self.cuda.alloc_f32(t * d)? } else { Arc::clone(x) };
        let (y, stats) = (self.alloc_elems(t * d)?, self.cuda.alloc_f32(2 * t)?);
        let (rows, bias, mask) = branch
            .as_ref()
            .map_or((0, 0, NO_MASK), |branch| (branch.rows.ptr(), branch.bias, branch.dropout.mask_words()));
        let kernel = if d <= 256 { residual_norm_8 } else { residual_norm_32 };
        let grid = Grid { blocks: (dim(t.div_ceil(8)), 1), threads: (32, 8), shared: 0 };
        let (out, y_ptr, stats_ptr) = (after.ptr(), y.ptr(), stats.ptr());
        self.cuda
            .launch(grid, kernel(x.ptr(), rows, bias, mask, out, y_ptr, stats_ptr, scale, shift, dim(t), dim(d)))?;
        Ok((after, y, stats))
    }

    /// Adds the input gradient of a LayerNorm to `dx`, and computes the gradients of the branch before it, if any, and of
    /// its bias.
    fn norm_backward(
        &self,
        (dy, dx): (&Buffer, &Buffer),
        (x, stats, [scale, shift]): (&Buffer, &Buffer, [Var; 2]),
        branch: Option<(&Arc<Buffer>, Dropout, Var)>,
        (t, d): (usize, usize),
        ctx: &mut CudaBackwardCtx<'_>,
    ) -> Result<()> {
        let blocks = t.div_ceil(8).min(NORM_BLOCKS);
        let partials = self.cuda.alloc_f32(blocks * 3 * d)?;
        let kernel = if d <= 256 { norm_backward_8 } else { norm_backward_32 };
        let grid = Grid { blocks: (dim(blocks), 1), threads: (32, 8), shared: 8 * 4 * dim(d) };
        let (rows, mask) = branch.map_or((0, NO_MASK), |(rows, dropout, _)| (rows.ptr(), dropout.mask_words()));
        let (scale_ptr, sums) = (ctx.tape.ptr(scale), partials.ptr());
        self.cuda.launch(
            grid,
            kernel(dy.ptr(), x.ptr(), stats.ptr(), scale_ptr, dx.ptr(), rows, mask, sums, dim(t), dim(d)),
        )?;
        let stream = ctx.grad_stream(&[scale, shift, branch.map_or(scale, |(_, _, bias)| bias)])?;
        let bias = branch.map_or(Ok(0), |(_, _, bias)| ctx.grad_sum_on(stream, bias))?;
        let (scale, shift) = (ctx.grad_sum_on(stream, scale)?, ctx.grad_sum_on(stream, shift)?);
        add_partials(self.cuda, stream, &partials, (blocks, d), &[scale, shift, bias])
    }
}
