//! Activation functions on the GPU.

use std::sync::Arc;

use crate::cuda::{Buffer, CudaBackwardCtx, CudaTape, kernels};
use crate::op::elementwise::multiply_values;
use crate::{Activation, Result, Var};

kernels! {
    pub(crate) KERNELS:
    /// `y = f(x)`, and its derivatives into `slopes` if that is not null.
    fn activate(x: Ptr, y: Ptr, slopes: Ptr, kind: Int, n: U64);
}

/// The number of a function in kernels; 0 is the identity.
pub(crate) fn kernel_code(activation: Option<Activation>) -> u32 {
    match activation {
        None => 0,
        Some(Activation::Relu) => 1,
        Some(Activation::Gelu) => 2,
        Some(Activation::Sigmoid) => 3,
        Some(Activation::Tanh) => 4,
        Some(Activation::Cos) => 5,
    }
}

impl CudaTape<'_> {
    pub(crate) fn activate(&mut self, x: Var, function: Activation) -> Var {
        let result = self.try_activate(x, function);
        self.or_defer(result, self.shape(x))
    }

    fn try_activate(&mut self, x: Var, function: Activation) -> Result<Var> {
        self.check_deferred()?;
        let shape = self.shape(x);
        let n = shape.len();
        let out = self.cuda().alloc_f32(n)?;
        let slopes = self.requires_grad(x).then(|| self.cuda().alloc_f32(n)).transpose()?;
        let slopes_ptr = slopes.as_ref().map_or(0, |slopes| slopes.ptr());
        let call = activate(self.ptr(x), out.ptr(), slopes_ptr, kernel_code(Some(function)), n as u64);
        self.cuda().launch_1d(n, call)?;
        let backward = move |grad: Arc<Buffer>, ctx: &mut CudaBackwardCtx<'_>| {
            let Some(slopes) = &slopes else { return Ok(()) };
            ctx.cuda().launch_1d(n, multiply_values(grad.ptr(), slopes.ptr(), grad.ptr(), 0, n as u64))?;
            ctx.accumulate(x, grad)
        };
        Ok(self.push(&[x], shape, out, backward))
    }
}
