//! Softmax on the GPU.

use std::sync::Arc;

use crate::cuda::{Buffer, CudaBackwardCtx, CudaTape, dim, kernels, one_warp_per_row};
use crate::{Result, Var};

kernels! {
    pub(crate) KERNELS:
    /// The softmax of each row.
    fn softmax_rows(x: Ptr, y: Ptr, rows: Int, cols: Int);
    /// Turns the gradients of the outputs `y` into those of the inputs, in place.
    fn softmax_rows_backward(grads: Ptr, y: Ptr, rows: Int, cols: Int);
}

impl CudaTape<'_> {
    pub(crate) fn softmax(&mut self, x: Var) -> Var {
        let result = self.try_softmax(x);
        self.or_defer(result, self.shape(x))
    }

    fn try_softmax(&mut self, x: Var) -> Result<Var> {
        self.check_deferred()?;
        let shape = self.shape(x);
        let (rows, cols) = (shape.rows(), dim(shape.cols()));
        let out = self.cuda().alloc_f32(shape.len())?;
        self.cuda().launch(one_warp_per_row(rows), softmax_rows(self.ptr(x), out.ptr(), dim(rows), cols))?;
        let output = Arc::clone(&out);
        let backward = move |grad: Arc<Buffer>, ctx: &mut CudaBackwardCtx<'_>| {
            let call = softmax_rows_backward(grad.ptr(), output.ptr(), dim(rows), cols);
            ctx.cuda().launch(one_warp_per_row(rows), call)?;
            ctx.accumulate(x, grad)
        };
        Ok(self.push(&[x], shape, out, backward))
    }
}
