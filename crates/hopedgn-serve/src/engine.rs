//! The events and the model as they are now, for everyone who asks.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use ctdg::live::Snapshot;
use hopedgn::config::folder_stem;
use hopedgn::{Events, LinkPredictor, LivePredictor};
use tokio::sync::watch;

use crate::monitor::Monitor;
use crate::{Result, ServeOptions};

/// What answers are made from. Readers take what is there and keep it while they need it.
#[derive(Debug)]
pub(crate) struct Engine {
    events: RwLock<Arc<Snapshot>>,
    model: RwLock<Arc<LoadedModel>>,
    state: State,
    monitor: Monitor,
    /// The number of events, for those who wait for more.
    changes: watch::Sender<u64>,
}

/// What a status says beside events and model.
#[derive(Debug)]
pub(crate) struct State {
    /// Whether the log could be written the last time.
    read_only: AtomicBool,
    /// Whether the server is about to end.
    stopping: AtomicBool,
    held: AtomicU64,
    /// The bits of a time: earlier events are refused.
    watermark: AtomicU64,
    log_bytes: AtomicU64,
    since_rebuild: AtomicU64,
}

/// A model under a name.
#[derive(Debug)]
pub(crate) struct LoadedModel {
    pub(crate) name: String,
    pub(crate) live: LivePredictor,
}

impl LoadedModel {
    /// The run in `folder`, which was trained on the first of `events`.
    pub(crate) fn load(folder: &Path, events: &Events, options: &ServeOptions) -> Result<Self> {
        let loader = LinkPredictor::loader().registry(options.registry.clone()).device(options.device.clone());
        let predictor = loader.load(folder, events)?;
        let path = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).filter(|name| name != "run");
        // A run beside its log has no name of its own.
        let of_settings = || {
            let config = predictor.config();
            format!("{}-{}", folder_stem(&config.data), config.model.name().as_str())
        };
        Ok(Self { name: name.unwrap_or_else(of_settings), live: LivePredictor::new(&predictor) })
    }
}

/// Model and events at one time.
pub(crate) struct View {
    pub(crate) model: Arc<LoadedModel>,
    pub(crate) predictor: LinkPredictor,
    pub(crate) snapshot: Arc<Snapshot>,
}

impl View {
    /// The number of events that the answers look back on.
    pub(crate) fn seq(&self) -> u64 {
        self.snapshot.stream().len() as u64
    }
}

impl Engine {
    pub(crate) fn new(model: LoadedModel, events: Snapshot) -> Self {
        Self {
            changes: watch::Sender::new(events.stream().len() as u64),
            events: RwLock::new(Arc::new(events)),
            model: RwLock::new(Arc::new(model)),
            state: State::default(),
            monitor: Monitor::default(),
        }
    }

    pub(crate) fn events(&self) -> Arc<Snapshot> {
        Arc::clone(&self.events.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn model(&self) -> Arc<LoadedModel> {
        Arc::clone(&self.model.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn view(&self) -> hopedgn::Result<View> {
        let (model, snapshot) = (self.model(), self.events());
        Ok(View { predictor: model.live.at(&snapshot)?, model, snapshot })
    }

    /// Shows new events to everyone who asks from now on.
    pub(crate) fn publish(&self, events: Snapshot) {
        let n_events = events.stream().len() as u64;
        *self.events.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(events);
        self.changes.send_replace(n_events);
    }

    /// Answers with another model from now on; returns the one before.
    pub(crate) fn swap(&self, model: LoadedModel) -> Arc<LoadedModel> {
        std::mem::replace(&mut *self.model.write().unwrap_or_else(PoisonError::into_inner), Arc::new(model))
    }

    /// Tells when there are more events.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(crate) fn monitor(&self) -> &Monitor {
        &self.monitor
    }

    pub(crate) fn state(&self) -> &State {
        &self.state
    }
}

impl Default for State {
    fn default() -> Self {
        let number = || AtomicU64::new(0);
        Self {
            read_only: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            held: number(),
            watermark: AtomicU64::new(f64::NEG_INFINITY.to_bits()),
            log_bytes: number(),
            since_rebuild: number(),
        }
    }
}

impl State {
    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only.load(Ordering::Relaxed)
    }

    pub(crate) fn set_read_only(&self, is: bool) {
        self.read_only.store(is, Ordering::Relaxed);
        metrics::gauge!("hopedgn_read_only").set(if is { 1.0 } else { 0.0 });
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    pub(crate) fn set_stopping(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Events that wait until none can come before them.
    pub(crate) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// Earlier events are refused; none before the first event.
    pub(crate) fn watermark(&self) -> Option<f64> {
        Some(f64::from_bits(self.watermark.load(Ordering::Relaxed))).filter(|time| time.is_finite())
    }

    pub(crate) fn log_bytes(&self) -> u64 {
        self.log_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn since_rebuild(&self) -> u64 {
        self.since_rebuild.load(Ordering::Relaxed)
    }

    /// Notes what the intake has done.
    pub(crate) fn note(&self, held: usize, watermark: f64, log_bytes: u64, since_rebuild: usize) {
        self.watermark.store(watermark.to_bits(), Ordering::Relaxed);
        self.held.store(held as u64, Ordering::Relaxed);
        self.log_bytes.store(log_bytes, Ordering::Relaxed);
        self.since_rebuild.store(since_rebuild as u64, Ordering::Relaxed);
        metrics::gauge!("hopedgn_events_held").set(held as f64);
        metrics::gauge!("hopedgn_log_bytes").set(log_bytes as f64);
    }
}
