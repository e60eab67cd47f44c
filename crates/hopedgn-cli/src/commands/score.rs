//! `hopedgn score`: how likely each of some pairs is, and why.

pub(crate) mod out;
mod pairs;
mod remarks;
pub(crate) mod rows;

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use hopedgn::fmt::grouped;
use hopedgn::{Explanation, ModelRegistry};
use serde_json::json;

use crate::commands::new_file::{Force, refuse_input};
use crate::commands::run_args::{OtherEvents, RunArgs};
use crate::commands::time_arg::parse_flag;
use crate::output::{Outcome, Output};
use crate::plural::count;
use crate::progress;
use out::OutFormat;
use pairs::PairsArgs;
use remarks::remark_on;
use rows::{Id, Scores};

/// Score pairs with a trained model: how likely each is to interact at its time
///
/// A score is between 0 and 1, the higher the likelier. With `train.objective = "intensity"` it is the probability that the next
/// partner of the source is the destination; beside it stand the intensity of the pair and the lift over chance.
///
/// A file of pairs has the columns source, destination and optionally time, under the names that the data's file has or usual
/// ones, or in this order without names. All other columns are kept beside the score. A time is written as in the data: a number
/// or a date.
///
/// An id that is not in the data is scored as a new node without history; `known` says which ids are, and --strict refuses others.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hopedgn score runs/mine --pairs pairs.csv --at 1700000000
  hopedgn score runs/mine --pairs pairs.csv --at '2024-01-31 12:00' --strict
  hopedgn score runs/mine --pairs pairs.parquet --out scores.parquet
  echo 42,77 | hopedgn score runs/mine --pairs - --explain")]
pub(crate) struct Score {
    #[command(flatten)]
    pairs: PairsArgs,
    /// The query time of all pairs without one, a number or a date as in the data [default: just after the last event]
    #[arg(long, value_name = "T", allow_hyphen_values = true)]
    at: Option<String>,
    /// Explain each score: what connects the two nodes, and the events that changed it most
    #[arg(long)]
    explain: bool,
    /// Refuse ids that are not in the data
    #[arg(long)]
    strict: bool,
    /// Write the scores to a file: .csv, .tsv, .jsonl, .ndjson (each also with .gz or .zst) or .parquet
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    run: RunArgs,
}

impl Score {
    /// The file to write and its format, if it may be written.
    fn out(&self) -> anyhow::Result<Option<OutFormat>> {
        let Some(out) = &self.out else { return Ok(None) };
        let format = OutFormat::of_path(out)?;
        anyhow::ensure!(
            !self.explain || format == OutFormat::JsonLines,
            "found --explain with {}, expected a file that can hold explanations; name one that ends in .jsonl",
            out.display()
        );
        if let Some(input) = self.pairs.file() {
            refuse_input(out, input)?;
        }
        self.force.check(out)?;
        Ok(Some(format))
    }
}

pub(crate) fn run(args: &Score, registry: &ModelRegistry, output: &Output) -> anyhow::Result<Outcome> {
    let out = args.out()?;
    let predictor = args.run.load(OtherEvents::Allowed, registry, output)?;
    if args.explain {
        predictor.check_explains()?;
    }
    let events = predictor.events();
    if let (Some(out), Some(data)) = (&args.out, events.file()) {
        refuse_input(out, data)?;
    }
    let at = args.at.as_deref().map(|text| parse_flag("--at", text, events)).transpose()?;
    let pairs = args.pairs.read(events, at, args.strict)?;
    remark_on(&pairs, events, output);

    let queries = pairs.named.queries();
    let bar = progress::steps(output, "scoring", queries.len() as u64);
    let predictions = predictor.predictions(queries, &mut |n| bar.inc(n as u64))?;
    bar.finish_and_clear();
    let mut explanations: Vec<Explanation<Id>> = Vec::new();
    if args.explain {
        let bar = progress::steps(output, "explaining", queries.len() as u64);
        for &query in queries {
            let explanation = predictor.explain_query(query)?;
            explanations.push(explanation.map_nodes(|node| Id::of(pairs.named.name(node), events)));
            bar.inc(1);
        }
        bar.finish_and_clear();
    }
    let explanations = args.explain.then_some(&explanations);
    let scores = Scores { pairs: &pairs, events, predictions: &predictions, explanations };
    let (Some(out), Some(format)) = (&args.out, out) else {
        output.answer_data(|out| scores.write_text(out), &scores)?;
        return Ok(Outcome::Done);
    };
    // It may have appeared while the model computed.
    args.force.check(out)?;
    scores.write_file(out, format)?;
    let bytes = std::fs::metadata(out).with_context(|| out.display().to_string())?.len();
    let unknown = pairs.n_unknown();
    let of_them = match unknown {
        0 => String::new(),
        n => format!(", {} of them with a node that is not in the data", grouped(n)),
    };
    let text = format!("{}: {}{of_them}\n", out.display(), count(scores.len(), "pair"));
    let json = json!({ "out": out.display().to_string(), "pairs": scores.len(), "unknown": unknown, "bytes": bytes });
    output.answer(text, &json)?;
    Ok(Outcome::Done)
}
