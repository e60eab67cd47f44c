//! `hopedgn score`: how likely each of some pairs is to meet, and why.

mod pairs;

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use ctdg::event::{EventStream, NodeId};
use ctdg::mite::{PairQuery, Side};
use ctdg::store::Store;
use hopedgn::Weights;
use hopedgn::collate::FeatureTables;
use hopedgn::explain::{self, Explanation, TokenEffect, explain, sigmoid};
use hopedgn::predict::{Past, answer};
use hopedgn::run::TrainedModel;
use serde::Serialize;
use serde_json::{Value, json};

use crate::commands::run_args::{Opened, RunArgs};
use crate::output::{Outcome, Output};
use crate::progress;
use hopedgn::fmt::{span, time};
use pairs::Pairs;

/// Score pairs with a trained model: the probability that each meets at its time
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hopedgn score runs/mine --pairs pairs.csv --at 1700000000
  echo 42,77 | hopedgn score runs/mine --pairs - --explain

A file of pairs has the columns source, destination and, if it likes, time.")]
pub(crate) struct Score {
    #[command(flatten)]
    of: RunArgs,
    /// CSV of pairs, or `-` for stdin
    #[arg(long, value_name = "FILE")]
    pairs: PathBuf,
    /// The time asked about, for all pairs without one [default: just after the last event]
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    at: Option<f64>,
    /// Say for each pair what both nodes have in common and which events moved the score most
    #[arg(long)]
    explain: bool,
}

/// Events named in an explanation.
const MOST_NAMED: usize = 5;

#[derive(Debug, Serialize)]
struct Answer {
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

pub(crate) fn run(args: &Score, output: &Output) -> anyhow::Result<Outcome> {
    if let Some(at) = args.at.filter(|at| !at.is_finite()) {
        anyhow::bail!("found --at {at}, expected a finite time");
    }
    let Opened { folder, config, manifest, loaded } = args.of.open(output)?;
    let device = args.of.device.open_for(&config.model, output)?;
    let stream = &loaded.stream;
    match (manifest.data.check(stream), &args.of.data) {
        (Err(_), Some(data)) => {
            output.remark(format_args!("{data} does not begin with the events that the run was trained on"));
        }
        (check, _) => check?,
    }
    let tables = FeatureTables::of(stream)?;
    let TrainedModel { model, parameters, memory } = folder.model(&config, tables.widths())?;
    let store = Store::build(stream)?;
    if args.explain {
        explain::check(&*model)?;
    }
    let weights = Weights::new(&device, parameters)?;
    // The next number above the last time: strictly before it lies every event.
    let default_time = args.at.or_else(|| stream.times().last().map(|last| last.next_up())).unwrap_or(0.0);
    let pairs = Pairs::read(&args.pairs, stream, default_time)?;
    if !pairs.unknown.is_empty() {
        let shown: Vec<&str> = pairs.unknown.iter().take(5).map(String::as_str).collect();
        output.remark(format_args!(
            "{} nodes are not in the data and have no past ({}{})",
            pairs.unknown.len(),
            shown.join(", "),
            if shown.len() < pairs.unknown.len() { ", …" } else { "" }
        ));
    }
    let bar = progress::steps(output, "scoring", pairs.queries.len() as u64);
    let mut done = |n: usize| bar.inc(n as u64);
    let past = Past { stream, remembered: memory.as_ref(), store: &store, tables: &tables, batch: config.train.batch };
    let logits = answer(&past, &*model, &weights, &pairs.queries, &mut done)?;
    let mut rows = Vec::with_capacity(pairs.queries.len());
    for ((query, [src, dst]), logit) in pairs.queries.iter().zip(&pairs.names).zip(logits) {
        let mut row = Row {
            src: id(src, stream),
            dst: id(dst, stream),
            time: query.time,
            score: sigmoid(logit),
            explanation: None,
            words: None,
        };
        if args.explain {
            let explanation = explain(&*model, &weights, &tables, &store, *query)?;
            let words = Words { explanation: &explanation, query, names: [src, dst], pairs: &pairs, stream };
            row.explanation = Some(words.json());
            row.words = Some(words.text());
        }
        rows.push(row);
    }
    bar.finish_and_clear();
    let answer = Answer { scores: rows };
    output.answer(text(&answer, &pairs), &answer)?;
    Ok(Outcome::Done)
}

fn text(answer: &Answer, pairs: &Pairs) -> String {
    let mut text = String::from("src,dst,time,score\n");
    for (row, [src, dst]) in answer.scores.iter().zip(&pairs.names) {
        let _ = writeln!(text, "{},{},{},{:.6}", quoted(src), quoted(dst), time(row.time), row.score);
        if let Some(words) = &row.words {
            text += words;
        }
    }
    text
}

/// The newest few of `times`, and how many more there are.
fn newest(times: &[f64]) -> String {
    const MOST: usize = 4;
    let mut shown: Vec<String> = times.iter().take(MOST).map(|&at| time(at)).collect();
    if times.len() > MOST {
        shown.push(format!("and {} times before", times.len() - MOST));
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

/// An explanation for a person and for a program.
struct Words<'a> {
    explanation: &'a Explanation,
    query: &'a PairQuery,
    names: [&'a String; 2],
    pairs: &'a Pairs,
    stream: &'a EventStream,
}

impl Words<'_> {
    fn name(&self, node: NodeId) -> String {
        if node.index() < self.stream.n_nodes() {
            self.stream.names().name(node)
        } else {
            self.pairs.unknown[node.index() - self.stream.n_nodes()].clone()
        }
    }

    fn text(&self) -> String {
        let Explanation { met, common, effects, .. } = self.explanation;
        let [src, dst] = self.names;
        let mut text = String::new();
        let _ = match met.as_slice() {
            [] => writeln!(text, "  {src} and {dst} have not met within the {} events looked at.", effects.len()),
            met => writeln!(text, "  {src} and {dst} have met: {}.", newest(met)),
        };
        if common.is_empty() {
            let _ = writeln!(text, "  They have no common past neighbour.");
        } else {
            let _ = writeln!(text, "  Common past neighbours: {}.", common.len());
        }
        for neighbor in common.iter().take(MOST_NAMED) {
            let (with_src, with_dst) = (newest(&neighbor.with_src), newest(&neighbor.with_dst));
            let _ =
                writeln!(text, "    {}: with {src} at {with_src}; with {dst} at {with_dst}", self.name(neighbor.node));
        }
        if effects.is_empty() {
            let _ = writeln!(text, "  Neither has a past: the score is what the model gives to strangers.");
        } else {
            let _ = writeln!(text, "  What moved the score most, by leaving out one event at a time:");
        }
        for effect in effects.iter().take(MOST_NAMED) {
            let _ = writeln!(text, "    {}", self.effect(effect));
        }
        text
    }

    fn effect(&self, effect: &TokenEffect) -> String {
        let verb = if effect.change >= 0.0 { "raised" } else { "lowered" };
        let whose = self.names[effect.side as usize];
        let (met, age) = (self.name(effect.node), span(self.query.time - effect.time));
        format!("{verb} by {:.4}: {whose} met {met} at {}, {age} before", effect.change.abs(), time(effect.time))
    }

    fn json(&self) -> Value {
        let node = |node: NodeId| id(&self.name(node), self.stream);
        let Explanation { met, common, effects, .. } = self.explanation;
        let common: Vec<Value> = common
            .iter()
            .map(|c| json!({ "node": node(c.node), "with_src": c.with_src, "with_dst": c.with_dst }))
            .collect();
        let effects: Vec<Value> = effects
            .iter()
            .map(|effect| {
                let side = if effect.side == Side::Src { "src" } else { "dst" };
                json!({ "side": side, "node": node(effect.node), "time": effect.time, "change": effect.change })
            })
            .collect();
        json!({ "met": met, "common_neighbors": common, "effects": effects })
    }
}
