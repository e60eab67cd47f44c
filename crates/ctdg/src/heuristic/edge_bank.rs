//! Remembers which pairs met.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::Heuristic;
use crate::error::{Problem, Result};
use crate::event::{Cut, Event, EventId, EventStream, NodeId};
use crate::mite::PairQuery;
use crate::split::quantile;

/// Which of the pairs that met are remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgeBankMode {
    /// All of them.
    Unlimited,
    /// Those that met since the 0.85 quantile of all past times.
    WindowProportional,
    /// Those that met within one average repeat gap before the latest time. The average is the sum of the mean gaps of
    /// pairs that met more than once, divided by the number of *all* pairs.
    WindowInterval,
    /// Those that met at least as often as the mean pair.
    Repeat,
}

impl EdgeBankMode {
    /// The four modes.
    pub const ALL: [Self; 4] = [Self::Unlimited, Self::WindowProportional, Self::WindowInterval, Self::Repeat];

    /// What the mode is called.
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

/// Where the proportional window begins among the past times: it is as long as the test part.
const WINDOW_START: f64 = 0.85;

/// Scores a directed pair 1 if it is in memory, else 0 (Poursafaei et al., "Towards Better Evaluation for Dynamic Link
/// Prediction", 2022; modes as in DyGLib).
///
/// The past is the base events and the batches already scored, as far as they lie strictly before the first event of
/// the batch at hand. That is the one difference from DyGLib, which takes in earlier batches whole: there an event
/// knows of another at its own time if a batch happens to end between them.
///
/// A batch takes time for its queries and for the events that have become visible, not for the whole past.
#[derive(Debug, Clone)]
pub struct EdgeBank<'s> {
    stream: &'s EventStream,
    mode: EdgeBankMode,
    past: Past,
    /// What is in `past` lies before this.
    seen: Cut,
    /// Events given but not in `past` yet, ascending.
    waiting: VecDeque<EventId>,
    /// The latest event given.
    latest: Option<EventId>,
}

impl<'s> EdgeBank<'s> {
    /// Knows `base`, ascending events of `stream`.
    pub fn new(stream: &'s EventStream, base: &[EventId], mode: EdgeBankMode) -> Result<Self> {
        let (past, seen, waiting, latest) = (Past::default(), Cut::START, VecDeque::new(), None);
        let mut bank = Self { stream, mode, past, seen, waiting, latest };
        bank.check(base, "base")?;
        bank.wait_for(base);
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

    fn wait_for(&mut self, events: &[EventId]) {
        self.waiting.extend(events);
        self.latest = events.last().copied().or(self.latest);
    }
}

impl Heuristic for EdgeBank<'_> {
    fn name(&self) -> String {
        format!("edgebank-{}", self.mode.name())
    }

    /// Does not look at the times of `queries`, except that none may be before what an earlier answer or `batch` made
    /// visible.
    fn score(&mut self, batch: &[EventId], queries: &[PairQuery]) -> Result<Vec<f32>> {
        self.check(batch, "batch")?;
        let cut = batch.first().map_or(self.seen, |first| self.stream.cut(self.stream.times()[first.index()]));
        let earliest = queries.iter().map(|query| query.time).fold(f64::INFINITY, f64::min);
        if self.stream.cut(earliest) < cut {
            let expected = "times from the first event of their batch on".into();
            return Err(Problem::Setting { name: "queries", found: earliest.to_string(), expected }.into());
        }
        self.seen = cut;
        while let Some(id) = self.waiting.pop_front_if(|id| cut.sees(*id)) {
            self.past.push(self.stream.event(id));
        }
        let rule = self.past.rule(self.mode);
        let score = |query: &PairQuery| f32::from(u8::from(self.past.keeps((query.src, query.dst), &rule)));
        let scores = queries.iter().map(score).collect();
        self.wait_for(batch);
        Ok(scores)
    }
}

/// What decides whether a pair that met is in memory.
enum Rule {
    Always,
    /// It met at this time or later.
    Since(f64),
    /// It met so many times.
    AtLeast(f64),
}

/// All that the modes ask of the events so far.
#[derive(Debug, Clone, Default)]
struct Past {
    pairs: FxHashMap<(NodeId, NodeId), Meetings>,
    /// Of every event, in order.
    times: Vec<f64>,
    /// Of the pairs' mean gaps.
    sum: WideSum,
}

impl Past {
    fn push(&mut self, event: Event) {
        let first = Meetings { n: 0, first: event.time, last: event.time };
        let meetings = self.pairs.entry((event.src, event.dst)).or_insert(first);
        let before = meetings.mean_gap();
        meetings.n += 1;
        meetings.last = event.time;
        for part in meetings.mean_gap().into_iter().chain(before.map(|part| -part)) {
            self.sum.add(part);
        }
        self.times.push(event.time);
    }

    fn rule(&self, mode: EdgeBankMode) -> Rule {
        let Some(&end) = self.times.last() else { return Rule::Always };
        let n_pairs = self.pairs.len() as f64;
        match mode {
            EdgeBankMode::Unlimited => Rule::Always,
            EdgeBankMode::WindowProportional => Rule::Since(quantile(&self.times, WINDOW_START)),
            EdgeBankMode::WindowInterval => Rule::Since(end - self.sum.value() / n_pairs),
            EdgeBankMode::Repeat => Rule::AtLeast(self.times.len() as f64 / n_pairs),
        }
    }

    fn keeps(&self, pair: (NodeId, NodeId), rule: &Rule) -> bool {
        let Some(meetings) = self.pairs.get(&pair) else { return false };
        match *rule {
            Rule::Always => true,
            Rule::Since(start) => meetings.last >= start,
            Rule::AtLeast(n) => f64::from(meetings.n) >= n,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Meetings {
    n: u32,
    first: f64,
    last: f64,
}

impl Meetings {
    /// The mean time between one meeting and the next, as a number and what its rounding left over; 0 without a next.
    fn mean_gap(&self) -> [f64; 2] {
        if self.n < 2 {
            return [0.0; 2];
        }
        // The gaps add up to the span, whatever lies between.
        let (span, n_gaps) = (self.last - self.first, f64::from(self.n - 1));
        let mean = span / n_gaps;
        [mean, mean.mul_add(-n_gaps, span) / n_gaps]
    }
}

/// A sum in twice the precision. Terms come and go with every event; in one `f64` each would leave a rounding error, and
/// the sum would come to depend on the way the past was walked.
#[derive(Debug, Clone, Copy, Default)]
struct WideSum {
    high: f64,
    low: f64,
}

impl WideSum {
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
    /// time 0   1   2   3   4   5        gaps: 0→1 met at 0, 2, 4 (mean 2), 2→3 at 1, 5 (mean 4)
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
    fn each_mode_keeps_what_it_says() {
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
    fn what_comes_out_of_order_is_refused_and_changes_nothing() {
        let stream = small();
        assert!(EdgeBank::new(&stream, &[EventId(1), EventId(0)], EdgeBankMode::Repeat).is_err());
        let mut bank = bank(&stream, EdgeBankMode::Unlimited);
        assert!(bank.score(&[EventId(5)], &[]).is_err(), "part of the base");
        assert!(bank.score(&[EventId(7)], &[]).is_err(), "no such event");
        assert!(bank.score(&[EventId(6)], &[query(0, 1, 4.5)]).is_err(), "an earlier time would see the future");
        assert_eq!(bank.score(&[EventId(6)], &[query(0, 1, 9.0)]).unwrap(), [1.0]);
    }

    #[test]
    fn terms_that_come_and_go_leave_nothing_behind() {
        let mut sum = WideSum::default();
        let terms: Vec<f64> = (1..2000).map(|i| 1e6 / f64::from(i)).collect();
        let gone = terms[1..].iter().rev().map(|term| -term);
        for term in terms.iter().copied().chain(gone) {
            sum.add(term);
        }
        assert_eq!(sum.value(), 1e6);
    }
}
