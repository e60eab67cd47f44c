//! Arrow tables through the C stream interface: pandas, polars, pyarrow, `DuckDB` and others export it.

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::types::{
    Date32Type, Date64Type, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, TimeUnit as Resolution};
use ctdg::Problem;
use ctdg::dataset::{ColumnBlock, ColumnKind, ColumnReader, ColumnValues, ReadOptions, TextColumn, TimeUnit};
use ctdg::event::EventStream;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::Failure;

/// The stream that `object` exports by `__arrow_c_stream__`.
#[expect(unsafe_code, reason = "the C stream interface is a structure behind a pointer")]
pub(crate) fn stream_of(object: &Bound<'_, PyAny>) -> PyResult<RecordBatchStreamReader> {
    let capsule = object.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
    // SAFETY: a capsule of this name holds such a stream; it is moved out, and the capsule is left with a released one.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr().cast()) };
    RecordBatchStreamReader::try_new(stream).map_err(|error| damaged(&error).into())
}

fn damaged(error: &ArrowError) -> Failure {
    Problem::Corrupt { format: "Arrow", detail: error.to_string() }.into()
}

/// Reads all batches of a stream of about `n_rows` rows.
pub(crate) fn read(
    stream: RecordBatchStreamReader,
    options: &ReadOptions,
    n_rows: usize,
) -> Result<EventStream, Failure> {
    let schema = stream.schema();
    let columns: Vec<(&str, ColumnKind)> =
        schema.fields().iter().map(|field| (field.name().as_str(), kind(field.data_type()))).collect();
    let mut reader = ColumnReader::new(&columns, options)?;
    reader.reserve(n_rows);
    for batch in stream {
        push(&mut reader, &batch.map_err(|error| damaged(&error))?)?;
    }
    Ok(reader.finish(None)?)
}

fn push(reader: &mut ColumnReader, batch: &RecordBatch) -> Result<(), Failure> {
    let column = |(at, array): (usize, &ArrayRef)| {
        if reader.is_read(at) { Held::of(array) } else { Held::Other(String::new()) }
    };
    let held: Vec<Held> = batch.columns().iter().enumerate().map(column).collect();
    let nulls = batch.columns().iter().map(Array::logical_nulls);
    let first_null =
        nulls.map(|nulls| (0..batch.num_rows()).find(|&row| nulls.as_ref().is_some_and(|n| n.is_null(row))));
    let blocks: Vec<ColumnBlock<'_>> = held
        .iter()
        .zip(first_null)
        .map(|(held, first_null)| ColumnBlock { values: held.values(), first_null })
        .collect();
    Ok(reader.push(batch.num_rows(), &blocks)?)
}

fn kind(data_type: &DataType) -> ColumnKind {
    match data_type {
        DataType::Dictionary(_, values) if is_text(values) => ColumnKind::Text,
        data_type if is_text(data_type) => ColumnKind::Text,
        DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => ColumnKind::Date,
        data_type if data_type.is_integer() || *data_type == DataType::Boolean => ColumnKind::Integer,
        data_type if data_type.is_floating() => ColumnKind::Float,
        _ => ColumnKind::Other,
    }
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// A column of a batch in a type that events are read from; shares memory with the batch unless the type is converted.
enum Held {
    I32(Vec<i32>),
    F32(Vec<f32>),
    Primitive(ArrayRef),
    Timestamp(ArrayRef, TimeUnit),
    Text(Box<dyn TextColumn>),
    Other(String),
}

impl Held {
    fn of(array: &ArrayRef) -> Self {
        let same = || ArrayRef::clone(array);
        match array.data_type() {
            DataType::Int8 => Self::I32(array.as_primitive::<Int8Type>().values().iter().map(|&x| x.into()).collect()),
            DataType::Int16 => {
                Self::I32(array.as_primitive::<Int16Type>().values().iter().map(|&x| x.into()).collect())
            }
            DataType::UInt8 => {
                Self::I32(array.as_primitive::<UInt8Type>().values().iter().map(|&x| x.into()).collect())
            }
            DataType::UInt16 => {
                Self::I32(array.as_primitive::<UInt16Type>().values().iter().map(|&x| x.into()).collect())
            }
            DataType::Boolean => Self::I32(array.as_boolean().values().iter().map(i32::from).collect()),
            DataType::Float16 => {
                Self::F32(array.as_primitive::<Float16Type>().values().iter().map(|x| x.to_f32()).collect())
            }
            DataType::Timestamp(resolution, _) => Self::Timestamp(
                same(),
                match resolution {
                    Resolution::Second => TimeUnit::S,
                    Resolution::Millisecond => TimeUnit::Ms,
                    Resolution::Microsecond => TimeUnit::Us,
                    Resolution::Nanosecond => TimeUnit::Ns,
                },
            ),
            DataType::Date64 => Self::Timestamp(same(), TimeUnit::Ms),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Self::Text(Box::new(Texts(same()))),
            DataType::Dictionary(_, values) if is_text(values) => {
                let dictionary = array.as_any_dictionary();
                // A dictionary without values has no keys that can be normalised.
                let keys = if dictionary.values().is_empty() { Vec::new() } else { dictionary.normalized_keys() };
                Self::Text(Box::new(DictionaryTexts { keys, values: Texts(ArrayRef::clone(dictionary.values())) }))
            }
            data_type if matches!(kind(data_type), ColumnKind::Integer | ColumnKind::Float | ColumnKind::Date) => {
                Self::Primitive(same())
            }
            other => Self::Other(other.to_string()),
        }
    }

    fn values(&self) -> ColumnValues<'_> {
        match self {
            Self::I32(values) => ColumnValues::I32(values),
            Self::F32(values) => ColumnValues::F32(values),
            Self::Text(text) => ColumnValues::Text(&**text),
            Self::Other(name) => ColumnValues::Other(name),
            Self::Timestamp(array, unit) => ColumnValues::Timestamp(timestamps(array), *unit),
            Self::Primitive(array) => match array.data_type() {
                DataType::Int32 => ColumnValues::I32(primitive::<Int32Type>(array)),
                DataType::Int64 => ColumnValues::I64(primitive::<Int64Type>(array)),
                DataType::UInt32 => ColumnValues::U32(primitive::<UInt32Type>(array)),
                DataType::UInt64 => ColumnValues::U64(primitive::<UInt64Type>(array)),
                DataType::Float32 => ColumnValues::F32(primitive::<Float32Type>(array)),
                DataType::Date32 => ColumnValues::Days(primitive::<Date32Type>(array)),
                _ => ColumnValues::F64(primitive::<Float64Type>(array)),
            },
        }
    }
}

fn primitive<T: ArrowPrimitiveType>(array: &ArrayRef) -> &[T::Native] {
    array.as_primitive::<T>().values()
}

fn timestamps(array: &ArrayRef) -> &[i64] {
    match array.data_type() {
        DataType::Timestamp(Resolution::Second, _) => primitive::<TimestampSecondType>(array),
        DataType::Timestamp(Resolution::Millisecond, _) => primitive::<TimestampMillisecondType>(array),
        DataType::Timestamp(Resolution::Microsecond, _) => primitive::<TimestampMicrosecondType>(array),
        DataType::Timestamp(Resolution::Nanosecond, _) => primitive::<TimestampNanosecondType>(array),
        _ => primitive::<Date64Type>(array),
    }
}

/// An array of text in one of its three forms.
struct Texts(ArrayRef);

impl TextColumn for Texts {
    fn text(&self, row: usize) -> &[u8] {
        match self.0.data_type() {
            DataType::Utf8 => self.0.as_string::<i32>().value(row),
            DataType::LargeUtf8 => self.0.as_string::<i64>().value(row),
            _ => self.0.as_string_view().value(row),
        }
        .as_bytes()
    }
}

/// Text by its number in a dictionary.
struct DictionaryTexts {
    keys: Vec<usize>,
    values: Texts,
}

impl TextColumn for DictionaryTexts {
    fn text(&self, row: usize) -> &[u8] {
        self.values.text(self.keys[row])
    }
}
