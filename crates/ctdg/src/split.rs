//! Chronological train/validation/test splits with masked nodes for inductive evaluation.
//!
//! The split times are quantiles of the event times (0.70 and 0.85). A tenth of all nodes, sampled among those that occur
//! after the first split time, are *masked*: their events are removed from training. *New nodes* do not occur in training:
//! the masked ones and those that first occur later. Validation and test keep all their events; their new-node subsets
//! are the events with a new node at either end. TGB's split has the same times and masks no node.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{Problem, Result, counted};
use crate::event::{Cut, EventId, EventStream, NodeId, up_to};
use crate::py_compat::{self, PythonSet};
use crate::random::RandomStream;

/// How masked nodes are sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum SplitMode {
    /// Identical to DyGLib under Python 3.10 and before: Python's generator over the hash order of a set.
    #[default]
    Dyglib,
    /// From the sorted candidates with this crate's generator.
    Portable,
    /// None: as in TGB, training has all events up to its end.
    Tgb,
}

impl SplitMode {
    /// The name in files and on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Dyglib => "dyglib",
            Self::Portable => "portable",
            Self::Tgb => "tgb",
        }
    }
}

/// The parameters of a split. Fixed once derived from a stream: events appended later belong to no subset.
///
/// ```
/// use ctdg::split::{MASK_SEED, SplitMode, SplitRule};
///
/// let stream = ctdg::dataset::collegemsg()?;
/// let split = SplitRule::of(&stream, SplitMode::Dyglib, MASK_SEED)?.apply(&stream)?;
/// assert!(split.train.last() < split.val.first() && split.val.last() < split.test.first());
/// assert!(split.new_node_test.len() < split.test.len());
/// # Ok::<(), ctdg::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SplitRule {
    /// How masked nodes were sampled.
    pub mode: SplitMode,
    /// Events up to this time are for training.
    pub val_time: f64,
    /// Events after [`SplitRule::val_time`] up to this time are for validation, later ones for test.
    pub test_time: f64,
    /// Nodes kept out of training, ascending.
    pub masked: Vec<NodeId>,
    /// Number of events the rule was derived from; later ones belong to no subset.
    pub n_events: usize,
}

/// The quantiles at which validation and test begin.
const QUANTILES: [f64; 2] = [0.70, 0.85];
/// DyGLib's seed for masked nodes.
pub const MASK_SEED: u32 = 2020;

impl SplitRule {
    /// The rule for `stream`, with masked nodes sampled with `seed` ([`MASK_SEED`] is DyGLib's).
    pub fn of(stream: &EventStream, mode: SplitMode, seed: u32) -> Result<Self> {
        if stream.is_empty() {
            return Err(Problem::Empty.into());
        }
        let [val_time, test_time] = QUANTILES.map(|q| quantile(stream.times(), q));
        let after = up_to(stream.times(), val_time).n_events();
        let mut occurs = vec![false; stream.n_nodes()];
        for node in stream.src().iter().chain(stream.dst()) {
            occurs[node.index()] = true;
        }
        let n_nodes = occurs.iter().filter(|&&occurs| occurs).count();
        let (late_src, late_dst) = (&stream.src()[after..], &stream.dst()[after..]);
        let candidates = match mode {
            SplitMode::Dyglib => hash_ordered(late_src, late_dst),
            SplitMode::Portable => distinct_of(stream.n_nodes(), late_src.iter().chain(late_dst).copied()),
            SplitMode::Tgb => Vec::new(),
        };
        // A tenth, rounded down as Python's int() does it, and never more than there are.
        let n_masked = (n_nodes / 10).min(candidates.len());
        let mut masked: Vec<NodeId> = match mode {
            SplitMode::Dyglib => {
                py_compat::sample(seed, candidates.len(), n_masked).into_iter().map(|at| candidates[at]).collect()
            }
            SplitMode::Portable => {
                let mut order = candidates;
                RandomStream::named(u64::from(seed), "masked-nodes").shuffle(&mut order);
                order.truncate(n_masked);
                order
            }
            SplitMode::Tgb => Vec::new(),
        };
        masked.sort_unstable();
        Ok(Self { mode, val_time, test_time, masked, n_events: stream.len() })
    }

    /// Splits `stream`, which may have grown since the rule was derived.
    pub fn apply(&self, stream: &EventStream) -> Result<Split> {
        if stream.len() < self.n_events {
            let expected = format!("at least the {} the split was made from", counted(self.n_events, "event"));
            return Err(Problem::Setting { name: "events", found: stream.len().to_string(), expected }.into());
        }
        if let Some(node) = self.masked.iter().find(|node| node.index() >= stream.n_nodes()) {
            let expected = format!("a node below {}", stream.n_nodes());
            return Err(Problem::Setting { name: "masked", found: node.0.to_string(), expected }.into());
        }
        let times = &stream.times()[..self.n_events];
        let [val_start, test_start] = [self.val_time, self.test_time].map(|time| up_to(times, time));
        let (src, dst) = (stream.src(), stream.dst());
        let touches = |nodes: &[bool], id: &EventId| nodes[src[id.index()].index()] || nodes[dst[id.index()].index()];

        let mut is_masked = vec![false; stream.n_nodes()];
        for node in &self.masked {
            is_masked[node.index()] = true;
        }
        let mut train = events_between(0, val_start.0);
        train.retain(|id| !touches(&is_masked, id));
        let val = events_between(val_start.0, test_start.0);
        let test = events_between(test_start.0, self.n_events as u64);

        // New nodes occur in the split's events, but not in training.
        let mut is_new = vec![false; stream.n_nodes()];
        for node in src[..self.n_events].iter().chain(&dst[..self.n_events]) {
            is_new[node.index()] = true;
        }
        for id in &train {
            is_new[src[id.index()].index()] = false;
            is_new[dst[id.index()].index()] = false;
        }
        let with_new = |part: &[EventId]| part.iter().copied().filter(|id| touches(&is_new, id)).collect::<Vec<_>>();
        let new_nodes = (0..).map(NodeId).zip(&is_new).filter(|(_, new)| **new).map(|(node, _)| node).collect();
        Ok(Split {
            new_node_val: with_new(&val),
            new_node_test: with_new(&test),
            rule: self.clone(),
            train,
            val,
            test,
            new_nodes,
            val_start,
            test_start,
        })
    }
}

/// A split for link prediction; all lists of events are ascending.
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    /// Its parameters.
    pub rule: SplitRule,
    /// Training events: none touches a masked node.
    pub train: Vec<EventId>,
    /// Validation events, all of them.
    pub val: Vec<EventId>,
    /// Test events, all of them.
    pub test: Vec<EventId>,
    /// Validation events with a new node.
    pub new_node_val: Vec<EventId>,
    /// Test events with a new node.
    pub new_node_test: Vec<EventId>,
    /// Nodes that do not occur in training, ascending.
    pub new_nodes: Vec<NodeId>,
    val_start: Cut,
    test_start: Cut,
}

impl Split {
    /// A test of the same training on other events: those of `tested`, events of `stream`, which begins with the events of this
    /// split. `nodes` are the numbers in `stream` of the nodes of this split.
    ///
    /// Training and validation events before the test stay what they are, and all later ones before it count as validation
    /// events: known, but not trained on. New nodes do not occur in training, wherever the test begins.
    ///
    /// ```
    /// use ctdg::event::EventStream;
    /// use ctdg::split::{MASK_SEED, SplitMode, SplitRule};
    ///
    /// let stream = EventStream::from_events((0..120u32).map(|i| (i % 7, 7 + i * i % 13, f64::from(i))))?;
    /// let known = stream.prefix(100)?;
    /// let split = SplitRule::of(&known.stream, SplitMode::Dyglib, MASK_SEED)?.apply(&known.stream)?;
    /// let later = split.tested_on(&stream, &known.nodes, 100..120);
    /// assert_eq!((later.test.len(), later.train), (20, split.train.clone()));
    /// assert_eq!(later.val.len(), split.val.len() + split.test.len());
    /// # Ok::<(), ctdg::Error>(())
    /// ```
    ///
    /// # Panics
    /// When `stream` has fewer events or nodes than that.
    #[must_use]
    pub fn tested_on(&self, stream: &EventStream, nodes: &[NodeId], tested: std::ops::Range<usize>) -> Self {
        let cut = |n: usize| Cut(n.min(stream.len()) as u64);
        let (test_start, end) = (cut(tested.start), cut(tested.end));
        let val_start = self.val_start.min(test_start);
        let (src, dst) = (stream.src(), stream.dst());
        let mut is_new = vec![false; stream.n_nodes()];
        for node in src[..end.n_events()].iter().chain(&dst[..end.n_events()]) {
            is_new[node.index()] = true;
        }
        for id in &self.train {
            is_new[src[id.index()].index()] = false;
            is_new[dst[id.index()].index()] = false;
        }
        let (val, test) = (events_between(val_start.0, test_start.0), events_between(test_start.0, end.0));
        let touches_new = |id: &EventId| is_new[src[id.index()].index()] || is_new[dst[id.index()].index()];
        let with_new = |part: &[EventId]| part.iter().copied().filter(touches_new).collect();
        let mut masked: Vec<NodeId> = self.rule.masked.iter().map(|node| nodes[node.index()]).collect();
        masked.sort_unstable();
        Self {
            rule: SplitRule { masked, n_events: end.n_events(), ..self.rule.clone() },
            train: self.train.iter().copied().filter(|&id| test_start.sees(id)).collect(),
            new_node_val: with_new(&val),
            new_node_test: with_new(&test),
            new_nodes: (0..).map(NodeId).zip(&is_new).filter(|(_, new)| **new).map(|(node, _)| node).collect(),
            val,
            test,
            val_start,
            test_start,
        }
    }

    /// All events the split was made from, including those of masked nodes in the training period.
    #[must_use]
    pub fn all(&self) -> Vec<EventId> {
        events_between(0, self.rule.n_events as u64)
    }

    /// The split for node classification: same times, no masking.
    #[must_use]
    pub fn for_nodes(&self) -> NodeSplit {
        NodeSplit { train: events_between(0, self.val_start.0), val: self.val.clone(), test: self.test.clone() }
    }

    /// Start of validation.
    #[must_use]
    pub fn val_start(&self) -> Cut {
        self.val_start
    }

    /// Start of test.
    #[must_use]
    pub fn test_start(&self) -> Cut {
        self.test_start
    }
}

/// A split for node classification.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeSplit {
    /// All events up to the validation time.
    pub train: Vec<EventId>,
    /// Validation events.
    pub val: Vec<EventId>,
    /// Test events.
    pub test: Vec<EventId>,
}

/// DyGLib counts nodes from 1.
#[must_use]
pub fn dyglib_id(node: NodeId) -> u64 {
    u64::from(node.0) + 1
}

/// Digest of a list of nodes, for comparing splits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    /// Sum of the DyGLib ids.
    pub sum: u64,
    /// SHA-256 of the DyGLib ids in the given order, joined by commas.
    pub sha256: String,
}

/// The fingerprint of `nodes`.
#[must_use]
pub fn fingerprint(nodes: &[NodeId]) -> Fingerprint {
    let ids: Vec<String> = nodes.iter().map(|&node| dyglib_id(node).to_string()).collect();
    let digest = Sha256::digest(ids.join(",").as_bytes());
    let mut sha256 = String::new();
    for byte in digest {
        write!(sha256, "{byte:02x}").expect("a string takes everything");
    }
    Fingerprint { sum: nodes.iter().map(|&node| dyglib_id(node)).sum(), sha256 }
}

/// Number of distinct nodes in `events`.
#[must_use]
pub fn n_nodes_of(stream: &EventStream, events: &[EventId]) -> usize {
    let nodes = events.iter().flat_map(|id| [stream.src()[id.index()], stream.dst()[id.index()]]);
    distinct_of(stream.n_nodes(), nodes).len()
}

fn events_between(start: u64, end: u64) -> Vec<EventId> {
    (start..end).map(EventId).collect()
}

/// The nodes of a stream with `n_nodes` that occur in `nodes`, sorted. Takes a byte per node, however many there are to look at.
pub(crate) fn distinct_of(n_nodes: usize, nodes: impl Iterator<Item = NodeId>) -> Vec<NodeId> {
    let mut occurs = vec![false; n_nodes];
    for node in nodes {
        occurs[node.index()] = true;
    }
    (0..).map(NodeId).zip(occurs).filter(|(_, occurs)| *occurs).map(|(node, _)| node).collect()
}

/// Sorted, without duplicates.
pub(crate) fn distinct(nodes: impl Iterator<Item = NodeId>) -> Vec<NodeId> {
    let mut nodes: Vec<NodeId> = nodes.collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// The nodes in the order in which Python lists the union of the set of sources and the set of destinations.
fn hash_ordered(src: &[NodeId], dst: &[NodeId]) -> Vec<NodeId> {
    let set_of = |nodes: &[NodeId]| {
        let mut set = PythonSet::default();
        for node in nodes {
            set.insert(node.0 + 1);
        }
        set
    };
    set_of(src).union(&set_of(dst)).iter().map(|id| NodeId(id - 1)).collect()
}

/// NumPy's linear quantile of sorted values, bit-identical.
pub(crate) fn quantile(sorted: &[f64], q: f64) -> f64 {
    let position = (sorted.len() - 1) as f64 * q;
    let below = position.floor();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the number of events")]
    let index = below as usize;
    let (low, high) = (sorted[index], sorted[(index + 1).min(sorted.len() - 1)]);
    let share = position - below;
    // NumPy interpolates from the nearer end.
    if share >= 0.5 { high - (high - low) * (1.0 - share) } else { low + (high - low) * share }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_equal_numpys() {
        // numpy.quantile([0, 1, 4, 9, 16, 25.5], [0.7, 0.85])
        let values = [0.0, 1.0, 4.0, 9.0, 16.0, 25.5];
        assert_eq!(QUANTILES.map(|q| quantile(&values, q)), [12.5, 18.375]);
        assert_eq!(quantile(&[3.0], 0.7), 3.0);
    }

    #[test]
    fn split_subsets_follow_their_definitions() {
        let stream = EventStream::from_events((0..200u32).map(|i| (i % 7, 7 + i * i % 13, f64::from(i / 3)))).unwrap();
        for mode in [SplitMode::Dyglib, SplitMode::Portable, SplitMode::Tgb] {
            let split = SplitRule::of(&stream, mode, MASK_SEED).unwrap().apply(&stream).unwrap();
            assert_eq!(split.val.len() + split.test.len() + split.for_nodes().train.len(), stream.len());
            let trains = |node: NodeId| {
                split.train.iter().any(|id| [stream.event(*id).src, stream.event(*id).dst].contains(&node))
            };
            assert!(split.rule.masked.iter().all(|&node| !trains(node)));
            assert!(split.new_nodes.iter().all(|&node| !trains(node)));
            assert!(split.train.iter().all(|id| stream.times()[id.index()] <= split.rule.val_time));
            let is_masked = mode != SplitMode::Tgb;
            assert_eq!(!split.rule.masked.is_empty(), is_masked);
            assert_eq!(split.train.len() < split.for_nodes().train.len(), is_masked);
        }
    }
}
