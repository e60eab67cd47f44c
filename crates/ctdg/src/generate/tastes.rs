//! Streams in which common neighbours say nothing and what lies behind them everything: people buy what people of the same
//! taste buy, each thing once.
//!
//! People and things are divided into groups. Every pair of a person and a thing of one group meets exactly once, in random
//! order, and nobody meets anything of another group. A person and a thing never have a common neighbour, since people meet
//! things only, so that the neighbours of the two tell nothing of each other; but a thing of one's own group was bought by people
//! who bought the same things before: a path of three meetings.
//!
//! ```text
//! u ── i ── w ── j          will u buy j? Whoever looks two steps far knows.
//! ```
//!
//! Random negatives are things of other groups (at the defaults two in three), or things that the person has or will have.

use crate::error::{Problem, Result};
use crate::event::EventStream;
use crate::random::RandomStream;

/// What the stream looks like. Times have no unit; the mean between two events is 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TasteSpec {
    /// Groups of one taste.
    pub n_groups: u32,
    /// People in each of them.
    pub n_users: u32,
    /// Things in each of them.
    pub n_items: u32,
}

impl Default for TasteSpec {
    fn default() -> Self {
        Self { n_groups: 3, n_users: 10, n_items: 10 }
    }
}

impl TasteSpec {
    /// Draws a stream of `n_groups · n_users · n_items` events. People come before things in the order of ids; within either,
    /// ids say nothing of groups.
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
        let mut people: Vec<u32> = (0..n_groups * n_users).collect();
        let mut things: Vec<u32> = (0..n_groups * n_items).map(|thing| thing + n_groups * n_users).collect();
        random.shuffle(&mut people);
        random.shuffle(&mut things);
        let mut pairs = Vec::with_capacity(n_events as usize);
        for (people, things) in people.chunks_exact(n_users as usize).zip(things.chunks_exact(n_items as usize)) {
            pairs.extend(people.iter().flat_map(|&person| things.iter().map(move |&thing| (person, thing))));
        }
        random.shuffle(&mut pairs);
        let mut time = 0.0;
        EventStream::from_events(pairs.into_iter().map(|(person, thing)| {
            time += random.exponential(1.0);
            (person, thing, time)
        }))
    }
}
