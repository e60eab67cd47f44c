//! Functions of one value: ReLU, exact GELU, sigmoid, tanh, cos.

use crate::scratch::{self, Scratch};
use crate::tape::{At, Sink};
use crate::vector::{multiply, vectorised};
use crate::{Tape, Tensor, Threads, Var, math};

/// A function applied to each value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// max(x, 0), with slope 0 at 0.
    Relu,
    /// x·Φ(x) with the normal distribution function itself, not its tanh form.
    Gelu,
    /// 1 / (1 + e^−x).
    Sigmoid,
    /// The hyperbolic tangent.
    Tanh,
    /// The cosine, of time encodings.
    Cos,
}

impl Activation {
    /// Replaces `values` by the function and writes its slope to `slopes`, if there is one for each value.
    fn apply(self, values: &mut [f32], slopes: &mut [f32]) {
        match self {
            Self::Relu => relu(values, slopes),
            Self::Gelu => gelu(values, slopes),
            Self::Sigmoid => sigmoid(values, slopes),
            Self::Tanh => tanh(values, slopes),
            Self::Cos => cos(values, slopes),
        }
    }

    /// Replaces `values` by the function and returns the slopes, one for each value if they are `wanted`.
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

#[expect(clippy::inline_always, reason = "it must be compiled with the function it is called from, see `vector`")]
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

/// The few values too large for the fast function are left to the slow one.
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

/// `grad *= slope`, value by value.
pub(crate) fn times_slope(grad: &mut [f32], slopes: &[f32], cols: usize, threads: Threads) {
    threads.rows(grad, cols, |first, rows| {
        multiply(rows, &slopes[first * cols..]);
    });
}

impl Tape<'_> {
    /// `function` of each value of `x`.
    pub fn activate(&mut self, x: Var, function: Activation) -> Var {
        let shape = self.shape(x);
        if let Some(record) = self.record() {
            return Var(record.activate(x.0, function));
        }
        let mut values = scratch::copy_of(self.value(x).values());
        let slopes = function.apply_to(&mut values, shape.cols(), self.wants_gradient(x), self.threads());
        let backward = move |mut grad: Scratch, at: &At<'_>, sink: &mut Sink<'_>| {
            times_slope(&mut grad, &slopes, shape.cols(), at.threads);
            sink.give(x, grad);
        };
        self.push(&[x], Tensor::from_parts(shape, values), backward)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::{Case, check_gradients, matrix};

    const ALL: [(&str, Activation); 5] = [
        ("relu", Activation::Relu),
        ("gelu", Activation::Gelu),
        ("sigmoid", Activation::Sigmoid),
        ("tanh", Activation::Tanh),
        ("cos", Activation::Cos),
    ];

    #[test]
    fn gradients_match_differences() {
        for (_, function) in ALL {
            // An odd number of values and more rows than a chunk; none so near 0 that ReLU bends inside a step.
            let mut x = matrix(5, 67, 3);
            x.values_mut().iter_mut().for_each(|x| *x += 0.05 * x.signum());
            check_gradients(&[x], |tape, x| Ok(tape.activate(x[0], function)));
        }
    }

    #[test]
    fn the_cosine_of_a_huge_time_is_that_of_the_standard_library() {
        let mut values = [1e12_f32, 3.0, -4e30, f32::INFINITY];
        let mut slopes = [0.0; 4];
        Activation::Cos.apply(&mut values, &mut slopes);
        assert_eq!((values[0], values[2]), (1e12_f32.cos(), (-4e30_f32).cos()));
        assert_eq!(slopes[0], -1e12_f32.sin());
        assert!((values[1] - 3.0_f32.cos()).abs() < 1e-7 && values[3].is_nan());
    }

    #[test]
    fn values_and_gradients_are_those_of_pytorch() {
        for (name, function) in ALL {
            Case::load(name).check(&["x"], |tape, x| Ok(tape.activate(x[0], function)));
        }
    }
}
