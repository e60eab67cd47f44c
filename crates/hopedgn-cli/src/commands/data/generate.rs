//! `hopedgn data generate`: synthetic streams from a seed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use ctdg::dataset::{self, WriteFormat};
use ctdg::event::EventStream;
use ctdg::generate::{InteractionSpec, TasteSpec, Triadic, TriadicSpec};
use serde_json::{Value, json};

use crate::args::parse_bytes;
use crate::commands::data_args::spill_beside;
use crate::commands::new_file::Force;
use crate::output::{Outcome, Output};
use crate::plural::count;

/// Generate a synthetic stream; the same seed gives the same events on every machine
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hopedgn data generate triadic triads.csv --episodes 5000
  hopedgn data generate like-lastfm lastfm.parquet --seed 1")]
pub(crate) struct Generate {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Debug, Subcommand)]
enum Kind {
    /// Triadic closure: whether a pair interacts depends on its common neighbours and their times
    ///
    /// Next to OUT, `STEM_queries.csv` lists labelled test pairs with the score of the optimal predictor.
    #[command(after_help = "Example:\n  hopedgn data generate triadic triads.parquet --episodes 10000 --p-short 0.95")]
    Triadic {
        #[command(flatten)]
        target: Target,
        /// Number of episodes, of six nodes and six events each
        #[arg(long, default_value_t = 2000)]
        episodes: u32,
        /// Probability that a triangle closes at once after a short gap
        #[arg(long, default_value_t = 0.9)]
        p_short: f64,
        /// Probability that a triangle closes at once after a long gap
        #[arg(long, default_value_t = 0.1)]
        p_long: f64,
    },
    /// Bipartite purchases within hidden groups: no pair has common neighbours, only paths of length three predict
    #[command(after_help = "Example:\n  hopedgn data generate tastes tastes.csv --groups 3 --people 10 --things 10")]
    Tastes {
        #[command(flatten)]
        target: Target,
        /// Number of hidden groups
        #[arg(long, default_value_t = TasteSpec::default().n_groups)]
        groups: u32,
        /// Buyers in each group
        #[arg(long, default_value_t = TasteSpec::default().n_users)]
        people: u32,
        /// Items in each group
        #[arg(long, default_value_t = TasteSpec::default().n_items)]
        things: u32,
    },
    /// The size of Reddit: 10,984 nodes, 672,447 events, 172 features
    LikeReddit(Interactions),
    /// The size of MOOC: 7,144 nodes, 411,749 events, 4 features
    LikeMooc(Interactions),
    /// The size of LastFM: 1,980 nodes, 1,293,103 events, no features
    LikeLastfm(Interactions),
    /// The size of Wikipedia: 9,227 nodes, 157,474 events, 172 features
    LikeWikipedia(Interactions),
}

#[derive(Debug, Args)]
struct Target {
    /// File to write: .csv, .tsv (both also with .gz or .zst), .parquet or .ctdg
    out: PathBuf,
    /// Random seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Write DyGLib's layout: OUT is `ml_NAME.csv`, with `ml_NAME.npy` and `ml_NAME_node.npy` beside it
    #[arg(long)]
    dyglib: bool,
    #[command(flatten)]
    force: Force,
}

impl Target {
    /// The format of the file, which must be a new one.
    fn format(&self) -> anyhow::Result<WriteFormat> {
        let format = WriteFormat::of_path(&self.out)?;
        self.force.check(&self.out)?;
        if self.dyglib {
            dataset::dyglib_files(&self.out)?.iter().try_for_each(|file| self.force.check(file))?;
        }
        Ok(format)
    }
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hopedgn data generate like-lastfm small.parquet --scale 0.01 --seed 1
  hopedgn data generate like-lastfm many-nodes.ctdg --events 1000000 --nodes 500000")]
struct Interactions {
    #[command(flatten)]
    target: Target,
    /// Fraction of the full size
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Number of events; distinct pairs and times keep their share
    #[arg(long, value_name = "N", requires = "nodes", conflicts_with = "scale")]
    events: Option<u32>,
    /// Number of nodes
    #[arg(long, value_name = "N", requires = "events")]
    nodes: Option<u32>,
    /// Keep columns that outgrow this memory in temporary files beside OUT
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    memory: Option<u64>,
}

pub(crate) fn run(args: &Generate, output: &Output) -> anyhow::Result<Outcome> {
    match &args.kind {
        Kind::Triadic { target, episodes, p_short, p_long } => {
            let spec =
                TriadicSpec { n_episodes: *episodes, p_short: *p_short, p_long: *p_long, ..TriadicSpec::default() };
            triadic(&spec, target, output)
        }
        Kind::Tastes { target, groups, people, things } => {
            let format = target.format()?;
            let stream = TasteSpec { n_groups: *groups, n_users: *people, n_items: *things }.generate(target.seed)?;
            write(&stream, target, format, output)
        }
        Kind::LikeReddit(args) => interactions(&InteractionSpec::like_reddit(), args, output),
        Kind::LikeMooc(args) => interactions(&InteractionSpec::like_mooc(), args, output),
        Kind::LikeLastfm(args) => interactions(&InteractionSpec::like_lastfm(), args, output),
        Kind::LikeWikipedia(args) => interactions(&InteractionSpec::like_wikipedia(), args, output),
    }
}

fn interactions(spec: &InteractionSpec, args: &Interactions, output: &Output) -> anyhow::Result<Outcome> {
    let format = args.target.format()?;
    anyhow::ensure!(args.scale <= 100.0, "found --scale {}, expected at most 100", args.scale);
    let spec = match (args.events, args.nodes) {
        (Some(events), Some(nodes)) => spec.sized(events, nodes)?,
        _ if args.scale == 1.0 => spec.clone(),
        _ => spec.scaled(args.scale)?,
    };
    let spill = args.memory.map(|memory| spill_beside(&args.target.out, memory));
    write(&spec.generate_within(args.target.seed, spill.as_ref())?, &args.target, format, output)
}

fn write(stream: &EventStream, target: &Target, format: WriteFormat, output: &Output) -> anyhow::Result<Outcome> {
    if target.dyglib {
        dataset::write_dyglib(stream, &target.out)?;
    } else {
        dataset::write(stream, &target.out, format)?;
    }
    output.answer(format_args!("{}\n", line(&target.out, stream)), &facts(target, stream))?;
    Ok(Outcome::Done)
}

fn triadic(spec: &TriadicSpec, target: &Target, output: &Output) -> anyhow::Result<Outcome> {
    let format = target.format()?;
    anyhow::ensure!(
        !target.dyglib,
        "found --dyglib with triadic, expected it without: test pairs have no place in DyGLib's files; convert the stream later with: hopedgn data convert"
    );
    let queries_path = dataset::sidecar_path(&target.out, "_queries.csv");
    target.force.check(&queries_path)?;
    let triadic = spec.generate(target.seed)?;
    let Triadic { stream, queries, .. } = &triadic;
    let mut table = "src,dst,time,label,optimal\n".to_owned();
    for query in queries {
        let name = |node| stream.names().name(node);
        let (src, dst, label) = (name(query.src), name(query.dst), u8::from(query.label));
        writeln!(table, "{src},{dst},{},{label},{}", query.time, query.optimal)?;
    }
    dataset::write_with(stream, &target.out, format, &[(queries_path.clone(), table)])?;
    let optimal = triadic.optimal();
    let mut facts = facts(target, stream);
    facts["queries"] = json!({ "out": queries_path.display().to_string(), "pairs": queries.len() });
    facts["optimal"] = json!({ "ap": optimal.ap, "auc": optimal.auc });
    let text = format!(
        "{}\n{}: {}; the optimal predictor reaches AP {:.4}, AUC {:.4} on them (ties in random order)\n",
        line(&target.out, stream),
        queries_path.display(),
        count(queries.len(), "pair"),
        optimal.ap,
        optimal.auc,
    );
    output.answer(text, &facts)?;
    Ok(Outcome::Done)
}

fn line(out: &Path, stream: &EventStream) -> String {
    format!("{}: {}, {}", out.display(), count(stream.len(), "event"), count(stream.n_nodes(), "node"))
}

fn facts(target: &Target, stream: &EventStream) -> Value {
    json!({ "out": target.out.display().to_string(), "seed": target.seed, "events": stream.len(), "nodes": stream.n_nodes() })
}
