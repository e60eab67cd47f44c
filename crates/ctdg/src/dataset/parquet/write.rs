//! Writes a stream as Parquet: `src`, `dst`, `time`, `label`, `feat_0`, … .

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type};

use super::{BIPARTITE, DATES};
use crate::event::{EventStream, Features, NodeId};
use crate::time::{TimeFormat, exact_micros};

/// Rows per row group: enough to compress well, few enough for bounded memory.
pub(super) const GROUP_ROWS: usize = 1 << 20;

/// Integers below 2^53 are exact in `f64`.
const EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

/// Writes `stream` to `out`.
pub(crate) fn write(out: &mut (dyn Write + Send), stream: &EventStream) -> Result<()> {
    let types = ColumnTypes::of(stream);
    let level = ZstdLevel::try_new(15)?;
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_dictionary_enabled(false)
        .set_column_dictionary_enabled(ColumnPath::from("label"), true)
        .set_column_encoding(
            ColumnPath::from("time"),
            if types.times == TimeType::Double { Encoding::BYTE_STREAM_SPLIT } else { Encoding::DELTA_BINARY_PACKED },
        );
    let is_marked = [
        (BIPARTITE, stream.names().n_sources().is_some()),
        (DATES, stream.time_format() == TimeFormat::Date && types.times != TimeType::Timestamp),
    ];
    let marks = is_marked.into_iter().filter(|(_, is_marked)| *is_marked);
    let marks: Vec<_> = marks.map(|(key, _)| KeyValue::new(key.to_owned(), "true".to_owned())).collect();
    if !marks.is_empty() {
        properties = properties.set_key_value_metadata(Some(marks));
    }
    let schema = Arc::new(types.schema()?);
    let mut file = SerializedFileWriter::new(out, schema, Arc::new(properties.build()))?;
    for start in (0..stream.len()).step_by(GROUP_ROWS) {
        let rows = start..stream.len().min(start + GROUP_ROWS);
        let mut group = file.next_row_group()?;
        for nodes in [&stream.src()[rows.clone()], &stream.dst()[rows.clone()]] {
            types.write_nodes(&mut group, stream, nodes)?;
        }
        let times = &stream.times()[rows.clone()];
        match types.times {
            TimeType::Integer => {
                #[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53")]
                let times: Vec<i64> = times.iter().map(|&time| time as i64).collect();
                write_column::<Int64Type>(&mut group, &times)?;
            }
            TimeType::Timestamp => {
                let times: Vec<i64> = times.iter().map(|&time| exact_micros(time).expect("as `of`")).collect();
                write_column::<Int64Type>(&mut group, &times)?;
            }
            TimeType::Double => write_column::<DoubleType>(&mut group, times)?,
        }
        write_column::<FloatType>(&mut group, &stream.labels()[rows.clone()])?;
        if let Some(features) = stream.edge_features() {
            for column in 0..features.width() {
                let values: Vec<f32> = rows.clone().map(|row| features.row(row)[column]).collect();
                write_column::<FloatType>(&mut group, &values)?;
            }
        }
        group.close()?;
    }
    file.close()?;
    Ok(())
}

/// Column types that fit the stream.
struct ColumnTypes {
    ids: IdType,
    times: TimeType,
    width: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TimeType {
    Integer,
    /// Dates, all of them whole microseconds.
    Timestamp,
    Double,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum IdType {
    Int32,
    Int64,
    Text,
}

impl ColumnTypes {
    fn of(stream: &EventStream) -> Self {
        let names = stream.names();
        let last = |node: Option<&NodeId>| node.and_then(|&node| names.integer(node)).unwrap_or(0);
        // Names of each side are sorted, so the last is the largest.
        let largest = last(stream.src().iter().max()).max(last(stream.dst().iter().max()));
        let ids = if names.is_text() || i64::try_from(largest).is_err() {
            IdType::Text
        } else if i32::try_from(largest).is_ok() {
            IdType::Int32
        } else {
            IdType::Int64
        };
        let all = |holds: fn(f64) -> bool| stream.times().iter().all(|&time| holds(time));
        let times = if stream.time_format() == TimeFormat::Date && all(|time| exact_micros(time).is_some()) {
            TimeType::Timestamp
        } else if all(|time| time.fract() == 0.0 && time.abs() < EXACT_INTEGER) {
            TimeType::Integer
        } else {
            TimeType::Double
        };
        Self { ids, times, width: stream.edge_features().map_or(0, Features::width) }
    }

    fn schema(&self) -> Result<Type> {
        let column = |name: &str, physical: Physical, logical: Option<LogicalType>| {
            let column = Type::primitive_type_builder(name, physical).with_repetition(Repetition::REQUIRED);
            column.with_logical_type(logical).build().map(Arc::new)
        };
        let (id, logical) = match self.ids {
            IdType::Int32 => (Physical::INT32, None),
            IdType::Int64 => (Physical::INT64, None),
            IdType::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let (time, timestamp) = match self.times {
            TimeType::Integer => (Physical::INT64, None),
            TimeType::Timestamp => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
            TimeType::Double => (Physical::DOUBLE, None),
        };
        let mut fields = vec![
            column("src", id, logical.clone())?,
            column("dst", id, logical)?,
            column("time", time, timestamp)?,
            column("label", Physical::FLOAT, None)?,
        ];
        for index in 0..self.width {
            fields.push(column(&format!("feat_{index}"), Physical::FLOAT, None)?);
        }
        Type::group_type_builder("events").with_fields(fields).build()
    }

    fn write_nodes(
        &self,
        group: &mut SerializedRowGroupWriter<'_, &mut (dyn Write + Send)>,
        stream: &EventStream,
        nodes: &[NodeId],
    ) -> Result<()> {
        let names = stream.names();
        let integer = |node: &NodeId| {
            let name = names.integer(*node).and_then(|name| i64::try_from(name).ok());
            name.expect("checked by `of`")
        };
        match self.ids {
            IdType::Int32 => {
                let ids: Vec<i32> = nodes.iter().map(|node| i32::try_from(integer(node)).expect("as `of`")).collect();
                write_column::<Int32Type>(group, &ids)
            }
            IdType::Int64 => write_column::<Int64Type>(group, &nodes.iter().map(integer).collect::<Vec<_>>()),
            IdType::Text => {
                let ids: Vec<ByteArray> = nodes.iter().map(|&node| names.name(node).into_bytes().into()).collect();
                write_column::<ByteArrayType>(group, &ids)
            }
        }
    }
}

pub(super) fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, &mut (dyn Write + Send)>,
    values: &[T::T],
) -> Result<()> {
    let mut column = group.next_column()?.expect("one column after the other, as the schema has them");
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()
}
