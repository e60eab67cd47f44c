//! Memory of the program: an allocation that fails, or that goes beyond `--max-memory`, ends it with a message and exit status 2
//! instead of an abort.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::failure::Failure;

/// The system's allocator with a limit. A program of your own sets it with
/// `#[global_allocator] static ALLOCATOR: CheckedAllocator = CheckedAllocator;`.
#[derive(Debug, Clone, Copy, Default)]
pub struct CheckedAllocator;

/// Blocks below this size are not counted: they are many, and little of what a limit is about.
const COUNTED: usize = 1 << 20;

/// Bytes in counted blocks.
static IN_USE: AtomicUsize = AtomicUsize::new(0);
/// Bytes allowed in them.
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);
/// Whether the message is a JSON document on stdout as well.
static JSON: AtomicBool = AtomicBool::new(false);

/// Sets the limit in bytes, and the form of the message.
pub(crate) fn set_limit(limit: Option<u64>, json: bool) {
    let limit = limit.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(usize::MAX);
    LIMIT.store(limit, Ordering::Relaxed);
    JSON.store(json, Ordering::Relaxed);
}

fn take(size: usize) {
    if size >= COUNTED {
        let before = IN_USE.fetch_add(size, Ordering::Relaxed);
        let limit = LIMIT.load(Ordering::Relaxed);
        if before.saturating_add(size) > limit {
            stop(size, Some(limit));
        }
    }
}

fn give(size: usize) {
    if size >= COUNTED {
        IN_USE.fetch_sub(size, Ordering::Relaxed);
    }
}

fn checked(block: *mut u8, size: usize) -> *mut u8 {
    if block.is_null() {
        stop(size, None);
    }
    block
}

#[expect(unsafe_code, reason = "an allocator is unsafe by its nature")]
// SAFETY: every call is passed on to the system's allocator with the same arguments.
unsafe impl GlobalAlloc for CheckedAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: the caller's promise.
        checked(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: the caller's promise.
        checked(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        give(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        give(layout.size());
        take(size);
        // SAFETY: the caller's promise.
        checked(unsafe { System.realloc(block, layout, size) }, size)
    }
}

/// Ends the program. Nothing here may allocate.
#[cold]
fn stop(size: usize, limit: Option<usize>) -> ! {
    let mut text = Text::default();
    let mib = |bytes: usize| bytes >> 20;
    let _ = write!(
        text,
        "out of memory: found {} MiB in use and {} MiB more needed, expected ",
        mib(in_use(size)),
        mib(size)
    );
    let _ = match limit {
        Some(limit) => write!(text, "at most {} MiB; allow more with --max-memory", mib(limit)),
        None => write!(text, "the system to give them; end other programs, or use a machine with more memory"),
    };
    let mut message = Text::default();
    let _ = writeln!(message, "error: {}", text.as_str());
    write_to(2, &message);
    if JSON.load(Ordering::Relaxed) {
        let mut document = Text::default();
        let (code, message) = (Failure::OUT_OF_MEMORY, text.as_str());
        let _ = writeln!(document, "{{\"error\": {{\"code\": \"{code}\", \"message\": \"{message}\"}}}}");
        write_to(1, &document);
    }
    exit()
}

/// Bytes in use without the block that is asked for.
fn in_use(size: usize) -> usize {
    let counted = if size >= COUNTED { size } else { 0 };
    IN_USE.load(Ordering::Relaxed).saturating_sub(counted)
}

/// Text in place: the heap is full.
struct Text {
    bytes: [u8; 400],
    len: usize,
}

impl Default for Text {
    fn default() -> Self {
        Self { bytes: [0; 400], len: 0 }
    }
}

impl Text {
    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let rest = &mut self.bytes[self.len..];
        let fits = rest.get_mut(..text.len()).ok_or(std::fmt::Error)?;
        fits.copy_from_slice(text.as_bytes());
        self.len += text.len();
        Ok(())
    }
}

/// Writes to a file descriptor past the locks of the standard streams, which this or another thread may hold.
#[cfg(unix)]
#[expect(unsafe_code, reason = "descriptors 1 and 2 are open, and are not closed here")]
fn write_to(descriptor: i32, text: &Text) {
    use std::io::Write as _;
    use std::mem::ManuallyDrop;
    use std::os::fd::FromRawFd;
    // SAFETY: the descriptor is used once and never closed.
    let mut file = ManuallyDrop::new(unsafe { std::fs::File::from_raw_fd(descriptor) });
    let _ = file.write_all(text.as_str().as_bytes());
}

#[cfg(not(unix))]
fn write_to(descriptor: i32, text: &Text) {
    use std::io::Write as _;
    let _ = match descriptor {
        1 => std::io::stdout().write_all(text.as_str().as_bytes()),
        _ => std::io::stderr().write_all(text.as_str().as_bytes()),
    };
}

/// Ends the program at once: handlers that run at an ordinary exit may allocate.
#[cfg(unix)]
#[expect(unsafe_code, reason = "a call of the C library")]
fn exit() -> ! {
    unsafe extern "C" {
        safe fn _exit(status: i32) -> !;
    }
    _exit(2)
}

#[cfg(not(unix))]
#[expect(clippy::exit, reason = "there is no memory to return through")]
fn exit() -> ! {
    std::process::exit(2)
}
