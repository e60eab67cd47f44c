//! Scalar functions and reductions without calls, so that the compiler can vectorise loops over them.
#![expect(clippy::inline_always, reason = "must be inlined into the loop, see `vector`")]

/// e^x to within two ulp for x in [−87, 88]; x is clamped to that range.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // Adding 1.5 · 2²³ leaves the nearest integer in the low bits of the significand.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 as a short value, whose product with an integer is exact, and the remainder.
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

/// ln(1 + x) to within one ulp for x in [0, ∞), computed in `f64`; x itself for negative x and NaN.
#[inline(always)]
pub(crate) fn ln_1p(x: f32) -> f32 {
    // Below this, x is closer to the result than 1 + x can represent.
    const SMALL: f32 = 1e-8;
    const SIGNIFICAND: u64 = (1 << 52) - 1;
    // The bits of √½: subtracted so that the significand is between √½ and √2.
    const ROOT_HALF: u64 = 0x3FE6_A09E_667F_3BCD;
    // The bits of 2⁵²: with an integer in the low bits it is 2⁵² plus that integer.
    const INTEGER: u64 = 0x4330_0000_0000_0000;
    let bits = (1.0 + f64::from(x)).to_bits().wrapping_sub(ROOT_HALF);
    let exponent = f64::from_bits((bits >> 52) | INTEGER) - 4_503_599_627_370_496.0;
    let m = f64::from_bits((bits & SIGNIFICAND) + ROOT_HALF);
    // ln m as the series of the inverse hyperbolic tangent of (m − 1) / (m + 1), which is below 0.172.
    let s = (m - 1.0) / (m + 1.0);
    let square = s * s;
    let mut p = 1.0 / 11.0;
    for coefficient in [1.0 / 9.0, 1.0 / 7.0, 1.0 / 5.0, 1.0 / 3.0, 1.0] {
        p = p * square + coefficient;
    }
    #[expect(clippy::cast_possible_truncation, reason = "rounded once")]
    let log = (exponent * std::f64::consts::LN_2 + 2.0 * s * p) as f32;
    if (SMALL..=f32::MAX).contains(&x) { log } else { x }
}

/// 1 / (1 + e^−x).
#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// The hyperbolic tangent with a relative error below 8e-7.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    // Near 0, where the quotient would cancel, the series to x¹¹.
    let square = x * x;
    let mut p = -8.863_236e-3;
    for coefficient in [2.186_949e-2, -5.396_825_4e-2, 1.333_333_3e-1, -3.333_333_4e-1] {
        p = p * square + coefficient;
    }
    let near = x + x * square * p;
    let far = 1.0 - 2.0 / (1.0 + exp(2.0 * x));
    if x.abs() < 0.25 { near } else { far }
}

/// The exact GELU x·Φ(x) and its derivative Φ(x) + x·φ(x), from one exponential.
///
/// The tail of Φ is formula 7.1.26 of Abramowitz and Stegun, with an error of at most 0.75e-7, about that of `f32`.
#[inline(always)]
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

/// The dot product of two rows, in eight running sums on every machine.
#[inline(always)]
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

/// The sum of a row, in eight running sums on every machine.
#[inline(always)]
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

/// The largest value of a row; −∞ for an empty row. NaN is ignored.
#[inline(always)]
pub(crate) fn largest(values: &[f32]) -> f32 {
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    let mut lanes = [f32::NEG_INFINITY; 8];
    let (eights, rest) = values.as_chunks::<8>();
    for eight in eights {
        for lane in 0..8 {
            lanes[lane] = larger(lanes[lane], eight[lane]);
        }
    }
    lanes.iter().chain(rest).copied().fold(f32::NEG_INFINITY, larger)
}

/// The sine and cosine of x, to within one ulp for |x| up to [`SIN_COS_LIMIT`].
///
/// Time encodings have arguments of 1e9 and more. The range reduction subtracts quarter turns in `f64`, with π/2 in three
/// parts; the products of the first two are exact.
#[inline(always)]
pub(crate) fn sin_cos(x: f32) -> (f32, f32) {
    // Adding 1.5 · 2⁵² leaves the nearest integer in the low bits of the significand.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    // 22 bits, the next 22 bits, the remainder.
    const HALF_PI: [f64; 3] = [1.570_796_012_878_418, 3.139_164_164_167_596e-7, 6.223_372_171_896_613e-14];
    let x = f64::from(x);
    let shifted = x * std::f64::consts::FRAC_2_PI + ROUND;
    let n = shifted - ROUND;
    let r = x - n * HALF_PI[0] - n * HALF_PI[1] - n * HALF_PI[2];
    // Polynomials for |r| <= π/4, as in FreeBSD's `sinf` and `cosf`.
    let square = r * r;
    let mut sin = 2.718_311_493_989_822e-6;
    for coefficient in [-1.983_933_483_609_663_2e-4, 8.333_329_385_889_463e-3, -1.666_666_664_162_652_4e-1, 1.0] {
        sin = sin * square + coefficient;
    }
    let sin = sin * r;
    let mut cos = 2.439_044_879_627_741e-5;
    for coefficient in [-1.388_676_377_460_993e-3, 4.166_662_332_373_906e-2, -4.999_999_972_510_31e-1, 1.0] {
        cos = cos * square + coefficient;
    }
    let quarter = shifted.to_bits();
    let (sin_part, cos_part) = if quarter & 1 == 0 { (sin, cos) } else { (cos, sin) };
    let signed = |value: f64, quarter: u64| f64::from_bits(value.to_bits() ^ ((quarter & 2) << 62));
    #[expect(clippy::cast_possible_truncation, reason = "rounded once")]
    (signed(sin_part, quarter) as f32, signed(cos_part, quarter.wrapping_add(1)) as f32)
}

/// The largest |x| for which the products in [`sin_cos`] are exact.
pub(crate) const SIN_COS_LIMIT: f32 = 1_073_741_824.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ln_1p_is_within_an_ulp_of_f64() {
        let all = (0..0x7149_F2CA_u32).step_by(997).map(f32::from_bits).chain([1e-8, 0.414, 0.415, 1.0, 1e30]);
        for x in all {
            let (got, exact) = (ln_1p(x), f64::from(x).ln_1p());
            let error = (f64::from(got) - exact).abs();
            assert!(error <= 6.1e-8 * exact, "{x:e}: {got:e} for {exact:e}");
        }
        assert_eq!(ln_1p(0.0).to_bits(), 0);
        assert_eq!((ln_1p(f32::INFINITY), ln_1p(-3.0)), (f32::INFINITY, -3.0));
        assert!(ln_1p(f32::NAN).is_nan());
    }

    #[test]
    fn exp_is_accurate_over_its_range() {
        let worst = (-870_000..880_000).map(|i| {
            let x = i as f32 * 1e-4;
            let exact = f64::from(x).exp();
            ((f64::from(exp(x)) - exact) / exact).abs()
        });
        let worst = worst.fold(0.0, f64::max);
        assert!(worst < 2.4e-7, "{worst:e}");
    }

    #[test]
    fn exp_saturates_and_propagates_nan() {
        assert_eq!(exp(0.0), 1.0);
        assert!(exp(-1e30) < 2e-38 && exp(f32::NEG_INFINITY) >= 0.0);
        assert!(exp(f32::INFINITY).is_finite());
        assert!(exp(f32::NAN).is_nan() && gelu(f32::NAN).0.is_nan());
    }

    #[test]
    fn the_derivative_of_gelu_matches_differences() {
        for i in -600..600 {
            let x = i as f32 * 0.01;
            let h = 0.01;
            let difference = (gelu(x + h).0 - gelu(x - h).0) / (2.0 * h);
            assert!((difference - gelu(x).1).abs() < 1e-4, "at {x}");
        }
    }

    #[test]
    fn sine_and_cosine_are_accurate_far_from_zero() {
        // Every 4099th value up to the limit, and those nearest to multiples of π/2.
        let spread = (0..SIN_COS_LIMIT.to_bits()).step_by(4099).map(f32::from_bits);
        #[expect(clippy::cast_possible_truncation, reason = "the nearest f32 is the point")]
        let near_zeros = (0..200_000).map(|i| (f64::from(i * 3411) * std::f64::consts::FRAC_PI_2) as f32);
        for x in spread.chain(near_zeros).flat_map(|x| [x, -x]) {
            let (sin, cos) = sin_cos(x);
            for (got, exact) in [(sin, f64::from(x).sin()), (cos, f64::from(x).cos())] {
                let error = (f64::from(got) - exact).abs();
                // One ulp is between 2⁻²⁴ and 2⁻²³ of a value.
                assert!(error <= exact.abs() * f64::from(f32::EPSILON) + 1e-45, "at {x}: {got} {exact}");
            }
        }
        assert!(sin_cos(f32::NAN).0.is_nan());
    }

    #[test]
    fn the_largest_value_is_found_anywhere() {
        for at in 0..19 {
            let mut values = [-2.0; 19];
            values[at] = -1.0;
            assert_eq!(largest(&values), -1.0);
        }
        assert_eq!(largest(&[]), f32::NEG_INFINITY);
    }

    #[test]
    fn sum_and_dot_use_every_value_once() {
        let values: Vec<f32> = (0..27).map(|i| i as f32).collect();
        assert_eq!(sum(&values), 351.0);
        assert_eq!(dot(&values, &[2.0; 27]), 702.0);
    }

    #[test]
    fn tanh_is_accurate_everywhere() {
        let small = (0..1000).map(|i| 10_f32.powf(-i as f32 * 0.03));
        for x in (-100_000..100_000).map(|i| i as f32 * 1e-4).chain(small).chain([50.0, -1e30]) {
            let exact = f64::from(x).tanh();
            let error = (f64::from(tanh(x)) - exact).abs();
            assert!(error <= 8e-7 * exact.abs(), "at {x}: {error:e}");
        }
        assert!(tanh(f32::NAN).is_nan());
        assert_eq!(tanh(0.0), 0.0);
    }
}
