//! Properties of every model: batch invariance, causality, determinism, permutation invariance, learning.

use ctdg::event::{EventId, EventStream, Features, NodeId};
use ctdg::metric::roc_auc;
use ctdg::mite::{PairEncoderConfig, PairQuery};
use ctdg::random::RandomStream;
use ctdg::store::Store;
use ctdg::walks::WalkConfig;
use hopedgn::Result;
use hopedgn::collate::{FeatureTables, FeatureWidths, Input, Layout, PairBatch};
use hopedgn::config::{CommonSettings, Config, CustomModel, ModelConfig, ModelName, ModelRegistry, Preset};
use hopedgn::memory::{Memory, MemoryForm};
use hopedgn::model::{self, Model};
use hopedgn::nn::{PairHead, ParamBuilder, TimeEncoding};
use hopedgn::score::{Loss, PairScorer, TrainBatch};
use hopedgn_tensor::{AdamConfig, Device, Dropout, Parameters, Tape, TrainState, Var, Weights};
use serde::{Deserialize, Serialize};

/// Nodes of [`stream`]; queries name two more, which have no events.
const N_NODES: u32 = 12;

/// Every model in small, with its default MITE and sampling.
fn models() -> impl Iterator<Item = ModelConfig> {
    let sizes =
        ["length=9", "neighbors=4", "k=3", "d-channel=6", "d-time=8", "d-mite=4", "d-out=16", "d-cooccurrence=6"];
    let others = ["n-heads=2", "dropout=0", "beta=0.1"];
    let settings = [&sizes[..], &others].concat();
    ModelName::ALL.into_iter().map(move |name| ModelConfig::new(name).with_known(&settings).unwrap())
}

/// Every model with MITE and without, if it can be; with statistics, triads and directions; with walks; and with relations, if it can be.
fn variants() -> impl Iterator<Item = ModelConfig> {
    models().flat_map(|config| {
        let statistics = config.with_known(&["stats=true", "triads=true", "direction=true"]).unwrap();
        let walks = config.with_known(&["walks=true", "d-walk=20", "walk-decay=0.1"]).unwrap();
        let mut all = vec![statistics, walks];
        if let Ok(relations) = config.with("relations", true) {
            all.extend([relations.with("patch", 2).unwrap(), relations]);
        }
        match config.with("mite", true) {
            Ok(with) => all.extend([with, config.with("mite", false).unwrap()]),
            Err(_) => all.push(config),
        }
        all
    })
}

/// Events with equal times, repeats and self-loops; those from `changed` on are drawn from another seed.
fn stream(n_events: u32, changed: u32) -> EventStream {
    let random = |what: &str| RandomStream::named(5, what);
    let (mut first, mut second) = (random("first"), random("second"));
    let mut events = Vec::new();
    let mut features = Vec::new();
    for i in 0..n_events {
        let random = if i < changed { &mut first } else { &mut second };
        // The first event names the last node, so that all streams have the same nodes.
        let src = if i == 0 { N_NODES - 1 } else { random.below(N_NODES) };
        events.push((src, random.below(N_NODES), f64::from(i / 3)));
        features.extend([(); 3].map(|()| random.below(1000) as f32 * 1e-3));
    }
    let mut columns = EventStream::from_events(events).unwrap().into_columns();
    let of_nodes: Vec<f32> = (0..2 * N_NODES).map(|i| (i * 37 % 11) as f32 * 0.1 - 0.5).collect();
    columns.edge_features = Some(Features::new(3, features).unwrap());
    columns.node_features = Some(Features::new(2, of_nodes).unwrap());
    EventStream::new(columns).unwrap()
}

/// Some pairs at times from `first` up to `last`.
fn queries(n: u32, first: u32, last: u32) -> Vec<PairQuery> {
    let mut random = RandomStream::named(6, "queries");
    let mut query = |_| PairQuery {
        src: NodeId(random.below(N_NODES + 2)),
        dst: NodeId(random.below(N_NODES + 2)),
        time: f64::from(first + random.below(last - first + 1)),
    };
    (0..n).map(&mut query).collect()
}

fn ids(n: u32) -> Vec<EventId> {
    (0..n).map(|id| EventId(u64::from(id))).collect()
}

/// The logits of `queries`, `size` at a time; a memory has consumed the first `n_past` events.
fn logits(config: &ModelConfig, stream: &EventStream, n_past: u32, queries: &[PairQuery], size: usize) -> Vec<f32> {
    let (model, parameters) = model::build(config, FeatureWidths::of(stream), 1).unwrap();
    let store = Store::build(stream).unwrap();
    let weights = Weights::new(&Device::cpu(), parameters).unwrap();
    let mut scorer = PairScorer::new(&*model, &FeatureTables::of(stream).unwrap(), &store);
    let Some(form) = model.memory() else {
        return queries
            .chunks(size)
            .flat_map(|batch| scorer.logits(&weights, PairBatch::new(batch)).unwrap())
            .collect();
    };
    let past = ids(n_past);
    let mut memory = Memory::new(&Device::cpu(), form, stream, &past).unwrap();
    for batch in past.chunks(7) {
        scorer.logits_with(&weights, &PairQuery::of(stream, batch), &mut memory, batch).unwrap();
    }
    queries.chunks(size).flat_map(|batch| scorer.logits_with(&weights, batch, &mut memory, &[]).unwrap()).collect()
}

fn assert_same(config: &ModelConfig, got: &[f32], expected: &[f32]) {
    assert!(
        expected.iter().any(|&logit| logit != expected[0]),
        "{} gives one score to all pairs",
        config.name().as_str()
    );
    let is_same = got.iter().zip(expected).all(|(got, expected)| got.to_bits() == expected.to_bits());
    assert!(is_same && got.len() == expected.len(), "{config:?}");
}

#[test]
fn score_does_not_depend_on_the_batch() {
    let stream = stream(150, 150);
    // At few times a node is in many pairs, and is embedded once.
    for queries in [queries(60, 0, 55), queries(60, 52, 54)] {
        for config in variants() {
            let together = logits(&config, &stream, 90, &queries, 60);
            for size in [1, 7] {
                assert_same(&config, &logits(&config, &stream, 90, &queries, size), &together);
            }
        }
    }
}

/// A model with a memory that embeds no nodes and names no updater.
#[derive(Debug)]
struct Bare(Box<dyn Model>);

impl Model for Bare {
    fn name(&self) -> ModelName {
        ModelName::Custom("bare")
    }

    fn encoding(&self) -> PairEncoderConfig {
        self.0.encoding()
    }

    fn layout(&self) -> Layout {
        self.0.layout()
    }

    fn memory(&self) -> Option<MemoryForm> {
        self.0.memory()
    }

    fn head(&self) -> Option<PairHead> {
        self.0.head()
    }

    fn logits(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        self.0.logits(tape, input, dropout)
    }
}

/// Scores of `queries` after a memory of `model` was updated, by scoring the past, and alone.
fn after_both_updates(model: &dyn Model, parameters: &Parameters, stream: &EventStream) -> [Vec<f32>; 2] {
    let (store, tables) = (Store::build(stream).unwrap(), FeatureTables::of(stream).unwrap());
    let weights = Weights::new(&Device::cpu(), parameters.clone()).unwrap();
    let (mut scorer, past) = (PairScorer::new(model, &tables, &store), ids(40));
    [false, true].map(|is_alone| {
        let mut memory = Memory::new(&Device::cpu(), model.memory().unwrap(), stream, &past).unwrap();
        for batch in past.chunks(7) {
            if is_alone {
                scorer.update_memory(&weights, &mut memory, batch).unwrap();
            } else {
                scorer.logits_with(&weights, &PairQuery::of(stream, batch), &mut memory, batch).unwrap();
            }
        }
        scorer.logits_with(&weights, &queries(9, 14, 20), &mut memory, &[]).unwrap()
    })
}

#[test]
fn updating_a_memory_alone_leaves_what_scoring_leaves() {
    let stream = stream(60, 60);
    let mut n_models = 0;
    for config in variants() {
        let (model, parameters) = model::build(&config, FeatureWidths::of(&stream), 1).unwrap();
        if model.memory().is_none() {
            continue;
        }
        n_models += 1;
        let [scored, updated] = after_both_updates(&*model, &parameters, &stream);
        assert_same(&config, &updated, &scored);
        let [_, updated] = after_both_updates(&Bare(model), &parameters, &stream);
        assert_same(&config, &updated, &scored);
    }
    assert!(n_models >= 4 * 3, "JODIE, DyRep, TGN and PINT, each in several variants: {n_models}");
}

#[test]
fn scores_and_losses_do_not_depend_on_the_number_of_threads() {
    let (stream, toy) = (stream(150, 150), Toy::communities());
    let queries = queries(60, 0, 55);
    for config in variants() {
        let run = |n: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
            pool.install(|| (logits(&config, &stream, 90, &queries, 60), toy.losses(&config, 1, 0.0)))
        };
        let ((scores, losses), (expected, expected_losses)) = (run(3), run(1));
        assert_same(&config, &scores, &expected);
        assert_eq!(losses, expected_losses, "{}", config.name().as_str());
    }
}

#[test]
fn score_does_not_depend_on_later_events() {
    // Events from 147 on are at time 49 or later.
    let [one, other] = [stream(240, 240), stream(240, 147)];
    let (before, later) = (queries(60, 30, 49), queries(60, 60, 70));
    for config in variants() {
        let scores = |stream: &EventStream, n_past: u32, queries: &[PairQuery]| {
            logits(&config, stream, n_past, queries, queries.len())
        };
        assert_same(&config, &scores(&one, 147, &before), &scores(&other, 147, &before));
        let [one, other] = [&one, &other].map(|stream| scores(stream, 180, &later));
        assert!(one != other, "{} ignores past events", config.name().as_str());
    }
}

#[test]
fn score_does_not_depend_on_node_numbers() {
    let stream = stream(150, 150);
    let mut names: Vec<u32> = (0..N_NODES).collect();
    RandomStream::named(7, "names").shuffle(&mut names);
    let rename = |node: NodeId| names.get(node.index()).map_or(node, |&name| NodeId(name));
    let renamed = {
        let mut columns = self::stream(150, 150).into_columns();
        for nodes in [&mut columns.src, &mut columns.dst] {
            *nodes = nodes.iter().map(|&node| rename(node)).collect::<Vec<_>>().into();
        }
        let features = stream.node_features().unwrap();
        let width = features.width();
        let mut values = vec![0.0; features.values().len()];
        for (row, &name) in features.values().chunks_exact(width).zip(&names) {
            values[name as usize * width..][..width].copy_from_slice(row);
        }
        columns.node_features = Some(Features::new(width, values).unwrap());
        EventStream::new(columns).unwrap()
    };
    let queries = queries(60, 0, 55);
    let rename_query = |query: &PairQuery| PairQuery { src: rename(query.src), dst: rename(query.dst), ..*query };
    let renamed_queries: Vec<PairQuery> = queries.iter().map(rename_query).collect();
    // Random sampling and walks depend on names of nodes, which are their numbers here.
    for config in variants().filter(|config| !config.common.statistics.walks.enabled) {
        let config = if config.has("sampling") { config.with("sampling", "recent").unwrap() } else { config };
        let expected = logits(&config, &stream, 90, &queries, 60);
        for (got, expected) in logits(&config, &renamed, 90, &renamed_queries, 60).iter().zip(&expected) {
            assert!((got - expected).abs() < 1e-5, "{}: {got} {expected}", config.name().as_str());
        }
    }
}

/// Training batches. The first only updates memories.
struct Toy {
    stream: EventStream,
    batches: Vec<Batch>,
}

struct Batch {
    events: Vec<EventId>,
    queries: Vec<PairQuery>,
    targets: Vec<f32>,
}

impl Toy {
    /// 50 events within two communities with different edge features. Negatives are pairs across communities.
    fn communities() -> Self {
        let mut random = RandomStream::named(8, "communities");
        // The first eight events cover all nodes.
        let mut choose = |i: u32, shift: u32| if i < 8 { i >> shift & 1 } else { random.below(2) };
        let event = |i: u32| (4 * (i % 2) + choose(i, 1), 4 * (i % 2) + 2 + choose(i, 2), f64::from(i));
        let mut columns = EventStream::from_events((0..50).map(event)).unwrap().into_columns();
        let features: Vec<f32> = (0..50).flat_map(|i| if i % 2 == 0 { [1.0, 0.0] } else { [0.0, 1.0] }).collect();
        columns.edge_features = Some(Features::new(2, features).unwrap());
        let across = |query: &PairQuery| PairQuery { dst: NodeId((query.dst.0 + 4) % 8), ..*query };
        Self::new(EventStream::new(columns).unwrap(), 10, across, |happened| happened)
    }

    /// Random events and as many random pairs, with random labels.
    fn random_labels() -> Self {
        let (mut random, mut coins) = (RandomStream::named(9, "coins"), RandomStream::named(10, "coins"));
        let other = |query: &PairQuery| PairQuery { dst: NodeId(random.below(N_NODES)), ..*query };
        Self::new(stream(300, 300), 50, other, |_| coins.chance(0.5))
    }

    fn new(
        stream: EventStream,
        size: usize,
        mut other: impl FnMut(&PairQuery) -> PairQuery,
        mut label: impl FnMut(bool) -> bool,
    ) -> Self {
        let batch = |events: &[EventId]| {
            let mut queries = PairQuery::of(&stream, events);
            queries.extend(queries.clone().iter().map(&mut other));
            let mut target = |at: usize| if label(at < events.len()) { 1.0 } else { 0.0 };
            let targets = (0..queries.len()).map(&mut target).collect();
            Batch { events: events.to_vec(), queries, targets }
        };
        let all = ids(u32::try_from(stream.len()).unwrap());
        let batches = all.chunks(size).map(batch).collect();
        Self { stream, batches }
    }

    /// The mean loss of each epoch over all batches, `n_epochs` of them or until it is below `enough`.
    fn losses(&self, config: &ModelConfig, n_epochs: usize, enough: f64) -> Vec<f64> {
        self.train(config, self.batches.len(), n_epochs, enough).0
    }

    /// Trains on all batches but the first, up to `end`; the losses, and the logits of the batches from `end` on.
    fn train(&self, config: &ModelConfig, end: usize, n_epochs: usize, enough: f64) -> (Vec<f64>, Vec<f32>) {
        let (model, parameters) = model::build(config, FeatureWidths::of(&self.stream), 1).unwrap();
        let store = Store::build(&self.stream).unwrap();
        let mut scorer = PairScorer::new(&*model, &FeatureTables::of(&self.stream).unwrap(), &store);
        // Post-norm transformers diverge at high learning rates.
        let lr = if config.name() == ModelName::Tcl { 2e-3 } else { 1e-2 };
        let adam = AdamConfig { lr, ..AdamConfig::default() };
        let mut learner = TrainState::new(&Device::cpu(), parameters, adam).unwrap();
        let train: Vec<EventId> = self.batches[..end].iter().flat_map(|batch| &batch.events).copied().collect();
        let new = |form| Memory::new(&Device::cpu(), form, &self.stream, &train).unwrap();
        let mut memory = model.memory().map(new);
        let dropout = RandomStream::named(0, "");
        let mut losses = Vec::new();
        while losses.len() < n_epochs && losses.last().is_none_or(|&loss| loss >= enough) {
            let Batch { events, queries, .. } = &self.batches[0];
            if let Some(memory) = &mut memory {
                memory.reset().unwrap();
                scorer.logits_with(learner.weights(), queries, memory, events).unwrap();
            }
            let mut sum = 0.0;
            for Batch { events, queries, targets } in &self.batches[1..end] {
                let batch =
                    TrainBatch { pairs: PairBatch::new(queries), loss: Loss::Mean(targets), events, dropout: &dropout };
                scorer.train_step(&mut learner, &batch, memory.as_mut()).unwrap();
                sum += learner.step_results(0).unwrap()[0].loss;
            }
            losses.push(sum / (end - 1) as f64);
        }
        let mut score = |Batch { events, queries, .. }: &Batch| match &mut memory {
            Some(memory) => scorer.logits_with(learner.weights(), queries, memory, events).unwrap(),
            None => scorer.logits(learner.weights(), PairBatch::new(queries)).unwrap(),
        };
        let later = self.batches[end..].iter().flat_map(&mut score).collect();
        (losses, later)
    }
}

#[test]
fn every_model_fits_separable_labels() {
    let toy = Toy::communities();
    for config in models() {
        let losses = toy.losses(&config, 150, 0.2);
        assert!(losses.last().is_some_and(|&loss| loss < 0.2), "{}: {losses:?}", config.name().as_str());
    }
}

#[test]
fn no_model_predicts_random_labels() {
    let toy = Toy::random_labels();
    let labels: Vec<bool> = toy.batches[4..].iter().flat_map(|batch| &batch.targets).map(|&x| x == 1.0).collect();
    for config in models() {
        let (_, scores) = toy.train(&config, 4, 10, 0.0);
        let auc = roc_auc(&scores, &labels).unwrap();
        // 200 pairs: a standard deviation of 0.04.
        assert!((0.35..0.65).contains(&auc), "{}: {auc}", config.name().as_str());
    }
}

/// A model written with public items only: the mean time encoding of each node's neighbours.
#[derive(Debug)]
struct MeanAge {
    settings: MeanAgeSettings,
    time: TimeEncoding,
    head: PairHead,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct MeanAgeSettings {
    n_latest: usize,
}

impl Default for MeanAgeSettings {
    fn default() -> Self {
        Self { n_latest: 4 }
    }
}

impl CustomModel for MeanAge {
    const NAME: &'static str = "mean-age";
    type Settings = MeanAgeSettings;

    fn new(
        settings: &MeanAgeSettings,
        common: &CommonSettings,
        _: FeatureWidths,
        seed: u64,
    ) -> Result<(Self, Parameters)> {
        let mut parameters = Parameters::default();
        let builder = &mut ParamBuilder::new(&mut parameters, seed);
        let time = builder.time_encoding("time", common.d_time)?;
        Ok((
            Self { settings: *settings, time, head: builder.pair_head(common.d_time, &common.statistics)? },
            parameters,
        ))
    }
}

impl Model for MeanAge {
    fn name(&self) -> ModelName {
        ModelName::Custom(Self::NAME)
    }

    fn encoding(&self) -> PairEncoderConfig {
        PairEncoderConfig { length: self.settings.n_latest + 1, k: 0, ..PairEncoderConfig::default() }
    }

    fn reads_statistics(&self) -> bool {
        self.head.reads_statistics()
    }

    fn walks(&self) -> Option<WalkConfig> {
        self.head.walks()
    }

    fn logits(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let first = &input.hops()?.first;
        let times = self.time.of_hop(tape, first)?; // [F, Dt]
        let means = tape.segment_mean(times, &first.groups)?; // [2B, Dt]
        self.head.forward_nodes(tape, means, input, dropout)
    }
}

#[test]
fn custom_model_is_configured_built_and_trained_through_the_registry() {
    let mut registry = ModelRegistry::default();
    let name = registry.register::<MeanAge>().unwrap();
    assert_eq!((registry.named("mean-age").unwrap(), name.title()), (name, "mean-age"));
    assert!(registry.register::<MeanAge>().unwrap_err().to_string().contains("a name that is not taken"));

    let resolve = |setting: &str| Config::resolve_with(&registry, name, &[Preset::Quick], &[setting.to_owned()]);
    let config = resolve("model.n-latest=2").unwrap();
    let text = config.to_toml().unwrap();
    assert!(text.contains("name = \"mean-age\"") && text.contains("n-latest = 2"), "{text}");
    assert_eq!(Config::from_toml_with(&registry, &text, "config.toml").unwrap(), config);
    assert!(Config::from_toml(&text, "config.toml").unwrap_err().to_string().contains("found model.name = mean-age"));
    assert!(resolve("model.n-latest=few").unwrap_err().to_string().contains("expected a whole number"));
    let message = resolve("model.length=3").unwrap_err().to_string();
    assert!(message.contains("mean-age has no setting `length`, which belongs to HopeDGN, DyGFormer"), "{message}");

    let stream = stream(150, 150);
    let (model, parameters) = registry.build(&config.model, FeatureWidths::of(&stream), 1).unwrap();
    let store = Store::build(&stream).unwrap();
    let mut scorer = PairScorer::new(&*model, &FeatureTables::of(&stream).unwrap(), &store);
    let mut learner = TrainState::new(&Device::cpu(), parameters, AdamConfig::default()).unwrap();
    let queries = queries(60, 0, 55);
    let together = scorer.logits(learner.weights(), PairBatch::new(&queries)).unwrap();
    let alone = queries.iter().flat_map(|query| scorer.logits(learner.weights(), PairBatch::new(&[*query])).unwrap());
    assert_eq!(alone.collect::<Vec<f32>>(), together);
    assert!(scorer.sources(learner.weights(), PairBatch::new(&queries)).unwrap_err().to_string().contains("mean-age"));

    let (targets, dropout) = (vec![1.0; queries.len()], RandomStream::named(0, ""));
    let batch =
        TrainBatch { pairs: PairBatch::new(&queries), loss: Loss::Mean(&targets), events: &[], dropout: &dropout };
    for _ in 0..2 {
        scorer.train_step(&mut learner, &batch, None).unwrap();
    }
    let losses: Vec<f64> = learner.step_results(0).unwrap().iter().map(|step| step.loss).collect();
    assert!(losses[1] < losses[0], "{losses:?}");
}
