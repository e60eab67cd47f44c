//! A connection that sends events until the server is gone.

use std::net::SocketAddr;

use ctdg::dataset::log::LogEvent;
use ctdg::random::RandomStream;

use super::sent::{SentRequest, place};
use crate::bench::client::Client;

/// Events of a request at most.
const MOST_EVENTS: usize = 50;
/// Requests of a round at most.
const MOST_REQUESTS: usize = 500;
/// Share of events with an id.
const WITH_ID: f64 = 0.3;
/// Share of events that were sent before: the server leaves them out.
const SENT_BEFORE: f64 = 0.05;
/// Share of requests that are sent again at once.
const REPEATED: f64 = 0.05;

pub(super) struct Writer<'a> {
    address: SocketAddr,
    prefix: String,
    time: f64,
    /// Its requests of earlier rounds.
    past: &'a [SentRequest],
    random: RandomStream,
}

/// What a connection sent in a round.
#[derive(Default)]
pub(super) struct Written {
    pub(super) requests: Vec<SentRequest>,
    pub(super) n_repeated: usize,
    pub(super) violations: Vec<String>,
}

impl<'a> Writer<'a> {
    /// Number `number`, whose events are at `time`.
    pub(super) fn new(
        address: SocketAddr,
        round: usize,
        number: usize,
        time: f64,
        past: &'a [SentRequest],
        random: RandomStream,
    ) -> Self {
        Self { address, prefix: format!("{round}.{number}"), time, past, random }
    }

    /// Sends requests one after the other until there is no answer.
    pub(super) fn run(mut self) -> Written {
        let mut written = Written::default();
        let Ok(mut client) = Client::connect(self.address) else { return written };
        while written.requests.len() < MOST_REQUESTS {
            let request = self.request(written.requests.len(), &written.requests);
            let bytes = request.bytes();
            let key = request.key.clone();
            // Noted before it is sent: the server may have it without an answer.
            written.requests.push(request);
            let times = 1 + usize::from(self.random.chance(REPEATED));
            for time in 0..times {
                let Ok(answer) = client.ask(&bytes) else { return written };
                let Some(taken) = place(&answer) else {
                    written.violations.push(format!("request {key} was answered with {}", answer.excerpt()));
                    return written;
                };
                let Some(request) = written.requests.last_mut() else { return written };
                if let Some(before) = request.acknowledged.filter(|before| *before != taken) {
                    written
                        .violations
                        .push(format!("request {key} was answered with {before:?}, and again with {taken:?}"));
                }
                request.acknowledged = Some(taken);
                written.n_repeated += time;
            }
        }
        written
    }

    fn request(&mut self, number: usize, sent: &[SentRequest]) -> SentRequest {
        let key = format!("{}.{number}", self.prefix);
        let n_events = 1 + self.random.index(MOST_EVENTS);
        let mut events = Vec::with_capacity(n_events);
        for row in 0..n_events {
            // The first one is always new: a request without new events leaves nothing in the log.
            let before = (row > 0 && self.random.chance(SENT_BEFORE)).then(|| self.event_before(sent)).flatten();
            events.push(before.unwrap_or_else(|| self.new_event(&key, row)));
        }
        SentRequest { key, events, acknowledged: None }
    }

    /// An event with an id that was sent and acknowledged.
    fn event_before(&mut self, sent: &[SentRequest]) -> Option<LogEvent> {
        let n = self.past.len() + sent.len();
        let at = if n == 0 { return None } else { self.random.index(n) };
        let request = self.past.get(at).or_else(|| sent.get(at - self.past.len()))?;
        request.acknowledged?;
        request.events.iter().find(|event| event.id.is_some()).cloned()
    }

    fn new_event(&mut self, key: &str, row: usize) -> LogEvent {
        let [src, dst] = [self.name(), self.name()];
        #[expect(clippy::cast_precision_loss, reason = "small, and a multiple of a quarter: exact as text")]
        let label = self.random.index(1000) as f32 / 4.0;
        let id = self.random.chance(WITH_ID).then(|| format!("{key}.{row}"));
        LogEvent { label, id, ..LogEvent::new(src, dst, self.time) }
    }

    /// Mostly numbers, as the data has; also text that needs care.
    fn name(&mut self) -> String {
        let number = self.random.index(2000);
        match self.random.index(50) {
            0 => format!("n\u{e9}w \"{number}\"\n\\"),
            1 => format!("{number}, 'x'\t\u{1f600}"),
            _ => number.to_string(),
        }
    }
}
