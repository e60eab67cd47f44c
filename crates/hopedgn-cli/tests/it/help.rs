//! `--help` of every command: an example, no line that a terminal wraps, no broken TOML.

use std::fs;
use std::process::Command;

use crate::{hopedgn, json, run};

/// `--help` of a command on a terminal of that many columns.
fn help(command: &[String], columns: usize) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_hopedgn"))
        .env("COLUMNS", columns.to_string())
        .args(command)
        .arg("--help")
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{command:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The commands that a help text lists.
fn subcommands(help: &str) -> Vec<String> {
    let listed = help.split_once("\nCommands:\n").map_or("", |(_, rest)| rest);
    let listed = listed.split("\n\n").next().unwrap_or_default();
    let name = |line: &str| line.strip_prefix("  ")?.split_whitespace().next().map(str::to_owned);
    let is_entry = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    listed.lines().filter(is_entry).filter_map(name).filter(|name| name != "help").collect()
}

/// Every command with its subcommands, the program itself first.
pub(crate) fn commands() -> Vec<Vec<String>> {
    let (mut all, mut next) = (vec![Vec::new()], 0);
    while next < all.len() {
        let command: Vec<String> = all[next].clone();
        for name in subcommands(&help(&command, 100)) {
            all.push(command.iter().cloned().chain([name]).collect());
        }
        next += 1;
    }
    all
}

#[test]
fn every_command_has_help_with_an_example() {
    let commands = commands();
    let names: Vec<String> = commands.iter().map(|command| command.join(" ")).collect();
    for name in ["train", "data generate like-mooc", "wl examples", "experiment check", "bench epoch"] {
        assert!(names.iter().any(|known| known == name), "{name} in {names:?}");
    }
    for command in commands {
        let help = help(&command, 100);
        let (_, examples) = help.rsplit_once("Example").unwrap_or_else(|| panic!("{command:?} has no example"));
        assert!(examples.contains("\n  hopedgn ") || examples.contains(" | hopedgn "), "{command:?}: {examples}");
    }
}

/// Examples are never wrapped: each starts with two blanks and `hopedgn`, and fits into 100 columns.
#[test]
fn examples_fit_into_100_columns() {
    for command in commands() {
        let narrow = help(&command, 100);
        for line in help(&command, 110).lines().filter(|line| line.starts_with("  hopedgn ")) {
            assert!(line.chars().count() <= 100 && narrow.contains(line), "{command:?}: {line}");
        }
    }
}

/// A file of published values.
const PUBLISHED: &str = r#"paper = [{ model = "hopedgn", data = "enron", transductive = { ap = [92.67, 0.1] } }]"#;

#[test]
fn experiment_help_shows_a_valid_file_at_80_columns() {
    let help = help(&["experiment".to_owned()], 80);
    let (_, rest) = help.split_once("All that it may hold:\n").expect("the file");
    let (file, _) = rest.split_once("\nExamples:\n").expect("its end");
    let lines: Vec<&str> = file.lines().map(|line| line.strip_prefix("  ").unwrap_or(line)).collect();
    let text = lines.join("\n");
    text.parse::<toml::Table>().unwrap_or_else(|error| panic!("{error}\n{text}"));
    // Not only TOML: an experiment, once what it extends is there. A sweep needs two variants.
    let home = tempfile::tempdir().expect("a folder");
    fs::create_dir(home.path().join("base")).expect("a folder");
    fs::write(home.path().join("base/grid.toml"), "").expect("a file");
    fs::write(home.path().join("base/paper.toml"), PUBLISHED).expect("a file");
    let variant = "\n[[variant]]\nname = \"k-32\"\ntitle = \"K = 32\"\nset = { model.k = 32 }\n";
    fs::write(home.path().join("file.toml"), format!("{text}{variant}")).expect("a file");
    let answer = json(home.path(), &["experiment", "status", "file.toml", "--data-dir", ".", "--json"]);
    assert!(answer["cells"].as_array().is_some_and(|cells| !cells.is_empty()), "{answer}");
}

#[test]
fn no_arguments_print_help() {
    let folder = tempfile::tempdir().expect("a folder");
    let (status, _, stderr) = run(folder.path(), &[]);
    assert_eq!(status, Some(2));
    assert!(stderr.contains("Usage: hopedgn") && stderr.contains("hopedgn train"), "{stderr}");
    assert!(hopedgn(folder.path(), &["--version"]).status.success());
}

/// A command's own flags first, then those of several commands, then those of all.
#[test]
fn own_flags_stand_before_shared_ones() {
    const ORDER: [&str; 5] = ["Arguments:", "Options:", "Device:", "Reading a file:", "Options of every command:"];
    for command in commands() {
        let help = help(&command, 100);
        // The flags under each heading.
        let mut sections: Vec<(&str, Vec<&str>)> = Vec::new();
        for line in help.lines() {
            if let Some(heading) = ORDER.iter().find(|heading| **heading == line) {
                sections.push((heading, Vec::new()));
            }
            let flag =
                line.trim().trim_start_matches("-q, ").strip_prefix("--").and_then(|flag| flag.split(' ').next());
            if let (Some((_, flags)), Some(flag)) = (sections.last_mut(), flag) {
                flags.push(flag);
            }
        }
        let headings: Vec<&str> = sections.iter().map(|(heading, _)| *heading).collect();
        let mut expected = ORDER.to_vec();
        expected.retain(|heading| headings.contains(heading));
        assert_eq!(headings, expected, "{command:?}");
        for (heading, flags) in sections {
            match heading {
                "Device:" => assert_eq!(flags, ["device", "precision"], "{command:?}"),
                "Options of every command:" => assert_eq!(flags[..3], ["json", "quiet", "threads"], "{command:?}"),
                "Options:" => {
                    assert!(!flags.iter().any(|flag| ["device", "sort", "json"].contains(flag)), "{command:?}");
                }
                _ => {}
            }
        }
    }
}

/// Arguments behind a group of flags would be listed under the heading of the group.
#[test]
fn flags_stand_under_their_own_heading() {
    let flags = "data-dir format src dst time label features no-header header delimiter ids bipartite sort \
                 time-unit dedup";
    let mut wrong = Vec::new();
    for command in commands() {
        let help = help(&command, 100);
        let Some((_, section)) = help.split_once("\nReading a file:\n") else { continue };
        let (section, _) = section.split_once("\nOptions of every command:\n").expect("the last heading");
        let name = |line: &str| line.trim().strip_prefix("--")?.split([' ', '[', '=']).next().map(str::to_owned);
        let listed: Vec<String> = section.lines().filter_map(name).collect();
        if listed.join(" ") != flags || section.lines().any(|line| line.starts_with("  [") || line.starts_with("  <")) {
            wrong.push(format!("{command:?}: {listed:?}"));
        }
    }
    assert!(wrong.is_empty(), "flatten RunArgs and ReadArgs last:\n{}", wrong.join("\n"));
}
