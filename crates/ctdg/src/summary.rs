//! Statistics of a dataset: counts, times, repeats, degrees, history lengths.
//!
//! ```
//! use ctdg::summary::Summary;
//!
//! let summary = Summary::of(&ctdg::dataset::collegemsg()?);
//! assert_eq!((summary.nodes, summary.events), (1_899, 59_835));
//! # Ok::<(), ctdg::Error>(())
//! ```

use std::ops::AddAssign;

use rustc_hash::FxHashSet;
use serde::Serialize;

use crate::event::{EventStream, Features, IdWidth, NodeId, Roles};
use crate::time::TimeFormat;

/// Statistics of a stream.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Nodes, those without events included.
    pub nodes: usize,
    /// Distinct sources.
    pub sources: usize,
    /// Distinct destinations.
    pub destinations: usize,
    /// Whether no node is both a source and a destination.
    pub bipartite: bool,
    /// Events.
    pub events: usize,
    /// First and last time.
    pub time_range: [f64; 2],
    /// Last time minus first time.
    pub duration: f64,
    /// Granularity: the largest number of which all intervals between times are multiples. `None` where an interval is not a whole
    /// number, or all events are at one time.
    pub time_step: Option<f64>,
    /// Average interaction intensity λ = 2·events / (nodes · duration): how many events a node has in a unit of time. `None` where all
    /// events are at one time.
    pub intensity: Option<f64>,
    /// How times are shown.
    #[serde(skip)]
    pub time_format: TimeFormat,
    /// Distinct times.
    pub distinct_times: usize,
    /// Events at the same time as the one before.
    pub ties: usize,
    /// Distinct ordered pairs.
    pub distinct_pairs: usize,
    /// Share of events whose ordered pair occurred before.
    pub repeat_share: f64,
    /// Events equal to an earlier one in source, destination and time.
    pub duplicates: usize,
    /// Events equal to an earlier one in label and edge features too.
    pub exact_duplicates: usize,
    /// Events of a node with itself.
    pub self_loops: usize,
    /// Events with a label other than 0.
    pub labelled: usize,
    /// Width of the edge features; 0 without.
    pub edge_features: usize,
    /// Width of the node features; 0 without.
    pub node_features: usize,
    /// Events per node that has any; a self-loop counts twice.
    pub degree: Distribution,
    /// Number of earlier interactions of each endpoint at each event.
    pub history: Distribution,
}

/// Quantiles and a histogram of whole numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Distribution {
    /// Smallest.
    pub min: u64,
    /// Half are at most this.
    pub median: u64,
    /// Average.
    pub mean: f64,
    /// Nine tenths are at most this.
    pub p90: u64,
    /// Largest.
    pub max: u64,
    /// `histogram[0]` counts zeros, `histogram[i]` values from `2^(i−1)` to `2^i − 1`.
    pub histogram: Vec<u64>,
}

impl Distribution {
    /// Of `values`, which this sorts.
    fn of<T: Copy + Ord + Into<u64>>(mut values: Vec<T>) -> Self {
        values.sort_unstable();
        let at = |share: f64| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index of the values")]
            let index = (share * values.len().saturating_sub(1) as f64).round() as usize;
            values.get(index).map_or(0, |&value| value.into())
        };
        let mut histogram = Vec::new();
        for &value in &values {
            let bin = (u64::BITS - value.into().leading_zeros()) as usize;
            if histogram.len() <= bin {
                histogram.resize(bin + 1, 0);
            }
            histogram[bin] += 1;
        }
        let sum: u64 = values.iter().map(|&value| value.into()).sum();
        let mean = sum as f64 / values.len().max(1) as f64;
        Self { min: at(0.0), median: at(0.5), mean, p90: at(0.9), max: at(1.0), histogram }
    }
}

impl Summary {
    /// One pass over `stream`.
    #[must_use]
    pub fn of(stream: &EventStream) -> Self {
        let (src, dst, times) = (stream.src(), stream.dst(), stream.times());
        let n = stream.len();
        let mut pairs = FxHashSet::default();
        let mut at_this_time = FxHashSet::default();
        let (mut ties, mut duplicates, mut self_loops) = (0, 0, 0);
        for i in 0..n {
            if i > 0 && times[i] == times[i - 1] {
                ties += 1;
            } else {
                at_this_time.clear();
            }
            duplicates += usize::from(!at_this_time.insert((src[i], dst[i])));
            self_loops += usize::from(src[i] == dst[i]);
            pairs.insert((src[i], dst[i]));
        }
        let roles = Roles::of(stream);
        let width = |features: Option<&Features>| features.map_or(0, Features::width);
        // An event is in two histories. 64 bits would take twice the memory.
        let (degree, history) = match IdWidth::of(n.saturating_mul(2)) {
            IdWidth::Narrow => degrees_and_histories::<u32>(stream),
            IdWidth::Wide => degrees_and_histories::<u64>(stream),
        };
        let time_range = [times.first().copied().unwrap_or(0.0), times.last().copied().unwrap_or(0.0)];
        let duration = time_range[1] - time_range[0];
        Self {
            nodes: stream.n_nodes(),
            sources: roles.n_sources(),
            destinations: roles.n_destinations(),
            bipartite: roles.are_disjoint(),
            events: n,
            time_range,
            duration,
            time_step: time_step(times),
            intensity: (duration > 0.0).then(|| 2.0 * n as f64 / (stream.n_nodes() as f64 * duration)),
            time_format: stream.time_format(),
            distinct_times: n - ties,
            ties,
            distinct_pairs: pairs.len(),
            repeat_share: if n == 0 { 0.0 } else { 1.0 - pairs.len() as f64 / n as f64 },
            duplicates,
            exact_duplicates: if duplicates == 0 { 0 } else { stream.is_duplicate().iter().filter(|&&is| is).count() },
            self_loops,
            labelled: stream.labels().iter().filter(|&&label| label != 0.0).count(),
            edge_features: width(stream.edge_features()),
            node_features: width(stream.node_features()),
            degree,
            history,
        }
    }
}

/// The greatest common divisor of the intervals between `times`.
fn time_step(times: &[f64]) -> Option<f64> {
    let mut step = 0.0;
    for moments in times.windows(2) {
        let (mut a, mut b) = (step, moments[1] - moments[0]);
        if b.fract() != 0.0 {
            return None;
        }
        while b > 0.0 {
            (a, b) = (b, a % b);
        }
        step = a;
    }
    (step > 0.0).then_some(step)
}

/// Events at the same time are not in each other's history, so degrees are updated after all of them are read.
fn degrees_and_histories<T>(stream: &EventStream) -> (Distribution, Distribution)
where
    T: Copy + Ord + Into<u64> + From<u8> + AddAssign,
{
    let (src, dst, times) = (stream.src(), stream.dst(), stream.times());
    let mut degree = vec![T::from(0); stream.n_nodes()];
    let mut history = Vec::with_capacity(2 * stream.len());
    let mut start = 0;
    for moment in times.chunk_by(|a, b| a == b) {
        let events = start..start + moment.len();
        start = events.end;
        let ends = |i: usize| -> [NodeId; 2] { [src[i], dst[i]] };
        history.extend(events.clone().flat_map(ends).map(|node| degree[node.index()]));
        events.flat_map(ends).for_each(|node| degree[node.index()] += T::from(1));
    }
    degree.retain(|&degree| degree > T::from(0));
    (Distribution::of(degree), Distribution::of(history))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_of_a_small_stream() {
        let events = [(0, 3, 1.0), (0, 3, 1.0), (1, 4, 2.0), (2, 2, 2.0), (0, 3, 5.0)];
        let summary = Summary::of(&EventStream::from_events(events).unwrap());
        assert_eq!((summary.nodes, summary.sources, summary.destinations), (5, 3, 3));
        assert!(!summary.bipartite, "2 is on both sides");
        assert_eq!((summary.distinct_times, summary.ties, summary.duplicates), (3, 2, 1));
        assert_eq!((summary.distinct_pairs, summary.self_loops, summary.exact_duplicates), (3, 1, 1));
        assert!((summary.repeat_share - 0.4).abs() < 1e-12);
        assert_eq!(summary.intensity, Some(0.5), "5 events of 5 nodes in 4 units of time");
        assert_eq!((summary.duration, summary.time_step), (4.0, Some(1.0)));
        // Degrees: 0 and 3 have 3, 1 and 4 have 1, 2 has 2.
        assert_eq!(summary.degree.histogram, [0, 2, 3]);
        // Only the last event's two ends have a past, of length 2.
        assert_eq!(summary.history.histogram, [8, 0, 2]);
        assert_eq!((summary.history.median, summary.history.max), (0, 2));
    }

    #[test]
    fn time_step_is_the_largest_that_divides_all_intervals() {
        assert_eq!(time_step(&[5.0, 5.0, 125.0, 305.0]), Some(60.0));
        assert_eq!(time_step(&[0.0, 7.0, 10.0]), Some(1.0));
        assert_eq!(time_step(&[0.5, 2.5, 8.5]), Some(2.0), "intervals count, not times");
        for none in [&[][..], &[3.0], &[3.0, 3.0], &[0.0, 0.25, 1.0]] {
            assert_eq!(time_step(none), None);
        }
    }
}
