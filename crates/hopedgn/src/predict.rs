//! Logits of arbitrary pairs at arbitrary times, and the resolution of node names.

mod named_pairs;

use ctdg::event::{EventId, EventStream};
use ctdg::mite::PairQuery;
use ctdg::store::Store;
use hopedgn_tensor::Weights;

use crate::collate::{FeatureTables, PairBatch};
use crate::memory::{Memory, MemoryState};
use crate::model::Model;
use crate::score::PairScorer;
use crate::{Error, Result};

pub use named_pairs::{KnownNodes, NamedPairs, PairSides};

/// Pairs scored in one batch.
const BATCH: usize = 1024;

/// The events that predictions look back on.
///
/// See [`logits`].
#[derive(Debug)]
pub struct History<'a> {
    /// All events.
    pub stream: &'a EventStream,
    /// Their index.
    pub store: &'a Store,
    /// Their features.
    pub tables: &'a FeatureTables,
    /// The node memory after training, if the model has one: its statistics scale elapsed times.
    pub memory: Option<&'a MemoryState>,
    /// Events that a memory is updated with at a time.
    pub batch: usize,
}

/// The logit of each of `queries`. A logit does not depend on the other queries.
///
/// A model with a memory replays all events before each query time, starting from an empty memory: the memory after training
/// may be later than the query. Whole batches are replayed once; the rest, up to the query time, is rolled back afterwards.
///
/// `on_progress` is called with the number of newly scored pairs.
///
/// # Complexity
/// One forward pass a pair; with a memory, one more for every event before the latest query time.
///
/// ```
/// # use hopedgn::{*, ctdg::split::SplitMode, model::{ModelConfig, build}, task::Task, tensor::Weights};
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// # let task = Task::new(&events, SplitMode::Dyglib)?;
/// # let config = ModelConfig::new(ModelName::HopeDgn).with_known(&["d-channel=4", "length=4"])?;
/// # let (model, parameters) = build(&config, task.tables.widths(), 0)?;
/// # let weights = Weights::new(&Device::cpu(), parameters)?;
/// use hopedgn::predict::{History, logits};
///
/// let (store, tables) = (&task.full_store, &task.tables);
/// let history = History { stream: &events, store, tables, memory: None, batch: 50 };
/// let queries = task.queries(&task.split.test);
/// let all = logits(&history, &*model, &weights, &queries, &mut |_| {})?;
/// assert_eq!(logits(&history, &*model, &weights, &queries[..1], &mut |_| {})?, all[..1]);
/// # Ok::<(), hopedgn::Error>(())
/// ```
pub fn logits(
    history: &History<'_>,
    model: &dyn Model,
    weights: &Weights,
    queries: &[PairQuery],
    on_progress: &mut dyn FnMut(usize),
) -> Result<Vec<f32>> {
    let mut scorer = PairScorer::new(model, history.tables, history.store);
    let mut logits = vec![0.0; queries.len()];
    let mut by_time: Vec<usize> = (0..queries.len()).collect();
    by_time.sort_by(|&a, &b| queries[a].time.total_cmp(&queries[b].time));
    let Some(form) = model.memory() else {
        // Walks go forward in time only.
        for indices in by_time.chunks(BATCH) {
            let batch: Vec<PairQuery> = indices.iter().map(|&index| queries[index]).collect();
            let scores = scorer.logits(weights, PairBatch::new(&batch).padded_alone())?;
            indices.iter().zip(scores).for_each(|(&index, score)| logits[index] = score);
            on_progress(indices.len());
        }
        return Ok(logits);
    };
    let mut memory = Memory::new(weights.device(), form, history.stream, &[])?;
    memory.use_time_scale_of(history.memory.ok_or(Error::NoMemory)?);
    let events: Vec<EventId> = history.stream.ids().collect();
    let batch = history.batch.max(1);
    let mut n_replayed = 0;
    for same_time in by_time.chunk_by(|&a, &b| queries[a].time == queries[b].time) {
        let n_before = history.store.cut(queries[same_time[0]].time).n_events();
        let n_whole = n_before - n_before % batch;
        for events in events[n_replayed..n_whole].chunks(batch) {
            scorer.logits_with(weights, &PairQuery::of(history.stream, events), &mut memory, events)?;
        }
        n_replayed = n_whole;
        let partial = &events[n_whole..n_before];
        let snapshot = if partial.is_empty() { None } else { Some(memory.snapshot()?) };
        if snapshot.is_some() {
            scorer.logits_with(weights, &PairQuery::of(history.stream, partial), &mut memory, partial)?;
        }
        for indices in same_time.chunks(BATCH) {
            let batch: Vec<PairQuery> = indices.iter().map(|&index| queries[index]).collect();
            let scores = scorer.logits_with(weights, &batch, &mut memory, &[])?;
            indices.iter().zip(scores).for_each(|(&index, score)| logits[index] = score);
            on_progress(indices.len());
        }
        if let Some(snapshot) = snapshot {
            memory.restore(&snapshot, &events[..n_whole])?;
        }
    }
    Ok(logits)
}

/// The probability of a logit.
///
/// ```
/// assert_eq!(hopedgn::predict::sigmoid(0.0), 0.5);
/// ```
#[must_use]
pub fn sigmoid(logit: f32) -> f32 {
    1.0 / (1.0 + (-logit).exp())
}
