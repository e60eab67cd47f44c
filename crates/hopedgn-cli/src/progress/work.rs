//! Long work as numbers, and the lines about it where no bar can be drawn: what is due is a function of the time, which the caller
//! states.

use hopedgn::fmt::{duration, grouped, memory};

/// Seconds between two lines.
const EVERY: f64 = 10.0;

/// Seconds and parts after which a rate is worth something.
const FIRST: f64 = 2.0;
const FIRST_PARTS: u64 = 3;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Bytes,
    /// Things of this noun, singular and plural; without a noun, plain numbers.
    Things(&'static str, &'static str),
    /// Nothing: the length is not known.
    None,
}

/// An estimate of more than one piece of work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Estimate {
    /// E.g. `about 40 s an epoch`; for lines only.
    pub(crate) detail: Option<String>,
    /// E.g. `at most 33 min in all`.
    pub(crate) whole: String,
}

/// One piece of long work. Times are seconds since any fixed moment.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) what: String,
    pub(super) unit: Unit,
    start: f64,
    /// Where this process started to count: not at 0 after a resumption.
    first: u64,
    done: u64,
    pub(super) total: u64,
    /// The caller's own estimate, where it knows more than this piece.
    pub(super) estimate: Option<Estimate>,
    is_announced: bool,
}

impl Work {
    pub(super) fn new(what: &str, unit: Unit, total: u64, now: f64) -> Self {
        let (what, estimate) = (what.to_owned(), None);
        Self { what, unit, start: now, first: 0, done: 0, total, estimate, is_announced: false }
    }

    /// `done` parts were done before this process began.
    pub(super) fn start_at(&mut self, done: u64, now: f64) {
        (self.first, self.done, self.start) = (done, done, now);
    }

    /// Sets what is done. Counting from the beginning again, as for the next phase of the same work, starts a new rate.
    pub(super) fn set_done(&mut self, done: u64, now: f64) {
        if done < self.done {
            self.start_at(done, now);
        }
        self.done = done;
    }

    pub(super) fn done(&self) -> u64 {
        self.done
    }

    /// Parts that this process has done.
    pub(super) fn n_counted(&self) -> u64 {
        self.done.saturating_sub(self.first)
    }

    /// Seconds for one part, from the parts of this process.
    pub(super) fn seconds_per_part(&self, now: f64) -> Option<f64> {
        let n_parts = self.n_counted();
        (n_parts > 0).then(|| (now - self.start) / n_parts as f64)
    }

    fn seconds_left(&self, now: f64) -> Option<f64> {
        Some(self.seconds_per_part(now)? * self.total.saturating_sub(self.done) as f64)
    }

    /// The line that is due at `now`, if one is; the last line about anything was printed at `last`. Work that seems to take long is
    /// announced after the first parts; otherwise a line follows about every ten seconds.
    pub(super) fn due(&mut self, now: f64, last: f64) -> Option<String> {
        let elapsed = now - self.start;
        let is_long = || self.seconds_left(now).is_some_and(|left| elapsed + left >= 2.0 * EVERY);
        let has_rate = elapsed >= FIRST && self.n_counted() >= FIRST_PARTS;
        let is_first = !self.is_announced && has_rate && is_long();
        let is_next = now - last >= EVERY && elapsed >= FIRST;
        // The line at the end follows at once.
        let is_over = matches!(self.unit, Unit::Things(..)) && self.done >= self.total;
        if is_over || !(is_first || is_next) {
            return None;
        }
        self.is_announced = true;
        let left = || self.seconds_left(now).map(|left| format!("about {} left", duration(left)));
        let stated = self.estimate.as_ref().map(|Estimate { detail, whole }| match detail {
            Some(detail) => format!("{detail}, {whole}"),
            None => whole.clone(),
        });
        let estimate = stated.or_else(left).map_or(String::new(), |estimate| format!("; {estimate}"));
        Some(format!("{}, {}{estimate}", self.position(), duration(elapsed)))
    }

    /// What stands behind a bar: the time left of this piece, and the estimate of more than it.
    pub(super) fn behind_bar(&self, now: f64) -> String {
        let left = self.seconds_left(now).map_or(String::new(), |left| format!(", {} left", duration(left)));
        let whole = self.estimate.as_ref().map_or(String::new(), |estimate| format!("; {}", estimate.whole));
        left + &whole
    }

    /// The line at the end of work that was announced.
    pub(super) fn end(&mut self, now: f64) -> Option<String> {
        let took = duration(now - self.start);
        let line = match self.unit {
            Unit::Bytes => format!("{}: {} in {took}", self.what, memory(self.done)),
            Unit::Things(one, many) if self.done >= self.total => {
                let noun = if self.total == 1 { one } else { many };
                format!("{}: {} {noun} in {took}", self.what, grouped(self.total)).replace("  ", " ")
            }
            Unit::Things(..) | Unit::None => format!("{}, ended after {took}", self.position()),
        };
        std::mem::take(&mut self.is_announced).then_some(line)
    }

    /// E.g. `training epoch 1: 120 of 172 batches`.
    fn position(&self) -> String {
        let Self { what, done, total, .. } = self;
        match self.unit {
            Unit::None => what.clone(),
            Unit::Bytes if *total > *done => format!("{what}: {} of {}", memory(*done), memory(*total)),
            Unit::Bytes => format!("{what}: {}", memory(*done)),
            Unit::Things(one, many) => {
                let noun = if *total == 1 { one } else { many };
                format!("{what}: {} of {} {noun}", grouped(*done), grouped(*total)).trim_end().to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BATCHES: Unit = Unit::Things("batch", "batches");

    /// The lines of work whose parts take `seconds` each, with the time at which each is printed.
    fn lines(mut work: Work, total: u64, seconds: f64) -> Vec<(f64, String)> {
        let (mut printed, mut last, first): (Vec<(f64, String)>, f64, u64) = (Vec::new(), 0.0, work.done());
        let mut now = 0.0;
        for done in first..=total {
            work.set_done(done, now);
            if let Some(line) = work.due(now, last) {
                last = now;
                printed.push((now, line));
            }
            now += seconds;
        }
        printed.extend(work.end(now).map(|line| (now, line)));
        printed
    }

    fn work(total: u64) -> Work {
        Work::new("training epoch 1", BATCHES, total, 0.0)
    }

    #[test]
    fn long_work_is_announced_reported_every_ten_seconds_and_ended() {
        let lines = lines(work(160), 160, 0.25);
        let times: Vec<f64> = lines.iter().map(|(time, _)| time.round()).collect();
        assert_eq!(times, [2.0, 12.0, 22.0, 32.0, 40.0]);
        assert_eq!(lines[0].1, "training epoch 1: 8 of 160 batches, 2 s; about 38 s left");
        assert_eq!(lines[1].1, "training epoch 1: 48 of 160 batches, 12 s; about 28 s left");
        assert_eq!(lines[4].1, "training epoch 1: 160 batches in 40 s");
    }

    #[test]
    fn short_work_prints_nothing() {
        for seconds in [0.001, 0.05, 0.09] {
            assert_eq!(lines(work(100), 100, seconds), [], "{seconds}");
        }
    }

    #[test]
    fn short_pieces_of_long_work_report_after_ten_seconds_of_silence() {
        let mut work = Work::new("evaluating", BATCHES, 30, 12.0);
        work.set_done(10, 15.0);
        assert_eq!(work.due(15.0, 6.0), None, "a line was printed nine seconds ago");
        work.set_done(14, 16.2);
        let line = work.due(16.2, 6.0).expect("a line");
        assert_eq!(line, "evaluating: 14 of 30 batches, 4 s; about 5 s left");
        assert_eq!(Work::new("evaluating", BATCHES, 30, 12.0).due(12.5, 0.0), None, "it has only begun");
    }

    #[test]
    fn rates_after_a_resumption_count_only_parts_of_this_process() {
        let mut work = work(1_000);
        work.start_at(900, 5.0);
        work.set_done(910, 15.0);
        assert_eq!(work.seconds_per_part(15.0), Some(1.0));
        let line = work.due(15.0, 0.0).expect("a line");
        assert_eq!(line, "training epoch 1: 910 of 1,000 batches, 10 s; about 1 min 30 s left");
    }

    #[test]
    fn a_second_phase_counts_from_its_own_beginning() {
        let mut work = Work::new("uci: downloading", Unit::Bytes, 0, 0.0);
        work.total = 4 << 20;
        work.set_done(4 << 20, 100.0);
        work.set_done(1 << 20, 101.0);
        assert_eq!(work.seconds_per_part(101.0), None, "verifying has only begun");
        work.set_done(2 << 20, 111.0);
        assert_eq!(
            work.due(111.0, 0.0).expect("a line"),
            "uci: downloading: 2.0 MiB of 4.0 MiB, 10 s; about 20 s left"
        );
    }

    #[test]
    fn the_callers_estimate_stands_in_the_place_of_our_own() {
        let mut work = work(172);
        work.set_done(120, 14.0);
        let (detail, whole) = (Some("about 40 s an epoch".to_owned()), "at most 33 min 0 s in all".to_owned());
        work.estimate = Some(Estimate { detail, whole });
        assert_eq!(work.behind_bar(14.0), ", 6 s left; at most 33 min 0 s in all");
        assert_eq!(
            work.due(14.0, 0.0).expect("a line"),
            "training epoch 1: 120 of 172 batches, 14 s; about 40 s an epoch, at most 33 min 0 s in all"
        );
    }

    #[test]
    fn interrupted_work_does_not_claim_to_be_done() {
        let mut work = work(100);
        work.set_done(50, 30.0);
        assert!(work.due(30.0, 0.0).is_some());
        assert_eq!(work.end(31.0).as_deref(), Some("training epoch 1: 50 of 100 batches, ended after 31 s"));
        assert_eq!(work.end(32.0), None);
    }

    #[test]
    fn one_is_singular_and_unknown_lengths_are_left_out() {
        let mut one = Work::new("bench", Unit::Things("pass", "passes"), 1, 0.0);
        assert_eq!(one.due(20.0, 0.0).expect("a line"), "bench: 0 of 1 pass, 20 s");
        let mut spinner = Work::new("round 3, 12 colours", Unit::None, 0, 0.0);
        assert_eq!(spinner.due(20.0, 0.0).expect("a line"), "round 3, 12 colours, 20 s");
        let mut unknown = Work::new("uci", Unit::Bytes, 0, 0.0);
        unknown.set_done(3 << 20, 20.0);
        unknown.total = 3 << 20;
        assert!(unknown.due(20.0, 0.0).expect("a line").starts_with("uci: 3.0 MiB, 20 s"));
    }
}
