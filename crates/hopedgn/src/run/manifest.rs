//! Manifest of a run: program, machine, dataset and split.

use ctdg::dataset::ReadOptions;
use ctdg::event::{EventStream, Features};
use ctdg::split::SplitRule;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::WarmStart;
use crate::collate::FeatureWidths;
use crate::file_format::hex;
use crate::{Error, Events, Result};

/// Program, machine, dataset and split of a run.
///
/// ```
/// # use hopedgn::{Events, LinkPredictor};
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
/// # let place = tempfile::tempdir()?;
/// # let path = place.path().join("mine");
/// # predictor.save(&path)?;
/// let manifest = hopedgn::run::RunFolder::open(&path)?.manifest()?;
/// assert_eq!((manifest.data.name.as_str(), manifest.split.n_events), ("events", 100));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the program.
    pub version: String,
    /// Commit that the program was built from, where known.
    pub commit: Option<String>,
    /// The command line, if the run was started from one.
    pub command: Vec<String>,
    /// Start of the run in seconds since 1970.
    pub started: f64,
    /// Number of threads.
    pub threads: usize,
    /// Operating system and processor architecture.
    pub machine: String,
    /// The dataset.
    pub data: DataRecord,
    /// The split.
    pub split: SplitRule,
    /// The run whose weights training began with, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_start: Option<WarmStart>,
}

/// Identity of a dataset.
///
/// ```
/// use hopedgn::{Events, run::DataRecord};
///
/// let events = Events::from_tuples([("a", "b", 1.0), ("b", "a", 2.0)])?;
/// let record = DataRecord::of(&events);
/// let longer = Events::from_tuples([("a", "b", 1.0), ("b", "a", 2.0), ("a", "b", 3.0)])?;
/// assert!(record.check(&longer).is_ok()); // later events may follow
/// let other = Events::from_tuples([("a", "b", 1.0), ("b", "a", 2.5)])?;
/// assert!(record.check(&other).is_err());
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataRecord {
    /// Its name, as the user gave it.
    pub name: String,
    /// Absolute path of the file, if it is one.
    pub file: Option<String>,
    /// How the file was read; missing in manifests of version 0.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<ReadOptions>,
    /// Number of events.
    pub events: usize,
    /// Number of nodes.
    pub nodes: usize,
    /// SHA-256 of sources, destinations, times and features.
    pub sha256: String,
    /// The same of the events as written, by node names: it does not depend on the numbering of nodes, so that appended events with
    /// new nodes leave it unchanged. Missing in manifests of version 0.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256_by_name: Option<String>,
    /// Width of the node features, unless all are zero.
    pub node_features: Option<usize>,
    /// Width of the edge features, unless all are zero.
    pub edge_features: Option<usize>,
}

impl DataRecord {
    /// Describes `events`.
    #[must_use]
    pub fn of(events: &Events) -> Self {
        let widths = FeatureWidths::of(events);
        Self {
            name: events.name().to_owned(),
            file: events.file().map(|file| file.to_string_lossy().into_owned()),
            read: Some(events.read_options().clone()),
            events: events.len(),
            nodes: events.n_nodes(),
            sha256: fingerprint(events, events.len(), events.n_nodes()),
            sha256_by_name: Some(fingerprint_by_name(events, events.len())),
            node_features: widths.node,
            edge_features: widths.edge,
        }
    }

    /// Refuses a stream that does not begin with exactly these events, its nodes numbered in the same way: the split and node
    /// memories name nodes by number.
    pub fn check(&self, stream: &EventStream) -> Result<()> {
        let is_same = self.may_begin(stream) && fingerprint(stream, self.events, self.nodes) == self.sha256;
        if is_same { Ok(()) } else { Err(self.mismatch(stream)) }
    }

    /// Refuses a stream that does not begin with these events, however its nodes are numbered. That is enough for predictions.
    pub fn check_by_name(&self, stream: &EventStream) -> Result<()> {
        let Some(expected) = &self.sha256_by_name else { return self.check(stream) };
        let is_same = self.may_begin(stream) && fingerprint_by_name(stream, self.events) == *expected;
        if is_same { Ok(()) } else { Err(self.mismatch(stream)) }
    }

    fn may_begin(&self, stream: &EventStream) -> bool {
        stream.len() >= self.events && stream.n_nodes() >= self.nodes
    }

    pub(super) fn mismatch(&self, stream: &EventStream) -> Error {
        Error::DataMismatch {
            name: self.name.clone(),
            events: self.events,
            nodes: self.nodes,
            found_events: stream.len(),
            found_nodes: stream.n_nodes(),
        }
    }
}

/// Hash of the first `n_events` events: times, features, and nodes numbered by first appearance; a node's name and features are
/// added there.
fn fingerprint_by_name(stream: &EventStream, n_events: usize) -> String {
    let features =
        |table: Option<&Features>| table.filter(|table| table.values().iter().any(|&value| value != 0.0)).cloned();
    let (edges, nodes) = (features(stream.edge_features()), features(stream.node_features()));
    let mut hash = Sha256::new();
    let mut numbers: Vec<Option<u32>> = vec![None; stream.n_nodes()];
    let mut n_seen = 0;
    let add_row = |hash: &mut Sha256, table: &Option<Features>, row: usize| {
        for value in table.iter().filter(|table| row < table.n_rows()).flat_map(|table| table.row(row)) {
            hash.update(value.to_le_bytes());
        }
    };
    for id in stream.ids().take(n_events) {
        let event = stream.event(id);
        for node in [event.src, event.dst] {
            let number = *numbers[node.index()].get_or_insert(n_seen);
            hash.update(number.to_le_bytes());
            if number == n_seen {
                n_seen += 1;
                let name = stream.names().name(node);
                hash.update((name.len() as u64).to_le_bytes());
                hash.update(name.as_bytes());
                add_row(&mut hash, &nodes, node.index());
            }
        }
        hash.update(event.time.to_le_bytes());
        add_row(&mut hash, &edges, id.index());
    }
    hex(&hash.finalize())
}

pub(super) fn fingerprint(stream: &EventStream, n_events: usize, n_nodes: usize) -> String {
    let mut hash = Sha256::new();
    for ((src, dst), time) in stream.src().iter().zip(stream.dst()).zip(stream.times()).take(n_events) {
        hash.update(src.0.to_le_bytes());
        hash.update(dst.0.to_le_bytes());
        hash.update(time.to_le_bytes());
    }
    for (table, n_rows) in [(stream.edge_features(), n_events), (stream.node_features(), n_nodes)] {
        let Some(table) = table.filter(|table| table.values().iter().any(|&value| value != 0.0)) else { continue };
        hash.update((table.width() as u64).to_le_bytes());
        for value in &table.values()[..n_rows * table.width()] {
            hash.update(value.to_le_bytes());
        }
    }
    hex(&hash.finalize())
}
