//! Collation: from the sampled past of node pairs to the tensors that a model reads.
//!
//! A model names its [`Layout`]; the collator builds the [`Input`] of that layout for the pairs of a batch. Nothing is padded:
//! sequences are ragged ([`Ragged`]), and a node without events has an empty one. [`Padding::Dyglib`] pads as DyGLib does.
//!
//! Shapes, in the letters of [`crate::model`]: `B` pairs, so `2B` roots (source, destination, source of the next pair, …); `T`
//! tokens of all sequences; `S` patches of `P` tokens; `R` distinct nodes within the pairs; `Dn`, `De` widths of node and edge
//! features.

mod canonical;
mod global;
mod hops;
mod patches;
mod relations;
mod settings;
mod stage;
mod statistics;
mod walks;

use std::ops::Range;
use std::sync::Arc;

use ctdg::event::{EventStream, Features};
use ctdg::mite::{PairQuery, PairTokens, Side};
use hopedgn_tensor::{Indices, Ragged, Tensor};

use crate::{Error, Result};

pub use global::{GlobalInput, GlobalLayout, PairLayer};
pub(crate) use hops::HopCollator;
pub use hops::{EmptyGroups, Entries, Hop, HopInput, HopLayout, Sequences};
pub use patches::{N_DIRECTIONS, PairInput, PatchLayout};
pub(crate) use patches::{PaddedTo, PatchCollator};
pub use relations::{N_RELATION_FEATURES, RelationInput};
pub(crate) use settings::token_encoding;
pub use settings::{
    MiteHistory, MiteSelfLoops, MiteSettings, NeighborSettings, Normaliser, Padding, PairStart, Replacing,
    SamplingName, StatisticsSettings,
};
pub(crate) use statistics::statistics;
pub(crate) use walks::WalkRows;
pub use walks::{WalkInput, WalkSettings};

pub(crate) const SIDES: [Side; 2] = [Side::Src, Side::Dst];

/// The features of a dataset, shared by clones. A table of zeros counts as none.
///
/// ```
/// use hopedgn::{collate::FeatureTables, ctdg::event::EventStream};
///
/// let stream = EventStream::from_events([(0, 1, 10.0), (1, 2, 20.0)])?;
/// assert_eq!(FeatureTables::of(&stream)?.widths().node, None); // a stream without features
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct FeatureTables {
    node: Option<Arc<Tensor>>,
    edge: Option<Arc<Tensor>>,
}

/// How many features a node and an event have, if any.
///
/// ```
/// use hopedgn::{collate::FeatureWidths, ctdg::event::{EventStream, Features}};
///
/// let mut columns = EventStream::from_events([(0, 1, 10.0), (1, 2, 20.0)])?.into_columns();
/// columns.edge_features = Some(Features::new(3, vec![1.0; 6])?);
/// let widths = FeatureWidths::of(&EventStream::new(columns)?);
/// assert_eq!(widths, FeatureWidths { node: None, edge: Some(3) });
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FeatureWidths {
    /// Of a node, `Dn`.
    pub node: Option<usize>,
    /// Of an event, `De`.
    pub edge: Option<usize>,
}

fn nonzero(table: Option<&Features>) -> Option<&Features> {
    table.filter(|table| table.values().iter().any(|&value| value != 0.0))
}

impl FeatureWidths {
    /// Those of `stream`.
    #[must_use]
    pub fn of(stream: &EventStream) -> Self {
        let width = |table: Option<&Features>| nonzero(table).map(Features::width);
        Self { node: width(stream.node_features()), edge: width(stream.edge_features()) }
    }

    /// Refuses more node features than an embedding of width `d_out` has room for.
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
    /// Those of `stream`. A last row of zeros is for nodes and events without features.
    pub fn of(stream: &EventStream) -> Result<Self> {
        let table = |table: Option<&Features>| -> Result<Option<Arc<Tensor>>> {
            let Some(table) = nonzero(table) else { return Ok(None) };
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

/// Pairs to score, none of which sees another.
///
/// ```
/// use hopedgn::{collate::PairBatch, ctdg::{event::NodeId, mite::PairQuery}};
///
/// let query = |dst| PairQuery { src: NodeId(0), dst: NodeId(dst), time: 10.0 };
/// let queries = [query(1), query(2), query(3)];
/// let batch = PairBatch::new(&queries).padded_alone(); // no score depends on another pair
/// assert_eq!(batch.queries.len(), 3);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct PairBatch<'a> {
    /// The pairs, each with the time it is asked about.
    pub queries: &'a [PairQuery],
    /// Pairs padded together with [`Padding::Dyglib`].
    group: usize,
}

impl<'a> PairBatch<'a> {
    /// One batch. With [`Padding::Dyglib`] all of it is padded together, without padding that makes no difference.
    #[must_use]
    pub fn new(queries: &'a [PairQuery]) -> Self {
        Self { queries, group: queries.len().max(1) }
    }

    /// With [`Padding::Dyglib`], pads every `n` consecutive pairs together: several batches at once.
    #[must_use]
    pub fn padded_in_groups_of(self, n: usize) -> Self {
        Self { group: n.max(1), ..self }
    }

    /// With [`Padding::Dyglib`], pads no pair to the length of another.
    #[must_use]
    pub fn padded_alone(self) -> Self {
        self.padded_in_groups_of(1)
    }

    /// The same groups of other queries, as many.
    pub(crate) fn with<'q>(&self, queries: &'q [PairQuery]) -> PairBatch<'q> {
        PairBatch { queries, group: self.group }
    }

    /// Pairs padded together.
    pub(crate) fn padding_group(&self) -> usize {
        self.group
    }
}

/// Rows of a table that is the same for all batches, so that a GPU holds it already.
///
/// ```
/// use hopedgn::{collate::{RowChoice, Rows}, tensor::Tensor};
///
/// let table = Tensor::matrix(3, 1, vec![0.5, 0.7, 0.0])?.into();
/// let chosen = RowChoice { rows: vec![1, 1, 0, 2].into(), per_token: 2 };
/// let rows = Rows { table, chosen: Some(chosen) }; // two tokens with two rows each
/// assert_eq!(rows.chosen.map(|chosen| chosen.rows.len() / chosen.per_token), Some(2));
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Rows {
    /// The table.
    pub table: Arc<Tensor>,
    /// The rows of each token; without it, row `i` of the table is that of token `i`.
    pub chosen: Option<RowChoice>,
}

/// Which rows of a table stand for each token.
///
/// See [`Rows`].
#[derive(Debug, Clone)]
pub struct RowChoice {
    /// Row numbers, `per_token` for each token in turn.
    pub rows: Indices,
    /// Rows that are concatenated for one token.
    pub per_token: usize,
}

impl Rows {
    fn choose(table: &Arc<Tensor>, rows: Vec<u32>, per_token: usize) -> Self {
        Self { table: Arc::clone(table), chosen: Some(RowChoice { rows: rows.into(), per_token }) }
    }
}

/// How the past of pairs is laid out for a model.
///
/// ```
/// use hopedgn::{ModelName, collate::{FeatureWidths, Layout}, model::{ModelConfig, build}};
///
/// let layout = |name| build(&ModelConfig::new(name), FeatureWidths::default(), 0).map(|(model, _)| model.layout());
/// assert!(matches!(layout(ModelName::HopeDgn)?, Layout::Patches(_)));
/// assert!(matches!(layout(ModelName::Tgn)?, Layout::Hops(_)));
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// The tokens of both nodes in patches: [`PairInput`].
    Patches(PatchLayout),
    /// Both nodes, their neighbours, and perhaps the neighbours of those: [`HopInput`].
    Hops(HopLayout),
    /// All pairs that a pair's embedding depends on: [`GlobalInput`].
    Pairs(GlobalLayout),
    /// No events: a model of [statistics](ctdg::statistics) alone.
    Statistics,
}

impl Layout {
    /// Whether a pair's score depends on the pairs it is padded with.
    pub(crate) fn is_padded(&self) -> bool {
        matches!(self, Self::Patches(layout) if layout.padding == Padding::Dyglib)
    }
}

/// What a model reads of some pairs.
///
/// ```
/// use hopedgn::collate::{FeatureTables, GlobalInput, GlobalLayout, Input, PairStart, PastInput, Replacing};
/// # use hopedgn::ctdg::{event::{EventId, EventStream}, mite::PairQuery, store::Store};
///
/// let stream = EventStream::from_events([(0, 1, 1.0), (1, 2, 2.0)])?;
/// let (tables, store, queries) = (FeatureTables::of(&stream)?, Store::build(&stream)?, PairQuery::of(&stream, &[EventId(1)]));
/// let layout = GlobalLayout { n_layers: 1, replacing: Replacing::All, start: PairStart::Features, width: 8 };
/// let input = Input::from(PastInput::Pairs(Box::new(GlobalInput::of(layout, &tables, &store, &queries)?)));
/// assert!(input.pairs().is_ok() && input.hops().is_err()); // a model asks for its own layout
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Input {
    /// The past of the pairs in the layout of the model.
    pub past: PastInput,
    /// `[B, N]`: ln(1 + x) of the [statistics](ctdg::statistics) of each pair, for models that read them.
    pub statistics: Option<Arc<Tensor>>,
    /// The [temporal walks](ctdg::walks) of each pair, for models that read them.
    pub walks: Option<WalkInput>,
}

/// The past of some pairs, laid out for a model.
///
/// Part of an [`Input`].
#[derive(Debug, Clone)]
pub enum PastInput {
    /// See [`Layout::Patches`].
    Patches(PairInput),
    /// See [`Layout::Hops`].
    Hops(Box<HopInput>),
    /// See [`Layout::Pairs`].
    Pairs(Box<GlobalInput>),
    /// See [`Layout::Statistics`].
    Nothing,
}

impl From<PastInput> for Input {
    fn from(past: PastInput) -> Self {
        Self { past, statistics: None, walks: None }
    }
}

impl Input {
    /// The input of [`Layout::Patches`].
    pub fn patches(&self) -> Result<&PairInput> {
        if let PastInput::Patches(input) = &self.past { Ok(input) } else { Err(self.is_not("Patches")) }
    }

    /// The input of [`Layout::Hops`].
    pub fn hops(&self) -> Result<&HopInput> {
        if let PastInput::Hops(input) = &self.past { Ok(input) } else { Err(self.is_not("Hops")) }
    }

    /// The input of [`Layout::Pairs`].
    pub fn pairs(&self) -> Result<&GlobalInput> {
        if let PastInput::Pairs(input) = &self.past { Ok(input) } else { Err(self.is_not("Pairs")) }
    }

    /// The statistics, `[B, N]`.
    pub fn statistics(&self) -> Result<&Arc<Tensor>> {
        self.statistics.as_ref().ok_or(Error::MissingInput)
    }

    /// The temporal walks.
    pub fn walks(&self) -> Result<&WalkInput> {
        self.walks.as_ref().ok_or(Error::MissingInput)
    }

    fn is_not(&self, expected: &'static str) -> Error {
        let found = match self.past {
            PastInput::Patches(_) => "Patches",
            PastInput::Hops(_) => "Hops",
            PastInput::Pairs(_) => "Pairs",
            PastInput::Nothing => "Statistics",
        };
        Error::OtherLayout { found, expected }
    }
}

/// MITE of `R` nodes: the intervals between the query and each node's events with the source, and with the destination.
///
/// ```
/// use hopedgn::{collate::MiteIntervals, tensor::{Ragged, Tensor}};
///
/// // One node, which met the source twice and the destination never.
/// let intervals = Tensor::matrix(2, 1, vec![0.7, 1.1])?.into();
/// let mite = MiteIntervals { intervals, lists: Ragged::from_lengths([2, 0]) };
/// assert_eq!(mite.lists.total(), 2);
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct MiteIntervals {
    /// `[I, 1]`: scaled intervals, newest first in each list.
    pub intervals: Arc<Tensor>,
    /// `2R` lists over the intervals: for each node those with the source, then those with the destination.
    pub lists: Ragged,
}

impl MiteIntervals {
    /// The intervals of `rows` of `tokens`, and `with_empty` one more node without any. Nothing where the model does not
    /// read MITE.
    fn new(
        normaliser: Option<Normaliser>,
        tokens: &PairTokens,
        rows: Range<usize>,
        with_empty: bool,
    ) -> Result<Option<Self>> {
        let Some(normaliser) = normaliser else { return Ok(None) };
        let (starts, intervals) = tokens.interval_lists(rows);
        let mut intervals = intervals.to_vec();
        normaliser.apply(&mut intervals);
        let mut offsets: Vec<usize> = starts.iter().map(|start| (start - starts[0]) as usize).collect();
        if with_empty {
            offsets.extend([intervals.len(); SIDES.len()]);
        }
        let intervals = Tensor::matrix(intervals.len(), 1, intervals)?.into();
        Ok(Some(Self { intervals, lists: Ragged::new(offsets)? }))
    }
}

/// The distinct nodes of `pairs`, as rows of `tokens`.
pub(crate) fn rows_of(tokens: &PairTokens, pairs: &Range<usize>) -> Range<usize> {
    if pairs.is_empty() {
        return 0..0;
    }
    tokens.rows_of_pair(pairs.start).start..tokens.rows_of_pair(pairs.end - 1).end
}

/// Both sides of each of `pairs`, in order.
fn sides_of(pairs: &Range<usize>) -> impl Iterator<Item = (usize, Side)> + use<> {
    pairs.clone().flat_map(|pair| SIDES.map(|side| (pair, side)))
}
