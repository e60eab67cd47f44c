//! Known datasets and their download addresses.

use std::path::{Component, Path};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::checksum::{Algorithm, Checksum};
use crate::error::{Error, Problem, Result};

/// A dataset that can be fetched: its name, its size and its mirrors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its name, and the stem of its file.
    pub name: String,
    /// The counts it must have.
    pub counts: Counts,
    /// Where to fetch it from, in order of preference. Never empty.
    pub mirrors: Vec<Mirror>,
}

/// Size of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Nodes with at least one event.
    pub nodes: u64,
    /// Events.
    pub events: u64,
}

/// One download address of a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    /// The address of the file.
    pub url: String,
    /// How the file is packed.
    pub archive: Archive,
    /// Members to extract, in this order; empty for [`Archive::None`].
    pub members: Vec<String>,
    /// Format of the file, or of the archive's members.
    pub format: Format,
    /// The checksum of the file, if its publisher states one that does not change.
    pub checksum: Option<Checksum>,
    /// A Zenodo record that states the checksum.
    pub checksum_url: Option<String>,
    /// Most bytes of the download, and of what is extracted from it.
    pub max_bytes: u64,
}

/// How a downloaded file is packed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Archive {
    /// Not packed.
    #[default]
    None,
    /// A zip archive.
    Zip,
    /// A tar archive compressed with bzip2.
    TarBz2,
}

/// Format of the fetched files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// JODIE's raw CSV: one file; users and items are numbered separately, each from 0.
    Jodie,
    /// DyGLib's three files: events as CSV, edge features and node features as npy, in this order.
    Dyglib,
    /// KONECT's text: one file of source, destination, weight and time; comments start with `%`.
    Konect,
}

impl Source {
    /// The built-in list.
    ///
    /// # Panics
    /// Never in practice: the list is compiled in and covered by a test.
    #[must_use]
    pub fn all() -> &'static [Self] {
        static KNOWN: OnceLock<Vec<Source>> = OnceLock::new();
        KNOWN.get_or_init(|| Self::parse(include_str!("sources.toml")).expect("the built-in list is sound"))
    }

    /// The built-in dataset called `name`, ignoring case.
    pub fn named(name: &str) -> Result<&'static Self> {
        Self::named_in(None, name)
    }

    /// The dataset called `name` in `list`, or in the built-in list without one.
    pub fn named_in<'a>(list: Option<&'a [Self]>, name: &str) -> Result<&'a Self> {
        let list = list.unwrap_or(Self::all());
        list.iter().find(|source| source.name.eq_ignore_ascii_case(name)).ok_or_else(|| {
            let known: Vec<_> = list.iter().map(|source| source.name.as_str()).collect();
            Problem::NotFetchable { name: name.to_owned(), known: known.join(", ") }.into()
        })
    }

    /// Reads a list from a file; see [`Source::parse`].
    pub fn read_list(file: &Path) -> Result<Vec<Self>> {
        let text = std::fs::read_to_string(file).map_err(|error| Error::io(file, "read", error))?;
        Self::parse(&text).map_err(|error| error.in_file(file))
    }

    /// Reads a list in the form of this crate's own `sources.toml`, for mirrors and further datasets.
    pub fn parse(text: &str) -> Result<Vec<Self>> {
        let list: List = toml::from_str(text).map_err(|error| Problem::Addresses {
            found: error.to_string().trim().replace('\n', " "),
            expected: "a [[source]] table for each dataset",
        })?;
        list.source.into_iter().map(Self::checked).collect()
    }

    fn checked(raw: RawSource) -> Result<Self> {
        require(is_plain_name(&raw.name), &raw.name, "a name of letters, digits, - and _")?;
        require(!raw.mirror.is_empty(), &raw.name, "at least one mirror for each dataset")?;
        let mirrors = raw.mirror.into_iter().map(Mirror::checked).collect::<Result<_>>()?;
        Ok(Self { name: raw.name, counts: Counts { nodes: raw.nodes, events: raw.events }, mirrors })
    }
}

impl Mirror {
    /// The last part of the address, without a query: the file's name.
    #[must_use]
    pub fn file_name(&self) -> &str {
        file_name(&self.url)
    }

    fn checked(raw: RawMirror) -> Result<Self> {
        let RawMirror { url, archive, members, format, md5, sha256, checksum_url, at_most_mib } = raw;
        let is_http = url.starts_with("http://") || url.starts_with("https://");
        require(is_http && !file_name(&url).is_empty(), &url, "an http(s) address that ends in a file name")?;
        require((archive == Archive::None) == members.is_empty(), &url, "members exactly where there is an archive")?;
        for member in &members {
            require(stays_inside(member), member, "a member's name that stays inside the archive's folder")?;
        }
        let mut base_names: Vec<_> = members.iter().map(|member| base_name(member)).collect();
        base_names.sort_unstable();
        require(base_names.windows(2).all(|pair| pair[0] != pair[1]), &url, "members with different base names")?;
        let checksum = match (md5, sha256) {
            (_, Some(digest)) => Some(Checksum::new(Algorithm::Sha256, &digest)?),
            (Some(digest), None) => Some(Checksum::new(Algorithm::Md5, &digest)?),
            (None, None) => None,
        };
        Ok(Self { url, archive, members, format, checksum, checksum_url, max_bytes: u64::from(at_most_mib) << 20 })
    }
}

/// Whether `member` names a file at or below the folder it is unpacked into, on any operating system.
pub(super) fn stays_inside(member: &str) -> bool {
    let plain = !member.contains(['\\', ':', '\0']);
    plain && !member.is_empty() && Path::new(member).components().all(|part| matches!(part, Component::Normal(_)))
}

fn file_name(url: &str) -> &str {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    let path = path.split_once("://").map_or(path, |(_, rest)| rest);
    path.rsplit_once('/').map_or("", |(_, name)| name)
}

/// The base name of a member, under which it is extracted.
pub(super) fn base_name(member: &str) -> &str {
    member.rsplit_once('/').map_or(member, |(_, name)| name)
}

fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

fn require(holds: bool, found: &str, expected: &'static str) -> Result<()> {
    if holds { Ok(()) } else { Err(Problem::Addresses { found: format!("{found:?}"), expected }.into()) }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    source: Vec<RawSource>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSource {
    name: String,
    nodes: u64,
    events: u64,
    #[serde(alias = "home")]
    mirror: Vec<RawMirror>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawMirror {
    url: String,
    #[serde(default)]
    archive: Archive,
    #[serde(default)]
    members: Vec<String>,
    format: Format,
    md5: Option<String>,
    sha256: Option<String>,
    checksum_url: Option<String>,
    at_most_mib: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seven_data_sets_of_the_paper_have_mirrors() {
        let mut names: Vec<_> = Source::all().iter().map(|source| source.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["canparl", "enron", "lastfm", "mooc", "reddit", "uci", "wikipedia"]);
        assert_eq!(Source::named("CanParl").unwrap().counts, Counts { nodes: 734, events: 74_478 });
        assert_eq!(Source::named("wikipedia").unwrap().mirrors[0].file_name(), "wikipedia.zip");
    }

    #[test]
    fn unknown_name_lists_the_known_ones() {
        let message = Source::named("facebook").unwrap_err().to_string();
        assert!(message.contains("facebook") && message.contains("wikipedia"), "{message}");
    }

    #[test]
    fn misspelt_keys_and_wrong_values_are_refused() {
        let good = "[[source]]\nname = \"a\"\nnodes = 1\nevents = 1\n[[source.mirror]]\n\
                    url = \"http://h/a.csv\"\nformat = \"jodie\"\nat-most-mib = 1\n";
        assert_eq!(Source::parse(good).unwrap()[0].mirrors[0].max_bytes, 1 << 20);
        for (from, to) in [
            ("at-most-mib", "at-most"),
            ("\"jodie\"", "\"csv\""),
            ("http://h/a.csv", "http://h"),
            ("http://h/a.csv", "file:///a.csv"),
            ("\"a\"", "\"../a\""),
            ("format", "archive = \"zip\"\nformat"),
            ("format", "archive = \"zip\"\nmembers = [\"../a\"]\nformat"),
            ("format", "archive = \"zip\"\nmembers = [\"a/x\", \"b/x\"]\nformat"),
            ("format", "md5 = \"abc\"\nformat"),
        ] {
            let error = Source::parse(&good.replacen(from, to, 1)).unwrap_err();
            assert!(matches!(error.problem(), Problem::Addresses { .. }), "{from} -> {to}: {error}");
        }
    }

    #[test]
    fn member_names_that_leave_the_folder_are_detected() {
        for inside in ["a", "a/b.csv", "a/..b"] {
            assert!(stays_inside(inside), "{inside}");
        }
        for outside in ["", "/a", "../a", "a/../../b", "a\\..\\b", "C:a", "./a/..", "a\0"] {
            assert!(!stays_inside(outside), "{outside}");
        }
    }
}
