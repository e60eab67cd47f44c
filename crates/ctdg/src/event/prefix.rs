//! The first events of a stream, as a stream of their own.

use crate::error::Result;
use crate::event::{Columns, EventId, EventStream, Features, NodeId, NodeNames, TextTable};

/// The first events of a stream; made by [`EventStream::prefix`].
#[derive(Debug, Clone, PartialEq)]
pub struct Prefix {
    /// Those events alone.
    pub stream: EventStream,
    /// For each node of `stream` its number in the whole stream.
    pub nodes: Vec<NodeId>,
}

impl EventStream {
    /// The first `n` events, their nodes numbered as in a file that ends there. Linear; copies the columns.
    ///
    /// ```
    /// use ctdg::event::{IdKind, NodeId, StreamBuilder};
    ///
    /// let mut builder = StreamBuilder::new(IdKind::Text, false, false);
    /// for (src, dst, time) in [("bob", "eve", 1.0), ("eve", "bob", 2.0), ("ann", "bob", 3.0)] {
    ///     builder.push(src.as_bytes(), dst.as_bytes(), time, 0.0).map_err(|rejected| *rejected.problem)?;
    /// }
    /// let whole = builder.finish(None)?;
    /// let prefix = whole.prefix(2)?;
    /// assert_eq!((prefix.stream.len(), prefix.stream.n_nodes()), (2, 2));
    /// assert_eq!((whole.src()[0], prefix.stream.src()[0]), (NodeId(1), NodeId(0))); // ann comes later
    /// assert_eq!(prefix.nodes, [NodeId(1), NodeId(2)]);
    /// # Ok::<(), ctdg::Error>(())
    /// ```
    pub fn prefix(&self, n: usize) -> Result<Prefix> {
        let nodes = self.nodes_of_first(n);
        let names = self.names().select(&nodes);
        self.part(n, nodes, names)
    }

    /// The same for a stream whose names are text only because of later ones: the nodes are numbered in the order of integer
    /// names. `None` if a name of the first `n` events is no integer.
    pub fn prefix_of_integers(&self, n: usize) -> Result<Option<Prefix>> {
        let mut nodes = self.nodes_of_first(n);
        let written = |node: &NodeId| {
            let name = self.names().name(*node);
            let number: u64 = name.parse().ok()?;
            // As integers are written, so that "007" stays text.
            (number.to_string() == name).then_some((!self.names().is_on_source_side(*node), number))
        };
        if !nodes.iter().all(|node| written(node).is_some()) {
            return Ok(None);
        }
        nodes.sort_by_cached_key(written);
        let integers = nodes.iter().filter_map(written).map(|(_, number)| number).collect();
        let names = NodeNames::integers(integers, self.names().sources_among(&nodes));
        self.part(n, nodes, names).map(Some)
    }

    /// The first `n` events with the first `n_nodes` nodes, whose numbers stay.
    pub fn prefix_with_nodes(&self, n: usize, n_nodes: usize) -> Result<Prefix> {
        let nodes: Vec<NodeId> = (0..n_nodes.min(self.n_nodes())).filter_map(NodeId::from_index).collect();
        let names = self.names().select(&nodes);
        self.part(n, nodes, names)
    }

    /// Some events alone, in ascending order: a stream as if nothing else had happened, its nodes numbered as in a file of these rows.
    ///
    /// ```
    /// use ctdg::event::{EventId, EventStream, NodeId};
    ///
    /// let stream = EventStream::from_events([(0, 1, 1.0), (1, 2, 2.0), (2, 3, 3.0)])?;
    /// let part = stream.select(&[EventId(1), EventId(2)])?;
    /// assert_eq!((part.len(), part.n_nodes(), part.names().integer(NodeId(0))), (2, 3, Some(1)));
    /// # Ok::<(), ctdg::Error>(())
    /// ```
    pub fn select(&self, events: &[EventId]) -> Result<Self> {
        self.check_order(events)?;
        let ends = |column: &[NodeId]| events.iter().map(|id| column[id.index()]).collect::<Vec<_>>();
        let (src, dst) = (ends(self.src()), ends(self.dst()));
        let edges = |table: &Features| {
            let values: Vec<f32> = events.iter().flat_map(|id| table.row(id.index())).copied().collect();
            Features::new(table.width(), values)
        };
        let picked = Self::new(Columns {
            time: events.iter().map(|id| self.times()[id.index()]).collect::<Vec<_>>().into(),
            label: events.iter().map(|id| self.labels()[id.index()]).collect::<Vec<_>>().into(),
            edge_features: self.edge_features().map(edges).transpose()?,
            node_features: self.node_features().cloned(),
            names: self.names().clone(),
            time_format: self.time_format(),
            src: src.into(),
            dst: dst.into(),
        })?;
        Ok(picked.prefix(events.len())?.stream)
    }

    fn nodes_of_first(&self, n: usize) -> Vec<NodeId> {
        let n = n.min(self.len());
        let mut occurs = vec![false; self.n_nodes()];
        for node in self.src()[..n].iter().chain(&self.dst()[..n]) {
            occurs[node.index()] = true;
        }
        (0..).map(NodeId).zip(occurs).filter(|(_, occurs)| *occurs).map(|(node, _)| node).collect()
    }

    fn part(&self, n: usize, nodes: Vec<NodeId>, names: NodeNames) -> Result<Prefix> {
        let n = n.min(self.len());
        // A node outside of the part gets a number that `new` refuses.
        let mut numbers = vec![NodeId(u32::MAX); self.n_nodes()];
        for (number, node) in (0..).map(NodeId).zip(&nodes) {
            numbers[node.index()] = number;
        }
        let column = |of: &[NodeId]| of[..n].iter().map(|node| numbers[node.index()]).collect::<Vec<_>>().into();
        let edges = |table: &Features| Features::new(table.width(), table.values()[..n * table.width()].to_vec());
        let rows = |table: &Features| {
            let values: Vec<f32> = nodes.iter().flat_map(|node| table.row(node.index())).copied().collect();
            Features::new(table.width(), values)
        };
        let stream = Self::new(Columns {
            src: column(self.src()),
            dst: column(self.dst()),
            time: self.times()[..n].to_vec().into(),
            label: self.labels()[..n].to_vec().into(),
            edge_features: self.edge_features().map(edges).transpose()?,
            node_features: self.node_features().map(rows).transpose()?,
            names,
            time_format: self.time_format(),
        })?;
        Ok(Prefix { stream, nodes })
    }
}

impl NodeNames {
    /// The names of `nodes`, which become nodes 0, 1, … .
    fn select(&self, nodes: &[NodeId]) -> Self {
        let n_sources = self.sources_among(nodes);
        if self.is_text() {
            let mut table = TextTable::default();
            for node in nodes {
                table.push(self.name(*node).as_bytes());
            }
            return Self::text(table, n_sources);
        }
        Self::integers(nodes.iter().filter_map(|&node| self.integer(node)).collect(), n_sources)
    }

    /// How many of `nodes` are sources of a bipartite stream.
    fn sources_among(&self, nodes: &[NodeId]) -> Option<u32> {
        let is_source = |node: &&NodeId| self.is_on_source_side(**node);
        self.is_bipartite().then(|| u32::try_from(nodes.iter().filter(is_source).count()).ok())?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{IdKind, StreamBuilder};

    fn build(rows: &[(&str, &str, f64)], ids: IdKind, bipartite: bool) -> EventStream {
        let mut builder = StreamBuilder::new(ids, bipartite, false);
        for (at, (src, dst, time)) in (0_u8..).zip(rows) {
            builder.push(src.as_bytes(), dst.as_bytes(), *time, f32::from(at)).expect("a good row");
        }
        let mut columns = builder.finish(None).expect("a good stream").into_columns();
        let nodes = (0..columns.names.len()).filter_map(NodeId::from_index);
        let value = |node| columns.names.name(node).bytes().map(f32::from).sum();
        let of_nodes = nodes.map(value).collect::<Vec<f32>>();
        columns.node_features = Some(Features::new(1, of_nodes).expect("features"));
        columns.edge_features = Some(Features::new(1, columns.label.to_vec()).expect("features"));
        EventStream::new(columns).expect("a good stream")
    }

    const ROWS: [(&str, &str, f64); 7] = [
        ("7", "30", 0.0),
        ("7", "100", 1.0),
        ("9", "7", 1.0),
        ("100", "7", 2.0),
        ("1", "30", 3.0),
        ("9", "8", 4.0),
        ("200", "8", 5.0),
    ];

    #[test]
    fn a_prefix_equals_the_stream_of_a_file_that_ends_there() {
        for (ids, bipartite) in [(IdKind::Integer, false), (IdKind::Text, false), (IdKind::Integer, true)] {
            let whole = build(&ROWS, ids, bipartite);
            for n in 1..=ROWS.len() {
                let prefix = whole.prefix(n).expect("a prefix");
                assert_eq!(prefix.stream, build(&ROWS[..n], ids, bipartite), "{n} {ids:?}");
                let name = |node: &NodeId| whole.names().name(*node);
                let names: Vec<String> = prefix.nodes.iter().map(name).collect();
                let expected = (0..).map(NodeId).take(names.len()).map(|node| prefix.stream.names().name(node));
                assert_eq!(names, expected.collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn names_that_later_ones_made_text_become_integers_again() {
        let rows = [&ROWS[..], &[("10-new", "7", 6.0)]].concat();
        let whole = build(&rows, IdKind::Text, false);
        let prefix = whole.prefix_of_integers(ROWS.len()).expect("a prefix").expect("integers");
        assert_eq!(prefix.stream, build(&ROWS, IdKind::Integer, false));
        assert_eq!(whole.prefix_of_integers(8).expect("no error"), None);
    }

    #[test]
    fn numbers_of_nodes_without_events_are_kept_on_request() {
        let whole = EventStream::from_events([(0, 3, 1.0), (3, 5, 2.0)]).expect("a stream");
        let prefix = whole.prefix_with_nodes(1, 4).expect("a prefix");
        assert_eq!(prefix.stream, EventStream::from_events([(0, 3, 1.0)]).expect("a stream"));
        assert!(whole.prefix_with_nodes(2, 4).is_err(), "node 5 is outside");
    }
}
