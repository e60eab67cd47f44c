//! The destinations that may come next.

use ctdg::event::{Cut, EventStream, NodeId};

/// The distinct destinations of the events so far: whom a source may meet. Time only goes forwards.
///
/// ```
/// use hopedgn::{Events, predict::Destinations};
///
/// let events = Events::from_tuples([("a", "b", 1.0), ("b", "c", 2.0), ("a", "d", 3.0)])?;
/// let mut destinations = Destinations::new(&events);
/// destinations.advance(events.cut(3.0)); // strictly before
/// let names: Vec<String> = destinations.of(events.src()[1]).map(|node| events.names().name(node)).collect();
/// assert_eq!(names, ["c"]); // not b itself: no node has interacted with itself
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Destinations<'s> {
    stream: &'s EventStream,
    n_events: usize,
    is_seen: Vec<bool>,
    nodes: Vec<NodeId>,
    has_loops: bool,
}

impl<'s> Destinations<'s> {
    /// Before the first event of `stream`.
    #[must_use]
    pub fn new(stream: &'s EventStream) -> Self {
        Self { stream, n_events: 0, is_seen: vec![false; stream.n_nodes()], nodes: Vec::new(), has_loops: false }
    }

    /// Adds the destinations of all events before `cut`.
    pub fn advance(&mut self, cut: Cut) {
        let new = self.n_events..cut.n_events().max(self.n_events);
        self.n_events = new.end;
        for (&src, &dst) in self.stream.src()[new.clone()].iter().zip(&self.stream.dst()[new]) {
            self.has_loops |= src == dst;
            if !std::mem::replace(&mut self.is_seen[dst.index()], true) {
                self.nodes.push(dst);
            }
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is none yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Those that `src` may meet, in the order of their first event: not itself, unless nodes interact with themselves.
    pub fn of(&self, src: NodeId) -> impl Iterator<Item = NodeId> {
        self.nodes.iter().copied().filter(move |&dst| self.has_loops || dst != src)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_its_own_destination_only_where_nodes_interact_with_themselves() {
        let stream = EventStream::from_events([(0, 1, 1.0), (1, 0, 2.0), (2, 2, 3.0), (0, 3, 4.0)]).unwrap();
        let mut destinations = Destinations::new(&stream);
        let of_0 = |destinations: &Destinations<'_>| destinations.of(NodeId(0)).map(|node| node.0).collect::<Vec<_>>();
        assert!(of_0(&destinations).is_empty());
        destinations.advance(stream.cut(3.0));
        assert_eq!(of_0(&destinations), [1]);
        destinations.advance(stream.cut(4.0));
        assert_eq!(of_0(&destinations), [1, 0, 2]);
    }
}
