//! `examples/own_models.rs`: the command line with a model of one's own; and run folders of earlier versions.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use super::{json, run};

/// The example beside the program; `cargo test` builds both.
fn own_models(folder: &Path, arguments: &[&str]) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_hopedgn")).with_file_name("examples").join("own_models");
    assert!(program.is_file(), "{} is built by `cargo test`, not by `cargo test --test it`", program.display());
    let mut command = Command::new(program);
    command.env("CUDA_VISIBLE_DEVICES", "-1").current_dir(folder).args(arguments).output().expect("it starts")
}

#[test]
fn every_command_works_with_a_registered_model() {
    let home = tempfile::tempdir().expect("a folder");
    let rows: Vec<String> = (0..400).map(|i| format!("{},{},{i}", i % 20, (i + 1) % 20)).collect();
    std::fs::write(home.path().join("events.csv"), format!("src,dst,time\n{}\n", rows.join("\n"))).expect("a file");
    std::fs::write(home.path().join("pairs.csv"), "3,4\n3,9\n").expect("a file");
    let small = ["--set", "model.d-out=8", "--set", "model.tokens=4", "--epochs", "1", "--json"];
    let train = [&["train", "--data", "events.csv", "--model", "deep-sets", "--out", "run"][..], &small].concat();
    let commands: [&[&str]; 4] = [
        &train,
        &["train", "--resume", "run", "--epochs", "2", "--json"],
        &["evaluate", "run", "--negatives", "all", "--json"],
        &["score", "run", "--pairs", "pairs.csv", "--explain", "--json"],
    ];
    for arguments in commands {
        let Output { status, stdout, stderr } = own_models(home.path(), arguments);
        assert!(status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&stderr));
        let answer: Value = serde_json::from_slice(&stdout).expect("one JSON document");
        assert!(answer.is_object(), "{answer}");
    }
    let help = own_models(home.path(), &["train", "--help"]).stdout;
    let help = String::from_utf8_lossy(&help).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("tpnet, stats or deep-sets [default: hopedgn]"), "--model lists what can be named: {help}");
    let (status, _, stderr) = run(home.path(), &["score", "run", "--pairs", "pairs.csv"]);
    assert_eq!(status, Some(2));
    assert!(stderr.contains("deep-sets"), "the plain program does not know the model: {stderr}");
}

/// Manifests of version 0.1 have the command line instead of read options.
#[test]
fn a_run_of_version_0_1_is_scored_with_the_read_options_of_then() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/run-0.1");
    let text = |path: PathBuf| path.to_str().expect("UTF-8").to_owned();
    let (data, pairs) = (text(fixture.join("events.tsv")), text(fixture.join("pairs.csv")));
    let expected = std::fs::read_to_string(fixture.join("expected.json")).expect("a fixture");
    let expected: Value = serde_json::from_str(&expected).expect("JSON");
    for model in ["hopedgn", "tgn"] {
        let run = text(fixture.join(model));
        let found = json(&fixture, &["score", &run, "--data", &data, "--pairs", &pairs, "--json"]);
        for (row, expected) in
            found["scores"].as_array().expect("rows").iter().zip(expected[model]["scores"].as_array().expect("rows"))
        {
            let difference = row["score"].as_f64().expect("a score") - expected.as_f64().expect("a score");
            assert!(difference.abs() < 1e-5, "{model}: {row} instead of {expected}");
        }
    }
}
