//! Takes events in: one thread writes the log, extends the store and shows both to readers. Requests that wait share one write.

mod held;
mod refused;
mod seen;

use std::path::PathBuf;
use std::sync::Arc;

use ctdg::dataset::log::{EventLog, LogEvent, LogRequest, Receipt, RequestKey, fingerprint};
use ctdg::live::{LiveStore, NewEvent, Rebuilt};
use rustc_hash::FxHashMap;
use tokio::sync::{mpsc, oneshot};

use crate::ServeOptions;
use crate::engine::Engine;
use crate::memory_file;
use held::Held;
pub(crate) use refused::Refused;
pub(crate) use seen::Seen;

/// Requests that share one write at most.
const GROUP: usize = 1024;
/// Events that share one write, unless one request has more.
const GROUP_EVENTS: usize = 1 << 16;

/// Events that the intake may add to a new index itself.
const FEW_EVENTS: usize = 1024;

enum Message {
    Take(LogRequest, oneshot::Sender<Result<Receipt, Refused>>),
    Adopt(Box<Rebuilt>),
    RebuildFailed,
}

/// Sends events to the thread that takes them in.
#[derive(Debug, Clone)]
pub(crate) struct Intake {
    sender: mpsc::Sender<Message>,
}

impl Intake {
    /// Starts the thread. It ends when the last clone of the handle is dropped, after what waits.
    pub(crate) fn start(writer: Writer) -> std::io::Result<(Self, std::thread::JoinHandle<()>)> {
        writer.note();
        let (sender, receiver) = mpsc::channel(writer.waiting.max(1));
        let weak = sender.downgrade();
        let thread = std::thread::Builder::new().name("intake".into()).spawn(move || writer.run(receiver, &weak))?;
        Ok((Self { sender }, thread))
    }

    /// Takes in a request; the answer comes when it is on disk.
    pub(crate) async fn take(&self, request: LogRequest) -> Result<Receipt, Refused> {
        let (reply, answer) = oneshot::channel();
        self.sender.try_send(Message::Take(request, reply)).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Refused::Busy,
            mpsc::error::TrySendError::Closed(_) => Refused::Stopping,
        })?;
        answer.await.unwrap_or(Err(Refused::Stopping))
    }

    /// Requests that wait.
    pub(crate) fn n_waiting(&self) -> usize {
        self.sender.max_capacity() - self.sender.capacity()
    }
}

/// What the thread owns.
#[derive(Debug)]
pub(crate) struct Writer {
    log: EventLog,
    store: LiveStore,
    engine: Arc<Engine>,
    seen: Seen,
    held: Held,
    rebuild_after: usize,
    is_rebuilding: bool,
    waiting: usize,
    folder: PathBuf,
}

impl Writer {
    /// Over an open log whose requests are `seen`.
    pub(crate) fn new(
        log: EventLog,
        store: LiveStore,
        engine: Arc<Engine>,
        seen: Seen,
        options: &ServeOptions,
    ) -> Self {
        Self {
            held: Held::new(options.lateness, store.newest_time()),
            rebuild_after: options.rebuild_after.max(1),
            waiting: options.limits.waiting_events,
            is_rebuilding: false,
            folder: options.log.clone(),
            log,
            store,
            engine,
            seen,
        }
    }

    /// Holds an event of the log back that may not be the next one yet.
    pub(crate) fn hold(&mut self, event: LogEvent) {
        self.held.push(event);
    }

    fn run(mut self, mut receiver: mpsc::Receiver<Message>, sender: &mpsc::WeakSender<Message>) {
        while let Some(first) = receiver.blocking_recv() {
            let mut group = Vec::new();
            let mut n_events = 0;
            let mut next = Some(first);
            while let Some(message) = next {
                match message {
                    Message::Take(request, reply) => {
                        n_events += request.events.len();
                        group.push((request, reply));
                    }
                    Message::Adopt(rebuilt) => {
                        self.store.adopt(*rebuilt);
                        self.is_rebuilding = false;
                        metrics::counter!("hopedgn_rebuilds_total").increment(1);
                        self.engine.publish(self.store.snapshot());
                    }
                    Message::RebuildFailed => self.is_rebuilding = false,
                }
                let is_full = group.len() >= GROUP || n_events >= GROUP_EVENTS;
                next = if is_full { None } else { receiver.try_recv().ok() };
            }
            if !group.is_empty() {
                self.take(group);
                self.rebuild_if_due(sender);
            }
            self.note();
        }
    }

    fn note(&self) {
        let in_store = self.store.newest_time().unwrap_or(f64::NEG_INFINITY);
        let watermark = (self.held.newest() - self.held.lateness()).max(in_store);
        self.engine.state().note(self.held.len(), watermark, self.log.n_bytes(), self.store.n_since_rebuild());
    }

    /// Writes a group of requests, and answers each.
    fn take(&mut self, group: Vec<(LogRequest, oneshot::Sender<Result<Receipt, Refused>>)>) {
        // What the group itself adds, as if it were written.
        let mut newest = self.held.newest();
        let mut sequence = self.log.sequence();
        let mut accepted: Vec<LogRequest> = Vec::new();
        let mut answers = Vec::with_capacity(group.len());
        let mut keys = Seen::new(usize::MAX);
        for (request, reply) in group {
            let judged = self.judge(request, &keys, newest, sequence);
            if let Ok(Judged { new: Some(new), .. }) = &judged {
                newest = new.events.iter().map(|event| event.time).fold(newest, f64::max);
                keys.remember(sequence + 1, new);
                sequence += new.events.len() as u64;
            }
            let answer = judged.map(|Judged { taken, new }| {
                accepted.extend(new);
                taken
            });
            answers.push((answer, reply));
        }
        let written = if accepted.is_empty() { Ok(0) } else { self.log.append(&accepted) };
        let n_new: usize = accepted.iter().map(|request| request.events.len()).sum();
        match &written {
            Ok(first) => {
                let mut sequence = *first;
                for request in accepted {
                    self.seen.remember(sequence, &request);
                    sequence += request.events.len() as u64;
                    request.events.into_iter().for_each(|event| self.held.push(event));
                }
                self.show();
                self.engine.state().set_read_only(false);
                metrics::counter!("hopedgn_events_total").increment(n_new as u64);
            }
            Err(error) => {
                tracing::error!(%error, "the log cannot be written: read-only until it can");
                self.engine.state().set_read_only(true);
            }
        }
        // Before the answers: who has one and asks for the status finds what it says.
        self.note();
        for (answer, reply) in answers {
            let answer = match (&written, answer) {
                // What was on disk before needs no write, unlike a repetition of what this group was to write.
                (Err(error), Ok(taken)) if taken.last > self.log.sequence() => {
                    Err(Refused::ReadOnly(error.to_string()))
                }
                (_, answer) => answer,
            };
            // A client that has gone does not wait for it.
            let _ = reply.send(answer);
        }
    }

    /// Moves events that none can come before into the store, and shows them.
    fn show(&mut self) {
        let ready = self.held.ready();
        if ready.is_empty() {
            return;
        }
        let events: Vec<NewEvent<'_>> = ready.iter().map(as_new).collect();
        if let Err(error) = self.store.append(&events) {
            // Checked before they were written.
            tracing::error!(%error, "events of the log do not fit the store");
            return;
        }
        self.engine.publish(self.store.snapshot());
    }

    /// Whether a request can be taken in, and what is new in it.
    fn judge(&self, request: LogRequest, group: &Seen, newest: f64, sequence: u64) -> Result<Judged, Refused> {
        let of_all = request.key.as_ref().map(|_| fingerprint(&request.events));
        if let Some(RequestKey { name, .. }) = &request.key
            && let Some(seen) = self.seen.request(name).or_else(|| group.request(name))
        {
            if of_all != Some(seen.fingerprint) {
                return Err(Refused::KeyReused);
            }
            return Ok(Judged { taken: seen.receipt, new: None });
        }
        let n_sent = request.events.len() as u64;
        let (mut first, mut last, mut next) = (u64::MAX, 0, sequence);
        let mut new = Vec::with_capacity(request.events.len());
        let mut own: FxHashMap<String, u64> = FxHashMap::default();
        // What is in the store has been seen.
        let in_store = self.store.newest_time().unwrap_or(f64::NEG_INFINITY);
        let (mut newest, mut watermark) = (newest, (newest - self.held.lateness()).max(in_store));
        for (row, event) in (0..).zip(request.events) {
            let known = event
                .id
                .as_ref()
                .and_then(|id| self.seen.event(id).or_else(|| group.event(id)).or_else(|| own.get(id).copied()));
            let number = if let Some(number) = known {
                number
            } else {
                self.check(&event, watermark, row)?;
                newest = newest.max(event.time);
                // Events of one request may be late among themselves, but only where late events are put in order.
                if self.held.lateness() == 0.0 {
                    watermark = event.time;
                }
                next += 1;
                own.extend(event.id.clone().map(|id| (id, next)));
                new.push(event);
                next
            };
            first = first.min(number);
            last = last.max(number);
        }
        let accepted = new.len() as u64;
        let watermark = watermark.max(newest - self.held.lateness());
        let taken = Receipt { accepted, duplicates: n_sent - accepted, first, last, watermark };
        let key = request.key.zip(of_all).map(|(key, fingerprint)| RequestKey { fingerprint, receipt: taken, ..key });
        let new = (!new.is_empty()).then_some(LogRequest { key, events: new });
        Ok(Judged { taken, new })
    }

    fn check(&self, event: &LogEvent, watermark: f64, row: u64) -> Result<(), Refused> {
        if event.time < watermark {
            return Err(Refused::Late { row, time: event.time, watermark });
        }
        self.store.check_alone(&as_new(event)).map_err(|error| Refused::Invalid { row, error })
    }

    /// Builds a new index in the background when the lists of later events are long.
    fn rebuild_if_due(&mut self, sender: &mpsc::WeakSender<Message>) {
        let due = self.rebuild_after.max(self.store.len() / 4);
        if self.is_rebuilding || self.store.n_since_rebuild() < due {
            return;
        }
        let (snapshot, sender) = (self.engine.events(), sender.clone());
        let (engine, folder) = (Arc::clone(&self.engine), self.folder.clone());
        let rebuild = move || {
            if let Err(error) = memory_file::save(&engine, &folder) {
                tracing::warn!(%error, "the node memory could not be written");
            }
            let message = match snapshot.rebuild() {
                Ok(mut rebuilt) => {
                    // What came meanwhile is added here, so that the intake waits only for the last few.
                    while rebuilt.catch_up(&engine.events()) > FEW_EVENTS {}
                    Message::Adopt(Box::new(rebuilt))
                }
                Err(error) => {
                    tracing::error!(%error, "the index could not be built again");
                    Message::RebuildFailed
                }
            };
            // A server that has stopped needs none.
            if let Some(sender) = sender.upgrade() {
                let _ = sender.blocking_send(message);
            }
        };
        match std::thread::Builder::new().name("rebuild".into()).spawn(rebuild) {
            Ok(_) => self.is_rebuilding = true,
            Err(error) => tracing::warn!(%error, "no thread for building the index again"),
        }
    }
}

/// What becomes of a request.
struct Judged {
    taken: Receipt,
    /// Its events that have not been taken in before.
    new: Option<LogRequest>,
}

/// An event of the log as the store takes it.
fn as_new(event: &LogEvent) -> NewEvent<'_> {
    let LogEvent { src, dst, time, label, features, .. } = event;
    NewEvent { src, dst, time: *time, label: *label, features }
}
