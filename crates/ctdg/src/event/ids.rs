//! Columns of event numbers: 32 bits each while the stream is small enough, 64 bits otherwise.
//!
//! A stream of up to [`MAX_NARROW`] events keeps the numbers of its events in 32 bits, in memory and in index files. Longer ones take 64. An
//! [`EventIds`] is a part of such a column; which form it has shows in no answer.

use std::fmt;
use std::ops::Range;
use std::slice;

use super::{Column, EventId};

/// Events of the longest stream whose events are numbered with 32 bits. Their numbers are less than it.
pub const MAX_NARROW: u64 = u32::MAX as u64;

/// How many bits the number of an event is stored in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdWidth {
    Narrow,
    Wide,
}

impl IdWidth {
    /// The least that suffices for the events of a stream, and for their number.
    pub(crate) fn of(n_events: usize) -> Self {
        if n_events as u64 <= MAX_NARROW { Self::Narrow } else { Self::Wide }
    }

    /// Bytes of a number.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Narrow => size_of::<u32>(),
            Self::Wide => size_of::<u64>(),
        }
    }
}

/// Events in a column, borrowed.
///
/// ```
/// use ctdg::event::{EventId, EventStream, NodeId};
/// use ctdg::store::Store;
///
/// let store = Store::build(&EventStream::from_events([(0, 1, 1.0), (1, 2, 2.0), (0, 1, 3.0)])?)?;
/// let events = store.history(NodeId(0), store.cut(9.0)).events;
/// assert_eq!(events, [EventId(0), EventId(2)]);
/// assert_eq!((events.len(), events.last()), (2, Some(EventId(2))));
/// # Ok::<(), ctdg::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct EventIds<'a>(Form<'a>);

/// The numbers of an [`EventIds`], for loops that should not ask at every step.
#[derive(Clone, Copy)]
pub(crate) enum Form<'a> {
    Narrow(&'a [u32]),
    Wide(&'a [u64]),
}

/// A stored number of an event.
pub(crate) trait Number: Copy + Ord {
    fn id(self) -> EventId;

    /// What stored numbers below that of `event`, and only they, are less than.
    fn bound(event: EventId) -> Self;
}

impl Number for u32 {
    #[inline]
    fn id(self) -> EventId {
        EventId(u64::from(self))
    }

    #[inline]
    fn bound(event: EventId) -> Self {
        // The largest number is never stored in 32 bits.
        Self::try_from(event.0).unwrap_or(Self::MAX)
    }
}

impl Number for u64 {
    #[inline]
    fn id(self) -> EventId {
        EventId(self)
    }

    #[inline]
    fn bound(event: EventId) -> Self {
        event.0
    }
}

/// Evaluates `$body` with the slice of either form.
macro_rules! with_slice {
    ($form:expr, $slice:ident => $body:expr) => {
        match $form {
            Form::Narrow($slice) => $body,
            Form::Wide($slice) => $body,
        }
    };
}

impl<'a> EventIds<'a> {
    /// None.
    pub(crate) const EMPTY: Self = Self(Form::Narrow(&[]));

    pub(crate) fn narrow(ids: &'a [u32]) -> Self {
        Self(Form::Narrow(ids))
    }

    pub(crate) fn wide(ids: &'a [u64]) -> Self {
        Self(Form::Wide(ids))
    }

    /// The stored numbers.
    #[inline]
    pub(crate) fn form(self) -> Form<'a> {
        self.0
    }

    /// Number of events.
    #[must_use]
    #[inline]
    pub fn len(self) -> usize {
        with_slice!(self.0, ids => ids.len())
    }

    /// Whether there are none.
    #[must_use]
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The event at position `at`.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    #[inline]
    pub fn at(self, at: usize) -> EventId {
        match self.0 {
            Form::Narrow(ids) => ids[at].id(),
            Form::Wide(ids) => ids[at].id(),
        }
    }

    /// The first event, if any.
    #[must_use]
    #[inline]
    pub fn first(self) -> Option<EventId> {
        (!self.is_empty()).then(|| self.at(0))
    }

    /// The last event, if any.
    #[must_use]
    #[inline]
    pub fn last(self) -> Option<EventId> {
        self.len().checked_sub(1).map(|last| self.at(last))
    }

    /// The events at the positions of `part`.
    ///
    /// # Panics
    /// When there are fewer.
    #[must_use]
    #[inline]
    pub fn slice(self, part: Range<usize>) -> Self {
        match self.0 {
            Form::Narrow(ids) => Self(Form::Narrow(&ids[part])),
            Form::Wide(ids) => Self(Form::Wide(&ids[part])),
        }
    }

    /// How many of the events, in ascending order, come before the first of which `is_before` does not hold.
    #[must_use]
    #[inline]
    pub fn partition_point(self, mut is_before: impl FnMut(EventId) -> bool) -> usize {
        match self.0 {
            Form::Narrow(ids) => ids.partition_point(|id| is_before(id.id())),
            Form::Wide(ids) => ids.partition_point(|id| is_before(id.id())),
        }
    }

    /// How many of the events, in ascending order, come before `event`.
    #[inline]
    pub(crate) fn n_before(self, event: EventId) -> usize {
        fn of<T: Number>(ids: &[T], event: EventId) -> usize {
            let bound = T::bound(event);
            ids.partition_point(|&id| id < bound)
        }
        with_slice!(self.0, ids => of(ids, event))
    }

    /// The events in order.
    #[must_use]
    #[inline]
    pub fn iter(self) -> EventIdIter<'a> {
        EventIdIter(match self.0 {
            Form::Narrow(ids) => FormIter::Narrow(ids.iter()),
            Form::Wide(ids) => FormIter::Wide(ids.iter()),
        })
    }

    /// A copy.
    #[must_use]
    pub fn to_vec(self) -> Vec<EventId> {
        self.iter().collect()
    }

    /// The events in parts of `size`, of which the last may be shorter.
    ///
    /// # Panics
    /// When `size` is 0.
    #[must_use]
    pub fn chunks(self, size: usize) -> impl ExactSizeIterator<Item = Self> {
        let starts = (0..self.len()).step_by(size);
        starts.map(move |start| self.slice(start..self.len().min(start + size)))
    }
}

impl<'a> From<&'a [EventId]> for EventIds<'a> {
    fn from(events: &'a [EventId]) -> Self {
        Self::wide(bytemuck::cast_slice(events))
    }
}

impl<'a> From<&'a Vec<EventId>> for EventIds<'a> {
    fn from(events: &'a Vec<EventId>) -> Self {
        events.as_slice().into()
    }
}

impl<'a, const N: usize> From<&'a [EventId; N]> for EventIds<'a> {
    fn from(events: &'a [EventId; N]) -> Self {
        events.as_slice().into()
    }
}

impl<'a> IntoIterator for EventIds<'a> {
    type Item = EventId;
    type IntoIter = EventIdIter<'a>;

    #[inline]
    fn into_iter(self) -> EventIdIter<'a> {
        self.iter()
    }
}

impl fmt::Debug for EventIds<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(*self).finish()
    }
}

impl Eq for EventIds<'_> {}

impl PartialEq for EventIds<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl PartialEq<[EventId]> for EventIds<'_> {
    fn eq(&self, other: &[EventId]) -> bool {
        *self == EventIds::from(other)
    }
}

impl PartialEq<Vec<EventId>> for EventIds<'_> {
    fn eq(&self, other: &Vec<EventId>) -> bool {
        *self == EventIds::from(other)
    }
}

impl<const N: usize> PartialEq<[EventId; N]> for EventIds<'_> {
    fn eq(&self, other: &[EventId; N]) -> bool {
        *self == EventIds::from(other)
    }
}

/// The events of an [`EventIds`] in order.
#[derive(Debug, Clone)]
pub struct EventIdIter<'a>(FormIter<'a>);

#[derive(Debug, Clone)]
enum FormIter<'a> {
    Narrow(slice::Iter<'a, u32>),
    Wide(slice::Iter<'a, u64>),
}

impl Iterator for EventIdIter<'_> {
    type Item = EventId;

    #[inline]
    fn next(&mut self) -> Option<EventId> {
        match &mut self.0 {
            FormIter::Narrow(ids) => ids.next().map(|id| id.id()),
            FormIter::Wide(ids) => ids.next().map(|id| id.id()),
        }
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            FormIter::Narrow(ids) => ids.size_hint(),
            FormIter::Wide(ids) => ids.size_hint(),
        }
    }
}

impl DoubleEndedIterator for EventIdIter<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<EventId> {
        match &mut self.0 {
            FormIter::Narrow(ids) => ids.next_back().map(|id| id.id()),
            FormIter::Wide(ids) => ids.next_back().map(|id| id.id()),
        }
    }
}

impl ExactSizeIterator for EventIdIter<'_> {}

/// A column of event numbers, in memory or mapped. Clones share it.
#[derive(Debug, Clone)]
pub(crate) enum EventColumn {
    Narrow(Column<u32>),
    Wide(Column<u64>),
}

impl EventColumn {
    /// The events.
    #[inline]
    pub(crate) fn ids(&self) -> EventIds<'_> {
        match self {
            Self::Narrow(ids) => EventIds::narrow(ids),
            Self::Wide(ids) => EventIds::wide(ids),
        }
    }

    /// Bytes of the column.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Narrow(ids) => size_of_val(&**ids),
            Self::Wide(ids) => size_of_val(&**ids),
        }
    }
}

/// The number of an event in a column of 32-bit numbers, whose stream has no more than [`MAX_NARROW`] events.
///
/// # Panics
/// When it has more.
#[inline]
pub(crate) fn narrow(event: EventId) -> u32 {
    stored_narrow(event).expect("streams beyond 32 bits are refused before they are indexed in memory")
}

/// The same, if it fits: the largest number is that of no event in 32 bits.
#[inline]
pub(super) fn stored_narrow(event: EventId) -> Option<u32> {
    u32::try_from(event.0).ok().filter(|&id| id != u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use proptest::prelude::*;

    use super::*;
    use crate::event::EventList;

    /// Everything that an [`EventIds`] answers.
    fn answers(ids: EventIds<'_>, part: usize, first: u64) -> impl PartialEq + Debug {
        let mut list = EventList::default();
        list.extend_from(ids);
        list.extend_from(ids.slice(part..ids.len()));
        list.extend_at(ids, &(0..part).rev().collect::<Vec<_>>());
        let chunks: Vec<Vec<EventId>> = ids.chunks(3).map(EventIds::to_vec).collect();
        let both_ends: Vec<EventId> = ids.iter().rev().chain(ids).collect();
        let at: Vec<EventId> = (0..ids.len()).map(|at| ids.at(at)).collect();
        (list, chunks, both_ends, ids.partition_point(|id| id.0 < first), ids.first(), ids.last(), at)
    }

    proptest! {
        #[test]
        fn both_forms_give_the_same_answers(mut ids in prop::collection::vec(0..u32::MAX, 0..20), part in 0_usize..20, first in 0_u64..1 << 33) {
            ids.sort_unstable();
            let (wide, part) = (ids.iter().map(|&id| u64::from(id)).collect::<Vec<u64>>(), part.min(ids.len()));
            let (narrow, wide) = (EventIds::narrow(&ids), EventIds::wide(&wide));
            prop_assert_eq!(narrow, wide);
            prop_assert_eq!(answers(narrow, part, first), answers(wide, part, first));
            let n_before = ids.iter().filter(|&&id| u64::from(id) < first).count();
            prop_assert_eq!(narrow.partition_point(|id| id.0 < first), n_before);
            prop_assert_eq!([narrow, wide].map(|ids| ids.n_before(EventId(first))), [n_before; 2]);
        }
    }

    #[test]
    fn numbers_beyond_32_bits_are_kept() {
        let far = [u64::from(u32::MAX), 1 << 32, u64::MAX >> 1];
        let ids = EventIds::wide(&far);
        assert_eq!(ids.to_vec(), far.map(EventId));
        assert_eq!(ids.partition_point(|id| u32::try_from(id.0).is_ok()), 1);
        assert_ne!(ids, EventIds::narrow(&[u32::MAX, 0, u32::MAX]), "never cut to 32 bits");
    }

    #[test]
    fn the_longest_stream_with_32_bits_has_as_many_events_as_they_count() {
        let most = usize::try_from(MAX_NARROW).unwrap();
        assert_eq!((IdWidth::of(most), IdWidth::of(most + 1)), (IdWidth::Narrow, IdWidth::Wide));
    }
}
