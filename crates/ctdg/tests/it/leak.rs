//! No leakage: later events never change earlier results.

use ctdg::event::{EventId, EventStream, NodeId};
use ctdg::heuristic;
use ctdg::mite::{MiteScope, PairEncoder, PairEncoderConfig, PairQuery, PairTokens, SecondHop, SecondHopTime};
use ctdg::negative::{CandidateCount, CandidateLists, Pass, PastKind, PastNegatives, RandomNegatives};
use ctdg::random::RandomStream;
use ctdg::sample::{Histories, NeighborSampler, NodeQuery, Sampling};
use ctdg::split::{MASK_SEED, Split, SplitMode, SplitRule};
use ctdg::store::Store;
use proptest::prelude::*;

use crate::edge_cases;
use crate::heuristic::all_pairs;

/// `rows` followed by `later`, shifted to times after (or equal to) the last of `rows`.
fn appended(rows: &[(u32, u32, f64)], later: &[(u32, u32, f64)]) -> EventStream {
    let last = rows.last().map_or(0.0, |row| row.2);
    let moved = later.iter().map(|&(src, dst, time)| (src, dst, last + 1.0 + time));
    edge_cases::with_isolated_nodes(&rows.iter().copied().chain(moved).collect::<Vec<_>>())
}

fn sampled(stream: &EventStream, t: f64, sampling: Sampling) -> Histories {
    let store = Store::build(stream).unwrap();
    let queries: Vec<_> = (0..8).map(|node| NodeQuery { node: NodeId(node), cut: store.cut(t) }).collect();
    let mut out = Histories::default();
    NeighborSampler::new(&store, sampling, 4).sample(&queries, &RandomStream::named(0, "leak"), &mut out);
    out
}

fn encoded(stream: &EventStream, t: f64, scope: MiteScope, sampling: Sampling) -> PairTokens {
    let store = Store::build(stream).unwrap();
    let pairs = (0..8).flat_map(|src| (0..8).map(move |dst| (NodeId(src), NodeId(dst))));
    let queries: Vec<_> = pairs.map(|(src, dst)| PairQuery { src, dst, time: t }).collect();
    let mut out = PairTokens::default();
    let time = if scope == MiteScope::Full { SecondHopTime::Query } else { SecondHopTime::Event };
    let second = Some(SecondHop { length: 3, time });
    let encoding = PairEncoderConfig { length: 5, k: 3, scope, sampling, second, ..PairEncoderConfig::default() };
    PairEncoder::new(&store, encoding).encode(&queries, &mut out);
    out
}

type Pairs = Vec<Option<Vec<(NodeId, NodeId)>>>;

/// All negatives of every pass and of one training epoch.
fn negatives(stream: &EventStream, split: &Split) -> (Vec<Vec<NodeId>>, Pairs, Vec<Vec<NodeId>>) {
    let (mut random, mut past, mut ranked) = (Vec::new(), Vec::new(), Vec::new());
    let mut training = RandomNegatives::new(stream, &split.train, 0);
    random.extend(split.train.chunks(3).map(|batch| training.draw(batch.len())));
    for pass in Pass::ALL {
        let pool = pass.pool(split);
        let mut sampler = RandomNegatives::new(stream, &pool, pass.seed());
        random.extend(pass.events(split).chunks(3).map(|batch| sampler.draw(batch.len())));
        for kind in [PastKind::Historical, PastKind::Inductive { observed: pass.observed(stream, split) }] {
            let sampler = PastNegatives::new(stream, pool.clone(), kind, RandomStream::named(1, "leak"));
            let batches = (0..).zip(pass.events(split).chunks(3));
            past.extend(batches.map(|(index, batch)| sampler.draw(batch, index).ok()));
        }
        let lists = CandidateLists::new(stream, split, CandidateCount::Some(3), RandomStream::named(2, "leak"));
        ranked.extend(pass.events(split).iter().map(|&event| lists.of(event)));
    }
    (random, past, ranked)
}

/// Scores of every heuristic for all pairs in every batch of every pass.
fn scored(stream: &EventStream, split: &Split) -> Vec<Vec<f32>> {
    let store = Store::build(stream).unwrap();
    let mut all = Vec::new();
    for pass in Pass::ALL {
        for mut heuristic in heuristic::all(stream, &store, &pass.base(split)).unwrap() {
            let queries = |batch: &[EventId]| all_pairs(8, stream.times()[batch[0].index()]);
            let batches = pass.events(split).chunks(3);
            all.extend(batches.map(|batch| heuristic.score(batch, &queries(batch)).unwrap()));
        }
    }
    all
}

proptest! {
    #[test]
    fn later_events_change_no_score_of_a_heuristic(rows in edge_cases::rows(60), later in edge_cases::rows(20)) {
        let (before, after) = (edge_cases::with_isolated_nodes(&rows), appended(&rows, &later));
        let split = SplitRule::of(&before, SplitMode::Portable, MASK_SEED).unwrap().apply(&before).unwrap();
        let scores = scored(&before, &split);
        prop_assert_eq!(&scores, &scored(&after, &split));
        // Events at the time of a batch's first event do not matter either: scores are the same in a stream that ends
        // with that event.
        let whole = Store::build(&before).unwrap();
        let mut passes = heuristic::all(&before, &whole, &Pass::Test.base(&split)).unwrap();
        let known = [Pass::Test.base(&split), split.test.clone()].concat();
        for batch in split.test.chunks(3) {
            let time = before.times()[batch[0].index()];
            let until = before.cut(time).n_events();
            let short = edge_cases::with_isolated_nodes(&[&rows[..until], &[rows[batch[0].index()]]].concat());
            let store = Store::build(&short).unwrap();
            let base: Vec<EventId> = known.iter().copied().filter(|id| id.index() < until).collect();
            let alone = heuristic::all(&short, &store, &base).unwrap();
            let first = EventId::from_index(until);
            for (pass, mut alone) in passes.iter_mut().zip(alone) {
                let queries = all_pairs(8, time);
                prop_assert_eq!(pass.score(batch, &queries).unwrap(), alone.score(&[first], &queries).unwrap());
            }
        }
    }

    #[test]
    fn later_events_change_no_earlier_answer(rows in edge_cases::rows(50), later in edge_cases::rows(20)) {
        let (before, after) = (edge_cases::with_isolated_nodes(&rows), appended(&rows, &later));
        for t in rows.iter().map(|row| row.2) {
            prop_assert_eq!(before.cut(t), after.cut(t));
            for sampling in [Sampling::Recent, Sampling::Uniform, Sampling::TimeIntervalAware { a: 0.3 }] {
                prop_assert_eq!(sampled(&before, t, sampling), sampled(&after, t, sampling));
                for scope in [MiteScope::Truncated, MiteScope::Full] {
                    prop_assert_eq!(encoded(&before, t, scope, sampling), encoded(&after, t, scope, sampling));
                }
            }
        }
    }

    #[test]
    fn later_events_change_no_split_and_no_negative(rows in edge_cases::rows(60), later in edge_cases::rows(20), portable: bool) {
        let (before, after) = (edge_cases::with_isolated_nodes(&rows), appended(&rows, &later));
        let mode = if portable { SplitMode::Portable } else { SplitMode::Dyglib };
        let rule = SplitRule::of(&before, mode, MASK_SEED).unwrap();
        let (split, split_after) = (rule.apply(&before).unwrap(), rule.apply(&after).unwrap());
        prop_assert_eq!(&split, &split_after);
        prop_assert_eq!(split.for_nodes(), split_after.for_nodes());
        prop_assert_eq!(negatives(&before, &split), negatives(&after, &split_after));
    }

    #[test]
    fn events_at_the_same_time_are_not_in_the_history(stream in edge_cases::stream(60)) {
        let store = Store::build(&stream).unwrap();
        for id in stream.ids() {
            let event = stream.event(id);
            let cut = store.cut(event.time);
            for node in [event.src, event.dst] {
                prop_assert!(store.history(node, cut).times.iter().all(|&time| time < event.time));
            }
            let events = store.pair_events(event.src, event.dst, cut);
            prop_assert!(events.iter().all(|other| store.time(other) < event.time));
        }
    }
}
