//! LayerNorm on the GPU.

use std::sync::Arc;

use crate::cuda::{Buffer, CudaBackwardCtx, CudaTape, Grid, STRIP, add_partials, dim, kernels, one_warp_per_row};
use crate::{Result, Var};

kernels! {
    pub(crate) KERNELS:
    /// LayerNorm, and each row's mean and 1/σ into `stats`.
    fn layer_norm(x: Ptr, scale: Ptr, shift: Ptr, y: Ptr, stats: Ptr, rows: Int, cols: Int);
    /// The gradient of the input.
    fn layer_norm_backward(
        dy: Ptr, x: Ptr, stats: Ptr, scale: Ptr, dx: Ptr, add: Int, rows: Int, cols: Int,
    );
    /// Partial sums, over strips of rows, of the gradients of scale and shift.
    fn layer_norm_param_grads(
        dy: Ptr, x: Ptr, stats: Ptr, partials: Ptr, rows: Int, cols: Int, strip: Int,
    );
}

impl CudaTape<'_> {
    pub(crate) fn layer_norm(&mut self, x: Var, scale: Var, shift: Var) -> Result<Var> {
        self.check_deferred()?;
        let shape = self.shape(x);
        let (rows, cols) = (shape.rows(), shape.cols());
        let (out, stats) = (self.cuda().alloc_f32(shape.len())?, self.cuda().alloc_f32(2 * rows)?);
        let (scale_ptr, shift_ptr, y) = (self.ptr(scale), self.ptr(shift), out.ptr());
        let call = layer_norm(self.ptr(x), scale_ptr, shift_ptr, y, stats.ptr(), dim(rows), dim(cols));
        self.cuda().launch(one_warp_per_row(rows), call)?;
        let backward = move |grad: Arc<Buffer>, ctx: &mut CudaBackwardCtx<'_>| {
            let cuda = Arc::clone(ctx.cuda());
            let (x_ptr, dy, stats) = (ctx.tape.ptr(x), grad.ptr(), stats.ptr());
            if ctx.tape.any_requires_grad(&[scale, shift]) {
                let strips = rows.div_ceil(STRIP);
                let partials = cuda.alloc_f32(strips * 2 * cols)?;
                let blocks = (dim(cols.div_ceil(32)), dim(strips));
                let grid = Grid { blocks, threads: (32, 8), shared: 0 };
                let call = layer_norm_param_grads(dy, x_ptr, stats, partials.ptr(), dim(rows), dim(cols), dim(STRIP));
                cuda.launch(grid, call)?;
                let stream = ctx.grad_stream(&[scale, shift])?;
                let to = [ctx.grad_sum_on(stream, scale)?, ctx.grad_sum_on(stream, shift)?];
                add_partials(&cuda, stream, &partials, (strips, cols), &to)?;
            }
            let Some(target) = ctx.grad_target(x)? else { return Ok(()) };
            let (scale, add) = (ctx.tape.ptr(scale), u32::from(target.accumulate));
            let call = layer_norm_backward(dy, x_ptr, stats, scale, target.ptr, add, dim(rows), dim(cols));
            cuda.launch(one_warp_per_row(rows), call)
        };
        Ok(self.push(&[x, scale, shift], shape, out, backward))
    }
}
