//! Dropout as a value: a rate, a seed, and whether the model is being trained.

use crate::tape::{At, Sink};
use crate::{Error, Result, Tape, Tensor, Var};

/// What a forward pass is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// To learn: dropout acts.
    Train,
    /// To score: dropout does nothing.
    Evaluate,
}

/// One use of dropout: each value is zeroed with a probability, the others grow so that the mean stays.
///
/// Which values fall depends on the seed and their position alone, so a pass can be repeated exactly, on any number of
/// threads. Give every use in a pass, and every pass, its own seed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dropout {
    /// The probability of a zero.
    rate: f32,
    seed: u64,
}

impl Dropout {
    /// No dropout.
    pub const NONE: Self = Self { rate: 0.0, seed: 0 };

    /// Dropout of `rate` in `[0, 1)` when training, none when evaluating.
    pub fn new(rate: f32, seed: u64, mode: Mode) -> Result<Self> {
        if !(0.0..1.0).contains(&rate) {
            return Err(Error::Rate { rate });
        }
        Ok(if mode == Mode::Train { Self { rate, seed } } else { Self::NONE })
    }

    pub(crate) fn acts(self) -> bool {
        self.rate > 0.0
    }

    /// Multiplies `values`, the first of which has `position`, by 0 or 1/(1 − rate).
    pub(crate) fn apply(self, position: usize, values: &mut [f32]) {
        if !self.acts() {
            return;
        }
        let keep = 1.0 / (1.0 - self.rate);
        // The upper 24 bits of the hash against the rate in the same unit.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate in [0, 1) times 2²⁴")]
        let bound = (f64::from(self.rate) * f64::from(1 << 24)).round() as u64;
        for (i, value) in (position as u64..).zip(values) {
            *value *= if mix(self.seed, i) >> 40 < bound { 0.0 } else { keep };
        }
    }
}

/// The `i`-th output of `SplitMix64` started at a hash of `seed`.
fn mix(seed: u64, i: u64) -> u64 {
    const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;
    let hash = |z: u64| {
        let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    };
    hash(hash(seed.wrapping_add(GAMMA)).wrapping_add(i.wrapping_add(1).wrapping_mul(GAMMA)))
}

impl Tape<'_> {
    /// `x` after `dropout`; `x` itself where it does nothing.
    pub fn dropout(&mut self, x: Var, dropout: Dropout) -> Var {
        if !dropout.acts() {
            return x;
        }
        let shape = self.shape(x);
        let cols = shape.cols();
        let mut values = self.value(x).values().to_vec();
        self.threads().rows(&mut values, cols, |first, rows| dropout.apply(first * cols, rows));
        let backward = move |mut grad: Vec<f32>, at: &At<'_>, sink: &mut Sink<'_>| {
            at.threads.rows(&mut grad, cols, |first, rows| dropout.apply(first * cols, rows));
            sink.give(x, grad);
        };
        self.push(&[x], Tensor::from_parts(shape, values), backward)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::{check_gradients, matrix};
    use crate::{Parameters, Shape};

    #[test]
    fn gradients_match_differences() {
        let dropout = Dropout::new(0.3, 7, Mode::Train).unwrap();
        check_gradients(&[matrix(1, 70, 5)], |tape, x| Ok(tape.dropout(x[0], dropout)));
    }

    #[test]
    fn the_share_of_zeros_is_the_rate_and_the_mean_stays() {
        let parameters = Parameters::default();
        let run = |seed: u64| {
            let mut tape = Tape::new(&parameters);
            let x = tape.input(Tensor::full(Shape::Matrix(1000, 100), 1.0));
            let y = tape.dropout(x, Dropout::new(0.1, seed, Mode::Train).unwrap());
            tape.value(y).clone()
        };
        let y = run(1);
        let zeros = y.values().iter().filter(|&&y| y == 0.0).count() as f64 / 1e5;
        // Four standard deviations of a share of 100,000 draws.
        assert!((zeros - 0.1).abs() < 0.004, "{zeros}");
        assert!(y.values().iter().all(|&y| y == 0.0 || y == 1.0 / 0.9));
        assert_eq!(y, run(1));
        assert_ne!(y, run(2));
    }

    #[test]
    fn evaluating_drops_nothing() {
        let parameters = Parameters::default();
        let mut tape = Tape::new(&parameters);
        let x = tape.input(matrix(1, 2, 2));
        assert_eq!(tape.dropout(x, Dropout::new(0.5, 1, Mode::Evaluate).unwrap()), x);
        assert!(Dropout::new(1.0, 1, Mode::Evaluate).is_err());
        assert!(Dropout::new(f32::NAN, 1, Mode::Train).is_err());
    }
}
