//! Parquet: one row per event, flat columns, read without Arrow.

mod guard;
mod write;

use std::path::Path;

use bytes::Bytes;
use guard::{Bounded, catch_quietly};
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;
pub(crate) use write::write;

use crate::dataset::layout::{FeatureSpan, Layout};
use crate::dataset::source::{OnProgress, Source};
use crate::dataset::{Format, ReadOptions, sidecar};
use crate::error::{Error, Place, Problem, Result};
use crate::event::{EventStream, IdKind, RejectedRow, StreamBuilder};

/// Metadata key that marks a bipartite stream.
const BIPARTITE: &str = "ctdg.bipartite";
/// Rows decoded at a time.
const BLOCK_ROWS: usize = 1 << 16;

pub(crate) fn read(path: &Path, options: &ReadOptions, progress: OnProgress<'_>) -> Result<EventStream> {
    let stream = read_bytes(Bytes::from_owner(Source::map(path)?), options, progress)?;
    sidecar::with_node_features(path, stream)
}

/// Reads a Parquet file in memory.
pub(crate) fn read_bytes(bytes: Bytes, options: &ReadOptions, progress: OnProgress<'_>) -> Result<EventStream> {
    // The decoder can panic on damaged files; report that as damage.
    catch_quietly(|| read_groups(bytes, options, progress)).unwrap_or_else(|| Err(corrupt("the decoder gave up")))
}

fn read_groups(bytes: Bytes, options: &ReadOptions, progress: OnProgress<'_>) -> Result<EventStream> {
    let file = SerializedFileReader::new(Bounded(bytes)).map_err(damaged)?;
    let metadata = file.metadata().file_metadata();
    let schema = metadata.schema_descr();
    let names: Vec<String> = schema.columns().iter().map(|column| column.path().string()).collect();
    let format = if options.format == Format::Auto { Format::Parquet } else { options.format };
    let layout = Layout::resolve(format, options, Some(&names), &[])?;
    let features = match &layout.features {
        FeatureSpan::At(at) => at.clone(),
        FeatureSpan::From(from) => (*from..names.len()).collect(),
    };
    let marked_bipartite = metadata.key_value_metadata().into_iter().flatten().any(|entry| entry.key == BIPARTITE);
    // The column type determines the kind of ids; no need to guess from the first row.
    let is_text = |at: usize| schema.column(at).physical_type() == Physical::BYTE_ARRAY;
    let ids = match options.ids {
        IdKind::Auto if is_text(layout.src) || is_text(layout.dst) => IdKind::Text,
        kind => kind,
    };
    let mut builder = StreamBuilder::new(ids, options.bipartite.unwrap_or(marked_bipartite), options.sort);
    let n_rows = u64::try_from(metadata.num_rows()).unwrap_or(0);
    for group in 0..file.num_row_groups() {
        let group = file.get_row_group(group).map_err(damaged)?;
        let first_row = builder.len() as u64;
        let open = |at: usize| Cells::open(&*group, at, &names, first_row);
        let mut reader = GroupReader {
            src: open(layout.src)?,
            dst: open(layout.dst)?,
            time: open(layout.time)?,
            label: layout.label.map(open).transpose()?,
            features: features.iter().map(|&at| open(at)).collect::<Result<_>>()?,
        };
        while reader.push_block(&mut builder, &layout, &names)? {
            if let Some(progress) = progress {
                progress(builder.len() as u64, n_rows);
            }
        }
    }
    builder.finish(None)
}

/// The columns of one row group, read block by block.
struct GroupReader {
    src: Cells,
    dst: Cells,
    time: Cells,
    label: Option<Cells>,
    features: Vec<Cells>,
}

impl GroupReader {
    /// Moves one block of rows into `builder`; false at the end of the group.
    fn push_block(&mut self, builder: &mut StreamBuilder, layout: &Layout, names: &[String]) -> Result<bool> {
        let n = self.src.fill()?;
        let rest = [&mut self.dst, &mut self.time].into_iter().chain(&mut self.label).chain(&mut self.features);
        for column in rest {
            if column.fill()? != n {
                return Err(corrupt("columns of different lengths"));
            }
        }
        let mut values = Vec::with_capacity(self.features.len());
        for row in 0..n {
            let place = |at: usize, row: u64| Place::default().row(row).column(at as u64 + 1, &*names[at]);
            let at_row = builder.len() as u64;
            let time = self.time.number(row)?;
            #[expect(clippy::cast_possible_truncation, reason = "labels are f32 whatever the file holds")]
            let label = self.label.as_ref().map_or(Ok(0.0), |label| label.number(row))? as f32;
            let pushed = match (self.src.id(row)?, self.dst.id(row)?) {
                (Id::Integer(src), Id::Integer(dst)) => builder.push_integers(src, dst, time, label),
                (src, dst) => builder.push(&src.into_text(), &dst.into_text(), time, label),
            };
            pushed
                .map_err(|RejectedRow { role, problem }| Error::at(place(layout.position(role), at_row), *problem))?;
            if self.features.is_empty() {
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
            builder.push_features(values.iter().copied())?;
        }
        Ok(n > 0)
    }
}

/// One column of a row group and its block of decoded values.
struct Cells {
    reader: ColumnReader,
    values: Values,
    /// Column number from 0 and name, for messages.
    at: usize,
    name: String,
    /// Rows before this block.
    first_row: u64,
    n_block: usize,
    integer_type: IntegerType,
}

/// Logical type of an integer column.
#[derive(Debug, Clone, Copy, PartialEq)]
enum IntegerType {
    Signed,
    Unsigned,
    /// A timestamp with this resolution.
    Timestamp {
        per_second: f64,
    },
    Days,
}

const SECONDS_PER_DAY: f64 = 86_400.0;

enum Values {
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Bytes(Vec<ByteArray>),
}

enum Id<'a> {
    Integer(u64),
    Text(&'a [u8]),
}

impl<'a> Id<'a> {
    fn into_text(self) -> std::borrow::Cow<'a, [u8]> {
        match self {
            Self::Integer(id) => id.to_string().into_bytes().into(),
            Self::Text(id) => id.into(),
        }
    }
}

impl Cells {
    fn open(group: &dyn RowGroupReader, at: usize, names: &[String], first_row: u64) -> Result<Self> {
        let place = || Place::default().column(at as u64 + 1, &*names[at]);
        let column = group.metadata().schema_descr().column(at);
        if column.max_rep_level() > 0 {
            let problem = Problem::WrongType { found: "lists".into(), expected: "one value in every row" };
            return Err(Error::at(place(), problem));
        }
        let values = match column.physical_type() {
            Physical::INT32 => Values::Int32(Vec::new()),
            Physical::INT64 => Values::Int64(Vec::new()),
            Physical::FLOAT => Values::Float(Vec::new()),
            Physical::DOUBLE => Values::Double(Vec::new()),
            Physical::BYTE_ARRAY => Values::Bytes(Vec::new()),
            other => {
                let problem = Problem::WrongType { found: other.to_string(), expected: "integers, floats or text" };
                return Err(Error::at(place(), problem));
            }
        };
        let reader = group.get_column_reader(at).map_err(damaged)?;
        let integer_type = IntegerType::of(&column).map_err(|problem| Error::at(place(), problem))?;
        Ok(Self { reader, values, at, name: names[at].clone(), first_row, n_block: 0, integer_type })
    }

    /// Decodes the next block; 0 at the end.
    fn fill(&mut self) -> Result<usize> {
        self.first_row += self.n_block as u64;
        let filled = match (&mut self.reader, &mut self.values) {
            (ColumnReader::Int32ColumnReader(reader), Values::Int32(values)) => fill(reader, values),
            (ColumnReader::Int64ColumnReader(reader), Values::Int64(values)) => fill(reader, values),
            (ColumnReader::FloatColumnReader(reader), Values::Float(values)) => fill(reader, values),
            (ColumnReader::DoubleColumnReader(reader), Values::Double(values)) => fill(reader, values),
            (ColumnReader::ByteArrayColumnReader(reader), Values::Bytes(values)) => fill(reader, values),
            _ => return Err(corrupt("a column that changes its type")),
        };
        let Block { n_rows, first_null } = filled.map_err(damaged)?;
        if let Some(row) = first_null {
            return Err(Error::at(self.place(row), Problem::Null));
        }
        self.n_block = n_rows;
        Ok(n_rows)
    }

    fn place(&self, row: usize) -> Place {
        Place::default().row(self.first_row + row as u64).column(self.at as u64 + 1, &*self.name)
    }

    fn id(&self, row: usize) -> Result<Id<'_>> {
        let unsigned = self.integer_type == IntegerType::Unsigned;
        let integer = match &self.values {
            Values::Int32(values) if unsigned => return Ok(Id::Integer(u64::from(values[row].cast_unsigned()))),
            Values::Int64(values) if unsigned => return Ok(Id::Integer(values[row].cast_unsigned())),
            Values::Int32(values) => i64::from(values[row]),
            Values::Int64(values) => values[row],
            Values::Bytes(values) => return Ok(Id::Text(values[row].data())),
            Values::Float(_) | Values::Double(_) => {
                let problem = Problem::WrongType { found: "floats".into(), expected: "integers or text" };
                return Err(Error::at(self.place(row), problem));
            }
        };
        let id = u64::try_from(integer).map_err(|_| Problem::NegativeId { found: integer.to_string() });
        id.map(Id::Integer).map_err(|problem| Error::at(self.place(row), problem))
    }

    #[expect(clippy::cast_precision_loss, reason = "numbers are f64; beyond 2^53 they lose their last bits")]
    fn number(&self, row: usize) -> Result<f64> {
        Ok(match (&self.values, self.integer_type) {
            (Values::Int32(values), IntegerType::Unsigned) => f64::from(values[row].cast_unsigned()),
            (Values::Int32(values), IntegerType::Days) => f64::from(values[row]) * SECONDS_PER_DAY,
            (Values::Int32(values), _) => f64::from(values[row]),
            (Values::Int64(values), IntegerType::Unsigned) => values[row].cast_unsigned() as f64,
            (Values::Int64(values), IntegerType::Timestamp { per_second }) => values[row] as f64 / per_second,
            (Values::Int64(values), _) => values[row] as f64,
            (Values::Float(values), _) => f64::from(values[row]),
            (Values::Double(values), _) => values[row],
            (Values::Bytes(_), _) => {
                let problem = Problem::WrongType { found: "text".into(), expected: "numbers" };
                return Err(Error::at(self.place(row), problem));
            }
        })
    }
}

struct Block {
    n_rows: usize,
    first_null: Option<usize>,
}

fn fill<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    values: &mut Vec<T::T>,
) -> std::result::Result<Block, ParquetError> {
    values.clear();
    let mut levels = Vec::new();
    let mut block = Block { n_rows: 0, first_null: None };
    // A call stops at the end of a page, but blocks of all columns must have equal length.
    while block.n_rows < BLOCK_ROWS {
        levels.clear();
        let (rows, present, _) = reader.read_records(BLOCK_ROWS - block.n_rows, Some(&mut levels), None, values)?;
        if rows == 0 {
            break;
        }
        if present < rows {
            let full = levels.iter().max().copied().unwrap_or(0).max(1);
            let null = levels.iter().position(|&level| level < full).unwrap_or(0);
            block.first_null.get_or_insert(block.n_rows + null);
        }
        block.n_rows += rows;
    }
    Ok(block)
}

impl IntegerType {
    /// From the schema's logical type, or from the older converted type.
    fn of(column: &ColumnDescriptor) -> Result<Self, Problem> {
        match column.logical_type_ref() {
            Some(LogicalType::Timestamp(timestamp)) => {
                let per_second = match timestamp.unit {
                    TimeUnit::MILLIS => 1e3,
                    TimeUnit::MICROS => 1e6,
                    TimeUnit::NANOS => 1e9,
                };
                return Ok(Self::Timestamp { per_second });
            }
            Some(LogicalType::Date) => return Ok(Self::Days),
            _ => {}
        }
        Ok(match column.converted_type() {
            ConvertedType::TIMESTAMP_MILLIS => Self::Timestamp { per_second: 1e3 },
            ConvertedType::TIMESTAMP_MICROS => Self::Timestamp { per_second: 1e6 },
            ConvertedType::DATE => Self::Days,
            ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 | ConvertedType::UINT_64 => {
                Self::Unsigned
            }
            ConvertedType::DECIMAL => {
                return Err(Problem::WrongType { found: "decimals".into(), expected: "integers, floats or text" });
            }
            _ => Self::Signed,
        })
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
