//! Writes a stream to a file that appears whole or not at all.

use std::io::Write;
use std::path::Path;

use crate::dataset::atomic::PendingFile;
use crate::dataset::source::Compression;
use crate::dataset::{binary, npy, parquet};
use crate::error::{Error, Place, Problem, Result};
use crate::event::{EventId, EventStream};

/// What to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteFormat {
    /// Delimited text with a header; the delimiter is given.
    Text(u8),
    /// Parquet, zstd inside.
    Parquet,
    /// The compact binary form, loaded by memory map.
    Binary,
}

impl WriteFormat {
    /// What the end of a file's name asks for: `.csv`, `.tsv`, `.parquet` or `.ctdg`; text may be followed by `.gz` or
    /// `.zst`.
    pub fn of_path(path: &Path) -> Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let (compression, stem) = Compression::of_name(&name);
        let format = match stem.rsplit_once('.').map_or("", |(_, ending)| ending) {
            "csv" => Some(Self::Text(b',')),
            "tsv" => Some(Self::Text(b'\t')),
            "parquet" => Some(Self::Parquet),
            "ctdg" => Some(Self::Binary),
            _ => None,
        };
        format.filter(|format| matches!(format, Self::Text(_)) || compression == Compression::None).ok_or_else(|| {
            let expected = "a name ending in .csv, .tsv (or these with .gz or .zst), .parquet or .ctdg".into();
            Error::at(Place::default(), Problem::WrongFormat { found: name.into_owned(), expected })
        })
    }
}

/// Writes `stream` to `path`. Text and Parquet keep node features in `STEM_node_features.npy` beside the file.
pub fn write(stream: &EventStream, path: &Path, format: WriteFormat) -> Result<()> {
    let main = PendingFile::write(path, |out| match format {
        WriteFormat::Text(delimiter) => write_text(out, stream, delimiter),
        WriteFormat::Parquet => parquet::write(out, stream).map_err(std::io::Error::other),
        WriteFormat::Binary => binary::write(out, stream),
    })?;
    let beside = stream.node_features().filter(|_| format != WriteFormat::Binary).map(|features| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let (_, name) = Compression::of_name(&name);
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        (path.with_file_name(format!("{stem}_node_features.npy")), features)
    });
    if let Some((path, features)) = &beside {
        PendingFile::write(path, |out| npy::write(out, features))?.commit()?;
    }
    main.commit()
}

/// Writes a small text file that appears whole or not at all.
pub fn write_text_file(path: &Path, text: &str) -> Result<()> {
    PendingFile::write(path, |out| out.write_all(text.as_bytes()))?.commit()
}

fn write_text(out: &mut dyn Write, stream: &EventStream, delimiter: u8) -> std::io::Result<()> {
    let mut table = csv::WriterBuilder::new().delimiter(delimiter).from_writer(out);
    let width = stream.edge_features().map_or(0, crate::event::Features::width);
    let mut header: Vec<String> = ["src", "dst", "time", "label"].map(String::from).into();
    header.extend((0..width).map(|index| format!("feat_{index}")));
    table.write_record(&header)?;
    for id in stream.ids() {
        let event = stream.event(id);
        table.write_field(stream.names().name(event.src))?;
        table.write_field(stream.names().name(event.dst))?;
        table.write_field(event.time.to_string())?;
        table.write_field(event.label.to_string())?;
        for value in features_of(stream, id) {
            table.write_field(value.to_string())?;
        }
        table.write_record(None::<&[u8]>)?;
    }
    table.flush()
}

fn features_of(stream: &EventStream, id: EventId) -> &[f32] {
    stream.edge_features().map_or(&[], |features| features.row(id.index()))
}
