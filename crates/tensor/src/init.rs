//! Parameter initialisation with the rules of PyTorch.
//!
//! The caller provides the random numbers: anything that draws uniformly from `[0, 1)`.
//!
//! ```
//! use hopedgn_tensor::{Parameters, Shape, init};
//!
//! let mut state = 1_u64;
//! let mut random = || {
//!     state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
//!     (state >> 11) as f64 / (1_u64 << 53) as f64
//! };
//! let (weight, bias) = init::linear(&mut random, 8, 4);
//! assert_eq!((weight.shape(), bias.shape()), (Shape::Matrix(4, 8), Shape::Vector(4)));
//!
//! let mut parameters = Parameters::default();
//! parameters.add("layer.weight", weight)?;
//! parameters.add("layer.bias", bias)?;
//! # Ok::<(), hopedgn_tensor::Error>(())
//! ```

use crate::{Shape, Tensor};

/// A source of random numbers.
pub trait Uniform {
    /// The next number in `[0, 1)`.
    fn unit(&mut self) -> f64;
}

impl<F: FnMut() -> f64> Uniform for F {
    fn unit(&mut self) -> f64 {
        self()
    }
}

/// Values uniform in `[−bound, bound)`.
#[must_use]
pub fn uniform(random: &mut impl Uniform, shape: Shape, bound: f64) -> Tensor {
    #[expect(clippy::cast_possible_truncation, reason = "drawn in f64, stored in f32")]
    let values: Vec<f32> = (0..shape.len()).map(|_| (bound * (2.0 * random.unit() - 1.0)) as f32).collect();
    Tensor::from_parts(shape, values)
}

/// Values of the standard normal distribution, by the Box–Muller transform.
#[must_use]
pub fn normal(random: &mut impl Uniform, shape: Shape) -> Tensor {
    let mut values = Vec::with_capacity(shape.len() + 1);
    while values.len() < shape.len() {
        // In (0, 1], so that its logarithm is finite.
        let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * random.unit()).sin_cos();
        #[expect(clippy::cast_possible_truncation, reason = "drawn in f64, stored in f32")]
        values.extend([(radius * cos) as f32, (radius * sin) as f32]);
    }
    values.truncate(shape.len());
    Tensor::from_parts(shape, values)
}

/// Weight `[n_out, n_in]` and bias `[n_out]` of a linear layer, uniform in ±1/√`n_in`; the weight is drawn first.
#[must_use]
pub fn linear(random: &mut impl Uniform, n_in: usize, n_out: usize) -> (Tensor, Tensor) {
    let bound = 1.0 / (n_in.max(1) as f64).sqrt();
    (uniform(random, Shape::Matrix(n_out, n_in), bound), uniform(random, Shape::Vector(n_out), bound))
}

/// A weight `[n_out, n_in]` with the Xavier uniform rule, ±√(6 / (`n_in` + `n_out`)).
#[must_use]
fn xavier_uniform(random: &mut impl Uniform, n_in: usize, n_out: usize) -> Tensor {
    let bound = (6.0 / ((n_in + n_out).max(1) as f64)).sqrt();
    uniform(random, Shape::Matrix(n_out, n_in), bound)
}

/// Weight `[3D, D]` and zero bias `[3D]` of an attention's input projection: the Xavier rule over the packed matrix, as in
/// `torch.nn.MultiheadAttention`.
#[must_use]
pub fn attention_in(random: &mut impl Uniform, width: usize) -> (Tensor, Tensor) {
    (xavier_uniform(random, width, 3 * width), Tensor::zeros(Shape::Vector(3 * width)))
}

/// Weight `[D, D]` and zero bias `[D]` of an attention's output projection.
#[must_use]
pub fn attention_out(random: &mut impl Uniform, width: usize) -> (Tensor, Tensor) {
    let bound = 1.0 / (width.max(1) as f64).sqrt();
    (uniform(random, Shape::Matrix(width, width), bound), Tensor::zeros(Shape::Vector(width)))
}

/// Scale (ones) and shift (zeros) of a LayerNorm, `[D]` each.
#[must_use]
pub fn layer_norm(width: usize) -> (Tensor, Tensor) {
    (Tensor::full(Shape::Vector(width), 1.0), Tensor::zeros(Shape::Vector(width)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Multiples of the golden ratio: evenly distributed over `[0, 1)`.
    fn spread() -> impl FnMut() -> f64 {
        let mut x = 0.0_f64;
        move || {
            x = (x + 0.618_033_988_749_895).fract();
            x
        }
    }

    /// The values fill ±`bound` and no more.
    fn check(tensor: &Tensor, shape: Shape, bound: f32) {
        assert_eq!(tensor.shape(), shape);
        let top = tensor.values().iter().fold(0.0_f32, |max, x| max.max(x.abs()));
        assert!(top <= bound && top > 0.97 * bound, "{top} {bound}");
        let mean = tensor.values().iter().sum::<f32>() / shape.len() as f32;
        assert!(mean.abs() < 0.05 * bound, "{mean}");
    }

    #[test]
    fn bounds_match_pytorch() {
        let (weight, bias) = linear(&mut spread(), 25, 64);
        check(&weight, Shape::Matrix(64, 25), 0.2);
        check(&bias, Shape::Vector(64), 0.2);
        // √(6 / (24 + 72)) = 1/4.
        let (weight, bias) = attention_in(&mut spread(), 24);
        check(&weight, Shape::Matrix(72, 24), 0.25);
        assert_eq!(bias, Tensor::zeros(Shape::Vector(72)));
        let (weight, bias) = attention_out(&mut spread(), 16);
        check(&weight, Shape::Matrix(16, 16), 0.25);
        assert_eq!(bias, Tensor::zeros(Shape::Vector(16)));
    }
    #[test]
    fn normal_values_have_the_right_moments_and_tails() {
        let mut state = 1_u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let tensor = normal(&mut random, Shape::Matrix(301, 333));
        let n = tensor.shape().len() as f64;
        let moment = |power: i32| tensor.values().iter().map(|&x| f64::from(x).powi(power)).sum::<f64>() / n;
        // Five standard deviations of each mean: of x 1/√n, of x² √(2/n), of x⁴ √(96/n).
        for (power, expected, spread) in [(1, 0.0, 1.0_f64), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0)] {
            assert!((moment(power) - expected).abs() < 5.0 * (spread / n).sqrt(), "{power}: {}", moment(power));
        }
        // A share of 0.0455 is beyond two standard deviations.
        let beyond = tensor.values().iter().filter(|x| x.abs() > 2.0).count() as f64 / n;
        assert!((beyond - 0.0455).abs() < 5.0 * (0.0455_f64 / n).sqrt(), "{beyond}");
        assert!(normal(&mut || 0.0, Shape::Vector(3)).is_finite());
    }
}
