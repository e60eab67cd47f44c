//! Whether probabilities are right: their sums, and how often what they predict happens.

use serde::{Deserialize, Serialize};

/// Bins of a reliability diagram for each power of ten.
const BINS_PER_DECADE: u32 = 2;

/// Powers of ten with bins of their own; smaller probabilities share the first bin.
const N_DECADES: u32 = 5;

/// Whether the probabilities of a model are right, measured on events whose destination is known.
///
/// Part of an [`Evaluation`](super::Evaluation); made by [`CalibrationCounts`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Measured events, spread evenly over those that are tested.
    pub events: usize,
    /// All tested events.
    pub of_events: usize,
    /// Destinations whose probabilities were computed for each event, on average: all those seen before it.
    pub candidates: f64,
    /// Share of the events whose destination was never seen before, so that no probability was asked for.
    pub new_destinations: f64,
    /// Mean of the sum of `P(v | u, t)` over all candidates: 1 for probabilities, less what new destinations have.
    pub mean_sum: f64,
    /// Calibration error: the probability that lies in the wrong bin, for each event. The sum over all bins of
    /// |expected − observed events|, over the number of events; 0 is perfect. It is the usual expected calibration error of pairs
    /// times the number of candidates.
    pub error: f64,
    /// Mean of `log2(P(v | u, t) · candidates)` of the true destination: bits that a prediction is worth, over chance.
    pub bits: f64,
    /// The reliability diagram: bins of equal width on a logarithmic scale. Bins without pairs are left out.
    pub bins: Vec<ReliabilityBin>,
}

/// Pairs whose probabilities are alike.
///
/// Part of a [`Calibration`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ReliabilityBin {
    /// Lowest probability of the bin.
    pub low: f64,
    /// Highest one.
    pub high: f64,
    /// Number of pairs.
    pub pairs: usize,
    /// Those of them that happened.
    pub happened: usize,
    /// Mean of their probabilities.
    pub predicted: f64,
    /// Share of them that happened.
    pub observed: f64,
}

/// Counts what happens beside what was predicted.
///
/// ```
/// use hopedgn::metrics::CalibrationCounts;
///
/// let mut counts = CalibrationCounts::default();
/// for event in 0..100 {
///     counts.push(&[0.7, 0.2, 0.1], Some(match event % 10 { 0..7 => 0, 7..9 => 1, _ => 2 }));
/// }
/// let calibration = counts.finish(100).expect("events");
/// assert!((calibration.mean_sum - 1.0).abs() < 1e-6 && calibration.error < 1e-6 && calibration.bits > 0.0);
/// ```
#[derive(Debug, Clone, Default)]
pub struct CalibrationCounts {
    n_events: usize,
    n_new: usize,
    n_pairs: usize,
    sum: f64,
    bits: f64,
    bins: [Counted; N_BINS],
}

/// The bins of all powers of ten, and one for smaller probabilities.
const N_BINS: usize = (BINS_PER_DECADE * N_DECADES + 1) as usize;

#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    pairs: usize,
    happened: usize,
    sum: f64,
}

impl CalibrationCounts {
    /// Adds an event: the probabilities of all candidates, and the position of the true one if it is among them. A probability above 1
    /// counts as it is.
    ///
    /// # Panics
    /// When there is no such candidate.
    pub fn push(&mut self, probabilities: &[f32], truth: Option<usize>) {
        self.n_events += 1;
        self.n_pairs += probabilities.len();
        for probability in probabilities.iter().map(|&probability| f64::from(probability)) {
            let counted = &mut self.bins[bin(probability)];
            counted.pairs += 1;
            counted.sum += probability;
            self.sum += probability;
        }
        match truth.map(|at| f64::from(probabilities[at])) {
            Some(probability) => {
                self.bins[bin(probability)].happened += 1;
                self.bits += (probability * probabilities.len() as f64).log2();
            }
            None => self.n_new += 1,
        }
    }

    /// What was counted, of `of_events` tested ones; nothing without events.
    #[must_use]
    pub fn finish(self, of_events: usize) -> Option<Calibration> {
        let n_events = Some(self.n_events as f64).filter(|&n| n > 0.0)?;
        let n_with_truth = (self.n_events - self.n_new).max(1) as f64;
        let misplaced = self.bins.iter().map(|bin| (bin.sum - bin.happened as f64).abs()).sum::<f64>();
        let with_pairs = self.bins.iter().enumerate().filter(|(_, bin)| bin.pairs > 0);
        let shown = |(at, bin): (usize, &Counted)| ReliabilityBin {
            low: if at == 0 { 0.0 } else { edge(at - 1) },
            high: edge(at),
            pairs: bin.pairs,
            happened: bin.happened,
            predicted: bin.sum / bin.pairs as f64,
            observed: bin.happened as f64 / bin.pairs as f64,
        };
        Some(Calibration {
            events: self.n_events,
            of_events,
            candidates: self.n_pairs as f64 / n_events,
            new_destinations: self.n_new as f64 / n_events,
            mean_sum: self.sum / n_events,
            error: misplaced / n_events,
            bits: self.bits / n_with_truth,
            bins: with_pairs.map(shown).collect(),
        })
    }
}

/// The upper edge of a bin.
fn edge(bin: usize) -> f64 {
    10_f64.powf(bin as f64 / f64::from(BINS_PER_DECADE) - f64::from(N_DECADES))
}

/// The bin of a probability, whose edges belong to the bin below.
fn bin(probability: f64) -> usize {
    (0..N_BINS - 1).find(|&bin| probability <= edge(bin)).unwrap_or(N_BINS - 1)
}

#[cfg(test)]
mod tests {
    use ctdg::random::RandomStream;

    use super::*;

    /// Draws destinations from random distributions over a few hundred of them, and predicts `factor` times their probabilities.
    fn known_intensities(factor: f64) -> Calibration {
        let mut random = RandomStream::named(3, "calibration");
        let mut counts = CalibrationCounts::default();
        for _ in 0..20_000 {
            // Rates over four powers of ten: few destinations have most of the probability.
            let rates: Vec<f64> = (0..200).map(|_| 10_f64.powf(random.index(5) as f64)).collect();
            let total: f64 = rates.iter().sum();
            let mut left = total * random.index(1 << 30) as f64 / f64::from(1 << 30);
            let is_drawn = |rate: &f64| {
                left -= rate;
                left < 0.0
            };
            let truth = rates.iter().position(is_drawn);
            #[expect(clippy::cast_possible_truncation, reason = "probabilities of a model")]
            let probabilities: Vec<f32> = rates.iter().map(|rate| (factor * rate / total) as f32).collect();
            counts.push(&probabilities, truth);
        }
        counts.finish(20_000).unwrap()
    }

    #[test]
    fn true_probabilities_have_no_calibration_error() {
        let Calibration { mean_sum, error, bits, bins, .. } = known_intensities(1.0);
        assert!((mean_sum - 1.0).abs() < 1e-4, "{mean_sum}");
        assert!(error < 0.02 && bits > 1.0, "{error} {bits}");
        for bin in bins.iter().filter(|bin| bin.happened > 1000) {
            assert!((bin.observed / bin.predicted - 1.0).abs() < 0.1, "{bin:?}");
        }
    }

    #[test]
    fn logits_that_are_ln_2_too_high_have_twice_the_sum_and_one_event_in_error() {
        let Calibration { mean_sum, error, .. } = known_intensities(2.0);
        assert!((mean_sum - 2.0).abs() < 1e-3 && (error - 1.0).abs() < 1e-2, "{mean_sum} {error}");
    }

    #[test]
    fn every_probability_has_a_bin_that_holds_it() {
        for (probability, expected) in [(0.0, 0), (1e-5, 0), (2e-5, 1), (0.1, 8), (0.5, 10), (1.0, 10), (7.0, 10)] {
            assert_eq!(bin(probability), expected, "{probability}");
        }
        assert_eq!((edge(0), edge(N_BINS - 1)), (1e-5, 1.0));
    }

    #[test]
    fn events_without_their_destination_are_counted_apart() {
        let mut counts = CalibrationCounts::default();
        counts.push(&[0.25, 0.25], None);
        counts.push(&[0.5, 0.5], Some(1));
        let calibration = counts.finish(7).unwrap();
        assert_eq!((calibration.events, calibration.of_events), (2, 7));
        assert_eq!((calibration.mean_sum, calibration.new_destinations, calibration.bits), (0.75, 0.5, 0.0));
        assert_eq!(CalibrationCounts::default().finish(7), None);
    }
}
