//! Decoded values of one column, by physical and logical type.

use parquet::basic::{ConvertedType, LogicalType, TimeUnit as Resolution, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType, Int96};
use parquet::errors::ParquetError;
use parquet::file::reader::RowGroupReader;
use parquet::schema::types::ColumnDescriptor;

use super::{corrupt, damaged};
use crate::dataset::time_column::{TimeColumn, TimeUnit, exact_integer, looks_like_date};
use crate::error::{Error, Place, Problem, Result};

/// Rows decoded at a time.
const BLOCK_ROWS: usize = 1 << 16;

/// One column of a row group and its block of decoded values.
pub(super) struct Cells {
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
    Timestamp(TimeUnit),
    Days,
}

const SECONDS_PER_DAY: f64 = 86_400.0;

enum Values {
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Bytes(Vec<ByteArray>),
    /// Timestamps as Spark and Impala once wrote them.
    Int96(Vec<Int96>),
}

pub(super) enum Id<'a> {
    Integer(u64),
    Text(&'a [u8]),
}

impl<'a> Id<'a> {
    pub(super) fn into_text(self) -> std::borrow::Cow<'a, [u8]> {
        match self {
            Self::Integer(id) => id.to_string().into_bytes().into(),
            Self::Text(id) => id.into(),
        }
    }
}

impl Cells {
    pub(super) fn open(group: &dyn RowGroupReader, at: usize, names: &[String], first_row: u64) -> Result<Self> {
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
            Physical::INT96 => Values::Int96(Vec::new()),
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
    pub(super) fn fill(&mut self) -> Result<usize> {
        self.first_row += self.n_block as u64;
        let filled = match (&mut self.reader, &mut self.values) {
            (ColumnReader::Int32ColumnReader(reader), Values::Int32(values)) => fill(reader, values),
            (ColumnReader::Int64ColumnReader(reader), Values::Int64(values)) => fill(reader, values),
            (ColumnReader::FloatColumnReader(reader), Values::Float(values)) => fill(reader, values),
            (ColumnReader::DoubleColumnReader(reader), Values::Double(values)) => fill(reader, values),
            (ColumnReader::ByteArrayColumnReader(reader), Values::Bytes(values)) => fill(reader, values),
            (ColumnReader::Int96ColumnReader(reader), Values::Int96(values)) => fill(reader, values),
            _ => return Err(corrupt("a column that changes its type")),
        };
        let Block { n_rows, first_null } = filled.map_err(damaged)?;
        if let Some(row) = first_null {
            return Err(Error::at(self.place(row), Problem::Null));
        }
        self.n_block = n_rows;
        Ok(n_rows)
    }

    pub(super) fn place(&self, row: usize) -> Place {
        Place::default().row(self.first_row + row as u64).column(self.at as u64 + 1, &*self.name)
    }

    pub(super) fn id(&self, row: usize) -> Result<Id<'_>> {
        let unsigned = self.integer_type == IntegerType::Unsigned;
        let integer = match &self.values {
            Values::Int32(values) if unsigned => return Ok(Id::Integer(u64::from(values[row].cast_unsigned()))),
            Values::Int64(values) if unsigned => return Ok(Id::Integer(values[row].cast_unsigned())),
            Values::Int32(values) => i64::from(values[row]),
            Values::Int64(values) => values[row],
            Values::Bytes(values) => return Ok(Id::Text(values[row].data())),
            Values::Float(_) | Values::Double(_) => return Err(self.wrong_type(row, "floats", "integers or text")),
            Values::Int96(_) => return Err(self.wrong_type(row, "timestamps", "integers or text")),
        };
        let id = u64::try_from(integer).map_err(|_| Problem::NegativeId { found: integer.to_string() });
        id.map(Id::Integer).map_err(|problem| Error::at(self.place(row), problem))
    }

    #[expect(clippy::cast_precision_loss, reason = "numbers are f64; beyond 2^53 they lose their last bits")]
    pub(super) fn number(&self, row: usize) -> Result<f64> {
        Ok(match (&self.values, self.integer_type) {
            (Values::Int32(values), IntegerType::Unsigned) => f64::from(values[row].cast_unsigned()),
            (Values::Int32(values), IntegerType::Days) => f64::from(values[row]) * SECONDS_PER_DAY,
            (Values::Int32(values), _) => f64::from(values[row]),
            (Values::Int64(values), IntegerType::Unsigned) => values[row].cast_unsigned() as f64,
            (Values::Int64(values), IntegerType::Timestamp(unit)) => values[row] as f64 / per_second(unit),
            (Values::Int64(values), _) => values[row] as f64,
            (Values::Float(values), _) => f64::from(values[row]),
            (Values::Double(values), _) => values[row],
            (Values::Int96(values), _) => values[row].to_micros() as f64 / 1e6,
            (Values::Bytes(_), _) => return Err(self.wrong_type(row, "text", "numbers")),
        })
    }

    /// The column, if it can hold numbers.
    pub(super) fn of_numbers(self) -> Result<Self> {
        match self.values {
            Values::Bytes(_) => Err(self.wrong_type(0, "text", "numbers")),
            _ => Ok(self),
        }
    }

    /// The value as a time, which is exact or refused. `unit` is that of numbers, if they are Unix times.
    pub(super) fn time(&self, row: usize, unit: Option<TimeUnit>) -> Result<f64> {
        let integer = match (&self.values, self.integer_type) {
            (Values::Bytes(values), _) if looks_like_date(values[row].data()) => {
                return TimeColumn::Date
                    .read(values[row].data())
                    .map_err(|problem| Error::at(self.place(row), problem));
            }
            (Values::Bytes(_), _) => {
                return Err(self.wrong_type(row, "text", "numbers or dates such as 2024-01-31T12:00:00Z"));
            }
            (Values::Float(_) | Values::Double(_), _) => {
                let number = self.number(row)?;
                let time = unit.filter(|_| number.is_finite()).map_or(Ok(number), |unit| unit.of_number(number));
                return time.map_err(|problem| Error::at(self.place(row), problem));
            }
            (Values::Int32(_), _) => return unit.map_or_else(|| self.number(row), |unit| self.unix(row, unit)),
            (Values::Int64(values), IntegerType::Unsigned) => i128::from(values[row].cast_unsigned()),
            (Values::Int64(values), _) => i128::from(values[row]),
            (Values::Int96(values), _) => i128::from(values[row].to_micros()),
        };
        let unit = match (&self.values, self.integer_type) {
            (Values::Int96(_), _) => Some(TimeUnit::Us),
            (_, IntegerType::Timestamp(unit)) => Some(unit),
            _ => unit,
        };
        let time = unit.map_or_else(|| exact_integer(integer), |unit| unit.of_integer(integer));
        time.map_err(|problem| Error::at(self.place(row), problem))
    }

    /// A small integer as a Unix time.
    fn unix(&self, row: usize, unit: TimeUnit) -> Result<f64> {
        let number = self.number(row)?;
        unit.of_number(number).map_err(|problem| Error::at(self.place(row), problem))
    }

    fn wrong_type(&self, row: usize, found: &str, expected: &'static str) -> Error {
        Error::at(self.place(row), Problem::WrongType { found: found.into(), expected })
    }
}

fn per_second(unit: TimeUnit) -> f64 {
    match unit {
        TimeUnit::S => 1.0,
        TimeUnit::Ms => 1e3,
        TimeUnit::Us => 1e6,
        TimeUnit::Ns => 1e9,
    }
}

/// Whether the type of `column` says that it holds points in time.
pub(super) fn holds_dates(column: &ColumnDescriptor) -> bool {
    let integer_type = IntegerType::of(column);
    column.physical_type() == Physical::INT96
        || matches!(integer_type, Ok(IntegerType::Timestamp(_) | IntegerType::Days))
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
                return Ok(Self::Timestamp(match timestamp.unit {
                    Resolution::MILLIS => TimeUnit::Ms,
                    Resolution::MICROS => TimeUnit::Us,
                    Resolution::NANOS => TimeUnit::Ns,
                }));
            }
            Some(LogicalType::Date) => return Ok(Self::Days),
            _ => {}
        }
        Ok(match column.converted_type() {
            ConvertedType::TIMESTAMP_MILLIS => Self::Timestamp(TimeUnit::Ms),
            ConvertedType::TIMESTAMP_MICROS => Self::Timestamp(TimeUnit::Us),
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
