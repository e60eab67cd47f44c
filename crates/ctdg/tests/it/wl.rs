//! k-DWL: properties on random streams, known answers, an independent implementation.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod cases;
mod enumerated;
mod marked;
mod naive;
mod networkx;
mod properties;
mod random;
mod small_graphs;

use ctdg::event::{EventStream, NodeId};
use ctdg::wl::{Comparison, Dwl, Graph, GraphOptions};

/// An event as a test writes it.
type Event = (u32, u32, f64);

/// The graph of `events`, which need not be in order, on the nodes `0..n_nodes`.
fn graph(n_nodes: u32, events: &[Event], options: &GraphOptions) -> Graph {
    Graph::new(&stream(n_nodes, events), options).unwrap()
}

fn stream(n_nodes: u32, events: &[Event]) -> EventStream {
    let mut events = events.to_vec();
    events.sort_by(|a, b| a.2.total_cmp(&b.2));
    let mut columns = EventStream::from_events(events).unwrap().into_columns();
    assert!(columns.names.len() <= n_nodes as usize);
    columns.names = ctdg::event::NodeNames::counted(0, n_nodes);
    EventStream::new(columns).unwrap()
}

fn compare(k: usize, a: &Graph, b: &Graph) -> Comparison {
    Dwl::new(k).unwrap().compare(a, b).unwrap()
}

fn separated(test: &Dwl, a: &Graph, b: &Graph) -> bool {
    test.compare(a, b).unwrap().graphs.separated()
}

fn nodes(ids: &[u32]) -> Vec<NodeId> {
    ids.iter().map(|&id| NodeId(id)).collect()
}
