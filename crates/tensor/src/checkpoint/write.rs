//! Writing a safetensors file into one buffer: tables of many gigabytes are copied once, not once for each step of a library.

use std::collections::BTreeMap;

use safetensors::Dtype;
use serde_json::json;

use super::seal::{self, Stored};

/// A tensor of the file.
pub(super) struct Entry<'a> {
    pub(super) name: &'a str,
    pub(super) shape: Vec<usize>,
    pub(super) values: Values<'a>,
}

pub(super) enum Values<'a> {
    Floats(&'a [f32]),
    Steps(u64),
}

impl Values<'_> {
    fn dtype(&self) -> Dtype {
        match self {
            Self::Floats(_) => Dtype::F32,
            Self::Steps(_) => Dtype::U64,
        }
    }

    fn n_bytes(&self) -> usize {
        match self {
            Self::Floats(values) => size_of_val(*values),
            Self::Steps(_) => size_of::<u64>(),
        }
    }

    fn write(&self, out: &mut [u8]) {
        match self {
            Self::Floats(values) => {
                for (out, value) in out.as_chunks_mut().0.iter_mut().zip(*values) {
                    *out = value.to_le_bytes();
                }
            }
            Self::Steps(steps) => out.copy_from_slice(&steps.to_le_bytes()),
        }
    }
}

/// The bytes of a file with these tensors, in this order, and `metadata`, sealed. The same values give the same bytes.
pub(super) fn file(entries: &[Entry<'_>], metadata: &BTreeMap<String, String>) -> Vec<u8> {
    let mut metadata = seal::with_format(metadata);
    // The checksum is known once the values are written; its length is known before.
    let unsealed = seal::with_checksum(metadata.clone(), "0".repeat(seal::CHECKSUM_LEN));
    let start = size_of::<u64>() + header(entries, &unsealed).len();
    let n_bytes: usize = entries.iter().map(|entry| entry.values.n_bytes()).sum();
    let mut file = vec![0; start + n_bytes];
    let mut rest = &mut file[start..];
    for entry in entries {
        let (out, after) = rest.split_at_mut(entry.values.n_bytes());
        entry.values.write(out);
        rest = after;
    }
    let mut data = &file[start..];
    let mut stored = |entry: &'_ Entry<'_>| {
        let (bytes, after) = data.split_at(entry.values.n_bytes());
        data = after;
        bytes
    };
    let bytes: Vec<&[u8]> = entries.iter().map(&mut stored).collect();
    let stored = entries.iter().zip(bytes).map(|(entry, bytes)| {
        let Entry { name, shape, values } = entry;
        Stored { name, dtype: values.dtype(), shape, bytes }
    });
    let checksum = seal::checksum(stored.collect(), &metadata);
    metadata = seal::with_checksum(metadata, checksum);
    let header = header(entries, &metadata);
    file[..8].copy_from_slice(&(header.len() as u64).to_le_bytes());
    file[8..start].copy_from_slice(&header);
    file
}

/// The header: a JSON object with sorted metadata (the library takes a hash map, whose order varies) and the place of each tensor,
/// filled up with blanks so that values are aligned.
fn header(entries: &[Entry<'_>], metadata: &BTreeMap<String, String>) -> Vec<u8> {
    let mut header = format!("{{\"__metadata__\":{}", json!(metadata));
    let mut start = 0;
    for Entry { name, shape, values } in entries {
        let end = start + values.n_bytes();
        let place = json!({ "data_offsets": [start, end], "dtype": values.dtype(), "shape": shape });
        header.extend([",", &json!(name).to_string(), ":", &place.to_string()]);
        start = end;
    }
    header.push('}');
    let mut header = header.into_bytes();
    header.resize(header.len().next_multiple_of(8), b' ');
    header
}
