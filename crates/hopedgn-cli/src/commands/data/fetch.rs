//! `hopedgn data fetch`: download the paper's datasets from where they are published.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use ctdg::error::printable;
use ctdg::fetch::{self, Fetched, IfPresent, Options, Progress, Source, Unverified};
use serde_json::json;

use crate::commands::data_args::DataFolder;
use crate::output::{Outcome, Output};
use crate::progress::{self, Bar};

/// Download datasets of the paper and convert them
///
/// An interrupted download continues where it stopped when you run the same command again. Files come by https and are
/// compared with the checksum that their publisher states; what cannot be verified is refused.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hopedgn data fetch wikipedia uci && hopedgn data info wikipedia")]
pub(crate) struct FetchArgs {
    /// Names of datasets (see `hopedgn data list`)
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Download again even if the dataset is already here
    #[arg(long)]
    replace: bool,
    /// Take the download addresses from this file instead of the built-in list
    #[arg(long, value_name = "FILE.toml")]
    sources: Option<PathBuf>,
    /// Also accept plain http and files without a published checksum
    #[arg(long)]
    insecure: bool,
    #[command(flatten)]
    folder: DataFolder,
}

pub(crate) fn run(args: &FetchArgs, output: &Output) -> anyhow::Result<Outcome> {
    if args.names.is_empty() {
        let known: Vec<&str> = Source::all().iter().map(|source| source.name.as_str()).collect();
        anyhow::bail!(
            "found no name, expected at least one of {}; `hopedgn data list` describes them",
            known.join(", ")
        );
    }
    let list = args.sources.as_ref().map(|file| Source::read_list(file)).transpose()?;
    let sources: Vec<&Source> =
        args.names.iter().map(|name| Source::named_in(list.as_deref(), name)).collect::<Result<_, _>>()?;
    let folder = args.folder.path()?;
    let present = if args.replace { IfPresent::Replace } else { IfPresent::Keep };
    let unverified = if args.insecure { Unverified::Accept } else { Unverified::Refuse };
    let options = Options { present, unverified, ..Options::default() };
    let mut text = String::new();
    let mut facts = Vec::new();
    for source in sources {
        let bar = progress::bytes(output, &source.name, 0);
        let fetched = fetch::fetch(source, &folder, &options, &fetch::to_binary, &mut |progress| {
            show(&bar, output, &source.name, &progress);
        });
        bar.finish_and_clear();
        let Fetched { path, origin } = fetched?;
        let (url, checksum) = match &origin {
            Some(origin) => (Some(&origin.url), origin.checksum.as_ref().map(ToString::to_string)),
            None => (None, None),
        };
        let how = match (url, &checksum) {
            (None, _) => "already here".to_owned(),
            (Some(url), Some(checksum)) => format!("from {url}, {checksum} matches the published checksum"),
            (Some(url), None) => format!("from {url}; the publisher gives no checksum"),
        };
        writeln!(text, "{}: {} ({how})", source.name, path.display())?;
        let counts = source.counts;
        facts.push(json!({
            "name": source.name, "path": path.display().to_string(), "nodes": counts.nodes, "events": counts.events,
            "url": url, "checksum": checksum, "was_here": origin.is_none(),
        }));
    }
    output.answer(text, &json!({ "fetched": facts }))?;
    Ok(Outcome::Done)
}

fn show(bar: &Bar, output: &Output, name: &str, progress: &Progress<'_>) {
    match progress {
        Progress::Connecting { url, attempt: 1 } => {
            bar.set_message(format!("{name}: connecting to {}", printable(url)));
        }
        Progress::Connecting { attempt, .. } => bar.set_message(format!("{name}: attempt {attempt}")),
        Progress::Downloading { done, total } => {
            bar.set_message(format!("{name}: downloading"));
            bar.set_length(total.unwrap_or(*done));
            bar.set_position(*done);
        }
        Progress::Checking { done, total } => {
            bar.set_message(format!("{name}: verifying the checksum"));
            bar.set_length(*total);
            bar.set_position(*done);
        }
        Progress::Unpacking { member } => bar.set_message(format!("{name}: unpacking {}", printable(member))),
        Progress::Converting => bar.set_message(format!("{name}: converting")),
        Progress::Warning(remark) => bar.suspend(|| output.remark(format_args!("{name}: {remark}"))),
    }
}
