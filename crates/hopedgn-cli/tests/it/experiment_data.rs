//! Data of experiments: found by the name of the set in the layouts that users have, and distinguished by its content.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::{json, run};

/// Tiny models on the datasets in the place of DATA.
const TINY: &str = r#"title = "Tiny"
kind = "link-prediction"
metrics = ["ap"]
[grid]
model = ["hopedgn"]
data = [DATA]
seed = [0]
[[override]]
when = { model = "hopedgn" }
set.model = { d-channel = 4, d-time = 4, d-out = 6, length = 6, d-mite = 4, patch = 1 }
set.train = { batch = 50, epochs = 1 }
source = "small enough for a debug build"
"#;

fn folder(data: &[&str]) -> TempDir {
    let home = tempfile::tempdir().expect("a folder");
    let names: Vec<String> = data.iter().map(|name| format!("{name:?}")).collect();
    fs::write(home.path().join("tiny.toml"), TINY.replace("DATA", &names.join(", "))).expect("a file");
    home
}

fn states(home: &Path, arguments: &[&str]) -> Vec<String> {
    let answer = json(home, &[&["experiment", "status", "tiny.toml", "--json"], arguments].concat());
    let cells = answer["cells"].as_array().expect("cells").clone();
    cells.iter().map(|cell| cell["state"].as_str().expect("text").to_owned()).collect()
}

/// Users 1 to 20, items 21 to 30; `shift` moves the items.
fn events(n: usize, shift: usize) -> Vec<[usize; 3]> {
    (0..n).map(|i| [1 + i % 20, 21 + (i * 7 + i / 20 + shift) % 10, i * 10]).collect()
}

/// A NumPy matrix of doubles whose first row is padding, as DyGLib writes it.
fn npy(rows: usize, width: usize, value: impl Fn(usize) -> f64) -> Vec<u8> {
    let mut header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, {width}), }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len()).expect("short").to_le_bytes());
    bytes.extend(header.as_bytes());
    for at in 0..rows * width {
        bytes.extend(if at < width { 0.0 } else { value(at) }.to_le_bytes());
    }
    bytes
}

/// `ml_NAME.csv` with `ml_NAME.npy` and `ml_NAME_node.npy`, as DyGLib's preprocessing leaves them.
fn write_dyglib(folder: &Path, name: &str, n_events: usize, features: usize, value: impl Fn(usize) -> f64) {
    fs::create_dir_all(folder).expect("a folder");
    let mut text = String::from(",u,i,ts,label,idx\n");
    for (i, [src, dst, time]) in events(n_events, 0).into_iter().enumerate() {
        writeln!(text, "{i},{src},{dst},{time}.0,0.0,{}", i + 1).expect("a string");
    }
    fs::write(folder.join(format!("ml_{name}.csv")), text).expect("a file");
    fs::write(folder.join(format!("ml_{name}.npy")), npy(n_events + 1, features, value)).expect("a file");
    fs::write(folder.join(format!("ml_{name}_node.npy")), npy(31, 172, |_| 0.0)).expect("a file");
}

#[test]
fn one_command_trains_on_files_as_dyglib_lays_them_out() {
    let home = folder(&["reddit", "wikipedia", "mooc", "lastfm", "canparl"]);
    let data = home.path().join("processed_data");
    // Each in a folder of its own, as DyGLib has them; LastFM without a folder.
    write_dyglib(&data.join("reddit"), "reddit", 400, 172, |at| (at % 7) as f64);
    write_dyglib(&data.join("wikipedia"), "wikipedia", 300, 172, |at| (at % 5) as f64);
    write_dyglib(&data.join("mooc"), "mooc", 300, 4, |at| (at % 3) as f64);
    write_dyglib(&data, "lastfm", 500, 2, |_| 0.0);
    write_dyglib(&data.join("CanParl"), "CanParl", 300, 1, |at| (at % 3) as f64);
    let command = ["experiment", "run", "tiny.toml", "--data-dir", "processed_data", "--device", "cpu"];
    let (status, stdout, stderr) = run(home.path(), &command);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    assert!(stdout.contains("5 done"), "{stdout}");
    for (name, n_events, width) in [
        ("reddit", 400, Some(172)),
        ("wikipedia", 300, Some(172)),
        ("mooc", 300, Some(4)),
        ("lastfm", 500, None),
        ("canparl", 300, Some(1)),
    ] {
        let manifest = home.path().join(format!("runs/experiments/tiny/{name}-hopedgn-0/manifest.json"));
        let manifest: Value = serde_json::from_str(&fs::read_to_string(manifest).expect("a file")).expect("JSON");
        let data = &manifest["data"];
        assert_eq!(data["events"], n_events, "{name}");
        assert_eq!((&data["edge_features"], &data["node_features"]), (&width.into(), &Value::Null), "{name}");
    }
}

#[test]
fn a_finished_run_on_other_events_is_not_reused() {
    let home = folder(&["shop"]);
    let write = |shift: usize| {
        let rows: Vec<String> =
            events(300, shift).iter().map(|[src, dst, time]| format!("{src},{dst},{time}\n")).collect();
        fs::write(home.path().join("shop.csv"), format!("src,dst,time\n{}", rows.concat())).expect("a file");
    };
    write(0);
    let command = ["experiment", "run", "tiny.toml", "--data-dir", ".", "--device", "cpu"];
    let (status, stdout, stderr) = run(home.path(), &command);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    let (status, stdout, stderr) =
        run(home.path(), &["experiment", "archive", "runs/experiments/tiny", "--out", "old.jsonl"]);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    let here = ["--data-dir", "."];
    let elsewhere = ["--data-dir", ".", "--runs", "other", "--results", "old.jsonl"];
    assert_eq!(
        (states(home.path(), &here), states(home.path(), &elsewhere)),
        (vec!["done".into()], vec!["done".into()])
    );

    // Its content is read once.
    let known = home.path().join("runs/experiments/contents.json");
    let text = fs::read_to_string(&known).expect("a file");
    assert!(text.contains("shop.csv") && text.contains("\"events\": 300"), "{text}");
    let wrong = text.replace("\"events\": 300", "\"events\": 299");
    fs::write(&known, wrong).expect("a file");
    assert_eq!(states(home.path(), &here), ["data changed"], "taken from there");
    fs::write(&known, text).expect("a file");

    // The same name and other events: neither the folder nor the archive counts.
    write(3);
    assert_eq!(states(home.path(), &here), ["data changed"]);
    assert_eq!(states(home.path(), &elsewhere), ["not run"]);
    let nowhere = ["--data-dir", "nowhere", "--runs", "other", "--results", "old.jsonl"];
    assert_eq!(states(home.path(), &nowhere), ["done"], "without data the name decides");
    let (status, stdout, stderr) = run(home.path(), &command);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    assert!(stderr.contains("0 already done, 1 to run"), "{stderr}");
    assert!(home.path().join("runs/experiments/tiny/shop-hopedgn-0.before-1/summary.json").is_file());
    let (status, _, stderr) = run(home.path(), &["experiment", "report", "tiny.toml", "--data-dir", "."]);
    assert_eq!(status, Some(0), "{stderr}");
    let page = fs::read_to_string(home.path().join("runs/experiments/tiny/report.md")).expect("a page");
    assert!(page.contains("## Data\n\n- shop: 300 events of 30 nodes, SHA-256 "), "{page}");
    assert!(page.contains("(1 run), the file at hand"), "{page}");
}
