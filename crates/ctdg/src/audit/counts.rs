//! Ties, self-loops, duplicates, repeats and new nodes.

use serde::Serialize;

use super::batches::share;
use crate::event::{EventId, EventStream};
use crate::split::{Split, n_nodes_of};
use crate::store::Store;
use crate::summary::Summary;

/// Counts of a stream and of the parts of its split.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Counts {
    /// Events.
    pub events: usize,
    /// Nodes, those without events included.
    pub nodes: usize,
    /// Distinct times.
    pub distinct_times: usize,
    /// Share of events that have their time in common with another event.
    pub tied: f64,
    /// Events of the time with the most events.
    pub largest_moment: usize,
    /// That time; the first of several.
    pub largest_moment_time: f64,
    /// Events of a node with itself.
    pub self_loops: usize,
    /// Events equal to an earlier one in source, destination and time.
    pub duplicates: usize,
    /// Events equal to an earlier one in label and features too.
    pub exact_duplicates: usize,
    /// Training, validation and test.
    pub parts: [PartCounts; 3],
}

/// Counts of one part.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PartCounts {
    /// `train`, `val` or `test`.
    pub part: &'static str,
    /// Its events; those of masked nodes are not in training.
    pub events: usize,
    /// Its distinct nodes.
    pub nodes: usize,
    /// Of these, nodes without an event in the parts before.
    pub first_seen_nodes: usize,
    /// Of these, nodes without an event in training.
    pub new_nodes: usize,
    /// Share of events with such a node.
    pub new_node_events: f64,
    /// Share of events whose pair met strictly before, in either direction.
    pub repeats: f64,
}

impl Counts {
    /// Of `stream`; `store` is built over all of it.
    #[must_use]
    pub fn of(stream: &EventStream, store: &Store, split: &Split) -> Self {
        let summary = Summary::of(stream);
        let moments = || stream.times().chunk_by(|a, b| a == b);
        let tied = moments().map(<[f64]>::len).filter(|&n| n > 1).sum();
        let largest = moments().rev().max_by_key(|moment| moment.len()).unwrap_or_default();
        Self {
            events: summary.events,
            nodes: summary.nodes,
            distinct_times: summary.distinct_times,
            tied: share(tied, summary.events),
            largest_moment: largest.len(),
            largest_moment_time: largest.first().copied().unwrap_or(0.0),
            self_loops: summary.self_loops,
            duplicates: summary.duplicates,
            exact_duplicates: summary.exact_duplicates,
            parts: parts(stream, store, split),
        }
    }
}

fn parts(stream: &EventStream, store: &Store, split: &Split) -> [PartCounts; 3] {
    let mut was_seen = vec![false; stream.n_nodes()];
    let mut is_new = vec![false; stream.n_nodes()];
    for node in &split.new_nodes {
        is_new[node.index()] = true;
    }
    [("train", &split.train), ("val", &split.val), ("test", &split.test)].map(|(part, events)| {
        let [mut first_seen_nodes, mut new_nodes, mut with_new, mut repeats] = [0; 4];
        let mut is_counted = vec![false; stream.n_nodes()];
        for event in events.iter().map(|&id| stream.event(id)) {
            let ends = [event.src.index(), event.dst.index()];
            for node in ends {
                if !std::mem::replace(&mut is_counted[node], true) {
                    new_nodes += usize::from(is_new[node]);
                    first_seen_nodes += usize::from(!std::mem::replace(&mut was_seen[node], true));
                }
            }
            with_new += usize::from(ends.iter().any(|&node| is_new[node]));
            let met = store.pair_events(event.src, event.dst, store.cut(event.time));
            repeats += usize::from(!met.is_empty());
        }
        PartCounts {
            part,
            events: events.len(),
            nodes: n_nodes_of(stream, events.as_slice() as &[EventId]),
            first_seen_nodes,
            new_nodes,
            new_node_events: share(with_new, events.len()),
            repeats: share(repeats, events.len()),
        }
    })
}
