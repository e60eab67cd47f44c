//! Line numbers in errors, delimiters that are not recognised, duplicates, unused columns, many columns.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use ctdg::dataset::{FeatureColumns, ReadOptions, ReadReport, UnusedReason, read, read_with_report};
use ctdg::error::Remedy;
use ctdg::event::EventStream;
use ctdg::{Error, Result};

fn parse(text: &str, options: &ReadOptions) -> Result<EventStream> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.csv");
    std::fs::write(&path, text).unwrap();
    read(&path, options)
}

fn error(text: &str) -> Error {
    parse(text, &ReadOptions::default()).unwrap_err()
}

#[test]
fn line_numbers_are_those_of_an_editor() {
    // The bad row is the one with `x` as its time.
    for (text, line) in [
        ("src,dst,time\n1,2,3\n1,2,x\n1,2,4\n", 3),
        ("src,dst,time\r\n1,2,3\r\n1,2,x\r\n1,2,4\r\n", 3),
        ("src,dst,time\r\n1,2,3\r\n1,2,x", 3),
        ("src,dst,time\n1,2,3\n1,2,x", 3),
        ("src,dst,time\r\n1,2,3\n1,2,4\r\n1,2,x\n", 4),
        ("src,dst,time\n\n\n1,2,3\n\n1,2,x\n", 6),
        ("src,dst,time\r\n\r\n\r\n1,2,3\r\n\r\n1,2,x\r\n", 6),
        ("# a\n# b\nsrc,dst,time\n1,2,3\n# c\n1,2,x\n", 6),
        ("\u{feff}src,dst,time\r\n1,2,x\r\n", 2),
        ("src,dst,time\n\"a\nb\",c,1\na,c,x\n", 4),
        ("src,dst,time\r\n\"a\r\nb\",c,1\r\n\"a\r\n\r\nc\",c,x\r\n", 4),
        ("src dst time\n1  2\t3\n  1 2   x\n", 3),
        ("src dst time\r\n1  2 3 \r\n  1 2   x \r\n", 3),
    ] {
        assert_eq!(error(text).place().line, Some(line), "{text:?}");
    }
}

#[test]
fn line_numbers_are_right_far_into_a_file() {
    for end in ["\n", "\r\n"] {
        let mut text = format!("src,dst,time{end}");
        (0..40_000).for_each(|i| write!(text, "{i},{},{i}{end}", i + 1).unwrap());
        text.extend(["1,2,x", end]);
        assert_eq!(error(&text).place().line, Some(40_002), "{end:?}");
    }
}

#[test]
fn a_delimiter_that_is_not_recognised_is_named() {
    for (text, guess) in [
        ("src|dst|time\n1|2|3\n", Some('|')),
        ("1|2|3\n", Some('|')),
        ("src:dst:time\n1:2:3\n", Some(':')),
        ("source name|target name|time\na b|c d|3\n", Some('|')),
        ("hello\nworld\n", None),
    ] {
        let error = error(text);
        assert_eq!(error.remedy(), Some(Remedy::NameDelimiter(guess)), "{error}");
        assert_eq!(error.place().line, Some(1));
        if let Some(guess) = guess {
            let delimiter = Some(u8::try_from(guess).unwrap());
            let stream =
                parse(text, &ReadOptions { delimiter, ids: ctdg::event::IdKind::Text, ..by_position() }).unwrap();
            assert_eq!(stream.times(), [3.0], "the remedy helps: {text:?}");
        }
    }
    let other = error("who_is,whom_to,when_at\n1,2,3\n");
    assert_eq!(other.remedy(), Some(Remedy::NameColumns), "{other}");
}

fn by_position() -> ReadOptions {
    let at = |position| Some(ctdg::dataset::ColumnRef::Position(position));
    ReadOptions { src: at(1), dst: at(2), time: at(3), ..ReadOptions::default() }
}

fn loaded(path: &Path, options: &ReadOptions) -> (EventStream, ReadReport) {
    read_with_report(path, options, &|_, _| ()).unwrap()
}

#[test]
fn repeated_events_are_dropped_on_demand() {
    let text = "src,dst,time,label,feat\n1,2,5,0,1\n1,2,5,0,1\n1,2,5,1,1\n1,2,5,0,2\n2,1,5,0,1\n1,2,6,0,1\n1,2,6,0,1\n";
    let folder = tempfile::tempdir().unwrap();
    for name in ["x.csv", "x.ctdg", "x.parquet"] {
        let path = folder.path().join(name);
        if name == "x.csv" {
            std::fs::write(&path, text).unwrap();
        } else {
            let stream = read(&folder.path().join("x.csv"), &ReadOptions::default()).unwrap();
            ctdg::dataset::write(&stream, &path, ctdg::dataset::WriteFormat::of_path(&path).unwrap()).unwrap();
        }
        let (stream, report) = loaded(&path, &ReadOptions { dedup: true, ..ReadOptions::default() });
        assert_eq!((stream.len(), report.n_duplicates), (5, 2), "{name}");
        assert_eq!(stream.edge_features().unwrap().values(), [1.0, 1.0, 2.0, 1.0, 1.0]);
        assert_eq!(loaded(&path, &ReadOptions::default()).0.len(), 7);
    }
}

#[test]
fn unused_columns_are_reported_and_numeric_ones_kept_on_demand() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.csv");
    let text = "src,dst,time,amount,note,feat_a,rate\n1,2,9,3.5,hi,7,1\n2,3,8,4.5,ho,8,n/a\n";
    std::fs::write(&path, text).unwrap();
    let sort = ReadOptions { sort: true, ..ReadOptions::default() };
    let (stream, report) = loaded(&path, &sort);
    let names: Vec<_> = report.unused_columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["amount", "note", "rate"]);
    assert_eq!(stream.edge_features().unwrap().values(), [8.0, 7.0]);

    let numeric = ReadOptions { features: FeatureColumns::Numeric, ..sort.clone() };
    let (stream, report) = loaded(&path, &numeric);
    assert_eq!(stream.edge_features().unwrap().values(), [8.0, 4.5, 7.0, 3.5]);
    let shown: Vec<_> = report.unused_columns.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["note (not numbers: \"hi\" in line 2)", "rate (not numbers: \"n/a\" in line 3)"]);
    assert!(matches!(report.unused_columns[0].reason, UnusedReason::NotNumeric { .. }));

    // A sidecar is unused beside feature columns, and kept on demand.
    let plain = EventStream::from_events([(0, 1, 1.0), (1, 2, 2.0)]).unwrap();
    let mut columns = plain.into_columns();
    columns.node_features = Some(ctdg::event::Features::new(1, vec![10.0, 20.0, 30.0]).unwrap());
    let with_nodes = EventStream::new(columns).unwrap();
    let other = folder.path().join("y.csv");
    ctdg::dataset::write(&with_nodes, &other, ctdg::dataset::WriteFormat::Text(b',')).unwrap();
    let npy = std::fs::read(folder.path().join("y_node_features.npy")).unwrap();
    let two_rows = String::from_utf8_lossy(&npy[..128]).contains("(3, 1)");
    assert!(two_rows, "three rows, one for each node");
    let three = "src,dst,time,amount,feat_a\n1,2,7,1,0.1\n1,2,8,2,0.2\n2,3,9,3,0.3\n";
    std::fs::write(&path, three).unwrap();
    std::fs::write(folder.path().join("x_features.npy"), npy).unwrap();
    let (stream, report) = loaded(&path, &ReadOptions::default());
    assert_eq!(stream.edge_features().unwrap().values(), [0.1, 0.2, 0.3]);
    assert!(report.unused_sidecar.is_some_and(|file| file.ends_with("x_features.npy")));
    let (stream, report) = loaded(&path, &ReadOptions { features: FeatureColumns::Numeric, ..ReadOptions::default() });
    assert_eq!(stream.edge_features().unwrap().values(), [0.1, 1.0, 10.0, 0.2, 2.0, 20.0, 0.3, 3.0, 30.0]);
    assert_eq!(report, ReadReport::default());
}

#[test]
fn numeric_columns_of_parquet_are_kept_on_demand() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/formats/types.parquet");
    let (stream, report) = loaded(&path, &ReadOptions { features: FeatureColumns::Numeric, ..ReadOptions::default() });
    let (_, default) = loaded(&path, &ReadOptions::default());
    let kept = stream.edge_features().unwrap();
    assert_eq!(kept.width() + report.unused_columns.len(), default.unused_columns.len());
    let decimal = report.unused_columns.iter().find(|column| column.name == "decimal").unwrap();
    assert!(decimal.to_string().contains("not numbers"), "{decimal}");
}

/// Seconds to find the roles of a file with that many feature columns.
fn seconds_of_columns(n: usize) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wide.csv");
    let mut text = "src,dst,time".to_owned();
    (0..n).for_each(|i| write!(text, ",feat_{i}").unwrap());
    text += "\n1,2,3";
    (0..n).for_each(|_| text += ",0");
    std::fs::write(&path, text + "\n").unwrap();
    let start = Instant::now();
    assert_eq!(read(&path, &ReadOptions::default()).unwrap().edge_features().unwrap().width(), n);
    start.elapsed().as_secs_f64()
}

#[test]
fn time_is_linear_in_the_number_of_columns() {
    // Quadratic: 20 s. Linear: some 20 ms.
    let seconds = (0..3).map(|_| seconds_of_columns(30_000)).fold(f64::INFINITY, f64::min);
    assert!(seconds < 2.0, "{seconds} s");
}
