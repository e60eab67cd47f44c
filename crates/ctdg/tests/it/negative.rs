//! Negatives against their definitions.

use std::collections::BTreeSet;

use ctdg::event::{EventId, EventStream, NodeId};
use ctdg::negative::{CandidateCount, CandidateLists, Pass, PastKind, PastNegatives, RandomNegatives};
use ctdg::random::RandomStream;
use ctdg::split::{MASK_SEED, SplitMode, SplitRule};
use proptest::prelude::*;

use crate::edge_cases;

type Pair = (NodeId, NodeId);

fn pairs(stream: &EventStream, keep: impl Fn(f64) -> bool) -> BTreeSet<Pair> {
    stream
        .ids()
        .map(|id| stream.event(id))
        .filter(|event| keep(event.time))
        .map(|event| (event.src, event.dst))
        .collect()
}

proptest! {
    #[test]
    fn past_negatives_come_from_the_past_and_not_from_the_batch(
        stream in edge_cases::stream(80), size in 1usize..9, inductive: bool, val: bool,
    ) {
        let split = SplitRule::of(&stream, SplitMode::Portable, MASK_SEED).unwrap().apply(&stream).unwrap();
        // Validation has a future that must not be drawn from; test has the longer past.
        let (pass, observed_events) = match val {
            true => (Pass::Val, &split.train),
            false if split.val.is_empty() => (Pass::Test, &split.train),
            false => (Pass::Test, &split.val),
        };
        let observed = pass.observed(&stream, &split);
        let kind = if inductive { PastKind::Inductive { observed } } else { PastKind::Historical };
        let negatives = PastNegatives::new(&stream, pass.pool(&split), kind, RandomStream::named(0, "past"));
        let everything = pairs(&stream, |_| true);
        let until = observed_events.last().map_or(f64::NEG_INFINITY, |id| stream.times()[id.index()]);
        let seen = if inductive { pairs(&stream, |time| time <= until) } else { BTreeSet::new() };
        for (index, batch) in pass.events(&split).chunks(size).enumerate() {
            let drawn = negatives.draw(batch, index as u64);
            let times = batch.iter().map(|id| stream.times()[id.index()]);
            let (first, last) = (times.clone().fold(f64::INFINITY, f64::min), times.fold(f64::NEG_INFINITY, f64::max));
            let now = pairs(&stream, |time| (first..=last).contains(&time));
            let known = pairs(&stream, |time| time <= first);
            let allowed: BTreeSet<Pair> =
                known.iter().filter(|pair| !now.contains(pair) && !seen.contains(pair)).copied().collect();
            let own: BTreeSet<Pair> =
                batch.iter().map(|&id| stream.event(id)).map(|event| (event.src, event.dst)).collect();
            let n_past = allowed.len().min(batch.len());
            let n_random = batch.len() - n_past;
            let n_src = everything.iter().map(|pair| pair.0).collect::<BTreeSet<_>>().len();
            let n_dst = everything.iter().map(|pair| pair.1).collect::<BTreeSet<_>>().len();
            let Ok(drawn) = drawn else {
                prop_assert!(n_random > 0 && n_src * n_dst == own.len(), "only when no pair is left");
                continue;
            };
            prop_assert_eq!(drawn.len(), batch.len());
            let (random, past) = drawn.split_at(n_random);
            prop_assert!(past.iter().all(|pair| allowed.contains(pair)), "{past:?} not in {allowed:?}");
            prop_assert_eq!(past.iter().collect::<BTreeSet<_>>().len(), n_past, "without replacement");
            prop_assert!(random.iter().all(|pair| !own.contains(pair)));
            let n_distinct = random.iter().collect::<BTreeSet<_>>().len();
            let n_possible = n_random.min(n_src * n_dst - own.len());
            prop_assert_eq!(n_distinct, n_possible, "repeats only when nothing else is left");
        }
    }

    #[test]
    fn random_negatives_go_on_from_where_they_stopped(stream in edge_cases::stream(60), sizes in prop::collection::vec(0usize..30, 1..20)) {
        let pool: Vec<EventId> = stream.ids().collect();
        let mut whole = RandomNegatives::new(&stream, &pool, 3);
        let mut ahead = whole.clone();
        ahead.draw(500);
        for n in sizes {
            let mut fresh = RandomNegatives::new(&stream, &pool, 3);
            fresh.advance_to(whole.position());
            ahead.advance_to(whole.position());
            let drawn = whole.draw(n);
            prop_assert_eq!(&fresh.draw(n), &drawn);
            prop_assert_eq!(&ahead.draw(n), &drawn);
            prop_assert_eq!(fresh.position(), whole.position());
        }
    }

    #[test]
    fn candidates_are_never_true_and_mix_past_with_others(stream in edge_cases::stream(80), k in 0usize..8) {
        let split = SplitRule::of(&stream, SplitMode::Portable, MASK_SEED).unwrap().apply(&stream).unwrap();
        let pool: Vec<EventId> = stream.ids().collect();
        let random = RandomStream::named(0, "candidates");
        let some = CandidateLists::new(&stream, &split, CandidateCount::Some(k), random.clone());
        let all = CandidateLists::new(&stream, &split, CandidateCount::All, random);
        let destinations: BTreeSet<NodeId> = stream.dst().iter().copied().collect();
        for &id in &split.test {
            let event = stream.event(id);
            let same = |other: &EventId| stream.event(*other).src == event.src && stream.event(*other).time.to_bits() == event.time.to_bits();
            let positives: BTreeSet<NodeId> = pool.iter().filter(|other| same(other)).map(|other| stream.event(*other).dst).collect();
            let negatives: BTreeSet<NodeId> = destinations.difference(&positives).copied().collect();
            prop_assert_eq!(all.of(id).into_iter().collect::<BTreeSet<_>>(), negatives.clone());
            let list = some.of(id);
            let set: BTreeSet<NodeId> = list.iter().copied().collect();
            prop_assert_eq!(set.len(), list.len(), "no repeats");
            prop_assert!(set.is_subset(&negatives));
            let trained = split.for_nodes().train.into_iter().map(|id| stream.event(id)).filter(|other| other.src == event.src);
            let past: BTreeSet<NodeId> = trained.map(|other| other.dst).collect();
            let past_left = past.intersection(&negatives).count();
            let n_past = set.intersection(&past).count();
            prop_assert_eq!(n_past, past_left.min(k / 2));
            prop_assert_eq!(list.len() - n_past, (negatives.len() - past_left).min(k - n_past));
        }
    }
}

#[test]
fn historical_draws_are_uniform_over_distinct_pairs() {
    // Pair (0, 1) has fifty events, the nine others once: all ten are equally likely.
    let early = std::iter::repeat_n((0, 1), 50).chain((2..11).map(|dst| (0, dst)));
    let rows = (0..).zip(early).map(|(t, (src, dst))| (src, dst, f64::from(t))).chain([(11, 12, 100.0)]);
    let stream = EventStream::from_events(rows).unwrap();
    let pool: Vec<EventId> = stream.ids().collect();
    let negatives = PastNegatives::new(&stream, pool, PastKind::Historical, RandomStream::named(5, "uniform"));
    let mut counts = [0; 12];
    for index in 0..5000 {
        let drawn = negatives.draw(&[EventId(59)], index).unwrap();
        counts[drawn[0].1.index()] += 1;
    }
    for count in &counts[1..11] {
        // Expected 500, standard deviation about 21.
        assert!((400..600).contains(count), "{counts:?}");
    }
}
