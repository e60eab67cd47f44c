//! Evaluation of a run: what its folder keeps, and how it continues after an interruption.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use ctdg::negative::CandidateCount;
use hopedgn::callbacks::{Callback, NoCallback, Stage};
use hopedgn::evaluate::{Negatives, TestRange};
use hopedgn::run::RunFolder;
use hopedgn::{EvaluateOptions, Events, LinkPredictor, ModelName};
use tempfile::TempDir;

fn events(n: u32) -> Events {
    let row = |i: u32| (format!("n{}", i * 7 % 11), format!("n{}", (i * 5 + i / 30) % 13), f64::from(i / 2));
    Events::from_tuples((0..n).map(row)).unwrap()
}

/// A trained run with a node memory, which a continued evaluation has to start with again.
fn run() -> (TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("run");
    let builder = LinkPredictor::builder().model(ModelName::Tgn).set("model.d-out=6").set("model.d-time=4");
    let builder = builder.set("model.neighbors=3").set("train.batch=20").epochs(1).run_folder(&path);
    builder.fit(&events(300)).unwrap();
    (home, path)
}

fn options() -> EvaluateOptions {
    EvaluateOptions { ranking: Some(CandidateCount::Some(5).into()), ..EvaluateOptions::default() }
}

fn load(path: &Path) -> LinkPredictor {
    LinkPredictor::load(path, &events(300)).unwrap()
}

/// Stops when it was asked so often; counts the batches against negatives.
struct StopAfter {
    left: Cell<usize>,
    n_batches: usize,
}

impl StopAfter {
    fn questions(n: usize) -> Self {
        Self { left: Cell::new(n), n_batches: 0 }
    }
}

impl Callback for StopAfter {
    fn on_progress(&mut self, stage: Stage, done: usize, _: usize) {
        self.n_batches += usize::from(stage == Stage::Evaluate && done > 0);
    }

    fn should_stop(&self) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left == 0
    }
}

#[test]
fn an_evaluation_interrupted_anywhere_continues_to_the_same_metrics() {
    let (_home, path) = run();
    let predictor = load(&path);
    let whole = predictor.evaluate_run(&options(), &mut NoCallback).unwrap();
    assert!(whole.is_complete());
    assert_eq!(whole, predictor.evaluate_with(&events(300), &options(), &mut NoCallback).unwrap());
    assert!(predictor.keep_evaluation(&whole).unwrap(), "the next evaluation starts again");

    let (mut n_calls, mut n_done) = (0, 0);
    let continued = loop {
        n_calls += 1;
        // Each pass asks three times: once a batch.
        let mut callback = StopAfter::questions(3 + n_calls);
        let evaluation = predictor.evaluate_run(&options(), &mut callback).unwrap();
        // Six passes against negatives, then two of the ranking.
        assert!(n_done < 6 || callback.n_batches == 0, "complete passes are not measured again");
        if evaluation.is_complete() {
            break evaluation;
        }
        let (done, of) = predictor.passes_measured(&options()).unwrap();
        assert!(done >= n_done && done < of && of == 8, "{done} of {of}");
        n_done = done;
        for (kind, scorers) in &evaluation.negatives {
            let measured = scorers["tgn"].transductive;
            assert_eq!(measured, whole.negatives[kind]["tgn"].transductive, "what is shown is complete: {kind}");
        }
    };
    assert_eq!(continued, whole);
    assert!(n_calls > 3 && n_done >= 6, "{n_calls} calls, {n_done} passes");
}

#[test]
fn only_the_same_evaluation_of_the_same_weights_continues() {
    let (_home, path) = run();
    let predictor = load(&path);
    let stopped = predictor.evaluate_run(&options(), &mut StopAfter::questions(8)).unwrap();
    assert_eq!(stopped.incomplete[stopped.incomplete.len() - 1], "ranking");
    let done = |options: &EvaluateOptions| load(&path).passes_measured(options).unwrap().0;
    assert!(done(&options()) > 0);
    assert_eq!(done(&EvaluateOptions { ranking: Some(CandidateCount::All.into()), ..options() }), 0);
    assert_eq!(done(&EvaluateOptions { negatives: vec![Negatives::Random], ..options() }), 0);
    assert_eq!(done(&EvaluateOptions { range: TestRange::New, ..options() }), 0);

    let partial = path.join("evaluation.partial.json");
    let kept = std::fs::read(&partial).unwrap();
    LinkPredictor::builder().epochs(2).resume(&path, &events(300)).unwrap();
    assert!(!partial.exists(), "swept when the run is trained further");
    std::fs::write(&partial, kept).unwrap();
    assert_eq!(done(&options()), 0, "of other weights");
}

#[test]
fn complete_evaluations_are_added_up_in_the_folder_and_shown_in_the_report() {
    let (_home, path) = run();
    let predictor = load(&path);
    let report = || std::fs::read_to_string(path.join("report.html")).unwrap();
    assert!(!report().contains("Ranking among"));
    let evaluate = |negatives: &[Negatives], ranking: Option<CandidateCount>, range: TestRange| {
        let options = EvaluateOptions { negatives: negatives.to_vec(), ranking: ranking.map(Into::into), range };
        let evaluation = predictor.evaluate_run(&options, &mut NoCallback).unwrap();
        predictor.keep_evaluation(&evaluation).unwrap()
    };
    assert!(evaluate(&[Negatives::Historical], Some(CandidateCount::Some(5)), TestRange::Split));
    assert!(evaluate(&[Negatives::Random], Some(CandidateCount::Some(3)), TestRange::Split));
    assert!(!evaluate(&[Negatives::Random], None, TestRange::Times { from: 10.0, until: None }), "other events");
    let kept = RunFolder::open(&path).unwrap().evaluation().unwrap().unwrap();
    assert_eq!(kept.negatives.keys().collect::<Vec<_>>(), ["historical", "random"]);
    assert!([3, 5].iter().all(|n| kept.ranking_among(&(*n).into(), None).is_some()));
    for part in ["Against historical negatives", "Ranking among at most 3 other", "Ranking among at most 5 other"] {
        assert!(report().contains(part), "{part}");
    }
    // Resuming a complete run changes nothing; more epochs make other weights.
    LinkPredictor::builder().resume(&path, &events(300)).unwrap();
    assert!(report().contains("Ranking among at most 5 other"));
    LinkPredictor::builder().epochs(2).resume(&path, &events(300)).unwrap();
    assert!(!report().contains("Ranking among") && RunFolder::open(&path).unwrap().evaluation().unwrap().is_none());
    let evaluation = predictor.evaluate_with(&events(300), &options(), &mut NoCallback).unwrap();
    assert!(!predictor.keep_evaluation(&evaluation).unwrap(), "of the weights before");
}
