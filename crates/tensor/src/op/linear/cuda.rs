//! Linear layers on the GPU.

#![expect(clippy::many_single_char_names, reason = "matrices and their sizes are named as in the formulas")]

use std::sync::Arc;

use crate::cuda::{
    Buffer, CudaBackwardCtx, CudaTape, Gemm, GemmOperand, LinearGradPass, STRIP, Stream, add_partials, dim, kernels,
};
use crate::op::activation::cuda::kernel_code;
use crate::{Activation, Precision, Result, Shape, Var};

kernels! {
    pub(crate) KERNELS:
    /// `x = f(x + bias)` in place, and its derivatives into `slopes` if that is not null.
    fn bias_activate(x: Ptr, bias: Ptr, slopes: Ptr, kind: Int, cols: Int, n: U64);
    /// `f(x · w + b)` for one value a row, always in `f32`.
    fn outer_linear(
        x: Ptr, w: Ptr, bias: Ptr, y: Ptr, slopes: Ptr, kind: Int, cols: Int, n: U64,
    );
}

/// The variables of a linear layer from `k` to `n` values over `m` rows.
#[derive(Clone, Copy)]
pub(super) struct Layer {
    pub(super) x: Var,
    pub(super) weight: Var,
    pub(super) bias: Option<Var>,
    pub(super) m: usize,
    pub(super) k: usize,
    pub(super) n: usize,
}

impl CudaTape<'_> {
    pub(crate) fn linear(
        &mut self,
        x: Var,
        weight: Var,
        bias: Option<Var>,
        activation: Option<Activation>,
    ) -> Result<Var> {
        self.check_deferred()?;
        let (m, k, n) = (self.shape(x).rows(), self.shape(x).cols(), self.shape(weight).rows());
        let layer = Layer { x, weight, bias, m, k, n };
        let operands: Vec<Var> = [x, weight].into_iter().chain(bias).collect();
        let requires_grad = self.any_requires_grad(&operands);
        let count = m * n;
        let out = self.cuda().alloc_f32(count)?;
        let slopes = (requires_grad && activation.is_some()).then(|| self.cuda().alloc_f32(count)).transpose()?;
        let slopes_ptr = slopes.as_ref().map_or(0, |slopes| slopes.ptr());
        let bias_ptr = bias.map_or(0, |bias| self.ptr(bias));
        let (cols, kind) = (dim(n), kernel_code(activation));
        if k == 1 {
            let (x, weight) = (self.ptr(x), self.ptr(weight));
            let call = outer_linear(x, weight, bias_ptr, out.ptr(), slopes_ptr, kind, cols, count as u64);
            self.cuda().launch_1d(count, call)?;
        } else if layer.is_skinny(self.cuda()) {
            let with_relu = activation == Some(Activation::Relu);
            layer.forward_skinny(self, &out, if with_relu { slopes_ptr } else { 0 }, with_relu)?;
            if kind != 0 && !with_relu {
                let call = bias_activate(out.ptr(), 0, slopes_ptr, kind, cols, count as u64);
                self.cuda().launch_1d(count, call)?;
            }
        } else {
            let (a, b) = (self.gemm_operand(x)?, self.gemm_operand(weight)?);
            // Without an activation, the GEMM adds the bias itself.
            let fused_bias = if kind == 0 && k > 0 { bias_ptr } else { 0 };
            self.cuda().gemm(&Gemm {
                a: a.ptr,
                transpose_a: false,
                b: b.ptr,
                transpose_b: true,
                c: out.ptr(),
                m,
                n,
                k,
                accumulate: false,
                c_is_f32: true,
                bias: fused_bias,
            })?;
            if kind != 0 || (bias_ptr != 0 && fused_bias == 0) {
                let call = bias_activate(out.ptr(), bias_ptr, slopes_ptr, kind, cols, count as u64);
                self.cuda().launch_1d(count, call)?;
            }
        }
        let backward =
            move |grad: Arc<Buffer>, ctx: &mut CudaBackwardCtx<'_>| layer.backward(&grad, slopes.as_ref(), ctx);
        Ok(self.push(&operands, Shape::Matrix(m, n), out, backward))
    }

    pub(crate) fn matmul(&mut self, x: Var, weight: Var) -> Result<Var> {
        self.check_deferred()?;
        let (m, k, n) = (self.shape(x).rows(), self.shape(x).cols(), self.shape(weight).cols());
        let out = self.cuda().alloc_f32(m * n)?;
        let (a, b) = (self.gemm_operand(x)?, self.gemm_operand(weight)?);
        let forward = Gemm {
            a: a.ptr,
            transpose_a: false,
            b: b.ptr,
            transpose_b: false,
            c: out.ptr(),
            m,
            n,
            k,
            accumulate: false,
            c_is_f32: true,
            bias: 0,
        };
        self.cuda().gemm(&forward)?;
        let backward = move |grad: Arc<Buffer>, ctx: &mut CudaBackwardCtx<'_>| {
            let cuda = Arc::clone(ctx.cuda());
            let dy = ctx.to_gemm_operand(&grad, m * n)?;
            if ctx.tape.requires_grad(weight) {
                let operand = ctx.tape.gemm_operand(x)?;
                let stream = ctx.grad_stream(&[weight])?;
                let Some(target) = ctx.grad_target_on(stream, weight)? else { return Ok(()) };
                let (c, accumulate) = (target.ptr, target.accumulate);
                let (a, b) = (operand.ptr, dy.ptr);
                let gemm = Gemm { a, transpose_a: true, b, c, m: k, n, k: m, accumulate, ..forward };
                cuda.gemm_on(stream, &gemm)?;
                let used = [Some(&grad), dy.buffer.as_ref(), operand.buffer.as_ref(), ctx.tape.buffer(x)];
                cuda.keep_alive(stream, used.into_iter().flatten());
            }
            if let Some(target) = ctx.grad_target(x)? {
                let weight = ctx.tape.gemm_operand(weight)?;
                let (a, b, c, accumulate) = (dy.ptr, weight.ptr, target.ptr, target.accumulate);
                cuda.gemm(&Gemm { a, b, transpose_b: true, c, m, n: k, k: n, accumulate, ..forward })?;
            }
            Ok(())
        };
        Ok(self.push(&[x, weight], Shape::Matrix(m, n), out, backward))
    }
}

impl Layer {
    fn backward(self, grad: &Arc<Buffer>, slopes: Option<&Arc<Buffer>>, ctx: &mut CudaBackwardCtx<'_>) -> Result<()> {
        let Self { x, weight, m, k, n, .. } = self;
        let cuda = Arc::clone(ctx.cuda());
        if self.is_skinny(&cuda) {
            return self.backward_skinny(grad, slopes, ctx);
        }
        let is_operand = ctx.tape.requires_grad(x) || (k > 1 && ctx.tape.requires_grad(weight));
        let copy = (is_operand && cuda.precision == Precision::Bf16).then(|| cuda.alloc(2 * m * n)).transpose()?;
        let dy = GemmOperand { ptr: copy.as_ref().map_or(grad.ptr(), |copy| copy.ptr()), buffer: copy };
        self.backward_parameters(grad, slopes, &dy, ctx)?;
        if let Some(target) = ctx.grad_target(x)? {
            let weight = ctx.tape.gemm_operand(weight)?;
            cuda.gemm(&Gemm {
                a: dy.ptr,
                transpose_a: false,
                b: weight.ptr,
                transpose_b: false,
                c: target.ptr,
                m,
                n: k,
                k: n,
                accumulate: target.accumulate,
                c_is_f32: true,
                bias: 0,
            })?;
        }
        Ok(())
    }

    /// Turns `grad` into the GEMM operand `dy`, then computes the gradients of weight and bias on the gradient stream.
    fn backward_parameters(
        self,
        grad: &Arc<Buffer>,
        slopes: Option<&Arc<Buffer>>,
        dy: &GemmOperand,
        ctx: &mut CudaBackwardCtx<'_>,
    ) -> Result<()> {
        let Self { x, weight, bias, m, k, n } = self;
        let cuda = Arc::clone(ctx.cuda());
        let is_outer = k == 1;
        let x_operand =
            if is_outer { GemmOperand { ptr: ctx.tape.ptr(x), buffer: None } } else { ctx.tape.gemm_operand(x)? };
        let vars: Vec<Var> = [weight].into_iter().chain(bias).collect();
        // Column sums: of the gradient for the bias, and with one input value a row, of the gradient times that value for
        // the weight.
        let summed = [bias, is_outer.then_some(weight)];
        let has_sums = summed.into_iter().flatten().any(|var| ctx.tape.requires_grad(var));
        let strips = m.div_ceil(STRIP);
        let n_sums = if is_outer { 2 } else { 1 };
        let partials = has_sums.then(|| cuda.alloc_f32(strips * n_sums * n)).transpose()?;
        let pass = LinearGradPass {
            grad: grad.ptr(),
            slopes: slopes.map_or(0, |slopes| slopes.ptr()),
            copy: dy.buffer.as_ref().map_or(0, |copy| copy.ptr()),
            weights: if is_outer { x_operand.ptr } else { 0 },
            partials: partials.as_ref().map_or(0, |partials| partials.ptr()),
        };
        // What GEMMs read belongs on the main stream; sums alone do not.
        let is_on_main = pass.slopes != 0 || pass.copy != 0;
        if is_on_main {
            pass.run(&cuda, Stream::Main, (m, n))?;
        }
        let stream = ctx.grad_stream(&vars)?;
        if let Some(partials) = &partials {
            if !is_on_main {
                pass.run(&cuda, stream, (m, n))?;
            }
            let mut to = [0; 2];
            for (to, var) in to.iter_mut().zip(summed) {
                *to = var.map_or(Ok(0), |var| ctx.grad_sum_on(stream, var))?;
            }
            add_partials(&cuda, stream, partials, (strips, n), &to[..n_sums])?;
        }
        if is_outer {
            // The gradient of the weight is one of the sums.
        } else if let Some(target) = ctx.grad_target_on(stream, weight)? {
            let gemm = Gemm {
                a: dy.ptr,
                transpose_a: true,
                b: x_operand.ptr,
                transpose_b: false,
                c: target.ptr,
                m: n,
                n: k,
                k: m,
                accumulate: target.accumulate,
                c_is_f32: true,
                bias: 0,
            };
            cuda.gemm_on(stream, &gemm)?;
        }
        let used = [Some(grad), dy.buffer.as_ref(), x_operand.buffer.as_ref(), ctx.tape.buffer(x)];
        cuda.keep_alive(stream, used.into_iter().flatten());
        Ok(())
    }
}
