//! Both matrices as one SVG file, light or dark as the reader's screen.

use ctdg::svg::Svg;

use super::page::counted;
use super::{Cell, Findings, Line, Mark, Matrix, Origin};
use hopedgn::html::{DARK, LIGHT};

const LEFT: f64 = 158.0;
const RIGHT: f64 = 58.0;
/// Height of the slanted family names.
const NAMES: f64 = 92.0;
const TITLE: f64 = 34.0;
const CELL: [f64; 2] = [36.0, 21.0];
/// Between the tests and the models.
const GAP: f64 = 6.0;
const LEGEND: f64 = 74.0;

const STYLE: &str = "
svg { --yes: #bcd4f7; --no: #eef0f3; --on: #14305f; --bad: #c21f1f; --tie: #8a5a00; }
@media screen and (prefers-color-scheme: dark) { svg { --yes: #2f5596; --no: #232833; --on: #ffffff; --bad: #ff7b72; --tie: #e3b341; } }
.page { fill: var(--page); } text { fill: var(--ink); font: 11px system-ui, -apple-system, 'Segoe UI', sans-serif; }
.title { font-size: 14px; font-weight: 600; } .quiet { fill: var(--quiet); } .in { text-anchor: middle; } .test { font-weight: 600; }
.round { font-size: 8px; fill: var(--on); } .yes, .part { fill: var(--yes); } .no { fill: var(--no); } .in.on { fill: var(--on); }
.in.off { fill: var(--quiet); } .mark { fill: none; stroke-width: 2; } .broken { stroke: var(--bad); stroke-width: 3; }
.ties { stroke: var(--tie); stroke-dasharray: 3 2; } .missed { stroke: var(--bad); stroke-dasharray: 1 2; }
.lost { stroke: var(--new); }
";

/// The picture; equal findings give equal bytes.
#[must_use]
pub fn svg(findings: &Findings) -> String {
    let matrices = Origin::ALL.map(|origin| (origin, Matrix::of(findings, origin)));
    let n_lines = matrices[0].1.lines.len() as f64;
    let panel = TITLE + NAMES + GAP + CELL[1] * n_lines + 18.0;
    let width = LEFT + RIGHT + CELL[0] * findings.families.len() as f64;
    let height = 2.0 * panel + LEGEND;
    let mut svg = Svg::with_root(|root| {
        root.attr("xmlns", "http://www.w3.org/2000/svg")
            .attr("viewBox", format_args!("0 0 {width:.0} {height:.0}"))
            .attr("width", format_args!("{width:.0}"))
            .attr("height", format_args!("{height:.0}"))
            .attr("role", "img")
            .attr("aria-label", "Which model separates which graphs and pairs")
    });
    svg.rect([0.0, 0.0], [width, height]).attr("class", "page");
    for (at, (origin, matrix)) in matrices.iter().enumerate() {
        svg.group(format_args!("translate(0 {:.0})", panel * at as f64), |svg| {
            draw_panel(svg, findings, *origin, matrix);
        });
    }
    draw_legend(&mut svg, 2.0 * panel);
    let style = format!(
        ">\n<style>\nsvg {{ {LIGHT} }}\n@media screen and (prefers-color-scheme: dark) {{ svg {{ {DARK} }} }}{STYLE}</style>"
    );
    svg.finish().replacen('>', &style, 1)
}

fn draw_panel(svg: &mut Svg, findings: &Findings, origin: Origin, matrix: &Matrix) {
    let title = match origin {
        Origin::Random => format!("Random weights, {}", counted(findings.n_draws, "draw")),
        Origin::Trained => {
            let n_steps = findings.training.first().map_or(0, |training| training.n_steps);
            format!("Weights trained for {}, {}", counted(n_steps, "step"), counted(findings.n_draws, "seed"))
        }
    };
    svg.text([10.0, 24.0], title).attr("class", "title");
    for (column, family) in findings.families.iter().enumerate() {
        let (x, y) = (LEFT + CELL[0] * (column as f64 + 0.5) - 3.0, TITLE + NAMES - 4.0);
        svg.text([0.0, 0.0], &family.name)
            .attr("transform", format_args!("translate({x:.1} {y:.1}) rotate(-52)"))
            .title(&family.about);
    }
    for (at, line) in matrix.lines.iter().enumerate() {
        let gap = if line.is_test { 0.0 } else { GAP };
        draw_line(svg, line, TITLE + NAMES + gap + CELL[1] * at as f64);
    }
}

fn draw_line(svg: &mut Svg, line: &Line, top: f64) {
    let name = svg.text([LEFT - 8.0, top + 14.5], &line.name).attr("text-anchor", "end");
    drop(if line.is_test { name.attr("class", "test") } else { name });
    for (column, cell) in line.cells.iter().enumerate() {
        draw_cell(svg, cell, LEFT + CELL[0] * column as f64, top);
    }
}

fn draw_cell(svg: &mut Svg, cell: &Cell, x: f64, y: f64) {
    let [width, height] = [CELL[0] - 2.0, CELL[1] - 2.0];
    svg.rect([x, y], [width, height]).attr("class", if cell.n == cell.all { "yes" } else { "no" }).attr("rx", 2);
    if cell.n > 0 && cell.n < cell.all {
        let share = width * cell.n as f64 / cell.all as f64;
        svg.rect([x, y], [share, height]).attr("class", "part").attr("rx", 2);
    }
    let (middle, class) = (x + width / 2.0, if cell.n > 0 { "in on" } else { "in off" });
    match cell.rounds_text() {
        Some(rounds) => {
            // The count, then the round at its upper right.
            let text = cell.text();
            let half = 3.1 * text.chars().count() as f64;
            let aside = 2.2 * rounds.chars().count() as f64;
            svg.text([middle - aside, y + 14.0], text).attr("class", class);
            svg.text([middle + half, y + 10.5], rounds).attr("class", "in round");
        }
        None => drop(svg.text([middle, y + 13.5], cell.text()).attr("class", class)),
    }
    if let Some(mark) = cell.mark {
        draw_outline(svg, mark, [x, y], [width, height]);
    }
}

fn draw_outline(svg: &mut Svg, mark: Mark, [x, y]: [f64; 2], [width, height]: [f64; 2]) {
    let outline = svg.rect([x + 1.0, y + 1.0], [width - 2.0, height - 2.0]);
    outline.attr("class", format_args!("mark {}", mark.class())).attr("rx", 2);
}

fn draw_legend(svg: &mut Svg, top: f64) {
    let size = [CELL[0] - 2.0, CELL[1] - 4.0];
    let mut entry = |[x, y]: [f64; 2], class: &str, mark: Option<Mark>, text: &str| {
        svg.rect([x, y], size).attr("class", class).attr("rx", 2);
        if let Some(mark) = mark {
            draw_outline(svg, mark, [x, y], size);
        }
        svg.text([x + size[0] + 8.0, y + 12.5], text).attr("class", "quiet");
    };
    entry([12.0, top + 8.0], "yes", None, "separated");
    entry([12.0, top + 34.0], "no", None, "not separated");
    for (at, (mark, text)) in Mark::ALL.into_iter().enumerate() {
        entry([150.0 + 390.0 * (at % 2) as f64, top + 8.0 + 26.0 * (at / 2) as f64], "no", Some(mark), text);
    }
    let note = "n/m: n of m cases. Small figures: the round in which k-DWL separates.";
    svg.text([12.0, top + 70.0], note).attr("class", "quiet");
}
