//! Segment sums and means on the GPU.

use std::sync::Arc;

use crate::cuda::{Buffer, CudaBackwardCtx, CudaTape, dim, kernels};
use crate::{Ragged, Result, Shape, Tensor, Var};

kernels! {
    pub(crate) KERNELS:
    /// The sum, or with `mean` the mean, of each sequence's rows, each times its weight if that is not null.
    fn segment_sum(x: Ptr, starts: Ptr, weights: Ptr, mean: Int, to: Ptr, cols: Int, n: U64);
    /// The gradient of the rows.
    fn segment_sum_backward(
        grads: Ptr, starts: Ptr, weights: Ptr, mean: Int, to: Ptr, cols: Int, add: Int, n: U64,
    );
}

impl CudaTape<'_> {
    pub(crate) fn segment_mean(&mut self, x: Var, batch: &Ragged) -> Result<Var> {
        self.reduce_segments(x, None, true, batch)
    }

    pub(crate) fn segment_sum(&mut self, x: Var, weights: Option<&Arc<Tensor>>, batch: &Ragged) -> Result<Var> {
        self.reduce_segments(x, weights, false, batch)
    }

    fn reduce_segments(&mut self, x: Var, weights: Option<&Arc<Tensor>>, mean: bool, batch: &Ragged) -> Result<Var> {
        self.check_deferred()?;
        let width = self.shape(x).cols();
        let shape = Shape::Matrix(batch.len(), width);
        let (n, cols, mean) = (shape.len(), dim(width), u32::from(mean));
        let weights = weights.map(|weights| self.upload_input(weights));
        self.check_deferred()?;
        let starts = self.offsets(batch)?;
        let out = self.cuda().alloc_f32(n)?;
        let factors = weights.map_or(0, |weights| self.ptr(weights));
        let call = segment_sum(self.ptr(x), starts.ptr(), factors, mean, out.ptr(), cols, n as u64);
        self.cuda().launch_1d(n, call)?;
        let backward = move |grad: Arc<Buffer>, ctx: &mut CudaBackwardCtx<'_>| {
            let Some(target) = ctx.grad_target(x)? else { return Ok(()) };
            let factors = weights.map_or(0, |weights| ctx.tape.ptr(weights));
            let (to, add) = (target.ptr, u32::from(target.accumulate));
            let call = segment_sum_backward(grad.ptr(), starts.ptr(), factors, mean, to, cols, add, n as u64);
            ctx.cuda().launch_1d(n, call)
        };
        Ok(self.push(&[x], shape, out, backward))
    }
}
