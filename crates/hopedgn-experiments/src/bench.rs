//! Benchmark of a training step at the paper's size, on random dense tokens.

use std::sync::Arc;

use ctdg::random::RandomStream;
use hopedgn_tensor::measure::{self, Gemm};
use hopedgn_tensor::{
    AdamConfig, Device, Dropout, Indices, Ragged, Relations, Shape, Tape, Tensor, TrainState, Var, init,
};

use hopedgn::Result;
use hopedgn::collate::{
    FeatureWidths, Input, MiteIntervals, N_RELATION_FEATURES, PairInput, PastInput, RelationInput, Rows,
};
use hopedgn::config::{CommonSettings, HopeDgnSettings, MiteSettings};
use hopedgn::model::{HopeDgn, Model};

/// Size of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepSpec {
    /// Pairs, positives and negatives together.
    pub pairs: usize,
    /// Tokens of a pair, both sides together.
    pub tokens: usize,
    /// Features of a node.
    pub node_features: usize,
    /// Features of an event.
    pub edge_features: usize,
    /// Whether attention knows relations: one in eight of the pairs of tokens met.
    pub relations: bool,
}

/// A model with its optimizer and a fixed batch.
#[derive(Debug)]
pub struct StepBench {
    spec: StepSpec,
    model: HopeDgn,
    state: TrainState,
    batch: Vec<(Input, Vec<f32>)>,
}

impl StepBench {
    /// The paper's model without dropout; tokens share no features, ages or intervals.
    pub fn new(spec: StepSpec, device: &Device) -> Result<Self> {
        let defaults = HopeDgnSettings::default();
        let mite = MiteSettings { valid_bit: false, ..defaults.mite };
        let settings = HopeDgnSettings { mite, relations: spec.relations, ..defaults };
        let common = CommonSettings { dropout: 0.0, ..CommonSettings::DEFAULT };
        let some = |width: usize| (width > 0).then_some(width);
        let widths = FeatureWidths { node: some(spec.node_features), edge: some(spec.edge_features) };
        let (model, parameters) = HopeDgn::new(&settings, &common, widths, 0)?;
        let per_chunk = (device.train_chunk_rows() / spec.tokens.max(1)).max(1);
        let mut random = RandomStream::named(0, "bench");
        let mut batch = Vec::new();
        for first in (0..spec.pairs).step_by(per_chunk) {
            let pairs = per_chunk.min(spec.pairs - first);
            let targets = (0..pairs).map(|i| if (first + i).is_multiple_of(2) { 1.0 } else { 0.0 }).collect();
            let relations = spec.relations.then(|| relations(pairs, spec.tokens, &mut random)).transpose()?;
            let input = PairInput { relations, ..dense(pairs, spec.tokens, &settings.mite, widths, &mut random) };
            batch.push((Input::from(PastInput::Patches(input)), targets));
        }
        let state = TrainState::new(device, parameters, AdamConfig { lr: 1e-4, ..AdamConfig::default() })?;
        for (input, _) in &batch {
            let PairInput { ages, mite, rows, relations, .. } = input.patches()?;
            state.weights().upload(ages)?;
            if let Some(mite) = mite {
                state.weights().upload(&mite.intervals)?;
                device.stage_offsets(&mite.lists)?;
            }
            if let Some(relations) = relations {
                state.weights().upload(&relations.features)?;
                device.stage_relations(&relations.of_tokens)?;
            }
            device.stage_indices(rows, Some(rows.len()))?;
        }
        Ok(Self { spec, model, state, batch })
    }

    /// Forward, backward and Adam, `n` times, without synchronising a GPU between steps; returns the last loss.
    pub fn steps(&mut self, n: usize) -> Result<f64> {
        let (model, n_pairs) = (&self.model, self.spec.pairs);
        let forward = |tape: &mut Tape<'_>, (input, targets): &(Input, Vec<f32>)| -> Result<Var> {
            let logits = model.logits(tape, input, Dropout::NONE)?;
            Ok(tape.bce_with_logits(logits, targets, n_pairs)?)
        };
        for _ in 0..n {
            self.state.step(&self.batch, forward)?;
        }
        Ok(self.state.step_results(0)?.last().map_or(f64::NAN, |step| step.loss))
    }

    /// Floating-point operations of the matrix products of one step.
    #[must_use]
    pub fn flops(&self) -> f64 {
        self.batch.iter().map(|(_, targets)| measure::flops(&self.products(targets.len()))).sum()
    }

    /// Floating-point operations a second of these products alone.
    pub fn products_per_second(&self) -> Result<f64> {
        let pairs = self.batch.first().map_or(0, |(_, targets)| targets.len());
        Ok(measure::flops_per_second(self.state.weights().device(), &self.products(pairs), 5)?)
    }

    /// Matrix products of a chunk of `pairs`.
    fn products(&self, pairs: usize) -> Vec<Gemm> {
        let (settings, common) = (self.model.settings(), self.model.common());
        let (config, mite) = (&settings.patches, &settings.mite);
        let (rows, d, d_model) = (pairs * self.spec.tokens, config.d_channel, settings.encoder_width());
        let mut all = Vec::new();
        let mut linear = |rows, n_in, n_out, with_dx| all.extend(measure::linear(rows, n_in, n_out, with_dx));
        for features in [3 * self.spec.node_features, self.spec.edge_features] {
            if features > 0 {
                linear(rows, features, d, false);
            }
        }
        linear(rows, 1, common.d_time, false);
        linear(rows, common.d_time, d, true);
        linear(rows, mite.slots().width(), mite.d_mite, false);
        linear(rows, mite.d_mite, mite.d_mite, true);
        linear(rows, mite.d_mite, d, true);
        for block in 1..=config.n_blocks {
            linear(rows, d_model, 3 * d_model, true);
            linear(rows, d_model, d_model, true);
            linear(rows, d_model, 4 * d_model, true);
            // The last block's second layer follows the mean.
            linear(if block < config.n_blocks { rows } else { pairs }, 4 * d_model, d_model, true);
        }
        linear(pairs, d_model, common.d_out, true);
        linear(pairs, common.d_out, common.d_out, true);
        linear(pairs, common.d_out, 1, true);
        let n_heads = config.n_blocks * config.n_heads * pairs;
        all.extend(measure::attention(self.spec.tokens, d_model / config.n_heads, n_heads));
        all
    }
}

fn dense(
    pairs: usize,
    tokens: usize,
    mite: &MiteSettings,
    widths: FeatureWidths,
    random: &mut RandomStream,
) -> PairInput {
    let rows = pairs * tokens;
    let mut tensor = |rows, cols| Arc::new(init::uniform(&mut || random.unit(), Shape::Matrix(rows, cols), 1.7));
    let slots = mite.slots();
    let sides = (0..pairs).flat_map(|_| [tokens / 2, tokens - tokens / 2]);
    PairInput {
        pairs: Ragged::from_lengths(vec![tokens; pairs]),
        sides: Ragged::from_lengths(sides),
        ages: tensor(rows, 1),
        nodes: widths.node.map(|width| Rows { table: tensor(rows, 3 * width), chosen: None }),
        edges: widths.edge.map(|width| Rows { table: tensor(rows, width), chosen: None }),
        directions: None,
        mite: Some(MiteIntervals {
            intervals: tensor(rows * slots.values_per_row(), 1),
            lists: Ragged::from_lengths(vec![slots.max_len; rows * slots.lists_per_row]),
        }),
        relations: None,
        counts: None,
        rows: (0..).take(rows).collect::<Indices>(),
        places: None,
        is_padded: false,
    }
}

/// Tokens of different nodes, of which one in eight pairs met.
fn relations(pairs: usize, tokens: usize, random: &mut RandomStream) -> Result<RelationInput> {
    let nodes = 0..u32::try_from(tokens).unwrap_or(u32::MAX);
    let (mut classes, mut met, mut n_met) = (Vec::new(), Vec::new(), Vec::new());
    // Nodes that never met, and a node with itself.
    let mut features = vec![0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0];
    for _ in 0..pairs {
        let first = met.len();
        classes.extend(nodes.clone());
        for high in nodes.clone() {
            met.extend((0..high).filter(|_| random.below(8) == 0).map(|low| [high, low]));
        }
        n_met.push(met.len() - first);
    }
    for _ in &met {
        features.extend([1.0, random.below(16) as f32 / 8.0, random.below(16) as f32 / 8.0, 0.0]);
    }
    let sequences = Ragged::from_lengths(vec![tokens; pairs]);
    Ok(RelationInput {
        features: Tensor::matrix(features.len() / N_RELATION_FEATURES, N_RELATION_FEATURES, features)?.into(),
        of_tokens: Relations::new(&sequences, classes, met, Ragged::from_lengths(n_met))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_lower_the_loss_and_flops_are_counted() {
        for relations in [false, true] {
            let spec = StepSpec { pairs: 3, tokens: 4, node_features: 2, edge_features: 0, relations };
            let mut bench = StepBench::new(spec, &Device::cpu()).unwrap();
            let first = bench.steps(1).unwrap();
            assert!(bench.steps(6).unwrap() < first);
            assert!(bench.flops() > 1e6);
        }
    }

    /// 400 pairs of 64 tokens: 155 GFLOP, minus what the mean saves in the last block.
    #[test]
    fn the_step_of_the_paper_has_the_expected_flops() {
        let spec = StepSpec { pairs: 8, tokens: 64, node_features: 172, edge_features: 172, relations: false };
        let flops = StepBench::new(spec, &Device::cpu()).unwrap().flops() * 50.0;
        assert!((120e9..140e9).contains(&flops), "{flops:e}");
    }
}
