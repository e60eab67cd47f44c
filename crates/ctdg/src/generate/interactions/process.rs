//! The pairs of a synthetic stream: a growth process with exact counts.
//!
//! Each event either repeats a past pair or makes a new one, and a new pair may introduce a new user, a new item or both. A
//! [`Quota`] decides each of the three, so that the numbers of pairs, users and items are exact after the last event.
//! Preferential attachment to past events gives the skewed activity and popularity.

use rustc_hash::FxHashSet;

use super::InteractionSpec;
use crate::random::RandomStream;

/// Front-loading of new pairs, users and items: with front-loading `b`, about the share (1 − x)ᵇ is still to come after the
/// share `x` of the steps.
const FRONT_PAIRS: f64 = 1.25;
const FRONT_USERS: f64 = 1.5;
const FRONT_ITEMS: f64 = 4.0;

/// Share of events whose user is sampled uniformly rather than by recent activity, so that no few users dominate.
const UNIFORM_USER: f64 = 0.15;

/// Share of new pairs whose item is sampled by age rather than by popularity.
const OLD_ITEM: f64 = 0.7;

/// Attempts to sample a new pair by activity and popularity before sampling uniformly: pairs of active nodes mostly exist
/// already.
const MAX_SKEWED_TRIES: u32 = 8;

/// One user and one item, each counted from 0 in order of first appearance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Pair {
    pub(super) user: u32,
    pub(super) item: u32,
}

/// Exactly `left` successes in the next `steps` draws, at random positions.
#[derive(Debug)]
pub(super) struct Quota {
    left: u32,
    steps: u32,
    front: f64,
}

impl Quota {
    pub(super) fn new(hits: u32, steps: u32, front: f64) -> Self {
        debug_assert!(hits <= steps && front >= 1.0, "{hits} hits in {steps} steps at {front}");
        Self { left: hits, steps, front }
    }

    /// Whether this step is a success; certain if `forced` and any are left.
    pub(super) fn draw(&mut self, forced: bool, random: &mut RandomStream) -> bool {
        let p = self.front * f64::from(self.left) / f64::from(self.steps);
        let hit = self.left > 0 && (forced || self.left == self.steps || random.chance(p));
        self.left -= u32::from(hit);
        self.steps -= 1;
        hit
    }
}

/// The pair of every event, in order. Expected time is linear in the number of events, with a logarithm on top only when
/// nearly all possible pairs occur.
pub(super) fn pairs(spec: &InteractionSpec, random: &mut RandomStream) -> Vec<Pair> {
    let mut growth = Growth {
        users: Quota::new(spec.n_users, spec.n_pairs, FRONT_USERS),
        items: Quota::new(spec.n_items, spec.n_pairs, FRONT_ITEMS),
        n_users: 0,
        n_items: 0,
        known: FxHashSet::with_capacity_and_hasher(spec.n_pairs as usize, rustc_hash::FxBuildHasher),
        events: Vec::with_capacity(spec.n_events as usize),
        of_user: vec![Vec::new(); spec.n_users as usize],
        recency: spec.recency,
    };
    let mut new_pairs = Quota::new(spec.n_pairs, spec.n_events, FRONT_PAIRS);
    for _ in 0..spec.n_events {
        let is_new = new_pairs.draw(growth.events.is_empty(), random);
        let pair = if is_new { growth.new_pair(random) } else { growth.repeat(random) };
        growth.of_user[pair.user as usize].push(pair.item);
        growth.events.push(pair);
    }
    growth.events
}

struct Growth {
    users: Quota,
    items: Quota,
    n_users: u32,
    n_items: u32,
    known: FxHashSet<Pair>,
    events: Vec<Pair>,
    /// The items of each user's events, in order.
    of_user: Vec<Vec<u32>>,
    recency: u32,
}

impl Growth {
    /// A distance back in a history of `n` events, from 1 to `n`, biased to recent events.
    fn back(&self, n: usize, random: &mut RandomStream) -> usize {
        (0..self.recency).fold(n, |reach, _| random.index(reach) + 1)
    }

    /// A uniform user, or a recently active one.
    fn user(&self, random: &mut RandomStream) -> u32 {
        if random.chance(UNIFORM_USER) {
            return random.below(self.n_users);
        }
        let n = self.events.len();
        self.events[n - self.back(n, random)].user
    }

    /// An item by age, or by popularity.
    fn item(&self, random: &mut RandomStream) -> u32 {
        if random.chance(OLD_ITEM) {
            let youngest = random.below(self.n_items);
            return random.below(youngest + 1);
        }
        self.events[random.index(self.events.len())].item
    }

    /// A user returns to one of its items, biased to recent ones.
    fn repeat(&self, random: &mut RandomStream) -> Pair {
        let user = self.user(random);
        let items = &self.of_user[user as usize];
        Pair { user, item: items[items.len() - self.back(items.len(), random)] }
    }

    fn new_pair(&mut self, random: &mut RandomStream) -> Pair {
        // With at least a quarter of the pairs of known nodes unused, uniform sampling takes four tries on average.
        let possible = u64::from(self.n_users) * u64::from(self.n_items);
        let crowded = 4 * self.known.len() as u64 >= 3 * possible;
        let (is_new_user, is_new_item) = (self.users.draw(crowded, random), self.items.draw(crowded, random));
        let (mut user, mut item) = (self.n_users, self.n_items);
        self.n_users += u32::from(is_new_user);
        self.n_items += u32::from(is_new_item);
        let mut tries = 0;
        loop {
            if !is_new_user {
                user = if tries < MAX_SKEWED_TRIES { self.user(random) } else { random.below(self.n_users) };
            }
            if !is_new_item {
                item = if tries < MAX_SKEWED_TRIES { self.item(random) } else { random.below(self.n_items) };
            }
            let pair = Pair { user, item };
            if self.known.insert(pair) {
                return pair;
            }
            tries += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quota_is_met_exactly() {
        let mut random = RandomStream::named(0, "quota");
        for (hits, front) in [(0, 1.0), (1, 1.0), (7, 1.0), (7, 4.0), (20, 1.5)] {
            let mut quota = Quota::new(hits, 20, front);
            let found = (0..20).filter(|_| quota.draw(false, &mut random)).count();
            assert_eq!(found, hits as usize);
        }
    }

    #[test]
    fn complete_bipartite_graph_is_reached() {
        let spec =
            InteractionSpec { n_users: 30, n_items: 20, n_events: 700, n_pairs: 600, ..InteractionSpec::like_mooc() };
        let found: FxHashSet<Pair> = pairs(&spec, &mut RandomStream::named(0, "test")).into_iter().collect();
        assert_eq!(found.len(), 600);
    }
}
