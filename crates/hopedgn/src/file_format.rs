//! Format of the files that a run or an experiment writes: a number in each of them; newer ones are refused.
//!
//! A *sealed* document also has a checksum of its own text, so that no damaged one is read.

use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{Error, Result};

/// The format that this version writes. A file without one is of format 1.
pub const FORMAT: u64 = 2;

/// The name of the number in JSON and TOML files.
pub(crate) const KEY: &str = "format";

/// The name of the checksum in a sealed document.
const CHECKSUM: &str = "checksum";

/// Refuses a format that only newer versions know.
///
/// ```
/// use std::path::Path;
///
/// use hopedgn::file_format::{FORMAT, check};
///
/// let file = Path::new("runs/mine/summary.json");
/// assert!(check(file, 1).is_ok() && check(file, FORMAT).is_ok());
/// let error = check(file, 99).unwrap_err().to_string();
/// assert!(error.starts_with("runs/mine/summary.json: found format 99, expected at most "), "{error}");
/// ```
pub fn check(file: &Path, found: u64) -> Result<()> {
    match found {
        1..=FORMAT => Ok(()),
        0 => Err(damaged(file, "found format 0, expected at least 1".to_owned())),
        _ => Err(Error::NewerFormat { file: file.to_owned(), found, known: FORMAT }),
    }
}

/// `value`, which must be a structure, on one line of JSON with its format.
pub fn to_line<T: Serialize>(value: &T) -> serde_json::Result<String> {
    serde_json::to_string(&Versioned { format: FORMAT, checksum: None, value })
}

/// `value`, which must be a structure, as a JSON document with its format.
///
/// ```
/// use std::path::Path;
///
/// use hopedgn::file_format::{from_json, to_document};
/// use hopedgn::metrics::Parts;
///
/// let text = to_document(&Parts { train: 70, val: 15, test: 15 })?;
/// assert!(text.starts_with("{\n  \"format\": 2,\n  \"train\": 70,"), "{text}");
/// let parts: Parts<usize> = from_json(Path::new("parts.json"), &text)?;
/// assert_eq!(parts.val, 15);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn to_document<T: Serialize>(value: &T) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(&Versioned { format: FORMAT, checksum: None, value })? + "\n")
}

/// The value in a JSON text of `file`, if its format is known.
pub fn from_json<T: DeserializeOwned>(file: &Path, text: &str) -> Result<T> {
    let mut value: Value = serde_json::from_str(text).map_err(|error| damaged(file, error.to_string()))?;
    take_format(file, &mut value)?;
    serde_json::from_value(value).map_err(|error| damaged(file, error.to_string()))
}

/// [`to_document`] with a checksum of all of its text.
pub(crate) fn to_sealed<T: Serialize>(value: &T) -> serde_json::Result<String> {
    let blank = "0".repeat(2 * Sha256::output_size());
    let text = serde_json::to_string_pretty(&Versioned { format: FORMAT, checksum: Some(&blank), value })? + "\n";
    // The first such text is the checksum: no value stands before it.
    let checksum = sha256(text.as_bytes());
    Ok(text.replacen(&blank, &checksum, 1))
}

/// The value in a sealed document of `file`; refused if anything in it has changed. Documents of format 1 have no checksum.
pub(crate) fn from_sealed<T: DeserializeOwned>(file: &Path, text: &str) -> Result<T> {
    let mut value: Value = serde_json::from_str(text).map_err(|error| damaged(file, error.to_string()))?;
    let checksum = value.as_object_mut().and_then(|object| object.remove(CHECKSUM));
    let format = take_format(file, &mut value)?;
    match checksum.as_ref().map(Value::as_str) {
        None if format == 1 => {}
        Some(Some(expected)) if format > 1 => {
            let found = sha256(text.replacen(expected, &"0".repeat(expected.len()), 1).as_bytes());
            if found != expected {
                return Err(damaged(file, format!("found content with the checksum {found}, expected {expected}")));
            }
        }
        _ => return Err(damaged(file, format!("found no checksum of a document of format {format}, expected one"))),
    }
    serde_json::from_value(value).map_err(|error| damaged(file, error.to_string()))
}

/// Removes the format and returns it, if it is known; 1 where there is none.
fn take_format(file: &Path, value: &mut Value) -> Result<u64> {
    let format = match value.as_object_mut().and_then(|object| object.remove(KEY)) {
        Some(format) => {
            format.as_u64().ok_or_else(|| damaged(file, format!("found format {format}, expected a whole number")))?
        }
        None => 1,
    };
    check(file, format).map(|()| format)
}

/// SHA-256 in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes everything");
        text
    })
}

fn damaged(file: &Path, detail: String) -> Error {
    Error::Damaged { file: file.to_owned(), detail }
}

#[derive(Serialize)]
struct Versioned<'a, T> {
    format: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    checksum: Option<&'a str>,
    #[serde(flatten)]
    value: &'a T,
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Parts {
        train: u64,
        val: u64,
        test: u64,
    }

    #[test]
    fn every_change_of_a_sealed_document_is_refused_or_changes_nothing() {
        let (file, value) = (Path::new("parts.json"), Parts { train: 70, val: 15, test: 15 });
        let text = to_sealed(&value).unwrap();
        assert_eq!(from_sealed::<Parts>(file, &text).unwrap(), value);
        for at in 0..text.len() {
            for bit in 0..8 {
                let mut bytes = text.clone().into_bytes();
                bytes[at] ^= 1 << bit;
                let Ok(changed) = String::from_utf8(bytes) else { continue };
                if let Ok(found) = from_sealed::<Parts>(file, &changed) {
                    assert_eq!(found, value, "{changed}");
                }
            }
        }
        for end in 0..text.trim_end().len() {
            assert!(from_sealed::<Parts>(file, &text[..end]).is_err(), "{}", &text[..end]);
        }
    }

    #[test]
    fn documents_of_format_1_have_no_checksum_and_newer_ones_are_refused() {
        let file = Path::new("parts.json");
        let read = |text: &str| from_sealed::<Parts>(file, text).map_err(|error| error.to_string());
        assert!(read(r#"{"train": 1, "val": 2, "test": 3}"#).is_ok());
        assert!(read(r#"{"format": 2, "train": 1, "val": 2, "test": 3}"#).unwrap_err().contains("found no checksum"));
        let newer = read(r#"{"format": 3, "of": "tomorrow"}"#).unwrap_err();
        assert!(newer.starts_with("parts.json: found format 3, expected at most 2"), "{newer}");
    }
}
