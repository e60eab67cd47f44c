//! Dropout as a value: a rate, a seed, and whether the model is being trained.

mod cpu;
mod cuda;
#[cfg(test)]
mod tests;

use crate::tape::dispatch;
use crate::{Error, Result, Tape, Var};
pub(crate) use cuda::KERNELS;

/// What a forward pass is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Training: dropout is active.
    Train,
    /// Evaluation: dropout is the identity.
    Evaluate,
}

/// One use of dropout: each value is zeroed with probability `rate`, the others are multiplied by 1 / (1 − rate).
///
/// The mask is a function of the seed and the position of a value, so a pass can be repeated exactly, on any number of
/// threads and on any device. Give every use in a pass, and every pass, its own seed.
///
/// ```
/// use hopedgn_tensor::{Dropout, Mode, Parameters, Shape, Tape, Tensor};
///
/// let parameters = Parameters::default();
/// let mut tape = Tape::new(&parameters);
/// let x = tape.input(Tensor::full(Shape::Matrix(10, 10), 1.0));
/// let dropout = Dropout::new(0.5, 7, Mode::Train)?;
/// let y = tape.dropout(x, dropout);
/// assert!(tape.read(y)?.iter().all(|&y| y == 0.0 || y == 2.0));
/// // A second layer takes the same rate and another mask.
/// let z = tape.dropout(x, dropout.site(1));
/// assert_ne!(tape.read(y)?, tape.read(z)?);
/// // In evaluation nothing is dropped.
/// assert_eq!(Dropout::new(0.5, 7, Mode::Evaluate)?, Dropout::NONE);
/// # Ok::<(), hopedgn_tensor::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dropout {
    /// The probability of a zero.
    rate: f32,
    seed: u64,
}

impl Dropout {
    /// No dropout.
    pub const NONE: Self = Self { rate: 0.0, seed: 0 };

    /// Dropout of `rate` in `[0, 1)` in training, none in evaluation.
    ///
    /// # Errors
    /// If `rate` is outside `[0, 1)`.
    pub fn new(rate: f32, seed: u64, mode: Mode) -> Result<Self> {
        if !(0.0..1.0).contains(&rate) {
            return Err(Error::Rate { rate });
        }
        Ok(if mode == Mode::Train { Self { rate, seed } } else { Self::NONE })
    }

    pub(crate) fn is_active(self) -> bool {
        self.rate > 0.0
    }

    /// The mask as kernels read it: two keys, the threshold, the factor of kept values. All zero without dropout.
    pub(crate) fn mask_words(self) -> [u32; 4] {
        if !self.is_active() {
            return [0; 4];
        }
        let Mask { keys: [low, high], threshold, scale } = Mask::new(self);
        [low, high, threshold, scale.to_bits()]
    }

    /// The same rate with another seed, for use `index` of several that share this one.
    #[must_use]
    pub fn site(self, index: u64) -> Self {
        Self { seed: mix(self.seed, index), ..self }
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

/// The dropout mask: 16 bits of a hash of the position are compared with the rate.
///
/// Positions are taken in blocks of 16. The lower half of hash `j` of a block belongs to position `j`, the upper half to
/// position `j + 8`, so that eight hashes in one vector register need no shuffle.
struct Mask {
    keys: [u32; 2],
    threshold: u32,
    scale: f32,
}

impl Mask {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "halves of a hash; a rate times 2¹⁶")]
    fn new(dropout: Dropout) -> Self {
        let key = mix(dropout.seed, 0);
        let threshold = (f64::from(dropout.rate) * 65536.0).round() as u32;
        Self { keys: [key as u32, (key >> 32) as u32], threshold, scale: 1.0 / (1.0 - dropout.rate) }
    }

    /// A hash of 32 bits in two rounds, each with its own key. It repeats after 2³² blocks of positions.
    #[expect(clippy::inline_always, reason = "must be inlined into the loop, see `vector`")]
    #[inline(always)]
    pub(super) fn hash(&self, i: u32) -> u32 {
        let x = i ^ self.keys[0];
        let x = (x ^ (x >> 16)).wrapping_mul(0x7FEB_352D) ^ self.keys[1];
        let x = (x ^ (x >> 15)).wrapping_mul(0x846C_A68B);
        x ^ (x >> 16)
    }

    #[expect(clippy::inline_always, reason = "must be inlined into the loop, see `vector`")]
    #[inline(always)]
    pub(super) fn factor(&self, bits: u32) -> f32 {
        if bits < self.threshold { 0.0 } else { self.scale }
    }

    /// The factor of one position.
    #[expect(clippy::cast_possible_truncation, reason = "see `hash`")]
    pub(super) fn at(&self, position: usize) -> f32 {
        let hash = self.hash((position / 16 * 8 + position % 8) as u32);
        self.factor(if position % 16 < 8 { hash & 0xFFFF } else { hash >> 16 })
    }
}

impl Tape<'_> {
    /// `x` after `dropout`; `x` itself where that is inactive.
    pub fn dropout(&mut self, x: Var, dropout: Dropout) -> Var {
        if !dropout.is_active() {
            return x;
        }
        dispatch!(self.dropout(x, dropout))
    }
}
