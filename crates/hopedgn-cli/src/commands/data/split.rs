//! `hopedgn data split`: the parts of the link-prediction protocol.

use std::fmt::{self, Display};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use ctdg::event::{EventId, EventStream, NodeId};
use ctdg::split::{MASK_SEED, Split, SplitMode, SplitRule, n_nodes_of};
use ctdg::time::TimeFormat;
use hopedgn::file_format::to_document;
use serde::Serialize;

use crate::commands::data_args::ReadArgs;
use crate::commands::new_file::{Force, refuse_input};
use crate::output::{Outcome, Output};
use crate::plural::count;
use hopedgn::fmt::grouped;

/// Split a dataset by time into train, validation and test, with some nodes masked from training
///
/// Validation starts at the 0.70 quantile of the event times, test at 0.85. A tenth of the nodes is masked: their events are
/// removed from training. Sums and hashes use DyGLib's numbering: nodes in the sorted order of their ids, from 1.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hopedgn data split collegemsg --mode portable --json")]
pub(crate) struct SplitArgs {
    /// A bundled or fetched dataset (see `hopedgn data list`), or a file
    #[arg(value_name = "D")]
    data: String,
    /// How masked nodes are drawn
    #[arg(long, value_enum, default_value_t = ModeArg::Dyglib)]
    mode: ModeArg,
    /// Seed of the masked nodes
    #[arg(long, default_value_t = MASK_SEED)]
    mask_seed: u32,
    /// Also write the split rule (times and masked nodes) to this JSON file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    read: ReadArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ModeArg {
    /// The same nodes as DyGLib
    Dyglib,
    /// Drawn with this program's own generator
    Portable,
    /// None, as in TGB
    Tgb,
}

impl From<ModeArg> for SplitMode {
    fn from(mode: ModeArg) -> Self {
        match mode {
            ModeArg::Dyglib => Self::Dyglib,
            ModeArg::Portable => Self::Portable,
            ModeArg::Tgb => Self::Tgb,
        }
    }
}

/// Sizes of all parts.
#[derive(Debug, Serialize)]
pub(crate) struct SplitSizes {
    mode: SplitMode,
    val_time: f64,
    test_time: f64,
    /// The same as dates, where the input has dates.
    #[serde(skip_serializing_if = "Option::is_none")]
    val_date: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    test_date: Option<String>,
    #[serde(skip)]
    time_format: TimeFormat,
    masked: Masked,
    train: usize,
    val: usize,
    test: usize,
    new_node_val: usize,
    new_node_test: usize,
    new_nodes: usize,
    nodes: NodeCounts,
    node_classification: NodeParts,
}

/// Events of the parts for node classification: the same times, no masking.
#[derive(Debug, Serialize)]
struct NodeParts {
    train: usize,
    val: usize,
    test: usize,
}

#[derive(Debug, Serialize)]
struct Masked {
    count: usize,
    sum: u64,
    sha256: String,
}

/// Distinct nodes in each part.
#[derive(Debug, Serialize)]
struct NodeCounts {
    train: usize,
    val: usize,
    test: usize,
    new_node_val: usize,
    new_node_test: usize,
}

pub(crate) fn run(args: &SplitArgs, output: &Output) -> anyhow::Result<Outcome> {
    if let Some(path) = &args.out {
        if let Some(input) = args.read.file_of(&args.data)? {
            refuse_input(path, &input)?;
        }
        args.force.check(path)?;
    }
    let events = args.read.load(&args.data, output)?;
    let rule = SplitRule::of(&events, args.mode.into(), args.mask_seed)?;
    let split = rule.apply(&events)?;
    if let Some(path) = &args.out {
        ctdg::dataset::write_file(path, to_document(&rule)?)?;
        output.remark(format_args!("split rule written to {}", path.display()));
    }
    let sizes = SplitSizes::of(&events, &split);
    output.answer(&sizes, &sizes)?;
    Ok(Outcome::Done)
}

impl SplitSizes {
    pub(crate) fn of(stream: &EventStream, split: &Split) -> Self {
        let nodes = |events: &[EventId]| n_nodes_of(stream, events);
        let by_node = split.for_nodes();
        let time_format = stream.time_format();
        let date = |time: f64| (time_format == TimeFormat::Date).then(|| time_format.show(time));
        Self {
            val_date: date(split.rule.val_time),
            test_date: date(split.rule.test_time),
            time_format,
            mode: split.rule.mode,
            val_time: split.rule.val_time,
            test_time: split.rule.test_time,
            masked: Masked::of(&split.rule.masked),
            train: split.train.len(),
            val: split.val.len(),
            test: split.test.len(),
            new_node_val: split.new_node_val.len(),
            new_node_test: split.new_node_test.len(),
            new_nodes: split.new_nodes.len(),
            nodes: NodeCounts {
                train: nodes(&split.train),
                val: nodes(&split.val),
                test: nodes(&split.test),
                new_node_val: nodes(&split.new_node_val),
                new_node_test: nodes(&split.new_node_test),
            },
            node_classification: NodeParts {
                train: by_node.train.len(),
                val: by_node.val.len(),
                test: by_node.test.len(),
            },
        }
    }
}

impl Masked {
    fn of(nodes: &[NodeId]) -> Self {
        let fingerprint = ctdg::split::fingerprint(nodes);
        Self { count: nodes.len(), sum: fingerprint.sum, sha256: fingerprint.sha256 }
    }
}

impl Display for SplitSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = self.mode.as_str();
        let [val, test] = [self.val_time, self.test_time].map(|time| self.time_format.show(time));
        writeln!(f, "  split ({mode}): validation after {val}, test after {test}")?;
        for (name, events, nodes) in [
            ("train", self.train, self.nodes.train),
            ("val", self.val, self.nodes.val),
            ("test", self.test, self.nodes.test),
            ("new-node val", self.new_node_val, self.nodes.new_node_val),
            ("new-node test", self.new_node_test, self.nodes.new_node_test),
        ] {
            writeln!(f, "  {name:>14} {:>17} {:>14}", count(events, "event"), count(nodes, "node"))?;
        }
        let Masked { count: n_masked, sum, sha256 } = &self.masked;
        let short = &sha256[..16.min(sha256.len())];
        writeln!(
            f,
            "  {} (sum {}, sha256 {short}…), {}",
            count(*n_masked, "masked node"),
            grouped(*sum),
            count(self.new_nodes, "new node")
        )
    }
}
