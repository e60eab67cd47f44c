//! `hopedgn evaluate`: what it keeps in the run folder, interruption, and heuristics that do better than the model.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::train::{home, trained};
use crate::{file_of_run, json, run};

fn report(home: &Path) -> String {
    fs::read_to_string(home.join("run/report.html")).expect("a report")
}

#[test]
fn results_are_kept_in_the_run_folder_and_shown_in_its_report() {
    let home = home();
    trained(home.path(), "1");
    let answer = json(home.path(), &["evaluate", "run", "--negatives", "all", "--ranking", "5", "--json"]);
    assert_eq!(file_of_run(&home.path().join("run/evaluation.json")), answer);
    let mrr = 100.0 * answer["ranking"]["scorers"]["hopedgn"]["transductive"]["mrr"].as_f64().expect("a number");
    for part in ["Against historical negatives", "Ranking among at most 5 other", &format!("{mrr:.2}")] {
        assert!(report(home.path()).contains(part), "{part}");
    }
    assert!(!home.path().join("run/evaluation.partial.json").exists());
    // Training further makes other weights.
    json(home.path(), &["train", "--resume", "run", "--epochs", "2", "--json"]);
    assert!(!home.path().join("run/evaluation.json").exists() && !report(home.path()).contains("Ranking among"));
}

#[test]
fn a_heuristic_that_does_better_is_named_with_what_to_try() {
    let home = home();
    // Every pair repeats and nothing is learned: EdgeBank is better than the model.
    let arguments = ["train", "--data", "events.csv", "--out", "run", "--epochs", "1", "--set", "train.lr=0.0000001"];
    let (status, stdout, stderr) = run(home.path(), &crate::train::with_small(&arguments));
    assert_eq!(status, Some(0), "{stderr}");
    let line = |text: &str| text.lines().find(|line| line.contains("an untrained heuristic")).map(str::to_owned);
    let found = line(&stdout).expect("a line about it");
    assert!(found.contains(" has the higher AP: ") && found.contains(" (random negatives); "), "{found}");
    assert!(found.ends_with("train longer with `hopedgn train --resume run --epochs 2`"), "{found}");
    assert!(report(home.path()).contains("an untrained heuristic, has the higher AP: "));
    let (status, stdout, _) = run(home.path(), &["evaluate", "run"]);
    assert_eq!((status, line(&stdout)), (Some(0), Some(found)));
}

#[test]
fn the_protocol_of_tgb_ranks_against_its_candidates_or_those_of_a_file() {
    let home = home();
    let tgb = ["train", "--data", "events.csv", "--out", "run", "--epochs", "2", "--protocol", "tgb"];
    let (status, _, stderr) = run(home.path(), &crate::train::with_small(&tgb));
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stderr.contains("  val MRR ") && stderr.contains("hopedgn evaluate run --protocol tgb"), "{stderr}");
    let (status, stdout, stderr) = run(home.path(), &["evaluate", "run", "--protocol", "tgb", "--ranking", "6"]);
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stdout.contains("TGB: ranked against at most 6") && stdout.contains("NDCG@10"), "{stdout}");
    assert!(!stdout.contains("new nodes") && !stdout.contains("AP and AUC"), "{stdout}");
    assert!(report(home.path()).contains("Ranking among at most 6 other destinations, TGB"));

    // One candidate for every test event: the rank is 1, 1.5 or 2.
    let events = fs::read_to_string(home.path().join("events.csv")).expect("events");
    let line = |row: &str| {
        let fields: Vec<&str> = row.split(',').collect();
        let other = if fields[1] == "100" { "101" } else { "100" };
        let [src, dst, time] = [fields[0], fields[1], fields[2]];
        format!("{{\"src\": {src}, \"dst\": {dst}, \"time\": {time}, \"candidates\": [{other}]}}\n")
    };
    let mut lines: Vec<String> = events.lines().skip(1).map(line).collect();
    lines.dedup();
    fs::write(home.path().join("lists.jsonl"), lines.concat()).expect("written");
    let listed = ["evaluate", "run", "--protocol", "tgb", "--candidates", "lists.jsonl"];
    let answer = json(home.path(), &[&listed[..], &["--json"]].concat());
    assert_eq!(
        (&answer["ranking"]["candidates"], &answer["ranking"]["protocol"]),
        (&"lists.jsonl".into(), &"tgb".into())
    );
    let metrics = &answer["ranking"]["scorers"]["hopedgn"]["transductive"];
    assert!(
        metrics["mrr"].as_f64().is_some_and(|mrr| (0.5..=1.0).contains(&mrr)) && metrics["hits_at_10"] == 1.0,
        "{metrics}"
    );

    fs::write(home.path().join("lists.jsonl"), &lines[0]).expect("written");
    let (status, _, stderr) = run(home.path(), &listed);
    assert_eq!(status, Some(2));
    assert!(stderr.contains("lists.jsonl: found no candidates for the event 1"), "{stderr}");
    let (_, _, stderr) = run(home.path(), &["evaluate", "run", "--candidates", "lists.jsonl"]);
    assert!(stderr.contains("found --candidates without --protocol tgb"), "{stderr}");
}

#[test]
fn a_run_with_masked_nodes_is_no_run_of_tgb() {
    let home = home();
    trained(home.path(), "1");
    let (status, _, stderr) = run(home.path(), &["evaluate", "run", "--protocol", "tgb"]);
    assert_eq!(status, Some(2));
    assert!(stderr.contains("found a run with split = dyglib, which keeps "), "{stderr}");
    assert!(stderr.ends_with("; train another run with `hopedgn train --protocol tgb`\n"), "{stderr}");
}

#[cfg(unix)]
mod interrupted {
    use std::process::{Command, Stdio};
    use std::thread::sleep;
    use std::time::Duration;

    use super::*;

    #[test]
    fn ctrl_c_prints_what_is_complete_and_the_same_command_continues() {
        let home = home();
        trained(home.path(), "1");
        let arguments = ["evaluate", "run", "--negatives", "all", "--ranking", "all", "--json"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_hopedgn"));
        command.current_dir(home.path()).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("it starts");
        while !home.path().join("run/evaluation.partial.json").exists()
            && !home.path().join("run/evaluation.json").exists()
        {
            sleep(Duration::from_millis(1));
        }
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill is there");
        let output = child.wait_with_output().expect("it ends");
        let (answer, stderr) = (output.stdout, String::from_utf8_lossy(&output.stderr));
        let answer: Value = serde_json::from_slice(&answer).expect("one JSON document");
        // The evaluation may have ended before the signal.
        let (_, _, again) = run(home.path(), &arguments);
        if output.status.code() == Some(1) {
            let missing: Vec<&str> =
                answer["incomplete"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
            assert!(missing.last().is_some_and(|last| last.starts_with("ranking")), "{answer}");
            assert!(answer["negatives"]["random"]["hopedgn"]["transductive"]["ap"].is_f64(), "{answer}");
            assert!(
                stderr.contains("interrupted; what is complete is kept")
                    && stderr.contains("the same command continues"),
                "{stderr}"
            );
            assert!(again.contains("continuing: ") && again.contains(" of 8 passes measured before"), "{again}");
        } else {
            assert_eq!((output.status.code(), answer.get("incomplete")), (Some(0), None), "{stderr}");
        }
        // Both calls together measured what one call measures.
        let kept = file_of_run(&home.path().join("run/evaluation.json"));
        let mut whole = json(home.path(), &arguments);
        whole["run"] = "run".into();
        assert_eq!(kept, whole);
    }
}
