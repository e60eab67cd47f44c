//! Dropout on the GPU, with the mask of the CPU.

use std::sync::Arc;

use crate::cuda::{Buffer, CudaBackwardCtx, CudaTape, kernels};
use crate::{Dropout, Result, Var};

kernels! {
    pub(crate) KERNELS:
    /// `y = x · mask`; both may be the same buffer.
    fn dropout(x: Ptr, y: Ptr, mask: Mask, n: U64);
}

impl CudaTape<'_> {
    pub(crate) fn dropout(&mut self, x: Var, rate: Dropout) -> Var {
        let result = self.try_dropout(x, rate);
        self.or_defer(result, self.shape(x))
    }

    fn try_dropout(&mut self, x: Var, rate: Dropout) -> Result<Var> {
        self.check_deferred()?;
        let (shape, mask) = (self.shape(x), rate.mask_words());
        let n = shape.len();
        let out = self.cuda().alloc_f32(n)?;
        self.cuda().launch_1d(n, dropout(self.ptr(x), out.ptr(), mask, n as u64))?;
        let backward = move |grad: Arc<Buffer>, ctx: &mut CudaBackwardCtx<'_>| {
            ctx.cuda().launch_1d(n, dropout(grad.ptr(), grad.ptr(), mask, n as u64))?;
            ctx.accumulate(x, grad)
        };
        Ok(self.push(&[x], shape, out, backward))
    }
}
