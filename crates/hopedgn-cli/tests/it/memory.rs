//! Work that does not fit in memory is refused before it begins, or ends with a message and status 2.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use super::run;

#[test]
fn a_node_memory_that_does_not_fit_is_refused_with_the_figure() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut table = "src,dst,time\n".to_owned();
    for i in 0..20_000 {
        writeln!(table, "{},{},{i}", 2 * i, 2 * i + 1).expect("a string");
    }
    fs::write(folder.path().join("many.csv"), table).expect("written");
    for model in ["tgn", "jodie", "dyrep", "pint"] {
        let arguments = ["train", "--data", "many.csv", "--model", model, "--out", "run", "--max-memory", "64MiB"];
        let (status, stdout, stderr) = run(folder.path(), &arguments);
        assert_eq!((status, stdout.as_str()), (Some(2), ""), "{stderr}");
        let expected = "the memories of 40,000 nodes would take about ";
        assert!(stderr.contains(expected) && stderr.contains(" MiB, of which 64 MiB are available"), "{stderr}");
        assert!(stderr.contains("--max-memory") && stderr.contains("--set model.d-out"), "{stderr}");
        assert!(!folder.path().join("run").exists(), "nothing is left");
    }
}

#[test]
fn an_allocation_beyond_the_limit_ends_with_a_message() {
    let folder = tempfile::tempdir().expect("a folder");
    let step = ["bench", "step", "--pairs", "400", "--tokens", "64", "--repeats", "1", "--device", "cpu"];
    let (status, stdout, stderr) = run(folder.path(), &[&step[..], &["--max-memory", "8MiB", "--json"]].concat());
    assert_eq!(status, Some(2), "{stderr}");
    assert!(stderr.starts_with("error: out of memory: found "), "{stderr}");
    assert!(stderr.trim_end().ends_with("expected at most 8 MiB; allow more with --max-memory"), "{stderr}");
    let document: serde_json::Value = serde_json::from_str(&stdout).expect("one JSON document");
    assert_eq!(document["error"]["code"], "out-of-memory");
}

#[cfg(target_os = "linux")]
#[test]
fn an_allocation_that_the_system_refuses_ends_with_a_message() {
    let folder = tempfile::tempdir().expect("a folder");
    let line =
        "ulimit -v 400000 && exec \"$0\" bench step --pairs 20000 --tokens 64 --threads 1 --repeats 1 --device cpu";
    let output = Command::new("sh")
        .args(["-c", line, env!("CARGO_BIN_EXE_hopedgn")])
        .current_dir(folder.path())
        .output()
        .expect("a shell");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("error: out of memory: found "), "{stderr}");
    assert!(stderr.contains("expected the system to give them; end other programs"), "{stderr}");
}
