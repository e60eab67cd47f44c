//! Sampling, MITE and collating of training batches, without the model.

use std::time::Instant;

use ctdg::mite::PairQuery;
use ctdg::negative::RandomNegatives;
use hopedgn::collate::PairBatch;
use hopedgn::config::Config;
use hopedgn::model::Model;
use hopedgn::score::PairScorer;
use hopedgn::task::Task;

/// Sampling, MITE and collating, measured alone.
pub(super) struct Collating {
    pub(super) seconds: f64,
    pub(super) n_tokens: usize,
    pub(super) n_pairs: usize,
}

impl Collating {
    /// Over batches of training, with as many negatives as events.
    pub(super) fn measure(
        config: &Config,
        task: &Task<'_>,
        model: &dyn Model,
        batches: impl IntoIterator<Item = usize>,
    ) -> anyhow::Result<Self> {
        let mut encoder = PairScorer::new(model, &task.tables, &task.train_store);
        let mut negatives = RandomNegatives::new(task.stream, &task.split.train, 0);
        let mut total = Self { seconds: 0.0, n_tokens: 0, n_pairs: 0 };
        for batch in batches {
            let events = task.split.train.chunks(config.train.batch).nth(batch).unwrap_or_default();
            let mut queries = task.queries(events);
            for (at, dst) in negatives.draw(events.len()).into_iter().enumerate() {
                queries.push(PairQuery { dst, ..queries[at] });
            }
            let start = Instant::now();
            total.n_tokens += encoder.collate_only(PairBatch::new(&queries).padded_in_groups_of(events.len()))?;
            total.seconds += start.elapsed().as_secs_f64();
            total.n_pairs += queries.len();
        }
        Ok(total)
    }
}
