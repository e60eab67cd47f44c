//! Who interacts with whom: a growth process that meets every count exactly.
//!
//! Each event either repeats a past pair or makes a new one, and a new pair may bring a new user, a new item or both. An
//! [`Urn`] decides each of the three, so that all pairs, users and items have been handed out when the events end. What
//! is copied from the past is copied in proportion to how often it occurs there, which gives the skew: some users and
//! items have far more events than others.

use rustc_hash::FxHashSet;

use super::InteractionSpec;
use crate::random::RandomStream;

/// How much more likely than evenly new pairs, users and items are early on: of a kind with front-loading `b`, about
/// the share (1 − x)ᵇ is still to come after the share `x` of its steps.
const FRONT_PAIRS: f64 = 1.25;
const FRONT_USERS: f64 = 1.5;
const FRONT_ITEMS: f64 = 4.0;

/// Share of events whose user is drawn evenly rather than by recent activity. Without it a handful of users would take
/// over.
const EVEN_USER: f64 = 0.15;

/// Share of new pairs whose item is drawn by age rather than by popularity so far.
const OLD_ITEM: f64 = 0.7;

/// Draws of a pair by activity and popularity before all pairs of known nodes are drawn from evenly. Two busy nodes
/// mostly have met already, so the first kind of draw alone could take long.
const PATIENCE: u32 = 8;

/// One user and one item, each counted from 0 in order of first appearance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Pair {
    pub(super) user: u32,
    pub(super) item: u32,
}

/// Exactly `left` hits in the next `steps` draws, wherever they fall.
#[derive(Debug)]
pub(super) struct Urn {
    left: u32,
    steps: u32,
    front: f64,
}

impl Urn {
    pub(super) fn new(hits: u32, steps: u32, front: f64) -> Self {
        debug_assert!(hits <= steps && front >= 1.0, "{hits} hits in {steps} steps at {front}");
        Self { left: hits, steps, front }
    }

    /// Whether this step is a hit; it is one for sure when `forced` and a hit is left.
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
        users: Urn::new(spec.n_users, spec.n_pairs, FRONT_USERS),
        items: Urn::new(spec.n_items, spec.n_pairs, FRONT_ITEMS),
        n_users: 0,
        n_items: 0,
        known: FxHashSet::with_capacity_and_hasher(spec.n_pairs as usize, rustc_hash::FxBuildHasher),
        events: Vec::with_capacity(spec.n_events as usize),
        of_user: vec![Vec::new(); spec.n_users as usize],
        recency: spec.recency,
    };
    let mut new_pairs = Urn::new(spec.n_pairs, spec.n_events, FRONT_PAIRS);
    for _ in 0..spec.n_events {
        let is_new = new_pairs.draw(growth.events.is_empty(), random);
        let pair = if is_new { growth.new_pair(random) } else { growth.repeat(random) };
        growth.of_user[pair.user as usize].push(pair.item);
        growth.events.push(pair);
    }
    growth.events
}

struct Growth {
    users: Urn,
    items: Urn,
    n_users: u32,
    n_items: u32,
    known: FxHashSet<Pair>,
    events: Vec<Pair>,
    /// The items of each user's events, in order.
    of_user: Vec<Vec<u32>>,
    recency: u32,
}

impl Growth {
    /// How far back in a past of `n` events to look, from 1 to `n`, the nearer the likelier.
    fn back(&self, n: usize, random: &mut RandomStream) -> usize {
        (0..self.recency).fold(n, |reach, _| random.position(reach) + 1)
    }

    /// Any known user, or one who was active lately.
    fn user(&self, random: &mut RandomStream) -> u32 {
        if random.chance(EVEN_USER) {
            return random.below(self.n_users);
        }
        let n = self.events.len();
        self.events[n - self.back(n, random)].user
    }

    /// An old item, or one that is popular.
    fn item(&self, random: &mut RandomStream) -> u32 {
        if random.chance(OLD_ITEM) {
            let youngest = random.below(self.n_items);
            return random.below(youngest + 1);
        }
        self.events[random.position(self.events.len())].item
    }

    /// A user comes back to an item, likely one of the latest.
    fn repeat(&self, random: &mut RandomStream) -> Pair {
        let user = self.user(random);
        let items = &self.of_user[user as usize];
        Pair { user, item: items[items.len() - self.back(items.len(), random)] }
    }

    fn new_pair(&mut self, random: &mut RandomStream) -> Pair {
        // With at least a quarter of the pairs of known nodes free, drawing one evenly takes four tries on average.
        let possible = u64::from(self.n_users) * u64::from(self.n_items);
        let crowded = 4 * self.known.len() as u64 >= 3 * possible;
        let (is_new_user, is_new_item) = (self.users.draw(crowded, random), self.items.draw(crowded, random));
        let (mut user, mut item) = (self.n_users, self.n_items);
        self.n_users += u32::from(is_new_user);
        self.n_items += u32::from(is_new_item);
        let mut tries = 0;
        loop {
            if !is_new_user {
                user = if tries < PATIENCE { self.user(random) } else { random.below(self.n_users) };
            }
            if !is_new_item {
                item = if tries < PATIENCE { self.item(random) } else { random.below(self.n_items) };
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
    fn an_urn_hits_exactly_as_often_as_promised() {
        let mut random = RandomStream::named(0, "urn");
        for (hits, front) in [(0, 1.0), (1, 1.0), (7, 1.0), (7, 4.0), (20, 1.5)] {
            let mut urn = Urn::new(hits, 20, front);
            let found = (0..20).filter(|_| urn.draw(false, &mut random)).count();
            assert_eq!(found, hits as usize);
        }
    }

    #[test]
    fn a_complete_graph_is_reached() {
        let spec =
            InteractionSpec { n_users: 30, n_items: 20, n_events: 700, n_pairs: 600, ..InteractionSpec::like_mooc() };
        let found: FxHashSet<Pair> = pairs(&spec, &mut RandomStream::named(0, "test")).into_iter().collect();
        assert_eq!(found.len(), 600);
    }
}
