//! The few scalar functions that run for every token: written without calls so that the compiler can vectorise them.

/// e^x to within two units in the last place for x in [−87, 88]; outside, the value at the nearer end.
pub(crate) fn exp(x: f32) -> f32 {
    // Adding 1.5 · 2²³ leaves the nearest integer in the low bits of the significand.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 as a short value, whose product with an integer is exact, and the rest.
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let x = x.clamp(-87.0, 88.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = x - n * LN_2_HIGH - n * LN_2_LOW;
    // The polynomial of Cephes' `expf`.
    let mut p = 1.987_569_1e-4;
    for coefficient in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 5.0e-1] {
        p = p * r + coefficient;
    }
    let power_of_two = f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23));
    (p * r * r + r + 1.0) * power_of_two
}

/// 1 / (1 + e^−x).
pub(crate) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// The exact GELU, x·Φ(x), and its slope Φ(x) + x·φ(x), from one exponential.
///
/// The tail of Φ is formula 7.1.26 of Abramowitz and Stegun, off by at most 0.75e-7: as near as `f32` can say.
pub(crate) fn gelu(x: f32) -> (f32, f32) {
    const INV_SQRT_2PI: f32 = 0.398_942_3;
    let bell = exp(-0.5 * x * x);
    let t = 1.0 / (1.0 + 0.327_591_1 * std::f32::consts::FRAC_1_SQRT_2 * x.abs());
    let mut p = 1.061_405_4;
    for coefficient in [-1.453_152, 1.421_413_7, -0.284_496_74, 0.254_829_6] {
        p = p * t + coefficient;
    }
    let tail = 0.5 * p * t * bell;
    let phi = if x >= 0.0 { 1.0 - tail } else { tail };
    (x * phi, phi + x * bell * INV_SQRT_2PI)
}

/// The sum of the products of two rows, in eight running sums whatever the machine.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0; 8];
    let (a_eights, a_rest) = a.as_chunks::<8>();
    let (b_eights, b_rest) = b.as_chunks::<8>();
    for (a, b) in a_eights.iter().zip(b_eights) {
        for lane in 0..8 {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    lanes.iter().sum::<f32>() + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f32>()
}

/// The sum of a row, in eight running sums whatever the machine.
pub(crate) fn sum(values: &[f32]) -> f32 {
    let mut lanes = [0.0; 8];
    let (eights, rest) = values.as_chunks::<8>();
    for eight in eights {
        for lane in 0..8 {
            lanes[lane] += eight[lane];
        }
    }
    lanes.iter().sum::<f32>() + rest.iter().sum::<f32>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_accurate_over_its_range() {
        let worst = (-870_000..880_000).map(|i| {
            let x = i as f32 * 1e-4;
            let exact = f64::from(x).exp();
            ((f64::from(exp(x)) - exact) / exact).abs()
        });
        let worst = worst.fold(0.0, f64::max);
        assert!(worst < 2.4e-7, "{worst:e}");
    }

    #[test]
    fn the_exponential_saturates_and_passes_nan_on() {
        assert_eq!(exp(0.0), 1.0);
        assert!(exp(-1e30) < 2e-38 && exp(f32::NEG_INFINITY) >= 0.0);
        assert!(exp(f32::INFINITY).is_finite());
        assert!(exp(f32::NAN).is_nan() && gelu(f32::NAN).0.is_nan());
    }

    #[test]
    fn the_slope_of_gelu_is_that_of_its_values() {
        for i in -600..600 {
            let x = i as f32 * 0.01;
            let h = 0.01;
            let difference = (gelu(x + h).0 - gelu(x - h).0) / (2.0 * h);
            assert!((difference - gelu(x).1).abs() < 1e-4, "at {x}");
        }
    }

    #[test]
    fn sums_take_every_value_once() {
        let values: Vec<f32> = (0..27).map(|i| i as f32).collect();
        assert_eq!(sum(&values), 351.0);
        assert_eq!(dot(&values, &[2.0; 27]), 702.0);
    }
}
