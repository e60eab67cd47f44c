//! The sources that destinations are recommended to.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use ctdg::event::Roles;
use ctdg::mite::Side;
use hopedgn::Events;
use hopedgn::predict::{NamedPairs, PairSides};

use crate::output::Output;
use crate::plural::count;

/// Unknown ids that are named.
const MAX_NAMED: usize = 5;

/// The sources.
#[derive(Debug, Args)]
pub(crate) struct SourcesArgs {
    /// Sources, by their ids in the data
    #[arg(value_name = "SRC", index = 2, required_unless_present = "sources")]
    source_ids: Vec<String>,
    /// More sources from a file, one id a line, or `-` for stdin
    #[arg(long, value_name = "FILE")]
    sources: Option<PathBuf>,
    /// Refuse sources that are not in the data
    #[arg(long)]
    strict: bool,
}

impl SourcesArgs {
    /// The file, unless it is stdin.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.sources.as_deref().filter(|path| *path != Path::new("-"))
    }

    /// Whether the answer is a list, whatever its length.
    pub(crate) fn is_list(&self) -> bool {
        self.source_ids.len() != 1 || self.sources.is_some()
    }

    /// All sources in order. Says which of them are not in the data, or refuses them.
    pub(crate) fn read(&self, events: &Events, output: &Output) -> anyhow::Result<Vec<String>> {
        let mut sources = self.source_ids.clone();
        if let Some(path) = &self.sources {
            let reader: Box<dyn Read> = match self.file() {
                Some(path) => Box::new(File::open(path).with_context(|| path.display().to_string())?),
                None => Box::new(io::stdin()),
            };
            for line in BufReader::new(reader).lines() {
                let line = line.with_context(|| path.display().to_string())?;
                sources.extend(Some(line.trim().to_owned()).filter(|id| !id.is_empty()));
            }
            anyhow::ensure!(!sources.is_empty(), "{}: found no id, expected one a line", path.display());
        }
        let named = NamedPairs::new(events)?;
        let unknown: Vec<&str> =
            sources.iter().map(String::as_str).filter(|src| !named.knows_node(src, Side::Src)).collect();
        if let Some(&first) = unknown.first() {
            let near = match named.nearest(first, Side::Src) {
                _ if named.knows_node(first, Side::Dst) => Some(format!("{first} is a destination")),
                near => near.map(|near| format!("did you mean {near:?}?")),
            };
            anyhow::ensure!(
                !self.strict,
                "found the source {first:?}, expected the id of a source in the data; {}",
                near.unwrap_or_else(|| "without --strict it is ranked as a new node".to_owned())
            );
            output.remark(unknown_remark(&unknown, near));
        }
        remark_on_destinations(&sources, events, output)?;
        Ok(sources)
    }
}

fn unknown_remark(unknown: &[&str], near: Option<String>) -> String {
    let named = unknown.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(", ");
    let more = if unknown.len() > MAX_NAMED { ", …" } else { "" };
    let verb = if unknown.len() == 1 { "is" } else { "are" };
    let near = near.map(|near| format!("{near}{} ", if near.ends_with('?') { "" } else { ";" })).unwrap_or_default();
    let sources = count(unknown.len(), "source");
    format!(
        "{sources} {verb} not in the data and ranked without a history: what is likely for a new node ({named}{more}); \
         {near}--strict refuses unknown ids"
    )
}

/// Remarks on a node that is only ever a destination, in bipartite data with one namespace.
fn remark_on_destinations(sources: &[String], events: &Events, output: &Output) -> anyhow::Result<()> {
    let (mut named, roles) = (NamedPairs::new(events)?, Roles::of(events));
    let known: Vec<&String> = sources.iter().filter(|src| named.knows_node(src, Side::Src)).collect();
    known.iter().try_for_each(|src| named.push(src, src, events.end()))?;
    let is_destination = |&pair: &usize| named.sides(pair, &roles) == PairSides::BothDestinations;
    if let Some(first) = (0..known.len()).find(is_destination).map(|pair| known[pair]) {
        output.remark(format_args!("{first} is a destination; in this data only a source and a destination interact"));
    }
    Ok(())
}
