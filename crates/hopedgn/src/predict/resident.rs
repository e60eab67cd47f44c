//! What a model keeps of the events of a live stream, so that no score goes through all of them again.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ctdg::event::{EventId, EventStream, NodeId};
use ctdg::store::Store;
use ctdg::walks::{TemporalWalks, WalkConfig};
use hopedgn_tensor::Weights;

use super::History;
use crate::memory::{Memory, MemoryForm, MemoryState};
use crate::score::PairScorer;
use crate::{Error, Result};

/// Node memory and temporal walks up to some event of a live stream. One score at a time reads them.
#[derive(Debug, Default)]
pub(crate) struct Resident {
    walks: Mutex<KeptWalks>,
    memory: Mutex<KeptMemory>,
}

impl Resident {
    pub(super) fn walks(&self) -> MutexGuard<'_, KeptWalks> {
        self.walks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn memory(&self) -> MutexGuard<'_, KeptMemory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The node memory with the number of events it has seen, if there is one. Nodes are in the order of their first event, so that it
    /// does not matter how they are numbered.
    pub(crate) fn memory_state(&self) -> Result<Option<(MemoryState, usize)>> {
        let kept = self.memory();
        let Some(ReplayedMemory { memory, n_replayed }) = &kept.0 else { return Ok(None) };
        let nodes = in_order_of_appearance(memory.stream(), *n_replayed);
        Ok(Some((memory.snapshot()?.of_nodes(&nodes)?, *n_replayed)))
    }

    /// Continues with a node memory that has seen the first `n_replayed` events of `history`.
    pub(crate) fn restore_memory(
        &self,
        history: &History<'_>,
        weights: &Weights,
        form: MemoryForm,
        (state, n_replayed): (&MemoryState, usize),
    ) -> Result<()> {
        let mut replayed = ReplayedMemory::new(history, weights, form)?;
        let nodes = in_order_of_appearance(history.stream, n_replayed);
        if n_replayed > history.stream.len() || state.n_nodes() != nodes.len() {
            return Err(Error::Progress { detail: "its memories are those of other events".to_owned() });
        }
        let consumed: Vec<EventId> = (0..n_replayed).map(EventId::from_index).collect();
        replayed.memory.restore(&state.renumbered(&nodes, history.stream.n_nodes())?, &consumed)?;
        replayed.n_replayed = n_replayed;
        self.memory().0 = Some(replayed);
        Ok(())
    }
}

/// The nodes of the first `n` events, in the order of their first one.
fn in_order_of_appearance(stream: &EventStream, n: usize) -> Vec<NodeId> {
    let mut is_known = vec![false; stream.n_nodes()];
    let ends = stream.src().iter().zip(stream.dst()).take(n).flat_map(|(&src, &dst)| [src, dst]);
    ends.filter(|node| !std::mem::replace(&mut is_known[node.index()], true)).collect()
}

/// Walks over the events so far.
#[derive(Debug, Default)]
pub(super) struct KeptWalks(Option<TemporalWalks>);

impl KeptWalks {
    /// The walks, to be advanced over `store`. They are to be [put back](Self::put_back).
    pub(super) fn take_for(&mut self, store: &Store, config: WalkConfig) -> TemporalWalks {
        let mut walks = self.0.take().unwrap_or_else(|| TemporalWalks::new(store, config));
        walks.follow(store);
        walks
    }

    pub(super) fn put_back(&mut self, walks: Option<TemporalWalks>) {
        self.0 = walks;
    }
}

/// A node memory over the events so far.
#[derive(Debug, Default)]
pub(super) struct KeptMemory(pub(super) Option<ReplayedMemory>);

impl KeptMemory {
    /// Whether it has seen no more than `n` events.
    pub(super) fn is_before(&self, n: usize) -> bool {
        self.0.as_ref().is_none_or(|kept| kept.n_replayed <= n)
    }
}

/// A node memory that has seen the first events of a stream, in whole batches.
#[derive(Debug)]
pub(super) struct ReplayedMemory {
    pub(super) memory: Memory,
    n_replayed: usize,
}

impl ReplayedMemory {
    /// Before the first event.
    pub(super) fn new(history: &History<'_>, weights: &Weights, form: MemoryForm) -> Result<Self> {
        let mut memory = Memory::new(weights.device(), form, history.stream, &[])?;
        memory.use_time_scale_of(history.memory.ok_or(Error::NoMemory)?);
        Ok(Self { memory, n_replayed: 0 })
    }

    /// Takes in whole batches up to event `n`.
    pub(super) fn advance_to(
        &mut self,
        n: usize,
        batch: usize,
        scorer: &mut PairScorer<'_>,
        weights: &Weights,
    ) -> Result<()> {
        while self.n_replayed < n {
            let end = n.min(self.n_replayed + batch);
            let events: Vec<EventId> = (self.n_replayed..end).map(EventId::from_index).collect();
            self.take_in(&events, scorer, weights)?;
            self.n_replayed = end;
        }
        Ok(())
    }

    /// Updates the memory with `events`.
    pub(super) fn take_in(&mut self, events: &[EventId], scorer: &mut PairScorer<'_>, weights: &Weights) -> Result<()> {
        scorer.update_memory(weights, &mut self.memory, events)
    }
}
