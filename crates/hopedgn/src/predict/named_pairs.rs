//! Pairs by the names of their nodes, and what is known about them.

use std::collections::BTreeMap;

use ctdg::event::{EventStream, NameLookup, NodeId, Roles};
use ctdg::mite::{PairQuery, Side};
use serde::Serialize;

use crate::{Events, Result};

/// Pairs given by node names. A name without any event becomes a new node without a history; the same name is the same node.
///
/// ```
/// use hopedgn::{Events, predict::NamedPairs};
///
/// let events = Events::from_tuples([("annabel", "bob", 1.0)])?;
/// let mut pairs = NamedPairs::new(&events)?;
/// pairs.push("annabel", "bob", 2.0)?;
/// pairs.push("anabel", "bob", 2.0)?; // a new node, or a misspelt one
/// assert!(pairs.known(0).both() && !pairs.known(1).src && pairs.known(1).dst);
/// assert_eq!(pairs.unknown(), ["anabel"]);
/// assert_eq!(pairs.name(pairs.queries()[1].src), "anabel");
/// assert_eq!(pairs.nearest("anabel", hopedgn::ctdg::mite::Side::Src).as_deref(), Some("annabel"));
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug)]
pub struct NamedPairs<'s> {
    stream: &'s EventStream,
    lookup: &'s NameLookup,
    /// New nodes by name: of sources, and of destinations where those have names of their own.
    new: [BTreeMap<String, NodeId>; 2],
    unknown: Vec<String>,
    queries: Vec<PairQuery>,
}

/// Which nodes of a pair have events in the data, at any time. The others are new, or misspelt.
///
/// Made by [`NamedPairs::known`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct KnownNodes {
    /// The source; in data with separate names for both sides, as a source.
    pub src: bool,
    /// The destination; in data with separate names for both sides, as a destination.
    pub dst: bool,
}

impl KnownNodes {
    /// Whether both are known.
    #[must_use]
    pub fn both(self) -> bool {
        self.src && self.dst
    }

    /// In one word: `both`, `src`, `dst` or `none`.
    ///
    /// ```
    /// use hopedgn::predict::KnownNodes;
    ///
    /// assert_eq!(KnownNodes { src: true, dst: false }.as_str(), "src");
    /// ```
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match (self.src, self.dst) {
            (true, true) => "both",
            (true, false) => "src",
            (false, true) => "dst",
            (false, false) => "none",
        }
    }
}

/// On which sides of bipartite data the nodes of a pair are.
///
/// Made by [`NamedPairs::sides`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairSides {
    /// A source and a destination; also where a node is new, or where the data is not bipartite.
    AsAsked,
    /// The source is a destination in the data, and the destination a source.
    Swapped,
    /// Both are sources in the data.
    BothSources,
    /// Both are destinations in the data.
    BothDestinations,
}

impl<'s> NamedPairs<'s> {
    /// No pairs yet, among the nodes of `events`.
    pub fn new(events: &'s Events) -> Result<Self> {
        let lookup = events.lookup()?;
        Ok(Self { stream: events, lookup, new: Default::default(), unknown: Vec::new(), queries: Vec::new() })
    }

    /// Adds a pair.
    pub fn push(&mut self, src: &str, dst: &str, time: f64) -> Result<()> {
        let (known_src, known_dst) = (self.lookup.source(src), self.lookup.destination(dst));
        let src = known_src.map_or_else(|| self.new_node(src, 0), Ok)?;
        let dst = known_dst.map_or_else(|| self.new_node(dst, 1), Ok)?;
        self.queries.push(PairQuery { src, dst, time });
        Ok(())
    }

    /// Adds a pair of nodes that are called by integers: the same as [`NamedPairs::push`] of both as text, without writing them.
    ///
    /// ```
    /// use hopedgn::{Events, predict::NamedPairs};
    ///
    /// let events = Events::from_tuples([("7", "8", 1.0)])?;
    /// let mut pairs = NamedPairs::new(&events)?;
    /// pairs.push("7", "9", 2.0)?;
    /// pairs.push_integers(7, 9, 2.0)?;
    /// assert_eq!(pairs.queries()[0], pairs.queries()[1]);
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    pub fn push_integers(&mut self, src: u64, dst: u64, time: f64) -> Result<()> {
        let names = self.stream.names();
        match (names.source_of_integer(src), names.destination_of_integer(dst)) {
            (Some(src), Some(dst)) => self.queries.push(PairQuery { src, dst, time }),
            _ => self.push(&src.to_string(), &dst.to_string(), time)?,
        }
        Ok(())
    }

    /// Whether both names have events.
    #[must_use]
    pub fn knows(&self, src: &str, dst: &str) -> bool {
        self.knows_node(src, Side::Src) && self.knows_node(dst, Side::Dst)
    }

    /// Whether `name` has events; in data with separate names for both sides, on that side.
    #[must_use]
    pub fn knows_node(&self, name: &str, side: Side) -> bool {
        self.node(name, side).is_some()
    }

    /// Which nodes of a pair have events.
    ///
    /// # Panics
    /// When there is no such pair.
    #[must_use]
    pub fn known(&self, pair: usize) -> KnownNodes {
        let is_known = |node: NodeId| node.index() < self.stream.n_nodes();
        let PairQuery { src, dst, .. } = self.queries[pair];
        KnownNodes { src: is_known(src), dst: is_known(dst) }
    }

    /// On which sides of bipartite data the nodes of a pair are. `roles` are those of the events.
    ///
    /// ```
    /// use hopedgn::{Events, ctdg::event::Roles, predict::{NamedPairs, PairSides}};
    ///
    /// let events = Events::from_tuples([("user 1", "page 1", 1.0), ("user 2", "page 1", 2.0)])?;
    /// let mut pairs = NamedPairs::new(&events)?;
    /// pairs.push("page 1", "user 2", 3.0)?;
    /// assert_eq!(pairs.sides(0, &Roles::of(&events)), PairSides::Swapped);
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    ///
    /// # Panics
    /// When there is no such pair.
    #[must_use]
    pub fn sides(&self, pair: usize, roles: &Roles) -> PairSides {
        let PairQuery { src, dst, .. } = self.queries[pair];
        let is_on = |node: NodeId| -> [bool; 2] {
            // A node that is known only on the other side is a new one on its own.
            match self.stream.names().is_bipartite() {
                true if node.index() >= self.stream.n_nodes() => {
                    let name = &self.unknown[node.index() - self.stream.n_nodes()];
                    [Side::Src, Side::Dst].map(|side| self.knows_node(name, side))
                }
                _ if roles.are_disjoint() => [roles.is_source(node), roles.is_destination(node)],
                _ => [true; 2],
            }
        };
        match (is_on(src), is_on(dst)) {
            ([false, true], [true, false]) => PairSides::Swapped,
            ([true, false], [true, false]) => PairSides::BothSources,
            ([false, true], [false, true]) => PairSides::BothDestinations,
            _ => PairSides::AsAsked,
        }
    }

    /// The known name on one side that resembles `name` most, if one does: [`NodeNames`](ctdg::event::NodeNames) says when.
    #[must_use]
    pub fn nearest(&self, name: &str, side: Side) -> Option<String> {
        let names = self.stream.names();
        let node = match side {
            Side::Src => names.nearest_source(name),
            Side::Dst => names.nearest_destination(name),
        };
        node.map(|node| names.name(node))
    }

    /// The pairs, in the order they were added.
    #[must_use]
    pub fn queries(&self) -> &[PairQuery] {
        &self.queries
    }

    /// Names without any event, in the order they came up.
    #[must_use]
    pub fn unknown(&self) -> &[String] {
        &self.unknown
    }

    /// The name of a node, also of a new one.
    #[must_use]
    pub fn name(&self, node: NodeId) -> String {
        match node.index().checked_sub(self.stream.n_nodes()) {
            Some(index) => self.unknown[index].clone(),
            None => self.stream.names().name(node),
        }
    }

    fn node(&self, name: &str, side: Side) -> Option<NodeId> {
        match side {
            Side::Src => self.lookup.source(name),
            Side::Dst => self.lookup.destination(name),
        }
    }

    fn new_node(&mut self, name: &str, side: usize) -> Result<NodeId> {
        let side = if self.stream.names().is_bipartite() { side } else { 0 };
        if let Some(&node) = self.new[side].get(name) {
            return Ok(node);
        }
        let index = self.stream.n_nodes() + self.unknown.len();
        let too_many = ctdg::Problem::TooMany { what: "nodes", max: u64::from(u32::MAX) };
        let node = NodeId::from_index(index).ok_or_else(|| ctdg::Error::from(too_many))?;
        self.unknown.push(name.to_owned());
        self.new[side].insert(name.to_owned(), node);
        Ok(node)
    }
}

#[cfg(test)]
mod tests {
    use ctdg::event::{IdKind, StreamBuilder};

    use super::*;

    /// Users 1 and 2, pages 2 and 30, with names of their own or in one namespace.
    fn events(bipartite: bool) -> Events {
        let mut builder = StreamBuilder::new(IdKind::Integer, bipartite, false);
        let page = if bipartite { "2" } else { "20" };
        for (src, dst, time) in [("1", page, 1.0), ("2", "30", 2.0)] {
            builder.push(src.as_bytes(), dst.as_bytes(), time, 0.0).unwrap();
        }
        Events::from_stream("test", builder.finish(None).unwrap())
    }

    fn sides(bipartite: bool, src: &str, dst: &str) -> (PairSides, KnownNodes) {
        let events = events(bipartite);
        let mut pairs = NamedPairs::new(&events).unwrap();
        pairs.push(src, dst, 3.0).unwrap();
        (pairs.sides(0, &Roles::of(&events)), pairs.known(0))
    }

    #[test]
    fn swapped_nodes_and_nodes_of_one_side_are_recognised_in_bipartite_data() {
        use PairSides::{AsAsked, BothDestinations, BothSources, Swapped};
        let known = |src, dst| KnownNodes { src, dst };
        // With names of their own, an id may be known on both sides.
        assert_eq!(sides(true, "1", "30"), (AsAsked, known(true, true)));
        assert_eq!(sides(true, "30", "1"), (Swapped, known(false, false)));
        assert_eq!(sides(true, "2", "1"), (BothSources, known(true, false)));
        assert_eq!(sides(true, "30", "2"), (BothDestinations, known(false, true)));
        assert_eq!(sides(true, "2", "2"), (AsAsked, known(true, true)));
        assert_eq!(sides(true, "1", "77"), (AsAsked, known(true, false)), "a new node is on no side");
        // In one namespace the events tell.
        assert_eq!(sides(false, "1", "20"), (AsAsked, known(true, true)));
        assert_eq!(sides(false, "30", "1"), (Swapped, known(true, true)));
        assert_eq!(sides(false, "2", "1"), (BothSources, known(true, true)));
        assert_eq!(sides(false, "30", "20"), (BothDestinations, known(true, true)));
        assert_eq!(sides(false, "30", "77"), (AsAsked, known(true, false)));
    }

    #[test]
    fn data_whose_nodes_are_on_both_sides_has_no_sides() {
        let events = Events::from_tuples([("1", "2", 1.0), ("2", "3", 2.0)]).unwrap();
        let mut pairs = NamedPairs::new(&events).unwrap();
        pairs.push("3", "1", 3.0).unwrap();
        pairs.push("1", "1", 3.0).unwrap();
        let roles = Roles::of(&events);
        assert_eq!([0, 1].map(|pair| pairs.sides(pair, &roles)), [PairSides::AsAsked; 2]);
    }
}
