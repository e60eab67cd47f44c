//! The store and the samplers against brute force.

use ctdg::event::{EventId, EventStream, NodeId};
use ctdg::meetings::{MeetingFinder, Meetings};
use ctdg::random::RandomStream;
use ctdg::sample::{Histories, NeighborSampler, NodeQuery, Sampling};
use ctdg::store::Store;
use proptest::prelude::*;

use crate::edge_cases;

/// `(neighbor, event, time)` of every interaction of `node` before `t`, from the definition.
fn brute_history(stream: &EventStream, kept: &[EventId], node: NodeId, t: f64) -> Vec<(NodeId, EventId, f64)> {
    let mut entries = Vec::new();
    for &id in kept {
        let event = stream.event(id);
        if event.time < t {
            if event.src == node {
                entries.push((event.dst, id, event.time));
            }
            if event.dst == node {
                entries.push((event.src, id, event.time));
            }
        }
    }
    entries
}

proptest! {
    #[test]
    fn histories_equal_brute_force(stream in edge_cases::stream(40), t in edge_cases::time(), keep in 1usize..4) {
        let kept: Vec<EventId> = stream.ids().filter(|id| id.index() % keep == 0).collect();
        let store = Store::of_events(&stream, &kept).unwrap();
        for node in (0..9).map(NodeId) {
            let history = store.history(node, store.cut(t));
            let found: Vec<_> =
                (0..history.len()).map(|i| (history.neighbors[i], history.events.at(i), history.times[i])).collect();
            prop_assert_eq!(found, brute_history(&stream, &kept, node, t));
        }
    }

    #[test]
    fn pair_events_equal_brute_force(stream in edge_cases::stream(40), t in edge_cases::time()) {
        let store = Store::build(&stream).unwrap();
        let all: Vec<EventId> = stream.ids().collect();
        for (a, b) in (0..9).flat_map(|a| (0..9).map(move |b| (NodeId(a), NodeId(b)))) {
            let expected: Vec<EventId> =
                brute_history(&stream, &all, a, t).into_iter().filter(|entry| entry.0 == b).map(|entry| entry.1).collect();
            prop_assert_eq!(store.pair_events(a, b, store.cut(t)), expected);
        }
    }

    #[test]
    fn meetings_equal_brute_force(
        stream in edge_cases::stream(40),
        t in edge_cases::time(),
        keep in 1usize..4,
        leave in 1usize..6,
    ) {
        let kept: Vec<EventId> = stream.ids().filter(|id| id.index() % keep == 0).collect();
        let left_out: Vec<EventId> = stream.ids().filter(|id| id.index() % leave == 1).collect();
        let store = Store::of_events(&stream, &kept).unwrap();
        for (a, b) in (0..9).flat_map(|a| (0..9).map(move |b| (NodeId(a), NodeId(b)))) {
            for left_out in [&[], &left_out[..]] {
                let is_meeting = |id: &&EventId| {
                    let event = stream.event(**id);
                    let ends = [event.src, event.dst];
                    event.time < t && (ends == [a, b] || ends == [b, a]) && !left_out.contains(id)
                };
                let met: Vec<&EventId> = kept.iter().filter(is_meeting).collect();
                let expected = met.last().map(|&&last| Meetings { count: met.len(), last });
                prop_assert_eq!(store.meetings(a, b, store.cut(t), left_out), expected);
            }
        }
    }

    /// Few nodes in front have histories longer than what is worth reading, later ones do not.
    #[test]
    fn meetings_among_nodes_equal_those_of_each_two(
        stream in edge_cases::stream(150),
        t in edge_cases::time(),
        nodes in Just((0..9).map(NodeId).collect::<Vec<_>>()).prop_shuffle(),
        n in 0usize..9,
        leave in 1usize..6,
    ) {
        let store = Store::build(&stream).unwrap();
        let left_out: Vec<EventId> = stream.ids().filter(|id| id.index() % leave == 1).collect();
        let mut finder = MeetingFinder::new(&store);
        for nodes in [&nodes[..n], &nodes[..]] {
            for left_out in [&[], &left_out[..]] {
                let each = |high: usize, low: usize| {
                    let positions = [high, low].map(|at| u32::try_from(at).unwrap());
                    store.meetings(nodes[high], nodes[low], store.cut(t), left_out).map(|met| (positions, met))
                };
                let expected: Vec<_> =
                    (0..nodes.len()).flat_map(|high| (0..=high).filter_map(move |low| each(high, low))).collect();
                let mut found = Vec::new();
                finder.among(nodes, store.cut(t), left_out, |pair, met| found.push((pair, met)));
                prop_assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn samples_are_ordered_subsets_of_the_history(stream in edge_cases::stream(40), t in edge_cases::time(), k in 1usize..6) {
        let store = Store::build(&stream).unwrap();
        let queries: Vec<_> = (0..9).map(|node| NodeQuery { node: NodeId(node), cut: store.cut(t) }).collect();
        for sampling in [Sampling::Recent, Sampling::Uniform, Sampling::TimeIntervalAware { a: 0.5 }] {
            let mut sampled = Histories::default();
            NeighborSampler::new(&store, sampling, k).sample(&queries, &RandomStream::named(3, "test"), &mut sampled);
            prop_assert_eq!(sampled.len(), queries.len());
            for (index, query) in queries.iter().enumerate() {
                let (row, history) = (sampled.row(index), store.history(query.node, query.cut));
                if sampling == Sampling::Recent {
                    prop_assert_eq!(row, history.last(k));
                }
                let most = if history.is_empty() { 0 } else { k };
                prop_assert_eq!(row.len(), if sampling == Sampling::Recent { history.len().min(k) } else { most });
                prop_assert!(row.events.iter().is_sorted());
                for i in 0..row.len() {
                    let found = (0..history.len()).any(|at| {
                        (history.neighbors[at], history.events.at(at), history.times[at])
                            == (row.neighbors[i], row.events.at(i), row.times[i])
                    });
                    prop_assert!(found, "entry {i} of {row:?} is not in {history:?}");
                }
            }
        }
    }

    #[test]
    fn sample_of_a_query_does_not_depend_on_the_batch(stream in edge_cases::stream(40), t in edge_cases::time()) {
        let store = Store::build(&stream).unwrap();
        let sampler = NeighborSampler::new(&store, Sampling::Uniform, 3);
        let random = RandomStream::named(0, "company");
        let queries: Vec<_> = (0..700).map(|i| NodeQuery { node: NodeId(i % 8), cut: store.cut(t) }).collect();
        let (mut all, mut few) = (Histories::default(), Histories::default());
        sampler.sample(&queries, &random, &mut all);
        sampler.sample(&queries[..5], &random, &mut few);
        for index in 0..5 {
            prop_assert_eq!(few.row(index), all.row(index));
        }
    }
}

#[test]
fn time_interval_aware_sampling_follows_its_weights() {
    let times = [0.0, 1.0, 1.5, 4.0, 4.0, 9.0];
    let stream =
        EventStream::from_events(times.iter().enumerate().map(|(i, &t)| (0, 1 + u32::try_from(i).unwrap(), t)))
            .unwrap();
    let store = Store::build(&stream).unwrap();
    let a = 0.7;
    // Protocol, section 4, literally: the quotient with the node's last time, then a softmax over the prefix.
    let seen = 5;
    let last = times[times.len() - 1];
    let weight = |i: usize| {
        let e = |t: f64| f64::exp(a * (t - last));
        e(times[i]) / times[..=i].iter().map(|&t| e(t)).sum::<f64>()
    };
    let sum: f64 = (0..seen).map(|i| weight(i).exp()).sum();
    let expected: Vec<f64> = (0..seen).map(|i| weight(i).exp() / sum).collect();

    let n = 40_000;
    let queries = vec![NodeQuery { node: NodeId(0), cut: store.cut(9.0) }; n];
    let mut sampled = Histories::default();
    let sampler = NeighborSampler::new(&store, Sampling::TimeIntervalAware { a }, 1);
    sampler.sample(&queries, &RandomStream::named(1, "weights"), &mut sampled);
    let mut counts = [0.0; 5];
    for event in sampled.entries().events {
        counts[event.index()] += 1.0 / f64::from(u32::try_from(n).unwrap());
    }
    for (count, expected) in counts.iter().zip(&expected) {
        assert!((count - expected).abs() < 0.012, "{counts:?} against {expected:?}: five standard deviations");
    }
}

#[test]
fn adjacency_takes_at_most_forty_bytes_per_event() {
    let stream = ctdg::dataset::collegemsg().unwrap();
    let store = Store::build(&stream).unwrap();
    let bound = 32 * stream.len() + 4 * (stream.n_nodes() + 1);
    assert!(store.adjacency_bytes() <= bound, "{} bytes, documented as {bound}", store.adjacency_bytes());
    assert!(bound <= 40 * stream.len());
    // Worst case: two nodes per event.
    let stream = EventStream::from_events((0..1000).map(|i| (2 * i, 2 * i + 1, f64::from(i)))).unwrap();
    let store = Store::build(&stream).unwrap();
    assert!(store.adjacency_bytes() <= 40 * stream.len() + 4);
}

#[test]
fn samples_do_not_depend_on_the_number_of_threads() {
    let stream = ctdg::dataset::collegemsg().unwrap();
    let store = Store::build(&stream).unwrap();
    let queries: Vec<_> = stream
        .ids()
        .step_by(17)
        .map(|id| NodeQuery { node: stream.src()[id.index()], cut: store.cut(stream.times()[id.index()]) })
        .collect();
    let sample = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut out = Histories::default();
        pool.install(|| {
            NeighborSampler::new(&store, Sampling::Uniform, 5).sample(
                &queries,
                &RandomStream::named(9, "threads"),
                &mut out,
            );
        });
        out
    };
    assert_eq!(sample(1), sample(3));
}
