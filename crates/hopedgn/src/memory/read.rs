//! What a batch reads from a memory, and how its events update it.

use std::sync::Arc;

use ctdg::event::{EventId, NodeId};
use ctdg::mite::{PairQuery, PairTokens, Side};
use ctdg::walk_counts::WalkCounts;
use hopedgn_tensor::{Indices, StateTable, Tensor};
use rayon::prelude::*;

use super::{Memory, MessageOrder};
use crate::Result;
use crate::fmt::narrow;

/// The memory of the nodes of a batch: `W` nodes with pending messages, then `Q` without; `U = W + Q`.
///
/// Part of a [`HopInput`](crate::collate::HopInput); read by a [`MemoryUpdater`](crate::nn::MemoryUpdater).
#[derive(Debug, Clone)]
pub struct MemoryRead {
    /// The states of all nodes, `[N + 1, d]`.
    pub values: Arc<StateTable>,
    /// The messages of all nodes, `[N + 1, message]`.
    pub messages: Arc<StateTable>,
    /// The `W` nodes with pending messages.
    pub pending: Indices,
    /// The `Q` nodes without.
    pub idle: Indices,
    /// `[roots]`: the row of each root among the `U` nodes.
    pub roots: Indices,
    /// `[2B]`: the same of each side of each pair.
    pub sides: Indices,
    /// `[F]`: the row of each entry of the first hop.
    pub first: Indices,
    /// `[G]`: the row of each entry of the second hop.
    pub second: Option<Indices>,
    /// `[roots, 1]`: standardised time since each root's last update, by the side of its first pair.
    pub gaps: Arc<Tensor>,
    /// Of roots, first and second hop, `[entries, 8]` each: shares of walks of length 0 to 3 from the entry to its root, and to
    /// the other node of the pair.
    pub positions: Option<[Arc<Tensor>; 3]>,
    /// The update by the first pairs of the batch, where they are events.
    pub update: Option<MemoryUpdate>,
}

/// How the events of a batch update the memory.
///
/// Part of a [`MemoryRead`]; read by [`MemoryUpdater::update`](crate::nn::MemoryUpdater::update).
#[derive(Debug, Clone)]
pub struct MemoryUpdate {
    /// Nodes of the events whose pending messages are applied, as rows among the `W`.
    pub applied: Indices,
    /// The same nodes as rows of the memory.
    pub applied_nodes: Indices,
    /// The `M` nodes of the events as rows of the memory.
    pub nodes: Indices,
    /// `[M]`: the root that each of them is in the event of its new message.
    pub own: Indices,
    /// `[M]`: the other root of that event.
    pub partner: Indices,
    /// `[M, 1]`: time since its previous update.
    pub elapsed: Arc<Tensor>,
    /// `[M]`: the event.
    pub events: Indices,
}

/// The sides that are roots: all, or the first side of each root.
fn root_sides(n_pairs: usize, of_pairs: Option<&Indices>) -> impl Iterator<Item = (usize, Side)> + '_ {
    let mut n_roots = 0;
    let sides = (0..n_pairs).flat_map(|pair| [Side::Src, Side::Dst].map(|side| (pair, side)));
    sides.enumerate().filter_map(move |(at, side)| {
        if of_pairs.is_some_and(|of_pairs| of_pairs[at] < n_roots) {
            return None;
        }
        n_roots += 1;
        Some(side)
    })
}

impl Memory {
    /// The memory of all nodes of `tokens`, the tokens of `queries`; `of_pairs` has the root of each side where roots are distinct.
    pub(crate) fn read(
        &mut self,
        tokens: &PairTokens,
        queries: &[PairQuery],
        of_pairs: Option<&Indices>,
        has_second: bool,
    ) -> Result<MemoryRead> {
        let sides = || root_sides(tokens.n_pairs(), of_pairs);
        let unknown = self.pending.len() - 1;
        let row = |node: NodeId| node.index().min(unknown);
        let roots: Vec<usize> =
            sides().map(|(pair, side)| row(tokens.nodes()[tokens.tokens(pair, side).start])).collect();
        let without_root = |(pair, side)| tokens.nodes()[tokens.tokens(pair, side)][1..].iter().map(|&node| row(node));
        let first: Vec<usize> = sides().flat_map(without_root).collect();
        let second_of =
            |(pair, side)| tokens.second_nodes()[tokens.second_of(pair, side)].iter().map(|&node| row(node));
        let second: Option<Vec<usize>> = has_second.then(|| sides().flat_map(second_of).collect());

        let (pending, idle) = self.distinct(roots.iter().chain(&first).chain(second.iter().flatten()));
        // `distinct` marked each node with its place among its kind; nodes without messages come second.
        let place = |&node: &usize| match self.pending[node] {
            Some(_) => self.marks[node].1,
            None => self.marks[node].1 + narrow(pending.len()),
        };
        let gaps = roots
            .iter()
            .zip(sides())
            .map(|(&node, (pair, side))| self.shifts[side as usize].apply(queries[pair].time - self.last_change(node)));
        let positions = self.positions.as_ref().map(|positions| places(positions, tokens, queries)).transpose()?;
        let places: Indices = roots.iter().map(place).collect();
        let of_side = |&root: &u32| places[root as usize];
        Ok(MemoryRead {
            values: Arc::clone(&self.values),
            messages: Arc::clone(&self.messages),
            sides: of_pairs.map_or_else(|| places.clone(), |of_pairs| of_pairs.iter().map(of_side).collect()),
            roots: places.clone(),
            first: first.iter().map(place).collect(),
            second: second.map(|second| second.iter().map(place).collect()),
            gaps: Tensor::matrix(roots.len(), 1, gaps.collect())?.into(),
            pending: pending.into(),
            idle: idle.into(),
            positions,
            update: None,
        })
    }

    /// The distinct ones of `nodes`, with pending messages and without; marks each with its place among its kind.
    fn distinct<'n>(&mut self, nodes: impl Iterator<Item = &'n usize>) -> (Vec<u32>, Vec<u32>) {
        self.batch += 1;
        let (mut pending, mut idle) = (Vec::new(), Vec::new());
        for &node in nodes {
            if self.marks[node].0 == self.batch {
                continue;
            }
            let kind = if self.pending[node].is_some() { &mut pending } else { &mut idle };
            self.marks[node] = (self.batch, narrow(kind.len()));
            kind.push(narrow(node));
        }
        (pending, idle)
    }

    /// The update by `events`, the first pairs of the batch that was read last.
    pub(crate) fn consume(&mut self, events: &[EventId]) -> Result<MemoryUpdate> {
        // For each node the place of its event in the batch, and its role in it.
        let mut chosen: Vec<(usize, usize)> = Vec::new();
        let mut place_of = std::collections::BTreeMap::<usize, usize>::new();
        let roles: Vec<(usize, usize)> = match self.form.message_order {
            MessageOrder::Newest => (0..events.len()).flat_map(|at| [(at, 0), (at, 1)]).collect(),
            MessageOrder::Dyglib => {
                [0, 1].into_iter().flat_map(|role| (0..events.len()).map(move |at| (at, role))).collect()
            }
        };
        let node_of = |(at, role): (usize, usize)| {
            let event = self.stream.event(events[at]);
            [event.src, event.dst][role].index()
        };
        for role in roles {
            // The later one wins.
            let place = *place_of.entry(node_of(role)).or_insert(chosen.len());
            if place == chosen.len() {
                chosen.push(role);
            } else {
                chosen[place] = role;
            }
        }
        let (mut applied, mut applied_nodes, mut elapsed) = (Vec::new(), Vec::new(), Vec::new());
        for &role in &chosen {
            let node = node_of(role);
            if self.pending[node].is_some() {
                applied.push(self.marks[node].1);
                applied_nodes.push(narrow(node));
            }
            #[expect(clippy::cast_possible_truncation, reason = "a model's input")]
            elapsed.push((self.stream.event(events[role.0]).time - self.last_change(node)) as f32);
        }
        let nodes: Vec<usize> = chosen.iter().map(|&role| node_of(role)).collect();
        for (&node, &(at, _)) in nodes.iter().zip(&chosen) {
            self.applied[node] = self.pending[node].or(self.applied[node]);
            self.pending[node] = Some(events[at]);
        }
        if let Some(positions) = &mut self.positions {
            for &id in events {
                let event = self.stream.event(id);
                positions.advance(event.src, event.dst);
            }
        }
        Ok(MemoryUpdate {
            applied: applied.into(),
            applied_nodes: applied_nodes.into(),
            nodes: nodes.into_iter().map(narrow).collect(),
            own: chosen.iter().map(|&(at, role)| narrow(2 * at + role)).collect(),
            partner: chosen.iter().map(|&(at, role)| narrow(2 * at + 1 - role)).collect(),
            elapsed: Tensor::matrix(chosen.len(), 1, elapsed)?.into(),
            events: chosen.iter().map(|&(at, _)| narrow(events[at].index())).collect(),
        })
    }
}

/// Walk counts from each entry to its root and to the other node of the pair.
fn places(positions: &WalkCounts, tokens: &PairTokens, queries: &[PairQuery]) -> Result<[Arc<Tensor>; 3]> {
    let walks = |from: NodeId, to: NodeId| {
        let counts = positions.get(from, to);
        let sum = counts.iter().sum::<f32>() + 1e-4;
        counts.map(|count| count / sum)
    };
    // Of each side: eight values for the root, for each neighbour, and for each of theirs.
    let side = |index: usize| {
        let (pair, side) = (index / 2, [Side::Src, Side::Dst][index % 2]);
        let PairQuery { src, dst, .. } = queries[pair];
        let [root, other] = if side == Side::Src { [src, dst] } else { [dst, src] };
        let eight = |values: &mut Vec<f32>, nodes: &[NodeId]| {
            for &node in nodes {
                values.extend_from_slice(&walks(node, root));
                values.extend_from_slice(&walks(node, other));
            }
        };
        let mut hops = [const { Vec::new() }; 3];
        eight(&mut hops[0], &[root]);
        eight(&mut hops[1], &tokens.nodes()[tokens.tokens(pair, side)][1..]);
        if tokens.second_starts().len() > 1 {
            for token in tokens.event_tokens(pair, side) {
                eight(&mut hops[2], &tokens.second_nodes()[tokens.second(token)]);
            }
        }
        hops
    };
    let sides: Vec<[Vec<f32>; 3]> = (0..2 * tokens.n_pairs()).into_par_iter().map(side).collect();
    let mut all = [0, 1, 2].map(|hop| sides.iter().map(|side| &*side[hop]).collect::<Vec<&[f32]>>().concat());
    let mut tensor = |hop: usize| -> Result<Arc<Tensor>> {
        let values = std::mem::take(&mut all[hop]);
        Ok(Tensor::matrix(values.len() / 8, 8, values)?.into())
    };
    Ok([tensor(0)?, tensor(1)?, tensor(2)?])
}
