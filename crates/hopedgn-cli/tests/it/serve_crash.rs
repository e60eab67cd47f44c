//! A server that is killed again and again loses no acknowledged event, and damage of its log is named.

use serde_json::Value;

use crate::schemas::check;
use crate::train::home;
use crate::{hopedgn, tries};

/// `HOPEDGN_TRIES` and `HOPEDGN_SEED` in the environment say how many servers are killed, and when.
#[test]
fn a_killed_server_loses_no_acknowledged_event_and_names_damage_of_its_log() {
    let (kills, seed) = (tries::number(6), tries::seed().to_string());
    let number = kills.to_string();
    let arguments = ["bench", "serve", "--crash", "--data", "events.csv", "--flips", "20", "--json", "--quiet"];
    let arguments = [&arguments[..], &["--kills", &number, "--seed", &seed]].concat();
    let output = hopedgn(home().path(), &arguments);
    let (text, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{text}{stderr}");
    let report: Value = serde_json::from_str(&text).expect("one JSON document");
    check("bench-serve-crash", &report);
    let number = |of: &Value, name: &str| of[name].as_u64().unwrap_or_else(|| panic!("no {name} in {of:#}"));
    assert_eq!(number(&report, "violations"), 0, "{report:#}");
    assert!(number(&report, "kills") >= kills, "{report:#}");
    assert!(number(&report, "acknowledged") > 0 && number(&report, "events") > 0, "nothing was sent: {report:#}");
    let damage = report["damage"].as_array().expect("a list");
    let kinds: Vec<(&str, &str)> =
        damage.iter().map(|of| (of["file"].as_str().expect("text"), of["kind"].as_str().expect("text"))).collect();
    let flipped = ["events.log", "base.ctdg", "acknowledged"].map(|file| (file, "flipped"));
    assert_eq!(kinds, [&[("events.log", "truncated")][..], &flipped].concat());
    for of in damage {
        assert_eq!(number(of, "unchanged") + number(of, "refused"), number(of, "tries"), "{of:#}");
        assert!(number(of, "tries") >= 20 && number(of, "servers") > 0, "{of:#}");
    }
    tries::report("kills of a server", usize::try_from(kills).expect("few"));
}
