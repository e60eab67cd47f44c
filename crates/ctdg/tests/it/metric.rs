//! Metrics against scikit-learn and against their definitions.

#![expect(clippy::float_cmp, reason = "ranks are halves, which are exact")]

use std::collections::BTreeMap;

use ctdg::metric::{Ranking, average_precision, binary_scores, ndcg_at, rank, roc_auc, shuffled_average_precision};
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
    serde_json::from_str(include_str!("../../../../fixtures/metric/metrics.json")).expect("a fixture of this form")
}

#[test]
fn binary_metrics_equal_scikit_learn() {
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

/// Discounted cumulative gain of `relevant` in the order of `scores`, over that of the best order: the definition.
fn ndcg_by_sorting(scores: &[u32], relevant: usize, k: usize) -> f64 {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by_key(|&item| std::cmp::Reverse(scores[item]));
    let gain = |order: &[usize]| -> f64 {
        let gains = order.iter().take(k).zip(2_u32..);
        gains.map(|(&item, place)| f64::from(u8::from(item == relevant)) / f64::from(place).log2()).sum()
    };
    let found = gain(&order);
    order.sort_by_key(|&item| item != relevant);
    found / gain(&order)
}

proptest! {
    #[test]
    fn ndcg_and_recall_equal_their_definitions_over_sorted_lists(
        order in Just((0_u32..25).collect::<Vec<_>>()).prop_shuffle(), n in 1_usize..25, k in 1_u32..15,
    ) {
        let scores = &order[..n];
        let (positive, negatives) = (f64::from(scores[0]), scores[1..].iter().map(|&s| f64::from(s)).collect::<Vec<_>>());
        let mut ranking = Ranking::new();
        ranking.push(positive, &negatives).unwrap();
        prop_assert!(is_near(ranking.ndcg_at(k).unwrap(), ndcg_by_sorting(scores, 0, k as usize)));
        let among_first = scores.iter().filter(|&&score| score > scores[0]).count() < k as usize;
        prop_assert_eq!(ranking.recall_at(k).unwrap(), f64::from(u8::from(among_first)));
        prop_assert_eq!(ranking.recall_at(k).unwrap(), ranking.hits_at(k).unwrap());
    }
}

#[test]
fn a_tie_at_the_end_of_the_list_gains_nothing() {
    assert_eq!(ndcg_at(&[10.5], 10).unwrap(), 0.0);
    assert_eq!(ndcg_at(&[1.0, 10.5], 11).unwrap(), f64::midpoint(1.0, 1.0 / 11.5_f64.log2()));
    assert!(ndcg_at(&[], 10).is_err());
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

/// Calls `show` with every order of `items` from index `from` on.
fn for_each_order<T>(items: &mut [T], from: usize, show: &mut impl FnMut(&[T])) {
    if from == items.len() {
        return show(items);
    }
    for i in from..items.len() {
        items.swap(from, i);
        for_each_order(items, from + 1, show);
        items.swap(from, i);
    }
}

proptest! {
    // Six items have 720 orders, each a sort: fewer cases than usual.
    #![proptest_config(ProptestConfig::with_cases(64))]

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
    fn shuffled_average_precision_is_the_mean_over_all_orders_of_ties(
        mut cases in proptest::collection::vec((0_u8..3, any::<bool>()), 0..5)
    ) {
        cases.extend([(0, true), (1, false)]);
        let (scores, labels): (Vec<f32>, Vec<bool>) = cases.iter().map(|case| (f32::from(case.0), case.1)).unzip();
        let (mut sum, mut n_orders) = (0.0, 0.0);
        for_each_order(&mut cases, 0, &mut |order: &[(u8, bool)]| {
            let mut sorted = order.to_vec();
            sorted.sort_by_key(|case| std::cmp::Reverse(case.0));
            // All scores different now, ordered as drawn.
            let places: Vec<f32> = (0_u8..).take(sorted.len()).map(|place| -f32::from(place)).collect();
            let labels: Vec<bool> = sorted.iter().map(|case| case.1).collect();
            sum += average_precision(&places, &labels).unwrap();
            n_orders += 1.0;
        });
        prop_assert!(is_near(shuffled_average_precision(&scores, &labels).unwrap(), sum / n_orders));
    }

    #[test]
    fn metrics_ignore_order_and_monotone_transformations((scores, labels) in tied_scores()) {
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
