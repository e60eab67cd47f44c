//! Properties of HopeDGN: batch invariance, causality, determinism, absent features, explanations.

use ctdg::event::{Columns, EventStream, Features, NodeId};
use ctdg::mite::PairQuery;
use ctdg::random::RandomStream;
use ctdg::store::Store;
use hopedgn::collate::{FeatureTables, FeatureWidths, PairBatch};
use hopedgn::config::{CommonSettings, HopeDgnSettings, MiteSettings, Padding, PatchSettings};
use hopedgn::explain::explain;
use hopedgn::model::HopeDgn;
use hopedgn::predict::sigmoid;
use hopedgn::score::PairScorer;
use hopedgn_tensor::{Device, Parameters, Weights};

/// Events with equal times, repeats and self-loops; some nodes have none.
fn stream(n_events: u32, with_features: bool) -> EventStream {
    let mut random = RandomStream::named(5, "properties");
    let events: Vec<_> = (0..n_events).map(|i| (random.below(12), random.below(12), f64::from(i / 3))).collect();
    let mut columns = EventStream::from_events(events).unwrap().into_columns();
    if with_features {
        let n_nodes = columns.names.len();
        let values = |n: usize| -> Vec<f32> { (0..n).map(|i| ((i * 37) % 11) as f32 * 0.1 - 0.5).collect() };
        columns.edge_features = Some(Features::new(3, values(3 * n_events as usize)).unwrap());
        columns.node_features = Some(Features::new(2, values(2 * n_nodes)).unwrap());
    }
    EventStream::new(columns).unwrap()
}

fn queries(n: u32) -> Vec<PairQuery> {
    let mut random = RandomStream::named(6, "queries");
    let mut query = |_| PairQuery {
        src: NodeId(random.below(14)),
        dst: NodeId(random.below(14)),
        time: f64::from(random.below(90)),
    };
    (0..n).map(&mut query).collect()
}

fn small() -> HopeDgnSettings {
    let defaults = HopeDgnSettings::default();
    HopeDgnSettings {
        patches: PatchSettings { length: 9, d_channel: 6, ..defaults.patches },
        mite: MiteSettings { k: 3, d_mite: 4, ..defaults.mite },
        ..defaults
    }
}

fn build(settings: &HopeDgnSettings, widths: FeatureWidths) -> (HopeDgn, Parameters) {
    let common = CommonSettings { d_out: 7, d_time: 5, ..CommonSettings::DEFAULT };
    HopeDgn::new(settings, &common, widths, 1).unwrap()
}

fn logits(
    model: &HopeDgn,
    parameters: &Parameters,
    stream: &EventStream,
    queries: &[PairQuery],
    size: usize,
) -> Vec<f32> {
    let store = Store::build(stream).unwrap();
    let mut scorer = PairScorer::new(model, &FeatureTables::of(stream).unwrap(), &store);
    let weights = Weights::new(&Device::cpu(), parameters.clone()).unwrap();
    let score = |batch: &[PairQuery]| scorer.logits(&weights, PairBatch::new(batch)).unwrap();
    queries.chunks(size).flat_map(score).collect()
}

#[test]
fn score_does_not_depend_on_the_batch_without_padding() {
    for (patch, with_features) in [(1, false), (4, true)] {
        let stream = stream(250, with_features);
        let mut settings = small();
        settings.patches.patch = patch;
        let (model, parameters) = build(&settings, FeatureWidths::of(&stream));
        let queries = queries(400);
        let together = logits(&model, &parameters, &stream, &queries, 400);
        assert!(together.iter().any(|&logit| logit != together[0]));
        for size in [1, 7] {
            let apart = logits(&model, &parameters, &stream, &queries, size);
            assert!(together.iter().zip(&apart).all(|(a, b)| a.to_bits() == b.to_bits()), "batches of {size}");
        }
    }
}

#[test]
fn score_depends_on_the_batch_with_dyglib_padding() {
    let stream = stream(250, false);
    let mut settings = small();
    settings.patches.padding = Padding::Dyglib;
    let (model, parameters) = build(&settings, FeatureWidths::default());
    let queries = queries(40);
    assert_ne!(logits(&model, &parameters, &stream, &queries, 40), logits(&model, &parameters, &stream, &queries, 1));
}

#[test]
fn score_does_not_depend_on_later_events() {
    let (all, few) = (stream(250, true), stream(150, true));
    let (model, parameters) = build(&small(), FeatureWidths::of(&all));
    // The 150 events end at time 49.
    let early: Vec<PairQuery> = queries(200).into_iter().filter(|query| query.time <= 49.0).collect();
    assert_eq!(logits(&model, &parameters, &all, &early, 50), logits(&model, &parameters, &few, &early, 50));
}

#[test]
fn scores_do_not_depend_on_the_number_of_threads() {
    let stream = stream(250, true);
    let (model, parameters) = build(&small(), FeatureWidths::of(&stream));
    let run = |n: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
        pool.install(|| logits(&model, &parameters, &stream, &queries(100), 100))
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn zero_features_give_the_same_scores_as_no_features() {
    let bare = stream(250, false);
    let mut columns: Columns = stream(250, false).into_columns();
    columns.edge_features = Some(Features::new(3, vec![0.0; 3 * 250]).unwrap());
    let zeros = EventStream::new(columns).unwrap();
    assert_eq!(FeatureWidths::of(&zeros), FeatureWidths::default());

    // A model with edge features, on a table that is zero but for an event in no query's past.
    let mut columns = stream(250, false).into_columns();
    let mut values = vec![0.0; 3 * 250];
    values[3 * 249] = 1.0;
    columns.edge_features = Some(Features::new(3, values).unwrap());
    let nearly = EventStream::new(columns).unwrap();
    let (with, mut wide) = build(&small(), FeatureWidths::of(&nearly));
    let (without, narrow) = build(&small(), FeatureWidths::default());
    for (id, name, tensor) in narrow.iter() {
        let same = wide.id(name).unwrap();
        assert_eq!(wide.get(same), narrow.get(id), "{name}: initial values do not depend on other layers");
        *wide.get_mut(same) = tensor.clone();
    }
    let queries: Vec<PairQuery> = queries(100).into_iter().filter(|query| query.time < 83.0).collect();
    let expected = logits(&without, &narrow, &bare, &queries, 50);
    for (got, expected) in logits(&with, &wide, &nearly, &queries, 50).iter().zip(&expected) {
        assert!((got - expected).abs() < 1e-6, "{got} {expected}");
    }
    assert_eq!(logits(&without, &narrow, &zeros, &queries, 50), expected);
}

#[test]
fn explanation_agrees_with_score_and_store() {
    let stream = stream(250, false);
    let (model, parameters) = build(&small(), FeatureWidths::default());
    let store = Store::build(&stream).unwrap();
    let weights = Weights::new(&Device::cpu(), parameters.clone()).unwrap();
    for query in queries(30) {
        let explanation = explain(&model, &weights, &FeatureTables::of(&stream).unwrap(), &store, query).unwrap();
        let logit = logits(&model, &parameters, &stream, &[query], 1)[0];
        assert_eq!(explanation.probability, sigmoid(logit));
        assert!(explanation.effects.is_sorted_by(|a, b| a.change.abs() >= b.change.abs()));
        assert!(explanation.effects.iter().all(|effect| effect.time < query.time));
        for neighbor in &explanation.common {
            let met = |root: NodeId, times: &[f64]| {
                times.iter().all(|&time| {
                    let events = store.pair_events(neighbor.node, root, store.cut(query.time));
                    events.iter().any(|event| store.time(event) == time)
                })
            };
            assert!(met(query.src, &neighbor.src_times) && met(query.dst, &neighbor.dst_times));
        }
    }
}
