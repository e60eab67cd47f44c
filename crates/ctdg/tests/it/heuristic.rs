//! Heuristics against their definitions.

use std::collections::{BTreeMap, BTreeSet};

use ctdg::event::{EventId, EventStream, NodeId};
use ctdg::heuristic::{self, EdgeBank, EdgeBankMode, Heuristic, RecencyPopularity};
use ctdg::mite::PairQuery;
use ctdg::negative::Pass;
use ctdg::split::{MASK_SEED, SplitMode, SplitRule};
use ctdg::store::Store;
use proptest::prelude::*;

use crate::edge_cases;

type Row = (u32, u32, f64);

/// Every pair of `n` nodes at `time`.
pub(crate) fn all_pairs(n: u32, time: f64) -> Vec<PairQuery> {
    let pairs = (0..n).flat_map(|src| (0..n).map(move |dst| (NodeId(src), NodeId(dst))));
    pairs.map(|(src, dst)| PairQuery { src, dst, time }).collect()
}

fn times_of_pairs(rows: &[Row]) -> BTreeMap<(u32, u32), Vec<f64>> {
    let mut met = BTreeMap::<_, Vec<f64>>::new();
    for &(src, dst, time) in rows {
        met.entry((src, dst)).or_default().push(time);
    }
    met
}

/// The memory of `EdgeBank` from its definition. Times are multiples of one half, so integers are exact.
fn brute_memory(rows: &[Row], mode: EdgeBankMode) -> BTreeSet<(u32, u32)> {
    /// Divisible by every number of gaps in these tests.
    const UNIT: i128 = 9_690_712_164_777_231_700_912_800; // lcm of 1..=60
    #[expect(clippy::cast_possible_truncation, reason = "small whole numbers")]
    let halves = |time: f64| (2.0 * time) as i128;
    let met = times_of_pairs(rows);
    let Some(&(_, _, end)) = rows.last() else { return BTreeSet::new() };
    let n_pairs = met.len() as i128;
    let keep = |times: &Vec<f64>| match mode {
        EdgeBankMode::Unlimited => true,
        EdgeBankMode::WindowProportional => {
            // The quantile is at position 0.85 (n − 1), between two times.
            let (place, share) = (17 * (rows.len() - 1) / 20, 17 * (rows.len() - 1) % 20);
            let (low, high) = (halves(rows[place].2), halves(rows[(place + 1).min(rows.len() - 1)].2));
            times.iter().any(|&time| 20 * halves(time) >= 20 * low + (high - low) * share as i128)
        }
        EdgeBankMode::WindowInterval => {
            let repeating = met.values().filter(|times| times.len() > 1);
            let mean_gap = |times: &Vec<f64>| {
                let gaps: i128 = times.windows(2).map(|two| halves(two[1]) - halves(two[0])).sum();
                gaps * UNIT / (times.len() as i128 - 1)
            };
            let sum: i128 = repeating.map(mean_gap).sum();
            times.iter().any(|&time| (halves(end) - halves(time)) * UNIT * n_pairs <= sum)
        }
        EdgeBankMode::Repeat => times.len() as i128 * n_pairs >= rows.len() as i128,
    };
    met.iter().filter(|(_, times)| keep(times)).map(|(&pair, _)| pair).collect()
}

/// The score's formula, event by event.
fn brute_recency(rows: &[Row], query: &PairQuery) -> f64 {
    let past: Vec<Row> = rows.iter().copied().filter(|row| row.2 < query.time).collect();
    let n = past.len();
    let moment = |at: usize| past.iter().position(|row| row.2.to_bits() == past[at].2.to_bits()).unwrap();
    let (u, v) = (query.src.0, query.dst.0);
    let last = past.iter().rposition(|row| (row.0, row.1) == (u, v) || (row.1, row.0) == (u, v));
    let recency = last.map_or(0.0, |at| 1.0 / (n - moment(at)) as f64);
    let mut popularity = 0.0;
    for j in 0..=8 {
        let length = 4_usize.pow(j);
        let start = if n > length { moment(n - length) } else { 0 };
        let n_touching: usize = past[start..].iter().map(|row| usize::from(row.0 == v) + usize::from(row.1 == v)).sum();
        popularity += n_touching as f64 / length as f64;
    }
    (1.0 + 1e5 * recency) * (1.0 + 1e5 * popularity).sqrt()
}

proptest! {
    #[test]
    fn edge_bank_equals_brute_force(rows in edge_cases::rows(60), n_base in 0usize..60, size in 1usize..12) {
        let stream = edge_cases::with_isolated_nodes(&rows);
        let ids: Vec<EventId> = stream.ids().collect();
        let (base, pass) = ids.split_at(n_base.min(ids.len()));
        for mode in EdgeBankMode::ALL {
            let mut bank = EdgeBank::new(&stream, base, mode).unwrap();
            for batch in pass.chunks(size) {
                let time = stream.event(batch[0]).time;
                // Of the base and the earlier batches, the events strictly before the time of the batch.
                let past: Vec<Row> = rows[..batch[0].index()].iter().copied().filter(|row| row.2 < time).collect();
                let memory = brute_memory(&past, mode);
                let queries = all_pairs(9, time);
                let scores = bank.score(batch, &queries).unwrap();
                for (query, score) in queries.iter().zip(scores) {
                    let expected = memory.contains(&(query.src.0, query.dst.0));
                    prop_assert_eq!(score > 0.5, expected, "{:?} {:?} {:?}", mode, query, past);
                    prop_assert!(score == 0.0 || score == 1.0);
                }
            }
        }
    }

    #[test]
    fn edge_bank_sees_only_events_of_its_pass(rows in edge_cases::rows(60), size in 1usize..5) {
        // As in the new-node passes, the stream has other events between those of the pass.
        let stream = edge_cases::with_isolated_nodes(&rows);
        let shown: Vec<EventId> = stream.ids().filter(|id| id.0 % 3 != 1).collect();
        let (base, pass) = shown.split_at(shown.len() / 2);
        for mode in EdgeBankMode::ALL {
            let mut bank = EdgeBank::new(&stream, base, mode).unwrap();
            for batch in pass.chunks(size) {
                let time = stream.event(batch[0]).time;
                let past = shown.iter().filter(|&&id| id < batch[0]).map(|id| rows[id.index()]);
                let memory = brute_memory(&past.filter(|row| row.2 < time).collect::<Vec<_>>(), mode);
                let queries = all_pairs(8, time);
                let kept = queries.iter().zip(bank.score(batch, &queries).unwrap()).filter(|(_, score)| *score > 0.5);
                let kept: BTreeSet<(u32, u32)> = kept.map(|(query, _)| (query.src.0, query.dst.0)).collect();
                prop_assert_eq!(kept, memory);
            }
        }
    }

    #[test]
    fn recency_and_popularity_equal_brute_force(rows in edge_cases::rows(90), time in edge_cases::time()) {
        let stream = edge_cases::with_isolated_nodes(&rows);
        let store = Store::build(&stream).unwrap();
        let mut heuristic = RecencyPopularity::new(&store);
        let queries = all_pairs(9, time);
        for (query, score) in queries.iter().zip(heuristic.score(&[], &queries).unwrap()) {
            let expected = brute_recency(&rows, query);
            // One rounding to f32.
            prop_assert!((f64::from(score) - expected).abs() <= 1e-6 * expected, "{score} {expected}");
        }
    }

    #[test]
    fn score_ignores_the_order_of_simultaneous_events(rows in edge_cases::rows(60), time in edge_cases::time()) {
        let mut turned: Vec<Row> = rows.iter().rev().copied().collect();
        turned.sort_by(|a, b| a.2.total_cmp(&b.2));
        let score = |rows: &[Row]| {
            let stream = edge_cases::with_isolated_nodes(rows);
            let store = Store::build(&stream).unwrap();
            RecencyPopularity::new(&store).score(&[], &all_pairs(8, time)).unwrap()
        };
        prop_assert_eq!(score(&rows), score(&turned));
    }
}

#[test]
fn pair_without_history_scores_one() {
    let stream = edge_cases::with_isolated_nodes(&[(0, 1, 1.0), (2, 1, 2.0), (3, 0, 2.0)]);
    let store = Store::build(&stream).unwrap();
    let heuristic = RecencyPopularity::new(&store);
    let score = |src, dst, time| heuristic.score_pair(&PairQuery { src: NodeId(src), dst: NodeId(dst), time });
    for (src, dst, time) in [(0, 1, 1.0), (6, 7, 9.0), (0, 7, 9.0), (900, 901, 9.0)] {
        assert_eq!(score(src, dst, time).to_bits(), 1_f32.to_bits());
    }
    assert!(score(0, 1, 3.0) > score(3, 1, 3.0), "they interacted");
    assert!(score(6, 1, 3.0) > score(6, 7, 3.0), "busy");
}

#[derive(serde::Deserialize)]
struct Fixture {
    n_nodes: u32,
    cases: Vec<Case>,
}

#[derive(serde::Deserialize)]
struct Case {
    events: Vec<Row>,
    n_base: usize,
    batch_size: usize,
    /// For each batch and mode, a row of zeros and ones for each source.
    memory: Vec<BTreeMap<String, Vec<String>>>,
}

#[test]
fn edge_bank_equals_numpy_reference() {
    let fixture: Fixture =
        serde_json::from_str(include_str!("../../../../fixtures/heuristic/edge_bank.json")).expect("this form");
    for case in fixture.cases {
        let stream = EventStream::from_events(case.events).unwrap();
        let ids: Vec<EventId> = stream.ids().collect();
        let (base, pass) = ids.split_at(case.n_base);
        for mode in EdgeBankMode::ALL {
            let mut bank = EdgeBank::new(&stream, base, mode).unwrap();
            assert_eq!(pass.chunks(case.batch_size).len(), case.memory.len());
            for (batch, memory) in pass.chunks(case.batch_size).zip(&case.memory) {
                let scores = bank.score(batch, &all_pairs(fixture.n_nodes, stream.event(batch[0]).time)).unwrap();
                let digits: String = scores.iter().map(|&score| if score > 0.5 { '1' } else { '0' }).collect();
                assert_eq!(digits, memory[mode.name()].concat(), "{mode:?} {batch:?}");
            }
        }
    }
}

#[test]
fn all_heuristics_are_created_for_any_pass() {
    let stream = EventStream::from_events((0..200u32).map(|i| (i % 7, 7 + i * i % 13, f64::from(i / 3)))).unwrap();
    let split = SplitRule::of(&stream, SplitMode::Dyglib, MASK_SEED).unwrap().apply(&stream).unwrap();
    let store = Store::build(&stream).unwrap();
    for pass in Pass::ALL {
        let mut names = BTreeSet::new();
        for mut heuristic in heuristic::all(&stream, &store, &pass.base(&split)).unwrap() {
            for batch in pass.events(&split).chunks(7) {
                let events = batch.iter().map(|&id| stream.event(id));
                let queries: Vec<_> =
                    events.map(|event| PairQuery { src: event.src, dst: event.dst, time: event.time }).collect();
                let scores = heuristic.score(batch, &queries).unwrap();
                assert_eq!(scores.len(), queries.len());
                assert!(scores.iter().all(|score| score.is_finite()));
            }
            names.insert(heuristic.name());
        }
        assert_eq!(names.len(), 5);
    }
}
