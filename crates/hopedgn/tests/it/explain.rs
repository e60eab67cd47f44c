//! Explanations: effects are those of a stream without the events, connections are those of brute force, text and JSON agree.

use std::collections::BTreeSet;

use ctdg::event::{EventId, EventStream, Features, NodeId, NodeNames};
use ctdg::mite::PairQuery;
use ctdg::random::RandomStream;
use ctdg::store::Store;
use ctdg::time::TimeFormat;
use hopedgn::collate::{FeatureTables, FeatureWidths, PairBatch};
use hopedgn::config::{ModelConfig, ModelName};
use hopedgn::explain::{EffectSide, EventEffect, Explanation, GroupEffect, MAX_PATHS, NeighborPath, explain};
use hopedgn::model::{self, Model};
use hopedgn::predict::sigmoid;
use hopedgn::score::PairScorer;
use hopedgn_tensor::{Device, Weights};
use serde_json::{Value, json};

const N_NODES: u32 = 9;

/// Events with equal times, repeats and self-loops, with features of nodes and events.
fn stream(n_events: u32) -> EventStream {
    let mut random = RandomStream::named(8, "explain");
    // Low numbers are more frequent, so that some pairs have long histories.
    let mut node = |_| random.below(N_NODES).min(random.below(N_NODES));
    let events: Vec<_> = (0..n_events).map(|i| (node(i), node(i), f64::from(i / 3))).collect();
    let mut columns = EventStream::from_events(events).unwrap().into_columns();
    let values = |n: usize| -> Vec<f32> { (0..n).map(|i| ((i * 37) % 11) as f32 * 0.1 - 0.5).collect() };
    columns.names = NodeNames::counted(0, N_NODES);
    columns.edge_features = Some(Features::new(3, values(3 * n_events as usize)).unwrap());
    columns.node_features = Some(Features::new(2, values(2 * N_NODES as usize)).unwrap());
    EventStream::new(columns).unwrap()
}

/// Pairs at the times of events and between them; some have one node twice, some a new node.
fn queries(n: u32) -> Vec<PairQuery> {
    let mut random = RandomStream::named(9, "queries");
    let mut query = |i: u32| PairQuery {
        src: NodeId(random.below(N_NODES + 1)),
        dst: NodeId(random.below(N_NODES + 1)),
        time: f64::from(random.below(70)) + f64::from(i % 2) / 2.0,
    };
    let mut queries: Vec<PairQuery> = (0..n).map(&mut query).collect();
    queries.push(PairQuery { src: NodeId(0), dst: NodeId(0), time: 50.0 });
    queries.push(PairQuery { src: NodeId(0), dst: NodeId(1), time: 50.0 });
    queries
}

/// Every model that can be explained.
fn configs() -> Vec<ModelConfig> {
    let sizes = ["length=6", "neighbors=5", "k=3", "d-channel=4", "d-time=4", "d-mite=4", "d-out=8"];
    let others = ["d-cooccurrence=4", "n-heads=2", "time-gap=7", "sampling=recent"];
    let settings = [&sizes[..], &others].concat();
    let config = |name: ModelName| ModelConfig::new(name).with_known(&settings).unwrap();
    let whole_history = config(ModelName::HopeDgn).with("mite-history", "full").unwrap();
    let padded = config(ModelName::DyGFormer).with("padding", "dyglib").unwrap();
    let relations =
        |others: &[&str]| config(ModelName::HopeDgn).with("relations", true).unwrap().with_known(others).unwrap();
    vec![
        config(ModelName::HopeDgn),
        whole_history,
        config(ModelName::DyGFormer),
        padded,
        config(ModelName::Tcl),
        config(ModelName::GraphMixer),
        config(ModelName::Stats),
        config(ModelName::HopeDgn).with_known(&["stats=true", "triads=true", "direction=true"]).unwrap(),
        relations(&[]),
        relations(&["patch=2", "stats=true"]),
        relations(&["padding=dyglib"]),
    ]
}

/// A model with its weights over a stream.
struct Setup<'s> {
    stream: &'s EventStream,
    model: Box<dyn Model>,
    weights: Weights,
    tables: FeatureTables,
    store: Store,
}

impl<'s> Setup<'s> {
    fn new(config: &ModelConfig, stream: &'s EventStream) -> Self {
        let (model, parameters) = model::build(config, FeatureWidths::of(stream), 1).unwrap();
        let weights = Weights::new(&Device::cpu(), parameters).unwrap();
        let (tables, store) = (FeatureTables::of(stream).unwrap(), Store::build(stream).unwrap());
        Self { stream, model, weights, tables, store }
    }

    fn explain(&self, query: PairQuery) -> Explanation {
        explain(&*self.model, &self.weights, &self.tables, &self.store, query).unwrap()
    }

    /// The probability of `query` on a stream without `events`.
    fn probability_without(&self, events: &[EventId], query: PairQuery) -> f32 {
        let rest: Vec<EventId> = self.stream.ids().filter(|id| !events.contains(id)).collect();
        let store = Store::of_events(self.stream, &rest).unwrap();
        let mut scorer = PairScorer::new(&*self.model, &self.tables, &store);
        sigmoid(scorer.logits(&self.weights, PairBatch::new(&[query]).padded_alone()).unwrap()[0])
    }
}

/// The nodes of an event without `root`; a self-loop of it is an event with itself.
fn other(stream: &EventStream, id: EventId, root: NodeId) -> Option<NodeId> {
    let event = stream.event(id);
    match (event.src == root, event.dst == root) {
        (true, _) => Some(event.dst),
        (_, true) => Some(event.src),
        _ => None,
    }
}

/// All events before the query of a group.
fn group_events(stream: &EventStream, group: &GroupEffect, query: PairQuery) -> Vec<EventId> {
    let root = if group.side == EffectSide::Dst { query.dst } else { query.src };
    let is_in = |id: &EventId| stream.event(*id).time < query.time && other(stream, *id, root) == Some(group.node);
    stream.ids().filter(is_in).collect()
}

#[test]
fn effect_of_an_event_equals_the_score_of_a_stream_without_it() {
    let stream = stream(180);
    for config in configs() {
        let setup = Setup::new(&config, &stream);
        for query in queries(12) {
            let why = setup.explain(query);
            assert_eq!(why.probability, setup.probability_without(&[], query));
            for effect in &why.effects {
                let without = setup.probability_without(&[effect.event], query);
                assert_eq!(effect.change, why.probability - without, "{query:?} {effect:?}");
                assert!(effect.time < query.time && effect.time == stream.event(effect.event).time);
            }
        }
    }
}

#[test]
fn effect_of_a_group_equals_the_score_of_a_stream_without_all_of_its_events() {
    let stream = stream(180);
    let (mut n_large, mut n_unseen) = (0, 0);
    for config in configs() {
        let setup = Setup::new(&config, &stream);
        for query in queries(12) {
            let why = setup.explain(query);
            for group in &why.groups {
                let events = group_events(&stream, group, query);
                assert_eq!(events.len(), group.n_events, "{query:?} {group:?}");
                let without = setup.probability_without(&events, query);
                assert_eq!(group.change, why.probability - without, "{query:?} {group:?}");
                assert_eq!(group.last_time, stream.event(events[events.len() - 1]).time);
                n_large += usize::from(group.n_seen > 1);
                n_unseen += usize::from(group.n_seen < group.n_events);
            }
            if setup.model.reads_statistics() {
                assert!(why.groups.iter().all(|group| group.n_seen == group.n_events), "statistics count all events");
                continue;
            }
            let n_seen: usize = why.groups.iter().map(|group| group.n_seen).sum();
            assert_eq!(n_seen, why.effects.len(), "every event is in one group");
        }
    }
    assert!(n_large > 50 && n_unseen > 50, "{n_large} {n_unseen}");
}

#[test]
fn an_event_in_both_histories_and_a_self_loop_appear_once() {
    use EffectSide::{Both, Dst, Src};
    let events = [(0, 2, 1.0), (0, 1, 2.0), (0, 0, 3.0), (1, 0, 3.0), (1, 2, 4.0)];
    let stream = EventStream::from_events(events).unwrap();
    let config = ModelConfig::new(ModelName::HopeDgn).with_known(&["d-channel=4", "length=8"]).unwrap();
    let setup = Setup::new(&config, &stream);
    let why = setup.explain(PairQuery { src: NodeId(0), dst: NodeId(1), time: 9.0 });
    let mut seen: Vec<(u64, EffectSide, u32)> =
        why.effects.iter().map(|effect| (effect.event.0, effect.side, effect.node.0)).collect();
    seen.sort_unstable();
    assert_eq!(seen, [(0, Src, 2), (1, Both, 1), (2, Src, 0), (3, Both, 1), (4, Dst, 2)]);
    let mut groups: Vec<(EffectSide, u32, usize)> =
        why.groups.iter().map(|group| (group.side, group.node.0, group.n_events)).collect();
    groups.sort_unstable();
    assert_eq!(groups, [(Src, 0, 1), (Src, 2, 1), (Dst, 2, 1), (Both, 1, 2)]);
    assert_eq!(why.pair_times, [3.0, 2.0]);

    let why = setup.explain(PairQuery { src: NodeId(0), dst: NodeId(0), time: 9.0 });
    let events: BTreeSet<u64> = why.effects.iter().map(|effect| effect.event.0).collect();
    assert_eq!((events.len(), why.effects.len()), (4, 4), "a pair of a node with itself");
    assert!(why.effects.iter().all(|effect| effect.side == Both));
}

/// A bipartite stream of five users and seven items, with equal times and repeats.
fn users_and_items(seed: u64, n_events: u32) -> EventStream {
    let mut random = RandomStream::named(seed, "bipartite");
    let events: Vec<_> = (0..n_events).map(|i| (random.below(5), 5 + random.below(7), f64::from(i / 2))).collect();
    let mut columns = EventStream::from_events(events).unwrap().into_columns();
    columns.names = NodeNames::bipartite(5, 7);
    EventStream::new(columns).unwrap()
}

/// The newest `n` events of `node` before `t`, newest first, as (other node, time).
fn newest(stream: &EventStream, node: NodeId, t: f64, n: usize) -> Vec<(NodeId, f64)> {
    let before: Vec<EventId> = stream.ids().filter(|&id| stream.event(id).time < t).collect();
    before.into_iter().rev().filter_map(|id| Some((other(stream, id, node)?, stream.event(id).time))).take(n).collect()
}

/// All paths by definition, the most recent first.
fn brute_force(stream: &EventStream, query: PairQuery, n_events: usize) -> Vec<NeighborPath> {
    let with = |list: &[(NodeId, f64)], node: NodeId| -> Vec<f64> {
        list.iter().filter(|(other, _)| *other == node).map(|(_, time)| *time).collect()
    };
    let of_src = newest(stream, query.src, query.time, n_events);
    let of_dst = newest(stream, query.dst, query.time, n_events);
    let nodes = || (0..u32::try_from(stream.n_nodes()).unwrap()).map(NodeId);
    let mut paths = Vec::new();
    for (a, b) in nodes().flat_map(|a| nodes().map(move |b| (a, b))) {
        let path = NeighborPath {
            src_neighbor: a,
            dst_neighbor: b,
            src_times: with(&of_src, a),
            between_times: with(&newest(stream, a, query.time, usize::MAX), b),
            dst_times: with(&of_dst, b),
        };
        let is_between = |node: NodeId| node != query.src && node != query.dst;
        let times = [&path.src_times, &path.between_times, &path.dst_times];
        if is_between(a) && is_between(b) && a != b && times.iter().all(|times| !times.is_empty()) {
            paths.push(path);
        }
    }
    let key = |path: &NeighborPath| {
        let mut key = [path.src_times[0], path.between_times[0], path.dst_times[0]];
        key.sort_by(f64::total_cmp);
        key.map(|time| -time)
    };
    paths.sort_by(|a, b| {
        key(a)[2].total_cmp(&key(b)[2]).then(key(a)[1].total_cmp(&key(b)[1])).then(key(a)[0].total_cmp(&key(b)[0]))
    });
    paths
}

#[test]
fn paths_of_bipartite_data_equal_brute_force() {
    let config = ModelConfig::new(ModelName::HopeDgn).with_known(&["d-channel=4", "length=6"]).unwrap();
    let mut n_paths = 0;
    for seed in 0..6 {
        let stream = users_and_items(seed, 60);
        let setup = Setup::new(&config, &stream);
        for (src, dst, time) in [(0, 5, 12.0), (1, 8, 25.0), (2, 9, 25.5), (3, 11, 30.0), (4, 6, 3.0), (0, 7, 0.0)] {
            let query = PairQuery { src: NodeId(src), dst: NodeId(dst), time };
            let why = setup.explain(query);
            assert!(why.common.is_empty(), "bipartite data has no common neighbours");
            let expected = brute_force(&stream, query, 5);
            assert_eq!((why.n_paths, &why.paths), (expected.len(), &expected), "{query:?}");
            n_paths += expected.len();
        }
    }
    assert!(n_paths > 100, "{n_paths}");
}

#[test]
fn paths_stand_in_for_missing_common_neighbours_only_and_are_bounded() {
    let config = ModelConfig::new(ModelName::HopeDgn).with_known(&["d-channel=4", "length=40"]).unwrap();
    // Nodes 2 to 13 know node 0, nodes 20 to 31 know node 1, and they all know each other.
    let mut events: Vec<(u32, u32, f64)> = (2..14).flat_map(|a| (20..32).map(move |b| (a, b, 1.0))).collect();
    events.extend((2..14).map(|a| (0, a, 2.0)).chain((20..32).map(|b| (1, b, 3.0))));
    let stream = EventStream::from_events(events.iter().copied()).unwrap();
    let query = PairQuery { src: NodeId(0), dst: NodeId(1), time: 9.0 };
    let why = Setup::new(&config, &stream).explain(query);
    assert_eq!((why.n_paths, why.paths.len()), (144, MAX_PATHS));
    assert_eq!(why.paths[..], brute_force(&stream, query, 39)[..MAX_PATHS]);

    events.push((1, 2, 4.0));
    let stream = EventStream::from_events(events).unwrap();
    let why = Setup::new(&config, &stream).explain(query);
    assert_eq!((why.common.len(), why.n_paths), (1, 0), "a common neighbour says more");
}

fn example(time_format: TimeFormat) -> Explanation<&'static str> {
    let day = 86_400.0;
    let group = |side, node, n_events, n_seen, last_time, change| GroupEffect {
        side,
        node,
        n_events,
        n_seen,
        last_time,
        change,
    };
    let effect = |side, node, event, time, change| EventEffect { side, node, event: EventId(event), time, change };
    Explanation {
        src: "ann",
        dst: "page",
        time: 10.0 * day,
        time_format,
        probability: 0.75,
        pair_times: Vec::new(),
        common: Vec::new(),
        paths: vec![NeighborPath {
            src_neighbor: "item",
            dst_neighbor: "bob",
            src_times: vec![9.0 * day, 2.0 * day],
            between_times: vec![day],
            dst_times: vec![8.0 * day],
        }],
        n_paths: 1,
        groups: vec![
            group(EffectSide::Src, "item", 12, 2, 9.0 * day, 0.25),
            group(EffectSide::Dst, "bob", 1, 1, 8.0 * day, -0.125),
        ],
        effects: vec![
            effect(EffectSide::Src, "item", 7, 9.0 * day, 0.2),
            effect(EffectSide::Dst, "bob", 5, 8.0 * day, -0.125),
            effect(EffectSide::Src, "item", 3, 2.0 * day, 0.0),
        ],
    }
}

#[test]
fn text_shows_groups_paths_and_dates() {
    let expected = "\
ann and page have not interacted within the 3 events that the model sees.
No common past neighbour; paths of three events between them: 1.
  ann with item at 1970-01-10 00:00:00, bob with item at 1970-01-02 00:00:00, bob with page at 1970-01-09 00:00:00
Largest effects on the score, leaving out all interactions with one node:
  raised by 0.2500 together: 12 interactions of ann with item, the last at 1970-01-10 00:00:00, 24 h 0 min before; the model sees 2
    the one at 1970-01-10 00:00:00 alone raised by 0.2000
  lowered by 0.1250: page with bob at 1970-01-09 00:00:00, 2.0 days before
";
    assert_eq!(example(TimeFormat::Date).to_string(), expected);
    let numbers = example(TimeFormat::Number).to_string();
    assert!(numbers.contains("  lowered by 0.1250: page with bob at 691200, 172800 before\n"), "{numbers}");
}

#[test]
fn a_pair_without_history_is_explained_as_such() {
    let why = Explanation {
        groups: Vec::new(),
        effects: Vec::new(),
        paths: Vec::new(),
        n_paths: 0,
        ..example(TimeFormat::Date)
    };
    let expected = "\
ann and page have not interacted before.
They have no common past neighbour.
Neither has a history: this is the model's score for two new nodes.
";
    assert_eq!(why.to_string(), expected);
}

#[test]
fn json_holds_what_the_text_says() {
    let why = serde_json::to_value(example(TimeFormat::Date)).unwrap();
    assert_eq!(
        (&why["src"], &why["dst"], &why["date"]),
        (&json!("ann"), &json!("page"), &json!("1970-01-11 00:00:00"))
    );
    assert_eq!((&why["met"], &why["met_dates"], &why["common_neighbors"]), (&json!([]), &json!([]), &json!([])));
    assert_eq!((&why["n_paths"], &why["events_seen"]), (&json!(1), &json!(3)));
    let path = json!({
        "src_neighbor": "item", "dst_neighbor": "bob",
        "with_src": [777_600.0, 172_800.0], "with_src_dates": ["1970-01-10 00:00:00", "1970-01-03 00:00:00"],
        "between": [86_400.0], "between_dates": ["1970-01-02 00:00:00"],
        "with_dst": [691_200.0], "with_dst_dates": ["1970-01-09 00:00:00"],
    });
    assert_eq!(why["paths"], json!([path]));
    let group = json!({
        "side": "src", "node": "item", "events": 12, "seen": 2, "change": 0.25,
        "last_time": 777_600.0, "last_date": "1970-01-10 00:00:00",
    });
    assert_eq!(why["groups"][0], group);
    let effect = json!({ "side": "dst", "node": "bob", "event": 5, "time": 691_200.0, "date": "1970-01-09 00:00:00", "change": -0.125 });
    assert_eq!(why["effects"][1], effect);

    let numbers = serde_json::to_string(&example(TimeFormat::Number)).unwrap();
    assert!(!numbers.contains("date"), "no dates where the data has none: {numbers}");
    assert_eq!(serde_json::from_str::<Value>(&numbers).unwrap()["paths"][0]["between"], json!([86_400.0]));
}
