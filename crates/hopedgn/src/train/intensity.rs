//! Candidates and loss terms of [`Objective::Intensity`](crate::config::Objective).
//!
//! For an event `(u, v, t)` the candidates are `v` itself, a uniform destination and a past partner of `u`: with the density
//! `k·Q(w | u)` of the two noise candidates, noise-contrastive estimation teaches
//!
//! ```text
//! z(u, w, t) = ln(P(w | u, t) · |V|)        by the logit z − ln(k·Q(w | u)·|V|)
//! ```
//!
//! A past pair teaches `z + g`, which pair interacts at all. Only positives that have met before take part there: negatives are always
//! pairs that have met, so that a model would learn that "never met" means "positive". That is an artefact of the negatives, not
//! knowledge.

use ctdg::event::{EventId, NodeId};
use ctdg::mite::PairQuery;
use ctdg::negative::{PastKind, PastNegatives};
use ctdg::random::RandomStream;
use hopedgn_tensor::BceTerm;

use crate::config::{Config, Objective};
use crate::task::Task;

/// Draws candidates from the training events.
#[derive(Debug)]
pub(super) struct IntensityNegatives<'a> {
    task: &'a Task<'a>,
    past: PastNegatives<'a>,
    destinations: Vec<NodeId>,
    random: RandomStream,
    /// Whether positives that never met take part in the loss against past pairs.
    unmet_positives: bool,
    /// Weight of the loss against past pairs.
    pair_weight: f32,
}

/// Pairs of a batch and what each of them adds to the loss.
pub(super) struct IntensityBatch {
    pub(super) queries: Vec<PairQuery>,
    /// Of `z`, and of `z + g`.
    pub(super) terms: Vec<[BceTerm; 2]>,
}

const NOTHING: BceTerm = BceTerm { target: 0.0, offset: 0.0, weight: 0.0 };

impl<'a> IntensityNegatives<'a> {
    /// For training with these settings; `None` with another objective.
    pub(super) fn of(task: &'a Task<'a>, config: &Config) -> Option<Self> {
        (config.train.objective == Objective::Intensity).then(|| Self::new(task, config))
    }

    fn new(task: &'a Task<'a>, config: &Config) -> Self {
        let seed = config.seed;
        let past = RandomStream::named(seed, "negative-train/past");
        Self {
            past: PastNegatives::new(task.stream, task.split.train.clone(), PastKind::Historical, past),
            destinations: destinations(task),
            random: RandomStream::named(seed, "negative-train/partner"),
            unmet_positives: config.train.unmet_positives,
            pair_weight: config.train.pair_weight,
            task,
        }
    }

    /// The batch of `events` at `step`, with a uniform destination for each.
    pub(super) fn batch(&self, events: &[EventId], uniform: &[NodeId], step: u64) -> IntensityBatch {
        let positives = self.task.queries(events);
        let mut random = self.random.fork(step);
        let partners: Vec<NodeId> = positives.iter().map(|query| self.past_partner(query, &mut random)).collect();
        // Without any past pair, nothing is learned of them.
        let past_pairs = self.past.draw(events, step).unwrap_or_default();
        let with = |dst: &[NodeId]| -> Vec<PairQuery> {
            positives.iter().zip(dst).map(|(query, &dst)| PairQuery { dst, ..*query }).collect()
        };
        let (uniform, partners) = (with(uniform), with(&partners));
        let pairs = positives.iter().zip(past_pairs).map(|(query, (src, dst))| PairQuery { src, dst, ..*query });
        let past_pairs: Vec<PairQuery> = pairs.collect();

        let n = events.len() as f32;
        let densities: Vec<[f32; 2]> = positives.iter().map(|query| self.density(query)).collect();
        let takes_part = |n_meetings: f32| (n_meetings > 0.0 || self.unmet_positives) && !past_pairs.is_empty();
        let n_parts = densities.iter().filter(|of| takes_part(of[1])).count().max(1) as f32;
        let mut terms = Vec::new();
        for &[density, n_meetings] in &densities {
            let weight = if takes_part(n_meetings) { self.pair_weight / n_parts } else { 0.0 };
            let of_partner = BceTerm { target: 1.0, offset: -density.ln(), weight: 1.0 / n };
            terms.push([of_partner, BceTerm { target: 1.0, offset: 0.0, weight }]);
        }
        for query in uniform.iter().chain(&partners) {
            let [density, _] = self.density(query);
            terms.push([BceTerm { target: 0.0, offset: -density.ln(), weight: 1.0 / n }, NOTHING]);
        }
        let of_pair = BceTerm { target: 0.0, offset: 0.0, weight: self.pair_weight / n };
        terms.extend(past_pairs.iter().map(|_| [NOTHING, of_pair]));
        IntensityBatch { queries: [positives, uniform, partners, past_pairs].concat(), terms }
    }

    /// A past partner of the source, the destination perhaps; a uniform destination where it has none. Leaving the destination out would
    /// teach odds instead of probabilities.
    fn past_partner(&self, query: &PairQuery, random: &mut RandomStream) -> NodeId {
        let store = &self.task.train_store;
        let partners = store.history(query.src, store.cut(query.time)).neighbors;
        let among = if partners.is_empty() { &self.destinations } else { partners };
        among[random.index(among.len())]
    }

    /// `k·Q(v | u)·|V|` of the two noise candidates, and the number of earlier meetings.
    fn density(&self, query: &PairQuery) -> [f32; 2] {
        let store = &self.task.train_store;
        let cut = store.cut(query.time);
        let n_meetings = store.pair_events(query.src, query.dst, cut).len() as f32;
        let n_events = store.history(query.src, cut).len() as f32;
        let as_partner = if n_events > 0.0 { self.destinations.len() as f32 * n_meetings / n_events } else { 1.0 };
        [1.0 + as_partner, n_meetings]
    }
}

/// The distinct destinations of training.
pub(super) fn destinations(task: &Task<'_>) -> Vec<NodeId> {
    let mut occurs = vec![false; task.stream.n_nodes()];
    for id in &task.split.train {
        occurs[task.stream.dst()[id.index()].index()] = true;
    }
    (0..).map(NodeId).zip(occurs).filter(|(_, occurs)| *occurs).map(|(node, _)| node).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use ctdg::event::EventStream;

    use super::*;

    const N_DRAWS: u64 = 20_000;

    /// Events between 12 nodes, several at each time, repeats among them.
    fn stream() -> EventStream {
        let mut random = RandomStream::named(3, "stream");
        let event = |i: u32| (random.below(5), 5 + random.below(7), f64::from(i / 3));
        EventStream::from_events((0..400).map(event)).unwrap()
    }

    fn with_negatives(unmet_positives: bool, check: impl Fn(&Task<'_>, &IntensityNegatives<'_>)) {
        let stream = stream();
        let mut config = Config::default();
        config.train.unmet_positives = unmet_positives;
        let task = Task::new(&stream, config.split).unwrap();
        check(&task, &IntensityNegatives::new(&task, &config));
    }

    fn n_meetings(task: &Task<'_>, query: &PairQuery) -> usize {
        let is_meeting = |id: &&EventId| {
            let event = task.stream.event(**id);
            let nodes = [(event.src, event.dst), (event.dst, event.src)];
            event.time < query.time && nodes.contains(&(query.src, query.dst))
        };
        task.split.train.iter().filter(is_meeting).count()
    }

    #[test]
    fn candidates_are_drawn_with_the_density_of_the_loss() {
        with_negatives(false, |task, negatives| {
            let last = *task.split.train.last().unwrap();
            let query = task.queries(&[last])[0];
            let mut counts = HashMap::<NodeId, usize>::new();
            for step in 0..N_DRAWS {
                *counts.entry(negatives.past_partner(&query, &mut RandomStream::named(step, "draw"))).or_default() += 1;
            }
            let n_destinations = negatives.destinations.len() as f32;
            for &dst in &negatives.destinations {
                let drawn = counts.get(&dst).copied().unwrap_or(0) as f32 / N_DRAWS as f32;
                let [density, n] = negatives.density(&PairQuery { dst, ..query });
                assert_eq!(n, n_meetings(task, &PairQuery { dst, ..query }) as f32);
                // One uniform candidate has the density 1.
                assert!((density - 1.0 - n_destinations * drawn).abs() < 0.15, "{dst:?} {density} {drawn}");
            }
        });
    }

    #[test]
    fn only_positives_that_met_take_part_against_past_pairs() {
        for unmet_positives in [false, true] {
            with_negatives(unmet_positives, |task, negatives| {
                let events = &task.split.train[20..26];
                let uniform = vec![negatives.destinations[0]; events.len()];
                let IntensityBatch { queries, terms } = negatives.batch(events, &uniform, 0);
                assert_eq!((queries.len(), terms.len()), (4 * events.len(), 4 * events.len()));
                let met: Vec<bool> = queries[..events.len()].iter().map(|query| n_meetings(task, query) > 0).collect();
                assert!(met.contains(&true) && met.contains(&false));
                for ([of_partner, of_pair], met) in terms.iter().zip(&met) {
                    assert!(of_partner.target == 1.0 && of_pair.target == 1.0);
                    assert_eq!(of_pair.weight > 0.0, *met || unmet_positives);
                }
                let sum = |range: std::ops::Range<usize>, at: usize| -> f32 {
                    terms[range].iter().map(|terms| terms[at].weight).sum()
                };
                let n = events.len();
                let sums = [sum(0..n, 0), sum(n..3 * n, 0), sum(0..n, 1), sum(3 * n..4 * n, 1)];
                for (sum, expected) in sums.into_iter().zip([1.0, 2.0, 0.5, 0.5]) {
                    assert!((sum - expected).abs() < 1e-5, "{sums:?}");
                }
                for query in &queries[3 * n..] {
                    assert!(n_meetings(task, query) > 0, "a past pair");
                }
            });
        }
    }
}
