//! The report as one self-contained HTML page, in the style of the report of a run.

use std::fmt::Write as _;

use ctdg::audit::{Finding, Verdict};
use hopedgn::chart::{Axis, Chart, Key, Mark, STYLE, Size};
use hopedgn::fmt::{fixed, grouped};
use hopedgn::html::{escaped, page_head};

use super::Report;
use super::tables::{self, Cells};

/// Of findings.
const FINDINGS: &str = "
.finding { padding: 0.6rem 0.9rem; margin: 0 0 0.75rem; border-left: 3px solid var(--rule); background: var(--card); }
.finding p { margin: 0.15rem 0 0; }
.finding.leak { border-left-color: var(--fifth); }
.finding.note { border-left-color: var(--new); }
.finding.ok { border-left-color: var(--third); }
.finding b { text-transform: uppercase; font-size: 0.8rem; letter-spacing: 0.04em; }
.finding.leak b { color: var(--fifth); }
.finding.note b { color: var(--new); }
.finding.ok b { color: var(--third); }
";

pub(super) fn page(report: &Report) -> String {
    let title = format!("Audit of {}", report.data);
    let mut page = page_head(&title, &format!("{STYLE}{FINDINGS}"));
    let _ = writeln!(page, "<p class=\"quiet\">{}</p>", escaped(&report.subject()));
    page.push_str(&tiles(report));
    page.push_str("<h2>Findings</h2>\n");
    for finding in &report.audit.findings {
        page.push_str(&section(finding));
    }
    for table in tables::all(report).into_iter().filter(|table| !table.rows.is_empty()) {
        page.push_str(&html_table(&table));
    }
    page.push_str(&activity(report));
    page.push_str("</body>\n</html>\n");
    page
}

/// How many findings there are of each kind.
fn tiles(report: &Report) -> String {
    let mut out = String::from("<div class=\"tiles\">\n");
    for (name, verdict) in [("leaks", Verdict::Leak), ("notes", Verdict::Note), ("ok", Verdict::Ok)] {
        let n = report.audit.count(verdict);
        let _ = writeln!(out, "<div class=\"tile\"><span>{name}</span><b>{n}</b></div>");
    }
    out.push_str("</div>\n");
    out
}

fn section(finding: &Finding) -> String {
    let verdict = finding.verdict.as_str();
    let [title, measured, explanation, remedy] =
        [finding.check.title(), &finding.measured, finding.explanation, finding.remedy].map(escaped);
    let mut out =
        format!("<section class=\"finding {verdict}\">\n<h3><b>{verdict}</b> {title}</h3>\n<p>{measured}</p>\n");
    if finding.verdict != Verdict::Ok {
        let _ = writeln!(out, "<p class=\"quiet\">{explanation}</p>\n<p>→ {remedy}</p>");
    }
    out.push_str("</section>\n");
    out
}

fn html_table(table: &Cells) -> String {
    let mut out = format!("<h2>{}</h2>\n<div class=\"scroll\"><table>\n", escaped(table.title));
    let _ = writeln!(out, "<caption>{}</caption>\n<tr>", escaped(table.note));
    for name in &table.header {
        let _ = write!(out, "<th>{}</th>", escaped(name));
    }
    out.push_str("</tr>\n");
    for (name, cells) in &table.rows {
        let _ = write!(out, "<tr><th>{}</th>", escaped(name));
        for cell in cells {
            let _ = write!(out, "<td>{}</td>", escaped(cell));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table></div>\n");
    out
}

fn activity(report: &Report) -> String {
    let activity = &report.audit.activity;
    let most = activity.tenths.iter().copied().max().unwrap_or(0).max(1);
    let mut marks = Vec::new();
    for (tenth, &n) in activity.tenths.iter().enumerate() {
        let place = tenth as f64;
        marks.push(Mark::Bar { series: 0, x: [place - 0.4, place + 0.4], value: n as f64 });
        let x = [Some(place - 0.5), Some(place + 0.5)];
        marks.push(Mark::Tooltip { x, text: format!("tenth {}: {} events", tenth + 1, grouped(n)) });
    }
    let chart = Chart {
        title: "Events in each tenth of the whole duration".to_owned(),
        size: Size::Wide,
        x: Axis::categories((1..=activity.tenths.len()).map(|tenth| tenth.to_string())).titled("tenth"),
        y: Axis::around(0.0, most as f64, [0.0, f64::INFINITY]),
        legend: vec![Key::bar(0, "events")],
        marks,
    };
    let mut out = format!("<h2>Activity</h2>\n<div class=\"wide\">\n<figure>{}</figure>\n<dl>\n", chart.inline());
    let mut fact = |name: &str, value: String| {
        let _ = writeln!(out, "<div><dt>{}</dt><dd>{}</dd></div>", escaped(name), escaped(&value));
    };
    let number = |value: Option<f64>| value.map_or("–".to_owned(), |value| fixed(value, 2));
    fact("Rate of test over training", number(activity.rate_ratio));
    fact("Correlation of popularity", number(activity.popularity_correlation));
    if let Some(gaps) = &activity.gaps {
        fact("Median time between events", report.duration(gaps.median));
        fact("99% are at most", report.duration(gaps.p99));
        fact("Longest silence", report.duration(gaps.longest));
        fact("It begins at", report.time(gaps.longest_from));
    }
    let counts = &report.audit.counts;
    fact("Distinct times", grouped(counts.distinct_times));
    fact(
        "Largest moment",
        format!("{} events at {}", grouped(counts.largest_moment), report.time(counts.largest_moment_time)),
    );
    out.push_str("</dl>\n</div>\n");
    out
}
