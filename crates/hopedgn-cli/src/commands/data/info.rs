//! `hopedgn data info`: statistics of a dataset.

use std::fmt::{self, Display};
use std::time::Instant;

use clap::Args;
use ctdg::event::EventStream;
use ctdg::split::{MASK_SEED, SplitMode, SplitRule};
use ctdg::summary::{Distribution, Summary};
use ctdg::time::TimeFormat;
use serde::Serialize;

use crate::commands::data::split::SplitSizes;
use crate::commands::data_args::ReadArgs;
use crate::output::{Outcome, Output};
use crate::plural::count;
use hopedgn::fmt::grouped;

/// Show statistics of a dataset: counts, times, repeats, degrees, split sizes
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hopedgn data info collegemsg\n  hopedgn data info events.tsv --src from --dst to --json"
)]
pub(crate) struct Info {
    /// A bundled or fetched dataset (see `hopedgn data list`), or a file
    #[arg(value_name = "D")]
    data: String,
    #[command(flatten)]
    read: ReadArgs,
}

#[derive(Serialize)]
struct Report {
    data: String,
    #[serde(flatten)]
    summary: Summary,
    /// Whether times are numbers or dates.
    time_format: TimeFormat,
    /// First and last time as dates, where the input has dates.
    #[serde(skip_serializing_if = "Option::is_none")]
    date_range: Option<[String; 2]>,
    split: SplitSizes,
    load_seconds: f64,
}

pub(crate) fn run(args: &Info, output: &Output) -> anyhow::Result<Outcome> {
    let start = Instant::now();
    let events = args.read.load(&args.data, output)?;
    let load_seconds = start.elapsed().as_secs_f64();
    let stream: &EventStream = &events;
    let split = SplitRule::of(stream, SplitMode::Dyglib, MASK_SEED)?.apply(stream)?;
    let (summary, time_format) = (Summary::of(stream), stream.time_format());
    let report = Report {
        date_range: (time_format == TimeFormat::Date).then(|| summary.time_range.map(|time| time_format.show(time))),
        time_format,
        summary,
        split: SplitSizes::of(stream, &split),
        data: events.name().to_owned(),
        load_seconds,
    };
    output.answer(&report, &report)?;
    Ok(Outcome::Done)
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { time_range: [first, last], .. } = self.summary;
        let [first, last] = [first, last].map(|time| self.time_format.show(time));
        let s = &self.summary;
        let bipartite = if s.bipartite { "bipartite" } else { "not bipartite" };
        let percent = |part: usize| 100.0 * part as f64 / s.events.max(1) as f64;
        writeln!(f, "{}", self.data)?;
        writeln!(
            f,
            "  nodes       {}  ({}, {}, {bipartite})",
            grouped(s.nodes),
            count(s.sources, "source"),
            count(s.destinations, "destination"),
        )?;
        writeln!(f, "  events      {}", grouped(s.events))?;
        writeln!(f, "  time        {first} to {last}, {} distinct", grouped(s.distinct_times))?;
        write!(f, "  duration    {}", duration(s.duration, self.time_format))?;
        match s.time_step {
            Some(step) => writeln!(f, ", in steps of {}", TimeFormat::Number.show(step))?,
            None => writeln!(f)?,
        }
        if let Some(intensity) = s.intensity {
            let shown =
                if (0.01..1e5).contains(&intensity) { format!("{intensity:.2}") } else { format!("{intensity:.2e}") };
            writeln!(f, "  intensity   {shown} events of a node in a unit of time")?;
        }
        writeln!(
            f,
            "  repeats     {:.1} % of events repeat a pair ({}); {} also repeat its time",
            100.0 * s.repeat_share,
            count(s.distinct_pairs, "distinct pair"),
            grouped(s.duplicates),
        )?;
        if s.exact_duplicates > 0 {
            let repeated = count(s.exact_duplicates, "event");
            writeln!(
                f,
                "  duplicates  {repeated} equal to an earlier one, label and features included; --dedup drops them"
            )?;
        }
        writeln!(
            f,
            "  ties        {} ({:.1} %) with the time of the event before",
            count(s.ties, "event"),
            percent(s.ties)
        )?;
        writeln!(f, "  self-loops  {} ({:.1} %)", grouped(s.self_loops), percent(s.self_loops))?;
        writeln!(
            f,
            "  features    edge {}, node {}; {} with a label",
            width(s.edge_features),
            width(s.node_features),
            count(s.labelled, "event"),
        )?;
        write_distribution(f, "degree", "events per node", &s.degree)?;
        write_distribution(f, "history", "earlier events of an endpoint", &s.history)?;
        write!(f, "\n{}", self.split)
    }
}

/// A duration in the unit of the times, and in one that people count in.
fn duration(duration: f64, format: TimeFormat) -> String {
    const MINUTE: f64 = 60.0;
    const HOUR: f64 = 60.0 * MINUTE;
    const DAY: f64 = 24.0 * HOUR;
    const YEAR: f64 = 365.25 * DAY;
    let units = [(YEAR, "years"), (DAY, "days"), (HOUR, "hours"), (MINUTE, "minutes")];
    let unit = units.into_iter().find(|&(unit, _)| duration >= 2.0 * unit);
    let shown = unit.map(|(unit, name)| format!("{:.1} {name}", duration / unit));
    match (format, shown) {
        (TimeFormat::Date, Some(shown)) => shown,
        (TimeFormat::Date, None) => format!("{duration} seconds"),
        (TimeFormat::Number, Some(shown)) => format!("{} ({shown} if these are seconds)", format.show(duration)),
        (TimeFormat::Number, None) => format.show(duration),
    }
}

fn width(width: usize) -> String {
    if width == 0 { "none".into() } else { width.to_string() }
}

fn write_distribution(f: &mut fmt::Formatter<'_>, name: &str, what: &str, d: &Distribution) -> fmt::Result {
    const WIDEST: u64 = 40;
    let [min, median, p90, max] = [d.min, d.median, d.p90, d.max].map(grouped);
    writeln!(f, "\n  {name}: {what}; min {min}, median {median}, mean {:.1}, 90 % ≤ {p90}, max {max}", d.mean)?;
    let largest = d.histogram.iter().copied().max().unwrap_or(0).max(1);
    for (bin, &n) in d.histogram.iter().enumerate() {
        let range = match bin {
            0 => "0".to_owned(),
            1 => "1".to_owned(),
            _ => format!("{}–{}", grouped(1u64 << (bin - 1)), grouped((1u64 << bin) - 1)),
        };
        // Counts above zero get at least one block.
        let bar = "█".repeat(usize::try_from((n * WIDEST).div_ceil(largest)).unwrap_or(0));
        writeln!(f, "  {range:>17} │{bar} {}", grouped(n))?;
    }
    Ok(())
}
