//! DyGLib's processed files: `ml_NAME.csv`, `ml_NAME.npy` (edge features), `ml_NAME_node.npy` (node features).
//!
//! Ids start at 1 and row 0 of both matrices is padding; the padding rows are dropped. The column `idx` is the row of the
//! edge features that belongs to an event. DyGLib writes zeros where a dataset has no features, so a matrix of zeros is
//! read as no features.

use std::path::Path;

use crate::dataset::npy::{self, Matrix};
use crate::dataset::source::{OnProgress, Source};
use crate::dataset::{ColumnRef, FeatureColumns, Format, ReadOptions, sidecar, text};
use crate::error::{Error, Place, Problem, Result};
use crate::event::{EventStream, Features, NodeId};

pub(crate) fn read(path: &Path, options: &ReadOptions, progress: OnProgress<'_>) -> Result<EventStream> {
    let column = |chosen: &Option<ColumnRef>, name: &str| chosen.clone().or(Some(ColumnRef::Name(name.into())));
    let options = ReadOptions {
        src: column(&options.src, "u"),
        dst: column(&options.dst, "i"),
        time: column(&options.time, "ts"),
        label: column(&options.label, "label"),
        // Carried as a feature so that it stays with its event when sorted.
        features: FeatureColumns::Chosen(vec![ColumnRef::Name("idx".into())]),
        header: Some(true),
        ..options.clone()
    };
    let mut rows = text::read_rows(Source::open(path, progress)?, Format::Text, &options)?;
    let feature_rows = rows.builder.take_features()?;
    let edges = match sidecar::find(path, ".npy") {
        Some(file) => {
            let matrix = read_padded(&file, feature_rows.len() + 1, "events and the padding row")?;
            features_at(matrix, &file, feature_rows.iter().map(|&row| row_index(row)))?
        }
        None => None,
    };
    let mut columns = rows.builder.finish(edges)?.into_columns();
    if let Some(file) = sidecar::find(path, "_node.npy") {
        let names = &columns.names;
        let ids = (0..names.len()).map(|index| {
            let id = NodeId::from_index(index).and_then(|node| names.integer(node))?;
            usize::try_from(id).ok()
        });
        let largest = ids.clone().flatten().max().unwrap_or(0);
        let matrix = read_padded(&file, largest + 1, "nodes and the padding row")?;
        columns.node_features = features_at(matrix, &file, ids)?;
    }
    EventStream::new(columns)
}

/// A row number read as `f32`; integers are exact up to 2^24, more than any published set has.
fn row_index(number: f32) -> Option<usize> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole, not negative, below 2^24")]
    let row = number as usize;
    (number >= 0.0 && number.fract() == 0.0 && number <= 16_777_216.0).then_some(row)
}

fn read_padded(file: &Path, expected: usize, of: &'static str) -> Result<Matrix> {
    let matrix = npy::read(file, None)?;
    if matrix.rows != expected {
        let problem = Problem::FeatureRows { found: matrix.rows as u64, expected: expected as u64, of };
        return Err(Error::at(Place::file(file), problem));
    }
    Ok(matrix)
}

/// Whether all features are zero, as in published files of sets without features.
pub(crate) fn all_zero(values: &[f32]) -> bool {
    values.iter().all(|&value| value == 0.0)
}

/// The given rows of `matrix`, or `None` if it is all zeros.
fn features_at(matrix: Matrix, file: &Path, indices: impl Iterator<Item = Option<usize>>) -> Result<Option<Features>> {
    let Matrix { rows, width, values } = matrix;
    if width == 0 || all_zero(&values) {
        return Ok(None);
    }
    let mut kept = Vec::with_capacity(values.len() - width);
    for index in indices {
        let Some(index) = index.filter(|&index| index < rows) else {
            let detail = format!("an event or node that refers to no row of 0 to {}", rows - 1);
            return Err(Error::at(Place::file(file), Problem::Corrupt { format: "DyGLib", detail }));
        };
        kept.extend_from_slice(&values[index * width..][..width]);
    }
    Features::new(width, kept).map(Some)
}
