//! Activation functions on the CPU: value and derivative in one pass.

use crate::scratch::{self, Scratch};
use crate::tape::{BackwardCtx, CpuTape, GradSink};
use crate::vector::{multiply, vectorised};
use crate::{Activation, Tensor, Threads, Var, math};

impl Activation {
    /// Replaces `values` by the function and writes its derivatives to `slopes`, unless that is empty.
    pub(super) fn apply(self, values: &mut [f32], slopes: &mut [f32]) {
        match self {
            Self::Relu => relu(values, slopes),
            Self::Gelu => gelu(values, slopes),
            Self::Sigmoid => sigmoid(values, slopes),
            Self::Tanh => tanh(values, slopes),
            Self::Cos => cos(values, slopes),
        }
    }

    /// Replaces `values` by the function and returns its derivatives; none if they are not `wanted`.
    pub(crate) fn apply_to(self, values: &mut [f32], cols: usize, wanted: bool, threads: Threads) -> Scratch {
        if !wanted {
            threads.rows(values, cols, |_, values| self.apply(values, &mut []));
            return Scratch::default();
        }
        let mut slopes = scratch::take(values.len());
        threads.rows_of_two((values, cols), (&mut slopes, cols), |_, values, slopes| self.apply(values, slopes));
        slopes
    }
}

#[expect(clippy::inline_always, reason = "must be inlined into its caller, see `vector`")]
#[inline(always)]
fn each(values: &mut [f32], slopes: &mut [f32], function: impl Fn(f32) -> (f32, f32)) {
    if slopes.is_empty() {
        for value in values {
            *value = function(*value).0;
        }
    } else {
        for (value, slope) in values.iter_mut().zip(slopes) {
            (*value, *slope) = function(*value);
        }
    }
}

vectorised! {
    fn relu(values: &mut [f32], slopes: &mut [f32]) {
        each(values, slopes, |x| if x <= 0.0 { (0.0, 0.0) } else { (x, 1.0) });
    }

    fn gelu(values: &mut [f32], slopes: &mut [f32]) {
        each(values, slopes, math::gelu);
    }

    fn sigmoid(values: &mut [f32], slopes: &mut [f32]) {
        each(values, slopes, |x| {
            let y = math::sigmoid(x);
            (y, y * (1.0 - y))
        });
    }

    fn tanh(values: &mut [f32], slopes: &mut [f32]) {
        each(values, slopes, |x| {
            let y = math::tanh(x);
            (y, 1.0 - y * y)
        });
    }

    fn cos_and_slope(values: &mut [f32], slopes: &mut [f32]) {
        each(values, slopes, |x| {
            let (sin, cos) = math::sin_cos(x);
            (cos, -sin)
        });
    }
}

/// Values too large for the fast reduction go through the standard library.
fn cos(values: &mut [f32], slopes: &mut [f32]) {
    let is_large = |x: &f32| x.abs() > math::SIN_COS_LIMIT;
    let large: Vec<(usize, f32)> = values.iter().copied().enumerate().filter(|(_, x)| is_large(x)).collect();
    cos_and_slope(values, slopes);
    for (at, x) in large {
        let (sin, cos) = x.sin_cos();
        values[at] = cos;
        if let Some(slope) = slopes.get_mut(at) {
            *slope = -sin;
        }
    }
}

/// `grad *= slopes`.
pub(crate) fn multiply_by_slopes(grad: &mut [f32], slopes: &[f32], cols: usize, threads: Threads) {
    threads.rows(grad, cols, |first, rows| {
        multiply(rows, &slopes[first * cols..]);
    });
}

impl CpuTape<'_> {
    pub(crate) fn activate(&mut self, x: Var, function: Activation) -> Var {
        let shape = self.shape(x);
        let mut values = scratch::copy_of(self.value(x).values());
        let slopes = function.apply_to(&mut values, shape.cols(), self.requires_grad(x), self.threads());
        let backward = move |mut grad: Scratch, ctx: &BackwardCtx<'_>, sink: &mut GradSink<'_>| {
            multiply_by_slopes(&mut grad, &slopes, shape.cols(), ctx.threads);
            sink.accumulate(x, grad);
        };
        self.push(&[x], Tensor::from_parts(shape, values), backward)
    }
}
