//! `hopedgn data info`: what a data set looks like.

use std::fmt::{self, Display};

use clap::Args;
use ctdg::split::{MASK_SEED, SplitMode, SplitRule};
use ctdg::summary::{Distribution, Summary};
use serde::Serialize;

use crate::commands::data::split::SplitSizes;
use crate::commands::data_args::Input;
use crate::output::{Outcome, Output};
use hopedgn::fmt::{grouped, time};

/// Show what a data set looks like: counts, times, repeats, degrees, split sizes
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hopedgn data info collegemsg\n  hopedgn data info events.tsv --src from --dst to --json"
)]
pub(crate) struct Info {
    #[command(flatten)]
    input: Input,
}

#[derive(Serialize)]
struct Report {
    data: String,
    #[serde(flatten)]
    summary: Summary,
    split: SplitSizes,
    load_seconds: f64,
}

pub(crate) fn run(args: &Info, output: &Output) -> anyhow::Result<Outcome> {
    let loaded = args.input.load(output)?;
    let stream = &loaded.stream;
    let split = SplitRule::of(stream, SplitMode::Dyglib, MASK_SEED)?.apply(stream)?;
    let report = Report {
        summary: Summary::of(stream),
        split: SplitSizes::of(stream, &split),
        data: loaded.name,
        load_seconds: loaded.seconds,
    };
    output.answer(&report, &report)?;
    Ok(Outcome::Done)
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { time_range: [first, last], .. } = self.summary;
        let s = &self.summary;
        let bipartite = if s.bipartite { "bipartite" } else { "not bipartite" };
        let percent = |part: usize| 100.0 * part as f64 / s.events.max(1) as f64;
        writeln!(f, "{}", self.data)?;
        writeln!(
            f,
            "  nodes       {}  ({} sources, {} destinations, {bipartite})",
            grouped(s.nodes),
            grouped(s.sources),
            grouped(s.destinations),
        )?;
        writeln!(f, "  events      {}", grouped(s.events))?;
        writeln!(f, "  time        {} to {}, {} distinct", time(first), time(last), grouped(s.distinct_times))?;
        writeln!(
            f,
            "  repeats     {:.1} % of events repeat a pair ({} distinct pairs); {} equal an earlier event in time too",
            100.0 * s.repeat_share,
            grouped(s.distinct_pairs),
            grouped(s.duplicates),
        )?;
        writeln!(
            f,
            "  ties        {} events ({:.1} %) share the time of the one before",
            grouped(s.ties),
            percent(s.ties)
        )?;
        writeln!(f, "  self-loops  {} ({:.1} %)", grouped(s.self_loops), percent(s.self_loops))?;
        writeln!(
            f,
            "  features    edge {}, node {}; {} events with a label",
            width(s.edge_features),
            width(s.node_features),
            grouped(s.labelled),
        )?;
        write_distribution(f, "degree", "events per node", &s.degree)?;
        write_distribution(f, "history", "events an endpoint has behind it", &s.history)?;
        write!(f, "\n{}", self.split)
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
    for (bin, &count) in d.histogram.iter().enumerate() {
        let range = match bin {
            0 => "0".to_owned(),
            1 => "1".to_owned(),
            _ => format!("{}–{}", grouped(1u64 << (bin - 1)), grouped((1u64 << bin) - 1)),
        };
        // A count that is not zero always shows.
        let bar = "█".repeat(usize::try_from((count * WIDEST).div_ceil(largest)).unwrap_or(0));
        writeln!(f, "  {range:>17} │{bar} {}", grouped(count))?;
    }
    Ok(())
}
