//! Events as an Arrow stream: columns `src`, `dst`, `time`, and perhaps `label`, `id` and `features`.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_schema::{DataType, TimeUnit};
use axum::body::Bytes;
use ctdg::dataset::catch_quietly;
use ctdg::dataset::log::LogEvent;
use ctdg::time::TimeFormat;

use super::Failure;
use crate::wire::Time;

/// Names that a column may have.
const SRC: [&str; 2] = ["src", "source"];
const DST: [&str; 2] = ["dst", "destination"];
const TIME: [&str; 2] = ["time", "timestamp"];

/// The events of a stream.
pub(super) fn events(body: &Bytes, format: TimeFormat) -> Result<Vec<LogEvent>, Failure> {
    // The decoder panics where a buffer lies beyond the end of the stream.
    let decoded = catch_quietly(|| decode(body, format));
    decoded.unwrap_or_else(|| Err(Failure::invalid("found a damaged Arrow stream, expected a whole one")))
}

fn decode(body: &Bytes, format: TimeFormat) -> Result<Vec<LogEvent>, Failure> {
    let wrong = |error: &dyn std::fmt::Display| Failure::invalid(format!("found no Arrow stream: {error}"));
    let reader = StreamReader::try_new(&body[..], None).map_err(|error| wrong(&error))?;
    let mut events = Vec::new();
    for batch in reader {
        add(&batch.map_err(|error| wrong(&error))?, format, &mut events)?;
    }
    Ok(events)
}

fn column<'a>(batch: &'a RecordBatch, names: &[&str]) -> Option<&'a dyn Array> {
    names.iter().find_map(|name| batch.column_by_name(name)).map(|column| &**column)
}

fn required<'a>(batch: &'a RecordBatch, names: &[&str]) -> Result<&'a dyn Array, Failure> {
    column(batch, names).ok_or_else(|| Failure::invalid(format!("found no column {}, expected one", names[0])))
}

fn add(batch: &RecordBatch, format: TimeFormat, events: &mut Vec<LogEvent>) -> Result<(), Failure> {
    let (src, dst) = (required(batch, &SRC)?, required(batch, &DST)?);
    let (time, label) = (required(batch, &TIME)?, column(batch, &["label"]));
    let (id, features) = (column(batch, &["id"]), column(batch, &["features"]));
    for row in 0..batch.num_rows() {
        let number = events.len() as u64;
        let in_row = |message: String| Failure::invalid(message).in_row(number);
        let name = |column: &dyn Array, what: &str| {
            text(column, row)
                .ok_or_else(|| in_row(format!("found {} as {what}, expected text or integers", kind(column, row))))
        };
        let label = match label.filter(|column| column.is_valid(row)) {
            Some(column) => float(column, row)
                .ok_or_else(|| in_row(format!("found {} as label, expected a number", kind(column, row))))?,
            None => 0.0,
        };
        #[expect(clippy::cast_possible_truncation, reason = "labels are f32")]
        events.push(LogEvent {
            src: name(src, "src")?,
            dst: name(dst, "dst")?,
            time: time_at(time, row, format).map_err(in_row)?,
            label: label as f32,
            features: features.map_or(Ok(Vec::new()), |column| list(column, row)).map_err(in_row)?,
            id: id.filter(|column| column.is_valid(row)).map(|column| name(column, "id")).transpose()?,
        });
    }
    Ok(())
}

fn kind(column: &dyn Array, row: usize) -> String {
    if column.is_null(row) { "a null".to_owned() } else { column.data_type().to_string() }
}

fn primitive<T: ArrowPrimitiveType>(column: &dyn Array, row: usize) -> Option<T::Native> {
    column.as_primitive_opt::<T>().map(|values| values.value(row))
}

fn integer(column: &dyn Array, row: usize) -> Option<i128> {
    Some(match column.data_type() {
        DataType::Int64 => primitive::<Int64Type>(column, row)?.into(),
        DataType::Int32 => primitive::<Int32Type>(column, row)?.into(),
        DataType::UInt64 => primitive::<UInt64Type>(column, row)?.into(),
        DataType::UInt32 => primitive::<UInt32Type>(column, row)?.into(),
        _ => return None,
    })
}

fn text(column: &dyn Array, row: usize) -> Option<String> {
    if column.is_null(row) {
        return None;
    }
    match column.data_type() {
        DataType::Utf8 => Some(column.as_string_opt::<i32>()?.value(row).to_owned()),
        DataType::LargeUtf8 => Some(column.as_string_opt::<i64>()?.value(row).to_owned()),
        DataType::Utf8View => Some(column.as_string_view_opt()?.value(row).to_owned()),
        _ => integer(column, row).map(|number| number.to_string()),
    }
}

#[expect(clippy::cast_precision_loss, reason = "checked by the caller where it matters")]
fn float(column: &dyn Array, row: usize) -> Option<f64> {
    if column.is_null(row) {
        return None;
    }
    match column.data_type() {
        DataType::Float64 => primitive::<Float64Type>(column, row),
        DataType::Float32 => primitive::<Float32Type>(column, row).map(f64::from),
        _ => integer(column, row).map(|number| number as f64),
    }
}

fn time_at(column: &dyn Array, row: usize, format: TimeFormat) -> Result<f64, String> {
    let wrong = || format!("found {} as time, expected numbers, timestamps or dates as text", kind(column, row));
    if column.is_null(row) {
        return Err(wrong());
    }
    if let DataType::Timestamp(unit, _) = column.data_type() {
        let (ticks, per_second) = match unit {
            TimeUnit::Second => (primitive::<TimestampSecondType>(column, row), 1),
            TimeUnit::Millisecond => (primitive::<TimestampMillisecondType>(column, row), 1_000),
            TimeUnit::Microsecond => (primitive::<TimestampMicrosecondType>(column, row), 1_000_000),
            TimeUnit::Nanosecond => (primitive::<TimestampNanosecondType>(column, row), 1_000_000_000),
        };
        let ticks = ticks.ok_or_else(wrong)?;
        #[expect(clippy::cast_precision_loss, reason = "whole seconds and the rest of one are exact")]
        return Ok(ticks.div_euclid(per_second) as f64 + ticks.rem_euclid(per_second) as f64 / per_second as f64);
    }
    let time = match float(column, row) {
        Some(number) => Time::Number(number),
        None => Time::Date(text(column, row).ok_or_else(wrong)?),
    };
    time.value(format)
}

fn list(column: &dyn Array, row: usize) -> Result<Vec<f32>, String> {
    if column.is_null(row) {
        return Ok(Vec::new());
    }
    let values = match column.data_type() {
        DataType::List(_) => column.as_list_opt::<i32>().map(|lists| lists.value(row)),
        DataType::LargeList(_) => column.as_list_opt::<i64>().map(|lists| lists.value(row)),
        DataType::FixedSizeList(..) => column.as_fixed_size_list_opt().map(|lists| lists.value(row)),
        _ => None,
    };
    let values = values.ok_or_else(|| format!("found {} as features, expected lists of numbers", kind(column, row)))?;
    #[expect(clippy::cast_possible_truncation, reason = "features are f32")]
    let value = |at: usize| float(&*values, at).map(|value| value as f32);
    let all: Option<Vec<f32>> = (0..values.len()).map(value).collect();
    all.ok_or_else(|| "found a null or text among the features, expected numbers".to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Float64Array, Int64Array, StringArray, TimestampMillisecondArray};
    use arrow_ipc::writer::StreamWriter;

    use super::*;

    fn stream(columns: Vec<(&str, ArrayRef)>) -> Bytes {
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut bytes = Vec::new();
        let mut writer = StreamWriter::try_new(&mut bytes, &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        drop(writer);
        bytes.into()
    }

    #[test]
    fn columns_become_events() {
        let body = stream(vec![
            ("src", Arc::new(Int64Array::from(vec![7, 8])) as ArrayRef),
            ("dst", Arc::new(StringArray::from(vec!["ann", "bob"]))),
            ("time", Arc::new(Float64Array::from(vec![1.5, 2.0]))),
            ("label", Arc::new(Float64Array::from(vec![None, Some(1.0)]))),
            ("id", Arc::new(StringArray::from(vec![Some("a"), None]))),
        ]);
        let found = events(&body, TimeFormat::Number).unwrap();
        let first = LogEvent { id: Some("a".into()), ..LogEvent::new("7", "ann", 1.5) };
        assert_eq!(found, [first, LogEvent { label: 1.0, ..LogEvent::new("8", "bob", 2.0) }]);
    }

    #[test]
    fn timestamps_are_seconds() {
        let body = stream(vec![
            ("source", Arc::new(Int64Array::from(vec![1])) as ArrayRef),
            ("destination", Arc::new(Int64Array::from(vec![2]))),
            ("timestamp", Arc::new(TimestampMillisecondArray::from(vec![1_700_000_000_125_i64]))),
        ]);
        assert_eq!(events(&body, TimeFormat::Date).unwrap()[0].time, 1_700_000_000.125);
    }

    #[test]
    fn what_is_no_event_is_refused() {
        assert!(events(&Bytes::from_static(b"no arrow"), TimeFormat::Number).is_err());
        let ids = || Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef;
        let without_time = stream(vec![("src", ids()), ("dst", ids())]);
        assert!(events(&without_time, TimeFormat::Number).unwrap_err().message().contains("column time"));
        let null = Arc::new(Float64Array::from(vec![Some(1.0), None])) as ArrayRef;
        let with_null = stream(vec![("src", ids()), ("dst", ids()), ("time", null)]);
        assert!(events(&with_null, TimeFormat::Number).unwrap_err().message().contains("a null as time"));
    }
    #[test]
    fn a_flipped_bit_is_another_event_or_refused_and_no_panic() {
        let ids = || Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef;
        let time = Arc::new(Float64Array::from(vec![1.0, 2.0])) as ArrayRef;
        let whole = stream(vec![("src", ids()), ("dst", ids()), ("time", time)]);
        for bit in 0..8 * whole.len() {
            let mut bytes = whole.to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let _ = events(&bytes.into(), TimeFormat::Number);
        }
    }
}
