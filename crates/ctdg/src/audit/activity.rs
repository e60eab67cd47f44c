//! Drift of activity and popularity, and silences.

use serde::Serialize;

use super::batches::share;
use crate::event::EventStream;
use crate::split::{Split, quantile};

/// Spans of equal duration whose events are counted.
const N_SPANS: usize = 10;

/// How activity changes over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Activity {
    /// Events in each tenth of the whole duration.
    pub tenths: Vec<usize>,
    /// Training, validation and test.
    pub parts: [PartActivity; 3],
    /// Rate of test events over that of training events; none where one of them lasts no time.
    pub rate_ratio: Option<f64>,
    /// Spearman's rank correlation of the destinations of training by their events there and in test; none where all are
    /// equal.
    pub popularity_correlation: Option<f64>,
    /// Times between events.
    pub gaps: Option<Gaps>,
}

/// The period of one part, with the events of masked nodes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PartActivity {
    /// `train`, `val` or `test`.
    pub part: &'static str,
    /// Events of the period.
    pub events: usize,
    /// Its duration.
    pub duration: f64,
    /// Events per unit of time; none if it lasts no time.
    pub rate: Option<f64>,
}

/// Times between one event and the next.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Gaps {
    /// Half are at most this.
    pub median: f64,
    /// Nine tenths are at most this.
    pub p90: f64,
    /// 99 of 100 are at most this.
    pub p99: f64,
    /// The longest silence.
    pub longest: f64,
    /// When it begins.
    pub longest_from: f64,
    /// Its share of the whole duration.
    pub longest_share: f64,
}

impl Activity {
    /// Of `stream`.
    #[must_use]
    pub fn of(stream: &EventStream, split: &Split) -> Self {
        let times = stream.times();
        let (first, last) = (times.first().copied().unwrap_or(0.0), times.last().copied().unwrap_or(0.0));
        let [val, test] = [split.val_start().n_events(), split.test_start().n_events()];
        let part = |part, events: usize, [from, to]: [f64; 2]| {
            let duration = (to - from).max(0.0);
            PartActivity { part, events, duration, rate: (duration > 0.0).then(|| events as f64 / duration) }
        };
        let [val_time, test_time] = [split.rule.val_time, split.rule.test_time];
        let parts = [
            part("train", val, [first, val_time]),
            part("val", test - val, [val_time, test_time]),
            part("test", split.test.len(), [test_time, last]),
        ];
        let rate_ratio = parts[0].rate.zip(parts[2].rate).map(|(train, test)| test / train);
        Self {
            tenths: tenths(times, first, last),
            parts,
            rate_ratio: rate_ratio.filter(|ratio| ratio.is_finite()),
            popularity_correlation: popularity_correlation(stream, split),
            gaps: gaps(times),
        }
    }
}

fn tenths(times: &[f64], first: f64, last: f64) -> Vec<usize> {
    let mut counts = vec![0; N_SPANS];
    for time in times {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and the number of spans"
        )]
        let span = ((time - first) / (last - first) * N_SPANS as f64) as usize;
        // The last moment belongs to the last span; if there is no other, it is in the first.
        counts[span.min(N_SPANS - 1)] += 1;
    }
    counts
}

fn gaps(times: &[f64]) -> Option<Gaps> {
    let (first, last) = (*times.first()?, *times.last()?);
    let (mut longest, mut longest_from) = (0.0, first);
    let mut gaps = Vec::with_capacity(times.len());
    for two in times.windows(2) {
        let gap = two[1] - two[0];
        if gap > longest {
            (longest, longest_from) = (gap, two[0]);
        }
        gaps.push(gap);
    }
    if gaps.is_empty() {
        return None;
    }
    gaps.sort_by(f64::total_cmp);
    let [median, p90, p99] = [0.5, 0.9, 0.99].map(|q| quantile(&gaps, q));
    let longest_share = if last > first { longest / (last - first) } else { 0.0 };
    Some(Gaps { median, p90, p99, longest, longest_from, longest_share })
}

/// Over destinations with an event in training. Those of the test alone would always correlate negatively: they have no
/// event in training because they were looked up in the test.
fn popularity_correlation(stream: &EventStream, split: &Split) -> Option<f64> {
    let mut counts = vec![[0_u64; 2]; stream.n_nodes()];
    for (part, events) in [&split.train, &split.test].into_iter().enumerate() {
        for id in events {
            counts[stream.dst()[id.index()].index()][part] += 1;
        }
    }
    counts.retain(|counts| counts[0] > 0);
    let [train, test] = [0, 1].map(|part| ranks(&counts.iter().map(|counts| counts[part]).collect::<Vec<_>>()));
    correlation(&train, &test)
}

/// Ranks from 0; equal values share the mean of theirs.
fn ranks(values: &[u64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by_key(|&at| values[at]);
    let mut ranks = vec![0.0; values.len()];
    let mut below = 0;
    for equal in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let mean = below as f64 + (equal.len() - 1) as f64 / 2.0;
        for &at in equal {
            ranks[at] = mean;
        }
        below += equal.len();
    }
    ranks
}

/// Pearson's correlation; none of constants.
fn correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let (mean_a, mean_b) = (mean(a), mean(b));
    let (mut product, mut square_a, mut square_b) = (0.0, 0.0, 0.0);
    for (a, b) in a.iter().zip(b) {
        product += (a - mean_a) * (b - mean_b);
        square_a += (a - mean_a).powi(2);
        square_b += (b - mean_b).powi(2);
    }
    (square_a > 0.0 && square_b > 0.0).then(|| product / (square_a * square_b).sqrt())
}

impl Activity {
    /// The largest share of all events in one tenth of the duration.
    #[must_use]
    pub fn busiest_tenth(&self) -> f64 {
        share(self.tenths.iter().copied().max().unwrap_or(0), self.tenths.iter().sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_correlation_equal_hand_worked_values() {
        assert_eq!(ranks(&[5, 1, 5, 0]), [2.5, 1.0, 2.5, 0.0]);
        assert_eq!(correlation(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0]), Some(1.0));
        assert_eq!(correlation(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]), Some(-1.0));
        assert_eq!(correlation(&[1.0, 1.0], &[1.0, 2.0]), None);
        assert_eq!(correlation(&[], &[]), None);
    }

    #[test]
    fn tenths_hold_every_event_once() {
        assert_eq!(tenths(&[0.0, 0.5, 9.9, 10.0], 0.0, 10.0), [2, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        assert_eq!(tenths(&[3.0, 3.0], 3.0, 3.0)[0], 2, "one moment");
        assert_eq!(tenths(&[], 0.0, 0.0).iter().sum::<usize>(), 0);
    }

    #[test]
    fn gaps_name_the_first_longest_silence() {
        let gaps = gaps(&[0.0, 0.0, 4.0, 8.0, 9.0]).expect("gaps");
        assert_eq!((gaps.longest, gaps.longest_from), (4.0, 0.0));
        assert!((gaps.longest_share - 4.0 / 9.0).abs() < 1e-12);
        assert!(super::gaps(&[1.0]).is_none(), "one event");
    }
}
