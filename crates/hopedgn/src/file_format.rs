//! Format of the files that a run or an experiment writes: a number in each of them; newer ones are refused.

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Error, Result};

/// The format that this version writes. A file without one is of format 1.
pub const FORMAT: u64 = 2;

/// The name of the number in JSON and TOML files.
pub(crate) const KEY: &str = "format";

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
    if found <= FORMAT { Ok(()) } else { Err(Error::NewerFormat { file: file.to_owned(), found, known: FORMAT }) }
}

/// `value`, which must be a structure, on one line of JSON with its format.
pub fn to_line<T: Serialize>(value: &T) -> serde_json::Result<String> {
    serde_json::to_string(&Versioned { format: FORMAT, value })
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
    Ok(serde_json::to_string_pretty(&Versioned { format: FORMAT, value })? + "\n")
}

/// The value in a JSON text of `file`, if its format is known.
pub fn from_json<T: DeserializeOwned>(file: &Path, text: &str) -> Result<T> {
    let damaged = |detail: String| Error::Damaged { file: file.to_owned(), detail };
    let mut value: Value = serde_json::from_str(text).map_err(|error| damaged(error.to_string()))?;
    check(file, take_format(&mut value).ok_or_else(|| damaged("found no whole number as its format".to_owned()))?)?;
    serde_json::from_value(value).map_err(|error| damaged(error.to_string()))
}

/// Removes the format; 1 where there is none, `None` where it is no whole number.
pub(crate) fn take_format(value: &mut Value) -> Option<u64> {
    match value.as_object_mut().and_then(|object| object.remove(KEY)) {
        Some(format) => format.as_u64(),
        None => Some(1),
    }
}

#[derive(Serialize)]
struct Versioned<'a, T> {
    format: u64,
    #[serde(flatten)]
    value: &'a T,
}
