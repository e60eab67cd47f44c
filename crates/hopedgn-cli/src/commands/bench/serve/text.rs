//! The figures of a server as text.

use std::fmt;

use hopedgn::fmt::{grouped, memory};
use hopedgn_serve::bench::{DamageReport, LaneOverload, LoadFigures, Measured};

use super::{CrashAnswer, Report};
use crate::plural::count;

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate, shown whole")]
fn whole(rate: f64) -> String {
    grouped(rate.round() as u64)
}

fn milliseconds(seconds: f64) -> String {
    let milliseconds = 1e3 * seconds;
    if milliseconds < 10.0 { format!("{milliseconds:.2} ms") } else { format!("{milliseconds:.0} ms") }
}

/// `p50 1.20 ms, p99 4.10 ms`, and what failed.
fn latency(of: &Measured) -> String {
    let problems = match (&of.failure, of.busy) {
        (Some(failure), _) => format!("; {} FAILED: {failure}", count(of.failed, "request")),
        (None, 0) => String::new(),
        (None, busy) => format!("; {} refused as too many", count(busy, "request")),
    };
    format!("p50 {}, p99 {}{problems}", milliseconds(of.latency.p50), milliseconds(of.latency.p99))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, data, events, figures, .. } = self;
        let processor = self.processor.as_deref().unwrap_or("unknown processor");
        writeln!(
            f,
            "serving {model} on {data} ({}), clients on the same machine: {processor}",
            count(*events, "event")
        )?;
        if let Some(intake) = &figures.intake {
            let kinds = [
                ("as fast as it can", &intake.batches),
                ("at a fixed rate", &intake.paced),
                ("as fast as it can", &intake.singles),
            ];
            for (pace, LoadFigures { connections, batch, events_per_second, answers }) in kinds {
                let what = format!("{} each, {}, {pace}", count(*batch, "event"), count(*connections, "connection"));
                let rate = whole(*events_per_second);
                writeln!(f, "events, {what}: {rate} events/s; acknowledged in {}", latency(answers))?;
            }
        }
        if let Some(score) = &figures.score {
            let (rate, events) = (whole(score.rate), whole(score.event_rate));
            writeln!(f, "score of one pair, {rate} requests/s during {events} events/s: {}", latency(&score.answers))?;
            writeln!(f, "  those events acknowledged in {}", latency(&score.events))?;
        }
        if let Some(recommend) = &figures.recommend {
            let destinations = count(usize::try_from(recommend.destinations).unwrap_or(usize::MAX), "destination");
            writeln!(f, "recommend, the best 10 of all {destinations}: {}", latency(&recommend.exact))?;
            writeln!(f, "recommend, the best 10 of candidates: {}", latency(&recommend.candidates))?;
        }
        if let Some(restart) = &figures.restart {
            let (events, log) = (grouped(restart.events), memory(restart.log_bytes));
            let resident = restart.resident.map_or_else(|| "unknown".to_owned(), memory);
            let each = restart.bytes_per_event.map_or_else(String::new, |bytes| format!(", {bytes:.0} bytes an event"));
            writeln!(
                f,
                "restart with {events} events ({log}): ready after {:.1} s, resident {resident}{each}",
                restart.ready_seconds
            )?;
        }
        if let Some(overload) = &figures.overload {
            for (what, of) in [("scores of 1,000 pairs", &overload.score), ("recommend", &overload.recommend)] {
                write_overload(f, what, of)?;
            }
        }
        Ok(())
    }
}

fn write_overload(f: &mut fmt::Formatter<'_>, what: &str, of: &LaneOverload) -> fmt::Result {
    let LaneOverload { capacity, normal, over, resident_before, resident_after } = of;
    let share = |n: usize| format!("{:.1}%", 100.0 * n as f64 / over.requests.max(1) as f64);
    writeln!(f, "overload, {what}: at most {capacity:.0} requests/s; at half of that {}", latency(normal))?;
    let problem = over.failure.as_ref().map_or_else(String::new, |failure| format!(" ({failure})"));
    writeln!(
        f,
        "  at four times that {} answered (p50 {}, p99 {}), {} refused with 429, {} failed{problem}",
        share(over.answered),
        milliseconds(over.latency.p50),
        milliseconds(over.latency.p99),
        share(over.busy),
        share(over.failed)
    )?;
    let resident = |bytes: &Option<u64>| bytes.map_or_else(|| "unknown".to_owned(), memory);
    writeln!(f, "  resident {} before, {} after", resident(resident_before), resident(resident_after))
}

impl fmt::Display for CrashAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = &self.report;
        writeln!(
            f,
            "{} of a server of {} on {}, {} before it had started",
            count(report.kills, "kill"),
            self.model,
            self.data,
            report.kills_while_starting
        )?;
        writeln!(
            f,
            "  {} sent: {} acknowledged, {} under way at a kill (of which the log held {}); {} sent again",
            count(report.requests, "request"),
            grouped(report.acknowledged),
            grouped(report.in_flight),
            grouped(report.in_flight_kept),
            grouped(report.repeated)
        )?;
        writeln!(
            f,
            "  {} in the log at the end; {} cut off",
            count(usize::try_from(report.events).unwrap_or(usize::MAX), "event"),
            count(report.unfinished, "unfinished append")
        )?;
        for DamageReport { file, kind, tries, unchanged, refused, servers } in &report.damage {
            writeln!(
                f,
                "  {file} {kind} {}: {unchanged} without effect, {refused} refused; {} started",
                times(*tries),
                count(*servers, "server")
            )?;
        }
        for violation in &report.found {
            writeln!(f, "VIOLATION: {violation}")?;
        }
        match report.violations {
            0 => writeln!(f, "no acknowledged event was lost, doubled or changed"),
            n => writeln!(f, "{}", count(n, "violation")),
        }
    }
}

fn times(n: usize) -> String {
    count(n, "time")
}
