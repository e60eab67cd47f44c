//! Models learn what can be learned, and nothing else.

use ctdg::generate::TriadicSpec;
use ctdg::metric::average_precision;
use ctdg::mite::PairQuery;
use ctdg::store::Store;
use hopedgn::config::ModelConfig;
use hopedgn::encode::FeatureTables;
use hopedgn::model::HopeDgn;
use hopedgn::score::{Lesson, PairScorer};
use hopedgn_tensor::{AdamConfig, Device, Learner};

/// Average precision on the last 30% of the triadic queries after learning from the first 70%, and the best possible.
fn triadic(mite: bool, n_episodes: u32, n_epochs: u64) -> (f64, f64) {
    let spec = TriadicSpec { n_episodes, ..TriadicSpec::default() };
    let triadic = spec.generate(3).unwrap();
    let cut = triadic.queries.len() * 7 / 10 / 4 * 4;
    let (train, test) = triadic.queries.split_at(cut);
    let config = ModelConfig {
        length: 4,
        k: 2,
        d_channel: 8,
        d_time: 16,
        d_mite: 16,
        d_out: 16,
        dropout: 0.0,
        n_blocks: 1,
        mite,
        ..ModelConfig::default()
    };
    let store = Store::build(&triadic.stream).unwrap();
    let tables = FeatureTables::of(&triadic.stream).unwrap();
    let (model, parameters) = HopeDgn::new(&config, tables.widths(), 1).unwrap();
    let adam = AdamConfig { lr: 2e-3, ..AdamConfig::default() };
    let mut learner = Learner::new(&Device::cpu(), parameters, adam).unwrap();
    let mut scorer = PairScorer::new(&model, &tables, &store);
    let pair = |query: &ctdg::generate::Query| PairQuery { src: query.src, dst: query.dst, time: query.time };
    let dropout = ctdg::random::Stream::named(0, "test");
    for _ in 0..n_epochs {
        for batch in train.chunks(100) {
            let queries: Vec<PairQuery> = batch.iter().map(pair).collect();
            let targets: Vec<f32> = batch.iter().map(|query| if query.label { 1.0 } else { 0.0 }).collect();
            let lesson = Lesson { queries: &queries, targets: &targets, group: queries.len(), dropout: &dropout };
            scorer.learn(&mut learner, &lesson).unwrap();
        }
    }
    let queries: Vec<PairQuery> = test.iter().map(pair).collect();
    let labels: Vec<bool> = test.iter().map(|query| query.label).collect();
    let logits = scorer.logits(learner.weights(), &queries, queries.len()).unwrap();
    let best =
        ctdg::metric::shuffled_average_precision(&test.iter().map(|query| query.optimal).collect::<Vec<_>>(), &labels);
    (average_precision(&logits, &labels).unwrap(), best.unwrap())
}

#[test]
fn hopedgn_comes_within_a_point_of_the_best_possible_on_triads() {
    let (ap, best) = triadic(true, 1500, 12);
    assert!(ap > best - 0.01, "{ap} of {best}");
    assert!(best < 0.95, "the best is not perfect: {best}");
}

#[test]
fn without_mite_triads_are_beyond_it() {
    let (ap, best) = triadic(false, 1500, 12);
    assert!(ap < 0.6 && best > 0.8, "{ap} of {best}");
}
