//! From the published files to our binary form.

use std::path::Path;

use super::{Counts, Format, Unpacked};
use crate::dataset::{self, ReadOptions, WriteFormat};
use crate::error::{Problem, Result};

/// Reads what was fetched and writes it to `target` in the memory-mapped form.
pub fn to_binary(unpacked: &Unpacked, target: &Path) -> Result<Counts> {
    let format = match unpacked.format {
        Format::Jodie => dataset::Format::Jodie,
        Format::Dyglib => dataset::Format::DyGLib,
        Format::Konect => dataset::Format::Konect,
    };
    let file = unpacked.files.first().ok_or(Problem::Empty)?;
    // The published files are in order; sorting only guards against one that is not.
    let stream = dataset::read(file, &ReadOptions { format, sort: true, ..ReadOptions::default() })?;
    dataset::write(&stream, target, WriteFormat::Binary)?;
    Ok(Counts { nodes: stream.n_nodes() as u64, events: stream.len() as u64 })
}
