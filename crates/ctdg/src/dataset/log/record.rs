//! Records of a log: the requests of one append.

use sha2::{Digest, Sha256};

use crate::error::{Place, Problem, Result};

/// Begins a record.
const MAGIC: &[u8; 4] = b"EVNT";

/// Bytes of a record before its payload.
const HEAD: usize = 20;

/// Bytes of the longest record.
const MAX_BYTES: usize = 1 << 30;

/// Bytes of the longest name of a node, or id of an event.
pub const MAX_ID_BYTES: usize = 1 << 10;

/// An appended event.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LogEvent {
    /// The name of the source.
    pub src: String,
    /// The name of the destination.
    pub dst: String,
    /// The time.
    pub time: f64,
    /// The label.
    pub label: f32,
    /// Features; none, or as many as other events have.
    pub features: Vec<f32>,
    /// What tells a repeated event from a new one, if the sender says so.
    pub id: Option<String>,
}

impl LogEvent {
    /// An event without label, features and id.
    pub fn new(src: impl Into<String>, dst: impl Into<String>, time: f64) -> Self {
        Self { src: src.into(), dst: dst.into(), time, ..Self::default() }
    }
}

/// Events that were sent together.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LogRequest {
    /// What tells a repeated request from a new one, if the sender says so.
    pub key: Option<RequestKey>,
    /// Its events that had not been appended before.
    pub events: Vec<LogEvent>,
}

/// The key of a request, and how it was answered.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RequestKey {
    /// The key.
    pub name: String,
    /// The [fingerprint] of all of its events, to notice a key that is used twice.
    pub fingerprint: u64,
    /// How it was answered.
    pub receipt: Receipt,
}

/// How a request was answered. A repetition gets the same answer.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Receipt {
    /// Events that were appended.
    pub accepted: u64,
    /// Events with an id that came before, which were not.
    pub duplicates: u64,
    /// The smallest sequence number of its events, those that came before included.
    pub first: u64,
    /// The largest.
    pub last: u64,
    /// From then on, earlier events are refused.
    pub watermark: f64,
}

impl LogRequest {
    /// A request without a key.
    #[must_use]
    pub fn new(events: Vec<LogEvent>) -> Self {
        Self { key: None, events }
    }
}

/// 64 bits that tell `events` from others.
///
/// ```
/// use ctdg::dataset::log::{LogEvent, fingerprint};
///
/// let [one, other] = [1.0, 2.0].map(|time| fingerprint(&[LogEvent::new("ann", "bob", time)]));
/// assert_ne!(one, other);
/// ```
#[must_use]
pub fn fingerprint(events: &[LogEvent]) -> u64 {
    let mut bytes = Vec::new();
    for event in events {
        put_event(event, event.features.len(), &mut bytes);
    }
    let digest: [u8; 32] = Sha256::digest(&bytes).into();
    digest[..8].iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte))
}

/// Appends the record of `requests`, whose first event has the number `sequence`, and returns the number of their events.
pub(super) fn encode(requests: &[LogRequest], sequence: u64, edge_width: usize, out: &mut Vec<u8>) -> Result<u32> {
    let start = out.len();
    let count = |n: usize| -> Result<u32> {
        u32::try_from(n).map_err(|_| Problem::TooMany { what: "events in a request", max: u64::from(u32::MAX) }.into())
    };
    let n_events = count(requests.iter().map(|request| request.events.len()).sum())?;
    out.extend(MAGIC);
    out.extend([0; 4]);
    out.extend(sequence.to_le_bytes());
    out.extend(n_events.to_le_bytes());
    for request in requests {
        check_lengths(request)?;
        put_text(request.key.as_ref().map(|key| &*key.name), out);
        if let Some(RequestKey { fingerprint, receipt, .. }) = request.key {
            let Receipt { accepted, duplicates, first, last, watermark } = receipt;
            for word in [fingerprint, accepted, duplicates, first, last, watermark.to_bits()] {
                out.extend(word.to_le_bytes());
            }
        }
        out.extend(count(request.events.len())?.to_le_bytes());
        for event in &request.events {
            put_event(event, edge_width, out);
        }
    }
    let length = out.len() - start - HEAD;
    if length > MAX_BYTES {
        return Err(Problem::TooMany { what: "bytes in a request", max: MAX_BYTES as u64 }.into());
    }
    let length = u32::try_from(length).expect("checked above");
    out[start + 4..start + 8].copy_from_slice(&length.to_le_bytes());
    let crc = crc32fast::hash(&out[start..]);
    out.extend(crc.to_le_bytes());
    Ok(n_events)
}

/// Refuses a text that a record has no room for.
fn check_lengths(request: &LogRequest) -> Result<()> {
    let of_event = |event: &LogEvent| {
        [&event.src, &event.dst].map(String::len).into_iter().chain(event.id.as_ref().map(String::len))
    };
    let longest = request
        .key
        .as_ref()
        .map(|key| key.name.len())
        .into_iter()
        .chain(request.events.iter().flat_map(of_event))
        .max();
    match longest.filter(|&longest| longest > MAX_ID_BYTES) {
        Some(longest) => {
            let (found, expected) = (format!("{longest} bytes"), format!("at most {MAX_ID_BYTES} bytes"));
            Err(Problem::Setting { name: "id", found, expected }.into())
        }
        None => Ok(()),
    }
}

/// A length and the text; the largest length stands for no text.
fn put_text(text: Option<&str>, out: &mut Vec<u8>) {
    let length = text.map_or(u16::MAX, |text| u16::try_from(text.len()).unwrap_or(u16::MAX - 1));
    out.extend(length.to_le_bytes());
    out.extend(text.unwrap_or_default().as_bytes());
}

fn put_event(event: &LogEvent, edge_width: usize, out: &mut Vec<u8>) {
    out.extend(event.time.to_le_bytes());
    out.extend(event.label.to_le_bytes());
    put_text(Some(&event.src), out);
    put_text(Some(&event.dst), out);
    put_text(event.id.as_deref(), out);
    for at in 0..edge_width {
        out.extend(event.features.get(at).copied().unwrap_or(0.0).to_le_bytes());
    }
}

/// A record as it lies in a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    /// The number of its first event.
    pub(super) sequence: u64,
    pub(super) n_events: u32,
    payload: &'a [u8],
}

impl<'a> Record<'a> {
    /// The record that `bytes` begin with, if there is a whole one.
    pub(super) fn first_of(bytes: &'a [u8]) -> Option<Self> {
        let word = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
        if !bytes.starts_with(MAGIC) {
            return None;
        }
        let length = word(4)? as usize;
        let end = HEAD + length;
        if length > MAX_BYTES || word(end)? != crc32fast::hash(bytes.get(..end)?) {
            return None;
        }
        let sequence = u64::from_le_bytes(bytes[8..16].try_into().ok()?);
        Some(Self { sequence, n_events: word(16)?, payload: &bytes[HEAD..end] })
    }

    /// Where the next record begins, behind its own beginning.
    pub(super) fn n_bytes(&self) -> usize {
        HEAD + self.payload.len() + 4
    }

    /// Its requests, of a log whose events have so many features.
    pub(super) fn requests(&self, edge_width: usize) -> Result<Vec<LogRequest>> {
        let mut requests = Vec::new();
        let mut fields = Fields(self.payload);
        let mut decode = || -> Option<()> {
            while !fields.0.is_empty() {
                let key = fields.key()?;
                let n_events = fields.count()?;
                let mut events = Vec::with_capacity(n_events.min(1 << 20) as usize);
                for _ in 0..n_events {
                    events.push(fields.event(edge_width)?);
                }
                requests.push(LogRequest { key, events });
            }
            Some(())
        };
        let is_whole = decode().is_some();
        let n_events: usize = requests.iter().map(|request| request.events.len()).sum();
        if is_whole && n_events == self.n_events as usize { Ok(requests) } else { Err(self.unknown()) }
    }

    /// Calls `visit` with each event, without copying names.
    pub(super) fn visit(&self, edge_width: usize, mut visit: impl FnMut(RawEvent<'a>) -> Result<()>) -> Result<()> {
        let mut fields = Fields(self.payload);
        while !fields.0.is_empty() {
            let n_events = fields.key().and_then(|_| fields.count()).ok_or_else(|| self.unknown())?;
            for _ in 0..n_events {
                visit(fields.raw_event(edge_width).ok_or_else(|| self.unknown())?)?;
            }
        }
        Ok(())
    }

    fn unknown(&self) -> crate::Error {
        let detail = format!("the record of event {} is not one of this version", self.sequence);
        crate::Error::at(Place::default(), Problem::Corrupt { format: "log", detail })
    }
}

/// An event within a record.
pub(super) struct RawEvent<'a> {
    pub(super) src: &'a str,
    pub(super) dst: &'a str,
    pub(super) time: f64,
    pub(super) label: f32,
    id: Option<&'a str>,
    /// As little-endian bytes.
    features: &'a [u8],
}

impl RawEvent<'_> {
    pub(super) fn features(&self) -> impl ExactSizeIterator<Item = f32> {
        self.features.chunks_exact(4).map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }
}

struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, n: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(bytes)
    }

    fn count(&mut self) -> Option<u32> {
        self.bytes(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    #[expect(clippy::option_option, reason = "there may be no key, and there may be no field")]
    fn key(&mut self) -> Option<Option<RequestKey>> {
        let Some(name) = self.text()? else { return Some(None) };
        let mut word = || self.bytes(8)?.try_into().ok().map(u64::from_le_bytes);
        let fingerprint = word()?;
        let (accepted, duplicates, first, last) = (word()?, word()?, word()?, word()?);
        let receipt = Receipt { accepted, duplicates, first, last, watermark: f64::from_bits(word()?) };
        Some(Some(RequestKey { name: name.to_owned(), fingerprint, receipt }))
    }

    #[expect(clippy::option_option, reason = "there may be no text, and there may be no field")]
    fn text(&mut self) -> Option<Option<&'a str>> {
        let length = u16::from_le_bytes(self.bytes(2)?.try_into().ok()?);
        if length == u16::MAX {
            return Some(None);
        }
        std::str::from_utf8(self.bytes(usize::from(length))?).ok().map(Some)
    }

    fn raw_event(&mut self, edge_width: usize) -> Option<RawEvent<'a>> {
        let time = f64::from_le_bytes(self.bytes(8)?.try_into().ok()?);
        let label = f32::from_le_bytes(self.bytes(4)?.try_into().ok()?);
        let (src, dst, id) = (self.text()??, self.text()??, self.text()?);
        Some(RawEvent { src, dst, time, label, id, features: self.bytes(4 * edge_width)? })
    }

    fn event(&mut self, edge_width: usize) -> Option<LogEvent> {
        let raw = self.raw_event(edge_width)?;
        let features = raw.features().collect();
        let RawEvent { src, dst, time, label, id, .. } = raw;
        Some(LogEvent { src: src.into(), dst: dst.into(), time, label, features, id: id.map(str::to_owned) })
    }
}
