//! What the live view of the page shows beside events: how long requests took lately, and which scores were answered.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use utoipa::ToSchema;

/// How far back latencies are kept.
const WINDOW: Duration = Duration::from_mins(1);
/// Latencies of each path that are kept.
const KEPT: usize = 4096;
/// Bars of the histogram of scores.
const BINS: usize = 20;

/// Latencies of the last minute, and a histogram of all scores.
#[derive(Debug, Default)]
pub(crate) struct Monitor {
    latencies: Mutex<BTreeMap<String, VecDeque<(Instant, f32)>>>,
    scores: [AtomicU64; BINS],
}

/// How long requests to a path took in the last minute, in seconds.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct PathLatency {
    /// The path.
    pub(crate) path: String,
    /// Requests; of many, the newest are kept.
    pub(crate) count: usize,
    /// Half of them took no longer.
    pub(crate) p50: f32,
    /// 90 of 100.
    pub(crate) p90: f32,
    /// 99 of 100.
    pub(crate) p99: f32,
}

/// How many of the answered scores are in each of equal parts of the range from 0 to 1.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct ScoreHistogram {
    /// Their number.
    pub(crate) bins: usize,
    /// From the lowest scores on.
    pub(crate) counts: Vec<u64>,
    /// The sum of the counts.
    pub(crate) total: u64,
}

impl Monitor {
    /// Notes that a request to `path` took so long.
    pub(crate) fn took(&self, path: &str, elapsed: Duration) {
        let mut latencies = self.latencies.lock().unwrap_or_else(PoisonError::into_inner);
        if !latencies.contains_key(path) {
            latencies.insert(path.to_owned(), VecDeque::new());
        }
        if let Some(of_path) = latencies.get_mut(path) {
            of_path.push_back((Instant::now(), elapsed.as_secs_f32()));
            if of_path.len() > KEPT {
                of_path.pop_front();
            }
        }
    }

    /// Notes scores that were answered.
    pub(crate) fn scored(&self, scores: impl Iterator<Item = f32>) {
        let mut counts = [0; BINS];
        for score in scores {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 1")]
            let bin = (score.clamp(0.0, 1.0) * BINS as f32) as usize;
            counts[bin.min(BINS - 1)] += 1;
        }
        for (all, count) in self.scores.iter().zip(counts).filter(|(_, count)| *count > 0) {
            all.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Latencies of each path with requests in the last minute.
    pub(crate) fn latencies(&self) -> Vec<PathLatency> {
        let mut latencies = self.latencies.lock().unwrap_or_else(PoisonError::into_inner);
        let mut answer = Vec::new();
        for (path, of_path) in latencies.iter_mut() {
            while of_path.front().is_some_and(|(when, _)| when.elapsed() > WINDOW) {
                of_path.pop_front();
            }
            let mut seconds: Vec<f32> = of_path.iter().map(|&(_, seconds)| seconds).collect();
            seconds.sort_unstable_by(f32::total_cmp);
            let at = |per_cent: usize| seconds[(seconds.len() * per_cent).div_ceil(100).saturating_sub(1)];
            if !seconds.is_empty() {
                let [p50, p90, p99] = [50, 90, 99].map(at);
                answer.push(PathLatency { path: path.clone(), count: seconds.len(), p50, p90, p99 });
            }
        }
        answer
    }

    /// The histogram of scores.
    pub(crate) fn scores(&self) -> ScoreHistogram {
        let counts: Vec<u64> = self.scores.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        ScoreHistogram { bins: BINS, total: counts.iter().sum(), counts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_and_histogram_count_what_was_noted() {
        let monitor = Monitor::default();
        (1..=100).for_each(|i| monitor.took("/v1/score", Duration::from_millis(i)));
        let latencies = monitor.latencies();
        assert_eq!((latencies.len(), latencies[0].count), (1, 100));
        assert_eq!((latencies[0].p50, latencies[0].p90, latencies[0].p99), (0.05, 0.09, 0.099));
        monitor.scored([0.0, 0.049, 0.5, 1.0, 0.999].into_iter());
        let scores = monitor.scores();
        assert_eq!((scores.counts[0], scores.counts[10], scores.counts[19], scores.total), (2, 1, 2, 5));
    }
}
