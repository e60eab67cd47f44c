//! Whether a model separates a case.

use ctdg::event::{EventId, EventStream, NodeId};
use ctdg::mite::PairQuery;
use ctdg::store::Store;
use ctdg::wl::{Graph, GraphOptions};
use hopedgn_tensor::Dropout;

use super::{Bound, Case, WeightedModel};
use hopedgn::collate::{FeatureTables, GlobalInput, Input, Layout, PairBatch, PastInput};
use hopedgn::memory::Memory;
use hopedgn::score::PairScorer;
use hopedgn::{Error, Result};

/// Logits that differ by less, relative to the larger of 1 and the largest logit, count as equal: sums of up to a hundred
/// terms in another order, about ten layers deep, change an `f32` by up to about 1e-6.
pub const TOLERANCE: f32 = 1e-5;

/// The rounds in which each test of [`Bound::ALL`] separates `case`, if it does.
pub fn dwl(case: &Case) -> Result<[Option<usize>; 4]> {
    let reading = GraphOptions { until: Some(case.until), ..GraphOptions::default() };
    let graphs = [Graph::new(&case.a, &reading)?, Graph::new(&case.b, &reading)?];
    let mut rounds = [None; 4];
    for (round, bound) in rounds.iter_mut().zip(Bound::ALL) {
        let test = bound.test()?;
        let comparison = match &case.pairs {
            Some([s, t]) => test.compare_tuples((&graphs[0], s), (&graphs[1], t))?,
            None => test.compare(&graphs[0], &graphs[1])?,
        };
        *round = comparison.verdict().round;
    }
    Ok(rounds)
}

/// Whether one of the models, which differ in their weights alone, separates `case` by more than `tolerance`.
pub fn separates<'a>(case: &Case, models: impl Iterator<Item = &'a WeightedModel>, tolerance: f32) -> Result<bool> {
    for model in models {
        if max_difference(&scores(&case.a, case, 0, model)?, &scores(&case.b, case, 1, model)?) > tolerance {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The largest difference of two lists, value by value, relative to the larger of 1 and the largest value.
#[must_use]
pub fn max_difference(a: &[f32], b: &[f32]) -> f32 {
    if a.len() != b.len() || a.iter().chain(b).any(|value| !value.is_finite()) {
        return f32::INFINITY;
    }
    let scale = a.iter().chain(b).fold(1.0_f32, |scale, value| scale.max(value.abs()));
    a.iter().zip(b).fold(0.0_f32, |max_difference, (a, b)| max_difference.max((a - b).abs())) / scale
}

/// The logit of the pair of `case`, or the sorted logits of all ordered pairs.
fn scores(stream: &EventStream, case: &Case, side: usize, model: &WeightedModel) -> Result<Vec<f32>> {
    let query = |src: NodeId, dst: NodeId| PairQuery { src, dst, time: case.until };
    let nodes = || (0..stream.n_nodes()).filter_map(NodeId::from_index);
    let queries: Vec<PairQuery> = match &case.pairs {
        Some(pairs) => vec![query(pairs[side][0], pairs[side][1])],
        None => nodes().flat_map(|src| nodes().map(move |dst| query(src, dst))).collect(),
    };
    let mut logits = logits(stream, model, &queries)?;
    logits.sort_by(f32::total_cmp);
    Ok(logits)
}

/// The logits of `queries`, all of one time. A memory replays all earlier events first, simultaneous ones as one batch, so
/// that they do not see each other.
pub fn logits(stream: &EventStream, weighted: &WeightedModel, queries: &[PairQuery]) -> Result<Vec<f32>> {
    let WeightedModel { model, weights, time_scale } = weighted;
    let (store, tables) = (Store::build(stream)?, FeatureTables::of(stream)?);
    if let Layout::Pairs(layout) = model.layout() {
        // One input: queries share their pairs.
        let input = Input::from(PastInput::Pairs(Box::new(GlobalInput::of(layout, &tables, &store, queries)?)));
        let scores = weights.evaluate(&[input], |tape, input| -> Result<Vec<f32>> {
            let logits = model.logits(tape, input, Dropout::NONE)?;
            Ok(tape.read(logits)?)
        })?;
        return Ok(scores.concat());
    }
    let mut scorer = PairScorer::new(&**model, &tables, &store);
    let Some(form) = model.memory() else { return scorer.logits(weights, PairBatch::new(queries).padded_alone()) };
    let until = queries.first().map_or(f64::INFINITY, |query| query.time);
    let past: Vec<EventId> = stream.ids().take(store.cut(until).n_events()).collect();
    let mut memory = Memory::new(weights.device(), form, stream, &[])?;
    // Time gaps are normalised by the training stream. Normalised by its own gaps, each graph would have other constants,
    // and JODIE would separate what 1-DWL does not.
    memory.use_time_scale_of(time_scale.as_ref().ok_or(Error::NoMemory)?);
    for events in past.chunk_by(|&one, &other| store.time(one) == store.time(other)) {
        scorer.update_memory(weights, &mut memory, events)?;
    }
    scorer.logits_with(weights, queries, &mut memory, &[])
}
