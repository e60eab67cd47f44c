//! The audit of a dataset against brute force, on streams with edge cases and on real data.

use std::collections::BTreeSet;

use ctdg::audit::{Audit, AuditOptions, BATCH, Check, Longer, MomentScores, PaddingScores, PerSetting, Verdict};
use ctdg::dataset::{ReadOptions, read};
use ctdg::event::{EventId, EventStream, NodeId};
use ctdg::metric::BatchMean;
use ctdg::negative::{NegativeKind, Pass, PassNegatives};
use ctdg::split::{MASK_SEED, Split, SplitMode, SplitRule};
use proptest::prelude::*;

use crate::{edge_cases, real_data};

/// A few events of a batch, so that small streams have several batches.
const SMALL: usize = 3;

fn split_of(stream: &EventStream) -> Split {
    SplitRule::of(stream, SplitMode::Dyglib, MASK_SEED).unwrap().apply(stream).unwrap()
}

fn audit(stream: &EventStream, batch: usize) -> Audit {
    let options = AuditOptions { batch, ..AuditOptions::default() };
    Audit::of(stream, &split_of(stream), &options, &|_, _| ()).unwrap()
}

/// Events of a batch, each with its negative.
type Drawn = Vec<(EventId, (NodeId, NodeId))>;

/// The batches of a pass; `None` as in an evaluation without events or negatives.
fn drawn(stream: &EventStream, split: &Split, pass: Pass, kind: NegativeKind) -> Option<Vec<Drawn>> {
    let mut negatives = PassNegatives::new(stream, split, pass, kind);
    let batches = (0..).zip(pass.events(split).chunks(SMALL));
    let batches = batches.map(|(index, events)| Some(zip(events, negatives.draw(events, index).ok()?)));
    batches.collect::<Option<Vec<_>>>().filter(|batches| !batches.is_empty())
}

fn zip(events: &[EventId], pairs: Vec<(NodeId, NodeId)>) -> Drawn {
    events.iter().copied().zip(pairs).collect()
}

/// Mean AP of a score of pairs; it gets the pair, the event and the number of the batch.
fn mean_ap(stream: &EventStream, batches: &[Drawn], score: impl Fn((NodeId, NodeId), EventId, usize) -> f64) -> f64 {
    let mut mean = BatchMean::new();
    for (index, batch) in batches.iter().enumerate() {
        let true_pair = |id: EventId| (stream.event(id).src, stream.event(id).dst);
        let positives = batch.iter().map(|&(id, _)| score(true_pair(id), id, index));
        let negatives = batch.iter().map(|&(id, pair)| score(pair, id, index));
        let scores: Vec<f64> = positives.chain(negatives).collect();
        let labels: Vec<bool> = (0..scores.len()).map(|at| at < batch.len()).collect();
        mean.push(&scores, &labels).unwrap();
    }
    mean.mean().unwrap().ap
}

/// Number of ends of events strictly before `time` that are `node`: a self-loop has two.
fn history(stream: &EventStream, node: NodeId, time: f64) -> usize {
    let past = stream.ids().map(|id| stream.event(id)).filter(|event| event.time < time);
    past.map(|event| usize::from(event.src == node) + usize::from(event.dst == node)).sum()
}

/// Patches of both sides of each batch, from the definition.
fn patches(stream: &EventStream, batches: &[Drawn], length: usize, patch: usize) -> Vec<[usize; 2]> {
    let padded = |nodes: Vec<(NodeId, f64)>| {
        let lengths = nodes.into_iter().map(|(node, time)| 1 + history(stream, node, time).min(length - 1));
        lengths.max().unwrap().div_ceil(patch)
    };
    let sides = |batch: &Drawn| {
        let event = |id: EventId| stream.event(id);
        let positives = batch.iter().map(|&(id, _)| (event(id).dst, event(id).time)).collect();
        let negatives = batch.iter().map(|&(id, pair)| (pair.1, event(id).time)).collect();
        [padded(positives), padded(negatives)]
    };
    batches.iter().map(sides).collect()
}

fn padding_by_hand(stream: &EventStream, passes: [Pass; 2], length: usize, patch: usize) -> Option<PaddingScores> {
    let split = split_of(stream);
    let [val, test] = passes.map(|pass| drawn(stream, &split, pass, NegativeKind::Random));
    let test = test?;
    let val = val.unwrap_or_default();
    let [of_val, of_test] = [&val, &test].map(|batches| patches(stream, batches, length, patch));
    let share = |part: &[[usize; 2]], holds: fn(usize, usize) -> bool| {
        part.iter().filter(|[a, b]| holds(*a, *b)).count() as f64 / part.len().max(1) as f64
    };
    let is_longer = share(&of_val, |a, b| a > b) > share(&of_val, |a, b| a < b);
    let sign = if is_longer { 1.0 } else { -1.0 };
    let ap = |batches: &[Drawn], patches: &[[usize; 2]]| {
        let mut mean = BatchMean::new();
        for (batch, [a, b]) in batches.iter().zip(patches) {
            let n = batch.len();
            let scores: Vec<f64> = (0..2 * n).map(|at| sign * if at < n { *a } else { *b } as f64).collect();
            mean.push(&scores, &(0..2 * n).map(|at| at < n).collect::<Vec<_>>()).unwrap();
        }
        mean.mean().unwrap().ap
    };
    Some(PaddingScores {
        longer: if is_longer { Longer::Positives } else { Longer::Negatives },
        val_ap: (!val.is_empty()).then(|| ap(&val, &of_val)),
        ap: ap(&test, &of_test),
        positives_shorter: share(&of_test, |a, b| a < b),
        same: share(&of_test, |a, b| a == b),
    })
}

fn is_close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

/// Streams with edge cases, in which histories exceed the shortest padded length now and then, and streams of more nodes, of
/// which some are masked: the events with new nodes are then a part of their moments.
fn streams() -> impl Strategy<Value = EventStream> {
    let row = (0_u32..12, 8_u32..24, 0_u8..6);
    let many_nodes = prop::collection::vec(row, 100..300).prop_map(|mut rows| {
        rows.sort_by_key(|row| row.2);
        EventStream::from_events(rows.into_iter().map(|(src, dst, time)| (src, dst, f64::from(time)))).unwrap()
    });
    prop_oneof![edge_cases::stream(120), many_nodes]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn padded_lengths_equal_brute_force(stream in streams()) {
        let audit = audit(&stream, SMALL);
        prop_assert_eq!(audit.padding.len(), ctdg::audit::PADDING_SETTINGS.len());
        for row in &audit.padding {
            let by_hand = |passes| padding_by_hand(&stream, passes, row.length, row.patch);
            let expected = [by_hand([Pass::Val, Pass::Test]), by_hand([Pass::NewNodeVal, Pass::NewNodeTest])];
            for (found, expected) in [row.scores.transductive, row.scores.inductive].into_iter().zip(expected) {
                prop_assert_eq!(found.map(|scores| scores.longer), expected.map(|scores| scores.longer));
                let numbers = |scores: PaddingScores| {
                    [scores.val_ap.unwrap_or(-1.0), scores.ap, scores.positives_shorter, scores.same]
                };
                let (found, expected) = (found.map(numbers), expected.map(numbers));
                for (found, expected) in found.into_iter().flatten().zip(expected.into_iter().flatten()) {
                    prop_assert!(is_close(found, expected), "{} {} at length {}", found, expected, row.length);
                }
            }
        }
    }

    /// What an earlier batch of the same time adds, event by event: strictly before the time, or of that time and in an
    /// earlier batch of the pass.
    #[test]
    fn scores_of_the_same_moment_equal_brute_force(stream in streams()) {
        let split = split_of(&stream);
        let audit = audit(&stream, SMALL);
        for (pass, found) in
            [(Pass::Test, &audit.same_moment.transductive), (Pass::NewNodeTest, &audit.same_moment.inductive)]
        {
            let batches = drawn(&stream, &split, pass, NegativeKind::Random);
            prop_assert_eq!(batches.is_some(), found.is_some());
            let (Some(batches), Some(found)) = (batches, found) else { continue };
            let of = |name: &str| found.iter().find(|scores| scores.heuristic == name).unwrap().clone();
            let in_pass: Vec<EventId> = pass.events(&split).to_vec();
            let batch_of = |id: EventId| in_pass.iter().position(|other| *other == id).map(|at| at / SMALL);
            let time = |id: EventId| stream.event(id).time;
            let sees = |id: EventId, query: EventId, batch: Option<usize>| {
                let is_earlier_batch = batch.is_some_and(|batch| batch_of(id).is_some_and(|of| of < batch));
                time(id) < time(query) || (time(id) == time(query) && is_earlier_batch)
            };
            let with_other: Vec<bool> = in_pass
                .iter()
                .map(|&id| in_pass.iter().any(|&other| time(other) == time(id) && batch_of(other) < batch_of(id)))
                .collect();
            let share = with_other.iter().filter(|is| **is).count() as f64 / in_pass.len() as f64;
            // The newest visible event of the destination, in the order (time, earlier batches of the pass, others).
            let recency = |visible: bool| {
                mean_ap(&stream, &batches, |(_, dst), query, batch| {
                    let batch = visible.then_some(batch);
                    let mut seen: Vec<EventId> = stream.ids().filter(|id| sees(*id, query, batch)).collect();
                    if visible {
                        seen.sort_by_key(|id| batch_of(*id).unwrap_or(usize::MAX));
                        seen.sort_by(|a, b| time(*a).total_cmp(&time(*b)));
                    }
                    let touches = |id: &EventId| [stream.event(*id).src, stream.event(*id).dst].contains(&dst);
                    let age = seen.iter().rev().position(touches);
                    age.map_or(f64::NEG_INFINITY, |age| -(age as f64))
                })
            };
            // The bank holds base events and earlier batches, as they are visible to the first event of the batch.
            let base: BTreeSet<EventId> = pass.base(&split).into_iter().collect();
            let bank = |visible: bool| {
                mean_ap(&stream, &batches, |pair, _, batch| {
                    let first = batches[batch][0].0;
                    let known = |id: &EventId| base.contains(id) || batch_of(*id).is_some_and(|of| of < batch);
                    let mut seen = stream.ids().filter(known).filter(|id| sees(*id, first, visible.then_some(batch)));
                    f64::from(u8::from(seen.any(|id| (stream.event(id).src, stream.event(id).dst) == pair)))
                })
            };
            let check = |scores: MomentScores, strict: f64, visible: f64| {
                is_close(scores.strict_ap, strict) && is_close(scores.visible_ap, visible) && is_close(scores.share, share)
            };
            prop_assert!(check(of("destination-recency"), recency(false), recency(true)), "{:?}", found);
            prop_assert!(check(of("edgebank-unlimited"), bank(false), bank(true)), "{:?}", found);
        }
    }

    #[test]
    fn first_meetings_and_counts_equal_brute_force(stream in streams()) {
        let split = split_of(&stream);
        let audit = audit(&stream, SMALL);
        let never_met = |(a, b): (NodeId, NodeId), time: f64| {
            let mut past = stream.ids().map(|id| stream.event(id)).filter(|event| event.time < time);
            !past.any(|event| [(event.src, event.dst), (event.dst, event.src)].contains(&(a, b)))
        };
        for row in &audit.never_met {
            let PerSetting { transductive, inductive } = row.scores;
            for (pass, found) in [(Pass::Test, transductive), (Pass::NewNodeTest, inductive)] {
                let batches = drawn(&stream, &split, pass, row.negatives);
                prop_assert_eq!(batches.is_some(), found.is_some());
                let (Some(batches), Some(found)) = (batches, found) else { continue };
                let score = |pair, id, _| f64::from(u8::from(never_met(pair, stream.event(id).time)));
                prop_assert!(is_close(found.ap, mean_ap(&stream, &batches, score)));
                let all: Vec<(EventId, (NodeId, NodeId))> = batches.concat();
                let share = |n: usize| n as f64 / all.len() as f64;
                let first = |&&(id, _): &&(EventId, _)| {
                    let event = stream.event(id);
                    never_met((event.src, event.dst), event.time)
                };
                let negative = |&&(id, pair): &&(EventId, _)| never_met(pair, stream.event(id).time);
                prop_assert!(is_close(found.first_meetings, share(all.iter().filter(first).count())));
                prop_assert!(is_close(found.never_met_negatives, share(all.iter().filter(negative).count())));
            }
        }
        let mut seen = BTreeSet::new();
        let new: BTreeSet<NodeId> = split.new_nodes.iter().copied().collect();
        for (part, events) in audit.counts.parts.iter().zip([&split.train, &split.val, &split.test]) {
            let ends = |id: &EventId| [stream.event(*id).src, stream.event(*id).dst];
            let nodes: BTreeSet<NodeId> = events.iter().flat_map(ends).collect();
            prop_assert_eq!((part.events, part.nodes), (events.len(), nodes.len()));
            prop_assert_eq!(part.first_seen_nodes, nodes.difference(&seen).count());
            prop_assert_eq!(part.new_nodes, nodes.intersection(&new).count());
            let share = |n: usize| n as f64 / events.len().max(1) as f64;
            let with_new = events.iter().filter(|id| ends(id).iter().any(|node| new.contains(node))).count();
            prop_assert!(is_close(part.new_node_events, share(with_new)));
            let again = |id: &&EventId| !never_met((stream.event(**id).src, stream.event(**id).dst), stream.event(**id).time);
            prop_assert!(is_close(part.repeats, share(events.iter().filter(again).count())));
            seen.extend(nodes);
        }
        let times = stream.times();
        let tied = times.iter().filter(|time| times.iter().filter(|other| other == time).count() > 1).count();
        prop_assert!(is_close(audit.counts.tied, tied as f64 / times.len() as f64));
        let moment = |time: &f64| times.iter().filter(|other| *other == time).count();
        prop_assert_eq!(audit.counts.largest_moment, times.iter().map(moment).max().unwrap());
        prop_assert_eq!(moment(&audit.counts.largest_moment_time), audit.counts.largest_moment);
        prop_assert_eq!(audit.activity.tenths.iter().sum::<usize>(), stream.len());
    }

    /// Every check has a verdict, the worst first, and no number is infinite or NaN, whatever the stream.
    #[test]
    fn any_stream_has_a_whole_report(stream in edge_cases::stream(30), batch in 1_usize..6) {
        let audit = audit(&stream, batch);
        let checks: BTreeSet<&str> = audit.findings.iter().map(|finding| finding.check.title()).collect();
        prop_assert_eq!((checks.len(), audit.findings.len()), (12, 12));
        prop_assert!(audit.findings.is_sorted_by_key(|finding| finding.verdict));
        prop_assert!(audit.findings.iter().all(|finding| !finding.measured.contains("NaN") && !finding.measured.contains("inf")));
        // Maps hold no key twice, and what is missing is stated as null: reading it again gives the same text.
        let text = serde_json::to_string(&audit).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        prop_assert!(value["activity"]["parts"].is_array() && value["findings"].is_array());
    }

    /// Rounding to f32 lets an event see itself exactly if a strict cut at the rounded time holds the event.
    #[test]
    fn f32_times_equal_brute_force(offsets in prop::collection::vec(0_u32..40, 1..40)) {
        // Times around 2²⁷, where f32 has steps of 8 below and 16 above.
        let mut times: Vec<f64> = offsets.iter().map(|offset| 134_217_708.0 + f64::from(*offset)).collect();
        times.sort_by(f64::total_cmp);
        let stream = EventStream::from_events(times.iter().map(|time| (0, 1, *time))).unwrap();
        let found = audit(&stream, BATCH).f32_times;
        #[expect(clippy::cast_possible_truncation, reason = "the rounding that is tested")]
        let rounded = |time: &f64| f64::from(*time as f32);
        let share = |holds: &dyn Fn(&&f64) -> bool| times.iter().filter(holds).count() as f64 / times.len() as f64;
        prop_assert!(is_close(found.changed, share(&|time| rounded(time) != **time)));
        prop_assert!(is_close(found.sees_itself, share(&|time| **time < rounded(time))));
        let later = |time: &&f64| times.iter().any(|other| other > *time && *other < rounded(time));
        prop_assert!(is_close(found.sees_later, share(&later)));
        let largest = times.iter().map(|time| (rounded(time) - time).abs()).fold(0.0, f64::max);
        prop_assert_eq!(found.largest_error, largest);
    }

    #[test]
    fn audit_does_not_depend_on_the_number_of_threads(stream in edge_cases::stream(60)) {
        let in_pool = |n| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
            pool.install(|| audit(&stream, SMALL))
        };
        prop_assert_eq!(in_pool(1), in_pool(3));
    }
}

#[test]
fn one_event_and_one_moment_have_no_test_and_no_leak() {
    let one = EventStream::from_events([(0, 1, 5.0)]).unwrap();
    let moment = EventStream::from_events((0..50).map(|i| (i % 5, 5 + i % 7, 5.0))).unwrap();
    let loops = EventStream::from_events((0..50_u32).map(|i| (0, 0, f64::from(i)))).unwrap();
    for (stream, has_test) in [(one, false), (moment, false), (loops, true)] {
        let audit = audit(&stream, BATCH);
        assert_eq!(audit.count(Verdict::Leak), 0, "{:?}", audit.findings);
        assert_eq!(audit.counts.parts[2].events > 0, has_test);
        assert_eq!(audit.finding(Check::Padding).value.is_some(), has_test);
    }
}

/// A stream whose days list destinations one by one, each over several batches: the last destination comes again.
#[test]
fn files_listed_by_destination_leak_within_a_moment() {
    let days =
        (0..10_u32).flat_map(|day| (0..10_u32).flat_map(move |dst| (0..60).map(move |src| (src, 60 + dst, day))));
    let stream = EventStream::from_events(days.map(|(src, dst, day)| (src, dst, f64::from(day)))).unwrap();
    let finding = audit(&stream, 20).finding(Check::SameMoment).clone();
    assert_eq!(finding.verdict, Verdict::Leak, "{}", finding.measured);
    assert!(finding.value.unwrap() > 0.1, "{}", finding.measured);
}

#[test]
fn progress_counts_every_step_once() {
    let stream = EventStream::from_events((0..200_u32).map(|i| (i % 5, 5 + i % 7, f64::from(i)))).unwrap();
    let steps = std::sync::Mutex::new(Vec::new());
    let note = |done, total| steps.lock().unwrap().push((done, total));
    Audit::of(&stream, &split_of(&stream), &AuditOptions::default(), &note).unwrap();
    let mut steps = steps.into_inner().unwrap();
    steps.sort_unstable();
    let total = steps[0].1;
    assert_eq!(steps, (0..=total).map(|done| (done, total)).collect::<Vec<_>>());
}

fn real(name: &str) -> Option<Audit> {
    let path = real_data::file(&format!("{name}/{name}.csv.gz"))?;
    Some(audit(&read(&path, &ReadOptions::default()).unwrap(), BATCH))
}

#[test]
fn leaks_of_real_data_are_found() {
    let Some(canparl) = real("canparl") else { return };
    let verdict = |audit: &Audit, check| audit.finding(check).verdict;
    for check in [Check::Padding, Check::SameMoment, Check::NeverMet] {
        assert_eq!(verdict(&canparl, check), Verdict::Leak, "{:?}", canparl.finding(check));
    }
    let (row, scores) = canparl.strongest_padding().unwrap();
    assert_eq!((row.length, scores.longer), (2048, Longer::Negatives));
    assert!(scores.ap > 0.98, "{scores:?}");
    // The published AP of the heuristic on CanParl.
    let (name, best) = canparl.best_heuristic(NegativeKind::Random, Pass::Test).unwrap();
    assert_eq!((name, (1e4 * best.ap).round()), ("recency-popularity", 7928.0));
    let Some(enron) = real("enron") else { return };
    assert_eq!((1e3 * enron.f32_times.sees_itself).round(), 221.0);
    assert_eq!(verdict(&enron, Check::F32Times), Verdict::Leak);
    assert_eq!(verdict(&enron, Check::Padding), Verdict::Ok);
    assert_eq!(enron.counts.duplicates, 87_104);
    assert_eq!(enron.counts.self_loops, 16_410);
}
