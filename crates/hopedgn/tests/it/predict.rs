//! Predictions depend on the events strictly before the query time alone: not on other queries, not on later events.

use ctdg::event::{EventId, EventStream, NodeId};
use ctdg::mite::PairQuery;
use ctdg::random::RandomStream;
use ctdg::store::Store;
use hopedgn::collate::{FeatureTables, FeatureWidths};
use hopedgn::config::{ModelConfig, ModelName};
use hopedgn::memory::Memory;
use hopedgn::model;
use hopedgn::predict::{History, logits};
use hopedgn::score::PairScorer;
use hopedgn_tensor::{Device, Weights};

/// Events that a memory is updated with at a time.
const BATCH: usize = 8;

const N_NODES: u32 = 9;

fn config(name: ModelName) -> ModelConfig {
    let settings = ["neighbors=3", "length=5", "d-channel=4", "d-time=4", "d-mite=4", "d-out=8", "n-heads=2"];
    ModelConfig::new(name).with_known(&settings).unwrap()
}

/// Two events at each time.
fn stream(n_events: u32) -> EventStream {
    let mut random = RandomStream::named(4, "answer");
    // The first event names the last node, so that all streams have the same nodes.
    let mut node = |i: u32| if i == 0 { N_NODES - 1 } else { random.below(N_NODES) };
    EventStream::from_events((0..n_events).map(|i| (node(i), node(i), f64::from(i / 2)))).unwrap()
}

/// Training events of a memory model; the same in all streams.
fn train_events() -> Vec<EventId> {
    (0..40).map(EventId).collect()
}

fn predicted(config: &ModelConfig, stream: &EventStream, queries: &[PairQuery]) -> Vec<f32> {
    let (model, parameters) = model::build(config, FeatureWidths::of(stream), 1).unwrap();
    let weights = Weights::new(&Device::cpu(), parameters).unwrap();
    let (store, tables) = (Store::build(stream).unwrap(), FeatureTables::of(stream).unwrap());
    let memory = |form| Memory::new(&Device::cpu(), form, stream, &train_events()).unwrap().snapshot().unwrap();
    let memory = model.memory().map(memory);
    let history = History { stream, memory: memory.as_ref(), store: &store, tables: &tables, batch: BATCH };
    let mut n_done = 0;
    let logits = logits(&history, &*model, &weights, queries, &mut |n| n_done += n).unwrap();
    assert_eq!(n_done, queries.len());
    logits
}

/// The logit of `query` after replaying all events before it and nothing else.
fn replayed(config: &ModelConfig, stream: &EventStream, query: PairQuery) -> f32 {
    let (model, parameters) = model::build(config, FeatureWidths::of(stream), 1).unwrap();
    let weights = Weights::new(&Device::cpu(), parameters).unwrap();
    let store = Store::build(stream).unwrap();
    let mut scorer = PairScorer::new(&*model, &FeatureTables::of(stream).unwrap(), &store);
    let mut memory = Memory::new(&Device::cpu(), model.memory().unwrap(), stream, &train_events()).unwrap();
    let before: Vec<EventId> = stream.ids().filter(|&id| stream.event(id).time < query.time).collect();
    for events in before.chunks(BATCH) {
        scorer.logits_with(&weights, &PairQuery::of(stream, events), &mut memory, events).unwrap();
    }
    scorer.logits_with(&weights, &[query], &mut memory, &[]).unwrap()[0]
}

/// Pairs at the times of events, out of order, one of them of a new node.
fn queries(stream: &EventStream) -> Vec<PairQuery> {
    let events: Vec<EventId> = [33, 50, 9, 0, 51, 48, 17, 34].map(EventId).to_vec();
    let mut queries = PairQuery::of(stream, &events);
    queries.push(PairQuery { src: NodeId(N_NODES), ..queries[1] });
    queries.push(PairQuery { dst: NodeId(3), ..queries[0] });
    queries
}

fn bits(logits: &[f32]) -> Vec<u32> {
    logits.iter().map(|logit| logit.to_bits()).collect()
}

#[test]
fn a_memory_is_replayed_to_the_query_time() {
    let stream = stream(60);
    let queries = queries(&stream);
    for name in [ModelName::Jodie, ModelName::DyRep, ModelName::Tgn, ModelName::Pint] {
        let config = config(name);
        let expected: Vec<f32> = queries.iter().map(|&query| replayed(&config, &stream, query)).collect();
        assert_eq!(bits(&predicted(&config, &stream, &queries)), bits(&expected), "{}", name.as_str());
    }
}

#[test]
fn a_prediction_depends_on_no_other_query_and_no_later_event() {
    let (whole, shorter) = (stream(60), stream(52));
    let queries = queries(&whole);
    for name in ModelName::ALL {
        let config = config(name);
        let together = bits(&predicted(&config, &whole, &queries));
        let alone = queries.iter().flat_map(|&query| predicted(&config, &whole, &[query])).collect::<Vec<f32>>();
        assert_eq!(bits(&alone), together, "{}", name.as_str());
        assert_eq!(bits(&predicted(&config, &shorter, &queries)), together, "{}", name.as_str());
    }
}
