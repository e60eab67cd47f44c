//! Tables of any columns as Parquet: rows as text, columns of a few types.

use std::borrow::Cow;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use csv::StringRecord;
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit as Resolution, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, FloatType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::record::Field;
use parquet::record::reader::RowIter;
use parquet::schema::types::Type;

use super::guard::{Bounded, catch_quietly};
use super::write::{GROUP_ROWS, write_column};
use super::{corrupt, damaged};
use crate::dataset::source::Source;
use crate::dataset::table_write::{TableColumn, TableValues};
use crate::dataset::time_column::TimeUnit;
use crate::error::{Error, Place, Problem, Result};
use crate::time::{TimeFormat, exact_micros};

/// The rows of a Parquet file as text.
pub(crate) struct ParquetRows {
    path: PathBuf,
    names: Vec<String>,
    /// Columns of nanoseconds since 1970, which the row reader gives as plain integers.
    are_nanos: Vec<bool>,
    rows: RowIter<'static>,
    n_read: u64,
}

impl ParquetRows {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let bytes = Bytes::from_owner(Source::map(path)?);
        let opened = catch_quietly(|| SerializedFileReader::new(Bounded(bytes)).map_err(damaged));
        let file =
            opened.unwrap_or_else(|| Err(corrupt("the decoder gave up"))).map_err(|error| error.in_file(path))?;
        let schema = file.metadata().file_metadata().schema().clone();
        let names = schema.get_fields().iter().map(|field| field.name().to_owned()).collect();
        let is_nanos = |field: &Arc<Type>| match field.get_basic_info().logical_type_ref() {
            Some(LogicalType::Timestamp(timestamp)) => timestamp.unit == Resolution::NANOS,
            _ => false,
        };
        let are_nanos = schema.get_fields().iter().map(is_nanos).collect();
        let rows = RowIter::from_file_into(Box::new(file));
        Ok(Self { path: path.to_path_buf(), names, are_nanos, rows, n_read: 0 })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Rows read so far.
    pub(crate) fn n_read(&self) -> u64 {
        self.n_read
    }

    /// Reads the next row into `fields`; false at the end.
    pub(crate) fn next(&mut self, fields: &mut StringRecord) -> Result<bool> {
        fields.clear();
        // The decoder can panic on damaged files, and on dates that no calendar has.
        let next = catch_quietly(|| self.try_next(fields)).unwrap_or_else(|| Err(corrupt("the decoder gave up")));
        next.map_err(|error| error.in_file(&self.path))
    }

    fn try_next(&mut self, fields: &mut StringRecord) -> Result<bool> {
        let Some(row) = self.rows.next().transpose().map_err(damaged)? else { return Ok(false) };
        for (at, (name, field)) in row.get_column_iter().enumerate() {
            let text = text_of(field, self.are_nanos.get(at).is_some_and(|&is| is));
            let place = || Place::default().row(self.n_read).column(at as u64 + 1, name);
            fields.push_field(&text.map_err(|problem| Error::at(place(), problem))?);
        }
        self.n_read += 1;
        Ok(true)
    }
}

/// A value as text: numbers in their shortest form, points in time as dates, nothing for a null.
fn text_of(field: &Field, is_nanos: bool) -> Result<Cow<'_, str>, Problem> {
    let date = |unit: TimeUnit, number: i64| unit.of_integer(number.into()).map(|time| TimeFormat::Date.show(time));
    Ok(match field {
        Field::Null => "".into(),
        Field::Str(text) => text.into(),
        Field::Bytes(bytes) => std::str::from_utf8(bytes.data()).map_err(|_| Problem::NotUtf8)?.into(),
        Field::Float(value) => value.to_string().into(),
        Field::Double(value) => value.to_string().into(),
        Field::Date(days) => date(TimeUnit::S, i64::from(*days) * 86_400)?.into(),
        Field::TimestampMillis(millis) => date(TimeUnit::Ms, *millis)?.into(),
        Field::TimestampMicros(micros) => date(TimeUnit::Us, *micros)?.into(),
        Field::Long(nanos) if is_nanos => date(TimeUnit::Ns, *nanos)?.into(),
        other => other.to_string().into(),
    })
}

/// Writes `n_rows` of `columns`.
pub(crate) fn write_table(
    out: &mut (dyn Write + Send),
    n_rows: usize,
    columns: &[TableColumn<'_>],
) -> parquet::errors::Result<()> {
    let are_dates: Vec<bool> = columns.iter().map(|column| column.values.are_dates(n_rows)).collect();
    let schema = columns.iter().zip(&are_dates).map(|(column, is_date)| {
        let (physical, logical) = match column.values {
            TableValues::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            TableValues::Integers(_) => (Physical::INT64, None),
            TableValues::Floats(_) => (Physical::FLOAT, None),
            TableValues::Times(..) if *is_date => {
                (Physical::INT64, Some(LogicalType::timestamp(true, Resolution::MICROS)))
            }
            TableValues::Times(..) => (Physical::DOUBLE, None),
        };
        let field = Type::primitive_type_builder(&column.name, physical).with_repetition(Repetition::REQUIRED);
        field.with_logical_type(logical).build().map(Arc::new)
    });
    let schema = Type::group_type_builder("table").with_fields(schema.collect::<Result<_, _>>()?).build()?;
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::try_new(9)?)).build();
    let mut file = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?;
    for start in (0..n_rows).step_by(GROUP_ROWS) {
        let rows = start..n_rows.min(start + GROUP_ROWS);
        let mut group = file.next_row_group()?;
        for (column, is_date) in columns.iter().zip(&are_dates) {
            let rows = rows.clone();
            match &column.values {
                TableValues::Text(text) => {
                    let values: Vec<ByteArray> = rows.map(|row| text(row).into_owned().into_bytes().into()).collect();
                    write_column::<ByteArrayType>(&mut group, &values)?;
                }
                TableValues::Integers(value) => {
                    write_column::<Int64Type>(&mut group, &rows.map(value).collect::<Vec<_>>())?;
                }
                TableValues::Floats(value) => {
                    write_column::<FloatType>(&mut group, &rows.map(value).collect::<Vec<_>>())?;
                }
                TableValues::Times(_, time) if *is_date => {
                    let micros = rows.map(|row| exact_micros(time(row)).expect("as `are_dates` says"));
                    write_column::<Int64Type>(&mut group, &micros.collect::<Vec<_>>())?;
                }
                TableValues::Times(_, time) => {
                    write_column::<DoubleType>(&mut group, &rows.map(time).collect::<Vec<_>>())?;
                }
            }
        }
        group.close()?;
    }
    file.close()?;
    Ok(())
}
