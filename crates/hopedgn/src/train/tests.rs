//! Prefetched batches, evaluation between steps, and which epoch is better.

use ctdg::generate::TriadicSpec;

use super::*;
use crate::callbacks::NoCallback;
use crate::config::{ModelConfig, ModelName};

#[test]
fn prefetched_batches_train_bit_identically() {
    let stream = TriadicSpec { n_episodes: 400, ..TriadicSpec::default() }.generate(1).unwrap().stream;
    let mut config = Config::default();
    for (setting, value) in [("length", 4), ("k", 2), ("d-channel", 4), ("d-time", 4), ("d-mite", 4), ("d-out", 4)] {
        config.model = config.model.with(setting, value).unwrap();
    }
    let task = Task::new(&stream, config.split).unwrap();
    let (model, parameters) = crate::model::build(&config.model, task.tables.widths(), 1).unwrap();
    let train = |workers: Option<usize>, stop: usize| {
        let mut trainer = Trainer::new(&config, &task, &*model, parameters.clone(), &Device::cpu()).unwrap();
        trainer.workers = workers;
        trainer.steps(stop, &mut || {}).unwrap();
        trainer.steps(7 - stop, &mut || {}).unwrap();
        trainer.save().unwrap()
    };
    let expected = train(None, 3);
    for (n_workers, stop) in [(1, 7), (2, 3), (5, 2)] {
        assert_eq!(train(Some(n_workers), stop), expected);
    }
}

#[test]
fn an_evaluation_between_steps_changes_neither_weights_nor_memory() {
    let stream = TriadicSpec { n_episodes: 400, ..TriadicSpec::default() }.generate(1).unwrap().stream;
    let model = ModelConfig::new(ModelName::Tgn).with_known(&["d-out=4", "d-time=4", "neighbors=3"]).unwrap();
    let config = Config { model, ..Config::default() };
    let task = Task::new(&stream, config.split).unwrap();
    let (model, parameters) = crate::model::build(&config.model, task.tables.widths(), 1).unwrap();
    let mut trainer = Trainer::new(&config, &task, &*model, parameters, &Device::cpu()).unwrap();
    trainer.steps(3, &mut || {}).unwrap();
    let before = trainer.save().unwrap();
    let mut evaluate = || trainer.evaluate(Pass::Val, Negatives::Random, &mut NoCallback).unwrap().unwrap();
    let [first, second] = [evaluate(), evaluate()];
    assert_eq!((first.ap, first.auc), (second.ap, second.auc), "the memory of the first is not read by the second");
    assert!(trainer.save().unwrap() == before);
}

#[test]
fn an_epoch_is_better_if_neither_metric_is_worse() {
    let mut progress = Progress::default();
    assert!(progress.record_validation(1, 0.5, 0.5));
    assert!(!progress.record_validation(2, 0.6, 0.4));
    assert_eq!((progress.waited, progress.best.unwrap().epoch), (1, 1));
    assert!(progress.record_validation(3, 0.5, 0.5), "a tie counts as better");
    assert!(progress.record_validation(4, 0.5, 0.7));
    assert!(!progress.record_validation(5, 0.9, 0.6));
    assert_eq!((progress.waited, progress.best.unwrap().epoch), (1, 4));
}
