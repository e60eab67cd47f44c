//! A start with many events.

use std::path::Path;
use std::time::Instant;

use ctdg::dataset::log::{EventLog, LogEvent, LogRequest};
use ctdg::event::EventStream;
use ctdg::random::RandomStream;
use serde::Serialize;

use super::process::{Launch, ServerProcess};
use crate::Result;

/// Events of a request of the log.
const BATCH: usize = 1_000;
/// Requests that share a write, as they do in a busy server.
const GROUP: usize = 64;
/// Events for each node.
const EVENTS_PER_NODE: u64 = 100;

/// A start with many events.
#[derive(Debug, Serialize)]
pub struct RestartFigures {
    /// Events of the log, beyond those of the data.
    pub events: u64,
    /// Nodes of the server.
    pub nodes: u64,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// Seconds that writing the log took.
    pub write_seconds: f64,
    /// Seconds from the start of the process until it answered.
    pub ready_seconds: f64,
    /// Resident memory of the server in bytes, where the system reports it.
    pub resident: Option<u64>,
    /// The same of a server with the events of the data alone.
    pub resident_without: Option<u64>,
    /// Bytes of memory for each event of the log.
    pub bytes_per_event: Option<f64>,
}

/// Writes a log of `base` and `n_events` random events, and starts a server on it. `written` is called with the number of events so far.
pub fn restart(
    launch: Launch<'_>,
    state: &Path,
    base: &EventStream,
    n_events: u64,
    written: &mut dyn FnMut(u64),
) -> Result<RestartFigures> {
    drop(EventLog::create(state, base)?);
    let without = ServerProcess::start(launch, state)?;
    let resident_without = without.resident();
    without.stop()?;

    let start = Instant::now();
    let (mut log, _) = EventLog::open(state, &mut |_, _| Ok(()))?;
    let mut events = SyntheticEvents::new(base, n_events);
    let mut left = n_events;
    while left > 0 {
        let mut group = Vec::with_capacity(GROUP);
        while left > 0 && group.len() < GROUP {
            let n = left.min(BATCH as u64);
            group.push(LogRequest::new((0..n).map(|_| events.next_event()).collect()));
            left -= n;
        }
        log.append(&group)?;
        written(n_events - left);
    }
    let log_bytes = log.n_bytes();
    drop(log);
    let write_seconds = start.elapsed().as_secs_f64();

    let server = ServerProcess::start(launch, state)?;
    let (resident, nodes) = (server.resident(), server.document("/v1/status")?["nodes"].as_u64().unwrap_or(0));
    let bytes_per_event = resident.zip(resident_without).filter(|_| n_events > 0);
    Ok(RestartFigures {
        events: n_events,
        nodes,
        log_bytes,
        write_seconds,
        ready_seconds: server.ready_after().as_secs_f64(),
        resident,
        resident_without,
        bytes_per_event: bytes_per_event.map(|(with, without)| with.saturating_sub(without) as f64 / n_events as f64),
    })
}

/// Events among nodes of which a few have many events.
struct SyntheticEvents {
    random: RandomStream,
    n_nodes: u64,
    time: f64,
}

impl SyntheticEvents {
    /// After the events of `base`, a second apart.
    fn new(base: &EventStream, n_events: u64) -> Self {
        let time = base.times().last().copied().unwrap_or(0.0);
        Self { random: RandomStream::named(0, "restart"), n_nodes: (n_events / EVENTS_PER_NODE).max(1_000), time }
    }

    fn next_event(&mut self) -> LogEvent {
        self.time += 1.0;
        let [src, dst] = [self.node(), self.node()];
        LogEvent::new(src.to_string(), dst.to_string(), self.time)
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the number of nodes")]
    fn node(&mut self) -> u64 {
        // The square of a uniform number: small numbers are drawn more often.
        (self.random.unit().powi(2) * self.n_nodes as f64) as u64
    }
}
