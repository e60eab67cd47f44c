//! Dropout as a value: a rate, a seed, and whether the model is being trained.

use crate::scratch::{self, Scratch};
use crate::tape::{At, Sink};
use crate::vector::vectorised;
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

    /// The mask as a kernel reads it: two keys, the bound, the factor of what stays. All zero where nothing falls.
    pub(crate) fn words(self) -> [u32; 4] {
        if !self.acts() {
            return [0; 4];
        }
        let Mask { keys: [low, high], bound, keep } = Mask::new(self);
        [low, high, bound, keep.to_bits()]
    }

    /// The same rate with another seed: for use `index` of many that share this one.
    #[must_use]
    pub fn site(self, index: u64) -> Self {
        Self { seed: mix(self.seed, index), ..self }
    }

    /// Multiplies `values`, the first of which has `position`, by 0 or 1/(1 − rate).
    pub(crate) fn apply(self, position: usize, values: &mut [f32]) {
        self.apply_to_both(position, values, &mut []);
    }

    /// Multiplies `values` and as many of `others` as there are by the same factors.
    pub(crate) fn apply_to_both(self, position: usize, values: &mut [f32], others: &mut [f32]) {
        if self.acts() {
            multiply_by_mask(&Mask::new(self), position, values, others);
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

/// What decides about a position: 16 bits of a hash of it against the rate.
///
/// The positions are taken in blocks of 16. Hash `j` of a block decides with its lower half about position `j` and with
/// its upper half about position `j + 8`, so that eight hashes side by side need no shuffling.
struct Mask {
    keys: [u32; 2],
    bound: u32,
    keep: f32,
}

impl Mask {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "halves of a hash; a rate times 2¹⁶")]
    fn new(dropout: Dropout) -> Self {
        let key = mix(dropout.seed, 0);
        let bound = (f64::from(dropout.rate) * 65536.0).round() as u32;
        Self { keys: [key as u32, (key >> 32) as u32], bound, keep: 1.0 / (1.0 - dropout.rate) }
    }

    /// A hash of 32 bits in two rounds, each with its own key. After 2³² it repeats, which no tensor of ours reaches.
    #[expect(clippy::inline_always, reason = "it must be compiled with the loop around it, see `vector`")]
    #[inline(always)]
    fn hash(&self, i: u32) -> u32 {
        let x = i ^ self.keys[0];
        let x = (x ^ (x >> 16)).wrapping_mul(0x7FEB_352D) ^ self.keys[1];
        let x = (x ^ (x >> 15)).wrapping_mul(0x846C_A68B);
        x ^ (x >> 16)
    }

    #[expect(clippy::inline_always, reason = "it must be compiled with the loop around it, see `vector`")]
    #[inline(always)]
    fn factor(&self, bits: u32) -> f32 {
        if bits < self.bound { 0.0 } else { self.keep }
    }

    /// The factor of one position.
    #[expect(clippy::cast_possible_truncation, reason = "see `hash`")]
    fn at(&self, position: usize) -> f32 {
        let hash = self.hash((position / 16 * 8 + position % 8) as u32);
        self.factor(if position % 16 < 8 { hash & 0xFFFF } else { hash >> 16 })
    }
}

vectorised! {
    fn multiply_by_mask(mask: &Mask, position: usize, values: &mut [f32], others: &mut [f32]) {
        // Up to the first whole block and after the last, position by position.
        let before = position.next_multiple_of(16).wrapping_sub(position).min(values.len());
        let whole = (values.len() - before) / 16 * 16;
        let others_len = others.len();
        for i in (0..before).chain(before + whole..values.len()) {
            let factor = mask.at(position + i);
            values[i] *= factor;
            if i < others_len {
                others[i] *= factor;
            }
        }
        #[expect(clippy::cast_possible_truncation, reason = "see `hash`")]
        let mut first = ((position + before) / 16 * 8) as u32;
        let (blocks, _) = values[before..].as_chunks_mut::<16>();
        let mut other_blocks = others.get_mut(before..).unwrap_or_default().as_chunks_mut::<16>().0.iter_mut();
        for block in blocks {
            let mut factors = [0.0; 16];
            for (i, lane) in (0..8).enumerate() {
                let hash = mask.hash(first.wrapping_add(lane));
                factors[i] = mask.factor(hash & 0xFFFF);
                factors[i + 8] = mask.factor(hash >> 16);
            }
            for (value, factor) in block.iter_mut().zip(factors) {
                *value *= factor;
            }
            if let Some(other) = other_blocks.next() {
                for (value, factor) in other.iter_mut().zip(factors) {
                    *value *= factor;
                }
            }
            first = first.wrapping_add(8);
        }
    }
}

impl Tape<'_> {
    /// `x` after `dropout`; `x` itself where it does nothing.
    pub fn dropout(&mut self, x: Var, dropout: Dropout) -> Var {
        if !dropout.acts() {
            return x;
        }
        let shape = self.shape(x);
        if let Some(record) = self.record() {
            return Var(record.dropout(x.0, dropout));
        }
        let cols = shape.cols();
        let mut values = scratch::copy_of(self.value(x).values());
        self.threads().rows(&mut values, cols, |first, rows| dropout.apply(first * cols, rows));
        let backward = move |mut grad: Scratch, at: &At<'_>, sink: &mut Sink<'_>| {
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

    /// Whether each of `count` positions from `first` on is kept.
    fn kept(dropout: Dropout, first: usize, count: usize) -> Vec<bool> {
        let mut values = vec![1.0; count];
        dropout.apply(first, &mut values);
        values.iter().map(|&value| value != 0.0).collect()
    }

    #[test]
    fn a_position_falls_or_stays_wherever_a_slice_begins_and_ends() {
        let dropout = Dropout::new(0.4, 3, Mode::Train).unwrap();
        let all = kept(dropout, 0, 100);
        for (first, count) in [(0, 7), (1, 40), (15, 2), (16, 16), (17, 83), (31, 33), (50, 0)] {
            assert_eq!(kept(dropout, first, count), all[first..first + count]);
        }
        let (mut a, mut b) = (vec![1.0; 40], vec![1.0; 40]);
        dropout.apply_to_both(5, &mut a, &mut b);
        assert_eq!(a, b);
        assert_eq!(kept(dropout, 5, 40), all[5..45]);
    }

    #[test]
    fn seeds_sites_and_neighbouring_positions_know_nothing_of_each_other() {
        const COUNT: usize = 200_000;
        let base = Dropout::new(0.5, 1, Mode::Train).unwrap();
        let uses = [base, Dropout { seed: 2, ..base }, base.site(0), base.site(1), base.site(2), base.site(0).site(1)];
        let masks = uses.map(|dropout| kept(dropout, 0, COUNT + 64));
        // Two fair coins agree half the time; five standard deviations of a share of COUNT draws.
        let check = |a: &[bool], b: &[bool], what: &str| {
            let agreed = a.iter().zip(b).take(COUNT).filter(|(a, b)| a == b).count() as f64 / COUNT as f64;
            assert!((agreed - 0.5).abs() < 5.0 * 0.5 / (COUNT as f64).sqrt(), "{what}: {agreed}");
        };
        for (i, a) in masks.iter().enumerate() {
            for (j, b) in masks.iter().enumerate().skip(i + 1) {
                check(a, b, &format!("uses {i} and {j}"));
            }
            for step in [1, 2, 7, 8, 16, 64] {
                check(a, &a[step..], &format!("use {i}, {step} apart"));
            }
        }
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
