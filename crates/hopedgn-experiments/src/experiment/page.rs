//! Experiment page as self-contained HTML.

use std::fmt::Write;
use std::path::Path;

use super::content::contents;
use super::markdown::{
    device, entry_of, explanation, gain, lacking, machines, missing, notes, page_of, relative, values,
};
use super::measure::Metric;
use super::standings::Standings;
use super::table::{Entry, Table};
use super::{Experiment, Figure, Found};
use ctdg::error::counted;
use hopedgn::chart;
use hopedgn::fmt::seconds;
use hopedgn::html::{escaped, page_head};

const STYLE: &str = "
td.place { vertical-align: top; line-height: 1.3; }
td.place small { display: block; font-size: 0.8rem; color: var(--quiet); }
td.place b { font-weight: 700; } td.place u { text-underline-offset: 0.2em; }
td.place .down { color: var(--new); } td.place .up { color: var(--all); }
.scroll { margin-bottom: 1rem; } tr.model th:first-child { overflow-wrap: normal; }
a { color: var(--all); }
@media (min-width: 60rem) { body { max-width: 84rem; } }
";

/// The page; links are relative to `folder`, where it will be.
#[must_use]
pub fn html(experiment: &Experiment, found: &[Found], commands: &[String], folder: &Path) -> String {
    let figures = experiment.figures(found);
    let style = if figures.is_empty() { STYLE.to_owned() } else { STYLE.to_owned() + chart::STYLE };
    let mut page = page_head(experiment.title(), &style);
    if !experiment.about().is_empty() {
        let _ = writeln!(page, "<p>{}</p>", escaped(experiment.about().trim()));
    }
    for line in notes(experiment) {
        let _ = writeln!(page, "<p>{}</p>", escaped(&line));
    }
    let n_done = found.iter().filter(|one| one.is_done()).count();
    let _ = writeln!(
        page,
        "<div class=\"tiles\"><div class=\"tile\"><span>Runs</span><b>{n_done}<i> of {}</i></b></div></div>",
        found.len()
    );
    for figure in &figures {
        page.push_str(&drawn(figure));
    }
    if !figures.is_empty() {
        page.push_str("<h2>In numbers</h2>\n");
    }
    if let Some(standings) = Standings::of(experiment, found) {
        page.push_str(&compared(&standings));
    }
    let _ = writeln!(
        page,
        "<p class=\"quiet\">{} <b>Bold</b>: best of its column; <u>underlined</u>: second best.</p>",
        escaped(&explanation(experiment))
    );
    for table in Table::all(experiment, found) {
        page.push_str(&section(experiment, &table));
    }
    page.push_str(&runs(experiment, found, folder));
    for (title, lines) in [("Missing", missing(found)), ("Data", contents(found)), ("Machines", machines(found))] {
        if !lines.is_empty() {
            let items: Vec<String> = lines.iter().map(|line| format!("<li>{}</li>\n", escaped(line))).collect();
            let _ = writeln!(page, "<h2>{title}</h2>\n<ul>\n{}</ul>", items.concat());
        }
    }
    let _ = writeln!(page, "<h2>Commands</h2>\n<pre>{}</pre>\n</body>\n</html>", escaped(&commands.join("\n")));
    page
}

fn drawn(figure: &Figure) -> String {
    let mut pictures = String::new();
    for picture in &figure.pictures {
        let _ = writeln!(pictures, "<figure>{}</figure>", picture.inline());
    }
    let (title, lacking) = (escaped(&figure.title), escaped(&lacking(figure)));
    format!("<h2>{title}</h2>\n<div class=\"wide plots\">\n{pictures}</div>\n<p class=\"quiet\">{lacking}</p>\n")
}

fn compared(standings: &Standings) -> String {
    let head: Vec<String> =
        standings.head().iter().map(|title| format!("<th scope=\"col\">{}</th>", escaped(title))).collect();
    let head = head.concat();
    let mut out = format!(
        "<h2>Standings</h2>\n<p class=\"quiet\">{}</p>\n<div class=\"scroll\"><table>\n\
         <thead><tr><th scope=\"col\">Model</th>{head}</tr></thead>\n<tbody>\n",
        escaped(standings.explanation())
    );
    for standing in &standings.rows {
        let cells: Vec<String> = standing.cells().iter().map(|cell| format!("<td>{}</td>", escaped(cell))).collect();
        let cells = cells.concat();
        let _ = writeln!(out, "<tr class=\"model\"><th scope=\"row\">{}</th>{cells}</tr>", escaped(&standing.row));
    }
    out + "</tbody></table></div>\n"
}

fn section(experiment: &Experiment, table: &Table) -> String {
    let head: Vec<String> =
        table.columns.iter().map(|data| format!("<th scope=\"col\">{}</th>", escaped(data))).collect();
    let head = head.concat();
    let mut out = format!(
        "<h2>{}</h2>\n<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">Model</th>{head}</tr></thead>\n<tbody>\n",
        escaped(&table.title())
    );
    for (name, entries) in &table.rows {
        let cells: String = entries.iter().map(|entry| cell(entry.as_ref(), table.measure.metric)).collect();
        let _ = writeln!(out, "<tr class=\"model\"><th scope=\"row\">{}</th>{cells}</tr>", escaped(name));
    }
    if let Some((title, gains)) = table.improvement(experiment) {
        let cells: Vec<String> = gains.into_iter().map(|value| format!("<td>{}</td>", gain(value))).collect();
        let cells = cells.concat();
        let _ = writeln!(out, "<tr class=\"model\"><th scope=\"row\">{}</th>{cells}</tr>", escaped(&title));
    }
    out + "</tbody></table></div>\n"
}

fn cell(entry: Option<&Entry>, metric: Metric) -> String {
    let Some(entry) = entry else { return "<td></td>".to_owned() };
    let ours = match (entry.ours, entry.rank) {
        (None, _) => format!("<span class=\"quiet\">{}</span>", entry.why),
        (Some(ours), Some(1)) => format!("<b>{}</b>", ours.text(metric)),
        (Some(ours), Some(2)) => format!("<u>{}</u>", ours.text(metric)),
        (Some(ours), _) => ours.text(metric),
    };
    let paper = entry.paper.map(|paper| format!("<small>{}</small>", paper.text(metric))).unwrap_or_default();
    let difference = entry.difference().map_or(String::new(), |difference| {
        let class = if difference < 0.0 { "down" } else { "up" };
        format!("<small class=\"{class}\">{difference:+.2}</small>")
    });
    let (n_done, seeds) = (entry.n_done, counted(entry.n_seeds, "seed"));
    format!("<td class=\"place\" title=\"{n_done} of {seeds}\">{ours}{paper}{difference}</td>")
}

fn runs(experiment: &Experiment, found: &[Found], folder: &Path) -> String {
    let measures = experiment.measures();
    let head: Vec<String> =
        measures.iter().map(|measure| format!("<th scope=\"col\">{}</th>", escaped(&measure.title()))).collect();
    let head = head.concat();
    let mut out = format!(
        "<h2>Runs</h2>\n<div class=\"scroll\"><table class=\"runs\">\n<thead><tr><th scope=\"col\">Run</th>{head}\
         <th scope=\"col\">Best epoch</th><th scope=\"col\">Time per epoch</th><th scope=\"col\">Device</th></tr></thead>\n<tbody>\n"
    );
    for one in found {
        let Some(outcome) = &one.outcome else { continue };
        let name = escaped(&one.cell.name);
        let name = match &one.archived {
            Some(archived) => format!("{name} <small class=\"quiet\">{}</small>", escaped(&entry_of(archived))),
            None => format!("<a href=\"{}\">{name}</a>", escaped(&relative(folder, &page_of(one)))),
        };
        let values = values(outcome, &measures).join("</td><td>");
        let _ = writeln!(
            out,
            "<tr><td>{name}</td><td>{values}</td><td>{} of {}</td><td>{}</td><td>{}</td></tr>",
            outcome.summary.best_epoch,
            outcome.summary.epochs,
            seconds(outcome.summary.seconds_per_epoch),
            escaped(&device(one))
        );
    }
    out + "</tbody></table></div>\n"
}
