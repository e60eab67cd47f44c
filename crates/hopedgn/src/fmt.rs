//! Formatting of numbers, times, sizes and errors for people.

mod words;

use ctdg::time::TimeFormat;

pub(crate) use words::did_you_mean;
pub use words::{in_words, nearest};

/// An integer with commas between thousands.
///
/// ```
/// assert_eq!(hopedgn::fmt::grouped(59_835_u64), "59,835");
/// ```
pub fn grouped(number: impl TryInto<u64>) -> String {
    let digits = number.try_into().unwrap_or(u64::MAX).to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A fraction in percent, without the sign; a dash for NaN and infinity.
///
/// ```
/// assert_eq!(hopedgn::fmt::percent(0.9563), "95.63");
/// ```
#[must_use]
pub fn percent(fraction: f64) -> String {
    fixed(100.0 * fraction, 2)
}

/// A number with so many decimals; a dash for NaN and infinity.
///
/// ```
/// assert_eq!(hopedgn::fmt::fixed(2.0, 1), "2.0");
/// assert_eq!(hopedgn::fmt::fixed(f64::NAN, 1), "–");
/// ```
#[must_use]
pub fn fixed(value: f64, decimals: usize) -> String {
    match value {
        value if !value.is_finite() => "–".to_owned(),
        value if value.abs() >= 1e9 => format!("{value:.3e}"),
        value => format!("{value:.decimals$}"),
    }
}

/// A rate, rounded to an integer.
///
/// ```
/// assert_eq!(hopedgn::fmt::rate(12_345.6), "12,346");
/// ```
#[must_use]
pub fn rate(value: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 1e15")]
    match value {
        value if (0.0..1e15).contains(&value) => grouped(value.round() as u64),
        value => fixed(value, 0),
    }
}

/// A measured duration with three decimals.
///
/// ```
/// assert_eq!(hopedgn::fmt::precise(0.0125), "12.500 ms");
/// ```
#[must_use]
pub fn precise(seconds: f64) -> String {
    if seconds < 0.1 { format!("{:.3} ms", 1e3 * seconds) } else { format!("{seconds:.3} s") }
}

/// A duration as one number with its unit.
///
/// ```
/// assert_eq!(hopedgn::fmt::seconds(600.0), "10.0 min");
/// ```
#[must_use]
pub fn seconds(value: f64) -> String {
    match value {
        value if value >= 7200.0 => format!("{} h", fixed(value / 3600.0, 1)),
        value if value >= 120.0 => format!("{} min", fixed(value / 60.0, 1)),
        value if value >= 10.0 => format!("{} s", fixed(value, 1)),
        value => format!("{} s", fixed(value, 2)),
    }
}

/// A time span to seven significant digits.
///
/// ```
/// assert_eq!(hopedgn::fmt::span(0.1 + 0.2), "0.3");
/// ```
#[must_use]
pub fn span(span: f64) -> String {
    time(format!("{span:.6e}").parse().unwrap_or(span))
}

/// Seconds in the two largest units that apply.
///
/// ```
/// assert_eq!(hopedgn::fmt::duration(203.1), "3 min 23 s");
/// ```
#[must_use]
pub fn duration(seconds: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time of work, rounded")]
    let whole = seconds.round().max(0.0) as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}

/// How long `earlier` is before `later`, times of this format.
///
/// ```
/// use hopedgn::{ctdg::time::TimeFormat, fmt::age};
///
/// assert_eq!(age(TimeFormat::Number, 2.0, 5.5), "3.5 before");
/// assert_eq!(age(TimeFormat::Date, 0.0, 300_000.0), "3.5 days before");
/// ```
#[must_use]
pub fn age(format: TimeFormat, earlier: f64, later: f64) -> String {
    /// Seconds of a day.
    const DAY: f64 = 86_400.0;
    let age = later - earlier;
    match format {
        format if later <= format.just_after(earlier) => "just before".to_owned(),
        TimeFormat::Number => format!("{} before", span(age)),
        TimeFormat::Date if age < 1.0 => "less than 1 s before".to_owned(),
        TimeFormat::Date if age < 2.0 * DAY => format!("{} before", duration(age)),
        TimeFormat::Date => format!("{} days before", fixed(age / DAY, 1)),
    }
}

/// Bytes in the largest unit of which there is at least one.
///
/// ```
/// assert_eq!(hopedgn::fmt::memory(5 << 30), "5.0 GiB");
/// ```
#[must_use]
pub fn memory(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.iter().find(|(size, _)| bytes >= *size) {
        Some((size, unit)) => format!("{:.1} {unit}", bytes as f64 / *size as f64),
        None => format!("{bytes} B"),
    }
}

/// A time in its shortest exact form.
///
/// ```
/// assert_eq!(hopedgn::fmt::time(1_082_040_961.0), "1082040961");
/// ```
#[must_use]
pub fn time(time: f64) -> String {
    TimeFormat::Number.show(time)
}

/// A row index within one batch as `u32`.
pub(crate) fn narrow(place: usize) -> u32 {
    u32::try_from(place).expect("a batch has fewer than u32::MAX rows")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_people_read_them() {
        assert_eq!([grouped(0u64), grouped(999u64), grouped(1_234_567u64)], ["0", "999", "1,234,567"]);
        assert_eq!([percent(0.95625), percent(1.0), percent(f64::NAN)], ["95.62", "100.00", "–"]);
        assert_eq!([rate(12_345.6), rate(f64::INFINITY), rate(1e20)], ["12,346", "–", "1.000e20"]);
        assert_eq!(
            [seconds(0.5), seconds(75.0), seconds(600.0), seconds(9000.0)],
            ["0.50 s", "75.0 s", "10.0 min", "2.5 h"]
        );
        assert_eq!([memory(12), memory(3 << 19), memory(5 << 30)], ["12 B", "1.5 MiB", "5.0 GiB"]);
        assert_eq!([duration(59.6), duration(203.1), duration(7300.0)], ["1 min 0 s", "3 min 23 s", "2 h 1 min"]);
        assert_eq!([span(4.000_000_000_000_028), span(154.25)], ["4", "154.25"]);
        assert_eq!([time(1_082_040_961.0), time(0.25), time(1e20)], ["1082040961", "0.25", "1e20"]);
    }
}
