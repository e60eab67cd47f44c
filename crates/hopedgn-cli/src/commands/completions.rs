//! `hopedgn completions`: scripts that complete commands, flags and names in a shell.

use clap::builder::PossibleValuesParser;
use clap::{Args, Command, CommandFactory as _};
use clap_complete::Shell;
use ctdg::fetch::Source;
use ctdg::wl::examples;
use hopedgn::config::Preset;
use hopedgn::{ModelName, ModelRegistry};
use serde_json::json;

use crate::commands::Cli;
use crate::output::{Outcome, Output};

/// Print a script that completes commands, flags, models and datasets in a shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hopedgn completions bash > ~/.local/share/bash-completion/completions/hopedgn
  hopedgn completions zsh > ~/.zfunc/_hopedgn
  hopedgn completions fish > ~/.config/fish/completions/hopedgn.fish

A new shell reads the file. For zsh, ~/.zshrc has to name the folder before
compinit: fpath+=~/.zfunc")]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &Completions, registry: &ModelRegistry, output: &Output) -> anyhow::Result<Outcome> {
    let mut command = with_names(Cli::command(), registry)?;
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "hopedgn", &mut script);
    let script = String::from_utf8(script)?;
    output.answer_data(
        |out| out.write_all(script.as_bytes()),
        &json!({ "shell": args.shell.to_string(), "script": script }),
    )?;
    Ok(Outcome::Done)
}

/// Arguments that take one of some names, as the completed values of the shell. Parsing leaves them open: a program may register
/// more models, and a file may list other datasets. An argument that may also be a file is left to the shell.
fn with_names(command: Command, registry: &ModelRegistry) -> anyhow::Result<Command> {
    let models: Vec<&'static str> = registry.names().map(ModelName::as_str).collect();
    let presets: Vec<&'static str> = Preset::all().iter().map(|preset| preset.name()).collect();
    let datasets: Vec<&'static str> = Source::all().iter().map(|source| source.name.as_str()).collect();
    let graphs: Vec<&'static str> = examples::all()?.iter().map(|example| example.name).collect();
    let named: [(&[&str], &str, &Vec<&'static str>); 5] = [
        (&["train"], "model", &models),
        (&["train"], "preset", &presets),
        (&["bench", "epoch"], "model", &models),
        (&["data", "fetch"], "names", &datasets),
        (&["wl", "examples"], "name", &graphs),
    ];
    Ok(named.into_iter().fold(command, |command, (path, argument, values)| complete(command, path, argument, values)))
}

/// Gives `argument` of the command at `path` its values.
fn complete(command: Command, path: &[&str], argument: &str, values: &[&'static str]) -> Command {
    match path.split_first() {
        Some((name, rest)) => command.mut_subcommand(name, |inner| complete(inner, rest, argument, values)),
        None => command.mut_arg(argument, |arg| arg.value_parser(PossibleValuesParser::new(values.iter().copied()))),
    }
}
