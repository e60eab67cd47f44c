//! `EdgeBank`: predicts that past edges repeat.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::Heuristic;
use crate::error::{Problem, Result};
use crate::event::{Cut, Event, EventId, EventStream, NodeId};
use crate::mite::PairQuery;
use crate::split::quantile;

/// Which past pairs are in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgeBankMode {
    /// All.
    Unlimited,
    /// Those with an event since the 0.85 quantile of all past times.
    WindowProportional,
    /// Those with an event within one average repeat gap before the latest time. The average is the sum of the mean gaps
    /// of pairs with more than one event, divided by the number of *all* pairs.
    WindowInterval,
    /// Those with at least as many events as the mean pair.
    Repeat,
}

impl EdgeBankMode {
    /// The four modes.
    pub const ALL: [Self; 4] = [Self::Unlimited, Self::WindowProportional, Self::WindowInterval, Self::Repeat];

    /// Name of the mode.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unlimited => "unlimited",
            Self::WindowProportional => "window-proportional",
            Self::WindowInterval => "window-interval",
            Self::Repeat => "repeat",
        }
    }
}

/// Quantile of the past times at which the proportional window starts: it is as long as the test split.
const WINDOW_START: f64 = 0.85;

/// Scores a directed pair 1 if it is in memory, else 0 (Poursafaei et al., "Towards Better Evaluation for Dynamic Link
/// Prediction", 2022; modes as in DyGLib).
///
/// The history is the base events and the batches already scored, strictly before the first event of the current batch.
/// That is the one difference from DyGLib, which uses earlier batches entirely: there an event sees another one of the
/// same time if a batch happens to end between them.
///
/// Time per batch is linear in its queries and in the events that have become visible.
#[derive(Debug, Clone)]
pub struct EdgeBank<'s> {
    stream: &'s EventStream,
    mode: EdgeBankMode,
    memory: EdgeMemory,
    /// Events in `memory` are before this.
    seen: Cut,
    /// Known events not yet in `memory`, ascending.
    pending: VecDeque<EventId>,
    /// The latest known event.
    latest: Option<EventId>,
}

impl<'s> EdgeBank<'s> {
    /// With the history `base`, ascending events of `stream`.
    pub fn new(stream: &'s EventStream, base: &[EventId], mode: EdgeBankMode) -> Result<Self> {
        let (memory, seen, pending, latest) = (EdgeMemory::default(), Cut::START, VecDeque::new(), None);
        let mut bank = Self { stream, mode, memory, seen, pending, latest };
        bank.check(base, "base")?;
        bank.enqueue(base);
        Ok(bank)
    }

    fn check(&self, events: &[EventId], name: &'static str) -> Result<()> {
        let after = self.latest.is_none_or(|latest| events.first().is_none_or(|&first| latest < first));
        let known = events.last().is_none_or(|last| last.index() < self.stream.len());
        if after && known && events.is_sorted_by(|a, b| a < b) {
            return Ok(());
        }
        let expected = "events of the stream in ascending order, later than those given before".into();
        Err(Problem::Setting { name, found: "another order".into(), expected }.into())
    }

    fn enqueue(&mut self, events: &[EventId]) {
        self.pending.extend(events);
        self.latest = events.last().copied().or(self.latest);
    }
}

impl Heuristic for EdgeBank<'_> {
    fn name(&self) -> String {
        format!("edgebank-{}", self.mode.name())
    }

    /// The times of `queries` do not matter, except that none may be before the events that are visible already.
    fn score(&mut self, batch: &[EventId], queries: &[PairQuery]) -> Result<Vec<f32>> {
        self.check(batch, "batch")?;
        let cut = batch.first().map_or(self.seen, |first| self.stream.cut(self.stream.times()[first.index()]));
        let earliest = queries.iter().map(|query| query.time).fold(f64::INFINITY, f64::min);
        if self.stream.cut(earliest) < cut {
            let expected = "times from the first event of their batch on".into();
            return Err(Problem::Setting { name: "queries", found: earliest.to_string(), expected }.into());
        }
        self.seen = cut;
        while let Some(id) = self.pending.pop_front_if(|id| cut.sees(*id)) {
            self.memory.push(self.stream.event(id));
        }
        let rule = self.memory.rule(self.mode);
        let score = |query: &PairQuery| f32::from(u8::from(self.memory.keeps((query.src, query.dst), &rule)));
        let scores = queries.iter().map(score).collect();
        self.enqueue(batch);
        Ok(scores)
    }
}

/// Criterion for a past pair to be in memory.
enum Rule {
    Always,
    /// Its last event is at this time or later.
    Since(f64),
    /// It has at least this many events.
    AtLeast(f64),
}

/// Statistics of the events so far, as the modes need them.
#[derive(Debug, Clone, Default)]
struct EdgeMemory {
    pairs: FxHashMap<(NodeId, NodeId), PairStats>,
    /// Times of all events, in order.
    times: Vec<f64>,
    /// Sum of the pairs' mean gaps.
    gap_sum: CompensatedSum,
}

impl EdgeMemory {
    fn push(&mut self, event: Event) {
        let first = PairStats { n: 0, first: event.time, last: event.time };
        let stats = self.pairs.entry((event.src, event.dst)).or_insert(first);
        let before = stats.mean_gap();
        stats.n += 1;
        stats.last = event.time;
        for part in stats.mean_gap().into_iter().chain(before.map(|part| -part)) {
            self.gap_sum.add(part);
        }
        self.times.push(event.time);
    }

    fn rule(&self, mode: EdgeBankMode) -> Rule {
        let Some(&end) = self.times.last() else { return Rule::Always };
        let n_pairs = self.pairs.len() as f64;
        match mode {
            EdgeBankMode::Unlimited => Rule::Always,
            EdgeBankMode::WindowProportional => Rule::Since(quantile(&self.times, WINDOW_START)),
            EdgeBankMode::WindowInterval => Rule::Since(end - self.gap_sum.value() / n_pairs),
            EdgeBankMode::Repeat => Rule::AtLeast(self.times.len() as f64 / n_pairs),
        }
    }

    fn keeps(&self, pair: (NodeId, NodeId), rule: &Rule) -> bool {
        let Some(stats) = self.pairs.get(&pair) else { return false };
        match *rule {
            Rule::Always => true,
            Rule::Since(start) => stats.last >= start,
            Rule::AtLeast(n) => f64::from(stats.n) >= n,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct PairStats {
    n: u32,
    first: f64,
    last: f64,
}

impl PairStats {
    /// Mean time between consecutive events and its rounding error; 0 with fewer than two events.
    fn mean_gap(&self) -> [f64; 2] {
        if self.n < 2 {
            return [0.0; 2];
        }
        // The gaps sum to the span.
        let (span, n_gaps) = (self.last - self.first, f64::from(self.n - 1));
        let mean = span / n_gaps;
        [mean, mean.mul_add(-n_gaps, span) / n_gaps]
    }
}

/// Compensated sum. Terms are added and removed with every event; in a plain `f64` each would leave a rounding error, and
/// the sum would depend on the batches.
#[derive(Debug, Clone, Copy, Default)]
struct CompensatedSum {
    high: f64,
    low: f64,
}

impl CompensatedSum {
    fn add(&mut self, term: f64) {
        let sum = self.high + term;
        let added = sum - self.high;
        self.low += (self.high - (sum - added)) + (term - added);
        self.high = sum;
    }

    fn value(self) -> f64 {
        self.high + self.low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ```text
    /// time 0   1   2   3   4   5        gaps: 0→1 at 0, 2, 4 (mean 2), 2→3 at 1, 5 (mean 4)
    ///      0→1 2→3 0→1 1→0 0→1 2→3      three pairs, so the interval is 2 and the window 3..=5
    /// ```
    fn bank(stream: &EventStream, mode: EdgeBankMode) -> EdgeBank<'_> {
        EdgeBank::new(stream, &stream.ids().take(6).collect::<Vec<_>>(), mode).unwrap()
    }

    fn small() -> EventStream {
        let rows = [(0, 1, 0.0), (2, 3, 1.0), (0, 1, 2.0), (1, 0, 3.0), (0, 1, 4.0), (2, 3, 5.0), (3, 2, 9.0)];
        EventStream::from_events(rows).unwrap()
    }

    fn query(src: u32, dst: u32, time: f64) -> PairQuery {
        PairQuery { src: NodeId(src), dst: NodeId(dst), time }
    }

    #[test]
    fn each_mode_keeps_the_documented_pairs() {
        let stream = small();
        let queries = [query(0, 1, 9.0), query(1, 0, 9.0), query(2, 3, 9.0), query(3, 2, 9.0)];
        let check = |mode, expected: [f32; 4]| {
            assert_eq!(bank(&stream, mode).score(&[EventId(6)], &queries).unwrap(), expected, "{mode:?}");
        };
        check(EdgeBankMode::Unlimited, [1.0, 1.0, 1.0, 0.0]);
        // numpy.quantile([0, 1, 2, 3, 4, 5], 0.85) = 4.25
        check(EdgeBankMode::WindowProportional, [0.0, 0.0, 1.0, 0.0]);
        check(EdgeBankMode::WindowInterval, [1.0, 1.0, 1.0, 0.0]);
        check(EdgeBankMode::Repeat, [1.0, 0.0, 1.0, 0.0]);
    }

    #[test]
    fn events_out_of_order_are_refused_and_change_nothing() {
        let stream = small();
        assert!(EdgeBank::new(&stream, &[EventId(1), EventId(0)], EdgeBankMode::Repeat).is_err());
        let mut bank = bank(&stream, EdgeBankMode::Unlimited);
        assert!(bank.score(&[EventId(5)], &[]).is_err(), "part of the base");
        assert!(bank.score(&[EventId(7)], &[]).is_err(), "no such event");
        assert!(bank.score(&[EventId(6)], &[query(0, 1, 4.5)]).is_err(), "an earlier time would see the future");
        assert_eq!(bank.score(&[EventId(6)], &[query(0, 1, 9.0)]).unwrap(), [1.0]);
    }

    #[test]
    fn removed_terms_leave_no_rounding_error() {
        let mut sum = CompensatedSum::default();
        let terms: Vec<f64> = (1..2000).map(|i| 1e6 / f64::from(i)).collect();
        let removed = terms[1..].iter().rev().map(|term| -term);
        for term in terms.iter().copied().chain(removed) {
            sum.add(term);
        }
        assert_eq!(sum.value(), 1e6);
    }
}
