//! Tables and figures from run folders and archives.

use hopedgn::ModelRegistry;
use std::fs;

use serde_json::json;
use tempfile::TempDir;

use super::*;
use hopedgn::evaluate::Negatives;
use hopedgn::run::{CLASSIFICATION, EVALUATION};

/// An experiment with a folder of runs.
pub(super) struct Home {
    pub(super) folder: TempDir,
    pub(super) experiment: Experiment,
}

impl Home {
    pub(super) fn new(text: &str) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), experiment: parse(text).unwrap() }
    }

    fn cell(&self, name: &str) -> &Cell {
        self.experiment.cells().iter().find(|cell| cell.name == name).unwrap()
    }

    /// A finished run of the cell `name`: this AP, and epochs of so many seconds.
    pub(super) fn run(&self, name: &str, ap: f64, seconds: &[f64]) -> &Self {
        let cell = self.cell(name);
        let metrics = json!({ "ap": ap, "auc": ap - 0.01, "ap_global": ap, "auc_global": ap });
        let test = json!({ "transductive": metrics, "inductive": metrics });
        let summary = json!({
            "data": "x", "model": cell.model.as_str(), "seed": cell.seed, "epochs": 3, "best_epoch": 2, "val": test,
            "test": test, "heuristics": { "edgebank-unlimited": test }, "seconds_per_epoch": 9.0, "device": "cuda",
            "precision": "tf32", "hardware": "NVIDIA H200", "parameters": 1000 + name.len(), "peak_memory": 2_500_000,
        });
        let lines: Vec<String> = seconds
            .iter()
            .enumerate()
            .map(|(place, seconds)| {
                let record = json!({
                    "epoch": place + 1, "loss": 0.5, "val": test, "better": true, "train_seconds": seconds,
                    "eval_seconds": 1.0, "pairs_per_second": 100.0 / seconds,
                });
                format!("{record}\n")
            })
            .collect();
        let folder = self.folder.path().join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("config.toml"), cell.config.to_toml().unwrap()).unwrap();
        fs::write(folder.join("summary.json"), summary.to_string()).unwrap();
        fs::write(folder.join("metrics.jsonl"), lines.concat()).unwrap();
        self
    }

    pub(super) fn write(&self, name: &str, file: &str, text: &str) -> &Self {
        fs::write(self.folder.path().join(name).join(file), text).unwrap();
        self
    }

    pub(super) fn found(&self) -> Vec<Found> {
        self.experiment.cells().iter().map(|cell| Found::of(cell, self.folder.path()).unwrap()).collect()
    }

    fn state(&self, name: &str) -> Found {
        Found::of(self.cell(name), self.folder.path()).unwrap()
    }

    fn tables(&self) -> Vec<Table> {
        Table::all(&self.experiment, &self.found())
    }
}

/// Output of `hopedgn evaluate --negatives all --ranking N --json`.
fn evaluation(model: &str, ap: f64, ranking: u64) -> String {
    let metrics = json!({ "ap": ap, "auc": ap, "ap_global": ap, "auc_global": ap });
    let settings = json!({ "transductive": metrics, "inductive": null });
    let scorers = json!({ model: settings, "edgebank-unlimited": settings });
    let ranks = json!({ "transductive": { "mrr": ap / 2.0, "hits_at_10": 0.75 }, "inductive": null });
    json!({
        "run": "r", "data": "x", "model": model, "device": "cpu",
        "negatives": { "random": scorers, "historical": scorers, "inductive": {} },
        "ranking": { "candidates": ranking, "scorers": { model: ranks, "edgebank-unlimited": ranks } },
    })
    .to_string()
}

const HARD: &str = r#"title = "Hard"
kind = "link-prediction"
metrics = ["ap", "mrr", "hits-at-10"]
negatives = ["historical"]
heuristics = ["edgebank-unlimited"]
[grid]
model = ["tgat", "tcl"]
data = ["uci"]
seed = [0]
[evaluate]
negatives = "all"
ranking = 100
"#;

#[test]
fn a_cell_is_done_only_with_a_fitting_evaluation() {
    let home = Home::new(HARD);
    let step = || home.state("uci-tgat-0").next_step();
    assert_eq!((home.state("uci-tgat-0").state, step()), (State::Waiting, Some(Step::Train)));
    home.run("uci-tgat-0", 0.9, &[1.0]);
    assert_eq!((home.state("uci-tgat-0").state, step()), (State::Trained, Some(Step::Evaluate)));
    let with = |key: &str, value: serde_json::Value| {
        let mut document: serde_json::Value = serde_json::from_str(&evaluation("tgat", 0.6, 10)).unwrap();
        document[key] = value;
        document.to_string()
    };
    let incomplete = with("incomplete", json!(["ranking"]));
    for other in [evaluation("tcl", 0.6, 100), evaluation("tgat", 0.6, 10), incomplete, "{".to_owned()] {
        home.write("uci-tgat-0", EVALUATION, &other);
        assert_eq!(step(), Some(Step::Evaluate), "{other}");
    }
    home.write("uci-tgat-0", EVALUATION, &evaluation("tgat", 0.6, 100));
    assert_eq!((home.state("uci-tgat-0").state, step()), (State::Done, None));
    // Another ranking, measured later, does not hide the one that is asked for.
    let ranks = json!({ "transductive": { "mrr": 0.25, "hits_at_10": 0.5 }, "inductive": null });
    let asked = json!([{ "candidates": 100, "scorers": { "tgat": ranks } }]);
    home.write("uci-tgat-0", EVALUATION, &with("other_rankings", asked));
    assert_eq!(step(), None);
    let mrr = home.tables()[2].entry("TGAT", "uci").unwrap().ours.map(|ours| ours.mean);
    assert_eq!(mrr, Some(25.0));

    // Evaluation is no part of the hash, and is removed when the weights will change.
    let plain = parse(
        &HARD
            .replace("[evaluate]\nnegatives = \"all\"\nranking = 100\n", "")
            .replace("\"ap\", \"mrr\", \"hits-at-10\"", "\"ap\"")
            .replace("\"historical\"", "\"random\""),
    )
    .unwrap();
    assert_eq!(plain.cells()[0].hash, home.cell("uci-tgat-0").hash);
    fs::remove_file(home.folder.path().join("uci-tgat-0/summary.json")).unwrap();
    let unfinished = home.state("uci-tgat-0");
    assert_eq!(unfinished.next_step(), Some(Step::Train));
    assert!(unfinished.prepare().unwrap(), "there is a run to resume");
    assert!(!home.folder.path().join("uci-tgat-0").join(EVALUATION).exists());
}

#[test]
fn a_run_whose_data_was_read_otherwise_is_not_that_of_the_cell() {
    let text = HARD.replace("[evaluate]\nnegatives = \"all\"\nranking = 100\n", "[read.uci]\nsort = true\n");
    let text = text.replace("\"ap\", \"mrr\", \"hits-at-10\"", "\"ap\"").replace("\"historical\"", "\"random\"");
    let home = Home::new(&text);
    home.run("uci-tgat-0", 0.9, &[1.0]);
    let manifest = |read: serde_json::Value| {
        let split = json!({ "mode": "dyglib", "val-time": 0.0, "test-time": 0.0, "masked": [], "n-events": 1 });
        let data = json!({
            "name": "uci", "file": null, "read": read, "events": 1, "nodes": 2, "sha256": "", "node_features": null,
            "edge_features": null,
        });
        json!({
            "version": "0", "commit": null, "command": [], "started": 0.0, "threads": 1, "machine": "", "data": data, "split": split,
        })
        .to_string()
    };
    home.write("uci-tgat-0", "manifest.json", &manifest(json!({})));
    assert_eq!(home.state("uci-tgat-0").state, State::Changed);
    home.write("uci-tgat-0", "manifest.json", &manifest(json!({ "sort": true })));
    assert_eq!(home.state("uci-tgat-0").state, State::Done);
    let archive = home.folder.path().join("runs.jsonl");
    super::archive(&[home.folder.path().to_owned()], &archive, &ModelRegistry::default()).unwrap();
    let found = |text: &str| {
        let archive = RunArchive::read(&[vec![archive.clone()]], &ModelRegistry::default()).unwrap();
        archive.find(&parse(text).unwrap().cells()[0]).unwrap().is_some()
    };
    assert!(found(&text) && found(&text.replace("[read.uci]\nsort = true\n", "")));
    assert!(!found(&text.replace("sort = true", "dedup = true")));
}

#[test]
fn evaluation_metrics_are_shown_beside_heuristics() {
    let home = Home::new(HARD);
    home.run("uci-tgat-0", 0.9, &[1.0]).run("uci-tcl-0", 0.8, &[1.0]);
    home.write("uci-tgat-0", EVALUATION, &evaluation("tgat", 0.6, 100));
    let tables = home.tables();
    let titles: Vec<String> = tables.iter().map(Table::title).collect();
    assert_eq!(
        titles[..3],
        ["AP, transductive, historical negatives", "AP, inductive, historical negatives", "MRR, transductive"]
    );
    let mean = |table: usize, row: &str| tables[table].entry(row, "uci").unwrap().ours.map(|ours| ours.mean);
    assert_eq!((mean(0, "TGAT"), mean(0, "EdgeBank, unlimited")), (Some(60.0), Some(60.0)));
    assert_eq!((mean(1, "TGAT"), mean(2, "TGAT"), mean(4, "TGAT")), (None, Some(30.0), Some(75.0)));
    assert_eq!((mean(0, "TCL"), tables[0].entry("TCL", "uci").unwrap().why), (None, "not evaluated"));
    let page = markdown(&home.experiment, &home.found(), &[], home.folder.path());
    assert!(page.contains("| TCL | not evaluated |"), "{page}");
    assert!(
        page.contains("trained, not evaluated or classified, which needs the checkpoint (1 run: uci-tcl-0)"),
        "{page}"
    );
    assert!(page.contains("cuda, tf32, NVIDIA H200"), "{page}");
    let random = Measure { metric: Metric::Ap, setting: Some(Setting::Inductive), negatives: Some(Negatives::Random) };
    assert_eq!(home.state("uci-tcl-0").outcome.unwrap().value(random, None), Some(80.0));
}

#[test]
fn costs_are_those_of_the_median_epoch_and_lower_ranks_first() {
    let home = Home::new(
        "title = \"Cost\"\nkind = \"link-prediction\"\n\
         metrics = [\"parameters\", \"peak-memory\", \"seconds-per-epoch\", \"pairs-per-second\"]\n\
         [grid]\nmodel = [\"tgat\", \"tcl\"]\ndata = [\"uci\"]\nseed = [0]\n",
    );
    home.run("uci-tgat-0", 0.9, &[90.0, 2.0, 4.0]).run("uci-tcl-0", 0.8, &[90.0, 1.0, 2.0, 1.5]);
    let tables = home.tables();
    assert_eq!(tables.len(), 4);
    let entry = |table: usize, row: &str| tables[table].entry(row, "uci").unwrap().clone();
    let mean = |table: usize, row: &str| entry(table, row).ours.unwrap().mean;
    assert_eq!((mean(0, "TGAT"), mean(1, "TGAT"), mean(2, "TGAT"), mean(3, "TGAT")), (1010.0, 2.5, 4.0, 25.0));
    assert_eq!(mean(2, "TCL"), 1.75);
    let ranks = |table: usize| (entry(table, "TGAT").rank, entry(table, "TCL").rank);
    assert_eq!(ranks(0), (Some(2), Some(1)), "fewer parameters");
    assert_eq!(ranks(1), (None, None), "the same memory");
    assert_eq!(ranks(2), (Some(2), Some(1)), "fewer seconds");
    assert_eq!(ranks(3), (Some(2), Some(1)), "more pairs");
    let page = markdown(&home.experiment, &home.found(), &[], home.folder.path());
    assert!(page.contains("| TGAT | _1,010_ |") && page.contains("| TCL | **1.75** |"), "{page}");
    assert!(!page.contains("percent") && page.contains("Lower is better: Parameters;"), "{page}");
}

#[test]
fn classification_follows_training() {
    let home = Home::new(
        "title = \"Nodes\"\nkind = \"node-classification\"\n[grid]\nmodel = [\"tgat\"]\ndata = [\"wikipedia\"]\nseed = [0, 1]\n\
         [[paper]]\nmodel = \"tgat\"\ndata = \"wikipedia\"\nauc = [82.39, 2.56]\n",
    );
    home.run("wikipedia-tgat-0", 0.9, &[1.0]).run("wikipedia-tgat-1", 0.9, &[1.0]);
    assert_eq!(home.state("wikipedia-tgat-0").next_step(), Some(Step::Classify));
    for (seed, auc) in [(0, 0.84), (1, 0.86)] {
        let name = &format!("wikipedia-tgat-{seed}");
        let document = json!({
            "data": "wikipedia", "model": "tgat", "seed": seed, "epochs": 23, "best_epoch": 3, "train": {}, "val": { "auc": 0.9 },
            "test": { "auc": auc }, "events": { "train": 90, "val": 20, "test": 20 },
            "positives": { "train": 9, "val": 2, "test": 3 }, "seconds_per_epoch": 0.1, "embed_seconds": 1.0,
            "device": "cpu", "parameters": 7, "dropout": 0.1,
        });
        home.write(name, CLASSIFICATION, &document.to_string());
    }
    assert!(home.state("wikipedia-tgat-0").is_done());
    let tried = fs::read_to_string(home.folder.path().join("wikipedia-tgat-0/classification.json")).unwrap();
    home.write("wikipedia-tgat-0", CLASSIFICATION, &tried.replace("23", "4"));
    assert_eq!(home.state("wikipedia-tgat-0").next_step(), Some(Step::Classify), "four epochs only");
    home.write("wikipedia-tgat-0", CLASSIFICATION, &tried);
    let page = markdown(&home.experiment, &home.found(), &[], home.folder.path());
    assert!(page.contains("## AUC\n") && page.contains("85.00 ± 1.41<br>82.39 ± 2.56<br>+2.61"), "{page}");
}

#[test]
fn datasets_without_numbers_have_no_column() {
    let home = Home::new(
        "title = \"Some\"\nkind = \"link-prediction\"\nmetrics = [\"ap\"]\n[grid]\nmodel = [\"tgat\"]\n\
         data = [\"reddit\", \"uci\", \"enron\"]\nseed = [0]\n\
         [[paper]]\nmodel = \"tgat\"\ndata = \"enron\"\ntransductive = { ap = [68.17, 1.15] }\n",
    );
    let columns = |home: &Home| Table::all(&home.experiment, &home.found())[0].columns.clone();
    assert_eq!(columns(&home), ["enron"]);
    home.run("uci-tgat-0", 0.9, &[1.0]);
    assert_eq!(columns(&home), ["uci", "enron"]);
}

#[test]
fn a_run_trained_further_no_longer_fits_its_cell() {
    let home = Home::new(
        "title = \"P\"\nkind = \"link-prediction\"\nmetrics = [\"ap\"]\n[grid]\nmodel = [\"tgat\"]\ndata = [\"uci\"]\nseed = [0]\n",
    );
    home.run("uci-tgat-0", 0.9, &[1.0]);
    assert_eq!(home.state("uci-tgat-0").state, State::Done);
    let find = || {
        RunArchive::of_experiments(&[home.folder.path().to_owned()], &ModelRegistry::default())
            .find(home.cell("uci-tgat-0"))
            .unwrap()
    };
    assert!(find().is_some());
    let mut config = home.cell("uci-tgat-0").config.clone();
    config.train.epochs += 50;
    home.write("uci-tgat-0", "config.toml", &config.to_toml().unwrap());
    assert_eq!(home.state("uci-tgat-0").state, State::Changed);
    assert!(find().is_none());
}

#[test]
fn rankings_with_another_number_of_candidates_are_not_shown() {
    let home = Home::new(HARD);
    home.run("uci-tgat-0", 0.9, &[1.0]);
    home.write("uci-tgat-0", EVALUATION, &evaluation("tgat", 0.6, 10));
    assert_eq!(home.state("uci-tgat-0").state, State::Trained);
    let tables = home.tables();
    let shown = tables.iter().filter(|table| table.measure.metric.is_ranking());
    assert!(shown.clone().count() > 0);
    assert!(shown.filter_map(|table| table.entry("TGAT", "uci")).all(|entry| entry.ours.is_none()));
}

#[test]
fn empty_lists_and_grids_are_errors() {
    let plain = "title = \"P\"\nkind = \"link-prediction\"\n";
    let grid = "[grid]\nmodel = [\"tgat\"]\ndata = [\"uci\"]\nseed = [0]\n";
    for text in [
        format!("{plain}negatives = []\n{grid}"),
        format!("{plain}metrics = []\n{grid}"),
        format!("{plain}{grid}[[exclude]]\nwhen = {{}}\n"),
    ] {
        let error = parse(&text).unwrap_err().to_string();
        assert!(error.contains("expected"), "{error}");
    }
}

#[test]
fn panels_have_distinct_names() {
    let home = Home::new(&FIGURES.replace("setting = \"transductive\"\n", ""));
    for variant in ["k-4", "k-16"] {
        for seed in [0, 1] {
            home.run(&format!("uci-hopedgn-{variant}-{seed}"), 0.9, &[0.5]);
        }
    }
    let drawn = home.experiment.figures(&home.found());
    let names: Vec<_> = drawn[2].pictures.iter().map(|picture| &picture.name).collect();
    assert!(names.len() == 2 && names[0] != names[1], "{names:?}");
}

const FIGURES: &str = r#"title = "Figures"
baseline = false
kind = "link-prediction"
metrics = ["ap"]
[grid]
model = ["hopedgn"]
data = ["uci", "enron", "mooc"]
seed = [0, 1]
[[variant]]
name = "k-4"
title = "K = 4"
set = { model.k = 4 }
[[variant]]
name = "k-16"
title = "K = 16"
set = { model.k = 16 }
[[figure]]
name = "bars"
title = "As bars"
kind = "bars"
metric = "ap"
[[figure]]
name = "lines"
title = "As lines"
kind = "lines"
metric = "ap"
setting = "inductive"
sweep = "k"
axis = "intervals <kept>"
[[figure]]
name = "points"
title = "As points"
kind = "scatter"
metric = "ap"
setting = "transductive"
against = "seconds-per-epoch"
"#;

#[test]
fn figures_show_results_and_list_missing_ones() {
    let home = Home::new(FIGURES);
    let drawn = home.experiment.figures(&home.found());
    assert!(drawn.iter().all(|figure| figure.pictures.is_empty() && !figure.missing.is_empty()));
    for data in ["uci", "enron"] {
        for (variant, ap) in [("k-4", 0.9), ("k-16", 0.95)] {
            for seed in [0, 1] {
                home.run(&format!("{data}-hopedgn-{variant}-{seed}"), ap + 0.01 * f64::from(seed), &[0.5 * ap]);
            }
        }
    }
    let found = home.found();
    let drawn = home.experiment.figures(&found);
    let names = |place: usize| drawn[place].pictures.iter().map(|picture| picture.name.as_str()).collect::<Vec<_>>();
    assert_eq!(names(0), ["grid-bars-transductive", "grid-bars-inductive"]);
    assert_eq!(names(1), ["grid-lines-inductive"]);
    assert_eq!(names(2), ["grid-points-uci", "grid-points-enron"]);
    assert!(drawn.iter().all(|figure| figure.lacking().as_deref() == Some("mooc (all)")), "{:?}", drawn[0].missing);
    let [bars, lines, points] = [0, 1, 2].map(|place| drawn[place].pictures[0].file());
    for part in ["AP, transductive, %", "K = 4", "K = 16", "uci", "enron", "bars begin at 50"] {
        assert!(bars.contains(part), "{part} in {bars}");
    }
    assert_eq!(bars.matches("<rect").count(), 1 + 2 + 4, "background, two legend entries and four bars");
    for part in ["AP, inductive, %", "intervals &lt;kept&gt;", ">4</text>", ">16</text>", "uci", "enron"] {
        assert!(lines.contains(part), "{part} in {lines}");
    }
    for part in ["uci: AP, transductive, %", "K = 4", "K = 16", "training, seconds per epoch"] {
        assert!(points.contains(part), "{part} in {points}");
    }
    for svg in [&bars, &lines, &points] {
        assert!(svg.contains("prefers-color-scheme: dark") && !svg.contains("NaN") && !svg.contains("inf\""));
    }
    let page = html(&home.experiment, &found, &[], home.folder.path());
    assert_eq!(page.matches("<svg class=\"chart\"").count(), 5);
    assert!(page.contains("Not run: mooc (all)."), "{page}");
    let page = markdown(&home.experiment, &found, &[], home.folder.path());
    assert!(page.contains("![AP, inductive, %](grid-lines-inductive.svg)"), "{page}");
}

#[test]
fn every_model_has_its_own_line() {
    let home =
        Home::new(&FIGURES.replace("[\"hopedgn\"]", "[\"hopedgn\", \"tgat\"]").replace("model.k", "train.batch"));
    for (model, ap) in [("hopedgn", 0.9), ("tgat", 0.7)] {
        for variant in ["k-4", "k-16"] {
            home.run(&format!("uci-{model}-{variant}-0"), ap, &[0.5 * ap]);
        }
    }
    let lines = &home.experiment.figures(&home.found())[1];
    let picture = lines.pictures[0].file();
    assert!(picture.contains("HopeDGN, uci") && picture.contains("TGAT, uci"), "{picture}");
    assert_eq!(lines.lacking().as_deref(), Some("enron (all), mooc (all)"));

    // A dataset has a colour and a model a look, in the line, its points and the legend.
    for (model, ap) in [("hopedgn", 0.92), ("tgat", 0.8)] {
        for variant in ["k-4", "k-16"] {
            home.run(&format!("mooc-{model}-{variant}-0"), ap, &[0.5]);
        }
    }
    let lines = &home.experiment.figures(&home.found())[1];
    let picture = lines.pictures[0].file();
    for (series, name) in
        [("s0", "HopeDGN, uci"), ("s0 look1", "TGAT, uci"), ("s2", "HopeDGN, mooc"), ("s2 look1", "TGAT, mooc")]
    {
        assert_eq!(picture.matches(&format!("\"line {series}\"")).count(), 2, "{series}: the line and its key");
        assert_eq!(picture.matches(&format!("\"dot {series}\"")).count(), 3, "{series}: two points and the key");
        let key = picture.split_once(&format!("\"dot {series}\"")).unwrap();
        assert!(key.1.split("</text>").next().unwrap().contains(name), "{name} beside {series} in {picture}");
    }
    assert_eq!(lines.lacking().as_deref(), Some("enron (all)"));
}

#[test]
fn runs_are_found_by_the_hash_of_their_settings() {
    let home = Home::new(HARD);
    home.run("uci-tgat-0", 0.9, &[1.0]);
    // Reading its state records the hash.
    assert_eq!(home.state("uci-tgat-0").state, State::Trained);
    let others = RunArchive::of_experiments(&[home.folder.path().to_owned()], &ModelRegistry::default());
    let shared = others.find(home.cell("uci-tgat-0")).unwrap().unwrap();
    assert_eq!((shared.state, shared.folder), (State::Trained, home.folder.path().join("uci-tgat-0")));
    assert!(others.find(home.cell("uci-tcl-0")).unwrap().is_none());

    // Of two, the complete one; then the one named first.
    let copy = tempfile::tempdir().unwrap();
    for file in ["config.toml", "summary.json"] {
        fs::copy(home.folder.path().join("uci-tgat-0").join(file), copy.path().join(file)).unwrap();
    }
    let names = [vec![copy.path().to_owned()], vec![home.folder.path().to_owned()]];
    let find = |names: &[Vec<std::path::PathBuf>]| {
        RunArchive::read(names, &ModelRegistry::default()).unwrap().find(home.cell("uci-tgat-0"))
    };
    assert_eq!(find(&names).unwrap().unwrap().folder, copy.path());
    home.write("uci-tgat-0", EVALUATION, &evaluation("tgat", 0.6, 100));
    assert_eq!(find(&names).unwrap().unwrap().folder, home.folder.path().join("uci-tgat-0"));
    fs::write(copy.path().join(EVALUATION), evaluation("tgat", 0.7, 100)).unwrap();
    let error = find(&[names.concat()]).unwrap_err().to_string();
    assert!(error.contains("found the same settings in"), "{error}");
}

#[test]
fn archived_runs_have_the_results_of_their_folders() {
    let home = Home::new(HARD);
    home.run("uci-tgat-0", 0.9, &[1.0, 3.0]).run("uci-tcl-0", 0.8, &[2.0]);
    home.write("uci-tgat-0", EVALUATION, &evaluation("tgat", 0.6, 100));
    let before = home.found();
    let file = home.folder.path().join("runs.jsonl");
    assert_eq!(archive(&[home.folder.path().to_owned()], &file, &ModelRegistry::default()).unwrap(), 2);
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(text.lines().count(), 2);

    let archived = RunArchive::read(&[vec![file.clone()]], &ModelRegistry::default()).unwrap();
    for one in &before {
        let found = archived.find(&one.cell).unwrap().unwrap();
        assert_eq!((&found.outcome, &found.state), (&one.outcome, &one.state), "{}", one.cell.name);
    }
    let found = archived.find(home.cell("uci-tgat-0")).unwrap().unwrap();
    assert_eq!(found.archived, Some(Archived { file: file.clone(), line: 2 }), "sorted by name");
    assert!(!found.has_weights());
    let page = markdown(&home.experiment, &[found], &[], home.folder.path());
    assert!(page.contains("| uci-tgat-0 (runs.jsonl:2) |"), "{page}");

    // Adding the same runs changes nothing; a damaged line is named.
    assert_eq!(archive(&[home.folder.path().join("uci-tgat-0")], &file, &ModelRegistry::default()).unwrap(), 2);
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    fs::write(&file, text.replacen("\"test\"", "\"tes\"", 2)).unwrap();
    let error = RunArchive::read(&[vec![file]], &ModelRegistry::default()).unwrap_err().to_string();
    assert!(error.contains("line 1: missing field `test`"), "{error}");
    let empty = tempfile::tempdir().unwrap();
    let error = archive(&[empty.path().to_owned()], &empty.path().join("x.jsonl"), &ModelRegistry::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("found no finished run"), "{error}");
}
