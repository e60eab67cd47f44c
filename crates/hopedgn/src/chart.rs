//! Charts as SVG: lines, bars and scatter plots with axes, a legend, and labels that do not overlap.
//!
//! ```
//! use hopedgn::chart::{Axis, Chart, Key, Mark, Size};
//!
//! let points = vec![[1.0, 0.9], [2.0, 0.7], [3.0, 0.6]];
//! let chart = Chart {
//!     title: "Training loss".to_owned(),
//!     size: Size::Wide,
//!     x: Axis::counts(1, 3).titled("epoch"),
//!     y: Axis::around(0.6, 0.9, [0.0, f64::INFINITY]),
//!     legend: vec![Key::line(0, "mean over batches")],
//!     marks: vec![Mark::Line { series: 0, points }],
//! };
//! let file = chart.standalone();
//! assert!(file.starts_with("<svg") && file.contains("Training loss"));
//! ```
//!
//! Colours are CSS variables of the theme: a chart in a page follows the page ([`STYLE`]), a chart in a file of its own has
//! the style sheet inside and follows the reader's light or dark setting.

mod axis;
mod histogram;
mod labels;
mod style;

use std::fmt::Write as _;

use ctdg::svg::{Point, Svg, number};

pub use axis::{Axis, Scale};
pub use histogram::{Bin, histogram};
pub use style::{N_LOOKS, N_SERIES, STYLE, standalone_style};

use labels::{LETTER, Placed};

/// About the width in pixels at which a chart is shown, so that letters have about their stated size.
const WIDTH: f64 = 400.0;
/// From the top to the legend, and the height of a line of it.
const TITLE: f64 = 30.0;
const LEGEND_LINE: f64 = 18.0;
const RIGHT: f64 = 10.0;
/// Between the ends of an axis of counts and its first and last mark.
const INSET: f64 = 8.0;

/// The format of a chart.
///
/// See [`Chart`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// 400 × 280, and more with a legend of several lines.
    Wide,
    /// 400 × 400, with room for labels.
    Square,
}

impl Size {
    fn height(self) -> f64 {
        match self {
            Self::Wide => 280.0,
            Self::Square => 400.0,
        }
    }
}

/// An entry of the legend.
///
/// See [`Chart`].
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    series: usize,
    name: String,
    is_line: bool,
}

impl Key {
    /// Of a line.
    pub fn line(series: usize, name: impl Into<String>) -> Self {
        Self { series, name: name.into(), is_line: true }
    }

    /// Of bars.
    pub fn bar(series: usize, name: impl Into<String>) -> Self {
        Self { series, name: name.into(), is_line: false }
    }
}

/// Something drawn on the plane of the axes, in their values. A series decides the colour, one of [`N_SERIES`], and after
/// those the look, one of [`N_LOOKS`].
///
/// See [`Chart`].
#[derive(Debug, Clone, PartialEq)]
pub enum Mark {
    /// From point to point; a value that is not finite is a gap.
    Line {
        /// Its series.
        series: usize,
        /// `[x, y]`.
        points: Vec<[f64; 2]>,
    },
    /// A point.
    Dot {
        /// Its series.
        series: usize,
        /// `[x, y]`.
        at: [f64; 2],
        /// Whether it stands out.
        is_large: bool,
    },
    /// A bar from the low end of the vertical axis.
    Bar {
        /// Its series.
        series: usize,
        /// Left and right end.
        x: [f64; 2],
        /// Its height.
        value: f64,
    },
    /// An error bar.
    ErrorBar {
        /// Where.
        x: f64,
        /// Lower and upper end.
        y: [f64; 2],
    },
    /// Text beside a point, moved where it would overlap another label or a point.
    Label {
        /// The point.
        at: [f64; 2],
        /// The text.
        text: String,
    },
    /// A dashed vertical line with text above it.
    Guide {
        /// Where.
        x: f64,
        /// The text.
        text: String,
    },
    /// A column with a tooltip; without an end it reaches to the edge.
    Tooltip {
        /// Left and right end.
        x: [Option<f64>; 2],
        /// The text.
        text: String,
    },
}

/// A chart.
///
/// ```
/// use hopedgn::chart::{Axis, Chart, Key, Mark, Size};
///
/// let x = Axis::categories(["TGN".to_owned(), "HopeDGN".to_owned()]);
/// let bar = |place: f64, value: f64| Mark::Bar { series: 0, x: [place - 0.3, place + 0.3], value };
/// let (marks, legend) = (vec![bar(0.0, 92.1), bar(1.0, 95.6)], vec![Key::bar(0, "test AP")]);
/// let chart = Chart { title: "Models".to_owned(), size: Size::Square, x, y: Axis::above_chance(), legend, marks };
/// assert!(chart.inline().contains("HopeDGN"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// Above the plane, and read by screen readers.
    pub title: String,
    /// Its format.
    pub size: Size,
    /// Horizontal.
    pub x: Axis,
    /// Vertical.
    pub y: Axis,
    /// What colours stand for; without entries there is none.
    pub legend: Vec<Key>,
    /// In drawing order; labels come last.
    pub marks: Vec<Mark>,
}

/// The rectangle of the plane: left, top, right, bottom.
#[derive(Debug, Clone, Copy)]
struct Plane {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl Chart {
    /// The chart as a part of a page that has [`STYLE`].
    #[must_use]
    pub fn inline(&self) -> String {
        self.draw(false)
    }

    /// The chart as a file of its own.
    #[must_use]
    pub fn standalone(&self) -> String {
        self.draw(true)
    }

    fn draw(&self, is_standalone: bool) -> String {
        let legend = self.legend_layout();
        let n_lines = legend.last().map_or(0.0, |(_, [_, line])| line + 1.0);
        // A legend of several lines makes the chart higher, not its plane lower.
        let height = self.size.height() + LEGEND_LINE * (n_lines - 1.0).max(0.0);
        let mut svg = Svg::with_root(|root| {
            let root = if is_standalone { root.attr("xmlns", "http://www.w3.org/2000/svg") } else { root };
            root.attr("class", "chart")
                .attr("viewBox", format_args!("0 0 {WIDTH:.0} {height:.0}"))
                .attr("role", "img")
                .attr("aria-label", &self.title)
        });
        svg.rect([0.0, 0.0], [WIDTH, height]).attr("class", "page");
        svg.text([4.0, 18.0], &self.title).attr("class", "title");
        draw_legend(&mut svg, &legend);
        let has_guide = self.marks.iter().any(|mark| matches!(mark, Mark::Guide { .. }));
        let plane = Plane {
            left: 14.0 + LETTER * self.y.longest_label().max(3) as f64,
            top: TITLE
                + LEGEND_LINE * n_lines
                + if n_lines > 0.0 { 6.0 } else { 0.0 }
                + if has_guide { 12.0 } else { 0.0 },
            right: WIDTH - RIGHT,
            bottom: height - if self.x.title.is_empty() { 26.0 } else { 44.0 },
        };
        self.draw_axes(&mut svg, plane, height);
        for mark in &self.marks {
            self.draw_mark(&mut svg, mark, plane);
        }
        self.draw_labels(&mut svg, plane);
        let svg = svg.finish();
        if is_standalone { svg.replacen('>', &format!(">\n<style>{}</style>", standalone_style()), 1) } else { svg }
    }

    /// Each entry with its `[x, line]`; a new line begins where the width is exceeded.
    fn legend_layout(&self) -> Vec<(&Key, [f64; 2])> {
        let (mut x, mut line) = (4.0, 0.0);
        let mut layout = Vec::new();
        for key in &self.legend {
            let width = 44.0 + 7.4 * key.name.chars().count() as f64;
            if x > 4.0 && x + width > WIDTH {
                (x, line) = (4.0, line + 1.0);
            }
            layout.push((key, [x, line]));
            x += width;
        }
        layout
    }

    fn draw_axes(&self, svg: &mut Svg, plane: Plane, height: f64) {
        let Plane { left, right, bottom, .. } = plane;
        for tick in self.y.ticks() {
            let y = plane.y(self, tick.value);
            let class = if (y - bottom).abs() < 0.5 { "axis" } else { "grid" };
            svg.line([left, y], [right, y]).attr("class", class);
            svg.text([left - 6.0, y + 4.0], &tick.label).attr("text-anchor", "end");
        }
        for tick in self.x.ticks() {
            let x = plane.x(self, tick.value);
            svg.line([x, bottom], [x, bottom + 4.0]).attr("class", "axis");
            svg.text([x, bottom + 17.0], &tick.label).attr("text-anchor", "middle");
        }
        if !self.x.title.is_empty() {
            svg.text([f64::midpoint(left, right), height - 6.0], &self.x.title).attr("text-anchor", "middle");
        }
    }

    fn draw_mark(&self, svg: &mut Svg, mark: &Mark, plane: Plane) {
        let place = |[x, y]: [f64; 2]| -> Point { [plane.x(self, x), plane.y(self, y)] };
        match mark {
            Mark::Line { series, points } => {
                let (mut data, mut is_after_gap) = (String::new(), true);
                for &point in points {
                    let is_gap = !is_drawable(point[1]);
                    if !is_gap {
                        let [x, y] = place(point).map(number);
                        let _ = write!(data, "{}{x} {y}", if is_after_gap { 'M' } else { 'L' });
                    }
                    is_after_gap = is_gap;
                }
                svg.path(data).attr("class", class("line", *series));
            }
            Mark::Dot { at, .. } if !is_drawable(at[1]) => {}
            Mark::Dot { series, at, is_large: true } => {
                svg.circle(place(*at), 5.5).attr("class", class("dot large", *series));
            }
            Mark::Dot { series, at, is_large: false } => {
                svg.circle(place(*at), 3.0).attr("class", class("dot", *series));
            }
            Mark::Bar { series, x: [from, to], value } => {
                let ([left, top], [right, bottom]) = (place([*from, *value]), place([*to, self.y.low()]));
                svg.rect([left, top], [right - left, bottom - top]).attr("class", class("bar", *series));
            }
            Mark::ErrorBar { x, y: [low, high] } => {
                let ([x, low], [_, high]) = (place([*x, *low]), place([*x, *high]));
                let [x0, x1] = [x - 4.0, x + 4.0].map(number);
                let [x, low, high] = [x, low, high].map(number);
                let path = format!("M{x} {low}V{high}M{x0} {low}H{x1}M{x0} {high}H{x1}");
                svg.path(path).attr("class", "error-bar");
            }
            Mark::Guide { x, text } => {
                let x = plane.x(self, *x);
                svg.line([x, plane.top], [x, plane.bottom]).attr("class", "guide");
                let half = LETTER / 2.0 * text.chars().count() as f64;
                let middle = x.clamp(plane.left + half, plane.right.max(plane.left + 2.0 * half) - half);
                svg.text([middle, plane.top - 6.0], text).attr("text-anchor", "middle");
            }
            Mark::Tooltip { x: [from, to], text } => {
                let from = from.map_or(plane.left, |from| plane.x(self, from));
                let to = to.map_or(plane.right, |to| plane.x(self, to));
                let size = [(to - from).max(0.0), plane.bottom - plane.top];
                svg.rect([from, plane.top], size).attr("class", "hover").title(text);
            }
            Mark::Label { .. } => {}
        }
    }

    fn draw_labels(&self, svg: &mut Svg, plane: Plane) {
        let place = |[x, y]: [f64; 2]| (plane.x(self, x), plane.y(self, y));
        let labels = self.marks.iter().filter_map(|mark| match mark {
            Mark::Label { at, text } => Some((text.as_str(), place(*at))),
            _ => None,
        });
        let labels: Vec<(&str, (f64, f64))> = labels.collect();
        let bounds = [plane.left, plane.top, plane.right, plane.bottom];
        for (&(text, at), placed) in labels.iter().zip(labels::place(&labels, bounds)) {
            let Placed { middle: (x, y), has_leader } = placed;
            if has_leader {
                let foot = y + if y > at.1 { -7.0 } else { 6.0 };
                svg.line([at.0, at.1], [x, foot]).attr("class", "axis");
            }
            svg.text([x, y + 4.0], text).attr("class", "name").attr("text-anchor", "middle");
        }
    }
}

fn draw_legend(svg: &mut Svg, layout: &[(&Key, [f64; 2])]) {
    for (Key { series, name, is_line }, [x, line]) in layout {
        let y = TITLE + LEGEND_LINE * line + 6.0;
        if *is_line {
            svg.line([*x, y], [x + 22.0, y]).attr("class", class("line", *series));
            svg.circle([x + 11.0, y], 3.0).attr("class", class("dot", *series));
        } else {
            svg.rect([*x, y - 5.0], [18.0, 10.0]).attr("class", class("bar", *series));
        }
        svg.text([x + 28.0, y + 4.0], name).attr("class", "name");
    }
}

impl Plane {
    fn x(self, chart: &Chart, value: f64) -> f64 {
        let (left, right) = (self.left + INSET, self.right - INSET);
        left + chart.x.position(value) * (right - left)
    }

    fn y(self, chart: &Chart, value: f64) -> f64 {
        self.bottom + chart.y.position(value) * (self.top - self.bottom)
    }
}

/// Also refuses numbers whose differences would be infinite.
pub(crate) fn is_drawable(value: f64) -> bool {
    value.abs() < 1e300
}

/// Colour and look of a series: the first have a colour each, the next the same colours in another look.
fn class(kind: &str, series: usize) -> String {
    let colour = series % style::N_SERIES;
    match series / style::N_SERIES % style::N_LOOKS {
        0 => format!("{kind} s{colour}"),
        look => format!("{kind} s{colour} look{look}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(marks: Vec<Mark>) -> Chart {
        let y = Axis::around(1.0, 4.0, [0.0, 100.0]);
        Chart { title: "a < b".to_owned(), size: Size::Wide, x: Axis::counts(1, 5), y, legend: Vec::new(), marks }
    }

    #[test]
    fn a_value_that_is_not_finite_is_a_gap_in_the_line() {
        let values = [1.0, 2.0, f64::NAN, 4.0, f64::INFINITY];
        let points = (1_u8..).zip(values).map(|(x, y)| [f64::from(x), y]).collect();
        let svg = chart(vec![Mark::Line { series: 0, points }]).inline();
        let path = svg.split("<path d=\"").nth(1).unwrap().split('"').next().unwrap();
        assert_eq!((path.matches('M').count(), path.matches('L').count()), (2, 1));
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn a_file_has_its_style_and_a_part_of_a_page_has_not() {
        let chart = chart(vec![Mark::Bar { series: 1, x: [1.0, 2.0], value: 3.0 }]);
        let (file, part) = (chart.standalone(), chart.inline());
        assert!(file.contains("prefers-color-scheme: dark") && file.contains("xmlns"));
        assert!(!part.contains("<style>") && part.contains("aria-label=\"a &lt; b\""));
        assert_eq!(part.matches("class=\"bar s1\"").count(), 1);
    }

    #[test]
    fn series_beyond_the_colours_look_different() {
        let mut classes: Vec<String> =
            (0..style::N_SERIES * style::N_LOOKS).map(|series| class("dot", series)).collect();
        assert_eq!((classes[0].as_str(), classes[7].as_str()), ("dot s0", "dot s1 look1"));
        for look in classes.iter().filter_map(|class| class.split(' ').nth(2)) {
            assert!(STYLE.contains(&format!(".line.{look}")) && STYLE.contains(&format!(".bar.{look}")), "{look}");
        }
        classes.sort();
        classes.dedup();
        assert_eq!(classes.len(), style::N_SERIES * style::N_LOOKS);
    }

    #[test]
    fn a_guide_at_the_edge_keeps_its_text_inside() {
        for x in [1.0, 5.0] {
            let svg = chart(vec![Mark::Guide { x, text: "best so far: epoch 5".to_owned() }]).inline();
            let text = svg.lines().find(|line| line.contains("best so far")).unwrap();
            let middle: f64 = text.split('"').nth(1).unwrap().parse().unwrap();
            assert!((60.0..340.0).contains(&middle), "{text}");
        }
    }
}
