//! Input of models over neighbours: both nodes of each pair, their neighbours, and the neighbours of those.
//!
//! Shapes: `B` pairs, so `2B` roots: source, destination, source of the next pair, …; fewer, `V`, where a model embeds
//! [equal roots once](HopLayout::shares_roots); `F` neighbours of the roots, `G` of those; `N`, `E` nodes and events of the dataset; `R`
//! distinct nodes within the pairs; `Dn`, `De` widths of node and edge features.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use ctdg::event::{EventId, NodeId};
use ctdg::mite::{NO_ROW, PairQuery, PairTokens, Side};
use ctdg::store::Store;
use hopedgn_tensor::{Indices, Ragged, Tape, Tensor, Var};
use rustc_hash::FxHashMap;

use super::{FeatureTables, MiteIntervals, Normaliser, Padding, rows_of, sides_of};
use crate::fmt::narrow;
use crate::memory::MemoryRead;
use crate::{Error, Result};

/// What a model over neighbours reads besides the neighbours.
///
/// ```
/// use hopedgn::collate::{HopLayout, Layout, Normaliser};
///
/// let layout = Layout::Hops(HopLayout { mite: Some(Normaliser::Log1p), ..HopLayout::default() });
/// assert_ne!(layout, Layout::Hops(HopLayout::default()));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each says whether one thing is read")]
pub struct HopLayout {
    /// Whether the input has hitting rates of one-step walks, as CAWN reads them: [`HopInput::hitting_rates`].
    pub with_hitting_rates: bool,
    /// The number of newest neighbours in [`HopInput::node_means`].
    pub mean_over: Option<usize>,
    /// Whether a node that several pairs ask for at one time is one root: for models that embed a node from its neighbours, which are not
    /// drawn, and from nothing else of the pair, such as walk counts of a memory. Without effect beside `mite`, `with_hitting_rates` and
    /// `with_node_walks`.
    pub shares_roots: bool,
    /// Slots that each root takes in the model, however few neighbours it has; bounds the size of micro-batches.
    pub slots: usize,
    /// With [`Padding::Dyglib`], nodes without neighbours are listed: [`Hop::empty`].
    pub padding: Padding,
    /// How MITE is scaled; nothing for a model that does not read it.
    pub mite: Option<Normaliser>,
    /// Whether ages are ln(1 + Δt) instead of Δt.
    pub with_log_ages: bool,
    /// Whether the input has the walks of each node with the source and the destination:
    /// [`WalkInput::nodes`](super::WalkInput::nodes).
    pub with_node_walks: bool,
}

/// What a model reads of `B` pairs as hops.
///
/// ```
/// use hopedgn::{collate::{Entries, Hop, HopInput}, tensor::{Ragged, Tensor}};
///
/// // One pair: the source has two neighbours, the destination one.
/// let entries = |len| Entries { len, nodes: None, edges: None, rows: None };
/// let ages = Tensor::matrix(3, 1, vec![9.0, 4.0, 2.0])?.into();
/// let first = Hop { entries: entries(3), groups: Ragged::from_lengths([2, 1]), ages, empty: None };
/// assert_eq!(first.slots(4), [2, 3, 3]); // the newest neighbour takes the last slot
/// # let (nodes, edges, mite, hitting_rates, node_means, memory, second) = (None, None, None, None, None, None, None);
/// # let of_pairs = None;
/// let input = HopInput { roots: entries(2), of_pairs, first, second, nodes, edges, mite, hitting_rates, node_means, memory };
/// assert_eq!(input.sequences().order[..], [0, 2, 3, 1, 4]); // each root, then its neighbours
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct HopInput {
    /// The `2B` nodes of the pairs, or the `V` distinct ones.
    pub roots: Entries,
    /// `[2B]`: the root of each side of each pair where roots are distinct, numbered in the order of their first sides.
    pub of_pairs: Option<Indices>,
    /// Their `F` neighbours.
    pub first: Hop,
    /// The `G` neighbours of those.
    pub second: Option<Hop>,
    /// `[N + 1, Dn]`: node features; the last row, zeros, is for nodes without.
    pub nodes: Option<Arc<Tensor>>,
    /// `[E + 1, De]`: edge features; the last row, zeros, is for events without.
    pub edges: Option<Arc<Tensor>>,
    /// MITE of `R + 1` nodes; the last has no intervals.
    pub mite: Option<MiteIntervals>,
    /// `[2R, 2]`: for source and destination of each row's pair, whether the row's node is that root, and the share of the
    /// root's neighbours it is.
    pub hitting_rates: Option<Arc<Tensor>>,
    /// `[roots, Dn]`: mean features of the newest neighbours of each root.
    pub node_means: Option<Arc<Tensor>>,
    /// The memory of all these nodes, of models that keep one.
    pub memory: Option<MemoryRead>,
}

/// Nodes, and the events through which they are neighbours. Each list is there only where the model and the dataset have a
/// use for it.
///
/// See [`HopInput`].
#[derive(Debug, Clone)]
pub struct Entries {
    /// How many.
    pub len: usize,
    /// Rows of [`HopInput::nodes`].
    pub nodes: Option<Indices>,
    /// Rows of [`HopInput::edges`].
    pub edges: Option<Indices>,
    /// Rows of [`HopInput::mite`], and of other tables of distinct nodes.
    pub rows: Option<Indices>,
}

/// Neighbours of the entries of the previous hop.
///
/// See [`HopInput`].
#[derive(Debug, Clone)]
pub struct Hop {
    /// The neighbours, oldest first for each entry of the previous hop.
    pub entries: Entries,
    /// Those of each entry of the previous hop.
    pub groups: Ragged,
    /// `[entries, 1]`: query time minus event time, or [its logarithm](HopLayout::with_log_ages).
    pub ages: Arc<Tensor>,
    /// With [`Padding::Dyglib`]: the entries of the previous hop without neighbours.
    pub empty: Option<EmptyGroups>,
}

/// Entries without neighbours.
///
/// Read by [`PaddingKeys`](crate::nn::PaddingKeys).
#[derive(Debug, Clone)]
pub struct EmptyGroups {
    /// Their numbers in the previous hop.
    pub groups: Indices,
    /// `[groups, 1]`: the times at which their neighbours were sampled.
    pub times: Arc<Tensor>,
}

/// Each root followed by its neighbours, as one sequence per root.
///
/// Made by [`HopInput::sequences`].
#[derive(Debug, Clone)]
pub struct Sequences {
    /// A sequence for each root over all roots and the first hop.
    pub groups: Ragged,
    /// `[roots + F]`: the row of each token where the roots are the first rows, followed by the first hop.
    pub order: Indices,
}

impl HopInput {
    /// The rows of the sides of all pairs, `[2B, d]`, of those of the roots.
    pub fn by_side(&self, tape: &mut Tape<'_>, of_roots: Var) -> Result<Var> {
        match &self.of_pairs {
            Some(of_pairs) => Ok(tape.gather(of_roots, of_pairs)?),
            None => Ok(of_roots),
        }
    }

    /// Each root followed by its neighbours.
    #[must_use]
    pub fn sequences(&self) -> Sequences {
        let mut order = Vec::with_capacity(self.roots.len + self.first.entries.len);
        for (root, group) in self.first.groups.ranges().enumerate() {
            order.push(narrow(root));
            order.extend(group.map(|entry| narrow(self.roots.len + entry)));
        }
        let groups = Ragged::from_lengths(self.first.groups.ranges().map(|group| group.len() + 1));
        Sequences { groups, order: order.into() }
    }
}

impl Hop {
    /// The slot of each entry where every group is aligned to the end of `n` slots: `n − 1` for the newest.
    #[must_use]
    pub fn slots(&self, n: usize) -> Vec<u32> {
        self.groups.ranges().flat_map(|group| narrow(n - group.len())..narrow(n)).collect()
    }

    /// The same where the groups follow each other, `n` slots each.
    pub(crate) fn slots_of_all(&self, n: usize) -> Vec<u32> {
        let mut slots = self.slots(n);
        for (group, first_slot) in self.groups.ranges().zip((0..).step_by(n)) {
            slots[group].iter_mut().for_each(|slot| *slot += first_slot);
        }
        slots
    }
}

/// Builds the [`HopInput`] of `pairs` of `tokens`.
pub(crate) struct HopCollator<'a> {
    pub(crate) layout: HopLayout,
    pub(crate) tables: &'a FeatureTables,
    pub(crate) store: &'a Store,
    pub(crate) tokens: &'a PairTokens,
    /// All pairs of `tokens`.
    pub(crate) queries: &'a [PairQuery],
    /// For each of them, events that count as not in the store; empty if there are none.
    pub(crate) left_out: &'a [&'a [EventId]],
    pub(crate) pairs: Range<usize>,
    /// Whether a second hop was sampled; tokens do not show it where the first is empty.
    pub(crate) has_second: bool,
}

impl HopCollator<'_> {
    pub(crate) fn run(&self) -> Result<HopInput> {
        let mean_over = self.layout.mean_over.filter(|_| self.tables.node.is_some());
        let (sides, of_pairs) = self.root_sides();
        Ok(HopInput {
            roots: self.roots(&sides),
            of_pairs,
            first: self.first(&sides)?,
            second: self.has_second.then(|| self.second(&sides)).transpose()?,
            nodes: self.tables.node.clone(),
            edges: self.tables.edge.clone(),
            mite: MiteIntervals::new(self.layout.mite, self.tokens, self.all_rows(), true)?,
            hitting_rates: self.layout.with_hitting_rates.then(|| self.hitting_rates()).transpose()?,
            node_means: mean_over.map(|n| self.node_means(&sides, n)).transpose()?,
            memory: None,
        })
    }

    fn all_rows(&self) -> Range<usize> {
        rows_of(self.tokens, &self.pairs)
    }

    fn sides(&self) -> impl Iterator<Item = (usize, Side)> + use<> {
        sides_of(&self.pairs)
    }

    /// The sides that are roots, and the root of each side where not all are.
    fn root_sides(&self) -> (Vec<(usize, Side)>, Option<Indices>) {
        let HopLayout { mite, with_hitting_rates, with_node_walks, shares_roots, .. } = self.layout;
        let reads_pair = mite.is_some() || with_hitting_rates || with_node_walks;
        // Without some events, pairs see different histories.
        if !shares_roots || reads_pair || !self.left_out.is_empty() {
            return (self.sides().collect(), None);
        }
        let (mut sides, mut roots) = (Vec::new(), FxHashMap::default());
        let of_pairs: Vec<u32> = self
            .sides()
            .map(|(pair, side)| {
                let PairQuery { src, dst, time } = self.queries[pair];
                let node = if side == Side::Src { src } else { dst };
                *roots.entry((node, time.to_bits())).or_insert_with(|| {
                    sides.push((pair, side));
                    narrow(sides.len() - 1)
                })
            })
            .collect();
        let is_shared = sides.len() < of_pairs.len();
        (sides, is_shared.then(|| of_pairs.into()))
    }

    fn entries(
        &self,
        nodes: impl ExactSizeIterator<Item = NodeId>,
        events: impl Iterator<Item = EventId>,
        rows: impl Iterator<Item = u32>,
    ) -> Entries {
        let all_rows = self.all_rows();
        let (first, empty) = (narrow(all_rows.start), narrow(all_rows.len()));
        let HopLayout { mite, with_hitting_rates, with_node_walks, .. } = self.layout;
        let has_rows = mite.is_some() || with_hitting_rates || with_node_walks;
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

    fn roots(&self, sides: &[(usize, Side)]) -> Entries {
        let roots: Vec<usize> = sides.iter().map(|&(pair, side)| self.tokens.tokens(pair, side).start).collect();
        let nodes = roots.iter().map(|&root| self.tokens.nodes()[root]);
        let rows = roots.iter().map(|&root| self.tokens.rows()[root]);
        Entries { edges: None, ..self.entries(nodes, std::iter::empty(), rows) }
    }

    fn first(&self, sides: &[(usize, Side)]) -> Result<Hop> {
        let without_root = |&(pair, side): &(usize, Side)| {
            let tokens = self.tokens.tokens(pair, side);
            tokens.start + 1..tokens.end
        };
        let tokens: Vec<usize> = sides.iter().flat_map(without_root).collect();
        let groups = Ragged::from_lengths(sides.iter().map(without_root).map(|tokens| tokens.len()));
        let mut ages: Vec<f32> = tokens.iter().map(|&token| self.tokens.ages()[token]).collect();
        if self.layout.with_log_ages {
            Normaliser::Log1p.apply(&mut ages);
        }
        let times: Vec<f64> = sides.iter().map(|&(pair, _)| self.queries[pair].time).collect();
        Ok(Hop {
            entries: self.entries(
                tokens.iter().map(|&token| self.tokens.nodes()[token]),
                sides.iter().flat_map(|&(pair, side)| self.tokens.events(pair, side)),
                tokens.iter().map(|&token| self.tokens.rows()[token]),
            ),
            empty: self.empty(&groups, &times)?,
            groups,
            ages: Tensor::matrix(tokens.len(), 1, ages)?.into(),
        })
    }

    fn second(&self, sides: &[(usize, Side)]) -> Result<Hop> {
        let tokens = self.tokens;
        let drawn = || sides.iter().flat_map(|&(pair, side)| tokens.event_tokens(pair, side));
        let groups = Ragged::from_lengths(drawn().map(|token| tokens.second(token).len()));
        let all = || sides.iter().flat_map(|&(pair, side)| tokens.second_of(pair, side));
        let events = sides.iter().flat_map(|&(pair, side)| tokens.events(pair, side));
        let times: Vec<f64> = events.map(|event| self.store.time(event)).collect();
        let nodes: Vec<NodeId> = all().map(|at| tokens.second_nodes()[at]).collect();
        let ages: Vec<f32> = all().map(|at| tokens.second_ages()[at]).collect();
        Ok(Hop {
            entries: self.entries(
                nodes.iter().copied(),
                all().map(|at| tokens.second_events().at(at)),
                all().map(|at| tokens.second_rows()[at]),
            ),
            empty: self.empty(&groups, &times)?,
            groups,
            ages: Tensor::matrix(ages.len(), 1, ages)?.into(),
        })
    }

    fn empty(&self, groups: &Ragged, times: &[f64]) -> Result<Option<EmptyGroups>> {
        if self.layout.padding == Padding::None {
            return Ok(None);
        }
        let empty: Vec<usize> = (0..groups.len()).filter(|&group| groups.range(group).is_empty()).collect();
        #[expect(clippy::cast_possible_truncation, reason = "as DyGLib has it")]
        let times = empty.iter().map(|&group| times[group] as f32).collect();
        let times = Tensor::matrix(empty.len(), 1, times)?.into();
        Ok(Some(EmptyGroups { groups: empty.into_iter().map(narrow).collect(), times }))
    }

    #[expect(clippy::cast_precision_loss, reason = "far fewer neighbours than f32 counts")]
    fn hitting_rates(&self) -> Result<Arc<Tensor>> {
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
    fn node_means(&self, sides: &[(usize, Side)], n: usize) -> Result<Arc<Tensor>> {
        let table = self.tables.node.as_ref().ok_or(Error::MissingInput)?;
        let width = table.cols();
        let mut means = vec![0.0; sides.len() * width];
        for (&(pair, side), mean) in sides.iter().zip(means.chunks_exact_mut(width.max(1))) {
            let root = self.tokens.nodes()[self.tokens.tokens(pair, side).start];
            let history = self.store.history(root, self.store.cut(self.queries[pair].time));
            let newest: Cow<'_, [NodeId]> = match self.left_out.get(pair) {
                None | Some([]) => history.last(n).neighbors.into(),
                Some(left_out) => {
                    let mut newest: Vec<usize> = history.last_without(n, left_out).collect();
                    newest.reverse();
                    newest.into_iter().map(|at| history.neighbors[at]).collect()
                }
            };
            for node in newest.iter() {
                let row = node.index().min(table.rows() - 1);
                let features = &table.values()[row * width..(row + 1) * width];
                mean.iter_mut().zip(features).for_each(|(sum, feature)| *sum += feature);
            }
            let share = 1.0 / newest.len().max(1) as f32;
            for sum in mean {
                *sum *= share;
            }
        }
        Ok(Tensor::matrix(sides.len(), width, means)?.into())
    }
}
