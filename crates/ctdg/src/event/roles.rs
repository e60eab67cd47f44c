//! Which nodes are sources and which are destinations.

use crate::event::{EventStream, NodeId};

/// Which nodes of a stream are ever a source, and which a destination.
///
/// ```
/// use ctdg::event::{EventStream, NodeId, Roles};
///
/// let roles = Roles::of(&EventStream::from_events([(0, 2, 1.0), (1, 2, 2.0)])?);
/// assert!(roles.is_source(NodeId(0)) && !roles.is_destination(NodeId(0)));
/// assert!(roles.are_disjoint(), "nodes 0 and 1 only ever interact with 2");
/// # Ok::<(), ctdg::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roles {
    sources: Vec<bool>,
    destinations: Vec<bool>,
    are_disjoint: bool,
}

impl Roles {
    /// Those of all events of `stream`. Linear in its length.
    #[must_use]
    pub fn of(stream: &EventStream) -> Self {
        let [sources, destinations] = [stream.src(), stream.dst()].map(|column| {
            let mut is = vec![false; stream.n_nodes()];
            for node in column {
                is[node.index()] = true;
            }
            is
        });
        let mut both = sources.iter().zip(&destinations);
        let are_disjoint = !stream.is_empty() && !both.any(|(&source, &destination)| source && destination);
        Self { sources, destinations, are_disjoint }
    }

    /// Whether `node` is the source of an event; not if there is no such node.
    #[must_use]
    pub fn is_source(&self, node: NodeId) -> bool {
        self.sources.get(node.index()).is_some_and(|&is| is)
    }

    /// Whether `node` is the destination of an event; not if there is no such node.
    #[must_use]
    pub fn is_destination(&self, node: NodeId) -> bool {
        self.destinations.get(node.index()).is_some_and(|&is| is)
    }

    /// Number of sources.
    #[must_use]
    pub fn n_sources(&self) -> usize {
        self.sources.iter().filter(|&&is| is).count()
    }

    /// Number of destinations.
    #[must_use]
    pub fn n_destinations(&self) -> usize {
        self.destinations.iter().filter(|&&is| is).count()
    }

    /// Whether no node is both: the graph is bipartite, whatever its names are. Not of a stream without events.
    #[must_use]
    pub fn are_disjoint(&self) -> bool {
        self.are_disjoint
    }
}
