//! TGB's protocol: split without masking, candidates equal to py-tgb's, candidates from a file.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use ctdg::event::{EventId, EventStream, NodeId};
use ctdg::negative::{CandidateFile, CandidateSource, Candidates, Pass, TgbLists, TgbRule};
use ctdg::split::{MASK_SEED, Split, SplitMode, SplitRule};
use serde::Deserialize;

#[derive(Deserialize)]
struct Fixture {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    events: Vec<(u32, u32, f64)>,
    count: usize,
    seed: u32,
    candidates: BTreeMap<u64, Vec<u32>>,
}

fn cases() -> Vec<Case> {
    let text = include_str!("../../../../fixtures/tgb/candidates.json");
    serde_json::from_str::<Fixture>(text).expect("a fixture of this form").cases
}

impl Case {
    fn stream(&self) -> EventStream {
        EventStream::from_events(self.events.iter().copied()).expect("events")
    }

    fn lists<'s>(&self, stream: &'s EventStream) -> TgbLists<'s> {
        TgbLists::new(stream, &split(stream), TgbRule { count: self.count, seed: self.seed })
    }
}

fn split(stream: &EventStream) -> Split {
    SplitRule::of(stream, SplitMode::Tgb, MASK_SEED).unwrap().apply(stream).unwrap()
}

fn ids(nodes: &[NodeId]) -> Vec<u32> {
    nodes.iter().map(|node| node.0).collect()
}

#[test]
fn candidates_equal_those_of_py_tgb() {
    for case in cases() {
        let stream = case.stream();
        let mut lists = case.lists(&stream);
        let evaluated: Vec<u64> = [split(&stream).val, split(&stream).test].concat().iter().map(|id| id.0).collect();
        assert_eq!(evaluated, case.candidates.keys().copied().collect::<Vec<_>>(), "{}", case.name);
        for (&event, expected) in &case.candidates {
            assert_eq!(&ids(&lists.of(EventId(event))), expected, "{}, event {event}", case.name);
        }
    }
}

#[test]
fn candidates_do_not_depend_on_the_order_in_which_they_are_asked_for() {
    for case in cases() {
        let stream = case.stream();
        let mut lists = case.lists(&stream);
        for (&event, expected) in case.candidates.iter().rev().step_by(3).chain(case.candidates.iter().step_by(5)) {
            assert_eq!(&ids(&lists.of(EventId(event))), expected, "{}, event {event}", case.name);
        }
        assert!(lists.of(EventId(0)).is_empty(), "a training event has none");
    }
}

/// The stream a→x, b→y, … with one event a second, and a file of candidates beside it.
fn with_file(text: &str) -> (EventStream, tempfile::TempDir) {
    let rows = (0..20).map(|i| (i % 2, 2 + i % 4, f64::from(i)));
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("lists.jsonl"), text).expect("written");
    (EventStream::from_events(rows).expect("events"), folder)
}

fn refused(text: &str) -> String {
    let (stream, folder) = with_file(text);
    let error = CandidateFile::read(&folder.path().join("lists.jsonl"), &stream).expect_err("an error").to_string();
    error.replace(&format!("{}/", folder.path().display()), "")
}

#[test]
fn candidates_of_a_file_are_those_of_their_event() {
    let text = "{\"src\": 0, \"dst\": 2, \"time\": 16, \"candidates\": [5, 3]}\n\n\
                {\"src\":\"1\",\"dst\":\"3\",\"time\":17.0,\"candidates\":[\"2\"]}";
    let (stream, folder) = with_file(text);
    let path = folder.path().join("lists.jsonl");
    let source = |path: &Path| -> CandidateSource<'_> {
        Candidates::File(path.to_owned()).lists(&stream, &split(&stream), Pass::Test).expect("lists")
    };
    assert_eq!(ids(&source(&path).of(EventId(16)).unwrap()), [5, 3]);
    assert_eq!(ids(&source(&path).of(EventId(17)).unwrap()), [2]);
    let missing = source(&path).of(EventId(18)).unwrap_err().to_string();
    assert_eq!(
        missing.replace(&format!("{}/", folder.path().display()), ""),
        "lists.jsonl: found no candidates for the event 0, 4 at 18, expected a line for each event to rank; make the file from \
         the same events, with names and times as in the data, or rank without a file"
    );
}

#[test]
fn wrong_lines_of_candidates_are_refused_with_their_number() {
    let good = "{\"src\": 0, \"dst\": 2, \"time\": 16, \"candidates\": [5]}\n";
    assert_eq!(
        refused(&format!("{good}src,dst,time\n")),
        "lists.jsonl, line 2: found \"src,dst,time\", expected an event with its candidates, {\"src\": …, \"dst\": …, \"time\": …, \
         \"candidates\": […]}"
    );
    assert_eq!(
        refused(&good.replace("[5]", "[5, 77]")),
        "lists.jsonl, line 1: found no node called \"77\", expected a node of the stream; name nodes as the input does"
    );
    assert_eq!(
        refused(&good.replace("[5]", "[2]")),
        "lists.jsonl, line 1: found the true destination among its candidates, expected other destinations only"
    );
    assert_eq!(
        refused(&format!("{good}{good}")),
        "lists.jsonl, line 2: found an event that an earlier line has, expected one line for each event"
    );
    assert_eq!(
        refused(&good.replace("16", "\"soon\"")),
        "lists.jsonl, line 1: found \"soon\", expected a time as in the data; correct the value, or choose other columns"
    );
}
