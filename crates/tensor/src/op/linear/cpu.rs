//! Linear layers on the CPU.

use crate::gemm::{View, Weight, WriteMode, gemm};
use crate::op::activation::cpu::multiply_by_slopes;
use crate::scratch::{self, Scratch};
use crate::tape::{BackwardCtx, CpuTape, GradSink};
use crate::vector::add_to;
use crate::{Activation, Result, Shape, Tensor, Threads, Var};

impl CpuTape<'_> {
    pub(crate) fn linear(
        &mut self,
        x: Var,
        weight: Var,
        bias: Option<Var>,
        activation: Option<Activation>,
    ) -> Result<Var> {
        let x_shape = self.shape(x);
        let sizes = Sizes { m: x_shape.rows(), k: x_shape.cols(), n: self.shape(weight).rows() };
        let bias_values = bias.map(|bias| self.value(bias).values());
        let mut values = sizes.forward(self.value(x).values(), self.weight(weight), bias_values, self.threads());

        let operands: Vec<Var> = [x, weight].into_iter().chain(bias).collect();
        let requires_grad = self.any_requires_grad(&operands);
        let slopes = activation.map(|function| function.apply_to(&mut values, sizes.n, requires_grad, self.threads()));

        let backward = move |mut grad: Scratch, ctx: &BackwardCtx<'_>, sink: &mut GradSink<'_>| {
            if let Some(slopes) = &slopes {
                multiply_by_slopes(&mut grad, slopes, sizes.n, ctx.threads);
            }
            sink.accumulate_with(x, |dx| sizes.add_to_dx(&grad, ctx.weight(weight), dx, ctx.threads));
            sink.accumulate_with(weight, |dw| sizes.add_to_dw(&grad, ctx.value(x).values(), dw, ctx.threads));
            if let Some(bias) = bias {
                let row = |row: usize| &grad[row * sizes.n..(row + 1) * sizes.n];
                sink.accumulate_with(bias, |db| ctx.threads.sum_rows(sizes.m, db, |i, sums| add_to(sums, row(i))));
            }
        };
        Ok(self.push(&operands, Tensor::from_parts(Shape::Matrix(sizes.m, sizes.n), values), backward))
    }

    pub(crate) fn matmul(&mut self, x: Var, weight: Var) -> Result<Var> {
        let (m, k, n) = (self.shape(x).rows(), self.shape(x).cols(), self.shape(weight).cols());
        // x·W is the input gradient of a linear layer with weight W.
        let transposed = Sizes { m, k: n, n: k };
        let mut values = scratch::take_zeros(m * n);
        transposed.add_to_dx(self.value(x).values(), self.weight(weight), &mut values, self.threads());
        let backward = move |grad: Scratch, ctx: &BackwardCtx<'_>, sink: &mut GradSink<'_>| {
            if sink.requires_grad(x) {
                sink.accumulate(x, transposed.forward(&grad, ctx.weight(weight), None, ctx.threads));
            }
            sink.accumulate_with(weight, |dw| transposed.add_to_dw(ctx.value(x).values(), &grad, dw, ctx.threads));
        };
        Ok(self.push(&[x, weight], Tensor::from_parts(Shape::Matrix(m, n), values), backward))
    }
}

/// `x` is `[m, k]`, the weight `[n, k]`, the result `[m, n]`.
#[derive(Clone, Copy)]
struct Sizes {
    m: usize,
    k: usize,
    n: usize,
}

impl Sizes {
    fn forward(self, x: &[f32], weight: Weight<'_>, bias: Option<&[f32]>, threads: Threads) -> Scratch {
        let Self { m, k, n } = self;
        let mut out = scratch::take(m * n);
        threads.rows(&mut out, n, |first, rows| {
            let x = View::new(&x[first * k..], rows.len() / n, k);
            weight.forward(x, WriteMode::Overwrite, rows);
            if let Some(bias) = bias {
                rows.chunks_exact_mut(n).for_each(|row| add_to(row, bias));
            }
        });
        out
    }

    /// dx += dy · W.
    fn add_to_dx(self, dy: &[f32], weight: Weight<'_>, dx: &mut [f32], threads: Threads) {
        let Self { k, n, .. } = self;
        threads.rows(dx, k, |first, rows| {
            let dy = View::new(&dy[first * n..], rows.len() / k, n);
            weight.backward(dy, WriteMode::Accumulate, rows);
        });
    }

    /// dW += dyᵀ · x. Threads share the rows of dW; each is a sum over all rows of x in one order.
    fn add_to_dw(self, dy: &[f32], x: &[f32], dw: &mut [f32], threads: Threads) {
        let Self { m, k, n } = self;
        if m == 0 {
            return;
        }
        threads.rows(dw, k, |first, rows| {
            let dy = View::within(&dy[first..], m, rows.len() / k, n).t();
            gemm(dy, View::new(x, m, k), 1.0, WriteMode::Accumulate, rows, k);
        });
    }
}
