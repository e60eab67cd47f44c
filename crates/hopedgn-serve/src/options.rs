//! How a server is set up.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use hopedgn::{Device, ModelRegistry};

/// How a server is set up.
///
/// ```
/// use hopedgn_serve::ServeOptions;
///
/// let options = ServeOptions::new("runs/mine", "live");
/// assert!(options.address.ip().is_loopback());
/// ```
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// The run folder of the model.
    pub run: PathBuf,
    /// The folder of the log.
    pub log: PathBuf,
    /// Where to listen; loopback unless there are tokens.
    pub address: SocketAddr,
    /// How long, in units of time of the data, an event may be late: events are held back so long and put in order. 0 takes them in at
    /// once and refuses late ones.
    pub lateness: f64,
    /// Who may do what.
    pub tokens: Tokens,
    /// The certificate, if connections are encrypted.
    pub tls: Option<TlsFiles>,
    /// Bounds on what clients may ask for.
    pub limits: Limits,
    /// Models of one's own.
    pub registry: ModelRegistry,
    /// Where to compute.
    pub device: Device,
    /// Events after which the index is built again in the background, at least.
    pub rebuild_after: usize,
    /// Keys and ids of events that a repetition is recognised by, each.
    pub remembered_keys: usize,
    /// How long requests may take to finish when the server stops.
    pub grace: Duration,
}

impl ServeOptions {
    /// A server of `run` with its events in `log`, on the loopback address.
    pub fn new(run: impl Into<PathBuf>, log: impl Into<PathBuf>) -> Self {
        Self {
            run: run.into(),
            log: log.into(),
            address: SocketAddr::from(([127, 0, 0, 1], 8080)),
            lateness: 0.0,
            tokens: Tokens::default(),
            tls: None,
            limits: Limits::default(),
            registry: ModelRegistry::default(),
            device: Device::cpu(),
            rebuild_after: 1 << 16,
            remembered_keys: 1_000_000,
            grace: Duration::from_secs(10),
        }
    }
}

/// Bearer tokens: without any, everyone who reaches the server may do everything.
#[derive(Clone, Default)]
pub struct Tokens {
    /// For questions.
    pub read: Vec<String>,
    /// For questions, events and models.
    pub write: Vec<String>,
}

/// Without the tokens themselves, which must not be in any log.
impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} for reading, {} for writing", self.read.len(), self.write.len())
    }
}

/// A certificate and its key, as PEM files.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The certificate, and those it is signed with.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Bounds on what clients may ask for.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of a request's body.
    pub body_bytes: usize,
    /// Events of a request.
    pub events: usize,
    /// Pairs of a request.
    pub pairs: usize,
    /// Destinations of a recommendation.
    pub top: usize,
    /// Connections at a time.
    pub connections: usize,
    /// Requests with events that are under way.
    pub waiting_events: usize,
    /// Requests for scores that are under way.
    pub waiting_scores: usize,
    /// Requests for recommendations and explanations that are under way.
    pub waiting_answers: usize,
    /// Bytes of events that are under way.
    pub waiting_event_bytes: usize,
    /// Bytes of pairs to score that are under way.
    pub waiting_score_bytes: usize,
    /// Time for the head of a request, also on an idle connection.
    pub head: Duration,
    /// Time for a whole request.
    pub request: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 32 << 20,
            events: 100_000,
            pairs: 10_000,
            top: 10_000,
            connections: 1024,
            waiting_events: 256,
            waiting_scores: 64,
            waiting_answers: 3,
            waiting_event_bytes: 16 << 20,
            waiting_score_bytes: 84 << 10,
            head: Duration::from_secs(10),
            request: Duration::from_secs(30),
        }
    }
}
