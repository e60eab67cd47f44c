//! The log of a live stream: a folder to which events are appended durably, and which is read as a dataset, also meanwhile.
//!
//! ```text
//! base.ctdg      the events before the first appended one, if there were any; never written again
//! events.log     appended events, one record for each append
//! acknowledged   how far events.log has been acknowledged
//! ```
//!
//! All numbers are little-endian. `events.log` begins with two copies of a header, each with a checksum. A record is
//!
//! ```text
//! "EVNT"   u32 length of the payload   u64 sequence number of its first event   u32 number of events   payload   u32 CRC-32 of all before
//! ```
//!
//! The sequence number of an event is its place in base and log, from 1. The payload holds the requests of one append, which returns when
//! the disk has it: one record, so that of an append all is there after a power failure, or nothing. A process that dies while it writes leaves an unfinished record at the end, which was never acknowledged and is cut off when
//! the log is opened. Anything else that is not a record is damage: it is named with its place, and [`repair`] keeps what is whole.
//!
//! ```
//! use ctdg::dataset::log::{EventLog, LogEvent, LogRequest};
//! use ctdg::dataset::{ReadOptions, read};
//! use ctdg::event::EventStream;
//!
//! # let place = tempfile::tempdir().expect("a folder");
//! # let folder = place.path().join("mail");
//! let base = EventStream::from_events([(1, 2, 10.0)])?;
//! let mut log = EventLog::create(&folder, &base)?;
//! log.append(&[LogRequest::new(vec![LogEvent::new("2", "ann", 11.0)])])?; // on disk when it returns
//! assert_eq!(log.sequence(), 2);
//! drop(log);
//!
//! let stream = read(&folder, &ReadOptions::default())?; // base and log
//! assert_eq!(stream.names().name(stream.dst()[1]), "ann");
//! # Ok::<(), ctdg::Error>(())
//! ```

mod header;
mod read;
mod record;
mod recover;

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::dataset::{PendingFile, WriteFormat, write};
use crate::error::{Error, Place, Problem, Result};
use crate::event::{EventStream, Features};
use header::{BaseRecord, Header, Marker};
pub use read::read;
use record::encode;
pub use record::{LogEvent, LogRequest, MAX_ID_BYTES, Receipt, RequestKey, fingerprint};
pub use recover::{Damage, Repaired, repair};

/// The events before the first appended one.
const BASE: &str = "base.ctdg";
/// The appended events.
const EVENTS: &str = "events.log";
/// How far they have been acknowledged.
const ACKNOWLEDGED: &str = "acknowledged";

/// Whether `folder` is a log.
#[must_use]
pub fn is_log(folder: &Path) -> bool {
    folder.join(EVENTS).is_file()
}

/// A log that is open for appending. One process at a time has it.
#[derive(Debug)]
pub struct EventLog {
    folder: PathBuf,
    file: File,
    marker: File,
    header: Header,
    /// Where the next record begins.
    end: u64,
    /// The sequence number of the last event.
    sequence: u64,
    buffer: Vec<u8>,
}

/// What [`EventLog::open`] found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Opened {
    /// Bytes at the end that were cut off: an append that had not been acknowledged.
    pub n_cut: u64,
    /// Damage that changed nothing, and was mended.
    pub mended: Vec<String>,
}

impl EventLog {
    /// A new log in `folder`, which begins with the events of `base`. Refused if there is a log already.
    pub fn create(folder: &Path, base: &EventStream) -> Result<Self> {
        std::fs::create_dir_all(folder).map_err(|source| Error::io(folder, "create", source))?;
        let path = folder.join(EVENTS);
        if path.exists() {
            return Err(Error::io(&path, "create", std::io::ErrorKind::AlreadyExists.into()));
        }
        let base_record = if base.is_empty() {
            None
        } else {
            let path = folder.join(BASE);
            write(base, &path, WriteFormat::Binary)?;
            Some(BaseRecord { n_events: base.len() as u64, crc: header::crc_of_file(&path)? })
        };
        let header = Header {
            bipartite: base.names().is_bipartite(),
            edge_width: u32::try_from(base.edge_features().map_or(0, Features::width)).unwrap_or(0),
            time_format: base.time_format(),
            base: base_record,
        };
        // Last: a folder with this file is a log.
        PendingFile::write(&path, |out| out.write_all(&header.to_bytes()))?.commit()?;
        sync_folder(folder)?;
        Self::open(folder, &mut |_, _| Ok(())).map(|(log, _)| log)
    }

    /// Opens the log in `folder` and verifies all of it. `on_request` is called with each request in order, and with the sequence number
    /// of its first event.
    ///
    /// An unfinished append at the end is cut off. Damage is an error that names its place.
    pub fn open(folder: &Path, on_request: &mut dyn FnMut(u64, LogRequest) -> Result<()>) -> Result<(Self, Opened)> {
        let path = folder.join(EVENTS);
        let open = |path: &Path, create: bool| {
            let options = OpenOptions::new().read(true).write(true).create(create).truncate(false).open(path);
            options.map_err(|source| Error::io(path, "open", source))
        };
        let mut file = open(&path, false)?;
        lock(&file, &path)?;
        let mut opened = Opened::default();
        let scan = recover::scan(folder, on_request)?;
        let n_bytes = file.metadata().map_err(|source| Error::io(&path, "read", source))?.len();
        if n_bytes > scan.end {
            opened.n_cut = n_bytes - scan.end;
            truncate(&file, &path, scan.end)?;
        }
        if scan.header_needs_mending {
            file.seek(SeekFrom::Start(0)).map_err(|source| Error::io(&path, "write", source))?;
            file.write_all(&scan.header.to_bytes()).map_err(|source| Error::io(&path, "write", source))?;
            file.sync_data().map_err(|source| Error::io(&path, "write", source))?;
            opened.mended.push(format!("one of the two headers of {}", path.display()));
        }
        let marker = open(&folder.join(ACKNOWLEDGED), true)?;
        let log = Self {
            folder: folder.to_owned(),
            file,
            marker,
            header: scan.header,
            end: scan.end,
            sequence: scan.sequence,
            buffer: Vec::new(),
        };
        log.mark()?;
        Ok((log, opened))
    }

    /// The events before the first appended one; without events if there were none.
    pub fn base(&self) -> Result<EventStream> {
        read::base(&self.folder, &self.header)
    }

    /// Number of events before the first appended one.
    #[must_use]
    pub fn n_base(&self) -> u64 {
        self.header.n_base()
    }

    /// The sequence number of the last event.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Bytes of the appended events.
    #[must_use]
    pub fn n_bytes(&self) -> u64 {
        self.end
    }

    /// Features of an event; 0 if events have none.
    #[must_use]
    pub fn edge_width(&self) -> usize {
        self.header.edge_width as usize
    }

    /// Appends `requests`, all of them or, on an error, none. They are on disk when this returns. Returns the sequence number of the first
    /// event.
    pub fn append(&mut self, requests: &[LogRequest]) -> Result<u64> {
        let first = self.sequence + 1;
        self.buffer.clear();
        let n_events = encode(requests, first, self.header.edge_width as usize, &mut self.buffer)?;
        if let Err(source) = self.write() {
            let path = self.folder.join(EVENTS);
            // What was written of it must not be taken for a record once the disk has room again.
            let _ = truncate(&self.file, &path, self.end);
            return Err(Error::io(path, "write", source));
        }
        self.end += self.buffer.len() as u64;
        self.sequence += u64::from(n_events);
        // The events are on disk: an older note makes the next opening less strict, and is no reason to refuse them.
        let _ = self.mark();
        Ok(first)
    }

    fn write(&mut self) -> std::io::Result<()> {
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all(&self.buffer)?;
        self.file.sync_data()
    }

    /// Notes how far the log has been acknowledged, so that a damaged end is not taken for an unfinished append. Not synced: after a power
    /// failure an older note only makes it less strict.
    fn mark(&self) -> Result<()> {
        let mark = || -> std::io::Result<()> {
            let mut marker = &self.marker;
            marker.seek(SeekFrom::Start(0))?;
            marker.write_all(&Marker { end: self.end, sequence: self.sequence }.to_bytes())
        };
        mark().map_err(|source| Error::io(self.folder.join(ACKNOWLEDGED), "write", source))
    }
}

fn truncate(file: &File, path: &Path, end: u64) -> Result<()> {
    file.set_len(end).and_then(|()| file.sync_data()).map_err(|source| Error::io(path, "write", source))
}

fn lock(file: &File, path: &Path) -> Result<()> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(Error::at(Place::file(path), Problem::LogInUse)),
        Err(TryLockError::Error(source)) => Err(Error::io(path, "lock", source)),
    }
}

/// A new file is there after a power failure only if its folder is synced, too.
fn sync_folder(folder: &Path) -> Result<()> {
    #[cfg(unix)]
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|source| Error::io(folder, "write", source))?;
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}
