//! Compares a log with what was sent.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use ctdg::dataset::log::{EventLog, LogEvent, LogRequest};

use super::sent::{Sent, Span};
use crate::Result;

/// The file of appended events.
pub(super) const EVENTS: &str = "events.log";
/// Where its first record begins: after two headers.
pub(super) const FIRST_RECORD: usize = 88;

/// Bytes of the record that `bytes` begin with: its payload with what is before and after it.
pub(super) fn record_length(bytes: &[u8]) -> Option<usize> {
    let length = u32::from_le_bytes(bytes.get(4..8)?.try_into().ok()?);
    Some(length as usize + 24).filter(|&length| length <= bytes.len())
}

/// What a log holds.
#[derive(Debug)]
pub(super) struct Verified {
    /// The sequence number of the last event.
    pub(super) sequence: u64,
    /// What each request is answered with.
    pub(super) places: HashMap<String, Span>,
    /// Bytes of an unfinished append.
    pub(super) n_cut: u64,
    pub(super) violations: Vec<String>,
}

/// Opens the log in `folder`: every acknowledged request must be there once and whole, in order, and nothing else but requests that were
/// under way, whole.
pub(super) fn verify(folder: &Path, n_base: u64, sent: &Sent) -> Result<Verified> {
    let mut scan = Scan {
        sent,
        sequence: n_base,
        places: HashMap::new(),
        ids: HashSet::new(),
        newest: vec![None; sent.n_writers()],
        violations: Vec::new(),
    };
    let (log, opened) = EventLog::open(folder, &mut |first, request| {
        scan.request(first, &request);
        Ok(())
    })?;
    if log.sequence() != scan.sequence {
        scan.violations.push(format!("the log says it has {} events and holds {}", log.sequence(), scan.sequence));
    }
    for lost in sent.lost(&scan.places) {
        scan.violations.push(format!("request {lost} was acknowledged and is not in the log"));
    }
    let Scan { sequence, places, violations, .. } = scan;
    Ok(Verified { sequence, places, n_cut: opened.n_cut, violations })
}

struct Scan<'a> {
    sent: &'a Sent,
    /// The number of the last event so far.
    sequence: u64,
    places: HashMap<String, Span>,
    /// Ids of events so far.
    ids: HashSet<String>,
    /// The newest request of each connection so far.
    newest: Vec<Option<usize>>,
    violations: Vec<String>,
}

impl Scan<'_> {
    fn request(&mut self, first: u64, request: &LogRequest) {
        if first != self.sequence + 1 {
            self.violations.push(format!("event {first} follows event {}", self.sequence));
        }
        self.sequence += request.events.len() as u64;
        let Some(key) = &request.key else {
            self.violations.push(format!("the request of event {first} has no key, and none was sent without"));
            return;
        };
        let Some((writer, number, sent)) = self.sent.get(&key.name) else {
            self.violations.push(format!("request {} was never sent", key.name));
            return;
        };
        let place = (key.receipt.first, key.receipt.last);
        if self.places.insert(key.name.clone(), place).is_some() {
            self.violations.push(format!("request {} is in the log twice", key.name));
        }
        if let Some(answer) = sent.acknowledged.filter(|answer| *answer != place) {
            self.violations
                .push(format!("request {} was answered with {answer:?} and is in the log as {place:?}", key.name));
        }
        if self.newest[writer].is_some_and(|newest| newest >= number) {
            self.violations.push(format!("request {} comes after a later one of its connection", key.name));
        }
        self.newest[writer] = Some(number);
        // The server leaves out events whose id it has.
        let ids = &mut self.ids;
        let new = sent.events.iter().filter(|event| event.id.as_ref().is_none_or(|id| ids.insert(id.clone())));
        if !new.eq(&request.events) {
            self.violations.push(format!("request {} is in the log with other events than were sent", key.name));
        }
    }
}

/// A number that other events would change.
pub(super) fn digest(folder: &Path) -> Result<(u64, u64)> {
    let mut digest: u64 = 0;
    let mut add = |first: u64, request: LogRequest| {
        let key = request.key.as_ref().map(|key| format!("{key:?}"));
        let key = LogEvent { id: key, ..LogEvent::new("", "", 0.0) };
        for part in [&request.events[..], &[key]] {
            digest = digest.rotate_left(5).wrapping_mul(0x9e37_79b9_7f4a_7c15)
                ^ ctdg::dataset::log::fingerprint(part)
                ^ first;
        }
        Ok(())
    };
    let (log, _) = EventLog::open(folder, &mut add)?;
    let base = log.base()?;
    for id in base.ids() {
        let event = base.event(id);
        let [src, dst] = [event.src, event.dst].map(|node| base.names().name(node));
        let event = LogEvent { label: event.label, ..LogEvent::new(src, dst, event.time) };
        digest = digest.rotate_left(5).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ ctdg::dataset::log::fingerprint(&[event]);
    }
    Ok((log.sequence(), digest))
}
