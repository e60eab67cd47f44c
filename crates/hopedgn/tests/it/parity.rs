//! Parity with PyTorch: logits, gradients, losses and memories; see `fixtures/hopedgn` and `fixtures/models`.

use std::path::Path;
use std::sync::Arc;

use ctdg::event::{Columns, EventId, EventStream, Features, NodeId, NodeNames};
use ctdg::mite::PairQuery;
use ctdg::random::RandomStream;
use ctdg::store::Store;
use ctdg::time::TimeFormat;
use ctdg::walks::{TemporalWalks, WalkConfig};
use hopedgn::classify::Classifier;
use hopedgn::collate::{FeatureTables, FeatureWidths, PairBatch};
use hopedgn::config::{Config, ModelConfig, ModelSettings};
use hopedgn::memory::Memory;
use hopedgn::model::{self, HopeDgn, Model};
use hopedgn::score::{Loss, PairScorer, TrainBatch};
use hopedgn::task::Task;
use hopedgn::train::Trainer;
use hopedgn_tensor::{AdamConfig, Device, Dropout, Gradients, Parameters, Tape, Tensor, TrainState, Var, Weights};
use serde_json::Value;

/// `f32` against PyTorch's `f64`, relative to the larger of 1 and the largest value: two blocks deep, some tens of
/// roundings of 6e-8.
const TOLERANCE: f64 = 1e-5;

/// The same after some steps of Adam, which divides small gradients by their own size and so lets roundings grow.
const LOSS_TOLERANCE: f64 = 1e-4;

fn fixture(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[expect(clippy::cast_possible_truncation, reason = "f32 values written in decimal")]
fn numbers(value: &Value) -> Vec<f32> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap() as f32).collect()
}

fn node(value: &Value) -> NodeId {
    NodeId(u32::try_from(value.as_u64().unwrap()).unwrap())
}

fn features(rows: &Value) -> Option<Features> {
    let rows: Vec<Vec<f32>> = rows.as_array()?.iter().map(numbers).collect();
    Some(Features::new(rows[0].len(), rows.concat()).unwrap())
}

struct Case {
    name: String,
    config: ModelConfig,
    stream: EventStream,
    queries: Vec<PairQuery>,
    targets: Vec<f32>,
    written: Value,
}

impl Case {
    /// The cases of all models without memory.
    fn all() -> Vec<Self> {
        let files = [
            "hopedgn/cases.json",
            "models/hopedgn_global.json",
            "models/hopedgn_relational.json",
            "models/dygformer.json",
            "models/tgat.json",
            "models/tcl.json",
            "models/graphmixer.json",
            "models/cawn.json",
            "models/tpnet.json",
        ];
        files.into_iter().flat_map(Self::of).collect()
    }

    /// The cases of all models with memory.
    fn with_memory() -> Vec<Self> {
        let files = ["models/jodie.json", "models/dyrep.json", "models/tgn.json", "models/pint.json"];
        files.into_iter().flat_map(Self::of).collect()
    }

    fn of(file: &str) -> Vec<Self> {
        fixture(file).as_array().unwrap().iter().map(|case| Self::read(file, case)).collect()
    }

    fn read(file: &str, written: &Value) -> Self {
        let mut config: ModelConfig = serde_json::from_value(written["config"].clone()).unwrap();
        config.common.dropout = 0.0;
        let events = written["events"].as_array().unwrap();
        let nodes = |at: usize| events.iter().map(|event| node(&event[at])).collect::<Vec<_>>();
        let times: Vec<f64> = events.iter().map(|event| event[2].as_f64().unwrap()).collect();
        let stream = EventStream::new(Columns {
            src: nodes(0).into(),
            dst: nodes(1).into(),
            label: vec![0.0; times.len()].into(),
            time: times.into(),
            edge_features: features(&written["edge_features"]),
            node_features: features(&written["node_features"]),
            names: NodeNames::counted(0, 9),
            time_format: TimeFormat::Number,
        });
        let (queries, targets) = written["queries"].as_array().map(|rows| asked(rows)).unwrap_or_default();
        let name = format!("{file} {}", written["name"].as_str().unwrap());
        Self { name, config, stream: stream.unwrap(), queries, targets, written: written.clone() }
    }

    fn model(&self) -> (Box<dyn Model>, Parameters) {
        let widths = FeatureWidths::of(&self.stream);
        let (model, mut parameters) = model::build(&self.config, widths, 0).unwrap();
        set(&mut parameters, &self.written["parameters"]);
        (model, parameters)
    }

    /// Positives come first, and are padded apart from negatives.
    fn pairs(&self) -> PairBatch<'_> {
        let n_positives = self.targets.iter().filter(|&&target| target == 1.0).count();
        PairBatch::new(&self.queries).padded_in_groups_of(n_positives)
    }

    fn assert_gradients(&self, parameters: &Parameters, gradients: &Gradients) {
        for (id, name, _) in parameters.iter() {
            let expected = numbers(&self.written["gradients"][name]["values"]);
            self.assert_close(name, gradients.parameter(id).values(), &expected, TOLERANCE);
        }
    }

    fn assert_close(&self, what: &str, got: &[f32], expected: &[f32], tolerance: f64) {
        assert_close(&format!("{} {what}", self.name), got, expected, tolerance);
    }
}

fn assert_close(what: &str, got: &[f32], expected: &[f32], tolerance: f64) {
    assert_eq!(got.len(), expected.len(), "{what}");
    let scale = expected.iter().fold(1.0_f64, |max, x| max.max(f64::from(x.abs())));
    for (at, (got, expected)) in got.iter().zip(expected).enumerate() {
        let off = (f64::from(*got) - f64::from(*expected)).abs();
        assert!(off <= tolerance * scale, "{what} {at}: {got}, PyTorch has {expected}");
    }
}

/// Rows of source, destination, time and target.
fn asked(rows: &[Value]) -> (Vec<PairQuery>, Vec<f32>) {
    let query = |row: &Value| PairQuery { src: node(&row[0]), dst: node(&row[1]), time: row[2].as_f64().unwrap() };
    (rows.iter().map(query).collect(), rows.iter().map(|row| numbers(row)[3]).collect())
}

/// Sets every parameter to the value of its name; both sides have the same names.
fn set(parameters: &mut Parameters, written: &Value) {
    let names: Vec<String> = parameters.iter().map(|(_, name, _)| name.to_owned()).collect();
    assert_eq!(names.len(), written.as_object().unwrap().len(), "{names:?}");
    for name in names {
        let tensor = parameters.get_mut(parameters.id(&name).unwrap());
        let sizes: Vec<u64> = written[&name]["shape"].as_array().unwrap().iter().map(|x| x.as_u64().unwrap()).collect();
        assert_eq!(tensor.shape().dims().iter().map(|&size| size as u64).collect::<Vec<_>>(), sizes, "{name}");
        tensor.values_mut().copy_from_slice(&numbers(&written[&name]["values"]));
    }
}

#[test]
fn logits_and_all_gradients_equal_pytorch() {
    for case in Case::all() {
        let (model, parameters) = case.model();
        let store = Store::build(&case.stream).unwrap();
        let mut scorer = PairScorer::new(&*model, &FeatureTables::of(&case.stream).unwrap(), &store);
        let mut learner = TrainState::new(&Device::cpu(), parameters.clone(), AdamConfig::default()).unwrap();
        let logits = scorer.logits(learner.weights(), case.pairs()).unwrap();
        case.assert_close("logit", &logits, &numbers(&case.written["logits"]), TOLERANCE);

        let dropout = RandomStream::named(0, "");
        let batch = TrainBatch { pairs: case.pairs(), loss: Loss::Mean(&case.targets), events: &[], dropout: &dropout };
        let (loss, gradients) = scorer.loss_and_gradients(&mut learner, &batch, None).unwrap();
        assert!((loss - case.written["loss"].as_f64().unwrap()).abs() < TOLERANCE, "{}", case.name);
        case.assert_gradients(&parameters, &gradients);
    }
}

/// The random rows that the reference of TPNet is given.
#[test]
fn signs_of_the_walks_are_those_of_the_fixture() {
    let events: Vec<(u32, u32, f64)> = (0..8).map(|node| (node, node + 1, 0.0)).collect();
    let store = Store::build(&EventStream::from_events(events).unwrap()).unwrap();
    let walks = TemporalWalks::new(&store, WalkConfig { layers: 1, width: 16, decay: 0.0 });
    let signs: Vec<String> = (0..9)
        .map(|node| {
            let bits = walks.projection(NodeId(node)).iter().fold(0_u16, |bits, &x| bits << 1 | u16::from(x < 0.0));
            format!("{bits:04x}")
        })
        .collect();
    assert_eq!(fixture("models/tpnet.json")[0]["signs"], serde_json::json!(signs));
}

/// Ten batches in order: the loss of each; for one of them also the logits and all gradients.
#[test]
fn memories_and_their_losses_equal_pytorch() {
    for case in Case::with_memory() {
        let (model, parameters) = case.model();
        let (store, tables) = (Store::build(&case.stream).unwrap(), FeatureTables::of(&case.stream).unwrap());
        let mut scorer = PairScorer::new(&*model, &tables, &store);
        let mut learner = TrainState::new(&Device::cpu(), parameters.clone(), AdamConfig::default()).unwrap();
        let batches = case.written["batches"].as_array().unwrap();
        let event = |id: &Value| EventId(id.as_u64().unwrap());
        let events = |batch: &Value| batch["events"].as_array().unwrap().iter().map(event).collect::<Vec<_>>();
        let all: Vec<EventId> = batches.iter().flat_map(events).collect();
        let mut memory = Memory::new(&Device::cpu(), model.memory().unwrap(), &case.stream, &all).unwrap();
        let dropout = RandomStream::named(0, "");
        for (index, (batch, expected)) in batches.iter().zip(numbers(&case.written["steps"])).enumerate() {
            let (queries, targets) = asked(batch["queries"].as_array().unwrap());
            let events = events(batch);
            let pairs = PairBatch::new(&queries);
            let step = TrainBatch { pairs, loss: Loss::Mean(&targets), events: &events, dropout: &dropout };
            let is_checked = case.written["checked"].as_u64() == Some(index as u64);
            if is_checked {
                let before = memory.snapshot().unwrap();
                let logits = scorer.logits_with(learner.weights(), &queries, &mut memory, &[]).unwrap();
                case.assert_close("logit", &logits, &numbers(&case.written["logits"]), LOSS_TOLERANCE);
                let (loss, gradients) = scorer.loss_and_gradients(&mut learner, &step, Some(&mut memory)).unwrap();
                assert!((loss - case.written["loss"].as_f64().unwrap()).abs() < LOSS_TOLERANCE, "{}", case.name);
                case.assert_gradients(&parameters, &gradients);
                let consumed: Vec<EventId> = batches[..index]
                    .iter()
                    .flat_map(|batch| batch["events"].as_array().unwrap().iter().map(event))
                    .collect();
                memory.restore(&before, &consumed).unwrap();
            }
            scorer.train_step(&mut learner, &step, Some(&mut memory)).unwrap();
            let loss = learner.step_results(0).unwrap()[0].loss;
            assert!((loss - f64::from(expected)).abs() < LOSS_TOLERANCE, "{} {index}: {loss} {expected}", case.name);
        }
    }
}

#[test]
fn ten_losses_equal_pytorch() {
    for case in Case::all() {
        let (model, parameters) = case.model();
        let store = Store::build(&case.stream).unwrap();
        let mut scorer = PairScorer::new(&*model, &FeatureTables::of(&case.stream).unwrap(), &store);
        let mut learner = TrainState::new(&Device::cpu(), parameters, AdamConfig::default()).unwrap();
        let dropout = RandomStream::named(0, "");
        let batch = TrainBatch { pairs: case.pairs(), loss: Loss::Mean(&case.targets), events: &[], dropout: &dropout };
        for (step, expected) in numbers(&case.written["losses"]).into_iter().enumerate() {
            scorer.train_step(&mut learner, &batch, None).unwrap();
            let loss = learner.step_results(0).unwrap()[0].loss;
            assert!((loss - f64::from(expected)).abs() < LOSS_TOLERANCE, "{} {step}: {loss} {expected}", case.name);
        }
    }
}

/// The paper's equation for node tasks, also of models trained with pair pooling.
#[test]
fn source_embeddings_of_hopedgn_equal_pytorch() {
    let nodes = fixture("hopedgn/nodes.json");
    for case in Case::of("hopedgn/cases.json") {
        let (model, parameters) = case.model();
        let store = Store::build(&case.stream).unwrap();
        let mut scorer = PairScorer::new(&*model, &FeatureTables::of(&case.stream).unwrap(), &store);
        let weights = Weights::new(&Device::cpu(), parameters).unwrap();
        let sources = scorer.sources(&weights, case.pairs()).unwrap();
        let expected = &nodes[case.written["name"].as_str().unwrap()];
        case.assert_close("source", &sources, &numbers(&expected["values"]), TOLERANCE);
    }
}

#[test]
fn node_classifier_equals_pytorch() {
    let written = &fixture("models/classifier.json")[0];
    let (nodes, targets) = (numbers(&written["nodes"]["values"]), numbers(&written["targets"]));
    let width = nodes.len() / targets.len();
    let nodes = Arc::new(Tensor::matrix(targets.len(), width, nodes).unwrap());
    let (classifier, mut parameters) = Classifier::new(width, 0).unwrap();
    set(&mut parameters, &written["parameters"]);
    let mut learner = TrainState::new(&Device::cpu(), parameters.clone(), AdamConfig::default()).unwrap();
    let logits = |tape: &mut Tape<'_>, (): &()| -> hopedgn::Result<Vec<f32>> {
        let logits = classifier.logits(tape, &nodes, Dropout::NONE)?;
        Ok(tape.read(logits)?)
    };
    let loss = |tape: &mut Tape<'_>, (): &()| -> hopedgn::Result<Var> {
        let logits = classifier.logits(tape, &nodes, Dropout::NONE)?;
        Ok(tape.bce_with_logits(logits, &targets, targets.len())?)
    };
    let got = learner.weights().evaluate(&[()], logits).unwrap().concat();
    assert_close("logit", &got, &numbers(&written["logits"]), TOLERANCE);
    let (start, gradients) = learner.loss_and_gradients(&[()], loss).unwrap();
    assert!((start - written["loss"].as_f64().unwrap()).abs() < TOLERANCE);
    for (id, name, _) in parameters.iter() {
        let expected = numbers(&written["gradients"][name]["values"]);
        assert_close(name, gradients.parameter(id).values(), &expected, TOLERANCE);
    }
    for (step, expected) in numbers(&written["losses"]).into_iter().enumerate() {
        learner.step(&[()], loss).unwrap();
        let now = learner.step_results(0).unwrap()[0].loss;
        assert!((now - f64::from(expected)).abs() < LOSS_TOLERANCE, "{step}: {now} {expected}");
    }
}

/// Splits, negatives, order of batches, model and Adam together: the beginning of a training run on the bundled data.
#[test]
fn training_curve_equals_pytorch() {
    let curve = fixture("hopedgn/curve.json");
    let stream = ctdg::dataset::collegemsg().unwrap();
    // Without the time encoding nothing is chaotic; with it, an age of 1e6 turns the last bit of a trained frequency
    // into a tenth of a radian, and PyTorch itself differs from PyTorch by 5e-3 between one and two threads.
    for (run, first_tolerance, tolerance) in [("off", 2e-6, 2e-6), ("trained", 2e-6, 2e-2)] {
        let model = serde_json::from_value(curve["config"].clone()).unwrap();
        let mut config = Config { model, ..Config::default() };
        config.model.common.dropout = 0.0;
        let ModelSettings::HopeDgn(settings) = &mut config.model.settings else { panic!("another model") };
        settings.patches.time_encoding = run == "trained";
        let settings = *settings;
        config.train.lr = curve["learning_rate"].as_f64().unwrap();
        let task = Task::new(&stream, config.split).unwrap();
        let (model, mut parameters) = HopeDgn::new(&settings, &config.model.common, task.tables.widths(), 0).unwrap();
        let mut written = curve["parameters"].clone();
        if run == "off" {
            let written = written.as_object_mut().unwrap();
            written.retain(|name, _| !name.starts_with("time.") && name != "project.time.weight");
        }
        set(&mut parameters, &written);
        let mut trainer = Trainer::new(&config, &task, &model, parameters, &Device::cpu()).unwrap();
        let mut sum = 0.0;
        for (step, expected) in numbers(&curve["runs"][run]["losses"]).into_iter().enumerate() {
            trainer.steps(1, &mut || {}).unwrap();
            let loss = trainer.progress().loss_sum - sum;
            sum = trainer.progress().loss_sum;
            let tolerance = if step == 0 { first_tolerance } else { tolerance };
            assert!((loss - f64::from(expected)).abs() < tolerance, "{run} {step}: {loss}, PyTorch has {expected}");
        }
    }
}
