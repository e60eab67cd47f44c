//! Projected temporal walks against sums over all walks.

use ctdg::event::{EventId, EventStream, IdKind, NodeId, StreamBuilder};
use ctdg::mite::PairQuery;
use ctdg::random::RandomStream;
use ctdg::store::Store;
use ctdg::walks::{TemporalWalks, WalkConfig};
use proptest::prelude::*;

use crate::edge_cases;

const CONFIG: WalkConfig = WalkConfig { layers: 3, width: 40, decay: 0.3 };

/// All pairs of nodes at `time`, nodes without events and an unknown one among them.
fn queries(time: f64) -> Vec<PairQuery> {
    let nodes = (0..8).chain([99]).map(NodeId);
    nodes.clone().flat_map(|src| nodes.clone().map(move |dst| PairQuery { src, dst, time })).collect()
}

/// `Aˡ(node, ·)` at `time` over the events that `keep` keeps: every walk, one by one.
fn walks(
    stream: &EventStream,
    keep: &dyn Fn(usize) -> bool,
    node: u32,
    time: f64,
    start: f64,
    layer: usize,
) -> [f64; 8] {
    let mut sums = [0.0; 8];
    if layer == 0 {
        sums[node as usize] = 1.0;
        return sums;
    }
    for event in (0..stream.len()).filter(|&event| keep(event) && stream.times()[event] < time) {
        let (src, dst, at) = (stream.src()[event].0, stream.dst()[event].0, stream.times()[event]);
        for (from, to) in [(src, dst), (dst, src)] {
            if from == node {
                let rest = walks(stream, keep, to, at, start, layer - 1);
                let weight = (-CONFIG.decay * (start - at)).exp();
                sums.iter_mut().zip(rest).for_each(|(sum, rest)| *sum += weight * rest);
            }
        }
    }
    sums
}

/// The exact rows of a node at `time`, or nothing if it has no event before.
fn exact(stream: &EventStream, keep: &dyn Fn(usize) -> bool, node: NodeId, time: f64) -> Option<Vec<[f64; 8]>> {
    let is_in = |event: usize| keep(event) && stream.times()[event] < time;
    let is_known =
        (0..stream.len()).any(|event| is_in(event) && [stream.src()[event], stream.dst()[event]].contains(&node));
    is_known.then(|| (0..=CONFIG.layers).map(|layer| walks(stream, keep, node.0, time, time, layer)).collect())
}

/// Inner products of the rows of both nodes, each multiplied by `project`, the identity for exact ones.
fn products(sides: [Option<Vec<[f64; 8]>>; 2], project: &[Vec<f64>]) -> Vec<f64> {
    let width = project[0].len();
    let mut rows = Vec::new();
    for side in sides {
        for row in side.unwrap_or_else(|| vec![[0.0; 8]; CONFIG.layers + 1]) {
            let sum = |at: usize| row.iter().zip(project).map(|(value, of_node)| value * of_node[at]).sum();
            rows.push((0..width).map(sum).collect::<Vec<f64>>());
        }
    }
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum();
    (0..rows.len()).flat_map(|i| (i..rows.len()).map(move |j| (i, j))).map(|(i, j)| dot(&rows[i], &rows[j])).collect()
}

fn identity() -> Vec<Vec<f64>> {
    (0..8).map(|node| (0..8).map(|at| f64::from(u8::from(node == at))).collect()).collect()
}

proptest! {
    #[test]
    fn features_equal_sums_over_all_walks(
        stream in edge_cases::stream(14),
        time in edge_cases::time(),
        every in 1usize..3,
    ) {
        let ids: Vec<EventId> = stream.ids().filter(|id| id.index() % every == 0).collect();
        let keep = |event: usize| event.is_multiple_of(every);
        let store = Store::of_events(&stream, &ids).unwrap();
        let mut found = TemporalWalks::new(&store, CONFIG);
        let projection = |node: u32| found.projection(NodeId(node)).into_iter().map(f64::from).collect();
        let project: Vec<Vec<f64>> = (0..8).map(projection).collect();
        let queries = queries(time);
        let rows = found.rows(&queries);
        for (query, row) in queries.iter().zip(rows.chunks_exact(CONFIG.n_features())) {
            let sides = [query.src, query.dst].map(|node| exact(&stream, &keep, node, time));
            for (found, expected) in row.iter().zip(products(sides, &project)) {
                let error = (f64::from(*found) - expected).abs();
                prop_assert!(error <= 1e-4 * expected.abs().max(1.0), "{query:?}: {found} {expected}");
            }
        }
    }

    #[test]
    fn features_do_not_depend_on_other_queries_or_their_order(
        stream in edge_cases::stream(60),
        times in prop::collection::vec(edge_cases::time(), 1..6),
        seed in 0u64..1000,
    ) {
        let store = Store::build(&stream).unwrap();
        let queries: Vec<PairQuery> = times.iter().flat_map(|&time| queries(time)).collect();
        let expected = TemporalWalks::new(&store, CONFIG).rows(&queries);
        let mut order: Vec<usize> = (0..queries.len()).collect();
        RandomStream::named(seed, "order").shuffle(&mut order);
        let mut walks = TemporalWalks::new(&store, CONFIG);
        for batch in order.chunks(50) {
            let shuffled: Vec<PairQuery> = batch.iter().map(|&at| queries[at]).collect();
            for (row, &at) in walks.rows(&shuffled).chunks_exact(CONFIG.n_features()).zip(batch) {
                prop_assert_eq!(row, &expected[at * row.len()..][..row.len()], "{:?}", queries[at]);
            }
        }
    }

    #[test]
    fn events_from_the_query_time_on_change_no_features(
        rows in edge_cases::rows(60),
        later in edge_cases::rows(20),
        time in edge_cases::time(),
    ) {
        let past: Vec<_> = rows.iter().copied().filter(|row| row.2 < time).collect();
        let future = later.iter().map(|&(src, dst, at)| (src, dst, time + (at + 1.0)));
        let other: Vec<_> = past.iter().copied().chain(future).collect();
        let [one, other] = [rows, other].map(|rows| {
            let store = Store::build(&edge_cases::with_isolated_nodes(&rows)).unwrap();
            TemporalWalks::new(&store, CONFIG).rows(&queries(time))
        });
        prop_assert_eq!(one, other);
    }
}

#[test]
fn wide_projections_come_close_to_exact_walks() {
    let event = |i: u32| (i * i % 5, 5 + i * 7 % 3, f64::from(i / 2));
    let stream = EventStream::from_events((0..14).map(event)).unwrap();
    let store = Store::build(&stream).unwrap();
    let wide = WalkConfig { width: 1 << 14, ..CONFIG };
    let mut walks = TemporalWalks::new(&store, wide);
    let query = PairQuery { src: NodeId(1), dst: NodeId(6), time: 7.0 };
    let sides = [query.src, query.dst].map(|node| exact(&stream, &|_| true, node, query.time));
    let expected = products(sides, &identity());
    let largest = expected.iter().fold(0.0, |most: f64, &product| most.max(product));
    for (found, expected) in walks.rows(&[query]).iter().zip(&expected) {
        assert!((f64::from(*found) - expected).abs() < 0.05 * largest, "{found} {expected}");
    }
}

#[test]
fn features_depend_on_names_and_not_on_numbers_of_nodes() {
    let bits = |more: &[&str]| {
        let mut builder = StreamBuilder::new(IdKind::Text, false, false);
        for (i, time) in (0..40_u32).zip((0..).map(|i| f64::from(i / 3))) {
            let name = |of: u32| format!("m{}", of % 6);
            builder.push(name(i * i).as_bytes(), name(3 + 7 * i).as_bytes(), time, 0.0).unwrap();
            for pair in more.windows(2) {
                builder.push(pair[0].as_bytes(), pair[1].as_bytes(), time, 0.0).unwrap();
            }
        }
        let stream = builder.finish(None).unwrap();
        let lookup = stream.names().lookup().unwrap();
        let node = |name: &str| lookup.source(name).unwrap();
        let store = Store::build(&stream).unwrap();
        let query = |time: u8| PairQuery { src: node("m1"), dst: node("m3"), time: time.into() };
        TemporalWalks::new(&store, CONFIG).rows(&[query(20), query(7)])
    };
    let expected = bits(&[]);
    assert!(expected.iter().filter(|&&value| value != 0.0).count() > CONFIG.n_features());
    assert_eq!(bits(&["a", "m2b", "z"]), expected);
}
