//! Recurrent cells on the GPU.

use std::sync::Arc;

use crate::cuda::{Buffer, CudaBackwardCtx, CudaTape, GradTarget, dim, kernels};
use crate::{Result, Shape, Var};

kernels! {
    pub(crate) KERNELS:
    /// The next state of a GRU; its gates go to `gates` unless that is null.
    fn gru(input: Ptr, hidden: Ptr, h: Ptr, out: Ptr, gates: Ptr, d: Int, n: U64);
    /// Bits of `add` accumulate into the gradients of the input (0), the hidden part (1) and `h` (2).
    fn gru_backward(
        grads: Ptr, gates: Ptr, hidden: Ptr, h: Ptr, d_input: Ptr, d_hidden: Ptr, d_h: Ptr, add: Int, d: Int, n: U64,
    );
    /// The next state of an LSTM; its gates go to `acts` unless that is null, and a null `c` is zero.
    fn lstm(gates: Ptr, c: Ptr, out: Ptr, acts: Ptr, d: Int, n: U64);
    /// Bits of `add` accumulate into the gradients of the gates (0) and `c` (1).
    fn lstm_backward(
        grads: Ptr, acts: Ptr, out: Ptr, c: Ptr, d_gates: Ptr, d_c: Ptr, add: Int, d: Int, n: U64,
    );
}

fn ptr_or_null(target: Option<GradTarget>) -> u64 {
    target.map_or(0, |target| target.ptr)
}

/// Bit `bit` of a kernel's `add`.
fn add_bit(target: Option<GradTarget>, bit: u32) -> u32 {
    u32::from(target.is_some_and(|target| target.accumulate)) << bit
}

impl CudaTape<'_> {
    pub(crate) fn gru(&mut self, input: Var, hidden: Var, h: Var) -> Result<Var> {
        self.check_deferred()?;
        let shape = self.shape(h);
        let (n, d) = (shape.len(), dim(shape.cols()));
        let requires_grad = self.any_requires_grad(&[input, hidden, h]);
        let out = self.cuda().alloc_f32(n)?;
        let gates = requires_grad.then(|| self.cuda().alloc_f32(3 * n)).transpose()?;
        let gates_ptr = gates.as_ref().map_or(0, |gates| gates.ptr());
        let call = gru(self.ptr(input), self.ptr(hidden), self.ptr(h), out.ptr(), gates_ptr, d, n as u64);
        self.cuda().launch_1d(n, call)?;
        let backward = move |grad: Arc<Buffer>, ctx: &mut CudaBackwardCtx<'_>| {
            let Some(gates) = &gates else { return Ok(()) };
            let [d_input, d_hidden, d_h] = [ctx.grad_target(input)?, ctx.grad_target(hidden)?, ctx.grad_target(h)?];
            let add = add_bit(d_input, 0) | add_bit(d_hidden, 1) | add_bit(d_h, 2);
            let (hidden, h) = (ctx.tape.ptr(hidden), ctx.tape.ptr(h));
            let [d_input, d_hidden, d_h] = [d_input, d_hidden, d_h].map(ptr_or_null);
            let call = gru_backward(grad.ptr(), gates.ptr(), hidden, h, d_input, d_hidden, d_h, add, d, n as u64);
            ctx.cuda().launch_1d(n, call)
        };
        Ok(self.push(&[input, hidden, h], shape, out, backward))
    }

    pub(crate) fn lstm(&mut self, gates: Var, c: Option<Var>) -> Result<Var> {
        self.check_deferred()?;
        let (rows, width) = (self.shape(gates).rows(), self.shape(gates).cols() / 4);
        let (n, d) = (rows * width, dim(width));
        let operands: Vec<Var> = std::iter::once(gates).chain(c).collect();
        let requires_grad = self.any_requires_grad(&operands);
        let out = self.cuda().alloc_f32(2 * n)?;
        let acts = requires_grad.then(|| self.cuda().alloc_f32(4 * n)).transpose()?;
        let acts_ptr = acts.as_ref().map_or(0, |acts| acts.ptr());
        let c_ptr = c.map_or(0, |c| self.ptr(c));
        self.cuda().launch_1d(n, lstm(self.ptr(gates), c_ptr, out.ptr(), acts_ptr, d, n as u64))?;
        let output = Arc::clone(&out);
        let backward = move |grad: Arc<Buffer>, ctx: &mut CudaBackwardCtx<'_>| {
            let Some(acts) = &acts else { return Ok(()) };
            let d_gates = ctx.grad_target(gates)?;
            let d_c = c.map(|c| ctx.grad_target(c)).transpose()?.flatten();
            let add = add_bit(d_gates, 0) | add_bit(d_c, 1);
            let c_ptr = c.map_or(0, |c| ctx.tape.ptr(c));
            let (d_gates, d_c) = (ptr_or_null(d_gates), ptr_or_null(d_c));
            let call = lstm_backward(grad.ptr(), acts.ptr(), output.ptr(), c_ptr, d_gates, d_c, add, d, n as u64);
            ctx.cuda().launch_1d(n, call)
        };
        Ok(self.push(&operands, Shape::Matrix(rows, 2 * width), out, backward))
    }
}
