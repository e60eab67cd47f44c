//! `hopedgn score`: known and unknown ids, times, columns that are kept, files that are written.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{json, run};

const SMALL: [&str; 10] = [
    "--set",
    "model.d-channel=4",
    "--set",
    "model.d-time=4",
    "--set",
    "model.length=6",
    "--set",
    "model.d-mite=4",
    "--set",
    "train.batch=20",
];

/// Trains a run on `text` in the folder it returns.
fn trained(text: &str, flags: &[&str]) -> TempDir {
    let home = tempfile::tempdir().expect("a folder");
    fs::write(home.path().join("events.csv"), text).expect("a file");
    let train = ["train", "--data", "events.csv", "--out", "run", "--epochs", "1", "--json"];
    json(home.path(), &[&train[..], flags, &SMALL].concat());
    home
}

/// Nodes 100 to 119, times 0 to 149. Shared: tests only add files of their own names.
fn numbers() -> &'static Path {
    static HOME: OnceLock<TempDir> = OnceLock::new();
    let home = HOME.get_or_init(|| {
        let mut text = String::from("src,dst,time\n");
        for i in 0..300 {
            writeln!(text, "{},{},{}", 100 + i * 7 % 20, 100 + i * 3 % 20, i / 2).expect("a string");
        }
        trained(&text, &[])
    });
    home.path()
}

/// Customers c0 to c9 who buy products p0 to p11, one every hour of 2024.
fn shop() -> &'static Path {
    static HOME: OnceLock<TempDir> = OnceLock::new();
    let home = HOME.get_or_init(|| {
        let mut text = String::from("bought at,customer,product\n");
        for i in 0..300 {
            let (day, hour) = (1 + i / 24, i % 24);
            writeln!(text, "2024-01-{day:02} {hour:02}:00,c{},p{}", i * 7 % 10, i * 5 % 12).expect("a string");
        }
        let columns = ["--src", "customer", "--dst", "product", "--time", "bought at", "--bipartite"];
        trained(&text, &columns)
    });
    home.path()
}

/// Scores `text`: status, stdout, stderr.
fn score(home: &Path, text: &str, flags: &[&str]) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let pairs = folder.path().join("pairs.csv");
    fs::write(&pairs, text).expect("a file");
    let (status, stdout, stderr) =
        run(home, &[&["score", "run", "--pairs", pairs.to_str().expect("UTF-8")], flags].concat());
    (status, stdout, stderr.replace(&folder.path().display().to_string(), ""))
}

fn scored(home: &Path, text: &str, flags: &[&str]) -> Vec<Value> {
    let (status, stdout, stderr) = score(home, text, &[flags, &["--json"]].concat());
    assert_eq!(status, Some(0), "{stderr}");
    let answer: Value = serde_json::from_str(&stdout).expect("one JSON document");
    answer["scores"].as_array().expect("rows").clone()
}

fn refused(home: &Path, text: &str, flags: &[&str], expected: &str) {
    let (status, stdout, stderr) = score(home, text, flags);
    assert_eq!((status, stdout.as_str()), (Some(2), ""), "{stderr}");
    assert!(stderr.contains(expected), "{flags:?}: {stderr}");
}

#[test]
fn every_row_says_which_ids_are_known() {
    let pairs = "100,101\n100,1o1\n7,101\n7,8\n";
    let rows = scored(numbers(), pairs, &[]);
    let known: Vec<&Value> = rows.iter().map(|row| &row["known"]).collect();
    let flags = |src: bool, dst: bool| json!({ "src": src, "dst": dst });
    assert_eq!(known, [&flags(true, true), &flags(true, false), &flags(false, true), &flags(false, false)]);
    assert_eq!((&rows[1]["dst"], &rows[2]["src"]), (&json!("1o1"), &json!(7)), "ids as they were given");

    let (_, stdout, stderr) = score(numbers(), pairs, &[]);
    let column: Vec<&str> = stdout.lines().filter_map(|line| line.rsplit(',').next()).collect();
    assert_eq!(column, ["known", "both", "src", "dst", "none"]);
    let expected = "3 nodes are not in the data and scored without a history (1o1, 7, 8); did you mean 101 instead of 1o1? --strict refuses unknown ids\n";
    assert!(stderr.contains(expected), "{stderr}");
    let (_, _, stderr) = score(numbers(), pairs, &["--quiet"]);
    assert_eq!(stderr, "");
}

#[test]
fn strict_refuses_an_unknown_id_with_its_place_and_the_closest_one() {
    let strict = |home: &Path, text: &str, expected: &str| refused(home, text, &["--strict"], expected);
    let message =
        "line 3: found the destination \"1010\", expected the id of a destination in the data; did you mean \"101\"?\n";
    strict(numbers(), "100,101\n\"101\",\"102\"\n103,1010\n", message);
    let message = "line 1: found the source \"zoe\", expected the id of a source in the data; without --strict it is scored as a new node\n";
    strict(numbers(), "zoe,101\n", message);
    let message = "line 2: found the source \"p3\", expected the id of a source in the data; it is a destination: are the columns swapped?\n";
    strict(shop(), "customer,product\np3,c3\n", message);
    let (status, _, stderr) = score(shop(), "c3,p3\n", &["--strict"]);
    assert_eq!(status, Some(0), "{stderr}");
}

#[test]
fn suspicious_pairs_are_remarked_on_once_each() {
    let pairs = "p1,c1\np2,c2\nc1,c2\np1,p2\nc1,p1,2023-12-31\nc1,p1,2024-01-01\n";
    let (status, stdout, stderr) = score(shop(), pairs, &[]);
    assert_eq!((status, stdout.lines().count()), (Some(0), 7), "{stderr}");
    for expected in [
        "2 pairs name destinations of the data as sources and sources as destinations (the first: p1,c1); are the columns swapped?\n",
        "1 pair is of two sources (c1,c2); in this data only a source and a destination interact\n",
        "1 pair is of two destinations (p1,p2); in this data only a source and a destination interact\n",
        "2 pairs are asked about before anything happened (the first: c1,p1 at 2023-12-31 00:00:00): the first event is at 2024-01-01 00:00:00, and a score needs earlier ones\n",
    ] {
        assert_eq!(stderr.matches(expected).count(), 1, "{expected}{stderr}");
    }
    let (_, _, stderr) = score(shop(), "c1,p1\n", &[]);
    assert!(!stderr.contains("pair") && !stderr.contains("not in the data"), "nothing to say: {stderr}");
}

#[test]
fn a_first_row_of_names_is_recognised_or_remarked_on() {
    let expected = scored(shop(), "c1,p1,2024-01-05\n", &[]);
    // The columns of the run's own file.
    let (_, stdout, stderr) = score(shop(), "bought at,product,customer\n2024-01-05,p1,c1\n", &["--json"]);
    assert_eq!(serde_json::from_str::<Value>(&stdout).expect("JSON")["scores"], json!(expected));
    assert!(!stderr.contains("first row"), "{stderr}");
    // Names that nothing is known about, where ids are numbers.
    let (status, stdout, stderr) = score(numbers(), "left,right\n100,101\n", &[]);
    assert_eq!((status, stdout.lines().count()), (Some(0), 2), "{stdout}");
    assert!(stderr.contains("the first row \"left,right\" is no pair of ids and taken for column names"), "{stderr}");
    let (_, stdout, stderr) = score(numbers(), "left,right\n100,101\n", &["--pairs-columns", "right,left"]);
    assert!(stdout.contains("\n101,100,") && !stderr.contains("first row"), "{stdout}{stderr}");
    // A time that is not recognised is not silently replaced.
    let (_, _, stderr) = score(numbers(), "src,dst,moment\n100,101,5\n", &[]);
    assert!(
        stderr
            .contains("no column is recognised as time (moment): all pairs are asked about just after the last event"),
        "{stderr}"
    );
    let (_, _, stderr) = score(numbers(), "src,dst,moment\n100,101,5\n", &["--at", "7"]);
    assert!(!stderr.contains("no column is recognised"), "{stderr}");
}

#[test]
fn dates_are_accepted_and_shown_where_the_data_has_dates() {
    let rows =
        scored(shop(), "c1,p1,2024-01-05\nc1,p1,2024-01-05T12:30:00.125Z\nc1,p1\n", &["--at", "2024-01-06 01:00"]);
    let times: Vec<_> = rows.iter().map(|row| (row["time"].as_f64(), row["date"].as_str())).collect();
    assert_eq!(
        times,
        [
            (Some(1_704_412_800.0), Some("2024-01-05 00:00:00")),
            (Some(1_704_457_800.125), Some("2024-01-05 12:30:00.125")),
            (Some(1_704_502_800.0), Some("2024-01-06 01:00:00")),
        ]
    );
    let (_, stdout, _) = score(shop(), "c1,p1,2024-01-05\n", &[]);
    assert!(stdout.contains("\nc1,p1,2024-01-05T00:00:00Z,"), "{stdout}");
    refused(
        shop(),
        "c1,p1\n",
        &["--at", "tomorrow"],
        "found --at tomorrow, expected a date like 2024-01-31 or 2024-01-31 12:00",
    );
    refused(shop(), "c1,p1,soon\n", &[], "line 1: found the time \"soon\", expected a date like 2024-01-31");
    refused(
        numbers(),
        "100,101\n",
        &["--at", "2024-01-05"],
        "found --at 2024-01-05, expected a number, as the times of the data",
    );
    assert!(scored(numbers(), "100,101,5\n", &[])[0].get("date").is_none());
    let report = fs::read_to_string(shop().join("run/report.html")).expect("a report");
    assert!(report.contains("2024-01-01 00:00:00 to 2024-01-13 11:00:00"), "dates in the report");
    let (_, stdout, stderr) = run(shop(), &["evaluate", "run", "--from", "2024-01-12 12:00"]);
    assert!(stdout.contains("from 2024-01-12 12:00:00 to 2024-01-13 11:00:00"), "{stdout}{stderr}");
}

#[test]
fn numbers_have_the_unit_of_the_data() {
    let mut text = String::from("src,dst,time\n");
    for i in 0..300 {
        writeln!(text, "{},{},{}", i * 7 % 20, i * 3 % 20, 1_704_067_200_000_u64 + i * 60_500).expect("a string");
    }
    let home = trained(&text, &["--time-unit", "ms"]);
    let rows = scored(home.path(), "1,2,1704070800500\n1,2,2024-01-01 01:00:00.5\n", &[]);
    assert_eq!(rows[0]["date"], "2024-01-01 01:00:00.500");
    assert_eq!(rows[0], rows[1]);
    refused(home.path(), "1,2,never\n", &[], "or milliseconds since 1970, as the times of the data");
    let rows = scored(home.path(), "1,2\n", &["--at", "1704070800500"]);
    assert_eq!(rows[0]["time"], 1_704_070_800.5);
}

/// Everything that needs quotes, in ids and in columns that are kept.
const AWKWARD: &str = "src,dst,time,note,\"a, b\",note\n100,101,5,\"x, y\",\"say \"\"hi\"\"\",\" blanks \"\n101,\"un, known\",6,\"two\nlines\",,\ttab\n";

#[test]
fn other_columns_are_kept_in_every_format_and_read_back() {
    let rows = scored(numbers(), AWKWARD, &[]);
    assert_eq!(rows[0]["columns"], json!({ "note": "x, y", "a, b": "say \"hi\"", "note_2": " blanks " }));
    assert_eq!(rows[1]["columns"], json!({ "note": "two\nlines", "a, b": "", "note_2": "\ttab" }));
    let (_, stdout, _) = score(numbers(), AWKWARD, &["--quiet"]);
    assert!(stdout.starts_with("src,dst,time,score,known,note,\"a, b\",note_2\n100,101,5,0."), "{stdout}");

    let folder = tempfile::tempdir().expect("a folder");
    for name in ["a.csv", "a.tsv", "a.csv.gz", "a.tsv.zst", "a.parquet"] {
        let file = folder.path().join(name);
        let path = file.to_str().expect("UTF-8");
        let (status, _, stderr) = score(numbers(), AWKWARD, &["--out", path]);
        assert_eq!(status, Some(0), "{stderr}");
        if name == "a.csv" {
            assert_eq!(fs::read_to_string(&file).expect("a file"), stdout, "the same as on stdout");
        }
        let (_, text, _) = run(numbers(), &["score", "run", "--pairs", path, "--quiet"]);
        let header = "src,dst,time,score,known,score_2,known_2,note,\"a, b\",note_2\n";
        assert!(text.starts_with(header), "no name occurs twice: {text}");
        let again = json(numbers(), &["score", "run", "--pairs", path, "--json", "--quiet"]);
        for (row, again) in rows.iter().zip(again["scores"].as_array().expect("rows")) {
            for field in ["src", "dst", "time", "score", "known"] {
                assert_eq!(row[field], again[field], "{name}");
            }
            for (column, text) in row["columns"].as_object().expect("columns") {
                assert_eq!(text, &again["columns"][column], "{name}, {column}");
            }
            assert_eq!(again["columns"]["score"], row["score"].to_string(), "{name}: no digit is lost");
        }
    }
}

#[test]
fn a_file_of_json_lines_holds_what_json_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("scores.jsonl");
    let path = file.to_str().expect("UTF-8");
    let answer = {
        let (status, stdout, stderr) = score(shop(), "c1,p1\nc2,p7\n", &["--explain", "--out", path, "--json"]);
        assert_eq!(status, Some(0), "{stderr}");
        serde_json::from_str::<Value>(&stdout).expect("JSON")
    };
    let text = fs::read_to_string(&file).expect("a file");
    assert_eq!(answer, json!({ "out": path, "pairs": 2, "unknown": 0, "bytes": text.len() }));
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect();
    assert_eq!(lines, scored(shop(), "c1,p1\nc2,p7\n", &["--explain"]));
    assert!(lines[0]["explanation"]["groups"].as_array().is_some_and(|groups| !groups.is_empty()));
}

#[test]
fn dates_of_a_written_file_are_read_as_the_same_times() {
    let folder = tempfile::tempdir().expect("a folder");
    let expected = scored(shop(), "c1,p1,2024-01-05 00:00:00.5\nc2,p7\n", &[]);
    for name in ["a.csv", "a.parquet"] {
        let path = folder.path().join(name).display().to_string();
        score(shop(), "c1,p1,2024-01-05 00:00:00.5\nc2,p7\n", &["--out", &path]);
        let again = json(shop(), &["score", "run", "--pairs", &path, "--json"]);
        for (row, again) in expected.iter().zip(again["scores"].as_array().expect("rows")) {
            assert_eq!(
                (&row["time"], &row["score"]),
                (&again["time"], &again["score"]),
                "{name}, also just after the last event"
            );
        }
    }
}

#[test]
fn files_are_not_replaced_by_accident_and_never_half_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (pairs, taken) = (path("pairs.csv"), path("taken.csv"));
    fs::write(&pairs, "100,101\n7,8\n").expect("a file");
    fs::write(&taken, "mine\n").expect("a file");
    let refused = |flags: &[&str], expected: &str| {
        let (status, stdout, stderr) = run(numbers(), &[&["score", "run", "--pairs", &pairs], flags].concat());
        assert_eq!((status, stdout.as_str()), (Some(2), ""), "{stderr}");
        assert!(stderr.contains(expected), "{flags:?}: {stderr}");
    };
    refused(&["--out", &taken], "expected no such file yet; name another one, or replace it with --force");
    refused(&["--out", &pairs, "--force"], "which is the input, expected another file to write");
    refused(&["--out", "events.csv", "--force"], "which is the input, expected another file to write");
    refused(&["--out", &path("a.json")], "expected a name that ends in .csv, .tsv, .jsonl or .ndjson");
    refused(
        &["--out", &path("a.csv"), "--explain"],
        "expected a file that can hold explanations; name one that ends in .jsonl",
    );
    refused(&["--out", &path("a.csv"), "--strict"], "line 2: found the source \"7\"");
    refused(&["--out", &path("none/a.csv")], "could not write");
    assert_eq!(fs::read_to_string(&taken).expect("a file"), "mine\n");
    let mut names: Vec<_> =
        fs::read_dir(folder.path()).expect("a folder").map(|entry| entry.expect("an entry").file_name()).collect();
    names.sort();
    assert_eq!(names, ["pairs.csv", "taken.csv"], "nothing is left behind");
    let (status, stdout, stderr) = run(numbers(), &["score", "run", "--pairs", &pairs, "--out", &taken, "--force"]);
    assert_eq!(status, Some(0), "{stderr}");
    assert_eq!(stdout, format!("{taken}: 2 pairs, 1 of them with a node that is not in the data\n"));
    assert!(fs::read_to_string(&taken).expect("a file").starts_with("src,dst,time,score,known\n100,101,"));
}

#[test]
fn pairs_without_common_neighbours_are_explained_by_paths_of_three_events() {
    let rows = scored(shop(), "c1,p1\n", &["--explain"]);
    let why = &rows[0]["explanation"];
    assert_eq!(why["common_neighbors"], json!([]));
    let n_paths = why["n_paths"].as_u64().expect("a number");
    assert!(n_paths > 0, "{why}");
    let path = &why["paths"][0];
    for (field, first) in [("src_neighbor", 'p'), ("dst_neighbor", 'c')] {
        assert!(path[field].as_str().is_some_and(|node| node.starts_with(first)), "{path}");
    }
    let (_, stdout, _) = score(shop(), "c1,p1\n", &["--explain"]);
    assert!(
        stdout.contains(&format!("  No common past neighbour; paths of three events between them: {n_paths}.\n")),
        "{stdout}"
    );
    let date = path["between_dates"][0].as_str().expect("a date");
    let other = format!(
        "{} with {} at {date}",
        path["dst_neighbor"].as_str().expect("a name"),
        path["src_neighbor"].as_str().expect("a name")
    );
    assert!(stdout.contains(&other), "{stdout}");
    // Groups and single events, with dates.
    let group = &why["groups"][0];
    assert!(stdout.contains(group["last_date"].as_str().expect("a date")), "{stdout}");
    let mut events: Vec<u64> =
        why["effects"].as_array().expect("effects").iter().filter_map(|effect| effect["event"].as_u64()).collect();
    let n_events = events.len();
    events.sort_unstable();
    events.dedup();
    assert_eq!(events.len(), n_events, "each event once");
}
