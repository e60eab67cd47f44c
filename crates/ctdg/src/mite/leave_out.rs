//! A pair's tokens with one of them taken away at a time, to see what each was good for.

use super::{NO_ROW, PairEncoding, PairTokens, Scope, Side, narrow};

/// One pair many times over, each time without one of its tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct LeaveOneOut {
    /// Variant `i` of the pair lacks token `left_out[i]`, a place in [`PairTokens::nodes`] of the original.
    pub left_out: Vec<usize>,
    /// The variants.
    pub tokens: PairTokens,
}

impl PairTokens {
    /// Every variant of `pair` that lacks one event of one side; the nodes themselves stay. `encoding` is the one the
    /// tokens were made with.
    ///
    /// With the token go its interval and its second hop; all else that was drawn stays as it was. Among the tokens ([`Scope::Truncated`]) the next older one moves up where more
    /// than `K` met; with [`Scope::Full`] the last of `K` slots stays empty, and an event that was drawn twice stays a
    /// token but is no meeting any more.
    ///
    /// # Panics
    /// When there is no such pair.
    #[must_use]
    pub fn leave_one_out(&self, pair: usize, encoding: PairEncoding) -> LeaveOneOut {
        let mut out = LeaveOneOut { left_out: Vec::new(), tokens: Self::default() };
        out.tokens.clear();
        for side in [Side::Src, Side::Dst] {
            for token in self.tokens(pair, side).skip(1) {
                out.left_out.push(token);
                let variant = Variant { of: self, pair, side, token, encoding };
                variant.push_to(&mut out.tokens);
            }
        }
        out
    }
}

struct Variant<'a> {
    of: &'a PairTokens,
    pair: usize,
    /// The side that lacks a token.
    side: Side,
    token: usize,
    encoding: PairEncoding,
}

impl Variant<'_> {
    fn push_to(&self, out: &mut PairTokens) {
        let (first_row, out_row) = (self.of.rows_of_pair(self.pair).start, out.n_rows());
        let row = |row: u32| narrow(row as usize - first_row + out_row);
        for side in [Side::Src, Side::Dst] {
            let tokens = self.of.tokens(self.pair, side);
            for at in tokens.clone().filter(|&at| at != self.token) {
                out.nodes.push(self.of.nodes[at]);
                out.ages.push(self.of.ages[at]);
                out.rows.push(row(self.of.rows[at]));
            }
            let events = self.of.events(self.pair, side).iter().zip(tokens.start + 1..);
            out.events.extend(events.filter(|(_, at)| *at != self.token).map(|(event, _)| *event));
            out.sides.push(narrow(out.nodes.len()));
        }
        for row in self.of.rows_of_pair(self.pair) {
            let mut counts = self.of.counts(row);
            for side in [Side::Src, Side::Dst] {
                if side == self.side && row == self.of.rows[self.token] as usize {
                    counts[side as usize] -= 1;
                    self.push_intervals_without(row, out);
                } else {
                    out.intervals.extend_from_slice(self.of.intervals(row, side));
                }
                out.row_starts.push(narrow(out.intervals.len()));
            }
            out.counts.push(counts);
        }
        out.pair_rows.push(narrow(out.n_rows()));
        if self.encoding.second.is_some() {
            self.push_second(out_row, out);
        }
    }

    /// The second hop of the tokens that are left. `out_row` is the variant's first row.
    fn push_second(&self, out_row: usize, out: &mut PairTokens) {
        let first_row = self.of.rows_of_pair(self.pair).start;
        for side in [Side::Src, Side::Dst] {
            let tokens = self.of.tokens(self.pair, side).skip(1).zip(self.of.drawn(self.pair, side));
            for (_, token) in tokens.filter(|(at, _)| *at != self.token) {
                let second = self.of.second(token);
                out.second_nodes.extend_from_slice(&self.of.second_nodes[second.clone()]);
                out.second_ages.extend_from_slice(&self.of.second_ages[second.clone()]);
                out.second_events.extend_from_slice(&self.of.second_events[second.clone()]);
                for &row in &self.of.second_rows[second] {
                    // A row that nobody has is as good as none.
                    let row = if row == NO_ROW { row } else { narrow(row as usize - first_row + out_row) };
                    let has_row = row != NO_ROW && out.counts[row as usize] != [0; 2];
                    out.second_rows.push(if has_row { row } else { NO_ROW });
                }
                out.second_starts.push(narrow(out.second_nodes.len()));
            }
        }
    }

    /// The intervals of the token's own node with its own side.
    fn push_intervals_without(&self, row: usize, out: &mut PairTokens) {
        match self.encoding.scope {
            Scope::Truncated => {
                let others = self.of.tokens(self.pair, self.side).skip(1).rev();
                let others = others.filter(|&at| at != self.token && self.of.rows[at] as usize == row);
                out.intervals.extend(others.take(self.encoding.k).map(|at| self.of.ages[at]));
            }
            Scope::Full => {
                let all = self.of.intervals(row, self.side);
                let gone = all.iter().position(|&interval| interval == self.of.ages[self.token]);
                out.intervals.extend(all.iter().enumerate().filter(|(at, _)| Some(*at) != gone).map(|(_, x)| *x));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{EventId, EventStream, NodeId};
    use crate::mite::{PairEncoder, PairQuery};
    use crate::store::Store;

    fn encode(stream: &EventStream, events: &[EventId], encoding: PairEncoding) -> PairTokens {
        let store = Store::of_events(stream, events).unwrap();
        let mut tokens = PairTokens::default();
        let query = PairQuery { src: NodeId(0), dst: NodeId(1), time: 10.0 };
        PairEncoder::new(&store, encoding).encode(&[query], &mut tokens);
        tokens
    }

    /// An event that touches only one of the two nodes stands in one list: to leave its token out is to forget it.
    #[test]
    fn a_token_left_out_is_an_event_that_never_was() {
        let events = [(0, 2, 1.0), (1, 2, 2.0), (0, 3, 3.0), (0, 2, 4.0), (1, 3, 5.0), (0, 2, 6.0)];
        let stream = EventStream::from_events(events).unwrap();
        let all: Vec<EventId> = stream.ids().collect();
        for scope in [Scope::Truncated, Scope::Full] {
            let encoding = PairEncoding { k: 8, scope, ..PairEncoding::default() };
            let tokens = encode(&stream, &all, encoding);
            let LeaveOneOut { left_out, tokens: variants } = tokens.leave_one_out(0, encoding);
            assert_eq!((left_out.len(), variants.n_pairs()), (6, 6));
            for (variant, &token) in left_out.iter().enumerate() {
                let side = if tokens.tokens(0, Side::Src).contains(&token) { Side::Src } else { Side::Dst };
                let event = tokens.events(0, side)[token - tokens.tokens(0, side).start - 1];
                let fewer: Vec<EventId> = all.iter().copied().filter(|&id| id != event).collect();
                let expected = encode(&stream, &fewer, encoding);
                for side in [Side::Src, Side::Dst] {
                    let (got, wanted) = (variants.tokens(variant, side), expected.tokens(0, side));
                    assert_eq!(variants.nodes()[got.clone()], expected.nodes()[wanted.clone()]);
                    assert_eq!(variants.ages()[got.clone()], expected.ages()[wanted.clone()]);
                    assert_eq!(variants.events(variant, side), expected.events(0, side));
                    for (at, wanted) in got.zip(wanted) {
                        let (row, wanted) = (variants.rows()[at] as usize, expected.rows()[wanted] as usize);
                        assert_eq!(variants.counts(row), expected.counts(wanted));
                        for side in [Side::Src, Side::Dst] {
                            assert_eq!(variants.intervals(row, side), expected.intervals(wanted, side));
                        }
                    }
                }
            }
        }
    }
}
