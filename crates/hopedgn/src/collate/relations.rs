//! Relations among the tokens of a pair: whether, when last and how often their nodes met each other, or that they are one node.
//!
//! Meetings are found once for each two distinct nodes of a pair, strictly before its time. Tokens are in classes: one for each distinct
//! node. In patches of several tokens each patch is a class, and two patches have the closest relation among their nodes: they met if any
//! two nodes did, the newest meeting and the largest number of meetings count, and they have a node in common or not.

use std::ops::Range;
use std::sync::Arc;

use ctdg::event::{EventId, NodeId};
use ctdg::meetings::MeetingFinder;
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
    finder: MeetingFinder,
}

impl RelationCollator<'_> {
    /// The relations of `pairs`, whose patches are in `sequences`, and those of each side in `sides`.
    pub(super) fn run(&self, pairs: Range<usize>, sequences: &Ragged, sides: &Ragged) -> Result<RelationInput> {
        let mut found = Found::default();
        let mut nodes = Vec::new();
        for (at, pair) in pairs.enumerate() {
            let first = found.pairs.len();
            self.nodes_of(pair, &mut nodes);
            let of_sides = [2 * at, 2 * at + 1].map(|side| sides.range(side).len());
            if self.patch == 1 {
                self.push_tokens(pair, &nodes, of_sides, &mut found);
            } else {
                self.push_patches(pair, &nodes, of_sides, &mut found);
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

    /// Calls `found` with the rows of each two nodes that met, the higher first, in order.
    fn each_meeting(
        &self,
        pair: usize,
        nodes: &[NodeId],
        finder: &mut MeetingFinder,
        mut found: impl FnMut([u32; 2], Relation),
    ) {
        let query = &self.queries[pair];
        let cut = self.store.cut(query.time);
        let left_out: &[EventId] = self.left_out.get(pair).copied().unwrap_or_default();
        finder.among(self.store, nodes, cut, left_out, |[high, low], met| {
            let age = self.precision.interval(query.time, self.store.time(met.last)).max(0.0);
            found([high, low], Relation { age, count: met.count as f32, is_same: high == low });
        });
    }

    /// A class for each distinct node, and one for padding.
    fn push_tokens(&self, pair: usize, nodes: &[NodeId], of_sides: [usize; 2], found: &mut Found) {
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
        let Found { pairs, relations, finder, .. } = found;
        self.each_meeting(pair, nodes, finder, |classes, relation| {
            pairs.push(classes);
            relations.push(relation);
        });
        if is_padded {
            found.push([padding; 2], Relation::NONE);
        }
    }

    /// A class for each patch, and one for those without a token.
    fn push_patches(&self, pair: usize, nodes: &[NodeId], of_sides: [usize; 2], found: &mut Found) {
        let first = self.tokens.rows_of_pair(pair).start;
        let (mut patches, mut n_empty) = (Vec::<Vec<usize>>::new(), [0; 2]);
        for (side, length) in SIDES.into_iter().zip(of_sides) {
            let rows = &self.tokens.rows()[self.tokens.tokens(pair, side)];
            let filled = patches.len();
            for tokens in rows.chunks(self.patch) {
                let mut distinct: Vec<usize> = tokens.iter().map(|&row| row as usize - first).collect();
                distinct.sort_unstable();
                distinct.dedup();
                patches.push(distinct);
            }
            n_empty[side as usize] = length - (patches.len() - filled);
        }
        let padding = narrow(patches.len());
        let mut next = 0;
        for (side, length) in SIDES.into_iter().zip(of_sides) {
            let n_filled = narrow(length - n_empty[side as usize]);
            found.classes.extend(next..next + n_filled);
            found.classes.extend(std::iter::repeat_n(padding, n_empty[side as usize]));
            next += n_filled;
        }
        let of_nodes = self.between_nodes(pair, nodes, &mut found.finder);
        let mut with_nodes = vec![Relation::NONE; nodes.len()];
        for (high, patch) in patches.iter().enumerate() {
            with_nodes.fill(Relation::NONE);
            for &node in patch {
                for (with, relation) in with_nodes.iter_mut().zip(&of_nodes[node * nodes.len()..]) {
                    with.join(relation);
                }
            }
            for (low, other) in patches[..=high].iter().enumerate() {
                let mut closest = Relation::NONE;
                for &node in other {
                    closest.join(&with_nodes[node]);
                }
                let is_default = closest.count == 0.0 && closest.is_same == (high == low);
                if !is_default {
                    found.push([narrow(high), narrow(low)], closest);
                }
            }
        }
        if n_empty != [0; 2] {
            found.push([padding; 2], Relation::NONE);
        }
    }

    /// The relation of each two of `nodes`, `[nodes, nodes]`.
    fn between_nodes(&self, pair: usize, nodes: &[NodeId], finder: &mut MeetingFinder) -> Vec<Relation> {
        let n = nodes.len();
        let mut relations = vec![Relation::NONE; n * n];
        for node in 0..n {
            relations[node * (n + 1)].is_same = true;
        }
        self.each_meeting(pair, nodes, finder, |[high, low], relation| {
            relations[high as usize * n + low as usize] = relation;
            relations[low as usize * n + high as usize] = relation;
        });
        relations
    }
}

impl Relation {
    /// Of nodes that never met.
    const NONE: Self = Self { age: f32::INFINITY, count: 0.0, is_same: false };

    /// The closer one in each respect.
    fn join(&mut self, other: &Self) {
        self.age = self.age.min(other.age);
        self.count = self.count.max(other.count);
        self.is_same |= other.is_same;
    }
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
