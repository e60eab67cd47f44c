//! The documentation holds: its commands run and print what the pages show, its links resolve, its code is the examples'.
//!
//! A fenced block ```` ```console ```` is a terminal session: a line that starts with `$ ` is a command, the lines below it are
//! its output, stdout and stderr together. The blocks of one page run in order in one empty folder. A line `...` in the output
//! stands for any number of lines, `...` within a line for any text; numbers with a decimal point may differ by two percent, and
//! the width of columns does not count. ```` ```console no-run ```` is for what needs a GPU, the network or hours: only the
//! arguments of its commands are checked. So are those of `hopedgn …` in inline code.
//! ```` ```toml file=NAME ```` is written to that file before the next session, ```` ```rust,ignore from=PATH ```` is a verbatim
//! part of that file of the repository.

mod links;
mod markdown;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use markdown::Block;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// README.md and the pages of the book, with their path from the root.
fn pages() -> Vec<(String, String)> {
    let mut paths = vec![root().join("README.md")];
    markdown::collect(&root().join("docs/src"), "md", &mut paths);
    let page = |path: PathBuf| {
        let name = path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned();
        (name, fs::read_to_string(&path).expect("a page"))
    };
    paths.into_iter().map(page).collect()
}

/// Runs `line` in a shell in which `hopedgn` is the program under test; stdout and stderr together.
fn shell(folder: &Path, line: &str) -> (bool, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_hopedgn"));
    #[expect(clippy::disallowed_methods, reason = "a test finds the built program first on the path")]
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("sh")
        .args(["-c", &format!("exec 2>&1\n{line}")])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", program.parent().expect("a folder").display()))
        // The same on a machine with a GPU as on one without.
        .env("CUDA_VISIBLE_DEVICES", "-1")
        .env("HOPEDGN_DATA_DIR", folder.join("data"))
        .output()
        .expect("a shell");
    (output.status.success(), String::from_utf8(output.stdout).expect("UTF-8"))
}

/// What a command printed, without the lines about progress that work of more than some seconds prints where there is no
/// terminal: how many there are depends on the machine.
fn without_progress(printed: &str) -> String {
    const STAGES: [&str; 10] = [
        "reading",
        "auditing",
        "training epoch",
        "validating epoch",
        "testing",
        "evaluating",
        "ranking",
        "embedding",
        "scoring",
        "training the classifier",
    ];
    let is_progress = |line: &str| {
        let Some((stage, rest)) = line.split_once(": ") else { return false };
        let stage = stage.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end();
        STAGES.contains(&stage) && rest.starts_with(|c: char| c.is_ascii_digit())
    };
    printed.split_inclusive('\n').filter(|line| !is_progress(line)).collect()
}

#[test]
fn lines_about_progress_do_not_count() {
    let printed = "training epoch 12: 1 of 9 batches, 2 s; about 40 s left\nepoch 1: loss 3\nranking: 5 events in 12 s\ntesting: none\n";
    assert_eq!(without_progress(printed), "epoch 1: loss 3\ntesting: none\n");
}

/// Runs all sessions of a page; what went wrong, if anything did.
fn run_page(name: &str, text: &str) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let mut failures = Vec::new();
    for block in markdown::blocks(text) {
        if let Some(file) = block.value("file=") {
            fs::write(folder.path().join(file), &block.body).expect("a file for the page");
        }
        if !block.is("console") || block.has("no-run") {
            continue;
        }
        for (command, shown) in block.session() {
            let (succeeded, printed) = shell(folder.path(), &command);
            let printed = without_progress(&printed);
            let fails_as_shown = !succeeded && shown.contains("error:");
            if !succeeded && !fails_as_shown {
                failures.push(format!("{name}: `{command}` failed:\n{printed}"));
            } else if !shown.is_empty() && !markdown::matches(&shown, &printed) {
                failures.push(format!("{name}: `{command}` shows\n{shown}\nbut printed\n{printed}"));
            }
        }
    }
    failures
}

#[test]
fn commands_in_the_documentation_print_what_it_shows() {
    let pages = pages();
    let queue = Mutex::new(pages.iter());
    let failures = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some((name, text)) = { queue.lock().expect("no panic").next() } {
                    let found = run_page(name, text);
                    failures.lock().expect("no panic").extend(found);
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no panic");
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn commands_that_are_only_shown_have_valid_arguments() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut seen = std::collections::BTreeSet::new();
    for (name, text) in pages() {
        for command in shown_commands(&text) {
            for arguments in markdown::invocations(&command) {
                if !seen.insert(arguments.clone()) {
                    continue;
                }
                // `--help` last: whatever stands before it is parsed first.
                let arguments: Vec<&str> = arguments.iter().map(String::as_str).chain(["--help"]).collect();
                let (status, _, stderr) = super::run(folder.path(), &arguments);
                assert_eq!(status, Some(0), "{name}: `{command}`\n{stderr}");
            }
        }
    }
    assert!(seen.len() > 20, "only {} commands were found", seen.len());
}

/// Commands of `no-run` blocks, and inline code that starts with the program's name.
fn shown_commands(text: &str) -> Vec<String> {
    let blocks = markdown::blocks(text);
    let sessions = blocks.iter().filter(|block| block.is("console") && block.has("no-run")).flat_map(Block::session);
    let mut commands: Vec<String> = sessions.map(|(command, _)| command).collect();
    let inline = markdown::inline_code(text).into_iter();
    commands.extend(inline.filter(|code| code.starts_with("hopedgn ") && !code.contains(['…', '[', '|'])));
    commands
}

#[test]
fn quoted_source_is_part_of_the_file_it_names() {
    for (name, text) in pages() {
        for block in markdown::blocks(&text) {
            let Some(path) = block.value("from=") else { continue };
            let source =
                fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{name}: {path}: {error}"));
            let flat =
                |text: &str| text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
            assert!(flat(&source).contains(&flat(&block.body)), "{name}: not in {path}:\n{}", block.body);
        }
    }
}

#[test]
fn tests_named_in_the_documentation_exist() {
    let mut sources = Vec::new();
    markdown::collect(&root().join("crates"), "rs", &mut sources);
    let code: String = sources.iter().map(|file| fs::read_to_string(file).expect("a source file")).collect();
    for (name, text) in pages() {
        for command in markdown::inline_code(&text).iter().filter(|code| code.starts_with("cargo test ")) {
            let Some(filter) = command.split(" --test it ").nth(1).and_then(|rest| rest.split(' ').next()) else {
                continue;
            };
            assert!(code.contains(&format!("fn {filter}")), "{name}: no test starts with {filter}");
        }
    }
}

#[test]
fn links_and_anchors_resolve() {
    let broken = links::broken(&root());
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_page_is_in_the_summary() {
    let summary = fs::read_to_string(root().join("docs/src/SUMMARY.md")).expect("SUMMARY.md");
    for (name, _) in pages() {
        let Some(page) = name.strip_prefix("docs/src/").filter(|page| *page != "SUMMARY.md") else { continue };
        assert!(summary.contains(&format!("({page})")), "{page} is not in SUMMARY.md");
    }
}
