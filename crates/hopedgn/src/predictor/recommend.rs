//! Predictions with what they mean, and the likeliest destinations of a source.

use std::cmp::Ordering;

use ctdg::event::{Cut, NodeId};
use ctdg::mite::PairQuery;

use super::LinkPredictor;
use crate::predict::{Candidates, Destinations, History, Prediction, Reason, ScoreMeaning, both_scores, near};
use crate::{Error, Result};

/// A destination that [`LinkPredictor::recommend`] names.
///
/// ```
/// # use hopedgn::{Events, LinkPredictor};
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
/// for best in predictor.recommend("3", 2, 200.0)? {
///     let note = if best.known { "again" } else { "for the first time" };
///     println!("{} {:.2} {note}", best.dst, best.score);
///     assert_eq!(best.known, best.dst == "2" || best.dst == "4");
/// }
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Recommendation {
    /// The destination.
    pub dst: String,
    /// The score of the pair, as [`LinkPredictor::predict`] gives it.
    pub score: f32,
    /// The same, where it is the probability that the next partner of the source is this destination; see [`ScoreMeaning`].
    pub probability: Option<f32>,
    /// Whether source and destination interacted before.
    pub known: bool,
    /// Why, if it was asked for.
    pub reason: Option<Reason>,
}

/// What [`LinkPredictor::recommend_with`] looks for.
///
/// ```
/// # use hopedgn::{Events, LinkPredictor};
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
/// use hopedgn::RecommendOptions;
///
/// let options = RecommendOptions { top: 3, exclude_seen: true, reasons: true, ..RecommendOptions::at(200.0) };
/// for new in predictor.recommend_with("3", &options, &mut |_| {})? {
///     assert!(!new.known && new.reason.is_some_and(|reason| reason.n_meetings == 0));
/// }
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecommendOptions {
    /// The query time.
    pub time: f64,
    /// The number of destinations.
    pub top: usize,
    /// Whether to leave out destinations that interacted with the source before.
    pub exclude_seen: bool,
    /// Whether to say why.
    pub reasons: bool,
    /// Which destinations are compared.
    pub candidates: Candidates,
}

impl RecommendOptions {
    /// The ten likeliest destinations at `time`.
    #[must_use]
    pub fn at(time: f64) -> Self {
        Self { time, top: 10, exclude_seen: false, reasons: false, candidates: Candidates::All }
    }
}

impl LinkPredictor {
    /// What the scores of this model mean.
    ///
    /// ```
    /// # use hopedgn::Events;
    /// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
    /// # let events = Events::from_tuples(messages)?;
    /// use hopedgn::{LinkPredictor, ModelName, predict::ScoreMeaning};
    ///
    /// let builder = || LinkPredictor::builder().model(ModelName::Stats).epochs(1);
    /// let dyglib = builder().set("train.objective=dyglib").fit(&events)?;
    /// assert_eq!(dyglib.score_meaning()?, ScoreMeaning::Separation);
    /// let intensity = builder().fit(&events)?; // its default
    /// assert!(matches!(intensity.score_meaning()?, ScoreMeaning::NextPartner { .. }));
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    pub fn score_meaning(&self) -> Result<ScoreMeaning> {
        ScoreMeaning::of(&self.trained.weights)
    }

    /// The score of each of `queries`, with probability, intensity and lift where the model was trained for them; `on_progress` is
    /// called with the number of newly scored pairs.
    ///
    /// ```
    /// # use hopedgn::{Events, LinkPredictor, ModelName};
    /// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
    /// # let events = Events::from_tuples(messages)?;
    /// # let builder = LinkPredictor::builder().model(ModelName::Stats).set("train.objective=intensity").epochs(1);
    /// let predictor = builder.fit(&events)?;
    /// let query = hopedgn::ctdg::mite::PairQuery { src: events.src()[3], dst: events.dst()[3], time: 100.0 };
    /// let prediction = predictor.predictions(&[query], &mut |_| {})?[0];
    /// let likelihood = prediction.likelihood.expect("trained for intensities");
    /// assert_eq!(prediction.score, likelihood.probability);
    /// println!("{} times likelier than by chance", likelihood.lift);
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    pub fn predictions(&self, queries: &[PairQuery], on_progress: &mut dyn FnMut(usize)) -> Result<Vec<Prediction>> {
        let meaning = self.score_meaning()?;
        if meaning == ScoreMeaning::Separation {
            let logits = self.logits_with_progress(queries, on_progress)?;
            return Ok(logits.into_iter().map(|logit| meaning.prediction([logit; 2])).collect());
        }
        let (model, weights) = (&*self.trained.model, &self.trained.weights);
        let scores = both_scores(&self.past()?, self.resident.as_deref(), model, weights, queries, on_progress)?;
        if let Some((pair, &[partner, of_pair])) =
            scores.iter().enumerate().find(|(_, both)| !both.iter().all(|x| x.is_finite()))
        {
            let score = if partner.is_finite() { of_pair } else { partner };
            return Err(Error::NonFiniteScore { score, pair });
        }
        Ok(scores.into_iter().map(|outputs| meaning.prediction(outputs)).collect())
    }

    /// The score of each of `queries`.
    pub(super) fn scores(&self, queries: &[PairQuery]) -> Result<Vec<f32>> {
        let meaning = self.score_meaning()?;
        Ok(self.logits(queries)?.into_iter().map(|logit| meaning.score(logit)).collect())
    }

    /// The `k` most likely destinations of `src` at time `t`, the likeliest first, among all other nodes that were a
    /// destination before `t` (and `src` itself where nodes interact with themselves); equal scores in order of their ids.
    ///
    /// ```
    /// # use hopedgn::{Events, LinkPredictor};
    /// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
    /// # let events = Events::from_tuples(messages)?;
    /// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
    /// let best = predictor.recommend("3", 3, 200.0)?;
    /// assert_eq!(best.len(), 3);
    /// assert!(best[0].score >= best[1].score && best.iter().all(|best| best.dst != "3"));
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    pub fn recommend(&self, src: &str, k: usize, t: f64) -> Result<Vec<Recommendation>> {
        self.recommend_with(src, &RecommendOptions { top: k, ..RecommendOptions::at(t) }, &mut |_| {})
    }

    /// The same with all options; `on_progress` is called with the number of newly scored destinations. A source without any event is a
    /// node without a history, as in [`LinkPredictor::predict`].
    ///
    /// [`RecommendOptions`] has an example.
    ///
    /// # Complexity
    /// One score for each destination; the best are selected in linear time.
    pub fn recommend_with(
        &self,
        src: &str,
        options: &RecommendOptions,
        on_progress: &mut dyn FnMut(usize),
    ) -> Result<Vec<Recommendation>> {
        let src = self.named_pairs(&[(src, src, options.time)])?.queries()[0].src;
        let (store, meaning) = (self.store()?, self.score_meaning()?);
        let cut = store.cut(options.time);
        let have_met = |dst: NodeId| !store.pair_events(src, dst, cut).is_empty();
        let destinations = match options.candidates {
            Candidates::All => self.destinations(src, cut),
            Candidates::Near => near(store, src, cut),
        };
        let queries: Vec<PairQuery> = destinations
            .into_iter()
            .filter(|&dst| !(options.exclude_seen && have_met(dst)))
            .map(|dst| PairQuery { src, dst, time: options.time })
            .collect();
        // All in one call: a model with a memory replays the events once.
        let logits = self.logits_with_progress(&queries, on_progress)?;
        let mut scored: Vec<(PairQuery, f32)> = queries.into_iter().zip(logits).collect();
        let names = self.events.names();
        // By logits: scores near 1 are rounded.
        keep_best(&mut scored, options.top, |(a, x), (b, y)| y.total_cmp(x).then_with(|| names.compare(a.dst, b.dst)));
        let recommendation = |(query, logit): (PairQuery, f32)| {
            let score = meaning.score(logit);
            Recommendation {
                dst: self.events.names().name(query.dst),
                score,
                probability: (meaning != ScoreMeaning::Separation).then_some(score),
                known: have_met(query.dst),
                reason: options.reasons.then(|| Reason::of(store, &query)),
            }
        };
        Ok(scored.into_iter().map(recommendation).collect())
    }

    /// The destinations of events before `cut` that `src` may meet: not itself, unless nodes interact with themselves.
    fn destinations(&self, src: NodeId, cut: Cut) -> Vec<NodeId> {
        let Some(snapshot) = &self.snapshot else {
            let mut destinations = Destinations::new(&self.events);
            destinations.advance(cut);
            return destinations.of(src).collect();
        };
        let has_loops = snapshot.has_loops(cut);
        snapshot.destinations(cut).iter().copied().filter(|&dst| has_loops || dst != src).collect()
    }

    /// The events that predictions look back on.
    pub(super) fn past(&self) -> Result<History<'_>> {
        Ok(History {
            stream: &self.events,
            store: self.store()?,
            tables: &self.tables,
            memory: self.trained.memory.as_ref(),
            batch: self.trained.config.train.batch,
        })
    }
}

/// Keeps the first `k` items in order.
fn keep_best<T>(items: &mut Vec<T>, k: usize, order: impl Fn(&T, &T) -> Ordering) {
    if 0 < k && k < items.len() {
        items.select_nth_unstable_by(k - 1, &order);
    }
    items.truncate(k);
    items.sort_by(order);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_are_the_first_of_all_in_order() {
        let all: Vec<u32> = (0..50).map(|i| i * 17 % 50).collect();
        for k in [0, 1, 7, 49, 50, 99] {
            let mut best = all.clone();
            keep_best(&mut best, k, u32::cmp);
            assert_eq!(best, (0..50).take(k).collect::<Vec<_>>());
        }
    }
}
