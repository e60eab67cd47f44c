//! DyGLib's processed trio: `ml_NAME.csv`, `ml_NAME.npy` (edge features), `ml_NAME_node.npy` (node features).
//!
//! Ids in the trio start at 1 and row 0 of both matrices is padding; neither survives here. DyGLib writes matrices of
//! zeros where a set has no features, so a matrix of zeros is read as no features.

use std::path::{Path, PathBuf};

use crate::dataset::npy::{self, Matrix};
use crate::dataset::text::sibling;
use crate::dataset::{ColumnRef, FeatureColumns, Format, ReadOptions, text};
use crate::error::{Error, Place, Problem, Result};
use crate::event::{EventStream, Features, NodeId};

pub(crate) fn read(path: &Path, options: &ReadOptions<'_>) -> Result<EventStream> {
    let column = |chosen: &Option<ColumnRef>, name: &str| chosen.clone().or(Some(ColumnRef::Name(name.into())));
    let options = ReadOptions {
        src: column(&options.src, "u"),
        dst: column(&options.dst, "i"),
        time: column(&options.time, "ts"),
        label: column(&options.label, "label"),
        features: FeatureColumns::None,
        header: Some(true),
        ..options.clone()
    };
    let stream = text::read(path, Format::Text, &options)?;
    let (edges, nodes) = (sibling(path, ".npy"), sibling(path, "_node.npy"));
    let mut columns = stream.into_columns();
    if let Some(file) = edges {
        let rows = columns.time.len();
        let matrix = read_padded(&file, rows + 1, "events and the padding row")?;
        columns.edge_features = features_after_padding(matrix, &file, (1..=rows).map(Some))?;
    }
    if let Some(file) = nodes {
        let ids: Vec<_> = (0..columns.names.len())
            .map(|index| NodeId::from_index(index).and_then(|node| columns.names.integer(node)))
            .map(|id| id.and_then(|id| usize::try_from(id).ok()))
            .collect();
        let largest = ids.iter().flatten().max().copied().unwrap_or(0);
        let matrix = read_padded(&file, largest + 1, "nodes and the padding row")?;
        columns.node_features = features_after_padding(matrix, &file, ids.into_iter())?;
    }
    EventStream::new(columns)
}

fn read_padded(file: &PathBuf, expected: usize, of: &'static str) -> Result<Matrix> {
    let matrix = npy::read(file, None)?;
    if matrix.rows != expected {
        let problem = Problem::FeatureRows { found: matrix.rows as u64, expected: expected as u64, of };
        return Err(Error::at(Place::file(file), problem));
    }
    Ok(matrix)
}

/// Whether features say nothing: the published files have columns of zeros where a set has no features.
pub(crate) fn all_zero(values: &[f32]) -> bool {
    values.iter().all(|&value| value == 0.0)
}

/// The given rows of `matrix`, or nothing if it holds only zeros.
fn features_after_padding(
    matrix: Matrix,
    file: &Path,
    rows: impl Iterator<Item = Option<usize>>,
) -> Result<Option<Features>> {
    let Matrix { width, values, .. } = matrix;
    if width == 0 || all_zero(&values) {
        return Ok(None);
    }
    let mut kept = Vec::with_capacity(values.len() - width);
    for row in rows {
        let Some(row) = row else {
            let problem = Problem::NotANumber { found: "a node name".into(), expected: "an integer node id" };
            return Err(Error::at(Place::file(file), problem));
        };
        kept.extend_from_slice(&values[row * width..][..width]);
    }
    Features::new(width, kept).map(Some)
}
