//! Triads against the definition.

use std::collections::BTreeSet;

use ctdg::event::{Event, EventId, EventStream, NodeId, PairQuery};
use ctdg::store::Store;
use ctdg::triads::{HALF_LIVES, MOST_COMMON, N_TRIADS, TriadFinder};
use proptest::prelude::*;

use crate::edge_cases;

/// Of sums of at most 496 fixed-point numbers with 24 bits.
const TOLERANCE: f32 = 1e-4;

fn meets(event: &Event, a: NodeId, b: NodeId) -> bool {
    [event.src, event.dst] == [a, b] || [event.src, event.dst] == [b, a]
}

/// From the definition, for streams with fewer events than are looked at.
fn brute(stream: &EventStream, query: &PairQuery, left_out: &[EventId]) -> [f32; N_TRIADS] {
    let past: Vec<(EventId, Event)> =
        stream.ids().map(|id| (id, stream.event(id))).filter(|(_, event)| event.time < query.time).collect();
    let left: Vec<&(EventId, Event)> = past.iter().filter(|(id, _)| !left_out.contains(id)).collect();
    let met = |a: NodeId, b: NodeId| left.iter().rev().find(|(_, event)| meets(event, a, b));
    let nodes: BTreeSet<NodeId> = left.iter().flat_map(|(_, event)| [event.src, event.dst]).collect();
    let is_common = |&&node: &&NodeId| {
        node != query.src && node != query.dst && met(node, query.src).is_some() && met(node, query.dst).is_some()
    };
    let common: Vec<NodeId> = nodes.iter().filter(is_common).copied().collect();
    let mut row = [0.0; N_TRIADS];
    row[0] = common.len() as f32;
    for (at, &a) in common.iter().enumerate() {
        for last in common[..at].iter().filter_map(|&b| met(a, b)) {
            row[1] += 1.0;
            let age = past.iter().filter(|(_, event)| event.time >= last.1.time).count();
            for (sum, half_life) in row[2..].iter_mut().zip(HALF_LIVES) {
                *sum += (-(age as f32) / half_life).exp2();
            }
        }
    }
    row
}

fn found(store: &Store, query: &PairQuery, left_out: &[EventId]) -> [f32; N_TRIADS] {
    let mut row = [f32::NAN; N_TRIADS];
    TriadFinder::new(store).write(query, left_out, &mut row);
    row
}

proptest! {
    #[test]
    fn triads_equal_brute_force(stream in edge_cases::stream(80), t in edge_cases::time(), leave in 1usize..6) {
        let store = Store::build(&stream).unwrap();
        let left_out: Vec<EventId> = stream.ids().filter(|id| id.index() % leave == 1).collect();
        for (src, dst) in (0..9).flat_map(|a| (0..9).map(move |b| (NodeId(a), NodeId(b)))) {
            let query = PairQuery { src, dst, time: t };
            for left_out in [&[], &left_out[..]] {
                let (found, expected) = (found(&store, &query, left_out), brute(&stream, &query, left_out));
                for (found, expected) in found.iter().zip(expected) {
                    prop_assert!((found - expected).abs() <= TOLERANCE, "{:?}: {} {}", query, found, expected);
                }
            }
        }
    }

    #[test]
    fn later_events_change_no_triads(stream in edge_cases::stream(60), t in edge_cases::time()) {
        let kept: Vec<EventId> = stream.ids().filter(|&id| stream.event(id).time < t).collect();
        let (all, before) = (Store::build(&stream).unwrap(), Store::of_events(&stream, &kept).unwrap());
        for (src, dst) in (0..9).flat_map(|a| (0..9).map(move |b| (NodeId(a), NodeId(b)))) {
            let query = PairQuery { src, dst, time: t };
            prop_assert_eq!(found(&all, &query, &[]), found(&before, &query, &[]));
        }
    }
}

/// Node 0 and node 1 met 40 others, who all met the one before them.
#[test]
fn no_more_than_the_newest_common_neighbours_are_compared() {
    let others = 2..42;
    let met = others.clone().flat_map(|w| [(0, w, f64::from(w)), (1, w, f64::from(w) + 0.5)]);
    let each_other = others.skip(1).map(|w| (w, w - 1, 50.0 + f64::from(w)));
    let store = Store::build(&EventStream::from_events(met.chain(each_other)).unwrap()).unwrap();
    let row = found(&store, &PairQuery { src: NodeId(0), dst: NodeId(1), time: 200.0 }, &[]);
    assert_eq!(row[..2], [MOST_COMMON as f32, MOST_COMMON as f32 - 1.0], "a path over the newest ones");
}

/// 496 meetings in the newest event of a moment.
#[test]
fn weights_of_all_meetings_are_summed() {
    let met = (2..34).flat_map(|w| [(0, w, 1.0), (1, w, 1.0)]);
    let each_other = (2..34).flat_map(|a| (2..a).map(move |b| (a, b, 2.0)));
    let store = Store::build(&EventStream::from_events(met.chain(each_other)).unwrap()).unwrap();
    let row = found(&store, &PairQuery { src: NodeId(0), dst: NodeId(1), time: 3.0 }, &[]);
    let each = (-496.0_f32 / HALF_LIVES[3]).exp2();
    assert_eq!(row[1], 496.0);
    assert!((row[5] - 496.0 * each).abs() < TOLERANCE, "{row:?}");
}
