//! Average precision and ROC AUC for binary labels, with ties as in scikit-learn.

use crate::error::{Error, Place, Problem, Result};

/// Average precision and ROC AUC of one set of scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BinaryScores {
    /// Average precision: Σ (rise of recall) · precision over the distinct scores, from the highest down.
    pub ap: f64,
    /// Area under the ROC curve: share of (positive, negative) pairs in the right order, ties counting one half.
    pub auc: f64,
}

/// Average precision of `scores`, where `labels` says which are positives. Time O(n log n), memory O(n).
///
/// ```
/// let ap = ctdg::metric::average_precision(&[0.9_f32, 0.4, 0.4, 0.1], &[true, true, false, false])?;
/// assert!((ap - (0.5 * 1.0 + 0.5 * (2.0 / 3.0))).abs() < 1e-12, "the two tied scores are one step");
/// # Ok::<(), ctdg::Error>(())
/// ```
pub fn average_precision<S: Into<f64> + Copy>(scores: &[S], labels: &[bool]) -> Result<f64> {
    Ok(binary_scores(scores, labels)?.ap)
}

/// Area under the ROC curve of `scores`, where `labels` says which are positives. Time O(n log n), memory O(n).
///
/// ```
/// let auc = ctdg::metric::roc_auc(&[0.9_f64, 0.4, 0.4, 0.1], &[true, true, false, false])?;
/// assert_eq!(auc, 0.875, "three and a half of four comparisons are right");
/// # Ok::<(), ctdg::Error>(())
/// ```
pub fn roc_auc<S: Into<f64> + Copy>(scores: &[S], labels: &[bool]) -> Result<f64> {
    Ok(binary_scores(scores, labels)?.auc)
}

/// Expected average precision when ties are broken at random.
///
/// Never below [`average_precision`] if groups with higher scores have higher shares of positives: random tie-breaking
/// gains this much without information. Use it for the *upper bound* of a set of tied probabilities. Time O(n log n),
/// memory O(n).
pub fn shuffled_average_precision<S: Into<f64> + Copy>(scores: &[S], labels: &[bool]) -> Result<f64> {
    let mut entries = Vec::with_capacity(scores.len());
    extend(&mut entries, scores, labels)?;
    let (positives, _) = sort(&mut entries)?;
    let (mut true_above, mut all_above, mut precisions) = (0.0, 0.0, 0.0);
    for tied in entries.chunk_by(|a, b| a.key == b.key) {
        let (n, true_here) = (tied.len() as f64, tied.iter().filter(|entry| entry.positive).count() as f64);
        // Given a positive at one position of the group, probability of a positive at any other.
        let other = (true_here - 1.0) / (n - 1.0).max(1.0);
        let mut before = 0.0;
        for _ in tied {
            precisions += true_here / n * (true_above + 1.0 + before * other) / (all_above + before + 1.0);
            before += 1.0;
        }
        true_above += true_here;
        all_above += n;
    }
    Ok(precisions / positives as f64)
}

/// Both metrics from one sort.
pub fn binary_scores<S: Into<f64> + Copy>(scores: &[S], labels: &[bool]) -> Result<BinaryScores> {
    let mut entries = Vec::with_capacity(scores.len());
    extend(&mut entries, scores, labels)?;
    evaluate(&mut entries)
}

/// Metrics of each batch, averaged with equal weight whatever the batches' sizes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BatchMean {
    ap: f64,
    auc: f64,
    n_batches: u32,
}

impl BatchMean {
    /// No batch yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one batch and returns its metrics. An error leaves the mean unchanged.
    pub fn push<S: Into<f64> + Copy>(&mut self, scores: &[S], labels: &[bool]) -> Result<BinaryScores> {
        let batch = binary_scores(scores, labels)?;
        self.push_scores(batch);
        Ok(batch)
    }

    /// Adds the metrics of one batch, computed elsewhere.
    pub fn push_scores(&mut self, batch: BinaryScores) {
        self.ap += batch.ap;
        self.auc += batch.auc;
        self.n_batches += 1;
    }

    /// Number of batches added.
    #[must_use]
    pub fn n_batches(&self) -> u32 {
        self.n_batches
    }

    /// The mean over batches; an error when there was none.
    pub fn mean(&self) -> Result<BinaryScores> {
        if self.n_batches == 0 {
            return Err(Problem::NothingScored { what: "batch" }.into());
        }
        let n = f64::from(self.n_batches);
        Ok(BinaryScores { ap: self.ap / n, auc: self.auc / n })
    }
}

/// Metrics over all scores of a split, collected batch by batch. Memory: 16 bytes per score.
#[derive(Debug, Clone, Default)]
pub struct WholeSplit {
    entries: Vec<Entry>,
}

impl WholeSplit {
    /// No score yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one batch, which may have one class only. An error leaves the scores unchanged.
    pub fn push<S: Into<f64> + Copy>(&mut self, scores: &[S], labels: &[bool]) -> Result<()> {
        extend(&mut self.entries, scores, labels)
    }

    /// Number of scores added.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no score has been added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The metrics of all scores. Takes `&mut self` to sort in place; the order of batches does not matter.
    pub fn scores(&mut self) -> Result<BinaryScores> {
        evaluate(&mut self.entries)
    }
}

/// A score as an order-preserving integer, and its label.
#[derive(Debug, Clone, Copy)]
struct Entry {
    key: u64,
    positive: bool,
}

fn extend<S: Into<f64> + Copy>(entries: &mut Vec<Entry>, scores: &[S], labels: &[bool]) -> Result<()> {
    if scores.len() != labels.len() {
        return Err(Problem::LabelCount { found: labels.len() as u64, expected: scores.len() as u64 }.into());
    }
    let before = entries.len();
    for (index, (&score, &positive)) in scores.iter().zip(labels).enumerate() {
        let score = score.into();
        if score.is_nan() {
            entries.truncate(before);
            return Err(Error::at(Place::default().row(index as u64), Problem::NanScore));
        }
        entries.push(Entry { key: order_key(score), positive });
    }
    Ok(())
}

/// Order-preserving map of floats to integers; -0 and 0 are equal.
fn order_key(score: f64) -> u64 {
    const SIGN: u64 = 1 << 63;
    let bits = (score + 0.0).to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

/// Sorts by descending score and counts positives and negatives; an error without either.
fn sort(entries: &mut [Entry]) -> Result<(u64, u64)> {
    let positives = entries.iter().filter(|entry| entry.positive).count() as u64;
    let negatives = entries.len() as u64 - positives;
    if positives == 0 || negatives == 0 {
        return Err(Problem::OneClass { positives, negatives }.into());
    }
    entries.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.key));
    Ok((positives, negatives))
}

fn evaluate(entries: &mut [Entry]) -> Result<BinaryScores> {
    let (positives, negatives) = sort(entries)?;
    let (mut true_above, mut all_above) = (0_u64, 0_u64);
    let mut weighted_precision = 0.0;
    // Twice the number of (positive, negative) pairs in the right order; integers avoid rounding.
    let mut twice_won = 0_u128;
    for tied in entries.chunk_by(|a, b| a.key == b.key) {
        let true_here = tied.iter().filter(|entry| entry.positive).count() as u64;
        let false_here = tied.len() as u64 - true_here;
        twice_won += u128::from(false_here) * u128::from(2 * true_above + true_here);
        true_above += true_here;
        all_above += tied.len() as u64;
        weighted_precision += true_here as f64 * (true_above as f64 / all_above as f64);
    }
    let twice_pairs = 2 * u128::from(positives) * u128::from(negatives);
    Ok(BinaryScores { ap: weighted_precision / positives as f64, auc: twice_won as f64 / twice_pairs as f64 })
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "these values are exact in binary")]
mod tests {
    use super::*;

    #[test]
    fn equal_scores_give_the_share_of_positives_and_one_half() {
        let both = binary_scores(&[0.3_f32; 4], &[true, false, false, false]).unwrap();
        assert_eq!(both, BinaryScores { ap: 0.25, auc: 0.5 });
    }

    #[test]
    fn a_perfect_order_scores_one_and_a_reversed_one_zero() {
        let labels = [true, true, false, false];
        assert_eq!(
            binary_scores(&[4.0, 3.0, 2.0, f64::NEG_INFINITY], &labels).unwrap(),
            BinaryScores { ap: 1.0, auc: 1.0 }
        );
        let reversed = binary_scores(&[-4.0, -3.0, -2.0, f64::INFINITY], &labels).unwrap();
        assert_eq!(reversed.auc, 0.0);
    }

    #[test]
    fn the_two_zeros_are_tied() {
        assert_eq!(roc_auc(&[0.0, -0.0], &[true, false]).unwrap(), 0.5);
    }

    #[test]
    fn batches_have_equal_weight_whatever_their_size() {
        let mut mean = BatchMean::new();
        mean.push(&[2.0, 1.0], &[true, false]).unwrap();
        mean.push(&[1.0; 6], &[true, false, false, false, false, false]).unwrap();
        assert_eq!(mean.mean().unwrap().auc, 0.75);
        assert_eq!(mean.n_batches(), 2);
    }

    #[test]
    fn the_whole_split_does_not_depend_on_its_batches() {
        let (scores, labels) = ([0.1_f32, 0.7, 0.7, 0.2, 0.9], [false, true, false, true, true]);
        let mut whole = WholeSplit::new();
        whole.push(&scores[..1], &labels[..1]).unwrap();
        whole.push(&scores[1..], &labels[1..]).unwrap();
        assert_eq!(whole.len(), 5);
        assert_eq!(whole.scores().unwrap(), binary_scores(&scores, &labels).unwrap());
    }

    #[test]
    fn undefined_metrics_are_errors_with_a_reason() {
        let check = |scores: &[f64], labels: &[bool], message: &str| {
            assert_eq!(binary_scores(scores, labels).unwrap_err().to_string(), message);
        };
        check(
            &[1.0, 2.0],
            &[true, true],
            "found 2 positives and 0 negatives, expected at least one of each; score positives and negatives together",
        );
        check(
            &[1.0, f64::NAN],
            &[true, false],
            "row 1: found a score that is not a number (NaN), expected a number; the model has diverged: lower its \
             learning rate, or look for bad values in its input",
        );
        check(&[1.0], &[], "found 0 labels, expected 1, one for each score");
        assert!(BatchMean::new().mean().is_err());
    }

    #[test]
    fn rejected_batch_changes_nothing() {
        let mut mean = BatchMean::new();
        mean.push(&[2.0, 1.0], &[true, false]).unwrap();
        assert!(mean.push(&[2.0, 1.0], &[true, true]).is_err());
        assert_eq!(mean.n_batches(), 1);
        let mut whole = WholeSplit::new();
        assert!(whole.push(&[0.5, f64::NAN], &[true, false]).is_err());
        assert!(whole.is_empty());
    }
}
