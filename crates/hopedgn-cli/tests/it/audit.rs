//! `hopedgn data audit` as users and scripts run it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::{json, run};

/// Ten days on which a file lists destinations one after another, all at one time.
fn write_days(folder: &Path) {
    let rows = (0..10).flat_map(|day| (0..10).flat_map(move |dst| (0..60).map(move |src| (src, dst, day))));
    let rows: Vec<String> = rows.map(|(src, dst, day)| format!("u{src},i<{dst}>,{day}")).collect();
    fs::write(folder.join("days.csv"), format!("src,dst,time\n{}\n", rows.join("\n"))).expect("written");
}

fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("a folder");
    write_days(home.path());
    home
}

fn finding<'a>(audit: &'a Value, check: &str) -> &'a Value {
    let findings = audit["findings"].as_array().expect("findings");
    findings.iter().find(|finding| finding["check"] == check).expect("a finding")
}

#[test]
fn text_names_leaks_first_and_fits_into_100_columns() {
    let home = home();
    let (status, text, stderr) = run(home.path(), &["data", "audit", "days.csv", "--batch", "20"]);
    assert_eq!((status, stderr.as_str()), (Some(0), ""), "a leak is a result, not a failure");
    let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} in {text}"));
    assert!(place("\nLEAK  same moment") < place("\nnote  ties") && place("\nnote  ties") < place("\nok    f32 times"));
    for part in ["days.csv: ", "6,000 events, 70 nodes; split dyglib", "→ ", "Untrained heuristics", "Never met", "█"]
    {
        place(part);
    }
    let long: Vec<&str> = text.lines().filter(|line| line.chars().count() > 100).collect();
    assert!(long.is_empty(), "{long:?}");
    let (_, bundled, _) = run(home.path(), &["data", "audit", "collegemsg"]);
    let long: Vec<&str> = bundled.lines().filter(|line| line.chars().count() > 100).collect();
    assert!(long.is_empty(), "{long:?}");
}

#[test]
fn strict_fails_on_a_leak_only() {
    let home = home();
    let status = |arguments: &[&str]| run(home.path(), &[&["data", "audit"], arguments].concat()).0;
    assert_eq!(status(&["days.csv", "--batch", "20", "--strict"]), Some(1));
    let rows: Vec<String> = (0..600).map(|i| format!("{},{},{i}", i % 7, 7 + i % 5)).collect();
    fs::write(home.path().join("sound.csv"), format!("src,dst,time\n{}\n", rows.join("\n"))).expect("written");
    assert_eq!(status(&["sound.csv", "--strict", "--length", "4"]), Some(0));
}

#[test]
fn json_has_the_options_and_every_check_once() {
    let home = home();
    let audit =
        json(home.path(), &["data", "audit", "days.csv", "--batch", "20", "--length", "8", "--patch", "2", "--json"]);
    assert_eq!((&audit["data"], &audit["batch"]), (&"days.csv".into(), &20.into()));
    let padding = audit["padding"].as_array().expect("rows");
    assert_eq!((padding.len(), &padding[0]["length"], &padding[0]["patch"]), (1, &8.into(), &2.into()));
    let names = audit["findings"].as_array().expect("findings").iter().map(|finding| finding["check"].to_string());
    assert_eq!(names.collect::<BTreeSet<String>>().len(), 12);
    assert_eq!(finding(&audit, "same-moment")["verdict"], "leak");
    assert_eq!(finding(&audit, "ties")["value"], 1.0);
    assert_eq!(audit["counts"]["largest_moment"], 600);
    // The document and the threads that made it do not depend on each other.
    let one = json(home.path(), &["data", "audit", "days.csv", "--json", "--threads", "1"]);
    let two = json(home.path(), &["data", "audit", "days.csv", "--json", "--threads", "2"]);
    assert_eq!(one, two);
}

#[test]
fn page_holds_every_finding_and_escapes_names() {
    let home = home();
    fs::rename(home.path().join("days.csv"), home.path().join("a&b.csv")).expect("renamed");
    let arguments = ["data", "audit", "a&b.csv", "--out", "audit.html", "--batch", "20"];
    let (status, _, stderr) = run(home.path(), &arguments);
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stderr.contains("report written to audit.html"), "{stderr}");
    let page = fs::read_to_string(home.path().join("audit.html")).expect("a page");
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    assert!(page.contains("<h1>Audit of a&amp;b.csv</h1>") && !page.contains("<script"));
    assert_eq!(page.matches("<section class=\"finding ").count(), 12);
    for part in ["finding leak", "<svg", "recency-popularity", "Padded length", "destination-recency"] {
        assert!(page.contains(part), "{part}");
    }
    // A page that exists is replaced only on request, and so is nothing else.
    let (status, _, stderr) = run(home.path(), &arguments);
    assert_eq!(status, Some(2));
    assert!(stderr.contains("--force"), "{stderr}");
    assert_eq!(
        run(home.path(), &[&arguments[..], &["--force", "--quiet"]].concat()),
        (Some(0), run(home.path(), &[&arguments[..3], &arguments[5..]].concat()).1, String::new())
    );
    let (status, _, stderr) = run(home.path(), &["data", "audit", "a&b.csv", "--out", "a&b.csv", "--force"]);
    assert_eq!(status, Some(2));
    assert!(stderr.contains("which is the input"), "{stderr}");
    let (status, _, stderr) = run(home.path(), &["data", "audit", "a&b.csv", "--out", "no/such/audit.html"]);
    assert_eq!(status, Some(2));
    assert!(stderr.contains("expected a file in a folder that exists"), "{stderr}");
}

#[test]
fn bad_input_is_named_with_what_to_do() {
    let home = home();
    fs::write(home.path().join("empty.csv"), "src,dst,time\n").expect("written");
    fs::write(home.path().join("back.csv"), "src,dst,time\na,b,2\na,c,1\n").expect("written");
    for (file, part) in [("empty.csv", "no event"), ("back.csv", "--sort"), ("missing.csv", "missing.csv")] {
        let (status, stdout, stderr) = run(home.path(), &["data", "audit", file, "--out", "audit.html"]);
        assert_eq!((status, stdout.as_str()), (Some(2), ""), "{file}");
        assert!(stderr.starts_with("error: ") && stderr.contains(part), "{file}: {stderr}");
        assert!(!home.path().join("audit.html").exists(), "{file}: nothing is half-written");
    }
    let (status, _, stderr) = run(home.path(), &["data", "audit", "days.csv", "--patch", "2"]);
    assert_eq!(status, Some(2));
    assert!(stderr.contains("--length"), "{stderr}");
}

#[test]
fn dates_are_shown_as_dates() {
    let home = tempfile::tempdir().expect("a folder");
    let rows = "src,dst,time\na,b,2024-01-01\na,c,2024-01-02\nb,c,2024-01-12T12:00:00Z\n";
    fs::write(home.path().join("dates.csv"), rows).expect("written");
    let (status, text, stderr) = run(home.path(), &["data", "audit", "dates.csv"]);
    assert_eq!(status, Some(0), "{stderr}");
    assert!(text.contains("longest 10.5 days"), "{text}");
    assert!(text.contains("the longest silence begins at 2024-01-02 00:00:00"), "{text}");
}

/// The audit draws the negatives of the evaluation: heuristics have the same AP in both.
#[test]
fn heuristics_equal_those_beside_a_model() {
    let home = tempfile::tempdir().expect("a folder");
    let rows: Vec<String> = (0..400).map(|i| format!("{},{},{}", i % 9, 9 + i * i % 11, i / 3)).collect();
    fs::write(home.path().join("events.csv"), format!("src,dst,time\n{}\n", rows.join("\n"))).expect("written");
    let train = ["train", "--data", "events.csv", "--model", "stats", "--epochs", "1", "--out", "run", "--quiet"];
    let (status, _, stderr) = run(home.path(), &[&train[..], &["--set", "train.batch=50"]].concat());
    assert_eq!(status, Some(0), "{stderr}");
    let evaluation = json(home.path(), &["evaluate", "run", "--negatives", "all", "--json"]);
    let audit = json(home.path(), &["data", "audit", "events.csv", "--batch", "50", "--json"]);
    let rows = audit["heuristics"].as_array().expect("rows");
    assert_eq!(rows.len(), 15, "five heuristics and three kinds of negatives");
    for row in rows {
        let [heuristic, negatives] = ["heuristic", "negatives"].map(|field| row[field].as_str().expect("a name"));
        for setting in ["transductive", "inductive"] {
            let expected = &evaluation["negatives"][negatives][heuristic][setting];
            // Too few events of new nodes have no past pairs: null in both.
            assert!(setting == "inductive" || expected["ap"].is_f64(), "{heuristic}, {negatives} in {evaluation}");
            for metric in ["ap", "auc"] {
                assert_eq!(row[setting][metric], expected[metric], "{heuristic}, {negatives}, {setting}");
            }
        }
    }
}
