//! Every document of `--json` and every JSON file of a run folder fits its schema in `docs/schemas`.

mod validate;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{json, run};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas")
}

fn schema(name: &str) -> Value {
    let path = folder().join(format!("{name}.schema.json"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Names of all schemas.
fn names() -> Vec<String> {
    let files = fs::read_dir(folder()).expect("docs/schemas").map(|entry| entry.expect("an entry").file_name());
    let names = files.filter_map(|file| file.to_str()?.strip_suffix(".schema.json").map(str::to_owned));
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Checks that `document` fits the schema `name`, that the schema describes each of its fields, and that the schema refuses the
/// document without a required field.
pub(crate) fn check(name: &str, document: &Value) {
    let schema = schema(name);
    let errors = validate::errors(&schema, document);
    assert!(errors.is_empty(), "docs/schemas/{name}.schema.json refuses\n{document:#}\n{}", errors.join("\n"));
    let undescribed = validate::undescribed(&schema, document);
    assert!(undescribed.is_empty(), "docs/schemas/{name}.schema.json does not describe {undescribed:?}; add them");
    assert!(n_needed(&schema, document, &[]) > 0, "docs/schemas/{name}.schema.json requires nothing");
}

/// Without how many of its fields, each removed alone, the schema refuses the document.
fn n_needed(schema: &Value, document: &Value, path: &[String]) -> usize {
    let parts: Vec<String> =
        path.iter().map(|part| format!("/{}", part.replace('~', "~0").replace('/', "~1"))).collect();
    let pointer = parts.concat();
    let here = document.pointer(&pointer).expect("a path into the document");
    let inner: Vec<String> = match here {
        Value::Object(fields) => fields.keys().cloned().collect(),
        // Items are alike; the first stands for all.
        Value::Array(items) => items.first().map(|_| "0".to_owned()).into_iter().collect(),
        _ => Vec::new(),
    };
    let mut n_found = 0;
    for part in inner {
        if here.is_object() {
            let mut without = document.clone();
            without.pointer_mut(&pointer).and_then(Value::as_object_mut).expect("an object").remove(&part);
            n_found += usize::from(!validate::errors(schema, &without).is_empty());
        }
        n_found += n_needed(schema, document, &[path, &[part]].concat());
    }
    n_found
}

/// A folder with events, labelled events, pairs, and a run of each.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().expect("a folder"));
        let rows: Vec<String> = (0..300).map(|i| format!("{},{},{i},{}", i % 20, (i + 1) % 20, i % 2)).collect();
        home.write("events.csv", &format!("src,dst,time,label\n{}\n", rows.join("\n")));
        home.write("pairs.csv", "3,4\n3,9\n");
        home
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.path().join(name), text).expect("written");
    }

    /// Runs a command with `--json` and checks what it prints.
    fn prints(&self, name: &str, command: &str) -> Value {
        let document = json(self.0.path(), &words(command));
        check(name, &document);
        document
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join(name)).expect("a file")
    }

    /// Trains a small run on `events.csv`.
    fn train(&self, out: &str) -> Value {
        let small = "--preset quick --epochs 2 --set model.d-channel=4 --set model.length=4 --set train.batch=50";
        self.prints("summary", &format!("train --data events.csv --out {out} {small}"))
    }
}

fn words(command: &str) -> Vec<&str> {
    command.split_whitespace().chain(["--json", "--quiet"]).collect()
}

#[test]
fn documents_about_data_fit_their_schemas() {
    let home = Home::new();
    home.prints("data-list", "data list --data-dir .");
    home.prints("data-info", "data info events.csv");
    home.prints("data-audit", "data audit events.csv --batch 10");
    home.prints("data-generate", "data generate triadic triads.csv --episodes 20");
    home.prints("data-generate", "data generate tastes tastes.csv");
    home.prints("data-convert", "data convert events.csv events.parquet --features none");
    home.prints("data-convert", "data convert events.csv events.ctdg --features none --memory 1MiB");
    home.prints("data-index", "data index events.ctdg --memory 1MiB");
    home.prints("data-split", "data split events.csv");
    home.write("dates.csv", "src,dst,time\na,b,2024-01-31\nb,c,2024-02-01\na,c,2024-02-03T10:00:00Z\n");
    home.prints("data-info", "data info dates.csv");
    home.prints("data-audit", "data audit dates.csv");
    home.prints("data-split", "data split dates.csv");
}

#[test]
fn documents_and_files_of_a_run_fit_their_schemas() {
    let home = Home::new();
    home.train("run");
    home.prints("config", "train --show-config");
    home.prints("score", "score run --pairs pairs.csv");
    let explained = home.prints("score", "score run --pairs pairs.csv --explain");
    assert!(!explained["scores"][0]["explanation"]["met"].as_array().expect("times").is_empty());
    home.prints("evaluation", "evaluate run");
    home.prints("evaluation", "evaluate run --negatives all --ranking 5");
    home.prints("evaluation", "evaluate run --ranking all --from 250");
    home.prints("classification", "classify run --epochs 2");
    let parsed = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    check("manifest", &parsed(&home.file("run/manifest.json")));
    check("summary", &parsed(&home.file("run/summary.json")));
    check("classification", &parsed(&home.file("run/classification.json")));
    let epochs = home.file("run/metrics.jsonl");
    assert_eq!(epochs.lines().count(), 2);
    epochs.lines().for_each(|line| check("epoch", &parsed(line)));
    // A grown log: the manifest names the run that training began with.
    home.write("grown.csv", &(home.file("events.csv") + "3,4,300,0\n4,5,301,1\n"));
    home.prints("summary", "train --resume run --data grown.csv --out next --epochs 1");
    check("manifest", &parsed(&home.file("next/manifest.json")));
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/run-0.1/tgn/manifest.json");
    check("manifest", &parsed(&fs::read_to_string(old).expect("a fixture")));
}

#[test]
fn documents_and_files_under_the_protocol_of_tgb_fit_their_schemas() {
    let home = Home::new();
    let tgb = "--protocol tgb --set train.objective=intensity --epochs 1 --set train.batch=50";
    home.prints("summary", &format!("train --data events.csv --model stats --out run {tgb}"));
    home.prints("evaluation", "evaluate run --protocol tgb");
    home.prints("evaluation", "evaluate run --protocol tgb --ranking all --negatives random");
    home.prints("data-split", "data split events.csv --mode tgb");
    let parsed = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    check("manifest", &parsed(&home.file("run/manifest.json")));
    check("epoch", &parsed(&home.file("run/metrics.jsonl")));
    check("evaluation", &parsed(&home.file("run/evaluation.json")));
}

#[test]
fn documents_of_experiments_fit_their_schemas() {
    let home = Home::new();
    let grid = "title = \"Grid\"\nkind = \"link-prediction\"\nmetrics = [\"ap\", \"mrr\", \"parameters\"]\n\
                [grid]\nmodel = [\"tgat\"]\ndata = [\"uci\", \"enron\"]\nseed = [0]\n\
                [evaluate]\nnegatives = \"all\"\nranking = 5\n\
                [[expect]]\nat-least = 1.0\n";
    home.write("grid.toml", grid);
    home.prints("experiment-status", "experiment status grid.toml --data-dir nowhere");
    home.prints("experiment-status", "experiment run grid.toml --smoke --device cpu");
    let evaluation = home.file("runs/experiments/grid-smoke/uci-tgat-0/evaluation.json");
    check("evaluation", &serde_json::from_str(&evaluation).expect("JSON"));
    home.prints("experiment-report", "experiment report grid.toml --smoke");
    home.prints("experiment-report", "experiment report grid.toml --smoke --format json");
    home.prints("experiment-check", "experiment check grid.toml --smoke");
    home.prints("experiment-archive", "experiment archive runs/experiments/grid-smoke --out archive.jsonl");
    home.prints("experiment-pages", "experiment pages grid.toml --into pages --data-dir nowhere");
}

#[test]
fn documents_of_tests_and_benchmarks_fit_their_schemas() {
    let home = Home::new();
    home.write("a.csv", "src,dst,time\nA,B,1\nE,F,1\nB,C,2\nD,E,2\nC,D,3\n");
    home.prints("wl", "wl a.csv a.csv");
    home.prints("wl", "wl a.csv a.csv --until 4 --tuple A,C=A,D --isomorphism");
    home.prints("wl", "wl a.csv a.csv --static --until 4 --tuple A,C=A,D");
    home.prints("wl", "wl a.csv events.csv --k 1");
    home.prints("wl", "wl a.csv a.csv --marked --until 4 --tuple A,C=A,D");
    home.prints("wl", "wl a.csv events.csv --marked=met");
    home.prints("wl-examples", "wl examples");
    home.prints("wl-examples-written", "wl examples triangles --write graphs");
    home.prints("bench-data", "bench load --data events.csv --repeats 1");
    home.prints("bench-data", "bench sample --data events.csv --repeats 1");
    home.prints("bench-data", "bench sample --degree 65536 --events 2000 --repeats 1");
    home.prints("bench-data", "bench encode --data events.csv --repeats 1");
    home.prints("bench-step", "bench step --device cpu --pairs 4 --tokens 4 --repeats 1");
    home.prints("bench-epoch", "bench epoch --data events.csv --device cpu --steps 1 --set model.d-channel=4");
    home.prints(
        "bench-epoch",
        "bench epoch --data events.csv --model tgn --device cpu --steps 1 --evaluate 1 --set model.d-out=4",
    );
    home.prints("bench-wl", "bench wl --k 3 --repeats 1");
    let grown =
        home.prints("bench-growth", "bench growth --events 4e3,5e3 --nodes 100,9e3 --repeats 1 --steps 1 --dir .");
    home.write("grown.json", &grown.to_string());
    let shown = home.prints("bench-growth", "bench growth --report grown.json --svg grown.svg");
    assert!(
        shown == grown && home.file("grown.svg").contains("encode, a pair"),
        "two sizes, the others are impossible"
    );
    home.prints("bench-serve", "bench serve --data events.csv --seconds 0.1 --restart-events 2000");
    home.prints("selftest", "selftest --device cpu");
    home.prints("completions", "completions powershell");
    home.prints("man", "man man1");
}

#[test]
fn errors_fit_their_schema() {
    let home = Home::new();
    home.write("x.csv", "src,dst,time\n1,2,3\n1,2,2\n");
    for command in ["data info x.csv", "score nowhere --pairs x.csv", "train --oops", "bench step --pairs 0"] {
        let (status, stdout, stderr) = run(home.0.path(), &words(command));
        assert_eq!(status, Some(2), "{stderr}");
        check("error", &serde_json::from_str(&stdout).expect("one JSON document"));
    }
}

/// Each schema stands alone; what several of them define must be the same in all.
#[test]
fn definitions_of_one_name_are_equal_in_all_schemas() {
    let mut known: BTreeMap<String, (String, Value)> = BTreeMap::new();
    for name in names() {
        let schema = schema(&name);
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema", "{name}");
        let address = format!("https://raw.githubusercontent.com/hopedgn/hopedgn/main/docs/schemas/{name}.schema.json");
        assert_eq!(schema["$id"], address.as_str());
        for (part, definition) in schema.get("$defs").and_then(Value::as_object).into_iter().flatten() {
            let (first, same) = known.entry(part.clone()).or_insert_with(|| (name.clone(), definition.clone()));
            assert_eq!(same, definition, "{part} in {name} and {first}");
        }
    }
    assert!(known.len() > 5, "{known:?}");
}

/// Every schema is in the table of the reference and is checked by a test.
#[test]
fn every_schema_is_listed_and_checked() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/src/reference/json.md")).expect("a page");
    let (_, section) = page.split_once("\n## Schemas\n").expect("a section of schemas");
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with("| ") && line.ends_with("` |"));
    let mut listed: Vec<String> =
        rows.filter_map(|row| row.trim_end_matches("` |").rsplit('`').next()).map(str::to_owned).collect();
    listed.sort();
    assert_eq!(listed, names());
    let tests = ["schemas", "lab", "fetch", "classify", "recommend", "serve", "serve_crash"]
        .map(|name| root.join(format!("crates/hopedgn-cli/tests/it/{name}.rs")));
    let code: String = tests.iter().map(|file| fs::read_to_string(file).expect("a test")).collect();
    let unchecked: Vec<String> = names()
        .into_iter()
        .filter(|name| !["check", "prints"].iter().any(|verb| code.contains(&format!("{verb}(\"{name}\","))))
        .collect();
    assert!(unchecked.is_empty(), "no test checks a document of {unchecked:?}");
}
