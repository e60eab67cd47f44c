//! The packages that go into the program, from `cargo metadata` and `Cargo.lock`; without the network.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use serde_json::Value;

/// The package of the program.
const PROGRAM: &str = "hopedgn-cli";

/// A package that is linked into the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// An SPDX expression.
    pub(crate) license: String,
    pub(crate) repository: Option<String>,
    /// Its sources.
    pub(crate) folder: PathBuf,
    /// SHA-256 of its archive; None for a package of this repository.
    pub(crate) checksum: Option<String>,
    /// Packages that it uses, as positions in the list.
    pub(crate) uses: Vec<usize>,
}

impl Package {
    /// Whether it is one of this repository.
    pub(crate) fn is_own(&self) -> bool {
        self.checksum.is_none()
    }

    /// The package URL, e.g. `pkg:cargo/serde@1.0.0`; a package of this repository is not looked for on crates.io.
    pub(crate) fn purl(&self) -> String {
        let Self { name, version, repository, .. } = self;
        match repository {
            Some(repository) if self.is_own() => format!("pkg:cargo/{name}@{version}?vcs_url=git%2B{repository}"),
            _ => format!("pkg:cargo/{name}@{version}"),
        }
    }
}

/// The package of the program first, then all others by name and version. Macros and build scripts run at compile time and are left
/// out, with what only they use.
pub(crate) fn read(root: &Path, target: &str) -> anyhow::Result<Vec<Package>> {
    let arguments = ["metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform", target];
    let output = Command::new("cargo").current_dir(root).args(arguments).output().context("could not start cargo")?;
    anyhow::ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
    let lock = std::fs::read_to_string(root.join("Cargo.lock")).context("could not read Cargo.lock")?;
    linked(&serde_json::from_slice(&output.stdout)?, &checksums(&lock)?)
}

type Checksums = BTreeMap<(String, String), String>;

fn checksums(lock: &str) -> anyhow::Result<Checksums> {
    let lock: toml::Table = lock.parse().context("Cargo.lock")?;
    let packages = lock.get("package").and_then(toml::Value::as_array).context("found no packages in Cargo.lock")?;
    let entry = |package: &toml::Value| {
        let text = |key: &str| package.get(key).and_then(toml::Value::as_str).map(str::to_owned);
        Some(((text("name")?, text("version")?), text("checksum")?))
    };
    Ok(packages.iter().filter_map(entry).collect())
}

fn linked(metadata: &Value, checksums: &Checksums) -> anyhow::Result<Vec<Package>> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let id = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages: BTreeMap<String, Value> =
        list(&metadata["packages"]).into_iter().map(|package| (id(&package["id"]), package)).collect();
    let is_macro = |package: &Value| {
        list(&package["targets"]).iter().any(|target| list(&target["kind"]).contains(&"proc-macro".into()))
    };
    let mut uses: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for node in list(&metadata["resolve"]["nodes"]) {
        let is_linked = |dependency: &Value| {
            // A normal dependency has no kind.
            list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].is_null())
                && !packages.get(&id(&dependency["pkg"])).is_none_or(is_macro)
        };
        let linked = list(&node["deps"]).into_iter().filter(is_linked).map(|dependency| id(&dependency["pkg"]));
        uses.insert(id(&node["id"]), linked.collect());
    }
    let program =
        packages.values().find(|package| package["name"] == PROGRAM).context("found no package hopedgn-cli")?;
    let (mut seen, mut open) = (BTreeSet::new(), vec![id(&program["id"])]);
    while let Some(next) = open.pop() {
        if seen.insert(next.clone()) {
            open.extend(uses.get(&next).into_iter().flatten().cloned());
        }
    }
    let text = |package: &Value, key: &str| package[key].as_str().map(str::to_owned);
    let mut order: Vec<(bool, String, String, String)> = Vec::new();
    for id in seen {
        let (name, version) = (text(&packages[&id], "name"), text(&packages[&id], "version"));
        let (name, version) = name.zip(version).with_context(|| format!("found no name and version of {id}"))?;
        order.push((name != PROGRAM, name, version, id));
    }
    order.sort();
    let position = |wanted: &String| order.iter().position(|(.., id)| id == wanted);
    let package = |(_, name, version, id): &(bool, String, String, String)| {
        let package = &packages[id];
        let manifest = text(package, "manifest_path").with_context(|| format!("found no sources of {name}"))?;
        let mut uses: Vec<usize> = uses.get(id).into_iter().flatten().filter_map(position).collect();
        uses.sort_unstable();
        Ok(Package {
            name: name.clone(),
            version: version.clone(),
            // `/` is the old way to write OR.
            license: text(package, "license").unwrap_or_default().replace('/', " OR "),
            repository: text(package, "repository"),
            folder: Path::new(&manifest).parent().map(Path::to_owned).unwrap_or_default(),
            checksum: checksums.get(&(name.clone(), version.clone())).cloned(),
            uses,
        })
    };
    order.iter().map(package).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn packages_are_those_that_are_linked() {
        let package = |name: &str, kind: &str| {
            let manifest = format!("sources/{name}/Cargo.toml");
            json!({ "id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0", "manifest_path": manifest,
                    "targets": [{ "kind": [kind] }] })
        };
        let uses = |name: &str, kind: Value| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        let metadata = json!({
            "packages": [package("hopedgn-cli", "bin"), package("b", "lib"), package("a", "lib"), package("macro", "proc-macro"),
                         package("of-macro", "lib"), package("builder", "lib"), package("tester", "lib")],
            "resolve": { "nodes": [
                { "id": "hopedgn-cli", "deps": [uses("b", Value::Null), uses("builder", "build".into()),
                                                uses("tester", "dev".into()), uses("macro", Value::Null)] },
                { "id": "b", "deps": [uses("a", Value::Null)] },
                { "id": "macro", "deps": [uses("of-macro", Value::Null)] },
            ] },
        });
        let lock = "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"abc\"\n[[package]]\nname = \"b\"\nversion = \"1.0.0\"\n";
        let found = linked(&metadata, &checksums(lock).unwrap()).unwrap();
        let names: Vec<(&str, &[usize])> =
            found.iter().map(|package| (package.name.as_str(), package.uses.as_slice())).collect();
        assert_eq!(names, [("hopedgn-cli", &[2][..]), ("a", &[]), ("b", &[1])]);
        assert_eq!((found[1].checksum.as_deref(), found[1].is_own(), found[2].is_own()), (Some("abc"), false, true));
        assert_eq!((found[1].license.as_str(), found[1].purl().as_str()), ("MIT OR Apache-2.0", "pkg:cargo/a@1.0.0"));
        assert_eq!(found[1].folder, Path::new("sources/a"));
    }
}
