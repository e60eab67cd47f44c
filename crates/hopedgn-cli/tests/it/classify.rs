//! `hopedgn classify` as users and scripts run it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::{file_of_run, json, run, schemas};

/// A folder with 400 events of 20 sources; an event within five steps of its source's last one has label 1.
fn home() -> TempDir {
    let home = tempfile::tempdir().expect("a folder");
    let (mut text, mut without) = (String::from("src,dst,time,label\n"), String::from("src,dst,time\n"));
    let mut last = [0_usize; 20];
    for i in 1..=400 {
        let src = if i % 3 == 0 { (i / 3) % 20 } else { i * i % 20 };
        let label = usize::from(last[src] > 0 && i - last[src] <= 5);
        last[src] = i;
        writeln!(text, "{src},{},{i},{label}", 20 + i * 7 % 9).expect("a string");
        writeln!(without, "{src},{},{i}", 20 + i * 7 % 9).expect("a string");
    }
    fs::write(home.path().join("events.csv"), text).expect("a file");
    fs::write(home.path().join("bare.csv"), without).expect("a file");
    home
}

/// Trains a run named after its model, small enough for a debug build.
fn trained(home: &Path, model: &str, data: &str) {
    let own: &[&str] = match model {
        "hopedgn" => &["d-channel=4", "length=4", "d-mite=4"],
        "jodie" => &[],
        _ => &["neighbors=3"],
    };
    let settings: Vec<String> =
        own.iter().chain(&["d-time=4", "d-out=6"]).map(|setting| format!("model.{setting}")).collect();
    let mut arguments = vec!["train", "--data", data, "--model", model, "--out", model, "--epochs", "1", "--json"];
    for setting in settings.iter().map(String::as_str).chain(["train.batch=20"]) {
        arguments.extend(["--set", setting]);
    }
    json(home, &arguments);
}

/// Without the fields that depend on clock and machine.
fn without_timings(mut classification: Value) -> Value {
    let fields = classification.as_object_mut().expect("a map");
    for field in ["seconds_per_epoch", "embed_seconds", "peak_memory"] {
        assert!(fields.remove(field).is_some(), "{field}");
    }
    classification
}

#[test]
fn classify_writes_its_json_and_repeats_bit_identically() {
    let home = home();
    for model in ["hopedgn", "tgn"] {
        trained(home.path(), model, "events.csv");
        let file = home.path().join(model).join("classification.json");
        let answer = json(home.path(), &["classify", model, "--epochs", "3", "--patience", "2", "--json"]);
        assert_eq!(file_of_run(&file), answer);
        assert_eq!((&answer["model"], &answer["device"], &answer["seed"]), (&model.into(), &"cpu".into(), &0.into()));
        assert_eq!((&answer["data"], &answer["events"]["train"]), (&"events.csv".into(), &280.into()));
        for part in ["train", "val", "test"] {
            let auc = answer[part]["auc"].as_f64().expect("a number");
            assert!((0.0..=1.0).contains(&auc) && answer["positives"][part].as_u64().is_some_and(|n| n > 0), "{part}");
        }
        assert!(answer["best_epoch"].as_u64() <= answer["epochs"].as_u64());
        // 6 · 80 + 80, 80 · 10 + 10, 10 + 1.
        assert_eq!(answer["parameters"], 560 + 810 + 11);
        let again = ["classify", model, "--epochs", "3", "--patience", "2", "--json", "--threads", "1"];
        assert_eq!(without_timings(json(home.path(), &again)), without_timings(answer));
        let other = json(home.path(), &[&again[..6], &["--json", "--seed", "5"]].concat());
        assert_eq!(other["seed"], 5);

        let (status, stdout, stderr) = run(home.path(), &["classify", model, "--epochs", "12", "--patience", "12"]);
        assert_eq!(status, Some(0), "{stderr}");
        assert!(stdout.contains("validation") && stdout.contains("classification.json"), "{stdout}");
        assert!(stderr.contains("epoch  10") && !stderr.contains("epoch   9"), "every tenth epoch: {stderr}");
        assert!(stderr.contains("embedding the source nodes of 400 events with"), "{stderr}");
    }
    // Further training removes the classification of the old weights.
    let more = json(home.path(), &["train", "--resume", "tgn", "--epochs", "2", "--json"]);
    assert_eq!(more["epochs"], 2);
    assert!(!home.path().join("tgn/classification.json").exists());
}

#[test]
fn labels_may_come_from_another_file_and_mistakes_are_named() {
    let home = home();
    let refused = |arguments: &[&str], expected: &str| {
        let (status, stdout, stderr) = run(home.path(), arguments);
        assert_eq!((status, stdout.as_str()), (Some(2), ""), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    };
    trained(home.path(), "jodie", "bare.csv");
    refused(
        &["classify", "jodie"],
        "found only label 0 in 400 events; node classification needs events of both labels, 0 and 1; Wikipedia and Reddit",
    );
    // Labels are not part of the fingerprint of the data.
    json(home.path(), &["classify", "jodie", "--data", "events.csv", "--epochs", "1", "--json"]);
    fs::write(home.path().join("other.csv"), "src,dst,time,label\n1,2,3,1\n2,3,4,0\n").expect("a file");
    refused(&["classify", "jodie", "--data", "other.csv"], "expected the 400 events of");
    refused(&["classify", "jodie", "--data", "events.csv", "--epochs", "0"], "found epochs = 0, expected at least 1");
    refused(&["classify", "nowhere"], "nowhere: found no config.toml");
    fs::remove_file(home.path().join("jodie/summary.json")).expect("a file");
    refused(&["classify", "jodie", "--data", "events.csv"], "training is not complete; ");
}

#[cfg(unix)]
#[test]
fn ctrl_c_leaves_no_file_behind() {
    use std::process::{Command, Stdio};
    let home = home();
    trained(home.path(), "tgat", "events.csv");
    let mut child = Command::new(env!("CARGO_BIN_EXE_hopedgn"))
        .env("CUDA_VISIBLE_DEVICES", "-1")
        .current_dir(home.path())
        .args(["classify", "tgat", "--epochs", "1000000", "--patience", "1000000", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    // Wait for the line of the tenth epoch.
    let stderr = std::io::BufReader::new(child.stderr.take().expect("piped"));
    let mut lines = std::io::BufRead::lines(stderr).map(|line| line.expect("UTF-8"));
    assert!(lines.any(|line| line.starts_with("epoch  10")));
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(status.expect("kill is there").success());
    assert!(lines.any(|line| line == "interrupted; nothing was written"));
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1));
    schemas::check("interrupted", &serde_json::from_slice(&output.stdout).expect("one JSON document"));
    let left =
        fs::read_dir(home.path().join("tgat")).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    let left: Vec<String> = left.map(|name| name.to_string_lossy().into_owned()).collect();
    assert!(!left.iter().any(|name| name.starts_with("classification") || name.starts_with(".hopedgn-")), "{left:?}");
}

#[test]
fn the_column_of_labels_can_be_named_later() {
    let home = home();
    let events = fs::read_to_string(home.path().join("events.csv")).expect("a file");
    fs::write(home.path().join("events.csv"), events.replace("src,dst,time,label", "from,to,when,state"))
        .expect("a file");
    let columns = ["--src", "from", "--dst", "2", "--time", "when"];
    let small = ["--set", "model.d-time=4", "--set", "model.d-out=6", "--set", "train.batch=20"];
    let train = ["train", "--data", "events.csv", "--model", "jodie", "--out", "jodie", "--epochs", "1", "--json"];
    json(home.path(), &[&train[..], &columns, &small].concat());
    let (status, _, stderr) = run(home.path(), &["classify", "jodie", "--epochs", "1"]);
    assert_eq!(status, Some(2));
    assert!(stderr.contains("name the column of labels with --label"), "{stderr}");
    // The other columns are those of the run.
    let answer = json(home.path(), &["classify", "jodie", "--epochs", "1", "--label", "state", "--json"]);
    assert_eq!(answer["epochs"], 1);
}
