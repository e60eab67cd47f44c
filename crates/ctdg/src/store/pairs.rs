//! Index from unordered node pairs to the events between them.

use rustc_hash::FxHashMap;

use crate::event::{EventId, NodeId};

/// Events of each unordered pair, in order.
#[derive(Debug, Clone)]
pub(crate) struct PairIndex {
    slots: FxHashMap<u64, u32>,
    /// Start of each slot's events, and the end of the last.
    offsets: Vec<u32>,
    events: Vec<EventId>,
}

/// Hash key of the unordered pair.
fn key(a: NodeId, b: NodeId) -> u64 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    u64::from(low.0) << 32 | u64::from(high.0)
}

impl PairIndex {
    /// Groups `events`, which come in order. A self-loop is entered twice, as in the adjacency lists.
    pub(crate) fn build(events: impl Iterator<Item = (NodeId, NodeId, EventId)> + Clone) -> Self {
        let mut slots = FxHashMap::default();
        let mut offsets = vec![0u32];
        let mut slot_of_event = Vec::new();
        let copies = |u: NodeId, v: NodeId| if u == v { 2 } else { 1 };
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
        Self { slots, offsets, events: grouped }
    }

    #[inline]
    pub(crate) fn events(&self, a: NodeId, b: NodeId) -> &[EventId] {
        match self.slots.get(&key(a, b)) {
            Some(&slot) => &self.events[self.offsets[slot as usize] as usize..self.offsets[slot as usize + 1] as usize],
            None => &[],
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        // The hash table has one control byte per entry.
        let table = self.slots.capacity() * (size_of::<(u64, u32)>() + 1);
        table + self.offsets.capacity() * size_of::<u32>() + self.events.capacity() * size_of::<EventId>()
    }
}
