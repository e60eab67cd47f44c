//! The mapped index from node pairs to the events between them.
//!
//! A table of 16-byte slots in the order of the pairs' hashes: a pair is in its bucket, the high bits of its hash, or in the next slot that
//! was free. So it is written from beginning to end, and a lookup reads neighbouring slots, mostly of one page. The hash is a bijection:
//! no key is kept beside it. A slot holds the event of a pair that met once, or the place of its list: the number of its events and of those
//! from the lower node to the higher, then the events as the index in memory has them.

use std::io;
use std::path::{Path, PathBuf};

use bytemuck::{Pod, Zeroable};

use super::external_sort::Record;
use super::file::{IndexFile, Place64, Section, SectionWriter};
use crate::event::{Column, EventColumn, EventId, EventIds, IdWidth, NodeId, Spool};

/// In [`Slot::word`]: it is the place of a list.
const LIST: u64 = 1 << 63;
/// The word of an empty slot.
const EMPTY: u64 = u64::MAX;
/// Words of a list before its events.
const LIST_HEADER: usize = 2;

/// A pair, or nothing.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Slot {
    hash: u64,
    /// The event, or the place of the list with [`LIST`].
    word: u64,
}

/// A bijection of unordered pairs to well-spread numbers. Part of the format.
#[inline]
fn hash([a, b]: [NodeId; 2]) -> u64 {
    let mut bits = u64::from(a.min(b).0) << 32 | u64::from(a.max(b).0);
    bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ bits >> 31
}

/// The bucket of a hash.
#[inline]
fn bucket(hash: u64, n_buckets: u64) -> usize {
    let high = (u128::from(hash) * u128::from(n_buckets)) >> 64;
    usize::try_from(high).expect("less than the number of buckets")
}

/// Buckets for so many pairs: seven of eight are filled.
pub(super) fn n_buckets(n_pairs: usize) -> u64 {
    n_pairs as u64 / 7 * 8 + 8
}

/// Events of each pair, in order. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct MappedPairs {
    n_buckets: u64,
    slots: Column<Slot>,
    lists: EventColumn,
}

impl MappedPairs {
    pub(crate) fn of(file: &IndexFile) -> Self {
        Self {
            n_buckets: file.n_buckets(),
            slots: file.column(Section::PairSlots),
            lists: file.events(Section::PairLists),
        }
    }

    /// Events of an unordered pair, a self-loop twice.
    #[inline]
    pub(crate) fn events(&self, pair: [NodeId; 2]) -> EventIds<'_> {
        match self.find(pair) {
            None => EventIds::EMPTY,
            Some(Found::Event(event)) => event,
            Some(Found::List(list)) => list.all(pair),
        }
    }

    /// Events from the first node of `pair` to the second, and those back; `src` are the sources of all events.
    #[inline]
    pub(crate) fn both_ways(&self, pair: [NodeId; 2], src: &[NodeId]) -> [EventIds<'_>; 2] {
        let (is_forward, [one, other]) = match self.find(pair) {
            None => return [EventIds::EMPTY; 2],
            Some(Found::Event(event)) => (src[event.at(0).index()] == pair[0], [event, EventIds::EMPTY]),
            Some(Found::List(list)) => (pair[0] < pair[1], list.both_ways(pair)),
        };
        if is_forward { [one, other] } else { [other, one] }
    }

    #[inline]
    fn find(&self, pair: [NodeId; 2]) -> Option<Found<'_>> {
        let hash = hash(pair);
        let slots = self.slots.get(bucket(hash, self.n_buckets)..)?;
        for slot in slots {
            if slot.hash == hash && slot.word != EMPTY {
                return Some(self.found(slot));
            }
            // Slots are in the order of hashes, and nothing lies behind a gap.
            if slot.word == EMPTY || slot.hash > hash {
                return None;
            }
        }
        None
    }

    #[inline]
    fn found<'s>(&'s self, slot: &'s Slot) -> Found<'s> {
        if slot.word & LIST == 0 {
            let word = std::slice::from_ref(&slot.word);
            return Found::Event(match self.lists {
                // Little-endian: a 32-bit number is the first half of the word.
                EventColumn::Narrow(_) => EventIds::narrow(&bytemuck::cast_slice(word)[..1]),
                EventColumn::Wide(_) => EventIds::wide(word),
            });
        }
        let at = usize::try_from(slot.word & !LIST).unwrap_or(usize::MAX);
        let words = self.lists.ids();
        let [n, n_up] = [at, at + 1].map(|at| words.at(at).index());
        Found::List(List { n, n_up, events: words.slice(at + LIST_HEADER..words.len()) })
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.slots) + self.lists.bytes()
    }
}

enum Found<'a> {
    Event(EventIds<'a>),
    List(List<'a>),
}

/// The events of a pair that met several times, or of a self-loop.
struct List<'a> {
    n: usize,
    /// Of those, from the lower node to the higher; all of a self-loop.
    n_up: usize,
    /// All, a self-loop twice; then, if they go both ways, those up and those down; of a self-loop each once. Others follow.
    events: EventIds<'a>,
}

impl<'a> List<'a> {
    #[inline]
    fn all(&self, [a, b]: [NodeId; 2]) -> EventIds<'a> {
        self.events.slice(0..if a == b { 2 * self.n } else { self.n })
    }

    #[inline]
    fn both_ways(&self, [a, b]: [NodeId; 2]) -> [EventIds<'a>; 2] {
        let &Self { n, n_up, events } = self;
        if a == b {
            return [events.slice(2 * n..3 * n); 2];
        }
        match n_up {
            0 => [EventIds::EMPTY, events.slice(0..n)],
            _ if n_up == n => [events.slice(0..n), EventIds::EMPTY],
            n_up => [events.slice(n..n + n_up), events.slice(n + n_up..2 * n)],
        }
    }
}

/// An event on its way into the index.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct PairRecord {
    hash: u64,
    /// Four times the event, and its [`Way`].
    event_and_way: u64,
}

/// From which node of its pair to which an event goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    Down,
    Loop,
}

impl PairRecord {
    pub(super) fn new([src, dst]: [NodeId; 2], event: EventId) -> Self {
        let way = match src.cmp(&dst) {
            std::cmp::Ordering::Less => Way::Up,
            std::cmp::Ordering::Greater => Way::Down,
            std::cmp::Ordering::Equal => Way::Loop,
        };
        Self { hash: hash([src, dst]), event_and_way: 4 * event.index() as u64 + way as u64 }
    }
}

/// The number of the event and its way.
fn unpacked(event_and_way: u64) -> (u64, Way) {
    let way = [Way::Up, Way::Down, Way::Loop][(event_and_way % 4).min(2) as usize];
    (event_and_way / 4, way)
}

impl Record for PairRecord {
    type Key = (u64, u64);

    fn key(&self) -> Self::Key {
        (self.hash, self.event_and_way)
    }
}

/// Filled slots, in the order of the table.
pub(super) type Slots = Column<Slot>;

/// Writes lists of pairs, whose records come in order, and collects their slots.
pub(super) struct PairWriter {
    folder: PathBuf,
    lists: SectionWriter,
    width: IdWidth,
    n_words: u64,
    slots: Spool<Slot>,
    hash: u64,
    /// The records of the pair at hand.
    group: Vec<u64>,
    /// The same if they are more than `most`.
    large: Option<Spool<u64>>,
    most: usize,
}

impl PairWriter {
    /// With lists going to `lists`, and no more than about twice `most` bytes of memory.
    pub(super) fn new(folder: &Path, lists: SectionWriter, width: IdWidth, most: usize) -> Self {
        Self {
            folder: folder.to_path_buf(),
            lists,
            width,
            n_words: 0,
            slots: Spool::new(folder, most),
            hash: 0,
            group: Vec::new(),
            large: None,
            most: (most / size_of::<u64>()).max(2),
        }
    }

    pub(super) fn push(&mut self, record: PairRecord) -> io::Result<()> {
        if record.hash != self.hash {
            self.end_pair()?;
            self.hash = record.hash;
        }
        if self.group.len() == self.most {
            self.large.get_or_insert_with(|| Spool::new(&self.folder, 0)).extend(&self.group)?;
            self.group.clear();
        }
        self.group.push(record.event_and_way);
        Ok(())
    }

    fn end_pair(&mut self) -> io::Result<()> {
        let group = std::mem::take(&mut self.group);
        match self.large.take() {
            None => self.put(&group)?,
            Some(mut large) => {
                large.extend(&group)?;
                self.put(&large.finish()?)?;
            }
        }
        self.group = group;
        self.group.clear();
        Ok(())
    }

    /// Writes the slot and the list of a pair.
    fn put(&mut self, group: &[u64]) -> io::Result<()> {
        let word = match group {
            [] => return Ok(()),
            [one] if unpacked(*one).1 != Way::Loop => one / 4,
            _ => LIST | self.put_list(group)?,
        };
        self.slots.push(Slot { hash: self.hash, word })
    }

    /// Writes a list. Returns its place.
    fn put_list(&mut self, group: &[u64]) -> io::Result<u64> {
        let place = self.n_words;
        let is_loop = unpacked(group[0]).1 == Way::Loop;
        let n_up = group.iter().filter(|record| unpacked(**record).1 != Way::Down).count();
        for count in [group.len(), n_up] {
            self.put_word(count as u64)?;
        }
        for &record in group {
            let (event, _) = unpacked(record);
            (0..if is_loop { 2 } else { 1 }).try_for_each(|_| self.put_word(event))?;
        }
        let again: &[Way] = match n_up {
            _ if is_loop => &[Way::Loop],
            n_up if n_up == 0 || n_up == group.len() => &[],
            _ => &[Way::Up, Way::Down],
        };
        for &wanted in again {
            let events = group.iter().map(|&record| unpacked(record)).filter(|(_, way)| *way == wanted);
            events.map(|(event, _)| event).try_for_each(|event| self.put_word(event))?;
        }
        Ok(place)
    }

    fn put_word(&mut self, word: u64) -> io::Result<()> {
        self.n_words += 1;
        self.lists.push_number(word, self.width)
    }

    pub(super) fn finish(mut self) -> io::Result<(Place64, Slots)> {
        self.end_pair()?;
        Ok((self.lists.finish()?, self.slots.finish()?))
    }
}

/// Writes the table: `filled` with gaps between them.
pub(super) fn write_slots(filled: &[Slot], n_buckets: u64, out: &mut SectionWriter) -> io::Result<()> {
    let mut n_written = 0;
    let mut skip_to = |place: usize, out: &mut SectionWriter| {
        while n_written < place {
            out.push(Slot { hash: 0, word: EMPTY })?;
            n_written += 1;
        }
        n_written += 1;
        io::Result::Ok(())
    };
    for slot in filled {
        skip_to(bucket(slot.hash, n_buckets), out)?;
        out.push(*slot)?;
    }
    // Every bucket has a slot, and the last filled one a gap behind it.
    skip_to(usize::try_from(n_buckets).unwrap_or(usize::MAX), out)
}
