//! Damages a log in every way that a disk does, one at a time: it is opened with the same events, or refused by name.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use ctdg::random::RandomStream;
use hopedgn::ResidentMemory;
use serde::Serialize;
use serde_json::Value;

use super::check::{EVENTS, digest};
use super::copy_folder;
use crate::bench::client::post;
use crate::bench::process::{Launch, ServerProcess, has_panicked, stderr_of};
use crate::{Error, Result};

/// The files of a log whose bits are flipped.
const FILES: [&str; 4] = [EVENTS, "base.ctdg", "acknowledged", MEMORY];
/// The node memory of a model that has one.
const MEMORY: &str = "memory.safetensors";
/// One of so many is also tried with a server.
const WITH_SERVER: usize = 20;

/// Damage of one kind.
#[derive(Debug, Serialize)]
pub struct DamageReport {
    /// The file.
    pub file: &'static str,
    /// `truncated` or `flipped`.
    pub kind: &'static str,
    /// How often.
    pub tries: usize,
    /// Opened with exactly the same events.
    pub unchanged: usize,
    /// Refused with an error that names the file.
    pub refused: usize,
    /// Tries that also started a server.
    pub servers: usize,
}

/// What becomes of a damaged log.
enum Outcome {
    Unchanged,
    Refused,
    Violation(String),
}

/// A log and copies of it that are damaged.
pub(super) struct Damager<'a> {
    launch: Launch<'a>,
    whole: &'a Path,
    copy: PathBuf,
    /// Where the last record begins.
    last_record: u64,
    /// Sequence number and digest of the whole log.
    expected: (u64, u64),
    /// What a server with the whole log answers.
    answer: Value,
}

impl<'a> Damager<'a> {
    pub(super) fn new(launch: Launch<'a>, whole: &'a Path, copy: PathBuf, last_record: u64) -> Result<Self> {
        copy_folder(whole, &copy)?;
        let expected = digest(&copy)?;
        copy_folder(whole, &copy)?;
        let answer = score(&ServerProcess::start(launch, &copy)?)?;
        Ok(Self { launch, whole, copy, last_record, expected, answer })
    }

    /// Truncates the last record at every byte, and flips so many bits of each file.
    pub(super) fn run(
        &self,
        flips: usize,
        random: &mut RandomStream,
        violations: &mut Vec<String>,
        progress: &mut dyn FnMut(),
    ) -> Result<Vec<DamageReport>> {
        let mut reports = Vec::new();
        let n_bytes = self.read(EVENTS)?.len();
        let mut report = DamageReport::new(EVENTS, "truncated");
        for length in usize::try_from(self.last_record).unwrap_or(0)..n_bytes {
            self.try_one(&mut report, violations, &format!("to {length} of {n_bytes} bytes"), |bytes| {
                bytes.truncate(length);
            })?;
            progress();
        }
        reports.push(report);
        for file in FILES.into_iter().filter(|file| self.whole.join(file).is_file()) {
            let mut report = DamageReport::new(file, "flipped");
            let n_bits = 8 * self.read(file)?.len();
            for _ in 0..if n_bits == 0 { 0 } else { flips } {
                let bit = random.index(n_bits);
                self.try_one(&mut report, violations, &format!("at bit {bit} of {n_bits}"), |bytes| {
                    bytes[bit / 8] ^= 1 << (bit % 8);
                })?;
                progress();
            }
            reports.push(report);
        }
        Ok(reports)
    }

    fn read(&self, file: &str) -> Result<Vec<u8>> {
        let path = self.whole.join(file);
        fs::read(&path).map_err(|source| Error::io("read", path.display(), source))
    }

    fn try_one(
        &self,
        report: &mut DamageReport,
        violations: &mut Vec<String>,
        place: &str,
        damage: impl Fn(&mut Vec<u8>),
    ) -> Result<()> {
        let mut bytes = self.read(report.file)?;
        let whole = bytes.clone();
        damage(&mut bytes);
        let damaged = || -> Result<()> {
            copy_folder(self.whole, &self.copy)?;
            let path = self.copy.join(report.file);
            fs::write(&path, &bytes).map_err(|source| Error::io("write", path.display(), source))
        };
        damaged()?;
        let mut outcomes = vec![self.opened(report.file, &bytes, &whole)];
        if report.tries.is_multiple_of(WITH_SERVER) {
            damaged()?;
            report.servers += 1;
            outcomes.push(self.served(report.file));
        }
        report.tries += 1;
        let refused = outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Refused)).count();
        if refused == outcomes.len() {
            report.refused += 1;
        } else if outcomes.iter().all(|outcome| matches!(outcome, Outcome::Unchanged)) {
            report.unchanged += 1;
        } else if !outcomes.iter().any(|outcome| matches!(outcome, Outcome::Violation(_))) {
            violations.push(format!("{} {} {place}: the server and the library differ", report.file, report.kind));
        }
        for outcome in outcomes {
            if let Outcome::Violation(what) = outcome {
                violations.push(format!("{} {} {place}: {what}", report.file, report.kind));
            }
        }
        Ok(())
    }

    /// Opens the damaged copy with the library.
    fn opened(&self, file: &'static str, bytes: &[u8], whole: &[u8]) -> Outcome {
        if file == MEMORY {
            return memory(bytes, whole);
        }
        let read = catch_unwind(AssertUnwindSafe(|| ctdg::dataset::log::read(&self.copy)));
        let opened = catch_unwind(AssertUnwindSafe(|| digest(&self.copy)));
        match (read, opened) {
            (Err(_), _) | (_, Err(_)) => Outcome::Violation("a panic".to_owned()),
            (Ok(Ok(stream)), Ok(Ok(found))) if found == self.expected && stream.len() as u64 == found.0 => {
                Outcome::Unchanged
            }
            (Ok(Ok(stream)), Ok(Ok((sequence, _)))) => {
                Outcome::Violation(format!("read as {} events and opened as {sequence} other ones", stream.len()))
            }
            (Ok(Err(read)), Ok(Err(opened))) => refused(file, &[read.to_string(), opened.to_string()]),
            (Ok(Err(read)), Ok(Ok(_))) => Outcome::Violation(format!("opened, and not read: {read}")),
            (Ok(Ok(_)), Ok(Err(opened))) => Outcome::Violation(format!("read, and not opened: {opened}")),
        }
    }

    /// Starts a server on the damaged copy.
    fn served(&self, file: &'static str) -> Outcome {
        let stderr = stderr_of(&self.copy);
        let _ = fs::remove_file(&stderr);
        let outcome = match ServerProcess::start(self.launch, &self.copy) {
            Ok(server) => match score(&server) {
                Ok(answer) if answer == self.answer => Outcome::Unchanged,
                Ok(answer) => Outcome::Violation(format!("a server answers {answer} instead of {}", self.answer)),
                Err(error) => Outcome::Violation(format!("a server started, and does not answer: {error}")),
            },
            Err(error) => refused(file, &[error.to_string()]),
        };
        if has_panicked(&stderr) { Outcome::Violation("a server panicked".to_owned()) } else { outcome }
    }
}

impl DamageReport {
    fn new(file: &'static str, kind: &'static str) -> Self {
        Self { file, kind, tries: 0, unchanged: 0, refused: 0, servers: 0 }
    }
}

/// A refusal must say which file is damaged.
fn refused(file: &str, messages: &[String]) -> Outcome {
    match messages.iter().find(|message| !message.contains(file)) {
        Some(message) => Outcome::Violation(format!("refused without the name of the file: {message}")),
        None => Outcome::Refused,
    }
}

/// A damaged node memory is no loss: it is computed from the events.
fn memory(bytes: &[u8], whole: &[u8]) -> Outcome {
    match catch_unwind(|| ResidentMemory::from_bytes(bytes).and_then(|memory| memory.to_bytes())) {
        Err(_) => Outcome::Violation("a panic".to_owned()),
        Ok(Ok(read)) if read != whole => Outcome::Violation("read as another memory".to_owned()),
        Ok(_) => Outcome::Unchanged,
    }
}

/// What a server answers that looks back on all events.
pub(super) fn score(server: &ServerProcess) -> Result<Value> {
    let mut client = server.client()?;
    let body =
        r#"{"pairs": [{"src": "1", "dst": "2"}, {"src": "2", "dst": "1"}, {"src": "7", "dst": "no such node"}]}"#;
    let answer = client.ask(&post("/v1/score", None, body)).map_err(|source| Error::io("ask", "the server", source))?;
    Ok(answer.json())
}
