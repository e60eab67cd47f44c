//! `hopedgn score`: the probability of each of some pairs, and why.

mod pairs;

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use ctdg::event::EventStream;
use ctdg::mite::{PairQuery, Side};
use hopedgn::explain::{CommonNeighbor, EventEffect};
use hopedgn::fmt::{span, time};
use hopedgn::predict::sigmoid;
use hopedgn::{Explanation, ModelRegistry};
use serde::Serialize;
use serde_json::{Value, json};

use crate::commands::run_args::{OtherEvents, RunArgs};
use crate::output::{Outcome, Output};
use crate::plural::count;
use crate::progress;
use pairs::Pairs;

/// Score pairs with a trained model: the probability that each interacts at its time
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hopedgn score runs/mine --pairs pairs.csv --at 1700000000
  echo 42,77 | hopedgn score runs/mine --pairs - --explain

A file of pairs has the columns source, destination and optionally a time.")]
pub(crate) struct Score {
    /// CSV of pairs, or `-` for stdin
    #[arg(long, value_name = "FILE")]
    pairs: PathBuf,
    /// The query time of all pairs without one [default: just after the last event]
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    at: Option<f64>,
    /// Explain each score: common past neighbours, and the events that changed it most
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    run: RunArgs,
}

/// Events named in an explanation.
const MAX_SHOWN: usize = 5;

#[derive(Debug, Serialize)]
struct Scores {
    scores: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    src: Value,
    dst: Value,
    time: f64,
    score: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<Value>,
    #[serde(skip)]
    words: Option<String>,
}

pub(crate) fn run(args: &Score, registry: &ModelRegistry, output: &Output) -> anyhow::Result<Outcome> {
    if let Some(at) = args.at.filter(|at| !at.is_finite()) {
        anyhow::bail!("found --at {at}, expected a finite time");
    }
    let predictor = args.run.load(OtherEvents::Allowed, registry, output)?;
    if args.explain {
        predictor.check_explains()?;
    }
    let events = predictor.events();
    let pairs = Pairs::read(&args.pairs, events, args.at.unwrap_or_else(|| events.end()))?;
    let unknown = pairs.named.unknown();
    if !unknown.is_empty() {
        let shown: Vec<&str> = unknown.iter().take(5).map(String::as_str).collect();
        let more = if shown.len() < unknown.len() { ", …" } else { "" };
        let verb = if unknown.len() == 1 { "is" } else { "are" };
        let (nodes, shown) = (count(unknown.len(), "node"), shown.join(", "));
        output.remark(format_args!("{nodes} {verb} not in the data and scored without a history ({shown}{more})"));
    }
    let queries = pairs.named.queries();
    let bar = progress::steps(output, "scoring", queries.len() as u64);
    let logits = predictor.logits_with_progress(queries, &mut |n| bar.inc(n as u64))?;
    let mut rows = Vec::with_capacity(queries.len());
    for ((&query, [src, dst]), logit) in queries.iter().zip(&pairs.ids).zip(logits) {
        let mut row = Row {
            src: id(src, events),
            dst: id(dst, events),
            time: query.time,
            score: sigmoid(logit),
            explanation: None,
            words: None,
        };
        if args.explain {
            let explanation = predictor.explain_query(query)?.map_nodes(|node| pairs.named.name(node));
            let shown = Shown { explanation: &explanation, query, ids: [src, dst], events };
            row.explanation = Some(shown.json());
            row.words = Some(shown.text());
        }
        rows.push(row);
    }
    bar.finish_and_clear();
    let scores = Scores { scores: rows };
    output.answer_data(text(&scores, &pairs), &scores)?;
    Ok(Outcome::Done)
}

fn text(scores: &Scores, pairs: &Pairs<'_>) -> String {
    let mut text = String::from("src,dst,time,score\n");
    for (row, [src, dst]) in scores.scores.iter().zip(&pairs.ids) {
        let _ = writeln!(text, "{},{},{},{:.6}", quoted(src), quoted(dst), time(row.time), row.score);
        if let Some(words) = &row.words {
            text += words;
        }
    }
    text
}

/// The newest few of `times`, and how many more there are.
fn newest(times: &[f64]) -> String {
    const SHOWN: usize = 4;
    let mut shown: Vec<String> = times.iter().take(SHOWN).map(|&at| time(at)).collect();
    if times.len() > SHOWN {
        shown.push(format!("and {} earlier", times.len() - SHOWN));
    }
    shown.join(", ")
}

/// A name as a field of CSV.
fn quoted(name: &str) -> String {
    if name.contains([',', '"', '\n']) { format!("\"{}\"", name.replace('"', "\"\"")) } else { name.to_owned() }
}

/// A number where the data's own ids are numbers.
fn id(name: &str, stream: &EventStream) -> Value {
    let number = if stream.names().is_text() { None } else { name.parse::<u64>().ok() };
    let number = number.filter(|number| number.to_string() == name);
    number.map_or_else(|| json!(name), |number| json!(number))
}

/// An explanation as text and as JSON.
struct Shown<'a> {
    explanation: &'a Explanation<String>,
    query: PairQuery,
    ids: [&'a String; 2],
    events: &'a EventStream,
}

impl Shown<'_> {
    fn text(&self) -> String {
        let Explanation { pair_times, common, effects, .. } = self.explanation;
        let [src, dst] = self.ids;
        let mut text = String::new();
        let _ = match pair_times.as_slice() {
            [] if effects.is_empty() => writeln!(text, "  {src} and {dst} have not interacted before."),
            [] => {
                let seen = count(effects.len(), "event");
                writeln!(text, "  {src} and {dst} have not interacted within the {seen} that the model sees.")
            }
            times => writeln!(text, "  {src} and {dst} have interacted at: {}.", newest(times)),
        };
        let _ = match common.len() {
            0 => writeln!(text, "  They have no common past neighbour."),
            n => writeln!(text, "  Common past neighbours: {n}."),
        };
        for CommonNeighbor { node, src_times, dst_times } in common.iter().take(MAX_SHOWN) {
            let (src_times, dst_times) = (newest(src_times), newest(dst_times));
            let _ = writeln!(text, "    {node}: with {src} at {src_times}; with {dst} at {dst_times}");
        }
        let _ = if effects.is_empty() {
            writeln!(text, "  Neither has a history: this is the model's score for two new nodes.")
        } else {
            writeln!(text, "  Largest effects on the score, leaving out one event at a time:")
        };
        for effect in effects.iter().take(MAX_SHOWN) {
            let _ = writeln!(text, "    {}", self.effect(effect));
        }
        text
    }

    fn effect(&self, effect: &EventEffect<String>) -> String {
        let verb = if effect.change >= 0.0 { "raised" } else { "lowered" };
        let id = self.ids[effect.side as usize];
        let (change, at, age) = (effect.change.abs(), time(effect.time), span(self.query.time - effect.time));
        format!("{verb} by {change:.4}: {id} with {} at {at}, {age} before", effect.node)
    }

    fn json(&self) -> Value {
        let node = |name: &String| id(name, self.events);
        let Explanation { pair_times, common, effects, .. } = self.explanation;
        let common: Vec<Value> = common
            .iter()
            .map(|c| json!({ "node": node(&c.node), "with_src": c.src_times, "with_dst": c.dst_times }))
            .collect();
        let effects: Vec<Value> = effects
            .iter()
            .map(|effect| {
                let side = if effect.side == Side::Src { "src" } else { "dst" };
                json!({ "side": side, "node": node(&effect.node), "time": effect.time, "change": effect.change })
            })
            .collect();
        json!({ "met": pair_times, "common_neighbors": common, "effects": effects })
    }
}
