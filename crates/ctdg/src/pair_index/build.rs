//! Groups events by pair.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Slot;

use super::{Entry, Grouped, List, hash, key};
use crate::error::{Problem, Result};
use crate::event::{EventId, NodeId};

/// Events that an index takes: the entries of its lists are numbered by `u32`, and a self-loop has three.
const MAX_EVENTS: usize = (u32::MAX / 3) as usize;

/// Pairs that a table has room for at first.
const FIRST_CAPACITY: usize = 1 << 12;
/// How much larger a full table becomes. It is filled again by looking up the ends of each entry, so it grows seldom.
const GROWTH: usize = 8;

/// Refuses more events than an index takes.
pub(crate) fn check_number(n_events: usize) -> Result<()> {
    if n_events > MAX_EVENTS {
        return Err(Problem::TooMany { what: "events in a store", max: MAX_EVENTS as u64 }.into());
    }
    Ok(())
}

impl Grouped {
    pub(super) fn build(ids: impl ExactSizeIterator<Item = EventId>, [src, dst]: [&[NodeId]; 2]) -> Self {
        assert!(ids.len() <= MAX_EVENTS, "checked by those who call this");
        let mut n_left = ids.len();
        let mut table: HashTable<Entry> = HashTable::with_capacity(n_left.min(FIRST_CAPACITY));
        let mut lists = Lists::default();
        for id in ids {
            let pair = [src[id.index()], dst[id.index()]];
            let ends = |entry: &Entry| match entry.list() {
                None => [src[entry.0.index()], dst[entry.0.index()]],
                Some(list) => lists.lists[list].ends,
            };
            let hasher = |entry: &Entry| hash(ends(entry));
            if table.len() == table.capacity() {
                // No more than there may be pairs.
                table.reserve(n_left.min((GROWTH - 1) * table.len()), hasher);
            }
            n_left -= 1;
            match table.entry(hash(pair), |entry| key(ends(entry)) == key(pair), hasher) {
                Slot::Vacant(slot) => {
                    let is_event = pair[0] != pair[1] && id.0 & Entry::LIST == 0;
                    slot.insert(if is_event { Entry(id) } else { Entry::of_list(lists.begin(pair, id)) });
                }
                Slot::Occupied(mut slot) => {
                    let first = slot.get().0;
                    let list = slot.get().list().unwrap_or_else(|| {
                        let list = lists.begin([src[first.index()], dst[first.index()]], first);
                        *slot.get_mut() = Entry::of_list(list);
                        list
                    });
                    lists.push(list, pair, id);
                }
            }
        }
        table.shrink_to_fit(|entry| match entry.list() {
            None => hash([src[entry.0.index()], dst[entry.0.index()]]),
            Some(list) => hash(lists.lists[list].ends),
        });
        let (lists, events) = lists.finish(src);
        Self { table, lists, events }
    }
}

/// Lists that are being filled.
#[derive(Default)]
struct Lists {
    /// With the number of events in place of the start.
    lists: Vec<List>,
    /// The list of each event that is in one; the events of a list are in order.
    members: Vec<(u32, EventId)>,
}

impl Lists {
    /// A new list with its first event; returns its number.
    fn begin(&mut self, ends: [NodeId; 2], event: EventId) -> usize {
        let list = self.lists.len();
        self.lists.push(List { ends, start: 0, n_forward: 0 });
        self.push(list, ends, event);
        list
    }

    fn push(&mut self, list: usize, [src, _]: [NodeId; 2], event: EventId) {
        let List { ends, start, n_forward } = &mut self.lists[list];
        *start += 1;
        *n_forward += u32::from(src == ends[0]);
        self.members.push((u32::try_from(list).expect("no more lists than events"), event));
    }

    /// The lists with their starts, and the events that they refer to.
    fn finish(self, src: &[NodeId]) -> (Vec<List>, Vec<EventId>) {
        let Self { mut lists, members } = self;
        let mut end = 0;
        for List { ends, start, n_forward } in &mut lists {
            let (n, is_loop) = (*start, ends[0] == ends[1]);
            if *n_forward == n && !is_loop {
                *n_forward = 0;
            }
            *start = end;
            end += match n_forward {
                0 => n,
                _ if is_loop => 3 * n,
                _ => 2 * n,
            };
        }
        let mut events = vec![EventId(0); end as usize];
        // While filling, `start` is the place of the next event; afterwards it is the end of those in both directions.
        for (list, event) in members {
            let List { ends, start, .. } = &mut lists[list as usize];
            for _ in 0..if ends[0] == ends[1] { 2 } else { 1 } {
                events[*start as usize] = event;
                *start += 1;
            }
        }
        let mut begin = 0;
        for List { ends, start, n_forward } in &mut lists {
            let n_all = (*start - begin) as usize;
            let (all, directed) = events[begin as usize..].split_at_mut(n_all);
            *start = begin;
            begin += u32::try_from(n_all).expect("part of a range of u32");
            if ends[0] == ends[1] {
                directed.iter_mut().zip(all.iter().step_by(2)).for_each(|(once, event)| *once = *event);
                begin += *n_forward;
            } else if *n_forward > 0 {
                let (mut forward, mut back) = (0, *n_forward as usize);
                for event in all {
                    let at = if src[event.index()] == ends[0] { &mut forward } else { &mut back };
                    directed[*at] = *event;
                    *at += 1;
                }
                begin += u32::try_from(n_all).expect("part of a range of u32");
            }
        }
        lists.push(List { ends: [NodeId(0); 2], start: end, n_forward: 0 });
        lists.shrink_to_fit();
        (lists, events)
    }
}
