//! Index from node pairs, ordered or not, to the events between them.
//!
//! Hash tables of unordered pairs, one for each part of them, answer both. They hold no keys: an entry is the event of a pair that met once,
//! whose ends are in the columns of the stream, or the number of a list. Only pairs that met several times, and self-loops, have lists.
//!
//! # Memory
//! 5 bytes per bucket, of which 7/16 to 7/8 are filled: 6 to 12 bytes per distinct pair. A list takes 16 bytes and 4 per event, 8 where
//! events go both ways, 12 for self-loops.

mod build;
#[cfg(test)]
mod tests;

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use crate::event::{Column, EventId, EventIds, NodeId, narrow};
use crate::growing::PairMap;
use crate::index::MappedPairs;

pub(crate) use build::{check_growing, check_number};

/// Events of each pair, in order. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct PairIndex {
    base: Base,
    /// Sources and destinations of the stream, shared with it.
    endpoints: [Column<NodeId>; 2],
    /// The whole lists of pairs with later events; either of unordered or of ordered pairs.
    grown: Option<Arc<PairMap<u32>>>,
}

#[derive(Debug, Clone)]
enum Base {
    InMemory(Arc<Parts>),
    Mapped(MappedPairs),
}

/// The pairs, dealt out by a hash. There is one part at least.
#[derive(Debug)]
struct Parts(Vec<Grouped>);

#[derive(Debug)]
struct Grouped {
    table: HashTable<Entry>,
    /// One for each pair that has a list, and the end of the last.
    lists: Vec<List>,
    events: Vec<u32>,
}

/// The number of the one event of a pair or, with [`Entry::LIST`], that of its list. An event is lent from the table.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
struct Entry(u32);

impl Entry {
    const LIST: u32 = 1 << 31;

    fn of_list(number: usize) -> Self {
        let number = u32::try_from(number).ok().filter(|number| number & Self::LIST == 0);
        Self(number.expect("no more lists than events") | Self::LIST)
    }

    #[inline]
    fn list(self) -> Option<usize> {
        (self.0 & Self::LIST != 0).then_some((self.0 & !Self::LIST) as usize)
    }

    /// The event, where it is not the number of a list.
    #[inline]
    fn event(self) -> EventId {
        EventId(u64::from(self.0))
    }
}

/// Where the events of a pair begin: all of them, a self-loop twice; then, if they go both ways, those from the lower node to the higher and
/// those back; of a self-loop each once.
#[derive(Debug, Clone, Copy)]
struct List {
    /// That of the unordered pair.
    key: u64,
    start: u32,
    /// Events from the lower node to the higher; all of a self-loop.
    n_up: u32,
}

/// Hash key of the ordered pair.
fn directed_key([src, dst]: [NodeId; 2]) -> u64 {
    u64::from(src.0) << 32 | u64::from(dst.0)
}

/// Hash key of the unordered pair.
#[inline]
fn key([a, b]: [NodeId; 2]) -> u64 {
    directed_key([a.min(b), a.max(b)])
}

/// Whether the key is that of a node with itself.
#[inline]
fn is_loop(key: u64) -> bool {
    key >> 32 == key & u64::from(u32::MAX)
}

#[inline]
fn hash(key: u64) -> u64 {
    FxBuildHasher.hash_one(key)
}

/// Which of `n_parts` the pair with this key is in: independent of its [`hash`], so that the table of a part is filled evenly.
#[inline]
fn part_of(key: u64, n_parts: usize) -> usize {
    let upper = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    ((upper * n_parts as u64) >> 32) as usize
}

impl PairIndex {
    /// Groups `events`, which come in order and are no more than [`check_number`] takes, by pair. A self-loop is entered twice in the list
    /// of its unordered pair, as in the adjacency lists, and once in that of its ordered one. On one thread, so that it may be called with
    /// a lock held.
    pub(crate) fn build(
        events: impl ExactSizeIterator<Item = EventId> + Clone,
        endpoints: [Column<NodeId>; 2],
    ) -> Self {
        Self::over(Parts::build(events, [&endpoints[0], &endpoints[1]], false), endpoints)
    }

    /// The same on all threads.
    pub(crate) fn build_in_parallel(
        events: impl ExactSizeIterator<Item = EventId> + Clone,
        endpoints: [Column<NodeId>; 2],
    ) -> Self {
        Self::over(Parts::build(events, [&endpoints[0], &endpoints[1]], true), endpoints)
    }

    fn over(parts: Parts, endpoints: [Column<NodeId>; 2]) -> Self {
        Self { base: Base::InMemory(Arc::new(parts)), endpoints, grown: None }
    }

    /// That of an index file.
    pub(crate) fn mapped(pairs: MappedPairs, endpoints: [Column<NodeId>; 2]) -> Self {
        Self { base: Base::Mapped(pairs), endpoints, grown: None }
    }

    /// The same index, ready for later events.
    pub(crate) fn growing(&self) -> Self {
        Self { grown: Some(Arc::default()), ..self.clone() }
    }

    /// The same index in a stream that has grown, whose sources and destinations are these.
    pub(crate) fn at(&self, endpoints: [Column<NodeId>; 2]) -> Self {
        Self { base: self.base.clone(), endpoints, grown: self.grown.clone() }
    }

    /// Source and destination of an event of the stream.
    #[inline]
    pub(crate) fn ends(&self, event: EventId) -> [NodeId; 2] {
        [self.endpoints[0][event.index()], self.endpoints[1][event.index()]]
    }

    /// Sources and destinations of the stream.
    pub(crate) fn endpoints(&self) -> &[Column<NodeId>; 2] {
        &self.endpoints
    }

    /// Adds the next event to an index that is ready for it and is asked for unordered pairs.
    pub(crate) fn push(&self, u: NodeId, v: NodeId, event: EventId) {
        let event = narrow(event);
        self.grown().push(key([u, v]), || self.base_events([u, v]).iter().map(narrow), event);
        if u == v {
            self.grown().push(key([u, v]), || EventIds::EMPTY.iter().map(narrow), event);
        }
    }

    /// Adds the next event to an index that is ready for it and is asked for ordered pairs.
    pub(crate) fn push_from(&self, src: NodeId, dst: NodeId, event: EventId) {
        let first = || self.base_both_ways([src, dst])[0].iter().map(narrow);
        self.grown().push(directed_key([src, dst]), first, narrow(event));
    }

    fn grown(&self) -> &PairMap<u32> {
        self.grown.as_ref().expect("an index that is ready for later events")
    }

    /// Events of an unordered pair, a self-loop twice.
    #[inline]
    pub(crate) fn events(&self, a: NodeId, b: NodeId) -> EventIds<'_> {
        let grown = self.grown.as_ref().and_then(|grown| grown.get(key([a, b])));
        grown.map_or_else(|| self.base_events([a, b]), EventIds::narrow)
    }

    /// Events from `src` to `dst`, and those from `dst` to `src`.
    #[inline]
    pub(crate) fn events_both_ways(&self, src: NodeId, dst: NodeId) -> [EventIds<'_>; 2] {
        let base = self.base_both_ways([src, dst]);
        let Some(grown) = &self.grown else { return base };
        let keys = [[src, dst], [dst, src]].map(directed_key);
        let of = |at: usize| grown.get(keys[at]).map_or(base[at], EventIds::narrow);
        [of(0), of(1)]
    }

    #[inline]
    fn base_events(&self, pair: [NodeId; 2]) -> EventIds<'_> {
        let base = match &self.base {
            Base::InMemory(base) => base,
            Base::Mapped(base) => return base.events(pair),
        };
        let (part, Some(entry)) = self.find(base, pair) else { return EventIds::EMPTY };
        EventIds::narrow(match entry.list() {
            None => std::slice::from_ref(&entry.0),
            Some(list) => part.all(list),
        })
    }

    #[inline]
    fn base_both_ways(&self, pair: [NodeId; 2]) -> [EventIds<'_>; 2] {
        let base = match &self.base {
            Base::InMemory(base) => base,
            Base::Mapped(base) => return base.both_ways(pair, &self.endpoints[0]),
        };
        let (part, Some(entry)) = self.find(base, pair) else { return [EventIds::EMPTY; 2] };
        let (is_forward, both): (bool, [&[u32]; 2]) = match entry.list() {
            None => (self.endpoints[0][entry.event().index()] == pair[0], [std::slice::from_ref(&entry.0), &[]]),
            Some(list) => (pair[0] < pair[1], part.both_ways(list)),
        };
        let [one, other] = both.map(EventIds::narrow);
        if is_forward { [one, other] } else { [other, one] }
    }

    #[inline]
    fn find<'b>(&self, Parts(parts): &'b Parts, pair: [NodeId; 2]) -> (&'b Grouped, Option<&'b Entry>) {
        let key = key(pair);
        let part = &parts[part_of(key, parts.len())];
        let entry = part.table.find(hash(key), |entry| match entry.list() {
            None => self.is_between(entry.event(), key),
            Some(list) => part.lists[list].key == key,
        });
        (part, entry)
    }

    /// Whether `event` is one of the unordered pair of `of`. Apart, so that the search of the table becomes one loop.
    #[inline(never)]
    fn is_between(&self, event: EventId, of: u64) -> bool {
        key(self.ends(event)) == of
    }

    /// Bytes in memory, or of the columns of a file.
    pub(crate) fn bytes(&self) -> usize {
        match &self.base {
            Base::InMemory(base) => base.0.iter().map(Grouped::bytes).sum(),
            Base::Mapped(base) => base.bytes(),
        }
    }
}

impl Grouped {
    fn bytes(&self) -> usize {
        let Self { table, lists, events } = self;
        size_of_val(self) + table.allocation_size() + size_of_val(&**lists) + size_of_val(&**events)
    }

    /// Events of a list.
    #[inline]
    fn all(&self, list: usize) -> &[u32] {
        let (events, n_all) = self.of(list);
        &events[..n_all]
    }

    /// Events of a list from the lower node to the higher, and those back.
    #[inline]
    fn both_ways(&self, list: usize) -> [&[u32]; 2] {
        let List { key, n_up, .. } = self.lists[list];
        let (events, n_all) = self.of(list);
        let (all, directed) = events.split_at(n_all);
        match n_up as usize {
            0 => [&[], all],
            _ if directed.is_empty() => [all, &[]],
            _ if is_loop(key) => [directed, directed],
            n_up => [&directed[..n_up], &directed[n_up..]],
        }
    }

    /// All that is kept of a list, and how much of it are events in both directions.
    #[inline]
    fn of(&self, list: usize) -> (&[u32], usize) {
        let List { key, start, n_up } = self.lists[list];
        let events = &self.events[start as usize..self.lists[list + 1].start as usize];
        let n_all = match n_up as usize {
            0 => events.len(),
            n_up if n_up == events.len() => events.len(),
            n_up if is_loop(key) => events.len() - n_up,
            _ => events.len() / 2,
        };
        (events, n_all)
    }
}
