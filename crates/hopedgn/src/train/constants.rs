//! Constants of the training data that are saved with the weights: the scale of statistics and walks, the number of destinations.

use ctdg::event::NodeId;
use ctdg::mite::PairQuery;
use ctdg::random::RandomStream;
use ctdg::walks::TemporalWalks;
use hopedgn_tensor::Parameters;

use super::intensity::destinations;
use crate::Result;
use crate::collate::{WalkRows, statistics};
use crate::model::{LOG_DESTINATIONS, Model};
use crate::nn::{STATISTICS_SCALING, WALKS_SCALING};
use crate::task::Task;

/// Training events that scales are estimated from, at most.
const MAX_EVENTS: usize = 20_000;

/// Added to a standard deviation, so that one that never changes stays finite.
const MIN_DEVIATION: f64 = 0.01;

/// Replaces the constants among `parameters`, of a model that has them, by those of the training events.
pub(crate) fn set_data_constants(parameters: &mut Parameters, model: &dyn Model, task: &Task<'_>) -> Result<()> {
    let destinations = destinations(task);
    if has(parameters, STATISTICS_SCALING) {
        let rows = statistics(&task.train_store, &sample(task, &destinations), &[], model.reads_triads())?;
        standardise(parameters, STATISTICS_SCALING, rows.values());
    }
    if let (true, Some(config)) = (has(parameters, WALKS_SCALING), model.walks()) {
        let mut walks = TemporalWalks::new(&task.train_store, config);
        let rows = WalkRows::of(&mut walks, &sample(task, &destinations), None);
        standardise(parameters, WALKS_SCALING, rows.pairs());
    }
    if let Some(id) = parameters.id(LOG_DESTINATIONS) {
        parameters.get_mut(id).values_mut()[0] = (destinations.len().max(1) as f32).ln();
    }
    Ok(())
}

fn has(parameters: &Parameters, names: [&str; 2]) -> bool {
    names.iter().all(|name| parameters.id(name).is_some())
}

/// Training events, spread over the whole training period, and as many pairs with a random destination.
fn sample(task: &Task<'_>, destinations: &[NodeId]) -> Vec<PairQuery> {
    let train = &task.split.train;
    let n = train.len().min(MAX_EVENTS);
    let chosen: Vec<_> = (0..n).map(|i| train[i * train.len() / n.max(1)]).collect();
    let mut random = RandomStream::named(0, "statistics/negatives");
    let mut queries = task.queries(&chosen);
    for at in 0..queries.len() {
        queries.push(PairQuery { dst: destinations[random.index(destinations.len())], ..queries[at] });
    }
    queries
}

/// Sets the constants so that each column of `values` has mean 0 and standard deviation 1.
fn standardise(parameters: &mut Parameters, [shift, scale]: [&str; 2], values: &[f32]) {
    let (Some(shift), Some(scale)) = (parameters.id(shift), parameters.id(scale)) else { return };
    let width = parameters.get(shift).values().len();
    let count = (values.len() / width).max(1) as f64;
    let mut sums = vec![[0.0; 2]; width];
    for row in values.chunks_exact(width) {
        for (sums, &value) in sums.iter_mut().zip(row) {
            sums[0] += f64::from(value);
            sums[1] += f64::from(value) * f64::from(value);
        }
    }
    for (column, [sum, squares]) in sums.into_iter().enumerate() {
        let mean = sum / count;
        let deviation = (squares / count - (sum / count) * (sum / count)).max(0.0).sqrt();
        #[expect(clippy::cast_possible_truncation, reason = "a model's constants")]
        let [of_shift, of_scale] = [-mean, 1.0 / (deviation + MIN_DEVIATION)].map(|x| x as f32);
        parameters.get_mut(shift).values_mut()[column] = of_shift;
        parameters.get_mut(scale).values_mut()[column] = of_scale;
    }
}
