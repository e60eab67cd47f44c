//! Converts the published files to `.ctdg`.

use std::path::Path;

use super::{Counts, Format, Unpacked};
use crate::dataset::{self, ReadOptions, WriteFormat};
use crate::error::{Problem, Result};

/// Reads the fetched files and writes them to `target` as `.ctdg`.
pub fn to_binary(unpacked: &Unpacked, target: &Path) -> Result<Counts> {
    let format = match unpacked.format {
        Format::Jodie => dataset::Format::Jodie,
        Format::Dyglib => dataset::Format::DyGLib,
        Format::Konect => dataset::Format::Konect,
    };
    let file = unpacked.files.first().ok_or(Problem::Empty)?;
    // The published files are sorted; `sort` is for a mirror that is not.
    let stream = dataset::read(file, &ReadOptions { format, sort: true, ..ReadOptions::default() })?;
    dataset::write(&stream, target, WriteFormat::Binary)?;
    Ok(Counts { nodes: stream.n_nodes() as u64, events: stream.len() as u64 })
}
