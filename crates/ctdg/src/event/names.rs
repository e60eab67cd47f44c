//! Node names of the input and their mapping to dense ids.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::error::{Problem, Result};
use crate::event::{GrowingNames, NameTable, NodeId};

/// Names of all nodes in the input. Dense ids follow the sorted order of the names: numeric for integers, bytewise
/// for text; in a bipartite stream all sources come before all destinations. In a stream that grows they follow the order in which
/// nodes appeared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeNames {
    pub(crate) kind: Names,
    /// Number of source nodes of a bipartite stream.
    pub(crate) n_sources: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Names {
    /// Node `i` is named `first + i`: no table is stored.
    Consecutive {
        first: u64,
        len: u32,
    },
    Integers(Vec<u64>),
    Text(TextTable),
    Growing(GrowingNames),
}

/// Strings in one buffer: `ends[i]` is where string `i` ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TextTable {
    pub(crate) bytes: Vec<u8>,
    pub(crate) ends: Vec<u64>,
}

impl TextTable {
    pub(crate) fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len() as u64);
    }

    pub(crate) fn get(&self, index: usize) -> &[u8] {
        let position = |end: u64| usize::try_from(end).expect("ends index a buffer in memory");
        let start = index.checked_sub(1).map_or(0, |before| position(self.ends[before]));
        &self.bytes[start..position(self.ends[index])]
    }
}

impl NodeNames {
    /// Nodes named `first`, `first + 1`, … .
    #[must_use]
    pub fn counted(first: u64, len: u32) -> Self {
        Self { kind: Names::Consecutive { first, len }, n_sources: None }
    }

    /// Sources named `0`, `1`, … and, in a namespace of their own, destinations named `0`, `1`, … .
    #[must_use]
    pub fn bipartite(n_sources: u32, n_destinations: u32) -> Self {
        let names = (0..n_sources).chain(0..n_destinations).map(u64::from).collect();
        Self::integers(names, Some(n_sources))
    }

    /// Integer names in order of dense id.
    pub(crate) fn integers(names: Vec<u64>, n_sources: Option<u32>) -> Self {
        let consecutive = names.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]));
        let kind = match u32::try_from(names.len()) {
            Ok(len) if consecutive => Names::Consecutive { first: names.first().copied().unwrap_or(0), len },
            _ => Names::Integers(names),
        };
        Self { kind, n_sources }
    }

    pub(crate) fn text(names: TextTable, n_sources: Option<u32>) -> Self {
        Self { kind: Names::Text(names), n_sources }
    }

    /// Number of nodes.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.kind {
            Names::Consecutive { len, .. } => *len as usize,
            Names::Integers(names) => names.len(),
            Names::Text(names) => names.ends.len(),
            Names::Growing(names) => names.len(),
        }
    }

    /// Whether there is no node.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of source nodes of a bipartite stream: nodes `0..n_sources` are sources, the rest destinations. None of a stream that
    /// grows, where they are mixed.
    #[must_use]
    pub fn n_sources(&self) -> Option<u32> {
        self.n_sources
    }

    /// Whether they are those of a stream that grows.
    pub(crate) fn is_growing(&self) -> bool {
        matches!(self.kind, Names::Growing(_))
    }

    /// Whether sources and destinations have namespaces of their own.
    ///
    /// ```
    /// use ctdg::event::NodeNames;
    ///
    /// assert!(NodeNames::bipartite(2, 3).is_bipartite() && !NodeNames::counted(0, 5).is_bipartite());
    /// ```
    #[must_use]
    pub fn is_bipartite(&self) -> bool {
        self.n_sources.is_some() || matches!(&self.kind, Names::Growing(names) if names.is_bipartite())
    }

    /// Whether `node` is on the side of the sources: any node is, unless the stream is bipartite.
    #[must_use]
    pub fn is_on_source_side(&self, node: NodeId) -> bool {
        match &self.kind {
            Names::Growing(names) => names.is_on_source_side(node),
            _ => self.n_sources.is_none_or(|n| node.0 < n),
        }
    }

    /// Whether names are text rather than integers.
    #[must_use]
    pub fn is_text(&self) -> bool {
        matches!(self.kind, Names::Text(_) | Names::Growing(_))
    }

    /// Whether all names are integers, written as such in a stream that grows.
    ///
    /// ```
    /// assert!(ctdg::event::NodeNames::counted(0, 5).are_integers());
    /// ```
    #[must_use]
    pub fn are_integers(&self) -> bool {
        match &self.kind {
            Names::Growing(names) => names.are_integers(),
            kind => !matches!(kind, Names::Text(_)),
        }
    }

    /// The input's name of `node`.
    ///
    /// # Panics
    /// When there is no such node.
    #[must_use]
    pub fn name(&self, node: NodeId) -> String {
        match (&self.kind, self.integer(node)) {
            (_, Some(name)) => name.to_string(),
            (Names::Text(names), _) => String::from_utf8_lossy(names.get(node.index())).into_owned(),
            (Names::Growing(names), _) => String::from_utf8_lossy(names.get(node.index())).into_owned(),
            _ => unreachable!("names that are not text are integers"),
        }
    }

    /// The input's name of `node` as a number, or `None` if names are text.
    ///
    /// # Panics
    /// When there is no such node.
    #[must_use]
    pub fn integer(&self, node: NodeId) -> Option<u64> {
        match &self.kind {
            Names::Consecutive { first, len } => {
                assert!(node.0 < *len, "node {} of {len}", node.0);
                Some(first + u64::from(node.0))
            }
            Names::Integers(names) => Some(names[node.index()]),
            Names::Text(_) | Names::Growing(_) => None,
        }
    }

    /// The node that is called by the integer `name`, among the sources if the stream is bipartite. Logarithmic, without a table.
    ///
    /// ```
    /// use ctdg::event::{NodeId, NodeNames};
    ///
    /// let names = NodeNames::bipartite(2, 3);
    /// assert_eq!((names.source_of_integer(1), names.destination_of_integer(1)), (Some(NodeId(1)), Some(NodeId(3))));
    /// assert_eq!(names.source_of_integer(2), None);
    /// ```
    #[must_use]
    pub fn source_of_integer(&self, name: u64) -> Option<NodeId> {
        self.of_integer(name, 0..self.n_sources.map_or(self.len(), |n| n as usize))
    }

    /// The same among the destinations.
    #[must_use]
    pub fn destination_of_integer(&self, name: u64) -> Option<NodeId> {
        self.of_integer(name, self.n_sources.map_or(0, |n| n as usize)..self.len())
    }

    fn of_integer(&self, name: u64, nodes: Range<usize>) -> Option<NodeId> {
        let index = match &self.kind {
            Names::Consecutive { first, .. } => usize::try_from(name.checked_sub(*first)?).ok()?,
            Names::Integers(names) => nodes.start + names[nodes.clone()].binary_search(&name).ok()?,
            Names::Text(_) | Names::Growing(_) => return None,
        };
        NodeId::from_index(index).filter(|_| nodes.contains(&index))
    }

    /// Whether the names of each side are in ascending order, each once: dense ids follow that order.
    pub(crate) fn are_sorted(&self) -> bool {
        let ascending = |from: usize, to: usize| match &self.kind {
            Names::Consecutive { .. } => true,
            Names::Integers(names) => names[from..to].is_sorted_by(|a, b| a < b),
            Names::Text(names) => (from + 1..to).all(|at| names.get(at - 1) < names.get(at)),
            Names::Growing(_) => to <= from + 1,
        };
        let n_sources = self.n_sources.map_or(self.len(), |n| n as usize);
        ascending(0, n_sources) && ascending(n_sources, self.len())
    }

    /// The order of two nodes in a file of the same events: numeric if all names are integers, bytewise otherwise, sources before
    /// destinations.
    ///
    /// ```
    /// use ctdg::event::{EventStream, NodeId};
    /// use ctdg::live::{LiveStore, NewEvent};
    ///
    /// let mut live = LiveStore::new(&EventStream::from_events([(0, 10, 1.0)])?, false)?;
    /// live.append(&[NewEvent::new("0", "11", 2.0), NewEvent::new("0", "9", 2.0)])?;
    /// let now = live.snapshot();
    /// let [nine, ten] = ["9", "10"].map(|name| now.lookup().source(name).expect("known"));
    /// assert!(now.stream().names().compare(nine, ten).is_lt());
    /// # Ok::<(), ctdg::Error>(())
    /// ```
    ///
    /// # Panics
    /// When there is no such node.
    #[must_use]
    pub fn compare(&self, a: NodeId, b: NodeId) -> Ordering {
        match &self.kind {
            Names::Growing(names) => names.compare(a, b),
            _ => a.cmp(&b),
        }
    }

    /// Calls `visit` with the written name of each node, in order.
    pub(crate) fn each_written(&self, mut visit: impl FnMut(&[u8])) {
        let mut digits = [0; 20];
        match &self.kind {
            Names::Consecutive { first, len } => {
                (0..*len).for_each(|index| visit(decimal(first + u64::from(index), &mut digits)));
            }
            Names::Integers(names) => names.iter().for_each(|&name| visit(decimal(name, &mut digits))),
            Names::Text(names) => (0..names.ends.len()).for_each(|index| visit(names.get(index))),
            Names::Growing(names) => (0..names.len()).for_each(|index| visit(names.get(index))),
        }
    }

    /// A table for looking up nodes by name.
    pub fn lookup(&self) -> Result<NameLookup> {
        let (mut sources, mut destinations) = (FxHashMap::default(), FxHashMap::default());
        for index in 0..self.len() {
            let node = NodeId::from_index(index).ok_or(Problem::TooMany { what: "nodes", max: u64::from(u32::MAX) })?;
            let side = if self.is_on_source_side(node) { &mut sources } else { &mut destinations };
            side.insert(self.name(node), node);
        }
        Ok(NameLookup(Lookup::Tables { sources, destinations: self.is_bipartite().then_some(destinations) }))
    }
}

/// `number` as text.
fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + u8::try_from(number % 10).expect("a digit");
        number /= 10;
        if number == 0 {
            return &digits[start..];
        }
    }
}

/// Finds nodes by the input's names; made by [`NodeNames::lookup`].
#[derive(Debug, Clone)]
pub struct NameLookup(Lookup);

#[derive(Debug, Clone)]
enum Lookup {
    Tables {
        sources: FxHashMap<String, NodeId>,
        /// Only for a bipartite stream.
        destinations: Option<FxHashMap<String, NodeId>>,
    },
    /// The first `n_nodes` of a stream that grows.
    Growing { table: Arc<NameTable>, n_nodes: usize },
}

impl NameLookup {
    /// Of the first `n_nodes` nodes of a stream that grows.
    pub(crate) fn of_growing(table: &Arc<NameTable>, n_nodes: usize) -> Self {
        Self(Lookup::Growing { table: Arc::clone(table), n_nodes })
    }

    /// The node called `name` on the source side.
    #[must_use]
    pub fn source(&self, name: &str) -> Option<NodeId> {
        match &self.0 {
            Lookup::Tables { sources, .. } => sources.get(name).copied(),
            Lookup::Growing { table, n_nodes } => table.source(name).filter(|node| node.index() < *n_nodes),
        }
    }

    /// The node called `name` on the destination side; the same as [`NameLookup::source`] unless bipartite.
    #[must_use]
    pub fn destination(&self, name: &str) -> Option<NodeId> {
        match &self.0 {
            Lookup::Tables { sources, destinations } => destinations.as_ref().unwrap_or(sources).get(name).copied(),
            Lookup::Growing { table, n_nodes } => table.destination(name).filter(|node| node.index() < *n_nodes),
        }
    }
}
