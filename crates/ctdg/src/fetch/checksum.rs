//! Published and computed checksums.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Deserialize;
use sha2::Digest;

use super::http::Client;
use super::source::Mirror;
use super::{Progress, Report};
use crate::error::{Error, Problem, Result};

/// How a checksum is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// MD5, as Zenodo states it. Detects damage, not tampering.
    Md5,
    /// SHA-256.
    Sha256,
}

/// A checksum; displays as `md5:…` or `sha256:…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checksum {
    algorithm: Algorithm,
    digest: String,
}

impl Checksum {
    /// The checksum with these hexadecimal digits.
    pub fn new(algorithm: Algorithm, digest: &str) -> Result<Self> {
        let (length, expected) = match algorithm {
            Algorithm::Md5 => (32, "32 hexadecimal digits"),
            Algorithm::Sha256 => (64, "64 hexadecimal digits"),
        };
        if digest.len() == length && digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            Ok(Self { algorithm, digest: digest.to_ascii_lowercase() })
        } else {
            Err(Problem::Addresses { found: format!("the checksum {digest:?}"), expected }.into())
        }
    }

    /// Reads `md5:…` or `sha256:…`; `None` for anything else.
    fn labelled(text: &str) -> Option<Self> {
        let (label, digest) = text.split_once(':')?;
        let algorithm = match label {
            "md5" => Algorithm::Md5,
            "sha256" => Algorithm::Sha256,
            _ => return None,
        };
        Self::new(algorithm, digest).ok()
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = match self.algorithm {
            Algorithm::Md5 => "md5",
            Algorithm::Sha256 => "sha256",
        };
        write!(f, "{label}:{}", self.digest)
    }
}

/// The checksum that `mirror`'s file must have, if its publisher states one.
///
/// An unavailable record is a warning here; without a checksum the caller refuses the file, unless told otherwise.
pub(super) fn published(client: &Client, mirror: &Mirror, report: Report<'_>) -> Option<Checksum> {
    if mirror.checksum.is_some() {
        return mirror.checksum.clone();
    }
    let url = mirror.checksum_url.as_deref()?;
    report(Progress::Connecting { url, attempt: 1 });
    let stated = client.text(url, MAX_RECORD_BYTES).map(|record| stated_for(&record, mirror.file_name()));
    match stated {
        Ok(Some(checksum)) => Some(checksum),
        Ok(None) => {
            report(Progress::Warning(&format!("{url} states no checksum of {}", mirror.file_name())));
            None
        }
        Err(error) => {
            report(Progress::Warning(&format!("no checksum to verify: {error}")));
            None
        }
    }
}

/// Enough for a record of some thousand files.
const MAX_RECORD_BYTES: u64 = 4 << 20;

/// Fails unless `path`, which came from `url`, has the checksum `expected`.
pub(super) fn compare(path: &Path, url: &str, expected: &Checksum, report: Report<'_>) -> Result<()> {
    let found = of_file(path, expected.algorithm, report)?;
    if found == *expected {
        return Ok(());
    }
    Err(Problem::Checksum { url: url.to_owned(), found: found.to_string(), expected: expected.to_string() }.into())
}

fn of_file(path: &Path, algorithm: Algorithm, report: Report<'_>) -> Result<Checksum> {
    let digest = match algorithm {
        Algorithm::Md5 => digest::<md5::Md5>(path, report)?,
        Algorithm::Sha256 => digest::<sha2::Sha256>(path, report)?,
    };
    Ok(Checksum { algorithm, digest })
}

fn digest<D: Digest>(path: &Path, report: Report<'_>) -> Result<String> {
    let failed = |source| Error::io(path, "read", source);
    let mut file = File::open(path).map_err(failed)?;
    let total = file.metadata().map_err(failed)?.len();
    let mut hasher = D::new();
    let mut buffer = vec![0; 1 << 16];
    let mut done = 0;
    loop {
        report(Progress::Checking { done, total });
        match file.read(&mut buffer).map_err(failed)? {
            0 => break,
            n => {
                hasher.update(&buffer[..n]);
                done += n as u64;
            }
        }
    }
    let mut hex = String::new();
    for byte in hasher.finalize() {
        let _ = write!(hex, "{byte:02x}");
    }
    Ok(hex)
}

/// The fields of a Zenodo record that are used here.
#[derive(Deserialize)]
struct Record {
    files: Vec<RecordFile>,
}

#[derive(Deserialize)]
struct RecordFile {
    key: String,
    checksum: String,
}

fn stated_for(record: &str, file_name: &str) -> Option<Checksum> {
    let record: Record = serde_json::from_str(record).ok()?;
    let file = record.files.into_iter().find(|file| file.key == file_name)?;
    Checksum::labelled(&file.checksum)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY_MD5: &str = "d41d8cd98f00b204e9800998ecf8427e";
    const EMPTY_SHA256: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn empty_file_has_the_known_checksums() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (algorithm, known) in [(Algorithm::Md5, EMPTY_MD5), (Algorithm::Sha256, EMPTY_SHA256)] {
            let found = of_file(file.path(), algorithm, &mut |_| ()).unwrap();
            assert_eq!(found, Checksum::new(algorithm, &known.to_uppercase()).unwrap());
        }
    }

    #[test]
    fn record_states_the_checksum_of_the_named_file_only() {
        let record = format!(r#"{{"id": 1, "files": [{{"key": "a.zip", "size": 0, "checksum": "md5:{EMPTY_MD5}"}}]}}"#);
        assert_eq!(stated_for(&record, "a.zip").unwrap().to_string(), format!("md5:{EMPTY_MD5}"));
        assert_eq!(stated_for(&record, "b.zip"), None);
        assert_eq!(stated_for(&record.replace("md5:", "crc:"), "a.zip"), None);
        assert_eq!(stated_for("<html>", "a.zip"), None);
    }
}
