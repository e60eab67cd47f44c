//! Bipartite streams that need two-hop neighbors: users interact with the items of their group, each item once.
//!
//! Users and items are divided into groups. Every pair of a user and an item of one group interacts exactly once, in random
//! order; there are no interactions across groups. A user and an item never have a common neighbor, since the graph is
//! bipartite, so one-hop neighborhoods carry no signal; but an item of the user's group was used by users who share
//! earlier items: a path of three interactions.
//!
//! ```text
//! u ── i ── w ── j          u and j are in one group, which shows within two hops
//! ```
//!
//! Random negatives are items of other groups (at the defaults two in three), or items of the user's earlier or later
//! interactions.

use crate::error::{Problem, Result};
use crate::event::EventStream;
use crate::random::RandomStream;

/// Sizes of the stream. Times have no unit; the mean gap between two events is 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TasteSpec {
    /// Number of groups.
    pub n_groups: u32,
    /// Users per group.
    pub n_users: u32,
    /// Items per group.
    pub n_items: u32,
}

impl Default for TasteSpec {
    fn default() -> Self {
        Self { n_groups: 3, n_users: 10, n_items: 10 }
    }
}

impl TasteSpec {
    /// Generates a stream of `n_groups · n_users · n_items` events. Users have the lower ids; ids within users or items are
    /// independent of the groups.
    pub fn generate(&self, seed: u64) -> Result<EventStream> {
        let Self { n_groups, n_users, n_items } = *self;
        for (name, n) in [("n_groups", n_groups), ("n_users", n_users), ("n_items", n_items)] {
            if n == 0 {
                return Err(Problem::Setting { name, found: "0".into(), expected: "at least 1".into() }.into());
            }
        }
        let too_many = || Problem::TooMany { what: "events", max: u64::from(u32::MAX) };
        let product = n_groups.checked_mul(n_users).and_then(|n| n.checked_mul(n_items));
        let n_events = product.ok_or_else(too_many)?;
        let mut random = RandomStream::named(seed, "tastes");
        let mut users: Vec<u32> = (0..n_groups * n_users).collect();
        let mut items: Vec<u32> = (0..n_groups * n_items).map(|item| item + n_groups * n_users).collect();
        random.shuffle(&mut users);
        random.shuffle(&mut items);
        let mut pairs = Vec::with_capacity(n_events as usize);
        for (users, items) in users.chunks_exact(n_users as usize).zip(items.chunks_exact(n_items as usize)) {
            pairs.extend(users.iter().flat_map(|&user| items.iter().map(move |&item| (user, item))));
        }
        random.shuffle(&mut pairs);
        let mut time = 0.0;
        EventStream::from_events(pairs.into_iter().map(|(user, item)| {
            time += random.exponential(1.0);
            (user, item, time)
        }))
    }
}
