//! `GET /v1/live`: what happens, as server-sent events.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::response::sse::{Event, Sse};
use futures_util::stream::{self, Stream};
use serde::Serialize;
use tokio::sync::watch;
use utoipa::ToSchema;

use super::{App, Shared};
use crate::monitor::{PathLatency, ScoreHistogram};
use crate::wire::{Id, date};

/// However many events come in, messages are this far apart.
const FASTEST: Duration = Duration::from_millis(250);
/// If none come in, a message waits this much longer.
const WAIT: Duration = Duration::from_millis(750);
/// The time over which events are counted.
const RATE_WINDOW: Duration = Duration::from_secs(1);
/// Events that a message lists.
const NEWEST: usize = 20;

/// A message.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LiveMessage {
    /// The number of events that answers look back on.
    events: u64,
    /// Earlier events are refused.
    watermark: Option<f64>,
    /// The same as a date, where the data has dates.
    watermark_date: Option<String>,
    /// Nodes with events.
    nodes: usize,
    /// Events that wait until none can come before them.
    held: u64,
    /// Whether events are refused because the log cannot be written.
    read_only: bool,
    /// The model that answers.
    model: String,
    /// Seconds since the start.
    uptime: f64,
    /// Events taken in a second, over the last second.
    events_per_second: f64,
    /// The newest events, newest first.
    newest: Vec<NewestRow>,
    /// How long requests took in the last minute.
    latency: Vec<PathLatency>,
    /// All scores that were answered.
    scores: ScoreHistogram,
}

/// One of the newest events.
#[derive(Debug, Serialize, ToSchema)]
struct NewestRow {
    /// Its number in the order of time, from 0.
    event: usize,
    src: Id,
    dst: Id,
    time: f64,
    date: Option<String>,
}

/// What one client has been sent.
struct Feed {
    app: Arc<App>,
    changes: watch::Receiver<u64>,
    /// Numbers of events at the times of the last messages.
    counts: VecDeque<(Instant, u64)>,
}

/// What happens, about once a second, sooner when events come in.
#[utoipa::path(get, path = "/v1/live", responses((status = 200, body = LiveMessage, content_type = "text/event-stream")))]
pub(super) async fn live(State(app): Shared) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let feed = Feed { changes: app.engine.changes(), app, counts: VecDeque::new() };
    Sse::new(stream::unfold(feed, |mut feed| async move {
        if !feed.counts.is_empty() {
            tokio::time::sleep(FASTEST).await;
            // A change in the meantime is seen at once; the sender lives as long as the server.
            let _ = tokio::time::timeout(WAIT, feed.changes.changed()).await;
        }
        // A server that ends waits for its answers, and this one has no end of its own.
        if feed.app.engine.state().is_stopping() {
            return None;
        }
        let event = Event::default().json_data(feed.message()).unwrap_or_default();
        Some((Ok(event), feed))
    }))
}

impl Feed {
    fn message(&mut self) -> LiveMessage {
        self.changes.borrow_and_update();
        let app = &self.app;
        let (snapshot, state) = (app.engine.events(), app.engine.state());
        let (stream, watermark) = (snapshot.stream(), state.watermark());
        let n_events = stream.len() as u64;
        self.counts.push_back((Instant::now(), n_events));
        while self.counts.len() > 2 && self.counts[1].0.elapsed() >= RATE_WINDOW {
            self.counts.pop_front();
        }
        let (since, before) = self.counts[0];
        let elapsed = since.elapsed().as_secs_f64();
        let newest = (0..stream.len()).rev().take(NEWEST).map(|event| {
            let (src, dst, time) = (stream.src()[event], stream.dst()[event], stream.times()[event]);
            NewestRow { event, src: Id::of(stream, src), dst: Id::of(stream, dst), time, date: date(stream, time) }
        });
        LiveMessage {
            events: n_events,
            watermark,
            watermark_date: watermark.and_then(|time| date(stream, time)),
            nodes: stream.n_nodes(),
            held: state.held(),
            read_only: state.is_read_only(),
            model: app.engine.model().name.clone(),
            uptime: app.started.elapsed().as_secs_f64(),
            events_per_second: if elapsed > 0.0 { n_events.saturating_sub(before) as f64 / elapsed } else { 0.0 },
            newest: newest.collect(),
            latency: app.engine.monitor().latencies(),
            scores: app.engine.monitor().scores(),
        }
    }
}
