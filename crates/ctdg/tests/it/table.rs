//! Tables of any columns: every type of Parquet as text, damage, and round trips.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use ctdg::dataset::{
    ColumnRef, PairColumns, ReadOptions, TableColumn, TableReader, TableRow, TableValues, WriteFormat, write_table,
};
use ctdg::time::TimeFormat;
use parquet::data_type::{BoolType, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;

type Row = Vec<String>;

/// The column names, if the format has them, and all rows.
fn rows(path: &Path) -> ctdg::Result<(Option<Row>, Vec<Row>)> {
    let mut reader = TableReader::open(path, None)?;
    let names = reader.names().map(<[String]>::to_vec);
    let (mut row, mut rows) = (TableRow::default(), Vec::new());
    while reader.next(&mut row)? {
        rows.push(row.iter().map(str::to_owned).collect());
    }
    Ok((names, rows))
}

/// A file with a column of each kind, and nothing where a value is missing.
fn write_parquet(path: &Path) {
    let schema = "message table {
        required int64 id;
        optional byte_array name (utf8);
        required boolean is_new;
        required double price;
        required int64 millis (timestamp_millis);
        required int64 nanos (timestamp(nanos, true));
        required int32 day (date);
    }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut file = SerializedFileWriter::new(File::create(path).unwrap(), schema, Arc::default()).unwrap();
    let mut group = file.next_row_group().unwrap();
    macro_rules! column {
        ($type:ty, $values:expr, $levels:expr) => {
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<$type>().write_batch(&$values, $levels, None).unwrap();
            column.close().unwrap();
        };
    }
    column!(Int64Type, [7, -8], None);
    column!(ByteArrayType, ["Zoë".into()], Some(&[1, 0]));
    column!(BoolType, [true, false], None);
    column!(DoubleType, [0.1, 42.0], None);
    column!(Int64Type, [1_706_702_400_125, 0], None);
    column!(Int64Type, [1_706_702_400_000_001_000, 0], None);
    column!(Int32Type, [19_753, 0], None);
    group.close().unwrap();
    file.close().unwrap();
}

#[test]
fn every_type_of_parquet_is_read_as_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("all.parquet");
    write_parquet(&path);
    let (names, rows) = rows(&path).unwrap();
    assert_eq!(names.unwrap(), ["id", "name", "is_new", "price", "millis", "nanos", "day"]);
    let first = "7|Zoë|true|0.1|2024-01-31 12:00:00.125|2024-01-31 12:00:00.000001|2024-01-31 00:00:00";
    let second = "-8||false|42|1970-01-01 00:00:00|1970-01-01 00:00:00|1970-01-01 00:00:00";
    assert_eq!(rows.iter().map(|row| row.join("|")).collect::<Vec<_>>(), [first, second]);
}

#[test]
fn damaged_parquet_is_an_error_and_not_a_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("all.parquet");
    write_parquet(&path);
    let sound = std::fs::read(&path).unwrap();
    for at in 4..sound.len() {
        let mut damaged = sound.clone();
        damaged[at] ^= 0x55;
        std::fs::write(&path, &damaged).unwrap();
        if let Err(error) = rows(&path) {
            assert!(error.to_string().contains("all.parquet"), "{error}");
        }
    }
    std::fs::write(&path, &sound[..sound.len() / 2]).unwrap();
    assert!(rows(&path).is_err());
}

#[test]
fn text_that_is_not_utf8_is_refused_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("latin1.csv");
    std::fs::write(&path, b"ann,1\nZo\xeb,2\n").unwrap();
    let message = rows(&path).unwrap_err().to_string();
    assert!(
        message.ends_with("latin1.csv, line 2: found bytes that are not UTF-8, expected text; save the file as UTF-8"),
        "{message}"
    );
}

#[test]
fn rows_know_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    std::fs::write(&path, "\u{feff}a,b\n\"x\ny\",1\n\nz,2\n").unwrap();
    let (mut reader, mut row) = (TableReader::open(&path, None).unwrap(), TableRow::default());
    let mut places = Vec::new();
    while reader.next(&mut row).unwrap() {
        places.push((row.get(0).unwrap().to_owned(), reader.place(&row).line.unwrap()));
    }
    assert_eq!(places, [("a".to_owned(), 1), ("x\ny".to_owned(), 2), ("z".to_owned(), 5)]);
}

#[test]
fn a_table_is_not_written_as_events() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.ctdg");
    let error = write_table(&path, WriteFormat::Binary, 0, &[]).unwrap_err();
    assert!(
        error.to_string().ends_with("expected a name ending in .csv, .tsv (or these with .gz or .zst) or .parquet"),
        "{error}"
    );
    assert!(!path.exists());
}

#[test]
fn roles_on_one_column_and_names_that_occur_twice_are_refused() {
    let names = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
    let find = |text: &str| PairColumns::of_names(&names(text), &ReadOptions::default());
    assert!(find("src,src,dst").unwrap_err().to_string().contains("found the column \"src\" twice"));
    assert_eq!(find("src,dst,note,note").unwrap(), PairColumns { src: 0, dst: 1, time: None });
    let options = ReadOptions { src: Some("dst".into()), ..ReadOptions::default() };
    let error = PairColumns::of_names(&names("dst,x"), &options).unwrap_err();
    assert!(error.to_string().contains("found the column \"dst\" twice"), "{error}");
    let chosen = [ColumnRef::Position(2), ColumnRef::Position(4)];
    let error = PairColumns::of_chosen(&chosen, None, 3).unwrap_err();
    assert!(error.to_string().contains("found no destination column among 3 columns without names"), "{error}");
    assert!(PairColumns::are_named_in(&names("when,sender,TO"), &ReadOptions::default()));
    assert!(!PairColumns::are_named_in(&names("sender,ann,bob"), &ReadOptions::default()), "one name may be an id");
}

proptest! {
    #[test]
    fn any_bytes_are_rows_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200), magic in 0usize..4) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.csv");
        let head: &[u8] = [&b""[..], b"PAR1", b"\x1f\x8b", b"\x28\xb5\x2f\xfd"][magic];
        std::fs::write(&path, [head, &bytes].concat()).unwrap();
        if let Ok((_, rows)) = rows(&path) {
            prop_assert!(rows.iter().all(|row| !row.is_empty()));
        }
    }

    #[test]
    fn written_tables_are_read_back(
        cells in prop::collection::vec(("[ -~éß\n\t\",;]{0,8}", any::<i64>(), any::<f32>(), 0u32..1_000_000), 1..20),
        format in 0usize..5,
        dates: bool,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(["a.csv", "a.tsv", "a.csv.gz", "a.tsv.zst", "a.parquet"][format]);
        let time_format = if dates { TimeFormat::Date } else { TimeFormat::Number };
        let time = |row: usize| f64::from(cells[row].3) / 8.0;
        let columns = [
            TableColumn { name: "first".into(), values: TableValues::Integers(Box::new(|row| cells[row].1)) },
            TableColumn { name: "text, \"quoted\"".into(), values: TableValues::Text(Box::new(|row| cells[row].0.as_str().into())) },
            TableColumn { name: "number".into(), values: TableValues::Floats(Box::new(|row| cells[row].2)) },
            TableColumn { name: "time".into(), values: TableValues::Times(time_format, Box::new(time)) },
        ];
        write_table(&path, WriteFormat::of_path(&path).unwrap(), cells.len(), &columns).unwrap();
        let (names, mut rows) = rows(&path).unwrap();
        let names = names.unwrap_or_else(|| rows.remove(0));
        prop_assert_eq!(names, ["first", "text, \"quoted\"", "number", "time"]);
        prop_assert_eq!(rows.len(), cells.len());
        for (row, fields) in rows.iter().enumerate() {
            let (text, integer, number, _) = &cells[row];
            prop_assert_eq!(&fields[0], &integer.to_string());
            prop_assert_eq!(&fields[1], text);
            let back: f32 = fields[2].parse().unwrap();
            prop_assert!(back.to_bits() == number.to_bits() || (back.is_nan() && number.is_nan()), "{} {}", back, number);
            prop_assert_eq!(time_format.parse(&fields[3]), Some(time(row)));
        }
    }
}
