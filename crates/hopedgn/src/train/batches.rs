//! Training batches: positives in order of time, with negatives drawn for each.

use std::sync::Arc;

use ctdg::event::{EventId, NodeId};
use ctdg::mite::PairQuery;
use ctdg::negative::RandomNegatives;
use ctdg::random::RandomStream;
use hopedgn_tensor::{BceTerm, Device};

use super::intensity::{IntensityBatch, IntensityNegatives};
use crate::collate::{HopLayout, Layout, PairBatch};
use crate::config::Config;
use crate::model::Model;
use crate::prefetch;
use crate::score::{Loss, PairScorer, PreparedBatch, TrainBatch};
use crate::task::Task;
use crate::{Error, Result};

/// The batches of an epoch from `first` to `end`: positives in order of time, and as many random negatives.
pub(super) struct TrainBatches<'a> {
    pub(super) config: &'a Config,
    pub(super) task: &'a Task<'a>,
    pub(super) model: &'a dyn Model,
    /// The generator before the first batch.
    pub(super) negatives: RandomNegatives,
    pub(super) first: usize,
    pub(super) end: usize,
    /// Steps before the first batch, which seed its dropout.
    pub(super) steps: u64,
    /// Of [`Objective::Intensity`](crate::config::Objective).
    pub(super) intensity: Option<Arc<IntensityNegatives<'a>>>,
    /// GPUs that share each batch.
    pub(super) n_shares: usize,
}

/// A batch with its negatives.
pub(super) struct DrawnBatch<'a> {
    events: &'a [EventId],
    queries: Vec<PairQuery>,
    loss: DrawnLoss,
    dropout: RandomStream,
    /// Position of the generator of negatives after it.
    pub(super) negatives: u64,
}

enum DrawnLoss {
    Mean(Vec<f32>),
    Intensity(Vec<[BceTerm; 2]>),
}

impl DrawnBatch<'_> {
    pub(super) fn batch(&self) -> TrainBatch<'_> {
        let Self { events, queries, dropout, .. } = self;
        // Positives and each kind of negatives are padded apart, by models that pad.
        let pairs = PairBatch::new(queries).padded_in_groups_of(events.len());
        let loss = match &self.loss {
            DrawnLoss::Mean(targets) => Loss::Mean(targets),
            DrawnLoss::Intensity(terms) => Loss::Intensity(terms),
        };
        TrainBatch { pairs, loss, events, dropout }
    }
}

impl<'a> TrainBatches<'a> {
    pub(super) fn scorer(&self) -> PairScorer<'a> {
        PairScorer::new(self.model, &self.task.tables, &self.task.train_store).in_shares(self.n_shares)
    }

    /// Draws the negatives of every batch and calls `consume` with those whose index is `wanted`.
    pub(super) fn each(
        &self,
        wanted: impl Fn(usize) -> bool,
        consume: &mut dyn FnMut(DrawnBatch<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut negatives = self.negatives.clone();
        let (size, train) = (self.config.train.batch, &self.task.split.train);
        for (index, batch) in (self.first..self.end).enumerate() {
            let events = &train[batch * size..train.len().min((batch + 1) * size)];
            let drawn = negatives.draw(events.len());
            if !wanted(index) {
                continue;
            }
            let step = self.steps + index as u64;
            let (queries, loss) = match &self.intensity {
                Some(intensity) => {
                    let IntensityBatch { queries, terms } = intensity.batch(events, &drawn, step);
                    (queries, DrawnLoss::Intensity(terms))
                }
                None => self.with_negatives(events, &drawn),
            };
            let dropout = RandomStream::named(self.config.seed, "dropout").fork(step);
            consume(DrawnBatch { events, queries, loss, dropout, negatives: negatives.position() })?;
        }
        Ok(())
    }

    /// The pairs of `events` and of their negatives, 1 and 0.
    fn with_negatives(&self, events: &[EventId], negatives: &[NodeId]) -> (Vec<PairQuery>, DrawnLoss) {
        let mut queries = self.task.queries(events);
        if self.are_beside_each_other() {
            let beside = queries.iter().zip(negatives).flat_map(|(&event, &dst)| [event, PairQuery { dst, ..event }]);
            let queries: Vec<PairQuery> = beside.collect();
            let targets = [1.0, 0.0].repeat(events.len());
            return (queries, DrawnLoss::Mean(targets));
        }
        for (at, &dst) in negatives.iter().enumerate() {
            queries.push(PairQuery { dst, ..queries[at] });
        }
        let targets = (0..queries.len()).map(|at| if at < events.len() { 1.0 } else { 0.0 }).collect();
        (queries, DrawnLoss::Mean(targets))
    }

    /// Whether each negative follows its event, so that both are in one chunk, which embeds their source once. Where the first pairs of a
    /// batch update a memory, the events come first.
    fn are_beside_each_other(&self) -> bool {
        let shares_roots = matches!(self.model.layout(), Layout::Hops(HopLayout { shares_roots: true, .. }));
        shares_roots && self.model.memory().is_none()
    }

    /// Collates the batches of one of several prefetch workers, on the worker's own thread.
    pub(super) fn prefetch(
        &self,
        device: &Device,
        worker: usize,
        n_workers: usize,
        send: &mut (dyn FnMut(Result<(PreparedBatch, u64)>) -> bool + Send),
    ) {
        let work = || {
            let mut scorer = self.scorer();
            self.each(|index| index % n_workers == worker, &mut |drawn| {
                let ready = scorer.prepare(device, &drawn.batch());
                let wanted = send(ready.map(|prepared| (prepared, drawn.negatives)));
                if wanted { Ok(()) } else { Err(Error::Interrupted) }
            })
        };
        // The only early end is a consumer that stopped.
        let _ = prefetch::on_this_thread(work);
    }
}
