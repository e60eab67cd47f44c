//! The nodes of pairs, their neighbours, and the neighbours of those.
//!
//! Shapes: `B` pairs, so `2B` roots: source, destination, source of the next pair, … . `R` distinct nodes within the pairs.
//! Nobody is padded: a node without a past has an empty group.

use std::ops::Range;
use std::sync::Arc;

use ctdg::event::{EventId, NodeId};
use ctdg::mite::{NO_ROW, PairQuery, PairTokens, Side};
use ctdg::store::Store;
use hopedgn_tensor::{Indices, Ragged, Tensor};

use super::{FeatureTables, MiteIntervals, SIDES};
use crate::config::{ModelConfig, Padding};
use crate::fmt::narrow;
use crate::memory::MemoryRead;
use crate::{Error, Result};

/// What a model over hops wants to know besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HopLayout {
    /// How often the node of each row stands where: [`HopInput::landing`].
    pub with_landing: bool,
    /// The mean features of so many newest neighbours: [`HopInput::node_means`].
    pub mean_over: Option<usize>,
    /// Places that a node takes, however few neighbours it has.
    pub places: usize,
}

/// What a model reads of some pairs as hops.
#[derive(Debug, Clone)]
pub struct HopInput {
    /// The `2B` nodes that are asked about.
    pub roots: Entries,
    /// Their neighbours.
    pub first: Hop,
    /// The neighbours of those.
    pub second: Option<Hop>,
    /// Features of nodes, the last row for what has none.
    pub nodes: Option<Arc<Tensor>>,
    /// Features of events, the last row for what has none.
    pub edges: Option<Arc<Tensor>>,
    /// When the node of each of `R + 1` rows met source and destination; that of the last never did.
    pub mite: Option<MiteIntervals>,
    /// `[2R, 2]`: for the source and for the destination of each row's pair, whether it is the row's node, and which share
    /// of its neighbours is.
    pub landing: Option<Arc<Tensor>>,
    /// `[2B, Dn]`: mean features of the newest neighbours of each root.
    pub node_means: Option<Arc<Tensor>>,
    /// What the memory knows of all these nodes.
    pub recalled: Option<MemoryRead>,
}

/// Nodes and how they were met; each list only where the model and the data set have a use for it.
#[derive(Debug, Clone)]
pub struct Entries {
    /// How many.
    pub len: usize,
    /// Rows of [`HopInput::nodes`].
    pub nodes: Option<Indices>,
    /// Rows of [`HopInput::edges`].
    pub edges: Option<Indices>,
    /// Rows of [`HopInput::mite`].
    pub rows: Option<Indices>,
}

/// Neighbours of the entries of the hop before.
#[derive(Debug, Clone)]
pub struct Hop {
    /// The neighbours.
    pub entries: Entries,
    /// Those of each entry of the hop before.
    pub groups: Ragged,
    /// `[entries, 1]`: how long ago each was met.
    pub ages: Arc<Tensor>,
    /// With DyGLib's padding: the groups that are empty.
    pub empty: Option<EmptyGroups>,
}

/// Groups of a hop in which nobody is.
#[derive(Debug, Clone)]
pub struct EmptyGroups {
    /// Their places.
    pub groups: Indices,
    /// `[groups, 1]`: the times at which they are asked about.
    pub times: Arc<Tensor>,
}

impl HopInput {
    /// Each root before its neighbours: how long these sequences are, and the place of each token among the roots and,
    /// behind them, the first hop.
    #[must_use]
    pub fn sequences(&self) -> (Ragged, Indices) {
        let mut order = Vec::with_capacity(self.roots.len + self.first.entries.len);
        for (root, group) in self.first.groups.ranges().enumerate() {
            order.push(narrow(root));
            order.extend(group.map(|entry| narrow(self.roots.len + entry)));
        }
        (Ragged::from_lengths(self.first.groups.ranges().map(|group| group.len() + 1)), order.into())
    }
}

impl Hop {
    /// The place of each entry where a group has the last of `n` places: `n − 1` for the newest.
    #[must_use]
    pub fn places(&self, n: usize) -> Vec<u32> {
        self.groups.ranges().flat_map(|group| narrow(n - group.len())..narrow(n)).collect()
    }
}

/// Builds the input for `pairs` of `tokens`.
pub(crate) struct EncodeHops<'a> {
    pub(crate) config: &'a ModelConfig,
    pub(crate) layout: HopLayout,
    pub(crate) tables: &'a FeatureTables,
    pub(crate) store: &'a Store,
    pub(crate) tokens: &'a PairTokens,
    /// Of all pairs of `tokens`.
    pub(crate) queries: &'a [PairQuery],
    pub(crate) pairs: Range<usize>,
    /// Whether a second hop was looked up; tokens do not show it where there is no first one.
    pub(crate) has_second: bool,
}

impl EncodeHops<'_> {
    pub(crate) fn run(&self) -> Result<HopInput> {
        let mean_over = self.layout.mean_over.filter(|_| self.tables.node.is_some());
        Ok(HopInput {
            roots: self.roots(),
            first: self.first()?,
            second: self.has_second.then(|| self.second()).transpose()?,
            nodes: self.tables.node.clone(),
            edges: self.tables.edge.clone(),
            mite: MiteIntervals::new(self.config, self.tokens, self.all_rows(), true)?,
            landing: self.layout.with_landing.then(|| self.landing()).transpose()?,
            node_means: mean_over.map(|n| self.node_means(n)).transpose()?,
            recalled: None,
        })
    }

    fn all_rows(&self) -> Range<usize> {
        if self.pairs.is_empty() {
            return 0..0;
        }
        self.tokens.rows_of_pair(self.pairs.start).start..self.tokens.rows_of_pair(self.pairs.end - 1).end
    }

    /// Each side of each pair, in order.
    fn sides(&self) -> impl Iterator<Item = (usize, Side)> + use<> {
        self.pairs.clone().flat_map(|pair| SIDES.map(|side| (pair, side)))
    }

    /// All tokens but the roots, numbered without them.
    fn drawn(&self) -> Range<usize> {
        if self.pairs.is_empty() {
            return 0..0;
        }
        self.tokens.drawn(self.pairs.start, Side::Src).start..self.tokens.drawn(self.pairs.end - 1, Side::Dst).end
    }

    fn entries<'t>(
        &self,
        nodes: impl ExactSizeIterator<Item = NodeId>,
        events: impl Iterator<Item = &'t EventId>,
        rows: impl Iterator<Item = u32>,
    ) -> Entries {
        let all_rows = self.all_rows();
        let (first, empty) = (narrow(all_rows.start), narrow(all_rows.len()));
        let has_rows = self.config.mite || self.layout.with_landing;
        Entries {
            len: nodes.len(),
            nodes: self.tables.node.as_ref().map(|table| {
                let none = table.rows() - 1;
                nodes.map(|node| narrow(node.index().min(none))).collect()
            }),
            edges: self.tables.edge.as_ref().map(|_| events.map(|event| narrow(event.index())).collect()),
            rows: has_rows.then(|| rows.map(|row| if row == NO_ROW { empty } else { row - first }).collect()),
        }
    }

    fn roots(&self) -> Entries {
        let roots: Vec<usize> = self.sides().map(|(pair, side)| self.tokens.tokens(pair, side).start).collect();
        let nodes = roots.iter().map(|&root| self.tokens.nodes()[root]);
        let rows = roots.iter().map(|&root| self.tokens.rows()[root]);
        Entries { edges: None, ..self.entries(nodes, [].iter(), rows) }
    }

    fn first(&self) -> Result<Hop> {
        let without_root = |(pair, side)| {
            let tokens = self.tokens.tokens(pair, side);
            tokens.start + 1..tokens.end
        };
        let tokens: Vec<usize> = self.sides().flat_map(without_root).collect();
        let groups = Ragged::from_lengths(self.sides().map(without_root).map(|tokens| tokens.len()));
        let ages = tokens.iter().map(|&token| self.tokens.ages()[token]).collect();
        let times: Vec<f64> = self.sides().map(|(pair, _)| self.queries[pair].time).collect();
        Ok(Hop {
            entries: self.entries(
                tokens.iter().map(|&token| self.tokens.nodes()[token]),
                self.sides().flat_map(|(pair, side)| self.tokens.events(pair, side)),
                tokens.iter().map(|&token| self.tokens.rows()[token]),
            ),
            empty: self.empty(&groups, &times)?,
            groups,
            ages: Tensor::matrix(tokens.len(), 1, ages)?.into(),
        })
    }

    fn second(&self) -> Result<Hop> {
        let starts = &self.tokens.second_starts()[self.drawn().start..=self.drawn().end];
        let all = starts[0] as usize..starts[starts.len() - 1] as usize;
        let groups = Ragged::from_lengths(starts.windows(2).map(|group| (group[1] - group[0]) as usize));
        let events = self.sides().flat_map(|(pair, side)| self.tokens.events(pair, side));
        let times: Vec<f64> = events.map(|&event| self.store.time(event)).collect();
        Ok(Hop {
            entries: self.entries(
                self.tokens.second_nodes()[all.clone()].iter().copied(),
                self.tokens.second_events()[all.clone()].iter(),
                self.tokens.second_rows()[all.clone()].iter().copied(),
            ),
            empty: self.empty(&groups, &times)?,
            groups,
            ages: Tensor::matrix(all.len(), 1, self.tokens.second_ages()[all].to_vec())?.into(),
        })
    }

    fn empty(&self, groups: &Ragged, times: &[f64]) -> Result<Option<EmptyGroups>> {
        if self.config.padding == Padding::None {
            return Ok(None);
        }
        let empty: Vec<usize> = (0..groups.len()).filter(|&group| groups.range(group).is_empty()).collect();
        #[expect(clippy::cast_possible_truncation, reason = "as DyGLib has it")]
        let times = empty.iter().map(|&group| times[group] as f32).collect();
        let times = Tensor::matrix(empty.len(), 1, times)?.into();
        Ok(Some(EmptyGroups { groups: empty.into_iter().map(narrow).collect(), times }))
    }

    #[expect(clippy::cast_precision_loss, reason = "far fewer neighbours than f32 counts")]
    fn landing(&self) -> Result<Arc<Tensor>> {
        let first = self.all_rows().start;
        let mut values = vec![0.0; 4 * self.all_rows().len()];
        for (pair, side) in self.sides() {
            let tokens = self.tokens.tokens(pair, side);
            let share = 1.0 / (tokens.len() - 1).max(1) as f32;
            let place = |token: usize| 4 * (self.tokens.rows()[token] as usize - first) + 2 * side as usize;
            values[place(tokens.start)] = 1.0;
            for token in tokens.start + 1..tokens.end {
                values[place(token) + 1] += share;
            }
        }
        Ok(Tensor::matrix(values.len() / 2, 2, values)?.into())
    }

    #[expect(clippy::cast_precision_loss, reason = "far fewer neighbours than f32 counts")]
    fn node_means(&self, n: usize) -> Result<Arc<Tensor>> {
        let table = self.tables.node.as_ref().ok_or(Error::MissingInput)?;
        let width = table.cols();
        let mut means = vec![0.0; 2 * self.pairs.len() * width];
        for ((pair, side), mean) in self.sides().zip(means.chunks_exact_mut(width.max(1))) {
            let root = self.tokens.nodes()[self.tokens.tokens(pair, side).start];
            let history = self.store.history(root, self.store.cut(self.queries[pair].time)).last(n);
            for node in history.neighbors {
                let row = node.index().min(table.rows() - 1);
                let features = &table.values()[row * width..(row + 1) * width];
                mean.iter_mut().zip(features).for_each(|(sum, feature)| *sum += feature);
            }
            let share = 1.0 / history.len().max(1) as f32;
            for sum in mean {
                *sum *= share;
            }
        }
        Ok(Tensor::matrix(2 * self.pairs.len(), width, means)?.into())
    }
}
