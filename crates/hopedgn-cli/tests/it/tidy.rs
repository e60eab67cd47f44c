//! Rules about the repository itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// All files below `folder` with one of the endings, build output left out.
fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if entry.is_dir() {
            if !["target", ".git", "corpus", "artifacts"].contains(&name.as_str()) {
                found.extend(files(&entry, endings));
            }
        } else if endings.iter().any(|ending| name.ends_with(ending)) {
            found.push(entry);
        }
    }
    found.sort();
    found
}

/// The table "Modules of `NAME`" in ARCHITECTURE.md: module → modules it may use.
fn allowed(name: &str) -> BTreeMap<String, Vec<String>> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let (_, section) = text.split_once(&format!("## Modules of `{name}`")).expect("the section");
    let (section, _) = section.split_once("\n## ").expect("a next section");
    let names = |cell: &str| -> Vec<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let mut table = BTreeMap::new();
    for row in section.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').collect();
        for module in names(cells[1]) {
            table.insert(module, names(cells[2]));
        }
    }
    table
}

#[test]
fn the_modules_depend_in_one_direction() {
    for name in ["ctdg", "hopedgn"] {
        check_modules(name);
    }
}

fn check_modules(name: &str) {
    let allowed = allowed(name);
    let src = root().join("crates").join(name).join("src");
    let modules: Vec<String> = fs::read_to_string(src.join("lib.rs"))
        .expect("lib.rs")
        .lines()
        .filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';').map(str::to_owned))
        .collect();
    assert_eq!(modules.len(), allowed.len(), "every module has its row: {modules:?} {allowed:?}");
    for file in files(&src, &[".rs"]) {
        let inside = file.strip_prefix(&src).expect("below").to_string_lossy().into_owned();
        let module = inside.split(['/', '.']).next().expect("a name").to_owned();
        if module == "lib" {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a source file");
        // What tests use is their own affair.
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for used in code.split("crate::").skip(1) {
            let used: String = used.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
            let known = used == module || used.is_empty() || !modules.contains(&used);
            assert!(
                known || allowed[&module].contains(&used),
                "{inside} uses {used}, which ARCHITECTURE.md does not allow"
            );
        }
    }
}

#[test]
fn files_have_one_subject() {
    for file in files(&root().join("crates"), &[".rs"]) {
        let n = fs::read_to_string(&file).expect("a source file").lines().count();
        assert!(n <= 500, "{} has {n} lines; is there a second subject in it?", file.display());
    }
}

#[test]
fn no_file_names_the_machine_it_was_written_on() {
    let endings = [".rs", ".md", ".toml", ".py", "run", "NOTICE"];
    for file in files(&root(), &endings) {
        let text = fs::read_to_string(&file).expect("a text file");
        for folder in ["work", "root", "home"] {
            let found = text.lines().find(|line| line.contains(&format!("/{folder}/")));
            assert!(found.is_none(), "{}: {found:?}", file.display());
        }
    }
}

#[test]
fn every_test_named_in_the_architecture_exists() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let (_, section) = text.split_once("## Invariants").expect("the section");
    let (section, _) = section.split_once("\n## ").expect("a next section");
    let code: String = files(&root().join("crates"), &[".rs"])
        .iter()
        .map(|file| fs::read_to_string(file).expect("a source file"))
        .collect();
    let quoted = section.split('`').skip(1).step_by(2);
    let tests: Vec<&str> = quoted.filter_map(|name| name.rsplit_once("::")).map(|(_, test)| test).collect();
    assert!(tests.len() > 10, "{tests:?}");
    for test in tests.into_iter().filter(|test| *test != "tests" && *test != "strictly_before") {
        assert!(code.contains(&format!("fn {test}(")), "{test} is not a test");
    }
}
