//! The index against brute force.

use proptest::prelude::*;

use super::*;
use crate::error::{Problem, Result};
use crate::event::MAX_NARROW;

/// Few nodes, so that pairs repeat, go both ways and are self-loops; many, so that most pairs meet once.
fn pairs() -> impl Strategy<Value = Vec<[NodeId; 2]>> {
    (2_u32..60).prop_flat_map(|n| proptest::collection::vec([0..n, 0..n].prop_map(|pair| pair.map(NodeId)), 0..80))
}

fn columns(pairs: &[[NodeId; 2]]) -> [Column<NodeId>; 2] {
    [0, 1].map(|end| pairs.iter().map(|pair| pair[end]).collect::<Vec<_>>().into())
}

/// Every list of `index` is that of the `kept` events of `pairs`, straight from the definition.
fn check(unordered: &PairIndex, ordered: &PairIndex, pairs: &[[NodeId; 2]], kept: &[EventId]) {
    let mut nodes: Vec<NodeId> = pairs.iter().flatten().copied().chain([NodeId(u32::MAX)]).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let directed = |src: NodeId, dst: NodeId| kept.iter().copied().filter(move |id| pairs[id.index()] == [src, dst]);
    for [a, b] in nodes.iter().flat_map(|&a| nodes.iter().map(move |&b| [a, b])) {
        let mut both: Vec<EventId> = directed(a, b).chain(directed(b, a)).collect();
        both.sort_unstable();
        assert_eq!(unordered.events(a, b), both, "{a:?} {b:?}");
        let expected = [directed(a, b), directed(b, a)].map(Iterator::collect::<Vec<_>>);
        assert_eq!(ordered.events_both_ways(a, b), expected.each_ref().map(EventIds::from), "{a:?} {b:?}");
    }
}

proptest! {
    #[test]
    fn lists_equal_brute_force(pairs in pairs(), every in 1_usize..4) {
        let kept: Vec<EventId> = (0..pairs.len()).step_by(every).map(EventId::from_index).collect();
        let index = PairIndex::build(kept.iter().copied(), columns(&pairs));
        check(&index, &index, &pairs, &kept);
    }

    #[test]
    fn lists_that_grow_equal_brute_force(pairs in pairs(), n in 0_usize..80) {
        let ids: Vec<EventId> = (0..pairs.len()).map(EventId::from_index).collect();
        let n = n.min(pairs.len());
        let index = PairIndex::build(ids[..n].iter().copied(), columns(&pairs[..n]));
        let [unordered, ordered] = [index.growing(), index.growing()];
        for (&[src, dst], &id) in pairs.iter().zip(&ids).skip(n) {
            unordered.push(src, dst, id);
            ordered.push_from(src, dst, id);
        }
        let columns = columns(&pairs);
        check(&unordered.at(columns.clone()), &ordered.at(columns.clone()), &pairs, &ids);
        check(&index, &index, &pairs[..n], &ids[..n]);
        let rebuilt = PairIndex::build(ids.iter().copied(), columns);
        check(&rebuilt, &rebuilt, &pairs, &ids);
    }
}

#[test]
fn every_pair_of_several_parts_is_found_whatever_the_threads() {
    // Pairs that meet three times, every third time in the other direction: more events than a part has.
    let n = 20_000;
    let pair = |at: u32| [NodeId(at % 141), NodeId(200 + at / 141)];
    let first = (0..n).map(pair);
    let repeats = (0..2 * n).map(|at| if at % 3 == 0 { [pair(at % n)[1], pair(at % n)[0]] } else { pair(at % n) });
    let pairs: Vec<[NodeId; 2]> = first.chain(repeats).collect();
    let ids = (0..3 * u64::from(n)).map(EventId).collect::<Vec<_>>();
    let alone = PairIndex::build(ids.iter().copied(), columns(&pairs));
    let in_parallel = PairIndex::build_in_parallel(ids.iter().copied(), columns(&pairs));
    assert!(matches!(&alone.base, Base::InMemory(parts) if parts.0.len() > 1));
    for (at, index) in (0..n).flat_map(|at| [(at, &alone), (at, &in_parallel)]) {
        let [a, b] = pair(at);
        let expected = [at, n + at, 2 * n + at].map(|id| EventId(u64::from(id)));
        assert_eq!(index.events(b, a), expected);
        let (forward, back): (Vec<EventId>, Vec<EventId>) = expected.iter().partition(|id| pairs[id.index()] == [a, b]);
        assert_eq!(index.events_both_ways(a, b), [&forward, &back].map(EventIds::from));
    }
    assert_eq!(alone.bytes(), in_parallel.bytes());
}

#[test]
fn a_pair_that_met_once_takes_at_most_twelve_bytes() {
    for n in [1_000_u32, 7_168, 7_169, 20_000] {
        let pairs: Vec<[NodeId; 2]> = (0..n).map(|at| [NodeId(at), NodeId(at + 1)]).collect();
        let index = PairIndex::build((0..pairs.len()).map(EventId::from_index), columns(&pairs));
        assert!(index.bytes() <= 12 * n as usize + 100, "{} bytes for {n} pairs", index.bytes());
    }
}

#[test]
fn more_events_than_can_be_numbered_in_memory_are_refused() {
    let (most, narrow) = (1_431_655_765, usize::try_from(MAX_NARROW).unwrap());
    let limit = |checked: Result<()>| match checked.err()?.problem() {
        Problem::TooMany { max, .. } => Some(*max),
        _ => None,
    };
    assert_eq!([limit(check_number(most, most)), limit(check_number(most, narrow))], [None; 2]);
    assert_eq!(limit(check_number(most + 1, narrow)), Some(1_431_655_765));
    assert_eq!(limit(check_number(1, narrow + 1)), Some(4_294_967_295));
    assert_eq!([limit(check_growing(most)), limit(check_growing(most + 1))], [None, Some(1_431_655_765)]);
}
