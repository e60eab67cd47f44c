//! What a score means: with the intensity objective a probability, otherwise a number that separates.

use ctdg::mite::PairQuery;
use ctdg::store::Store;
use hopedgn_tensor::Weights;
use serde::Serialize;

use super::sigmoid;
use crate::Result;
use crate::model::LOG_DESTINATIONS;

/// What the logits of a model mean.
///
/// ```
/// use hopedgn::predict::{PastPartners, ScoreMeaning};
///
/// let of_four = ScoreMeaning::NextPartner { log_destinations: 4_f32.ln() };
/// assert_eq!(of_four.score(0.0, PastPartners::default()), 0.25); // a new source: as likely as by chance
/// let always = PastPartners { share: 1.0, collision: 1.0 }; // its only partner so far
/// assert_eq!(of_four.score(9.0, always), 1.0);
/// assert_eq!(ScoreMeaning::Separation.score(0.0, always), 0.5);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ScoreMeaning {
    /// [`Objective::Dyglib`](crate::config::Objective): true pairs have higher scores than random ones. The sigmoid of a logit is the
    /// share of true pairs among equally many true and random ones; how likely a pair is to interact depends on how many pairs there
    /// are, so it is no probability of that.
    Separation,
    /// [`Objective::Intensity`](crate::config::Objective): the probability that the next partner of the source is the destination.
    ///
    /// With `r = exp(logit) / |V|` and the past partners of the source ([`PastPartners`]) it is
    ///
    /// ```text
    /// P = r · ((1 + c) / |V| + s) / (1 / |V| + s + r·s)
    /// ```
    ///
    /// which is about `r` of a pair that has never met, and about `r / (1 + r)` of one that has. Training contrasts an event with a
    /// uniform destination and with a past partner of its source *other than its destination*, for which a second uniform destination
    /// stands in. So a past partner `w` is noise with density `s·(1 − P(w))`, not `s`, and uniform destinations with `(1 + c) / |V|`:
    /// what is learned of a past partner is near the odds `P / (1 − P)`.
    NextPartner {
        /// `ln |V|`, of the destinations of training.
        log_destinations: f32,
    },
}

/// What the earlier events of a source say about its partners.
///
/// ```
/// use hopedgn::{Events, ctdg::{mite::PairQuery, store::Store}, predict::PastPartners};
///
/// let events = Events::from_tuples([("a", "b", 1.0), ("a", "c", 2.0), ("b", "a", 3.0)])?;
/// let (src, dst) = (events.src()[0], events.dst()[0]);
/// let past = PastPartners::of(&Store::build(&events)?, &PairQuery { src, dst, time: 3.0 });
/// assert_eq!(past.share, 0.5); // one of the two before time 3
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PastPartners {
    /// `s`: the share of the events of the source that were with the destination, in either direction; 0 without events.
    pub share: f32,
    /// `c`: about how likely the next partner is the same as one of a random earlier event.
    pub collision: f32,
}

/// Newest events of a source that [`PastPartners::collision`] is estimated from.
const MAX_EVENTS: usize = 256;

impl PastPartners {
    /// Of a query over the events of `store`.
    #[must_use]
    pub fn of(store: &Store, query: &PairQuery) -> Self {
        Self { share: Self::share(store, query), collision: Self::collision(store, query) }
    }

    fn share(store: &Store, query: &PairQuery) -> f32 {
        let cut = store.cut(query.time);
        let n_meetings = store.pair_events(query.src, query.dst, cut).len();
        if n_meetings == 0 { 0.0 } else { n_meetings as f32 / store.history(query.src, cut).len() as f32 }
    }

    /// That of a partner with `m` of `n` events is `m / n` times its probability, for which `m / (n + 1)` stands: one more event is
    /// kept for new partners.
    fn collision(store: &Store, query: &PairQuery) -> f32 {
        let mut partners = store.history(query.src, store.cut(query.time)).last(MAX_EVENTS).neighbors.to_vec();
        partners.sort_unstable();
        let n = partners.len().max(1) as f32;
        let squares = partners.chunk_by(|a, b| a == b).map(|same| (same.len() * same.len()) as f32);
        squares.sum::<f32>() / (n * (n + 1.0))
    }
}

/// What a model says about one pair.
///
/// Made by [`LinkPredictor::predictions`](crate::LinkPredictor::predictions).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// Between 0 and 1, the higher the likelier. With [`ScoreMeaning::NextPartner`] the probability.
    pub score: f32,
    /// What the score means in numbers; only with [`ScoreMeaning::NextPartner`].
    pub likelihood: Option<Likelihood>,
}

/// How likely a pair is, in three numbers.
///
/// Part of a [`Prediction`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Likelihood {
    /// `P(v | u, t)`: that the next partner of the source is this destination. Over all destinations the sum is about one; at most 1.
    pub probability: f32,
    /// How often this pair interacts, relative to a pair drawn at random from those that have interacted: 1 is as often. It compares
    /// pairs with different sources at one time. It is no number of events in a unit of time, and for a pair that has never interacted
    /// it is an extrapolation: training compares pairs that have.
    pub intensity: f32,
    /// `P(v | u, t) · |V|`: how many times likelier than by chance, each of the destinations of training being equally likely.
    pub lift: f32,
}

impl ScoreMeaning {
    /// That of a model with these weights.
    pub(crate) fn of(weights: &Weights) -> Result<Self> {
        let parameters = weights.parameters()?;
        let constant = parameters.id(LOG_DESTINATIONS).map(|id| parameters.get(id).values()[0]);
        Ok(constant.map_or(Self::Separation, |log_destinations| Self::NextPartner { log_destinations }))
    }

    /// The score of a logit, between 0 and 1, of a pair with these past partners.
    #[must_use]
    pub fn score(self, logit: f32, past: PastPartners) -> f32 {
        match self {
            Self::Separation => sigmoid(logit),
            Self::NextPartner { log_destinations } => {
                let PastPartners { share, collision } = past;
                let chance = (-log_destinations).exp();
                // Divided by r, so that a large logit stays finite.
                let of_ratio = (log_destinations - logit).exp();
                (((1.0 + collision) * chance + share) / ((chance + share) * of_ratio + share)).min(1.0)
            }
        }
    }

    /// The score of the logit of each of `queries` over the events of `store`.
    pub(crate) fn scores(self, store: &Store, queries: &[PairQuery], logits: &[f32]) -> Vec<f32> {
        let mut past = PastOfSources::new(self, store);
        queries.iter().zip(logits).map(|(query, &logit)| self.score(logit, past.of(query))).collect()
    }

    /// What the two [outputs](crate::score::Output) for each of `queries`, of the partner and of the pair, say.
    pub(crate) fn predictions(self, store: &Store, queries: &[PairQuery], outputs: &[[f32; 2]]) -> Vec<Prediction> {
        let mut past = PastOfSources::new(self, store);
        let prediction = |(query, &[partner, pair]): (&PairQuery, &[f32; 2])| {
            let score = self.score(partner, past.of(query));
            let Self::NextPartner { log_destinations } = self else { return Prediction { score, likelihood: None } };
            let lift = score * log_destinations.exp();
            Prediction { score, likelihood: Some(Likelihood { probability: score, intensity: pair.exp(), lift }) }
        };
        queries.iter().zip(outputs).map(prediction).collect()
    }
}

/// Past partners of many queries: what depends on the source alone is kept while the source and the time stay the same.
struct PastOfSources<'s> {
    meaning: ScoreMeaning,
    store: &'s Store,
    last: Option<(PairQuery, f32)>,
}

impl<'s> PastOfSources<'s> {
    fn new(meaning: ScoreMeaning, store: &'s Store) -> Self {
        Self { meaning, store, last: None }
    }

    fn of(&mut self, query: &PairQuery) -> PastPartners {
        if self.meaning == ScoreMeaning::Separation {
            return PastPartners::default();
        }
        let same = self.last.filter(|(last, _)| last.src == query.src && last.time == query.time);
        let collision = same.map_or_else(|| PastPartners::collision(self.store, query), |(_, collision)| collision);
        self.last = Some((*query, collision));
        PastPartners { share: PastPartners::share(self.store, query), collision }
    }
}

#[cfg(test)]
mod tests {
    use ctdg::event::{EventStream, NodeId};

    use super::*;

    #[test]
    fn noise_that_avoids_the_destination_is_accounted_for() {
        // 100 destinations; the source had two partners, with 80 and 20 of its 100 events, and meets one of them or any other.
        let (n, shares) = (100.0_f32, [0.8, 0.2, 0.0]);
        let truth: [f32; 3] = [0.7, 0.1, 0.2 / 98.0];
        let collision = 0.7 * 0.8 + 0.1 * 0.2;
        let meaning = ScoreMeaning::NextPartner { log_destinations: n.ln() };
        for (p, share) in truth.into_iter().zip(shares) {
            // What noise-contrastive estimation learns against a uniform destination and a past partner other than the true one.
            let (assumed, drawn) = (1.0 / n + share, (1.0 + collision) / n + share * (1.0 - p));
            let logit = (p * n * assumed / drawn).ln();
            assert!((meaning.score(logit, PastPartners { share, collision }) / p - 1.0).abs() < 1e-4, "{p} {share}");
        }
    }

    #[test]
    fn probabilities_stay_within_bounds() {
        let meaning = ScoreMeaning::NextPartner { log_destinations: 50_f32.ln() };
        for logit in [-200.0, -3.0, 0.0, 5.0, 200.0] {
            for share in [0.0, 0.01, 1.0] {
                let score = meaning.score(logit, PastPartners { share, collision: share });
                assert!((0.0..=1.0).contains(&score), "{logit} {share}");
            }
        }
    }

    #[test]
    fn a_prediction_depends_on_no_other_query() {
        let stream = EventStream::from_events([(0, 2, 1.0), (0, 3, 2.0), (0, 2, 3.0), (1, 3, 4.0)]).unwrap();
        let store = Store::build(&stream).unwrap();
        let query = |src, dst, time| PairQuery { src: NodeId(src), dst: NodeId(dst), time };
        let queries = [query(0, 2, 5.0), query(0, 3, 5.0), query(0, 3, 2.5), query(1, 3, 5.0), query(9, 3, 5.0)];
        let meaning = ScoreMeaning::NextPartner { log_destinations: 2_f32.ln() };
        let all = meaning.scores(&store, &queries, &[0.5; 5]);
        for (query, score) in queries.iter().zip(all) {
            assert_eq!(score, meaning.score(0.5, PastPartners::of(&store, query)), "{query:?}");
        }
        let PastPartners { share, collision } = PastPartners::of(&store, &queries[0]);
        assert!((share - 2.0 / 3.0).abs() < 1e-6 && (collision - 5.0 / 12.0).abs() < 1e-6, "{share} {collision}");
        assert_eq!(PastPartners::of(&store, &queries[4]), PastPartners::default(), "a new node");
    }
}
