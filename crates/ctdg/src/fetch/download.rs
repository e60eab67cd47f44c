//! Resumable download of one file, with retries.

use std::fs::File;
use std::io::{Read, Write};
use std::thread;
use std::time::Duration;

use super::http::{Client, Reply};
use super::partial::{PartialFile, PartialInfo, ResumePoint};
use super::source::Mirror;
use super::{Options, Progress, Report};
use crate::error::{Error, Problem, Result};

/// Most connections of one download, even if each of them makes progress.
const MAX_ATTEMPTS: u32 = 200;
/// Longest wait before a retry, whatever the server asks for.
const MAX_PAUSE: Duration = Duration::from_mins(1);

/// One file and where its bytes go.
pub(super) struct Download<'a> {
    pub(super) client: &'a Client,
    pub(super) mirror: &'a Mirror,
    pub(super) part: &'a PartialFile,
    /// Whether a checksum will be verified at the end.
    pub(super) will_check: bool,
}

/// A failed attempt.
struct Failure {
    error: Error,
    /// The wait that the server asks for.
    pause: Option<Duration>,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { error, pause: None }
    }
}

impl Download<'_> {
    /// Downloads the whole file. After a failure the partial file stays, so that the next call can resume.
    pub(super) fn run(&self, options: &Options, report: Report<'_>) -> Result<()> {
        let mut furthest = self.part.len()?;
        let mut n_without_progress = 0;
        let mut attempt = 0;
        loop {
            attempt += 1;
            report(Progress::Connecting { url: &self.mirror.url, attempt });
            let Err(Failure { error, pause }) = self.attempt(report) else { return self.part.finish() };
            let reached = self.part.len()?;
            n_without_progress = if reached > furthest { 0 } else { n_without_progress + 1 };
            furthest = furthest.max(reached);
            if !is_transient(&error) || n_without_progress >= options.attempts || attempt >= MAX_ATTEMPTS {
                return Err(error);
            }
            report(Progress::Warning(&format!("trying again: {}", error.finding())));
            let pause = pause.unwrap_or(options.pause.saturating_mul(1 << n_without_progress.min(6)));
            thread::sleep(pause.min(MAX_PAUSE));
        }
    }

    fn attempt(&self, report: Report<'_>) -> Result<(), Failure> {
        match self.part.begin(&self.mirror.url, self.will_check)? {
            ResumePoint::Complete => return Ok(()),
            ResumePoint::Resume(range, info) => {
                let reply = self.client.get(&self.mirror.url, Some(&range))?;
                match reply.status {
                    206 if continues(&reply, range.from, &info) => {
                        return self.resume(reply, range.from, &info, report);
                    }
                    // Range past the end: the file is complete, or it is another file.
                    416 if ends_at(&reply, range.from) && info.agrees_with(&reply) => return Ok(()),
                    206 | 416 => {}
                    // The file changed, or the server does not support ranges: this is the whole file.
                    _ => return self.whole(reply, report),
                }
            }
            ResumePoint::FromStart => {}
        }
        self.part.discard()?;
        let reply = self.client.get(&self.mirror.url, None)?;
        self.whole(reply, report)
    }

    fn whole(&self, reply: Reply, report: Report<'_>) -> Result<(), Failure> {
        if reply.status != 200 {
            let problem = Problem::Http { url: self.mirror.url.clone(), status: reply.status };
            return Err(Failure { error: problem.into(), pause: reply.retry_after });
        }
        self.bound(reply.length.unwrap_or(0))?;
        let file = self.part.start(&self.mirror.url, &reply)?;
        let total = reply.length;
        Ok(self.receive(reply, file, 0, total, report)?)
    }

    fn resume(&self, reply: Reply, from: u64, info: &PartialInfo, report: Report<'_>) -> Result<(), Failure> {
        let total = reply.content_range.and_then(|range| range.total).or(info.total);
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
        Err(Problem::CutOff { url: self.mirror.url.clone(), found: done, expected, cause }.into())
    }

    /// Fails and discards the download if `length` exceeds the size limit.
    fn bound(&self, length: u64) -> Result<()> {
        if length <= self.mirror.max_bytes {
            return Ok(());
        }
        self.part.discard()?;
        Err(Problem::TooLarge { what: self.mirror.url.clone(), limit: self.mirror.max_bytes }.into())
    }
}

/// Whether a partial response continues at `from` with the same version of the file.
fn continues(reply: &Reply, from: u64, info: &PartialInfo) -> bool {
    let first = reply.content_range.and_then(|range| range.bytes).map(|(first, _)| first);
    first == Some(from) && info.agrees_with(reply)
}

/// Whether the response states that the file is `length` bytes long.
fn ends_at(reply: &Reply, length: u64) -> bool {
    reply.content_range.and_then(|range| range.total) == Some(length)
}

/// Whether the same request may succeed later.
fn is_transient(error: &Error) -> bool {
    matches!(
        error.problem(),
        Problem::Unreachable { .. } | Problem::CutOff { .. } | Problem::Http { status: 408 | 425 | 429 | 500.., .. }
    )
}
