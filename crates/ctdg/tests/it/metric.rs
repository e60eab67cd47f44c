//! Metrics against scikit-learn's numbers and against their definitions written out in full.

use std::collections::BTreeMap;

use ctdg::metric::{Ranking, average_precision, binary_scores, rank, roc_auc};
use proptest::prelude::*;
use serde::Deserialize;

/// Sums of a few hundred terms, each rounded to 53 bits.
const TOLERANCE: f64 = 1e-12;

#[derive(Deserialize)]
struct Fixture {
    binary: Vec<BinaryCase>,
    ranking: Vec<RankingCase>,
}

#[derive(Deserialize)]
struct BinaryCase {
    name: String,
    scores: Vec<f64>,
    labels: Vec<bool>,
    ap: f64,
    auc: f64,
}

#[derive(Deserialize)]
struct RankingCase {
    positives: Vec<f64>,
    negatives: Vec<Vec<f64>>,
    ranks: Vec<f64>,
    mrr: f64,
    hits: BTreeMap<u32, f64>,
}

fn fixture() -> Fixture {
    serde_json::from_str(include_str!("../../../../fixtures/metric/metrics.json")).unwrap()
}

#[test]
fn binary_metrics_equal_those_of_scikit_learn() {
    for case in fixture().binary {
        let found = binary_scores(&case.scores, &case.labels).unwrap();
        assert!((found.ap - case.ap).abs() < TOLERANCE, "{}: AP {} is not {}", case.name, found.ap, case.ap);
        assert!((found.auc - case.auc).abs() < TOLERANCE, "{}: AUC {} is not {}", case.name, found.auc, case.auc);
    }
}

#[test]
fn ranks_equal_the_fixture() {
    for case in fixture().ranking {
        let mut ranking = Ranking::new();
        for (&positive, negatives) in case.positives.iter().zip(&case.negatives) {
            ranking.push(positive, negatives).unwrap();
        }
        assert_eq!(ranking.ranks(), case.ranks);
        assert!((ranking.mrr().unwrap() - case.mrr).abs() < TOLERANCE);
        for (k, share) in case.hits {
            assert!((ranking.hits_at(k).unwrap() - share).abs() < TOLERANCE, "hits at {k}");
        }
    }
}

/// Few distinct values, so that most scores are tied; both classes present.
fn tied_scores() -> impl Strategy<Value = (Vec<f32>, Vec<bool>)> {
    proptest::collection::vec((-4_i8..4, any::<bool>()), 0..60).prop_map(|mut cases| {
        cases.extend([(0, true), (1, false)]);
        cases.into_iter().map(|(score, label)| (f32::from(score) / 4.0, label)).unzip()
    })
}

fn is_near(found: f64, expected: f64) -> bool {
    (found - expected).abs() < TOLERANCE
}

proptest! {
    #[test]
    fn auc_counts_pairs((scores, labels) in tied_scores()) {
        let (mut won, mut pairs) = (0.0, 0.0);
        for (positive, _) in scores.iter().zip(&labels).filter(|(_, label)| **label) {
            for (negative, _) in scores.iter().zip(&labels).filter(|(_, label)| !**label) {
                pairs += 1.0;
                won += if positive > negative { 1.0 } else if positive < negative { 0.0 } else { 0.5 };
            }
        }
        prop_assert!(is_near(roc_auc(&scores, &labels).unwrap(), won / pairs));
    }

    #[test]
    fn average_precision_is_the_mean_precision_at_each_positive((scores, labels) in tied_scores()) {
        // With ties grouped, precision at a positive counts everything that scores at least as high.
        let (mut sum, mut positives) = (0.0, 0.0);
        for (&threshold, _) in scores.iter().zip(&labels).filter(|(_, label)| **label) {
            let taken: Vec<bool> =
                scores.iter().zip(&labels).filter(|(score, _)| **score >= threshold).map(|(_, label)| *label).collect();
            sum += taken.iter().filter(|label| **label).count() as f64 / taken.len() as f64;
            positives += 1.0;
        }
        prop_assert!(is_near(average_precision(&scores, &labels).unwrap(), sum / positives));
    }

    #[test]
    fn metrics_ignore_order_and_monotone_changes((scores, labels) in tied_scores()) {
        let expected = binary_scores(&scores, &labels).unwrap();
        let reversed: (Vec<f64>, Vec<bool>) =
            scores.iter().zip(&labels).rev().map(|(&score, &label)| (f64::from(score) * 3.0 - 7.0, label)).unzip();
        prop_assert_eq!(binary_scores(&reversed.0, &reversed.1).unwrap(), expected);
    }

    #[test]
    fn rank_follows_its_formula(positive in -3_i8..3, negatives in proptest::collection::vec(-3_i8..3, 0..40)) {
        let above = negatives.iter().filter(|&&negative| negative > positive).count() as f64;
        let at_least = negatives.iter().filter(|&&negative| negative >= positive).count() as f64;
        prop_assert_eq!(rank(positive, &negatives).unwrap(), 1.0 + 0.5 * (above + at_least));
    }
}
