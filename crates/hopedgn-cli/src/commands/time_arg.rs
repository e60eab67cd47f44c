//! Times on the command line and in files of pairs: as the data has them.

use ctdg::dataset::TimeUnit;
use ctdg::time::{TimeFormat, parse_date};
use hopedgn::Events;

/// The time that `text` writes: a number, in the unit that the file of the events was read with, or a date where they have dates.
/// The error is what was expected.
pub(crate) fn parse_time(text: &str, events: &Events) -> Result<f64, &'static str> {
    let number = || text.trim().parse().ok().filter(|time: &f64| time.is_finite());
    if events.time_format() == TimeFormat::Number {
        return number().ok_or("a number, as the times of the data");
    }
    let unit = events.read_options().time_unit;
    let unix = || {
        // Seconds that are no date, such as milliseconds, are refused; those that are stay as exact as they are written.
        let seconds = unit.unwrap_or(TimeUnit::S).seconds(text).ok()?;
        if unit.is_none() { number() } else { Some(seconds) }
    };
    parse_date(text).ok().or_else(unix).ok_or(match unit {
        None => "a date like 2024-01-31 or 2024-01-31 12:00, as the times of the data",
        Some(TimeUnit::S) => "a date like 2024-01-31 12:00, or seconds since 1970, as the times of the data",
        Some(TimeUnit::Ms) => "a date like 2024-01-31 12:00, or milliseconds since 1970, as the times of the data",
        Some(TimeUnit::Us) => "a date like 2024-01-31 12:00, or microseconds since 1970, as the times of the data",
        Some(TimeUnit::Ns) => "a date like 2024-01-31 12:00, or nanoseconds since 1970, as the times of the data",
    })
}

/// The value of a flag that takes a time.
pub(crate) fn parse_flag(flag: &str, text: &str, events: &Events) -> anyhow::Result<f64> {
    parse_time(text, events).map_err(|expected| anyhow::anyhow!("found {flag} {text}, expected {expected}"))
}

#[cfg(test)]
mod tests {
    use ctdg::dataset::ReadOptions;
    use ctdg::event::{Columns, EventStream};

    use super::*;

    fn events(time_format: TimeFormat, time_unit: Option<TimeUnit>) -> Events {
        let columns = EventStream::from_events([(0, 1, 86_400.0)]).unwrap().into_columns();
        let stream = EventStream::new(Columns { time_format, ..columns }).unwrap();
        let options = ReadOptions { time_unit, ..ReadOptions::default() };
        Events::from_stream("test", stream).with_source("test.csv".as_ref(), &options)
    }

    #[test]
    fn numbers_are_times_of_data_with_numbers_and_dates_are_not() {
        let numbers = events(TimeFormat::Number, None);
        assert_eq!(parse_time(" -2.5 ", &numbers), Ok(-2.5));
        assert_eq!(parse_time("1e308", &numbers), Ok(1e308));
        for text in ["inf", "NaN", "soon", "", "2024-01-31"] {
            assert!(parse_time(text, &numbers).is_err(), "{text}");
        }
    }

    #[test]
    fn dates_and_seconds_are_times_of_data_with_dates() {
        let dates = events(TimeFormat::Date, None);
        assert_eq!(parse_time("2024-01-31 12:00", &dates), Ok(1_706_702_400.0));
        assert_eq!(parse_time("2024-01-31T13:00:00.125+01:00", &dates), Ok(1_706_702_400.125));
        assert_eq!(parse_time("1706702400.0000002", &dates), Ok(1_706_702_400.000_000_2), "as exact as it is written");
        for text in ["1706702400125", "2024-02-30", "31.01.2024", "soon"] {
            assert!(parse_time(text, &dates).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_have_the_unit_of_the_file() {
        let millis = events(TimeFormat::Date, Some(TimeUnit::Ms));
        assert_eq!(parse_time("1706702400125", &millis), Ok(1_706_702_400.125));
        assert_eq!(parse_time("2024-01-31 12:00", &millis), Ok(1_706_702_400.0));
        let message = parse_flag("--at", "soon", &millis).unwrap_err().to_string();
        assert_eq!(
            message,
            "found --at soon, expected a date like 2024-01-31 12:00, or milliseconds since 1970, as the times of the data"
        );
    }
}
