//! What a shell and a packager use: completions, manual pages, the version with its commit.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::{help, json, run};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

#[test]
fn completions_of_every_shell_name_every_command_and_the_names_of_models_and_datasets() {
    let folder = folder();
    let commands = help::commands();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let (status, script, stderr) = run(folder.path(), &["completions", shell]);
        assert_eq!((status, stderr.as_str()), (Some(0), ""), "{shell}");
        let mut words: Vec<&str> = commands.iter().filter_map(|command| command.last()).map(String::as_str).collect();
        words.push("--negatives");
        // Fish completes values of flags only, PowerShell and Elvish none.
        words.extend(match shell {
            "bash" | "zsh" => &["graphmixer", "dyglib", "canparl", "figure-1"][..],
            "fish" => &["graphmixer", "dyglib"],
            _ => &[],
        });
        for word in words {
            assert!(script.contains(word.trim_start_matches('-')), "{shell}: {word}");
        }
        let document = json(folder.path(), &["completions", shell, "--json"]);
        assert_eq!((&document["shell"], document["script"].as_str()), (&shell.into(), Some(script.as_str())));
    }
}

#[test]
fn completions_of_bash_parse_and_complete_names() {
    let folder = folder();
    let (_, script, _) = run(folder.path(), &["completions", "bash"]);
    let file = folder.path().join("hopedgn.bash");
    fs::write(&file, script).expect("written");
    let bash = |arguments: &[&str]| {
        let output = Command::new("bash").current_dir(folder.path()).args(arguments).output().expect("bash starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    bash(&["-n", "hopedgn.bash"]);
    // As the shell calls it at `hopedgn train --model gr<TAB>`.
    let complete = "source ./hopedgn.bash; COMP_WORDS=(hopedgn train --model gr); COMP_CWORD=3; \
                    _hopedgn hopedgn gr --model; echo \"${COMPREPLY[@]}\"";
    assert_eq!(bash(&["-c", complete]).trim(), "graphmixer");
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = folder();
    let written = json(folder.path(), &["man", "man1", "--json"]);
    let expected: Vec<String> = help::commands()
        .iter()
        .map(|command| [&["hopedgn".to_owned()], &command[..]].concat().join("-") + ".1")
        .collect();
    let mut found: Vec<&str> = written["pages"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    found.sort_unstable();
    let mut sorted: Vec<&str> = expected.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    assert_eq!(found, sorted);
    for name in found {
        let page = fs::read_to_string(folder.path().join("man1").join(name)).expect("written");
        assert!(page.contains(".SH NAME") && page.contains(".SH SYNOPSIS"), "{name}");
        assert!(page.contains("\n  hopedgn "), "{name} has an example");
    }
    let page = fs::read_to_string(folder.path().join("man1/hopedgn-data-info.1")).expect("written");
    assert!(page.contains("HOPEDGN_DATA_DIR"), "environment variables are named: {page}");
    let (status, _, stderr) = run(folder.path(), &["man", "man1"]);
    assert_eq!(status, Some(2), "pages are not overwritten");
    assert!(stderr.contains("expected no such file yet"), "{stderr}");
    let (status, stdout, _) = run(folder.path(), &["man", "man1", "--force"]);
    assert_eq!((status, stdout), (Some(0), format!("man1: {} pages\n", expected.len())));
}

#[test]
fn version_and_manifest_name_the_commit_that_the_program_was_built_from() {
    let folder = folder();
    let (_, text, _) = run(folder.path(), &["--version"]);
    let version = text.trim().strip_prefix("hopedgn ").expect("the name");
    let (number, commit) = match version.split_once(" (") {
        Some((number, commit)) => (number, commit.strip_suffix(')')),
        None => (version, None),
    };
    assert_eq!(number, env!("CARGO_PKG_VERSION"));
    json(folder.path(), &["data", "generate", "triadic", "t.csv", "--episodes", "30", "--json"]);
    let small = ["--preset", "quick", "--epochs", "1", "--set", "model.d-channel=4", "--set", "model.length=4"];
    json(folder.path(), &[&["train", "--data", "t.csv", "--out", "run", "--json"][..], &small].concat());
    let manifest = fs::read_to_string(folder.path().join("run/manifest.json")).expect("written");
    let manifest: Value = serde_json::from_str(&manifest).expect("JSON");
    match (commit, manifest["commit"].as_str()) {
        (Some(short), Some(full)) => {
            let [short, full] = [short, full].map(|commit| commit.trim_end_matches("-dirty"));
            assert!(full.starts_with(short), "{short} and {full}");
        }
        // Built from a copy without git.
        (None, None) => {}
        (short, full) => panic!("--version says {short:?}, the manifest {full:?}"),
    }
    let is_checkout = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.git").exists();
    assert!(!is_checkout || commit.is_some(), "a checkout has a commit: {text}");
}
