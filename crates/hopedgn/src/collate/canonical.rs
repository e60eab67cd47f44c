//! Canonical order of sums in global HopeDGN: pairs that 2-DWL does not separate get bit-identical embeddings.
//!
//! A floating-point sum depends on the order of its terms. In the order of node numbers, two pairs that 2-DWL does not separate
//! would have embeddings that differ in their last bits. Here each row gets a key of all that its value depends on, layer by
//! layer as 2-DWL colours pairs, and the rows of a pair are sorted by their keys. Pairs of one colour are then sums of the same
//! terms in the same order, and a difference of any size is one that 2-DWL sees. If the keys of two rows collide, values stay
//! correct; only bit-identity is lost.

use hopedgn_tensor::Ragged;

/// A layer before sorting; see [`PairLayer`](super::PairLayer).
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) own: Vec<u32>,
    /// The pairs `(u, w)` and `(v, w)`, and their view.
    pub(super) rows: Vec<[u32; 3]>,
    pub(super) lengths: Vec<usize>,
}

/// Sorts the rows of each pair of `layers`, the first layer first. `start` are the keys of the pairs below it, `views` those of
/// the views.
pub(super) fn sort(layers: &mut [Draft], start: Vec<u64>, views: &[u64]) {
    let mut below = start;
    for layer in layers {
        let groups = Ragged::from_lengths(layer.lengths.iter().copied());
        let mut keyed: Vec<(u64, [u32; 3])> = layer
            .rows
            .iter()
            .map(|&row| {
                let [first, second, view] = row.map(|at| at as usize);
                (key([below[first], below[second], views[view]]), row)
            })
            .collect();
        let mut keys = Vec::with_capacity(layer.own.len());
        for (pair, &own) in layer.own.iter().enumerate() {
            let rows = &mut keyed[groups.range(pair)];
            rows.sort_unstable();
            keys.push(key(std::iter::once(below[own as usize]).chain(rows.iter().map(|&(key, _)| key))));
        }
        layer.rows = keyed.into_iter().map(|(_, row)| row).collect();
        below = keys;
    }
}

/// A hash of a sequence.
pub(super) fn key(words: impl IntoIterator<Item = u64>) -> u64 {
    words.into_iter().fold(0x9e37_79b9_7f4a_7c15, |key, word| {
        let mixed = (key ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 29).wrapping_mul(0x94d0_49bb_1331_11eb).rotate_left(23)
    })
}
