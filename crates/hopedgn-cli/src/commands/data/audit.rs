//! `hopedgn data audit`: what a dataset and a protocol give away.

mod html;
mod tables;
mod text;

use std::path::PathBuf;

use clap::Args;
use ctdg::audit::{Audit, AuditOptions, BATCH, Verdict};
use ctdg::event::EventStream;
use ctdg::split::{MASK_SEED, SplitMode, SplitRule};
use ctdg::time::TimeFormat;
use serde::Serialize;

use crate::commands::data::split::ModeArg;
use crate::commands::data_args::ReadArgs;
use crate::commands::new_file::{Force, check_writable, refuse_input};
use crate::output::{Outcome, Output};
use crate::plural::count;
use crate::progress;

/// Find out what a dataset and its evaluation protocol give away, before any model is trained
///
/// Measures what a score reaches without knowing who meets whom: by the padded length of a batch, by events of the same
/// moment in earlier batches, by "never met" against past pairs, by times rounded to f32. Then ties, duplicates,
/// self-loops, repeats, new nodes, drift and gaps, and every untrained heuristic under each protocol. The worst finding
/// comes first, each with what to do about it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hopedgn data audit collegemsg
  hopedgn data audit events.csv --out audit.html --json
  hopedgn data audit events.csv --strict --length 32      exit status 1 if there is a leak")]
pub(crate) struct AuditArgs {
    /// A bundled or fetched dataset (see `hopedgn data list`), or a file
    #[arg(value_name = "D")]
    data: String,
    /// Also write the report to this HTML file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    /// Exit with status 1 if there is a leak
    #[arg(long)]
    strict: bool,
    /// How masked nodes are drawn
    #[arg(long, value_enum, default_value_t = ModeArg::Dyglib)]
    mode: ModeArg,
    /// Seed of the masked nodes
    #[arg(long, default_value_t = MASK_SEED)]
    mask_seed: u32,
    /// Events of an evaluation batch
    #[arg(long, value_name = "N", default_value_t = BATCH as u64, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    batch: u64,
    /// Longest sequence of the model, the node itself included; all published ones unless given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    length: Option<u32>,
    /// Tokens of a patch of such a sequence
    #[arg(long, value_name = "N", requires = "length", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    patch: u32,
    #[command(flatten)]
    read: ReadArgs,
}

/// The document.
#[derive(Serialize)]
struct Report {
    data: String,
    mode: SplitMode,
    /// Whether times are numbers or dates.
    time_format: TimeFormat,
    #[serde(flatten)]
    audit: Audit,
}

pub(crate) fn run(args: &AuditArgs, output: &Output) -> anyhow::Result<Outcome> {
    if let Some(path) = &args.out {
        if let Some(input) = args.read.file_of(&args.data)? {
            refuse_input(path, &input)?;
        }
        check_writable(path)?;
        args.force.check(path)?;
    }
    let events = args.read.load(&args.data, output)?;
    let stream: &EventStream = &events;
    let split = SplitRule::of(stream, args.mode.into(), args.mask_seed)?.apply(stream)?;
    let bar = progress::steps(output, "auditing", 0);
    let report_progress = |done: usize, total: usize| {
        bar.set_length(total as u64);
        bar.set_position(done as u64);
    };
    let audit = Audit::of(stream, &split, &args.options(), &report_progress);
    bar.finish_and_clear();
    let report = Report {
        data: events.name().to_owned(),
        mode: args.mode.into(),
        time_format: stream.time_format(),
        audit: audit?,
    };
    if let Some(path) = &args.out {
        ctdg::dataset::write_file(path, html::page(&report))?;
        output.remark(format_args!("report written to {}", path.display()));
    }
    output.answer(&report, &report)?;
    let has_leak = report.audit.count(Verdict::Leak) > 0;
    Ok(if args.strict && has_leak { Outcome::FellShort } else { Outcome::Done })
}

impl AuditArgs {
    fn options(&self) -> AuditOptions {
        let default = AuditOptions::default();
        AuditOptions {
            batch: usize::try_from(self.batch).unwrap_or(usize::MAX),
            padding: self.length.map_or(default.padding, |length| vec![(length as usize, self.patch as usize)]),
        }
    }
}

impl Report {
    /// e.g. `2 leaks, 1 note, 9 ok`.
    fn verdicts(&self) -> String {
        let [leaks, notes, ok] = [Verdict::Leak, Verdict::Note, Verdict::Ok].map(|verdict| self.audit.count(verdict));
        format!("{}, {}, {ok} ok", count(leaks, "leak"), count(notes, "note"))
    }

    /// What was audited, in a line.
    fn subject(&self) -> String {
        let counts = &self.audit.counts;
        format!(
            "{}, {}; split {}; {} in batches of {}",
            count(counts.events, "event"),
            count(counts.nodes, "node"),
            self.mode.as_str(),
            count(counts.parts[2].events, "test event"),
            hopedgn::fmt::grouped(self.audit.batch),
        )
    }

    /// A time as the data writes it.
    fn time(&self, time: f64) -> String {
        self.time_format.show(time)
    }

    /// A duration: in words where the data has dates, whose unit is known.
    fn duration(&self, duration: f64) -> String {
        const DAY: f64 = 86_400.0;
        match self.time_format {
            TimeFormat::Date if duration >= 2.0 * DAY => format!("{} days", hopedgn::fmt::fixed(duration / DAY, 1)),
            TimeFormat::Date => hopedgn::fmt::duration(duration),
            TimeFormat::Number => hopedgn::fmt::span(duration),
        }
    }
}
