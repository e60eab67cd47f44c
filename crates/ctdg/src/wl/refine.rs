//! One round of color refinement, exact by full comparison.
//!
//! Every tuple gets a 128-bit fingerprint of its terms. Tuples of one old color with different fingerprints have different
//! terms. Tuples with equal fingerprints are only *candidates*: their terms are sorted and compared in full, so a
//! collision costs time but never gives a wrong class. Only the fingerprint is stored per tuple.

use rayon::prelude::*;

use crate::wl::rule::Rule;

/// Fewest tuples per parallel task.
const TUPLES_PER_TASK: usize = 64;

/// How classes are compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Interning {
    /// By full comparison: both verdicts are certain.
    #[default]
    Exact,
    /// By 128-bit fingerprints alone, about half the work. "Separated" is certain; "not separated" could be a hash
    /// collision, which is unlikely but not excluded.
    Approximate,
}

/// A color for each tuple. Colors count from 0 in order of their first tuple.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Partition {
    pub(crate) colors: Vec<u32>,
    /// Number of tuples of each color.
    pub(crate) sizes: Vec<u32>,
}

impl Partition {
    /// The partition with these colors, which must be consecutive from 0.
    pub(crate) fn new(colors: Vec<u32>) -> Self {
        let n_classes = colors.iter().max().map_or(0, |last| *last as usize + 1);
        let mut sizes = vec![0; n_classes];
        for &color in &colors {
            sizes[color as usize] += 1;
        }
        Self { colors, sizes }
    }

    pub(crate) fn n_classes(&self) -> usize {
        self.sizes.len()
    }

    /// Whether no class can be split any further.
    pub(crate) fn is_discrete(&self) -> bool {
        self.n_classes() == self.colors.len()
    }
}

/// Sort key of a tuple: tuples of one new class are adjacent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    color: u32,
    /// Number of the class among those with the same fingerprint: 0 unless fingerprints collide.
    split: u32,
    fingerprint: [u64; 2],
    tuple: u32,
}

impl Entry {
    fn group(&self) -> (u32, u32, [u64; 2]) {
        (self.color, self.split, self.fingerprint)
    }
}

/// Splits the classes of `old` by the terms of `rule`.
pub(crate) fn refine<const N: usize>(rule: &impl Rule<N>, old: &Partition, interning: Interning) -> Partition {
    refine_masked(rule, old, interning, [u64::MAX; 2])
}

/// [`refine`] with equal fingerprints for all tuples, for tests.
#[cfg(test)]
pub(crate) fn refine_colliding<const N: usize>(rule: &impl Rule<N>, old: &Partition) -> Partition {
    refine_masked(rule, old, Interning::Exact, [0; 2])
}

/// [`refine`] with only the `mask` bits of the fingerprint, so that tests can force collisions.
fn refine_masked<const N: usize>(
    rule: &impl Rule<N>,
    old: &Partition,
    interning: Interning,
    mask: [u64; 2],
) -> Partition {
    let n_tuples = u32::try_from(old.colors.len()).expect("within the budget");
    let entry = |tuple: u32| {
        let color = old.colors[tuple as usize];
        // A class of one tuple cannot split.
        let alone = old.sizes[color as usize] == 1;
        let [a, b] = if alone { [0; 2] } else { fingerprint(rule, tuple, &old.colors) };
        Entry { color, split: 0, fingerprint: [a & mask[0], b & mask[1]], tuple }
    };
    let mut entries: Vec<Entry> = (0..n_tuples).into_par_iter().with_min_len(TUPLES_PER_TASK).map(entry).collect();
    entries.par_sort_unstable();
    if interning == Interning::Exact {
        let candidates = entries.par_chunk_by_mut(|a, b| a.group() == b.group()).filter(|run| run.len() > 1);
        let packing = rule.n_high().map(|n_high| Packing::new(old.n_classes(), n_high));
        if let Some(packing) = packing.filter(|packing| packing.fits::<N>()) {
            candidates.for_each(|run| compare_in_full(rule, run, &old.colors, |key| packing.pack(key)));
        } else {
            candidates.for_each(|run| compare_in_full(rule, run, &old.colors, |key| key));
        }
    }
    numbered(&entries)
}

/// Gives each class a number in order of its first tuple.
fn numbered(entries: &[Entry]) -> Partition {
    let mut classes: Vec<(u32, u32, u32)> = Vec::new();
    let mut start = 0;
    for class in entries.chunk_by(|a, b| a.group() == b.group()) {
        let len = u32::try_from(class.len()).expect("tuples are counted in 32 bits");
        classes.push((class[0].tuple, start, len));
        start += len;
    }
    classes.par_sort_unstable();
    let (mut colors, mut sizes) = (vec![0; entries.len()], Vec::with_capacity(classes.len()));
    for (color, (_, start, len)) in (0..).zip(classes) {
        sizes.push(len);
        for entry in &entries[start as usize..][..len as usize] {
            colors[entry.tuple as usize] = color;
        }
    }
    Partition { colors, sizes }
}

/// Packs keys into one word if colors and sequences are few: sorting is then several times faster.
#[derive(Debug, Clone, Copy)]
struct Packing {
    low_bits: u32,
    high_bits: u32,
}

impl Packing {
    /// For words with halves below `n_low` and `n_high`.
    fn new(n_low: usize, n_high: usize) -> Self {
        let bits = |n: usize| usize::BITS - n.saturating_sub(1).leading_zeros();
        Self { low_bits: bits(n_low), high_bits: bits(n_high) }
    }

    fn fits<const N: usize>(self) -> bool {
        (self.low_bits + self.high_bits) as usize * N <= 64
    }

    /// Different keys stay different.
    fn pack<const N: usize>(self, key: [u64; N]) -> u64 {
        let packed_word = |word: u64| (word & u64::from(u32::MAX)) | ((word >> 32) << self.low_bits);
        let width = self.low_bits + self.high_bits;
        key.into_iter().fold(0u64, |packed, word| packed.checked_shl(width).unwrap_or(0) | packed_word(word))
    }
}

/// Groups the tuples of `run` by equal terms and numbers the groups in `split`, in order of first tuple. `form` is an
/// injective map of the keys.
fn compare_in_full<const N: usize, T: Ord + Send + Sync>(
    rule: &impl Rule<N>,
    run: &mut [Entry],
    colors: &[u32],
    form: impl Fn([u64; N]) -> T + Sync,
) {
    let sorted_terms = |tuple: u32, terms: &mut Vec<T>| {
        terms.clear();
        rule.terms(tuple as usize, colors, |_, key| terms.push(form(key)));
        terms.sort_unstable();
    };
    let mut rest = 0;
    for split in 0.. {
        let mut reference = Vec::new();
        sorted_terms(run[rest].tuple, &mut reference);
        let same = |terms: &mut Vec<T>, entry: &Entry| {
            sorted_terms(entry.tuple, terms);
            *terms == reference
        };
        let candidates = run[rest..].par_iter().with_min_len(TUPLES_PER_TASK);
        if candidates.clone().map_init(Vec::new, same).all(|same| same) {
            for entry in &mut run[rest..] {
                entry.split = split;
            }
            return;
        }
        let flags: Vec<bool> = candidates.map_init(Vec::new, same).collect();
        // A stable sort keeps the order of tuples within each half.
        let mut marked: Vec<(bool, Entry)> = flags.into_iter().zip(run[rest..].iter().copied()).collect();
        marked.sort_by_key(|&(same, _)| !same);
        for (slot, (same, entry)) in run[rest..].iter_mut().zip(&marked) {
            *slot = Entry { split: split + u32::from(!same), ..*entry };
        }
        rest += marked.iter().filter(|(same, _)| *same).count();
    }
}

/// The sum of the terms' hashes, independent of their order.
fn fingerprint<const N: usize>(rule: &impl Rule<N>, tuple: u32, colors: &[u32]) -> [u64; 2] {
    let mut sum = [0u64; 2];
    rule.terms(tuple as usize, colors, |_, key| {
        let hash = hash(key);
        sum[0] = sum[0].wrapping_add(hash[0]);
        sum[1] = sum[1].wrapping_add(hash[1]);
    });
    sum
}

/// Two independent hashes of a key. Each step is a bijection of its state for a fixed word (multiplications by odd
/// numbers and shifted exclusive ors), so keys of one word never collide.
fn hash<const N: usize>(key: [u64; N]) -> [u64; 2] {
    const ODD: [u64; 4] = [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93, 0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db];
    let mut state = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344];
    for word in key {
        for (lane, state) in state.iter_mut().enumerate() {
            *state = (*state ^ word).wrapping_mul(ODD[2 * lane]);
            *state = (*state ^ *state >> 32).wrapping_mul(ODD[2 * lane + 1]);
            *state ^= *state >> 29;
        }
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventStream;
    use crate::wl::graph::{Graph, GraphOptions};
    use crate::wl::joint::Joint;
    use crate::wl::rule::{Folklore, Neighbors};

    fn path(n: u32) -> Graph {
        let events = (1..n).map(|node| (node - 1, node, f64::from(node % 3)));
        let mut events: Vec<_> = events.collect();
        events.sort_by(|a, b| a.2.total_cmp(&b.2));
        Graph::new(&EventStream::from_events(events).unwrap(), &GraphOptions::default()).unwrap()
    }

    fn stable<const N: usize>(rule: &impl Rule<N>, n_tuples: usize, mask: [u64; 2]) -> Partition {
        let mut partition = Partition::new(vec![0; n_tuples]);
        loop {
            let next = refine_masked(rule, &partition, Interning::Exact, mask);
            if next.n_classes() == partition.n_classes() {
                return next;
            }
            partition = next;
        }
    }

    #[test]
    fn colliding_fingerprints_never_merge_classes() {
        let (a, b) = (path(7), path(8));
        let joint = Joint::new(&[&a, &b]).unwrap();
        let nodes = Neighbors::new(&joint);
        let pairs = Folklore::<2>::new(&joint);
        for mask in [[0, 0], [1, 0], [0, 7]] {
            assert_eq!(stable(&nodes, 15, mask), stable(&nodes, 15, [u64::MAX; 2]));
            assert_eq!(stable(&pairs, 49 + 64, mask), stable(&pairs, 49 + 64, [u64::MAX; 2]));
        }
    }

    #[test]
    fn packing_is_injective() {
        let packing = Packing::new(5, 3);
        assert!(packing.fits::<4>() && !Packing::new(1 << 20, 1 << 20).fits::<2>());
        let words: Vec<u64> = (0..5).flat_map(|low| (0..3).map(move |high| low | high << 32)).collect();
        let keys = words.iter().flat_map(|&first| words.iter().map(move |&second| [first, second]));
        let mut packed: Vec<u64> = keys.map(|key| packing.pack(key)).collect();
        packed.sort_unstable();
        packed.dedup();
        assert_eq!(packed.len(), words.len() * words.len());
        assert_eq!(Packing::new(1, 1).pack([0; 2]), 0, "one color and no sequence take no room");
        assert_eq!(Packing::new(1 << 32, 1 << 32).pack([u64::MAX]), u64::MAX);
    }

    #[test]
    fn classes_are_numbered_by_first_tuple() {
        let graph = path(5);
        let joint = Joint::new(&[&graph]).unwrap();
        let partition = stable(&Neighbors::new(&joint), 5, [u64::MAX; 2]);
        let mut seen = 0;
        for color in partition.colors {
            assert!(color <= seen, "a color appears before a smaller one");
            seen = seen.max(color + 1);
        }
    }
}
