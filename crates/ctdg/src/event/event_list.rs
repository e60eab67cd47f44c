//! Lists of events that are filled: 32 bits each while that suffices, 64 bits otherwise.

use std::ops::Range;

use super::ids::{Form, stored_narrow};
use super::{EventId, EventIds, IdWidth, narrow};

/// Events in a list of its own, which takes 4 bytes each until one of them does not fit. A list of events in 64 bits, copied from an
/// [`EventIds`], stays one.
///
/// ```
/// use ctdg::event::{EventId, EventList};
///
/// let list: EventList = [3, 4_000_000_000].map(EventId).into_iter().collect();
/// assert_eq!((list.ids().last(), list.bytes()), (Some(EventId(4_000_000_000)), 8));
/// let wide: EventList = list.ids().iter().chain([EventId(1 << 32)]).collect();
/// assert_eq!((wide.ids().first(), wide.bytes()), (Some(EventId(3)), 24));
/// ```
#[derive(Debug, Clone)]
pub struct EventList(Numbers);

#[derive(Debug, Clone)]
enum Numbers {
    Narrow(Vec<u32>),
    Wide(Vec<u64>),
}

impl Numbers {
    fn push(&mut self, event: EventId) {
        match (&mut *self, stored_narrow(event)) {
            (Self::Narrow(ids), Some(id)) => ids.push(id),
            (Self::Wide(ids), _) => ids.push(event.0),
            (Self::Narrow(_), None) => {
                self.widen();
                self.push(event);
            }
        }
    }

    fn widen(&mut self) {
        if let Self::Narrow(ids) = self {
            *self = Self::Wide(ids.iter().map(|&id| u64::from(id)).collect());
        }
    }
}

/// A part of an [`EventList`] to be written.
#[derive(Debug)]
pub(crate) enum EventIdsMut<'a> {
    Narrow(&'a mut [u32]),
    Wide(&'a mut [u64]),
}

impl EventIdsMut<'_> {
    pub(crate) fn split_at(self, at: usize) -> (Self, Self) {
        match self {
            Self::Narrow(ids) => {
                let (left, right) = ids.split_at_mut(at);
                (Self::Narrow(left), Self::Narrow(right))
            }
            Self::Wide(ids) => {
                let (left, right) = ids.split_at_mut(at);
                (Self::Wide(left), Self::Wide(right))
            }
        }
    }

    /// Writes `events` at `part`, which has as many places; 64 bits go into 64 bits only.
    #[inline]
    pub(crate) fn write(&mut self, part: Range<usize>, events: EventIds<'_>) {
        match (self, events.form()) {
            (Self::Narrow(places), Form::Narrow(ids)) => places[part].copy_from_slice(ids),
            (Self::Wide(places), Form::Wide(ids)) => places[part].copy_from_slice(ids),
            (Self::Narrow(places), _) => {
                for (place, event) in places[part].iter_mut().zip(events) {
                    *place = narrow(event);
                }
            }
            (Self::Wide(places), _) => {
                for (place, event) in places[part].iter_mut().zip(events) {
                    *place = event.0;
                }
            }
        }
    }
}

impl PartialEq for EventList {
    fn eq(&self, other: &Self) -> bool {
        self.ids() == other.ids()
    }
}

impl Default for EventList {
    fn default() -> Self {
        Self(Numbers::Narrow(Vec::new()))
    }
}

impl EventList {
    /// The events.
    #[must_use]
    #[inline]
    pub fn ids(&self) -> EventIds<'_> {
        match &self.0 {
            Numbers::Narrow(ids) => EventIds::narrow(ids),
            Numbers::Wide(ids) => EventIds::wide(ids),
        }
    }

    /// Number of events.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.ids().len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The event at position `at`.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    #[inline]
    pub fn at(&self, at: usize) -> EventId {
        self.ids().at(at)
    }

    /// Appends an event.
    pub fn push(&mut self, event: EventId) {
        self.0.push(event);
    }

    /// Removes all events; keeps the allocation.
    pub(crate) fn clear(&mut self) {
        match &mut self.0 {
            Numbers::Narrow(ids) => ids.clear(),
            Numbers::Wide(ids) => ids.clear(),
        }
    }

    /// Appends a part of a column, in its form or in 64 bits.
    #[inline]
    pub(crate) fn extend_from(&mut self, events: EventIds<'_>) {
        match (self.as_wide_as(events), events.form()) {
            (Numbers::Narrow(list), Form::Narrow(ids)) => list.extend_from_slice(ids),
            (Numbers::Wide(list), Form::Wide(ids)) => list.extend_from_slice(ids),
            (list, _) => events.iter().for_each(|event| list.push(event)),
        }
    }

    /// Appends the events at these positions of a column, in its form or in 64 bits.
    pub(crate) fn extend_at(&mut self, events: EventIds<'_>, positions: &[usize]) {
        match (self.as_wide_as(events), events.form()) {
            (Numbers::Narrow(list), Form::Narrow(ids)) => list.extend(positions.iter().map(|&at| ids[at])),
            (list, _) => positions.iter().for_each(|&at| list.push(events.at(at))),
        }
    }

    /// The list, with 64 bits each if `events` have them.
    fn as_wide_as(&mut self, events: EventIds<'_>) -> &mut Numbers {
        if let (Numbers::Narrow(_), Form::Wide(_)) = (&self.0, events.form()) {
            self.0.widen();
        }
        &mut self.0
    }

    /// Makes it a list of `n` events of this form, which are to be written.
    pub(crate) fn resize(&mut self, n: usize, width: IdWidth) -> EventIdsMut<'_> {
        match (&mut self.0, width) {
            (Numbers::Narrow(_), IdWidth::Wide) => self.0 = Numbers::Wide(vec![0; n]),
            (Numbers::Wide(_), IdWidth::Narrow) => self.0 = Numbers::Narrow(vec![0; n]),
            (Numbers::Narrow(ids), IdWidth::Narrow) => ids.resize(n, 0),
            (Numbers::Wide(ids), IdWidth::Wide) => ids.resize(n, 0),
        }
        match &mut self.0 {
            Numbers::Narrow(ids) => EventIdsMut::Narrow(ids),
            Numbers::Wide(ids) => EventIdsMut::Wide(ids),
        }
    }

    /// Bytes of the numbers.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match &self.0 {
            Numbers::Narrow(ids) => size_of_val(&**ids),
            Numbers::Wide(ids) => size_of_val(&**ids),
        }
    }
}

impl Extend<EventId> for EventList {
    fn extend<I: IntoIterator<Item = EventId>>(&mut self, events: I) {
        let events = events.into_iter();
        if let Numbers::Narrow(ids) = &mut self.0 {
            ids.reserve(events.size_hint().0);
        }
        events.for_each(|event| self.push(event));
    }
}

impl FromIterator<EventId> for EventList {
    fn from_iter<I: IntoIterator<Item = EventId>>(events: I) -> Self {
        let mut list = Self::default();
        list.extend(events);
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_becomes_wide_with_the_first_number_that_needs_it() {
        let small = [0, 7, u64::from(u32::MAX) - 1].map(EventId);
        let mut list: EventList = small.into_iter().collect();
        assert_eq!((list.ids().to_vec(), list.bytes()), (small.to_vec(), 12));
        list.push(EventId(u64::from(u32::MAX)));
        assert_eq!((list.len(), list.at(2), list.at(3), list.bytes()), (4, small[2], EventId(u64::from(u32::MAX)), 32));
        assert_eq!(list.ids().n_before(EventId(1 << 32)), 4);
        list.clear();
        list.extend_from(EventIds::narrow(&[5]));
        assert_eq!(list.ids(), [EventId(5)]);
    }

    #[test]
    fn places_of_either_form_take_events_of_either_form() {
        let (few, many) = ([3_u32, 4], [3_u64, 4]);
        for width in [IdWidth::Narrow, IdWidth::Wide, IdWidth::Narrow] {
            for events in [EventIds::narrow(&few), EventIds::wide(&many)] {
                let mut list = EventList::default();
                let (_, mut last) = list.resize(3, width).split_at(1);
                last.write(0..2, events);
                assert_eq!((list.ids(), list.bytes()), (EventIds::narrow(&[0, 3, 4]), 3 * width.bytes()));
            }
        }
    }
}
