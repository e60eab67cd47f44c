//! Frames on a TCP connection: kind, number of the operation, length, checksum, content.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// What a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// The first frame of a connection: the rank that sends.
    Hello = 1,
    /// A part of an all-gather.
    Part = 2,
    /// Sums over the ranks so far.
    Partial = 3,
    /// Sums over all ranks.
    Total = 4,
    /// Nothing: the sender lives.
    KeepAlive = 5,
    /// The group is broken, and why.
    Abort = 6,
}

impl Kind {
    const ALL: [Self; 6] = [Self::Hello, Self::Part, Self::Partial, Self::Total, Self::KeepAlive, Self::Abort];
}

/// The first bytes of every frame.
const MAGIC: [u8; 4] = *b"HDGN";

/// Magic, kind, checksum of the content, number of the operation, length of the content.
const HEADER: usize = 4 + 4 + 4 + 8 + 8;

/// A longer frame is not one of ours.
const MAX_LEN: u64 = 1 << 34;

/// A frame as bytes; `write` appends the content.
pub(super) fn frame(kind: Kind, operation: u64, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = vec![0; HEADER];
    write(&mut bytes);
    let (header, content) = bytes.split_at_mut(HEADER);
    let fields = [
        &MAGIC[..],
        &u32::from(kind as u8).to_le_bytes(),
        &crc32fast::hash(content).to_le_bytes(),
        &operation.to_le_bytes(),
        &(content.len() as u64).to_le_bytes(),
    ];
    header.copy_from_slice(&fields.concat());
    bytes
}

/// Sends frames to one rank, from a thread of its own: sending never waits. While there is nothing to send, it shows that this process
/// lives.
#[derive(Debug)]
pub(super) struct Writer {
    /// `None` only while dropped.
    queue: Option<Sender<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Sends a sign of life after each `pause` without a frame.
    pub(super) fn new(stream: TcpStream, pause: Duration) -> io::Result<Self> {
        let (queue, frames) = mpsc::channel::<Vec<u8>>();
        let run = move || {
            let mut stream = stream;
            loop {
                let frame = match frames.recv_timeout(pause) {
                    Ok(frame) => frame,
                    Err(RecvTimeoutError::Timeout) => frame(Kind::KeepAlive, 0, |_| {}),
                    Err(RecvTimeoutError::Disconnected) => break,
                };
                if stream.write_all(&frame).is_err() {
                    break;
                }
            }
            // Best effort: the process at the other end may be gone.
            let _ = stream.shutdown(Shutdown::Write);
        };
        let thread = thread::Builder::new().name("hopedgn-ring".to_owned()).spawn(run)?;
        Ok(Self { queue: Some(queue), thread: Some(thread) })
    }

    /// False if the connection is closed.
    pub(super) fn send(&self, frame: Vec<u8>) -> bool {
        self.queue.as_ref().is_some_and(|queue| queue.send(frame).is_ok())
    }
}

impl Drop for Writer {
    /// Sends what is queued.
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // The thread does not panic.
            let _ = thread.join();
        }
    }
}

/// A frame that was received.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) kind: Kind,
    pub(super) operation: u64,
    pub(super) content: Vec<u8>,
}

/// Reads the next frame that is not a sign of life. What goes wrong is said of the sender: "closed its connection".
pub(super) fn read_frame(stream: &mut TcpStream) -> Result<Frame, String> {
    loop {
        let mut header = [0; HEADER];
        fill(stream, &mut header)?;
        let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let (checksum, operation, len) = (word(8), long(12), long(20));
        let kind = Kind::ALL.into_iter().find(|&kind| u32::from(kind as u8) == word(4));
        let (Some(kind), true, true) = (kind, header[..4] == MAGIC, len <= MAX_LEN) else {
            return Err("sent bytes that are no frame: another program, or another version".to_owned());
        };
        let mut content = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
        fill(stream, &mut content)?;
        if crc32fast::hash(&content) != checksum {
            return Err("sent a frame that arrived damaged: its checksum is another one".to_owned());
        }
        if kind != Kind::KeepAlive {
            return Ok(Frame { kind, operation, content });
        }
    }
}

fn fill(stream: &mut TcpStream, mut bytes: &mut [u8]) -> Result<(), String> {
    while !bytes.is_empty() {
        match stream.read(bytes) {
            Ok(0) => return Err("closed its connection".to_owned()),
            Ok(n) => bytes = &mut bytes[n..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                let seconds = stream.read_timeout().ok().flatten().unwrap_or_default().as_secs_f64();
                return Err(format!("was silent for {seconds} s"));
            }
            Err(error) => return Err(format!("is out of reach: {error}")),
        }
    }
    Ok(())
}
