//! What a run was made with, to be compared before its weights are used.

use std::fmt::Write as _;

use ctdg::event::EventStream;
use ctdg::split::SplitRule;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::collate::FeatureWidths;
use crate::{Error, Result};

/// Program, machine, data and split of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the program.
    pub version: String,
    /// Commit it was built from, where known.
    pub commit: Option<String>,
    /// What was typed.
    pub command: Vec<String>,
    /// When, in seconds since 1970.
    pub started: f64,
    /// Threads.
    pub threads: usize,
    /// Operating system and kind of processor.
    pub machine: String,
    /// The data.
    pub data: DataRecord,
    /// How it was divided.
    pub split: SplitRule,
}

/// What tells one data set from another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataRecord {
    /// As the person named it.
    pub name: String,
    /// The file in full, where it is one.
    pub file: Option<String>,
    /// Events.
    pub events: usize,
    /// Nodes.
    pub nodes: usize,
    /// Of sources, destinations, times and features.
    pub sha256: String,
    /// Width of the node features, if there are any but zeros.
    pub node_features: Option<usize>,
    /// Width of the edge features, if there are any but zeros.
    pub edge_features: Option<usize>,
}

impl DataRecord {
    /// Of all events of `stream`.
    #[must_use]
    pub fn of(stream: &EventStream, name: &str, file: Option<String>) -> Self {
        let widths = FeatureWidths::of(stream);
        Self {
            name: name.to_owned(),
            file,
            events: stream.len(),
            nodes: stream.n_nodes(),
            sha256: fingerprint(stream, stream.len(), stream.n_nodes()),
            node_features: widths.node,
            edge_features: widths.edge,
        }
    }

    /// Refuses a stream that does not begin with these very events.
    pub fn check(&self, stream: &EventStream) -> Result<()> {
        let has_all = stream.len() >= self.events && stream.n_nodes() >= self.nodes;
        if has_all && fingerprint(stream, self.events, self.nodes) == self.sha256 {
            return Ok(());
        }
        Err(Error::DataMismatch {
            name: self.name.clone(),
            events: self.events,
            nodes: self.nodes,
            found_events: stream.len(),
            found_nodes: stream.n_nodes(),
        })
    }
}

fn fingerprint(stream: &EventStream, n_events: usize, n_nodes: usize) -> String {
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
    hash.finalize().iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes everything");
        text
    })
}
