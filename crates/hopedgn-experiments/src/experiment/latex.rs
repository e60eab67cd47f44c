//! Tables of an experiment as LaTeX with booktabs, as papers print them.

use std::fmt::Write;

use super::markdown::{gain, notes};
use super::table::{Entry, Table};
use super::{Experiment, Found, Metric};

/// One `table` for each measure: means ± standard deviations, the best of a column bold and the second best underlined.
///
/// Needs `\usepackage{booktabs}`. Published values and datasets without results are left out.
#[must_use]
pub fn latex(experiment: &Experiment, found: &[Found]) -> String {
    let mut out = String::from("% Needs \\usepackage{booktabs}.\n");
    for line in notes(experiment).iter().flat_map(|note| note.lines()) {
        let _ = writeln!(out, "% {line}");
    }
    for table in Table::all(experiment, found) {
        let has_result = table.rows.iter().flat_map(|(_, row)| row).flatten().any(|entry| entry.ours.is_some());
        if has_result {
            out.push_str(&float(experiment, &table));
        } else {
            let _ = writeln!(out, "\n% No results yet: {}.", table.title());
        }
    }
    out
}

fn float(experiment: &Experiment, table: &Table) -> String {
    let Table { measure, columns, rows } = table;
    // A column of published values alone would be one of dashes.
    let has_result =
        |column: &usize| rows.iter().any(|(_, row)| row[*column].as_ref().is_some_and(|one| one.ours.is_some()));
    let shown: Vec<usize> = (0..columns.len()).filter(has_result).collect();
    let mut out = String::from("\n\\begin{table}[t]\n\\centering\n");
    let _ = writeln!(out, "\\caption{{{}}}", caption(experiment, table));
    let _ = writeln!(out, "\\label{{tab:{}}}", label(experiment, table));
    let _ = writeln!(out, "\\begin{{tabular}}{{l{}}}\n\\toprule", "r".repeat(shown.len()));
    let names: Vec<String> = shown.iter().map(|&column| escaped(&columns[column])).collect();
    let _ = writeln!(out, " & {} \\\\\n\\midrule", names.join(" & "));
    for (name, entries) in rows {
        let cells: Vec<String> = shown.iter().map(|&at| cell(entries[at].as_ref(), measure.metric)).collect();
        let _ = writeln!(out, "{} & {} \\\\", escaped(name), cells.join(" & "));
    }
    if let Some((title, gains)) = table.improvement(experiment) {
        let cells: Vec<String> = shown.iter().map(|&at| gain(gains[at])).collect();
        let _ = writeln!(out, "\\midrule\n{} & {} \\\\", escaped(&title), cells.join(" & "));
    }
    out.push_str("\\bottomrule\n\\end{tabular}\n\\end{table}\n");
    out
}

fn caption(experiment: &Experiment, table: &Table) -> String {
    let metric = table.measure.metric;
    let percent = if metric.is_cost() { "" } else { ", in percent" };
    let lower = if metric.is_better_low() { " Lower is better." } else { "" };
    let has_deviation = |entry: &Entry| entry.ours.is_some_and(|ours| ours.text(metric).contains('±'));
    let over_seeds = if table.rows.iter().flat_map(|(_, row)| row).flatten().any(has_deviation) {
        " Mean $\\pm$ standard deviation over seeds."
    } else {
        ""
    };
    let (title, measure) = (escaped(experiment.title()), escaped(&table.title()));
    format!("{title}. {measure}{percent}.{over_seeds}{lower} Bold: best; underlined: second best.")
}

/// E.g. `table-1-ap-transductive`: of the characters of names, only letters, digits and hyphens are safe in a label.
fn label(experiment: &Experiment, table: &Table) -> String {
    let name = format!("{} {}", experiment.stem(), table.title()).to_lowercase();
    name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

fn cell(entry: Option<&Entry>, metric: Metric) -> String {
    let Some(entry) = entry else { return String::new() };
    let Some(ours) = entry.ours else { return "--".to_owned() };
    let text = ours.text(metric).replace('±', "$\\pm$");
    match entry.rank {
        Some(1) => format!("\\textbf{{{text}}}"),
        Some(2) => format!("\\underline{{{text}}}"),
        _ => text,
    }
}

/// Text without anything that LaTeX would act on.
fn escaped(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        match c {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => out.extend(['\\', c]),
            '\\' => out.push_str("\\textbackslash{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '<' => out.push_str("\\textless{}"),
            '>' => out.push_str("\\textgreater{}"),
            '|' => out.push_str("\\textbar{}"),
            '–' => out.push_str("--"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_latex_acts_on_are_escaped() {
        assert_eq!(escaped(r"a_b & 50% {x} #1 $y$"), r"a\_b \& 50\% \{x\} \#1 \$y\$");
        assert_eq!(
            escaped(r"\x~^<|>"),
            "\\textbackslash{}x\\textasciitilde{}\\textasciicircum{}\\textless{}\\textbar{}\\textgreater{}"
        );
        assert_eq!(escaped("Hits@10, K = 16 – é\n"), "Hits@10, K = 16 -- é ");
    }
}
