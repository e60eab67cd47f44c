//! Rules about the repository itself: size of files, module direction, words, dependencies.

mod dependencies;
mod modules;
mod published;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// All files below `folder` with one of the endings, without build output.
fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if entry.is_dir() {
            if !["target", ".git", "corpus", "artifacts", "runs"].contains(&name.as_str()) {
                found.extend(files(&entry, endings));
            }
        } else if endings.iter().any(|ending| name.ends_with(ending)) {
            found.push(entry);
        }
    }
    found.sort();
    found
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A path as it is written in the repository.
fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// The section of a Markdown file under `heading`, up to the next heading of the second level.
fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    let heading = format!("\n## {heading}\n");
    let (_, rest) = text.split_once(&heading).unwrap_or_else(|| panic!("found no section{heading}"));
    rest.split_once("\n## ").map_or(rest, |(section, _)| section)
}

/// Fails with all findings at once.
fn assert_none(rule: &str, findings: &[String]) {
    assert!(findings.is_empty(), "{rule}; found {}:\n{}", findings.len(), findings.join("\n"));
}

#[test]
fn source_files_have_at_most_500_lines() {
    let long = |file: &PathBuf| {
        let n = read(file).lines().count();
        (n > 500).then(|| format!("{}: {n} lines", relative(file)))
    };
    let found: Vec<String> = files(&root().join("crates"), &[".rs"]).iter().filter_map(long).collect();
    assert_none("a file of more than 500 lines has a second subject: split it", &found);
}

#[test]
fn readme_has_at_most_90_lines() {
    let n = read(&root().join("README.md")).lines().count();
    assert!(n <= 90, "README.md has {n} lines: move the rest to docs/");
}

#[test]
fn no_file_names_a_folder_of_one_machine() {
    let endings = [".rs", ".cu", ".md", ".toml", ".py", ".sh", ".html", "run", "NOTICE"];
    let mut found = Vec::new();
    for file in files(&root(), &endings) {
        for (number, line) in read(&file).lines().enumerate() {
            if ["work", "root", "home"].iter().any(|folder| line.contains(&format!("/{folder}/"))) {
                found.push(format!("{}:{}: {line}", relative(&file), number + 1));
            }
        }
    }
    assert_none("paths of one machine mean nothing on another", &found);
}

#[test]
fn every_test_named_in_the_architecture_exists() {
    let text = read(&root().join("ARCHITECTURE.md"));
    let code: String = files(&root().join("crates"), &[".rs"]).iter().map(|file| read(file)).collect();
    let quoted = section(&text, "Invariants").split('`').skip(1).step_by(2);
    let tests: Vec<&str> = quoted.filter_map(|name| name.rsplit_once("::")).map(|(_, test)| test).collect();
    assert!(tests.len() > 10, "{tests:?}");
    let missing =
        |test: &&str| *test != "tests" && *test != "strictly_before" && !code.contains(&format!("fn {test}("));
    let missing: Vec<String> = tests.into_iter().filter(missing).map(str::to_owned).collect();
    assert_none("every test that ARCHITECTURE.md names exists", &missing);
}
