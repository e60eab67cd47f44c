//! Streams with the sizes of public datasets.

#![expect(clippy::float_cmp, reason = "labels are exactly 0 or 1")]

use std::collections::BTreeSet;

use ctdg::event::{EventStream, Features};
use ctdg::generate::InteractionSpec;

use super::fingerprint;

fn named(name: &str, scale: f64) -> InteractionSpec {
    InteractionSpec::named(name).expect("a known name").scaled(scale).expect("a possible scale")
}

/// Number of distinct values.
fn distinct<T: Ord>(values: impl Iterator<Item = T>) -> usize {
    let mut values: Vec<T> = values.collect();
    values.sort_unstable();
    values.dedup();
    values.len()
}

fn check_counts(spec: &InteractionSpec, stream: &EventStream) {
    assert_eq!(stream.len(), spec.n_events as usize);
    assert_eq!(stream.names().n_sources(), Some(spec.n_users));
    assert_eq!(stream.n_nodes(), (spec.n_users + spec.n_items) as usize);
    assert_eq!(distinct(stream.src().iter()), spec.n_users as usize, "every user occurs");
    assert_eq!(distinct(stream.dst().iter()), spec.n_items as usize, "every item occurs");
    assert!(stream.src().iter().all(|user| user.0 < spec.n_users), "users come first");
    assert!(stream.dst().iter().all(|item| item.0 >= spec.n_users), "items come second");
    assert_eq!(distinct(stream.src().iter().zip(stream.dst())), spec.n_pairs as usize);
    assert_eq!(distinct(stream.times().iter().map(|time| time.to_bits())), spec.n_times as usize);
    assert_eq!(stream.times().first(), Some(&0.0));
    assert_eq!(stream.times().last(), Some(&f64::from(if spec.n_times > 1 { spec.span } else { 0 })));
    assert_eq!(stream.labels().iter().filter(|label| **label == 1.0).count(), spec.n_positives as usize);
    assert!(stream.labels().iter().all(|label| *label == 0.0 || *label == 1.0));
    assert_eq!(stream.edge_features().map_or(0, Features::width), spec.d_edge);
}

#[test]
fn counts_are_exact_at_small_scales() {
    for name in InteractionSpec::NAMES {
        for scale in [1e-9, 1e-4, 1e-3, 0.01] {
            for seed in 0..3 {
                let spec = named(name, scale);
                check_counts(&spec, &spec.generate(seed).unwrap());
            }
        }
    }
}

#[test]
fn counts_are_exact_at_full_size() {
    let spec = InteractionSpec::like_lastfm();
    let stream = spec.generate(0).unwrap();
    check_counts(&spec, &stream);
    assert_eq!((stream.len(), stream.n_nodes()), (1_293_103, 1_980));
}

#[test]
fn the_same_seed_gives_the_same_stream_and_another_does_not() {
    for (name, expected) in InteractionSpec::NAMES.into_iter().zip([
        "be353843c88d4374",
        "ef09fa726977c95e",
        "a335504a15bbbee1",
        "aed6fbf0ef6f2e24",
    ]) {
        let spec = named(name, 0.002);
        let stream = spec.generate(7).unwrap();
        assert_eq!(fingerprint(&stream), expected, "{name} has changed");
        assert_ne!(fingerprint(&spec.generate(8).unwrap()), expected);
    }
}

#[test]
fn activity_and_popularity_are_skewed() {
    for name in InteractionSpec::NAMES {
        let spec = named(name, 0.05);
        let stream = spec.generate(1).unwrap();
        for nodes in [stream.src(), stream.dst()] {
            let mut counts = vec![0_usize; stream.n_nodes()];
            for node in nodes {
                counts[node.index()] += 1;
            }
            counts.retain(|count| *count > 0);
            counts.sort_unstable();
            let top: usize = counts.iter().rev().take(counts.len() / 10).sum();
            let share = top as f64 / stream.len() as f64;
            assert!(share > 0.22, "{name}: the busiest tenth has {share} of all events");
        }
    }
}

#[test]
fn times_come_in_bursts() {
    for name in InteractionSpec::NAMES {
        let stream = named(name, 0.02).generate(1).unwrap();
        let gaps: Vec<f64> = stream.times().windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // A Poisson process has 1 here.
        assert!(variance.sqrt() / mean > 1.3, "{name}: {}", variance.sqrt() / mean);
    }
}

#[test]
fn positive_label_is_the_last_event_of_its_user() {
    let stream = named("like-mooc", 0.02).generate(3).unwrap();
    let mut ended = BTreeSet::new();
    for (user, label) in stream.src().iter().zip(stream.labels()) {
        assert!(!ended.contains(user), "an event after the end");
        if *label == 1.0 {
            ended.insert(user);
        }
    }
}

#[test]
fn features_of_one_item_are_close() {
    let stream = named("like-reddit", 0.005).generate(0).unwrap();
    let features = stream.edge_features().unwrap();
    let distance =
        |i: usize, j: usize| -> f32 { features.row(i).iter().zip(features.row(j)).map(|(x, y)| (x - y).powi(2)).sum() };
    let (mut same, mut other) = (Vec::new(), Vec::new());
    for i in 1..stream.len() {
        let kind = if stream.dst()[i] == stream.dst()[i - 1] { &mut same } else { &mut other };
        kind.push(distance(i, i - 1));
    }
    let mean = |distances: &[f32]| distances.iter().sum::<f32>() / distances.len() as f32;
    assert!(!same.is_empty() && mean(&same) < 0.7 * mean(&other), "{} and {}", mean(&same), mean(&other));
}
