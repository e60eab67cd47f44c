//! `hopedgn recommend`: ranks, probabilities and reasons; unknown sources; files that are written.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::schemas::check;
use crate::{json, run};

/// Customers c0 to c9 who buy products p0 to p11, one every hour of 2024; runs of both objectives. Tests only add files.
fn shop() -> &'static Path {
    static HOME: OnceLock<TempDir> = OnceLock::new();
    let home = HOME.get_or_init(|| {
        let home = tempfile::tempdir().expect("a folder");
        let mut text = String::from("customer,product,time\n");
        for i in 0..300 {
            let (day, hour) = (1 + i / 24, i % 24);
            writeln!(text, "c{},p{},2024-01-{day:02} {hour:02}:00", i * 7 % 10, i * 5 % 12).expect("a string");
        }
        fs::write(home.path().join("events.csv"), text).expect("a file");
        for objective in ["intensity", "dyglib"] {
            let set = format!("train.objective={objective}");
            let train = ["train", "--data", "events.csv", "--src", "customer", "--dst", "product", "--model", "stats"];
            json(home.path(), &[&train[..], &["--epochs", "2", "--out", objective, "--set", &set, "--json"]].concat());
        }
        home
    });
    home.path()
}

#[test]
fn every_destination_has_a_rank_a_probability_and_a_reason() {
    let answer = json(shop(), &["recommend", "intensity", "c3", "--top", "100", "--explain", "--json"]);
    check("recommend", &answer);
    assert_eq!((&answer["src"], &answer["date"]), (&json!("c3"), &json!("2024-01-13 11:00:00.000001")));
    let items = answer["items"].as_array().expect("items");
    assert_eq!(items.len(), 12, "all products, no customer");
    let probabilities: Vec<f64> = items.iter().map(|item| item["probability"].as_f64().expect("a number")).collect();
    assert!(probabilities.is_sorted_by(|a, b| a >= b) && probabilities[0] > 0.0, "{probabilities:?}");
    assert!(items.iter().zip(1..).all(|(item, rank)| item["rank"] == json!(rank)), "{items:?}");
    // c3 buys at hours i with 7i = 3 (mod 10): 9, 19, …, of which five products are bought again and again.
    let known: Vec<&Value> = items.iter().filter(|item| item["known"] == json!(true)).collect();
    assert_eq!(known.len(), 6, "{items:?}");
    let reason = known[0]["reason"].as_str().expect("a reason");
    assert!(
        reason.starts_with("met 5 times, last at 2024-01-") && reason.ends_with("of the last 300 events went to it"),
        "{reason}"
    );
    assert!(reason.contains(" before; "), "{reason}");
}

#[test]
fn destinations_that_were_met_can_be_left_out_and_the_past_asked_about() {
    let new = json(shop(), &["recommend", "intensity", "c3", "--exclude-seen", "--explain", "--json"]);
    let items = new["items"].as_array().expect("items");
    assert_eq!(items.len(), 6);
    assert!(items.iter().all(|item| item["known"] == json!(false)), "{items:?}");
    assert!(items.iter().all(|item| item["reason"].as_str().is_some_and(|why| why.starts_with("never met; "))));
    let early = json(shop(), &["recommend", "intensity", "c3", "--at", "2024-01-01 03:00", "--json"]);
    assert_eq!(early["items"].as_array().map(Vec::len), Some(3), "three products were bought before: {early}");
    let (status, stdout, stderr) = run(shop(), &["recommend", "intensity", "c3", "--at", "2023-01-01"]);
    assert_eq!((status, stdout.lines().count()), (Some(0), 2), "{stdout}");
    assert!(stderr.contains("nothing happened before 2023-01-01 00:00:00, so there is no destination"), "{stderr}");
}

#[test]
fn a_score_that_is_no_probability_is_not_called_one() {
    let answer = json(shop(), &["recommend", "dyglib", "c3", "--top", "2", "--json"]);
    check("recommend", &answer);
    let item = &answer["items"][0];
    assert!(item["probability"].is_null() && item["score"].is_number(), "{item}");
    let (_, stdout, _) = run(shop(), &["recommend", "dyglib", "c3", "--top", "2"]);
    assert!(stdout.lines().nth(1).is_some_and(|header| header.contains("score") && !header.contains("probability")));
}

#[test]
fn several_sources_are_answered_in_one_document() {
    fs::write(shop().join("customers.txt"), "c1\n\n  c2 \n").expect("a file");
    let sources = ["recommend", "intensity", "c3", "--sources", "customers.txt", "--top", "2", "--json"];
    let answer = json(shop(), &sources);
    check("recommend", &answer);
    let of: Vec<&Value> = answer["recommendations"].as_array().expect("answers").iter().map(|of| &of["src"]).collect();
    assert_eq!(of, [&json!("c3"), &json!("c1"), &json!("c2")]);
    let one = json(shop(), &["recommend", "intensity", "c1", "--top", "2", "--json"]);
    assert_eq!(one, answer["recommendations"][1], "other sources change nothing");
    let (_, stdout, _) = run(shop(), &["recommend", "intensity", "c3", "c1", "--top", "2"]);
    assert_eq!(stdout.lines().count(), 9, "two tables and a line between them: {stdout}");
}

#[test]
fn an_unknown_source_is_ranked_as_new_or_refused_with_the_nearest_name() {
    let (status, stdout, stderr) = run(shop(), &["recommend", "intensity", "c33"]);
    assert_eq!((status, stdout.lines().count()), (Some(0), 12), "{stderr}");
    assert!(stderr.contains("1 source is not in the data and ranked without a history"), "{stderr}");
    let (status, stdout, stderr) = run(shop(), &["recommend", "intensity", "customer 3", "--strict"]);
    assert_eq!((status, stdout.as_str()), (Some(2), ""));
    assert!(stderr.contains("found the source \"customer 3\", expected the id of a source in the data; "), "{stderr}");
    let (_, _, stderr) = run(shop(), &["recommend", "intensity", "p3"]);
    assert!(stderr.contains("p3 is a destination"), "{stderr}");
    let (status, _, stderr) = run(shop(), &["recommend", "intensity", "c3", "--top", "0"]);
    assert_eq!(status, Some(2));
    assert!(stderr.contains("expected a number of at least 1"), "{stderr}");
    let (status, _, stderr) = run(shop(), &["recommend", "intensity"]);
    assert_eq!(status, Some(2), "{stderr}");
}

#[test]
fn files_hold_a_row_for_each_recommendation_or_an_object_for_each_source() {
    let written = json(shop(), &["recommend", "intensity", "c3", "c4", "--top", "3", "--out", "best.csv", "--json"]);
    assert_eq!(written, json!({ "out": "best.csv", "sources": 2, "recommendations": 6 }));
    let text = fs::read_to_string(shop().join("best.csv")).expect("a file");
    assert!(text.starts_with("src,time,rank,dst,probability,known\nc3,2024-01-13"), "{text}");
    assert_eq!(text.lines().count(), 7);
    let (status, _, stderr) = run(shop(), &["recommend", "intensity", "c3", "--out", "best.csv"]);
    assert_eq!(status, Some(2), "{stderr}");
    run(shop(), &["recommend", "intensity", "c3", "c4", "--top", "3", "--explain", "--out", "best.jsonl"]);
    let lines = fs::read_to_string(shop().join("best.jsonl")).expect("a file");
    for line in lines.lines() {
        check("recommend", &serde_json::from_str(line).expect("JSON"));
    }
    assert_eq!(lines.lines().count(), 2);
    run(shop(), &["recommend", "dyglib", "c3", "--explain", "--out", "best.parquet"]);
    assert!(shop().join("best.parquet").exists());
}

#[test]
fn scores_and_tests_of_a_run_for_intensities_state_probabilities() {
    fs::write(shop().join("pairs.csv"), "c3,p9\nc3,p1\n").expect("a file");
    let scored = json(shop(), &["score", "intensity", "--pairs", "pairs.csv", "--json"]);
    check("score", &scored);
    let row = &scored["scores"][0];
    assert_eq!(row["score"], row["probability"]);
    assert!(row["intensity"].is_number() && row["lift"].is_number(), "{row}");
    let (_, stdout, _) = run(shop(), &["score", "intensity", "--pairs", "pairs.csv"]);
    assert!(stdout.starts_with("src,dst,time,score,probability,intensity,lift,known\n"), "{stdout}");
    let (_, stdout, _) = run(shop(), &["score", "dyglib", "--pairs", "pairs.csv"]);
    assert!(stdout.starts_with("src,dst,time,score,known\n"), "{stdout}");

    let evaluation = json(shop(), &["evaluate", "intensity", "--json"]);
    check("evaluation", &evaluation);
    assert!(evaluation["calibration"]["mean_sum"].as_f64().is_some_and(|sum| sum > 0.0), "{evaluation}");
    let (_, stdout, _) = run(shop(), &["evaluate", "intensity"]);
    assert!(stdout.contains("probabilities of the next partner: 45 events, 12 destinations"), "{stdout}");
    let report = fs::read_to_string(shop().join("intensity/report.html")).expect("a report");
    assert!(report.contains("<h2>Probabilities</h2>") && report.contains("Reliability"), "the diagram");
    let evaluation = json(shop(), &["evaluate", "dyglib", "--json"]);
    assert!(evaluation.get("calibration").is_none());
}
