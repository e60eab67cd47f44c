//! Parquet: one row per event, flat columns, read without Arrow.

mod cells;
mod guard;
mod table;
mod write;

use std::path::Path;

use bytes::Bytes;
use cells::{Cells, Id, holds_dates};
use guard::Bounded;
pub use guard::catch_quietly;
use parquet::basic::Type as Physical;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
pub(crate) use table::{ParquetRows, write_table};
pub(crate) use write::write;

use crate::dataset::layout::{FeatureSpan, Layout};
use crate::dataset::report::{OptionalColumns, ReadReport};
use crate::dataset::source::{OnProgress, Source};
use crate::dataset::time_column::{TimeUnit, unit_of_dates};
use crate::dataset::{FeatureColumns, Format, ReadOptions, sidecar};
use crate::error::{Error, Place, Problem, Result};
use crate::event::{EventStream, IdKind, RejectedRow, StreamBuilder};
use crate::time::TimeFormat;

/// Metadata key that marks a bipartite stream.
const BIPARTITE: &str = "ctdg.bipartite";
/// Metadata key that marks times as seconds since 1970 that were dates.
const DATES: &str = "ctdg.dates";

type Loaded = (EventStream, ReadReport);

pub(crate) fn read(path: &Path, options: &ReadOptions, progress: OnProgress<'_>) -> Result<Loaded> {
    let (stream, report) = read_bytes(Bytes::from_owner(Source::map(path)?), options, progress)?;
    Ok((sidecar::with_node_features(path, stream)?, report))
}

/// Reads a Parquet file in memory.
pub(crate) fn read_bytes(bytes: Bytes, options: &ReadOptions, progress: OnProgress<'_>) -> Result<Loaded> {
    // The decoder can panic on damaged files; report that as damage.
    catch_quietly(|| read_groups(bytes, options, progress)).unwrap_or_else(|| Err(corrupt("the decoder gave up")))
}

fn read_groups(bytes: Bytes, options: &ReadOptions, progress: OnProgress<'_>) -> Result<Loaded> {
    let file = SerializedFileReader::new(Bounded(bytes)).map_err(damaged)?;
    let metadata = file.metadata().file_metadata();
    let schema = metadata.schema_descr();
    let names: Vec<String> = schema.columns().iter().map(|column| column.path().string()).collect();
    let format = if options.format == Format::Auto { Format::Parquet } else { options.format };
    let dates: Vec<usize> = (0..names.len()).filter(|&at| holds_dates(&schema.column(at))).collect();
    let layout = Layout::resolve(format, options, Some(&names), &[], &dates)?;
    let features = match &layout.features {
        FeatureSpan::At(at) => at.clone(),
        FeatureSpan::From(from) => (*from..names.len()).collect(),
    };
    let is_marked = |key: &str| metadata.key_value_metadata().into_iter().flatten().any(|entry| entry.key == key);
    // The column type determines the kind of ids; no need to guess from the first row.
    let is_text = |at: usize| schema.column(at).physical_type() == Physical::BYTE_ARRAY;
    let ids = match options.ids {
        IdKind::Auto if is_text(layout.src) || is_text(layout.dst) => IdKind::Text,
        kind => kind,
    };
    let bipartite = options.bipartite.unwrap_or_else(|| is_marked(BIPARTITE));
    let mut builder = StreamBuilder::new(ids, bipartite, options.sort).spilling(options.spill.as_ref());
    let are_dates = dates.contains(&layout.time) || is_text(layout.time) || is_marked(DATES);
    if let Some(unit) = options.time_unit.filter(|_| are_dates) {
        let place = Place::default().column(layout.time as u64 + 1, &*names[layout.time]);
        return Err(Error::at(place, unit_of_dates(unit)));
    }
    if are_dates || options.time_unit.is_some() {
        builder.set_time_format(TimeFormat::Date);
    }
    let mut optional = OptionalColumns::of(&layout);
    let n_rows = u64::try_from(metadata.num_rows()).unwrap_or(0);
    for group in 0..file.num_row_groups() {
        let group = file.get_row_group(group).map_err(damaged)?;
        let first_row = builder.len() as u64;
        let open = |at: usize| Cells::open(&*group, at, &names, first_row);
        let mut reader = GroupReader {
            src: open(layout.src)?,
            dst: open(layout.dst)?,
            time: open(layout.time)?,
            unit: options.time_unit,
            label: layout.label.map(open).transpose()?,
            features: features.iter().map(|&at| open(at)).collect::<Result<_>>()?,
            optional: Vec::new(),
        };
        for (index, &at) in layout.optional.iter().enumerate() {
            let cells = open(at).and_then(Cells::of_numbers).map_err(|error| optional.reject(index, &error));
            reader.optional.push(cells.ok());
        }
        while reader.push_block(&mut builder, &layout, &names, &mut optional)? {
            if let Some(progress) = progress {
                progress(builder.len() as u64, n_rows);
            }
        }
    }
    let mut kept = None;
    if options.features == FeatureColumns::Numeric {
        kept = optional.kept(builder.take_features()?, builder.len())?;
    }
    let unused_columns = optional.unused(&layout, |at| names[at].clone());
    Ok((builder.finish(kept)?, ReadReport { unused_columns, ..ReadReport::default() }))
}

/// The columns of one row group, read block by block.
struct GroupReader {
    src: Cells,
    dst: Cells,
    time: Cells,
    /// Unit of the times, if they are Unix times.
    unit: Option<TimeUnit>,
    label: Option<Cells>,
    features: Vec<Cells>,
    /// Columns that are features if all of their values are numbers; `None` once one is not.
    optional: Vec<Option<Cells>>,
}

impl GroupReader {
    /// Moves one block of rows into `builder`; false at the end of the group.
    fn push_block(
        &mut self,
        builder: &mut StreamBuilder,
        layout: &Layout,
        names: &[String],
        optional: &mut OptionalColumns,
    ) -> Result<bool> {
        let n = self.fill(optional)?;
        let mut values = Vec::with_capacity(self.features.len() + self.optional.len());
        for row in 0..n {
            let place = |at: usize, row: u64| Place::default().row(row).column(at as u64 + 1, &*names[at]);
            let at_row = builder.len() as u64;
            let time = self.time.time(row, self.unit)?;
            #[expect(clippy::cast_possible_truncation, reason = "labels are f32 whatever the file holds")]
            let label = self.label.as_ref().map_or(Ok(0.0), |label| label.number(row))? as f32;
            let pushed = match (self.src.id(row)?, self.dst.id(row)?) {
                (Id::Integer(src), Id::Integer(dst)) => builder.push_integers(src, dst, time, label),
                (src, dst) => builder.push(&src.into_text(), &dst.into_text(), time, label),
            };
            pushed
                .map_err(|RejectedRow { role, problem }| Error::at(place(layout.position(role), at_row), *problem))?;
            if self.features.is_empty() && self.optional.is_empty() {
                continue;
            }
            values.clear();
            for column in &self.features {
                #[expect(clippy::cast_possible_truncation, reason = "features are f32 whatever the file holds")]
                let value = column.number(row)? as f32;
                if !value.is_finite() {
                    return Err(Error::at(column.place(row), Problem::NonFiniteValue { found: value.to_string() }));
                }
                values.push(value);
            }
            for (index, column) in self.optional.iter().enumerate() {
                #[expect(clippy::cast_possible_truncation, reason = "features are f32 whatever the file holds")]
                let value = column.as_ref().and_then(|column| column.number(row).ok()).map(|value| value as f32);
                let found = || format!("{} in row {at_row}", value.unwrap_or(f32::NAN));
                values.push(optional.value(index, value, found));
            }
            builder.push_features(values.iter().copied())?;
        }
        Ok(n > 0)
    }

    /// Decodes the next block of every column; 0 at the end.
    fn fill(&mut self, optional: &mut OptionalColumns) -> Result<usize> {
        let n = self.src.fill()?;
        for (index, column) in self.optional.iter_mut().enumerate() {
            match column.as_mut().map(Cells::fill) {
                Some(Err(error)) if matches!(error.problem(), Problem::Null) => {
                    optional.reject(index, &error);
                    *column = None;
                }
                Some(Ok(rows)) if rows == n => {}
                None => {}
                Some(Ok(_)) => return Err(corrupt("columns of different lengths")),
                Some(Err(error)) => return Err(error),
            }
        }
        let rest = [&mut self.dst, &mut self.time].into_iter().chain(&mut self.label).chain(&mut self.features);
        for column in rest {
            if column.fill()? != n {
                return Err(corrupt("columns of different lengths"));
            }
        }
        Ok(n)
    }
}

fn damaged(error: ParquetError) -> Error {
    match error {
        ParquetError::EOF(_) => Problem::Truncated { format: "Parquet" }.into(),
        other => corrupt(&other.to_string()),
    }
}

fn corrupt(detail: &str) -> Error {
    Problem::Corrupt { format: "Parquet", detail: detail.into() }.into()
}
