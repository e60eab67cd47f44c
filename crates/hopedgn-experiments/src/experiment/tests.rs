use hopedgn::ModelRegistry;
use std::path::Path;

use super::*;

fn parse(text: &str) -> Result<Experiment> {
    Experiment::parse(Path::new("grid.toml"), text, &ModelRegistry::default(), false)
}

const HEAD: &str = r#"title = "A grid"
kind = "link-prediction"
[grid]
model = ["tgat", "tcl"]
data = ["uci", "enron"]
seed = [0, 1]
mite = [false, true]
"#;

fn with(rest: &str) -> String {
    format!("{HEAD}{rest}")
}

fn message(rest: &str) -> String {
    parse(&with(rest)).unwrap_err().to_string()
}

#[test]
fn cells_are_the_product_of_the_lists_with_presets_of_the_data() {
    let experiment = parse(HEAD).unwrap();
    let names: Vec<&str> = experiment.cells().iter().map(|cell| cell.name.as_str()).collect();
    assert_eq!(names.len(), 16);
    assert_eq!(names[..4], ["uci-tgat-0", "uci-tgat-1", "uci-tgat-mite-0", "uci-tgat-mite-1"]);
    let dropouts: Vec<f32> =
        experiment.cells().iter().step_by(4).map(|cell| cell.config.model.common.dropout).collect();
    assert_eq!(dropouts, [0.1, 0.0, 0.2, 0.1], "as in presets.toml");
    assert!(experiment.cells()[2].config.model.has_mite() && !experiment.cells()[0].config.model.has_mite());
    let arguments = experiment.cells()[3].arguments().join(" ");
    assert_eq!(arguments, "--model tgat --seed 1 --preset uci --set model.mite=true");
}

#[test]
fn later_overrides_win_and_change_the_hash_of_their_cells_only() {
    let plain = parse(HEAD).unwrap();
    let changed = parse(&with(
        r#"
[[override]]
when = { model = "tgat", data = ["uci"] }
set = { model.dropout = 0.3, train.epochs = 7 }
source = "here"
[[override]]
when = { mite = true }
set = { model.dropout = 0.4 }
source = "there"
"#,
    ))
    .unwrap();
    let of = |name: &str| changed.cells().iter().find(|cell| cell.name == name).unwrap();
    let tgat = &of("uci-tgat-mite-0").config;
    assert_eq!((tgat.model.common.dropout, tgat.train.epochs), (0.4, 7));
    assert_eq!(of("uci-tgat-0").config.model.common.dropout, 0.3);
    for (before, after) in plain.cells().iter().zip(changed.cells()) {
        let touched = after.has_mite() || (after.data == "uci" && after.model.as_str() == "tgat");
        assert_eq!(before.hash != after.hash, touched, "{}", after.name);
    }
    let mut hashes: Vec<&str> = plain.cells().iter().map(|cell| cell.hash.as_str()).collect();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), plain.cells().len());
}

#[test]
fn variants_add_cells_and_exclusions_remove_them() {
    let experiment = parse(&with(
        r#"
[[variant]]
name = "k4"
set = { model.k = 4 }
[[variant]]
name = "plain"
[[exclude]]
when = { mite = false, variant = "k4" }
"#,
    ))
    .unwrap();
    assert_eq!(experiment.cells().len(), 2 * 2 * 2 * 3);
    let cell = experiment.cells().iter().find(|cell| cell.name == "enron-tcl-mite-k4-1").unwrap();
    assert_eq!((cell.config.model.mite().unwrap().k, cell.row().as_str()), (4, "TCL with MITE, k4"));
}

#[test]
fn variants_have_the_plain_model_as_their_first_row() {
    let rows = |rest: &str| {
        let experiment = parse(&with(rest).replace("mite = [false, true]\n", "").replace(", \"tcl\"", "")).unwrap();
        let mut rows: Vec<String> =
            experiment.cells().iter().filter(|cell| cell.data == "uci").map(Cell::row).collect();
        rows.dedup();
        rows
    };
    let k4 = "[[variant]]\nname = \"n-4\"\nset = { model.neighbors = 4 }\n";
    assert_eq!(rows(k4), ["TGAT", "TGAT, n-4"]);
    assert_eq!(
        rows(&format!("{k4}[[variant]]\nname = \"plain\"\n")),
        ["TGAT, n-4", "TGAT, plain"],
        "it is there already"
    );
    let untitled = "[[variant]]\nname = \"own\"\ntitle = \"\"\nset = { model.dropout = 0.3 }\n";
    assert_eq!(rows(&format!("{k4}{untitled}")), ["TGAT, n-4", "TGAT"], "its row is taken");
    let without = HEAD.replace("mite = [false, true]\n", "").replace("kind =", "baseline = false\nkind =");
    let names: Vec<String> = parse(&format!("{without}{k4}")).unwrap().cells().iter().map(Cell::row).collect();
    assert!(names.iter().all(|name| name.ends_with(", n-4")), "{names:?}");
    assert_eq!(rows(""), ["TGAT"]);
}

#[test]
fn reading_options_belong_to_datasets_and_misspelt_ones_are_refused() {
    let read = "[read.enron]\nsrc = \"from\"\ntime = 3\ndelimiter = \";\"\nids = \"text\"\nfeatures = { chosen = [\"x\", 7] }\n\
                time-unit = \"ms\"\ndedup = true\n";
    let experiment = parse(&with(read)).unwrap();
    let of = |data: &str| experiment.cells().iter().find(|cell| cell.data == data).unwrap().read.clone();
    assert_eq!(of("uci"), hopedgn::ReadOptions::default());
    assert!(of("enron").dedup && of("enron").delimiter == Some(b';'));
    assert_eq!(of("enron").time, Some(ctdg::dataset::ColumnRef::Position(3)));
    let cell = experiment.cells().iter().find(|cell| cell.data == "enron").unwrap();
    let file = hopedgn::config::ConfigFile::parse(&cell.read_settings().unwrap().unwrap(), "read.toml").unwrap();
    assert_eq!(file.read_options(), Some(&cell.read), "as `train --config` reads it");
    assert_eq!(experiment.cells()[0].read_settings().unwrap(), None);

    let found = message("[read.enron]\nsrot = true\n");
    assert!(found.starts_with("grid.toml:9: unknown field `srot`, expected one of"), "{found}");
    assert!(found.ends_with("did you mean `sort`? `hopedgn experiment --help` shows a whole file"), "{found}");
    assert_eq!(
        message("[read.enrom]\nsort = true\n"),
        "grid.toml:8: found [read.enrom], expected one of grid.data; did you mean enron?"
    );
    let found = message("[read.enron]\nsort = \"yes\"\n");
    assert!(found.starts_with("grid.toml:9: found \"yes\", expected true or false; "), "{found}");
    let found = parse(&HEAD.replace("[0, 1]", "[-1]")).unwrap_err().to_string();
    assert!(found.starts_with("grid.toml:6: found -1, expected a whole number of at least 0; "), "{found}");
}

#[test]
fn errors_name_the_line_and_a_remedy() {
    let nothing = "\n[[override]]\nwhen = { model = \"tgn\" }\nset = { model.k = 4 }\nsource = \"x\"\n";
    assert_eq!(
        message(nothing),
        "grid.toml:9: found an override that fits no cell, expected one that fits some; correct its `when`, or remove it"
    );
    let unknown = "\n[[override]]\nwhen = {}\nset = { model.kay = 4 }\nsource = \"x\"\n";
    let found = message(unknown);
    assert!(
        found.starts_with("grid.toml:9: cell uci-tgat-0: ") && found.contains("TGAT has no setting `kay`"),
        "{found}"
    );
    let found = message("\n[[expect]]\nat-leas = 3\n");
    assert!(found.starts_with("grid.toml:10: unknown field `at-leas`, expected one of"), "{found}");
    let found = message("\n[[paper]]\nmodel = \"tgn\"\ndata = \"uci\"\n");
    assert!(found.starts_with("grid.toml:9: found a published value for tgn on uci"), "{found}");
    let found = message("\n[[expect]]\nwhen = { data = \"mooc\" }\nat-least = 3.0\n");
    assert!(found.starts_with("grid.toml:9: found an expectation that fits no cell"), "{found}");
    let found = message("\n[[expect]]\nat-least = 3.0\nbelow-paper-at-most = 1.0\n");
    assert!(found.contains("expected one of at-least and below-paper-at-most"), "{found}");
    let found = parse(&HEAD.replace("[0, 1]", "[]")).unwrap_err().to_string();
    assert!(found.contains("found nothing in grid.seed"), "{found}");
    let found = parse(&HEAD.replace("\"enron\"", "\"../enron\"")).unwrap_err().to_string();
    assert!(found.contains("--data-dir"), "{found}");
}

#[test]
fn smoke_cells_are_tiny_and_have_one_seed() {
    let experiment = Experiment::parse(Path::new("grid.toml"), HEAD, &ModelRegistry::default(), true).unwrap();
    assert_eq!(experiment.cells().len(), 8);
    assert!(experiment.cells().iter().all(|cell| cell.config.train.epochs == 1 && cell.config.model.common.d_out == 8));
}

#[test]
fn all_experiment_files_of_the_repository_are_valid() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue;
        }
        Experiment::read(&path, &ModelRegistry::default()).unwrap();
        assert!(!Experiment::read_small(&path, &ModelRegistry::default()).unwrap().cells().is_empty());
        names.push(path.file_stem().unwrap().to_string_lossy().into_owned());
    }
    let tables =
        ["table-1", "table-2", "table-auc", "table-nodes", "table-hard-negatives", "table-ranking", "table-cost"];
    let figures = ["figure-ablation", "figure-sensitivity", "figure-efficiency"];
    for name in tables.iter().chain(&figures) {
        assert!(names.iter().any(|found| found == name), "{name}");
    }
}

#[test]
fn experiments_share_cells_with_equal_settings() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let read = |name: &str| Experiment::read(&folder.join(name), &ModelRegistry::default()).unwrap();
    let hash = |experiment: &Experiment, name: &str| {
        experiment.cells().iter().find(|cell| cell.name == name).unwrap().hash.clone()
    };
    let with_table_1 = [
        ("table-nodes.toml", "wikipedia-hopedgn-2", "wikipedia-hopedgn-2"),
        ("table-2.toml", "enron-hopedgn-mite-0", "enron-hopedgn-0"),
        ("figure-ablation.toml", "enron-hopedgn-full-0", "enron-hopedgn-0"),
        ("figure-sensitivity.toml", "mooc-hopedgn-k-32-0", "mooc-hopedgn-0"),
        ("figure-sensitivity.toml", "uci-hopedgn-length-32-0", "uci-hopedgn-0"),
    ];
    let with_costs = [
        ("table-hard-negatives.toml", "uci-tgat-0", "uci-tgat-0"),
        ("table-ranking.toml", "enron-hopedgn-0", "enron-hopedgn-0"),
        ("figure-efficiency.toml", "mooc-hopedgn-length-256-0", "mooc-hopedgn-0"),
        ("figure-efficiency.toml", "uci-cawn-preset-0", "uci-cawn-0"),
    ];
    for (shared, same) in [("table-1.toml", &with_table_1[..]), ("table-cost.toml", &with_costs)] {
        let shared = read(shared);
        for (file, name, other) in same {
            assert_eq!(hash(&read(file), name), hash(&shared, other), "{file}: {name}");
        }
    }
}

#[test]
fn archived_results_of_the_repository_meet_the_expectations() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let archives = ["models", "hopedgn-tf32", "variants", "ten-epochs", "padding"];
    let archives = archives.map(|name| vec![root.join("results").join(format!("{name}.jsonl"))]);
    let archive = RunArchive::read(&archives, &ModelRegistry::default()).unwrap();
    for (name, n_done) in
        [("table-1", 98), ("table-2", 26), ("table-auc", 98), ("table-cost", 9), ("table-padding", 13)]
    {
        let experiment =
            Experiment::read(&root.join(format!("experiments/{name}.toml")), &ModelRegistry::default()).unwrap();
        let none = root.join("no such folder");
        let found = |cell: &Cell| archive.find(cell).unwrap().unwrap_or_else(|| Found::of(cell, &none).unwrap());
        let found: Vec<Found> = experiment.cells().iter().map(found).collect();
        assert_eq!(found.iter().filter(|one| one.is_done()).count(), n_done, "{name}");
        if experiment.has_expectations() {
            let verdicts = check(&experiment, &found).unwrap();
            assert!(verdicts.iter().all(|verdict| verdict.holds() == Some(true)), "{verdicts:?}");
        }
    }
}

mod content;
mod formats;
mod inherits;
mod numbers;
mod standings;
