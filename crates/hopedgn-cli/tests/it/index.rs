//! Streams larger than memory: `data index`, and commands that use an index.

use std::fs;
use std::path::Path;
use std::process::Command;

use ctdg::dataset::{self, ReadOptions};
use ctdg::index;
use serde_json::Value;

use super::run;

fn ok(folder: &Path, arguments: &str) -> String {
    let (status, stdout, stderr) = run(folder, &arguments.split(' ').collect::<Vec<_>>());
    assert_eq!(status, Some(0), "{arguments}: {stderr}");
    stdout
}

/// Weights after an epoch, and scores of some pairs.
fn trained(folder: &Path, model: &str, out: &str) -> (Vec<u8>, String) {
    let small = match model {
        "hopedgn" => " --set model.d-channel=4 --set model.length=4 --set model.k=2",
        _ => "",
    };
    ok(folder, &format!("train --data events.ctdg --model {model} --epochs 1 --out {out}{small}"));
    let scores = ok(folder, &format!("score {out} --pairs pairs.csv"));
    (fs::read(folder.join(out).join("model.safetensors")).expect("weights"), scores)
}

#[test]
fn training_and_scores_are_the_same_bits_with_an_index() {
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path();
    ok(folder, "data generate like-lastfm events.ctdg --scale 0.001 --memory 16KiB");
    let whole = ok(folder, "data generate like-lastfm whole.ctdg --scale 0.001");
    assert!(whole.starts_with("whole.ctdg: 1,293 events, "), "{whole}");
    assert_eq!(fs::read(folder.join("events.ctdg")).ok(), fs::read(folder.join("whole.ctdg")).ok(), "spilled or not");
    fs::write(folder.join("pairs.csv"), "src,dst,time\n0,0,1e9\n1,3,1e8\n2,2,5e7\n").expect("written");
    let in_memory = ["stats", "hopedgn"].map(|model| trained(folder, model, &format!("{model}-in-memory")));
    let printed = ok(folder, "data index events.ctdg --memory 1MiB");
    assert!(
        printed.starts_with("events.ctdg.index: 1,293 events, ") && printed.contains(" training events; "),
        "{printed}"
    );
    let files = || fs::read_dir(folder.join("events.ctdg.index")).expect("an index").count();
    assert_eq!(files(), 2, "of all events and of those for training");
    let mapped = ["stats", "hopedgn"].map(|model| trained(folder, model, &format!("{model}-mapped")));
    assert!(in_memory == mapped, "weights and scores");
    assert_eq!(files(), 2);
    let bench: Value = serde_json::from_str(&ok(
        folder,
        "bench sample --data events.ctdg --events 500 --batch 100 --repeats 1 --json",
    ))
    .expect("JSON");
    assert_eq!((&bench["settings"]["mapped"], &bench["items"]), (&true.into(), &1000.into()));
    let again = ok(folder, "data index events.ctdg --memory 1MiB");
    assert!(again.trim_end().ends_with("was there already, and is sound"), "{again}");
    // As of a stream whose events do not fit 32 bits.
    fs::remove_dir_all(folder.join("events.ctdg.index")).expect("removed");
    let events = dataset::read(&folder.join("events.ctdg"), &ReadOptions::default()).expect("events");
    index::build_wide(&events, index::MIN_MEMORY, &|_, _| {}).expect("an index");
    let wide = ["stats", "hopedgn"].map(|model| trained(folder, model, &format!("{model}-wide")));
    assert!(in_memory == wide, "weights and scores with 64 bits for each event");
    assert_eq!(files(), 2, "training events are indexed when they are asked for");
}

#[test]
fn an_index_of_other_events_is_named_with_the_command_that_helps() {
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path();
    ok(folder, "data generate tastes events.ctdg --seed 1");
    ok(folder, "data index events.ctdg --memory 1MiB --split none");
    ok(folder, "data generate tastes events.ctdg --seed 2 --force");
    let (status, _, stderr) = run(folder, &["bench", "sample", "--data", "events.ctdg", "--repeats", "1"]);
    assert_eq!(status, Some(2));
    let expected =
        "expected the index of the events beside it; build it again with `hopedgn data index`, or remove its folder";
    assert!(stderr.contains("all.store: found the index of ") && stderr.trim_end().ends_with(expected), "{stderr}");
    ok(folder, "data index events.ctdg --memory 1MiB --split none");
    ok(folder, "bench sample --data events.ctdg --repeats 1");
    let (status, _, stderr) = run(folder, &["data", "index", "nothing.ctdg"]);
    assert_eq!(status, Some(2), "{stderr}");
    fs::write(folder.join("events.csv"), "1,2,3\n").expect("written");
    let (status, _, stderr) = run(folder, &["data", "index", "events.csv"]);
    assert_eq!(status, Some(2));
    assert!(stderr.contains("expected a .ctdg file"), "{stderr}");
}

/// A disk that is full, as a limit on the size of files.
#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_is_full_ends_with_a_message_and_leaves_nothing() {
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path();
    ok(folder, "data generate like-lastfm events.ctdg --scale 0.02");
    let line = "trap '' XFSZ; ulimit -f 100; exec \"$0\" data index events.ctdg --memory 1MiB";
    let output = Command::new("bash")
        .args(["-c", line, env!("CARGO_BIN_EXE_hopedgn")])
        .current_dir(folder)
        .output()
        .expect("a shell");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("events.ctdg.index/all.store: could not write: File too large"), "{stderr}");
    let left: Vec<_> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").file_name()).collect();
    assert_eq!(left, ["events.ctdg"]);
}
