//! Logits of arbitrary pairs at arbitrary times, and the resolution of node names.

mod candidates;
mod destinations;
mod meaning;
mod named_pairs;
mod reason;
mod resident;

use ctdg::event::{EventId, EventStream};
use ctdg::mite::PairQuery;
use ctdg::store::Store;
use ctdg::walks::TemporalWalks;
use hopedgn_tensor::Weights;

use crate::Result;
use crate::collate::{FeatureTables, PairBatch};
use crate::memory::{Memory, MemoryState};
use crate::model::Model;
use crate::score::PairScorer;

pub use candidates::Candidates;
pub(crate) use candidates::near;
pub use destinations::Destinations;
pub use meaning::{Likelihood, Prediction, ScoreMeaning};
pub use named_pairs::{KnownNodes, NamedPairs, PairSides};
pub use reason::Reason;
use resident::ReplayedMemory;
pub(crate) use resident::Resident;

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
    resident_logits(history, None, model, weights, queries, on_progress)
}

/// The same with what the model keeps of a live stream, if it does.
pub(crate) fn resident_logits(
    history: &History<'_>,
    resident: Option<&Resident>,
    model: &dyn Model,
    weights: &Weights,
    queries: &[PairQuery],
    on_progress: &mut dyn FnMut(usize),
) -> Result<Vec<f32>> {
    let scored = |scorer: &mut PairScorer<'_>, queries: &[PairQuery], memory: Option<&mut Memory>| match memory {
        Some(memory) => scorer.logits_with(weights, queries, memory, &[]),
        None => scorer.logits(weights, PairBatch::new(queries).padded_alone()),
    };
    scores((history, resident), model, weights, queries, &scored, on_progress)
}

/// The same with both outputs for each query, of the partner and of the pair.
pub(crate) fn both_scores(
    history: &History<'_>,
    resident: Option<&Resident>,
    model: &dyn Model,
    weights: &Weights,
    queries: &[PairQuery],
    on_progress: &mut dyn FnMut(usize),
) -> Result<Vec<[f32; 2]>> {
    let scored = |scorer: &mut PairScorer<'_>, queries: &[PairQuery], memory: Option<&mut Memory>| match memory {
        Some(memory) => scorer.both_scores_with(weights, queries, memory),
        None => scorer.both_scores(weights, PairBatch::new(queries).padded_alone()),
    };
    scores((history, resident), model, weights, queries, &scored, on_progress)
}

/// Scores a batch of queries, with the node memory at their time.
type ScoreBatch<'f, S> = dyn Fn(&mut PairScorer<'_>, &[PairQuery], Option<&mut Memory>) -> Result<Vec<S>> + 'f;

fn scores<S: Copy + Default>(
    (history, resident): (&History<'_>, Option<&Resident>),
    model: &dyn Model,
    weights: &Weights,
    queries: &[PairQuery],
    score: &ScoreBatch<'_, S>,
    on_progress: &mut dyn FnMut(usize),
) -> Result<Vec<S>> {
    let mut scores = vec![S::default(); queries.len()];
    let mut by_time: Vec<usize> = (0..queries.len()).collect();
    by_time.sort_by(|&a, &b| queries[a].time.total_cmp(&queries[b].time));
    let mut score_some = |scorer: &mut PairScorer<'_>, mut memory: Option<&mut Memory>, some: &[usize]| -> Result<()> {
        for indices in some.chunks(BATCH) {
            let batch: Vec<PairQuery> = indices.iter().map(|&index| queries[index]).collect();
            let of_batch = score(scorer, &batch, memory.as_deref_mut())?;
            indices.iter().zip(of_batch).for_each(|(&index, score)| scores[index] = score);
            on_progress(indices.len());
        }
        Ok(())
    };
    let Some(form) = model.memory() else {
        let mut kept = resident.map(Resident::walks);
        let walks = match (model.walks(), &mut kept) {
            (Some(config), Some(kept)) => Some(kept.take_for(history.store, config)),
            (Some(config), None) => Some(TemporalWalks::new(history.store, config)),
            (None, _) => None,
        };
        let mut scorer = PairScorer::with_walks(model, history.tables, history.store, walks);
        // Walks go forward in time only.
        let scored = score_some(&mut scorer, None, &by_time);
        if let Some(kept) = &mut kept {
            kept.put_back(scorer.into_walks());
        }
        return scored.map(|()| scores);
    };
    let mut scorer = PairScorer::new(model, history.tables, history.store);
    let n_whole = |time: f64| {
        let n_before = history.store.cut(time).n_events();
        (n_before - n_before % history.batch.max(1), n_before)
    };
    let earliest = by_time.first().map_or(0, |&first| n_whole(queries[first].time).0);
    let mut kept = resident.map(Resident::memory);
    let mut apart = None;
    let place = kept.as_deref_mut().filter(|kept| kept.is_before(earliest)).map_or(&mut apart, |kept| &mut kept.0);
    let mut with_memory = |replayed: &mut ReplayedMemory| -> Result<()> {
        replayed.memory.follow(history.stream)?;
        for same_time in by_time.chunk_by(|&a, &b| queries[a].time == queries[b].time) {
            let (n_whole, n_before) = n_whole(queries[same_time[0]].time);
            replayed.advance_to(n_whole, history.batch.max(1), &mut scorer, weights)?;
            let partial: Vec<EventId> = (n_whole..n_before).map(EventId::from_index).collect();
            let snapshot = if partial.is_empty() { None } else { Some(replayed.memory.snapshot()?) };
            if snapshot.is_some() {
                replayed.take_in(&partial, &mut scorer, weights)?;
            }
            score_some(&mut scorer, Some(&mut replayed.memory), same_time)?;
            if let Some(snapshot) = snapshot {
                // Counts of walks are in the snapshot.
                replayed.memory.restore(&snapshot, &[])?;
            }
        }
        Ok(())
    };
    if place.is_none() {
        *place = Some(ReplayedMemory::new(history, weights, form)?);
    }
    let scored = place.as_mut().map_or(Ok(()), &mut with_memory);
    if scored.is_err() {
        // Half-way through a batch.
        *place = None;
    }
    scored.map(|()| scores)
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
