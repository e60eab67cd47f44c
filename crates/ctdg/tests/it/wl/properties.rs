//! Properties that hold for every stream.

use ctdg::wl::{
    Direction, Dwl, Graph, GraphOptions, Initial, Interning, Times, Variant, isomorphism, tuple_isomorphism,
};

use super::random::{Draw, Pair, copy, events, pair, renamed};
use super::{compare, graph, nodes, separated};

fn graph_options() -> Vec<GraphOptions> {
    let with = |direction, times| GraphOptions { direction, times, ..GraphOptions::default() };
    vec![
        with(Direction::Undirected, Times::Kept),
        with(Direction::Directed, Times::Kept),
        with(Direction::Undirected, Times::Dropped),
        with(Direction::Directed, Times::Dropped),
    ]
}

/// Every test of dimension `k`.
fn tests(k: usize) -> Vec<Dwl> {
    let dwl = Dwl::new(k).unwrap();
    vec![
        dwl.clone(),
        Dwl { initial: Initial::Types, ..dwl.clone() },
        Dwl { variant: Variant::Oblivious, ..dwl.clone() },
        Dwl { interning: Interning::Approximate, ..dwl },
    ]
}

fn graphs(pair: &Pair, options: &GraphOptions) -> (Graph, Graph) {
    (graph(pair.n_nodes[0], &pair.a, options), graph(pair.n_nodes[1], &pair.b, options))
}

/// Largest dimension that is fast in an unoptimised build.
fn max_k(n_nodes: u32) -> usize {
    if n_nodes <= 4 { 4 } else { 3 }
}

#[test]
fn isomorphic_copies_are_never_separated_by_any_k() {
    for seed in 0..300 {
        let mut draw = Draw::new(seed);
        let n = draw.below(6);
        let original = events(&mut draw, n, 2 * n);
        for options in graph_options() {
            let flip = options.direction == Direction::Undirected;
            let (copied, names) = copy(&mut draw, n, &original, flip);
            let (a, b) = (graph(n, &original, &options), graph(n, &copied, &options));
            for test in (1..=max_k(n)).flat_map(tests) {
                assert!(!separated(&test, &a, &b), "{test:?} {original:?} {copied:?}");
                if n > 0 {
                    let tuple: Vec<u32> = (0..=draw.below(3)).map(|_| draw.below(n)).collect();
                    let image: Vec<u32> = tuple.iter().map(|&node| names[node as usize]).collect();
                    let run = test.compare_tuples((&a, &nodes(&tuple)), (&b, &nodes(&image))).unwrap();
                    assert_eq!(run.tuples.unwrap().round, None, "{test:?} {original:?} {tuple:?}");
                }
            }
        }
    }
}

#[test]
fn graphs_separated_by_k_are_separated_by_k_plus_one() {
    // Proposition 1 of the paper, over thousands of pairs. `gained[k]` counts the pairs that only k + 1 separates, so that
    // the test cannot pass vacuously.
    let mut gained = [0; 4];
    for seed in 0..4_000 {
        let pair = pair(seed, 7);
        let options = &graph_options()[(seed % 4) as usize];
        let (a, b) = graphs(&pair, options);
        let largest = pair.n_nodes[0].max(pair.n_nodes[1]);
        let rounds: Vec<Option<usize>> = (1..=max_k(largest)).map(|k| compare(k, &a, &b).graphs.round).collect();
        for (k, both) in (1..).zip(rounds.windows(2)) {
            assert!(both[0].is_none() || both[1].is_some(), "k = {k} against {}: {pair:?} {options:?}", k + 1);
            // By the proof, also not in a later round.
            assert!(both[0].is_none_or(|round| both[1].is_some_and(|next| next <= round)), "{rounds:?} {pair:?}");
            gained[k] += usize::from(both[0].is_none() && both[1].is_some());
        }
    }
    assert!(gained[1] > 50, "pairs that only k = 2 separates: {gained:?}");
}

#[test]
fn tuples_separated_by_k_are_separated_by_k_plus_one() {
    for seed in 0..400 {
        let pair = pair(seed, 5);
        let (a, b) = graphs(&pair, &GraphOptions::default());
        let mut draw = Draw::new(seed);
        if pair.n_nodes.contains(&0) {
            continue;
        }
        let length = 1 + draw.below(3);
        let mut tuple = |n| (0..length).map(|_| draw.below(n)).collect::<Vec<u32>>();
        let (s, t) = (nodes(&tuple(pair.n_nodes[0])), nodes(&tuple(pair.n_nodes[1])));
        let separated_tuples =
            |k| Dwl::new(k).unwrap().compare_tuples((&a, &s), (&b, &t)).unwrap().tuples.unwrap().separated();
        let separated_tuples: Vec<bool> = (1..=3).map(separated_tuples).collect();
        assert!(
            separated_tuples.windows(2).all(|both| both[0] <= both[1]),
            "{separated_tuples:?} {s:?} {t:?} {pair:?}"
        );
    }
}

#[test]
fn separated_graphs_and_tuples_are_not_isomorphic() {
    let (mut isomorphic, mut different) = (0, 0);
    for seed in 0..1_500 {
        let pair = pair(seed, 6);
        let options = &graph_options()[(seed % 4) as usize];
        let (a, b) = graphs(&pair, options);
        let truth = isomorphism(&a, &b).unwrap();
        let undirected = options.direction == Direction::Undirected;
        assert!(truth.is_some() || pair.renaming.is_none() || !undirected, "a copy is isomorphic: {pair:?}");
        for test in (1..=3).flat_map(tests) {
            assert!(truth.is_none() || !separated(&test, &a, &b), "{test:?} {pair:?}");
        }
        isomorphic += usize::from(truth.is_some());
        different += usize::from(truth.is_none());
    }
    assert!(isomorphic > 300 && different > 300, "{isomorphic} and {different}");
}

#[test]
fn tuples_separated_within_one_graph_are_not_isomorphic() {
    for seed in 0..60 {
        let mut draw = Draw::new(seed);
        let n = 1 + draw.below(5);
        let events = events(&mut draw, n, 2 * n);
        let graph = graph(n, &events, &GraphOptions::default());
        for test in tests(2) {
            let coloring = test.color(&graph).unwrap();
            let pairs: Vec<[u32; 2]> = (0..n).flat_map(|u| (0..n).map(move |v| [u, v])).collect();
            for s in &pairs {
                for t in &pairs {
                    let (s, t) = (nodes(s), nodes(t));
                    let differ = coloring.class(0, &s) != coloring.class(0, &t);
                    if differ {
                        assert!(
                            tuple_isomorphism((&graph, &s), (&graph, &t)).unwrap().is_none(),
                            "{test:?} {events:?}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn separated_until_t_means_separated_until_every_later_time() {
    for seed in 0..400 {
        let pair = pair(seed, 6);
        for k in 1..=3 {
            let until = |t: f64| {
                let (a, b) = graphs(&pair, &GraphOptions { until: Some(t), ..GraphOptions::default() });
                compare(k, &a, &b).graphs.separated()
            };
            let verdicts = [-1.0, 0.0, 1.0, 2.0, 3.0].map(until);
            assert!(verdicts.windows(2).all(|both| both[0] <= both[1]), "k = {k} {verdicts:?} {pair:?}");
        }
    }
}

#[test]
fn events_at_the_time_or_later_change_nothing() {
    for seed in 0..300 {
        let pair = pair(seed, 6);
        let mut draw = Draw::new(seed);
        let options = GraphOptions { until: Some(2.0), ..GraphOptions::default() };
        let early = |events: &[super::Event]| events.iter().copied().filter(|event| event.2 < 2.0).collect::<Vec<_>>();
        let (mut a, b) = (early(&pair.a), early(&pair.b));
        let (n, m) = (pair.n_nodes[0], pair.n_nodes[1]);
        let before = compare(2, &graph(n, &a, &options), &graph(m, &b, &options));
        if n > 0 {
            a.extend((0..4).map(|_| (draw.below(n), draw.below(n), f64::from(2 + draw.below(3)))));
        }
        let after = compare(2, &graph(n, &a, &options), &graph(m, &b, &options));
        assert_eq!(before, after, "{pair:?}");
    }
}

#[test]
fn verdicts_do_not_depend_on_the_order_of_the_graphs_nor_on_names() {
    for seed in 0..300 {
        let pair = pair(seed, 6);
        let (a, b) = graphs(&pair, &GraphOptions::default());
        let names = Draw::new(seed).permutation(pair.n_nodes[0]);
        let renamed = graph(pair.n_nodes[0], &renamed(&pair.a, &names), &GraphOptions::default());
        for k in 1..=3 {
            let [forth, back, other] = [(&a, &b), (&b, &a), (&renamed, &b)].map(|(a, b)| compare(k, a, b));
            assert_eq!(forth.graphs.round, back.graphs.round);
            assert_eq!(forth.graphs.round, other.graphs.round);
            assert_eq!(forth.coloring.n_classes(), other.coloring.n_classes());
        }
    }
}

#[test]
fn k_plus_one_owl_equals_k_fwl() {
    // Known for simple static graphs: 1-OWL equals 2-OWL, (k + 1)-OWL equals k-FWL.
    let options = GraphOptions { times: Times::Dropped, ..GraphOptions::default() };
    let mut separated_by_fwl = 0;
    for seed in 0..600 {
        let mut pair = pair(seed, 6);
        pair.a.retain(|event| event.0 != event.1);
        pair.b.retain(|event| event.0 != event.1);
        let (a, b) = graphs(&pair, &options);
        let verdict = |k, variant| separated(&Dwl::static_test(k, variant).unwrap(), &a, &b);
        assert_eq!(verdict(1, Variant::Oblivious), verdict(2, Variant::Oblivious), "{pair:?}");
        assert_eq!(verdict(2, Variant::Folklore), verdict(3, Variant::Oblivious), "{pair:?}");
        separated_by_fwl += usize::from(verdict(2, Variant::Folklore));
    }
    assert!(separated_by_fwl > 100, "{separated_by_fwl}");
}

#[test]
fn isomorphism_types_at_the_start_do_not_change_verdicts_on_graphs() {
    // Not a theorem of the paper; docs/src/dwl.md refers to this test.
    for seed in 0..1_500 {
        let pair = pair(seed, 7);
        let (a, b) = graphs(&pair, &graph_options()[(seed % 4) as usize]);
        for k in [2, 3] {
            let constant = Dwl::new(k).unwrap();
            let types = Dwl { initial: Initial::Types, ..constant.clone() };
            assert_eq!(separated(&constant, &a, &b), separated(&types, &a, &b), "k = {k} {pair:?}");
        }
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let (a, b) = (ctdg::wl::examples::random(24, 60, 1).unwrap(), ctdg::wl::examples::random(24, 60, 2).unwrap());
    let rook = ctdg::wl::examples::all().unwrap().into_iter().find(|example| example.name == "rook").unwrap();
    for (a, b) in [(a, b), (rook.a, rook.b)] {
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let options = GraphOptions::default();
                let (a, b) = (Graph::new(&a, &options).unwrap(), Graph::new(&b, &options).unwrap());
                [1, 2, 3].map(|k| compare(k, &a, &b))
            })
        };
        let one = run(1);
        assert_eq!(one, run(2));
        assert_eq!(one, run(7));
    }
}
