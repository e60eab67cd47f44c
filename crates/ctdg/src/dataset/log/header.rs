//! The header of a log, and the note of how far it has been acknowledged.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crc32fast::Hasher;

use crate::error::{Error, Result};
use crate::time::TimeFormat;

const MAGIC: &[u8; 8] = b"CTDGLOG1";

/// Bytes of one copy of the header.
const COPY: usize = 44;

/// Bytes before the first record: two copies.
pub(super) const BYTES: usize = 2 * COPY;

/// What holds for all events of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) bipartite: bool,
    pub(super) edge_width: u32,
    pub(super) time_format: TimeFormat,
    pub(super) base: Option<BaseRecord>,
}

/// The file of earlier events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BaseRecord {
    pub(super) n_events: u64,
    pub(super) crc: u32,
}

impl Header {
    /// Number of events before the first record.
    pub(super) fn n_base(&self) -> u64 {
        self.base.map_or(0, |base| base.n_events)
    }

    pub(super) fn to_bytes(self) -> Vec<u8> {
        let mut copy = Vec::with_capacity(COPY);
        copy.extend(MAGIC);
        let date = self.time_format == TimeFormat::Date;
        let flags = u32::from(self.bipartite) | u32::from(date) << 1 | u32::from(self.base.is_some()) << 2;
        let base = self.base.unwrap_or(BaseRecord { n_events: 0, crc: 0 });
        for word in [flags, self.edge_width, base.crc, 0, 0, 0] {
            copy.extend(word.to_le_bytes());
        }
        copy.extend(base.n_events.to_le_bytes());
        copy.extend(crc32fast::hash(&copy).to_le_bytes());
        [&copy[..], &copy].concat()
    }

    /// The header of a log that begins with `bytes`, and whether both copies are whole. `None` if neither is.
    pub(super) fn of_bytes(bytes: &[u8]) -> Option<(Self, bool)> {
        let copies = [0, COPY].map(|start| bytes.get(start..start + COPY).and_then(Self::of_copy));
        let header = copies[0].or(copies[1])?;
        Some((header, copies == [Some(header); 2]))
    }

    fn of_copy(copy: &[u8]) -> Option<Self> {
        let word = |at: usize| copy.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
        let n_events = u64::from_le_bytes(copy.get(32..40)?.try_into().ok()?);
        let is_whole = copy.starts_with(MAGIC) && word(40)? == crc32fast::hash(&copy[..40]);
        let (flags, edge_width, crc) = (word(8)?, word(12)?, word(16)?);
        is_whole.then_some(Self {
            bipartite: flags & 1 != 0,
            time_format: if flags & 2 == 0 { TimeFormat::Number } else { TimeFormat::Date },
            base: (flags & 4 != 0).then_some(BaseRecord { n_events, crc }),
            edge_width,
        })
    }
}

/// How far a log has been acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marker {
    pub(super) end: u64,
    pub(super) sequence: u64,
}

impl Marker {
    pub(super) fn to_bytes(self) -> [u8; 20] {
        let mut bytes = [0; 20];
        bytes[..8].copy_from_slice(&self.end.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..16]);
        bytes[16..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// `None` if it is not whole, as after a power failure.
    pub(super) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; 20] = bytes.try_into().ok()?;
        let marker = Self {
            end: u64::from_le_bytes(bytes[..8].try_into().ok()?),
            sequence: u64::from_le_bytes(bytes[8..16].try_into().ok()?),
        };
        (marker.to_bytes() == *bytes).then_some(marker)
    }
}

/// The checksum of a whole file.
pub(super) fn crc_of_file(path: &Path) -> Result<u32> {
    let read = || -> std::io::Result<u32> {
        let (mut file, mut hasher, mut buffer) = (File::open(path)?, Hasher::new(), vec![0; 1 << 20]);
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(hasher.finalize()),
                n => hasher.update(&buffer[..n]),
            }
        }
    };
    read().map_err(|source| Error::io(path, "read", source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_whole_copy_of_a_header_suffices() {
        let base = Some(BaseRecord { n_events: 1 << 40, crc: 7 });
        let header = Header { bipartite: true, edge_width: 3, time_format: TimeFormat::Date, base };
        let bytes = header.to_bytes();
        assert_eq!((bytes.len(), Header::of_bytes(&bytes)), (BYTES, Some((header, true))));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            assert_eq!(Header::of_bytes(&damaged), Some((header, false)), "byte {at}");
        }
        assert_eq!(Header::of_bytes(&[0; 100]), None);
        assert_eq!(Header::of_bytes(b"short"), None);
    }

    #[test]
    fn a_damaged_note_is_none() {
        let bytes = Marker { end: 1 << 33, sequence: 5 }.to_bytes();
        assert_eq!(Marker::of_bytes(&bytes), Some(Marker { end: 1 << 33, sequence: 5 }));
        for at in 0..bytes.len() {
            let mut damaged = bytes;
            damaged[at] ^= 1;
            assert_eq!(Marker::of_bytes(&damaged), None);
        }
        assert_eq!(Marker::of_bytes(&bytes[..7]), None);
    }
}
