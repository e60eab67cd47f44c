//! The style sheet of charts.

use crate::html::{DARK, LIGHT};

/// Colours of series before they repeat in another look.
pub const N_SERIES: usize = 6;

/// Looks of one colour before they repeat: filled, hollow, thin, thin and hollow.
pub const N_LOOKS: usize = 4;

/// Rules for charts in a page whose style sheet defines the theme's variables.
pub const STYLE: &str = "
svg.chart { display: block; width: 100%; height: auto; max-width: 32rem; }
svg.chart text { fill: var(--quiet); font: 12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif;
  font-variant-numeric: tabular-nums; }
svg.chart text.title { fill: var(--ink); font-weight: 600; font-size: 13px; } svg.chart text.name { fill: var(--ink); }
svg.chart .page { fill: var(--page); } svg.chart .grid { stroke: var(--grid); } svg.chart .axis { stroke: var(--quiet); }
svg.chart .guide { stroke: var(--quiet); stroke-dasharray: 2 3; }
svg.chart .error-bar { fill: none; stroke: var(--ink); }
svg.chart .line { fill: none; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
svg.chart .s0 { --series: var(--all); } svg.chart .s1 { --series: var(--new); } svg.chart .s2 { --series: var(--third); }
svg.chart .s3 { --series: var(--fourth); } svg.chart .s4 { --series: var(--fifth); } svg.chart .s5 { --series: var(--sixth); }
svg.chart .line { stroke: var(--series); } svg.chart .dot, svg.chart .bar { fill: var(--series); }
svg.chart .line.s1 { stroke-dasharray: 6 4; } svg.chart .line.s2 { stroke-dasharray: 2 4; }
svg.chart .line.s3 { stroke-dasharray: 9 4 2 4; } svg.chart .line.s4 { stroke-dasharray: 12 4; }
svg.chart .line.s5 { stroke-dasharray: 1 5; }
svg.chart .line.look1, svg.chart .line.look3 { stroke-opacity: 0.7; }
svg.chart .line.look2, svg.chart .line.look3 { stroke-width: 1; }
svg.chart .dot.look1, svg.chart .dot.look3 { fill: var(--page); stroke: var(--series); stroke-width: 1.5; }
svg.chart .bar.look1, svg.chart .bar.look3 { fill-opacity: 0.45; }
svg.chart .bar.look2, svg.chart .bar.look3 { stroke: var(--ink); }
svg.chart .dot.large { stroke: var(--page); stroke-width: 2; }
svg.chart .hover { fill: transparent; } svg.chart .hover:hover { fill: var(--band); }
";

/// The same for a chart in a file of its own: light, or dark on a dark screen.
///
/// ```
/// assert!(hopedgn::chart::standalone_style().contains(hopedgn::chart::STYLE));
/// ```
#[must_use]
pub fn standalone_style() -> String {
    format!("\nsvg {{ {LIGHT} }}\n@media screen and (prefers-color-scheme: dark) {{ svg {{ {DARK} }} }}{STYLE}")
}
