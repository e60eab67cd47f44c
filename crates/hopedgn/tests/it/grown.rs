//! A log that has grown since training: resume and test on the run's own events, test on newer ones, warm start.

use std::collections::BTreeMap;
use std::path::Path;

use ctdg::random::RandomStream;
use hopedgn::callbacks::{Callback, NoCallback};
use hopedgn::evaluate::{Evaluation, Negatives, TestRange};
use hopedgn::run::RunFolder;
use hopedgn::{Error, EvaluateOptions, Events, LinkPredictor, LinkPredictorBuilder, ModelName};

type Row = (String, String, f64);

const N_KNOWN: usize = 200;

/// Events of twelve nodes, two at each time.
fn known() -> Vec<Row> {
    let mut random = RandomStream::named(3, "grown");
    let mut name = || format!("m{:02}", random.below(12));
    (0..N_KNOWN).map(|i| (name(), name(), (i / 2) as f64)).collect()
}

/// The same and sixty more, a third of them with the new source `stranger`.
fn grown(stranger: &str) -> Vec<Row> {
    let mut random = RandomStream::named(4, "grown");
    let mut name = || format!("m{:02}", random.below(12));
    let more = (0..60).map(|i| {
        let src = if i % 3 == 0 { stranger.to_owned() } else { name() };
        (src, name(), usize::midpoint(N_KNOWN, i) as f64)
    });
    known().into_iter().chain(more).collect()
}

fn events(rows: &[Row]) -> Events {
    Events::from_tuples(rows.iter().map(|(src, dst, time)| (src, dst, *time))).unwrap()
}

fn small<'c>(model: ModelName) -> LinkPredictorBuilder<'c> {
    let sizes = ["length=4", "neighbors=3", "d-channel=4", "d-time=4", "d-out=6", "n-heads=2"];
    let settings = sizes.map(|size| format!("model.{size}"));
    let builder = LinkPredictor::builder().model(model).set("train.batch=20").epochs(2);
    let known = hopedgn::config::ModelConfig::new(model);
    settings
        .iter()
        .filter(|setting| known.has(setting[6..].split('=').next().unwrap()))
        .fold(builder, hopedgn::LinkPredictorBuilder::set)
}

const MODELS: [ModelName; 5] = [ModelName::HopeDgn, ModelName::Cawn, ModelName::Tgn, ModelName::Pint, ModelName::Jodie];

/// All files that say what was trained, by name.
fn trained_files(run: &Path) -> BTreeMap<String, Vec<u8>> {
    let names = ["model.safetensors", "config.toml"];
    names.map(|name| (name.to_owned(), std::fs::read(run.join(name)).unwrap())).into()
}

struct StopAfter(std::cell::Cell<usize>);

impl Callback for StopAfter {
    fn should_stop(&self) -> bool {
        self.0.set(self.0.get().saturating_sub(1));
        self.0.get() == 0
    }
}

#[test]
fn a_run_resumes_on_a_grown_log_to_the_same_bits() {
    let (before, after) = (events(&known()), events(&grown("a-new")));
    for model in MODELS {
        let home = tempfile::tempdir().unwrap();
        let [whole, stopped] = ["whole", "stopped"].map(|name| home.path().join(name));
        let expected = small(model).run_folder(&whole).fit(&before).unwrap();
        let builder = small(model).run_folder(&stopped).callback(StopAfter(5.into()));
        assert!(matches!(builder.fit(&before), Err(Error::Interrupted)), "{}", model.as_str());
        let resumed = LinkPredictor::builder().resume(&stopped, &after).unwrap();
        assert_eq!(trained_files(&stopped), trained_files(&whole), "{}", model.as_str());
        assert_eq!(resumed.summary().unwrap().test, expected.summary().unwrap().test);
        assert_eq!(resumed.n_newer_events(), 60);
        // Predictions look back on the newer events, too.
        let loaded = LinkPredictor::load(&whole, &after).unwrap();
        let p = |predictor: &LinkPredictor| predictor.predict("m01", "m02", 500.0).unwrap();
        assert_eq!(p(&resumed), p(&loaded));
        assert_ne!(p(&resumed), p(&expected));
    }
}

fn evaluated(predictor: &LinkPredictor, events: &Events, range: TestRange) -> Evaluation {
    let options = EvaluateOptions { range, ..EvaluateOptions::default() };
    predictor.evaluate_with(events, &options, &mut NoCallback).unwrap()
}

/// All numbers, without what names the range.
fn numbers(evaluation: &Evaluation) -> Evaluation {
    Evaluation { tested: None, ..evaluation.clone() }
}

#[test]
fn a_grown_log_leaves_the_test_of_the_run_as_it_was() {
    let (before, after) = (events(&known()), events(&grown("a-new")));
    for model in MODELS {
        let predictor = small(model).epochs(1).fit(&before).unwrap();
        let expected = predictor.evaluate(&before).unwrap();
        let found = predictor.evaluate(&after).unwrap();
        assert_eq!(numbers(&found), numbers(&expected), "{}", model.as_str());
        assert_eq!(found.tested.as_ref().map(|tested| tested.newer), Some(60));
        // The same events by their times.
        let tested = found.tested.unwrap();
        let last = before.end();
        let times = TestRange::Times { from: tested.first_time.unwrap(), until: Some(last) };
        assert_eq!(numbers(&evaluated(&predictor, &before, times)), numbers(&expected), "{}", model.as_str());
        let found = evaluated(&predictor, &after, times);
        assert_eq!(found.tested.as_ref().unwrap().events, tested.events);
        assert_eq!(found.negatives["random"], expected.negatives["random"], "{}", model.as_str());
    }
}

#[test]
fn newer_events_are_tested_with_all_that_came_before() {
    let before = events(&known());
    for model in MODELS {
        let predictor = small(model).epochs(1).fit(&before).unwrap();
        // The new node has number 0, and every other one another number, or it is the last and the numbers stay: the same
        // numbers, as no negative depends on a source.
        let [first, last] = ["a-new", "z-new"].map(|stranger| {
            let after = events(&grown(stranger));
            evaluated(&predictor, &after, TestRange::New)
        });
        let metrics = |evaluation: &Evaluation| evaluation.negatives["random"].clone();
        // CAWN samples by names.
        let is_same = metrics(&first) == metrics(&last);
        assert!(is_same || model == ModelName::Cawn, "{}: {first:?} {last:?}", model.as_str());
        let tested = first.tested.unwrap();
        assert_eq!((tested.range.as_str(), tested.events, tested.trained_on), ("new", 60, 0));
        assert!(tested.new_node_events >= 20, "{tested:?}");
        assert!(first.negatives["random"][model.as_str()].inductive.is_some());
        // Later events change nothing.
        let after = events(&grown("a-new"));
        let times = TestRange::Times { from: 105.0, until: Some(120.0) };
        let short = after.prefix(240).unwrap();
        assert_eq!(short.end(), 119.0_f64.next_up());
        assert_eq!(
            numbers(&evaluated(&predictor, &after, times)),
            numbers(&evaluated(&predictor, &short, times)),
            "{}",
            model.as_str()
        );
    }
}

#[test]
fn events_of_the_training_may_be_tested_and_are_counted() {
    let predictor = small(ModelName::Tgn).epochs(1).fit(&events(&known())).unwrap();
    let tested = |from, until| {
        let range = TestRange::Times { from, until };
        let options = EvaluateOptions { negatives: vec![Negatives::Random], ranking: None, range };
        predictor.evaluate_with(predictor.events(), &options, &mut NoCallback).map(|found| found.tested.unwrap())
    };
    let all = tested(0.0, None).unwrap();
    assert_eq!(all.events, N_KNOWN);
    assert!(all.trained_on > 60, "{all:?}");
    assert_eq!(tested(10.0, Some(12.0)).unwrap().events, 4);
    let error = tested(1e6, None).unwrap_err().to_string();
    assert_eq!(error, "found no event from 1000000 on, expected at least one; the last event is at 99");
    let range = TestRange::New;
    let options = EvaluateOptions { negatives: Vec::new(), ranking: None, range };
    let error = predictor.evaluate_with(predictor.events(), &options, &mut NoCallback).unwrap_err().to_string();
    assert!(error.starts_with("found no event after the 200 of the run"), "{error}");
}

#[test]
fn a_warm_start_begins_with_the_weights_of_the_other_run() {
    let (before, after, home) = (events(&known()), events(&grown("a-new")), tempfile::tempdir().unwrap());
    let [old, new] = ["old", "new"].map(|name| home.path().join(name));
    let trained = small(ModelName::HopeDgn).run_folder(&old).fit(&before).unwrap();
    let untouched = trained_files(&old);

    // With hardly any learning the weights stay.
    let still = LinkPredictor::builder().warm_start(&old).set("train.lr=1e-12").epochs(1).run_folder(&new).fit(&after);
    let still = still.unwrap();
    let loaded = LinkPredictor::load(&old, &after).unwrap();
    let p = |predictor: &LinkPredictor| predictor.predict("m01", "m02", 200.0).unwrap();
    assert!((p(&still) - p(&loaded)).abs() < 1e-5, "{} {}", p(&still), p(&loaded));
    assert!((p(&still) - p(&small(ModelName::HopeDgn).epochs(1).fit(&after).unwrap())).abs() > 1e-5);
    assert_eq!(trained_files(&old), untouched);
    assert_eq!(trained.folder(), Some(old.as_path()));

    let manifest = RunFolder::open(&new).unwrap().manifest().unwrap();
    let start = manifest.warm_start.unwrap();
    assert_eq!((start.events, start.sha256.len(), manifest.split.n_events), (N_KNOWN, 64, 260));
    assert!(Path::new(&start.run).is_absolute() && start.run.ends_with("old"), "{}", start.run);
    assert_eq!(still.history().len(), 1, "epochs are counted from 1 again");
    // And again, from the new run.
    let again = LinkPredictor::builder().warm_start(&new).epochs(1).fit(&after).unwrap();
    assert_eq!(again.history().len(), 1);
}

#[test]
fn a_warm_start_stopped_before_its_first_checkpoint_resumes_to_the_same_bits() {
    let (before, after, home) = (events(&known()), events(&grown("a-new")), tempfile::tempdir().unwrap());
    let [old, whole, stopped] = ["old", "whole", "stopped"].map(|name| home.path().join(name));
    small(ModelName::HopeDgn).run_folder(&old).fit(&before).unwrap();
    let warm = |folder: &Path| LinkPredictor::builder().warm_start(&old).run_folder(folder);
    warm(&whole).fit(&after).unwrap();
    assert!(warm(&stopped).callback(StopAfter(3.into())).fit(&after).is_err());
    // As a process that was killed before it wrote a checkpoint.
    std::fs::remove_file(stopped.join("state.safetensors")).unwrap();
    LinkPredictor::builder().resume(&stopped, &after).unwrap();
    assert_eq!(trained_files(&stopped), trained_files(&whole));
}

#[test]
fn a_warm_start_refuses_other_events_and_changed_weights() {
    let (before, home) = (events(&known()), tempfile::tempdir().unwrap());
    let [old, new] = ["old", "new"].map(|name| home.path().join(name));
    small(ModelName::HopeDgn).epochs(1).run_folder(&old).fit(&before).unwrap();
    let mut changed = grown("a-new");
    changed[17].2 += 0.25;
    let warm = || LinkPredictor::builder().warm_start(&old).run_folder(&new);
    assert!(matches!(warm().fit(&events(&changed)), Err(Error::DataMismatch { .. })));
    let other = warm().preset(hopedgn::Preset::Quick).fit(&before).unwrap_err().to_string();
    assert!(other.contains("found settings = preset quick"), "{other}");
    let wider = warm().set("model.d-channel=8").fit(&before).unwrap_err();
    assert!(matches!(wider, Error::Checkpoint { .. }), "{wider}");
    assert!(!new.exists(), "nothing is left of what could not start");
    std::fs::remove_file(old.join("model.safetensors")).unwrap();
    assert!(matches!(warm().fit(&before), Err(Error::NoWeights { .. })));
}
