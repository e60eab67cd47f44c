//! Training curves: loss and validation metrics over epochs.

use std::fmt::Write;

use crate::chart::{Axis, Chart, Key, Mark, Size, is_drawable};
use crate::metrics::EpochRecord;

/// Dots on more epochs would hide the line.
const MOST_DOTS: usize = 60;
/// Tooltips on more epochs would be too narrow for the pointer.
const MOST_TOOLTIPS: usize = 360;

/// One line.
pub(super) struct Curve {
    /// In the legend.
    pub(super) name: &'static str,
    /// The value of an epoch, if it has one.
    pub(super) value: fn(&EpochRecord) -> Option<f64>,
}

/// Lines over the same epochs.
pub(super) struct Curves {
    pub(super) title: &'static str,
    /// Those without any value are left out.
    pub(super) lines: Vec<Curve>,
    /// The vertical axis ends here at the latest.
    pub(super) bounds: [f64; 2],
    /// Of values in tooltips.
    pub(super) decimals: usize,
}

impl Curves {
    /// A figure; `best` is the epoch to mark, and what it is called.
    pub(super) fn figure(&self, history: &[EpochRecord], best: Option<(usize, &str)>) -> String {
        match self.chart(history, best) {
            Some(chart) => format!("<figure>{}</figure>\n", chart.inline()),
            None => {
                format!(
                    "<figure><figcaption><b>{}</b></figcaption>\n<p class=\"quiet\">no values</p></figure>\n",
                    self.title
                )
            }
        }
    }

    /// Nothing without epochs or values.
    fn chart(&self, history: &[EpochRecord], best: Option<(usize, &str)>) -> Option<Chart> {
        let best = best.filter(|(epoch, _)| history.iter().any(|record| record.epoch == *epoch));
        let value = |curve: &Curve, record: &EpochRecord| (curve.value)(record).unwrap_or(f64::NAN);
        let values = |curve: &Curve| history.iter().map(|record| value(curve, record)).collect::<Vec<f64>>();
        let lines = self.lines.iter().enumerate().map(|(series, curve)| (series, curve.name, values(curve)));
        let lines: Vec<(usize, &str, Vec<f64>)> =
            lines.filter(|(_, _, values)| values.iter().any(|&value| is_drawable(value))).collect();
        let drawn = || lines.iter().flat_map(|(_, _, values)| values).copied().filter(|&value| is_drawable(value));
        let y = Axis::around(drawn().reduce(f64::min)?, drawn().reduce(f64::max)?, self.bounds);
        let x = Axis::counts(history.first()?.epoch, history.last()?.epoch).titled("epoch");

        let mut marks = Vec::new();
        marks.extend(best.map(|(epoch, word)| Mark::Guide { x: epoch as f64, text: format!("{word}: epoch {epoch}") }));
        for (series, _, values) in &lines {
            let points = history.iter().zip(values).map(|(record, &value)| [record.epoch as f64, value]);
            let points: Vec<[f64; 2]> = points.collect();
            marks.push(Mark::Line { series: *series, points: points.clone() });
            for (place, &at) in points.iter().enumerate() {
                let has_value = |place: usize| values.get(place).is_some_and(|&value| is_drawable(value));
                let is_alone = !(has_value(place.wrapping_sub(1)) || has_value(place + 1));
                let is_large = best.is_some_and(|(epoch, _)| epoch == history[place].epoch);
                if is_drawable(at[1]) && (is_large || is_alone || history.len() <= MOST_DOTS) {
                    marks.push(Mark::Dot { series: *series, at, is_large });
                }
            }
        }
        if history.len() <= MOST_TOOLTIPS {
            marks.extend((0..history.len()).map(|place| self.tooltip(history, &lines, place)));
        }
        let legend = lines.iter().map(|(series, name, _)| Key::line(*series, *name)).collect();
        Some(Chart { title: self.title.to_owned(), size: Size::Wide, x, y, legend, marks })
    }

    /// The values of one epoch, over its share of the chart's width.
    fn tooltip(&self, history: &[EpochRecord], lines: &[(usize, &str, Vec<f64>)], place: usize) -> Mark {
        let epoch = |place: usize| history.get(place).map(|record| record.epoch as f64);
        let between = |a: Option<f64>, b: Option<f64>| Some(f64::midpoint(a?, b?));
        let before = if place == 0 { None } else { epoch(place - 1) };
        let mut text = format!("epoch {}: ", history[place].epoch);
        for (n, (_, name, values)) in lines.iter().enumerate() {
            text.push_str(if n == 0 { "" } else { ", " });
            let _ = match values[place] {
                value if is_drawable(value) => write!(text, "{name} {value:.0$}", self.decimals),
                _ => write!(text, "{name} –"),
            };
        }
        Mark::Tooltip { x: [between(before, epoch(place)), between(epoch(place), epoch(place + 1))], text }
    }
}
