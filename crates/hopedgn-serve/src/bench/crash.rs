//! Kills a server while events are sent, again and again, and compares its log with what was acknowledged; then damages that log.

mod check;
mod damage;
mod sent;
mod writer;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ctdg::dataset::log::{self, EventLog};
use ctdg::event::EventStream;
use ctdg::random::RandomStream;
use serde::Serialize;

use super::process::{Launch, ServerProcess, Starting, has_panicked, stderr_of};
use crate::{Error, Result};
use check::{Verified, verify};
pub use damage::DamageReport;
use sent::Sent;

/// Longest time between the first request and the kill.
const LONGEST_MILLISECONDS: usize = 150;
/// Share of kills that hit a server that has not finished starting.
const WHILE_STARTING: f64 = 0.1;
/// Share of kills after which the end of the log is an unfinished append, as after a power failure.
const TORN: f64 = 0.2;
/// Violations whose text is kept.
const MOST_TEXTS: usize = 20;

/// How much to attack.
///
/// ```
/// let options = hopedgn_serve::bench::CrashOptions { kills: 10, ..Default::default() };
/// assert_eq!(options.writers, 4);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct CrashOptions {
    /// Times that the server is killed.
    pub kills: usize,
    /// Connections that send events meanwhile.
    pub writers: usize,
    /// Bits of each file that are flipped afterwards, one at a time.
    pub flips: usize,
    /// What is random is drawn with it.
    pub seed: u64,
}

impl Default for CrashOptions {
    fn default() -> Self {
        Self { kills: 200, writers: 4, flips: 200, seed: 0 }
    }
}

/// What the attack did, and what went wrong.
#[derive(Debug, Default, Serialize)]
pub struct CrashReport {
    /// Times that the server was killed.
    pub kills: usize,
    /// Those before it had started.
    pub kills_while_starting: usize,
    /// Requests with events, without repetitions.
    pub requests: usize,
    /// Those that were acknowledged before the kill.
    pub acknowledged: usize,
    /// Those that were under way at the kill.
    pub in_flight: usize,
    /// Those of them that the log held, whole.
    pub in_flight_kept: usize,
    /// Requests that were sent again, and recognised or taken in then.
    pub repeated: usize,
    /// Events of the log that were sent.
    pub events: u64,
    /// Times that an unfinished append was cut off.
    pub unfinished: usize,
    /// Damage of the last log, by kind.
    pub damage: Vec<DamageReport>,
    /// How often something was not as it must be.
    pub violations: usize,
    /// The first of these.
    pub found: Vec<String>,
}

impl CrashReport {
    fn violated(&mut self, what: String) {
        self.violations += 1;
        if self.found.len() < MOST_TEXTS {
            self.found.push(what);
        }
    }
}

/// Kills servers with their log in a folder of `place`, which begins with `base`, and damages the log afterwards. `progress` is called
/// with what has been done: kills first, then damages.
pub fn attack(
    launch: Launch<'_>,
    place: &Path,
    base: &EventStream,
    options: CrashOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<CrashReport> {
    let state = place.join("attacked");
    drop(EventLog::create(&state, base)?);
    let mut attack = Attack {
        launch,
        copy: place.join("copy"),
        n_base: base.len() as u64,
        newest: base.times().last().copied().unwrap_or(0.0),
        sent: Sent::new(options.writers.max(1)),
        random: RandomStream::named(options.seed, "crash"),
        report: CrashReport::default(),
        round: 0,
        state,
    };
    while attack.report.kills < options.kills {
        let server = attack.next_server()?;
        attack.write_until_killed(server);
        progress(Progress::Kill);
    }
    let server = attack.next_server()?;
    let last_record = attack.write_last(&server)?;
    // A model with a node memory has it from then on, and writes it when it stops.
    damage::score(&server)?;
    server.stop()?;
    let verified = attack.verified()?;
    for lost in attack.sent.lost(&verified.places) {
        attack.report.violated(format!("request {lost} was acknowledged and is not in the log at the end"));
    }
    attack.report.events = verified.sequence - attack.n_base;
    if has_panicked(&stderr_of(&attack.state)) {
        attack.report.violated("the server panicked".to_owned());
    }
    let Attack { mut report, mut random, .. } = attack;
    let mut violated = Vec::new();
    let damager = damage::Damager::new(launch, &attack.state, place.join("damaged"), last_record)?;
    report.damage = damager.run(options.flips, &mut random, &mut violated, &mut || progress(Progress::Damage))?;
    for what in violated {
        report.violated(what);
    }
    Ok(report)
}

/// What has been done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// A server was killed.
    Kill,
    /// A log was damaged.
    Damage,
}

struct Attack<'a> {
    launch: Launch<'a>,
    state: PathBuf,
    /// Where a copy of the log is opened: the server itself has to recover the one it left.
    copy: PathBuf,
    n_base: u64,
    /// The time of the newest event.
    newest: f64,
    sent: Sent,
    random: RandomStream,
    report: CrashReport,
    round: usize,
}

impl Attack<'_> {
    /// Checks the log, starts a server on it, and sends again what was not acknowledged. Kills some servers before they have started.
    fn next_server(&mut self) -> Result<ServerProcess> {
        while self.round > 0 && self.random.chance(WHILE_STARTING) {
            let starting = Starting::spawn(self.launch, &self.state)?;
            self.pause();
            drop(starting);
            self.report.kills += 1;
            self.report.kills_while_starting += 1;
        }
        if self.round > 0 && self.random.chance(TORN) {
            self.tear()?;
        }
        let verified = self.verified()?;
        let server = ServerProcess::start(self.launch, &self.state)?;
        self.compare_sequence(&server, verified.sequence)?;
        self.repeat(&server, &verified)?;
        self.round += 1;
        Ok(server)
    }

    fn pause(&mut self) {
        std::thread::sleep(Duration::from_millis(self.random.index(LONGEST_MILLISECONDS) as u64));
    }

    /// Ends the log with part of a record, as a write that a power failure ended.
    fn tear(&mut self) -> Result<()> {
        let path = self.state.join(check::EVENTS);
        let io = |source| Error::io("write", path.display(), source);
        let bytes = fs::read(&path).map_err(io)?;
        let from = check::FIRST_RECORD.min(bytes.len());
        let first_record = check::record_length(&bytes[from..]).unwrap_or(0);
        let torn = match self.random.index(3) {
            0 if first_record > 1 => bytes[from..from + 1 + self.random.index(first_record - 1)].to_vec(),
            1 => vec![0; 1 + self.random.index(5000)],
            _ => (0..=self.random.index(300)).map(|_| self.random.next_u32().to_le_bytes()[0]).collect(),
        };
        OpenOptions::new().append(true).open(&path).and_then(|mut file| file.write_all(&torn)).map_err(io)
    }

    /// Opens a copy of the log and compares it with what was sent.
    fn verified(&mut self) -> Result<Verified> {
        copy_folder(&self.state, &self.copy)?;
        let verified = verify(&self.copy, self.n_base, &self.sent)?;
        self.report.unfinished += usize::from(verified.n_cut > 0);
        verified.violations.iter().for_each(|what| self.report.violated(what.clone()));
        // The log is also read as a dataset, by another code.
        let read = log::read(&self.copy)?;
        if read.len() as u64 != verified.sequence {
            self.report.violated(format!(
                "the log is read as {} events and opened as {}",
                read.len(),
                verified.sequence
            ));
        }
        Ok(verified)
    }

    fn compare_sequence(&mut self, server: &ServerProcess, expected: u64) -> Result<()> {
        let status = server.document("/v1/status")?;
        if status["events"].as_u64() != Some(expected) {
            self.report.violated(format!("the server has {} events, the log {expected}", status["events"]));
        }
        Ok(())
    }

    /// Sends again what was not acknowledged: what is in the log is answered as it would have been then.
    fn repeat(&mut self, server: &ServerProcess, verified: &Verified) -> Result<()> {
        let mut client = server.client()?;
        let mut sequence = verified.sequence;
        for request in self.sent.unacknowledged() {
            let answer = client.ask(&request.bytes()).map_err(|source| Error::io("ask", "the server", source))?;
            let Some(place) = sent::place(&answer) else {
                let excerpt = answer.excerpt();
                self.report.violated(format!("request {} was sent again and answered with {excerpt}", request.key));
                continue;
            };
            self.report.repeated += 1;
            self.report.in_flight += 1;
            match verified.places.get(&request.key) {
                Some(kept) if *kept != place => {
                    let what = format!("request {} is in the log as {kept:?} and answered as {place:?}", request.key);
                    self.report.violated(what);
                }
                Some(_) => self.report.in_flight_kept += 1,
                None => sequence = sequence.max(place.1),
            }
            request.acknowledged = Some(place);
        }
        self.compare_sequence(server, sequence)
    }

    /// Sends events over several connections and kills the server meanwhile.
    fn write_until_killed(&mut self, server: ServerProcess) {
        self.newest += 1.0;
        let (address, time, round) = (server.address(), self.newest, self.round);
        let random = self.random.fork(round as u64);
        let delay = Duration::from_millis(self.random.index(LONGEST_MILLISECONDS) as u64);
        let written: Vec<writer::Written> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.sent.n_writers())
                .map(|number| {
                    let past = self.sent.of_writer(number);
                    let writer = writer::Writer::new(address, round, number, time, past, random.fork(number as u64));
                    scope.spawn(move || writer.run())
                })
                .collect();
            std::thread::sleep(delay);
            // SIGKILL.
            drop(server);
            threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
        });
        self.report.kills += 1;
        for (number, written) in written.into_iter().enumerate() {
            self.report.requests += written.requests.len();
            self.report.acknowledged +=
                written.requests.iter().filter(|request| request.acknowledged.is_some()).count();
            self.report.repeated += written.n_repeated;
            written.violations.into_iter().for_each(|what| self.report.violated(what));
            self.sent.add(number, written.requests);
        }
    }

    /// Sends a small last request; returns where its record begins.
    fn write_last(&mut self, server: &ServerProcess) -> Result<u64> {
        let path = self.state.join(check::EVENTS);
        let length = fs::metadata(&path).map_err(|source| Error::io("read", path.display(), source))?.len();
        let mut request = sent::SentRequest::last(self.newest + 1.0);
        let mut client = server.client()?;
        let answer = client.ask(&request.bytes()).map_err(|source| Error::io("ask", "the server", source))?;
        request.acknowledged = sent::place(&answer);
        if request.acknowledged.is_none() {
            let excerpt = answer.excerpt();
            self.report.violated(format!("the last request was answered with {excerpt}"));
        }
        self.report.requests += 1;
        self.report.acknowledged += usize::from(request.acknowledged.is_some());
        self.sent.add(0, vec![request]);
        Ok(length)
    }
}

/// Makes `to` a folder with the same files as `from`; folders within it are left out.
fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    let copy = || -> std::io::Result<()> {
        if to.exists() {
            fs::remove_dir_all(to)?;
        }
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                fs::copy(entry.path(), to.join(entry.file_name()))?;
            }
        }
        Ok(())
    };
    copy().map_err(|source| Error::io("copy", from.display(), source))
}
