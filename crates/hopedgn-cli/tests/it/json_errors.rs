//! With `--json` an error is one JSON document on stdout, and its codes are documented.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::run;

/// The document on stdout and the text on stderr of a command that cannot run.
fn refused(folder: &Path, arguments: &[&str]) -> (Value, String) {
    let (status, stdout, stderr) = run(folder, arguments);
    assert_eq!(status, Some(2), "{arguments:?}: {stderr}");
    let document = serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {stdout}"));
    (document, stderr)
}

#[test]
fn an_error_is_one_document_with_code_message_and_place() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("x.csv"), "src,dst,time\n1,2,3\n1,2,2\n").expect("written");
    let (document, stderr) = refused(folder.path(), &["data", "convert", "x.csv", "y.ctdg", "--json"]);
    let message = "x.csv, line 3, column 3 (time): found the time 2 after 3, expected times that never go backwards; \
                   sort the file, or let --sort do it";
    let expected = json!({ "error": {
        "code": "time-backwards", "message": message, "file": "x.csv", "line": 3, "column": 3, "column_name": "time",
    } });
    assert_eq!(document, expected);
    assert_eq!(stderr, format!("error: {message}\n"), "the text for people is the same");
    assert!(!folder.path().join("y.ctdg").exists(), "nothing is half-written");
}

#[test]
fn every_refused_command_prints_a_code_with_json_and_nothing_without() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("grid.toml"), "title = 3\n").expect("written");
    for (arguments, code) in [
        (&["data", "info", "nowhere"][..], "unknown-data"),
        (&["data", "info", "reddit", "--data-dir", "."], "not-fetched"),
        (&["data", "info", "collegemsg", "--threads", "0"], "invalid-argument"),
        (&["data", "fetch", "nowhere"], "not-fetchable"),
        (&["score", "nowhere", "--pairs", "x.csv"], "not-a-run-folder"),
        (&["train", "--set", "model.lenght=3"], "invalid-config"),
        (&["wl", "examples", "--k", "7"], "invalid-argument"),
        (&["wl", "examples", "figure-1", "--k", "7"], "invalid-setting"),
        (&["experiment", "status", "grid.toml"], "invalid-experiment"),
        (&["lab", "--svg", "nowhere/x.svg"], "invalid-argument"),
        (&["data", "info"], "usage"),
        (&["data", "info", "collegemsg", "--oops"], "usage"),
        (&["nonsense"], "usage"),
    ] {
        let (document, with_json) = refused(folder.path(), &[arguments, &["--json", "--quiet"]].concat());
        assert_eq!(document["error"]["code"], code, "{arguments:?}: {document}");
        let message = document["error"]["message"].as_str().expect("a message");
        assert!(!message.is_empty() && !message.starts_with("error:") && !message.contains('\n'), "{message:?}");
        let (status, stdout, without) = run(folder.path(), &[arguments, &["--quiet"]].concat());
        assert_eq!((status, stdout.as_str()), (Some(2), ""), "{arguments:?}");
        // The usage line below the message repeats the flags.
        assert_eq!(with_json.lines().next(), without.lines().next(), "{arguments:?}: stderr is the same");
    }
}

#[test]
fn a_row_of_the_pairs_to_score_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/run-0.1");
    let text = |name: &str| fixture.join(name).to_str().expect("UTF-8").to_owned();
    fs::write(folder.path().join("pairs.csv"), "1,2\n1\n").expect("written");
    let (run, data) = (text("hopedgn"), text("events.tsv"));
    let arguments = ["score", &run, "--data", &data, "--pairs", "pairs.csv", "--json", "--quiet"];
    let (document, _) = refused(folder.path(), &arguments);
    let error = &document["error"];
    assert_eq!(
        (&error["code"], &error["file"], &error["line"]),
        (&"invalid-input".into(), &"pairs.csv".into(), &2.into())
    );
}

/// Every code is a stable word that the reference explains, and the reference explains no other.
#[test]
fn the_reference_lists_every_code() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut codes = BTreeSet::new();
    for file in ["ctdg/src/error/code.rs", "tensor/src/error.rs", "hopedgn/src/error.rs"] {
        let source = read(&format!("crates/{file}"));
        let arms = source.lines().filter_map(|line| line.trim().strip_prefix("Self::")?.split_once("=> \""));
        codes.extend(arms.map(|(_, word)| word.trim_end_matches("\",").to_owned()));
    }
    let source = read("crates/hopedgn-cli/src/failure.rs");
    let constants = source.lines().filter_map(|line| line.strip_prefix("const ")?.split_once("&str = \""));
    codes.extend(constants.map(|(_, word)| word.trim_end_matches("\";").to_owned()));
    assert!(codes.len() > 80 && codes.contains("time-backwards") && codes.contains("usage"), "{codes:?}");
    let is_kebab = |code: &&String| !code.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    assert_eq!(codes.iter().find(is_kebab), None, "words of lower-case letters and hyphens");
    let page = read("docs/src/reference/json.md");
    let (_, section) = page.split_once("\n## Error codes\n").expect("a section of error codes");
    let section = section.split("\n## ").next().unwrap_or_default();
    let listed: BTreeSet<String> =
        section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).map(str::to_owned).collect();
    assert_eq!(listed, codes);
}
