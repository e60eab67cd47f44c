//! Files of pairs: columns, times, ids, extra columns.

use clap::Parser;
use ctdg::dataset::ReadOptions;
use ctdg::event::{Columns, EventStream};

use super::*;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    pairs: PairsArgs,
}

/// Nodes 0, 1 and 2; the events were read from columns called `who`, `whom` and `clock`.
fn events(time_format: TimeFormat) -> Events {
    let columns = EventStream::from_events([(0, 1, 1.0), (1, 2, 2.0)]).unwrap().into_columns();
    let stream = EventStream::new(Columns { time_format, ..columns }).unwrap();
    let named = |name: &str| Some(ColumnRef::from(name));
    let options = ReadOptions { src: named("who"), dst: named("whom"), time: named("clock"), ..ReadOptions::default() };
    Events::from_stream("test", stream).with_source("test.csv".as_ref(), &options)
}

/// A pair, its time and its other fields.
type Read = (String, String, f64, Vec<String>);

fn read_with(text: &str, events: &Events, flags: &[&str]) -> anyhow::Result<(Vec<Read>, Vec<String>, Option<String>)> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("pairs.csv");
    std::fs::write(&file, text)?;
    let path = file.to_str().expect("UTF-8");
    let args = Line::try_parse_from([&["hopedgn", "--pairs", path], flags].concat())?.pairs;
    let pairs = args.read(events, Some(9.0), false)?;
    let row = |(row, query): (usize, &ctdg::mite::PairQuery)| {
        let extra = (0..pairs.extra.names.len()).map(|column| pairs.extra.get(row, column).to_owned());
        (pairs.named.name(query.src), pairs.named.name(query.dst), query.time, extra.collect())
    };
    let rows = pairs.named.queries().iter().enumerate().map(row).collect();
    Ok((rows, pairs.extra.names.clone(), pairs.skipped_header.clone()))
}

fn read(text: &str) -> anyhow::Result<Vec<Read>> {
    read_with(text, &events(TimeFormat::Number), &[]).map(|(rows, _, _)| rows)
}

fn message(text: &str, flags: &[&str]) -> String {
    let error = read_with(text, &events(TimeFormat::Number), flags).unwrap_err();
    let message = format!("{error:#}");
    message.split_once("pairs.csv").map_or(message.clone(), |(_, rest)| format!("pairs.csv{rest}"))
}

fn row(src: &str, dst: &str, time: f64, extra: &[&str]) -> Read {
    (src.to_owned(), dst.to_owned(), time, extra.iter().map(|&field| field.to_owned()).collect())
}

#[test]
fn rows_without_a_time_get_the_default() {
    let times = |text: &str| read(text).unwrap().into_iter().map(|row| row.2).collect::<Vec<f64>>();
    assert_eq!(times("0,1\n1,2,5\n0,2,6,a label\n"), [9.0, 5.0, 6.0]);
    assert_eq!(times("1,2,5\n0,1\n"), [5.0, 9.0]);
    assert_eq!(times("dst,time,src\n1,5,0\n2,,0\n"), [5.0, 9.0]);
    assert!(read("0,1\n1,2,banana\n").is_err());
}

#[test]
fn a_header_without_pairs_is_quoted_in_the_error() {
    for header in ["a,b", "src,dst"] {
        let expected =
            format!("pairs.csv: found the header {header:?} and no pairs, expected one a line: SRC,DST[,TIME]");
        assert_eq!(message(&format!("{header}\n"), &[]), expected);
    }
    assert!(message("", &[]).contains("found no pairs"));
}

#[test]
fn columns_are_recognised_by_usual_names_and_by_those_of_the_data() {
    let expected = [row("0", "1", 5.0, &["x"])];
    for header in ["note,dst,src,time", "note,TO,From,Timestamp", "note,whom,who,clock", "note,receiver,who,t"] {
        assert_eq!(read(&format!("{header}\nx,1,0,5\n")).unwrap(), expected, "{header}");
    }
    // The data's own names win over usual ones.
    assert_eq!(read("who,whom,src,dst\n0,1,x,y\n").unwrap(), [row("0", "1", 9.0, &["x", "y"])]);
}

#[test]
fn columns_can_be_chosen_by_name_and_by_position() {
    let read = |text: &str, columns: &str| {
        read_with(text, &events(TimeFormat::Number), &["--pairs-columns", columns])
            .map(|(rows, names, _)| (rows, names))
    };
    let (rows, names) = read("a,b,c,d\n5,1,x,0\n", "d,b,a").unwrap();
    assert_eq!((rows, names), (vec![row("0", "1", 5.0, &["x"])], vec!["c".to_owned()]));
    let (rows, names) = read("1,x,0\n", "3,1").unwrap();
    assert_eq!((rows, names), (vec![row("0", "1", 9.0, &["x"])], vec!["column_2".to_owned()]), "no header");
    let (rows, names) = read("to,note,from\n1,x,0\n", "3,1").unwrap();
    assert_eq!((rows, names), (vec![row("0", "1", 9.0, &["x"])], vec!["note".to_owned()]), "a header");
    for (columns, expected) in [
        (
            "e,b",
            "pairs.csv, line 1: found no source column among \"a\", \"b\", \"c\", \"d\", expected one of \"e\"; name the columns with --pairs-columns SRC,DST[,TIME]",
        ),
        (
            "a,a",
            "pairs.csv, line 1: found the column \"a\" twice, expected it once; name the columns with --pairs-columns SRC,DST[,TIME]",
        ),
        ("a", "pairs.csv, line 1: found columns = 1, expected source, destination and perhaps time"),
    ] {
        assert_eq!(message("a,b,c,d\n5,1,x,0\n", &["--pairs-columns", columns]), expected);
    }
}

#[test]
fn a_missing_id_is_an_error_with_its_line() {
    assert_eq!(message("0,1\n, 1\n", &[]), "pairs.csv, line 2: found an empty source, expected an id");
    assert_eq!(message("src,dst\n0,\n", &[]), "pairs.csv, line 2: found an empty destination, expected an id");
    assert!(message("0,1\n0\n", &[]).starts_with("pairs.csv, line 2: found 1 field, expected SRC,DST or SRC,DST,TIME"));
}

#[test]
fn a_first_row_that_is_no_pair_is_skipped_and_named() {
    let (rows, names, skipped) = read_with("a,b,c,d\n0,1,5,x\n", &events(TimeFormat::Number), &[]).unwrap();
    assert_eq!((rows, names), (vec![row("0", "1", 5.0, &["x"])], vec!["d".to_owned()]));
    assert_eq!(skipped.as_deref(), Some("a,b,c,d"));
    let (rows, _, skipped) = read_with("0,1\n", &events(TimeFormat::Number), &[]).unwrap();
    assert_eq!((rows.len(), skipped), (1, None));
    let (rows, _, skipped) = read_with("7,x\n", &events(TimeFormat::Number), &[]).unwrap();
    assert_eq!((rows, skipped), (vec![row("7", "x", 9.0, &[])], None), "one of them is an id");
}

#[test]
fn half_a_header_is_an_error_that_names_the_way_out() {
    let expected =
        "pairs.csv, line 1: found no destination column among \"src\", \"partner\", \"time\", expected one of ";
    let message = message("src,partner,time\n0,1,5\n", &[]);
    assert!(message.starts_with(expected), "{message}");
    assert!(message.ends_with("; name the columns with --pairs-columns SRC,DST[,TIME]"), "{message}");
}

#[test]
fn known_nodes_with_the_names_of_columns_are_a_pair() {
    let events = Events::from_tuples([("user", "item", 1.0), ("u", "v", 2.0)]).unwrap();
    let (rows, _, _) = read_with("user,item\nu,v\n", &events, &[]).unwrap();
    assert_eq!(rows, [row("user", "item", 9.0, &[]), row("u", "v", 9.0, &[])]);
}

#[test]
fn other_columns_are_kept_as_they_are_in_order() {
    let text = "b,src,a,dst,b,\n\" x, \",0,\"say \"\"hi\"\"\",1,\"two\nlines\",\n,1,,2\n";
    let (rows, names, _) = read_with(text, &events(TimeFormat::Number), &[]).unwrap();
    assert_eq!(names, ["b", "a", "b_2", "column_6"]);
    assert_eq!(
        rows,
        [row("0", "1", 9.0, &[" x, ", "say \"hi\"", "two\nlines", ""]), row("1", "2", 9.0, &["", "", "", ""])]
    );
    let (rows, names, _) = read_with("0,1\n1,2,5,x,y\n", &events(TimeFormat::Number), &[]).unwrap();
    assert_eq!(names, ["column_4", "column_5"]);
    assert_eq!(rows, [row("0", "1", 9.0, &["", ""]), row("1", "2", 5.0, &["x", "y"])]);
    let expected =
        "pairs.csv, line 2: found 4 fields, expected 3 as in the first row; quote fields that hold the separator";
    assert_eq!(message("src,dst,note\n0,1,a,b\n", &[]), expected);
}

#[test]
fn every_usual_delimiter_is_recognised_and_others_can_be_given() {
    for text in ["0,1,5,x y\n", "0\t1\t5\tx,y\n", "0;1;5;x y\n"] {
        let rows = read(text).unwrap();
        assert_eq!((rows.len(), rows[0].2, rows[0].3.len()), (1, 5.0, 1), "{text:?}");
    }
    assert_eq!(read("  0  1\t5\n").unwrap(), [row("0", "1", 5.0, &[])]);
    assert_eq!(
        message("0|1|5\n", &[]),
        "pairs.csv, line 1: found 1 field, expected SRC,DST or SRC,DST,TIME; state the separator with --pairs-delimiter"
    );
    let (rows, _, _) = read_with("0|1|5\n", &events(TimeFormat::Number), &["--pairs-delimiter", "|"]).unwrap();
    assert_eq!(rows, [row("0", "1", 5.0, &[])]);
}

#[test]
fn blanks_around_an_id_count_only_if_the_data_has_them() {
    assert_eq!(read(" 0 , 1,5\n").unwrap(), [row("0", "1", 5.0, &[])]);
    let events = Events::from_tuples([("ann", "bob", 1.0)]).unwrap();
    let (rows, _, _) = read_with("\" ann\",\"bob \"\n", &events, &[]).unwrap();
    assert_eq!(rows, [row("ann", "bob", 9.0, &[])]);
    let events = Events::from_tuples([(" ann", "bob", 1.0)]).unwrap();
    let (rows, _, _) = read_with("\" ann\",bob\n", &events, &[]).unwrap();
    assert_eq!(rows, [row(" ann", "bob", 9.0, &[])]);
}

#[test]
fn times_are_dates_where_the_data_has_dates() {
    let dates = events(TimeFormat::Date);
    let read =
        |text: &str| read_with(text, &dates, &[]).map(|(rows, _, _)| rows.iter().map(|row| row.2).collect::<Vec<_>>());
    assert_eq!(read("0,1,1970-01-02\n0,1,1970-01-02T01:00Z\n0,1,5.5\n").unwrap(), [86_400.0, 90_000.0, 5.5]);
    let split = read("0 1 1970-01-02 12:00\n").unwrap_err();
    assert!(format!("{split:#}").ends_with("put a T between date and clock time, or quote both together"));
    assert_eq!(read("0 1 1970-01-02T12:00 x\n").unwrap(), [129_600.0]);
    let expected = "pairs.csv, line 2: found the time \"1970-01-02\", expected a number, as the times of the data";
    assert_eq!(message("src,dst,time\n0,1,1970-01-02\n", &[]), expected);
    assert_eq!(
        message("0,1,5\n0,1,soon\n", &[]),
        "pairs.csv, line 2: found the time \"soon\", expected a number, as the times of the data; choose other columns with --pairs-columns"
    );
}
