//! `hopedgn lab` as users and scripts run it.

use std::fs;

use serde_json::Value;

use crate::{json, run, schemas};

/// Small enough for a test: three models, four families.
const SMALL: [&str; 19] = [
    "lab",
    "--cases",
    "2",
    "--draws",
    "1",
    "--family",
    "figure-1",
    "--family",
    "path-3",
    "--family",
    "copies",
    "--family",
    "time-twins",
    "--model",
    "hopedgn",
    "--model",
    "tgat",
    "--model",
    "tgn",
];

#[test]
fn tables_show_which_model_separates_which_family() {
    let folder = tempfile::tempdir().expect("a folder");
    let (status, stdout, stderr) = run(folder.path(), &SMALL);
    // On a slow machine there are lines about progress.
    assert!(status == Some(0) && stderr.lines().all(|line| line.starts_with("expressivity: ")), "{stderr}");
    let line = |name: &str| stdout.lines().find(|line| line.starts_with(&format!("| {name} "))).unwrap_or_default();
    let cells = |name: &str| line(name).split('|').map(str::trim).skip(2).take(4).collect::<Vec<_>>();
    assert_eq!(cells("1-DWL, round"), ["no", "0/2", "2/2, 1", "0/2"], "{stdout}");
    assert_eq!(cells("2-DWL, round"), ["yes, 1", "2/2, 2", "2/2, 1", "0/2"], "{stdout}");
    assert_eq!(cells("marked DWL, round"), ["yes, 0", "2/2, 1", "2/2, 0", "0/2"], "{stdout}");
    assert_eq!(cells("marked DWL, met, round"), ["yes, 0", "2/2, 1", "2/2, 0", "0/2"], "{stdout}");
    assert_eq!(cells("hopedgn"), ["yes", "0/2", "2/2", "0/2"], "{stdout}");
    assert_eq!(cells("tgat"), ["no", "0/2", "2/2", "0/2"], "{stdout}");
    assert_eq!(stdout.matches("| separated by ").count(), 2, "random and trained: {stdout}");
    assert!(stdout.contains("- tgn, random (1-DWL): copies, case 0, 1; simultaneous events"), "{stdout}");
    assert!(stdout.contains("- hopedgn, trained (2-DWL): path-3, case 0, 1"), "{stdout}");
    assert!(stdout.contains("but not by global HopeDGN (Proposition 5): none"), "{stdout}");
}

#[test]
fn json_svg_and_html_hold_the_same_results() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = [&SMALL[..], &["--json", "--quiet", "--svg", "lab.svg", "--html", "lab.html"]].concat();
    let found = json(folder.path(), &arguments);
    schemas::check("lab", &found);
    assert_eq!(found["subjects"], serde_json::json!(["hopedgn", "tgat", "tgn"]));
    assert_eq!(found["bounds"], serde_json::json!(["2-DWL", "1-DWL", "1-DWL"]));
    let path = found["families"].as_array().expect("families").iter().find(|family| family["name"] == "path-3");
    let case = &path.expect("the family")["cases"][0];
    assert_eq!((&case["dwl"], &case["random"][0]), (&serde_json::json!([null, 2, 1, 1]), &Value::Bool(false)));
    assert_eq!(case["trained"].as_array().map(Vec::len), Some(3));
    let loss = |when: &str| found["training"][0][when].as_f64().expect("a loss");
    assert!(loss("last-loss") < loss("first-loss"), "{}", found["training"]);
    assert_eq!(found["lost"].as_array().map(Vec::len), Some(4), "two cases, random and trained");

    let text = |name: &str| fs::read_to_string(folder.path().join(name)).expect("written");
    let (svg, html) = (text("lab.svg"), text("lab.html"));
    // Two matrices of four tests and three models, and the legend.
    assert_eq!(svg.matches("class=\"mark lost\"").count(), 2 + 1);
    assert_eq!(svg.matches(">2/2<").count() + svg.matches(">0/2<").count(), 2 * (4 + 3) * 3, "{svg}");
    assert!(svg.ends_with("</svg>\n") && svg.contains("prefers-color-scheme: dark"));
    assert!(html.ends_with("</html>\n") && !html.contains("<script") && !html.contains("http"));
    assert_eq!(html.matches("<td class=\"no lost\"").count(), 2);
    assert!(html.contains("<div id=\"path-3\"><dt>path-3</dt>"));
}

#[test]
fn bad_arguments_are_refused_before_anything_is_computed() {
    let folder = tempfile::tempdir().expect("a folder");
    let cases: [(&[&str], &str); 4] = [
        (
            &["--svg", "nowhere/lab.svg"],
            "found nowhere/lab.svg, expected a file in a folder that exists; create the folder",
        ),
        (&["--html", "."], "found ., expected a file in a folder that exists"),
        (&["--family", "path-9"], "found --family = path-9, expected one of: figure-1; "),
        (&["--model", "hope"], "found --model = hope, expected one of: hopedgn; hopedgn + relations; hopedgn-global; "),
    ];
    for (arguments, expected) in cases {
        let (status, stdout, stderr) = run(folder.path(), &[&["lab"], arguments].concat());
        assert_eq!((status, stdout.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
    }
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
}
