//! What a repeated request or event is recognised by.

use std::collections::VecDeque;

use ctdg::dataset::log::{LogRequest, Receipt, RequestKey};
use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};

/// Keys of requests and ids of events, the newest of each.
#[derive(Debug)]
pub(crate) struct Seen {
    keys: Window<SeenRequest>,
    /// The number of each event.
    ids: Window<u64>,
}

/// How a request was answered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SeenRequest {
    /// Tells its events from others.
    pub(super) fingerprint: u64,
    pub(super) receipt: Receipt,
}

impl Seen {
    /// Remembers so many of each.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { keys: Window::new(capacity), ids: Window::new(capacity) }
    }

    pub(super) fn request(&self, key: &str) -> Option<SeenRequest> {
        self.keys.get(key)
    }

    pub(super) fn event(&self, id: &str) -> Option<u64> {
        self.ids.get(id)
    }

    /// Remembers a request whose first event has the number `sequence`.
    pub(crate) fn remember(&mut self, sequence: u64, request: &LogRequest) {
        if let Some(RequestKey { name, fingerprint, receipt }) = &request.key {
            self.keys.insert(name, SeenRequest { fingerprint: *fingerprint, receipt: *receipt });
        }
        for (number, event) in (sequence..).zip(&request.events) {
            if let Some(id) = &event.id {
                self.ids.insert(id, number);
            }
        }
    }
}

/// Values by name, the newest only. Names are kept as 128 bits of their SHA-256.
#[derive(Debug)]
struct Window<T> {
    values: FxHashMap<u128, T>,
    order: VecDeque<u128>,
    capacity: usize,
}

fn digest(name: &str) -> u128 {
    let digest = Sha256::digest(name.as_bytes());
    u128::from_le_bytes(digest[..16].try_into().expect("a digest has 32 bytes"))
}

impl<T: Copy> Window<T> {
    fn new(capacity: usize) -> Self {
        Self { values: FxHashMap::default(), order: VecDeque::new(), capacity: capacity.max(1) }
    }

    fn get(&self, name: &str) -> Option<T> {
        self.values.get(&digest(name)).copied()
    }

    fn insert(&mut self, name: &str, value: T) {
        let name = digest(name);
        if self.values.insert(name, value).is_none() {
            self.order.push_back(name);
        }
        while self.order.len() > self.capacity {
            if let Some(oldest) = self.order.pop_front() {
                self.values.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_names_are_remembered() {
        let mut window = Window::new(2);
        for (at, name) in (0..).zip(["a", "b", "a", "c"]) {
            window.insert(name, at);
        }
        assert_eq!((window.get("a"), window.get("b"), window.get("c")), (None, Some(1), Some(3)));
    }
}
