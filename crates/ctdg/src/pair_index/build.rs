//! Groups events by pair.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Slot;

use super::{Entry, Grouped, List, hash, is_loop, key};
use crate::error::limit::{GROWING, IN_MEMORY, IN_MEMORY_OF};
use crate::error::{Problem, Result};
use crate::event::{EventId, IdWidth, MAX_NARROW, NodeId, narrow};

/// Events that an index takes: the entries of its lists are numbered by `u32`, and a self-loop has three.
const MAX_EVENTS: usize = (u32::MAX / 3) as usize;

/// Pairs that a table has room for at first.
const FIRST_CAPACITY: usize = 1 << 12;
/// How much larger a full table becomes. It is filled again by looking up the ends of each entry, so it grows seldom.
const GROWTH: usize = 8;

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

impl Grouped {
    pub(super) fn build(ids: impl ExactSizeIterator<Item = EventId> + Clone, [src, dst]: [&[NodeId]; 2]) -> Self {
        assert!(ids.len() <= MAX_EVENTS, "checked by those who call this");
        let pair = |event: EventId| [src[event.index()], dst[event.index()]];
        let mut table: HashTable<Entry> = HashTable::with_capacity(ids.len().min(FIRST_CAPACITY));
        let (mut lists, mut firsts): (Vec<List>, Vec<u32>) = (Vec::new(), Vec::new());
        let mut members = Vec::with_capacity(ids.len());
        for id in ids.clone() {
            let [u, v] = pair(id);
            let pair_key = key([u, v]);
            let key_of = |entry: &Entry| entry.list().map_or_else(|| key(pair(entry.event())), |list| lists[list].key);
            let hasher = |entry: &Entry| hash(key_of(entry));
            if table.len() == table.capacity() {
                // No more than there may be pairs.
                let n_left = ids.len() - members.len();
                table.reserve(n_left.min((GROWTH - 1) * table.len()), hasher);
            }
            let slot = table.entry(hash(pair_key), |entry| key_of(entry) == pair_key, hasher);
            let mut begin = |first: EventId| {
                lists.push(List { key: pair_key, start: 1, n_up: u32::from(is_up(pair(first))) });
                firsts.push(narrow(first));
                lists.len() - 1
            };
            members.push(match slot {
                Slot::Vacant(slot) => {
                    let number = narrow(id);
                    let is_event = u != v && number & Entry::LIST == 0;
                    slot.insert(if is_event { Entry(number) } else { Entry::of_list(begin(id)) });
                    Member::FIRST
                }
                Slot::Occupied(mut slot) => {
                    let list = slot.get().list().unwrap_or_else(|| {
                        let list = begin(slot.get().event());
                        *slot.get_mut() = Entry::of_list(list);
                        list
                    });
                    lists[list].start += 1;
                    lists[list].n_up += u32::from(u <= v);
                    Member::new(list, u <= v)
                }
            });
        }
        table
            .shrink_to_fit(|entry| hash(entry.list().map_or_else(|| key(pair(entry.event())), |list| lists[list].key)));

        let (mut cursors, end) = cursors(&mut lists);
        let mut events = vec![0; end as usize];
        for (cursor, first) in cursors.iter_mut().zip(firsts) {
            cursor.put(first, is_up(pair(EventId(u64::from(first)))), &mut events);
        }
        for (id, member) in ids.zip(members) {
            if let Some((list, is_up)) = member.list() {
                cursors[list].put(narrow(id), is_up, &mut events);
            }
        }
        lists.push(List { key: 0, start: end, n_up: 0 });
        lists.shrink_to_fit();
        Self { table, lists, events }
    }
}

/// Whether an event goes from the lower node to the higher; a self-loop does.
fn is_up([src, dst]: [NodeId; 2]) -> bool {
    src <= dst
}

/// Which list an event is in, and its direction.
#[derive(Clone, Copy, PartialEq)]
struct Member(u32);

impl Member {
    /// The first event of a pair, which may have no list.
    const FIRST: Self = Self(u32::MAX);

    fn new(list: usize, is_up: bool) -> Self {
        Self(u32::try_from(list << 1).expect("at most MAX_EVENTS lists") | u32::from(is_up))
    }

    fn list(self) -> Option<(usize, bool)> {
        (self != Self::FIRST).then_some(((self.0 >> 1) as usize, self.0 & 1 == 1))
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

/// Turns the number of events of each list into its start. Returns cursors, and the end of the last list.
fn cursors(lists: &mut [List]) -> (Vec<Cursor>, u32) {
    let mut end = 0;
    let cursor = |List { key, start, n_up }: &mut List| {
        let (n, n_up) = (*start, *n_up);
        let all = end;
        let directed;
        (directed, end) = match n_up {
            _ if is_loop(*key) => (Directed::Loop { once: all + 2 * n }, all + 3 * n),
            n_up if n_up == 0 || n_up == n => (Directed::OneWay, all + n),
            n_up => (Directed::BothWays { up: all + n, down: all + n + n_up }, all + 2 * n),
        };
        *start = all;
        Cursor { all, directed }
    };
    let cursors = lists.iter_mut().map(cursor).collect();
    (cursors, end)
}

impl Cursor {
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
