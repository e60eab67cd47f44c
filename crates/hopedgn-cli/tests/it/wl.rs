//! `hopedgn wl` as users and scripts run it.

use serde_json::Value;
use std::fs;

use crate::{json, run};

/// The paper's Figure 1, as `hopedgn wl examples --write` writes it.
const PATH: &str = "src,dst,time\nA,B,1\nE,F,1\nB,C,2\nD,E,2\nC,D,3\n";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a.csv"), PATH).expect("written");
    folder
}

#[test]
fn json_holds_the_documented_fields() {
    let folder = folder();
    let ask = |k| {
        let arguments =
            ["wl", "a.csv", "a.csv", "--k", k, "--until", "4", "--tuple", "A,C=A,D", "--isomorphism", "--json"];
        json(folder.path(), &arguments)
    };
    let one = ask("1");
    assert_eq!(
        (&one["k"], &one["separated"], &one["round"], &one["witness"]),
        (&1.into(), &false.into(), &Value::Null, &Value::Null)
    );
    assert_eq!((&one["rounds"], &one["tuples"], &one["isomorphic"]), (&1.into(), &12.into(), &false.into()));
    let two = ask("2");
    assert_eq!((&two["separated"], &two["round"], &two["tuples"]), (&true.into(), &1.into(), &72.into()));
    assert_eq!(two["graphs"]["separated"], Value::Bool(false), "a file against itself");
    assert_eq!(two["witness"]["contrast"]["terms"][0]["nodes"][0][0], "B");
}

#[test]
fn text_shows_the_verdict_and_its_witness() {
    let (status, stdout, _) = run(folder().path(), &["wl", "a.csv", "a.csv", "--until", "4", "--tuple", "A,C=A,D"]);
    assert_eq!(status, Some(0));
    assert!(stdout.contains("(A, C) in A and (A, D) in B: separated in round 1"), "{stdout}");
    assert!(stdout.contains("w in A: 1 (B); w in B: none; met the tuple's nodes at [1] [2]"), "{stdout}");
}

#[test]
fn marked_dwl_separates_what_k_2_does_not() {
    let folder = folder();
    let ask = |arguments: &[&str]| json(folder.path(), &[&["wl", "examples", "rook", "--json"], arguments].concat());
    let two = ask(&[]);
    assert_eq!((&two["separated"], &two["marked"], &two["test"]), (&false.into(), &Value::Null, &"2-DWL".into()));
    let all = ask(&["--marked"]);
    assert_eq!((&all["separated"], &all["round"], &all["k"]), (&true.into(), &1.into(), &2.into()));
    assert_eq!((&all["marked"], &all["test"], &all["tuples"]), (&"all".into(), &"marked DWL".into(), &512.into()));
    let met = ask(&["--marked=met"]);
    assert_eq!((&met["separated"], &met["marked"]), (&true.into(), &"met".into()));
    let pair = ["wl", "a.csv", "a.csv", "--marked", "--until", "4", "--tuple", "A,C=A,D"];
    let (status, stdout, _) = run(folder.path(), &pair);
    assert_eq!(status, Some(0));
    assert!(stdout.contains("marked DWL until 4") && stdout.contains("separated in round 0"), "{stdout}");
    assert!(stdout.contains("w in A: 1 (B); w in B: none; met the tuple's nodes at [1] [2]"), "{stdout}");
}

#[test]
fn bad_arguments_exit_with_2_and_name_the_way_out() {
    let folder = folder();
    let cases: [(&[&str], &str); 11] = [
        (&["--marked", "--k", "2"], "cannot be used with"),
        (&["--marked=near"], "[possible values: all, met]"),
        (&["--marked", "--max-memory", "2kB"], "found marked DWL with 432 tuples"),
        (&["--k", "0"], "found k = 0, expected 1, 2, 3 or 4"),
        (&["--k", "5"], "found k = 5, expected 1, 2, 3 or 4"),
        (&["--tuple", "A,Z=A,B"], "a.csv: found no node called Z"),
        (&["--tuple", "A,B"], "such as u,v=x,y"),
        (&["--tuple", "A,B=C"], "as many on both sides"),
        (&["--max-memory", "2kB"], "the largest k that fits is 1"),
        (&["--max-memory", "much"], "such as 512MiB or 4GiB"),
        (&["--labels", "features"], "a stream with node features"),
    ];
    for (arguments, expected) in cases {
        let (status, stdout, stderr) = run(folder.path(), &[&["wl", "a.csv", "a.csv"], arguments].concat());
        assert_eq!((status, stdout.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
    }
}

#[test]
fn time_before_the_first_event_gives_a_verdict_and_a_note() {
    let (status, stdout, stderr) = run(folder().path(), &["wl", "a.csv", "a.csv", "--until", "1"]);
    assert_eq!(status, Some(0));
    assert!(stdout.contains("not separated") && stderr.contains("no event before 1"), "{stdout}{stderr}");
}

#[test]
fn examples_can_be_written_read_back_and_drawn() {
    let folder = folder();
    let written = json(folder.path(), &["wl", "examples", "triangles", "--write", "out", "--json"]);
    assert_eq!(written[0]["name"], "triangles");
    let arguments = ["wl", "out/triangles-a.csv", "out/triangles-b.csv", "--svg", "both.svg", "--json", "--quiet"];
    let from_files = json(folder.path(), &arguments);
    assert_eq!((&from_files["separated"], &from_files["round"]), (&true.into(), &2.into()));
    let svg = fs::read_to_string(folder.path().join("both.svg")).expect("drawn");
    assert_eq!(svg.matches("<line").count(), 12, "six pairs in each");
    assert!(!folder.path().join("both.svg.part").exists());
    let (status, _, stderr) = run(folder.path(), &["wl", "examples", "circles"]);
    assert_eq!(status, Some(2));
    assert!(stderr.contains("triangles-order"), "{stderr}");
}

#[test]
fn static_and_oblivious_tests_have_their_usual_names() {
    let folder = folder();
    let test = |arguments: &[&str]| {
        json(folder.path(), &[&["wl", "a.csv", "a.csv", "--json"], arguments].concat())["test"].clone()
    };
    assert_eq!(test(&["--static", "--k", "1"]), "1-WL");
    assert_eq!(test(&["--static"]), "2-FWL");
    assert_eq!(test(&["--static", "--variant", "oblivious", "--k", "3"]), "3-OWL");
    assert_eq!(test(&["--initial", "types"]), "2-DWL from isomorphism types");
}

#[test]
fn an_unknown_delimiter_is_named_with_the_flag_that_states_it() {
    let home = tempfile::tempdir().expect("a folder");
    std::fs::write(home.path().join("a.csv"), "src|dst|time\n1|2|3\n2|3|4\n").expect("a file");
    let (status, _, stderr) = crate::run(home.path(), &["wl", "a.csv", "a.csv"]);
    assert_eq!(status, Some(2));
    assert!(stderr.contains("here perhaps --delimiter '|'"), "{stderr}");
    assert_eq!(crate::run(home.path(), &["wl", "a.csv", "a.csv", "--delimiter", "|"]).0, Some(0));
}
