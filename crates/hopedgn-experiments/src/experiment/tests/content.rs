//! Runs belong to cells by the content of their data, and by its name where no content was recorded.

use std::fs;
use std::path::PathBuf;

use hopedgn::ModelRegistry;
use serde_json::json;

use super::numbers::Home;
use super::*;

const ONE: &str = "title = \"One\"\nkind = \"link-prediction\"\nmetrics = [\"ap\"]\n[grid]\nmodel = [\"tgat\"]\n\
                   data = [\"uci\"]\nseed = [0]\n";

/// A manifest of 1,000 events with this hash by numbers, and one by names.
fn manifest(sha256: &str, by_name: Option<&str>) -> String {
    let split = json!({ "mode": "dyglib", "val-time": 0.0, "test-time": 0.0, "masked": [], "n-events": 1 });
    let data = json!({
        "name": "uci", "file": null, "read": {}, "events": 1000, "nodes": 20, "sha256": sha256, "sha256_by_name": by_name,
        "node_features": null, "edge_features": null,
    });
    json!({
        "version": "0", "commit": null, "command": [], "started": 0.0, "threads": 1, "machine": "", "data": data, "split": split,
    })
    .to_string()
}

fn content(sha256: &str, by_name: Option<&str>) -> Content {
    Content { events: 1000, nodes: 20, sha256: sha256.to_owned(), sha256_by_name: by_name.map(str::to_owned) }
}

/// A finished run of `uci-tgat-0` with this manifest.
fn home(manifest: &str) -> Home {
    let home = Home::new(ONE);
    home.run("uci-tgat-0", 0.9, &[1.0]).write("uci-tgat-0", "manifest.json", manifest);
    home
}

fn cell_of(home: &Home, content: Option<Content>) -> Cell {
    let mut cell = home.experiment.cells()[0].clone();
    cell.content = content;
    cell
}

fn archive_of(homes: &[&Home]) -> RunArchive {
    let folders: Vec<PathBuf> = homes.iter().map(|home| home.folder.path().to_owned()).collect();
    RunArchive::read(&[folders], &ModelRegistry::default()).unwrap()
}

#[test]
fn a_run_on_other_events_is_not_that_of_the_cell() {
    let home = home(&manifest("aaaa", Some("names")));
    let file = home.folder.path().join("runs.jsonl");
    archive(&[home.folder.path().to_owned()], &file, &ModelRegistry::default()).unwrap();
    assert!(
        fs::read_to_string(&file).unwrap().contains("\"content\":{\"events\":1000,\"nodes\":20,\"sha256\":\"aaaa\"")
    );
    let archives = [RunArchive::read(&[vec![file]], &ModelRegistry::default()).unwrap(), archive_of(&[&home])];
    for (known, is_found) in [
        (None, true),
        (Some(content("aaaa", None)), true),
        (Some(content("bbbb", Some("names"))), true),
        (Some(content("bbbb", None)), false),
        (Some(content("bbbb", Some("others"))), false),
        (Some(Content { events: 999, ..content("aaaa", Some("names")) }), false),
    ] {
        let cell = cell_of(&home, known.clone());
        for archive in &archives {
            assert!(archive.has_content_for(&cell));
            assert_eq!(archive.find(&cell).unwrap().is_some(), is_found, "{known:?}");
        }
        let own = Found::of(&cell, home.folder.path()).unwrap();
        assert_eq!(own.state, if is_found { State::Done } else { State::OtherData }, "{known:?}");
    }
    // It is moved aside, never resumed or overwritten.
    let other = Found::of(&cell_of(&home, Some(content("bbbb", None))), home.folder.path()).unwrap();
    assert!(!other.prepare().unwrap());
    assert!(home.folder.path().join("uci-tgat-0.before-1/summary.json").is_file());
}

#[test]
fn the_same_events_under_another_name_are_the_same_data() {
    let old = home(&manifest("aaaa", None));
    for (name, content, is_found) in [
        ("messages", Some(content("aaaa", None)), true),
        ("messages", Some(content("bbbb", None)), false),
        ("messages", None, false),
        ("uci", None, true),
    ] {
        // The preset of UCI is the default for TGAT but for its dropout.
        let text = ONE.replace("\"uci\"", &format!("{name:?}"))
            + "[[override]]\nwhen = {}\nset = { model.dropout = 0.1 }\nsource = \"x\"\n";
        let mut cell = parse(&text).unwrap().cells()[0].clone();
        assert_eq!(cell.config.model.common.dropout, old.experiment.cells()[0].config.model.common.dropout);
        cell.content.clone_from(&content);
        assert_eq!(archive_of(&[&old]).find(&cell).unwrap().is_some(), is_found, "{name} {content:?}");
    }
    // Files as DyGLib calls them.
    let mut config = old.experiment.cells()[0].config.clone();
    config.data = "data/uci/ml_uci.csv".to_owned();
    old.write("uci-tgat-0", "config.toml", &config.to_toml().unwrap());
    assert!(archive_of(&[&old]).find(&cell_of(&old, None)).unwrap().is_some());
}

#[test]
fn a_run_without_a_recorded_content_counts_by_the_name_of_its_data() {
    let home = Home::new(ONE);
    home.run("uci-tgat-0", 0.9, &[1.0]);
    let archive = archive_of(&[&home]);
    let cell = cell_of(&home, Some(content("aaaa", None)));
    assert!(!archive.has_content_for(&cell));
    let found = archive.find(&cell).unwrap().unwrap();
    let page = markdown(&home.experiment, &[found], &[], home.folder.path());
    let line =
        "- matched by the name of the data alone, since no fingerprint of its content was recorded: 1 run (uci)\n";
    assert!(page.contains(&format!("## Data\n\n{line}")), "{page}");
}

#[test]
fn of_runs_on_different_events_the_one_on_the_data_at_hand_is_taken() {
    let (old, new) = (home(&manifest("aaaa", None)), home(&manifest("bbbb", None)));
    new.run("uci-tgat-0", 0.8, &[1.0]).write("uci-tgat-0", "manifest.json", &manifest("bbbb", None));
    let archive = archive_of(&[&old, &new]);
    for (sha256, home) in [("aaaa", &old), ("bbbb", &new)] {
        let found = archive.find(&cell_of(home, Some(content(sha256, None)))).unwrap().unwrap();
        assert!(found.folder.starts_with(home.folder.path()), "{sha256}");
        let page = html(&home.experiment, &[found], &[], home.folder.path());
        let line = format!("<li>uci: 1000 events of 20 nodes, SHA-256 {sha256}… (1 run), the file at hand</li>");
        assert!(page.contains(&line), "{page}");
    }
    // Without data at hand the choice would be arbitrary.
    let error = archive.find(&cell_of(&old, None)).unwrap_err().to_string();
    assert!(error.contains("found the same settings, on other data, in ") && error.contains("--data-dir"), "{error}");
    let both = [&old, &new].map(|home| archive_of(&[home]).find(&cell_of(home, None)).unwrap().unwrap());
    let page = markdown(&old.experiment, &both, &[], old.folder.path());
    let warning = "runs of uci saw different events, so their numbers do not compare";
    assert_eq!(page.matches(warning).count(), 2, "{page}");
}
