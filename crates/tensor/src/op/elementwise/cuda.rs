//! Elementwise sum and product on the GPU.

use std::sync::Arc;

use crate::cuda::{Buffer, CudaBackwardCtx, CudaTape, kernels};
use crate::{Result, Var};

kernels! {
    pub(crate) KERNELS:
    /// `to = a + b`.
    fn add_values(a: Ptr, b: Ptr, to: Ptr, n: U64);
    /// `to = a · b`, or `to += a · b` with `add`.
    fn multiply_values(a: Ptr, b: Ptr, to: Ptr, add: Int, n: U64);
}

impl CudaTape<'_> {
    pub(crate) fn add(&mut self, a: Var, b: Var) -> Result<Var> {
        self.check_deferred()?;
        let shape = self.shape(a);
        let n = shape.len();
        let out = self.cuda().alloc_f32(n)?;
        self.cuda().launch_1d(n, add_values(self.ptr(a), self.ptr(b), out.ptr(), n as u64))?;
        let backward = move |grad: Arc<Buffer>, ctx: &mut CudaBackwardCtx<'_>| {
            if !ctx.tape.requires_grad(b) {
                return ctx.accumulate(a, grad);
            }
            ctx.accumulate_part(a, grad.ptr(), n)?;
            ctx.accumulate(b, grad)
        };
        Ok(self.push(&[a, b], shape, out, backward))
    }

    pub(crate) fn mul(&mut self, a: Var, b: Var) -> Result<Var> {
        self.check_deferred()?;
        let shape = self.shape(a);
        let n = shape.len();
        let out = self.cuda().alloc_f32(n)?;
        self.cuda().launch_1d(n, multiply_values(self.ptr(a), self.ptr(b), out.ptr(), 0, n as u64))?;
        let backward = move |grad: Arc<Buffer>, ctx: &mut CudaBackwardCtx<'_>| {
            for (var, other) in [(a, b), (b, a)] {
                let Some(target) = ctx.grad_target(var)? else { continue };
                let (other, add) = (ctx.tape.ptr(other), u32::from(target.accumulate));
                ctx.cuda().launch_1d(n, multiply_values(grad.ptr(), other, target.ptr, add, n as u64))?;
            }
            Ok(())
        };
        Ok(self.push(&[a, b], shape, out, backward))
    }
}
