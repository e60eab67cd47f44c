//! Relations among the tokens of a pair: whether, when last and how often their nodes met each other, or that they are one node.
//!
//! Meetings are found once for each two distinct nodes of a pair, strictly before its time. Tokens are in classes: one for each distinct
//! node. In patches of several tokens each patch is a class, and two patches have the closest relation among their nodes: they met if any
//! two nodes did, the newest meeting and the largest number of meetings count, and they have a node in common or not.

use std::ops::Range;
use std::sync::Arc;

use ctdg::event::{EventId, NodeId};
use ctdg::meetings::{MeetingFinder, Meetings};
use ctdg::mite::{PairQuery, PairTokens, TimePrecision};
use ctdg::store::Store;
use hopedgn_tensor::{Ragged, Relations, Tensor};

use super::SIDES;
use crate::Result;
use crate::fmt::narrow;

/// Columns of [`RelationInput::features`].
pub const N_RELATION_FEATURES: usize = 4;

/// Divides ln(1 + Δt) since the last meeting, so that intervals from seconds to years are of order 1.
const LOG_AGE_SCALE: f32 = 10.0;

/// The relations among the tokens of `B` pairs, `K` different ones.
///
/// Part of a [`PairInput`](super::PairInput).
#[derive(Debug, Clone)]
pub struct RelationInput {
    /// `[K, 4]`: 1 if the nodes met before the query, ln(1 + Δt) / 10 since they last did, ln(1 + n) of how often; 1 if they are one
    /// node. The first row is that of nodes that never met, the second that of a node with itself.
    pub features: Arc<Tensor>,
    /// Which row belongs to which tokens, or patches.
    pub of_tokens: Relations,
}

/// Where relations are looked up.
pub(super) struct RelationCollator<'a> {
    pub(super) store: &'a Store,
    pub(super) tokens: &'a PairTokens,
    pub(super) queries: &'a [PairQuery],
    /// For each pair, events that count as not in the store; empty if there are none.
    pub(super) left_out: &'a [&'a [EventId]],
    pub(super) precision: TimePrecision,
    /// Tokens per patch.
    pub(super) patch: usize,
}

/// How two nodes, or patches, are related, beyond what is said of all.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Relation {
    /// Time since the last meeting.
    age: f32,
    /// Number of meetings; 0 for none.
    count: f32,
    is_same: bool,
}

/// What is known of all pairs so far.
#[derive(Default)]
struct Found {
    classes: Vec<u32>,
    pairs: Vec<[u32; 2]>,
    n_pairs: Vec<usize>,
    relations: Vec<Relation>,
}

/// The closest relation of two patches so far.
#[derive(Debug, Clone, Copy)]
struct Closest {
    /// Largest number of meetings of two nodes.
    count: usize,
    /// The newest meeting, if there is one.
    last: EventId,
    is_same: bool,
}

impl Closest {
    /// Of nodes that never met.
    const NONE: Self = Self { count: 0, last: EventId(0), is_same: false };
}

/// The patches of a pair, with allocations that are kept between pairs.
#[derive(Default)]
struct Patches {
    /// For each node of the pair, its patches in ascending order.
    of_nodes: Vec<Vec<u32>>,
    n: usize,
    /// `[n, n]`, the higher patch first.
    closest: Vec<Closest>,
}

impl RelationCollator<'_> {
    /// The relations of `pairs`, whose patches are in `sequences`, and those of each side in `sides`.
    pub(super) fn run(&self, pairs: Range<usize>, sequences: &Ragged, sides: &Ragged) -> Result<RelationInput> {
        let mut found = Found::default();
        let mut finder = MeetingFinder::new(self.store);
        let (mut nodes, mut patches) = (Vec::new(), Patches::default());
        for (at, pair) in pairs.enumerate() {
            let first = found.pairs.len();
            self.nodes_of(pair, &mut nodes);
            let of_sides = [2 * at, 2 * at + 1].map(|side| sides.range(side).len());
            if self.patch == 1 {
                self.push_tokens(pair, &nodes, of_sides, &mut finder, &mut found);
            } else {
                self.push_patches(pair, &nodes, of_sides, &mut finder, &mut patches, &mut found);
            }
            found.n_pairs.push(found.pairs.len() - first);
        }
        found.input(sequences)
    }

    /// The distinct nodes of a pair, in the order of their rows.
    fn nodes_of(&self, pair: usize, nodes: &mut Vec<NodeId>) {
        let rows = self.tokens.rows_of_pair(pair);
        nodes.clear();
        nodes.resize(rows.len(), NodeId(0));
        for token in SIDES.into_iter().flat_map(|side| self.tokens.tokens(pair, side)) {
            nodes[self.tokens.rows()[token] as usize - rows.start] = self.tokens.nodes()[token];
        }
    }

    /// Events that count as not in the store.
    fn left_out_of(&self, pair: usize) -> &[EventId] {
        self.left_out.get(pair).copied().unwrap_or_default()
    }

    /// Time from `event` to `query`.
    fn age(&self, query: &PairQuery, event: EventId) -> f32 {
        self.precision.interval(query.time, self.store.time(event)).max(0.0)
    }

    /// A class for each distinct node, and one for padding.
    fn push_tokens(
        &self,
        pair: usize,
        nodes: &[NodeId],
        of_sides: [usize; 2],
        finder: &mut MeetingFinder<'_>,
        found: &mut Found,
    ) {
        let first = narrow(self.tokens.rows_of_pair(pair).start);
        let padding = narrow(nodes.len());
        let mut is_padded = false;
        for (side, length) in SIDES.into_iter().zip(of_sides) {
            let tokens = self.tokens.tokens(pair, side);
            is_padded |= tokens.len() < length;
            let end = found.classes.len() + length;
            found.classes.extend(self.tokens.rows()[tokens].iter().map(|row| row - first));
            found.classes.resize(end, padding);
        }
        let query = &self.queries[pair];
        finder.among(nodes, self.store.cut(query.time), self.left_out_of(pair), |classes, met| {
            let [high, low] = classes;
            let relation = Relation { age: self.age(query, met.last), count: met.count as f32, is_same: high == low };
            found.push(classes, relation);
        });
        if is_padded {
            found.push([padding; 2], Relation::NONE);
        }
    }

    /// A class for each patch, and one for those without a token.
    #[expect(clippy::too_many_arguments, reason = "what is read, and three buffers that are kept between pairs")]
    fn push_patches(
        &self,
        pair: usize,
        nodes: &[NodeId],
        of_sides: [usize; 2],
        finder: &mut MeetingFinder<'_>,
        patches: &mut Patches,
        found: &mut Found,
    ) {
        patches.clear(nodes.len());
        let first = self.tokens.rows_of_pair(pair).start;
        let mut n_empty = [0; 2];
        for (side, length) in SIDES.into_iter().zip(of_sides) {
            let rows = &self.tokens.rows()[self.tokens.tokens(pair, side)];
            let filled = patches.n;
            for tokens in rows.chunks(self.patch) {
                patches.push(tokens.iter().map(|&row| row as usize - first));
            }
            n_empty[side as usize] = length - (patches.n - filled);
        }
        let padding = narrow(patches.n);
        let mut next = 0;
        for (side, length) in SIDES.into_iter().zip(of_sides) {
            let n_filled = narrow(length - n_empty[side as usize]);
            found.classes.extend(next..next + n_filled);
            found.classes.extend(std::iter::repeat_n(padding, n_empty[side as usize]));
            next += n_filled;
        }
        let query = &self.queries[pair];
        patches.relate();
        finder.among_in_any_order(nodes, self.store.cut(query.time), self.left_out_of(pair), |[high, low], met| {
            patches.join(high as usize, low as usize, met);
        });
        for (high, of_high) in patches.closest.chunks_exact(patches.n.max(1)).enumerate() {
            for (low, closest) in of_high[..=high].iter().enumerate() {
                let is_default = closest.count == 0 && closest.is_same == (high == low);
                if !is_default {
                    found.push([narrow(high), narrow(low)], self.relation(query, closest));
                }
            }
        }
        if n_empty != [0; 2] {
            found.push([padding; 2], Relation::NONE);
        }
    }

    fn relation(&self, query: &PairQuery, closest: &Closest) -> Relation {
        let &Closest { count, last, is_same } = closest;
        let age = if count > 0 { self.age(query, last) } else { Relation::NONE.age };
        Relation { age, count: count as f32, is_same }
    }
}

impl Patches {
    /// None of a pair with so many nodes.
    fn clear(&mut self, n_nodes: usize) {
        self.n = 0;
        self.of_nodes.truncate(n_nodes);
        self.of_nodes.iter_mut().for_each(Vec::clear);
        self.of_nodes.resize_with(n_nodes, Vec::new);
    }

    /// The next patch, of these nodes.
    fn push(&mut self, nodes: impl Iterator<Item = usize>) {
        let patch = narrow(self.n);
        for node in nodes {
            let patches = &mut self.of_nodes[node];
            if patches.last() != Some(&patch) {
                patches.push(patch);
            }
        }
        self.n += 1;
    }

    /// Notes which patches have a node in common.
    fn relate(&mut self) {
        self.closest.clear();
        self.closest.resize(self.n * self.n, Closest::NONE);
        for patches in &self.of_nodes {
            for (at, &high) in patches.iter().enumerate() {
                for &low in &patches[..=at] {
                    self.closest[high as usize * self.n + low as usize].is_same = true;
                }
            }
        }
    }

    /// Joins the meetings of two nodes to the relations of their patches: the newest meeting and the largest number count.
    fn join(&mut self, node: usize, other: usize, met: Meetings) {
        for &one in &self.of_nodes[node] {
            for &two in &self.of_nodes[other] {
                let [high, low] = [one.max(two), one.min(two)].map(|patch| patch as usize);
                let closest = &mut self.closest[high * self.n + low];
                closest.count = closest.count.max(met.count);
                closest.last = closest.last.max(met.last);
            }
        }
    }
}

impl Relation {
    /// Of nodes that never met.
    const NONE: Self = Self { age: f32::INFINITY, count: 0.0, is_same: false };
}

impl Found {
    fn push(&mut self, classes: [u32; 2], relation: Relation) {
        self.pairs.push(classes);
        self.relations.push(relation);
    }

    fn input(self, sequences: &Ragged) -> Result<RelationInput> {
        let met = |value: fn(&Relation) -> f32| {
            let logs = self.relations.iter().map(|relation| if relation.count > 0.0 { value(relation) } else { 0.0 });
            let mut logs: Vec<f32> = logs.collect();
            hopedgn_tensor::ln_1p(&mut logs);
            logs
        };
        let (ages, counts) = (met(|relation| relation.age), met(|relation| relation.count));
        let mut rows = Vec::with_capacity(N_RELATION_FEATURES * (2 + self.relations.len()));
        rows.extend([0.0, 0.0, 0.0, 0.0]);
        rows.extend([0.0, 0.0, 0.0, 1.0]);
        for ((relation, age), count) in self.relations.iter().zip(ages).zip(counts) {
            let has_met = f32::from(relation.count > 0.0);
            rows.extend([has_met, age / LOG_AGE_SCALE, count, f32::from(relation.is_same)]);
        }
        let features = Tensor::matrix(rows.len() / N_RELATION_FEATURES, N_RELATION_FEATURES, rows)?.into();
        let of_tokens = Relations::new(sequences, self.classes, self.pairs, Ragged::from_lengths(self.n_pairs))?;
        Ok(RelationInput { features, of_tokens })
    }
}
