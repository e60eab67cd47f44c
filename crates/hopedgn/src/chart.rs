//! Lines over epochs as inline SVG; colours come from the page's style sheet.

use std::fmt::Write;

use crate::html::escaped;

// About the width at which a figure is shown, so that letters have about their stated size.
const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 236.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 40.0;
const RIGHT: f64 = 8.0;
/// Between the axis and the first epoch.
const INSET: f64 = 8.0;
/// Dots on more epochs would hide the line.
const MOST_DOTS: usize = 60;
/// Values to show under the pointer; narrower columns could not be pointed at.
const MOST_COLUMNS: usize = 360;

/// One line.
pub(crate) struct Series {
    /// Stands in the legend.
    pub(crate) name: &'static str,
    /// Class of the style sheet.
    pub(crate) class: &'static str,
    /// One for each epoch; NaN where there is none.
    pub(crate) values: Vec<f64>,
}

/// Lines over the same epochs.
pub(crate) struct Chart<'a> {
    /// Stands above the picture.
    pub(crate) title: &'static str,
    /// Stands at the vertical axis.
    pub(crate) unit: &'static str,
    /// Ascending.
    pub(crate) epochs: &'a [usize],
    /// The lines; those without a value are left out.
    pub(crate) series: Vec<Series>,
    /// The epoch to mark, and how.
    pub(crate) best: Option<(usize, &'static str)>,
    /// Where the vertical axis ends at the latest.
    pub(crate) bounds: [f64; 2],
    /// Of values under the pointer.
    pub(crate) decimals: usize,
}

impl Chart<'_> {
    /// A figure with caption and legend.
    pub(crate) fn draw(&self) -> String {
        let series: Vec<&Series> =
            self.series.iter().filter(|series| series.values.iter().any(|&value| drawable(value))).collect();
        let mut legend = String::new();
        for Series { name, class, .. } in &series {
            let _ = write!(
                legend,
                r#"<span class="key"><svg viewBox="0 0 26 10" aria-hidden="true"><path class="line {class}" d="M1 5H25"/><circle class="dot {class}" cx="13" cy="5" r="3"/></svg>{name}</span>"#
            );
        }
        let picture = match Scales::of(self, &series) {
            Some(scales) => self.picture(&series, &scales),
            None => r#"<p class="quiet">no values</p>"#.to_owned(),
        };
        format!("<figure><figcaption><b>{}</b>{legend}</figcaption>\n{picture}</figure>\n", escaped(self.title))
    }

    fn picture(&self, series: &[&Series], scales: &Scales) -> String {
        let mut svg = String::new();
        let _ = writeln!(
            svg,
            r#"<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{} over {} epochs">"#,
            escaped(self.title),
            self.epochs.len()
        );
        self.draw_axes(&mut svg, scales);
        self.draw_best(&mut svg, scales);
        for series in series {
            self.draw_line(&mut svg, series, scales);
        }
        if self.epochs.len() <= MOST_COLUMNS {
            self.draw_columns(&mut svg, series, scales);
        }
        svg.push_str("</svg>");
        svg
    }

    fn draw_axes(&self, svg: &mut String, scales: &Scales) {
        let (left, right, bottom) = (scales.left, WIDTH - RIGHT, HEIGHT - BOTTOM);
        for &tick in &scales.values.ticks {
            let y = scales.y(tick);
            let class = if tick == scales.values.low { "axis" } else { "grid" };
            let _ = writeln!(
                svg,
                r#"<path class="{class}" d="M{left:.1} {y:.1}H{right:.1}"/><text x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"#,
                left - 6.0,
                y + 4.0,
                scales.values.label(tick)
            );
        }
        for &tick in &scales.epochs.ticks {
            let x = scales.x(tick);
            let _ = writeln!(
                svg,
                r#"<path class="axis" d="M{x:.1} {bottom:.1}v4"/><text x="{x:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
                bottom + 16.0,
                scales.epochs.label(tick)
            );
        }
        let _ = writeln!(
            svg,
            r#"<text x="{:.1}" y="{:.1}" text-anchor="middle">epoch</text><text x="0" y="11">{}</text>"#,
            f64::midpoint(left, right),
            HEIGHT - 5.0,
            escaped(self.unit)
        );
    }

    fn draw_best(&self, svg: &mut String, scales: &Scales) {
        let Some((epoch, word)) = self.best.filter(|(epoch, _)| self.epochs.contains(epoch)) else { return };
        let x = scales.x(epoch as f64);
        let text = format!("{word}: epoch {epoch}");
        let half = 3.3 * text.len() as f64;
        let (anchor, x_text) = match x {
            x if x < scales.left + half => ("start", x - 4.0),
            x if x > WIDTH - half => ("end", (x + half).min(WIDTH)),
            x => ("middle", x),
        };
        let _ = writeln!(
            svg,
            r#"<path class="best" d="M{x:.1} {TOP}V{:.1}"/><text x="{x_text:.1}" y="11" text-anchor="{anchor}">{text}</text>"#,
            HEIGHT - BOTTOM
        );
    }

    fn draw_line(&self, svg: &mut String, series: &Series, scales: &Scales) {
        let class = series.class;
        let (mut path, mut dots) = (String::new(), String::new());
        let mut before = false;
        for (place, (&epoch, &value)) in self.epochs.iter().zip(&series.values).enumerate() {
            // A missing value is a gap, not a line across it.
            if !drawable(value) {
                before = false;
                continue;
            }
            let after = series.values.get(place + 1).is_some_and(|&value| drawable(value));
            let (x, y) = (scales.x(epoch as f64), scales.y(value));
            let _ = write!(path, "{}{x:.1} {y:.1}", if before { 'L' } else { 'M' });
            let kept = self.best.is_some_and(|(best, _)| best == epoch);
            if kept {
                let _ = write!(dots, r#"<circle class="dot {class} kept" cx="{x:.1}" cy="{y:.1}" r="5.5"/>"#);
            } else if self.epochs.len() <= MOST_DOTS || !(before || after) {
                let _ = write!(dots, r#"<circle class="dot {class}" cx="{x:.1}" cy="{y:.1}" r="2.4"/>"#);
            }
            before = true;
        }
        let _ = writeln!(svg, r#"<path class="line {class}" d="{path}"/>{dots}"#);
    }

    /// Columns that say their values under the pointer.
    fn draw_columns(&self, svg: &mut String, series: &[&Series], scales: &Scales) {
        let middle = |place: usize| scales.x(self.epochs[place] as f64);
        for (place, epoch) in self.epochs.iter().enumerate() {
            let from = if place == 0 { scales.left } else { f64::midpoint(middle(place - 1), middle(place)) };
            let last = place + 1 == self.epochs.len();
            let to = if last { WIDTH - RIGHT } else { f64::midpoint(middle(place), middle(place + 1)) };
            let _ = write!(
                svg,
                r#"<rect class="hover" x="{from:.1}" y="{TOP}" width="{:.1}" height="{:.1}"><title>epoch {epoch}"#,
                (to - from).max(0.0),
                HEIGHT - TOP - BOTTOM
            );
            for Series { name, values, .. } in series {
                let _ = match values[place] {
                    value if drawable(value) => write!(svg, "\n{name} {value:.0$}", self.decimals),
                    _ => write!(svg, "\n{name} –"),
                };
            }
            svg.push_str("</title></rect>\n");
        }
    }
}

/// Also refuses numbers whose differences would be infinite.
fn drawable(value: f64) -> bool {
    value.abs() < 1e300
}

/// From epochs and values to places in the picture.
struct Scales {
    epochs: Axis,
    values: Axis,
    left: f64,
}

impl Scales {
    /// Nothing without epochs or values.
    fn of(chart: &Chart<'_>, series: &[&Series]) -> Option<Self> {
        let epochs = Axis::of_epochs(*chart.epochs.first()? as f64, *chart.epochs.last()? as f64);
        let drawn = || series.iter().flat_map(|series| &series.values).copied().filter(|&value| drawable(value));
        let values = Axis::of_values(drawn().reduce(f64::min)?, drawn().reduce(f64::max)?, chart.bounds);
        let longest = values.ticks.iter().map(|&tick| values.label(tick).chars().count()).max()?;
        Some(Self { epochs, values, left: 12.0 + 6.9 * longest.max(4) as f64 })
    }

    fn x(&self, epoch: f64) -> f64 {
        let (from, to) = (self.left + INSET, WIDTH - RIGHT - INSET);
        // A single epoch stands in the middle.
        let share = if self.epochs.low == self.epochs.high { 0.5 } else { self.epochs.share(epoch) };
        from + share * (to - from)
    }

    fn y(&self, value: f64) -> f64 {
        let (from, to) = (HEIGHT - BOTTOM, TOP);
        from + self.values.share(value) * (to - from)
    }
}

/// A range with round numbers on it.
#[derive(Debug, PartialEq)]
pub struct Axis {
    /// Lowest value shown.
    pub low: f64,
    /// Highest value shown.
    pub high: f64,
    step: f64,
    /// Values with a label.
    pub ticks: Vec<f64>,
}

impl Axis {
    /// Ends at round numbers around the values.
    pub fn of_values(low: f64, high: f64, bounds: [f64; 2]) -> Self {
        let size = low.abs().max(high.abs());
        let flat = high - low <= 1e-9 * size;
        let around = if size == 0.0 { 1.0 } else { 0.05 * size };
        let (low, high) =
            if flat { ((low - around).max(bounds[0]), (high + around).min(bounds[1])) } else { (low, high) };
        let step = round_step((high - low) / 4.0);
        let (first, last) = ((low / step + 1e-9).floor(), (high / step - 1e-9).ceil());
        let ticks = multiples(step, first, last);
        Self { low: first * step, high: last * step, step, ticks }
    }

    /// Ends at the first and the last epoch.
    fn of_epochs(first: f64, last: f64) -> Self {
        let step = round_step((last - first) / 6.0).max(1.0);
        let ticks = multiples(step, (first / step).ceil(), (last / step).floor());
        Self { low: first, high: last, step, ticks }
    }

    fn share(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }

    /// With as many decimals as the step has.
    pub fn label(&self, tick: f64) -> String {
        if self.low.abs().max(self.high.abs()) >= 1e6 || self.step < 1e-6 {
            return format!("{tick:.2e}");
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 6")]
        let decimals = (-self.step.log10().floor()).clamp(0.0, 6.0) as usize;
        format!("{tick:.decimals$}")
    }
}

/// `step` times the whole numbers from `first` to `last`. Bounded, for numbers so large that adding 1 changes nothing.
fn multiples(step: f64, first: f64, last: f64) -> Vec<f64> {
    const MOST: usize = 12;
    let numbers = std::iter::successors(Some(first), |number| Some(number + 1.0));
    numbers.take_while(|&number| number <= last).take(MOST).map(|number| number * step).collect()
}

/// The smallest of 1, 2, 5 times a power of ten that is at least `least`.
fn round_step(least: f64) -> f64 {
    if least <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= least * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: [f64; 2] = [f64::NEG_INFINITY, f64::INFINITY];

    fn labels(axis: &Axis) -> Vec<String> {
        axis.ticks.iter().map(|&tick| axis.label(tick)).collect()
    }

    #[test]
    fn ticks_are_round_and_enclose_the_values() {
        assert_eq!(labels(&Axis::of_values(0.213, 0.687, ANY)), ["0.2", "0.4", "0.6", "0.8"]);
        assert_eq!(labels(&Axis::of_values(93.4, 96.2, ANY)), ["93", "94", "95", "96", "97"]);
        assert_eq!(labels(&Axis::of_values(-1.0, 1.0, ANY)), ["-1.0", "-0.5", "0.0", "0.5", "1.0"]);
        assert_eq!(labels(&Axis::of_values(95.0, 95.0, [0.0, 100.0]))[0], "90");
        assert_eq!(labels(&Axis::of_values(100.0, 100.0, [0.0, 100.0])).last().unwrap(), "100");
        assert_eq!(labels(&Axis::of_epochs(1.0, 1.0)), ["1"]);
        assert_eq!(labels(&Axis::of_epochs(1.0, 23.0)), ["5", "10", "15", "20"]);
    }

    #[test]
    fn extreme_values_keep_the_picture_finite() {
        for (low, high) in [(0.0, 0.0), (1e-300, 2e-300), (-1e299, 1e299), (1e17, 1e17 + 16.0), (5.0, 5.0 + 1e-12)] {
            let axis = Axis::of_values(low, high, ANY);
            assert!(axis.low < axis.high && (1..=12).contains(&axis.ticks.len()), "{low} to {high}: {axis:?}");
            assert!(axis.share(low).is_finite() && axis.share(high).is_finite());
        }
    }

    #[test]
    fn a_missing_value_is_a_gap() {
        let values = vec![1.0, 2.0, f64::NAN, 4.0, f64::INFINITY];
        let series = vec![Series { name: "loss", class: "all", values }];
        let epochs = [1, 2, 3, 4, 5];
        let chart = Chart { title: "", unit: "", epochs: &epochs, series, best: None, bounds: ANY, decimals: 1 };
        let svg = chart.draw();
        let path = svg.rsplit(r#"<path class="line all" d=""#).next().unwrap().split('"').next().unwrap();
        assert_eq!((path.matches('M').count(), path.matches('L').count()), (2, 1));
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        assert!(svg.contains("epoch 3\nloss –"));
    }
}
