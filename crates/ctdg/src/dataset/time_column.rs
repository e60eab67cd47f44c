//! Times of a column: numbers, Unix times of a stated unit, or dates.

use serde::{Deserialize, Serialize};

use crate::error::{Problem, Result, quoted};
use crate::time::{DateProblem, TimeFormat, of_micros, parse_date};

/// Unit of times that count from 1970 (Unix times). They are read as seconds, to the microsecond, and shown as dates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeUnit {
    /// Seconds.
    S,
    /// Milliseconds.
    Ms,
    /// Microseconds.
    Us,
    /// Nanoseconds, rounded to microseconds.
    Ns,
}

impl TimeUnit {
    fn name(self) -> &'static str {
        match self {
            Self::S => "seconds",
            Self::Ms => "milliseconds",
            Self::Us => "microseconds",
            Self::Ns => "nanoseconds",
        }
    }

    /// The time that `text`, a number in this unit, stands for: seconds since 1970, to the microsecond.
    ///
    /// ```
    /// assert_eq!(ctdg::dataset::TimeUnit::Ms.seconds("1706702400125")?, 1_706_702_400.125);
    /// assert!(ctdg::dataset::TimeUnit::S.seconds("1706702400125").is_err()); // the year 56,000
    /// # Ok::<(), ctdg::Error>(())
    /// ```
    pub fn seconds(self, text: &str) -> Result<f64> {
        Ok(TimeColumn::Unix(self).read(text.trim().as_bytes())?)
    }

    /// The time of an integer in this unit.
    pub(crate) fn of_integer(self, time: i128) -> Result<f64, Problem> {
        let micros = match self {
            Self::S => time.checked_mul(1_000_000),
            Self::Ms => time.checked_mul(1_000),
            Self::Us => Some(time),
            Self::Ns => time.checked_add(500).map(|time| time.div_euclid(1_000)),
        };
        micros.and_then(of_micros).ok_or_else(|| self.refuses(time.to_string()))
    }

    /// The time of a number in this unit, to the microsecond.
    pub(crate) fn of_number(self, time: f64) -> Result<f64, Problem> {
        let micros = match self {
            Self::S => time * 1e6,
            Self::Ms => time * 1e3,
            Self::Us => time,
            Self::Ns => time / 1e3,
        };
        #[expect(clippy::cast_possible_truncation, reason = "whole; the cast saturates, and NaN is refused before")]
        let whole = micros.is_finite().then(|| micros.round() as i128);
        whole.and_then(of_micros).ok_or_else(|| self.refuses(time.to_string()))
    }

    fn refuses(self, found: String) -> Problem {
        Problem::NoUnixTime { found, unit: self.name() }
    }
}

/// How the times of a text column are read; decided by the first row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeColumn {
    Number,
    Unix(TimeUnit),
    Date,
}

impl TimeColumn {
    /// By the first time of the column and the unit that was asked for.
    pub(crate) fn of(first: &[u8], unit: Option<TimeUnit>) -> Result<Self, Problem> {
        match (looks_like_date(first), unit) {
            (false, None) => Ok(Self::Number),
            (false, Some(unit)) => Ok(Self::Unix(unit)),
            (true, None) => Ok(Self::Date),
            (true, Some(unit)) => Err(unit_of_dates(unit)),
        }
    }

    pub(crate) fn format(self) -> TimeFormat {
        match self {
            Self::Number => TimeFormat::Number,
            Self::Unix(_) | Self::Date => TimeFormat::Date,
        }
    }

    /// The time that `text` writes.
    #[inline]
    pub(crate) fn read(self, text: &[u8]) -> Result<f64, Problem> {
        let utf8 = std::str::from_utf8(text).map_err(|_| Problem::NotUtf8)?;
        if self == Self::Date {
            return read_date(utf8);
        }
        let Ok(number) = utf8.parse::<f64>() else { return Err(not_a_time(text)) };
        match self {
            Self::Unix(unit) => match utf8.parse::<i128>() {
                Ok(integer) => unit.of_integer(integer),
                Err(_) if number.is_finite() => unit.of_number(number),
                Err(_) => Ok(number),
            },
            _ if number.abs() < FIRST_INEXACT => Ok(number),
            _ => exact(utf8, number),
        }
    }
}

/// 2^53: below it, `f64` holds every integer.
const FIRST_INEXACT: f64 = 9_007_199_254_740_992.0;

/// `number`, unless `text` is an integer and `number` another one.
#[cold]
fn exact(text: &str, number: f64) -> Result<f64, Problem> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = whole.strip_prefix(['+', '-']).unwrap_or(whole);
    if !digits.bytes().all(|digit| digit.is_ascii_digit()) || !fraction.bytes().all(|digit| digit == b'0') {
        return Ok(number);
    }
    match whole.parse::<i128>() {
        Ok(integer) => exact_integer(integer),
        Err(_) => Err(Problem::InexactTime { found: quoted(text.as_bytes()), rounded: format!("{number:e}") }),
    }
}

/// `integer` as a time of no known unit, if `f64` holds it.
pub(crate) fn exact_integer(integer: i128) -> Result<f64, Problem> {
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "compared with the original")]
    let (rounded, back) = (integer as f64, integer as f64 as i128);
    if back == integer && integer.unsigned_abs() < 1 << 126 {
        return Ok(rounded);
    }
    Err(Problem::InexactTime { found: integer.to_string(), rounded: back.to_string() })
}

fn read_date(text: &str) -> Result<f64, Problem> {
    parse_date(text).map_err(|problem| match problem {
        DateProblem::NotADate if text.parse::<f64>().is_ok() => {
            Problem::MixedTimes { found: format!("the number {}", quoted(text.as_bytes())), expected: "a date" }
        }
        problem => not_a_date(text, problem),
    })
}

fn not_a_date(text: &str, problem: DateProblem) -> Problem {
    let expected = match problem {
        DateProblem::NotADate => "a date such as 2024-01-31 or 2024-01-31T12:00:00Z",
        DateProblem::NoSuchDate => "a date that exists",
        DateProblem::TooFine => "a date of at most microseconds",
    };
    Problem::NotANumber { found: quoted(text.as_bytes()), expected }
}

/// Text that is not a number, in a column of numbers.
fn not_a_time(text: &[u8]) -> Problem {
    if looks_like_date(text) {
        return Problem::MixedTimes { found: format!("the date {}", quoted(text)), expected: "a number" };
    }
    Problem::NotANumber { found: quoted(text), expected: "a number or a date such as 2024-01-31T12:00:00Z" }
}

/// A unit that was asked for times that are dates already.
pub(crate) fn unit_of_dates(unit: TimeUnit) -> Problem {
    let expected = "no unit, because the column holds dates";
    Problem::Setting { name: "time-unit", found: unit.name().into(), expected: expected.into() }
}

/// Whether `text` starts with `YYYY-MM-DD`, whether there is such a date or not.
pub(crate) fn looks_like_date(text: &[u8]) -> bool {
    let digits = |range: std::ops::Range<usize>| text[range].iter().all(u8::is_ascii_digit);
    text.len() >= 10
        && text[4] == b'-'
        && text[7] == b'-'
        && digits(0..4)
        && digits(5..7)
        && digits(8..10)
        && text.get(10).is_none_or(|next| matches!(next, b'T' | b't' | b' '))
}

/// Whether `text` is a time on its own: a number or a date.
pub(crate) fn looks_like_time(text: &str) -> bool {
    text.parse::<f64>().is_ok() || looks_like_date(text.as_bytes())
}

/// Whether `text` starts with `HH:MM`.
pub(crate) fn looks_like_clock(text: &[u8]) -> bool {
    matches!(text, [a, b, b':', c, d, ..] if [a, b, c, d].iter().all(|digit| digit.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unix_times_of_every_unit_are_the_same_date() {
        let read = |unit, text: &str| TimeColumn::Unix(unit).read(text.as_bytes()).unwrap();
        for (unit, text) in [
            (TimeUnit::S, "1706702400.125"),
            (TimeUnit::Ms, "1706702400125"),
            (TimeUnit::Us, "1706702400125000"),
            (TimeUnit::Ns, "1706702400125000499"),
            (TimeUnit::Ns, "1.706702400125e18"),
        ] {
            assert_eq!(read(unit, text), 1_706_702_400.125, "{text} {unit:?}");
        }
        assert_eq!(read(TimeUnit::Ns, "-1500"), -0.000_001, "a half goes up");
        assert!(TimeColumn::Unix(TimeUnit::S).read(b"1706702400125").is_err(), "year 56,000");
        assert!(TimeColumn::Unix(TimeUnit::Ns).read(b"170000000000000000000000000000000000000").is_err());
    }

    #[test]
    fn integers_are_exact_or_refused() {
        let read = |text: &str| TimeColumn::Number.read(text.as_bytes());
        for exact in ["9007199254740992", "9007199254740994.0", "-9007199254740996", "1700000000123456768", "1e300"] {
            assert_eq!(read(exact).unwrap(), exact.parse::<f64>().unwrap(), "{exact}");
        }
        let huge = "9".repeat(60);
        for inexact in
            ["9007199254740993", "-9007199254740993.00", "1700000000123456789", "18446744073709551615", &huge]
        {
            assert!(matches!(read(inexact), Err(Problem::InexactTime { .. })), "{inexact}");
        }
    }
}
