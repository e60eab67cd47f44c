//! `hopedgn train --config`: settings from a file, flags above it.

use std::fs;
use std::path::Path;

use crate::run;
use crate::train::{home, trained, with_small};

fn write(home: &Path, text: &str) {
    fs::write(home.join("my.toml"), text).expect("a file");
}

/// The settings that `train --config my.toml` and more arguments resolve to.
fn shown(home: &Path, arguments: &[&str]) -> toml::Table {
    let all = [&["train", "--config", "my.toml", "--show-config"][..], arguments].concat();
    let (status, stdout, stderr) = run(home, &all);
    assert_eq!(status, Some(0), "{stderr}");
    stdout.parse().expect("TOML")
}

#[test]
fn flags_win_over_the_file_and_the_file_over_the_preset() {
    let home = home();
    write(home.path(), "data = \"uci\"\nseed = 3\n[model]\nname = \"tcl\"\ndropout = 0.3\n[train]\nepochs = 7\n");
    let config = shown(home.path(), &[]);
    assert_eq!((config["data"].as_str(), config["seed"].as_integer()), (Some("uci"), Some(3)));
    assert_eq!((config["model"]["name"].as_str(), config["train"]["epochs"].as_integer()), (Some("tcl"), Some(7)));
    let flags =
        ["--model", "tgat", "--epochs", "2", "--seed", "5", "--data", "events.csv", "--set", "model.dropout=0.4"];
    let config = shown(home.path(), &flags);
    assert_eq!((config["data"].as_str(), config["seed"].as_integer()), (Some("events.csv"), Some(5)));
    assert_eq!((config["model"]["name"].as_str(), config["train"]["epochs"].as_integer()), (Some("tgat"), Some(2)));
    assert_eq!(config["model"]["dropout"].as_float(), Some(0.4));
}

#[test]
fn the_config_file_of_a_run_trains_the_same_weights() {
    let home = home();
    trained(home.path(), "2");
    let (status, _, stderr) = run(home.path(), &["train", "--config", "run/config.toml", "--out", "again"]);
    assert_eq!(status, Some(0), "{stderr}");
    let model = |run: &str| fs::read(home.path().join(run).join("model.safetensors")).expect("weights");
    assert_eq!(model("run"), model("again"));
    let (status, _, stderr) =
        run(home.path(), &["train", "--config", "run/config.toml", "--model", "jodie", "--show-config"]);
    assert_eq!(status, Some(0));
    assert!(stderr.contains("settings of the file that JODIE does not have are left out: model."), "{stderr}");
}

#[test]
fn a_file_says_how_the_data_is_read_and_flags_add_to_it() {
    let home = home();
    let events = fs::read_to_string(home.path().join("events.csv")).expect("a file");
    let events = events.replace("src,dst,time", "time;who;whom").replace(',', ";");
    // The first column is the source: the file has to say so. The last row is the first in time.
    fs::write(home.path().join("odd.csv"), format!("{events}101;102;0\n")).expect("a file");
    write(home.path(), "data = \"odd.csv\"\n[read]\nsrc = 1\ndst = \"who\"\ntime = \"whom\"\n");
    let train = |more: &[&str]| {
        let arguments = [&["train", "--config", "my.toml", "--epochs", "1", "--out", "run"][..], more].concat();
        run(home.path(), &with_small(&arguments))
    };
    let (status, _, stderr) = train(&[]);
    assert_eq!(status, Some(2));
    assert!(stderr.contains("let --sort do it"), "{stderr}");
    let (status, _, stderr) = train(&["--sort"]);
    assert_eq!(status, Some(0), "{stderr}");
    let manifest = fs::read_to_string(home.path().join("run/manifest.json")).expect("a file");
    assert!(manifest.contains("\"src\": 1") && manifest.contains("\"sort\": true"), "{manifest}");
}

#[test]
fn wrong_files_are_refused_with_a_way_out() {
    let home = home();
    let refused = |arguments: &[&str], expected: &str| {
        let (status, stdout, stderr) = run(home.path(), arguments);
        assert_eq!((status, stdout.as_str()), (Some(2), ""), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    };
    let with = ["train", "--config", "my.toml"];
    refused(
        &with,
        "my.toml: found no such file, expected settings (TOML); `hopedgn train --show-config` prints such a file",
    );
    refused(&["train", "--config", "."], ".: found a folder, expected a file of settings");
    refused(&["train", "--config", "my.toml", "--resume", "run"], "cannot be used with");
    write(home.path(), "[train]\nepoch = 3\n");
    refused(&with, "my.toml: found no setting `train.epoch`");
    refused(&with, "did you mean `train.epochs`?");
    write(home.path(), "[read]\nbipartit = true\n");
    refused(&with, "did you mean `bipartite`?");
    write(home.path(), "[train]\nepochs = \"many\"\n");
    refused(&with, "my.toml: train.epochs: found \"many\", expected a whole number");
    write(home.path(), "seed = \n");
    refused(&with, "my.toml: ");
}
