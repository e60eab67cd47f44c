//! Axes: a range of values, linear or logarithmic, with labelled ticks.

/// How values map to positions.
///
/// [`Axis::log_of`] makes a logarithmic axis, [`Axis::around`] a linear one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences are equally long.
    Linear,
    /// Equal ratios are equally long.
    Log,
}

/// A range of values with its ticks.
///
/// ```
/// use hopedgn::chart::Axis;
///
/// let epochs = Axis::counts(1, 10).titled("epoch");
/// assert_eq!((epochs.title.as_str(), epochs.low()), ("epoch", 1.0));
/// assert!(Axis::around(0.61, 0.93, [0.0, 1.0]).low() <= 0.61);
/// assert_eq!(Axis::above_chance().low(), 50.0); // percent
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Written beside it; may be empty.
    pub title: String,
    scale: Scale,
    /// Ends of the range; decimal logarithms on a logarithmic scale.
    low: f64,
    high: f64,
    ticks: Vec<Tick>,
}

/// A labelled value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) label: String,
}

impl Axis {
    /// From a round number below `low` to one above `high`, inside `bounds` where the values are.
    #[must_use]
    pub fn around(low: f64, high: f64, bounds: [f64; 2]) -> Self {
        let size = low.abs().max(high.abs());
        let is_flat = high - low <= 1e-9 * size;
        let margin = if size == 0.0 { 1.0 } else { 0.05 * size };
        let (low, high) =
            if is_flat { ((low - margin).max(bounds[0]), (high + margin).min(bounds[1])) } else { (low, high) };
        let step = round_step((high - low) / 4.0);
        let (first, last) = ((low / step + 1e-9).floor(), (high / step - 1e-9).ceil());
        Self::linear(first * step, last * step, step, &multiples(step, first, last))
    }

    /// From the first to the last of consecutive whole numbers, such as epochs.
    #[must_use]
    pub fn counts(first: usize, last: usize) -> Self {
        let (first, last) = (first as f64, last as f64);
        let step = round_step((last - first) / 6.0).max(1.0);
        Self::linear(first, last, step, &multiples(step, (first / step).ceil(), (last / step).floor()))
    }

    /// From 50 to 100 percent: AP and AUC above the level of random scores.
    #[must_use]
    pub fn above_chance() -> Self {
        Self::linear(50.0, 100.0, 10.0, &multiples(10.0, 5.0, 10.0))
    }

    /// A place for each name: the `n`th around the value `n`, half a unit to either side.
    #[must_use]
    pub fn categories(names: impl IntoIterator<Item = String>) -> Self {
        let ticks = names.into_iter().enumerate().map(|(place, label)| Tick { value: place as f64, label });
        let ticks: Vec<Tick> = ticks.collect();
        let high = ticks.len() as f64 - 0.5;
        Self { title: String::new(), scale: Scale::Linear, low: -0.5, high, ticks }
    }

    /// Logarithmic, with a tick at each of `numbers`, which ascend and are positive.
    #[must_use]
    pub fn log_of(numbers: &[f64]) -> Self {
        let end = |number: Option<&f64>, otherwise: f64| number.map_or(otherwise, |number| number.log10());
        let (low, high) = (end(numbers.first(), 0.0), end(numbers.last(), 1.0));
        let margin = 0.06 * (high - low).max(0.3);
        let ticks = numbers.iter().map(|&value| Tick { value, label: value.to_string() }).collect();
        Self { title: String::new(), scale: Scale::Log, low: low - margin, high: high + margin, ticks }
    }

    /// Logarithmic around `numbers`, which are positive, with ticks at 1, 2 and 5 times powers of ten.
    #[must_use]
    pub fn log_around(numbers: &[f64]) -> Self {
        let low = numbers.iter().copied().fold(f64::INFINITY, f64::min).log10() - 0.15;
        let high = numbers.iter().copied().fold(0.0, f64::max).log10() + 0.15;
        let mut ticks = Vec::new();
        let mut power = 10f64.powf(low.floor());
        while power.log10() <= high {
            for value in [1.0, 2.0, 5.0].map(|factor| factor * power) {
                if (low..=high).contains(&value.log10()) {
                    // Rounded first: a power of ten is seldom exact.
                    let label = format!("{value:.9}").trim_end_matches('0').trim_end_matches('.').to_owned();
                    ticks.push(Tick { value, label });
                }
            }
            power *= 10.0;
        }
        Self { title: String::new(), scale: Scale::Log, low, high, ticks }
    }

    fn linear(low: f64, high: f64, step: f64, values: &[f64]) -> Self {
        let label = |value: f64| {
            if low.abs().max(high.abs()) >= 1e6 || step < 1e-6 {
                return format!("{value:.2e}");
            }
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 6")]
            let decimals = (-step.log10().floor()).clamp(0.0, 6.0) as usize;
            format!("{value:.decimals$}")
        };
        let ticks = values.iter().map(|&value| Tick { value, label: label(value) }).collect();
        Self { title: String::new(), scale: Scale::Linear, low, high, ticks }
    }

    /// The same axis with a title.
    #[must_use]
    pub fn titled(self, title: impl Into<String>) -> Self {
        Self { title: title.into(), ..self }
    }

    /// The same axis with other labels where `label` has one.
    #[must_use]
    pub fn labelled(mut self, label: impl Fn(f64) -> Option<String>) -> Self {
        for tick in &mut self.ticks {
            if let Some(label) = label(tick.value) {
                tick.label = label;
            }
        }
        self
    }

    /// Lowest value shown.
    #[must_use]
    pub fn low(&self) -> f64 {
        match self.scale {
            Scale::Linear => self.low,
            Scale::Log => 10f64.powf(self.low),
        }
    }

    pub(super) fn ticks(&self) -> &[Tick] {
        &self.ticks
    }

    /// Letters of the longest label.
    pub(super) fn longest_label(&self) -> usize {
        self.ticks.iter().map(|tick| tick.label.chars().count()).max().unwrap_or(0)
    }

    /// Position of `value`: 0 at the low end, 1 at the high end, one half where both are the same.
    pub(super) fn position(&self, value: f64) -> f64 {
        let value = match self.scale {
            Scale::Linear => value,
            Scale::Log => value.log10(),
        };
        if self.low == self.high { 0.5 } else { (value - self.low) / (self.high - self.low) }
    }
}

/// `step` times the whole numbers from `first` to `last`; at most twelve, since adding 1 to a huge number may not change it.
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

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_and_enclose_the_values() {
        assert_eq!(labels(&Axis::around(0.213, 0.687, ANY)), ["0.2", "0.4", "0.6", "0.8"]);
        assert_eq!(labels(&Axis::around(93.4, 96.2, ANY)), ["93", "94", "95", "96", "97"]);
        assert_eq!(labels(&Axis::around(-1.0, 1.0, ANY)), ["-1.0", "-0.5", "0.0", "0.5", "1.0"]);
        assert_eq!(labels(&Axis::around(95.0, 95.0, [0.0, 100.0]))[0], "90");
        assert_eq!(labels(&Axis::around(100.0, 100.0, [0.0, 100.0])).last(), Some(&"100"));
        assert_eq!(labels(&Axis::counts(1, 1)), ["1"]);
        assert_eq!(labels(&Axis::counts(1, 23)), ["5", "10", "15", "20"]);
    }

    #[test]
    fn log_ticks_are_one_two_five_or_the_given_numbers() {
        assert_eq!(labels(&Axis::log_around(&[0.3, 4.0])), ["0.5", "1", "2", "5"]);
        let axis = Axis::log_of(&[4.0, 8.0, 16.0]);
        assert_eq!(labels(&axis), ["4", "8", "16"]);
        let [a, b, c] = [4.0, 8.0, 16.0].map(|value| axis.position(value));
        assert!((b - a - (c - b)).abs() < 1e-12 && a > 0.0 && c < 1.0);
    }

    #[test]
    fn positions_are_finite_at_extreme_values() {
        for (low, high) in [(0.0, 0.0), (1e-300, 2e-300), (-1e299, 1e299), (1e17, 1e17 + 16.0), (5.0, 5.0 + 1e-12)] {
            let axis = Axis::around(low, high, ANY);
            assert!(axis.low < axis.high && (1..=12).contains(&axis.ticks.len()), "{low} to {high}: {axis:?}");
            assert!(axis.position(low).is_finite() && axis.position(high).is_finite());
        }
    }

    #[test]
    fn a_single_count_is_in_the_middle() {
        assert_eq!(Axis::counts(3, 3).position(3.0), 0.5);
    }
}
