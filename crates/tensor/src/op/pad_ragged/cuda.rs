//! Padding of ragged lists on the GPU.

use std::sync::Arc;

use super::PadRagged;
use crate::cuda::{Buffer, CudaBackwardCtx, CudaTape, dim, kernels, one_warp_per_row};
use crate::{Ragged, Result, Shape, Var};

kernels! {
    pub(crate) KERNELS:
    /// Pads lists to `max_len` values each, `per_row` values in a row.
    fn pad_ragged(
        values: Ptr, starts: Ptr, to: Ptr, max_len: Int, per_row: Int, width: Int, fill_value: Float, rows: Int,
    );
    /// The gradient of the values.
    fn pad_ragged_backward(
        grad: Ptr, starts: Ptr, to: Ptr, max_len: Int, per_row: Int, width: Int, add: Int, rows: Int,
    );
}

impl CudaTape<'_> {
    pub(crate) fn pad_ragged(&mut self, x: Var, lists: &Ragged, form: PadRagged, shape: Shape) -> Result<Var> {
        self.check_deferred()?;
        let out = self.cuda().alloc_f32(shape.len())?;
        let starts = self.offsets(lists)?;
        // Rows of width 0 need no block.
        let (grid, rows) = (one_warp_per_row(if shape.is_empty() { 0 } else { shape.rows() }), dim(shape.rows()));
        let (max_len, per_row, width) = (dim(form.max_len), dim(form.values_per_row()), dim(form.width()));
        let (x_ptr, fill_value) = (self.ptr(x), form.fill_value);
        self.cuda()
            .launch(grid, pad_ragged(x_ptr, starts.ptr(), out.ptr(), max_len, per_row, width, fill_value, rows))?;
        let backward = move |grad: Arc<Buffer>, ctx: &mut CudaBackwardCtx<'_>| {
            let Some(target) = ctx.grad_target(x)? else { return Ok(()) };
            let (to, add) = (target.ptr, u32::from(target.accumulate));
            let call = pad_ragged_backward(grad.ptr(), starts.ptr(), to, max_len, per_row, width, add, rows);
            ctx.cuda().launch(grid, call)
        };
        Ok(self.push(&[x], shape, out, backward))
    }
}
