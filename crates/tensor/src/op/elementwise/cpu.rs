//! Elementwise sum and product on the CPU.

use crate::scratch::{self, Scratch};
use crate::tape::{BackwardCtx, CpuTape, GradSink};
use crate::vector::{add_products, add_to, multiply};
use crate::{Result, Tensor, Threads, Var};

impl CpuTape<'_> {
    pub(crate) fn add(&mut self, a: Var, b: Var) -> Result<Var> {
        let shape = self.shape(a);
        let cols = shape.cols();
        let mut values = scratch::copy_of(self.value(a).values());
        add_rows(&mut values, self.value(b).values(), cols, self.threads());
        let backward = move |grad: Scratch, ctx: &BackwardCtx<'_>, sink: &mut GradSink<'_>| {
            sink.accumulate_with(a, |sum| add_rows(sum, &grad, cols, ctx.threads));
            sink.accumulate(b, grad);
        };
        Ok(self.push(&[a, b], Tensor::from_parts(shape, values), backward))
    }

    pub(crate) fn mul(&mut self, a: Var, b: Var) -> Result<Var> {
        let shape = self.shape(a);
        let cols = shape.cols();
        let mut values = scratch::copy_of(self.value(a).values());
        let factors = self.value(b).values();
        self.threads().rows(&mut values, cols, |first, rows| multiply(rows, &factors[first * cols..]));
        let backward = move |grad: Scratch, ctx: &BackwardCtx<'_>, sink: &mut GradSink<'_>| {
            for (var, other) in [(a, b), (b, a)] {
                let other = ctx.value(other).values();
                sink.accumulate_with(var, |sum| {
                    let add = |first: usize, sums: &mut [f32]| {
                        add_products(sums, &grad[first * cols..], &other[first * cols..]);
                    };
                    ctx.threads.rows(sum, cols, add);
                });
            }
        };
        Ok(self.push(&[a, b], Tensor::from_parts(shape, values), backward))
    }
}

/// `sums += terms` in rows of `cols`.
fn add_rows(sums: &mut [f32], terms: &[f32], cols: usize, threads: Threads) {
    threads.rows(sums, cols, |first, rows| add_to(rows, &terms[first * cols..]));
}
