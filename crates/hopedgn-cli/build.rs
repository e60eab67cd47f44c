//! Tells the program which commit it is built from: `HOPEDGN_COMMIT` for manifests, `HOPEDGN_VERSION` for `--version`.
//!
//! The environment variable `HOPEDGN_COMMIT` wins over git; without both the commit is unknown. The script runs again after a
//! commit, a checkout, or an edit of a source file that goes into the program, which is compiled again then anyway.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Digits of the commit in `--version`.
const N_SHORT: usize = 12;

/// Packages that do not go into the program.
const TOOLS: [&str; 2] = ["release", "hopedgn-py"];

fn main() {
    println!("cargo::rerun-if-env-changed=HOPEDGN_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    let version = env!("CARGO_PKG_VERSION");
    let named = std::env::var_os("HOPEDGN_COMMIT").map(|name| name.to_string_lossy().trim().to_owned());
    let commit = named.or_else(commit_of_checkout).filter(|commit| !commit.is_empty());
    match &commit {
        Some(commit) => println!("cargo::rustc-env=HOPEDGN_VERSION={version} ({})", shortened(commit)),
        None => println!("cargo::rustc-env=HOPEDGN_VERSION={version}"),
    }
    println!("cargo::rustc-env=HOPEDGN_COMMIT={}", commit.unwrap_or_default());
}

/// The commit of the git checkout that holds this workspace, with `-dirty` where a source differs from it.
fn commit_of_checkout() -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().ok()?;
    // A copy inside another repository has the commits of that one, which say nothing.
    let top = git(&root, &["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != root {
        return None;
    }
    // Every commit and checkout adds a line to the log of HEAD. A path that does not exist would run the script every time.
    for name in ["HEAD", "logs/HEAD"] {
        let path = root.join(git(&root, &["rev-parse", "--git-path", name])?);
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    let sources = sources(&root);
    for file in &sources {
        println!("cargo::rerun-if-changed={}", root.join(file).display());
    }
    let commit = git(&root, &["rev-parse", "HEAD"])?;
    let files = sources.iter().filter_map(|file| file.to_str());
    let status = ["--no-optional-locks", "status", "--porcelain", "--"].into_iter().chain(files);
    let changed = git(&root, &status.collect::<Vec<_>>())?;
    Some(if changed.is_empty() { commit } else { commit + "-dirty" })
}

/// The files that go into the program, relative to the root. Tests in files of their own do not.
fn sources(root: &Path) -> Vec<PathBuf> {
    let mut files = vec![PathBuf::from("Cargo.toml"), PathBuf::from("Cargo.lock")];
    for package in entries(&root.join("crates")) {
        let name = package.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !TOOLS.contains(&name.as_str()) {
            files.push(package.join("Cargo.toml"));
            collect(&package.join("src"), &mut files);
            collect(&package.join("data"), &mut files);
        }
    }
    files.iter().map(|file| file.strip_prefix(root).unwrap_or(file).to_owned()).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in entries(folder) {
        let is_test = entry.file_stem().is_some_and(|stem| stem == "tests");
        match (is_test, entry.is_dir()) {
            (true, _) => {}
            (false, true) => collect(&entry, files),
            (false, false) => files.push(entry),
        }
    }
}

/// What a folder holds, in order; nothing if there is no such folder.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    entries
}

/// The output of a git command; nothing where it fails or there is no git.
fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").current_dir(folder).args(arguments).output().ok()?;
    let text = output.status.success().then(|| String::from_utf8(output.stdout).ok()).flatten()?;
    Some(text.trim().to_owned())
}

/// The first digits of a commit, with what follows its hexadecimal part.
fn shortened(commit: &str) -> String {
    let n_digits = commit.bytes().take_while(u8::is_ascii_hexdigit).count();
    if n_digits <= N_SHORT { commit.to_owned() } else { format!("{}{}", &commit[..N_SHORT], &commit[n_digits..]) }
}
