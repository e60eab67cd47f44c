//! `hopedgn train`, `evaluate` and `score` as users and scripts run them.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::{json, run};

/// Small enough for a debug build.
pub(crate) const SMALL: [&str; 12] = [
    "--set",
    "model.d-channel=4",
    "--set",
    "model.d-time=4",
    "--set",
    "model.d-out=6",
    "--set",
    "model.length=6",
    "--set",
    "model.d-mite=4",
    "--set",
    "train.batch=20",
];

/// A folder with 400 events of 20 nodes in five rings.
pub(crate) fn home() -> TempDir {
    let home = tempfile::tempdir().expect("a folder");
    let mut text = String::from("src,dst,time\n");
    for i in 0..400 {
        let (circle, step) = (i * 7 % 5 * 4, i % 3);
        writeln!(text, "{},{},{}", 100 + circle + step, 100 + circle + (step + 1) % 4, i / 2).expect("a string");
    }
    fs::write(home.path().join("events.csv"), text).expect("a file");
    home
}

pub(crate) fn with_small<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    arguments.iter().copied().chain(SMALL).collect()
}

pub(crate) fn trained(home: &Path, epochs: &str) -> Value {
    json(home, &with_small(&["train", "--data", "events.csv", "--out", "run", "--epochs", epochs, "--json"]))
}

#[test]
fn run_folder_holds_every_documented_file() {
    let home = home();
    let summary = trained(home.path(), "2");
    assert_eq!(summary["model"], "hopedgn");
    assert_eq!(summary["epochs"], 2);
    for setting in ["transductive", "inductive"] {
        for metric in ["ap", "auc", "ap_global", "auc_global"] {
            let value = summary["test"][setting][metric].as_f64().expect("a number");
            assert!((0.0..=1.0).contains(&value), "{setting} {metric} {value}");
        }
    }
    assert_eq!(summary["heuristics"].as_object().expect("a map").len(), 5);
    let folder = home.path().join("run");
    for file in
        ["config.toml", "manifest.json", "metrics.jsonl", "summary.json", "model.safetensors", "state.safetensors"]
    {
        assert!(folder.join(file).is_file(), "{file}");
    }
    let text = |file: &str| fs::read_to_string(folder.join(file)).expect("text");
    assert_eq!(text("metrics.jsonl").lines().count(), 2);
    assert!(text("report.html").contains("</svg>") && text("report.html").contains("edgebank-unlimited"));
    let events = fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    assert!(events.into_iter().any(|name| name.to_string_lossy().starts_with("events.out.tfevents")));

    let (status, _, stderr) = run(home.path(), &["train", "--data", "events.csv", "--out", "run"]);
    assert_eq!(status, Some(2));
    assert!(stderr.contains("run: the folder is not empty; continue a run with --resume"), "{stderr}");
}

#[test]
fn evaluation_covers_every_protocol_and_agrees_with_the_summary() {
    let home = home();
    let summary = trained(home.path(), "1");
    let answer = json(home.path(), &["evaluate", "run", "--negatives", "all", "--ranking", "5", "--json"]);
    for negatives in ["random", "historical", "inductive"] {
        let scorers = answer["negatives"][negatives].as_object().expect("scorers");
        assert_eq!(scorers.len(), 6, "the model and five heuristics");
        assert!(scorers.values().all(|settings| settings["transductive"]["ap"].is_f64()));
    }
    assert_eq!(answer["negatives"]["random"]["hopedgn"], summary["test"]);
    let ranking = &answer["ranking"]["scorers"]["hopedgn"]["transductive"];
    assert!(ranking["mrr"].as_f64().is_some_and(|mrr| mrr > 0.0 && mrr <= 1.0), "{ranking}");

    let (status, stdout, _) = run(home.path(), &["evaluate", "run", "--ranking", "all"]);
    assert_eq!(status, Some(0));
    assert!(stdout.contains("ranked against all") && stdout.contains("recency-popularity"), "{stdout}");
}

#[test]
fn scores_keep_the_order_and_the_ids_of_the_file() {
    let home = home();
    trained(home.path(), "1");
    fs::write(home.path().join("pairs.csv"), "src,dst,time\n101,102,150\n100,101,0\n101,102,150\n7,100,199.5\n")
        .expect("a file");
    let answer = json(home.path(), &["score", "run", "--pairs", "pairs.csv", "--explain", "--json"]);
    let rows = answer["scores"].as_array().expect("rows");
    let ids: Vec<_> = rows.iter().map(|row| (row["src"].as_u64(), row["dst"].as_u64(), row["time"].as_f64())).collect();
    assert_eq!(ids[0], (Some(101), Some(102), Some(150.0)));
    assert_eq!(ids[3], (Some(7), Some(100), Some(199.5)));
    assert_eq!(rows[0]["score"], rows[2]["score"], "a score does not depend on its place");
    let explanation = &rows[0]["explanation"];
    assert!(explanation["effects"].as_array().is_some_and(|effects| !effects.is_empty()));
    assert!(rows[1]["explanation"]["effects"].as_array().is_some_and(Vec::is_empty), "nothing before time 0");

    let (status, stdout, stderr) = run(home.path(), &["score", "run", "--pairs", "pairs.csv", "--explain"]);
    assert_eq!(status, Some(0));
    assert!(stdout.starts_with("src,dst,time,score,known\n101,102,150,0."), "{stdout}");
    assert!(stdout.contains("Largest effects on the score") && stdout.contains("have interacted at"), "{stdout}");
    assert!(stderr.contains("1 node is not in the data and scored without a history (7)"), "{stderr}");

    for first in ["101,102", "101,102,3"] {
        fs::write(home.path().join("bad.csv"), format!("{first}\n101,103,soon\n")).expect("a file");
        let (status, _, stderr) = run(home.path(), &["score", "run", "--pairs", "bad.csv"]);
        assert_eq!(status, Some(2));
        assert!(
            stderr.contains("bad.csv, line 2: found the time \"soon\", expected a number, as the times of the data"),
            "{stderr}"
        );
    }
}

#[test]
fn other_models_are_trained_evaluated_and_asked() {
    let home = home();
    fs::write(home.path().join("pairs.csv"), "101,102,150\n7,100,199.5\n").expect("a file");
    for arguments in [&["--model", "jodie"][..], &["--model", "tgat", "--mite", "--set", "model.neighbors=3"]] {
        let name = arguments[1];
        let train = ["train", "--data", "events.csv", "--out", name, "--epochs", "1", "--json"];
        let small = ["--set", "model.d-time=4", "--set", "model.d-out=6", "--set", "train.batch=20"];
        let summary = json(home.path(), &[&train[..], arguments, &small].concat());
        assert_eq!((&summary["model"], &summary["epochs"]), (&name.into(), &1.into()));
        let config = fs::read_to_string(home.path().join(name).join("config.toml")).expect("a file");
        assert_eq!(config.contains("mite = true"), arguments.contains(&"--mite"), "{config}");

        let answer = json(home.path(), &["evaluate", name, "--json"]);
        assert_eq!(answer["negatives"]["random"][name], summary["test"]);

        let answer = json(home.path(), &["score", name, "--pairs", "pairs.csv", "--json"]);
        for row in answer["scores"].as_array().expect("rows") {
            assert!(row["score"].as_f64().is_some_and(|score| score > 0.0 && score < 1.0), "{row}");
        }
        let (status, stdout, stderr) = run(home.path(), &["score", name, "--pairs", "pairs.csv", "--explain"]);
        assert_eq!((status, stdout.as_str()), (Some(2), ""), "{stderr}");
        let expected = "expected a model that sees the newest events of both nodes one by one";
        assert!(stderr.contains(expected) && stderr.contains("score without --explain"), "{stderr}");
    }
}

#[test]
fn bad_arguments_exit_with_2_and_name_the_way_out() {
    let home = home();
    let refused = |arguments: &[&str], expected: &str| {
        let (status, stdout, stderr) = run(home.path(), arguments);
        assert_eq!((status, stdout.as_str()), (Some(2), ""), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    };
    refused(&["evaluate", "nowhere"], "nowhere: found no config.toml, expected the folder of a run");
    refused(&["train", "--resume", "."], ".: found no config.toml");
    refused(
        &["train", "--data", "events.csv", "--set", "model.kk=3"],
        "HopeDGN has no setting `kk`; HopeDGN has: d-channel",
    );
    refused(&["train", "--data", "events.csv", "--device", "cuda"], "no GPU can be used");
    refused(&["train", "--data", "events.csv", "--precision", "bf16"], "the CPU computes in f32 only");
    refused(&["train", "--data", "events.csv", "--out", "events.csv/run"], "could not create");
    refused(&["train", "--preset", "imagenet"], "found no preset");
    fs::write(home.path().join("few.csv"), "src,dst,time\n1,2,3\n").expect("a file");
    refused(&["train", "--data", "few.csv", "--out", "few"], "found no validation events, expected some");
    assert!(!home.path().join("few").exists(), "nothing is left behind");

    trained(home.path(), "1");
    fs::write(home.path().join("other.csv"), "src,dst,time\n1,2,3\n2,3,4\n").expect("a file");
    refused(&["evaluate", "run", "--data", "other.csv"], "expected the 400 events of");
    fs::write(home.path().join("run/state.safetensors"), "junk").expect("a file");
    refused(&["train", "--resume", "run", "--epochs", "2"], "state.safetensors: not a readable safetensors file");
}

#[test]
fn refused_run_leaves_no_folder() {
    let home = home();
    let (status, _, stderr) =
        run(home.path(), &["train", "--model", "hopedgn-global", "--data", "collegemsg", "--out", "run"]);
    assert_eq!(status, Some(2), "{stderr}");
    assert!(stderr.contains("are allowed"), "{stderr}");
    assert!(!home.path().join("run").exists());
}

#[test]
fn run_folder_keeps_how_its_file_is_read() {
    let home = home();
    let text = fs::read_to_string(home.path().join("events.csv")).expect("a file");
    fs::write(home.path().join("log.csv"), text.replace("src,dst,time", "who,whom,clock")).expect("a file");
    let columns = ["--src", "who", "--dst", "whom", "--time", "clock"];
    let train = [&["train", "--data", "log.csv", "--out", "run", "--epochs", "1", "--json"][..], &columns].concat();
    json(home.path(), &with_small(&train));
    json(home.path(), &["evaluate", "run", "--json"]);
    json(home.path(), &["evaluate", "run", "--data", "log.csv", "--json"]);
    json(home.path(), &[&["evaluate", "run", "--data", "log.csv", "--json"][..], &columns].concat());
}

#[test]
fn resume_accepts_more_epochs_but_not_fewer() {
    let home = home();
    trained(home.path(), "1");
    let summary = json(home.path(), &["train", "--resume", "run", "--epochs", "2", "--json"]);
    assert_eq!(summary["epochs"], 2);
    let config = || fs::read_to_string(home.path().join("run/config.toml")).expect("a file");
    let before = config();
    let (status, _, stderr) = run(home.path(), &["train", "--resume", "run", "--epochs", "1"]);
    assert_eq!(status, Some(2));
    assert!(stderr.contains("found train.epochs = 1, expected at least the 2 that are trained"), "{stderr}");
    assert_eq!(config(), before);
    // A lost report or summary is written again.
    fs::remove_file(home.path().join("run/report.html")).expect("a file");
    fs::write(home.path().join("run/summary.json"), "{").expect("a file");
    assert_eq!(json(home.path(), &["train", "--resume", "run", "--json"])["test"], summary["test"]);
    assert!(home.path().join("run/report.html").is_file());
}

#[test]
fn score_uses_the_data_of_the_run_or_warns() {
    let home = home();
    trained(home.path(), "1");
    fs::write(home.path().join("pairs.csv"), "101,102\n01,102\n").expect("a file");
    let answer = json(home.path(), &["score", "run", "--pairs", "pairs.csv", "--at", "1e308", "--json"]);
    assert!(answer["scores"][0]["score"].is_f64(), "{answer}");
    assert_eq!(answer["scores"][1]["src"], "01", "an id as it was given");
    let events = fs::read_to_string(home.path().join("events.csv")).expect("a file");
    fs::write(home.path().join("grown.csv"), format!("{events}100,101,500\n")).expect("a file");
    let (status, _, stderr) = run(home.path(), &["score", "run", "--pairs", "pairs.csv", "--data", "grown.csv"]);
    assert_eq!(status, Some(0));
    assert!(!stderr.contains("does not begin with"), "{stderr}");
    fs::write(home.path().join("events.csv"), events.replace("100,101", "101,100")).expect("a file");
    let (status, _, stderr) = run(home.path(), &["score", "run", "--pairs", "pairs.csv"]);
    assert_eq!(status, Some(2));
    assert!(stderr.contains("expected the 400 events of"), "{stderr}");
    let (status, _, stderr) = run(home.path(), &["score", "run", "--pairs", "pairs.csv", "--data", "events.csv"]);
    assert_eq!(status, Some(0));
    assert!(stderr.contains("events.csv does not begin with the events that the run was trained on"), "{stderr}");
}
