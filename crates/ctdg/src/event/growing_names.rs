//! Names of the nodes of a stream that grows, numbered in the order in which they appeared.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::{Arc, PoisonError, RwLock};

use rustc_hash::FxHashMap;

use crate::error::{Problem, Result};
use crate::event::names::{NameLookup, Names, NodeNames};
use crate::event::{Column, Columns, Event, EventStream, Features, IdKind, NodeId, StreamBuilder};
use crate::growing::GrowingColumn;

/// The names at one time. Clones share them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GrowingNames {
    bytes: Column<u8>,
    /// Where each name ends.
    ends: Column<u64>,
    /// Of a bipartite stream: 0 for a source, 1 for a destination.
    sides: Option<Column<u8>>,
    are_integers: bool,
}

/// The number that `name` writes as numbers are written: "7", but not "007".
fn integer(name: &[u8]) -> Option<u64> {
    let name = std::str::from_utf8(name).ok()?;
    name.parse::<u64>().ok().filter(|number| number.to_string() == name)
}

impl GrowingNames {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn get(&self, index: usize) -> &[u8] {
        let position = |end: u64| usize::try_from(end).expect("ends index a buffer in memory");
        let start = index.checked_sub(1).map_or(0, |before| position(self.ends[before]));
        &self.bytes[start..position(self.ends[index])]
    }

    pub(crate) fn are_integers(&self) -> bool {
        self.are_integers
    }

    /// The order of two nodes in a file.
    pub(crate) fn compare(&self, a: NodeId, b: NodeId) -> Ordering {
        let [a_side, b_side] = [a, b].map(|node| !self.is_on_source_side(node));
        let [a, b] = [a, b].map(|node| self.get(node.index()));
        let by_name = if self.are_integers { integer(a).cmp(&integer(b)) } else { a.cmp(b) };
        a_side.cmp(&b_side).then(by_name)
    }

    pub(crate) fn is_bipartite(&self) -> bool {
        self.sides.is_some()
    }

    pub(crate) fn is_on_source_side(&self, node: NodeId) -> bool {
        self.sides.as_ref().is_none_or(|sides| sides[node.index()] == 0)
    }
}

impl EventStream {
    /// The same events as a file of them is read: names are integers if all of them are written so, and nodes are numbered in the order of
    /// names. A stream that did not grow is that already.
    ///
    /// ```
    /// use ctdg::event::{EventStream, NodeId};
    /// use ctdg::live::{LiveStore, NewEvent};
    ///
    /// let mut live = LiveStore::new(&EventStream::from_events([(0, 7, 1.0)])?, false)?;
    /// live.append(&[NewEvent::new("3", "7", 2.0)])?;
    /// let now = live.snapshot();
    /// let settled = now.stream().settled()?;
    /// assert_eq!((settled.src()[1], settled.names().integer(settled.src()[1])), (NodeId(1), Some(3)));
    /// # Ok::<(), ctdg::Error>(())
    /// ```
    pub fn settled(&self) -> Result<Cow<'_, Self>> {
        if !self.names().is_growing() {
            return Ok(Cow::Borrowed(self));
        }
        let names: Vec<String> =
            (0..self.n_nodes()).filter_map(NodeId::from_index).map(|node| self.names().name(node)).collect();
        // Only nodes with events are in a file.
        let mut ends = self.src().iter().chain(self.dst());
        let are_integers = ends.all(|node| integer(names[node.index()].as_bytes()).is_some());
        let ids = if are_integers { IdKind::Integer } else { IdKind::Text };
        let mut builder = StreamBuilder::new(ids, self.names().is_bipartite(), false);
        builder.set_time_format(self.time_format());
        builder.reserve(self.len(), 0);
        for id in self.ids() {
            let Event { src, dst, time, label } = self.event(id);
            let [src, dst] = [src, dst].map(|node| names[node.index()].as_bytes());
            builder.push(src, dst, time, label).map_err(|rejected| *rejected.problem)?;
        }
        let stream = builder.finish(self.edge_features().cloned())?;
        let Some(features) = self.node_features() else { return Ok(Cow::Owned(stream)) };
        let lookup = self.names().lookup()?;
        let rows = (0..stream.n_nodes()).filter_map(NodeId::from_index).filter_map(|node| {
            let name = stream.names().name(node);
            let is_source = stream.names().is_on_source_side(node);
            let here = if is_source { lookup.source(&name) } else { lookup.destination(&name) };
            here.map(|node| features.row(node.index()))
        });
        let values: Vec<f32> = rows.flatten().copied().collect();
        let node_features = Some(Features::new(features.width(), values)?);
        Ok(Cow::Owned(Self::new(Columns { node_features, ..stream.into_columns() })?))
    }
}

/// Nodes by name; read while names are added.
#[derive(Debug, Default)]
pub(crate) struct NameTable {
    sides: [RwLock<FxHashMap<Box<str>, NodeId>>; 2],
    is_bipartite: bool,
}

impl NameTable {
    pub(crate) fn source(&self, name: &str) -> Option<NodeId> {
        self.get(0, name)
    }

    pub(crate) fn destination(&self, name: &str) -> Option<NodeId> {
        self.get(usize::from(self.is_bipartite), name)
    }

    fn get(&self, side: usize, name: &str) -> Option<NodeId> {
        self.sides[side].read().unwrap_or_else(PoisonError::into_inner).get(name).copied()
    }
}

/// Adds names.
#[derive(Debug)]
pub(crate) struct NameWriter {
    bytes: GrowingColumn<u8>,
    ends: GrowingColumn<u64>,
    sides: Option<GrowingColumn<u8>>,
    table: Arc<NameTable>,
    are_integers: bool,
}

impl NameWriter {
    /// Begins with `names`, whose numbers stay.
    pub(crate) fn new(names: &NodeNames) -> Self {
        let is_bipartite = names.is_bipartite();
        let mut writer = Self {
            bytes: GrowingColumn::new(&[]),
            ends: GrowingColumn::new(&[]),
            sides: is_bipartite.then(|| GrowingColumn::new(&[])),
            table: Arc::new(NameTable { is_bipartite, ..NameTable::default() }),
            are_integers: true,
        };
        for node in (0..names.len()).filter_map(NodeId::from_index) {
            let side = usize::from(!names.is_on_source_side(node));
            writer.insert(side, &names.name(node), node);
        }
        writer
    }

    /// Number of names.
    pub(crate) fn len(&self) -> usize {
        self.ends.values().len()
    }

    /// Whether sources and destinations have namespaces of their own.
    pub(crate) fn is_bipartite(&self) -> bool {
        self.table.is_bipartite
    }

    /// The nodes called `src` and `dst` as the ends of an event; new names get the next numbers. Nothing is added unless both are names.
    pub(crate) fn ends(&mut self, src: &str, dst: &str) -> Result<[NodeId; 2]> {
        for name in [src, dst] {
            if name.is_empty() {
                return Err(Problem::NotANumber { found: "\"\"".to_owned(), expected: "a node id" }.into());
            }
        }
        let second = usize::from(self.table.is_bipartite);
        Ok([self.node(0, src)?, self.node(second, dst)?])
    }

    fn node(&mut self, side: usize, name: &str) -> Result<NodeId> {
        if let Some(node) = self.table.get(side, name) {
            return Ok(node);
        }
        let node = NodeId::from_index(self.len()).filter(|node| node.0 < u32::MAX);
        let node = node.ok_or(Problem::TooMany { what: "nodes", max: u64::from(u32::MAX) })?;
        self.insert(side, name, node);
        Ok(node)
    }

    fn insert(&mut self, side: usize, name: &str, node: NodeId) {
        self.are_integers &= integer(name.as_bytes()).is_some();
        self.bytes.extend(name.as_bytes());
        if let Some(sides) = &mut self.sides {
            sides.push(u8::from(side == 1));
        }
        self.ends.push(self.bytes.values().len() as u64);
        let mut table = self.table.sides[side].write().unwrap_or_else(PoisonError::into_inner);
        table.insert(name.into(), node);
    }

    /// The names as they are now.
    pub(crate) fn names(&self) -> NodeNames {
        let kind = Names::Growing(GrowingNames {
            bytes: Column::of_growing(&self.bytes),
            ends: Column::of_growing(&self.ends),
            sides: self.sides.as_ref().map(Column::of_growing),
            are_integers: self.are_integers,
        });
        NodeNames { kind, n_sources: None }
    }

    /// Finds those that are there now by name.
    pub(crate) fn lookup(&self) -> NameLookup {
        NameLookup::of_growing(&self.table, self.len())
    }
}
