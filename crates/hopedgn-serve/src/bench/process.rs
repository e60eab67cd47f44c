//! A server as a child process.

use std::fs::OpenOptions;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::client::{Client, get};
use crate::{Error, Result};

/// Makes the command that starts a server whose log is in a folder. On its stdout the server prints one JSON document: its `address`, or
/// an `error` if it cannot start.
pub type Launch<'a> = &'a (dyn Fn(&Path) -> Command + Sync);

/// A server as a child process, which ends with this value.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    address: SocketAddr,
    /// Open as long as the server runs: it may print.
    _stdout: ChildStdout,
    stderr: PathBuf,
    ready_after: Duration,
}

/// A server that has not said yet where it listens.
#[derive(Debug)]
pub(super) struct Starting {
    child: Option<Child>,
    stderr: PathBuf,
    start: Instant,
}

impl Starting {
    /// Starts a server with its log in `state`; its stderr goes to a file beside that.
    pub(super) fn spawn(launch: Launch<'_>, state: &Path) -> Result<Self> {
        let stderr = stderr_of(state);
        let file = OpenOptions::new().create(true).append(true).open(&stderr);
        let file = file.map_err(|source| Error::io("write", stderr.display(), source))?;
        let mut command = launch(state);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(file);
        let start = Instant::now();
        let child = command.spawn().map_err(not_started)?;
        Ok(Self { child: Some(child), stderr, start })
    }

    /// Waits until the server takes requests.
    pub(super) fn ready(mut self) -> Result<ServerProcess> {
        let none = || not_started(io::Error::other("it printed nothing"));
        let mut child = self.child.take().ok_or_else(none)?;
        let mut stdout = child.stdout.take().ok_or_else(none)?;
        let printed = serde_json::Deserializer::from_reader(&mut stdout).into_iter::<Value>().next();
        let address = printed.as_ref().and_then(|document| address(document.as_ref().ok()?));
        let Some(address) = address else {
            let _ = child.kill();
            let _ = child.wait();
            let message = printed.and_then(|document| Some(document.ok()?["error"]["message"].as_str()?.to_owned()));
            return Err(not_started(io::Error::other(message.unwrap_or_else(|| last_lines(&self.stderr)))));
        };
        let mut server =
            ServerProcess { child, address, _stdout: stdout, stderr: self.stderr.clone(), ready_after: Duration::ZERO };
        let status = server.client()?.ask(&get("/readyz")).map(|answer| answer.status).map_err(not_started)?;
        if status != 200 {
            return Err(not_started(io::Error::other(format!("/readyz answered {status}"))));
        }
        server.ready_after = self.start.elapsed();
        Ok(server)
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

fn address(document: &Value) -> Option<SocketAddr> {
    document["address"].as_str()?.strip_prefix("http://")?.parse().ok()
}

fn not_started(source: io::Error) -> Error {
    Error::io("start", "the server", source)
}

/// Kills a process, and waits until it is gone.
fn end(child: &mut Option<Child>) {
    if let Some(mut child) = child.take() {
        // It may have ended by itself.
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Where the server with its log in `state` writes its stderr.
pub(super) fn stderr_of(state: &Path) -> PathBuf {
    state.with_extension("stderr")
}

fn last_lines(file: &Path) -> String {
    let text = std::fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(5)..].join("; ")
}

impl ServerProcess {
    /// Starts a server with its log in `state` and waits until it takes requests.
    pub fn start(launch: Launch<'_>, state: &Path) -> Result<Self> {
        Starting::spawn(launch, state)?.ready()
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How long it took until it answered.
    #[must_use]
    pub fn ready_after(&self) -> Duration {
        self.ready_after
    }

    /// A connection to it.
    pub fn client(&self) -> Result<Client> {
        Client::connect(self.address).map_err(|source| Error::io("connect to", self.address, source))
    }

    /// The document at `path`.
    pub(super) fn document(&self, path: &str) -> Result<Value> {
        let mut client = self.client()?;
        let answer = client.ask(&get(path)).map_err(|source| Error::io("ask", path, source))?;
        Ok(answer.json())
    }

    /// Resident memory in bytes, where the system reports it.
    #[must_use]
    pub fn resident(&self) -> Option<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
    }

    /// Whether it wrote of a panic.
    #[must_use]
    pub fn has_panicked(&self) -> bool {
        has_panicked(&self.stderr)
    }

    /// Asks it to end (SIGTERM) and waits until it has. Where there are no signals, kills it.
    pub fn stop(mut self) -> Result<()> {
        if cfg!(unix) {
            let asked = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
            asked.map_err(|source| Error::io("stop", "the server", source))?;
            self.child.wait().map_err(|source| Error::io("stop", "the server", source))?;
        }
        Ok(())
    }
}

pub(super) fn has_panicked(stderr: &Path) -> bool {
    std::fs::read(stderr).is_ok_and(|text| String::from_utf8_lossy(&text).contains("panicked at"))
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
