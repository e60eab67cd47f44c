//! Leave-one-out variants of a pair's tokens, for measuring the contribution of each event.

use super::{MiteScope, NO_ROW, PairEncoderConfig, PairTokens, Side, offset_u32};

/// Variants of one pair, each without one of its event tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct LeaveOneOut {
    /// Variant `i` lacks token `left_out[i]`, an index into [`PairTokens::nodes`] of the original.
    pub left_out: Vec<usize>,
    /// The variants.
    pub tokens: PairTokens,
}

impl PairTokens {
    /// All variants of `pair` that lack one event token; the root tokens stay. `config` is that of the encoder.
    ///
    /// The token's interval and second hop are removed with it; all other samples stay. With [`MiteScope::Truncated`] the
    /// next older interval moves up if there were more than `K`; with [`MiteScope::Full`] there is one interval less, and
    /// the other copy of an event that was drawn twice stays a token without an interval.
    ///
    /// # Panics
    /// When there is no such pair.
    #[must_use]
    pub fn leave_one_out(&self, pair: usize, config: PairEncoderConfig) -> LeaveOneOut {
        let mut out = LeaveOneOut { left_out: Vec::new(), tokens: Self::default() };
        out.tokens.clear();
        for side in [Side::Src, Side::Dst] {
            for token in self.tokens(pair, side).skip(1) {
                out.left_out.push(token);
                let variant = Variant { of: self, pair, side, token, config };
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
    config: PairEncoderConfig,
}

impl Variant<'_> {
    fn push_to(&self, out: &mut PairTokens) {
        let (first_row, out_row) = (self.of.rows_of_pair(self.pair).start, out.n_rows());
        let row = |row: u32| offset_u32(row as usize - first_row + out_row);
        for side in [Side::Src, Side::Dst] {
            let tokens = self.of.tokens(self.pair, side);
            for at in tokens.clone().filter(|&at| at != self.token) {
                out.nodes.push(self.of.nodes[at]);
                out.ages.push(self.of.ages[at]);
                out.rows.push(row(self.of.rows[at]));
            }
            let events = self.of.events(self.pair, side).iter().zip(tokens.start + 1..);
            out.events.extend(events.filter(|(_, at)| *at != self.token).map(|(event, _)| *event));
            out.sides.push(offset_u32(out.nodes.len()));
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
                out.row_starts.push(offset_u32(out.intervals.len()));
            }
            out.counts.push(counts);
        }
        out.pair_rows.push(offset_u32(out.n_rows()));
        if self.config.second.is_some() {
            self.push_second(out_row, out);
        }
    }

    /// The second hop of the tokens that are left. `out_row` is the variant's first row.
    fn push_second(&self, out_row: usize, out: &mut PairTokens) {
        let first_row = self.of.rows_of_pair(self.pair).start;
        for side in [Side::Src, Side::Dst] {
            let tokens = self.of.tokens(self.pair, side).skip(1).zip(self.of.event_tokens(self.pair, side));
            for (_, token) in tokens.filter(|(at, _)| *at != self.token) {
                let second = self.of.second(token);
                out.second_nodes.extend_from_slice(&self.of.second_nodes[second.clone()]);
                out.second_ages.extend_from_slice(&self.of.second_ages[second.clone()]);
                out.second_events.extend_from_slice(&self.of.second_events[second.clone()]);
                for &row in &self.of.second_rows[second] {
                    // A row without counts belongs to no remaining token.
                    let row = if row == NO_ROW { row } else { offset_u32(row as usize - first_row + out_row) };
                    let has_row = row != NO_ROW && out.counts[row as usize] != [0; 2];
                    out.second_rows.push(if has_row { row } else { NO_ROW });
                }
                out.second_starts.push(offset_u32(out.second_nodes.len()));
            }
        }
    }

    /// The intervals of the token's own node with its own side.
    fn push_intervals_without(&self, row: usize, out: &mut PairTokens) {
        match self.config.scope {
            MiteScope::Truncated => {
                let others = self.of.tokens(self.pair, self.side).skip(1).rev();
                let others = others.filter(|&at| at != self.token && self.of.rows[at] as usize == row);
                out.intervals.extend(others.take(self.config.k).map(|at| self.of.ages[at]));
            }
            MiteScope::Full => {
                let all = self.of.intervals(row, self.side);
                let removed = all.iter().position(|&interval| interval == self.of.ages[self.token]);
                out.intervals.extend(all.iter().enumerate().filter(|(at, _)| Some(*at) != removed).map(|(_, x)| *x));
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

    fn encode(stream: &EventStream, events: &[EventId], config: PairEncoderConfig) -> PairTokens {
        let store = Store::of_events(stream, events).unwrap();
        let mut tokens = PairTokens::default();
        let query = PairQuery { src: NodeId(0), dst: NodeId(1), time: 10.0 };
        PairEncoder::new(&store, config).encode(&[query], &mut tokens);
        tokens
    }

    /// An event of only one of the two nodes has one token, so leaving it out equals removing the event.
    #[test]
    fn leaving_out_a_token_equals_removing_its_event() {
        let events = [(0, 2, 1.0), (1, 2, 2.0), (0, 3, 3.0), (0, 2, 4.0), (1, 3, 5.0), (0, 2, 6.0)];
        let stream = EventStream::from_events(events).unwrap();
        let all: Vec<EventId> = stream.ids().collect();
        for scope in [MiteScope::Truncated, MiteScope::Full] {
            let config = PairEncoderConfig { k: 8, scope, ..PairEncoderConfig::default() };
            let tokens = encode(&stream, &all, config);
            let LeaveOneOut { left_out, tokens: variants } = tokens.leave_one_out(0, config);
            assert_eq!((left_out.len(), variants.n_pairs()), (6, 6));
            for (variant, &token) in left_out.iter().enumerate() {
                let side = if tokens.tokens(0, Side::Src).contains(&token) { Side::Src } else { Side::Dst };
                let event = tokens.events(0, side)[token - tokens.tokens(0, side).start - 1];
                let fewer: Vec<EventId> = all.iter().copied().filter(|&id| id != event).collect();
                let expected = encode(&stream, &fewer, config);
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
