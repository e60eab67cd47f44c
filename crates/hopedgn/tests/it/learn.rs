//! Learning: HopeDGN approaches the best possible score on triads; node-wise models need MITE for them.
//!
//! Thresholds hold with a margin for every seed tried, so that no test depends on rounding.

use ctdg::event::{EventId, EventStream, NodeId};
use ctdg::generate::{Query, TriadicSpec};
use ctdg::metric::{average_precision, shuffled_average_precision};
use ctdg::mite::PairQuery;
use ctdg::random::RandomStream;
use ctdg::store::Store;
use hopedgn::collate::{FeatureTables, FeatureWidths, PairBatch};
use hopedgn::config::{ModelConfig, ModelName};
use hopedgn::memory::Memory;
use hopedgn::model;
use hopedgn::score::{Loss, PairScorer, TrainBatch};
use hopedgn_tensor::{AdamConfig, Device, TrainState};

/// A model of small widths.
fn small(name: ModelName, mite: bool) -> ModelConfig {
    let mite = format!("mite={mite}");
    let sizes = ["length=4", "neighbors=3", "k=2", "d-channel=8", "d-time=16", "d-mite=16", "d-out=16", "dropout=0"];
    ModelConfig::new(name).with_known(&[&sizes[..], &["n-blocks=1", "n-heads=2", &mite]].concat()).unwrap()
}

/// Average precision of HopeDGN on the last 30% of the triadic queries after training on the first 70%, and the best possible.
fn triadic(seed: u64) -> (f64, f64) {
    let triadic = TriadicSpec { n_episodes: 1500, ..TriadicSpec::default() }.generate(3).unwrap();
    let cut = triadic.queries.len() * 7 / 10 / 4 * 4;
    let (train, test) = triadic.queries.split_at(cut);
    let store = Store::build(&triadic.stream).unwrap();
    let tables = FeatureTables::of(&triadic.stream).unwrap();
    let (model, parameters) = model::build(&small(ModelName::HopeDgn, true), tables.widths(), seed).unwrap();
    let mut scorer = PairScorer::new(&*model, &tables, &store);
    let adam = AdamConfig { lr: 2e-3, ..AdamConfig::default() };
    let mut learner = TrainState::new(&Device::cpu(), parameters, adam).unwrap();
    let dropout = RandomStream::named(0, "test");
    let pair = |query: &Query| PairQuery { src: query.src, dst: query.dst, time: query.time };
    for _ in 0..12 {
        for batch in train.chunks(100) {
            let queries: Vec<PairQuery> = batch.iter().map(pair).collect();
            let targets: Vec<f32> = batch.iter().map(|query| if query.label { 1.0 } else { 0.0 }).collect();
            let pairs = PairBatch::new(&queries);
            let batch = TrainBatch { pairs, loss: Loss::Mean(&targets), events: &[], dropout: &dropout };
            scorer.train_step(&mut learner, &batch, None).unwrap();
        }
    }
    let queries: Vec<PairQuery> = test.iter().map(pair).collect();
    let logits = scorer.logits(learner.weights(), PairBatch::new(&queries)).unwrap();
    let labels: Vec<bool> = test.iter().map(|query| query.label).collect();
    let optimal: Vec<f64> = test.iter().map(|query| query.optimal).collect();
    (average_precision(&logits, &labels).unwrap(), shuffled_average_precision(&optimal, &labels).unwrap())
}

#[test]
fn hopedgn_on_triads_comes_within_two_points_of_the_best_possible() {
    // Seeds 1 and 2 both hold; one is tried, since it takes seconds.
    let (ap, best) = triadic(1);
    assert!(ap > best - 0.02, "{ap} of {best}");
    assert!(best < 0.95, "the best is not perfect: {best}");
}

/// Groups of four nodes `a, b, c, d` and two neighbours `w, z`, all with the same history of their own:
///
/// ```text
///   a     b       c     d        queries at the same time:
///    \   /         \   /         (a, b), (c, d) have a common neighbour: label 1
///      w             z           (a, d), (c, b) have none: label 0
/// ```
///
/// A model of single nodes gives all four pairs of a group one logit: its loss is at least ln 2.
struct CommonNeighbors {
    stream: EventStream,
    queries: Vec<PairQuery>,
    targets: Vec<f32>,
}

impl CommonNeighbors {
    fn new() -> Self {
        let (mut events, mut queries, mut targets) = (Vec::new(), Vec::new(), Vec::new());
        for group in 0..8 {
            let (first, time) = (6 * group, f64::from(10 * group));
            // 0 to 3 are a to d, 4 is w, 5 is z.
            for (node, neighbor) in [(0, 4), (1, 4), (2, 5), (3, 5)] {
                events.push((first + node, first + neighbor, time));
            }
            for (src, dst, target) in [(0, 1, 1.0), (2, 3, 1.0), (0, 3, 0.0), (2, 1, 0.0)] {
                let [src, dst] = [src, dst].map(|place| NodeId(first + place));
                // After the last event, so that a memory has seen all.
                queries.push(PairQuery { src, dst, time: 100.0 + f64::from(group) });
                targets.push(target);
            }
        }
        Self { stream: EventStream::from_events(events).unwrap(), queries, targets }
    }

    /// The loss after up to `n_steps` of full-batch training, or as soon as it is below `enough`.
    fn train(&self, config: &ModelConfig, seed: u64, n_steps: usize, enough: f64) -> f64 {
        let (model, parameters) = model::build(config, FeatureWidths::default(), seed).unwrap();
        let store = Store::build(&self.stream).unwrap();
        let mut scorer = PairScorer::new(&*model, &FeatureTables::of(&self.stream).unwrap(), &store);
        let adam = AdamConfig { lr: 5e-3, ..AdamConfig::default() };
        let mut learner = TrainState::new(&Device::cpu(), parameters, adam).unwrap();
        let events: Vec<EventId> = (0..).map(EventId).take(self.stream.len()).collect();
        let mut memory = model.memory().map(|form| Memory::new(&Device::cpu(), form, &self.stream, &events).unwrap());
        if let Some(memory) = &mut memory {
            let replayed = PairQuery::of(&self.stream, &events);
            scorer.logits_with(learner.weights(), &replayed, memory, &events).unwrap();
        }
        let dropout = RandomStream::named(0, "test");
        let mut loss = f64::INFINITY;
        for _ in 0..n_steps {
            let pairs = PairBatch::new(&self.queries);
            let batch = TrainBatch { pairs, loss: Loss::Mean(&self.targets), events: &[], dropout: &dropout };
            scorer.train_step(&mut learner, &batch, memory.as_mut()).unwrap();
            loss = learner.step_results(0).unwrap()[0].loss;
            if loss < enough {
                break;
            }
        }
        loss
    }
}

const SEEDS: [u64; 3] = [1, 2, 3];

#[test]
fn without_mite_node_wise_models_cannot_learn_common_neighbors() {
    use ModelName::{DyRep, GraphMixer, HopeDgn, Jodie, Tcl, Tgat, Tgn};
    let problem = CommonNeighbors::new();
    for name in [HopeDgn, Tgat, Tcl, GraphMixer, Jodie, DyRep, Tgn] {
        for seed in SEEDS {
            let loss = problem.train(&small(name, false), seed, 30, 0.0);
            assert!(loss > 2.0_f64.ln() - 1e-4, "{} with seed {seed}: {loss}", name.title());
        }
    }
}

#[test]
fn with_mite_node_wise_models_learn_common_neighbors() {
    use ModelName::{Cawn, DyGFormer, GraphMixer, HopeDgn, Pint, Tcl, Tgat, Tgn};
    let problem = CommonNeighbors::new();
    for name in [HopeDgn, DyGFormer, Tgat, Tcl, GraphMixer, Cawn, Tgn, Pint] {
        for seed in SEEDS {
            let loss = problem.train(&small(name, true), seed, 400, 0.05);
            assert!(loss < 0.05, "{} with seed {seed}: {loss}", name.title());
        }
    }
}
