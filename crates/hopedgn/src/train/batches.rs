//! Training batches: positives in order of time, with negatives drawn for each.

use ctdg::event::EventId;
use ctdg::mite::PairQuery;
use ctdg::negative::RandomNegatives;
use ctdg::random::RandomStream;
use hopedgn_tensor::Device;

use crate::collate::PairBatch;
use crate::config::Config;
use crate::model::Model;
use crate::score::{PairScorer, PreparedBatch, TrainBatch};
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
}

/// A batch with its negatives.
pub(super) struct DrawnBatch<'a> {
    events: &'a [EventId],
    queries: Vec<PairQuery>,
    targets: Vec<f32>,
    dropout: RandomStream,
    /// Position of the generator of negatives after it.
    pub(super) negatives: u64,
}

impl DrawnBatch<'_> {
    pub(super) fn batch(&self) -> TrainBatch<'_> {
        let Self { events, queries, targets, dropout, .. } = self;
        // Positives and negatives are padded apart.
        let pairs = PairBatch::new(queries).padded_in_groups_of(queries.len() / 2);
        TrainBatch { pairs, targets, events, dropout }
    }
}

impl<'a> TrainBatches<'a> {
    pub(super) fn scorer(&self) -> PairScorer<'a> {
        PairScorer::new(self.model, &self.task.tables, &self.task.train_store)
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
            let mut queries = self.task.queries(events);
            for (at, dst) in drawn.into_iter().enumerate() {
                queries.push(PairQuery { dst, ..queries[at] });
            }
            let targets = (0..queries.len()).map(|at| if at < events.len() { 1.0 } else { 0.0 }).collect();
            let dropout = RandomStream::named(self.config.seed, "dropout").fork(self.steps + index as u64);
            consume(DrawnBatch { events, queries, targets, dropout, negatives: negatives.position() })?;
        }
        Ok(())
    }

    /// Collates the batches of one of several prefetch workers, on the worker's own thread.
    pub(super) fn prefetch(
        &self,
        device: &Device,
        worker: usize,
        n_workers: usize,
        send: &mut (dyn FnMut(Result<(PreparedBatch, u64)>) -> bool + Send),
    ) {
        let mut work = || {
            let mut scorer = self.scorer();
            self.each(|index| index % n_workers == worker, &mut |drawn| {
                let ready = scorer.prepare(device, &drawn.batch());
                let wanted = send(ready.map(|prepared| (prepared, drawn.negatives)));
                if wanted { Ok(()) } else { Err(Error::Interrupted) }
            })
        };
        // The only early end is a consumer that stopped.
        let _ = match rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build() {
            Ok(alone) => alone.install(&mut work),
            Err(_) => work(),
        };
    }
}
