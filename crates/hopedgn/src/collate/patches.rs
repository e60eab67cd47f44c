//! Input of HopeDGN and DyGFormer: the tokens of both nodes of each pair, in patches.
//!
//! A token is the node itself or one of its events. Shapes: `B` pairs, `T` tokens, `S` patches of `P` tokens, `R` distinct
//! nodes within the pairs, `Dn`, `De` widths of node and edge features. The last patch of a side may be shorter than `P`: its
//! missing places are zero.

use std::ops::Range;
use std::sync::Arc;

use ctdg::event::{EventId, NodeId};
use ctdg::mite::{PairQuery, PairTokens, Side, TimePrecision};
use ctdg::store::Store;
use hopedgn_tensor::{Indices, Ragged, Tensor};

use super::relations::RelationCollator;
use super::{FeatureTables, MiteIntervals, Normaliser, Padding, RelationInput, Rows, SIDES, rows_of, sides_of};
use crate::Result;
use crate::fmt::narrow;

/// How tokens are laid out in patches.
///
/// ```
/// use hopedgn::collate::{Normaliser, Padding, PatchLayout};
///
/// let layout = PatchLayout { patch: 2, mite: Some(Normaliser::Log1p), ..PatchLayout::default() };
/// assert_eq!(layout.padding, Padding::None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatchLayout {
    /// Tokens per patch, `P`; at least 1.
    pub patch: usize,
    /// Whether sides are padded to the longest of the batch.
    pub padding: Padding,
    /// Whether the features of source and destination are concatenated to those of each token's node.
    pub with_roots: bool,
    /// Whether the input has co-occurrence counts: [`PairInput::counts`].
    pub with_counts: bool,
    /// Whether the input has [`PairInput::directions`].
    pub with_directions: bool,
    /// How MITE is scaled; nothing for a model that does not read it.
    pub mite: Option<Normaliser>,
    /// How times since meetings of tokens are rounded; nothing for a model that does not read relations.
    pub relations: Option<TimePrecision>,
}

impl Default for PatchLayout {
    fn default() -> Self {
        Self {
            patch: 1,
            padding: Padding::None,
            with_roots: false,
            with_counts: false,
            with_directions: false,
            mite: None,
            relations: None,
        }
    }
}

/// What a model reads of `B` pairs as tokens in patches.
///
/// ```
/// use hopedgn::{collate::PairInput, tensor::{Ragged, Tensor}};
///
/// // One pair: the source with two events, the destination without.
/// let ages = Tensor::matrix(4, 1, vec![0.0, 3.0, 1.0, 0.0])?.into();
/// let (pairs, sides) = (Ragged::from_lengths([4]), Ragged::from_lengths([3, 1]));
/// # let (nodes, edges, directions, mite, relations, counts) = (None, None, None, None, None, None);
/// # let (places, is_padded) = (None, false);
/// let rows = vec![0, 1, 1, 2].into(); // both events are with the same node
/// let input = PairInput {
///     pairs, sides, ages, nodes, edges, directions, mite, relations, counts, rows, places, is_padded,
/// };
/// assert_eq!(input.sides.ranges().next(), Some(0..3));
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct PairInput {
    /// The patches of each pair, source first: `B` sequences over `S` rows.
    pub pairs: Ragged,
    /// The patches of each side: `2B` sequences over the same rows.
    pub sides: Ragged,
    /// `[T, 1]`: query time minus event time, 0 for the node itself.
    pub ages: Arc<Tensor>,
    /// `[T, Dn]`: features of the token's node; with [`PatchLayout::with_roots`] `[T, 3·Dn]`, followed by source and destination.
    pub nodes: Option<Rows>,
    /// `[T, De]`: features of the token's event, zeros for the node itself.
    pub edges: Option<Rows>,
    /// `[T, 3]`, see [`N_DIRECTIONS`]: 1 for an event from the node, −1 for one to it, 0 for the node itself; 1 for the source's side, −1
    /// for the destination's; ln(1 + Δt) / 10.
    pub directions: Option<Arc<Tensor>>,
    /// MITE of `R` nodes; with DyGLib's padding of one more, for padding.
    pub mite: Option<MiteIntervals>,
    /// Relations among the patches of each pair.
    pub relations: Option<RelationInput>,
    /// `[2R, 1]`: how often each node is among the tokens of the source, and of the destination.
    pub counts: Option<Arc<Tensor>>,
    /// `[T]`: the node of each token, a row of [`PairInput::mite`] and [`PairInput::counts`]; with DyGLib's padding `[S·P]`,
    /// that of each place.
    pub rows: Indices,
    /// `[T]`: the place of each token among the `S·P`; nothing where token `i` is at place `i`.
    pub places: Option<Indices>,
    /// Whether [`PairInput::rows`] covers padding: DyGLib's.
    pub is_padded: bool,
}

/// Columns of [`PairInput::directions`].
pub const N_DIRECTIONS: usize = 3;

/// Divides ln(1 + Δt) in [`PairInput::directions`], so that intervals from seconds to years are of order 1.
const LOG_AGE_SCALE: f32 = 10.0;

/// Patches per side that all pairs of a batch are padded to.
pub(crate) type PaddedTo = [usize; 2];

/// Builds the [`PairInput`] of `pairs` of `tokens`.
pub(crate) struct PatchCollator<'a> {
    pub(crate) layout: PatchLayout,
    pub(crate) tables: &'a FeatureTables,
    pub(crate) store: &'a Store,
    pub(crate) tokens: &'a PairTokens,
    /// The query of each pair of `tokens`; read for relations.
    pub(crate) queries: &'a [PairQuery],
    /// For each pair, events that count as not in the store; empty if there are none.
    pub(crate) left_out: &'a [&'a [EventId]],
    pub(crate) pairs: Range<usize>,
    /// With [`Padding::Dyglib`] only.
    pub(crate) padded_to: Option<PaddedTo>,
}

impl PatchCollator<'_> {
    pub(crate) fn run(&self) -> Result<PairInput> {
        let PatchLayout { patch, padding, with_counts, with_directions, mite, relations, .. } = self.layout;
        let all = self.all_tokens();
        let sides = self.sides();
        let lengths: Vec<usize> = sides.ranges().map(|side| side.len()).collect();
        let pairs = Ragged::from_lengths(lengths.chunks_exact(2).map(|pair| pair[0] + pair[1]));
        let is_padded = padding == Padding::Dyglib;
        let places = (patch > 1 || is_padded).then(|| self.places(&sides));
        let rows = if is_padded { self.rows_of_places(&sides) } else { self.rows_of_tokens() };
        Ok(PairInput {
            ages: Tensor::matrix(all.len(), 1, self.tokens.ages()[all].to_vec())?.into(),
            nodes: self.tables.node.as_ref().map(|table| self.nodes(table)),
            edges: self.tables.edge.as_ref().map(|table| self.edges(table)),
            directions: with_directions.then(|| self.directions()).transpose()?,
            mite: MiteIntervals::new(mite, self.tokens, self.all_rows(), is_padded)?,
            counts: with_counts.then(|| self.counts(is_padded)).transpose()?,
            relations: relations.map(|precision| self.relations(precision, &pairs, &sides)).transpose()?,
            pairs,
            sides,
            rows,
            places,
            is_padded,
        })
    }

    fn relations(&self, precision: TimePrecision, pairs: &Ragged, sides: &Ragged) -> Result<RelationInput> {
        let Self { store, tokens, queries, left_out, .. } = *self;
        let collator = RelationCollator { store, tokens, queries, left_out, precision, patch: self.layout.patch };
        collator.run(self.pairs.clone(), pairs, sides)
    }

    fn all_tokens(&self) -> Range<usize> {
        if self.pairs.is_empty() {
            return 0..0;
        }
        self.tokens.tokens(self.pairs.start, Side::Src).start..self.tokens.tokens(self.pairs.end - 1, Side::Dst).end
    }

    fn all_rows(&self) -> Range<usize> {
        rows_of(self.tokens, &self.pairs)
    }

    fn each_side(&self) -> impl Iterator<Item = (usize, Side)> + use<> {
        sides_of(&self.pairs)
    }

    fn sides(&self) -> Ragged {
        let length = |(pair, side): (usize, Side)| match self.padded_to {
            Some(padded_to) => padded_to[side as usize],
            None => self.tokens.tokens(pair, side).len().div_ceil(self.layout.patch),
        };
        Ragged::from_lengths(self.each_side().map(length))
    }

    /// The place of each token.
    fn places(&self, sides: &Ragged) -> Indices {
        let mut places = Vec::with_capacity(self.all_tokens().len());
        for ((pair, side), patches) in self.each_side().zip(sides.ranges()) {
            let first = narrow(patches.start * self.layout.patch);
            places.extend(first..first + narrow(self.tokens.tokens(pair, side).len()));
        }
        places.into()
    }

    fn rows_of_tokens(&self) -> Indices {
        let first = narrow(self.all_rows().start);
        self.tokens.rows()[self.all_tokens()].iter().map(|row| row - first).collect()
    }

    /// Padding has a row of its own, the last, without intervals.
    fn rows_of_places(&self, sides: &Ragged) -> Indices {
        let (first, empty) = (narrow(self.all_rows().start), narrow(self.all_rows().len()));
        let mut rows = Vec::with_capacity(sides.total() * self.layout.patch);
        for ((pair, side), patches) in self.each_side().zip(sides.ranges()) {
            rows.extend(self.tokens.rows()[self.tokens.tokens(pair, side)].iter().map(|row| row - first));
            rows.resize(patches.end * self.layout.patch, empty);
        }
        rows.into()
    }

    /// Counts tokens, whichever events MITE counts.
    fn counts(&self, with_empty: bool) -> Result<Arc<Tensor>> {
        let n_rows = self.all_rows().len() + usize::from(with_empty);
        let mut counts = vec![0.0_f32; 2 * n_rows];
        for (pair, side) in self.each_side() {
            for &row in &self.tokens.rows()[self.tokens.tokens(pair, side)] {
                counts[2 * (row as usize - self.all_rows().start) + side as usize] += 1.0;
            }
        }
        Ok(Tensor::matrix(counts.len(), 1, counts)?.into())
    }

    fn nodes(&self, table: &Arc<Tensor>) -> Rows {
        let none = table.rows() - 1;
        let row = |node: NodeId| narrow(node.index().min(none));
        if !self.layout.with_roots {
            let rows = self.tokens.nodes()[self.all_tokens()].iter().map(|&node| row(node)).collect();
            return Rows::choose(table, rows, 1);
        }
        let mut rows = Vec::with_capacity(3 * self.all_tokens().len());
        for pair in self.pairs.clone() {
            let [src, dst] = SIDES.map(|side| self.tokens.tokens(pair, side));
            let roots = [src.start, dst.start].map(|root| row(self.tokens.nodes()[root]));
            for &node in &self.tokens.nodes()[src.start..dst.end] {
                rows.extend([row(node), roots[0], roots[1]]);
            }
        }
        Rows::choose(table, rows, 3)
    }

    fn directions(&self) -> Result<Arc<Tensor>> {
        let mut log_ages = self.tokens.ages()[self.all_tokens()].to_vec();
        hopedgn_tensor::ln_1p(&mut log_ages);
        let mut rows = Vec::with_capacity(N_DIRECTIONS * log_ages.len());
        let mut log_age = log_ages.into_iter().map(|log_age| log_age / LOG_AGE_SCALE);
        for (pair, side) in self.each_side() {
            let of_side = if side == Side::Src { 1.0 } else { -1.0 };
            let root = self.tokens.nodes()[self.tokens.tokens(pair, side).start];
            let direction = |event| if self.store.is_source(root, event) { 1.0 } else { -1.0 };
            let of_events = self.tokens.events(pair, side).iter().map(direction);
            for (direction, log_age) in std::iter::once(0.0).chain(of_events).zip(&mut log_age) {
                rows.extend([direction, of_side, log_age]);
            }
        }
        Ok(Tensor::matrix(rows.len() / N_DIRECTIONS, N_DIRECTIONS, rows)?.into())
    }

    fn edges(&self, table: &Arc<Tensor>) -> Rows {
        let none = narrow(table.rows() - 1);
        let mut rows = Vec::with_capacity(self.all_tokens().len());
        for (pair, side) in self.each_side() {
            rows.push(none);
            rows.extend(self.tokens.events(pair, side).iter().map(|event| narrow(event.index())));
        }
        Rows::choose(table, rows, 1)
    }
}

#[cfg(test)]
mod tests {
    use ctdg::event::EventStream;
    use ctdg::mite::{PairEncoder, PairEncoderConfig, PairQuery};

    use super::*;

    #[test]
    fn directions_are_those_of_the_events_seen_from_the_node() {
        let stream = EventStream::from_events([(0, 1, 1.0), (1, 0, 2.0), (2, 1, 3.0), (1, 1, 4.0)]).unwrap();
        let (store, mut tokens) = (Store::build(&stream).unwrap(), PairTokens::default());
        let query = PairQuery { src: NodeId(0), dst: NodeId(1), time: 5.0 };
        PairEncoder::new(&store, PairEncoderConfig::default()).encode(&[query], &mut tokens);
        let layout = PatchLayout { with_directions: true, ..PatchLayout::default() };
        let tables = &FeatureTables::of(&stream).unwrap();
        let collator = PatchCollator {
            layout,
            tables,
            store: &store,
            tokens: &tokens,
            queries: &[query],
            left_out: &[],
            pairs: 0..1,
            padded_to: None,
        };
        let directions = collator.run().unwrap().directions.unwrap();
        let expected = [
            (0.0, 1.0, 0.0),
            (1.0, 1.0, 4.0),
            (-1.0, 1.0, 3.0),
            (0.0, -1.0, 0.0),
            (-1.0, -1.0, 4.0),
            (1.0, -1.0, 3.0),
            (-1.0, -1.0, 2.0),
            // A self-loop is in the history twice, from the node each time.
            (1.0, -1.0, 1.0),
            (1.0, -1.0, 1.0),
        ];
        assert_eq!(directions.rows(), expected.len());
        for (row, (direction, side, age)) in directions.values().chunks_exact(N_DIRECTIONS).zip(expected) {
            assert_eq!(row[..2], [direction, side]);
            assert!((row[2] - f32::ln_1p(age) / LOG_AGE_SCALE).abs() < 1e-6, "{row:?}");
        }
    }
}
