//! Verifies a log from its beginning, and tells an unfinished append from damage.

use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::path::{Path, PathBuf};

use memmap2::Mmap;

use super::header::{self, Header, Marker};
use super::record::{LogRequest, Record};
use super::{ACKNOWLEDGED, BASE, EVENTS, lock};
use crate::error::{Error, Place, Problem, Result, counted};

/// What a log holds.
pub(super) struct Scan {
    pub(super) header: Header,
    pub(super) header_needs_mending: bool,
    /// Where the last whole record ends.
    pub(super) end: u64,
    /// The number of its last event.
    pub(super) sequence: u64,
}

/// Bytes of a log that should be records and are not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Their place in `events.log`.
    pub bytes: Range<u64>,
    /// The sequence numbers of the events that were there, as far as that is known.
    pub events: Range<u64>,
}

/// What [`repair`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repaired {
    /// The damaged parts, which were left out.
    pub damage: Vec<Damage>,
    /// Where the damaged log is kept as it was.
    pub kept_as: PathBuf,
    /// Whole events that were kept.
    pub n_events: u64,
}

/// The bytes of `events.log`, which is locked.
fn map(folder: &Path) -> Result<Mmap> {
    let path = folder.join(EVENTS);
    let file = File::open(&path).map_err(|source| Error::io(&path, "open", source))?;
    #[expect(unsafe_code, reason = "mapping a file is unsafe because another process may change it underneath")]
    // SAFETY: the map is read-only, and the lock keeps other writers out.
    let map = unsafe { Mmap::map(&file) };
    map.map_err(|source| Error::io(&path, "map", source))
}

/// The header of a log, and whether both of its copies are whole.
pub(super) fn header(folder: &Path, bytes: &[u8]) -> Result<(Header, bool)> {
    Header::of_bytes(bytes).ok_or_else(|| {
        let detail = "both copies of the header, bytes 0 to 87, are damaged".to_owned();
        Error::at(Place::file(folder.join(EVENTS)), Problem::Corrupt { format: "log", detail })
    })
}

/// Whether the file of earlier events is the one that the log was begun with.
pub(super) fn check_base(folder: &Path, header: &Header) -> Result<()> {
    let path = folder.join(BASE);
    match header.base {
        Some(base) if header::crc_of_file(&path)? != base.crc => {
            let detail = "its checksum is not that of the file the log was begun with".to_owned();
            Err(Error::at(Place::file(path), Problem::Corrupt { format: "ctdg", detail }))
        }
        _ => Ok(()),
    }
}

/// How far the log has been acknowledged, if the note of it is whole.
pub(super) fn marker(folder: &Path) -> Option<Marker> {
    Marker::of_bytes(&std::fs::read(folder.join(ACKNOWLEDGED)).ok()?)
}

/// Refuses a log whose records end in damage. `marker` was read before the records.
pub(super) fn check_end(folder: &Path, records: &Records<'_>, marker: Option<Marker>) -> Result<()> {
    match records.damage(marker) {
        Some(damage) => Err(Error::at(Place::file(folder.join(EVENTS)), damage.problem())),
        None => Ok(()),
    }
}

/// Reads all records and calls `on_request` with each. Damage is an error.
pub(super) fn scan(folder: &Path, on_request: &mut dyn FnMut(u64, LogRequest) -> Result<()>) -> Result<Scan> {
    let bytes = map(folder)?;
    let (header, is_whole) = header(folder, &bytes)?;
    check_base(folder, &header)?;
    let mut records = Records::new(&bytes, header.n_base());
    for record in &mut records {
        let mut sequence = record.sequence;
        for request in record.requests(header.edge_width as usize)? {
            let n_events = request.events.len() as u64;
            on_request(sequence, request)?;
            sequence += n_events;
        }
    }
    let marker = marker(folder);
    let (end, sequence) = (records.at as u64, records.sequence);
    if let Some(damage) = records.damage(marker) {
        return Err(Error::at(Place::file(folder.join(EVENTS)), damage.problem()));
    }
    Ok(Scan { header, header_needs_mending: !is_whole, end, sequence })
}

/// The whole records at the beginning of a log.
pub(super) struct Records<'a> {
    bytes: &'a [u8],
    /// Where the next record begins.
    pub(super) at: usize,
    /// The number of the last event before it.
    pub(super) sequence: u64,
}

impl<'a> Records<'a> {
    pub(super) fn new(bytes: &'a [u8], n_base: u64) -> Self {
        Self { bytes, at: header::BYTES, sequence: n_base }
    }

    /// What follows the last whole record, unless that is an unfinished append.
    fn damage(&self, marker: Option<Marker>) -> Option<Damage> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let start = self.at as u64;
        if let Some((skipped, next)) = next_record(rest, self.sequence) {
            let bytes = start..start + skipped as u64;
            return Some(Damage { bytes, events: self.sequence + 1..next.sequence });
        }
        let marker = marker.filter(|marker| marker.end > start && marker.sequence > self.sequence)?;
        Some(Damage { bytes: start..marker.end, events: self.sequence + 1..marker.sequence + 1 })
    }
}

/// The first whole record after the beginning of `bytes`, which is none, and its place.
fn next_record(bytes: &[u8], sequence: u64) -> Option<(usize, Record<'_>)> {
    (0..bytes.len()).find_map(|at| {
        let record = Record::first_of(&bytes[at..])?;
        (record.sequence > sequence).then_some((at, record))
    })
}

impl<'a> Iterator for &mut Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let record = Record::first_of(self.bytes.get(self.at..)?)?;
        if record.sequence != self.sequence + 1 {
            return None;
        }
        self.at += record.n_bytes();
        self.sequence += u64::from(record.n_events);
        Some(record)
    }
}

impl Damage {
    fn problem(&self) -> Problem {
        Problem::DamagedLog {
            from: self.bytes.start,
            to: self.bytes.end,
            events: counted(self.events.end - self.events.start, "event"),
            first: self.events.start,
        }
    }
}

/// Makes a damaged log whole again: every whole record is kept, and the events of damaged ones are lost. The damaged file is kept beside
/// it. Nothing happens to a log without damage.
pub fn repair(folder: &Path) -> Result<Option<Repaired>> {
    let path = folder.join(EVENTS);
    let file = OpenOptions::new().read(true).write(true).open(&path);
    let file = file.map_err(|source| Error::io(&path, "open", source))?;
    lock(&file, &path)?;
    let bytes = map(folder)?;
    let (header, _) = header(folder, &bytes)?;
    check_base(folder, &header)?;
    let marker = marker(folder);
    let mut records = Records::new(&bytes, header.n_base());
    let mut whole: Vec<Record<'_>> = Vec::new();
    let mut damage = Vec::new();
    loop {
        whole.extend(&mut records);
        let Some(found) = records.damage(marker) else { break };
        let start = usize::try_from(found.bytes.end).unwrap_or(usize::MAX).min(bytes.len());
        records.at = start;
        records.sequence = found.events.end - 1;
        damage.push(found);
    }
    if damage.is_empty() {
        return Ok(None);
    }
    let name = |n: u32| folder.join(format!("{EVENTS}.damaged-{n}"));
    let kept_as = name((1..u32::MAX).find(|&n| !name(n).exists()).unwrap_or(u32::MAX));
    let pending = crate::dataset::PendingFile::write(&path, |out| {
        out.write_all(&header.to_bytes())?;
        let mut sequence = header.n_base();
        let mut buffer = Vec::new();
        for record in &whole {
            // Numbered again, without the gap.
            let requests = record.requests(header.edge_width as usize).map_err(std::io::Error::other)?;
            buffer.clear();
            let n_events = super::encode(&requests, sequence + 1, header.edge_width as usize, &mut buffer);
            sequence += u64::from(n_events.map_err(std::io::Error::other)?);
            out.write_all(&buffer)?;
        }
        Ok(())
    })?;
    std::fs::copy(&path, &kept_as).map_err(|source| Error::io(&kept_as, "write", source))?;
    let _ = std::fs::remove_file(folder.join(ACKNOWLEDGED));
    pending.commit()?;
    super::sync_folder(folder)?;
    let n_events = whole.iter().map(|record| u64::from(record.n_events)).sum();
    Ok(Some(Repaired { damage, kept_as, n_events }))
}
