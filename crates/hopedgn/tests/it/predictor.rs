//! The front door: fit, predict, recommend, explain, evaluate, save, load, resume.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use hopedgn::callbacks::{Callback, EpochEnd, NoCallback, Stage, TrainEnd, TrainStart};
use hopedgn::ctdg::dataset::{ColumnRef, ReadOptions};
use hopedgn::ctdg::event::IdKind;
use hopedgn::run::RunFolder;
use hopedgn::{Error, EvaluateOptions, Events, LinkPredictor, LinkPredictorBuilder, ModelName, Result};

/// Twenty nodes in a circle; each one writes to the next, and sometimes further.
fn events() -> Events {
    let step = |i: u32| if i.is_multiple_of(7) { 3 } else { 1 };
    let event = |i: u32| ((i % 20).to_string(), ((i + step(i)) % 20).to_string(), f64::from(i));
    Events::from_tuples((0..300).map(event)).unwrap()
}

fn small<'c>(model: ModelName) -> LinkPredictorBuilder<'c> {
    let builder = LinkPredictor::builder().model(model).set("model.d-out=8").set("model.d-time=4").epochs(2);
    match model {
        ModelName::HopeDgn => builder.set("model.d-channel=4").set("model.length=5").set("model.k=2"),
        _ => builder,
    }
}

#[test]
fn a_predictor_predicts_recommends_explains_and_evaluates() {
    let events = events();
    let predictor = small(ModelName::HopeDgn).fit(&events).unwrap();
    let end = events.end();

    let p = predictor.predict("3", "4", end).unwrap();
    assert!(p > 0.0 && p < 1.0);
    let many = predictor.predict_many(&[("3", "4", end), ("5", "9", 100.0)]).unwrap();
    assert_eq!(many[0], p, "a probability does not depend on the other pairs");

    let all = predictor.recommend("3", 100, end).unwrap();
    assert_eq!(all.len(), 19, "every other destination");
    assert!(all.windows(2).all(|pair| pair[0].score >= pair[1].score));
    let four = all.iter().find(|item| item.dst == "4").unwrap();
    assert_eq!((four.score, four.known), (p, true));
    assert_eq!(predictor.recommend("3", 5, end).unwrap(), all[..5]);
    assert!(predictor.recommend("3", 5, 0.0).unwrap().is_empty(), "no destination before the first event");

    let why = predictor.explain("3", "4", end).unwrap();
    assert_eq!(why.probability, p);
    assert!(!why.pair_times.is_empty() && why.effects.iter().all(|effect| effect.time < end));
    let stranger = predictor.explain("3", "a new node", end).unwrap();
    assert!(stranger.pair_times.is_empty() && stranger.common.is_empty());
    assert!(predictor.knows_source("3").unwrap() && !predictor.knows_destination("a new node").unwrap());

    let report = predictor.evaluate(&events).unwrap();
    assert_eq!(report.negatives.keys().collect::<Vec<_>>(), ["historical", "inductive", "random"]);
    let test = report.negatives["random"]["hopedgn"].transductive.unwrap();
    assert_eq!(Some(test), predictor.summary().unwrap().test.transductive);
    assert!(report.ranking.unwrap().scorers["hopedgn"].transductive.unwrap().mrr > 0.0);
}

#[test]
fn a_saved_predictor_gives_the_same_scores_after_loading() {
    let (events, home) = (events(), tempfile::tempdir().unwrap());
    for model in [ModelName::HopeDgn, ModelName::Tgn] {
        let folder = home.path().join(model.as_str());
        let predictor = small(model).fit(&events).unwrap();
        predictor.save(&folder).unwrap();
        let again = LinkPredictor::load(&folder, &events).unwrap();
        let pairs: Vec<(String, String, f64)> = (0..20).map(|i| (i.to_string(), "7".to_owned(), 290.5)).collect();
        assert_eq!(again.predict_many(&pairs).unwrap(), predictor.predict_many(&pairs).unwrap());
        assert_eq!(again.history(), predictor.history());
        for file in
            ["config.toml", "manifest.json", "metrics.jsonl", "summary.json", "state.safetensors", "report.html"]
        {
            assert!(folder.join(file).is_file(), "{file}");
        }
        let taken = predictor.save(&folder).unwrap_err();
        assert!(matches!(taken, Error::RunFolderTaken { .. }), "{taken}");
    }
}

#[test]
fn training_in_memory_in_a_folder_and_resumed_gives_the_same_bits() {
    let (events, home) = (events(), tempfile::tempdir().unwrap());
    for model in [ModelName::HopeDgn, ModelName::Tgn] {
        let folder = |name: &str| home.path().join(format!("{}-{name}", model.as_str()));
        small(model).fit(&events).unwrap().save(folder("memory")).unwrap();
        small(model).run_folder(folder("folder")).fit(&events).unwrap();
        small(model).epochs(1).fit(&events).unwrap().save(folder("resumed")).unwrap();
        LinkPredictor::builder().epochs(2).resume(folder("resumed"), &events).unwrap();
        let weights = |name: &str| std::fs::read(folder(name).join("model.safetensors")).unwrap();
        assert_eq!(weights("memory"), weights("folder"));
        assert_eq!(weights("memory"), weights("resumed"));
    }
}

/// Counts its calls; asks to stop after so many batches.
#[derive(Default)]
struct Counts {
    calls: Rc<Cell<[usize; 3]>>,
    batches_left: Option<usize>,
}

impl Counts {
    fn add(&self, index: usize) {
        let mut calls = self.calls.get();
        calls[index] += 1;
        self.calls.set(calls);
    }
}

impl Callback for Counts {
    fn on_train_start(&mut self, start: &TrainStart<'_>) -> Result<()> {
        assert!(start.history.is_empty());
        self.add(0);
        Ok(())
    }

    fn on_progress(&mut self, stage: Stage, done: usize, _: usize) {
        if let (Stage::Train, Some(left)) = (stage, &mut self.batches_left) {
            *left = left.saturating_sub(usize::from(done > 0));
        }
    }

    fn on_epoch_end(&mut self, end: &EpochEnd<'_>) -> Result<()> {
        assert_eq!(end.history.last(), Some(end.record));
        self.add(1);
        Ok(())
    }

    fn on_train_end(&mut self, end: &TrainEnd<'_>) -> Result<()> {
        assert_eq!(end.summary.is_none(), self.batches_left.is_some());
        self.add(2);
        Ok(())
    }

    fn should_stop(&self) -> bool {
        self.batches_left == Some(0)
    }
}

#[test]
fn callbacks_are_called_and_can_interrupt() {
    let (events, home) = (events(), tempfile::tempdir().unwrap());
    let counts = Counts::default();
    let calls = Rc::clone(&counts.calls);
    small(ModelName::HopeDgn).callback(counts).fit(&events).unwrap();
    assert_eq!(calls.get(), [1, 2, 1]);

    let run = home.path().join("run");
    let mut impatient = Counts { batches_left: Some(1), ..Counts::default() };
    let builder = small(ModelName::HopeDgn).run_folder(&run).callback(&mut impatient);
    assert!(matches!(builder.fit(&events), Err(Error::Interrupted)));
    assert_eq!(impatient.calls.get(), [1, 0, 1]);
    let resumed = LinkPredictor::builder().resume(&run, &events).unwrap();
    let whole = small(ModelName::HopeDgn).fit(&events).unwrap();
    let p = |predictor: &LinkPredictor| predictor.predict("1", "2", 300.0).unwrap();
    assert_eq!(p(&resumed), p(&whole));
}

/// Fails after an epoch, the third.
struct FailsAfterThree;

impl Callback for FailsAfterThree {
    fn on_epoch_end(&mut self, end: &EpochEnd<'_>) -> Result<()> {
        if end.history.len() == 3 { Err(Error::MissingInput) } else { Ok(()) }
    }
}

#[test]
fn a_callback_that_fails_loses_no_epoch() {
    let (events, home) = (events(), tempfile::tempdir().unwrap());
    let run = home.path().join("run");
    // Far shorter epochs than the time between two checkpoints.
    let builder = small(ModelName::Stats).epochs(5).run_folder(&run).callback(FailsAfterThree);
    assert!(matches!(builder.fit(&events), Err(Error::MissingInput)));
    let metrics = std::fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    assert_eq!(metrics.lines().count(), 3, "{metrics}");
    let resumed = LinkPredictor::builder().resume(&run, &events).unwrap();
    let whole = small(ModelName::Stats).epochs(5).fit(&events).unwrap();
    let p = |predictor: &LinkPredictor| predictor.predict("1", "2", 300.0).unwrap();
    assert_eq!(p(&resumed), p(&whole));
}

#[test]
fn other_events_are_refused_unless_asked_for() {
    let (events, home) = (events(), tempfile::tempdir().unwrap());
    let run = home.path().join("run");
    small(ModelName::HopeDgn).fit(&events).unwrap().save(&run).unwrap();
    let other = Events::from_tuples([("1", "2", 1.0), ("2", "3", 2.0)]).unwrap();
    let error = LinkPredictor::load(&run, &other).unwrap_err();
    assert!(matches!(error, Error::DataMismatch { events: 300, found_events: 2, .. }), "{error}");
    let applied = LinkPredictor::loader().any_events().load(&run, &other).unwrap();
    assert!(applied.check_events().is_err());
    assert!(applied.predict("1", "2", 3.0).is_ok());
    let nowhere = LinkPredictor::load(home.path().join("none"), &events).unwrap_err();
    assert!(matches!(nowhere, Error::NotARunFolder { .. }), "{nowhere}");
}

#[test]
fn a_grown_stream_with_new_ids_extends_the_history() {
    let (events, home) = (events(), tempfile::tempdir().unwrap());
    let run = home.path().join("run");
    small(ModelName::HopeDgn).fit(&events).unwrap().save(&run).unwrap();
    let tuple = |id| {
        let event = events.event(id);
        (events.names().name(event.src), events.names().name(event.dst), event.time)
    };
    let old: Vec<(String, String, f64)> = events.ids().map(tuple).collect();
    // A text id turns all ids into text and sorts before some of them: every node gets another number.
    let appended = ("10-new".to_owned(), "3".to_owned(), 300.0);
    let grown = Events::from_tuples(old.iter().cloned().chain([appended])).unwrap();
    let [before, after] = [&events, &grown].map(|events| LinkPredictor::load(&run, events).unwrap());
    let pairs: Vec<(&str, &str, f64)> =
        old.iter().step_by(7).map(|(src, dst, _)| (src.as_str(), dst.as_str(), 300.0)).collect();
    assert_eq!(after.predict_many(&pairs).unwrap(), before.predict_many(&pairs).unwrap());
    assert!(after.knows_source("10-new").unwrap());
    // The split names nodes by number, which were those of integers.
    let options = EvaluateOptions { ranking: None, ..EvaluateOptions::default() };
    let [found, expected] = [(&after, &grown), (&before, &events)]
        .map(|(predictor, events)| predictor.evaluate_with(events, &options, &mut NoCallback).unwrap());
    assert_eq!(found.negatives, expected.negatives);
    let changed = Events::from_tuples(old.iter().map(|(src, dst, t)| (src, dst, t + 0.5))).unwrap();
    assert!(matches!(LinkPredictor::load(&run, &changed), Err(Error::DataMismatch { .. })));
}

#[test]
fn resume_refuses_other_settings() {
    let (events, home) = (events(), tempfile::tempdir().unwrap());
    let run = home.path().join("run");
    small(ModelName::HopeDgn).epochs(1).fit(&events).unwrap().save(&run).unwrap();
    let refused = LinkPredictor::builder().set("train.lr=0.1").resume(&run, &events).unwrap_err().to_string();
    assert_eq!(
        refused,
        "found settings = train.lr=0.1, expected train.epochs, train.patience, train.save-every at most: a run resumes with its \
         own settings"
    );
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

/// A score of another processor may differ in the last bits.
const SCORE_TOLERANCE: f64 = 1e-5;

/// Run folders that each released version wrote.
#[test]
fn runs_of_every_version_load_and_resume() {
    let options = ReadOptions {
        src: Some(ColumnRef::Name("sender".into())),
        dst: Some(ColumnRef::Name("receiver".into())),
        time: Some(ColumnRef::Name("when".into())),
        ids: IdKind::Text,
        ..ReadOptions::default()
    };
    let events = Events::read_with(fixtures().join("run-0.1/events.tsv"), &options).unwrap();
    let pairs = [("u1", "u2", events.end()), ("u3", "u9", 200.0), ("u1", "stranger", 300.0)];
    let check = |predictor: &LinkPredictor, expected: &serde_json::Value| {
        for (found, expected) in predictor.predict_many(&pairs).unwrap().iter().zip(expected.as_array().unwrap()) {
            assert!((f64::from(*found) - expected.as_f64().unwrap()).abs() < SCORE_TOLERANCE, "{found} {expected}");
        }
    };
    let versions = ["run-0.1", "run-0.2"].map(|name| fixtures().join(name));
    for (version, model) in versions.iter().flat_map(|version| ["hopedgn", "tgn"].map(|model| (version, model))) {
        let expected = std::fs::read_to_string(version.join("expected.json")).unwrap();
        let expected: serde_json::Value = serde_json::from_str(&expected).unwrap();
        check(&LinkPredictor::load(version.join(model), &events).unwrap(), &expected[model]["scores"]);
        let home = tempfile::tempdir().unwrap();
        for file in std::fs::read_dir(version.join(model)).unwrap().flatten() {
            std::fs::copy(file.path(), home.path().join(file.file_name())).unwrap();
        }
        assert!(RunFolder::open(home.path()).unwrap().verify().is_ok());
        let resumed = LinkPredictor::builder().epochs(3).resume(home.path(), &events).unwrap();
        check(&resumed, &expected[model]["scores_after_epoch_3"]);
        let ap = resumed.history()[2].val.transductive.unwrap().ap;
        assert!((ap - expected[model]["val_ap_of_epoch_3"].as_f64().unwrap()).abs() < SCORE_TOLERANCE);
    }
}
