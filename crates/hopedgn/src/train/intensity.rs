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

use crate::task::Task;

/// Weight of the loss against past pairs.
const PAIR_WEIGHT: f32 = 0.5;

/// Draws candidates from the training events.
pub(super) struct IntensityNegatives<'a> {
    task: &'a Task<'a>,
    past: PastNegatives<'a>,
    destinations: Vec<NodeId>,
    random: RandomStream,
}

/// Pairs of a batch and what each of them adds to the loss.
pub(super) struct IntensityBatch {
    pub(super) queries: Vec<PairQuery>,
    /// Of `z`, and of `z + g`.
    pub(super) terms: Vec<[BceTerm; 2]>,
}

const NOTHING: BceTerm = BceTerm { target: 0.0, offset: 0.0, weight: 0.0 };

impl<'a> IntensityNegatives<'a> {
    pub(super) fn new(task: &'a Task<'a>, seed: u64) -> Self {
        let past = RandomStream::named(seed, "negative-train/past");
        Self {
            past: PastNegatives::new(task.stream, task.split.train.clone(), PastKind::Historical, past),
            destinations: destinations(task),
            random: RandomStream::named(seed, "negative-train/partner"),
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
        let met = |query: &&[f32; 2]| query[1] > 0.0;
        let n_met = densities.iter().filter(met).count().max(1) as f32;
        let mut terms = Vec::new();
        for &[density, n_meetings] in &densities {
            let weight = if n_meetings > 0.0 && !past_pairs.is_empty() { PAIR_WEIGHT / n_met } else { 0.0 };
            let of_partner = BceTerm { target: 1.0, offset: -density.ln(), weight: 1.0 / n };
            terms.push([of_partner, BceTerm { target: 1.0, offset: 0.0, weight }]);
        }
        for query in uniform.iter().chain(&partners) {
            let [density, _] = self.density(query);
            terms.push([BceTerm { target: 0.0, offset: -density.ln(), weight: 1.0 / n }, NOTHING]);
        }
        let of_pair = BceTerm { target: 0.0, offset: 0.0, weight: PAIR_WEIGHT / n };
        terms.extend(past_pairs.iter().map(|_| [NOTHING, of_pair]));
        IntensityBatch { queries: [positives, uniform, partners, past_pairs].concat(), terms }
    }

    /// A past partner of the source other than the destination; a uniform destination where it has none, or that one was drawn.
    fn past_partner(&self, query: &PairQuery, random: &mut RandomStream) -> NodeId {
        let store = &self.task.train_store;
        let partners = store.history(query.src, store.cut(query.time)).neighbors;
        let partner = (!partners.is_empty()).then(|| partners[random.index(partners.len())]);
        let uniform = self.destinations[random.index(self.destinations.len())];
        partner.filter(|&partner| partner != query.dst).unwrap_or(uniform)
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
    let mut all: Vec<NodeId> = task.split.train.iter().map(|id| task.stream.dst()[id.index()]).collect();
    all.sort_unstable();
    all.dedup();
    all
}
