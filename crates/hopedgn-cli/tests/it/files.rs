//! Files that commands read and write: nothing is overwritten or dropped without a word, and no text of a file reaches a terminal raw.

use std::fs;
use std::path::Path;

use super::{json, run};

const EVENTS: &str = "src,dst,time,amount,note\n1,2,10,5.5,hi\n2,3,20,6.5,ho\n";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a.csv"), EVENTS).expect("written");
    folder
}

/// Runs a command that must be refused; its message.
fn refused(folder: &Path, arguments: &[&str]) -> String {
    let (status, _, stderr) = run(folder, arguments);
    assert_eq!(status, Some(2), "{arguments:?}: {stderr}");
    stderr
}

#[test]
fn the_input_is_never_overwritten() {
    let folder = folder();
    let path = folder.path();
    fs::create_dir(path.join("sub")).expect("a folder");
    let names = ["a.csv", "./a.csv", "sub/../a.csv"];
    #[cfg(unix)]
    let names = {
        std::os::unix::fs::symlink("a.csv", path.join("link.csv")).expect("a link");
        fs::hard_link(path.join("a.csv"), path.join("hard.csv")).expect("a link");
        [&names[..], &["link.csv", "hard.csv"]].concat()
    };
    for name in names {
        for force in [&[][..], &["--force"]] {
            let message = refused(path, &[&["data", "convert", "a.csv", name], force].concat());
            assert!(message.contains("which is the input, expected another file"), "{name}: {message}");
        }
        assert_eq!(fs::read_to_string(path.join("a.csv")).expect("the input"), EVENTS);
    }
}

#[test]
fn an_existing_file_is_replaced_only_with_force() {
    let folder = folder();
    let path = folder.path();
    let commands: [&[&str]; 3] = [
        &["data", "convert", "a.csv", "out.csv"],
        &["data", "generate", "triadic", "out.csv", "--episodes", "5"],
        &["data", "split", "collegemsg", "--out", "out.csv"],
    ];
    for command in commands {
        fs::write(path.join("out.csv"), "precious").expect("written");
        let message = refused(path, command);
        assert!(message.contains("found out.csv, expected no such file yet"), "{message}");
        assert!(message.contains("--force"), "{message}");
        assert_eq!(fs::read_to_string(path.join("out.csv")).expect("the file"), "precious");
        let (status, _, stderr) = run(path, &[command, &["--force"]].concat());
        assert_eq!(status, Some(0), "{stderr}");
        assert_ne!(fs::read_to_string(path.join("out.csv")).expect("the file"), "precious");
    }
}

#[test]
fn columns_that_are_not_written_are_named_and_numbers_can_be_kept() {
    let folder = folder();
    let path = folder.path();
    let (status, _, stderr) = run(path, &["data", "convert", "a.csv", "b.csv"]);
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stderr.contains("not written: columns amount, note; --keep-columns"), "{stderr}");
    let (_, _, stderr) = run(path, &["data", "convert", "a.csv", "c.csv", "--keep-columns"]);
    assert!(stderr.contains("not written: column note (not numbers: \"hi\""), "{stderr}");
    let kept = fs::read_to_string(path.join("c.csv")).expect("written");
    assert_eq!(kept, "src,dst,time,label,feat_0\n1,2,10,0,5.5\n2,3,20,0,6.5\n");
    let document = json(path, &["data", "convert", "a.csv", "d.csv", "--json"]);
    assert_eq!(document["unused_columns"], serde_json::json!(["amount", "note"]));
}

#[test]
fn text_of_a_file_reaches_no_terminal_raw() {
    let folder = folder();
    let path = folder.path();
    fs::write(path.join("evil.csv"), "src,dst,time\n\u{1b}[2Jann,bob,1\nbob,\u{1b}]0;owned\u{7},x\0y\n")
        .expect("written");
    let is_clean = |text: &str| !text.chars().any(|c| c.is_control() && c != '\n' && c != '\t');
    let message = refused(path, &["data", "info", "evil.csv"]);
    assert!(is_clean(&message) && message.contains("line 3"), "{message:?}");
    fs::write(path.join("names.csv"), "src,dst,time\n\u{1b}[2Jann,\u{9b}2Jbob,1\nc,d,2\n").expect("written");
    let (status, stdout, stderr) = run(path, &["data", "info", "names.csv"]);
    assert!(status == Some(0) && is_clean(&stdout) && is_clean(&stderr), "{stdout:?} {stderr:?}");
    let message = refused(path, &["data", "info", "no\u{1b}[31msuch.csv"]);
    assert!(is_clean(&message), "{message:?}");
    fs::write(path.join("header.csv"), "\u{1b}[2Ja,b,c\n1,2,3\n").expect("written");
    assert!(is_clean(&refused(path, &["data", "info", "header.csv", "--header"])));
}

#[test]
fn a_file_of_many_columns_is_read_in_linear_time() {
    let folder = folder();
    let n = 30_000;
    let names: Vec<String> = (0..n).map(|i| format!("feat_{i}")).collect();
    let row = |id: usize| format!("{id},{},{id},{}\n", id + 1, vec!["0.5"; n].join(","));
    let text = format!("src,dst,time,{}\n{}{}", names.join(","), row(1), row(2));
    fs::write(folder.path().join("wide.csv"), text).expect("written");
    // Quadratic work took twenty seconds.
    assert_eq!(json(folder.path(), &["data", "info", "wide.csv", "--json"])["edge_features"], n);
}

#[test]
fn what_a_killed_command_left_is_removed_by_the_next_one() {
    let folder = folder();
    let path = folder.path();
    // No process has this number: the largest on Linux is 2^22.
    let name = ctdg::dataset::temporary_prefix().replace(&format!("-{}-", std::process::id()), "-4194999-");
    let litter = path.join(format!("{name}abcdef"));
    fs::write(&litter, "half of it").expect("written");
    let (_, _, stderr) = run(path, &["data", "convert", "a.csv", "b.csv"]);
    let left: Vec<_> = fs::read_dir(path).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with(".hopedgn-")), "{left:?} {stderr}");
}
