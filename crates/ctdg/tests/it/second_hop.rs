//! Sampled tokens and second hops against brute force.

use ctdg::event::{EventId, EventStream, NodeId};
use ctdg::mite::{
    MiteScope, NO_ROW, PairEncoder, PairEncoderConfig, PairQuery, PairTokens, SecondHop, SecondHopTime, Side,
    TimePrecision,
};
use ctdg::sample::Sampling;
use ctdg::store::Store;
use proptest::prelude::*;

use crate::edge_cases;
use crate::mite::{age, past};

const SIDES: [Side; 2] = [Side::Src, Side::Dst];

fn samplings() -> impl Strategy<Value = Sampling> {
    prop_oneof![Just(Sampling::Recent), Just(Sampling::Uniform), Just(Sampling::TimeIntervalAware { a: 0.4 })]
}

fn encodings() -> impl Strategy<Value = PairEncoderConfig> {
    let second = (0usize..5, prop::bool::ANY).prop_map(|(length, query)| SecondHop {
        length,
        time: if query { SecondHopTime::Query } else { SecondHopTime::Event },
    });
    let scope = prop::bool::ANY.prop_map(|full| if full { MiteScope::Full } else { MiteScope::Truncated });
    (1usize..7, 0usize..4, scope, samplings(), second).prop_map(|(length, k, scope, sampling, second)| {
        PairEncoderConfig { length, k, scope, sampling, second: Some(second), ..PairEncoderConfig::default() }
    })
}

fn queries() -> impl Strategy<Value = Vec<PairQuery>> {
    let query = (0u32..9, 0u32..9, edge_cases::time());
    let query = query.prop_map(|(src, dst, time)| PairQuery { src: NodeId(src), dst: NodeId(dst), time });
    prop::collection::vec(query, 1..150)
}

fn encode(store: &Store, encoding: PairEncoderConfig, queries: &[PairQuery]) -> PairTokens {
    let mut tokens = PairTokens::default();
    PairEncoder::new(store, encoding).encode(queries, &mut tokens);
    tokens
}

/// A history entry: node, event, age.
type Entry = (NodeId, EventId, f32);

/// Candidates of a second hop: all interactions of `node` before `t`, oldest first.
fn brute_history(stream: &EventStream, node: NodeId, t: f64) -> Vec<Entry> {
    past(stream, node, t).into_iter().map(|(node, event, time)| (node, event, age(t, time))).collect()
}

fn second(tokens: &PairTokens, token: usize) -> Vec<Entry> {
    tokens
        .second(token)
        .map(|at| (tokens.second_nodes()[at], tokens.second_events().at(at), tokens.second_ages()[at]))
        .collect()
}

/// Whether `drawn` is a sample of at most `most` from `past`.
fn check_draw(drawn: &[Entry], past: &[Entry], most: usize, sampling: Sampling) -> Result<(), TestCaseError> {
    if sampling == Sampling::Recent {
        prop_assert_eq!(drawn, &past[past.len().saturating_sub(most)..]);
        return Ok(());
    }
    prop_assert_eq!(drawn.len(), if past.is_empty() { 0 } else { most });
    prop_assert!(drawn.is_sorted_by_key(|entry| entry.1));
    prop_assert!(drawn.iter().all(|entry| past.contains(entry)), "{:?} of {:?}", drawn, past);
    Ok(())
}

proptest! {
    #[test]
    fn sampled_tokens_and_second_hops_equal_brute_force(stream in edge_cases::stream(60), encoding in encodings(), queries in queries()) {
        let store = Store::build(&stream).unwrap();
        let tokens = encode(&store, encoding, &queries);
        let hop = encoding.second.unwrap();
        prop_assert_eq!(tokens.second_starts().len(), tokens.n_tokens() - 2 * queries.len() + 1);
        for (pair, query) in queries.iter().enumerate() {
            let mut with_row = std::collections::BTreeSet::new();
            let range = tokens.tokens(pair, Side::Src).start..tokens.tokens(pair, Side::Dst).end;
            with_row.extend(&tokens.nodes()[range.clone()]);
            for (side, root) in SIDES.into_iter().zip([query.src, query.dst]) {
                let range = tokens.tokens(pair, side).skip(1);
                let events = tokens.events(pair, side);
                let found: Vec<Entry> = range.clone().zip(events).map(|(at, event)| (tokens.nodes()[at], event, tokens.ages()[at])).collect();
                check_draw(&found, &brute_history(&stream, root, query.time), encoding.length - 1, encoding.sampling)?;
                for (token, (node, event, _)) in tokens.event_tokens(pair, side).zip(found) {
                    let t = if hop.time == SecondHopTime::Query { query.time } else { stream.event(event).time };
                    let found = second(&tokens, token);
                    check_draw(&found, &brute_history(&stream, node, t), hop.length, encoding.sampling)?;
                    prop_assert!(found.iter().all(|entry| stream.event(entry.1).time < t));
                    for (at, (node, _, _)) in tokens.second(token).zip(found) {
                        let interacted = [query.src, query.dst].iter().any(|&root| {
                            past(&stream, root, query.time).iter().any(|entry| entry.0 == node)
                        });
                        if encoding.scope == MiteScope::Full && interacted {
                            with_row.insert(node);
                        }
                        match tokens.second_rows()[at] {
                            NO_ROW => prop_assert!(!with_row.contains(&node)),
                            row => {
                                prop_assert!(with_row.contains(&node) && tokens.rows_of_pair(pair).contains(&(row as usize)));
                                // The row is the one the node would have as a token.
                                for (side, root) in SIDES.into_iter().zip([query.src, query.dst]) {
                                    let mut met: Vec<EventId> = match encoding.scope {
                                        MiteScope::Full => past(&stream, root, query.time).iter().filter(|entry| entry.0 == node).map(|entry| entry.1).collect(),
                                        MiteScope::Truncated => {
                                            let of_side = tokens.tokens(pair, side).skip(1).zip(tokens.events(pair, side));
                                            of_side.filter(|(at, _)| tokens.nodes()[*at] == node).map(|(_, event)| event).collect()
                                        }
                                    };
                                    prop_assert_eq!(tokens.counts(row as usize)[side as usize] as usize, met.len() + usize::from(node == root));
                                    if node == root {
                                        met.dedup(); // a self-loop has two entries and one interval
                                    }
                                    prop_assert_eq!(tokens.intervals(row as usize, side).len(), met.len().min(encoding.k));
                                }
                            }
                        }
                    }
                }
            }
            for at in range {
                let of_node = |other: &usize| tokens.nodes()[*other] == tokens.nodes()[at];
                let first = tokens.tokens(pair, Side::Src).chain(tokens.tokens(pair, Side::Dst)).find(of_node).unwrap();
                prop_assert_eq!(tokens.rows()[first], tokens.rows()[at], "one row per node");
            }
            prop_assert_eq!(tokens.rows_of_pair(pair).len(), with_row.len(), "each node has one row");
        }
    }

    #[test]
    fn tokens_of_a_pair_do_not_depend_on_the_batch(stream in edge_cases::stream(60), encoding in encodings(), queries in queries(), at: prop::sample::Index) {
        let store = Store::build(&stream).unwrap();
        let at = at.index(queries.len());
        let alone = encode(&store, encoding, &queries[at..=at]);
        let all = encode(&store, encoding, &queries);
        for side in SIDES {
            let (one, of_many) = (alone.tokens(0, side), all.tokens(at, side));
            prop_assert_eq!(&alone.nodes()[one.clone()], &all.nodes()[of_many.clone()]);
            prop_assert_eq!(&alone.ages()[one], &all.ages()[of_many]);
            prop_assert_eq!(alone.events(0, side), all.events(at, side));
            for (one, of_many) in alone.event_tokens(0, side).zip(all.event_tokens(at, side)) {
                prop_assert_eq!(second(&alone, one), second(&all, of_many));
                let first = u32::try_from(all.rows_of_pair(at).start).unwrap();
                let rows = all.second_rows()[all.second(of_many)].iter().map(|&row| if row == NO_ROW { row } else { row - first });
                prop_assert_eq!(&alone.second_rows()[alone.second(one)], &rows.collect::<Vec<_>>()[..]);
            }
        }
        // The sides are symmetric.
        let query = queries[at];
        let swapped = encode(&store, encoding, &[PairQuery { src: query.dst, dst: query.src, time: query.time }]);
        prop_assert_eq!(alone.events(0, Side::Src), swapped.events(0, Side::Dst));
    }

    #[test]
    fn equal_seeds_give_equal_tokens(stream in edge_cases::stream(60), encoding in encodings(), queries in queries(), seed in 1_u64..) {
        let store = Store::build(&stream).unwrap();
        let mut encoder = PairEncoder::new(&store, encoding);
        let mut drawn = |seed| {
            let mut tokens = PairTokens::default();
            encoder.reseed(seed);
            encoder.encode(&queries, &mut tokens);
            tokens
        };
        let [first, zero, again] = [seed, 0, seed].map(&mut drawn);
        prop_assert_eq!(first, again, "regardless of draws in between");
        prop_assert_eq!(zero, encode(&store, encoding, &queries), "an encoder begins with seed 0");
    }
}

#[test]
fn tokens_do_not_depend_on_the_number_of_threads() {
    let stream = ctdg::dataset::collegemsg().unwrap();
    let store = Store::build(&stream).unwrap();
    let queries: Vec<_> = stream
        .ids()
        .step_by(29)
        .map(|id| stream.event(id))
        .map(|event| PairQuery { src: event.src, dst: event.dst, time: event.time })
        .collect();
    for (sampling, time, scope) in [
        (Sampling::Recent, SecondHopTime::Query, MiteScope::Full),
        (Sampling::Uniform, SecondHopTime::Event, MiteScope::Truncated),
        (Sampling::TimeIntervalAware { a: 1e-6 }, SecondHopTime::Event, MiteScope::Full),
    ] {
        let second = Some(SecondHop { length: 4, time });
        let encoding = PairEncoderConfig { length: 6, k: 3, scope, sampling, second, ..PairEncoderConfig::default() };
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| encode(&store, encoding, &queries))
        };
        assert_eq!(with(1), with(3));
    }
}

/// Chi-square test of nine equally likely outcomes: with eight degrees of freedom, one in a thousand exceeds 26.1.
fn assert_uniform(counts: [f64; 9], what: &str) {
    let expected = counts.iter().sum::<f64>() / 9.0;
    let chi_square: f64 = counts.iter().map(|count| (count - expected).powi(2) / expected).sum();
    assert!(chi_square < 26.1, "{what}: {counts:?}");
}

#[test]
fn samples_of_pairs_and_seeds_are_independent() {
    let n = 4_000;
    // Partners have an event of their own, with node 10: draws tell nodes with a history apart.
    let partners = (0..n).map(|i| (11 + i, 10, 0.5));
    let events = partners.chain((1..10).map(|node| (0, node, f64::from(node))));
    let stream = EventStream::from_events(events).unwrap();
    let store = Store::build(&stream).unwrap();
    let encoding = PairEncoderConfig { length: 2, sampling: Sampling::Uniform, ..PairEncoderConfig::default() };
    let with = |other: u32| PairQuery { src: NodeId(0), dst: NodeId(other), time: 10.0 };
    let pairs: Vec<_> = (0..n).map(|i| with(11 + i)).collect();
    let tokens = encode(&store, encoding, &pairs);
    let drawn = |tokens: &PairTokens, pair| tokens.events(pair, Side::Src).at(0).index() - pairs.len();
    let mut of_pairs = [0.0; 9];
    for pair in 0..pairs.len() {
        of_pairs[drawn(&tokens, pair)] += 1.0;
    }
    assert_uniform(of_pairs, "pairs");
    let unknown = encode(&store, encoding, &[with(9_000), with(9_001)]);
    assert_eq!(drawn(&unknown, 0), drawn(&unknown, 1), "nodes without a history are all alike");

    let mut encoder = PairEncoder::new(&store, encoding);
    let mut tokens = PairTokens::default();
    let (mut of_seeds, mut shifts, mut before) = ([0.0; 9], [0.0; 9], 0);
    for seed in 0..u64::from(n) {
        encoder.reseed(seed);
        encoder.encode(&[with(11)], &mut tokens);
        let event = drawn(&tokens, 0);
        of_seeds[event] += 1.0;
        shifts[(event + 9 - before) % 9] += 1.0;
        before = event;
    }
    assert_uniform(of_seeds, "seeds");
    assert_uniform(shifts, "one seed after another");
}

/// Node 0 interacts with 1 to 8 at times 1 to 8, then with 9, whose only second hop is the history of node 0.
#[test]
fn uniform_sampling_is_uniform_in_both_hops() {
    let events = (1..9).map(|node| (0, node, f64::from(node)));
    let stream = EventStream::from_events(events.chain([(9, 0, 9.0)])).unwrap();
    let store = Store::build(&stream).unwrap();
    let n = 4_000;
    let second = Some(SecondHop { length: 1, time: SecondHopTime::Query });
    let encoding = PairEncoderConfig { length: 2, sampling: Sampling::Uniform, second, ..PairEncoderConfig::default() };
    let queries: Vec<_> =
        (0..n).map(|i| PairQuery { src: NodeId(0), dst: NodeId(9), time: 10.0 + f64::from(i) }).collect();
    let tokens = encode(&store, encoding, &queries);
    let (mut first, mut second, mut both) = ([0.0f64; 9], [0.0f64; 9], [0.0f64; 81]);
    for pair in 0..queries.len() {
        let event = tokens.events(pair, Side::Src).at(0).index();
        let further =
            tokens.second_events().at(tokens.second(tokens.event_tokens(pair, Side::Dst).start).start).index();
        first[event] += 1.0;
        second[further] += 1.0;
        both[9 * event + further] += 1.0;
    }
    assert_uniform(first, "first hop");
    assert_uniform(second, "second hop");
    // Eighty degrees of freedom: one in a thousand exceeds 124.8.
    let expected = f64::from(n) / 81.0;
    let chi_square: f64 = both.iter().map(|count| (count - expected).powi(2) / expected).sum();
    assert!(chi_square < 124.8, "the hops are independent: {both:?}");
}

#[test]
fn rounded_times_change_ages_but_not_the_cut() {
    // At Unix times an f32 is a multiple of 128 s: the first two events round to one time, the third up.
    let times = [1_085_843_361.0, 1_085_843_370.0, 1_085_843_440.0];
    let stream = EventStream::from_events([(1, 2, times[0]), (1, 3, times[1]), (0, 1, times[2])]).unwrap();
    let store = Store::build(&stream).unwrap();
    let query = [PairQuery { src: NodeId(0), dst: NodeId(4), time: 1_085_843_500.0 }];
    let second = Some(SecondHop { length: 5, time: SecondHopTime::Event });
    let tokens = encode(
        &store,
        PairEncoderConfig { precision: TimePrecision::F32, second, ..PairEncoderConfig::default() },
        &query,
    );
    assert_eq!(tokens.second_events(), [0, 1].map(EventId), "never the token's own event");
    assert_eq!(tokens.second_ages(), [128.0, 128.0], "both ends are rounded");
    let tokens = encode(&store, PairEncoderConfig { second, ..PairEncoderConfig::default() }, &query);
    assert_eq!(tokens.second_ages(), [79.0, 70.0]);
    let tokens = encode(&store, PairEncoderConfig::default(), &query);
    assert_eq!((tokens.second_starts(), tokens.second_nodes().len()), (&[0][..], 0), "nothing without a second hop");
}

/// 16,777,219 is 16,777,220 as `f32`.
#[test]
fn a_second_hop_at_rounded_times_sees_its_own_event_and_later_ones() {
    let t = 16_777_219.0;
    let stream = EventStream::from_events([(0, 1, t), (1, 2, t + 0.5), (1, 3, t + 1.0)]).unwrap();
    let store = Store::build(&stream).unwrap();
    let query = PairQuery { src: NodeId(0), dst: NodeId(9), time: t + 0.25 };
    let neighbors = |time| {
        let second = Some(SecondHop { length: 5, time });
        let encoding = PairEncoderConfig {
            length: 2,
            k: 0,
            precision: TimePrecision::F32,
            second,
            ..PairEncoderConfig::default()
        };
        let tokens = encode(&store, encoding, &[query]);
        second_events(&tokens)
    };
    assert_eq!(neighbors(SecondHopTime::Event), [], "strictly before the event");
    assert_eq!(neighbors(SecondHopTime::Query), [EventId(0)], "strictly before the query");
    assert_eq!(neighbors(SecondHopTime::EventAsF32), [EventId(0), EventId(1)], "as DyGLib: even after the query");
}

fn second_events(tokens: &PairTokens) -> Vec<EventId> {
    let of_pair = SIDES.into_iter().flat_map(|side| tokens.event_tokens(0, side));
    of_pair.flat_map(|token| tokens.second(token)).map(|at| tokens.second_events().at(at)).collect()
}
