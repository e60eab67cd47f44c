//! A run that was stopped anywhere and resumed is the unbroken run.

use ctdg::event::EventStream;
use ctdg::random::Stream;
use hopedgn::callbacks::{Callback, NoCallback};
use hopedgn::config::{Config, ModelConfig, ModelName, TrainConfig};
use hopedgn::metrics::EpochRecord;
use hopedgn::run::{DataRecord, Manifest, RunFolder, Session};
use hopedgn::task::Task;
use hopedgn::{Device, Error};

fn stream() -> EventStream {
    let mut random = Stream::named(9, "resume");
    let events: Vec<_> = (0..300_u32).map(|i| (random.below(15), random.below(15), f64::from(i / 2))).collect();
    EventStream::from_events(events).unwrap()
}

fn config() -> Config {
    Config {
        model: ModelConfig { length: 6, k: 2, d_channel: 4, d_time: 4, d_mite: 4, d_out: 6, ..ModelConfig::default() },
        train: TrainConfig { epochs: 3, batch: 20, lr: 1e-3, save_every: 1e6, ..TrainConfig::default() },
        ..Config::default()
    }
}

fn folder(path: &std::path::Path, config: &Config, task: &Task<'_>) -> RunFolder {
    let manifest = Manifest {
        version: "test".into(),
        commit: None,
        command: Vec::new(),
        started: 0.0,
        threads: 1,
        machine: "test".into(),
        data: DataRecord::of(task.stream, "test", None),
        split: task.split.rule.clone(),
    };
    RunFolder::create(path, config, &manifest).unwrap()
}

/// Wants to stop at the `after`-th time it is asked.
struct StopAt {
    after: std::cell::Cell<usize>,
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

fn metrics(path: &std::path::Path) -> Vec<EpochRecord> {
    let text = std::fs::read_to_string(path.join("metrics.jsonl")).unwrap();
    without_times(&text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<_>>())
}

/// Stops a run after every so many questions, for each of `stops`; the end is always that of the unbroken run.
fn check_stops(config: &Config, stops: impl IntoIterator<Item = usize>) {
    let (stream, home) = (stream(), tempfile::tempdir().unwrap());
    let task = Task::new(&stream, config.split).unwrap();
    let whole = folder(&home.path().join("whole"), config, &task);
    let expected =
        Session { folder: &whole, config, task: &task, device: &Device::cpu() }.train(&mut NoCallback).unwrap();
    let model = std::fs::read(whole.path().join("model.safetensors")).unwrap();
    for after in stops {
        let broken = folder(&home.path().join(after.to_string()), config, &task);
        let session = Session { folder: &broken, config, task: &task, device: &Device::cpu() };
        let mut stops = 0;
        let summary = loop {
            match session.train(&mut StopAt { after: std::cell::Cell::new(after) }) {
                Err(Error::Interrupted) if after > 10 || stops < 3 => {
                    stops += 1;
                    assert!(stops < 100, "every stop after {after} questions leaves some steps behind it");
                }
                // Stopping at once every time would never end.
                Err(Error::Interrupted) => break session.train(&mut NoCallback).unwrap(),
                Ok(summary) => break summary,
                Err(error) => panic!("{error}"),
            }
        };
        assert_eq!((summary.test, summary.val), (expected.test, expected.val), "stopped every {after}");
        assert_eq!(metrics(broken.path()), metrics(whole.path()));
        assert_eq!(std::fs::read(broken.path().join("model.safetensors")).unwrap(), model);
    }
}

#[test]
fn a_run_stopped_at_any_step_and_resumed_equals_the_unbroken_run() {
    check_stops(&config(), (1..60).step_by(3));
}

#[test]
fn a_memory_is_resumed_with_the_rest() {
    for name in [ModelName::Jodie, ModelName::Tgn, ModelName::Pint] {
        let mut config = config();
        config.model = ModelConfig {
            neighbors: 3,
            d_time: 4,
            d_out: 6,
            n_heads: 2,
            ..Config::resolve(name, &[], &[]).unwrap().model
        };
        config.train.epochs = 2;
        check_stops(&config, (1..30).step_by(4));
    }
}

#[test]
fn more_epochs_continue_a_finished_run() {
    let (stream, home) = (stream(), tempfile::tempdir().unwrap());
    let config = config();
    let task = Task::new(&stream, config.split).unwrap();
    let whole = folder(&home.path().join("whole"), &config, &task);
    Session { folder: &whole, config: &config, task: &task, device: &Device::cpu() }.train(&mut NoCallback).unwrap();

    let short = Config { train: TrainConfig { epochs: 1, ..config.train.clone() }, ..config.clone() };
    let run = folder(&home.path().join("short"), &short, &task);
    Session { folder: &run, config: &short, task: &task, device: &Device::cpu() }.train(&mut NoCallback).unwrap();
    assert_eq!(metrics(run.path()).len(), 1);
    let summary =
        Session { folder: &run, config: &config, task: &task, device: &Device::cpu() }.train(&mut NoCallback).unwrap();
    assert_eq!(summary.epochs, 3);
    assert_eq!(metrics(run.path()), metrics(whole.path()));
}

#[test]
fn a_folder_in_use_is_refused() {
    let (stream, config, home) = (stream(), config(), tempfile::tempdir().unwrap());
    let task = Task::new(&stream, config.split).unwrap();
    let run = folder(&home.path().join("run"), &config, &task);
    let _held = run.lock().unwrap();
    let error = Session { folder: &run, config: &config, task: &task, device: &Device::cpu() }
        .train(&mut NoCallback)
        .unwrap_err();
    assert!(error.to_string().contains("another program is at work in it"), "{error}");
}

#[test]
fn a_diverging_run_stops_with_its_place() {
    let (stream, home) = (stream(), tempfile::tempdir().unwrap());
    let mut config = config();
    config.train.lr = 1e30;
    let task = Task::new(&stream, config.split).unwrap();
    let run = folder(&home.path().join("run"), &config, &task);
    let error = Session { folder: &run, config: &config, task: &task, device: &Device::cpu() }
        .train(&mut NoCallback)
        .unwrap_err();
    let Error::Diverged { step, epoch, batch, seed, .. } = error else { panic!("{error}") };
    assert_eq!((epoch, seed), (1, 0));
    assert_eq!(step, batch as u64);
}
