//! Guards against damaged Parquet files, on which the decoder can panic or loop forever.

use std::cell::Cell;
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use bytes::{Buf, Bytes};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

/// A file in which reading past the end is an error: the decoder skips the bytes that a damaged header claims one by one,
/// and would treat an ordinary end of file as a short read and continue.
pub(crate) struct Bounded(pub(crate) Bytes);

/// Bytes whose end is an error.
pub(crate) struct StrictEnd(Bytes);

impl Length for Bounded {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }
}

impl ChunkReader for Bounded {
    type T = StrictEnd;

    fn get_read(&self, start: u64) -> Result<StrictEnd, ParquetError> {
        Ok(StrictEnd(self.get_bytes(start, self.0.len().saturating_sub(usize::try_from(start)?))?))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let start = usize::try_from(start)?;
        let end = start.checked_add(length).filter(|&end| end <= self.0.len());
        let end = end.ok_or_else(|| ParquetError::EOF("a part beyond the end of the file".into()))?;
        Ok(self.0.slice(start..end))
    }
}

impl Read for StrictEnd {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.0.is_empty() && !buffer.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let n = buffer.len().min(self.0.len());
        self.0.copy_to_slice(&mut buffer[..n]);
        Ok(n)
    }
}

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// The result of `decode`, or `None` if it panicked; the panic is neither printed nor propagated. For decoders of other projects, which
/// panic on damaged input.
///
/// ```
/// use ctdg::dataset::catch_quietly;
///
/// assert_eq!(catch_quietly(|| 1), Some(1));
/// assert_eq!(catch_quietly(|| -> u8 { panic!("damaged") }), None);
/// ```
pub fn catch_quietly<T>(decode: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = take_hook();
        set_hook(Box::new(move |panic| {
            if !GUARDED.get() {
                previous(panic);
            }
        }));
    });
    GUARDED.set(true);
    let decoded = catch_unwind(AssertUnwindSafe(decode)).ok();
    GUARDED.set(false);
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_inside_is_caught_and_panics_outside_are_reported() {
        assert_eq!(catch_quietly(|| 1), Some(1));
        assert_eq!(catch_quietly(|| -> u8 { panic!("damaged") }), None);
        assert!(!GUARDED.get(), "later panics are reported again");
    }
}
