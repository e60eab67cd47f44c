//! One panel as SVG.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::label::{self, LETTER};
use crate::experiment::measure::Metric;
use crate::experiment::table::Reference;
use hopedgn::chart::Axis;

// About the width at which a panel is shown, so that letters have about their stated size.
const WIDTH: u32 = 400;
const HEIGHT: u32 = 280;
const TALL: u32 = 400;
/// Room above the plot for its title, and for each line of keys.
const TITLE: u32 = 30;
const KEYS: u32 = 18;

const PAGE: RGBColor = RGBColor(0xff, 0xff, 0xff);
const INK: RGBColor = RGBColor(0x1b, 0x21, 0x30);
const QUIET: RGBColor = RGBColor(0x59, 0x62, 0x73);
const GRID: RGBColor = RGBColor(0xe6, 0xe9, 0xee);
/// Those of the page of a run, and three more.
const SERIES: [RGBColor; 5] = [
    RGBColor(0x1f, 0x5f, 0xd0),
    RGBColor(0xbf, 0x57, 0x00),
    RGBColor(0x1a, 0x7f, 0x5a),
    RGBColor(0x8a, 0x3f, 0xfc),
    RGBColor(0xb0, 0x12, 0x5b),
];

/// Every colour again as a rule, so that a page's own rules for letters do not win, and its counterpart in the dark.
pub(in crate::experiment) const STYLE: &str = "
svg.plot { display: block; width: 100%; height: auto; max-width: 32rem; font-family: system-ui, sans-serif; }
svg.plot text { font-size: 12px; }
svg.plot [fill='#FFFFFF'] { fill: #ffffff; } svg.plot [fill='#1B2130'] { fill: #1b2130; }
svg.plot [fill='#596273'] { fill: #596273; }
@media screen and (prefers-color-scheme: dark) {
  svg.plot [fill='#FFFFFF'] { fill: #12151b; } svg.plot [fill='#1B2130'] { fill: #e7eaf0; }
  svg.plot [fill='#596273'] { fill: #a1aabb; } svg.plot [stroke='#596273'] { stroke: #a1aabb; }
  svg.plot [stroke='#1B2130'] { stroke: #e7eaf0; } svg.plot [stroke='#E6E9EE'] { stroke: #2a303c; }
  svg.plot [fill='#1F5FD0'] { fill: #7fb0ff; } svg.plot [stroke='#1F5FD0'] { stroke: #7fb0ff; }
  svg.plot [fill='#BF5700'] { fill: #ffab5e; } svg.plot [stroke='#BF5700'] { stroke: #ffab5e; }
  svg.plot [fill='#1A7F5A'] { fill: #5fd3a4; } svg.plot [stroke='#1A7F5A'] { stroke: #5fd3a4; }
  svg.plot [fill='#8A3FFC'] { fill: #c6a1ff; } svg.plot [stroke='#8A3FFC'] { stroke: #c6a1ff; }
  svg.plot [fill='#B0125B'] { fill: #ff8ab8; } svg.plot [stroke='#B0125B'] { stroke: #ff8ab8; }
}
";

/// A range with what is written on it.
#[derive(Debug, Clone)]
pub(super) struct Scale {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) ticks: Vec<(f64, String)>,
}

impl Scale {
    /// From a round number below to one above all values with their deviations.
    pub(super) fn around(values: &[Reference], metric: Metric) -> Option<Self> {
        let low = values.iter().map(|one| one.mean - one.deviation.unwrap_or(0.0)).reduce(f64::min)?;
        let high = values.iter().map(|one| one.mean + one.deviation.unwrap_or(0.0)).reduce(f64::max)?;
        // A cost is compared by its size, which only a scale from nothing shows.
        let low = if metric.is_cost() { 0.0 } else { low };
        let most = if metric.is_cost() { f64::INFINITY } else { 100.0 };
        Some(Self::of(&Axis::of_values(low, high, [0.0, most]), metric))
    }

    /// From nothing to a round number above `highest`.
    pub(super) fn from_nothing(highest: f64, metric: Metric) -> Self {
        Self::of(&Axis::of_values(0.0, highest.max(1.0), [0.0, f64::INFINITY]), metric)
    }

    /// From what chance reaches to all.
    pub(super) fn from_chance() -> Self {
        let ticks = [50.0, 60.0, 70.0, 80.0, 90.0, 100.0].map(|tick| (tick, format!("{tick}")));
        Self { low: 50.0, high: 100.0, ticks: ticks.to_vec() }
    }

    fn of(axis: &Axis, metric: Metric) -> Self {
        let label = |tick: f64| if metric.is_cost() && tick >= 1000.0 { metric.text(tick) } else { axis.label(tick) };
        Self { low: axis.low, high: axis.high, ticks: axis.ticks.iter().map(|&tick| (tick, label(tick))).collect() }
    }

    /// The logarithms of `numbers`, each of which is written.
    pub(super) fn over(numbers: &[f64]) -> Self {
        let logs: Vec<f64> = numbers.iter().map(|number| number.log10()).collect();
        let (low, high) = (logs.first().copied().unwrap_or(0.0), logs.last().copied().unwrap_or(1.0));
        let air = 0.06 * (high - low).max(0.3);
        let ticks = logs.iter().zip(numbers).map(|(&log, number)| (log, number.to_string())).collect();
        Self { low: low - air, high: high + air, ticks }
    }

    /// The logarithms of 1, 2 and 5 times powers of ten around `numbers`.
    pub(super) fn decades(numbers: &[f64]) -> Self {
        let low = numbers.iter().copied().fold(f64::INFINITY, f64::min).log10() - 0.15;
        let high = numbers.iter().copied().fold(0.0, f64::max).log10() + 0.15;
        let mut ticks = Vec::new();
        let mut power = 10f64.powf(low.floor());
        while power.log10() <= high {
            for tick in [1.0, 2.0, 5.0].map(|factor| factor * power) {
                if (low..=high).contains(&tick.log10()) {
                    // Rounded first: a power of ten is seldom exact.
                    let text = format!("{tick:.9}").trim_end_matches('0').trim_end_matches('.').to_owned();
                    ticks.push((tick.log10(), text));
                }
            }
            power *= 10.0;
        }
        Self { low, high, ticks }
    }

    /// What is written at `value`, which is one of the ticks.
    fn label(&self, value: f64) -> String {
        let near = |tick: &&(f64, String)| (tick.0 - value).abs() <= 1e-9 * (1.0 + value.abs());
        self.ticks.iter().find(near).map(|(_, text)| text.clone()).unwrap_or_default()
    }

    fn longest(&self) -> usize {
        self.ticks.iter().map(|(_, text)| text.chars().count()).max().unwrap_or(0)
    }
}

impl Ranged for Scale {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let share = (value - self.low) / (self.high - self.low);
        pixel(f64::from(limit.0) + share * f64::from(limit.1 - limit.0))
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        // Only the lines that are written.
        if hint.weight().allow_light_points() { Vec::new() } else { self.ticks.iter().map(|(tick, _)| *tick).collect() }
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

/// What a colour stands for.
pub(super) enum Key {
    /// A filled square.
    Bar(usize, String),
    /// A line with its dot.
    Line(usize, String),
}

/// Something on the plot, in the numbers of its axes.
pub(super) enum Mark {
    Bar {
        series: usize,
        from: (f64, f64),
        to: (f64, f64),
    },
    Line {
        series: usize,
        points: Vec<(f64, f64)>,
    },
    Dot {
        series: usize,
        at: (f64, f64),
    },
    /// The deviation of a mean.
    Spread {
        x: f64,
        low: f64,
        high: f64,
    },
    /// A name, beside the dot at the same place.
    Label {
        text: String,
        at: (f64, f64),
    },
}

impl Mark {
    /// The deviation of `value`, if it is the mean of several.
    pub(super) fn spread(x: f64, value: &Reference) -> Option<Self> {
        let deviation = value.deviation.filter(|deviation| *deviation > 0.0)?;
        Some(Self::Spread { x, low: value.mean - deviation, high: value.mean + deviation })
    }
}

/// A plot with its axes.
pub(super) struct Panel {
    pub(super) title: String,
    pub(super) x: Scale,
    pub(super) y: Scale,
    pub(super) x_title: String,
    pub(super) keys: Vec<Key>,
    pub(super) marks: Vec<Mark>,
    /// Names on the plot need room.
    pub(super) is_tall: bool,
}

type Plane = Cartesian2d<Scale, Scale>;
type Canvas<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Failed<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;

fn letters(color: RGBColor, x: HPos, y: VPos) -> TextStyle<'static> {
    // The backend writes sizes divided by this.
    ("system-ui, sans-serif", 12.0 * 1.24).into_font().color(&color).pos(Pos::new(x, y))
}

impl Panel {
    /// The picture; nothing where there is nothing to show.
    pub(super) fn draw(&self) -> Option<String> {
        if self.marks.is_empty() {
            return None;
        }
        let mut svg = String::new();
        {
            let size = (WIDTH, if self.is_tall { TALL } else { HEIGHT });
            let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
            // A string takes everything: there is no error to tell of.
            self.draw_on(&root).ok()?;
            root.present().ok()?;
        }
        Some(svg)
    }

    fn draw_on<'a>(&self, root: &Canvas<'a>) -> Result<(), Failed<'a>> {
        root.fill(&PAGE)?;
        let bold = letters(INK, HPos::Left, VPos::Top);
        let bold = TextStyle { font: bold.font.clone().style(FontStyle::Bold), ..bold };
        root.draw(&Text::new(self.title.clone(), (4, 8), bold))?;
        let n_lines = self.draw_keys(root)?;
        let left = 14 + width(self.y.longest());
        let mut chart = ChartBuilder::on(root)
            .margin_top(TITLE + KEYS * n_lines + if n_lines > 0 { 6 } else { 0 })
            .margin_right(10)
            .margin_bottom(4)
            .y_label_area_size(left)
            .x_label_area_size(if self.x_title.is_empty() { 22 } else { 40 })
            .build_cartesian_2d(self.x.clone(), self.y.clone())?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(QUIET)
            .label_style(letters(QUIET, HPos::Left, VPos::Top))
            .axis_desc_style(letters(QUIET, HPos::Left, VPos::Top))
            .x_desc(self.x_title.clone())
            .x_label_formatter(&|value| self.x.label(*value))
            .y_label_formatter(&|value| self.y.label(*value))
            .draw()?;
        for mark in &self.marks {
            draw_mark(mark, &mut chart)?;
        }
        self.draw_labels(root, &chart)
    }

    /// One line after another as far as they are long; how many.
    fn draw_keys<'a>(&self, root: &Canvas<'a>) -> Result<u32, Failed<'a>> {
        let (mut x, mut line) = (4, 0);
        for key in &self.keys {
            let (Key::Bar(series, name) | Key::Line(series, name)) = key;
            let wide = (44 + width(name.chars().count())).cast_signed();
            if x > 4 && x + wide > WIDTH.cast_signed() {
                (x, line) = (4, line + 1);
            }
            let y = (TITLE + KEYS * line).cast_signed() + 6;
            let color = colour(*series);
            match key {
                Key::Bar(..) => root.draw(&Rectangle::new([(x, y - 5), (x + 18, y + 5)], color.filled()))?,
                Key::Line(..) => {
                    root.draw(&PathElement::new([(x, y), (x + 20, y)], color.stroke_width(2)))?;
                    root.draw(&Circle::new((x + 10, y), 4, color.filled()))?;
                }
            }
            root.draw(&Text::new(name.clone(), (x + 26, y), letters(INK, HPos::Left, VPos::Center)))?;
            x += wide;
        }
        Ok(if self.keys.is_empty() { 0 } else { line + 1 })
    }

    fn draw_labels<'a>(
        &self,
        root: &Canvas<'a>,
        chart: &ChartContext<'_, SVGBackend<'a>, Plane>,
    ) -> Result<(), Failed<'a>> {
        let labels: Vec<(&str, (i32, i32))> = self
            .marks
            .iter()
            .filter_map(|mark| match mark {
                Mark::Label { text, at } => Some((text.as_str(), chart.backend_coord(at))),
                _ => None,
            })
            .collect();
        let (across, down) = chart.plotting_area().get_pixel_range();
        let bounds = [across.start, down.start, across.end, down.end].map(f64::from);
        let real = |(x, y): (i32, i32)| (f64::from(x), f64::from(y));
        let wanted: Vec<(&str, (f64, f64))> = labels.iter().map(|&(text, at)| (text, real(at))).collect();
        for (&(text, at), placed) in labels.iter().zip(label::place(&wanted, bounds)) {
            let middle = (pixel(placed.middle.0), pixel(placed.middle.1));
            if placed.is_led {
                let foot = middle.1 + if middle.1 > at.1 { -7 } else { 6 };
                root.draw(&PathElement::new([at, (middle.0, foot)], QUIET.stroke_width(1)))?;
            }
            root.draw(&Text::new(text.to_owned(), middle, letters(INK, HPos::Center, VPos::Center)))?;
        }
        Ok(())
    }
}

/// About how wide so many letters are.
fn width(n_letters: usize) -> u32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a label of some letters")]
    let width = (LETTER * n_letters as f64).ceil() as u32;
    width
}

fn pixel(place: f64) -> i32 {
    #[expect(clippy::cast_possible_truncation, reason = "a place of the picture")]
    let pixel = place.round() as i32;
    pixel
}

fn colour(series: usize) -> RGBColor {
    SERIES[series % SERIES.len()]
}

fn draw_mark<'a>(mark: &Mark, chart: &mut ChartContext<'_, SVGBackend<'a>, Plane>) -> Result<(), Failed<'a>> {
    let area = chart.plotting_area();
    match mark {
        Mark::Bar { series, from, to } => area.draw(&Rectangle::new([*from, *to], colour(*series).filled())),
        Mark::Line { series, points } => area.draw(&PathElement::new(points.clone(), colour(*series).stroke_width(2))),
        Mark::Dot { series, at } => {
            area.draw(&(EmptyElement::at(*at) + Circle::new((0, 0), 4, colour(*series).filled())))
        }
        Mark::Spread { x, low, high } => {
            area.draw(&PathElement::new([(*x, *low), (*x, *high)], INK.stroke_width(1)))?;
            for end in [*low, *high] {
                let cap = PathElement::new([(-4, 0), (4, 0)], INK.stroke_width(1));
                area.draw(&(EmptyElement::at((*x, end)) + cap))?;
            }
            Ok(())
        }
        Mark::Label { .. } => Ok(()),
    }
}
