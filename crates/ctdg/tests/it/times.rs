//! Times as dates, as Unix times of a unit, and as integers beyond what `f64` holds.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use ctdg::dataset::{ColumnRef, ReadOptions, TimeUnit, WriteFormat, read, write};
use ctdg::event::{EventStream, IdKind, StreamBuilder};
use ctdg::time::{TimeFormat, parse_date};
use ctdg::{Problem, Result};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;

fn parse_with(text: &str, options: &ReadOptions) -> Result<EventStream> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.csv");
    std::fs::write(&path, text).unwrap();
    read(&path, options)
}

fn parse(text: &str) -> Result<EventStream> {
    parse_with(text, &ReadOptions::default())
}

/// The message without the file's name.
#[track_caller]
fn refused(text: &str, options: &ReadOptions) -> String {
    let message = parse_with(text, options).unwrap_err().to_string();
    message.split_once("x.csv").map_or(message.clone(), |(_, rest)| rest.trim_start_matches([',', ':', ' ']).to_owned())
}

fn with_unit(unit: TimeUnit) -> ReadOptions {
    ReadOptions { time_unit: Some(unit), ..ReadOptions::default() }
}

/// A Parquet file of `src`, `dst` and a time of the given type.
fn write_parquet<T: DataType>(path: &Path, time: &str, times: &[T::T]) {
    let schema = format!("message events {{ required int32 src; required int32 dst; required {time}; }}");
    let schema = Arc::new(parse_message_type(&schema).unwrap());
    let properties = Arc::new(WriterProperties::builder().build());
    let mut file = SerializedFileWriter::new(File::create(path).unwrap(), schema, properties).unwrap();
    let mut group = file.next_row_group().unwrap();
    let ids: Vec<i32> = (0..).take(times.len()).collect();
    for _ in 0..2 {
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<parquet::data_type::Int32Type>().write_batch(&ids, None, None).unwrap();
        column.close().unwrap();
    }
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<T>().write_batch(times, None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    file.close().unwrap();
}

fn read_parquet<T: DataType>(time: &str, times: &[T::T], options: &ReadOptions) -> Result<EventStream> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    write_parquet::<T>(&path, time, times);
    read(&path, options)
}

#[test]
fn dates_of_every_form_are_times_in_seconds() {
    let text = "src,dst,time\na,b,2024-01-31\na,b,2024-01-31 12:00\na,c,2024-01-31T13:00:00.123+01:00\n\
                b,c,2024-01-31T12:00:01Z\n";
    let stream = parse(text).unwrap();
    assert_eq!(stream.times(), [1_706_659_200.0, 1_706_702_400.0, 1_706_702_400.123, 1_706_702_401.0]);
    assert_eq!(stream.time_format(), TimeFormat::Date);
    let tabs = text.replace(',', "\t").replace("src\tdst\ttime\n", "");
    assert_eq!(parse(&tabs).unwrap(), stream, "the blank of a date separates no fields");
    assert_eq!(parse("a,b,5\n").unwrap().time_format(), TimeFormat::Number);
}

#[test]
fn a_date_column_is_found_without_name_and_position() {
    for text in [
        "who,whom,when\na,b,2024-01-31\n",
        "src,dst,when,note\na,b,2024-01-31,x\n",
        "date,src,dst\n2024-01-31,a,b\n",
        "2024-01-31,a,b\n",
        "a,2024-01-31T00:00,b\n",
        "a,b,x,2024-01-31\n",
    ] {
        let mut options = ReadOptions::default();
        if text.starts_with("who") {
            (options.src, options.dst) = (Some(ColumnRef::Position(1)), Some(ColumnRef::Position(2)));
        }
        let stream = parse_with(text, &options).expect(text);
        assert_eq!((stream.times(), stream.len()), (&[1_706_659_200.0][..], 1), "{text}");
        assert_eq!(stream.names().name(stream.src()[0]), "a", "{text}");
    }
    let two = refused("src,dst,born,died\na,b,2024-01-31,2024-02-01\n", &ReadOptions::default());
    assert!(two.starts_with("line 1: found no time column among"), "{two}");
}

#[test]
fn columns_of_numbers_and_dates_are_refused_with_line_and_both_kinds() {
    for (text, expected) in [
        (
            "src,dst,time\n1,2,5\n1,2,2024-01-31\n",
            "line 3, column 3 (time): found the date \"2024-01-31\", expected a number as in the first row; \
             write all times as numbers, or all as dates",
        ),
        (
            "src,dst,time\n1,2,2024-01-31\n1,2,5\n",
            "line 3, column 3 (time): found the number \"5\", expected a date as in the first row; \
             write all times as numbers, or all as dates",
        ),
        (
            "src,dst,time\n1,2,2024-01-31\n1,2,2023-02-29\n",
            "line 3, column 3 (time): found \"2023-02-29\", expected a date that exists; \
             correct the value, or choose other columns",
        ),
        (
            "1,2,2024-13-01\n",
            "line 1, column 3: found \"2024-13-01\", expected a date that exists; \
             correct the value, or choose other columns",
        ),
        (
            "src,dst,time\n1,2,2024-01-31\n1,2,2024-01-31 12:00:00.1234567\n",
            "line 3, column 3 (time): found \"2024-01-31 12:00:00.1234567\", expected a date of at most microseconds; \
             correct the value, or choose other columns",
        ),
        (
            "src,dst,time\n1,2,2024-01-31 12:00\n1,2,2024-01-30\n",
            "line 3, column 3 (time): found the date 2024-01-30 00:00:00 after 2024-01-31 12:00:00, \
             expected times that never go backwards; sort the events by time, or read with sorting on",
        ),
        (
            "a b 2024-01-31 12:00\n",
            "line 1, column 3: found the date \"2024-01-31\" and the clock time \"12:00\" in two fields, \
             expected one field for the time; put a T between date and clock time, or quote both together",
        ),
    ] {
        assert_eq!(refused(text, &ReadOptions::default()), expected, "{text}");
    }
}

#[test]
fn integers_beyond_what_a_float_holds_are_refused() {
    let refusal = refused("src,dst,time\n1,2,1700000000123456789\n", &ReadOptions::default());
    assert_eq!(
        refusal,
        "line 2, column 3 (time): found the time 1700000000123456789, which would be rounded to 1700000000123456768, \
         expected one that a 64-bit float holds exactly; declare the unit if these are Unix times; otherwise subtract a \
         first time, or divide"
    );
    let exact = parse("1,2,9007199254740992\n1,2,9007199254740994\n1,2,1700000000123456768\n").unwrap();
    assert_eq!(exact.times(), [9_007_199_254_740_992.0, 9_007_199_254_740_994.0, 1_700_000_000_123_456_768.0]);

    let nanos = [1_700_000_000_123_456_789, 1_700_000_000_123_457_789_i64];
    let error = read_parquet::<Int64Type>("int64 time", &nanos, &ReadOptions::default()).unwrap_err();
    assert!(matches!(error.problem(), Problem::InexactTime { .. }), "{error}");
    assert_eq!((error.place().row, error.place().column), (Some(0), Some(3)));
    let unit = with_unit(TimeUnit::Ns);
    let stream = read_parquet::<Int64Type>("int64 time", &nanos, &unit).unwrap();
    assert_eq!(stream.times(), [1_700_000_000.123_457, 1_700_000_000.123_458]);
    assert_eq!(stream.time_format().show(stream.times()[1]), "2023-11-14 22:13:20.123458");
}

#[test]
fn unix_times_of_a_unit_are_dates() {
    for (unit, time) in [
        (TimeUnit::S, "1706702400.125"),
        (TimeUnit::Ms, "1706702400125"),
        (TimeUnit::Us, "1706702400125000"),
        (TimeUnit::Ns, "1706702400125000000"),
    ] {
        let stream = parse_with(&format!("1,2,{time}\n"), &with_unit(unit)).unwrap();
        assert_eq!((stream.times(), stream.time_format()), (&[1_706_702_400.125][..], TimeFormat::Date), "{unit:?}");
    }
    let late = refused("1,2,1706702400125\n", &with_unit(TimeUnit::S));
    assert!(late.contains("expected seconds since 1970 that give a date between the years 1 and 9999"), "{late}");
    let dates = refused("1,2,2024-01-31\n", &with_unit(TimeUnit::S));
    assert!(dates.contains("found time-unit = seconds, expected no unit, because the column holds dates"), "{dates}");
    let infinite = refused("1,2,inf\n", &with_unit(TimeUnit::Ms));
    assert!(infinite.contains("found the time \"inf\", expected a finite number"), "{infinite}");

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ctdg");
    write(&parse("1,2,1706702400125\n").unwrap(), &path, WriteFormat::Binary).unwrap();
    let stream = read(&path, &with_unit(TimeUnit::Ms)).unwrap();
    assert_eq!((stream.times(), stream.time_format()), (&[1_706_702_400.125][..], TimeFormat::Date));
}

#[test]
fn parquet_timestamps_and_text_are_dates() {
    let micros = [1_706_702_400_125_000_i64, 1_706_702_400_125_001];
    for (time, times) in [
        ("int64 t (TIMESTAMP(MICROS,true))", micros),
        ("int64 t (TIMESTAMP(NANOS,false))", micros.map(|micros| micros * 1000)),
    ] {
        let stream = read_parquet::<Int64Type>(time, &times, &ReadOptions::default()).unwrap();
        assert_eq!(stream.times(), [1_706_702_400.125, 1_706_702_400.125_001], "{time}");
        assert_eq!(stream.time_format(), TimeFormat::Date);
        let error = read_parquet::<Int64Type>(time, &times, &with_unit(TimeUnit::Ms)).unwrap_err();
        assert!(error.to_string().contains("because the column holds dates"), "{error}");
    }
    let unnamed = read_parquet::<Int64Type>("int64 seen (TIMESTAMP(MICROS,true))", &micros, &ReadOptions::default());
    assert_eq!(unnamed.unwrap().len(), 2, "the only column of dates is the time");
    let text = |values: [&str; 2]| values.map(|value| ByteArray::from(value.as_bytes().to_vec()));
    let read_text = |values| read_parquet::<ByteArrayType>("binary t (STRING)", &text(values), &ReadOptions::default());
    let stream = read_text(["2024-01-31", "2024-01-31T12:00:00Z"]).unwrap();
    assert_eq!((stream.times(), stream.time_format()), (&[1_706_659_200.0, 1_706_702_400.0][..], TimeFormat::Date));
    let error = read_text(["2024-01-31", "2024-02-30"]).unwrap_err().to_string();
    assert!(error.contains("row 1, column 3 (t): found \"2024-02-30\", expected a date that exists"), "{error}");
}

fn dated(micros: &[i64]) -> EventStream {
    let mut builder = StreamBuilder::new(IdKind::Integer, false, true);
    builder.set_time_format(TimeFormat::Date);
    for &micros in micros {
        let seconds = micros as f64 / 1e6;
        builder.push(b"1", b"2", seconds, 0.0).unwrap();
    }
    builder.finish(None).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn dates_survive_every_format_bit_by_bit(
        micros in prop::collection::vec(-2_000_000_000_000_000_i64..4_000_000_000_000_000, 1..20),
    ) {
        let stream = dated(&micros);
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.csv", "b.tsv.gz", "c.parquet", "d.ctdg"] {
            let path = folder.path().join(name);
            write(&stream, &path, WriteFormat::of_path(&path).unwrap()).unwrap();
            let found = read(&path, &ReadOptions::default()).unwrap();
            prop_assert_eq!(&found, &stream, "{}", name);
            prop_assert!(found.times().iter().zip(stream.times()).all(|(a, b)| a.to_bits() == b.to_bits()));
        }
    }
}

#[test]
fn dates_finer_than_text_are_written_as_numbers_and_keep_their_bits() {
    let mut columns = dated(&[1]).into_columns();
    columns.time = vec![1.0 / 3.0].into();
    let stream = EventStream::new(columns).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (name, format) in [("a.csv", TimeFormat::Number), ("b.parquet", TimeFormat::Date), ("c.ctdg", TimeFormat::Date)]
    {
        let path = folder.path().join(name);
        write(&stream, &path, WriteFormat::of_path(&path).unwrap()).unwrap();
        let found = read(&path, &ReadOptions::default()).unwrap();
        assert_eq!((found.times(), found.time_format()), (&[1.0 / 3.0][..], format), "{name}");
    }
}

#[test]
fn written_dates_are_iso_8601_in_utc() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    write(&dated(&[1_706_702_400_125_000]), &path, WriteFormat::Text(b',')).unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    assert_eq!(text, "src,dst,time,label\n1,2,2024-01-31T12:00:00.125Z,0\n");
    assert_eq!(parse_date("2024-01-31T12:00:00.125Z"), Ok(1_706_702_400.125));
}
