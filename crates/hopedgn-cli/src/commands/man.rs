//! `hopedgn man`: one manual page per command.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Command, CommandFactory as _};
use clap_mangen::Man;
use ctdg::dataset::write_file;
use serde_json::json;

use crate::commands::Cli;
use crate::commands::new_file::Force;
use crate::output::{Outcome, Output};
use crate::plural::count;
use crate::version;

/// Write manual pages, one for each command
#[derive(Debug, Args)]
#[command(after_help = "Example:
  hopedgn man ~/.local/share/man/man1 && man hopedgn-train")]
pub(crate) struct ManPages {
    /// Folder to write them to
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    force: Force,
}

pub(crate) fn run(args: &ManPages, output: &Output) -> anyhow::Result<Outcome> {
    let mut root = Cli::command().disable_help_subcommand(true);
    // Names such as hopedgn-data-info, and flags of every command, are set when the command is built.
    root.build();
    let mut pages = Vec::new();
    render(root, &mut pages)?;
    std::fs::create_dir_all(&args.folder).with_context(|| format!("could not create {}", args.folder.display()))?;
    pages.iter().try_for_each(|(name, _)| args.force.check(&args.folder.join(name)))?;
    for (name, page) in &pages {
        write_file(&args.folder.join(name), page)?;
    }
    let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
    let text = format!("{}: {}\n", args.folder.display(), count(pages.len(), "page"));
    output.answer(text, &json!({ "folder": args.folder, "pages": names }))?;
    Ok(Outcome::Done)
}

/// File name and text of the page of `command` and of those below it.
fn render(command: Command, pages: &mut Vec<(String, Vec<u8>)>) -> anyhow::Result<()> {
    let below: Vec<Command> = command.get_subcommands().cloned().collect();
    let source = format!("hopedgn {}", version::TEXT);
    let (page, mut text) = (Man::new(command).source(source).manual("hopedgn"), Vec::new());
    page.render(&mut text)?;
    pages.push((page.get_filename(), text));
    below.into_iter().try_for_each(|command| render(command, pages))
}
