//! Tokens and MITE intervals against brute force.

use ctdg::event::{EventId, EventStream, NodeId};
use ctdg::mite::{MiteScope, PairEncoder, PairEncoderConfig, PairQuery, PairTokens, SelfLoops, Side, TimePrecision};
use ctdg::store::Store;
use proptest::prelude::*;

use crate::edge_cases;

/// A token from the definition: node, event (none for the root), age.
type Token = (NodeId, Option<EventId>, f32);

#[expect(clippy::cast_possible_truncation, reason = "intervals are f32")]
pub(crate) fn age(t: f64, event: f64) -> f32 {
    (t - event) as f32
}

/// Entries of `node` before `t`, oldest first, a self-loop twice.
pub(crate) fn past(stream: &EventStream, node: NodeId, t: f64) -> Vec<(NodeId, EventId, f64)> {
    let mut entries = Vec::new();
    for id in stream.ids() {
        let event = stream.event(id);
        if event.time < t {
            entries.extend((event.src == node).then_some((event.dst, id, event.time)));
            entries.extend((event.dst == node).then_some((event.src, id, event.time)));
        }
    }
    entries
}

fn brute_side(stream: &EventStream, root: NodeId, t: f64, length: usize) -> Vec<Token> {
    let past = past(stream, root, t);
    let newest = &past[past.len().saturating_sub(length - 1)..];
    let history = newest.iter().map(|&(node, id, time)| (node, Some(id), age(t, time)));
    std::iter::once((root, None, 0.0)).chain(history).collect()
}

/// Intervals of `w` with a root, newest first: among the root's tokens, or in its whole history. Entries of one self-loop count once
/// or each.
fn brute_intervals(
    stream: &EventStream,
    w: NodeId,
    root: NodeId,
    side: &[Token],
    t: f64,
    encoding: &PairEncoderConfig,
) -> Vec<f32> {
    let mut entries: Vec<(EventId, f32)> = match encoding.scope {
        MiteScope::Truncated => {
            side[1..].iter().filter(|token| token.0 == w).map(|token| (token.1.unwrap(), token.2)).collect()
        }
        MiteScope::Full => past(stream, root, t)
            .into_iter()
            .filter(|entry| entry.0 == w)
            .map(|entry| (entry.1, age(t, entry.2)))
            .collect(),
    };
    if encoding.self_loops == SelfLoops::Once {
        entries.dedup_by_key(|entry| entry.0);
    }
    let mut all: Vec<f32> = entries.into_iter().rev().map(|entry| entry.1).collect();
    all.truncate(encoding.k);
    all
}

proptest! {
    #[test]
    fn tokens_and_intervals_equal_brute_force(
        stream in edge_cases::stream(60),
        pairs in prop::collection::vec((0u32..9, 0u32..9, edge_cases::time()), 1..100),
        length in 1usize..9,
        k in 0usize..5,
        full: bool,
        twice: bool,
    ) {
        let store = Store::build(&stream).unwrap();
        let scope = if full { MiteScope::Full } else { MiteScope::Truncated };
        let self_loops = if twice { SelfLoops::Twice } else { SelfLoops::Once };
        let encoding = PairEncoderConfig { length, k, scope, self_loops, ..PairEncoderConfig::default() };
        let queries: Vec<_> =
            pairs.iter().map(|&(src, dst, time)| PairQuery { src: NodeId(src), dst: NodeId(dst), time }).collect();
        let mut tokens = PairTokens::default();
        let mut encoder = PairEncoder::new(&store, encoding);
        encoder.encode(&queries, &mut tokens);
        prop_assert_eq!(tokens.n_pairs(), queries.len());
        let lengths = |pair| [Side::Src, Side::Dst].map(|side| tokens.tokens(pair, side).len());
        prop_assert_eq!(encoder.lengths(&queries), Some((0..queries.len()).map(lengths).collect()));
        for (pair, query) in queries.iter().enumerate() {
            let roots = [query.src, query.dst];
            let sides = roots.map(|root| brute_side(&stream, root, query.time, length));
            for (side, expected) in [Side::Src, Side::Dst].into_iter().zip(&sides) {
                let range = tokens.tokens(pair, side);
                prop_assert_eq!(range.len(), expected.len());
                let nodes: Vec<NodeId> = expected.iter().map(|token| token.0).collect();
                prop_assert_eq!(&tokens.nodes()[range.clone()], &nodes[..]);
                let ages: Vec<f32> = expected.iter().map(|token| token.2).collect();
                prop_assert_eq!(&tokens.ages()[range.clone()], &ages[..]);
                let events: Vec<EventId> = expected.iter().filter_map(|token| token.1).collect();
                prop_assert_eq!(tokens.events(pair, side), events);
                for at in range {
                    let row = tokens.rows()[at] as usize;
                    prop_assert!(tokens.rows_of_pair(pair).contains(&row));
                    for (with, root) in [Side::Src, Side::Dst].into_iter().zip(roots) {
                        let w = tokens.nodes()[at];
                        let side = &sides[with as usize];
                        let expected = brute_intervals(&stream, w, root, side, query.time, &encoding);
                        prop_assert_eq!(tokens.intervals(row, with), &expected[..]);
                        let unbounded = PairEncoderConfig { k: usize::MAX, self_loops: SelfLoops::Twice, ..encoding };
                        let count = brute_intervals(&stream, w, root, side, query.time, &unbounded).len() + usize::from(w == root);
                        prop_assert_eq!(tokens.counts(row)[with as usize] as usize, count);
                    }
                }
            }
            let distinct: std::collections::BTreeSet<NodeId> = sides.iter().flatten().map(|token| token.0).collect();
            prop_assert_eq!(tokens.rows_of_pair(pair).len(), distinct.len(), "each node has one row");
            let (starts, lists) = tokens.interval_lists(tokens.rows_of_pair(pair));
            let mut ends = starts.iter().map(|start| (start - starts[0]) as usize);
            let mut start = ends.next().unwrap();
            for row in tokens.rows_of_pair(pair) {
                for side in [Side::Src, Side::Dst] {
                    let end = ends.next().unwrap();
                    prop_assert_eq!(&lists[start..end], tokens.intervals(row, side));
                    start = end;
                }
            }
            prop_assert_eq!((start, ends.next()), (lists.len(), None));
        }
        prop_assert_eq!(tokens.interval_lists(0..0), (&[0_u32][..], &[][..]));
    }

    #[test]
    fn encoding_without_events_equals_a_store_without_them(
        stream in edge_cases::stream(60),
        (src, dst) in (0u32..9, 0u32..9),
        time in edge_cases::time(),
        length in 1usize..9,
        k in 0usize..5,
        full: bool,
        chosen in prop::collection::vec(prop::collection::vec(any::<bool>(), 60), 1..4),
    ) {
        let scope = if full { MiteScope::Full } else { MiteScope::Truncated };
        let encoding = PairEncoderConfig { length, k, scope, ..PairEncoderConfig::default() };
        let query = PairQuery { src: NodeId(src), dst: NodeId(dst), time };
        let left_out: Vec<Vec<EventId>> =
            chosen.iter().map(|chosen| stream.ids().filter(|id| chosen[id.index()]).collect()).collect();
        let lists: Vec<&[EventId]> = left_out.iter().map(Vec::as_slice).collect();
        let store = Store::build(&stream).unwrap();
        let mut variants = PairTokens::default();
        PairEncoder::new(&store, encoding).encode_without(query, &lists, &mut variants).unwrap();
        prop_assert_eq!(variants.n_pairs(), left_out.len());
        for (variant, left_out) in left_out.iter().enumerate() {
            let rest: Vec<EventId> = stream.ids().filter(|id| !left_out.contains(id)).collect();
            let store = Store::of_events(&stream, &rest).unwrap();
            let mut expected = PairTokens::default();
            PairEncoder::new(&store, encoding).encode(&[query], &mut expected);
            for side in [Side::Src, Side::Dst] {
                let (got, wanted) = (variants.tokens(variant, side), expected.tokens(0, side));
                prop_assert_eq!(&variants.nodes()[got.clone()], &expected.nodes()[wanted.clone()]);
                prop_assert_eq!(&variants.ages()[got.clone()], &expected.ages()[wanted.clone()]);
                prop_assert_eq!(variants.events(variant, side), expected.events(0, side));
                for (at, wanted) in got.zip(wanted) {
                    let (row, wanted) = (variants.rows()[at] as usize, expected.rows()[wanted] as usize);
                    prop_assert_eq!(variants.counts(row), expected.counts(wanted));
                    for side in [Side::Src, Side::Dst] {
                        prop_assert_eq!(variants.intervals(row, side), expected.intervals(wanted, side));
                    }
                }
            }
            prop_assert_eq!(variants.rows_of_pair(variant).len(), expected.rows_of_pair(0).len());
        }
    }

    /// Section 4.2: with constant intervals MITE is the neighbor co-occurrence encoding, which counts the tokens of a node on
    /// each side, root tokens included, and self-loops twice.
    #[test]
    fn number_of_intervals_equals_co_occurrence_counts(
        stream in edge_cases::stream(60),
        pairs in prop::collection::vec((0u32..9, 0u32..9, edge_cases::time()), 1..100),
        length in 1usize..9,
    ) {
        let store = Store::build(&stream).unwrap();
        let encoding = PairEncoderConfig { length, k: length, self_loops: SelfLoops::Twice, ..PairEncoderConfig::default() };
        let queries: Vec<_> =
            pairs.iter().map(|&(src, dst, time)| PairQuery { src: NodeId(src), dst: NodeId(dst), time }).collect();
        let mut tokens = PairTokens::default();
        PairEncoder::new(&store, encoding).encode(&queries, &mut tokens);
        for (pair, query) in queries.iter().enumerate() {
            for at in tokens.tokens(pair, Side::Src).chain(tokens.tokens(pair, Side::Dst)) {
                let (node, row) = (tokens.nodes()[at], tokens.rows()[at] as usize);
                for (side, root) in [(Side::Src, query.src), (Side::Dst, query.dst)] {
                    let there: u32 = tokens.intervals(row, side).iter().map(|_| 1).sum();
                    let of_side = &tokens.nodes()[tokens.tokens(pair, side)];
                    let co_occurrences = of_side.iter().filter(|&&other| other == node).count();
                    prop_assert_eq!(there as usize, co_occurrences - usize::from(node == root));
                    prop_assert_eq!(tokens.counts(row)[side as usize] as usize, co_occurrences);
                }
            }
        }
    }

    #[test]
    fn truncated_scope_equals_full_scope_for_long_histories(stream in edge_cases::stream(40), src in 0u32..8, dst in 0u32..8, time in edge_cases::time()) {
        let store = Store::build(&stream).unwrap();
        let query = [PairQuery { src: NodeId(src), dst: NodeId(dst), time }];
        let encode = |scope| {
            let encoding = PairEncoderConfig { length: 200, k: 50, scope, ..PairEncoderConfig::default() };
            let mut tokens = PairTokens::default();
            PairEncoder::new(&store, encoding).encode(&query, &mut tokens);
            tokens
        };
        prop_assert_eq!(encode(MiteScope::Truncated), encode(MiteScope::Full));
    }
}

/// Section 4.2: MITE with the function "number of finite elements" is the neighbour co-occurrence encoding (NCOE) of `DyGFormer`. Histories
/// {a, b, a} and {b, b, a, c} give a [2, 1], b [1, 2], c [0, 1].
#[test]
fn mite_degenerates_to_ncoe_in_the_example_of_the_paper() {
    let (u, v) = (0, 1);
    let others = [2, 3, 4];
    let rows = [(u, 2), (u, 3), (u, 2), (v, 3), (v, 3), (v, 2), (v, 4)];
    let stream = EventStream::from_events((0..).zip(rows).map(|(t, (x, y))| (x, y, f64::from(t)))).unwrap();
    let store = Store::build(&stream).unwrap();
    let mut tokens = PairTokens::default();
    let query = [PairQuery { src: NodeId(u), dst: NodeId(v), time: 100.0 }];
    PairEncoder::new(&store, PairEncoderConfig::default()).encode(&query, &mut tokens);
    let counts = |node| {
        let at = tokens.nodes().iter().position(|&found| found == NodeId(node)).unwrap();
        tokens.counts(tokens.rows()[at] as usize)
    };
    let n_intervals = |node| {
        let at = tokens.nodes().iter().position(|&found| found == NodeId(node)).unwrap();
        [Side::Src, Side::Dst].map(|side| tokens.intervals(tokens.rows()[at] as usize, side).len())
    };
    assert_eq!(others.map(n_intervals), [[2, 1], [1, 2], [0, 1]], "MITE, counted");
    assert_eq!(others.map(counts), [[2, 1], [1, 2], [0, 1]], "NCOE");
    assert_eq!(counts(u), [1, 0], "the root token is counted");
}

#[test]
fn f32_precision_rounds_times_before_subtracting() {
    // At Unix times an f32 is a multiple of 128 s.
    let stream = EventStream::from_events([(0, 1, 1_085_843_361.0)]).unwrap();
    let store = Store::build(&stream).unwrap();
    let query = [PairQuery { src: NodeId(0), dst: NodeId(1), time: 1_085_843_500.0 }];
    let age = |precision| {
        let mut tokens = PairTokens::default();
        PairEncoder::new(&store, PairEncoderConfig { precision, ..PairEncoderConfig::default() })
            .encode(&query, &mut tokens);
        tokens.ages()[1]
    };
    assert_eq!(age(TimePrecision::F64).to_bits(), 139.0f32.to_bits());
    assert_eq!(age(TimePrecision::F32).to_bits(), 172.0f32.to_bits(), "1085843361 rounds to 1085843328");
}
