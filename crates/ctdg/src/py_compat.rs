//! Bit-identical reimplementation of Python's and NumPy's random draws, so that splits and negatives equal DyGLib's.

use rand_mt::Mt;

/// NumPy's legacy `RandomState`.
#[derive(Debug, Clone)]
pub struct NumpyRandom {
    seed: u32,
    generator: Mt,
    position: u64,
}

impl NumpyRandom {
    /// `numpy.random.RandomState(seed)`.
    #[must_use]
    pub fn new(seed: u32) -> Self {
        Self { seed, generator: Mt::new(seed), position: 0 }
    }

    /// Restarts from the seed.
    pub fn reset(&mut self) {
        *self = Self::new(self.seed);
    }

    /// Number of 32-bit outputs since the seed; with the seed, the complete state.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Sets the position, forwards or backwards. Linear in `position`, a few nanoseconds per output.
    pub fn advance_to(&mut self, position: u64) {
        if position < self.position {
            self.reset();
        }
        while self.position < position {
            self.next_u32();
        }
    }

    fn next_u32(&mut self) -> u32 {
        self.position += 1;
        self.generator.next_u32()
    }

    /// One element of `randint(0, n)`. As in NumPy, `n = 1` consumes no output.
    ///
    /// # Panics
    /// When `n` is 0.
    pub fn below(&mut self, n: u32) -> u32 {
        let largest = n.checked_sub(1).expect("n is at least 1");
        if largest == 0 {
            return 0;
        }
        let mask = u32::MAX >> largest.leading_zeros();
        loop {
            let value = self.next_u32() & mask;
            if value <= largest {
                return value;
            }
        }
    }

    /// `choice(items, k, replace=False)`: the first `k` of a permutation of all. Time O(n), whatever `k` is.
    ///
    /// # Panics
    /// When `k` exceeds the number of items, as NumPy raises, or there are more than `u32::MAX`.
    pub fn choose<T>(&mut self, items: &mut Vec<T>, k: usize) {
        assert!(k <= items.len(), "a choice of {k} out of {}", items.len());
        for last in (1..items.len()).rev() {
            let n = u32::try_from(last + 1).expect("items are counted in u32");
            items.swap(last, self.below(n) as usize);
        }
        items.truncate(k);
    }
}

/// Python's `random.Random(seed).sample(range(n), k)`.
///
/// # Panics
/// When `k` exceeds `n`, as Python raises.
#[must_use]
pub fn sample(seed: u32, n: usize, k: usize) -> Vec<usize> {
    assert!(k <= n, "a sample of {k} out of {n}");
    let mut generator = Mt::new_with_key([seed]);
    let mut below = |n: usize| {
        let n = u32::try_from(n).expect("populations are counted in u32");
        let bits = u32::BITS - n.leading_zeros();
        loop {
            let value = generator.next_u32() >> (u32::BITS - bits);
            if value < n {
                return value as usize;
            }
        }
    };
    // Python uses a pool where that takes less memory than a set of selected indices.
    let mut max_pool = 21;
    if k > 5 {
        let mut power = 1;
        while power < 3 * k {
            power *= 4;
        }
        max_pool += power;
    }
    if n <= max_pool {
        let mut pool: Vec<usize> = (0..n).collect();
        let draw = |i: usize| {
            let at = below(n - i);
            let drawn = pool[at];
            pool[at] = pool[n - i - 1];
            drawn
        };
        return (0..k).map(draw).collect();
    }
    let mut taken = vec![false; n];
    let draw = |_| {
        loop {
            let at = below(n);
            if !std::mem::replace(&mut taken[at], true) {
                return at;
            }
        }
    };
    (0..k).map(draw).collect()
}

/// A CPython `set` of small non-negative integers, with CPython's iteration order.
///
/// The order follows from open addressing with short linear probes, the growth policy, and the order of insertion. DyGLib
/// samples its masked nodes from such a set.
#[derive(Debug, Clone)]
pub struct PythonSet {
    slots: Vec<Option<u32>>,
    used: usize,
}

/// Slots probed linearly after the first before jumping.
const LINEAR_PROBES: usize = 9;

impl Default for PythonSet {
    fn default() -> Self {
        Self { slots: vec![None; 8], used: 0 }
    }
}

impl PythonSet {
    /// Inserts `key` and grows the table when three fifths are used.
    pub fn insert(&mut self, key: u32) {
        if self.insert_unchecked(key) && self.used * 5 >= (self.slots.len() - 1) * 3 {
            let factor = if self.used > 50_000 { 2 } else { 4 };
            self.rebuild(self.used * factor);
        }
    }

    /// `self | other`, as Python builds it.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut union = Self::default();
        union.merge(self);
        union.merge(other);
        union
    }

    /// Keys in CPython's iteration order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.slots.iter().copied().flatten()
    }

    fn merge(&mut self, other: &Self) {
        let together = self.used + other.used;
        if together * 5 >= (self.slots.len() - 1) * 3 {
            self.rebuild(together * 2);
        }
        if self.used == 0 && self.slots.len() == other.slots.len() {
            self.clone_from(other);
            return;
        }
        for key in other.iter() {
            self.insert(key);
        }
    }

    /// Inserts `key` without growing; false if it was there.
    fn insert_unchecked(&mut self, key: u32) -> bool {
        let mask = self.slots.len() - 1;
        let hash = key as usize;
        let (mut start, mut perturb) = (hash & mask, hash);
        loop {
            let probes = if start + LINEAR_PROBES <= mask { LINEAR_PROBES } else { 0 };
            for slot in &mut self.slots[start..=start + probes] {
                match slot {
                    Some(present) if *present == key => return false,
                    Some(_) => {}
                    None => {
                        *slot = Some(key);
                        self.used += 1;
                        return true;
                    }
                }
            }
            perturb >>= 5;
            start = (start.wrapping_mul(5).wrapping_add(1).wrapping_add(perturb)) & mask;
        }
    }

    fn rebuild(&mut self, more_than: usize) {
        let mut size = 8;
        while size <= more_than {
            size *= 2;
        }
        let old = std::mem::replace(&mut self.slots, vec![None; size]);
        self.used = 0;
        for key in old.into_iter().flatten() {
            self.insert_unchecked(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn randint_equals_numpy() {
        // numpy.random.RandomState(42).randint(0, 100, 10) and RandomState(0).randint(0, 10, 6)
        let draw = |seed, n, k| {
            let mut random = NumpyRandom::new(seed);
            (0..k).map(|_| random.below(n)).collect::<Vec<_>>()
        };
        assert_eq!(draw(42, 100, 10), [51, 92, 14, 71, 60, 20, 82, 86, 74, 74]);
        assert_eq!(draw(0, 10, 6), [5, 0, 3, 3, 7, 9]);
    }

    #[test]
    fn choice_equals_numpy() {
        // random = numpy.random.RandomState(42); random.choice(numpy.arange(n), k, replace=False) for each n, k
        let mut random = NumpyRandom::new(42);
        for (n, k, expected) in NUMPY_CHOICES {
            let mut items: Vec<u32> = (0..*n).collect();
            random.choose(&mut items, *k);
            assert_eq!(items, *expected, "{k} of {n}");
        }
    }

    #[test]
    fn restored_generator_continues_identically() {
        // Beyond the 624 words of the state; forwards from the seed and backwards from later positions.
        let mut random = NumpyRandom::new(7);
        let mut further = random.clone();
        for step in 0..2000 {
            further.below(1000);
            if step % 97 == 0 || (620..630).contains(&step) {
                let next = |mut random: NumpyRandom| (0..700).map(|_| random.below(77)).collect::<Vec<_>>();
                let mut fresh = NumpyRandom::new(7);
                for restored in [&mut fresh, &mut further] {
                    restored.advance_to(random.position());
                    assert_eq!(restored.position(), random.position());
                    assert_eq!(next(restored.clone()), next(random.clone()));
                }
                further.advance_to(random.position() + 1300);
            }
            random.below(100);
        }
        assert!(random.position() > 2000, "redraws count");
        let before = random.position();
        random.below(1);
        assert_eq!(random.position(), before, "one choice consumes no output");
        random.reset();
        assert_eq!(random.position(), 0);
    }

    #[test]
    fn sample_equals_python() {
        // random.seed(2020); random.sample(range(n), k)
        assert_eq!(sample(2020, 158, 18)[..5], PYTHON_158_18);
        assert_eq!(sample(2020, 10_000, 7), PYTHON_10000_7);
    }

    #[test]
    fn set_iteration_order_equals_cpython() {
        // list({...}) built by adding (i * i * 37) % 5003 for i in range(300), then union with range(0, 4000, 13)
        let mut left = PythonSet::default();
        for i in 0..300u32 {
            left.insert((i * i * 37) % 5003);
        }
        let mut right = PythonSet::default();
        for i in (0..4000).step_by(13) {
            right.insert(i);
        }
        let union: Vec<u32> = left.union(&right).iter().collect();
        assert_eq!(union.len(), PYTHON_SET_LEN);
        assert_eq!(union[..8], PYTHON_SET_HEAD);
        assert_eq!(checksum(&union), PYTHON_SET_SUM);
    }

    fn checksum(keys: &[u32]) -> u64 {
        keys.iter().fold(0, |sum, &key| (sum * 31 + u64::from(key)) % 1_000_000_007)
    }

    const NUMPY_CHOICES: &[(u32, usize, &[u32])] = &[
        (0, 0, &[]),
        (1, 1, &[0]),
        (2, 1, &[1]),
        (7, 0, &[]),
        (10, 4, &[0, 1, 5, 3]),
        (1000, 5, &[523, 602, 526, 31, 616]),
        (9, 9, &[2, 7, 0, 8, 1, 6, 3, 5, 4]),
    ];
    const PYTHON_158_18: [usize; 5] = [44, 118, 113, 121, 94];
    const PYTHON_10000_7: [usize; 7] = [2859, 7553, 7249, 7768, 6039, 6870, 8896];
    const PYTHON_SET_LEN: usize = 590;
    const PYTHON_SET_HEAD: [u32; 8] = [0, 1027, 2054, 4103, 2056, 3079, 1034, 3083];
    const PYTHON_SET_SUM: u64 = 868_137_234;
}
