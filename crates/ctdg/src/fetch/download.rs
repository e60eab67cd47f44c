//! Downloading one file, over as many connections as it takes.

use std::fs::File;
use std::io::{Read, Write};
use std::thread;
use std::time::Duration;

use super::http::{Client, Reply};
use super::part::{Begin, Note, Part};
use super::source::Home;
use super::{Options, Progress, Report};
use crate::error::{Error, Problem, Result};

/// Bound on the connections of one download, even if each of them brings something.
const MOST_ATTEMPTS: u32 = 200;
/// A server that asks for more patience than this is not worth waiting for.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// One file to bring into one part.
pub(super) struct Download<'a> {
    pub(super) client: &'a Client,
    pub(super) home: &'a Home,
    pub(super) part: &'a Part,
    /// Whether a checksum will be compared at the end.
    pub(super) will_check: bool,
}

/// A failed attempt.
struct Failure {
    error: Error,
    /// What the server asks for.
    pause: Option<Duration>,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { error, pause: None }
    }
}

impl Download<'_> {
    /// Brings the whole file. After a failure the part stays, for the next call to go on from.
    pub(super) fn run(&self, options: &Options, report: Report<'_>) -> Result<()> {
        let mut furthest = self.part.len()?;
        let mut fruitless = 0;
        let mut attempt = 0;
        loop {
            attempt += 1;
            report(Progress::Connecting { url: &self.home.url, attempt });
            let Err(Failure { error, pause }) = self.attempt(report) else { return self.part.finish() };
            let reached = self.part.len()?;
            fruitless = if reached > furthest { 0 } else { fruitless + 1 };
            furthest = furthest.max(reached);
            if !is_passing(&error) || fruitless >= options.attempts || attempt >= MOST_ATTEMPTS {
                return Err(error);
            }
            report(Progress::Remark(&format!("trying again: {}", error.problem())));
            let pause = pause.unwrap_or(options.pause.saturating_mul(1 << fruitless.min(6)));
            thread::sleep(pause.min(LONGEST_PAUSE));
        }
    }

    fn attempt(&self, report: Report<'_>) -> Result<(), Failure> {
        match self.part.begin(&self.home.url, self.will_check)? {
            Begin::Complete => return Ok(()),
            Begin::Resume(range, note) => {
                let reply = self.client.get(&self.home.url, Some(&range))?;
                match reply.status {
                    206 if continues(&reply, range.from, &note) => return self.go_on(reply, range.from, &note, report),
                    // Past the end: the file is as long as what is here, or it is another file.
                    416 if ends_at(&reply, range.from) && note.agrees_with(&reply) => return Ok(()),
                    206 | 416 => {}
                    // The file changed, or the server knows no ranges: this is all of it.
                    _ => return self.whole(reply, report),
                }
            }
            Begin::Anew => {}
        }
        self.part.discard()?;
        let reply = self.client.get(&self.home.url, None)?;
        self.whole(reply, report)
    }

    fn whole(&self, reply: Reply, report: Report<'_>) -> Result<(), Failure> {
        if reply.status != 200 {
            let problem = Problem::Http { url: self.home.url.clone(), status: reply.status };
            return Err(Failure { error: problem.into(), pause: reply.retry_after });
        }
        self.bound(reply.length.unwrap_or(0))?;
        let file = self.part.start(&self.home.url, &reply)?;
        let total = reply.length;
        Ok(self.receive(reply, file, 0, total, report)?)
    }

    fn go_on(&self, reply: Reply, from: u64, note: &Note, report: Report<'_>) -> Result<(), Failure> {
        let total = reply.content_range.and_then(|range| range.total).or(note.total);
        self.bound(total.unwrap_or(0))?;
        let file = self.part.append()?;
        Ok(self.receive(reply, file, from, total, report)?)
    }

    fn receive(
        &self,
        mut reply: Reply,
        mut file: File,
        from: u64,
        total: Option<u64>,
        report: Report<'_>,
    ) -> Result<()> {
        let mut buffer = vec![0; 1 << 16];
        let mut done = from;
        let cause = loop {
            report(Progress::Downloading { done, total });
            match reply.body.read(&mut buffer) {
                Ok(0) if total.is_some_and(|total| done != total) => break "the server closed the connection".into(),
                Ok(0) => return Ok(()),
                Ok(n) => {
                    done += n as u64;
                    self.bound(done)?;
                    file.write_all(&buffer[..n]).map_err(|error| Error::io(self.part.path(), "write", error))?;
                }
                Err(error) => break error.to_string(),
            }
        };
        let expected = total.map_or("more".into(), |total| total.to_string());
        Err(Problem::CutOff { url: self.home.url.clone(), found: done, expected, cause }.into())
    }

    /// Fails if `length` bytes are more than the file may have; then nothing of it is kept.
    fn bound(&self, length: u64) -> Result<()> {
        if length <= self.home.at_most {
            return Ok(());
        }
        self.part.discard()?;
        Err(Problem::TooLarge { what: self.home.url.clone(), limit: self.home.at_most }.into())
    }
}

/// Whether a partial answer is the rest of what is here.
fn continues(reply: &Reply, from: u64, note: &Note) -> bool {
    let first = reply.content_range.and_then(|range| range.bytes).map(|(first, _)| first);
    first == Some(from) && note.agrees_with(reply)
}

/// Whether the answer to a range says that the file is `length` bytes long.
fn ends_at(reply: &Reply, length: u64) -> bool {
    reply.content_range.and_then(|range| range.total) == Some(length)
}

/// Whether the same request may succeed a little later.
fn is_passing(error: &Error) -> bool {
    matches!(
        error.problem(),
        Problem::Unreachable { .. } | Problem::CutOff { .. } | Problem::Http { status: 408 | 425 | 429 | 500.., .. }
    )
}
