//! Where ranks meet: each says where it listens, and gets the addresses of all when the last one has come.

use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hopedgn_tensor::{Error, Result};
use serde::{Deserialize, Serialize};

use super::GroupOptions;
use super::frame::{Kind, frame, read_frame};
use super::ring::Ring;

/// How often the server looks for new ranks.
const POLL: Duration = Duration::from_millis(20);

/// How often those who wait hear who is missing.
const NEWS: Duration = Duration::from_secs(1);

/// How long one side waits for a line or a connection of the other.
const REPLY: Duration = Duration::from_secs(10);

/// What a rank says first.
#[derive(Debug, Serialize, Deserialize)]
struct Hello {
    version: String,
    rank: usize,
    n_ranks: usize,
    /// Where it listens.
    port: u16,
}

/// What it hears.
#[derive(Debug, Serialize, Deserialize)]
enum Reply {
    /// Ranks that are not here yet.
    Missing(Vec<usize>),
    /// Number of this meeting, and the addresses of all ranks.
    Formed(u64, Vec<SocketAddr>),
    Refused(String),
}

/// A server at which the ranks of a group meet, again and again if ranks are lost and replaced. It ends when dropped.
///
/// The [module](super) has an example.
#[derive(Debug)]
pub struct Rendezvous {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Rendezvous {
    /// Listens at `address`, `host:port`; port 0 takes a free one.
    pub fn new(address: &str, n_ranks: usize) -> crate::Result<Self> {
        let failed = |error: io::Error| {
            let detail = format!(
                "could not listen at {address}: {error}; MASTER_ADDR must be an address of the machine of rank 0, and MASTER_PORT free"
            );
            Error::NoGroup { detail }
        };
        let listener = listen(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut meeting = Meeting { n_ranks, waiting: (0..n_ranks).map(|_| None).collect(), number: 0 };
        let is_over = Arc::clone(&stop);
        let run = move || {
            let mut last_news = Instant::now();
            while !is_over.load(Ordering::Relaxed) {
                while let Ok((stream, from)) = listener.accept() {
                    // Whoever cannot be understood is no rank; others still wait.
                    let _ = meeting.admit(stream, from.ip());
                }
                meeting.form();
                if last_news.elapsed() >= NEWS {
                    meeting.tell_missing();
                    last_news = Instant::now();
                }
                thread::sleep(POLL);
            }
        };
        let thread = thread::Builder::new().name("hopedgn-rendezvous".to_owned()).spawn(run).map_err(failed)?;
        Ok(Self { address, stop, thread: Some(thread) })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Rendezvous {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread does not panic.
            let _ = thread.join();
        }
    }
}

/// Listens at the address, or at its port on all interfaces where the name leads to another machine, such as a load balancer.
fn listen(address: &str) -> io::Result<TcpListener> {
    match TcpListener::bind(address) {
        Err(error) if error.kind() == ErrorKind::AddrNotAvailable => {
            let port = address.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).unwrap_or(0);
            TcpListener::bind((IpAddr::from([0, 0, 0, 0]), port))
        }
        bound => bound,
    }
}

/// The ranks that wait for each other.
#[derive(Debug)]
struct Meeting {
    n_ranks: usize,
    waiting: Vec<Option<Waiting>>,
    number: u64,
}

#[derive(Debug)]
struct Waiting {
    stream: TcpStream,
    /// Where the rank listens.
    address: SocketAddr,
}

impl Waiting {
    fn tell(&mut self, reply: &Reply) -> io::Result<()> {
        tell(&mut self.stream, reply)
    }

    /// Whether it still waits: whoever waits sends nothing.
    fn is_here(&self) -> bool {
        let waits = |stream: &TcpStream| -> io::Result<bool> {
            stream.set_nonblocking(true)?;
            let found = stream.peek(&mut [0]);
            stream.set_nonblocking(false)?;
            Ok(matches!(found, Err(error) if error.kind() == ErrorKind::WouldBlock))
        };
        waits(&self.stream).unwrap_or(false)
    }
}

impl Meeting {
    fn admit(&mut self, stream: TcpStream, from: IpAddr) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(REPLY))?;
        stream.set_write_timeout(Some(REPLY))?;
        let mut reader = BufReader::new(stream);
        let hello: Hello = line(&mut reader)?;
        let mut waiting = Waiting { stream: reader.into_inner(), address: (from, hello.port).into() };
        let own = env!("CARGO_PKG_VERSION");
        let refusal = if hello.version != own {
            Some(format!("found hopedgn {}, expected {own}: all ranks must be the same program", hello.version))
        } else if hello.n_ranks != self.n_ranks || hello.rank >= self.n_ranks {
            let (Hello { rank, n_ranks, .. }, expected) = (&hello, self.n_ranks);
            Some(format!(
                "found rank {rank} of {n_ranks}, expected one of {expected}; WORLD_SIZE must be the same everywhere"
            ))
        } else {
            None
        };
        if let Some(reason) = refusal {
            return waiting.tell(&Reply::Refused(reason));
        }
        let rank = hello.rank;
        if let Some(mut other) = self.waiting[rank].replace(waiting).filter(Waiting::is_here) {
            let reason =
                format!("found another process with rank {rank}, expected one; give each process its own RANK");
            other.tell(&Reply::Refused(reason))?;
        }
        Ok(())
    }

    /// If all are here, tells them where the others are.
    fn form(&mut self) {
        if self.waiting.iter().any(Option::is_none) {
            return;
        }
        self.waiting.iter_mut().for_each(|waiting| *waiting = waiting.take().filter(Waiting::is_here));
        let addresses: Option<Vec<SocketAddr>> =
            self.waiting.iter().map(|waiting| waiting.as_ref().map(|waiting| waiting.address)).collect();
        let Some(addresses) = addresses else { return };
        self.number += 1;
        let formed = Reply::Formed(self.number, addresses);
        for mut waiting in self.waiting.iter_mut().filter_map(Option::take) {
            // Whoever does not hear it is missed by its neighbours, and all meet again.
            let _ = waiting.tell(&formed);
        }
    }

    fn tell_missing(&mut self) {
        let missing: Vec<usize> = (0..self.n_ranks).filter(|&rank| self.waiting[rank].is_none()).collect();
        for waiting in &mut self.waiting {
            let told = waiting.as_mut().is_none_or(|waiting| waiting.tell(&Reply::Missing(missing.clone())).is_ok());
            if !told {
                *waiting = None;
            }
        }
    }
}

fn tell(stream: &mut TcpStream, message: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_string(message)?;
    text.push('\n');
    stream.write_all(text.as_bytes())
}

fn line<T: for<'de> Deserialize<'de>>(reader: &mut BufReader<TcpStream>) -> io::Result<T> {
    let mut text = String::new();
    if reader.read_line(&mut text)? == 0 {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_str(&text)?)
}

/// Why a rank has no ring.
enum NotYet {
    Refused(String),
    /// Something that may pass.
    Failed(io::Error),
}

impl From<io::Error> for NotYet {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Meets the other ranks and connects to both neighbours.
pub(super) fn meet(options: &GroupOptions) -> Result<Ring> {
    /// Between two attempts.
    const PAUSE: Duration = Duration::from_millis(100);
    let GroupOptions { rank, address, patience, .. } = options;
    let (start, mut missing) = (Instant::now(), Vec::new());
    loop {
        let error = match attempt(options, start + *patience, &mut missing) {
            Ok(ring) => return Ok(ring),
            Err(NotYet::Refused(detail)) => return Err(Error::NoGroup { detail }),
            Err(NotYet::Failed(error)) => error,
        };
        if start.elapsed() > *patience {
            let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
            let what = match missing.as_slice() {
                [] => format!("rank {rank} found no process at {address} ({error})"),
                missing => format!("found no rank {} at {address}", missing.join(", ")),
            };
            let seconds = patience.as_secs();
            let detail = format!(
                "{what} within {seconds} s; start every rank from 0 to {} with the same MASTER_ADDR and MASTER_PORT",
                options.n_ranks - 1
            );
            return Err(Error::NoGroup { detail });
        }
        thread::sleep(PAUSE);
    }
}

fn attempt(options: &GroupOptions, end: Instant, missing: &mut Vec<usize>) -> Result<Ring, NotYet> {
    let GroupOptions { rank, n_ranks, silence, .. } = *options;
    let mut server = connect(&options.address)?;
    server.set_read_timeout(Some(REPLY))?;
    server.set_write_timeout(Some(REPLY))?;
    let listener = TcpListener::bind((server.local_addr()?.ip(), 0))?;
    let version = env!("CARGO_PKG_VERSION").to_owned();
    tell(&mut server, &Hello { version, rank, n_ranks, port: listener.local_addr()?.port() })?;
    let mut replies = BufReader::new(server);
    let (number, addresses) = loop {
        match line(&mut replies)? {
            Reply::Missing(ranks) if Instant::now() > end => {
                *missing = ranks;
                return Err(io::Error::from(ErrorKind::TimedOut).into());
            }
            Reply::Missing(ranks) => *missing = ranks,
            Reply::Refused(reason) => return Err(NotYet::Refused(reason)),
            Reply::Formed(number, addresses) => break (number, addresses),
        }
    };
    missing.clear();
    let next = addresses.get((rank + 1) % n_ranks).ok_or(ErrorKind::InvalidData).map_err(io::Error::from)?;
    let mut next = TcpStream::connect_timeout(next, REPLY)?;
    next.write_all(&frame(Kind::Hello, number, |bytes| bytes.extend((rank as u64).to_le_bytes())))?;
    let previous = accept(&listener, number, (rank + n_ranks - 1) % n_ranks)?;
    Ok(Ring::new((rank, n_ranks), next, previous, silence)?)
}

fn connect(address: &str) -> io::Result<TcpStream> {
    let mut error = io::Error::from(ErrorKind::NotFound);
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, REPLY) {
            Ok(stream) => return Ok(stream),
            Err(other) => error = other,
        }
    }
    Err(error)
}

/// Waits for the connection of the previous rank in this meeting.
fn accept(listener: &TcpListener, meeting: u64, previous: usize) -> io::Result<TcpStream> {
    const PAUSE: Duration = Duration::from_millis(2);
    listener.set_nonblocking(true)?;
    let start = Instant::now();
    while start.elapsed() < REPLY {
        let Ok((mut stream, _)) = listener.accept() else {
            thread::sleep(PAUSE);
            continue;
        };
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(REPLY))?;
        let is_previous = read_frame(&mut stream).is_ok_and(|hello| {
            (hello.kind, hello.operation) == (Kind::Hello, meeting) && hello.content == (previous as u64).to_le_bytes()
        });
        if is_previous {
            return Ok(stream);
        }
    }
    Err(ErrorKind::TimedOut.into())
}
