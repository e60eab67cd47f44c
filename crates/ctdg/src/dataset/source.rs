//! Opens a file for reading; gzip and zstd are recognised by their first bytes and decompressed.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use memmap2::Mmap;

use crate::error::{Error, Place, Problem, Result};
use crate::event::map_file;

/// Called with what has been read so far and the total: bytes of a text file, rows of a Parquet file.
pub(crate) type OnProgress<'a> = Option<&'a dyn Fn(u64, u64)>;

/// The decompressed bytes of a file.
pub(crate) struct Source<'a> {
    path: PathBuf,
    compression: Compression,
    reader: Box<dyn Read + 'a>,
}

/// Compression of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Compression {
    /// By the first bytes of a file.
    fn sniff(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            _ => Self::None,
        }
    }

    /// By the extension, and the name without it.
    pub(crate) fn of_name(name: &str) -> (Self, &str) {
        for (ending, compression) in [(".gz", Self::Gzip), (".zst", Self::Zstd), (".zstd", Self::Zstd)] {
            if let Some(stem) = name.strip_suffix(ending) {
                return (compression, stem);
            }
        }
        (Self::None, name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::None => "plain",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }
}

impl<'a> Source<'a> {
    pub(crate) fn open(path: &Path, progress: OnProgress<'a>) -> Result<Self> {
        let file = File::open(path).map_err(|source| Error::io(path, "open", source))?;
        let metadata = file.metadata().map_err(|source| Error::io(path, "open", source))?;
        if metadata.is_dir() {
            return Err(Error::io(path, "open", io::Error::from(io::ErrorKind::IsADirectory)));
        }
        Self::new(path, Counted { inner: file, done: 0, total: metadata.len(), progress })
    }

    /// Bytes from elsewhere; messages call them `path`.
    pub(crate) fn new(path: &Path, bytes: impl Read + 'a) -> Result<Self> {
        let mut buffered = BufReader::with_capacity(1 << 16, bytes);
        let head = buffered.fill_buf().map_err(|source| Error::io(path, "read", source))?;
        let compression = Compression::sniff(head);
        let reader: Box<dyn Read + 'a> = match compression {
            Compression::None => Box::new(buffered),
            Compression::Gzip => Box::new(MultiGzDecoder::new(buffered)),
            Compression::Zstd => {
                Box::new(zstd::Decoder::with_buffer(buffered).map_err(|source| Error::io(path, "read", source))?)
            }
        };
        Ok(Self { path: path.to_path_buf(), compression, reader })
    }

    /// Turns a failed read into a problem of the file.
    pub(crate) fn explain(path: &Path, compression: Compression, error: io::Error) -> Error {
        let format = compression.name();
        let problem = match (compression, error.kind()) {
            (_, io::ErrorKind::UnexpectedEof) => Problem::Truncated { format },
            (Compression::None, _) => Problem::Io { action: "read", source: error },
            (Compression::Gzip | Compression::Zstd, _) => Problem::Corrupt { format, detail: error.to_string() },
        };
        Error::at(Place::file(path), problem)
    }

    /// The first `n` bytes, or all if there are fewer. Damage is left for the reader to report.
    pub(crate) fn head(self, n: usize) -> Result<Vec<u8>> {
        let mut head = Vec::new();
        match self.reader.take(n as u64).read_to_end(&mut head) {
            Err(error) if self.compression == Compression::None => Err(Error::io(&self.path, "read", error)),
            _ => Ok(head),
        }
    }

    /// Memory-maps the file; a compressed one is decompressed into a temporary file first.
    pub(crate) fn map(path: &Path) -> Result<Mmap> {
        let mut source = Self::open(path, None)?;
        let file = if source.compression == Compression::None {
            File::open(path).map_err(|source| Error::io(path, "open", source))?
        } else {
            let mut plain = tempfile::tempfile().map_err(|source| Error::io(path, "unpack", source))?;
            io::copy(&mut source.reader, &mut plain).map_err(|error| Self::explain(path, source.compression, error))?;
            plain
        };
        map_file(&file).map_err(|source| Error::io(path, "map", source))
    }

    pub(crate) fn compression(&self) -> Compression {
        self.compression
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer)
    }
}

/// Reports how far a file has been read, about every megabyte.
struct Counted<'a> {
    inner: File,
    done: u64,
    total: u64,
    progress: OnProgress<'a>,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        const STEP: u64 = 1 << 20;
        let n = self.inner.read(buffer)?;
        let before = self.done / STEP;
        self.done += n as u64;
        if let Some(progress) = self.progress
            && (self.done / STEP > before || self.done == self.total)
        {
            progress(self.done, self.total);
        }
        Ok(n)
    }
}
