//! Linear layers with few outputs, such as the channels of a token: one kernel forward, one backward.

use std::sync::Arc;

use super::cuda::Layer;
use crate::cuda::{Buffer, Context, CudaBackwardCtx, CudaTape, Grid, add_partials_of_widths, dim, kernels};
use crate::{Precision, Result, Var};

kernels! {
    pub(crate) SKINNY_KERNELS:
    /// `y = x · wᵀ + bias`, with ReLU if `with_relu`, and its derivatives unless `slopes` is null.
    fn skinny_linear_forward(
        x: Ptr, is_f32: Int, w: Ptr, bias: Ptr, y: Ptr, slopes: Ptr, with_relu: Int, rows: Int, n: Int, k: Int,
    );
    /// `dx (+)= dy · w` if that is not null, and partial sums of the gradients of weight and bias.
    fn skinny_linear_backward(
        grads: Ptr, slopes: Ptr, x: Ptr, is_f32: Int, w: Ptr, dx: Ptr, add: Int, partials: Ptr, rows: Int, n: Int,
        k: Int, strip: Int,
    );
}

/// The most outputs, and the width of a tile.
const MAX_OUTPUTS: usize = 64;

/// About as many blocks as a large GPU runs at once.
const BLOCKS: usize = 396;

/// With fewer rows, or more inputs, cuBLASLt is as fast or faster.
const MIN_ROWS: usize = 4096;
const MAX_INPUTS: usize = 192;

/// Bytes of a tile's row in shared memory.
fn tile_row_bytes(cuda: &Context) -> usize {
    // 16 bytes of padding avoid bank conflicts.
    MAX_OUTPUTS * cuda.precision.bytes() + 16
}

impl Layer {
    /// Whether these kernels compute the layer. They load and store pairs and round as GEMMs do.
    pub(super) fn is_skinny(&self, cuda: &Context) -> bool {
        let are_pairs = [self.n, self.k].iter().all(|&width| width >= 2 && width.is_multiple_of(2));
        let fits = self.n <= MAX_OUTPUTS && self.k <= MAX_INPUTS && self.m >= MIN_ROWS;
        are_pairs && fits && cuda.precision != Precision::F32
    }

    /// `x · weightᵀ + bias`, with ReLU if `with_relu`.
    pub(super) fn forward_skinny(&self, tape: &CudaTape<'_>, out: &Buffer, slopes: u64, with_relu: bool) -> Result<()> {
        let Self { m, k, n, .. } = *self;
        let (x, weight) = (tape.stored_value(self.x), tape.gemm_operand(self.weight)?);
        let bias = self.bias.map_or(0, |bias| tape.ptr(bias));
        let shared = 2 * MAX_OUTPUTS * tile_row_bytes(tape.cuda()) + 4 * MAX_OUTPUTS;
        let grid = Grid { blocks: (dim(m.div_ceil(MAX_OUTPUTS)), 1), threads: (128, 1), shared: dim(shared) };
        let (is_f32, with_relu) = (u32::from(x.is_f32), u32::from(with_relu));
        let (rows, n, k) = (dim(m), dim(n), dim(k));
        let call = skinny_linear_forward(x.ptr, is_f32, weight.ptr, bias, out.ptr(), slopes, with_relu, rows, n, k);
        tape.cuda().launch(grid, call)
    }

    pub(super) fn backward_skinny(
        &self,
        grad: &Arc<Buffer>,
        slopes: Option<&Arc<Buffer>>,
        ctx: &mut CudaBackwardCtx<'_>,
    ) -> Result<()> {
        let Self { x, weight, bias, m, k, n } = *self;
        let cuda = Arc::clone(ctx.cuda());
        let chunks = k.div_ceil(MAX_OUTPUTS);
        let strip = m.div_ceil((BLOCKS / chunks).max(1)).next_multiple_of(MAX_OUTPUTS);
        let strips = m.div_ceil(strip);
        let partials = cuda.alloc_f32(strips * n * (k + 1))?;
        let blocks = (dim(chunks), dim(strips));
        let grid = Grid { blocks, threads: (128, 1), shared: dim(3 * MAX_OUTPUTS * tile_row_bytes(&cuda)) };
        let vars: Vec<Var> = [weight].into_iter().chain(bias).collect();
        let target = ctx.grad_target(x)?;
        let (dx, add) = target.map_or((0, 0), |target| (target.ptr, u32::from(target.accumulate)));
        let (x_value, operand) = (ctx.tape.stored_value(x), ctx.tape.gemm_operand(weight)?);
        let slopes_ptr = slopes.map_or(0, |slopes| slopes.ptr());
        let (x_ptr, is_f32) = (x_value.ptr, u32::from(x_value.is_f32));
        let [rows, n_dim, k_dim, strip] = [m, n, k, strip].map(dim);
        let call = skinny_linear_backward(
            grad.ptr(),
            slopes_ptr,
            x_ptr,
            is_f32,
            operand.ptr,
            dx,
            add,
            partials.ptr(),
            rows,
            n_dim,
            k_dim,
            strip,
        );
        // Without a gradient of x, all of it belongs on the gradient stream.
        let stream = if target.is_some() {
            cuda.launch(grid, call)?;
            ctx.grad_stream(&vars)?
        } else {
            let stream = ctx.grad_stream(&vars)?;
            cuda.launch_on(stream, grid, call)?;
            let used = [Some(grad), slopes, x_value.buffer.as_ref(), operand.buffer.as_ref()];
            cuda.keep_alive(stream, used.into_iter().flatten());
            stream
        };
        let d_weight = ctx.grad_sum_on(stream, weight)?;
        let d_bias = bias.map_or(Ok(0), |bias| ctx.grad_sum_on(stream, bias))?;
        add_partials_of_widths(&cuda, stream, &partials, strips, &[(n * k, d_weight), (n, d_bias)])
    }
}
