//! DyGLib's processed trio: `ml_NAME.csv`, `ml_NAME.npy` (edge features), `ml_NAME_node.npy` (node features).
//!
//! Ids in the trio start at 1 and row 0 of both matrices is padding; neither survives here. The column `idx` says which
//! row of the edge features belongs to an event. DyGLib writes matrices of zeros where a set has no features, so a
//! matrix of zeros is read as no features.

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
        // Not a feature, but a number for each event that must survive sorting.
        features: FeatureColumns::Chosen(vec![ColumnRef::Name("idx".into())]),
        header: Some(true),
        ..options.clone()
    };
    let mut rows = text::read_rows(Source::open(path, progress)?, Format::Text, &options)?;
    let places = rows.builder.take_features();
    let edges = match sidecar::find(path, ".npy") {
        Some(file) => {
            let matrix = read_padded(&file, places.len() + 1, "events and the padding row")?;
            features_at(matrix, &file, places.iter().map(|&place| place_of(place)))?
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

/// A place in a matrix from a number of the table; whole numbers are exact up to 2^24, beyond any published set.
fn place_of(number: f32) -> Option<usize> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole, not negative, below 2^24")]
    let place = number as usize;
    (number >= 0.0 && number.fract() == 0.0 && number <= 16_777_216.0).then_some(place)
}

fn read_padded(file: &Path, expected: usize, of: &'static str) -> Result<Matrix> {
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
fn features_at(matrix: Matrix, file: &Path, places: impl Iterator<Item = Option<usize>>) -> Result<Option<Features>> {
    let Matrix { rows, width, values } = matrix;
    if width == 0 || all_zero(&values) {
        return Ok(None);
    }
    let mut kept = Vec::with_capacity(values.len() - width);
    for place in places {
        let Some(place) = place.filter(|&place| place < rows) else {
            let detail = format!("an event or node that refers to no row of 0 to {}", rows - 1);
            return Err(Error::at(Place::file(file), Problem::Corrupt { format: "DyGLib", detail }));
        };
        kept.extend_from_slice(&values[place * width..][..width]);
    }
    Features::new(width, kept).map(Some)
}
