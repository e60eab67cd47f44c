//! One pair's tokens, rows and intervals.

use std::ops::Range;

use super::{NO_ROW, PairEncoding, PairQuery, PairTokens, Past, RowTable, Scope, Second, SecondTime, interval, narrow};
use crate::event::{Cut, NodeId};
use crate::sample::Drawn;
use crate::store::History;

/// How far from the pair an event was drawn; draws of different hops are independent.
#[derive(Debug, Clone, Copy)]
pub(super) enum Hop {
    First = 1,
    Second = 2,
}

/// Adds one pair to `out`: tokens of both sides, their second hop, then the intervals of all rows.
pub(super) struct PairTokensBuilder<'a> {
    pub(super) past: &'a Past<'a>,
    pub(super) query: &'a PairQuery,
    pub(super) table: &'a mut RowTable,
    pub(super) strangers: &'a mut RowTable,
    pub(super) out: &'a mut PairTokens,
    /// Rows of `out` before this pair.
    pub(super) first_row: usize,
}

impl PairTokensBuilder<'_> {
    pub(super) fn run(mut self, drawn: &mut Drawn) {
        let (past, query) = (self.past, self.query);
        let store = past.draws.store();
        let cut = store.cut(query.time);
        let roots = [query.src, query.dst];
        let most = past.encoding.length.saturating_sub(1);
        let histories = roots.map(|root| store.history(root, cut));
        self.table.clear();
        for side in 0..2 {
            let random = || past.random(query, roots[side], query.time, Hop::First);
            let history = past.draws.draw((roots[side], histories[side]), most, random, drawn);
            self.push_side(roots[side], &history, side);
        }
        if let Some(second) = past.encoding.second {
            self.push_second(second, cut, drawn);
        }
        self.out.pair_rows.push(narrow(self.out.n_rows()));
        match past.encoding.scope {
            Scope::Truncated => self.push_truncated(),
            Scope::Full => self.push_full(cut, roots),
        }
    }

    fn push_side(&mut self, root: NodeId, history: &History<'_>, side: usize) {
        let (from, precision) = (self.query.time, self.past.encoding.precision);
        let Self { table, out, first_row, .. } = self;
        let PairTokens { sides, nodes, ages, events, rows, counts, .. } = &mut **out;
        let first = nodes.len();
        nodes.push(root);
        nodes.extend_from_slice(history.neighbors);
        ages.push(0.0);
        ages.extend(history.times.iter().map(|&time| interval(from, time, precision)));
        events.extend_from_slice(history.events);
        sides.push(narrow(nodes.len()));
        rows.extend(nodes[first..].iter().map(|&node| {
            let row = *first_row + table.row(node) as usize;
            if row == counts.len() {
                counts.push([0; 2]);
            }
            counts[row][side] += 1;
            narrow(row)
        }));
    }

    /// What the nodes of the tokens did. Comes after both sides, because it asks which nodes are tokens.
    fn push_second(&mut self, second: Second, cut: Cut, drawn: &mut Drawn) {
        let (past, query) = (self.past, self.query);
        let (store, precision) = (past.draws.store(), past.encoding.precision);
        self.strangers.clear();
        for side in 0..2 {
            let tokens = self.side(side);
            let n_drawn = tokens.len() - 1;
            // A pair's events are the last ones so far: those of the source stand before those of the destination.
            let later = if side == 0 { self.side(1).len() - 1 } else { 0 };
            let first_event = self.out.events.len() - later - n_drawn;
            for at in 0..n_drawn {
                let node = self.out.nodes[tokens.start + 1 + at];
                let event_time = store.time(self.out.events[first_event + at]);
                let (before, time, from) = match second.time {
                    SecondTime::Query => (cut, query.time, query.time),
                    SecondTime::Event => (store.cut(event_time), event_time, precision.stored(event_time)),
                };
                let random = || past.random(query, node, time, Hop::Second);
                let history = past.draws.draw((node, store.history(node, before)), second.length, random, drawn);
                self.out.second_nodes.extend_from_slice(history.neighbors);
                self.out.second_events.extend_from_slice(history.events);
                self.out.second_ages.extend(history.times.iter().map(|&earlier| interval(from, earlier, precision)));
                for &node in history.neighbors {
                    let row = self.second_row(node, cut);
                    self.out.second_rows.push(row);
                }
                self.out.second_starts.push(narrow(self.out.second_nodes.len()));
            }
        }
    }

    /// The row of a node of the second hop, if it has one or ought to.
    fn second_row(&mut self, node: NodeId, cut: Cut) -> u32 {
        let known = self.table.get(node);
        if known.is_none() && self.past.encoding.scope == Scope::Full && self.strangers.get(node).is_none() {
            let store = self.past.draws.store();
            if [self.query.src, self.query.dst].iter().all(|&root| store.pair_events(node, root, cut).is_empty()) {
                self.strangers.row(node);
            } else {
                self.out.counts.push([0; 2]);
                return narrow(self.first_row) + self.table.row(node);
            }
        }
        known.map_or(NO_ROW, |row| narrow(self.first_row) + row)
    }

    /// The tokens of one side of this pair, the root's own first.
    fn side(&self, side: usize) -> Range<usize> {
        let last = self.out.sides.len() - 3;
        self.out.sides[last + side] as usize..self.out.sides[last + side + 1] as usize
    }

    /// Intervals of each row among the tokens themselves: sized by the counts, filled from the newest token back.
    fn push_truncated(self) {
        let sides = [self.side(0), self.side(1)];
        let root_rows = [0, 1].map(|side| self.out.rows[sides[side].start] as usize);
        let next = self.table.cursors();
        let mut end = self.out.intervals.len();
        for (row, counts) in (self.first_row..).zip(&self.out.counts[self.first_row..]) {
            for (count, root_row) in counts.iter().zip(root_rows) {
                // The root itself is a token but no meeting.
                let n_meetings = *count as usize - usize::from(row == root_row);
                let start = end;
                end += n_meetings.min(self.past.encoding.k);
                next.push([narrow(start), narrow(end)]);
                self.out.row_starts.push(narrow(end));
            }
        }
        self.out.intervals.resize(end, 0.0);
        for (side, tokens) in sides.into_iter().enumerate() {
            for at in (tokens.start + 1..tokens.end).rev() {
                let row = self.out.rows[at] as usize;
                let [place, end] = &mut next[2 * (row - self.first_row) + side];
                if place < end {
                    self.out.intervals[*place as usize] = self.out.ages[at];
                    *place += 1;
                }
            }
        }
    }

    /// Intervals of each row in the whole past, from the pair index.
    fn push_full(self, cut: Cut, roots: [NodeId; 2]) {
        let (store, PairEncoding { k, precision, .. }) = (self.past.draws.store(), self.past.encoding);
        for (row, &node) in (self.first_row..).zip(self.table.nodes()) {
            for (side, root) in roots.into_iter().enumerate() {
                let meetings = store.pair_events(node, root, cut);
                self.out.counts[row][side] = narrow(meetings.len()) + u32::from(node == root);
                let newest = meetings.iter().rev().take(k).map(|&event| store.time(event));
                let intervals = newest.map(|time| interval(self.query.time, time, precision));
                self.out.intervals.extend(intervals);
                self.out.row_starts.push(narrow(self.out.intervals.len()));
            }
        }
    }
}
