//! Scores of any pairs at any times, for people who ask.

use ctdg::event::{EventId, EventStream};
use ctdg::mite::PairQuery;
use ctdg::store::Store;
use hopedgn_tensor::Weights;

use crate::collate::{FeatureTables, PairBatch};
use crate::memory::{Memory, MemoryState};
use crate::model::Model;
use crate::score::PairScorer;
use crate::{Error, Result};

/// Pairs scored at once.
const AT_ONCE: usize = 1024;

/// What is looked back on.
#[derive(Debug)]
pub struct Past<'a> {
    /// All events.
    pub stream: &'a EventStream,
    /// What the model remembered after training, if it does: by it gaps of time are long or short.
    pub remembered: Option<&'a MemoryState>,
    /// Their past.
    pub store: &'a Store,
    /// Their features.
    pub tables: &'a FeatureTables,
    /// Events that a memory takes in at a time.
    pub batch: usize,
}

/// The logit of each of `queries`, the same whatever else is asked. A model with a memory first lives through all that came
/// before, from the first event on: what it remembered in training may be later than what is asked about. It takes in whole
/// batches, and then what has begun of the next one; that it forgets again before the next time that is asked about.
///
/// `done` is called with the number of new scores.
pub fn answer(
    past: &Past<'_>,
    model: &dyn Model,
    weights: &Weights,
    queries: &[PairQuery],
    done: &mut dyn FnMut(usize),
) -> Result<Vec<f32>> {
    let mut scorer = PairScorer::new(model, past.tables, past.store);
    let mut logits = vec![0.0; queries.len()];
    let Some(form) = model.memory() else {
        for (some, logits) in queries.chunks(AT_ONCE).zip(logits.chunks_mut(AT_ONCE)) {
            logits.copy_from_slice(&scorer.logits(weights, PairBatch::new(some).padded_alone())?);
            done(some.len());
        }
        return Ok(logits);
    };
    let mut memory = Memory::new(weights.device(), form, past.stream, &[])?;
    memory.use_time_scale_of(past.remembered.ok_or(Error::NoMemory)?);
    let mut order: Vec<usize> = (0..queries.len()).collect();
    order.sort_by(|&one, &other| queries[one].time.total_cmp(&queries[other].time));
    let events: Vec<EventId> = (0..).map(EventId).take(past.stream.len()).collect();
    let batch = past.batch.max(1);
    let mut n_over = 0;
    for same_time in order.chunk_by(|&one, &other| queries[one].time == queries[other].time) {
        let n_before = past.store.cut(queries[same_time[0]].time).n_events();
        let n_whole = n_before - n_before % batch;
        for over in events[n_over..n_whole].chunks(batch) {
            scorer.logits_with(weights, &PairQuery::of(past.stream, over), &mut memory, over)?;
        }
        n_over = n_whole;
        let begun = &events[n_whole..n_before];
        let kept = if begun.is_empty() { None } else { Some(memory.snapshot()?) };
        if kept.is_some() {
            scorer.logits_with(weights, &PairQuery::of(past.stream, begun), &mut memory, begun)?;
        }
        for some in same_time.chunks(AT_ONCE) {
            let asked: Vec<PairQuery> = some.iter().map(|&at| queries[at]).collect();
            let scores = scorer.logits_with(weights, &asked, &mut memory, &[])?;
            some.iter().zip(scores).for_each(|(&at, score)| logits[at] = score);
            done(some.len());
        }
        if let Some(kept) = kept {
            memory.restore(&kept, &events[..n_whole])?;
        }
    }
    Ok(logits)
}
