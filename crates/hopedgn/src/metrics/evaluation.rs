//! Test metrics under every protocol, as `evaluation.json`.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Calibration, LinkMetrics, PerSetting, Summary};

/// The file of an [`Evaluation`] in a run folder.
pub const EVALUATION: &str = "evaluation.json";

/// Test metrics of a model and of heuristics under one or more protocols.
///
/// ```
/// # use hopedgn::{Events, LinkPredictor};
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
/// let evaluation = predictor.evaluate(&events)?;
/// for (negatives, by_scorer) in &evaluation.negatives {
///     for (scorer, metrics) in by_scorer {
///         println!("{negatives} {scorer} {:?}", metrics.transductive.map(|metrics| metrics.ap));
///     }
/// }
/// let ranking = evaluation.ranking.expect("the default measures it");
/// assert!(ranking.scorers[&evaluation.model].transductive.is_some_and(|metrics| metrics.mrr > 0.0));
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// The run folder; empty if there is none.
    pub run: String,
    /// Name of the dataset, as the user gave it.
    pub data: String,
    /// Name of the model, its key among the scorers.
    pub model: String,
    /// `cpu` or `cuda`.
    pub device: String,
    /// Metrics by kind of negatives, then by scorer.
    pub negatives: BTreeMap<String, BTreeMap<String, PerSetting>>,
    /// Ranking metrics, if measured.
    pub ranking: Option<RankingTest>,
    /// Whether probabilities are right; only for a model whose scores are probabilities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
    /// The events that were tested; missing in files of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tested: Option<TestedEvents>,
    /// What was asked for and is not measured, since the work was interrupted; empty if the evaluation is complete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incomplete: Vec<String>,
    /// Rankings among other numbers of candidates, measured earlier.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_rankings: Vec<RankingTest>,
}

/// Ranking of true destinations among candidates.
///
/// Part of an [`Evaluation`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankingTest {
    /// Number of candidates at most, `"all"`, or the file that lists them.
    pub candidates: serde_json::Value,
    /// `tgb` if candidates are those of TGB's protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Metrics by scorer.
    pub scorers: BTreeMap<String, PerSetting<RankingMetrics>>,
}

/// Rank of the true destination among candidates.
///
/// Made by [`rank`](crate::evaluate::rank).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RankingMetrics {
    /// Mean of 1 / rank.
    pub mrr: f64,
    /// Share of ranks of at most 10. With one true destination for each event this is Recall@10 too.
    pub hits_at_10: f64,
    /// Normalised discounted cumulative gain of the first 10: mean of `1 / log2(1 + rank)` over ranks of at most 10, else 0.
    /// Missing in files of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ndcg_at_10: Option<f64>,
}

/// The events that an [`Evaluation`] tested.
///
/// See [`TestRange`](crate::evaluate::TestRange).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestedEvents {
    /// `test`, `new` or `times`.
    pub range: String,
    /// How many.
    pub events: usize,
    /// Of those, with a node that did not occur in training.
    pub new_node_events: usize,
    /// Of those, events that the model was trained on.
    pub trained_on: usize,
    /// Time of the first.
    pub first_time: Option<f64>,
    /// Time of the last.
    pub last_time: Option<f64>,
    /// Events of the data after those that the run knew. Only [`TestRange::Split`](crate::evaluate::TestRange::Split) leaves all
    /// of them out.
    pub newer: usize,
}

/// An untrained heuristic that has a higher metric than the model, on all test events.
///
/// ```
/// # use hopedgn::{Events, LinkPredictor};
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
/// let summary = predictor.summary().expect("training is complete");
/// if let Some(better) = summary.better_heuristic() {
///     println!("{better}");
///     assert!(better.value > better.of_model);
/// }
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct BetterHeuristic {
    /// The heuristic.
    pub name: String,
    /// `AP` or `MRR`.
    pub metric: &'static str,
    /// What was measured, such as `historical negatives` or `ranking`.
    pub test: String,
    /// Its value, a fraction.
    pub value: f64,
    /// That of the model.
    pub of_model: f64,
}

/// In words, with values in percent.
impl fmt::Display for BetterHeuristic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, metric, test, value, of_model } = self;
        let [value, of_model] = [value, of_model].map(|value| 100.0 * value);
        write!(f, "{name}, an untrained heuristic, has the higher {metric}: {value:.2} against {of_model:.2} ({test})")
    }
}

impl BetterHeuristic {
    /// The best of `others`, if it is better than `of_model` by what two decimals of a percentage show.
    fn find<'n>(
        others: impl Iterator<Item = (&'n String, f64)>,
        of_model: f64,
        metric: &'static str,
        test: &str,
    ) -> Option<Self> {
        let shown = |value: f64| (1e4 * value).round();
        let (name, value) = others.filter(|(_, value)| value.is_finite()).max_by(|a, b| a.1.total_cmp(&b.1))?;
        (shown(value) > shown(of_model)).then(|| Self {
            name: name.clone(),
            metric,
            test: test.to_owned(),
            value,
            of_model,
        })
    }

    /// The best scorer besides `model`, if it is better.
    fn among<M: Copy>(
        scorers: &BTreeMap<String, PerSetting<M>>,
        model: &str,
        value: fn(M) -> f64,
        metric: &'static str,
        test: &str,
    ) -> Option<Self> {
        let of_model = value(scorers.get(model)?.transductive?);
        let others = scorers.iter().filter(|(name, _)| *name != model);
        let others = others.filter_map(|(name, settings)| Some((name, value(settings.transductive?))));
        Self::find(others, of_model, metric, test)
    }
}

impl Summary {
    /// The heuristic with the best AP, if that is higher than the model's.
    ///
    /// [`BetterHeuristic`] has an example.
    #[must_use]
    pub fn better_heuristic(&self) -> Option<BetterHeuristic> {
        let others = self.heuristics.iter();
        let others = others.filter_map(|(name, settings)| Some((name, settings.transductive?.ap)));
        BetterHeuristic::find(others, self.test.transductive?.ap, "AP", "random negatives")
    }
}

impl Evaluation {
    /// Whether all that was asked for is measured.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.incomplete.is_empty()
    }

    /// The best heuristic of each test in which it is better than the model.
    ///
    /// ```
    /// # use hopedgn::{Events, LinkPredictor};
    /// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
    /// # let events = Events::from_tuples(messages)?;
    /// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
    /// for better in predictor.evaluate(&events)?.better_heuristics() {
    ///     println!("{}: {} has the higher {}", better.test, better.name, better.metric);
    /// }
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    #[must_use]
    pub fn better_heuristics(&self) -> Vec<BetterHeuristic> {
        let ap = |metrics: LinkMetrics| metrics.ap;
        let links = self.negatives.iter().filter_map(|(kind, scorers)| {
            BetterHeuristic::among(scorers, &self.model, ap, "AP", &format!("{kind} negatives"))
        });
        let ranking = self.ranking.as_ref().and_then(|ranking| {
            let mrr = |metrics: RankingMetrics| metrics.mrr;
            BetterHeuristic::among(&ranking.scorers, &self.model, mrr, "MRR", "ranking")
        });
        links.chain(ranking).collect()
    }

    /// This evaluation, and what `earlier` has besides it: other kinds of negatives, and rankings among other numbers of
    /// candidates.
    #[must_use]
    pub(crate) fn with_earlier(mut self, earlier: Self) -> Self {
        if earlier.model != self.model || earlier.device != self.device {
            return self;
        }
        self.calibration = self.calibration.or(earlier.calibration);
        for (kind, scorers) in earlier.negatives {
            self.negatives.entry(kind).or_insert(scorers);
        }
        for ranking in earlier.ranking.into_iter().chain(earlier.other_rankings) {
            let is_known = |known: &RankingTest| known.is_among(&ranking.candidates, ranking.protocol.as_deref());
            if self.ranking.is_none() {
                self.ranking = Some(ranking);
            } else if !self.ranking.iter().chain(&self.other_rankings).any(is_known) {
                self.other_rankings.push(ranking);
            }
        }
        self
    }

    /// The ranking among `candidates`, a number or `"all"`; `protocol` is `tgb` for candidates of TGB.
    #[must_use]
    pub fn ranking_among(&self, candidates: &serde_json::Value, protocol: Option<&str>) -> Option<&RankingTest> {
        self.ranking.iter().chain(&self.other_rankings).find(|ranking| ranking.is_among(candidates, protocol))
    }
}

impl RankingTest {
    /// Whether it is the ranking among these candidates.
    fn is_among(&self, candidates: &serde_json::Value, protocol: Option<&str>) -> bool {
        self.candidates == *candidates && self.protocol.as_deref() == protocol
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn evaluation(kinds: &[(&str, f64)], rankings: &[u64]) -> Evaluation {
        let metrics = |ap| LinkMetrics { ap, auc: ap, ap_global: ap, auc_global: ap };
        let scorers = |ap: f64| {
            let both = |ap| PerSetting { transductive: Some(metrics(ap)), inductive: None };
            BTreeMap::from([("tgn".to_owned(), both(0.9)), ("a".to_owned(), both(0.1)), ("b".to_owned(), both(ap))])
        };
        let ranking = |&n: &u64| RankingTest { candidates: json!(n), protocol: None, scorers: BTreeMap::new() };
        Evaluation {
            run: String::new(),
            data: "d".to_owned(),
            model: "tgn".to_owned(),
            device: "cpu".to_owned(),
            negatives: kinds.iter().map(|&(kind, ap)| (kind.to_owned(), scorers(ap))).collect(),
            ranking: rankings.first().map(ranking),
            calibration: None,
            tested: None,
            incomplete: Vec::new(),
            other_rankings: rankings.iter().skip(1).map(ranking).collect(),
        }
    }

    #[test]
    fn only_a_heuristic_that_is_visibly_better_is_named() {
        let better =
            evaluation(&[("random", 0.9001), ("historical", 0.90004), ("inductive", 0.5)], &[]).better_heuristics();
        let [one] = better.as_slice() else { panic!("{better:?}") };
        assert_eq!((one.name.as_str(), one.test.as_str(), one.metric), ("b", "random negatives", "AP"));
        assert_eq!(
            one.to_string(),
            "b, an untrained heuristic, has the higher AP: 90.01 against 90.00 (random negatives)"
        );
    }

    #[test]
    fn earlier_kinds_and_rankings_are_kept_beside_new_ones() {
        let earlier = evaluation(&[("random", 0.1), ("historical", 0.2)], &[100, 5]);
        let both = evaluation(&[("random", 0.3)], &[5]).with_earlier(earlier.clone());
        assert_eq!(both.negatives["random"]["b"].transductive.unwrap().ap, 0.3, "the new one");
        assert!(both.negatives.contains_key("historical"));
        assert_eq!((&both.ranking, both.other_rankings.len()), (&earlier.ranking_among(&json!(5), None).cloned(), 1));
        assert!(both.ranking_among(&json!(100), None).is_some() && both.ranking_among(&json!("all"), None).is_none());
        assert_eq!(both.ranking_among(&json!(100), Some("tgb")), None, "other draws");
        let without = evaluation(&[("random", 0.3)], &[]).with_earlier(earlier.clone());
        assert_eq!(without.ranking, earlier.ranking);
        let other_device = Evaluation { device: "cuda".to_owned(), ..earlier };
        let new = evaluation(&[("random", 0.3)], &[5]);
        assert_eq!(new.clone().with_earlier(other_device), new, "results of two devices are not mixed");
    }
}
