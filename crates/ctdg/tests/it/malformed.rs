//! One small file per defect, each with the whole text of its error.

use std::path::PathBuf;

use ctdg::dataset::{ColumnRef, Format, ReadOptions, read};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/malformed")
}

/// Reads `file` and compares the error, with the folder taken out of it.
fn check_with(file: &str, options: &ReadOptions, expected: &str) {
    let error = read(&folder().join(file), options).expect_err(file).to_string();
    let error = error.replace(&format!("{}/", folder().display()), "");
    assert_eq!(error, expected, "{file}");
}

fn check(file: &str, expected: &str) {
    check_with(file, &ReadOptions::default(), expected);
}

#[test]
fn missing_columns_and_rows_are_refused() {
    check(
        "missing-column.csv",
        r#"missing-column.csv, line 1: found no time column among "src", "dst", "when", expected one of "time", "timestamp", "ts", "t", "unixts", "day", "date", "datetime"; name the source, destination and time columns (by name or by position from 1), or read without a header"#,
    );
    check(
        "duplicate-column.csv",
        r#"duplicate-column.csv, line 1: found the column "time" twice, expected it once; rename one, or choose columns by position"#,
    );
    check("short-row.csv", "short-row.csv, line 3: found 2 fields, expected 3; make every row equally long");
    check(
        "empty.csv",
        "empty.csv: found no events, expected at least one; check that the right file and columns were given",
    );
    check(
        "header-only.csv",
        "header-only.csv: found no events, expected at least one; check that the right file and columns were given",
    );
    check(
        "missing-column.parquet",
        r#"missing-column.parquet: found no source column among "a", "b", expected one of "src", "source", "u", "user_id", "user", "from", "sender", "src_id", "source_id"; name the source, destination and time columns (by name or by position from 1), or read without a header"#,
    );
}

#[test]
fn values_that_are_not_numbers_are_refused() {
    check(
        "not-a-number.csv",
        r#"not-a-number.csv, line 3, column 3 (time): found "noon", expected a number or a date such as 2024-01-31T12:00:00Z; correct the value, or choose other columns"#,
    );
    check(
        "nan-time.csv",
        r#"nan-time.csv, line 3, column 3 (time): found the time "nan", expected a finite number; correct the value, or choose other columns"#,
    );
    check(
        "infinite-time.csv",
        r#"infinite-time.csv, line 2, column 3 (time): found the time "inf", expected a finite number; correct the value, or choose other columns"#,
    );
    check(
        "infinite-feature.csv",
        "infinite-feature.csv, line 3, column 4 (feat_0): found inf, expected a finite number; correct the value, or choose other columns",
    );
    check(
        "label.csv",
        r#"label.csv, line 2, column 4 (label): found "x", expected a number; correct the value, or choose other columns"#,
    );
    check(
        "text-time.parquet",
        "text-time.parquet, row 0, column 3 (time): found values of type text, expected numbers or dates such as 2024-01-31T12:00:00Z; correct the value, or choose other columns",
    );
    check(
        "nan-time.ctdg",
        "nan-time.ctdg, row 0: found the time NaN, expected a finite number; correct the value, or choose other columns",
    );
}

#[test]
fn times_that_go_backwards_are_refused() {
    check(
        "time-backwards.csv",
        "time-backwards.csv, line 3, column 3 (time): found the time 2.5 after 3, expected times that never go backwards; sort the events by time, or read with sorting on",
    );
}

#[test]
fn ids_out_of_range_are_refused() {
    check(
        "negative-id.csv",
        "negative-id.csv, line 3, column 2 (dst): found the negative node id -5, expected an integer of at least 0; read the ids as text",
    );
    check(
        "text-id.csv",
        r#"text-id.csv, line 3, column 1 (src): found "alice", expected an integer node id; read the ids as text"#,
    );
    check(
        "id-overflow.csv",
        "id-overflow.csv, line 2, column 2 (dst): found the node id 99999999999999999999, expected at most 18446744073709551615; read the ids as text",
    );
    check(
        "negative-id.parquet",
        "negative-id.parquet, row 1, column 1 (src): found the negative node id -4, expected an integer of at least 0; read the ids as text",
    );
    check(
        "float-id.parquet",
        "float-id.parquet, row 0, column 1 (src): found values of type floats, expected integers or text; correct the value, or choose other columns",
    );
    check(
        "node-out-of-range.ctdg",
        "node-out-of-range.ctdg: found damaged event data (node 7 of 2), expected a sound file; fetch or copy the file again",
    );
}

#[test]
fn mismatched_features_are_refused() {
    check(
        "feature-rows.csv",
        "feature-rows_features.npy: found 2 feature rows, expected 3, one for each of the events; make the feature file again from the same events",
    );
    check(
        "feature-width.csv",
        "feature-width.csv, line 3: found 1 features, expected 2 as in the first row; make every row equally long",
    );
    check(
        "feature-type.csv",
        "feature-type_features.npy: found values of type <U1, expected little-endian floats or integers; correct the value, or choose other columns",
    );
    check(
        "feature-nan.csv",
        "feature-nan_features.npy, row 1: found NaN, expected a finite number; correct the value, or choose other columns",
    );
    check(
        "feature-truncated.csv",
        "feature-truncated_features.npy: found the end of the npy data too early, expected more of it; the file was cut off; fetch or copy it again",
    );
    check(
        "feature-garbage.csv",
        "feature-garbage_features.npy: found another kind of file, expected a NumPy .npy file",
    );
    check(
        "node-rows.csv",
        "node-rows_node_features.npy: found 9 feature rows, expected 3, one for each of the nodes; make the feature file again from the same events",
    );
}

#[test]
fn truncated_and_damaged_files_are_refused() {
    check(
        "truncated.csv.gz",
        "truncated.csv.gz: found the end of the gzip data too early, expected more of it; the file was cut off; fetch or copy it again",
    );
    check(
        "corrupt.csv.gz",
        "corrupt.csv.gz: found damaged gzip data (corrupt gzip stream does not have a matching checksum), expected a sound file; fetch or copy the file again",
    );
    check(
        "truncated.csv.zst",
        "truncated.csv.zst: found the end of the zstd data too early, expected more of it; the file was cut off; fetch or copy it again",
    );
    check(
        "corrupt.csv.zst",
        "corrupt.csv.zst: found damaged zstd data (Unsupported frame parameter), expected a sound file; fetch or copy the file again",
    );
    check(
        "truncated.parquet",
        "truncated.parquet: found damaged Parquet data (Parquet error: Invalid Parquet file. Corrupt footer), expected a sound file; fetch or copy the file again",
    );
    check(
        "truncated.ctdg",
        "truncated.ctdg: found the end of the ctdg data too early, expected more of it; the file was cut off; fetch or copy it again",
    );
    check(
        "cut-columns.ctdg",
        "cut-columns.ctdg: found the end of the ctdg data too early, expected more of it; the file was cut off; fetch or copy it again",
    );
    check(
        "version.ctdg",
        "version.ctdg: found version 9 of the format, expected 2; convert the original file again with this version",
    );
    check(
        "absurd.ctdg",
        "absurd.ctdg: found damaged ctdg data (absurd counts), expected a sound file; fetch or copy the file again",
    );
}

#[test]
fn inconsistent_binary_files_are_refused() {
    check(
        "wrong-side.ctdg",
        "wrong-side.ctdg: found damaged event data (node 1 as a source, though it is a destination), expected a sound file; fetch or copy the file again",
    );
    for (file, detail) in [
        ("unsorted-names.ctdg", "node names"),
        ("repeated-name.ctdg", "node names"),
        ("time-format.ctdg", "the form of its times"),
    ] {
        let expected =
            format!("{file}: found damaged ctdg data ({detail}), expected a sound file; fetch or copy the file again");
        check(file, &expected);
    }
}

#[test]
fn bytes_that_are_not_utf8_are_refused() {
    check(
        "non-utf8.csv",
        "non-utf8.csv, line 3, column 1 (src): found bytes that are not UTF-8, expected text; save the file as UTF-8",
    );
    check(
        "non-utf8-header.csv",
        "non-utf8-header.csv, line 1: found bytes that are not UTF-8, expected text; save the file as UTF-8",
    );
}

#[test]
fn parquet_nulls_and_lists_are_refused() {
    check(
        "null.parquet",
        "null.parquet, row 2, column 1 (src): found no value, expected one in every row; drop the rows without a value, or fill them in",
    );
    check(
        "list.parquet",
        r#"list.parquet: found no source column among "src.list.element", "dst", "time", expected one of "src", "source", "u", "user_id", "user", "from", "sender", "src_id", "source_id"; name the source, destination and time columns (by name or by position from 1), or read without a header"#,
    );
}

#[test]
fn remedies_resolve_their_errors() {
    let read = |file: &str, options: ReadOptions| read(&folder().join(file), &options).expect(file);
    let text = ReadOptions { ids: ctdg::event::IdKind::Text, ..ReadOptions::default() };
    for file in ["negative-id.csv", "text-id.csv", "id-overflow.csv"] {
        assert!(read(file, text.clone()).names().is_text());
    }
    let sorted = read("time-backwards.csv", ReadOptions { sort: true, ..ReadOptions::default() });
    assert_eq!(sorted.times(), [2.5, 3.0]);
    let by_position = ReadOptions { time: Some(ColumnRef::Position(3)), ..ReadOptions::default() };
    assert_eq!(read("missing-column.csv", by_position.clone()).len(), 1);
    assert_eq!(read("duplicate-column.csv", by_position).times(), [3.0]);
}

#[test]
fn missing_chosen_column_is_named() {
    let options = ReadOptions { src: Some(ColumnRef::Name("sender".into())), ..ReadOptions::default() };
    check_with(
        "time-backwards.csv",
        &options,
        r#"time-backwards.csv, line 1: found no source column among "src", "dst", "time", expected one of "sender"; name the source, destination and time columns (by name or by position from 1), or read without a header"#,
    );
    let options = ReadOptions { format: Format::Binary, ..ReadOptions::default() };
    check_with("header-only.csv", &options, "header-only.csv: found another kind of file, expected a .ctdg file");
}
