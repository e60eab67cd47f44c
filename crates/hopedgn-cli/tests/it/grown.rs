//! A log that grows: append, score, test on the newer events, warm start.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::{json, run};

const SMALL: [&str; 10] = [
    "--set",
    "model.d-channel=4",
    "--set",
    "model.d-time=4",
    "--set",
    "model.length=4",
    "--set",
    "model.d-mite=4",
    "--set",
    "train.batch=20",
];

/// Events of twenty nodes; from 200 on some have the new id 7, which comes before all others.
fn log(n: usize) -> String {
    let mut text = String::from("src,dst,time\n");
    for i in 0..n {
        let (circle, step) = (i * 7 % 5 * 4, i % 3);
        let src = if i >= 200 && i % 4 == 0 { 7 } else { 100 + circle + step };
        writeln!(text, "{src},{},{}", 100 + circle + (step + 1) % 4, i / 2).expect("a string");
    }
    text
}

/// A run on the first 200 events.
fn home() -> TempDir {
    let home = tempfile::tempdir().expect("a folder");
    write(home.path(), "events.csv", 200);
    let train = ["train", "--data", "events.csv", "--out", "run", "--epochs", "1", "--json"];
    json(home.path(), &[&train[..], &SMALL].concat());
    home
}

fn write(home: &Path, file: &str, n: usize) {
    fs::write(home.join(file), log(n)).expect("a file");
}

fn refused(home: &Path, arguments: &[&str], expected: &str) {
    let (status, _, stderr) = run(home, arguments);
    assert_eq!(status, Some(2), "{stderr}");
    assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
}

#[test]
fn a_run_resumes_after_its_file_has_grown() {
    let (grown, same) = (home(), home());
    write(grown.path(), "events.csv", 260);
    let (status, stdout, stderr) = run(grown.path(), &["train", "--resume", "run", "--epochs", "2", "--json"]);
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stderr.contains("on its own 200 events; 60 newer ones in"), "{stderr}");
    let expected = json(same.path(), &["train", "--resume", "run", "--epochs", "2", "--json"]);
    let found: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(found["test"], expected["test"]);
    assert_eq!(found["val"], expected["val"]);
}

#[test]
fn newer_events_are_named_and_tested_on_request() {
    let home = home();
    let before = json(home.path(), &["evaluate", "run", "--json"]);
    write(home.path(), "events.csv", 260);
    let (status, stdout, stderr) = run(home.path(), &["evaluate", "run", "--json"]);
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stderr.contains("has 60 newer events that the run did not know; test on them with --new"), "{stderr}");
    let after: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(after["negatives"], before["negatives"]);

    let protocols = ["--negatives", "all", "--ranking", "5", "--json"];
    let new = json(home.path(), &[&["evaluate", "run", "--new"], &protocols[..]].concat());
    let tested = &new["tested"];
    assert_eq!((&tested["range"], tested["events"].as_u64()), (&Value::from("new"), Some(60)));
    assert_eq!((tested["first_time"].as_f64(), tested["last_time"].as_f64()), (Some(100.0), Some(129.0)));
    assert_eq!(tested["trained_on"], 0);
    for negatives in ["random", "historical", "inductive"] {
        let scorers = new["negatives"][negatives].as_object().expect("scorers");
        assert_eq!(scorers.len(), 6, "the model and five heuristics");
        assert!(scorers.values().all(|settings| settings["inductive"]["ap"].is_f64()), "{scorers:?}");
    }
    assert!(new["ranking"]["scorers"]["hopedgn"]["inductive"]["mrr"].is_f64());
    // The same events by their time.
    let from = json(home.path(), &[&["evaluate", "run", "--from", "100"], &protocols[..]].concat());
    assert_eq!((&from["negatives"], &from["ranking"]), (&new["negatives"], &new["ranking"]));

    let (_, stdout, stderr) = run(home.path(), &["evaluate", "run", "--from", "40", "--until", "110"]);
    assert!(stdout.contains("events.csv, 140 events from 40 to 109"), "{stdout}");
    assert!(stderr.contains("the model was trained on ") && stderr.contains(" of the 140 tested events"), "{stderr}");
    let (_, stdout, _) = run(home.path(), &["evaluate", "run", "--new"]);
    assert!(stdout.contains("60 new events from 100 to 129"), "{stdout}");
    refused(home.path(), &["evaluate", "run", "--from", "soon"], "found --from soon, expected a number");
    refused(home.path(), &["evaluate", "run", "--from", "1000"], "found no event from 1000 on, expected at least one");
    refused(home.path(), &["evaluate", "run", "--new", "--from", "1"], "cannot be used with");
    write(home.path(), "events.csv", 200);
    refused(home.path(), &["evaluate", "run", "--new"], "found no event after the 200 of the run");
}

#[test]
fn a_warm_start_trains_a_new_run_and_leaves_the_old_one_alone() {
    let home = home();
    write(home.path(), "grown.csv", 260);
    let weights = |folder: &str| fs::read(home.path().join(folder).join("model.safetensors")).expect("weights");
    let before = weights("run");
    let arguments = ["train", "--resume", "run", "--data", "grown.csv", "--epochs", "2"];
    let (status, stdout, stderr) = run(home.path(), &arguments);
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stderr.contains("60 newer events since run: a new run begins with its weights"), "{stderr}");
    assert!(stdout.contains("runs/grown-hopedgn-0/report.html"), "{stdout}");
    assert_eq!(weights("run"), before);
    let manifest = fs::read_to_string(home.path().join("runs/grown-hopedgn-0/manifest.json")).expect("a manifest");
    let manifest: Value = serde_json::from_str(&manifest).expect("JSON");
    assert_eq!(manifest["warm_start"]["events"], 200);
    assert_eq!(manifest["data"]["events"], 260);
    assert!(manifest["warm_start"]["run"].as_str().is_some_and(|run| run.ends_with("run")));

    let named = json(home.path(), &[&arguments[..5], &["--out", "next", "--epochs", "1", "--json"]].concat());
    assert_eq!(named["epochs"], 1);
    // The new run is one like any other.
    assert_eq!(json(home.path(), &["train", "--resume", "next", "--epochs", "2", "--json"])["epochs"], 2);
    refused(home.path(), &["train", "--resume", "run", "--out", "other"], "leave --out away to continue run");
}

#[test]
fn the_first_event_that_differs_is_named() {
    let home = home();
    let changed = log(260).replacen("\n106,107,41\n", "\n106,104,41\n", 1);
    assert_ne!(changed, log(260));
    fs::write(home.path().join("changed.csv"), changed).expect("a file");
    let expected = "changed.csv: event 84: found 106, 104 at 41, expected 106, 107 at 41: found 260 other events";
    for command in [&["train", "--resume"][..], &["evaluate"]] {
        refused(home.path(), &[command, &["run", "--data", "changed.csv"]].concat(), expected);
    }
    assert!(!home.path().join("runs").exists());
}
