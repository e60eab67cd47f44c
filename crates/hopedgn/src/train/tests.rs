//! Prefetched batches, and which epoch is better.

use ctdg::generate::TriadicSpec;

use super::*;

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
