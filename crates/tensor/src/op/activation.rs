//! Functions of one value: ReLU, exact GELU, sigmoid, tanh, cos.

use crate::tape::{At, Sink};
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
            Self::Relu => each(values, slopes, |x| if x <= 0.0 { (0.0, 0.0) } else { (x, 1.0) }),
            Self::Gelu => each(values, slopes, math::gelu),
            Self::Sigmoid => each(values, slopes, |x| {
                let y = math::sigmoid(x);
                (y, y * (1.0 - y))
            }),
            Self::Tanh => each(values, slopes, |x| {
                let y = x.tanh();
                (y, 1.0 - y * y)
            }),
            Self::Cos => each(values, slopes, |x| {
                let (sin, cos) = x.sin_cos();
                (cos, -sin)
            }),
        }
    }

    /// Replaces `values` by the function and returns the slopes, one for each value if they are `wanted`.
    pub(crate) fn apply_to(self, values: &mut [f32], cols: usize, wanted: bool, threads: Threads) -> Vec<f32> {
        if !wanted {
            threads.rows(values, cols, |_, values| self.apply(values, &mut []));
            return Vec::new();
        }
        let mut slopes = vec![0.0; values.len()];
        threads.rows_of_two((values, cols), (&mut slopes, cols), |_, values, slopes| self.apply(values, slopes));
        slopes
    }
}

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

/// `grad *= slope`, value by value.
pub(crate) fn times_slope(grad: &mut [f32], slopes: &[f32], cols: usize, threads: Threads) {
    threads.rows(grad, cols, |first, rows| {
        for (grad, slope) in rows.iter_mut().zip(&slopes[first * cols..]) {
            *grad *= slope;
        }
    });
}

impl Tape<'_> {
    /// `function` of each value of `x`.
    pub fn activate(&mut self, x: Var, function: Activation) -> Var {
        let shape = self.shape(x);
        let mut values = self.value(x).values().to_vec();
        let slopes = function.apply_to(&mut values, shape.cols(), self.wants_gradient(x), self.threads());
        let backward = move |mut grad: Vec<f32>, at: &At<'_>, sink: &mut Sink<'_>| {
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
    fn values_and_gradients_are_those_of_pytorch() {
        for (name, function) in ALL {
            Case::load(name).check(&["x"], |tape, x| Ok(tape.activate(x[0], function)));
        }
    }
}
