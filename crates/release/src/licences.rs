//! Licences of all packages in the program, with their texts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::dependencies::Package;

/// Beginnings of the names of files with licences, in capitals.
const NAMES: [&str; 6] = ["LICENSE", "LICENCE", "UNLICENSE", "COPYRIGHT", "NOTICE", "COPYING"];

/// The licence that has the same words for everyone, so that a package may leave its text out.
const APACHE: &str = include_str!("../../../LICENSE-APACHE");

/// A Markdown page: a table of the packages from elsewhere, and each distinct text once.
pub(crate) fn third_party(packages: &[Package], target: &str) -> anyhow::Result<String> {
    let foreign: Vec<&Package> = packages.iter().filter(|package| !package.is_own()).collect();
    let mut out = format!(
        "# Third-party licences\n\nThe program `hopedgn` for {target} contains these packages, and the standard library of Rust \
         (MIT OR Apache-2.0, https://github.com/rust-lang/rust). Their texts are below.\n\n\
         | package | version | licence | source |\n|---|---|---|---|\n"
    );
    let mut texts: BTreeMap<String, (String, Vec<String>)> = BTreeMap::new();
    for Package { name, version, license, repository, folder, .. } in foreign {
        let _ = writeln!(out, "| {name} | {version} | {license} | {} |", repository.as_deref().unwrap_or_default());
        let files = licence_files(folder)?;
        if files.is_empty() && license.split(" OR ").any(|one| one == "Apache-2.0") {
            add(&mut texts, APACHE, format!("{name} {version} (Apache-2.0, without a text of its own)"));
            continue;
        }
        anyhow::ensure!(
            !files.is_empty(),
            "found no licence among the sources of {name} {version}, expected a file called LICENSE or similar; look into {}",
            folder.display()
        );
        for file in files {
            let inside = file.strip_prefix(folder).unwrap_or(&file).display().to_string();
            add(&mut texts, &read(&file)?, format!("{name} {version} ({inside})"));
        }
    }
    // Our own packages embed libraries of the page, each with its licence beside it.
    for Package { folder, .. } in packages.iter().filter(|package| package.is_own()) {
        let vendor = folder.join("page/vendor");
        for file in if vendor.is_dir() { licence_files(&vendor)? } else { Vec::new() } {
            let name = file.file_stem().unwrap_or_default().to_string_lossy().replace("LICENSE-", "");
            add(&mut texts, &read(&file)?, format!("{name} (part of the page of `hopedgn serve`)"));
        }
    }
    let mut texts: Vec<(String, Vec<String>)> = texts.into_values().collect();
    // In order of the first package that uses it.
    texts.sort_by(|(_, a), (_, b)| a.cmp(b));
    for (number, (text, users)) in texts.iter().enumerate() {
        let _ = write!(out, "\n## Text {}\n\n{}\n\n````text\n{text}\n````\n", number + 1, users.join(", "));
    }
    Ok(out)
}

/// The text of a file, whatever its bytes.
fn read(file: &Path) -> anyhow::Result<String> {
    let bytes = fs::read(file).with_context(|| format!("could not read {}", file.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Adds a text and who uses it. Texts that differ in line breaks only are one.
fn add(texts: &mut BTreeMap<String, (String, Vec<String>)>, text: &str, user: String) {
    let text = text.replace("\r\n", "\n").trim_matches('\n').trim_end().to_owned();
    let key = text.split_whitespace().collect::<Vec<_>>().join(" ");
    texts.entry(key).or_insert_with(|| (text, Vec::new())).1.push(user);
}

/// Files with licences: those next to the manifest, and those called LICENSE in folders of bundled sources.
fn licence_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        // Below, COPYING is an alternative to the LICENSE beside it.
        let names = if next == folder { &NAMES[..] } else { &NAMES[..2] };
        for entry in fs::read_dir(&next).with_context(|| format!("could not read {}", next.display()))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().to_uppercase();
            let is_code = entry.path().extension().is_some_and(|ending| ending == "rs");
            if entry.file_type()?.is_dir() {
                open.push(entry.path());
            } else if names.iter().any(|start| name.starts_with(start)) && !is_code {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(folder: &Path, name: &str, files: &[(&str, &str)]) -> Package {
        let folder = folder.join(name);
        for (file, text) in files {
            fs::create_dir_all(folder.join(file).parent().unwrap()).unwrap();
            fs::write(folder.join(file), text).unwrap();
        }
        let (name, version, license) = (name.into(), "1.0.0".into(), "MIT".into());
        Package { name, version, license, repository: None, folder, checksum: Some("abc".into()), uses: Vec::new() }
    }

    #[test]
    fn each_text_is_listed_once_with_its_packages() {
        let place = tempfile::tempdir().unwrap();
        let own = Package { checksum: None, ..package(place.path(), "hopedgn", &[("src/lib.rs", "")]) };
        let a = package(place.path(), "a", &[("LICENSE-MIT", "do what\nyou want\n"), ("src/licenses.rs", "code")]);
        let b = package(place.path(), "b", &[("license", "do what you\r\nwant"), ("vendored/c/LICENSE.md", "other")]);
        let page = third_party(&[own.clone(), a.clone(), b], "some-target").unwrap();
        assert_eq!(page.matches("\n## Text ").count(), 2, "{page}");
        assert!(page.contains(
            "\n## Text 1\n\na 1.0.0 (LICENSE-MIT), b 1.0.0 (license)\n\n````text\ndo what\nyou want\n````\n"
        ));
        assert!(page.contains("b 1.0.0 (vendored/c/LICENSE.md)\n\n````text\nother\n"), "{page}");
        assert!(page.contains("| a | 1.0.0 | MIT |  |\n") && !page.contains("| hopedgn |"), "{page}");
        let served = Package {
            checksum: None,
            ..package(place.path(), "served", &[("page/vendor/LICENSE-uplot.txt", "third")])
        };
        let apache = Package { license: "Apache-2.0".into(), ..package(place.path(), "apache", &[("src/lib.rs", "")]) };
        let page = third_party(&[served, apache], "some-target").unwrap();
        assert!(page.contains("uplot (part of the page of `hopedgn serve`)\n\n````text\nthird\n"), "{page}");
        assert!(page.contains("apache 1.0.0 (Apache-2.0, without a text of its own)\n\n````text\n"), "{page}");
        assert!(page.contains("TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION"), "{page}");
        let bare = package(place.path(), "bare", &[("src/lib.rs", "")]);
        let refused = third_party(&[own, a, bare], "some-target").unwrap_err().to_string();
        assert!(refused.starts_with("found no licence among the sources of bare 1.0.0"), "{refused}");
    }
}
