//! Constants of the training data that are saved with the weights: the scale of statistics, the number of destinations.

use ctdg::event::NodeId;
use ctdg::mite::PairQuery;
use ctdg::random::RandomStream;
use ctdg::statistics::N_STATISTICS;
use hopedgn_tensor::Parameters;

use super::intensity::destinations;
use crate::Result;
use crate::collate::statistics;
use crate::model::LOG_DESTINATIONS;
use crate::nn::{STATISTICS_SCALE, STATISTICS_SHIFT};
use crate::task::Task;

/// Training events that the scale of statistics is estimated from, at most.
const MAX_EVENTS: usize = 20_000;

/// Added to the standard deviation of a statistic, so that one that never changes stays finite.
const MIN_DEVIATION: f64 = 0.01;

/// Replaces the constants among `parameters`, of a model that has them, by those of the training events.
pub(crate) fn set_data_constants(parameters: &mut Parameters, task: &Task<'_>) -> Result<()> {
    let destinations = destinations(task);
    if let (Some(shift), Some(scale)) = (parameters.id(STATISTICS_SHIFT), parameters.id(STATISTICS_SCALE)) {
        let [means, deviations] = moments(task, &destinations)?;
        for column in 0..N_STATISTICS {
            #[expect(clippy::cast_possible_truncation, reason = "a model's constants")]
            let [of_shift, of_scale] = [-means[column], 1.0 / (deviations[column] + MIN_DEVIATION)].map(|x| x as f32);
            parameters.get_mut(shift).values_mut()[column] = of_shift;
            parameters.get_mut(scale).values_mut()[column] = of_scale;
        }
    }
    if let Some(id) = parameters.id(LOG_DESTINATIONS) {
        parameters.get_mut(id).values_mut()[0] = (destinations.len().max(1) as f32).ln();
    }
    Ok(())
}

/// Mean and standard deviation of each statistic, of training events spread over the whole training period and of as many pairs with a
/// random destination.
fn moments(task: &Task<'_>, destinations: &[NodeId]) -> Result<[Vec<f64>; 2]> {
    let train = &task.split.train;
    let n = train.len().min(MAX_EVENTS);
    let chosen: Vec<_> = (0..n).map(|i| train[i * train.len() / n.max(1)]).collect();
    let mut random = RandomStream::named(0, "statistics/negatives");
    let mut queries = task.queries(&chosen);
    for at in 0..queries.len() {
        queries.push(PairQuery { dst: destinations[random.index(destinations.len())], ..queries[at] });
    }
    let rows = statistics(&task.train_store, &queries, &[])?;
    let count = queries.len().max(1) as f64;
    let mut sums = vec![[0.0; 2]; N_STATISTICS];
    for row in rows.values().chunks_exact(N_STATISTICS) {
        for (sums, &value) in sums.iter_mut().zip(row) {
            sums[0] += f64::from(value);
            sums[1] += f64::from(value) * f64::from(value);
        }
    }
    let mean = |[sum, _]: &[f64; 2]| sum / count;
    let deviation = |[sum, squares]: &[f64; 2]| (squares / count - (sum / count) * (sum / count)).max(0.0).sqrt();
    Ok([sums.iter().map(mean).collect(), sums.iter().map(deviation).collect()])
}
