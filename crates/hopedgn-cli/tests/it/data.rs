//! `hopedgn data` and `hopedgn bench` as users and scripts run them.

use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::{json, run};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

#[test]
fn split_json_holds_the_documented_fields() {
    let folder = folder();
    let split = json(folder.path(), &["data", "split", "collegemsg", "--mode", "dyglib", "--json"]);
    for field in ["train", "val", "test", "new_node_val", "new_node_test", "new_nodes"] {
        assert!(split[field].is_u64(), "{field} in {split}");
    }
    assert!(split["val_time"].is_f64() && split["test_time"].is_f64());
    assert_eq!(split["mode"], "dyglib");
    assert_eq!((&split["masked"]["count"], &split["masked"]["sum"]), (&189.into(), &224_768.into()));
    assert_eq!(split["masked"]["sha256"].as_str().map(str::len), Some(64));
    let portable = json(folder.path(), &["data", "split", "collegemsg", "--mode", "portable", "--json"]);
    assert_eq!(portable["masked"]["count"], 189);
    assert_ne!(portable["masked"]["sum"], split["masked"]["sum"]);
}

#[test]
fn split_out_writes_a_rule_that_parses() {
    let folder = folder();
    let (status, _, stderr) = run(folder.path(), &["data", "split", "collegemsg", "--out", "rule.json"]);
    assert_eq!(status, Some(0), "{stderr}");
    let text = fs::read_to_string(folder.path().join("rule.json")).expect("written");
    let rule: ctdg::split::SplitRule = hopedgn::file_format::from_json(Path::new("rule.json"), &text).expect("a rule");
    assert_eq!((rule.masked.len(), rule.n_events), (189, 59_835));
}

#[test]
fn info_prints_counts_and_histograms() {
    let folder = folder();
    let (status, stdout, stderr) = run(folder.path(), &["data", "info", "collegemsg"]);
    assert_eq!((status, stderr.as_str()), (Some(0), ""), "nothing on stderr without a terminal");
    for part in ["59,835", "1,899", "66.1 % of events repeat a pair", "history:", "█", "new-node test"] {
        assert!(stdout.contains(part), "{part} in {stdout}");
    }
    let info = json(folder.path(), &["data", "info", "collegemsg", "--json"]);
    assert_eq!((&info["events"], &info["nodes"], &info["self_loops"]), (&59_835.into(), &1_899.into(), &0.into()));
    assert_eq!(info["split"]["masked"]["count"], 189);
}

#[test]
fn info_has_every_column_of_the_dataset_table_of_the_paper() {
    let folder = folder();
    let info = json(folder.path(), &["data", "info", "collegemsg", "--json"]);
    // Nodes, links, node features, edge features, bipartite, duration and intensity.
    assert_eq!((&info["nodes"], &info["events"]), (&1_899.into(), &59_835.into()));
    assert_eq!((&info["node_features"], &info["edge_features"]), (&0.into(), &0.into()));
    assert_eq!(info["bipartite"], false);
    let (duration, intensity) = (info["duration"].as_f64().unwrap(), info["intensity"].as_f64().unwrap());
    assert!((duration / 86_400.0 - 193.7).abs() < 0.1, "{duration}");
    let by_definition = 2.0 * 59_835.0 / (1_899.0 * duration);
    assert!((intensity / by_definition - 1.0).abs() < 1e-12 && (intensity - 3.79e-6).abs() < 0.05e-6, "{intensity}");
    let (_, text, _) = run(folder.path(), &["data", "info", "collegemsg"]);
    for part in ["not bipartite", "(193.7 days if these are seconds)", "3.77e-6 events", "edge none, node none"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn list_names_every_dataset_and_how_to_get_it() {
    let folder = folder();
    let list = json(folder.path(), &["data", "list", "--data-dir", ".", "--json"]);
    let names: Vec<&str> =
        list["data"].as_array().expect("a list").iter().filter_map(|entry| entry["name"].as_str()).collect();
    for name in [
        "collegemsg",
        "reddit",
        "wikipedia",
        "mooc",
        "lastfm",
        "uci",
        "enron",
        "canparl",
        "like-lastfm",
        "triadic",
        "tastes",
    ] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    let (_, text, _) = run(folder.path(), &["data", "list", "--data-dir", "."]);
    assert!(text.contains("the same events as uci") && text.contains("the same events as collegemsg"), "{text}");
}

#[test]
fn generated_stream_survives_conversion_through_every_format() {
    let folder = folder();
    let generated = json(folder.path(), &["data", "generate", "triadic", "t.csv", "--episodes", "50", "--json"]);
    assert_eq!((&generated["events"], &generated["queries"]["pairs"]), (&300.into(), &200.into()));
    assert!(generated["optimal"]["auc"].as_f64().is_some_and(|auc| auc > 0.5));
    let queries = fs::read_to_string(folder.path().join("t_queries.csv")).expect("written");
    assert_eq!(queries.lines().count(), 201);
    for (from, to) in [("t.csv", "t.parquet"), ("t.parquet", "t.ctdg"), ("t.ctdg", "back.csv")] {
        let (status, _, stderr) = run(folder.path(), &["data", "convert", from, to]);
        assert_eq!(status, Some(0), "{stderr}");
    }
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).expect("written");
    assert_eq!(read("t.csv"), read("back.csv"));
}

#[test]
fn reading_csv_takes_less_than_one_and_a_half_times_the_memory_of_its_columns() {
    const N: u32 = 1_000_000;
    let folder = folder();
    let mut table = "src,dst,time\n".to_owned();
    for i in 0..N {
        writeln!(table, "{},{},{i}", i % 5_003, i % 4_999).expect("a string");
    }
    fs::write(folder.path().join("big.csv"), table).expect("written");
    fs::write(folder.path().join("small.csv"), "src,dst,time\n1,2,3\n").expect("written");
    let peak = |name: &str| {
        let converted = json(folder.path(), &["data", "convert", name, "out.ctdg", "--force", "--json"]);
        converted["peak_memory"].as_f64()
    };
    let (Some(small), Some(big)) = (peak("small.csv"), peak("big.csv")) else {
        let is_linux = cfg!(target_os = "linux");
        assert!(!is_linux, "Linux reports the peak memory of a process");
        return;
    };
    let columns = f64::from(N) * 20.0;
    assert!(big - small < 1.5 * columns, "{} bytes for columns of {columns}", big - small);
}

#[test]
fn bad_input_exits_with_2_and_names_place_and_remedy() {
    let folder = folder();
    fs::write(folder.path().join("x.csv"), "src,dst,time\n1,2,3\n1,2,2\n").expect("written");
    let (status, stdout, stderr) = run(folder.path(), &["data", "convert", "x.csv", "y.ctdg"]);
    assert_eq!((status, stdout.as_str()), (Some(2), ""));
    assert_eq!(
        stderr,
        "error: x.csv, line 3, column 3 (time): found the time 2 after 3, expected times that never go backwards; \
         sort the file, or let --sort do it\n"
    );
    assert!(!folder.path().join("y.ctdg").exists(), "nothing is half-written");
    let (_, _, stderr) = run(folder.path(), &["data", "info", "reddit", "--data-dir", "."]);
    assert_eq!(stderr, "error: the dataset reddit is not on this machine; fetch it with `hopedgn data fetch reddit`\n");
    for arguments in [
        &["data", "info", "nowhere"][..],
        &["data", "info", "reddit", "--data-dir", "."],
        &["data", "info"],
        &["data", "convert", "x.csv", "y.docx", "--sort"],
        &["data", "fetch", "nowhere"],
        &["data", "info", "collegemsg", "--threads", "0"],
        &["data", "info", "collegemsg", "--threads", "100000"],
        &["data", "generate", "like-mooc", "y.csv", "--scale", "1e30"],
        &["data", "generate", "like-mooc", "y.csv", "--scale", "nan"],
        &["bench", "sample", "--repeats", "0"],
        &["bench", "sample", "--repeats", "1000000000000000"],
        &["bench", "sample", "--sampling", "uniform", "--k", "99999999999999"],
        &["bench", "encode", "--length", "18446744073709551615"],
        &["bench", "encode", "--length", "0"],
        &["wl", "collegemsg", "collegemsg", "--k", "1", "--until", "nan"],
        &["wl", "examples", "--k", "7"],
        &["nonsense"],
    ] {
        let (status, stdout, stderr) = run(folder.path(), arguments);
        assert_eq!((status, stdout.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(stderr.starts_with("error: "), "{arguments:?}: {stderr}");
    }
}

#[cfg(unix)]
#[test]
fn output_file_name_that_is_not_utf8_is_accepted() {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = folder();
    let name = std::ffi::OsStr::from_bytes(b"bad\xff.csv");
    let converted = Command::new(env!("CARGO_BIN_EXE_hopedgn"))
        .current_dir(folder.path())
        .args(["data", "convert", "collegemsg", "--json"])
        .arg(name)
        .output()
        .expect("it starts");
    assert_eq!(converted.status.code(), Some(0));
    assert!(serde_json::from_slice::<Value>(&converted.stdout).is_ok());
    assert!(folder.path().join(name).exists());
}

#[test]
fn query_file_is_written_with_its_stream_or_not_at_all() {
    let folder = folder();
    fs::create_dir(folder.path().join("taken.csv")).expect("made");
    let (status, ..) = run(folder.path(), &["data", "generate", "triadic", "taken.csv", "--episodes", "5"]);
    assert_eq!(status, Some(2));
    assert!(!folder.path().join("taken_queries.csv").exists());
    for name in ["t.1.csv", "t.2.csv"] {
        json(folder.path(), &["data", "generate", "triadic", name, "--episodes", "5", "--json"]);
    }
    assert!(folder.path().join("t.1_queries.csv").exists() && folder.path().join("t.2_queries.csv").exists());
}

#[test]
fn bipartite_stream_stays_bipartite_in_csv() {
    let folder = folder();
    let made = json(folder.path(), &["data", "generate", "like-lastfm", "g.csv", "--scale", "0.001", "--json"]);
    let read = json(folder.path(), &["data", "info", "g.csv", "--json"]);
    assert_eq!((&made["nodes"], &read["bipartite"]), (&read["nodes"], &true.into()));
}

#[test]
fn closed_stdout_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_hopedgn"))
        .args(["data", "info", "collegemsg"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    drop(child.stdout.take());
    let mut stderr = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut stderr).expect("text");
    assert_eq!((child.wait().expect("it ends").code(), stderr.as_str()), (Some(0), ""));
}

#[test]
fn counts_of_one_are_singular() {
    let folder = folder();
    fs::write(folder.path().join("one.csv"), "src,dst,time\n1,1,3\n").expect("written");
    let (status, stdout, stderr) = run(folder.path(), &["data", "convert", "one.csv", "one.ctdg"]);
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stdout.starts_with("one.ctdg: 1 event, 1 node, "), "{stdout}");
}

#[test]
fn bench_json_holds_the_documented_fields() {
    let folder = folder();
    for bench in ["load", "sample", "encode"] {
        let report: Value = json(folder.path(), &["bench", bench, "--repeats", "1", "--json"]);
        assert_eq!(
            (&report["bench"], &report["device"], &report["repeats"]),
            (&bench.into(), &"cpu".into(), &1.into())
        );
        for field in ["per_second", "best", "median"] {
            assert!(report[field].as_f64().is_some_and(|rate| rate > 0.0), "{field} in {report}");
        }
    }
}
