//! Several workers train the same bits as one process, also when one of them is lost and replaced.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::thread;
use std::time::Duration;

use ctdg::event::EventStream;
use ctdg::random::RandomStream;
use hopedgn::callbacks::{Callback, EpochEnd, NoCallback, Stage};
use hopedgn::config::{Config, ModelConfig, ModelName, Objective, TrainConfig};
use hopedgn::distributed::{GroupOptions, Rendezvous, join};
use hopedgn::metrics::{EpochRecord, Summary};
use hopedgn::{Error, Events, LinkPredictor, Result};
use hopedgn_tensor::{Error as TensorError, ProcessGroup};

fn events(n: u32) -> Events {
    let mut random = RandomStream::named(4, "distributed");
    let events: Vec<_> = (0..n).map(|i| (random.below(15), 15 + random.below(15), f64::from(i / 2))).collect();
    Events::from_stream("test", EventStream::from_events(events).unwrap())
}

fn config(name: ModelName) -> Config {
    let settings = ["length=8", "neighbors=4", "k=2", "d-channel=4", "d-time=4", "d-mite=4", "d-out=6", "n-heads=2"];
    let model = ModelConfig::new(name).with_known(&settings).unwrap().with("dropout", 0.2).unwrap();
    let train = TrainConfig { epochs: 2, batch: 100, lr: 1e-3, save_every: 1e6, ..TrainConfig::of(name) };
    Config { model, train, ..Config::default() }
}

/// What a worker ends with: bytes of its weights, metrics of all epochs without times, and test metrics.
type Outcome = (Vec<u8>, Vec<EpochRecord>, Summary);

fn outcome(predictor: &LinkPredictor) -> Outcome {
    let home = tempfile::tempdir().unwrap();
    predictor.save(home.path().join("run")).unwrap();
    let weights = std::fs::read(home.path().join("run/model.safetensors")).unwrap();
    let timeless = |record: &EpochRecord| EpochRecord {
        train_seconds: 0.0,
        eval_seconds: 0.0,
        pairs_per_second: 0.0,
        ..record.clone()
    };
    let summary = Summary { seconds_per_epoch: 0.0, peak_memory: None, ..predictor.summary().unwrap().clone() };
    (weights, predictor.history().iter().map(timeless).collect(), summary)
}

fn alone(config: &Config, events: &Events) -> Outcome {
    outcome(&LinkPredictor::builder().config(config.clone()).fit(events).unwrap())
}

fn options(rank: usize, n_ranks: usize, meeting: &Rendezvous) -> GroupOptions {
    let patience = Duration::from_mins(1);
    GroupOptions { patience, ..GroupOptions::new(rank, n_ranks, &meeting.address().to_string()) }
}

fn meeting(n_ranks: usize) -> Rendezvous {
    Rendezvous::new("127.0.0.1:0", n_ranks).unwrap()
}

/// Calls `work` with the group of each rank, in a thread each.
fn in_ranks<T: Send>(n_ranks: usize, work: impl Fn(ProcessGroup) -> T + Sync) -> Vec<T> {
    let meeting = meeting(n_ranks);
    let run = &|rank| work(join(options(rank, n_ranks, &meeting)).unwrap());
    thread::scope(|scope| {
        let workers: Vec<_> = (0..n_ranks).map(|rank| scope.spawn(move || run(rank))).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    })
}

fn train_in_ranks(n_ranks: usize, config: &Config, events: &Events) -> Vec<Outcome> {
    let train = |group| LinkPredictor::builder().config(config.clone()).group(group).fit(events);
    in_ranks(n_ranks, |group| outcome(&train(group).unwrap()))
}

#[test]
fn any_number_of_workers_trains_the_bits_of_one_process() {
    let events = events(600);
    let config = config(ModelName::HopeDgn);
    let expected = alone(&config, &events);
    for n_ranks in [2, 3, 4, 8] {
        for found in train_in_ranks(n_ranks, &config, &events) {
            assert!(found == expected, "{n_ranks} workers: {:?} is not {:?}", found.1, expected.1);
        }
    }
}

#[test]
fn every_model_without_a_memory_trains_the_same_bits_on_two_workers() {
    let events = events(400);
    for name in ModelName::ALL {
        let mut config = config(name);
        config.train.epochs = 1;
        let outcomes = in_ranks(2, |group| {
            let trained = LinkPredictor::builder().config(config.clone()).group(group).fit(&events);
            trained.map(|predictor| outcome(&predictor))
        });
        let expected = LinkPredictor::builder().config(config.clone()).fit(&events).unwrap();
        for found in outcomes {
            match found {
                Ok(found) => assert!(found == outcome(&expected), "{}", name.title()),
                Err(error @ Error::OneWorker { .. }) => {
                    assert!([ModelName::Jodie, ModelName::DyRep, ModelName::Tgn, ModelName::Pint].contains(&name));
                    let expected =
                        format!("found 2 workers for {}, expected one: every batch reads the memory", name.title());
                    assert!(error.to_string().starts_with(&expected), "{error}");
                }
                Err(error) => panic!("{}: {error}", name.title()),
            }
        }
    }
}

#[test]
fn pairs_that_are_sampled_by_their_own_worker_alone_train_the_same_bits() {
    let events = events(500);
    for settings in [
        &["padding=dyglib", "patch=2", "relations=true"][..],
        &["sampling=uniform", "mite-history=full"],
        &["stats=true", "walks=true"],
    ] {
        let mut config = config(ModelName::HopeDgn);
        config.model = config.model.with_known(settings).unwrap();
        // Several chunks of each gradient group.
        (config.train.epochs, config.train.batch) = (1, 350);
        config.model = config.model.with("length", 64).unwrap();
        let expected = alone(&config, &events);
        for found in train_in_ranks(3, &config, &events) {
            assert!(found == expected, "{settings:?}");
        }
    }
}

#[test]
fn batches_of_fewer_chunks_than_workers_train_the_same_bits() {
    let events = events(200);
    let mut config = config(ModelName::HopeDgn);
    config.train.batch = 16;
    let expected = alone(&config, &events);
    for found in train_in_ranks(5, &config, &events) {
        assert!(found == expected);
    }
}

#[test]
fn intensities_and_ranked_selection_are_the_same_on_all_workers() {
    let events = events(400);
    let mut config = config(ModelName::HopeDgn);
    config.train.objective = Objective::Intensity;
    config.train.select = hopedgn::config::Selection::Mrr;
    let expected = alone(&config, &events);
    for found in train_in_ranks(3, &config, &events) {
        assert!(found == expected);
    }
}

/// Ends its thread as a killed process ends, at the `after`-th progress of a stage.
struct Die {
    stage: Stage,
    after: usize,
    seen: usize,
}

impl Callback for Die {
    fn on_progress(&mut self, stage: Stage, _: usize, _: usize) {
        self.seen += usize::from(stage == self.stage);
        if self.seen >= self.after {
            resume_unwind(Box::new("killed"));
        }
    }
}

/// Trains in `n_ranks`, of which `victim` dies and is started again; rank 0 has the folder `run`.
fn with_a_death(
    n_ranks: usize,
    (config, events): (&Config, &Events),
    run: &Path,
    (victim, mut death): (usize, Die),
) -> Vec<Outcome> {
    let meeting = meeting(n_ranks);
    let train = |rank: usize, callback: &mut dyn Callback| -> Result<LinkPredictor> {
        let group = join(options(rank, n_ranks, &meeting))?;
        LinkPredictor::builder().config(config.clone()).run_folder(run).group(group).callback(callback).fit(events)
    };
    let train = &train;
    thread::scope(|scope| {
        let others: Vec<_> = (0..n_ranks)
            .filter(|&rank| rank != victim)
            .map(|rank| scope.spawn(move || outcome(&train(rank, &mut NoCallback).unwrap())))
            .collect();
        assert!(catch_unwind(AssertUnwindSafe(|| train(victim, &mut death))).is_err(), "it dies");
        let replaced = outcome(&train(victim, &mut NoCallback).unwrap());
        others.into_iter().map(|worker| worker.join().unwrap()).chain([replaced]).collect()
    })
}

#[test]
fn a_worker_that_dies_anywhere_is_replaced_and_the_bits_stay() {
    let events = events(700);
    let mut config = config(ModelName::HopeDgn);
    // Fifty steps.
    config.train.epochs = 10;
    let mut never = Die { stage: Stage::Evaluate, after: usize::MAX, seen: 0 };
    let expected = LinkPredictor::builder().config(config.clone()).callback(&mut never).fit(&events).unwrap();
    let expected = outcome(&expected);
    let home = tempfile::tempdir().unwrap();
    // The last one is in the test of the best epoch.
    let in_test = never.seen - 1;
    let deaths =
        [(Stage::Train, 1), (Stage::Train, 4), (Stage::Train, 33), (Stage::Evaluate, 2), (Stage::Evaluate, in_test)];
    for (victim, n_ranks) in [(0, 2), (1, 2), (2, 4)] {
        for (stage, after) in deaths {
            let run = home.path().join(format!("{victim}-{n_ranks}-{stage:?}-{after}"));
            let death = Die { stage, after, seen: 0 };
            for found in with_a_death(n_ranks, (&config, &events), &run, (victim, death)) {
                assert!(found == expected, "rank {victim} of {n_ranks} dies in {stage:?} {after}");
            }
            let written = LinkPredictor::load(&run, &events).unwrap();
            assert!(outcome(&written) == expected, "the folder of rank 0");
        }
    }
}

/// Asks to stop at the `after`-th question.
struct StopAt(Cell<usize>);

impl Callback for StopAt {
    fn should_stop(&self) -> bool {
        self.0.set(self.0.get().saturating_sub(1));
        self.0.get() == 0
    }
}

#[test]
fn a_stop_of_one_worker_stops_all_and_the_run_resumes_with_any_number() {
    let events = events(400);
    let config = config(ModelName::HopeDgn);
    let (expected, home) = (alone(&config, &events), tempfile::tempdir().unwrap());
    let run = home.path().join("run");
    let results = in_ranks(3, |group| {
        let stop = StopAt(Cell::new(if group.rank() == 2 { 3 } else { usize::MAX }));
        let builder = LinkPredictor::builder().config(config.clone()).run_folder(&run).group(group);
        builder.callback(stop).fit(&events).map(|_| ())
    });
    assert!(results.iter().all(|result| matches!(result, Err(Error::Interrupted))), "{results:?}");
    for found in in_ranks(2, |group| outcome(&LinkPredictor::builder().group(group).resume(&run, &events).unwrap())) {
        assert!(found == expected);
    }
}

/// Fails at the end of the first epoch, as a full disk would.
struct Fail;

impl Callback for Fail {
    fn on_epoch_end(&mut self, _: &EpochEnd<'_>) -> Result<()> {
        Err(Error::Threads { detail: "the disk is full".to_owned() })
    }
}

#[test]
fn an_error_of_one_worker_ends_all_with_its_name() {
    let (events, config) = (events(300), config(ModelName::HopeDgn));
    let errors = in_ranks(3, |group| {
        let builder = LinkPredictor::builder().config(config.clone());
        let builder = if group.rank() == 1 { builder.callback(Fail) } else { builder };
        builder.group(group).fit(&events).unwrap_err()
    });
    for (rank, error) in errors.iter().enumerate() {
        match error {
            Error::Threads { .. } => assert_eq!(rank, 1),
            Error::Tensor(TensorError::FailedRank { rank: 1, detail }) => assert!(detail.ends_with("the disk is full")),
            other => panic!("rank {rank}: {other}"),
        }
    }
}

#[test]
fn workers_with_other_settings_or_events_are_refused() {
    let (few, many) = (events(300), events(320));
    let errors = in_ranks(2, |group| {
        let mut config = config(ModelName::HopeDgn);
        config.train.lr = if group.rank() == 1 { 2e-3 } else { 1e-3 };
        LinkPredictor::builder().config(config).group(group).fit(&few).unwrap_err().to_string()
    });
    assert!(errors.iter().all(|error| error.contains("found train.lr = 0.002, expected 0.001")), "{errors:?}");
    let errors = in_ranks(2, |group| {
        let events = if group.rank() == 1 { &many } else { &few };
        LinkPredictor::builder().config(config(ModelName::HopeDgn)).group(group).fit(events).unwrap_err().to_string()
    });
    assert!(errors.iter().all(|error| error.starts_with("rank 1 reads other events than rank 0")), "{errors:?}");
}

#[test]
fn ranks_that_do_not_come_or_do_not_fit_are_named() {
    let meeting = meeting(3);
    let soon = |rank, n_ranks| GroupOptions { patience: Duration::from_secs(2), ..options(rank, n_ranks, &meeting) };
    let message = |options| join(options).unwrap_err().to_string();
    let missing = message(soon(1, 3));
    assert!(missing.starts_with("no process group: found no rank 0, 2 at 127.0.0.1:"), "{missing}");
    let other = message(soon(1, 4));
    assert!(other.starts_with("no process group: found rank 1 of 4, expected one of 3"), "{other}");
    assert!(message(soon(3, 3)).contains("found rank 3 of 3"), "ranks count from 0");
    let unanswered = GroupOptions { patience: Duration::ZERO, ..GroupOptions::new(1, 2, "127.0.0.1:1") };
    assert!(message(unanswered).contains("rank 1 found no process at 127.0.0.1:1"));
    assert!(join(GroupOptions::new(0, 1, "nowhere")).unwrap().is_alone(), "one process needs no other");
}
