//! From tokens of pairs to the numbers a model reads.
//!
//! Shapes: `B` pairs, `T` tokens of both sides of all pairs, `R` distinct nodes within the pairs, `S` patches of `P`
//! tokens. Nothing is padded: the last patch of a side may be shorter than the others, and its missing places are zero.
//! Only [`Padding::Dyglib`] adds places that stand for nobody.

use std::ops::Range;
use std::sync::Arc;

use ctdg::event::{EventStream, Features, NodeId};
use ctdg::mite::{PairTokens, Side};
use hopedgn_tensor::{Indices, Ragged, Tensor};

use crate::config::{ModelConfig, Padding};
use crate::fmt::narrow;
use crate::{Error, Result};

mod canonical;
mod global;
mod hops;
mod stage;

pub use global::{GlobalInput, GlobalLayout, PairLayer};
pub(crate) use hops::EncodeHops;
pub use hops::{EmptyGroups, Entries, Hop, HopInput, HopLayout};

const SIDES: [Side; 2] = [Side::Src, Side::Dst];

/// The features of a data set; a table of nothing but zeros counts as none. A clone is the same tables.
#[derive(Debug, Clone)]
pub struct FeatureTables {
    node: Option<Arc<Tensor>>,
    edge: Option<Arc<Tensor>>,
}

/// How many features a node and an event have, if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FeatureWidths {
    /// Of a node.
    pub node: Option<usize>,
    /// Of an event.
    pub edge: Option<usize>,
}

fn some(table: Option<&Features>) -> Option<&Features> {
    table.filter(|table| table.values().iter().any(|&value| value != 0.0))
}

impl FeatureWidths {
    /// Those of `stream`.
    #[must_use]
    pub fn of(stream: &EventStream) -> Self {
        let width = |table: Option<&Features>| some(table).map(Features::width);
        Self { node: width(stream.node_features()), edge: width(stream.edge_features()) }
    }
}

impl FeatureWidths {
    /// Refuses more features of a node than a model of width `d_out` has room for.
    pub(crate) fn check_nodes(self, d_out: usize) -> Result<()> {
        match self.node {
            Some(width) if width > d_out => Err(Error::Setting {
                name: "model.d-out",
                found: d_out.to_string(),
                expected: format!("at least {width}, the features of a node"),
            }),
            _ => Ok(()),
        }
    }
}

impl FeatureTables {
    /// Those of `stream`, with a row of zeros behind the last for what has no features.
    pub fn of(stream: &EventStream) -> Result<Self> {
        let table = |table: Option<&Features>| -> Result<Option<Arc<Tensor>>> {
            let Some(table) = some(table) else { return Ok(None) };
            let (rows, width) = (table.n_rows() + 1, table.width());
            let mut values = Vec::with_capacity(rows * width);
            values.extend_from_slice(table.values());
            values.resize(rows * width, 0.0);
            Ok(Some(Tensor::matrix(rows, width, values)?.into()))
        };
        Ok(Self { node: table(stream.node_features())?, edge: table(stream.edge_features())? })
    }

    /// How wide they are.
    #[must_use]
    pub fn widths(&self) -> FeatureWidths {
        let width = |table: &Option<Arc<Tensor>>| table.as_ref().map(|table| table.cols());
        FeatureWidths { node: width(&self.node), edge: width(&self.edge) }
    }
}

/// Rows of a table that is the same for all batches, so that a card has it already.
#[derive(Debug, Clone)]
pub struct Rows {
    /// The table.
    pub table: Arc<Tensor>,
    /// Which rows, and how many of them stand side by side for one token; without it, the table has one for each.
    pub chosen: Option<(Indices, usize)>,
}

/// How the past of pairs is laid out for a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// The tokens of both sides in patches: [`PairInput`].
    Patches {
        /// Whether the features of source and destination stand beside those of each token's node.
        with_roots: bool,
        /// Whether it is told how often each node stands on each side.
        with_counts: bool,
    },
    /// The nodes of a pair, their neighbours, and perhaps the neighbours of those: [`HopInput`].
    Hops(HopLayout),
    /// All pairs behind a pair: [`GlobalInput`].
    Pairs(GlobalLayout),
}

/// What a model reads of some pairs.
#[derive(Debug, Clone)]
pub enum Input {
    /// See [`Layout::Patches`].
    Patches(PairInput),
    /// See [`Layout::Hops`].
    Hops(Box<HopInput>),
    /// See [`Layout::Pairs`].
    Pairs(Box<GlobalInput>),
}

impl Input {
    /// Tokens in patches.
    pub fn patches(&self) -> Result<&PairInput> {
        if let Self::Patches(input) = self { Ok(input) } else { Err(Error::MissingInput) }
    }

    /// Hops.
    pub fn hops(&self) -> Result<&HopInput> {
        if let Self::Hops(input) = self { Ok(input) } else { Err(Error::MissingInput) }
    }

    /// All pairs behind each.
    pub fn pairs(&self) -> Result<&GlobalInput> {
        if let Self::Pairs(input) = self { Ok(input) } else { Err(Error::MissingInput) }
    }
}

/// When nodes met the source and the destination of their pairs: MITE, as sparse as it is.
#[derive(Debug, Clone)]
pub struct MiteIntervals {
    /// `[N, 1]`: normalised intervals, newest first in each list.
    pub intervals: Arc<Tensor>,
    /// For each node those with the source, then those with the destination: `2R` lists.
    pub lists: Ragged,
}

impl MiteIntervals {
    /// What is known of `rows` of `tokens`; behind them one without any meeting, if asked for. Nothing where the model does
    /// not see it.
    fn new(config: &ModelConfig, tokens: &PairTokens, rows: Range<usize>, with_empty: bool) -> Result<Option<Self>> {
        if !config.mite {
            return Ok(None);
        }
        let (starts, intervals) = tokens.lists(rows);
        let mut intervals = intervals.to_vec();
        config.mite_normaliser.apply(&mut intervals);
        let mut offsets: Vec<usize> = starts.iter().map(|start| (start - starts[0]) as usize).collect();
        if with_empty {
            offsets.extend([intervals.len(); SIDES.len()]);
        }
        let intervals = Tensor::matrix(intervals.len(), 1, intervals)?.into();
        Ok(Some(Self { intervals, lists: Ragged::new(offsets)? }))
    }
}

/// What a model reads of some pairs as tokens in patches.
#[derive(Debug, Clone)]
pub struct PairInput {
    /// The patches of each pair, source first: `B` sequences over `S` rows.
    pub pairs: Ragged,
    /// The patches of each side: `2B` sequences over the same rows.
    pub sides: Ragged,
    /// `[T, 1]`: query time minus event time, 0 for the node itself.
    pub ages: Arc<Tensor>,
    /// `[T, Dn]` or `[T, 3·Dn]`: features of the token's node, and perhaps of the source and of the destination.
    pub nodes: Option<Rows>,
    /// `[T, De]`: features of the token's event, zeros for the node itself.
    pub edges: Option<Rows>,
    /// When the node of each of `R` rows met source and destination.
    pub mite: Option<MiteIntervals>,
    /// `[2R, 1]`: how often the node of each row stands on the source's side, on the destination's.
    pub counts: Option<Arc<Tensor>>,
    /// Row of [`PairInput::mite`] and of [`PairInput::counts`] of each token; with DyGLib's padding, of each place.
    pub rows: Indices,
    /// Where the tokens go among the `S·P` places; nothing where token `i` is place `i`.
    pub places: Option<Indices>,
    /// Whether places without a token have a MITE row: DyGLib's padding.
    pub is_padded: bool,
}

/// Patches of each side that all pairs of a batch are padded to.
pub(crate) type PaddedTo = [usize; 2];

/// The longest sides among `pairs`, in patches of `patch` tokens.
pub(crate) fn longest(tokens: &PairTokens, pairs: Range<usize>, patch: usize) -> PaddedTo {
    SIDES.map(|side| pairs.clone().map(|pair| tokens.tokens(pair, side).len().div_ceil(patch)).max().unwrap_or(0))
}

/// Builds the input for `pairs` of `tokens`.
pub(crate) struct Encode<'a> {
    pub(crate) config: &'a ModelConfig,
    pub(crate) with_roots: bool,
    pub(crate) with_counts: bool,
    pub(crate) tables: &'a FeatureTables,
    pub(crate) tokens: &'a PairTokens,
    pub(crate) pairs: Range<usize>,
    /// With [`Padding::Dyglib`] only.
    pub(crate) padded_to: Option<PaddedTo>,
}

impl Encode<'_> {
    pub(crate) fn run(&self) -> Result<PairInput> {
        let all = self.all_tokens();
        let sides = self.sides();
        let lengths: Vec<usize> = sides.ranges().map(|side| side.len()).collect();
        let is_padded = self.config.padding == Padding::Dyglib;
        let places = (self.config.patch > 1 || is_padded).then(|| self.places(&sides));
        let rows = if is_padded { self.rows_of_places(&sides) } else { self.rows_of_tokens() };
        Ok(PairInput {
            ages: Tensor::matrix(all.len(), 1, self.tokens.ages()[all].to_vec())?.into(),
            nodes: self.tables.node.as_ref().map(|table| self.nodes(table)),
            edges: self.tables.edge.as_ref().map(|table| self.edges(table)),
            mite: MiteIntervals::new(self.config, self.tokens, self.all_rows(), is_padded)?,
            counts: self.with_counts.then(|| self.counts(is_padded)).transpose()?,
            pairs: Ragged::from_lengths(lengths.chunks_exact(2).map(|pair| pair[0] + pair[1])),
            sides,
            rows,
            places,
            is_padded,
        })
    }

    fn all_tokens(&self) -> Range<usize> {
        if self.pairs.is_empty() {
            return 0..0;
        }
        self.tokens.tokens(self.pairs.start, Side::Src).start..self.tokens.tokens(self.pairs.end - 1, Side::Dst).end
    }

    fn all_rows(&self) -> Range<usize> {
        if self.pairs.is_empty() {
            return 0..0;
        }
        self.tokens.rows_of_pair(self.pairs.start).start..self.tokens.rows_of_pair(self.pairs.end - 1).end
    }

    /// Each side of each pair, in order.
    fn each_side(&self) -> impl Iterator<Item = (usize, Side)> + use<> {
        self.pairs.clone().flat_map(|pair| SIDES.map(|side| (pair, side)))
    }

    fn sides(&self) -> Ragged {
        let length = |(pair, side): (usize, Side)| match self.padded_to {
            Some(padded_to) => padded_to[side as usize],
            None => self.tokens.tokens(pair, side).len().div_ceil(self.config.patch),
        };
        Ragged::from_lengths(self.each_side().map(length))
    }

    /// The place of each token.
    fn places(&self, sides: &Ragged) -> Indices {
        let mut places = Vec::with_capacity(self.all_tokens().len());
        for ((pair, side), patches) in self.each_side().zip(sides.ranges()) {
            let first = narrow(patches.start * self.config.patch);
            places.extend(first..first + narrow(self.tokens.tokens(pair, side).len()));
        }
        places.into()
    }

    fn rows_of_tokens(&self) -> Indices {
        let first = narrow(self.all_rows().start);
        self.tokens.rows()[self.all_tokens()].iter().map(|row| row - first).collect()
    }

    /// Places without a token have the row behind all others, which has no intervals.
    fn rows_of_places(&self, sides: &Ragged) -> Indices {
        let (first, empty) = (narrow(self.all_rows().start), narrow(self.all_rows().len()));
        let mut rows = Vec::with_capacity(sides.total() * self.config.patch);
        for ((pair, side), patches) in self.each_side().zip(sides.ranges()) {
            rows.extend(self.tokens.rows()[self.tokens.tokens(pair, side)].iter().map(|row| row - first));
            rows.resize(patches.end * self.config.patch, empty);
        }
        rows.into()
    }

    fn counts(&self, with_empty: bool) -> Result<Arc<Tensor>> {
        let n_rows = self.all_rows().len() + usize::from(with_empty);
        let mut counts = vec![0.0_f32; 2 * n_rows];
        // Of the tokens, whatever meetings MITE knows.
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
        let beside = if self.with_roots { 3 } else { 1 };
        let mut chosen = Vec::with_capacity(beside * self.all_tokens().len());
        if !self.with_roots {
            chosen.extend(self.tokens.nodes()[self.all_tokens()].iter().map(|&node| row(node)));
            return Rows { table: Arc::clone(table), chosen: Some((chosen.into(), beside)) };
        }
        for pair in self.pairs.clone() {
            let [src, dst] = SIDES.map(|side| self.tokens.tokens(pair, side));
            let roots = [src.start, dst.start].map(|root| row(self.tokens.nodes()[root]));
            for &node in &self.tokens.nodes()[src.start..dst.end] {
                chosen.extend([row(node), roots[0], roots[1]]);
            }
        }
        Rows { table: Arc::clone(table), chosen: Some((chosen.into(), beside)) }
    }

    fn edges(&self, table: &Arc<Tensor>) -> Rows {
        let none = narrow(table.rows() - 1);
        let mut chosen = Vec::with_capacity(self.all_tokens().len());
        for (pair, side) in self.each_side() {
            chosen.push(none);
            chosen.extend(self.tokens.events(pair, side).iter().map(|event| narrow(event.index())));
        }
        Rows { table: Arc::clone(table), chosen: Some((chosen.into(), 1)) }
    }
}
