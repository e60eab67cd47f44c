//! Groups events by pair.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Slot;
use rayon::prelude::*;

use super::{Entry, Grouped, List, Parts, hash, is_loop, key, part_of};
use crate::error::limit::{GROWING, IN_MEMORY, IN_MEMORY_OF};
use crate::error::{Problem, Result};
use crate::event::{EventId, IdWidth, MAX_NARROW, NodeId, narrow};
use crate::huge_pages;

/// Events that an index takes: the entries of its lists are numbered by `u32`, and a self-loop has three.
const MAX_EVENTS: usize = (u32::MAX / 3) as usize;

/// Events of a part, as far as there are no more than [`MAX_PARTS`]: while it is grouped, what belongs to it stays in a core's own cache.
const PART: usize = 1 << 15;
/// Each part is written at a place of its own while events are dealt out.
const MAX_PARTS: usize = 1 << 12;

/// Refuses more events than an index in memory takes, and a stream whose events it cannot number.
pub(crate) fn check_number(n_events: usize, n_stream: usize) -> Result<()> {
    if n_events > MAX_EVENTS {
        return Err(Problem::TooMany { what: IN_MEMORY, max: MAX_EVENTS as u64 }.into());
    }
    if IdWidth::of(n_stream) == IdWidth::Wide {
        return Err(Problem::TooMany { what: IN_MEMORY_OF, max: MAX_NARROW }.into());
    }
    Ok(())
}

/// Refuses more events than an index that grows takes, whether it began in memory or mapped.
pub(crate) fn check_growing(n_events: usize) -> Result<()> {
    if n_events > MAX_EVENTS {
        return Err(Problem::TooMany { what: GROWING, max: MAX_EVENTS as u64 }.into());
    }
    Ok(())
}

impl Parts {
    /// Groups `ids`, which come in order, by pair; on all threads if `in_parallel`.
    ///
    /// One table for all pairs would outgrow the caches, and each event would wait for memory several times. So events are dealt out by the
    /// hash of their pair first, which reads and writes in order, and each part has a table of its own.
    pub(super) fn build(
        ids: impl ExactSizeIterator<Item = EventId> + Clone,
        ends: [&[NodeId]; 2],
        in_parallel: bool,
    ) -> Self {
        assert!(ids.len() <= MAX_EVENTS, "checked by those who call this");
        let n_parts = ids.len().div_ceil(PART).clamp(1, MAX_PARTS);
        let (dealt, starts) = deal(ids, ends, n_parts);
        let group = |scratch: &mut Scratch, part: &[usize]| Grouped::build(&dealt[part[0]..part[1]], ends, scratch);
        Self(if in_parallel {
            starts.par_windows(2).map_init(Scratch::default, group).collect()
        } else {
            let mut scratch = Scratch::default();
            starts.windows(2).map(|part| group(&mut scratch, part)).collect()
        })
    }
}

/// The events of each part in order, one part after the other, and where each begins and the last ends.
fn deal(
    ids: impl ExactSizeIterator<Item = EventId> + Clone,
    [src, dst]: [&[NodeId]; 2],
    n_parts: usize,
) -> (Vec<u32>, Vec<usize>) {
    let part = |id: EventId| part_of(key([src[id.index()], dst[id.index()]]), n_parts);
    // Places of the next event of each part, one further on: when all are dealt out, the start of each part.
    let mut starts = vec![0; n_parts + 2];
    let n_events = ids.len();
    for id in ids.clone() {
        starts[part(id) + 2] += 1;
    }
    for at in 2..starts.len() {
        starts[at] += starts[at - 1];
    }
    let mut dealt = vec![0; n_events];
    huge_pages::advise(&mut dealt);
    for id in ids {
        let next = &mut starts[part(id) + 1];
        dealt[*next] = narrow(id);
        *next += 1;
    }
    starts.pop();
    (dealt, starts)
}

/// What grouping a part needs for a while.
#[derive(Default)]
struct Scratch {
    /// Numbers of pairs by their keys.
    numbers: HashTable<u32>,
    pairs: Vec<Pair>,
    /// The pair of each event, and whether the event goes from the lower node to the higher.
    members: Vec<(u32, bool)>,
    cursors: Vec<Cursor>,
}

struct Pair {
    key: u64,
    first: u32,
    n: u32,
    n_up: u32,
    /// The number of its list, if it has one.
    list: usize,
}

impl Pair {
    /// Whether its only event stands for itself in the table.
    fn is_single(&self) -> bool {
        self.n == 1 && !is_loop(self.key) && self.first & Entry::LIST == 0
    }
}

impl Scratch {
    /// Numbers the pairs of `ids` in order of their first events.
    fn count(&mut self, ids: &[u32], [src, dst]: [&[NodeId]; 2]) {
        self.numbers.clear();
        self.pairs.clear();
        self.members.clear();
        let Self { numbers, pairs, members, .. } = self;
        members.extend(ids.iter().map(|&first| {
            let [u, v] = [src, dst].map(|column| column[first as usize]);
            let key = key([u, v]);
            let is_same = |&number: &u32| pairs[number as usize].key == key;
            let hasher = |&number: &u32| hash(pairs[number as usize].key);
            let number = match numbers.entry(hash(key), is_same, hasher) {
                Slot::Occupied(slot) => *slot.get(),
                Slot::Vacant(slot) => {
                    let number = u32::try_from(pairs.len()).expect("no more pairs than events");
                    slot.insert(number);
                    pairs.push(Pair { key, first, n: 0, n_up: 0, list: 0 });
                    number
                }
            };
            let pair = &mut pairs[number as usize];
            pair.n += 1;
            pair.n_up += u32::from(u <= v);
            (number, u <= v)
        }));
    }
}

impl Grouped {
    fn build(ids: &[u32], ends: [&[NodeId]; 2], scratch: &mut Scratch) -> Self {
        scratch.count(ids, ends);
        let Scratch { pairs, members, cursors, .. } = scratch;
        let mut table = HashTable::with_capacity(pairs.len());
        let mut lists = Vec::with_capacity(1 + pairs.iter().filter(|pair| !pair.is_single()).count());
        let mut end = 0;
        cursors.clear();
        for pair in pairs.iter_mut() {
            let entry = if pair.is_single() {
                Entry(pair.first)
            } else {
                pair.list = lists.len();
                lists.push(List { key: pair.key, start: end, n_up: pair.n_up });
                cursors.push(Cursor::of(pair, &mut end));
                Entry::of_list(pair.list)
            };
            table.insert_unique(hash(pair.key), entry, |_| unreachable!("there is room for every pair"));
        }
        lists.push(List { key: 0, start: end, n_up: 0 });
        let mut events = vec![0; end as usize];
        for (&id, &(pair, is_up)) in ids.iter().zip(&*members) {
            let pair = &pairs[pair as usize];
            if !pair.is_single() {
                cursors[pair.list].put(id, is_up, &mut events);
            }
        }
        Self { table, lists, events }
    }
}

/// Where the next event of a list goes.
struct Cursor {
    all: u32,
    directed: Directed,
}

/// Where it goes once more, by its direction.
enum Directed {
    OneWay,
    BothWays { up: u32, down: u32 },
    Loop { once: u32 },
}

impl Cursor {
    /// That of a list which begins at `end`, and moves it on to the end of the list.
    fn of(&Pair { key, n, n_up, .. }: &Pair, end: &mut u32) -> Self {
        let all = *end;
        let directed;
        (directed, *end) = match n_up {
            _ if is_loop(key) => (Directed::Loop { once: all + 2 * n }, all + 3 * n),
            n_up if n_up == 0 || n_up == n => (Directed::OneWay, all + n),
            n_up => (Directed::BothWays { up: all + n, down: all + n + n_up }, all + 2 * n),
        };
        Self { all, directed }
    }

    fn put(&mut self, event: u32, is_up: bool, events: &mut [u32]) {
        let mut put = |at: &mut u32| {
            events[*at as usize] = event;
            *at += 1;
        };
        put(&mut self.all);
        match &mut self.directed {
            Directed::OneWay => {}
            Directed::BothWays { up, down } => put(if is_up { up } else { down }),
            Directed::Loop { once } => {
                put(&mut self.all);
                put(once);
            }
        }
    }
}
