//! A run that is stopped anywhere and resumed is bit-identical to the run without interruption.

use std::cell::Cell;
use std::path::Path;

use ctdg::event::EventStream;
use ctdg::random::RandomStream;
use hopedgn::callbacks::Callback;
use hopedgn::config::{Config, ModelConfig, ModelName, ModelRegistry, Objective, TrainConfig};
use hopedgn::metrics::EpochRecord;
use hopedgn::run::RunFolder;
use hopedgn::task::Task;
use hopedgn::train::Trainer;
use hopedgn::{Error, Events, LinkPredictor, LinkPredictorBuilder};
use hopedgn_tensor::Device;

fn events() -> Events {
    let mut random = RandomStream::named(9, "resume");
    let events: Vec<_> = (0..300_u32).map(|i| (random.below(15), random.below(15), f64::from(i / 2))).collect();
    Events::from_stream("test", EventStream::from_events(events).unwrap())
}

fn start<'c>(config: &Config, run: &Path) -> LinkPredictorBuilder<'c> {
    LinkPredictor::builder().config(config.clone()).run_folder(run)
}

fn small(name: ModelName) -> ModelConfig {
    let settings = ["length=6", "neighbors=3", "k=2", "d-channel=4", "d-time=4", "d-mite=4", "d-out=6", "n-heads=2"];
    ModelConfig::new(name).with_known(&settings).unwrap()
}

fn config() -> Config {
    Config {
        model: small(ModelName::HopeDgn),
        train: TrainConfig { epochs: 3, batch: 20, lr: 1e-3, save_every: 1e6, ..TrainConfig::default() },
        ..Config::default()
    }
}

/// Asks to stop at the `after`-th question.
struct StopAt {
    after: Cell<usize>,
}

impl Callback for StopAt {
    fn should_stop(&self) -> bool {
        self.after.set(self.after.get().saturating_sub(1));
        self.after.get() == 0
    }
}

fn without_times(history: &[EpochRecord]) -> Vec<EpochRecord> {
    let strip = |record: &EpochRecord| EpochRecord {
        train_seconds: 0.0,
        eval_seconds: 0.0,
        pairs_per_second: 0.0,
        ..record.clone()
    };
    history.iter().map(strip).collect()
}

fn metrics(path: &Path) -> Vec<EpochRecord> {
    let text = std::fs::read_to_string(path.join("metrics.jsonl")).unwrap();
    without_times(&text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<_>>())
}

/// Stops a run after every so many questions, for each of `stops`; the result is always that of the run without interruption.
fn check_stops(config: &Config, stops: impl IntoIterator<Item = usize>) {
    let (events, home) = (events(), tempfile::tempdir().unwrap());
    let whole = home.path().join("whole");
    let expected = start(config, &whole).fit(&events).unwrap();
    let weights = |run: &Path| std::fs::read(run.join("model.safetensors")).unwrap();
    for after in stops {
        let run = home.path().join(after.to_string());
        let stop_at = || StopAt { after: Cell::new(after) };
        let mut stops = 0;
        let mut trained = start(config, &run).callback(stop_at()).fit(&events);
        let predictor = loop {
            match trained {
                Err(Error::Interrupted) if after > 10 || stops < 3 => {
                    stops += 1;
                    assert!(stops < 100, "every session of {after} questions completes some steps");
                    trained = LinkPredictor::builder().callback(stop_at()).resume(&run, &events);
                }
                // Sessions that stop at once would never end.
                Err(Error::Interrupted) => break LinkPredictor::builder().resume(&run, &events).unwrap(),
                trained => break trained.unwrap(),
            }
        };
        let (found, expected) = (predictor.summary().unwrap(), expected.summary().unwrap());
        assert_eq!((found.test, found.val), (expected.test, expected.val), "stopped every {after}");
        assert_eq!(metrics(&run), metrics(&whole));
        assert_eq!(weights(&run), weights(&whole));
    }
}

#[test]
fn a_run_stopped_at_any_step_and_resumed_is_bit_identical() {
    check_stops(&config(), (1..60).step_by(3));
}

#[test]
fn a_model_of_intensities_is_resumed_bit_identically() {
    for name in [ModelName::Stats, ModelName::HopeDgn, ModelName::Tgn] {
        let mut config = Config { model: small(name), ..config() };
        config.train.epochs = 2;
        config.train.objective = Objective::Intensity;
        // The end asks once for each event whose probabilities are summed.
        check_stops(&config, [1, 4, 8, 150]);
    }
}

#[test]
fn a_memory_is_resumed_bit_identically() {
    for name in [ModelName::Jodie, ModelName::Tgn, ModelName::Pint] {
        let mut config = Config { model: small(name), ..config() };
        config.train.epochs = 2;
        check_stops(&config, (1..30).step_by(4));
    }
}

#[test]
fn more_epochs_continue_a_completed_run() {
    let (events, home) = (events(), tempfile::tempdir().unwrap());
    let config = config();
    let (whole, run) = (home.path().join("whole"), home.path().join("short"));
    start(&config, &whole).fit(&events).unwrap();

    let short = Config { train: TrainConfig { epochs: 1, ..config.train.clone() }, ..config.clone() };
    start(&short, &run).fit(&events).unwrap();
    assert_eq!(metrics(&run).len(), 1);
    let longer = LinkPredictor::builder().epochs(3).resume(&run, &events).unwrap();
    assert_eq!(longer.summary().unwrap().epochs, 3);
    assert_eq!(metrics(&run), metrics(&whole));
    let fewer = LinkPredictor::builder().epochs(2).resume(&run, &events).unwrap_err().to_string();
    assert!(fewer.contains("expected at least the 3 that are trained"), "{fewer}");
}

#[test]
fn a_trained_run_without_its_checkpoint_is_not_started_again() {
    let (events, home) = (events(), tempfile::tempdir().unwrap());
    let run = home.path().join("run");
    start(&config(), &run).fit(&events).unwrap();
    std::fs::remove_file(run.join("state.safetensors")).unwrap();
    let before = std::fs::read(run.join("model.safetensors")).unwrap();
    let refused = LinkPredictor::builder().epochs(4).resume(&run, &events).unwrap_err();
    assert!(matches!(refused, Error::NoCheckpoint { .. }), "{refused}");
    assert_eq!(std::fs::read(run.join("model.safetensors")).unwrap(), before);
}

#[test]
fn a_locked_folder_is_refused() {
    let (events, home) = (events(), tempfile::tempdir().unwrap());
    let run = home.path().join("run");
    start(&config(), &run).fit(&events).unwrap();
    let _lock = RunFolder::open(&run).unwrap().lock().unwrap();
    let refused = LinkPredictor::builder().epochs(4).resume(&run, &events).unwrap_err();
    assert!(matches!(refused, Error::RunFolderBusy { .. }), "{refused}");
}

#[test]
fn a_diverging_run_stops_and_names_the_batch() {
    let (events, home) = (events(), tempfile::tempdir().unwrap());
    let mut config = config();
    config.train.lr = 1e30;
    let error = start(&config, &home.path().join("run")).fit(&events).unwrap_err();
    let Error::Diverged { step, epoch, batch, seed, .. } = error else { panic!("{error}") };
    assert_eq!((epoch, seed), (1, 0));
    assert_eq!(step, batch as u64);
}

#[test]
fn a_resumed_run_continues_the_schedule() {
    let events = events();
    let trained = |schedule: &str, stop: usize| {
        let settings = [format!("train.schedule={schedule}"), "train.epochs=1".to_owned(), "train.batch=20".to_owned()];
        let config = Config::resolve(ModelName::Stats, &[], &settings).unwrap();
        let task = Task::new(&events, config.split).unwrap();
        let (model, parameters) = config.build(&ModelRegistry::default(), task.tables.widths()).unwrap();
        let mut first = Trainer::new(&config, &task, &*model, parameters.clone(), &Device::cpu()).unwrap();
        first.steps(stop, &mut || {}).unwrap();
        let mut second = Trainer::new(&config, &task, &*model, parameters, &Device::cpu()).unwrap();
        second.restore(&first.save().unwrap()).unwrap();
        second.steps(8 - stop, &mut || {}).unwrap();
        second.weights().parameters().unwrap().into_owned()
    };
    let expected = trained("linear", 0);
    assert_eq!(trained("linear", 3), expected);
    assert_ne!(trained("constant", 0), expected);
}
