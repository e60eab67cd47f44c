//! Triadic streams: known properties, and absence of leaks.

#![expect(clippy::float_cmp, reason = "mirrored events have the very same time")]

use ctdg::event::{EventStream, NodeId};
use ctdg::generate::{Query, Triadic, TriadicSpec};
use ctdg::metric::{average_precision, binary_scores, roc_auc};

use super::fingerprint;

fn big() -> (TriadicSpec, Triadic) {
    let spec = TriadicSpec { n_episodes: 10_000, ..TriadicSpec::default() };
    let drawn = spec.generate(5).expect("a possible specification");
    (spec, drawn)
}

/// Interactions of every node; nodes belong to one episode, so a list has at most three entries.
struct Contacts(Vec<Vec<(f64, NodeId, usize)>>);

impl Contacts {
    fn of(stream: &EventStream) -> Self {
        let mut contacts = vec![Vec::new(); stream.n_nodes()];
        for id in stream.ids() {
            let event = stream.event(id);
            contacts[event.src.index()].push((event.time, event.dst, id.index()));
            contacts[event.dst.index()].push((event.time, event.src, id.index()));
        }
        Self(contacts)
    }

    fn before(&self, node: NodeId, time: f64) -> impl Iterator<Item = (f64, NodeId, usize)> {
        self.0[node.index()].iter().copied().filter(move |contact| contact.0 < time)
    }

    /// A node's history unfolded to `depth` hops, without names.
    fn unfolded(&self, node: NodeId, time: f64, depth: u32) -> String {
        if depth == 0 {
            return String::new();
        }
        let mut parts: Vec<String> = self
            .before(node, time)
            .map(|(at, other, _)| format!("({at} {})", self.unfolded(other, time, depth - 1)))
            .collect();
        parts.sort();
        parts.concat()
    }

    fn has_common(&self, query: &Query) -> bool {
        self.before(query.src, query.time).any(|(_, w, _)| self.before(query.dst, query.time).any(|(_, x, _)| w == x))
    }

    /// The time of the only contact before the query, and its event.
    fn wedge(&self, node: NodeId, query: &Query) -> (f64, usize) {
        let contacts: Vec<_> = self.before(node, query.time).collect();
        assert_eq!(contacts.len(), 1, "a node has interacted only with its middle node");
        (contacts[0].0, contacts[0].2)
    }
}

#[test]
fn episode_has_six_events_and_two_positive_of_four_queries() {
    let (spec, Triadic { stream, queries }) = big();
    let n = spec.n_episodes as usize;
    assert_eq!((stream.len(), stream.n_nodes(), queries.len()), (6 * n, 6 * n, 4 * n));
    assert!(queries.is_sorted_by(|x, y| x.time <= y.time));
    for four in queries.chunks(4) {
        assert!(four.iter().all(|query| query.time == four[0].time));
        assert_eq!(four.iter().filter(|query| query.label).count(), 2);
    }
    let mut happened: Vec<_> =
        stream.ids().map(|id| stream.event(id)).map(|e| (e.src, e.dst, e.time.to_bits())).collect();
    happened.sort_unstable();
    for query in &queries {
        let key = (query.src, query.dst, query.time.to_bits());
        assert_eq!(happened.binary_search(&key).is_ok(), query.label, "{query:?}");
    }
}

#[test]
fn mirrored_nodes_have_equal_histories() {
    let (_, Triadic { stream, queries }) = big();
    let contacts = Contacts::of(&stream);
    for four in queries.chunks(4).take(2_000) {
        for side in [|query: &Query| query.src, |query: &Query| query.dst] {
            let views: Vec<String> = four.iter().map(|query| contacts.unfolded(side(query), query.time, 4)).collect();
            assert!(!views[0].is_empty());
            assert!(views.iter().all(|view| *view == views[0]), "{views:?}");
        }
    }
}

#[test]
fn common_neighbor_distinguishes_the_two_pairs_of_a_node() {
    let (_, Triadic { stream, queries }) = big();
    let contacts = Contacts::of(&stream);
    for four in queries.chunks(4) {
        let with = four.iter().filter(|query| contacts.has_common(query)).count();
        assert_eq!(with, 2);
    }
}

#[test]
fn optimal_score_follows_from_the_history() {
    let (spec, Triadic { stream, queries }) = big();
    let contacts = Contacts::of(&stream);
    for query in &queries {
        let gap = contacts.wedge(query.dst, query).0 - contacts.wedge(query.src, query).0;
        let p_straight = if gap < spec.long_gap.0 { spec.p_short } else { spec.p_long };
        let expected = if contacts.has_common(query) { p_straight } else { 1.0 - p_straight };
        assert!((query.optimal - expected).abs() < 1e-12, "{query:?} after a gap of {gap}");
    }
}

#[test]
fn optimal_scores_are_calibrated() {
    let spec = TriadicSpec { n_episodes: 20_000, p_short: 0.8, p_long: 0.35, ..TriadicSpec::default() };
    let queries = spec.generate(1).unwrap().queries;
    for p in [0.8, 0.2, 0.35, 0.65] {
        let kind: Vec<_> = queries.iter().filter(|query| (query.optimal - p).abs() < 1e-9).collect();
        // Two pairs of an episode always share their outcome, so about 10 000 independent draws.
        let share = kind.iter().filter(|query| query.label).count() as f64 / kind.len() as f64;
        assert!((share - p).abs() < 0.02, "{share} of the pairs of probability {p} happened");
        assert!(kind.len().abs_diff(20_000) < 800, "gaps of both kinds are equally likely");
    }
}

#[test]
fn optimal_score_reaches_its_limit_and_partial_signals_are_at_chance() {
    let (spec, drawn) = big();
    let (optimal, limit) = (drawn.optimal(), spec.limit());
    assert!((optimal.auc - limit.auc).abs() < 0.01 && (optimal.ap - limit.ap).abs() < 0.01, "{optimal:?} {limit:?}");

    let contacts = Contacts::of(&drawn.stream);
    let labels: Vec<bool> = drawn.queries.iter().map(|query| query.label).collect();
    let auc =
        |score: &dyn Fn(&Query) -> f64| roc_auc(&drawn.queries.iter().map(score).collect::<Vec<_>>(), &labels).unwrap();
    let gap = |query: &Query| contacts.wedge(query.dst, query).0 - contacts.wedge(query.src, query).0;
    let common = |query: &Query| f64::from(u8::from(contacts.has_common(query)));
    // Common neighbors without times, times without common neighbors, and ages carry no signal.
    for (name, score) in [
        ("common neighbors", &common as &dyn Fn(&Query) -> f64),
        ("gap", &gap),
        ("age of the source", &|query| contacts.wedge(query.src, query).0 - query.time),
        ("age of the destination", &|query| contacts.wedge(query.dst, query).0 - query.time),
    ] {
        let found = auc(score);
        assert!((found - 0.5).abs() < 0.02, "{name}: {found}");
    }
    // The right sign with an extra dependence on the exact gap breaks ties at random, which changes nothing but the
    // average precision, up to its optimum.
    let middle = f64::midpoint(spec.short_gap.1, spec.long_gap.0);
    let tilted = |query: &Query| (common(query) - 0.5) * (middle - gap(query)).signum() * (1.0 + gap(query) / 1e6);
    let scores: Vec<f64> = drawn.queries.iter().map(tilted).collect();
    let found = binary_scores(&scores, &labels).unwrap();
    assert!((found.auc - optimal.auc).abs() < 0.01 && (found.ap - optimal.ap).abs() < 0.01, "{found:?} {optimal:?}");
    let grouped = drawn.queries.iter().map(|query| query.optimal).collect::<Vec<_>>();
    assert!(average_precision(&grouped, &labels).unwrap() < optimal.ap);
}

/// A feature of a query and its index that does not use the events.
type Feature<'a> = &'a dyn Fn(usize, &Query) -> bool;

#[test]
fn ids_and_file_order_do_not_reveal_the_outcome() {
    let (_, Triadic { stream, queries }) = big();
    let contacts = Contacts::of(&stream);
    let labels: Vec<bool> = queries.iter().map(|query| query.label).collect();
    // Whether a node's wedge event comes before its mirror image, which has the same time and is adjacent.
    let is_first = |node: NodeId, query: &Query| {
        let (time, event) = contacts.wedge(node, query);
        stream.times().get(event + 1) == Some(&time)
    };
    let middle = |query: &Query| contacts.before(query.src, query.time).next().unwrap().1;
    let features: [(&str, Feature<'_>); 10] = [
        ("source id below destination id", &|_, query| query.src < query.dst),
        ("even source id", &|_, query| query.src.0 % 2 == 0),
        ("even destination id", &|_, query| query.dst.0 % 2 == 0),
        ("ids of equal parity", &|_, query| query.src.0 % 2 == query.dst.0 % 2),
        ("ids close together", &|_, query| query.src.0.abs_diff(query.dst.0) < 15_000),
        ("middle id below destination id", &|_, query| middle(query) < query.dst),
        ("source's event first", &|_, query| is_first(query.src, query)),
        ("destination's event first", &|_, query| is_first(query.dst, query)),
        ("both first or both second", &|_, query| is_first(query.src, query) == is_first(query.dst, query)),
        ("early among the four queries", &|place, _| place % 4 < 2),
    ];
    for (name, feature) in features {
        let scores: Vec<f32> =
            queries.iter().enumerate().map(|(place, query)| f32::from(u8::from(feature(place, query)))).collect();
        let auc = roc_auc(&scores, &labels).unwrap();
        assert!((auc - 0.5).abs() < 0.015, "{name}: AUC {auc}");
    }
    // The order of the two outcome events is independent of the order of their wedges.
    let mut agree = 0_u32;
    for four in queries.chunks(4) {
        let happened: Vec<&Query> = four.iter().filter(|query| query.label).collect();
        let place = |query: &Query| {
            let at = |contact: &(f64, NodeId, usize)| contact.0 == query.time && contact.1 == query.dst;
            contacts.0[query.src.index()].iter().find(|contact| at(contact)).unwrap().2
        };
        let outcome = place(happened[0]) < place(happened[1]);
        agree += u32::from(outcome == is_first(happened[0].src, happened[0]));
    }
    assert!(agree.abs_diff(5_000) < 250, "{agree} of 10 000");
}

#[test]
fn episodes_overlap_in_time() {
    let (spec, Triadic { stream, .. }) = big();
    let life: f64 = 15.0 / 2.0 + 150.0 / 2.0 + 450.0;
    let span = stream.times()[stream.len() - 1] - stream.times()[0];
    let open_at_once = life * f64::from(spec.n_episodes) / span;
    assert!(open_at_once > 20.0, "{open_at_once}");
}

#[test]
fn the_same_seed_gives_the_same_stream_and_another_does_not() {
    let spec = TriadicSpec { n_episodes: 50, ..TriadicSpec::default() };
    assert_eq!(fingerprint(&spec.generate(7).unwrap().stream), "3bab22391a3e3335");
    assert_ne!(spec.generate(7).unwrap(), spec.generate(8).unwrap());
}
