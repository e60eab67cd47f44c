//! What one size costs, as a row of the table and of the document.

use std::fmt;

use hopedgn::fmt::{fixed, grouped, rate};
use serde::{Deserialize, Serialize};

use super::Report;
use crate::commands::table::Table;
use crate::plural::count;

/// What was measured on one stream.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Size {
    pub(super) events: usize,
    pub(super) nodes: usize,
    pub(super) file_bytes: u64,
    /// Whether the store was mapped from an index instead of built.
    pub(super) mapped: bool,
    /// Reading and verifying the file.
    pub(super) load_seconds: f64,
    /// Building the store of all events.
    pub(super) build_seconds: f64,
    /// All else before a first step: the split, the store of the training events, negatives.
    pub(super) prepare_seconds: f64,
    pub(super) histories_per_second: f64,
    pub(super) pairs_per_second: f64,
    pub(super) tokens_per_pair: f64,
    /// The median.
    pub(super) seconds_per_step: f64,
    /// Of it sampling, MITE and collating, measured alone.
    pub(super) collate_seconds_per_step: f64,
    pub(super) evaluated_events: usize,
    pub(super) evaluate_seconds: f64,
    /// Adjacency, times and pair index of all events.
    pub(super) store_bytes_per_event: f64,
    /// Of the process; pages of the mapped file that are in memory count.
    pub(super) peak_memory: Option<u64>,
}

impl Size {
    /// Seconds of evaluation for each event, with its negative.
    pub(super) fn evaluate_seconds_per_event(&self) -> f64 {
        self.evaluate_seconds / self.evaluated_events.max(1) as f64
    }

    fn row(&self, table: &mut Table) {
        let seconds = |value: f64| fixed(value, if value < 10.0 { 2 } else { 1 });
        let cells = [
            grouped(self.nodes),
            seconds(self.load_seconds),
            seconds(self.build_seconds),
            seconds(self.prepare_seconds),
            rate(self.histories_per_second),
            rate(self.pairs_per_second),
            fixed(self.tokens_per_pair, 1),
            fixed(1e3 * self.seconds_per_step, 1),
            fixed(1e3 * self.collate_seconds_per_step, 2),
            seconds(1e5 * self.evaluate_seconds_per_event()),
            fixed(self.store_bytes_per_event, 1),
            self.peak_memory.map_or("–".to_owned(), |bytes| grouped(bytes >> 20)),
        ];
        table.row(&grouped(self.events), cells);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new([
            "events",
            "nodes",
            "load",
            "build",
            "prepare",
            "histories",
            "pairs",
            "tokens",
            "step",
            "collate",
            "evaluate",
            "store",
            "peak",
        ]);
        table.row(
            "",
            ["", "s", "s", "s", "/s", "/s", "a pair", "ms", "ms", "s/100k", "B/event", "MiB"].map(str::to_owned),
        );
        self.sizes.iter().for_each(|size| size.row(&mut table));
        write!(f, "{table}")?;
        writeln!(
            f,
            "{}, {}, best of {}, median of {}; {} with {}",
            self.processor.as_deref().unwrap_or("unknown processor"),
            count(self.threads, "thread"),
            count(self.repeats as usize, "repetition"),
            count(self.steps as usize, "step"),
            self.model,
            self.settings.join(" ")
        )
    }
}
