//! A store that grows, against a store over a file of the events so far.

use ctdg::event::{EventId, EventStream, IdKind, NodeId, StreamBuilder};
use ctdg::live::{LiveStore, NewEvent, Rebuilt, Snapshot};
use ctdg::mite::{MiteScope, PairEncoder, PairEncoderConfig, PairQuery, PairTokens, SecondHop, SecondHopTime};
use ctdg::sample::Sampling;
use ctdg::statistics::N_STATISTICS;
use ctdg::store::Store;
use ctdg::walks::{TemporalWalks, WalkConfig};
use proptest::prelude::*;

use crate::edge_cases;

/// A row of an event log.
type Row = (String, String, f64);

fn rows(stream: &EventStream, text: bool) -> Vec<Row> {
    let name = |node: NodeId| if text { format!("n{}", node.0) } else { (7 * node.0).to_string() };
    stream.ids().map(|id| stream.event(id)).map(|event| (name(event.src), name(event.dst), event.time)).collect()
}

/// The stream of a file of `rows`.
fn file(rows: &[Row], bipartite: bool) -> EventStream {
    if rows.is_empty() {
        return EventStream::from_events([]).unwrap();
    }
    let mut builder = StreamBuilder::new(IdKind::Auto, bipartite, false);
    for (src, dst, time) in rows {
        builder.push(src.as_bytes(), dst.as_bytes(), *time, 0.0).unwrap();
    }
    builder.finish(None).unwrap()
}

fn append(live: &mut LiveStore, rows: &[Row]) {
    let events: Vec<NewEvent<'_>> = rows.iter().map(|(src, dst, time)| NewEvent::new(src, dst, *time)).collect();
    live.append(&events).unwrap();
}

const CONFIGS: [PairEncoderConfig; 3] = {
    let recent = PairEncoderConfig {
        length: 4,
        k: 3,
        scope: MiteScope::Full,
        precision: ctdg::mite::TimePrecision::F64,
        self_loops: ctdg::mite::SelfLoops::Once,
        sampling: Sampling::Recent,
        second: None,
    };
    let second = Some(SecondHop { length: 2, time: SecondHopTime::Event });
    [
        recent,
        PairEncoderConfig { sampling: Sampling::Uniform, second, ..recent },
        PairEncoderConfig { sampling: Sampling::TimeIntervalAware { a: 0.5 }, scope: MiteScope::Truncated, ..recent },
    ]
};

/// Every answer of `now` equals that of a store over `stream`, which has the same events with nodes numbered otherwise.
fn check(now: &Snapshot, stream: &EventStream, time: f64) {
    assert_eq!(now.stream().len(), stream.len());
    assert_eq!(now.stream().settled().unwrap().as_ref(), stream);
    let store = Store::build(stream).unwrap();
    let (live, cut) = (now.store(), store.cut(time));
    assert_eq!(live.cut(time), cut);
    let here = |node: NodeId| {
        let name = stream.names().name(node);
        let is_source = stream.src().contains(&node);
        (if is_source { now.lookup().source(&name) } else { now.lookup().destination(&name) }).unwrap()
    };
    let nodes: Vec<NodeId> = (0..stream.n_nodes()).map(|node| NodeId::from_index(node).unwrap()).collect();
    for &node in &nodes {
        let (expected, found) = (store.history(node, cut), live.history(here(node), cut));
        assert_eq!((found.events, found.times), (expected.events, expected.times));
        assert_eq!(found.neighbors, expected.neighbors.iter().map(|&node| here(node)).collect::<Vec<_>>());
        for &other in &nodes {
            assert_eq!(live.pair_events(here(node), here(other), cut), store.pair_events(node, other, cut));
        }
    }
    let mut destinations = stream.dst()[..cut.n_events()].to_vec();
    destinations.sort_unstable();
    destinations.dedup();
    let mut found = now.destinations(cut).to_vec();
    found.sort_unstable();
    let mut expected: Vec<NodeId> = destinations.into_iter().map(here).collect();
    expected.sort_unstable();
    assert_eq!(found, expected);

    let pairs = nodes.iter().flat_map(|&src| nodes.iter().map(move |&dst| (src, dst)));
    let (queries, live_queries): (Vec<PairQuery>, Vec<PairQuery>) = pairs
        .map(|(src, dst)| (PairQuery { src, dst, time }, PairQuery { src: here(src), dst: here(dst), time }))
        .unzip();
    assert_eq!(live.statistics().rows(&live_queries), store.statistics().rows(&queries));
    assert_eq!(queries.len() * N_STATISTICS, store.statistics().rows(&queries).len());
    let config = WalkConfig { layers: 2, width: 8, decay: 0.1 };
    assert_eq!(TemporalWalks::new(live, config).rows(&live_queries), TemporalWalks::new(&store, config).rows(&queries));
    for config in CONFIGS {
        let (mut expected, mut found) = (PairTokens::default(), PairTokens::default());
        PairEncoder::new(&store, config).encode(&queries, &mut expected);
        PairEncoder::new(live, config).encode(&live_queries, &mut found);
        assert_eq!(found.nodes(), expected.nodes().iter().map(|&node| here(node)).collect::<Vec<_>>());
        assert_eq!((found.ages(), found.rows()), (expected.ages(), expected.rows()));
        for row in 0..expected.n_rows() {
            for side in [ctdg::mite::Side::Src, ctdg::mite::Side::Dst] {
                assert_eq!(found.intervals(row, side), expected.intervals(row, side));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_prefix_equals_a_store_over_a_file_of_it(
        stream in edge_cases::stream(24),
        n_first in 0_usize..24,
        steps in proptest::collection::vec(1_usize..6, 24),
        rebuilds in proptest::collection::vec(0_u8..4, 24),
        text in any::<bool>(),
        bipartite in any::<bool>(),
        statistics in any::<bool>(),
        time in edge_cases::time(),
    ) {
        let rows = rows(&stream, text);
        let mut n = n_first.min(rows.len());
        // An empty stream knows no namespaces.
        let bipartite = bipartite && n > 0;
        let mut live = LiveStore::new(&file(&rows[..n], bipartite), statistics).unwrap();
        let mut pending: Option<Rebuilt> = None;
        for (step, rebuild) in steps.into_iter().zip(rebuilds) {
            if n > 0 {
                check(&live.snapshot(), &file(&rows[..n], bipartite), time);
            }
            // Begun here, adopted after more events.
            match rebuild {
                0 => pending = Some(live.snapshot().rebuild().unwrap()),
                1 => {
                    if let Some(mut rebuilt) = pending.take() {
                        if step % 2 == 0 {
                            rebuilt.catch_up(&live.snapshot());
                        }
                        live.adopt(rebuilt);
                    }
                }
                _ => {}
            }
            let end = rows.len().min(n + step);
            append(&mut live, &rows[n..end]);
            n = end;
        }
        check(&live.snapshot(), &file(&rows[..n], bipartite), time);
    }

    #[test]
    fn a_snapshot_does_not_change_when_events_are_appended(stream in edge_cases::stream(24), n in 1_usize..24, time in edge_cases::time()) {
        let rows = rows(&stream, true);
        let n = n.min(rows.len());
        let mut live = LiveStore::new(&file(&rows[..1], false), true).unwrap();
        append(&mut live, &rows[1..n]);
        let before = live.snapshot();
        append(&mut live, &rows[n..]);
        check(&before, &file(&rows[..n], false), time);
    }
}

#[test]
fn a_bad_event_is_named_and_nothing_is_appended() {
    let mut live = LiveStore::new(&EventStream::from_events([(0, 1, 5.0)]).unwrap(), true).unwrap();
    let good = NewEvent::new("ann", "bob", 6.0);
    let cases = [
        (NewEvent::new("ann", "bob", 5.5), "row 1", "5.5"),
        (NewEvent::new("ann", "", 7.0), "row 1", "a node id"),
        (NewEvent::new("ann", "bob", f64::NAN), "row 1", "NaN"),
        (NewEvent { label: f32::INFINITY, ..good }, "row 1", "inf"),
        (NewEvent { features: &[1.0], ..good }, "row 1", "1"),
    ];
    for (bad, row, text) in cases {
        let message = live.append(&[good, bad]).unwrap_err().to_string();
        assert!(message.contains(row) && message.contains(text), "{message}");
        assert_eq!((live.len(), live.n_nodes()), (1, 2));
    }
    assert_eq!(live.append(&[good]).unwrap(), 1..2);
}

#[test]
fn features_of_later_events_and_nodes_are_kept() {
    let mut columns = EventStream::from_events([(0, 1, 1.0)]).unwrap().into_columns();
    columns.edge_features = Some(ctdg::event::Features::new(2, vec![1.0, 2.0]).unwrap());
    columns.node_features = Some(ctdg::event::Features::new(1, vec![5.0, 6.0]).unwrap());
    let mut live = LiveStore::new(&EventStream::new(columns).unwrap(), false).unwrap();
    live.append(&[NewEvent { features: &[3.0, 4.0], ..NewEvent::new("1", "2", 2.0) }, NewEvent::new("2", "2", 2.0)])
        .unwrap();
    let now = live.snapshot();
    assert_eq!(now.stream().edge_features().unwrap().values(), [1.0, 2.0, 3.0, 4.0, 0.0, 0.0]);
    assert_eq!(now.stream().node_features().unwrap().values(), [5.0, 6.0, 0.0]);
    assert!(now.has_loops(now.store().cut(3.0)) && !now.has_loops(now.store().cut(2.0)));
}

/// Readers on other threads see whole events of a snapshot, whatever the writer does meanwhile.
#[test]
fn readers_and_a_rebuild_run_while_events_are_appended() {
    const N: u32 = 4000;
    let row = |i: u32| ((i % 17).to_string(), (i % 23 + 3).to_string(), f64::from(i / 3));
    let rows: Vec<Row> = (0..N).map(row).collect();
    let mut live = LiveStore::new(&file(&rows[..10], false), true).unwrap();
    let newest = std::sync::Mutex::new(std::sync::Arc::new(live.snapshot()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let now = std::sync::Arc::clone(&newest.lock().unwrap());
                    let (stream, store, cut) = (now.stream(), now.store(), now.store().cut(f64::INFINITY));
                    let mut n_entries = 0;
                    for node in (0..stream.n_nodes()).filter_map(NodeId::from_index) {
                        let history = store.history(node, cut);
                        n_entries += history.len();
                        assert!(history.events.iter().all(|event| event.index() < stream.len()));
                        assert!(
                            (0..history.len()).all(|at| stream.event(history.events.at(at)).time == history.times[at])
                        );
                    }
                    assert_eq!(n_entries, 2 * stream.len());
                    let last = stream.event(EventId::from_index(stream.len() - 1));
                    let query = PairQuery { src: last.src, dst: last.dst, time: f64::MAX };
                    assert_eq!(store.statistics().rows(&[query])[0], 1.0, "the last pair has met");
                    if stream.len() == N as usize {
                        break;
                    }
                }
            });
        }
        let mut rebuilding: Option<std::thread::ScopedJoinHandle<'_, Rebuilt>> = None;
        for some in rows[10..].chunks(7) {
            append(&mut live, some);
            let now = std::sync::Arc::new(live.snapshot());
            *newest.lock().unwrap() = std::sync::Arc::clone(&now);
            if live.n_since_rebuild() > 200 && rebuilding.is_none() {
                rebuilding = Some(scope.spawn(move || now.rebuild().unwrap()));
            }
            if rebuilding.as_ref().is_some_and(std::thread::ScopedJoinHandle::is_finished) {
                let mut rebuilt = rebuilding.take().unwrap().join().unwrap();
                let n_behind = rebuilt.catch_up(&newest.lock().unwrap());
                assert_eq!(rebuilt.catch_up(&newest.lock().unwrap()), 0, "after {n_behind}");
                append(&mut live, &[]);
                live.adopt(rebuilt);
            }
        }
    });
    check(&live.snapshot(), &file(&rows, false), 900.0);
}
