//! The command as a user runs it: one binary for all integration tests.

mod audit;
mod classify;
mod config_file;
mod data;
mod docs;
mod evaluate;
mod experiment;
mod experiment_data;
mod fetch;
mod files;
mod grown;
mod help;
mod index;
mod json_errors;
mod lab;
mod memory;
mod own_models;
#[cfg(unix)]
mod page;
#[cfg(unix)]
mod process_group;
mod recommend;
mod schemas;
mod score;
#[cfg(unix)]
mod serve;
#[cfg(unix)]
mod serve_crash;
#[cfg(unix)]
mod serve_fuzz;
mod shell;
#[cfg(unix)]
mod signals;
mod tidy;
mod train;
#[path = "../../../ctdg/tests/it/tries.rs"]
mod tries;
mod wl;

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn hopedgn(folder: &Path, arguments: &[&str]) -> Output {
    // No GPU: results are the same on every machine.
    let mut command = Command::new(env!("CARGO_BIN_EXE_hopedgn"));
    command.env("CUDA_VISIBLE_DEVICES", "-1").current_dir(folder).args(arguments).output().expect("it starts")
}

/// Exit status, stdout and stderr.
fn run(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = hopedgn(folder, arguments);
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (status.code(), text(stdout), text(stderr))
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let (status, stdout, stderr) = run(folder, arguments);
    assert_eq!(status, Some(0), "{stderr}");
    serde_json::from_str(&stdout).expect("one JSON document")
}

/// A JSON file of a run folder without its format, which printed documents do not have.
fn file_of_run(path: &Path) -> Value {
    let mut document: Value = serde_json::from_str(&std::fs::read_to_string(path).expect("a file")).expect("JSON");
    assert_eq!(document.as_object_mut().and_then(|fields| fields.remove("format")), Some(2.into()), "{document}");
    document
}
