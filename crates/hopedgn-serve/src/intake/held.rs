//! Events that are held back until none can come before them.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use ctdg::dataset::log::LogEvent;

/// Events in the order of time, those at one time in the order of their arrival.
#[derive(Debug)]
pub(super) struct Held {
    events: BinaryHeap<Reverse<Waiting>>,
    lateness: f64,
    newest: f64,
    n_arrived: u64,
}

#[derive(Debug)]
struct Waiting {
    arrival: u64,
    event: LogEvent,
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        self.event.time.total_cmp(&other.event.time).then(self.arrival.cmp(&other.arrival))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Waiting {}

impl Held {
    /// None yet, after an event at `newest`.
    pub(super) fn new(lateness: f64, newest: Option<f64>) -> Self {
        let newest = newest.unwrap_or(f64::NEG_INFINITY);
        Self { events: BinaryHeap::new(), lateness: lateness.max(0.0), newest, n_arrived: 0 }
    }

    pub(super) fn lateness(&self) -> f64 {
        self.lateness
    }

    /// The newest time of all events.
    pub(super) fn newest(&self) -> f64 {
        self.newest
    }

    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    pub(super) fn push(&mut self, event: LogEvent) {
        self.newest = self.newest.max(event.time);
        self.events.push(Reverse(Waiting { arrival: self.n_arrived, event }));
        self.n_arrived += 1;
    }

    /// Takes out the events that none can come before: one before the watermark is refused.
    pub(super) fn ready(&mut self) -> Vec<LogEvent> {
        let watermark = self.newest - self.lateness;
        let mut ready = Vec::new();
        while self.events.peek().is_some_and(|Reverse(next)| next.event.time <= watermark) {
            ready.extend(self.events.pop().map(|Reverse(next)| next.event));
        }
        ready
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_in_order_once_none_can_come_before_them() {
        let mut held = Held::new(10.0, None);
        for (name, time) in [("a", 5.0), ("b", 3.0), ("c", 5.0), ("d", 14.0)] {
            held.push(LogEvent::new(name, "x", time));
        }
        let names = |events: Vec<LogEvent>| events.into_iter().map(|event| event.src).collect::<Vec<_>>();
        assert_eq!(names(held.ready()), ["b"]);
        held.push(LogEvent::new("e", "x", 4.0));
        held.push(LogEvent::new("f", "x", 15.0));
        assert_eq!(names(held.ready()), ["e", "a", "c"]);
        assert_eq!((held.len(), held.newest()), (2, 15.0));
    }

    #[test]
    fn without_lateness_events_come_out_at_once() {
        let mut held = Held::new(0.0, Some(1.0));
        held.push(LogEvent::new("a", "x", 1.0));
        held.push(LogEvent::new("b", "x", 2.0));
        assert_eq!((held.ready().len(), held.len()), (2, 0));
    }
}
