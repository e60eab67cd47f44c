//! Named, independent, forkable random streams of one seed.
//!
//! Everything random in this project is drawn from a [`RandomStream`] with a name (`"sample"`, `"negative-eval"`, …), so
//! that more draws in one place do not change another. A stream can be [forked](RandomStream::fork) by an index, so that
//! each query, batch or event has its own generator and results depend neither on the number of threads nor on the
//! order of work.
//!
//! # Why not the `rand` crate
//! Its sampling functions may return other values in another release, and a stream here must fork in a few nanoseconds
//! without drawing from its parent. The definition below has no dependency and is fixed by tests; changing it is a
//! breaking change.
//!
//! # Definition
//! All arithmetic on integers is modulo 2⁶⁴. `mix` is the output function of `SplitMix64` and `γ` its increment
//! 0x9E3779B97F4A7C15.
//! - The *key* of `named(seed, name)`: start with `mix(seed + γ)`, then for each byte `b` of the name `k ← mix((k ^ b) +
//!   γ)`.
//! - The key of `fork(i)`: `mix(mix(k ^ F) + (i + 1)·γ)` with F = 0xD1B54A32D192ED03. It depends on the parent's key only,
//!   never on how much the parent has drawn; forks of one stream all have different keys.
//! - The generator is xoshiro256++; its four words are the first four outputs of `SplitMix64` started at the key.
//! - Floating-point draws use only `+ − × ÷ √`, which IEEE 754 rounds correctly, so they are equal on every machine. The
//!   logarithm is therefore implemented here.

const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;
const FORK: u64 = 0xD1B5_4A32_D192_ED03;

/// A random number generator, determined by its seed, its name and its forks.
///
/// ```
/// use ctdg::random::RandomStream;
///
/// let parent = RandomStream::named(7, "negative-eval");
/// let mut a = parent.fork(3);
/// let mut b = RandomStream::named(7, "negative-eval").fork(3);
/// assert_eq!(a.next_u64(), b.next_u64());
/// assert!(a.below(10) < 10);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RandomStream {
    key: u64,
    state: [u64; 4],
}

impl RandomStream {
    /// The stream called `name` of `seed`.
    #[must_use]
    pub fn named(seed: u64, name: &str) -> Self {
        Self::from_key(Self::name_key(seed, name.as_bytes()))
    }

    /// The `index`-th fork. It does not depend on what has been drawn from `self` and does not change it.
    #[must_use]
    pub fn fork(&self, index: u64) -> Self {
        let step = index.wrapping_add(1).wrapping_mul(GAMMA);
        Self::from_key(mix(mix(self.key ^ FORK).wrapping_add(step)))
    }

    /// The key of the stream called `name` of `seed`: 64 bits that stand for the name.
    pub(crate) fn name_key(seed: u64, name: &[u8]) -> u64 {
        let start = mix(seed.wrapping_add(GAMMA));
        name.iter().fold(start, |key, byte| mix((key ^ u64::from(*byte)).wrapping_add(GAMMA)))
    }

    fn from_key(key: u64) -> Self {
        let word = |i: u64| mix(key.wrapping_add(GAMMA.wrapping_mul(i)));
        Self { key, state: [word(1), word(2), word(3), word(4)] }
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// 32 random bits: the upper half of [`next_u64`](Self::next_u64).
    pub fn next_u32(&mut self) -> u32 {
        let [.., a, b, c, d] = self.next_u64().to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }

    /// A uniform integer in `0..n` (Lemire's multiplication with rejection).
    ///
    /// # Panics
    /// When `n` is 0.
    pub fn below(&mut self, n: u32) -> u32 {
        assert!(n > 0, "n must be positive");
        let (mut low, mut high) = self.next_u32().carrying_mul(n, 0);
        if low < n {
            let threshold = n.wrapping_neg() % n;
            while low < threshold {
                (low, high) = self.next_u32().carrying_mul(n, 0);
            }
        }
        high
    }

    /// A uniform integer in `0..n`, for an `n` that may not fit 32 bits.
    ///
    /// # Panics
    /// When `n` is 0.
    pub fn below_u64(&mut self, n: u64) -> u64 {
        assert!(n > 0, "n must be positive");
        let (mut low, mut high) = self.next_u64().carrying_mul(n, 0);
        if low < n {
            let threshold = n.wrapping_neg() % n;
            while low < threshold {
                (low, high) = self.next_u64().carrying_mul(n, 0);
            }
        }
        high
    }

    /// A uniform index into a slice of `len` elements.
    ///
    /// # Panics
    /// When `len` is 0.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below_u64(len as u64)).expect("below a usize")
    }

    /// A uniform number in [0, 1), a multiple of 2⁻⁵³.
    pub fn unit(&mut self) -> f64 {
        const STEP: f64 = 1.0 / (1_u64 << 53) as f64;
        (self.next_u64() >> 11) as f64 * STEP
    }

    /// `true` with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// An exponentially distributed number with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * ln(1.0 - self.unit())
    }

    /// A standard normal number (Marsaglia's polar method; the second number of each pair is discarded).
    pub fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * (-2.0 * ln(square) / square).sqrt();
            }
        }
    }

    /// Shuffles `items` uniformly (Fisher–Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.index(last + 1));
        }
    }
}

/// The output function of `SplitMix64`: a bijection of 64-bit words with full avalanche.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Natural logarithm of a positive normal number, from correctly rounded operations only.
///
/// With x = m·2ᵉ and m near 1, ln m = 2·artanh s for s = (m − 1)/(m + 1), and |s| ≤ 0.172 makes twelve terms of the series
/// enough.
fn ln(x: f64) -> f64 {
    const FRACTION: u64 = (1 << 52) - 1;
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as f64 - 1023.0;
    let mut m = f64::from_bits((bits & FRACTION) | (1023 << 52));
    if m > std::f64::consts::SQRT_2 {
        m *= 0.5;
        exponent += 1.0;
    }
    let s = (m - 1.0) / (m + 1.0);
    let square = s * s;
    let series = (0..12_u32).rev().fold(0.0, |sum, k| sum * square + 1.0 / f64::from(2 * k + 1));
    2.0 * s * series + exponent * std::f64::consts::LN_2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn building_blocks_give_their_published_outputs() {
        // SplitMix64 started at 1234567, and xoshiro256++ started at the words 1, 2, 3, 4.
        assert_eq!(mix(1_234_567_u64.wrapping_add(GAMMA)), 6_457_827_717_110_365_317);
        assert_eq!(mix(1_234_567_u64.wrapping_add(GAMMA.wrapping_mul(2))), 3_203_168_211_198_807_973);
        let mut stream = RandomStream { key: 0, state: [1, 2, 3, 4] };
        let first: Vec<u64> = (0..4).map(|_| stream.next_u64()).collect();
        assert_eq!(first, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
    }

    #[test]
    fn definition_is_fixed() {
        // From an independent implementation of the definition above, in Python.
        let mut stream = RandomStream::named(0, "sample");
        assert_eq!([stream.next_u64(), stream.next_u64()], [0xFB10_72E0_1C92_0103, 0xAEA0_F444_748D_2044]);
        let mut fork = RandomStream::named(2024, "negative-eval").fork(5);
        assert_eq!([fork.next_u64(), fork.next_u64()], [0x9856_E20A_95AF_14F6, 0xCDD4_FAF4_5946_8A7D]);
    }

    #[test]
    fn names_seeds_and_forks_all_differ() {
        let firsts = [
            RandomStream::named(0, ""),
            RandomStream::named(1, ""),
            RandomStream::named(0, "a"),
            RandomStream::named(0, "b"),
            RandomStream::named(0, "ab"),
            RandomStream::named(0, "ba"),
            RandomStream::named(0, "a").fork(0),
            RandomStream::named(0, "a").fork(1),
            RandomStream::named(0, "a").fork(0).fork(0),
        ]
        .map(|mut stream| stream.next_u64());
        for (i, first) in firsts.iter().enumerate() {
            assert!(!firsts[..i].contains(first), "stream {i} repeats an earlier one");
        }
    }

    #[test]
    fn drawing_does_not_change_forks() {
        let mut parent = RandomStream::named(3, "events");
        let before = parent.fork(9);
        parent.next_u64();
        assert_eq!(parent.fork(9), before);
    }

    #[test]
    fn bounded_integers_are_uniform() {
        // Six cells of 10 000 expected each: the standard deviation of one is 91.
        let mut stream = RandomStream::named(0, "dice");
        let (mut narrow, mut wide) = ([0_u32; 6], [0_u32; 6]);
        for _ in 0..60_000 {
            narrow[stream.below(6) as usize] += 1;
            wide[stream.index(6)] += 1;
        }
        for count in narrow.into_iter().chain(wide) {
            assert!(count.abs_diff(10_000) < 500, "{narrow:?} {wide:?}");
        }
        assert_eq!((stream.below(1), stream.below_u64(1)), (0, 0));
    }

    #[test]
    fn bound_of_three_quarters_of_the_range_is_unbiased() {
        // A plain remainder of 32 bits would put half of the draws, not a third, below 2³⁰.
        let mut stream = RandomStream::named(1, "dice");
        let n = 3 << 30;
        let low_third = (0..30_000).filter(|_| stream.below(n) < 1 << 30).count();
        assert!(low_third.abs_diff(10_000) < 500, "{low_third}");
    }

    #[test]
    fn continuous_draws_have_their_moments() {
        let mut stream = RandomStream::named(0, "moments");
        let n = 200_000;
        let mean = |draw: &mut dyn FnMut() -> f64| (0..n).map(|_| draw()).sum::<f64>() / f64::from(n);
        assert!((mean(&mut || stream.unit()) - 0.5).abs() < 0.005);
        assert!((mean(&mut || stream.exponential(3.0)) - 3.0).abs() < 0.05);
        assert!(mean(&mut || stream.normal()).abs() < 0.01);
        assert!((mean(&mut || stream.normal().powi(2)) - 1.0).abs() < 0.02);
        assert!((mean(&mut || f64::from(u8::from(stream.chance(0.2)))) - 0.2).abs() < 0.005);
    }

    #[test]
    fn the_logarithm_agrees_with_the_platform() {
        let mut stream = RandomStream::named(0, "ln");
        for _ in 0..10_000 {
            let x = 1.0 - stream.unit();
            assert!((ln(x) - x.ln()).abs() <= 4.0 * f64::EPSILON * x.ln().abs().max(0.5), "ln({x})");
        }
        assert!(ln(1.0).abs() < f64::EPSILON);
        assert!((ln(f64::MIN_POSITIVE) - f64::MIN_POSITIVE.ln()).abs() < 1e-12);
    }

    #[test]
    fn shuffle_reaches_every_order() {
        let mut stream = RandomStream::named(0, "shuffle");
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..6_000 {
            let mut items = [0, 1, 2];
            stream.shuffle(&mut items);
            *counts.entry(items).or_insert(0_u32) += 1;
        }
        assert_eq!(counts.len(), 6);
        assert!(counts.values().all(|count| count.abs_diff(1_000) < 200), "{counts:?}");
    }
}
