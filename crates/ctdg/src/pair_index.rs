//! Index from node pairs, ordered or not, to the events between them.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::event::{EventId, NodeId};
use crate::growing::PairMap;

/// Events of each pair, in order. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct PairIndex {
    base: Arc<Grouped>,
    /// The whole lists of pairs with later events.
    grown: Option<Arc<PairMap<EventId>>>,
}

#[derive(Debug)]
struct Grouped {
    slots: FxHashMap<u64, u32>,
    /// Start of each slot's events, and the end of the last.
    offsets: Vec<u32>,
    events: Vec<EventId>,
}

/// Hash key of the ordered pair.
fn directed_key(src: NodeId, dst: NodeId) -> u64 {
    u64::from(src.0) << 32 | u64::from(dst.0)
}

/// Hash key of the unordered pair.
fn key(a: NodeId, b: NodeId) -> u64 {
    if a < b { directed_key(a, b) } else { directed_key(b, a) }
}

impl PairIndex {
    /// Groups `events`, which come in order, by unordered pair. A self-loop is entered twice, as in the adjacency lists.
    pub(crate) fn build(events: impl Iterator<Item = (NodeId, NodeId, EventId)> + Clone) -> Self {
        Self::grouped(events, key, |u, v| if u == v { 2 } else { 1 })
    }

    /// Groups `events`, which come in order, by ordered pair. A self-loop is entered once.
    pub(crate) fn directed(events: impl Iterator<Item = (NodeId, NodeId, EventId)> + Clone) -> Self {
        Self::grouped(events, directed_key, |_, _| 1)
    }

    fn grouped(
        events: impl Iterator<Item = (NodeId, NodeId, EventId)> + Clone,
        key: fn(NodeId, NodeId) -> u64,
        copies: fn(NodeId, NodeId) -> u32,
    ) -> Self {
        let mut slots = FxHashMap::default();
        let mut offsets = vec![0u32];
        let mut slot_of_event = Vec::new();
        for (u, v, _) in events.clone() {
            let next = u32::try_from(slots.len()).expect("no more pairs than events");
            let slot = *slots.entry(key(u, v)).or_insert(next);
            if slot == next {
                offsets.push(0);
            }
            offsets[slot as usize + 1] += copies(u, v);
            slot_of_event.push(slot);
        }
        for slot in 1..offsets.len() {
            offsets[slot] += offsets[slot - 1];
        }
        let total = offsets.last().copied().unwrap_or(0) as usize;
        let mut grouped = vec![EventId(0); total];
        for ((u, v, id), slot) in events.zip(slot_of_event) {
            for _ in 0..copies(u, v) {
                grouped[offsets[slot as usize] as usize] = id;
                offsets[slot as usize] += 1;
            }
        }
        offsets.rotate_right(1);
        offsets[0] = 0;
        slots.shrink_to_fit();
        offsets.shrink_to_fit();
        Self { base: Arc::new(Grouped { slots, offsets, events: grouped }), grown: None }
    }

    /// The same index, ready for later events.
    pub(crate) fn growing(&self) -> Self {
        Self { base: Arc::clone(&self.base), grown: Some(Arc::default()) }
    }

    /// Adds the next event to an index of unordered pairs that is ready for it.
    pub(crate) fn push(&self, u: NodeId, v: NodeId, event: EventId) {
        self.push_by_key(key(u, v), event);
        if u == v {
            self.push_by_key(key(u, v), event);
        }
    }

    /// Adds the next event to an index of ordered pairs that is ready for it.
    pub(crate) fn push_from(&self, src: NodeId, dst: NodeId, event: EventId) {
        self.push_by_key(directed_key(src, dst), event);
    }

    fn push_by_key(&self, key: u64, event: EventId) {
        let grown = self.grown.as_ref().expect("an index that is ready for later events");
        grown.push(key, || self.base.events_of(key), event);
    }

    /// Events of an unordered pair, in an index of those.
    #[inline]
    pub(crate) fn events(&self, a: NodeId, b: NodeId) -> &[EventId] {
        self.events_of(key(a, b))
    }

    /// Events from `src` to `dst`, in an index of ordered pairs.
    #[inline]
    pub(crate) fn events_from(&self, src: NodeId, dst: NodeId) -> &[EventId] {
        self.events_of(directed_key(src, dst))
    }

    #[inline]
    fn events_of(&self, key: u64) -> &[EventId] {
        let grown = self.grown.as_ref().and_then(|grown| grown.get(key));
        grown.unwrap_or_else(|| self.base.events_of(key))
    }

    pub(crate) fn bytes(&self) -> usize {
        let Grouped { slots, offsets, events } = &*self.base;
        // The hash table has one control byte per entry.
        let table = slots.capacity() * (size_of::<(u64, u32)>() + 1);
        table + offsets.capacity() * size_of::<u32>() + events.capacity() * size_of::<EventId>()
    }
}

impl Grouped {
    #[inline]
    fn events_of(&self, key: u64) -> &[EventId] {
        match self.slots.get(&key) {
            Some(&slot) => &self.events[self.offsets[slot as usize] as usize..self.offsets[slot as usize + 1] as usize],
            None => &[],
        }
    }
}
