//! Verdicts: what each measurement means and what to do about it.

use super::batches::share;
use super::{Audit, Check, Counts, Finding, MomentScores, NeverMet, NeverMetScores, PerSetting, Verdict};
use crate::negative::{NegativeKind, Pass};

/// AP above the 0.5 of chance from which a score that knows nothing of who meets whom is a leak: the models of a published
/// table mostly lie closer together than that.
const LEAK_ABOVE_CHANCE: f64 = 0.1;
/// AP above chance that is worth a note: two points decide the order of a published table.
const NOTE_ABOVE_CHANCE: f64 = 0.02;
/// AP gained by seeing the query's own time that is a leak, for the same reason.
const LEAK_GAIN: f64 = 0.02;
/// AP gained that is worth a note: about the spread between seeds.
const NOTE_GAIN: f64 = 0.005;
/// Share of events that see themselves from which rounding is a leak: one history in a hundred holds its own answer.
const LEAK_SEES_ITSELF: f64 = 0.01;
/// Share of events that is worth a note: one in a hundred can move AP by about a point.
const NOTE_SHARE: f64 = 0.01;
/// Share of test events with a new node from which numbers on all events are largely about new nodes.
const NOTE_NEW_NODES: f64 = 0.5;
/// Share of test events that repeat a pair from which remembering pairs nearly suffices.
const NOTE_REPEATS: f64 = 0.9;
/// Rate of test events over that of training events, or its inverse, from which the test is another regime.
const NOTE_RATE_RATIO: f64 = 2.0;
/// Correlation of popularity between training and test under which old popularity is no guide.
const NOTE_CORRELATION: f64 = 0.3;
/// Share of the whole duration that is a silence worth a note.
const NOTE_SILENCE: f64 = 0.05;
/// AP of an untrained heuristic from which little room is left for a model.
const NOTE_HEURISTIC: f64 = 0.9;

/// One for each check, the worst first.
pub(super) fn findings(audit: &Audit) -> Vec<Finding> {
    let mut findings = vec![
        padding(audit),
        same_moment(audit),
        never_met(audit),
        f32_times(audit),
        ties(&audit.counts),
        duplicates(&audit.counts),
        self_loops(&audit.counts),
        repeats(&audit.counts),
        new_nodes(&audit.counts),
        drift(audit),
        gaps(audit),
        heuristics(audit),
    ];
    findings.sort_by_key(|finding| finding.verdict);
    findings
}

/// An AP as tables show it, in percent without the sign.
fn ap(fraction: f64) -> String {
    format!("{:.1}", 100.0 * fraction)
}

/// A share.
fn percent(fraction: f64) -> String {
    format!("{:.1}%", 100.0 * fraction)
}

/// What is said where a check has no events to look at.
const NOTHING: &str = "no test events with negatives";

fn padding(audit: &Audit) -> Finding {
    let strongest = audit.strongest_padding();
    let value = strongest.map(|(_, scores)| scores.ap);
    let verdict = above_chance(value);
    // Short sequences are all full, so that none is padded.
    let harmless = audit.padding.iter().take_while(|row| {
        let scores = row.scores.transductive.as_ref();
        above_chance(scores.map(|scores| scores.ap)) == Verdict::Ok
    });
    let up_to = harmless.last().filter(|_| verdict != Verdict::Ok);
    let measured = strongest.map_or(NOTHING.into(), |(row, scores)| {
        let less = up_to.map_or(String::new(), |row| format!("; no leak up to length {}", row.length));
        format!("AP {} from the padded length alone (length {}, patch {}){less}", ap(scores.ap), row.length, row.patch)
    });
    Finding {
        check: Check::Padding,
        verdict,
        value,
        measured,
        explanation: "DyGLib pads positives and negatives in separate batches, each to its longest history; a model that attends \
                      to padding sees which batch a pair is in.",
        remedy: "Mask padding, and compare with published models only if they mask it too.",
    }
}

fn above_chance(ap: Option<f64>) -> Verdict {
    Verdict::from(ap.unwrap_or(0.5) - 0.5, NOTE_ABOVE_CHANCE, LEAK_ABOVE_CHANCE)
}

fn same_moment(audit: &Audit) -> Finding {
    let PerSetting { transductive, inductive } = &audit.same_moment;
    let new_nodes = |name: &str| inductive.iter().flatten().find(|scores| scores.heuristic == name);
    let gain =
        |scores: &MomentScores| new_nodes(&scores.heuristic).map_or(scores.gain(), |new| scores.gain().max(new.gain()));
    let most = transductive.iter().flatten().max_by(|a, b| gain(a).total_cmp(&gain(b)));
    let (value, share) = (most.map(gain), most.map_or(0.0, |scores| scores.share));
    let verdict = Verdict::from(value.unwrap_or(0.0), NOTE_GAIN, LEAK_GAIN);
    let measured = match most {
        None => NOTHING.into(),
        Some(_) if share == 0.0 && verdict == Verdict::Ok => {
            "no test event has one of its own time in an earlier batch".into()
        }
        Some(_) if verdict == Verdict::Ok => format!(
            "{} of test events have one of their own time in an earlier batch; it adds {} points of AP at most",
            percent(share),
            ap(value.unwrap_or(0.0).max(0.0)),
        ),
        Some(scores) => {
            let new = new_nodes(&scores.heuristic);
            let new =
                new.map_or(String::new(), |of| format!("; new nodes {}, {}", ap(of.visible_ap), ap(of.strict_ap)));
            format!(
                "AP {} with the query's own moment in earlier batches, {} from the strict past ({}){new}; {} of test events",
                ap(scores.visible_ap),
                ap(scores.strict_ap),
                scores.heuristic,
                percent(share),
            )
        }
    };
    Finding {
        check: Check::SameMoment,
        verdict,
        value,
        measured,
        explanation: "A model whose state advances by batches sees events at the time of the query if they lie in an earlier \
                      batch; a forecast could not.",
        remedy: "Let a query see only what is strictly before its time, or advance the state by moments instead of batches.",
    }
}

fn never_met(audit: &Audit) -> Finding {
    let of = |kind| {
        let row = audit.never_met.iter().find(|row: &&NeverMet| row.negatives == kind)?;
        row.scores.transductive
    };
    let [historical, inductive] = [NegativeKind::Historical, NegativeKind::Inductive].map(of);
    let value = historical.into_iter().chain(inductive).map(|scores| scores.ap).max_by(f64::total_cmp);
    let shown = |scores: Option<NeverMetScores>| scores.map_or("–".into(), |scores| ap(scores.ap));
    let measured = historical.or(inductive).map_or(NOTHING.into(), |scores| {
        format!(
            "{} of test events are first meetings; AP {} of \"never met\" against historical negatives, {} against inductive",
            percent(scores.first_meetings),
            shown(historical),
            shown(inductive),
        )
    });
    Finding {
        check: Check::NeverMet,
        verdict: above_chance(value),
        value,
        measured,
        explanation: "Historical and inductive negatives have met, many true events are first meetings: a score that prefers \
                      strangers gains without knowing anything.",
        remedy: "Report random negatives or ranking beside them, and repeated and first meetings apart.",
    }
}

fn f32_times(audit: &Audit) -> Finding {
    let times = &audit.f32_times;
    let measured = if times.changed == 0.0 {
        "every time fits into f32".into()
    } else {
        format!(
            "{} of times change; {} are rounded up, so that a query at them sees the event itself ({} also see later ones)",
            percent(times.changed),
            percent(times.sees_itself),
            percent(times.sees_later),
        )
    };
    let note = if times.changed > 0.0 { 0.0 } else { f64::INFINITY };
    Finding {
        check: Check::F32Times,
        verdict: Verdict::from(times.sees_itself, note, LEAK_SEES_ITSELF),
        value: Some(times.sees_itself),
        measured,
        explanation: "DyGLib stores neighbour times as f32 and asks for second hops at them; a time that is rounded up shows the \
                      event in its own history.",
        remedy: "Keep times in f64 and round only differences of times; or count times from the first event.",
    }
}

fn ties(counts: &Counts) -> Finding {
    let measured = format!(
        "{} of events share their time; the largest moment has {} of all events",
        percent(counts.tied),
        percent(share(counts.largest_moment, counts.events)),
    );
    Finding {
        check: Check::Ties,
        verdict: Verdict::note_if(counts.tied >= NOTE_SHARE),
        value: Some(counts.tied),
        measured,
        explanation: "Events of one time have no order but that of the file; what sees across them depends on batches.",
        remedy: "Check that no score depends on the order of equal times; read `same moment` for what they give away.",
    }
}

fn duplicates(counts: &Counts) -> Finding {
    let [value, exact] = [counts.duplicates, counts.exact_duplicates].map(|n| share(n, counts.events));
    let measured = format!(
        "{} of events repeat an earlier one in source, destination and time, {} in label and features too",
        percent(value),
        percent(exact),
    );
    Finding {
        check: Check::Duplicates,
        verdict: Verdict::note_if(value >= NOTE_SHARE),
        value: Some(value),
        measured,
        explanation: "Copies weigh one event several times in every mean, and a copy in an earlier batch is the answer itself.",
        remedy: "Drop events that repeat an earlier one, or state that they were kept.",
    }
}

fn self_loops(counts: &Counts) -> Finding {
    let value = share(counts.self_loops, counts.events);
    Finding {
        check: Check::SelfLoops,
        verdict: Verdict::note_if(value >= NOTE_SHARE),
        value: Some(value),
        measured: format!("{} of events are of a node with itself", percent(value)),
        explanation: "Random negatives are hardly ever self-loops, so a true one is easy.",
        remedy: "Report metrics without self-loops too where they are many.",
    }
}

fn repeats(counts: &Counts) -> Finding {
    let [train, val, test] = counts.parts.map(|part| percent(part.repeats));
    let value = counts.parts[2].repeats;
    Finding {
        check: Check::Repeats,
        verdict: Verdict::note_if(value >= NOTE_REPEATS),
        value: Some(value),
        measured: format!("{test} of test events repeat a pair; {train} in training, {val} in validation"),
        explanation: "Where nearly all pairs met before, remembering pairs suffices against random negatives.",
        remedy: "Compare with EdgeBank, and report historical negatives or ranking.",
    }
}

fn new_nodes(counts: &Counts) -> Finding {
    let [_, val, test] = counts.parts;
    let measured = format!(
        "{} of test events have a node that training lacks, {} of validation events; {} of test nodes are such",
        percent(test.new_node_events),
        percent(val.new_node_events),
        percent(share(test.new_nodes, test.nodes)),
    );
    Finding {
        check: Check::NewNodes,
        verdict: Verdict::note_if(test.new_node_events >= NOTE_NEW_NODES),
        value: Some(test.new_node_events),
        measured,
        explanation: "The transductive test holds these events too: its mean is then largely about nodes without training.",
        remedy: "Report all events and those of new nodes side by side.",
    }
}

fn drift(audit: &Audit) -> Finding {
    let activity = &audit.activity;
    let is_other = activity.rate_ratio.is_some_and(|ratio| ratio >= NOTE_RATE_RATIO || ratio <= 1.0 / NOTE_RATE_RATIO);
    let is_unlike = activity.popularity_correlation.is_some_and(|value| value < NOTE_CORRELATION);
    let number = |value: Option<f64>| value.map_or("unknown".into(), |value| format!("{value:.2}"));
    let measured = format!(
        "test events come at {} times the rate of training; popularity of destinations correlates by {}",
        number(activity.rate_ratio),
        number(activity.popularity_correlation),
    );
    Finding {
        check: Check::Drift,
        verdict: Verdict::note_if(is_other || is_unlike),
        value: activity.popularity_correlation,
        measured,
        explanation: "Settings that validation chooses may not suit a test in which other nodes are active at another rate.",
        remedy: "Look at metrics over time, and compare with a heuristic that forgets, such as recency-popularity.",
    }
}

fn gaps(audit: &Audit) -> Finding {
    let value = audit.activity.gaps.map(|gaps| gaps.longest_share);
    let measured = value.map_or("no two events".into(), |share| {
        format!("the longest silence is {} of the whole duration", percent(share))
    });
    Finding {
        check: Check::Gaps,
        verdict: Verdict::note_if(value.is_some_and(|share| share >= NOTE_SILENCE)),
        value,
        measured,
        explanation: "After a silence everything recent is old; a part that begins there is harder than its neighbours.",
        remedy: "Check that no part of the split begins at a silence, and that time encodings reach that far.",
    }
}

fn heuristics(audit: &Audit) -> Finding {
    let best = audit.best_heuristic(NegativeKind::Random, Pass::Test);
    let others = [NegativeKind::Historical, NegativeKind::Inductive].map(|kind| {
        let best = audit.best_heuristic(kind, Pass::Test);
        best.map_or("–".into(), |(_, scores)| ap(scores.ap))
    });
    let measured = best.map_or(NOTHING.into(), |(name, scores)| {
        let [historical, inductive] = others;
        let best = ap(scores.ap);
        format!(
            "AP {best} untrained ({name}); the best against historical negatives {historical}, inductive {inductive}"
        )
    });
    let value = best.map(|(_, scores)| scores.ap);
    Finding {
        check: Check::Heuristics,
        verdict: Verdict::note_if(value.is_some_and(|value| value >= NOTE_HEURISTIC)),
        value,
        measured,
        explanation: "What an untrained heuristic reaches is no merit of a model.",
        remedy: "Report the best heuristic beside every model, under the same negatives.",
    }
}
