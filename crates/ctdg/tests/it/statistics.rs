//! Statistics of pairs and nodes against brute force.

use ctdg::event::{EventId, EventStream, NodeId};
use ctdg::mite::PairQuery;
use ctdg::statistics::{N_STATISTICS, NODE_WINDOWS, PAIR_WINDOWS, PairStatistics};
use ctdg::store::Store;
use proptest::prelude::*;
use rayon::prelude::*;

use crate::edge_cases;

/// Columns of the events that are `counted`, straight from the definition.
#[expect(clippy::cast_possible_truncation, reason = "the precision of the statistics")]
fn columns(stream: &EventStream, time: f64, windows: &[u32], counted: impl Fn(usize) -> bool) -> Vec<f32> {
    let times = stream.times();
    let past: Vec<usize> = (0..stream.len()).filter(|&event| times[event] < time).collect();
    let n = past.len();
    let moment = |event: usize| times.iter().position(|&at| at == times[event]).unwrap();
    let found: Vec<usize> = past.iter().copied().filter(|&event| counted(event)).collect();
    let mut row = match found.last() {
        Some(&newest) => vec![1.0, (n - moment(newest)) as f32, (time - times[newest]) as f32, found.len() as f32],
        None => vec![0.0, 2.0 * n as f32, if n == 0 { 0.0 } else { 2.0 * (time - times[0]) as f32 }, 0.0],
    };
    for &window in windows {
        let first = n.checked_sub(window as usize).map_or(0, moment);
        row.push(found.iter().filter(|&&event| event >= first).count() as f32);
    }
    row
}

fn brute_force(stream: &EventStream, query: &PairQuery, keep: impl Fn(usize) -> bool) -> Vec<f32> {
    let PairQuery { src, dst, time } = *query;
    let of = |windows: &[u32], from: Option<NodeId>, to: Option<NodeId>| {
        columns(stream, time, windows, |event| {
            let (u, v) = (stream.src()[event], stream.dst()[event]);
            keep(event) && from.is_none_or(|from| from == u) && to.is_none_or(|to| to == v)
        })
    };
    let pairs = [of(&PAIR_WINDOWS, Some(src), Some(dst)), of(&PAIR_WINDOWS, Some(dst), Some(src))];
    let nodes = [src, dst].map(|node| [of(&NODE_WINDOWS, Some(node), None), of(&NODE_WINDOWS, None, Some(node))]);
    [pairs.concat(), nodes.concat().concat()].concat()
}

/// All ordered pairs at `time`, an unknown node among them.
fn queries(time: f64) -> Vec<PairQuery> {
    let nodes = (0..8).chain([99]).map(NodeId);
    nodes.clone().flat_map(|src| nodes.clone().map(move |dst| PairQuery { src, dst, time })).collect()
}

proptest! {
    #[test]
    fn statistics_equal_brute_force(stream in edge_cases::stream(90), time in edge_cases::time(), every in 1usize..4) {
        let ids: Vec<EventId> = stream.ids().filter(|id| id.index() % every == 0).collect();
        let statistics = PairStatistics::of_events(&stream, &ids).unwrap();
        let queries = queries(time);
        let rows = statistics.rows(&queries);
        for (query, row) in queries.iter().zip(rows.chunks_exact(N_STATISTICS)) {
            prop_assert_eq!(row, brute_force(&stream, query, |event| event % every == 0), "{:?}", query);
        }
    }

    #[test]
    fn the_order_of_events_at_one_time_does_not_count(rows in edge_cases::rows(60), time in edge_cases::time()) {
        let mut reversed: Vec<_> = rows.iter().rev().copied().collect();
        reversed.sort_by(|a, b| a.2.total_cmp(&b.2));
        let [one, other] = [rows, reversed].map(|rows| {
            PairStatistics::build(&EventStream::from_events(rows).unwrap()).unwrap().rows(&queries(time))
        });
        prop_assert_eq!(one, other);
    }
}

#[test]
fn windows_of_a_long_stream_equal_brute_force() {
    let event = |i: u32| (i * i % 7, 7 + i * 31 % 11, f64::from(i / 3));
    let stream = EventStream::from_events((0..5_000).map(event)).unwrap();
    let statistics = PairStatistics::build(&stream).unwrap();
    for (src, dst, time) in [(0, 7, 1e9), (1, 12, 900.0), (4, 9, 1_200.5), (2, 3, 10.0)] {
        let query = PairQuery { src: NodeId(src), dst: NodeId(dst), time };
        let mut row = [0.0; N_STATISTICS];
        statistics.write(&query, &mut row);
        assert_eq!(row.as_slice(), brute_force(&stream, &query, |_| true), "{query:?}");
    }
}

#[test]
fn the_first_use_of_a_store_may_be_in_many_parallel_tasks() {
    let stream = EventStream::from_events((0..200_000).map(|i| (i % 97, 97 + i % 89, f64::from(i / 3)))).unwrap();
    let query = PairQuery { src: NodeId(1), dst: NodeId(98), time: 5000.0 };
    let expected = Store::build(&stream).unwrap().statistics().rows(&[query]);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(8).build().unwrap();
    for _ in 0..30 {
        let store = Store::build(&stream).unwrap();
        let rows: Vec<Vec<f32>> = pool
            .install(|| (0..64).into_par_iter().with_max_len(1).map(|_| store.statistics().rows(&[query])).collect());
        assert!(rows.iter().all(|row| *row == expected));
    }
}
