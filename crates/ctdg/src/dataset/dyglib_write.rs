//! Writes DyGLib's layout: `ml_NAME.csv`, `ml_NAME.npy` (edge features), `ml_NAME_node.npy` (node features).

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::dataset::atomic::PendingFile;
use crate::dataset::{npy, sidecar};
use crate::error::{Error, Place, Problem, Result};
use crate::event::{EventStream, Features};

/// Columns of zeros in place of edge features, as published files of `LastFM` have them.
const NO_EDGE_FEATURES: usize = 2;

/// Columns of zeros in place of node features.
const NO_NODE_FEATURES: usize = 172;

/// The files of the dataset whose events are at `path`, which must be called `ml_NAME.csv`.
pub fn dyglib_files(path: &Path) -> Result<[PathBuf; 3]> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let stem = name.strip_prefix("ml_").and_then(|name| name.strip_suffix(".csv"));
    if stem.is_none_or(str::is_empty) {
        let expected = "a name like ml_NAME.csv, which DyGLib reads".into();
        return Err(Error::at(Place::default(), Problem::WrongFormat { found: name, expected }));
    }
    Ok([path.to_owned(), sidecar::sidecar_path(path, ".npy"), sidecar::sidecar_path(path, "_node.npy")])
}

/// Writes `stream` as DyGLib's preprocessing does: nodes numbered from 1, sources before destinations where they are different
/// nodes; features as doubles behind a padding row. Names of nodes are not kept, and neither are dates: times are seconds.
///
/// ```
/// use ctdg::dataset::{self, ReadOptions};
/// use ctdg::event::EventStream;
///
/// # let folder = tempfile::tempdir()?;
/// let stream = EventStream::from_events(vec![(0, 1, 1.0), (1, 2, 2.5)])?;
/// let file = folder.path().join("ml_small.csv");
/// dataset::write_dyglib(&stream, &file)?;
/// let again = dataset::read(&file, &ReadOptions::default())?;
/// assert_eq!((again.src(), again.times()), (stream.src(), stream.times()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_dyglib(stream: &EventStream, path: &Path) -> Result<()> {
    let [events, edges, nodes] = dyglib_files(path)?;
    let stream = &*stream.settled()?;
    let files = [
        PendingFile::write(&events, |out| write_events(out, stream))?,
        PendingFile::write(&edges, |out| write_matrix(out, stream.edge_features(), stream.len(), NO_EDGE_FEATURES))?,
        PendingFile::write(&nodes, |out| {
            write_matrix(out, stream.node_features(), stream.n_nodes(), NO_NODE_FEATURES)
        })?,
    ];
    files.into_iter().try_for_each(PendingFile::commit)
}

fn write_events(out: &mut dyn Write, stream: &EventStream) -> std::io::Result<()> {
    // `{:?}` keeps the point of whole numbers, as pandas does.
    writeln!(out, ",u,i,ts,label,idx")?;
    for id in stream.ids() {
        let event = stream.event(id);
        let (at, src, dst) = (id.index(), event.src.index() + 1, event.dst.index() + 1);
        writeln!(out, "{at},{src},{dst},{:?},{:?},{}", event.time, event.label, at + 1)?;
    }
    Ok(())
}

/// A row of zeros, then the features, or `width` zeros for each of `n_rows`.
fn write_matrix(out: &mut dyn Write, features: Option<&Features>, n_rows: usize, width: usize) -> std::io::Result<()> {
    let width = features.map_or(width, Features::width);
    npy::write_header(out, "<f8", n_rows + 1, width)?;
    let zeros = vec![0_u8; 8 * width];
    out.write_all(&zeros)?;
    match features {
        Some(features) => {
            for row in features.values().chunks(1 << 14) {
                let bytes: Vec<u8> = row.iter().flat_map(|&value| f64::from(value).to_le_bytes()).collect();
                out.write_all(&bytes)?;
            }
        }
        None => {
            for _ in 0..n_rows {
                out.write_all(&zeros)?;
            }
        }
    }
    Ok(())
}
