//! Builds the tokens, rows and intervals of one pair.

use std::ops::Range;

use super::{
    MiteScope, NO_ROW, PairEncoderConfig, PairQuery, PairTokens, RowTable, SecondHop, SecondHopTime, SelfLoops, Shared,
    TimePrecision, count_u32, interval, offset_u32,
};
use crate::event::{Cut, EventId, NodeId};
use crate::sample::SampleBuffers;
use crate::store::History;

/// Hop of a sampled event; draws of different hops are independent.
#[derive(Debug, Clone, Copy)]
pub(super) enum Hop {
    First = 1,
    Second = 2,
}

/// Appends one pair to `out`: tokens of both sides, their second hop, then the intervals of all rows.
pub(super) struct PairTokensBuilder<'a> {
    pub(super) shared: &'a Shared<'a>,
    pub(super) query: &'a PairQuery,
    /// Events that are treated as if they were not in the store, in ascending order; only with recent events of one hop.
    pub(super) left_out: &'a [EventId],
    pub(super) table: &'a mut RowTable,
    pub(super) unrelated: &'a mut RowTable,
    pub(super) out: &'a mut PairTokens,
    /// Rows of `out` before this pair.
    pub(super) first_row: usize,
}

impl PairTokensBuilder<'_> {
    pub(super) fn run(mut self, sample: &mut SampleBuffers) {
        let (shared, query) = (self.shared, self.query);
        let store = shared.sampler.store();
        let cut = store.cut(query.time);
        let roots = [query.src, query.dst];
        let max_events = shared.config.length.saturating_sub(1);
        let histories = roots.map(|root| store.history(root, cut));
        let keys = [0, 1].map(|side| shared.sampler.key(roots[side], &histories[side]));
        self.table.clear();
        for side in 0..2 {
            let random = || shared.random(keys, keys[side], query.time, Hop::First);
            let history = match self.left_out {
                [] => shared.sampler.sample((roots[side], histories[side]), max_events, random, sample),
                left_out => sample.last_without(histories[side], max_events, left_out),
            };
            self.push_side(roots[side], &history, side);
        }
        if let Some(second) = shared.config.second {
            self.push_second(second, cut, keys, sample);
        }
        self.out.pair_rows.push(offset_u32(self.out.n_rows()));
        match shared.config.scope {
            MiteScope::Truncated => self.push_truncated(),
            MiteScope::Full => self.push_full(cut, roots),
        }
    }

    fn push_side(&mut self, root: NodeId, history: &History<'_>, side: usize) {
        let (from, precision) = (self.query.time, self.shared.config.precision);
        let Self { table, out, first_row, .. } = self;
        let PairTokens { sides, nodes, ages, events, rows, counts, .. } = &mut **out;
        let first = nodes.len();
        nodes.push(root);
        nodes.extend_from_slice(history.neighbors);
        ages.push(0.0);
        ages.extend(history.times.iter().map(|&time| interval(from, time, precision)));
        events.extend_from(history.events);
        sides.push(offset_u32(nodes.len()));
        rows.extend(nodes[first..].iter().map(|&node| {
            let row = *first_row + table.row(node) as usize;
            if row == counts.len() {
                counts.push([0; 2]);
            }
            counts[row][side] += 1;
            offset_u32(row)
        }));
    }

    /// Second hop of both sides. Comes last, because it needs to know which nodes are tokens. `keys` are those of the pair.
    fn push_second(&mut self, second: SecondHop, cut: Cut, keys: [u64; 2], sample: &mut SampleBuffers) {
        let (shared, query) = (self.shared, self.query);
        let (store, precision) = (shared.sampler.store(), shared.config.precision);
        self.unrelated.clear();
        for side in 0..2 {
            let (tokens, first_event) = (self.side(side), self.first_event(side));
            for at in 0..tokens.len() - 1 {
                let node = self.out.nodes[tokens.start + 1 + at];
                let event_time = store.time(self.out.events.at(first_event + at));
                let (before, time, from) = match second.time {
                    SecondHopTime::Query => (cut, query.time, query.time),
                    SecondHopTime::Event => (store.cut(event_time), event_time, precision.stored(event_time)),
                    SecondHopTime::EventAsF32 => {
                        let rounded = TimePrecision::F32.stored(event_time);
                        (store.cut(rounded), rounded, rounded)
                    }
                };
                let history = store.history(node, before);
                let random = || shared.random(keys, shared.sampler.key(node, &history), time, Hop::Second);
                let history = shared.sampler.sample((node, history), second.length, random, sample);
                self.out.second_nodes.extend_from_slice(history.neighbors);
                self.out.second_events.extend_from(history.events);
                self.out.second_ages.extend(history.times.iter().map(|&earlier| interval(from, earlier, precision)));
                for &node in history.neighbors {
                    let row = self.second_row(node, cut);
                    self.out.second_rows.push(row);
                }
                self.out.second_starts.push(offset_u32(self.out.second_nodes.len()));
            }
        }
    }

    /// The row of a second-hop node, or `NO_ROW`. With the full scope, a node that interacted with either side gets one.
    fn second_row(&mut self, node: NodeId, cut: Cut) -> u32 {
        let known = self.table.get(node);
        if known.is_none() && self.shared.config.scope == MiteScope::Full && self.unrelated.get(node).is_none() {
            let store = self.shared.sampler.store();
            if [self.query.src, self.query.dst].iter().all(|&root| store.pair_events(node, root, cut).is_empty()) {
                self.unrelated.row(node);
            } else {
                self.out.counts.push([0; 2]);
                return offset_u32(self.first_row) + self.table.row(node);
            }
        }
        known.map_or(NO_ROW, |row| offset_u32(self.first_row) + row)
    }

    /// The tokens of one side of this pair, the root's own first.
    fn side(&self, side: usize) -> Range<usize> {
        let last = self.out.sides.len() - 3;
        self.out.sides[last + side] as usize..self.out.sides[last + side + 1] as usize
    }

    /// Index in `out.events` of the first event of one side: those of this pair are the last ones, source before destination.
    fn first_event(&self, side: usize) -> usize {
        (side..2).fold(self.out.events.len(), |end, side| end - (self.side(side).len() - 1))
    }

    /// Intervals of each row from the tokens themselves: allocated by the counts, filled from newest to oldest.
    fn push_truncated(self) {
        let sides = [self.side(0), self.side(1)];
        let first_events = [0, 1].map(|side| self.first_event(side));
        let root_rows = [0, 1].map(|side| self.out.rows[sides[side].start] as usize);
        let loops_once = self.shared.config.self_loops == SelfLoops::Once;
        // Whether the token at `at` is the second entry of the self-loop that the token before it stands for.
        let repeats_loop = |out: &PairTokens, side: usize, at: usize| {
            let event = first_events[side] + at - sides[side].start - 1;
            at > sides[side].start + 1 && out.events.at(event) == out.events.at(event - 1)
        };
        let repeated_loops = [0, 1].map(|side| {
            if !loops_once || self.out.counts[root_rows[side]][side] < 3 {
                return 0;
            }
            let is_loop = |at: &usize| self.out.rows[*at] as usize == root_rows[side];
            sides[side].clone().skip(1).filter(is_loop).filter(|&at| repeats_loop(self.out, side, at)).count()
        });
        let next = self.table.cursors();
        let mut end = self.out.intervals.len();
        for (row, counts) in (self.first_row..).zip(&self.out.counts[self.first_row..]) {
            for (side, &count) in counts.iter().enumerate() {
                // The root token is not an interaction.
                let n_others = if row == root_rows[side] { 1 + repeated_loops[side] } else { 0 };
                let n_interactions = count as usize - n_others;
                let start = end;
                end += n_interactions.min(self.shared.config.k);
                next.push([offset_u32(start), offset_u32(end)]);
                self.out.row_starts.push(offset_u32(end));
            }
        }
        self.out.intervals.resize(end, 0.0);
        for (side, tokens) in sides.iter().enumerate() {
            for at in (tokens.start + 1..tokens.end).rev() {
                let row = self.out.rows[at] as usize;
                if repeated_loops[side] > 0 && row == root_rows[side] && repeats_loop(self.out, side, at) {
                    continue;
                }
                let [slot, end] = &mut next[2 * (row - self.first_row) + side];
                if slot < end {
                    self.out.intervals[*slot as usize] = self.out.ages[at];
                    *slot += 1;
                }
            }
        }
    }

    /// Intervals of each row in the whole history, from the pair index.
    fn push_full(self, cut: Cut, roots: [NodeId; 2]) {
        let (store, PairEncoderConfig { k, precision, self_loops, .. }) =
            (self.shared.sampler.store(), self.shared.config);
        let (from, times) = (self.query.time, store.times());
        // Captures the slice of times by value, so that no event looks the column up again.
        let age = move |event: EventId| interval(from, times[event.index()], precision);
        for (row, &node) in (self.first_row..).zip(self.table.nodes()) {
            for (side, root) in roots.into_iter().enumerate() {
                let events = store.pair_events(node, root, cut);
                // A self-loop is in its list twice.
                let step = if node == root && self_loops == SelfLoops::Once { 2 } else { 1 };
                let n_events = if self.left_out.is_empty() {
                    // By position: `extend` trusts the length of a range and reserves once, that of `events.iter()` it checks at each event.
                    let (n, n_kept) = (events.len(), events.len().div_ceil(step).min(k));
                    self.out.intervals.extend((0..n_kept).map(move |back| age(events.at(n - 1 - back * step))));
                    n
                } else {
                    let left = events.iter().rev().filter(|event| self.left_out.binary_search(event).is_err());
                    self.out.intervals.extend(left.clone().step_by(step).take(k).map(age));
                    left.count()
                };
                self.out.counts[row][side] = count_u32(n_events).saturating_add(u32::from(node == root));
                self.out.row_starts.push(offset_u32(self.out.intervals.len()));
            }
        }
    }
}
