//! Node memory of TGN, JODIE, DyRep and PINT: a state per node, and the message that updates it.
//!
//! Reading a batch applies each node's pending message to its state without storing the result. Consuming the batch stores those
//! states for the nodes of its events, then gives each of them a new message. A batch therefore never sees its own events.
//! Bookkeeping (which node has a message, of which event) is on the host; states and messages live on the device of the
//! weights.
//!
//! A memory advances by whole batches: an event of the previous batch is seen even if its time equals that of the query.

mod checkpoint;
mod read;

use std::sync::Arc;

use ctdg::event::{EventId, EventStream};
use ctdg::mite::PairQuery;
use ctdg::walk_counts::{SelfLoops, WalkCounts};
use hopedgn_tensor::{Device, StateTable};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::fmt::grouped;
use crate::system::check_memory;

pub use checkpoint::MemoryState;
pub use read::{MemoryRead, MemoryUpdate};

/// Which of a node's messages of one batch updates its memory.
///
/// ```
/// use hopedgn::{Config, ModelName, Preset, config::MessageOrder, config::ModelSettings};
///
/// let config = Config::resolve(ModelName::Jodie, &[Preset::DyGLib], &[])?;
/// assert!(matches!(config.model.settings, ModelSettings::Jodie(of) if of.message_order == MessageOrder::Dyglib));
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MessageOrder {
    /// That of its newest event.
    #[default]
    Newest,
    /// As in DyGLib: that of its newest event as a destination, where there is one.
    Dyglib,
}

/// What a model keeps of each node.
///
/// See [`Memory`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryForm {
    /// Width of a state.
    pub width: usize,
    /// Width of a message.
    pub message: usize,
    /// Which message of a batch counts.
    pub message_order: MessageOrder,
    /// If walks between nodes are counted as well ([`MemoryRead::positions`]): what a self-loop counts.
    pub positions: Option<SelfLoops>,
}

impl MemoryForm {
    /// Bytes of the memory of so many nodes, without counts of walks, which depend on the events.
    ///
    /// ```
    /// use hopedgn::memory::{MemoryForm, MessageOrder};
    ///
    /// let form = MemoryForm { width: 172, message: 444, message_order: MessageOrder::Newest, positions: None };
    /// assert_eq!(form.n_bytes(5_000_000) >> 30, 11); // GiB
    /// ```
    #[must_use]
    pub fn n_bytes(&self, n_nodes: usize) -> u64 {
        let tables = size_of::<f32>() * (self.width + self.message);
        let bookkeeping = 2 * size_of::<Option<EventId>>() + size_of::<(u64, u32)>();
        (n_nodes as u64 + 1) * (tables + bookkeeping) as u64
    }

    /// Refuses a memory of so many nodes if `n_copies` of it do not fit in `allowed` bytes, or in what the system has.
    pub(crate) fn check_fits(&self, n_nodes: usize, n_copies: u64, allowed: Option<u64>) -> Result<()> {
        check_memory(
            || format!("the memories of {} nodes", grouped(n_nodes)),
            n_copies * self.n_bytes(n_nodes),
            allowed,
        )
    }
}

/// The memory of the nodes of a stream, zero at first.
///
/// ```
/// # use hopedgn::{*, ctdg::split::SplitMode, model::{ModelConfig, build}, task::Task, tensor::Weights};
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// # let task = Task::new(&events, SplitMode::Dyglib)?;
/// # let config = ModelConfig::new(ModelName::Jodie).with_known(&["d-out=4", "d-time=4"])?;
/// # let (model, parameters) = build(&config, task.tables.widths(), 0)?;
/// # let weights = Weights::new(&Device::cpu(), parameters)?;
/// use hopedgn::{memory::Memory, score::PairScorer};
///
/// let form = model.memory().expect("JODIE has a memory");
/// let mut memory = Memory::new(&Device::cpu(), form, &events, &task.split.train)?;
/// let mut scorer = PairScorer::new(&*model, &task.tables, &task.full_store);
/// let (first, next) = (&task.split.train[..5], task.queries(&task.split.train[5..10]));
/// let empty = scorer.logits_with(&weights, &next, &mut memory, &[])?;
/// scorer.logits_with(&weights, &task.queries(first), &mut memory, first)?; // stores their messages
/// assert_ne!(scorer.logits_with(&weights, &next, &mut memory, &[])?, empty);
/// memory.reset()?;
/// assert_eq!(scorer.logits_with(&weights, &next, &mut memory, &[])?, empty);
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug)]
pub struct Memory {
    form: MemoryForm,
    stream: EventStream,
    /// States, `[N + 1, width]`; the last row is for unknown nodes.
    values: Arc<StateTable>,
    /// Messages, `[N + 1, message]`.
    messages: Arc<StateTable>,
    /// The event of each node's pending message.
    pending: Vec<Option<EventId>>,
    /// The event whose message last updated each node's state.
    applied: Vec<Option<EventId>>,
    positions: Option<WalkCounts>,
    shifts: [Shift; 2],
    /// For each node the last batch it was in, and its place there.
    marks: Vec<(u64, u32)>,
    batch: u64,
}

impl Memory {
    /// The zero memory of the nodes of `stream`; gaps are standardised by those of the `train` events.
    pub fn new(device: &Device, form: MemoryForm, stream: &EventStream, train: &[EventId]) -> Result<Self> {
        if stream.len() as u64 > checkpoint::MAX_EVENTS {
            let what = "events for a model with a memory";
            return Err(ctdg::Error::from(ctdg::Problem::TooMany { what, max: checkpoint::MAX_EVENTS }).into());
        }
        let n_nodes = stream.n_nodes();
        Ok(Self {
            form,
            stream: stream.clone(),
            values: Arc::new(StateTable::zeros(device, n_nodes + 1, form.width)?),
            messages: Arc::new(StateTable::zeros(device, n_nodes + 1, form.message)?),
            pending: vec![None; n_nodes + 1],
            applied: vec![None; n_nodes + 1],
            positions: form.positions.map(|self_loops| WalkCounts::new(n_nodes + 1).with_self_loops(self_loops)),
            shifts: Shift::of(stream, train),
            marks: vec![(0, 0); n_nodes + 1],
            batch: 0,
        })
    }

    /// Sets all states to zero and drops all messages.
    pub fn reset(&mut self) -> Result<()> {
        self.values.clear()?;
        self.messages.clear()?;
        self.pending.fill(None);
        self.applied.fill(None);
        if let Some(positions) = &mut self.positions {
            positions.reset();
        }
        Ok(())
    }

    /// Continues with `stream`, which begins with the same events and nodes: later ones have no state yet.
    pub(crate) fn follow(&mut self, stream: &EventStream) -> Result<()> {
        self.stream = stream.clone();
        if stream.n_nodes() < self.pending.len() {
            return Ok(());
        }
        // Room for more nodes, so that not every new one moves all others. The last row is for unknown nodes and zero.
        let n_rows = stream.n_nodes() + stream.n_nodes() / 2 + 1;
        for table in [&mut self.values, &mut self.messages] {
            *table = Arc::new(table.grown(n_rows)?);
        }
        self.pending.resize(n_rows, None);
        self.applied.resize(n_rows, None);
        self.marks.resize(n_rows, (0, 0));
        if let Some(positions) = &mut self.positions {
            positions.grow(n_rows);
        }
        Ok(())
    }

    /// The stream whose nodes it remembers.
    pub(crate) fn stream(&self) -> &EventStream {
        &self.stream
    }

    /// The pairs of `events`, at their own times.
    pub(crate) fn queries(&self, events: &[EventId]) -> Vec<PairQuery> {
        PairQuery::of(&self.stream, events)
    }

    /// The time of a node's last update, its pending message included; the start of the stream where there is none.
    fn last_change(&self, node: usize) -> f64 {
        let last = self.pending[node].or(self.applied[node]);
        last.map_or_else(|| start_time(&self.stream), |event| self.stream.event(event).time)
    }
}

/// The time from which first gaps are counted. DyGLib counts from 0, which is the start of its own files; with Unix times every
/// first gap would be half a century long.
fn start_time(stream: &EventStream) -> f64 {
    stream.times().first().copied().unwrap_or(0.0)
}

/// Mean and standard deviation of the gaps between a node's events in one role, which standardise JODIE's gaps.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Shift {
    mean: f64,
    deviation: f64,
}

impl Shift {
    /// Of sources and of destinations. A node's first gap is counted from the start of the stream.
    fn of(stream: &EventStream, events: &[EventId]) -> [Self; 2] {
        [0, 1].map(|role| {
            let mut last = vec![start_time(stream); stream.n_nodes()];
            let gaps: Vec<f64> = events
                .iter()
                .map(|&id| {
                    let event = stream.event(id);
                    let node = [event.src, event.dst][role].index();
                    event.time - std::mem::replace(&mut last[node], event.time)
                })
                .collect();
            let n = gaps.len().max(1) as f64;
            let mean = gaps.iter().sum::<f64>() / n;
            let variance = gaps.iter().map(|gap| (gap - mean) * (gap - mean)).sum::<f64>() / n;
            Self { mean, deviation: if variance > 0.0 { variance.sqrt() } else { 1.0 } }
        })
    }

    /// Mean and deviation as exact sums of three `f32` each.
    #[expect(clippy::cast_possible_truncation, reason = "each part is the rounding error of the previous ones")]
    fn parts(&self) -> [f32; 6] {
        let mut parts = [0.0; 6];
        for (parts, mut rest) in parts.chunks_exact_mut(3).zip([self.mean, self.deviation]) {
            for part in parts {
                *part = rest as f32;
                rest -= f64::from(*part);
            }
        }
        parts
    }

    fn of_parts(parts: &[f32]) -> Self {
        // Smallest first, so that no sum is rounded.
        let sum = |parts: &[f32]| parts.iter().rev().map(|&part| f64::from(part)).sum();
        Self { mean: sum(&parts[..3]), deviation: sum(&parts[3..]) }
    }

    #[expect(clippy::cast_possible_truncation, reason = "a model's input")]
    fn apply(self, gap: f64) -> f32 {
        ((gap - self.mean) / self.deviation) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_standardised_per_role() {
        let stream = EventStream::from_events(vec![(0, 1, 2.0), (1, 0, 4.0), (0, 1, 8.0)]).unwrap();
        let events: Vec<EventId> = (0..3).map(EventId).collect();
        let [src, dst] = Shift::of(&stream, &events);
        // From time 2 on; source: node 0 after 0, 1 after 2, 0 after 6. Destination: node 1 after 0, 0 after 2, 1 after 6.
        let deviation = (56.0_f64 / 9.0).sqrt();
        assert!((src.mean - 8.0 / 3.0).abs() < 1e-12 && (src.deviation - deviation).abs() < 1e-12 && src == dst);
        assert!(src.apply(8.0 / 3.0).abs() < 1e-6);
    }
}
