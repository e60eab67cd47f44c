//! Frozen embeddings of the source node of every event.

use std::sync::Arc;

use ctdg::event::EventId;
use hopedgn_tensor::Tensor;

use super::Labels;
use crate::callbacks::{Callback, Stage};
use crate::evaluate::{Evaluator, ModelScorer, Scorer};
use crate::metrics::Parts;
use crate::system::check_memory;
use crate::{Error, Result};

/// A batch of the node classifier.
///
/// Part of [`Sources`].
#[derive(Debug, Clone)]
pub struct Batch {
    /// Embeddings of the source nodes, `[B, d]`.
    pub nodes: Arc<Tensor>,
    /// Labels, 0 or 1.
    pub targets: Vec<f32>,
}

/// Embeddings of the source nodes of all events of each part, in batches in order of time.
///
/// ```
/// use hopedgn::classify::Sources;
///
/// assert_eq!(Sources::n_bytes(1_000, 172), 688_000); // of `f32` embeddings
/// ```
#[derive(Debug)]
pub struct Sources {
    /// The batches of each part.
    pub batches: Parts<Vec<Batch>>,
    /// Width of an embedding, `d`.
    pub width: usize,
}

impl Sources {
    /// Memory of the embeddings of so many events, in bytes.
    #[must_use]
    pub fn n_bytes(n_events: usize, width: usize) -> u64 {
        4 * n_events as u64 * width as u64
    }

    /// Embeds the source node of every event of `labels`, part after part, starting with an empty memory.
    ///
    /// Refuses to start if more than `max_memory` bytes are needed.
    pub fn embed(
        of: &Evaluator<'_>,
        labels: &Labels,
        max_memory: Option<u64>,
        callback: &mut dyn Callback,
    ) -> Result<Self> {
        let width = of.model.width();
        let n_events: usize = labels.events().iter().sum();
        let needed = Self::n_bytes(n_events, width);
        check_memory(|| format!("the embeddings of {n_events} source nodes"), needed, max_memory)?;
        let mut scorer = of.scorer_from_start()?;
        let total = labels.events.iter().map(|events| events.len().div_ceil(of.batch)).sum();
        let mut done = 0;
        let mut embed = |(events, targets): (&Vec<EventId>, &Vec<f32>)| -> Result<Vec<Batch>> {
            let batches: Vec<&[EventId]> = events.chunks(of.batch).collect();
            let mut embedded = Vec::with_capacity(batches.len());
            while let Some(window) = next(&batches[embedded.len()..], of.batch, &scorer) {
                callback.on_progress(Stage::Embed, done, total);
                if callback.should_stop() {
                    return Err(Error::Interrupted);
                }
                let values = scorer.sources(window, &of.task.queries(&window.concat()))?;
                let mut rest = values.as_slice();
                for batch in window {
                    let (nodes, others) = rest.split_at(batch.len() * width);
                    let first = embedded.len() * of.batch;
                    embedded.push(Batch {
                        nodes: Tensor::matrix(batch.len(), width, nodes.to_vec())?.into(),
                        targets: targets[first..first + batch.len()].to_vec(),
                    });
                    rest = others;
                }
                done += window.len();
            }
            Ok(embedded)
        };
        let (events, targets) = (&labels.events, &labels.targets);
        let batches = Parts {
            train: embed((&events.train, &targets.train))?,
            val: embed((&events.val, &targets.val))?,
            test: embed((&events.test, &targets.test))?,
        };
        callback.on_progress(Stage::Embed, total, total);
        Ok(Self { batches, width })
    }
}

/// The next batches to embed in one call. Only the last batch may be smaller, and is embedded alone: with DyGLib's padding
/// all pairs of a call are padded to the same length.
fn next<'b, 'e>(batches: &'b [&'e [EventId]], size: usize, scorer: &ModelScorer<'_>) -> Option<&'b [&'e [EventId]]> {
    let whole = batches.iter().take_while(|batch| batch.len() == size).count();
    // No thread looks ahead here, so that a call need not be short.
    let most = scorer.batches_per_call(size, usize::MAX);
    let window = &batches[..batches.len().min(whole.clamp(1, most))];
    (!window.is_empty()).then_some(window)
}
