//! Times as numbers and as dates.
//!
//! A stream stores its times as `f64`. Where the input wrote dates, they are seconds since 1970 in UTC, and
//! [`EventStream::time_format`](crate::event::EventStream::time_format) says so, for everything that shows or asks for a
//! time.
//!
//! ```
//! use ctdg::time::{TimeFormat, parse_date};
//!
//! assert_eq!(parse_date("2024-01-31 12:00")?, 1_706_702_400.0);
//! assert_eq!(parse_date("2024-01-31T13:00:00.125+01:00")?, 1_706_702_400.125);
//! assert_eq!(TimeFormat::Date.show(1_706_702_400.125), "2024-01-31 12:00:00.125");
//! assert_eq!(TimeFormat::Number.show(2.5), "2.5");
//! # Ok::<(), ctdg::time::DateProblem>(())
//! ```

use std::ops::RangeInclusive;

use chrono::{DateTime, NaiveDate, TimeDelta};
use serde::{Deserialize, Serialize};

/// How the input wrote its times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeFormat {
    /// As numbers of an unknown unit.
    #[default]
    Number,
    /// As dates; the stream holds seconds since 1970 in UTC.
    Date,
}

impl TimeFormat {
    /// `time` as the input would write it: the shortest exact number, or a date in UTC to the microsecond.
    #[must_use]
    pub fn show(self, time: f64) -> String {
        let date = match self {
            Self::Number => None,
            Self::Date => micros(time).and_then(DateTime::from_timestamp_micros),
        };
        match date {
            Some(date) => date.format("%Y-%m-%d %H:%M:%S%.f").to_string(),
            None if time == 0.0 || (1e-6..1e15).contains(&time.abs()) => time.to_string(),
            None => format!("{time:e}"),
        }
    }

    /// A time just after `time`: everything at `time` lies strictly before it. Of dates it is the next whole microsecond, which
    /// [`TimeFormat::show`] writes exactly.
    ///
    /// ```
    /// use ctdg::time::TimeFormat;
    ///
    /// assert_eq!(TimeFormat::Number.just_after(2.0), 2.0_f64.next_up());
    /// assert_eq!(TimeFormat::Date.show(TimeFormat::Date.just_after(86_400.0)), "1970-01-02 00:00:00.000001");
    /// ```
    #[must_use]
    pub fn just_after(self, time: f64) -> f64 {
        let next = ((time * 1e6).floor() + 1.0) / 1e6;
        match self {
            Self::Date if next > time && exact_micros(next).is_some() => next,
            _ => time.next_up(),
        }
    }

    /// The time that a person wrote: a finite number, or, where the input has dates, a date.
    #[must_use]
    pub fn parse(self, text: &str) -> Option<f64> {
        let number = text.trim().parse().ok().filter(|time: &f64| time.is_finite());
        match self {
            Self::Number => number,
            Self::Date => parse_date(text).ok().or(number),
        }
    }
}

/// Why a text is not a date that a stream can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DateProblem {
    /// It does not look like a date.
    #[error("not a date like 2024-01-31, 2024-01-31 12:00:00.123 or 2024-01-31T12:00:00Z")]
    NotADate,
    /// It looks like one, but the calendar or the clock has no such time.
    #[error("no such date")]
    NoSuchDate,
    /// Its fraction of a second cannot be stored exactly: it is finer than a microsecond, or the year is too far away.
    #[error("finer than the microseconds that can be stored exactly")]
    TooFine,
}

/// Seconds since 1970 of an ISO 8601 date: `2024-01-31`, followed by nothing or by `T` or a blank and `12:00`, `12:00:00` or
/// `12:00:00.123`, followed by nothing (UTC), `Z` or an offset such as `+01:00`.
pub fn parse_date(text: &str) -> Result<f64, DateProblem> {
    let mut rest = Rest(text.trim().as_bytes());
    let date = rest.date().ok_or(DateProblem::NotADate)?;
    let clock = if rest.0.is_empty() { Some(Clock::default()) } else { rest.clock() };
    let Clock { hour, minute, second, fraction } = clock.ok_or(DateProblem::NotADate)?;
    let offset = rest.offset().ok_or(DateProblem::NotADate)?;
    if !rest.0.is_empty() {
        return Err(DateProblem::NotADate);
    }
    let [year, month, day] = date;
    let micros_of_second = six_digits(fraction).ok_or(DateProblem::TooFine)?;
    let date = NaiveDate::from_ymd_opt(year.cast_signed(), month, day).ok_or(DateProblem::NoSuchDate)?;
    let time = date.and_hms_micro_opt(hour, minute, second, micros_of_second).ok_or(DateProblem::NoSuchDate)?;
    if offset.abs() >= 24 * 60 {
        return Err(DateProblem::NoSuchDate);
    }
    let time = time.checked_sub_signed(TimeDelta::minutes(offset)).ok_or(DateProblem::NoSuchDate)?;
    let written = time.and_utc().timestamp_micros();
    #[expect(clippy::cast_precision_loss, reason = "checked: the microseconds come back")]
    let seconds = written as f64 / 1e6;
    if micros(seconds) == Some(written) { Ok(seconds) } else { Err(DateProblem::TooFine) }
}

/// The time that many microseconds after 1970, if it is a date between the years 1 and 9999 that `f64` holds exactly.
pub(crate) fn of_micros(micros: i128) -> Option<f64> {
    const YEARS_1_TO_9999: RangeInclusive<i128> = -62_135_596_800_000_000..=253_402_300_799_999_999;
    let written = i64::try_from(micros).ok().filter(|_| YEARS_1_TO_9999.contains(&micros))?;
    #[expect(clippy::cast_precision_loss, reason = "checked: the microseconds come back")]
    let seconds = written as f64 / 1e6;
    (self::micros(seconds) == Some(written)).then_some(seconds)
}

/// The microseconds from which [`of_micros`] makes this time, bit for bit.
pub(crate) fn exact_micros(seconds: f64) -> Option<i64> {
    let micros = micros(seconds)?;
    (of_micros(micros.into())?.to_bits() == (seconds + 0.0).to_bits()).then_some(micros)
}

/// The nearest whole number of microseconds, if a date can have it.
fn micros(seconds: f64) -> Option<i64> {
    let micros = (seconds * 1e6).round();
    #[expect(clippy::cast_possible_truncation, reason = "whole and within the range of i64")]
    (micros.abs() < 9e18).then_some(micros as i64)
}

#[derive(Default)]
struct Clock<'t> {
    hour: u32,
    minute: u32,
    second: u32,
    /// Digits after the point.
    fraction: &'t [u8],
}

/// What is left of a text.
struct Rest<'t>(&'t [u8]);

impl<'t> Rest<'t> {
    /// Takes `byte`, if it is next.
    fn take(&mut self, byte: u8) -> bool {
        let rest = self.0.strip_prefix(&[byte]);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// Takes a number of exactly `n` digits.
    fn digits(&mut self, n: usize) -> Option<u32> {
        let (digits, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        digits.iter().try_fold(0, |number, digit| digit.is_ascii_digit().then(|| 10 * number + u32::from(digit - b'0')))
    }

    /// `YYYY-MM-DD`.
    fn date(&mut self) -> Option<[u32; 3]> {
        let year = self.digits(4)?;
        let month = self.take(b'-').then(|| self.digits(2))??;
        let day = self.take(b'-').then(|| self.digits(2))??;
        Some([year, month, day])
    }

    /// `T` or a blank and `HH:MM[:SS[.f]]`.
    fn clock(&mut self) -> Option<Clock<'t>> {
        if !(self.take(b'T') || self.take(b't') || self.take(b' ')) {
            return None;
        }
        let mut clock = Clock { hour: self.digits(2)?, ..Clock::default() };
        clock.minute = self.take(b':').then(|| self.digits(2))??;
        if self.take(b':') {
            clock.second = self.digits(2)?;
            if self.take(b'.') || self.take(b',') {
                let n = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
                (clock.fraction, self.0) = self.0.split_at(n);
                (n > 0).then_some(())?;
            }
        }
        Some(clock)
    }

    /// Minutes east of UTC: `Z`, `±HH:MM`, `±HHMM`, `±HH`, or 0 for nothing.
    fn offset(&mut self) -> Option<i64> {
        if self.0.is_empty() || self.take(b'Z') || self.take(b'z') {
            return Some(0);
        }
        let is_west = self.take(b'-');
        if !is_west && !self.take(b'+') {
            return None;
        }
        let hours = self.digits(2)?;
        let has_minutes = self.take(b':') || !self.0.is_empty();
        let minutes = if has_minutes { self.digits(2).filter(|&minutes| minutes < 60)? } else { 0 };
        let offset = i64::from(60 * hours + minutes);
        Some(if is_west { -offset } else { offset })
    }
}

/// Microseconds of the digits after the point, if there are no finer ones.
fn six_digits(fraction: &[u8]) -> Option<u32> {
    let is_fine = fraction.iter().skip(6).any(|&digit| digit != b'0');
    let digits = fraction.iter().chain(std::iter::repeat(&b'0')).take(6);
    (!is_fine).then(|| digits.fold(0, |micros, digit| 10 * micros + u32::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values are those of Python's `datetime.fromisoformat(..).timestamp()` with UTC as the default zone.
    #[test]
    fn dates_of_every_accepted_form_are_seconds_since_1970() {
        let cases = [
            ("1970-01-01", 0.0),
            ("2024-02-29", 1_709_164_800.0),
            ("2024-01-31T12:00Z", 1_706_702_400.0),
            ("2024-01-31 12:00:30", 1_706_702_430.0),
            (" 2024-01-31T12:00:30.5z ", 1_706_702_430.5),
            ("2024-01-31 12:00:00.123456", 1_706_702_400.123_456),
            ("2024-01-31 12:00:00.123000000", 1_706_702_400.123),
            ("2024-01-31T12:00:00+05:30", 1_706_682_600.0),
            ("2024-01-31T12:00:00-0800", 1_706_731_200.0),
            ("2024-01-31 12:00:00+01", 1_706_698_800.0),
            ("1969-12-31 23:59:59.75", -0.25),
            ("0001-01-01", -62_135_596_800.0),
            ("9999-12-31T23:59:59Z", 253_402_300_799.0),
        ];
        for (text, seconds) in cases {
            assert_eq!(parse_date(text), Ok(seconds), "{text}");
            assert_eq!(parse_date(&TimeFormat::Date.show(seconds)), Ok(seconds), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused_with_the_reason() {
        use DateProblem::{NoSuchDate, NotADate, TooFine};
        let cases = [
            ("", NotADate),
            ("2024", NotADate),
            ("20240131", NotADate),
            ("31-01-2024", NotADate),
            ("2024-1-31", NotADate),
            ("2024-01-31T", NotADate),
            ("2024-01-31T12", NotADate),
            ("2024-01-31Z", NotADate),
            ("2024-01-31 12:00:00.", NotADate),
            ("2024-01-31 12:00 PM", NotADate),
            ("2024-01-31T12:00[Europe/Paris]", NotADate),
            ("2024-01-31T12:00+01:00x", NotADate),
            ("2024-01-31T12:00é", NotADate),
            ("2024-02-30", NoSuchDate),
            ("2023-02-29", NoSuchDate),
            ("2024-13-01", NoSuchDate),
            ("2024-01-31 24:00", NoSuchDate),
            ("2024-01-31 12:60", NoSuchDate),
            ("2024-01-31T12:00+99:00", NoSuchDate),
            ("2024-01-31 12:00:00.1234567", TooFine),
            ("9999-12-31 23:59:59.000001", TooFine),
        ];
        for (text, problem) in cases {
            assert_eq!(parse_date(text), Err(problem), "{text}");
        }
    }

    #[test]
    fn the_time_just_after_a_date_is_later_and_can_be_written() {
        for text in ["2024-01-31 12:00:00.999999", "1969-12-31 23:59:59.75", "0001-01-01", "2024-01-31"] {
            let time = parse_date(text).unwrap();
            let after = TimeFormat::Date.just_after(time);
            assert!(after > time && after - time < 2e-5, "{text}");
            assert_eq!(parse_date(&TimeFormat::Date.show(after)), Ok(after), "{text}");
        }
        let last = parse_date("9999-12-31T23:59:59Z").unwrap();
        assert!(TimeFormat::Date.just_after(last) > last, "microseconds cannot be stored so far away");
    }

    #[test]
    fn numbers_are_shown_as_numbers_and_accepted_beside_dates() {
        assert_eq!(
            [1_082_040_961.0, 0.25, 1e20].map(|time| TimeFormat::Number.show(time)),
            ["1082040961", "0.25", "1e20"]
        );
        assert_eq!(TimeFormat::Date.show(1e300), "1e300", "no date is so late");
        assert_eq!(TimeFormat::Number.parse("2024-01-31"), None);
        assert_eq!(TimeFormat::Date.parse("86400"), Some(86_400.0));
        assert_eq!(TimeFormat::Date.parse("inf"), None);
    }
}
