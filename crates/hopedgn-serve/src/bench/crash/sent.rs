//! Requests that were sent, and how they were answered.

use std::collections::HashMap;

use ctdg::dataset::log::LogEvent;
use serde_json::{Value, json};

use crate::bench::client::{Answer, post};

/// Sequence numbers of the first and the last event of a request.
pub(super) type Span = (u64, u64);

/// A request with events.
#[derive(Debug, Clone)]
pub(super) struct SentRequest {
    pub(super) key: String,
    pub(super) events: Vec<LogEvent>,
    /// The answer, if there was one.
    pub(super) acknowledged: Option<Span>,
}

impl SentRequest {
    /// One event, of which there is no other.
    pub(super) fn last(time: f64) -> Self {
        Self { key: "last".to_owned(), events: vec![LogEvent::new("1", "2", time)], acknowledged: None }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let rows: Vec<Value> = self.events.iter().map(row).collect();
        post("/v1/events", Some(&self.key), &Value::from(rows).to_string())
    }
}

fn row(event: &LogEvent) -> Value {
    let LogEvent { src, dst, time, label, id, .. } = event;
    match id {
        Some(id) => json!({ "src": src, "dst": dst, "time": time, "label": label, "id": id }),
        None => json!({ "src": src, "dst": dst, "time": time, "label": label }),
    }
}

/// What an answer acknowledges; `None` if it does not.
pub(super) fn place(answer: &Answer<'_>) -> Option<Span> {
    let document = answer.json();
    (answer.status == 200).then_some((document["first_seq"].as_u64()?, document["last_seq"].as_u64()?))
}

/// All requests, by the connection that sent them.
#[derive(Debug)]
pub(super) struct Sent {
    by_writer: Vec<Vec<SentRequest>>,
    by_key: HashMap<String, (usize, usize)>,
}

impl Sent {
    pub(super) fn new(n_writers: usize) -> Self {
        Self { by_writer: vec![Vec::new(); n_writers], by_key: HashMap::new() }
    }

    pub(super) fn n_writers(&self) -> usize {
        self.by_writer.len()
    }

    /// The requests of a connection, in order.
    pub(super) fn of_writer(&self, number: usize) -> &[SentRequest] {
        &self.by_writer[number]
    }

    pub(super) fn add(&mut self, writer: usize, requests: Vec<SentRequest>) {
        for request in requests {
            self.by_key.insert(request.key.clone(), (writer, self.by_writer[writer].len()));
            self.by_writer[writer].push(request);
        }
    }

    /// The request with a key, its connection, and its number on it.
    pub(super) fn get(&self, key: &str) -> Option<(usize, usize, &SentRequest)> {
        let &(writer, number) = self.by_key.get(key)?;
        Some((writer, number, &self.by_writer[writer][number]))
    }

    /// Those without an answer: the last ones of connections.
    pub(super) fn unacknowledged(&mut self) -> impl Iterator<Item = &mut SentRequest> {
        let without = |requests: &&mut SentRequest| requests.acknowledged.is_none();
        self.by_writer.iter_mut().flat_map(move |requests| requests.iter_mut().rev().take_while(without))
    }

    /// Keys of requests that were acknowledged and are not among `places`.
    pub(super) fn lost(&self, places: &HashMap<String, Span>) -> Vec<String> {
        let all = self.by_writer.iter().flatten();
        let is_lost = |request: &&SentRequest| request.acknowledged.is_some() && !places.contains_key(&request.key);
        all.filter(is_lost).map(|request| request.key.clone()).collect()
    }
}
