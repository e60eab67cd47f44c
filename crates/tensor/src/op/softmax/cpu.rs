//! Softmax on the CPU.

use crate::math::{dot, exp, largest, sum};
use crate::scratch::{self, Scratch};
use crate::tape::{BackwardCtx, CpuTape, GradSink};
use crate::vector::vectorised;
use crate::{Tensor, Var};

vectorised! {
    /// The softmax of rows of `cols` values, relative to the largest so that nothing overflows.
    pub(crate) fn softmax_rows(rows: &mut [f32], cols: usize) {
        for row in rows.chunks_exact_mut(cols.max(1)) {
            let top = largest(row);
            for x in row.iter_mut() {
                *x = exp(*x - top);
            }
            let inv_total = 1.0 / sum(row);
            for x in row.iter_mut() {
                *x *= inv_total;
            }
        }
    }

    /// Turns the gradients of a softmax into those of its input: y·(dy − Σ dy·y).
    pub(crate) fn softmax_rows_backward(grads: &mut [f32], outputs: &[f32], cols: usize) {
        let cols = cols.max(1);
        for (grad, output) in grads.chunks_exact_mut(cols).zip(outputs.chunks_exact(cols)) {
            let along = dot(grad, output);
            for (grad, y) in grad.iter_mut().zip(output) {
                *grad = y * (*grad - along);
            }
        }
    }
}

impl CpuTape<'_> {
    pub(crate) fn softmax(&mut self, x: Var) -> Var {
        let shape = self.shape(x);
        let cols = shape.cols();
        let mut values = scratch::copy_of(self.value(x).values());
        self.threads().rows(&mut values, cols, |_, rows| softmax_rows(rows, cols));
        let backward = move |mut grad: Scratch, ctx: &BackwardCtx<'_>, sink: &mut GradSink<'_>| {
            let output = ctx.output().values();
            ctx.threads.rows(&mut grad, cols, |first, rows| {
                softmax_rows_backward(rows, &output[first * cols..], cols);
            });
            sink.accumulate(x, grad);
        };
        self.push(&[x], Tensor::from_parts(shape, values), backward)
    }
}
