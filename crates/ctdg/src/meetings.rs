//! Meetings of two nodes: whether, how often and when last they interacted before a query.
//!
//! ```
//! use ctdg::event::{EventId, EventStream, NodeId};
//! use ctdg::store::Store;
//!
//! let store = Store::build(&EventStream::from_events([(0, 1, 1.0), (1, 0, 2.0), (0, 2, 3.0), (0, 1, 4.0)])?)?;
//! let (a, b, cut) = (NodeId(0), NodeId(1), store.cut(4.0));
//! let met = store.meetings(a, b, cut, &[]).expect("they met");
//! assert_eq!((met.count, met.last), (2, EventId(1)), "what happens at 4 is not before 4");
//! assert_eq!(store.meetings(a, b, cut, &[EventId(1)]).map(|met| met.last), Some(EventId(0)));
//! assert!(store.meetings(NodeId(1), NodeId(2), cut, &[]).is_none());
//! # Ok::<(), ctdg::Error>(())
//! ```

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::event::{Cut, EventId, NodeId};
use crate::row_table::RowTable;
use crate::store::{History, Store};

/// The events of two nodes, in either direction, before a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meetings {
    /// How many there are, at least 1.
    pub count: usize,
    /// The last one.
    pub last: EventId,
}

impl Store {
    /// How `a` and `b` met before `cut`, as if the events of `left_out`, in ascending order, were not in the store. `None` if they did
    /// not. A self-loop is one meeting of a node with itself.
    ///
    /// One look-up in the pair index, then logarithmic in the number of meetings; with `left_out` linear in it.
    #[must_use]
    #[inline]
    pub fn meetings(&self, a: NodeId, b: NodeId, cut: Cut, left_out: &[EventId]) -> Option<Meetings> {
        let events = self.pair_events(a, b, cut);
        // A self-loop is in its list twice.
        let count = |n_entries: usize| if a == b { n_entries / 2 } else { n_entries };
        if left_out.is_empty() {
            return events.last().map(|last| Meetings { count: count(events.len()), last });
        }
        let mut left = events.iter().rev().filter(|event| left_out.binary_search(event).is_err());
        let last = left.next()?;
        Some(Meetings { count: count(left.count() + 1), last })
    }
}

/// Finds the meetings among groups of nodes. Keeps its allocations between groups, and lists of the nodes that a node met: most nodes of a
/// batch are beside many of its pairs, at the same time or with nothing new in between.
///
/// ```
/// use ctdg::event::{EventStream, NodeId};
/// use ctdg::meetings::MeetingFinder;
/// use ctdg::store::Store;
///
/// let store = Store::build(&EventStream::from_events([(0, 1, 1.0), (5, 2, 2.0), (0, 1, 3.0), (2, 2, 4.0)])?)?;
/// let mut found = Vec::new();
/// let nodes = [NodeId(2), NodeId(1), NodeId(0)];
/// MeetingFinder::new(&store).among(&nodes, store.cut(9.0), &[], |pair, met| found.push((pair, met.count)));
/// assert_eq!(found, [([0, 0], 1), ([2, 1], 2)]); // node 2 with itself, nodes 0 and 1 twice
/// # Ok::<(), ctdg::Error>(())
/// ```
#[derive(Debug)]
pub struct MeetingFinder<'a> {
    store: &'a Store,
    positions: RowTable,
    partners: PartnerLists,
    /// The same without events that are left out, of one node.
    without: PartnerLists,
    /// The nodes that one node met, by position.
    met: Vec<(u32, Meetings)>,
}

/// Entries of a list that are read, one after another, instead of one look-up at a random place. An estimate, not tuned.
const ENTRIES_PER_LOOK_UP: usize = 8;

impl<'a> MeetingFinder<'a> {
    /// Finds meetings in `store`.
    #[must_use]
    pub fn new(store: &'a Store) -> Self {
        let [partners, without] = [(); 2].map(|()| PartnerLists::default());
        Self { store, positions: RowTable::default(), partners, without, met: Vec::new() }
    }

    /// Calls `found` with the positions in `nodes`, which are distinct, of each two that met before `cut`, and of each that met itself: the
    /// higher position first, in ascending order. `left_out` is as in [`Store::meetings`].
    ///
    /// A node is compared with those before it by a list of those it met where that is short, and by look-ups in the pair index otherwise.
    pub fn among(
        &mut self,
        nodes: &[NodeId],
        cut: Cut,
        left_out: &[EventId],
        mut found: impl FnMut([u32; 2], Meetings),
    ) {
        self.of_each(nodes, cut, left_out, |high, met| {
            met.sort_unstable_by_key(|(low, _)| *low);
            for &(low, meetings) in &*met {
                found([high, low], meetings);
            }
        });
    }

    /// The same where the order of lower positions does not matter.
    pub fn among_in_any_order(
        &mut self,
        nodes: &[NodeId],
        cut: Cut,
        left_out: &[EventId],
        mut found: impl FnMut([u32; 2], Meetings),
    ) {
        self.of_each(nodes, cut, left_out, |high, met| {
            for &(low, meetings) in &*met {
                found([high, low], meetings);
            }
        });
    }

    /// Calls `found` with each position and the nodes that it met, up to itself.
    fn of_each(
        &mut self,
        nodes: &[NodeId],
        cut: Cut,
        left_out: &[EventId],
        mut found: impl FnMut(u32, &mut [(u32, Meetings)]),
    ) {
        let Self { store, positions, partners, without, met } = self;
        positions.clear();
        for &node in nodes {
            positions.row(node);
        }
        debug_assert_eq!(positions.nodes().len(), nodes.len(), "nodes are distinct");
        for (high, &node) in (0..).zip(nodes) {
            met.clear();
            let history = store.history(node, cut);
            let most_entries = ENTRIES_PER_LOOK_UP * (high as usize + 1);
            let is_short = history.len() <= most_entries;
            let list = match (is_short, left_out) {
                (true, []) => Some(partners.of(node, &history)),
                (false, []) => partners.known(node, history.len()),
                (true, _) => Some(without.of_this_query(node, &history, left_out)),
                (false, _) => None,
            };
            match list.filter(|list| list.len() <= most_entries) {
                Some(list) => met.extend(list.iter().filter_map(|partner| {
                    let low = positions.get(partner.node).filter(|&low| low <= high)?;
                    Some((low, Meetings { count: partner.count as usize, last: partner.last }))
                })),
                None => met.extend((0..=high).zip(nodes).filter_map(|(low, &other)| {
                    store.meetings(node, other, cut, left_out).map(|meetings| (low, meetings))
                })),
            }
            found(high, met);
        }
    }
}

/// A node that another one met.
#[derive(Debug, Clone, Copy)]
struct Partner {
    node: NodeId,
    count: u32,
    last: EventId,
}

/// The distinct partners in beginnings of histories, each list made once.
#[derive(Debug, Default)]
struct PartnerLists {
    /// Where the list of a node and of a length of its history is.
    places: FxHashMap<(NodeId, usize), Range<usize>>,
    partners: Vec<Partner>,
    rows: RowTable,
}

/// Partners that are kept, some 16 MB. The place of a list takes as much as three of them.
const MOST_PARTNERS: usize = 1 << 20;

impl PartnerLists {
    /// The partners of `node` in the first `length` events of its history, if the list is made.
    fn known(&self, node: NodeId, length: usize) -> Option<&[Partner]> {
        self.places.get(&(node, length)).map(|place| &self.partners[place.clone()])
    }

    /// The partners of `node` in `history`, a beginning of its whole one.
    fn of(&mut self, node: NodeId, history: &History<'_>) -> &[Partner] {
        let key = (node, history.len());
        if !self.places.contains_key(&key) {
            if self.partners.len() + 3 * self.places.len() > MOST_PARTNERS {
                self.partners.clear();
                self.places.clear();
            }
            let place = self.list(node, history, &[]);
            self.places.insert(key, place);
        }
        &self.partners[self.places[&key].clone()]
    }

    /// The partners of `node` in `history` without the events of `left_out`. The list is not kept.
    fn of_this_query(&mut self, node: NodeId, history: &History<'_>, left_out: &[EventId]) -> &[Partner] {
        self.partners.clear();
        let place = self.list(node, history, left_out);
        &self.partners[place]
    }

    fn list(&mut self, node: NodeId, history: &History<'_>, left_out: &[EventId]) -> Range<usize> {
        let first = self.partners.len();
        self.rows.clear();
        let is_left = |event: &EventId| left_out.is_empty() || left_out.binary_search(event).is_err();
        for (&other, event) in history.neighbors.iter().zip(history.events).filter(|(_, event)| is_left(event)) {
            let at = first + self.rows.row(other) as usize;
            if at == self.partners.len() {
                self.partners.push(Partner { node: other, count: 0, last: event });
            }
            let partner = &mut self.partners[at];
            partner.count += 1;
            partner.last = event;
        }
        // A self-loop is in its node's history twice.
        for partner in self.partners[first..].iter_mut().filter(|partner| partner.node == node) {
            partner.count /= 2;
        }
        first..self.partners.len()
    }
}
