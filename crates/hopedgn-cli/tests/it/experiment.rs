//! `hopedgn experiment`: run, skip what is done, fail, report, check.

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

/// One cell on a good file, one on a damaged file, one on a missing file.
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
fn smoke_run_tries_every_cell_and_finished_cells_are_skipped() {
    let home = folder(GRID);
    let (status, stdout, stderr) =
        run(home.path(), &["experiment", "run", "grid.toml", "--smoke", "--jobs", "2", "--device", "cpu"]);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    assert!(stdout.contains("uci-hopedgn-0") && stdout.contains("2 done"), "{stdout}");
    assert!(stderr.contains("2 cells, 0 already done, 2 to run, 2 at once"), "{stderr}");
    let runs = home.path().join("runs/experiments/grid-smoke");
    let before = text(&runs.join("uci-tgat-0/manifest.json"));
    assert!(text(&runs.join("uci-tgat-0/cell.json")).contains("\"hash\""));

    let (status, _, stderr) = run(home.path(), &["experiment", "run", "grid.toml", "--smoke"]);
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stderr.contains("2 already done, 0 to run"), "{stderr}");
    assert_eq!(text(&runs.join("uci-tgat-0/manifest.json")), before);

    // Changed settings make a new run; the old one is kept.
    let other = "[[override]]\nwhen = { model = \"tgat\" }\nset = { train.lr = 0.01 }\nsource = \"a test\"\n";
    fs::write(home.path().join("grid.toml"), format!("{GRID}{other}")).expect("a file");
    let answer = json(home.path(), &["experiment", "status", "grid.toml", "--smoke", "--json"]);
    assert_eq!(states(&answer), ["done", "settings changed"]);
    let (status, _, stderr) = run(home.path(), &["experiment", "run", "grid.toml", "--smoke", "--device", "cpu"]);
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stderr.contains("1 already done, 1 to run"), "{stderr}");
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
        assert!(text.contains("hopedgn experiment run grid.toml --smoke") && text.contains("--smoke"));
    }
    assert!(page.contains("A small &lt;grid&gt;") && page.contains("href=\"uci-tgat-0/report.html\""), "{page}");
    assert!(markdown.contains("[uci-tgat-0](uci-tgat-0)"), "{markdown}");
}

#[test]
fn named_cells_are_run_alone_and_unknown_ones_are_refused() {
    let home = folder(GRID);
    let with = |cell: &'static str| {
        ["experiment", "run", "grid.toml", "--smoke", "--device", "cpu", "--quiet", "--cell", cell]
    };
    let answer = json(home.path(), &[&with("uci-tgat-0")[..], &["--json"]].concat());
    assert_eq!((states(&answer), &answer["cells"][0]["cell"]), (vec!["done".to_owned()], &"uci-tgat-0".into()));
    let answer = json(home.path(), &["experiment", "status", "grid.toml", "--smoke", "--json"]);
    assert_eq!(states(&answer), ["not run", "done"]);
    let (status, _, stderr) = run(home.path(), &with("uci-tgat-9"));
    assert_eq!(status, Some(2), "{stderr}");
    assert!(stderr.contains("found --cell uci-tgat-9, expected a cell of the experiment"), "{stderr}");
}

#[test]
fn a_cluster_needs_the_python_package_and_the_error_says_how_to_get_it() {
    let home = folder(GRID);
    let with = |python: &'static str| ["experiment", "run", "grid.toml", "--on", "auto", "--python", python];
    let (status, _, stderr) = run(home.path(), &with("no-such-python"));
    assert_eq!(status, Some(2), "{stderr}");
    assert!(stderr.contains("could not start no-such-python, the Python that --on needs"), "{stderr}");
    if cfg!(unix) {
        let (status, _, stderr) = run(home.path(), &with("false"));
        assert_eq!(status, Some(2), "{stderr}");
        let expected =
            "false: found no Python package hopedgn, which --on needs; install it with: pip install 'hopedgn[ray]'";
        assert!(stderr.contains(expected), "{stderr}");
    }
}

#[test]
fn failing_cell_is_reported_and_does_not_stop_the_others() {
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
    assert_eq!(run(home.path(), &elsewhere).0, Some(1), "no result, no success");
    let archived = [&elsewhere[..], &["--results", "out"]].concat();
    assert!(run(home.path(), &archived).1.contains("falls short"), "the same run, from an archive");

    // The repaired cell runs, the finished one does not run again.
    fs::copy(home.path().join("data/events.csv"), home.path().join("data/broken.csv")).expect("a copy");
    let (status, _, stderr) = run(home.path(), &[&with("run")[..], &["--device", "cpu"]].concat());
    assert_eq!(status, Some(1), "lastfm is still missing: {stderr}");
    let answer = json(home.path(), &[&with("status")[..], &["--json"]].concat());
    assert_eq!(states(&answer), ["done", "done", "missing data"]);
}

/// Small enough to be evaluated in a debug build.
const EVALUATED: &str = r#"title = "Evaluated"
kind = "link-prediction"
metrics = ["ap", "mrr"]
negatives = ["historical"]
heuristics = ["edgebank-unlimited"]
[grid]
model = ["tgat"]
data = ["uci", "enron"]
seed = [0]
[evaluate]
negatives = "all"
ranking = 100
"#;

#[test]
fn evaluation_runs_without_training_again_when_only_it_is_missing() {
    let home = folder(EVALUATED);
    // With --smoke both cells use the same events; their presets differ.
    let run_it = |file: &str| run(home.path(), &["experiment", "run", file, "--smoke", "--device", "cpu"]);
    let (status, stdout, stderr) = run_it("grid.toml");
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    let runs = home.path().join("runs/experiments/grid-smoke");
    let document: Value = serde_json::from_str(&text(&runs.join("uci-tgat-0/evaluation.json"))).expect("JSON");
    assert_eq!((&document["model"], &document["ranking"]["candidates"]), (&"tgat".into(), &5.into()));
    let ap = 100.0 * document["negatives"]["historical"]["tgat"]["transductive"]["ap"].as_f64().expect("a number");
    let mrr = 100.0 * document["ranking"]["scorers"]["tgat"]["transductive"]["mrr"].as_f64().expect("a number");
    let answer = json(home.path(), &["experiment", "report", "grid.toml", "--smoke", "--json"]);
    assert_eq!(answer["done"], 2);
    let page = text(&runs.join("report.md"));
    for part in [format!("{ap:.2}"), format!("{mrr:.2}"), "EdgeBank, unlimited".to_owned()] {
        assert!(page.contains(&part), "{part} in {page}");
    }

    // Only the missing step runs.
    let manifest = text(&runs.join("uci-tgat-0/manifest.json"));
    fs::remove_file(runs.join("uci-tgat-0/evaluation.json")).expect("a file");
    let answer = json(home.path(), &["experiment", "status", "grid.toml", "--smoke", "--json"]);
    assert_eq!(states(&answer), ["not evaluated", "done"]);
    let (status, _, stderr) = run_it("grid.toml");
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stderr.contains("1 already done, 1 to run"), "{stderr}");
    assert_eq!(text(&runs.join("uci-tgat-0/manifest.json")), manifest, "it was not trained again");
    let again: Value = serde_json::from_str(&text(&runs.join("uci-tgat-0/evaluation.json"))).expect("JSON");
    assert_eq!(again, document);

    // Another experiment with the same settings reuses the runs.
    fs::write(home.path().join("other.toml"), EVALUATED.replace("Evaluated", "Other")).expect("a file");
    let (status, _, stderr) = run_it("other.toml");
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stderr.contains("2 already done, 0 to run"), "{stderr}");

    // Without weights the evaluation fails with a message.
    fs::remove_file(runs.join("uci-tgat-0/evaluation.json")).expect("a file");
    fs::remove_file(runs.join("uci-tgat-0/model.safetensors")).expect("a file");
    let (status, stdout, _) = run_it("grid.toml");
    assert_eq!(status, Some(1), "{stdout}");
    assert!(text(&runs.join("uci-tgat-0/error.txt")).contains("found no model.safetensors"), "{stdout}");
    assert!(stdout.contains("1 failed, 1 done"), "{stdout}");
}

#[test]
fn pages_writes_an_index_of_all_experiments() {
    let home = folder("");
    fs::create_dir_all(home.path().join("experiments/base")).expect("a folder");
    fs::write(home.path().join("experiments/base/grid.toml"), GRID).expect("a file");
    let bars = "extends = \"base/grid.toml\"\ntitle = \"Bars\"\n[[figure]]\nname = \"ap\"\ntitle = \"As bars\"\n\
                kind = \"bars\"\nmetric = \"ap\"\n";
    fs::write(home.path().join("experiments/bars.toml"), bars).expect("a file");
    let plain = "extends = \"base/grid.toml\"\n";
    fs::write(home.path().join("experiments/plain.toml"), plain).expect("a file");
    let pages = ["experiment", "pages", "experiments", "--into", "docs/pages", "--data-dir", "."];
    let (status, stdout, stderr) = run(home.path(), &pages);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    let index = text(&home.path().join("docs/pages.md"));
    assert!(
        index.contains("| `experiments/bars.toml` | [Bars](pages/bars.md) | `pages/bars.html` | 0 of 4 |"),
        "{index}"
    );
    assert!(index.contains("4: no data of uci"), "{index}");
    assert!(index.contains("hopedgn experiment pages experiments --data-dir . --into docs/pages"), "{index}");
    assert!(text(&home.path().join("docs/pages/bars.md")).contains("No results yet"));
    // Another folder of runs is in every command that the pages print.
    let (status, _, stderr) = run(home.path(), &[&pages[..], &["--runs", "my runs"]].concat());
    assert_eq!(status, Some(0), "{stderr}");
    let index = text(&home.path().join("docs/pages.md"));
    assert!(index.contains("in `my runs` count too") && !index.contains("runs/experiments"), "{index}");
    assert!(index.contains("pages experiments --runs 'my runs' --data-dir . --into docs/pages"), "{index}");
    let page = text(&home.path().join("docs/pages/bars.md"));
    assert!(page.contains("experiment run experiments/bars.toml --runs 'my runs' --data-dir ."), "{page}");
    let wrong = [&pages[..], &["--results", "no-*"]].concat();
    let (status, _, stderr) = run(home.path(), &wrong);
    assert_eq!(status, Some(2), "{stderr}");
    assert!(stderr.contains("no-*"), "{stderr}");
}

#[test]
fn report_prints_tables_in_other_formats_and_writes_no_page() {
    let home = folder(GRID);
    let report = ["experiment", "report", "grid.toml", "--data-dir", ".", "--format"];
    let document = json(home.path(), &[&report[..], &["json"]].concat());
    for (format, start) in [
        ("markdown", "All are in percent."),
        ("latex", "% Needs \\usepackage{booktabs}.\n"),
        ("csv", "row,model,mite,variant,data,metric,setting,negatives,mean,sd,n,n_seeds,published,published_sd\n"),
    ] {
        let (status, stdout, stderr) = run(home.path(), &[&report[..], &[format]].concat());
        assert_eq!((status, stderr.as_str()), (Some(0), ""), "{format}");
        assert!(stdout.starts_with(start), "{format}: {stdout}");
        assert_eq!(json(home.path(), &[&report[..], &[format, "--json"]].concat()), document, "--json wins");
    }
    assert_eq!((&document["done"], document["tables"].as_array().map(Vec::is_empty)), (&0.into(), Some(false)));
    assert!(!home.path().join("runs").exists(), "no page is written");
    let both = [&report[..], &["csv", "--html", "page.html"]].concat();
    assert_eq!(run(home.path(), &both).0, Some(2), "either pages or tables");
}

#[test]
fn invalid_file_is_refused_before_anything_runs() {
    let home = folder(&GRID.replace("\"tgat\"]", "\"tgad\"]"));
    let (status, stdout, stderr) = run(home.path(), &["experiment", "run", "grid.toml", "--smoke"]);
    assert_eq!((status, stdout.as_str()), (Some(2), ""));
    assert!(stderr.contains("grid.toml:4: found the model \"tgad\", expected one of hopedgn"), "{stderr}");
    assert!(!home.path().join("runs").exists());
}

/// Columns of other names, times that go backwards.
const ODD: &str = r#"title = "Odd"
kind = "link-prediction"
metrics = ["ap"]
[grid]
model = ["hopedgn"]
data = ["odd"]
seed = [0, 1]
[read.odd]
src = 2
dst = "whom"
time = "when"
sort = true
[[override]]
when = { data = "odd" }
set.model = { d-channel = 4, d-time = 4, d-out = 6, length = 6, d-mite = 4, patch = 1 }
set.train = { batch = 20, epochs = 1 }
source = "small enough for a debug build"
"#;

#[test]
fn the_file_says_how_its_datasets_are_read() {
    let home = folder(ODD);
    let mut events = String::from("when,who,whom\n");
    for i in 0..200 {
        writeln!(events, "{},{},{}", 200 - i, i % 7, 10 + i % 5).expect("a string");
    }
    fs::write(home.path().join("odd.csv"), events).expect("a file");
    let with = |verb: &'static str| ["experiment", verb, "grid.toml", "--data-dir", ".", "--out", "out"];
    let (status, stdout, stderr) = run(home.path(), &with("run"));
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    // The remark about a missing GPU is printed once, and not in the log of each cell.
    assert_eq!(stderr.matches("on the CPU").count(), 1, "{stderr}");
    for seed in [0, 1] {
        let log = text(&home.path().join(format!("out/logs/odd-hopedgn-{seed}.log")));
        assert!(!log.contains("on the CPU") && log.contains("training HopeDGN"), "{log}");
    }
    let manifest: Value =
        serde_json::from_str(&text(&home.path().join("out/odd-hopedgn-0/manifest.json"))).expect("JSON");
    assert_eq!((&manifest["data"]["read"]["src"], &manifest["data"]["read"]["sort"]), (&2.into(), &true.into()));

    // Read in another way, the data is another one.
    fs::write(home.path().join("grid.toml"), ODD.replace("sort = true\n", "")).expect("a file");
    let answer = json(home.path(), &[&with("status")[..], &["--json"]].concat());
    assert_eq!(states(&answer), ["settings changed", "settings changed"]);
    let (status, stdout, _) = run(home.path(), &[&with("run")[..], &["--device", "cpu"]].concat());
    assert_eq!(status, Some(1), "{stdout}");
    assert!(stdout.contains("in an experiment such flags stand as `sort = true` under [read.odd]"), "{stdout}");

    fs::write(home.path().join("grid.toml"), ODD.replace("sort", "srot")).expect("a file");
    let (status, _, stderr) = run(home.path(), &with("status"));
    assert_eq!(status, Some(2));
    assert!(
        stderr.contains("grid.toml:12: unknown field `srot`") && stderr.contains("did you mean `sort`?"),
        "{stderr}"
    );
}

#[test]
fn missing_runs_are_named_with_what_is_expected() {
    let home = folder(GRID);
    for arguments in [
        &["experiment", "report", "grid.toml", "--results", "no.jsonl"][..],
        &["experiment", "archive", "none", "--out", "a.jsonl"],
    ] {
        let (status, _, stderr) = run(home.path(), arguments);
        assert_eq!(status, Some(2), "{stderr}");
        assert!(
            stderr.contains("found no such file or folder, expected a run folder") && !stderr.contains("os error"),
            "{stderr}"
        );
    }
}

#[test]
fn missing_file_is_named_with_a_way_out() {
    let home = folder(GRID);
    let (status, _, stderr) = run(home.path(), &["experiment", "status", "nowhere.toml"]);
    assert_eq!(status, Some(2));
    assert!(stderr.contains("nowhere.toml: found no such file, expected an experiment file"), "{stderr}");
    let (status, _, stderr) = run(home.path(), &["experiment", "status", "."]);
    assert_eq!(status, Some(2));
    assert!(stderr.contains(".: found a folder, expected an experiment file"), "{stderr}");
}

#[test]
fn check_without_expectations_succeeds_with_a_note() {
    let home = folder(GRID);
    let (status, stdout, stderr) = run(home.path(), &["experiment", "check", "grid.toml"]);
    assert_eq!((status, stdout.as_str()), (Some(0), ""));
    assert!(stderr.contains("grid.toml: nothing to check, the file has no [[expect]]"), "{stderr}");
    let answer = json(home.path(), &["experiment", "check", "grid.toml", "--json"]);
    assert_eq!((&answer["short"], &answer["verdicts"]), (&false.into(), &serde_json::json!([])));
}
