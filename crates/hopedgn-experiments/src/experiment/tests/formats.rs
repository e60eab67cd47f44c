//! Tables as LaTeX and as CSV.

use super::numbers::Home;
use super::*;

/// Names that LaTeX and CSV would act on.
const AWKWARD: &str = r#"title = "50% & more"
note = "one\ntwo"
kind = "link-prediction"
metrics = ["ap", "parameters"]
heuristics = ["edgebank-unlimited"]
[grid]
model = ["tgat", "tcl"]
data = ["my_data", "enron", "uci"]
seed = [0, 1]
[[variant]]
name = "k16"
title = "K_16, \"small\""
[[paper]]
model = "tgat"
data = "my_data"
transductive = { ap = [97.18, 0.06] }
[[paper]]
model = "tgat"
data = "uci"
transductive = { ap = [79.51, 0.33] }
"#;

fn with_runs() -> Home {
    let home = Home::new(AWKWARD);
    home.run("my_data-tgat-k16-0", 0.90, &[1.0]).run("my_data-tgat-k16-1", 0.92, &[1.0]);
    home.run("my_data-tcl-k16-0", 0.85, &[1.0]).run("enron-tcl-k16-0", 0.70, &[1.0]);
    home
}

#[test]
fn latex_has_booktabs_means_best_and_escaped_names() {
    let home = with_runs();
    let tex = latex(&home.experiment, &home.found());
    let expected = r#"% Needs \usepackage{booktabs}.
% one
% two

\begin{table}[t]
\centering
\caption{50\% \& more. AP, transductive, in percent. Mean $\pm$ standard deviation over seeds. Bold: best; underlined: second best.}
\label{tab:grid-ap-transductive}
\begin{tabular}{lrr}
\toprule
 & my\_data & enron \\
\midrule
TGAT, K\_16, "small" & \textbf{91.00 $\pm$ 1.41} & -- \\
TCL, K\_16, "small" & 85.00 & 70.00 \\
EdgeBank, unlimited & \underline{90.00} & 70.00 \\
\bottomrule
\end{tabular}
\end{table}
"#;
    assert!(tex.starts_with(expected), "{tex}");
    assert_eq!(tex.matches("\\begin{table}").count(), 3, "AP in two settings, and parameters: {tex}");
    assert!(tex.contains("Parameters. Lower is better. Bold"), "costs are no percentages: {tex}");
    assert_eq!(
        tex.matches('{').count() - tex.matches("\\{").count(),
        tex.matches('}').count() - tex.matches("\\}").count()
    );
}

#[test]
fn latex_without_results_has_no_table() {
    let home = Home::new(AWKWARD);
    let tex = latex(&home.experiment, &home.found());
    assert!(!tex.contains("\\begin") && tex.contains("% No results yet: AP, transductive.\n"), "{tex}");
}

#[test]
fn csv_has_a_line_for_each_row_dataset_and_metric() {
    let home = with_runs();
    let text = long_csv(&home.experiment, &home.found()).unwrap();
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().unwrap().clone();
    assert_eq!(
        header.iter().collect::<Vec<_>>().join(","),
        "row,model,mite,variant,data,metric,setting,negatives,mean,sd,n,n_seeds,published,published_sd"
    );
    let lines: Vec<csv::StringRecord> = reader.records().map(|line| line.unwrap()).collect();
    // (2 models + 1 heuristic) × 3 datasets × AP in one setting with published values of uci; without, uci has no column.
    let n = |metric: &str, setting: &str| lines.iter().filter(|line| (&line[5], &line[6]) == (metric, setting)).count();
    assert_eq!([n("ap", "transductive"), n("ap", "inductive"), n("parameters", "")], [9, 6, 4]);
    let find = |model: &str, data: &str| {
        let fits = |line: &&csv::StringRecord| (&line[1], &line[4], &line[6]) == (model, data, "transductive");
        lines.iter().find(fits).unwrap().iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let tgat = find("tgat", "my_data");
    assert_eq!(tgat[..8], ["TGAT, K_16, \"small\"", "tgat", "false", "k16", "my_data", "ap", "transductive", "random"]);
    let number = |text: &str| text.parse::<f64>().unwrap();
    assert!((number(&tgat[8]) - 91.0).abs() < 1e-9 && (number(&tgat[9]) - 2.0_f64.sqrt()).abs() < 1e-9, "{tgat:?}");
    assert_eq!(tgat[10..], ["2", "2", "97.18", "0.06"]);
    assert_eq!(find("tgat", "uci")[8..], ["", "", "0", "2", "79.51", "0.33"], "no result, a published one");
    assert_eq!(find("tcl", "enron")[9..], ["", "1", "2", "", ""], "one run has no deviation");
    assert_eq!(find("edgebank-unlimited", "enron")[..4], ["EdgeBank, unlimited", "edgebank-unlimited", "", ""]);
}
