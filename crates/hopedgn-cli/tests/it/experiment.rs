//! Grids from outside: running, skipping, failing, reporting, checking.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::{json, run};

const GRID: &str = r#"title = "A small <grid>"
kind = "link-prediction"
[grid]
model = ["hopedgn", "tgat"]
data = ["uci"]
seed = [0, 1]
[[paper]]
model = "tgat"
data = "uci"
transductive = { ap = [79.51, 0.33], auc = [78.30, 0.48] }
"#;

/// One cell on sound events, one on a damaged file, one on a file that is not there.
const MIXED: &str = r#"title = "Mixed"
kind = "link-prediction"
metrics = ["ap"]
[grid]
model = ["hopedgn"]
data = ["broken", "events", "lastfm"]
seed = [0]
[[override]]
when = { data = ["broken", "events", "lastfm"] }
set.model = { d-channel = 4, d-time = 4, d-out = 6, length = 6, d-mite = 4, patch = 1 }
set.train = { batch = 20, epochs = 2 }
source = "small enough for a debug build"
[[paper]]
model = "hopedgn"
data = "events"
transductive = { ap = [100.0, 0.0] }
[[expect]]
when = { data = "events" }
setting = "transductive"
at-least = 1.0
"#;

fn folder(grid: &str) -> TempDir {
    let home = tempfile::tempdir().expect("a folder");
    fs::write(home.path().join("grid.toml"), grid).expect("a file");
    home
}

fn states(answer: &Value) -> Vec<String> {
    let cells = answer["cells"].as_array().expect("cells");
    cells.iter().map(|cell| cell["state"].as_str().expect("text").to_owned()).collect()
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).expect("text")
}

#[test]
fn a_grid_is_tried_whole_and_what_is_done_is_not_done_again() {
    let home = folder(GRID);
    let (status, stdout, stderr) =
        run(home.path(), &["experiment", "run", "grid.toml", "--smoke", "--jobs", "2", "--device", "cpu"]);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    assert!(stdout.contains("uci-hopedgn-0") && stdout.contains("2 done"), "{stdout}");
    assert!(stderr.contains("2 cells, 0 done before, 2 to run, 2 at a time"), "{stderr}");
    let runs = home.path().join("runs/experiments/grid-smoke");
    let before = text(&runs.join("uci-tgat-0/manifest.json"));
    assert!(text(&runs.join("uci-tgat-0/cell.json")).contains("\"hash\""));

    let (status, _, stderr) = run(home.path(), &["experiment", "run", "grid.toml", "--smoke"]);
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stderr.contains("2 done before, 0 to run"), "{stderr}");
    assert_eq!(text(&runs.join("uci-tgat-0/manifest.json")), before);

    // Other settings, another run; the old one is kept.
    let other = "[[override]]\nwhen = { model = \"tgat\" }\nset = { train.lr = 0.01 }\nsource = \"a test\"\n";
    fs::write(home.path().join("grid.toml"), format!("{GRID}{other}")).expect("a file");
    let answer = json(home.path(), &["experiment", "status", "grid.toml", "--smoke", "--json"]);
    assert_eq!(states(&answer), ["done", "settings changed"]);
    let (status, _, stderr) = run(home.path(), &["experiment", "run", "grid.toml", "--smoke", "--device", "cpu"]);
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stderr.contains("1 done before, 1 to run"), "{stderr}");
    assert_eq!(text(&runs.join("uci-tgat-0.before-1/manifest.json")), before);

    let answer = json(home.path(), &["experiment", "report", "grid.toml", "--smoke", "--json"]);
    assert_eq!(answer["done"], 2);
    let summary: Value = serde_json::from_str(&text(&runs.join("uci-tgat-0/summary.json"))).expect("JSON");
    let ap = 100.0 * summary["test"]["transductive"]["ap"].as_f64().expect("a number");
    let (page, markdown) = (text(&runs.join("report.html")), text(&runs.join("report.md")));
    for text in [&page, &markdown] {
        for part in [format!("{ap:.2}"), "79.51 ± 0.33".to_owned(), format!("{:+.2}", ap - 79.51)] {
            assert!(text.contains(&part), "{part} in {text}");
        }
        assert!(text.contains("hopedgn experiment run grid.toml --smoke"));
    }
    assert!(page.contains("A small &lt;grid&gt;") && page.contains("href=\"uci-tgat-0/report.html\""), "{page}");
    assert!(markdown.contains("[uci-tgat-0](uci-tgat-0)"), "{markdown}");
}

#[test]
fn a_cell_that_fails_stops_no_other_and_is_told() {
    let home = folder(MIXED);
    let mut events = String::from("src,dst,time\n");
    for i in 0..400 {
        let (circle, step) = (i * 7 % 5 * 4, i % 3);
        writeln!(events, "{},{},{}", 100 + circle + step, 100 + circle + (step + 1) % 4, i / 2).expect("a string");
    }
    fs::create_dir(home.path().join("data")).expect("a folder");
    fs::write(home.path().join("data/events.csv"), events).expect("a file");
    fs::write(home.path().join("data/broken.csv"), "src,dst,time\n1,2,x\n").expect("a file");
    let with = |verb: &'static str| ["experiment", verb, "grid.toml", "--data-dir", "data", "--out", "out"];

    let (status, stdout, stderr) = run(home.path(), &[&with("run")[..], &["--device", "cpu"]].concat());
    assert_eq!(status, Some(1), "{stdout}{stderr}");
    assert!(stderr.contains("missing data: lastfm; get it with: hopedgn data fetch lastfm"), "{stderr}");
    let answer = json(home.path(), &[&with("status")[..], &["--json"]].concat());
    assert_eq!(states(&answer), ["failed", "done", "missing data"]);
    let error = text(&home.path().join("out/broken-hopedgn-0/error.txt"));
    assert!(error.starts_with("error: ") && error.contains("broken.csv"), "{error}");

    let (status, stdout, _) = run(home.path(), &with("check"));
    assert_eq!(status, Some(0), "{stdout}");
    let strict = MIXED.replace("at-least = 1.0", "below-paper-at-most = 0.0");
    fs::write(home.path().join("grid.toml"), strict).expect("a file");
    let (status, stdout, _) = run(home.path(), &with("check"));
    assert_eq!(status, Some(1), "{stdout}");
    assert!(stdout.contains("falls short"), "{stdout}");
    let elsewhere = ["experiment", "check", "grid.toml", "--data-dir", "data", "--out", "nowhere"];
    assert_eq!(run(home.path(), &elsewhere).0, Some(1), "without a result nothing holds");
    let kept = [&elsewhere[..], &["--results", "out"]].concat();
    assert!(run(home.path(), &kept).1.contains("falls short"), "the same run, kept elsewhere");

    // What was repaired is run, and what was done is left alone.
    fs::copy(home.path().join("data/events.csv"), home.path().join("data/broken.csv")).expect("a copy");
    let (status, _, stderr) = run(home.path(), &[&with("run")[..], &["--device", "cpu"]].concat());
    assert_eq!(status, Some(1), "lastfm is still missing: {stderr}");
    let answer = json(home.path(), &[&with("status")[..], &["--json"]].concat());
    assert_eq!(states(&answer), ["done", "done", "missing data"]);
}

#[test]
fn a_wrong_file_is_refused_before_anything_runs() {
    let home = folder(&GRID.replace("\"tgat\"]", "\"tgad\"]"));
    let (status, stdout, stderr) = run(home.path(), &["experiment", "run", "grid.toml", "--smoke"]);
    assert_eq!((status, stdout.as_str()), (Some(2), ""));
    assert!(stderr.contains("grid.toml:4: unknown variant `tgad`, expected one of"), "{stderr}");
    assert!(!home.path().join("runs").exists());
}
