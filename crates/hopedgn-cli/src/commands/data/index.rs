//! `hopedgn data index`: index files of a stream larger than memory.

use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueEnum};
use ctdg::dataset::{self, Format, ReadOptions};
use ctdg::event::EventStream;
use ctdg::index::{self, Built};
use ctdg::split::{MASK_SEED, SplitMode, SplitRule};
use hopedgn::fmt::{duration, grouped};
use hopedgn::system::{free_memory, peak_memory};
use serde_json::json;

use crate::args::parse_bytes;
use crate::output::{Outcome, Output};
use crate::plural::count;
use crate::progress;

/// Index a .ctdg file on disk, for streams larger than memory
///
/// Adjacency, pairs and statistics become memory-mapped files in the folder FILE.index, sorted on disk within --memory. From then on
/// every command that reads FILE uses them, with the same results to the last bit. An index that is there and sound is kept; one that
/// is damaged, or of other events, is built again. Remove the folder to work in memory again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hopedgn data convert events.csv events.ctdg
  hopedgn data index events.ctdg --memory 4G")]
pub(crate) struct Index {
    /// A .ctdg file, as `data convert` and `data generate` write it
    file: PathBuf,
    /// Memory to build it within; `train` keeps to the same when it indexes a part [default: 4GiB, or half of what is free]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    memory: Option<u64>,
    /// The split whose training events are indexed as well; `train` would do it otherwise
    #[arg(long, value_enum, default_value_t = SplitArg::Dyglib)]
    split: SplitArg,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SplitArg {
    /// That of `train`
    Dyglib,
    /// That of `train --set split=portable`
    Portable,
    /// That of `train --protocol tgb`
    Tgb,
    /// Only the index of all events, which is enough to score and recommend
    None,
}

impl SplitArg {
    fn mode(self) -> Option<SplitMode> {
        match self {
            Self::Dyglib => Some(SplitMode::Dyglib),
            Self::Portable => Some(SplitMode::Portable),
            Self::Tgb => Some(SplitMode::Tgb),
            Self::None => None,
        }
    }
}

/// What an index is built within unless the user says so.
const USUAL_MEMORY: u64 = 4 << 30;

pub(crate) fn run(args: &Index, output: &Output) -> anyhow::Result<Outcome> {
    let start = Instant::now();
    let options = ReadOptions { format: Format::Binary, ..ReadOptions::default() };
    let stream = dataset::read(&args.file, &options)?;
    let allowed = output.max_memory().or_else(|| free_memory().map(|free| free / 2));
    let usual = allowed.map_or(USUAL_MEMORY, |allowed| allowed.min(USUAL_MEMORY)).max(index::MIN_MEMORY);
    let memory = args.memory.unwrap_or(usual);
    let all = with_bar("indexing all events", output, |progress| index::build(&stream, memory, progress))?;
    let train = args.split.mode().map(|mode| part(&stream, mode, memory, output)).transpose()?.flatten();
    let bytes = train.as_ref().map_or(all.bytes, |(built, _)| built.bytes);
    let n_train = train.as_ref().map(|(_, n)| *n);
    let was_there = all.was_there && train.as_ref().is_none_or(|(built, _)| built.was_there);
    let seconds = start.elapsed().as_secs_f64();
    let folder = index::folder(&args.file);
    let done = if was_there { "was there already, and is sound".to_owned() } else { duration(seconds) };
    let text = format!(
        "{}: {}, {}{}; {} bytes; {done}\n",
        folder.display(),
        count(stream.len(), "event"),
        count(stream.n_nodes(), "node"),
        n_train.map_or(String::new(), |n| format!(", {}", count(n, "training event"))),
        grouped(bytes),
    );
    let facts = json!({
        "index": folder.display().to_string(), "events": stream.len(), "nodes": stream.n_nodes(),
        "training_events": n_train, "bytes": bytes, "memory": memory, "was_there": was_there, "seconds": seconds,
        "peak_memory": peak_memory(),
    });
    output.answer(text, &facts)?;
    Ok(Outcome::Done)
}

/// Indexes the training events of a split. `None` if the stream is too small to be split.
fn part(stream: &EventStream, mode: SplitMode, memory: u64, output: &Output) -> anyhow::Result<Option<(Built, usize)>> {
    if stream.is_empty() {
        return Ok(None);
    }
    let train = SplitRule::of(stream, mode, MASK_SEED)?.apply(stream)?.train;
    let n = train.len();
    let build = |progress: &dyn Fn(u64, u64)| index::build_part(stream, &train, memory, progress);
    let built = with_bar("indexing training events", output, build)?;
    Ok(Some((built, n)))
}

/// Builds with a progress bar.
fn with_bar(
    what: &'static str,
    output: &Output,
    build: impl FnOnce(&dyn Fn(u64, u64)) -> ctdg::Result<Built>,
) -> anyhow::Result<Built> {
    let bar = progress::steps(output, what, 0);
    let built = build(&|done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    Ok(built?)
}
