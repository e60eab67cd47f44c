//! `deny.toml` without cargo-deny and offline: licences, sources and duplicate versions of all dependencies.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use super::{assert_none, read, root};

struct Package {
    name: String,
    version: String,
    license: String,
    /// None for a crate of this repository.
    source: Option<String>,
}

/// Every package of Cargo.lock, without those of other platforms where cargo has not downloaded them; and whether those are
/// among them, which `cargo fetch` brings.
fn packages() -> (Vec<Package>, bool) {
    let metadata = |platform: &[&str]| {
        let arguments = ["metadata", "--format-version", "1", "--offline", "--locked"];
        Command::new(env!("CARGO")).current_dir(root()).args(arguments).args(platform).output().expect("cargo starts")
    };
    let all = metadata(&[]);
    let is_complete = all.status.success();
    let output = if is_complete { all } else { metadata(&["--filter-platform", &host()]) };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let packages = metadata["packages"].as_array().expect("packages").iter().map(|package| Package {
        name: text(&package["name"]).expect("a name"),
        version: text(&package["version"]).expect("a version"),
        license: text(&package["license"]).unwrap_or_default(),
        source: text(&package["source"]),
    });
    (packages.collect(), is_complete)
}

/// The target triple of this machine.
fn host() -> String {
    let output = Command::new("rustc").arg("-vV").output().expect("rustc starts");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines().find_map(|line| line.strip_prefix("host: ")).expect("a line with the host").to_owned()
}

fn deny() -> toml::Table {
    read(&root().join("deny.toml")).parse().expect("TOML")
}

#[test]
fn every_licence_is_allowed_by_deny_toml() {
    let deny = deny();
    let allowed: Vec<&str> =
        deny["licenses"]["allow"].as_array().expect("a list").iter().filter_map(toml::Value::as_str).collect();
    let refused = |package: &Package| {
        let Package { name, version, license, .. } = package;
        (!is_allowed(license, &allowed)).then(|| format!("{name} {version}: {license:?}"))
    };
    let (packages, is_complete) = packages();
    let refused: Vec<String> = packages.iter().filter_map(refused).collect();
    assert_none("every licence is in [licenses] allow of deny.toml", &refused);
    // An exception stands behind its licence, as one term of three words.
    let is_term = |expression: &str, licence: &str| {
        terms(expression).iter().any(|term| term == licence)
            || (licence.contains(" WITH ") && expression.contains(licence))
    };
    let is_needed = |licence: &&str| packages.iter().any(|package| is_term(&package.license, licence));
    let unused = allowed.iter().filter(|licence| is_complete && !is_needed(licence));
    let unused: Vec<String> = unused.map(|licence| (*licence).to_owned()).collect();
    assert_none("every licence in deny.toml is that of a dependency", &unused);
}

#[test]
fn every_dependency_comes_from_the_registry_or_this_repository() {
    let deny = deny();
    let sources = &deny["sources"];
    for unknown in ["unknown-registry", "unknown-git"] {
        assert_eq!(sources[unknown].as_str(), Some("deny"), "{unknown} in deny.toml");
    }
    assert_eq!(sources["allow-git"].as_array().map(Vec::len), Some(0), "no dependency from a git repository");
    let registries = sources["allow-registry"].as_array().expect("a list").iter().filter_map(toml::Value::as_str);
    let allowed: Vec<String> = registries.map(|address| format!("registry+{address}")).collect();
    let elsewhere = |package: &Package| {
        let source = package.source.as_deref()?;
        (!allowed.iter().any(|address| address == source)).then(|| format!("{}: {source}", package.name))
    };
    let elsewhere: Vec<String> = packages().0.iter().filter_map(elsewhere).collect();
    assert_none("dependencies come from crates.io", &elsewhere);
}

#[test]
fn ignored_advisories_have_a_reason() {
    let deny = deny();
    let advisories = &deny["advisories"];
    assert_eq!((advisories["yanked"].as_str(), advisories["unmaintained"].as_str()), (Some("deny"), Some("all")));
    for entry in advisories["ignore"].as_array().expect("a list") {
        let reason = entry.get("reason").and_then(toml::Value::as_str);
        assert!(reason.is_some_and(|reason| !reason.is_empty()), "{entry}: give a reason");
    }
}

#[test]
fn duplicate_versions_are_listed_in_deny_toml() {
    let deny = deny();
    let skipped = deny["bans"]["skip"].as_array().expect("a list").iter().map(|entry| {
        assert!(entry["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{entry}: give a reason");
        entry["crate"].as_str().and_then(|name| name.split_once('@')).expect("crate = \"name@version\"")
    });
    let skipped: Vec<(&str, &str)> = skipped.collect();
    let mut versions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (packages, is_complete) = packages();
    for package in packages {
        versions.entry(package.name).or_default().push(package.version);
    }
    let fits = |name: &str, version: &str, skip: &(&str, &str)| {
        skip.0 == name && (version == skip.1 || version.starts_with(&format!("{}.", skip.1)))
    };
    let mut found = Vec::new();
    for (name, versions) in &versions {
        let unlisted: Vec<&String> = versions.iter().filter(|v| !skipped.iter().any(|s| fits(name, v, s))).collect();
        if unlisted.len() > 1 {
            found.push(format!("{name}: {unlisted:?}"));
        }
    }
    let is_stale = |skip: &&(&str, &str)| {
        let known = versions.get(skip.0);
        known.is_none_or(|known| known.len() < 2 || !known.iter().any(|version| fits(skip.0, version, skip)))
    };
    let stale = skipped.iter().filter(|skip| is_complete && is_stale(skip));
    found.extend(stale.map(|(name, version)| format!("{name}@{version} is no duplicate any more")));
    assert_none("duplicate versions are those of [bans] skip in deny.toml", &found);
}

/// Licence ids, operators and parentheses of an SPDX expression; `/` is the old way to write OR.
fn terms(expression: &str) -> Vec<String> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    spaced.split_whitespace().map(str::to_owned).collect()
}

/// Whether an SPDX expression can be satisfied with the allowed licences. AND binds tighter than OR.
fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    let terms = terms(expression);
    let mut rest = terms.as_slice();
    !terms.is_empty() && any_of(&mut rest, allowed) && rest.is_empty()
}

fn any_of(rest: &mut &[String], allowed: &[&str]) -> bool {
    let mut holds = all_of(rest, allowed);
    while take(rest, "OR") {
        let next = all_of(rest, allowed);
        holds |= next;
    }
    holds
}

fn all_of(rest: &mut &[String], allowed: &[&str]) -> bool {
    let mut holds = one(rest, allowed);
    while take(rest, "AND") {
        let next = one(rest, allowed);
        holds &= next;
    }
    holds
}

fn one(rest: &mut &[String], allowed: &[&str]) -> bool {
    if take(rest, "(") {
        let holds = any_of(rest, allowed);
        return take(rest, ")") && holds;
    }
    let Some((licence, after)) = rest.split_first() else { return false };
    *rest = after;
    let mut licence = licence.clone();
    if take(rest, "WITH")
        && let Some((exception, after)) = rest.split_first()
    {
        licence.push_str(" WITH ");
        licence.push_str(exception);
        *rest = after;
    }
    allowed.contains(&licence.as_str())
}

fn take(rest: &mut &[String], term: &str) -> bool {
    match rest.split_first() {
        Some((first, after)) if first == term => {
            *rest = after;
            true
        }
        _ => false,
    }
}

#[test]
fn licence_expressions_are_read_as_spdx_defines_them() {
    let allowed = ["MIT", "Apache-2.0", "Zlib"];
    for (expression, expected) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("", false),
        ("GPL-3.0 OR MIT", true),
        ("MIT/GPL-3.0", true),
        ("MIT AND GPL-3.0", false),
        ("(MIT OR GPL-3.0) AND Zlib", true),
        ("GPL-3.0 OR MIT AND Zlib", true),
        ("Apache-2.0 WITH LLVM-exception", false),
        ("Apache-2.0 WITH LLVM-exception OR MIT", true),
    ] {
        assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
    }
}
