//! Findings as one self-contained page without scripts, for screens of any width, light and dark, and for print.

use std::fmt::Write;

use super::{Bound, Cell, Discrepancy, Findings, Line, Mark, Matrix, Origin, TRAINING};
use hopedgn::html::{escaped, page_head};

/// Added to the style of reports.
const STYLE: &str = "
:root { --yes: #bcd4f7; --no: #eef0f3; --on: #14305f; --bad: #c21f1f; --tie: #8a5a00; }
@media screen and (prefers-color-scheme: dark) { :root { --yes: #2f5596; --no: #232833; --on: #ffffff; --bad: #ff7b72;
  --tie: #e3b341; } }
body { max-width: 92rem; }
.matrix { width: auto; border-collapse: separate; border-spacing: 2px; font-size: 0.8rem; }
.matrix th, .matrix td { border: 0; padding: 0.1rem 0.3rem; text-align: center; }
.matrix thead th { height: 7.2rem; vertical-align: bottom; padding: 0 0 0.3rem; }
.matrix thead a { display: inline-block; writing-mode: vertical-rl; transform: rotate(180deg); color: var(--quiet); text-decoration: none; }
.matrix thead a:hover, .matrix thead a:focus { color: var(--ink); text-decoration: underline; }
.matrix tbody th { position: sticky; left: 0; z-index: 1; padding-right: 0.6rem; background: var(--page); color: var(--ink);
  text-align: left; white-space: nowrap; }
.matrix tr.test th { font-weight: 600; } .matrix tr.last > * { border-bottom: 0.4rem solid var(--page); }
.matrix thead td { background: none; }
.matrix tbody td { min-width: 2.4rem; background: var(--no); color: var(--quiet); border-radius: 2px; }
.matrix td.yes { background: var(--yes); color: var(--on); }
.matrix td.some { color: var(--ink); background: linear-gradient(to right, var(--yes) var(--share), var(--no) var(--share)); }
.matrix sup { font-size: 0.6rem; line-height: 1; margin-left: 0.1rem; }
.broken { outline: 3px solid var(--bad); outline-offset: -3px; } .missed { outline: 2px dotted var(--bad); outline-offset: -2px; }
.ties { outline: 2px dashed var(--tie); outline-offset: -2px; } .lost { outline: 2px solid var(--new); outline-offset: -2px; }
.legend { display: flex; flex-wrap: wrap; gap: 0.3rem 1.4rem; margin: 0.8rem 0 0; padding: 0; list-style: none; font-size: 0.85rem;
  color: var(--quiet); }
.legend i { display: inline-block; width: 2rem; height: 1.05rem; margin-right: 0.45rem; vertical-align: -0.2rem;
  border-radius: 2px; background: var(--no); }
.legend i.yes { background: var(--yes); }
.families { grid-template-columns: repeat(auto-fill, minmax(min(100%, 22rem), 1fr)); }
.families dt { font-weight: 600; color: var(--ink); font-size: 0.95rem; } .families dd { font-size: 0.9rem; }
.families :target { background: var(--band); }
ul.cases { padding-left: 1.1rem; font-size: 0.9rem; }
@media (max-width: 30rem) { .families { grid-template-columns: 1fr; } .matrix { font-size: 0.75rem; } }
@media print { .matrix { font-size: 7pt; } .matrix td { min-width: 0; } }
";

/// The page; equal findings give equal bytes.
#[must_use]
pub fn html(findings: &Findings) -> String {
    let mut page = page_head("What the models separate", STYLE);
    page.push_str(
        r"<p>Graphs and pairs of nodes that are hard to separate, and which of them 1-DWL, 2-DWL, marked DWL and each model, with small
widths, separates. A model separates two pairs if their logits differ for one of its sets of weights, and two graphs if the sorted logits
of all their pairs do. “yes” and “no” stand for a single case, “n/m” for n of m cases; small figures are the round in which a
test separates.</p>
",
    );
    page.push_str(&verdicts(findings));
    for origin in Origin::ALL {
        page.push_str(&section(findings, origin));
    }
    page.push_str(&families(findings));
    let lists = [
        ("Beyond the bound", &findings.beyond),
        ("Missed by global HopeDGN", &findings.missed),
        ("Not separated by local models", &findings.lost),
    ];
    page.push_str("<h2>Exceptions</h2>\n");
    for (title, discrepancies) in lists {
        page.push_str(&list(title, discrepancies));
    }
    page.push_str(&training(findings));
    let _ = writeln!(
        page,
        "<p class=\"quiet\">{}, seed {}. Logits that differ by less than {:.0e} of the \
         largest count as equal; those of global HopeDGN, where 2-DWL does not separate, must be equal to the last bit.</p>\n\
         </body>\n</html>",
        counted(findings.n_draws, "draw"),
        findings.seed,
        findings.tolerance
    );
    page
}

/// `1 draw`, `3 draws`.
pub(super) fn counted(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Each proposition with the number of exceptions.
fn verdicts(findings: &Findings) -> String {
    let n = |wanted: &dyn Fn(&Discrepancy) -> bool| findings.beyond.iter().filter(|one| wanted(one)).count();
    let nodes = [n(&|one| one.bound == Bound::One && !one.ties), n(&|one| one.bound == Bound::One && one.ties)];
    let [pairs, marked] =
        [n(&|one| one.bound == Bound::Two), n(&|one| matches!(one.bound, Bound::Marked | Bound::MarkedMet))];
    let of = |list: &[Discrepancy], origin: Origin| list.iter().filter(|one| one.weights == origin).count();
    let missed = Origin::ALL.map(|origin| of(&findings.missed, origin));
    let lost = Origin::ALL.map(|origin| of(&findings.lost, origin));
    let tiles = [
        (
            "Proposition 2",
            nodes[0],
            format!(
                "cases that a model of node embeddings separates and 1-DWL does not; {} more where a node has simultaneous events",
                nodes[1]
            ),
        ),
        ("Proposition 4", pairs, "cases that HopeDGN, global or local, separates and 2-DWL does not".to_owned()),
        ("Marked DWL", marked, "cases that a model bounded by marked DWL separates and it does not".to_owned()),
        (
            "Proposition 5",
            missed[0],
            format!(
                "cases that 2-DWL separates and global HopeDGN with random weights does not; trained: {}",
                missed[1]
            ),
        ),
        (
            "Local models",
            lost[0],
            format!(
                "cases that its bound separates and a local model with random weights does not; trained: {}",
                lost[1]
            ),
        ),
    ];
    let mut out = String::from("<div class=\"tiles\">\n");
    for (name, count, what) in tiles {
        let _ = writeln!(out, "<div class=\"tile\"><span>{name}</span><b>{count}</b><small>{what}</small></div>");
    }
    out.push_str("</div>\n");
    out
}

fn section(findings: &Findings, origin: Origin) -> String {
    let (title, about) = match origin {
        Origin::Random => (
            "Random weights",
            format!("{}, larger than initial weights of training.", counted(findings.n_draws, "draw")),
        ),
        Origin::Trained => ("Trained weights", format!("{}: {TRAINING}.", counted(findings.n_draws, "seed"))),
    };
    let matrix = Matrix::of(findings, origin);
    let mut out = format!(
        "<h2>{title}</h2>\n<p class=\"quiet\">{about}</p>\n<div class=\"scroll\" tabindex=\"0\"><table class=\"matrix\">\n\
         <thead><tr><td></td>"
    );
    for family in &findings.families {
        let (name, about) = (escaped(&family.name), escaped(&family.about));
        let _ = write!(out, r##"<th scope="col"><a href="#{name}" title="{about}">{name}</a></th>"##);
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    let n_tests = matrix.lines.iter().filter(|line| line.is_test).count();
    for (at, line) in matrix.lines.iter().enumerate() {
        let class = match at + 1 {
            n if n == n_tests => " class=\"test last\"",
            n if n < n_tests => " class=\"test\"",
            _ => "",
        };
        let _ = write!(out, "<tr{class}><th scope=\"row\">{}</th>", escaped(&line.name));
        for (family, cell) in findings.families.iter().zip(&line.cells) {
            out.push_str(&shown(line, &family.name, cell));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n<ul class=\"legend\"><li><i class=\"yes\"></i>separated</li><li><i></i>not separated</li>");
    for (mark, text) in Mark::ALL {
        let _ = write!(out, "<li><i class=\"{}\"></i>{text}</li>", mark.class());
    }
    out.push_str("</ul>\n");
    out
}

fn shown(line: &Line, family: &str, cell: &Cell) -> String {
    let mark = Mark::ALL.iter().find(|(mark, _)| Some(*mark) == cell.mark);
    let class = mark.map_or(String::new(), |(mark, _)| format!(" {}", mark.class()));
    let note = mark.map_or(String::new(), |(_, text)| format!(": {text}"));
    let share = if cell.class() == "some" {
        format!(" style=\"--share: {:.0}%\"", 100.0 * cell.n as f64 / cell.all as f64)
    } else {
        String::new()
    };
    let rounds = cell.rounds_text().map_or(String::new(), |rounds| format!("<sup>{rounds}</sup>"));
    format!(
        "<td class=\"{}{class}\"{share} title=\"{} on {}{note}\">{}{rounds}</td>",
        cell.class(),
        escaped(&line.name),
        escaped(family),
        cell.text()
    )
}

fn families(findings: &Findings) -> String {
    let mut out = String::from("<h2>The families</h2>\n<dl class=\"families\">\n");
    for family in &findings.families {
        let of = if family.of_pairs { " of two pairs" } else { " of two graphs" };
        let n = counted(family.cases.len() as u64, "case");
        let _ = writeln!(
            out,
            "<div id=\"{0}\"><dt>{0}</dt><dd>{1}<small>{n}{of}{2}</small></dd></div>",
            escaped(&family.name),
            escaped(&family.about),
            if family.cases.iter().any(|case| case.ties) { "; some nodes have simultaneous events" } else { "" }
        );
    }
    out.push_str("</dl>\n");
    out
}

/// One entry for each model and family.
fn list(title: &str, discrepancies: &[Discrepancy]) -> String {
    if discrepancies.is_empty() {
        return format!("<p>{title}: none.</p>\n");
    }
    let mut out = format!("<details><summary>{title}: {}</summary>\n<ul class=\"cases\">\n", discrepancies.len());
    for same in Discrepancy::by_family(discrepancies) {
        let one = same[0];
        let cases: Vec<String> = same.iter().map(|one| one.case.to_string()).collect();
        let _ = writeln!(
            out,
            "<li>{}, {} ({}): {}, case {}</li>",
            escaped(&one.model),
            one.weights.as_str(),
            one.bound.as_str(),
            escaped(&one.family),
            cases.join(", ")
        );
    }
    out.push_str("</ul></details>\n");
    out
}

fn training(findings: &Findings) -> String {
    let mut out = String::from(
        "<h2>Training</h2>\n<details><summary>Loss and validation AP of every training</summary>\n<div class=\"scroll\"><table>\n\
         <thead><tr><th scope=\"col\">model</th><th scope=\"col\">seed</th><th scope=\"col\">steps</th><th scope=\"col\">loss, first epoch</th>\
         <th scope=\"col\">last epoch</th><th scope=\"col\">AP, %</th></tr></thead>\n<tbody>\n",
    );
    for one in &findings.training {
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{:.4}</td><td>{:.4}</td><td>{:.1}</td></tr>",
            escaped(&one.model),
            one.seed,
            one.n_steps,
            one.first_loss,
            one.last_loss,
            100.0 * one.val_ap
        );
    }
    out.push_str("</tbody></table></div>\n</details>\n");
    out
}
