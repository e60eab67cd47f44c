//! A trained model on a stream that grows.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ctdg::event::EventStream;
use ctdg::live::{LiveStore, Snapshot};
use hopedgn_tensor::Parameters;

use super::{LinkPredictor, Trained};
use crate::collate::FeatureTables;
use crate::config::Config;
use crate::file_format::sha256;
use crate::memory::MemoryState;
use crate::predict::{History, Resident, ScoreMeaning};
use crate::{Error, Events, Result};

/// A trained model for a stream that grows. What it keeps of the events, a node memory or walks, goes forward with them, so that no score
/// goes through all events again.
///
/// Every answer equals that of the same model on a file of the events so far, to the last bit.
///
/// ```
/// # use hopedgn::{Events, LinkPredictor};
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
/// use hopedgn::{LivePredictor, ctdg::live::NewEvent};
/// use std::sync::Arc;
///
/// let live = LivePredictor::new(&predictor);
/// let mut store = live.store(&events)?;
/// let before = live.at(&Arc::new(store.snapshot()))?;
/// store.append(&[NewEvent::new("3", "zoe", 100.0)])?;
/// let after = live.at(&Arc::new(store.snapshot()))?; // a `LinkPredictor`
/// assert!(after.knows_source("zoe")? && !before.knows_source("zoe")?);
/// assert_eq!(after.recommend("3", 20, 101.0)?.len(), before.recommend("3", 20, 101.0)?.len() + 1);
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug)]
pub struct LivePredictor {
    trained: Arc<Trained>,
    resident: Arc<Resident>,
    /// What the events are called.
    name: String,
    /// Feature tables of so many events.
    tables: Mutex<(usize, FeatureTables)>,
}

/// The node memory of a model after the first events of a stream; see [`LivePredictor::memory_state`].
#[derive(Debug, Clone)]
pub struct ResidentMemory {
    /// Of nodes in the order of their first event.
    state: MemoryState,
    n_events: usize,
    /// The SHA-256 of the weights it was computed with.
    weights: String,
}

/// Keys of the number of events and of the weights in a file.
const N_EVENTS: &str = "n-events";
const WEIGHTS: &str = "weights";

impl ResidentMemory {
    /// How many events it has seen.
    #[must_use]
    pub fn n_events(&self) -> usize {
        self.n_events
    }

    /// As the bytes of a safetensors file with a checksum.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let metadata = [(N_EVENTS, self.n_events.to_string()), (WEIGHTS, self.weights.clone())];
        let metadata: BTreeMap<String, String> =
            metadata.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Ok(hopedgn_tensor::save_with_extras(&Parameters::default(), None, &self.state.tensors(), &metadata)?)
    }

    /// From the bytes of [`ResidentMemory::to_bytes`]; refused if they have changed.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let metadata = hopedgn_tensor::load_metadata(bytes)?;
        let n_events = metadata.get(N_EVENTS).and_then(|n| n.parse().ok()).ok_or(Error::NoMemory)?;
        let weights = metadata.get(WEIGHTS).cloned().ok_or(Error::NoMemory)?;
        Ok(Self { state: MemoryState::of(hopedgn_tensor::load_extras(bytes)?)?, n_events, weights })
    }
}

impl LivePredictor {
    /// The model of `predictor`, for streams that begin with its events.
    #[must_use]
    pub fn new(predictor: &LinkPredictor) -> Self {
        Self {
            trained: Arc::clone(&predictor.trained),
            resident: Arc::default(),
            name: predictor.events.name().to_owned(),
            tables: Mutex::new((predictor.events.len(), predictor.tables.clone())),
        }
    }

    /// A store that begins with `events` and keeps what the model reads.
    pub fn store(&self, events: &EventStream) -> Result<LiveStore> {
        Ok(LiveStore::new(events, self.reads_statistics())?)
    }

    /// All settings.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.trained.config
    }

    /// What the scores mean.
    pub fn score_meaning(&self) -> Result<ScoreMeaning> {
        ScoreMeaning::of(&self.trained.weights)
    }

    /// The run folder, if there is one.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.trained.folder.as_deref()
    }

    /// Whether the model reads statistics of pairs: a store that keeps them answers at once.
    #[must_use]
    pub fn reads_statistics(&self) -> bool {
        self.trained.model.reads_statistics()
    }

    /// The model, looking back on the events of a snapshot.
    pub fn at(&self, snapshot: &Arc<Snapshot>) -> Result<LinkPredictor> {
        let stream = snapshot.stream();
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if tables.0 != stream.len() {
            *tables = (stream.len(), FeatureTables::of(stream)?);
        }
        Ok(LinkPredictor {
            trained: Arc::clone(&self.trained),
            events: Events::of_snapshot(&self.name, snapshot),
            tables: tables.1.clone(),
            store: OnceLock::from(snapshot.store().clone()),
            snapshot: Some(Arc::clone(snapshot)),
            resident: Some(Arc::clone(&self.resident)),
        })
    }

    /// The node memory as far as it has gone, of a model that has one: to begin from there with [`LivePredictor::restore_memory`].
    pub fn memory_state(&self) -> Result<Option<ResidentMemory>> {
        let Some((state, n_events)) = self.resident.memory_state()? else { return Ok(None) };
        Ok(Some(ResidentMemory { state, n_events, weights: self.digest()? }))
    }

    /// The SHA-256 of the weights.
    fn digest(&self) -> Result<String> {
        let mut bytes = Vec::new();
        for (_, name, tensor) in self.trained.weights.parameters()?.iter() {
            bytes.extend(name.bytes());
            bytes.extend(tensor.values().iter().flat_map(|value| value.to_le_bytes()));
        }
        Ok(sha256(&bytes))
    }

    /// Continues with a node memory that has seen the first events of a snapshot. Refused if other weights computed it.
    pub fn restore_memory(&self, snapshot: &Arc<Snapshot>, memory: &ResidentMemory) -> Result<()> {
        let at = self.at(snapshot)?;
        let form = self.trained.model.memory().ok_or(Error::NoMemory)?;
        if memory.weights != self.digest()? {
            return Err(Error::Progress { detail: "its memories are those of another model".to_owned() });
        }
        let history: History<'_> = at.past()?;
        self.resident.restore_memory(&history, &self.trained.weights, form, (&memory.state, memory.n_events))
    }
}
