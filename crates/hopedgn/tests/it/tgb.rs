//! Training and evaluation under TGB's protocol.

use std::fmt::Write as _;

use ctdg::negative::{CandidateCount, Candidates, Pass, TgbLists, TgbRule};
use ctdg::split::SplitMode;
use hopedgn::callbacks::NoCallback;
use hopedgn::config::Protocol;
use hopedgn::evaluate::{ModelScorer, rank};
use hopedgn::score::PairScorer;
use hopedgn::task::Task;
use hopedgn::train::Trainer;
use hopedgn::{Config, Device, EvaluateOptions, Events, LinkPredictor, LinkPredictorBuilder, ModelName, ModelRegistry};

fn events() -> Events {
    let row = |i: u32| (format!("n{}", i * 7 % 11), format!("n{}", (i * 5 + i / 30) % 13), f64::from(i / 2));
    Events::from_tuples((0..400).map(row)).unwrap()
}

/// A small run under the protocol.
fn builder(model: ModelName) -> LinkPredictorBuilder<'static> {
    let mut builder = LinkPredictor::builder().model(model).set("train.batch=20").set("train.lr=0.01");
    if model != ModelName::Stats {
        builder = builder.set("model.d-out=6").set("model.d-time=4").set("model.neighbors=3");
    }
    Protocol::Tgb.settings().into_iter().fold(builder, LinkPredictorBuilder::set)
}

fn ranked(candidates: Candidates) -> EvaluateOptions {
    EvaluateOptions { negatives: Vec::new(), ranking: Some(candidates), ..EvaluateOptions::default() }
}

#[test]
fn the_epoch_with_the_best_validation_mrr_is_kept() {
    for model in [ModelName::Stats, ModelName::Tgn] {
        let predictor = builder(model).epochs(4).fit(&events()).unwrap();
        let mrr: Vec<f64> = predictor.history().iter().map(|epoch| epoch.val_mrr.expect("measured")).collect();
        let better: Vec<bool> = predictor.history().iter().map(|epoch| epoch.better).collect();
        let expected: Vec<bool> = (0..mrr.len()).map(|at| mrr[..at].iter().all(|&before| mrr[at] >= before)).collect();
        assert_eq!(better, expected, "{mrr:?}");
        let last_better = 1 + better.iter().rposition(|&better| better).unwrap();
        assert_eq!(predictor.summary().unwrap().best_epoch, last_better, "{mrr:?}");
    }
}

#[test]
fn validation_mrr_is_that_of_all_events_where_asked_for() {
    let events = events();
    let mut settings = Protocol::Tgb.settings();
    settings.extend(["train.select-events=0", "train.select-candidates=6", "train.batch=20"].map(str::to_owned));
    let config = Config::resolve(ModelName::Stats, &[], &settings).unwrap();
    let task = Task::new(&events, config.split).unwrap();
    let (model, parameters) = config.build(&ModelRegistry::default(), task.tables.widths()).unwrap();
    let mut trainer = Trainer::new(&config, &task, &*model, parameters, &Device::cpu()).unwrap();
    let record = trainer.epoch(&mut NoCallback, &mut |_| Ok(())).unwrap();
    let scorer = PairScorer::new(&*model, &task.tables, &task.full_store);
    let mut scorers = [ModelScorer::new(scorer, trainer.weights(), None)];
    let candidates = CandidateCount::Some(6).into();
    let ranks = rank(&task, Pass::Val, &candidates, 20, &mut scorers, &mut NoCallback).unwrap().unwrap();
    assert_eq!(record.val_mrr, Some(ranks[0].mrr));
}

#[test]
fn a_memory_is_the_same_whether_or_not_epochs_are_selected_by_rank() {
    let train = |select: &str| {
        let predictor = builder(ModelName::Tgn).set(format!("train.select={select}")).epochs(2).fit(&events()).unwrap();
        predictor.history().iter().map(|epoch| (epoch.loss, epoch.val)).collect::<Vec<_>>()
    };
    assert_eq!(train("mrr"), train("ap"));
}

#[test]
fn candidates_of_a_file_rank_like_the_drawn_ones_they_list() {
    let events = events();
    let rule = TgbRule::new(7);
    let task = Task::new(&events, SplitMode::Tgb).unwrap();
    let name = |node| events.names().name(node);
    let mut lists = TgbLists::new(&events, &task.split, rule);
    let mut lines: Vec<String> = Vec::new();
    for &id in &task.split.test {
        let (event, candidates) = (events.event(id), lists.of(id));
        let names: Vec<String> = candidates.into_iter().map(|node| format!("{:?}", name(node))).collect();
        let mut line = String::new();
        let (src, dst) = (name(event.src), name(event.dst));
        write!(
            line,
            r#"{{"src": "{src}", "dst": "{dst}", "time": {}, "candidates": [{}]}}"#,
            event.time,
            names.join(", ")
        )
        .unwrap();
        lines.push(line);
    }
    lines.dedup();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lists.jsonl");
    std::fs::write(&path, lines.join("\n")).unwrap();

    for model in [ModelName::Stats, ModelName::Tgn] {
        let predictor = builder(model).epochs(1).fit(&events).unwrap();
        let evaluate = |candidates| predictor.evaluate_with(&events, &ranked(candidates), &mut NoCallback);
        let drawn = evaluate(Candidates::Tgb(rule)).unwrap().ranking.unwrap();
        let listed = evaluate(Candidates::File(path.clone())).unwrap().ranking.unwrap();
        assert_eq!(drawn.scorers, listed.scorers);
        assert!(drawn.scorers.len() > 1, "heuristics beside the model");
        assert!(drawn.scorers.values().all(|settings| settings.transductive.is_some() && settings.inductive.is_none()));
        assert_eq!((drawn.candidates, listed.candidates), (7.into(), "lists.jsonl".into()));
        assert_eq!((drawn.protocol.as_deref(), listed.protocol.as_deref()), (Some("tgb"), Some("tgb")));
        let whole = evaluate(Candidates::Tgb(TgbRule::all())).unwrap().ranking.unwrap();
        assert_eq!(whole.candidates, "all");
    }
}

#[test]
fn a_run_with_masked_nodes_is_refused() {
    let predictor = builder(ModelName::Stats).set("split=dyglib").epochs(1).fit(&events()).unwrap();
    let options = ranked(Candidates::Tgb(TgbRule::new(5)));
    let error = predictor.evaluate_with(&events(), &options, &mut NoCallback).unwrap_err();
    assert_eq!(error.code(), "other-split");
    assert_eq!(
        error.to_string(),
        "found a run with split = dyglib, which keeps 1 node out of training, expected split = tgb, which keeps none; train another \
         run with that split"
    );
    let own = ranked(CandidateCount::Some(5).into());
    assert!(predictor.evaluate_with(&events(), &own, &mut NoCallback).is_ok(), "another protocol");
}
