//! Index files: what a [`Store`](crate::store::Store) holds, as memory-mapped files beside a `.ctdg` file.
//!
//! The index of `EVENTS.ctdg` is the folder `EVENTS.ctdg.index`. It has a file `all.store` of all events, and one for each part of them that
//! a store was asked for, such as the training events of a split. [`build`] makes it by external sorting within a memory limit. A store
//! over events that were read from `EVENTS.ctdg` uses it without being asked: its answers are those of a store in memory, to the last bit.
//!
//! ```
//! use ctdg::dataset::{ReadOptions, WriteFormat, read, write};
//! use ctdg::event::{EventStream, NodeId};
//! use ctdg::{index, store::Store};
//!
//! # let folder = tempfile::tempdir()?;
//! let path = folder.path().join("events.ctdg");
//! write(&EventStream::from_events([(0, 1, 1.0), (1, 2, 2.0)])?, &path, WriteFormat::Binary)?;
//! let events = read(&path, &ReadOptions::default())?;
//! index::build(&events, 64 << 20, &|_, _| {})?;
//! let store = Store::build(&events)?;
//! assert!(store.is_mapped());
//! assert_eq!(store.history(NodeId(1), store.cut(3.0)).neighbors, [NodeId(0), NodeId(2)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Checks
//! A file appears whole or not at all. When it is opened, its version, its length and the checksum of every column are verified, and that it
//! is of these events: their number and the checksums of their times, sources and destinations. Anything else is an error that names the
//! file, never a wrong answer.
//!
//! # Memory
//! Building takes the limit, whatever the number of events, and 24 bytes of disk per entry for a moment. The index takes 44 bytes on disk
//! per event, 24 per node, 18 per distinct pair, and for a pair that met several times 8 and 4 to 8 per event.

mod build;
mod external_sort;
mod file;
mod pairs;

use std::ffi::OsString;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use build::Plan;
pub(crate) use file::{IndexFile, Section};
use file::{Key, checksum, checksum_of};
pub(crate) use pairs::MappedPairs;

use crate::error::{Error, Place, Problem, Result};
use crate::event::{EventId, EventStream, IdWidth, MappedFile, NodeId};

/// The file of all events.
const ALL: &str = "all.store";

/// The least memory that an index is built within, in bytes.
pub const MIN_MEMORY: u64 = 1 << 20;

/// The folder of the index of the file `events`.
///
/// ```
/// let folder = ctdg::index::folder("mail.ctdg".as_ref());
/// assert_eq!(folder, std::path::Path::new("mail.ctdg.index"));
/// ```
#[must_use]
pub fn folder(events: &Path) -> PathBuf {
    let mut name: OsString = events.as_os_str().to_owned();
    name.push(".index");
    name.into()
}

/// What [`build`] made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// The folder.
    pub folder: PathBuf,
    /// Whether the index was there already.
    pub was_there: bool,
    /// Bytes of all its files.
    pub bytes: u64,
}

/// Builds the index of `stream`, which was read from a `.ctdg` file, within `memory` bytes; the same limit holds for parts that are
/// indexed later. An index that is there and sound is kept, any other is replaced. `progress` is called with what is done and the total.
pub fn build(stream: &EventStream, memory: u64, progress: &dyn Fn(u64, u64)) -> Result<Built> {
    build_with(stream, None, IdWidth::of(stream.len()), memory, progress)
}

/// The same with events numbered by 64 bits, as for a stream of more than [`MAX_NARROW`](crate::event::MAX_NARROW), however few there are.
/// For tests: the answers are the same, and the files larger.
#[doc(hidden)]
pub fn build_wide(stream: &EventStream, memory: u64, progress: &dyn Fn(u64, u64)) -> Result<Built> {
    build_with(stream, None, IdWidth::Wide, memory, progress)
}

/// Builds the index of `events` of `stream`, in ascending order, beside that of all events, which is there. [`Store::of_events`] does the
/// same when it is asked for a part that has no index yet.
///
/// [`Store::of_events`]: crate::store::Store::of_events
pub fn build_part(stream: &EventStream, events: &[EventId], memory: u64, progress: &dyn Fn(u64, u64)) -> Result<Built> {
    stream.check_order(events)?;
    let width = of_all(stream)?.map_or(IdWidth::of(stream.len()), |all| all.width());
    build_with(stream, Some(events), width, memory, progress)
}

fn build_with(
    stream: &EventStream,
    part: Option<&[EventId]>,
    width: IdWidth,
    memory: u64,
    progress: &dyn Fn(u64, u64),
) -> Result<Built> {
    if memory < MIN_MEMORY {
        let expected = format!("at least {MIN_MEMORY} bytes");
        return Err(Problem::Setting { name: "memory", found: memory.to_string(), expected }.into());
    }
    let Some(origin) = stream.origin() else {
        let (found, expected) = ("events that are not mapped from a file".into(), "those of a .ctdg file".into());
        return Err(Problem::WrongFormat { found, expected }.into());
    };
    let folder = folder(origin.path());
    let place = Location::new(stream, origin, part);
    let was_there = matches!(place.open(), Ok(Some(_)));
    if !was_there {
        place.build(stream, part, (width, memory), progress)?;
    }
    let size = |entry: fs::DirEntry| entry.metadata().map_or(0, |metadata| metadata.len());
    let bytes = fs::read_dir(&folder).map(|entries| entries.flatten().map(size).sum());
    Ok(Built { was_there, bytes: bytes.map_err(|source| Error::io(&folder, "read", source))?, folder })
}

/// The index of all events of `stream`, if there is one.
pub(crate) fn of_all(stream: &EventStream) -> Result<Option<IndexFile>> {
    let Some(origin) = stream.origin().filter(|origin| has_index(origin)) else { return Ok(None) };
    Location::new(stream, origin, None).open()
}

/// The index of `events` of `stream`, and that of all, if there is one of all. Built now if it is not there.
pub(crate) fn of_part(stream: &EventStream, events: &[EventId]) -> Result<Option<[IndexFile; 2]>> {
    let Some(origin) = stream.origin().filter(|origin| has_index(origin)) else { return Ok(None) };
    let Some(all) = of_all(stream)? else { return Ok(None) };
    if events.len() == stream.len() {
        return Ok(Some([all.clone(), all]));
    }
    let place = Location::new(stream, origin, Some(events));
    let part = if let Some(part) = place.open()? {
        part
    } else {
        place.build(stream, Some(events), (all.width(), all.memory()), &|_, _| {})?;
        place.open()?.ok_or_else(|| unusable(&place.path, "no file".to_owned()))?
    };
    Ok(Some([part, all]))
}

/// The list of `node` where lists begin at `offsets`; an unknown node has an empty one.
#[inline]
pub(crate) fn list_of<T: Copy + TryInto<usize>>(offsets: &[T], node: NodeId) -> Range<usize> {
    let place = |offset: T| offset.try_into().unwrap_or(usize::MAX);
    match offsets.get(node.index()..=node.index() + 1) {
        Some(&[start, end]) => place(start)..place(end),
        _ => 0..0,
    }
}

fn has_index(origin: &MappedFile) -> bool {
    folder(origin.path()).join(ALL).is_file()
}

/// Where the index of some events is.
struct Location<'s> {
    origin: &'s MappedFile,
    name: String,
    path: PathBuf,
    key: Key,
}

impl<'s> Location<'s> {
    fn new(stream: &EventStream, origin: &'s MappedFile, part: Option<&[EventId]>) -> Self {
        let columns = origin.checksums(|| {
            let [time, src, dst] = [
                checksum(bytemuck::cast_slice(stream.times())),
                checksum(bytemuck::cast_slice(stream.src())),
                checksum(bytemuck::cast_slice(stream.dst())),
            ];
            [time, src, dst].map(|sum| u32::try_from(sum).expect("32 bits"))
        });
        // One bit more, so that it is never 0.
        let ids = part.map_or(0, |events| 1 << 32 | checksum_of(events, stream.len()));
        let n_events = part.map_or(stream.len(), <[_]>::len) as u64;
        let key = Key {
            n_events,
            ids,
            n_stream: stream.len() as u64,
            n_nodes: stream.n_nodes() as u64,
            columns: columns.map(u64::from),
        };
        let name = match part {
            None => ALL.to_owned(),
            Some(_) => format!("part-{n_events}-{:08x}.store", ids & u64::from(u32::MAX)),
        };
        Self { origin, path: folder(origin.path()).join(&name), name, key }
    }

    /// The file, if there is one. Refused if it is damaged, or of other events.
    fn open(&self) -> Result<Option<IndexFile>> {
        if !self.path.is_file() {
            return Ok(None);
        }
        let file = IndexFile::open(self.origin, &self.path, &self.name)?;
        if file.key() == self.key {
            return Ok(Some(file));
        }
        let Key { n_stream, n_nodes, .. } = file.key();
        let counts = (n_stream, n_nodes) == (self.key.n_stream, self.key.n_nodes);
        let other = if counts { "as many other" } else { &*format!("{n_stream}") };
        Err(unusable(&self.path, format!("the index of {other} events")))
    }

    fn build(
        &self,
        stream: &EventStream,
        part: Option<&[EventId]>,
        (width, memory): (IdWidth, u64),
        progress: &dyn Fn(u64, u64),
    ) -> Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(|source| Error::io(folder, "create", source))?;
        if part.is_none() {
            remove_stores(folder)?;
            self.origin.forget_sound();
        }
        let plan = Plan { stream, key: self.key, width, memory, progress };
        let built = match part {
            None => plan.build(stream.ids(), &self.path),
            Some(events) => plan.build(events.iter().copied(), &self.path),
        };
        if built.is_err() {
            // Best effort, and only if it is empty.
            let _ = fs::remove_dir(folder);
        }
        built
    }
}

/// Removes the index files of other events.
fn remove_stores(folder: &Path) -> Result<()> {
    let entries = fs::read_dir(folder).map_err(|source| Error::io(folder, "read", source))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension().is_some_and(|extension| extension == "store") {
            fs::remove_file(&path).map_err(|source| Error::io(&path, "remove", source))?;
        }
    }
    Ok(())
}

/// An index that is damaged, or of other events.
fn unusable(path: &Path, found: String) -> Error {
    Error::at(Place::file(path), Problem::UnusableIndex { found })
}
