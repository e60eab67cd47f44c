//! Logits of arbitrary pairs at arbitrary times, and the resolution of node names.

mod destinations;
mod meaning;
mod named_pairs;
mod reason;

use ctdg::event::{EventId, EventStream};
use ctdg::mite::PairQuery;
use ctdg::store::Store;
use hopedgn_tensor::Weights;

use crate::collate::{FeatureTables, PairBatch};
use crate::memory::{Memory, MemoryState};
use crate::model::Model;
use crate::score::PairScorer;
use crate::{Error, Result};

pub use destinations::Destinations;
pub use meaning::{Likelihood, Prediction, ScoreMeaning};
pub use named_pairs::{KnownNodes, NamedPairs, PairSides};
pub use reason::Reason;

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
    let scored = |scorer: &mut PairScorer<'_>, queries: &[PairQuery], memory: Option<&mut Memory<'_>>| match memory {
        Some(memory) => scorer.logits_with(weights, queries, memory, &[]),
        None => scorer.logits(weights, PairBatch::new(queries).padded_alone()),
    };
    scores(history, model, weights, queries, &scored, on_progress)
}

/// The same with both outputs for each query, of the partner and of the pair.
pub(crate) fn both_scores(
    history: &History<'_>,
    model: &dyn Model,
    weights: &Weights,
    queries: &[PairQuery],
    on_progress: &mut dyn FnMut(usize),
) -> Result<Vec<[f32; 2]>> {
    let scored = |scorer: &mut PairScorer<'_>, queries: &[PairQuery], memory: Option<&mut Memory<'_>>| match memory {
        Some(memory) => scorer.both_scores_with(weights, queries, memory),
        None => scorer.both_scores(weights, PairBatch::new(queries).padded_alone()),
    };
    scores(history, model, weights, queries, &scored, on_progress)
}

/// Scores a batch of queries, with the node memory at their time.
type ScoreBatch<'f, S> = dyn Fn(&mut PairScorer<'_>, &[PairQuery], Option<&mut Memory<'_>>) -> Result<Vec<S>> + 'f;

fn scores<S: Copy + Default>(
    history: &History<'_>,
    model: &dyn Model,
    weights: &Weights,
    queries: &[PairQuery],
    score: &ScoreBatch<'_, S>,
    on_progress: &mut dyn FnMut(usize),
) -> Result<Vec<S>> {
    let mut scorer = PairScorer::new(model, history.tables, history.store);
    let mut scores = vec![S::default(); queries.len()];
    let mut by_time: Vec<usize> = (0..queries.len()).collect();
    by_time.sort_by(|&a, &b| queries[a].time.total_cmp(&queries[b].time));
    let Some(form) = model.memory() else {
        // Walks go forward in time only.
        for indices in by_time.chunks(BATCH) {
            let batch: Vec<PairQuery> = indices.iter().map(|&index| queries[index]).collect();
            let of_batch = score(&mut scorer, &batch, None)?;
            indices.iter().zip(of_batch).for_each(|(&index, score)| scores[index] = score);
            on_progress(indices.len());
        }
        return Ok(scores);
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
            let of_batch = score(&mut scorer, &batch, Some(&mut memory))?;
            indices.iter().zip(of_batch).for_each(|(&index, score)| scores[index] = score);
            on_progress(indices.len());
        }
        if let Some(snapshot) = snapshot {
            memory.restore(&snapshot, &events[..n_whole])?;
        }
    }
    Ok(scores)
}

/// The logistic function: the score of a logit where it is no probability, see [`ScoreMeaning::Separation`].
///
/// ```
/// assert_eq!(hopedgn::predict::sigmoid(0.0), 0.5);
/// ```
#[must_use]
pub fn sigmoid(logit: f32) -> f32 {
    1.0 / (1.0 + (-logit).exp())
}
