//! Both matrices as one picture that needs no page around it, light or dark as its reader is.

use std::fmt::Write;

use super::page::counted;
use super::{Cell, Findings, Line, Mark, Matrix, Origin};
use hopedgn::html::escaped;

const LEFT: f64 = 158.0;
const RIGHT: f64 = 58.0;
/// Room for the names of families, which lean.
const NAMES: f64 = 92.0;
const TITLE: f64 = 34.0;
const CELL: [f64; 2] = [36.0, 21.0];
/// Between the tests and the models.
const GAP: f64 = 6.0;
const LEGEND: f64 = 74.0;

const STYLE: &str = "
svg { --page: #ffffff; --ink: #1b2130; --quiet: #596273; --yes: #bcd4f7; --no: #eef0f3; --on: #14305f; --bad: #c21f1f;
  --tie: #8a5a00; --less: #bf5700; }
@media (prefers-color-scheme: dark) { svg { --page: #12151b; --ink: #e7eaf0; --quiet: #a1aabb; --yes: #2f5596; --no: #232833;
  --on: #ffffff; --bad: #ff7b72; --tie: #e3b341; --less: #ffab5e; } }
.page { fill: var(--page); } text { fill: var(--ink); font: 11px system-ui, -apple-system, 'Segoe UI', sans-serif; }
.title { font-size: 14px; font-weight: 600; } .quiet { fill: var(--quiet); } .in { text-anchor: middle; }
.round { font-size: 8px; fill: var(--on); } .yes, .part { fill: var(--yes); } .no { fill: var(--no); } .in.on { fill: var(--on); }
.in.off { fill: var(--quiet); } .mark { fill: none; stroke-width: 2; } .broken { stroke: var(--bad); stroke-width: 3; }
.ties { stroke: var(--tie); stroke-dasharray: 3 2; } .missed { stroke: var(--bad); stroke-dasharray: 1 2; }
.lost { stroke: var(--less); }
";

/// The picture. It depends on nothing but `findings`.
#[must_use]
pub fn svg(findings: &Findings) -> String {
    let matrices = Origin::ALL.map(|origin| (origin, Matrix::of(findings, origin)));
    let n_lines = matrices[0].1.lines.len() as f64;
    let panel = TITLE + NAMES + GAP + CELL[1] * n_lines + 18.0;
    let width = LEFT + RIGHT + CELL[0] * findings.families.len() as f64;
    let height = 2.0 * panel + LEGEND;
    let mut out = String::new();
    let _ = writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0} {height:.0}" width="{width:.0}" height="{height:.0}" role="img" aria-label="Which model separates which graphs and pairs">
<style>{STYLE}</style>
<rect class="page" width="100%" height="100%"/>"#
    );
    for (at, (origin, matrix)) in matrices.iter().enumerate() {
        let _ = writeln!(out, r#"<g transform="translate(0 {:.0})">"#, panel * at as f64);
        draw_panel(&mut out, findings, *origin, matrix);
        out.push_str("</g>\n");
    }
    draw_legend(&mut out, 2.0 * panel);
    out.push_str("</svg>\n");
    out
}

fn draw_panel(out: &mut String, findings: &Findings, origin: Origin, matrix: &Matrix) {
    let title = match origin {
        Origin::Random => format!("Weights drawn at random, {}", counted(findings.n_draws, "draw")),
        Origin::Trained => {
            let n_steps = findings.training.first().map_or(0, |training| training.n_steps);
            format!("Weights trained for {}, {}", counted(n_steps, "step"), counted(findings.n_draws, "start"))
        }
    };
    let _ = writeln!(out, r#"<text class="title" x="10" y="24">{title}</text>"#);
    for (column, family) in findings.families.iter().enumerate() {
        let (x, y) = (LEFT + CELL[0] * (column as f64 + 0.5) - 3.0, TITLE + NAMES - 4.0);
        let _ = writeln!(
            out,
            r#"<text transform="translate({x:.1} {y:.1}) rotate(-52)">{}<title>{}</title></text>"#,
            escaped(&family.name),
            escaped(&family.about)
        );
    }
    for (at, line) in matrix.lines.iter().enumerate() {
        let gap = if line.is_test { 0.0 } else { GAP };
        draw_line(out, line, TITLE + NAMES + gap + CELL[1] * at as f64);
    }
}

fn draw_line(out: &mut String, line: &Line, top: f64) {
    let weight = if line.is_test { r#" font-weight="600""# } else { "" };
    let _ = writeln!(
        out,
        r#"<text x="{:.0}" y="{:.1}" text-anchor="end"{weight}>{}</text>"#,
        LEFT - 8.0,
        top + 14.5,
        escaped(&line.name)
    );
    for (column, cell) in line.cells.iter().enumerate() {
        draw_cell(out, cell, LEFT + CELL[0] * column as f64, top);
    }
}

fn draw_cell(out: &mut String, cell: &Cell, x: f64, y: f64) {
    let [width, height] = [CELL[0] - 2.0, CELL[1] - 2.0];
    let place = |x: f64, width: f64| format!(r#"x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height}" rx="2""#);
    let is_on = cell.n > 0;
    let _ = write!(out, r#"<rect class="{}" {}/>"#, if cell.n == cell.all { "yes" } else { "no" }, place(x, width));
    if is_on && cell.n < cell.all {
        let share = width * cell.n as f64 / cell.all as f64;
        let _ = write!(out, r#"<rect class="part" {}/>"#, place(x, share));
    }
    let text = cell.text();
    let (dx, class) = (width / 2.0, if is_on { "on" } else { "off" });
    match cell.rounds_text() {
        Some(rounds) => {
            let _ = write!(
                out,
                r#"<text class="in on" x="{:.1}" y="{:.1}">{text}<tspan class="round" dx="2" dy="-3">{rounds}</tspan></text>"#,
                x + dx,
                y + 14.0
            );
        }
        None => {
            let _ = write!(out, r#"<text class="in {class}" x="{:.1}" y="{:.1}">{text}</text>"#, x + dx, y + 13.5);
        }
    }
    if let Some(mark) = cell.mark {
        let inset = 1.0;
        let _ = write!(
            out,
            r#"<rect class="mark {}" x="{:.1}" y="{:.1}" width="{:.1}" height="{:.1}" rx="2"/>"#,
            mark.class(),
            x + inset,
            y + inset,
            width - 2.0 * inset,
            height - 2.0 * inset
        );
    }
    out.push('\n');
}

fn draw_legend(out: &mut String, top: f64) {
    let [width, height] = [CELL[0] - 2.0, CELL[1] - 4.0];
    for (at, (class, text)) in [("yes", "separated"), ("no", "not separated")].into_iter().enumerate() {
        let (x, y) = (12.0, top + 8.0 + 26.0 * at as f64);
        let _ = writeln!(
            out,
            r#"<rect class="{class}" x="{x}" y="{y:.1}" width="{width}" height="{height}" rx="2"/><text class="quiet" x="{:.1}" y="{:.1}">{text}</text>"#,
            x + width + 8.0,
            y + 12.5
        );
    }
    for (at, (mark, text)) in Mark::ALL.into_iter().enumerate() {
        let (x, y) = (150.0 + 390.0 * (at % 2) as f64, top + 8.0 + 26.0 * (at / 2) as f64);
        let _ = writeln!(
            out,
            r#"<rect class="no" x="{x}" y="{y:.1}" width="{width}" height="{height}" rx="2"/><rect class="mark {}" x="{:.1}" y="{:.1}" width="{:.1}" height="{:.1}" rx="2"/><text class="quiet" x="{:.1}" y="{:.1}">{text}</text>"#,
            mark.class(),
            x + 1.0,
            y + 1.0,
            width - 2.0,
            height - 2.0,
            x + width + 8.0,
            y + 12.5
        );
    }
    let _ = writeln!(
        out,
        r#"<text class="quiet" x="12" y="{:.1}">n/m: n of m cases. Small figures: the round in which k-DWL separates.</text>"#,
        top + 70.0
    );
}
