//! `hopedgn recommend`: the likeliest destinations of a source, and why.

mod answer;
mod sources;

use std::path::PathBuf;

use clap::Args;
use hopedgn::predict::{Destinations, ScoreMeaning};
use hopedgn::{Candidates, ModelRegistry, RecommendOptions};
use serde_json::json;

use crate::commands::new_file::{Force, refuse_input};
use crate::commands::run_args::{OtherEvents, RunArgs};
use crate::commands::score::out::OutFormat;
use crate::commands::time_arg::parse_flag;
use crate::output::{Outcome, Output};
use crate::plural::count;
use crate::progress;
use answer::{Answers, OfSource};
use sources::SourcesArgs;

/// Recommend destinations: whom a source meets next, the likeliest first
///
/// Candidates are all destinations seen before the query time, except the source itself in data where no node meets itself. With
/// `train.objective = "intensity"` each has the probability that it is the next partner; otherwise a score that only ranks.
///
/// A source that is not in the data is ranked as a new node without history; --strict refuses it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hopedgn recommend runs/mine 42 --top 10
  hopedgn recommend runs/mine alice bob --exclude-seen --explain
  hopedgn recommend runs/mine 42 --at '2024-01-31 12:00' --json
  hopedgn recommend runs/mine --sources users.txt --out recommendations.csv")]
pub(crate) struct Recommend {
    #[command(flatten)]
    sources: SourcesArgs,
    /// Destinations for each source
    #[arg(long, value_name = "K", default_value_t = 10, value_parser = parse_top)]
    top: usize,
    /// Leave out destinations that the source has met before
    #[arg(long)]
    exclude_seen: bool,
    /// The query time, a number or a date as in the data [default: just after the last event]
    #[arg(long, value_name = "T", allow_hyphen_values = true)]
    at: Option<String>,
    /// Say why: how often and when the two met, and how busy the destination is
    #[arg(long)]
    explain: bool,
    /// Write the recommendations to a file: .csv, .tsv, .jsonl, .ndjson (each also with .gz or .zst) or .parquet
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    run: RunArgs,
}

fn parse_top(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&top| top > 0).ok_or_else(|| "expected a number of at least 1".to_owned())
}

impl Recommend {
    /// The file to write and its format, if it may be written.
    fn out(&self) -> anyhow::Result<Option<OutFormat>> {
        let Some(out) = &self.out else { return Ok(None) };
        let format = OutFormat::of_path(out)?;
        if let Some(input) = self.sources.file() {
            refuse_input(out, input)?;
        }
        self.force.check(out)?;
        Ok(Some(format))
    }
}

pub(crate) fn run(args: &Recommend, registry: &ModelRegistry, output: &Output) -> anyhow::Result<Outcome> {
    let out = args.out()?;
    let predictor = args.run.load(OtherEvents::Allowed, registry, output)?;
    let events = predictor.events();
    if let (Some(out), Some(data)) = (&args.out, events.file()) {
        refuse_input(out, data)?;
    }
    let sources = args.sources.read(events, output)?;
    let time = args.at.as_deref().map(|text| parse_flag("--at", text, events)).transpose()?;
    let time = time.unwrap_or_else(|| events.end());
    let mut destinations = Destinations::new(events);
    destinations.advance(events.cut(time));
    if let (true, Some(&first)) = (destinations.is_empty(), events.times().first()) {
        let show = |time| events.time_format().show(time);
        let (asked, first) = (show(time), show(first));
        output.remark(format_args!(
            "nothing happened before {asked}, so there is no destination: the first event is at {first}"
        ));
    }

    let (top, exclude_seen) = (args.top, args.exclude_seen);
    let options = RecommendOptions { time, top, exclude_seen, reasons: args.explain, candidates: Candidates::All };
    let bar = progress::steps(output, "scoring", (sources.len() * destinations.len()) as u64);
    let mut of_sources = Vec::with_capacity(sources.len());
    for src in sources {
        let items = predictor.recommend_with(&src, &options, &mut |n| bar.inc(n as u64))?;
        of_sources.push(OfSource { src, items });
    }
    bar.finish_and_clear();
    let is_probability = predictor.score_meaning()? != ScoreMeaning::Separation;
    let answers = Answers { events, time, is_probability, is_list: args.sources.is_list(), of_sources };
    let (Some(out), Some(format)) = (&args.out, out) else {
        output.answer(&answers, &answers.json())?;
        return Ok(Outcome::Done);
    };
    // It may have appeared while the model computed.
    args.force.check(out)?;
    answers.write_file(out, format)?;
    let (n_sources, n_items) = (answers.of_sources.len(), answers.n_items());
    let text = format!("{}: {} for {}\n", out.display(), count(n_items, "recommendation"), count(n_sources, "source"));
    let json = json!({ "out": out.display().to_string(), "sources": n_sources, "recommendations": n_items });
    output.answer(text, &json)?;
    Ok(Outcome::Done)
}
