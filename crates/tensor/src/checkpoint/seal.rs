//! The seal of a checkpoint: format and checksum in the metadata of the file, so that no damaged value is loaded.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use safetensors::{Dtype, SafeTensors};
use sha2::{Digest, Sha256};

use crate::{Error, Result};

/// The format of checkpoints that this version writes; files without one are of format 1.
pub(super) const FORMAT: u64 = 2;

const FORMAT_KEY: &str = "format";
const CHECKSUM_KEY: &str = "sha256";
/// Hexadecimal digits of a checksum.
pub(super) const CHECKSUM_LEN: usize = 64;

/// A tensor as the file stores it.
pub(super) struct Stored<'a> {
    pub(super) name: &'a str,
    pub(super) dtype: Dtype,
    pub(super) shape: &'a [usize],
    pub(super) bytes: &'a [u8],
}

/// `metadata` with the format of the file.
pub(super) fn with_format(metadata: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut metadata = metadata.clone();
    metadata.insert(FORMAT_KEY.to_owned(), FORMAT.to_string());
    metadata
}

/// `metadata` with the checksum of all tensors and of these entries.
pub(super) fn with_checksum(mut metadata: BTreeMap<String, String>, checksum: String) -> BTreeMap<String, String> {
    metadata.insert(CHECKSUM_KEY.to_owned(), checksum);
    metadata
}

/// Refuses a newer format and tensors or entries that differ from those saved; returns the caller's entries. Files of format 1
/// have no checksum.
pub(super) fn open(
    tensors: &SafeTensors<'_>,
    mut metadata: BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>> {
    let Some(format) = metadata.get(FORMAT_KEY) else {
        return if metadata.contains_key(CHECKSUM_KEY) { Err(unsealed("format")) } else { Ok(metadata) };
    };
    let found: u64 = format.parse().map_err(|_| unsealed("format"))?;
    if found > FORMAT {
        return Err(Error::NewerFormat { found, known: FORMAT });
    }
    let expected = metadata.remove(CHECKSUM_KEY).ok_or_else(|| unsealed("checksum"))?;
    let mut stored = Vec::new();
    let all = tensors.tensors();
    for (name, view) in &all {
        stored.push(Stored { name, dtype: view.dtype(), shape: view.shape(), bytes: view.data() });
    }
    let found = checksum(stored, &metadata);
    if found != expected {
        return Err(Error::Checksum { found, expected });
    }
    metadata.remove(FORMAT_KEY);
    Ok(metadata)
}

fn unsealed(what: &str) -> Error {
    Error::Safetensors { detail: format!("found no readable {what} in its metadata, expected one") }
}

/// SHA-256 of all tensors and entries in order of their names; each part is preceded by its length.
pub(super) fn checksum(mut tensors: Vec<Stored<'_>>, metadata: &BTreeMap<String, String>) -> String {
    fn part(hash: &mut Sha256, bytes: &[u8]) {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    }
    tensors.sort_by(|a, b| a.name.cmp(b.name));
    let mut hash = Sha256::new();
    for (key, value) in metadata {
        part(&mut hash, key.as_bytes());
        part(&mut hash, value.as_bytes());
    }
    hash.update((tensors.len() as u64).to_le_bytes());
    for Stored { name, dtype, shape, bytes } in tensors {
        part(&mut hash, name.as_bytes());
        part(&mut hash, format!("{dtype:?} {shape:?}").as_bytes());
        part(&mut hash, bytes);
    }
    hash.finalize().iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes everything");
        text
    })
}
