//! Writes a stream to a file, atomically.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::dataset::atomic::PendingFile;
use crate::dataset::source::Compression;
use crate::dataset::{binary, npy, parquet, sidecar};
use crate::error::{Error, Place, Problem, Result};
use crate::event::{EventId, EventStream, Features, NodeId};
use crate::time::{TimeFormat, exact_micros};

/// Output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteFormat {
    /// Text with a header and this delimiter.
    Text(u8),
    /// Parquet with zstd compression.
    Parquet,
    /// `.ctdg`, loaded by memory map.
    Binary,
}

impl WriteFormat {
    /// By the extension: `.csv`, `.tsv`, `.parquet` or `.ctdg`; text may be followed by `.gz` or
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

    /// `.ctdg` holds events and nothing else.
    pub(crate) fn refuse_binary(path: &Path) -> Error {
        let expected = "a name ending in .csv, .tsv (or these with .gz or .zst) or .parquet".into();
        Error::at(Place::default(), Problem::WrongFormat { found: path.display().to_string(), expected })
    }
}

/// Writes `stream` to `path`. Text and Parquet keep node features in the sidecar `STEM_node_features.npy`.
///
/// Text has one namespace for nodes: integer names of destinations of a bipartite stream are shifted behind its sources,
/// and a bipartite stream with text names is refused if the two sides share one.
pub fn write(stream: &EventStream, path: &Path, format: WriteFormat) -> Result<()> {
    write_with(stream, path, format, &[])
}

/// [`write()`] together with small text files: all files are written completely before the first one appears.
pub fn write_with(stream: &EventStream, path: &Path, format: WriteFormat, texts: &[(PathBuf, String)]) -> Result<()> {
    refuse_stray_sidecars(stream, path, format)?;
    let stream = &*stream.settled()?;
    let names = match format {
        WriteFormat::Text(_) => TextNames::of(stream).map_err(|error| error.in_file(path))?,
        WriteFormat::Parquet | WriteFormat::Binary => TextNames { shift: 0 },
    };
    let mut pending = vec![PendingFile::write(path, |out| match format {
        WriteFormat::Text(delimiter) => write_text(out, stream, delimiter, &names),
        WriteFormat::Parquet => parquet::write(out, stream).map_err(std::io::Error::other),
        WriteFormat::Binary => binary::write(out, stream),
    })?];
    if let Some((path, features)) = node_sidecar(stream, path, format) {
        pending.push(PendingFile::write(&path, |out| npy::write(out, features))?);
    }
    for (path, text) in texts {
        pending.push(PendingFile::write(path, |out| out.write_all(text.as_bytes()))?);
    }
    pending.into_iter().try_for_each(PendingFile::commit)
}

/// The files that [`write()`] would make or replace: `path`, and the sidecar of node features where there is one. A sidecar that
/// holds the same features already is left alone, and not among them.
#[must_use]
pub fn files_to_write(stream: &EventStream, path: &Path, format: WriteFormat) -> Vec<PathBuf> {
    let sidecar = node_sidecar(stream, path, format).map(|(sidecar, _)| sidecar);
    std::iter::once(path.to_path_buf()).chain(sidecar).collect()
}

/// The sidecar to write, unless it is there with the same features, perhaps as the sidecar of the input.
fn node_sidecar<'s>(stream: &'s EventStream, path: &Path, format: WriteFormat) -> Option<(PathBuf, &'s Features)> {
    let features = stream.node_features().filter(|_| format != WriteFormat::Binary)?;
    let there = sidecar::find(path, sidecar::NODE_FEATURES).and_then(|file| npy::read(&file, None).ok());
    let is_there = there.is_some_and(|matrix| matrix.width == features.width() && matrix.values == features.values());
    (!is_there).then(|| (sidecar::sidecar_path(path, sidecar::NODE_FEATURES), features))
}

/// Refuses a stale sidecar, which would be read as features of the new file.
fn refuse_stray_sidecars(stream: &EventStream, path: &Path, format: WriteFormat) -> Result<()> {
    let edges = matches!(format, WriteFormat::Text(_)) && stream.edge_features().is_none();
    let nodes = format != WriteFormat::Binary && stream.node_features().is_none();
    for (taken, ending) in [(edges, sidecar::EDGE_FEATURES), (nodes, sidecar::NODE_FEATURES)] {
        if taken && let Some(file) = sidecar::find(path, ending) {
            return Err(Error::at(Place::file(file), Problem::StraySidecar));
        }
    }
    Ok(())
}

/// Writes a small file atomically.
pub fn write_file(path: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    PendingFile::write(path, |out| out.write_all(bytes.as_ref()))?.commit()
}

/// Names in a format with one namespace.
struct TextNames {
    /// Added to the names of destinations.
    shift: u64,
}

impl TextNames {
    fn of(stream: &EventStream) -> Result<Self> {
        let names = stream.names();
        let Some(n_sources) = names.n_sources().filter(|&n| n > 0 && (n as usize) < names.len()) else {
            return Ok(Self { shift: 0 });
        };
        let (first, last) = (NodeId(n_sources), NodeId::from_index(names.len() - 1).unwrap_or(NodeId(n_sources)));
        let (Some(largest_source), Some(smallest)) = (names.integer(NodeId(n_sources - 1)), names.integer(first))
        else {
            let lookup = names.lookup()?;
            let mut destinations = (n_sources..=last.0).map(NodeId);
            let disjoint = destinations.all(|node| lookup.source(&names.name(node)).is_none());
            return if disjoint { Ok(Self { shift: 0 }) } else { Err(Problem::SharedNames.into()) };
        };
        // Names of each side are sorted, so no shift is needed if all sources come first.
        if largest_source < smallest {
            return Ok(Self { shift: 0 });
        }
        let largest = names.integer(last).unwrap_or(smallest);
        let shift = largest_source.checked_add(1).filter(|shift| largest.checked_add(*shift).is_some());
        Ok(Self { shift: shift.ok_or(Problem::SharedNames)? })
    }

    fn destination(&self, stream: &EventStream, node: NodeId) -> String {
        match stream.names().integer(node) {
            Some(name) => (name + self.shift).to_string(),
            None => stream.names().name(node),
        }
    }
}

fn write_text(out: &mut dyn Write, stream: &EventStream, delimiter: u8, names: &TextNames) -> std::io::Result<()> {
    let mut table = csv::WriterBuilder::new().delimiter(delimiter).from_writer(out);
    let width = stream.edge_features().map_or(0, Features::width);
    let mut header: Vec<String> = ["src", "dst", "time", "label"].map(String::from).into();
    header.extend((0..width).map(|index| format!("feat_{index}")));
    table.write_record(&header)?;
    // Dates that a text cannot hold exactly are written as numbers rather than rounded.
    let are_dates =
        stream.time_format() == TimeFormat::Date && stream.times().iter().all(|&t| exact_micros(t).is_some());
    for id in stream.ids() {
        let event = stream.event(id);
        table.write_field(stream.names().name(event.src))?;
        table.write_field(names.destination(stream, event.dst))?;
        table.write_field(if are_dates { iso(event.time) } else { event.time.to_string() })?;
        table.write_field(event.label.to_string())?;
        for value in features_of(stream, id) {
            table.write_field(value.to_string())?;
        }
        table.write_record(None::<&[u8]>)?;
    }
    table.flush()
}

/// A date as text that no reader takes for local time.
pub(crate) fn iso(time: f64) -> String {
    TimeFormat::Date.show(time).replacen(' ', "T", 1) + "Z"
}

fn features_of(stream: &EventStream, id: EventId) -> &[f32] {
    stream.edge_features().map_or(&[], |features| features.row(id.index()))
}
