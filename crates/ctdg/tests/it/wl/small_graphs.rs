//! The tests on all small graphs: where marked DWL stops, cut vertices and bridges, walks.

use std::collections::{BTreeMap, BTreeSet};

use ctdg::event::NodeId;
use ctdg::wl::{Coloring, Dwl, Graph, GraphOptions, Initial, Reach, examples};

use super::enumerated::{Small, all};
use super::marked::marked;
use super::random::{Draw, events};
use super::{Event, graph, nodes};

fn color(test: &Dwl, graphs: &[Small]) -> Coloring {
    let graphs: Vec<Graph> = graphs.iter().map(Small::read).collect();
    test.color_all(&graphs.iter().collect::<Vec<_>>()).unwrap()
}

fn pair(u: usize, v: usize) -> [NodeId; 2] {
    [u, v].map(|node| NodeId::from_index(node).unwrap())
}

/// How many graphs have the same multiset of colors as an earlier one.
fn n_merged(coloring: &Coloring, n_graphs: usize) -> usize {
    let mut seen = BTreeSet::new();
    let sorted = |graph: usize| {
        let mut classes = coloring.classes(graph).to_vec();
        classes.sort_unstable();
        classes
    };
    (0..n_graphs).filter(|&graph| !seen.insert(sorted(graph))).count()
}

/// Claim (c), by enumeration: on all graphs of at most seven nodes, and on all with events at two times of at most five, marked DWL
/// and 2-DWL separate every two, 1-DWL does not. They divide the pairs of different nodes alike; nodes paired with themselves 2-DWL divides finer from
/// seven nodes on.
#[test]
fn all_small_graphs_are_separated_by_marked_dwl_and_by_2_dwl() {
    let types = Dwl { initial: Initial::Types, ..Dwl::new(2).unwrap() };
    for (n, n_times, n_graphs, n_merged_by_one) in [(6, 1, 156, 4), (7, 1, 1044, 22), (5, 2, 792, 0)] {
        let graphs = all(n, n_times);
        assert_eq!(graphs.len(), n_graphs);
        let [one, two, all, met] = [Dwl::new(1).unwrap(), types.clone(), marked(Reach::All), marked(Reach::Met)]
            .map(|test| color(&test, &graphs));
        let merged = [&one, &two, &all, &met].map(|coloring| n_merged(coloring, n_graphs));
        assert_eq!(merged, [n_merged_by_one, 0, 0, 0], "n = {n}, times {n_times}");
        let pairs = (0..n).flat_map(|u| (0..n).map(move |v| [u, v]));
        let at = (0..n_graphs).flat_map(|graph| pairs.clone().map(move |pair| (graph, pair)));
        let classes = |different: bool| {
            let wanted = at.clone().filter(|(_, [u, v])| (u != v) == different);
            let both = wanted.map(|(graph, [u, v])| [&two, &all].map(|coloring| coloring.class(graph, &pair(u, v))));
            let both: BTreeSet<[u32; 2]> = both.collect();
            let n = |test: usize| both.iter().map(|both| both[test]).collect::<BTreeSet<_>>().len();
            [n(0), n(1), both.len()]
        };
        let [different, same] = [true, false].map(classes);
        assert_eq!((different[0], different[1]), (different[2], different[2]), "different nodes: the same classes");
        assert_eq!(same[0], same[2], "a node twice: 2-DWL is at least as fine");
        assert_eq!(same[0] - same[1], if n == 7 { 20 } else { 0 }, "and finer from seven nodes on");
        assert!(met.n_classes() < all.n_classes(), "nodes beyond reach");
    }
}

/// Whether all of `of` with the same key agree.
fn agree<K: Ord>(of: impl Iterator<Item = (K, bool)>) -> bool {
    let mut known: BTreeMap<K, bool> = BTreeMap::new();
    { of }.all(|(key, is)| *known.entry(key).or_insert(is) == is)
}

/// Which facts are functions of the colors, over all connected graphs of `n` nodes.
struct Told {
    one: [bool; 2],
    two: [bool; 2],
    marked: [bool; 3],
    met: bool,
}

fn told(n: usize) -> Told {
    let graphs: Vec<Small> = all(n, 1).into_iter().filter(Small::is_connected).collect();
    let pairs = || (0..graphs.len()).flat_map(|graph| (0..n).flat_map(move |u| (0..n).map(move |v| (graph, u, v))));
    let [one, two, marked, met] = [Dwl::new(1).unwrap(), Dwl::new(2).unwrap(), marked(Reach::All), marked(Reach::Met)]
        .map(|test| color(&test, &graphs));
    let node = |graph: usize, u: usize| one.class(graph, &pair(u, u)[..1]);
    let is_cut = |(graph, u, _): (usize, usize, usize)| graphs[graph].is_cut_vertex(u);
    let is_bridge = |(graph, u, v): (usize, usize, usize)| graphs[graph].is_bridge(u, v);
    let edges = || pairs().filter(|&(graph, u, v)| graphs[graph].met(u, v));
    let by = |coloring: &Coloring, (graph, u, v): (usize, usize, usize)| coloring.class(graph, &pair(u, v));
    let same = || pairs().filter(|&(_, u, v)| u == v);
    let different = || pairs().filter(|&(_, u, v)| u != v);
    Told {
        one: [
            agree(same().map(|at| (node(at.0, at.1), is_cut(at)))),
            agree(edges().map(|at| ((node(at.0, at.1), node(at.0, at.2)), is_bridge(at)))),
        ],
        two: [
            agree(same().map(|at| (by(&two, at), is_cut(at)))),
            agree(edges().map(|at| (by(&two, at), is_bridge(at)))),
        ],
        marked: [
            agree(same().map(|at| (by(&marked, at), is_cut(at)))),
            agree(different().map(|at| (by(&marked, at), is_cut(at)))),
            agree(edges().map(|at| (by(&marked, at), is_bridge(at)))),
        ],
        met: agree(edges().map(|at| (by(&met, at), is_bridge(at)))),
    }
}

/// On all connected graphs of at most seven nodes (853 of seven): 2-DWL tells cut vertices and bridges. So does marked DWL by the color
/// of a pair of different nodes, not by that of a node with itself. 1-DWL tells neither from six nodes on.
#[test]
fn cut_vertices_and_bridges_are_told_by_2_dwl_and_by_marked_pairs() {
    for n in 2..=7 {
        let Told { one, two, marked, met } = told(n);
        assert_eq!(one, [n < 6; 2], "1-DWL, n = {n}");
        assert_eq!(two, [true; 2], "2-DWL, n = {n}");
        assert_eq!(marked, [n < 7, true, true], "marked DWL: node alone, node of a pair, bridge; n = {n}");
        assert_eq!(met, n < 5, "bridges by nodes that met the pair, n = {n}");
    }
}

/// A wheel, and two complete graphs of four nodes that share one: alone, the hub looks the same. Marked with any other node, it does not.
#[test]
fn the_hub_of_a_wheel_marked_alone_is_not_told_from_a_cut_vertex() {
    let hub = (1..7).map(|rim| (0, rim, 1.0));
    let ring: Vec<Event> = hub.clone().chain((0..6).map(|i| (1 + i, 1 + (i + 1) % 6, 1.0))).collect();
    let triangles: Vec<Event> = hub.chain((0..6).map(|i| (1 + i, 1 + i / 3 * 3 + (i + 1) % 3, 1.0))).collect();
    let options = GraphOptions::default();
    let (a, b) = (graph(7, &ring, &options), graph(7, &triangles, &options));
    let round = |test: Dwl, s: &[u32]| {
        let run = test.compare_tuples((&a, &nodes(s)), (&b, &nodes(s))).unwrap();
        run.tuples.unwrap().round
    };
    assert_eq!(round(marked(Reach::All), &[0, 0]), None);
    assert!(round(marked(Reach::All), &[0, 1]).is_some());
    assert!(round(Dwl::new(2).unwrap(), &[0, 0]).is_some());
}

/// The local form sees neighbors of the pair only: on a ring of four it tells that an edge is no bridge, on a ring of five it does not.
#[test]
fn by_nodes_that_met_the_pair_bridges_are_not_told() {
    let options = GraphOptions::default();
    // The middle edge of a path, and an edge of a ring; both ends of either met one other node.
    let path: Vec<Event> = vec![(0, 1, 1.0), (0, 2, 1.0), (1, 3, 1.0)];
    for (n, closing, expected) in [(5, vec![(2, 3, 1.0)], Some(1)), (5, vec![(2, 4, 1.0), (4, 3, 1.0)], None)] {
        let (a, b) = (graph(n, &path, &options), graph(n, &[&path[..], &closing].concat(), &options));
        let run = |reach| marked(reach).compare_tuples((&a, &nodes(&[0, 1])), (&b, &nodes(&[0, 1]))).unwrap();
        assert_eq!(run(Reach::Met).tuples.unwrap().round, expected);
        assert!(run(Reach::All).tuples.unwrap().separated());
    }
}

/// Number of walks between all nodes with exactly these times, by multiplication of matrices.
fn walks(graph: &Graph, times: &[f64]) -> Vec<Vec<u64>> {
    let n = graph.n_nodes();
    let mut counts: Vec<Vec<u64>> = (0..n).map(|u| (0..n).map(|v| u64::from(u == v)).collect()).collect();
    for time in times {
        let mut next = vec![vec![0; n]; n];
        for x in 0..n {
            for (v, sequence) in graph.pair_events(NodeId::from_index(x).unwrap()) {
                let events = sequence.forth.iter().filter(|&other| other == time).count() as u64;
                for (from, to) in counts.iter().zip(&mut next) {
                    to[v.index()] += from[x] * events;
                }
            }
        }
        counts = next;
    }
    counts
}

/// Claim (e): pairs of one 2-DWL color have as many walks of every length with every times, and so have their nodes with all others.
#[test]
fn numbers_of_walks_never_separate_what_2_dwl_merges() {
    let mut n_equal = 0;
    for seed in 0..150 {
        let mut draw = Draw::new(seed);
        let n = 2 + draw.below(5);
        let graph = graph(n, &events(&mut draw, n, 3 * n), &GraphOptions::default());
        let coloring = Dwl::new(2).unwrap().color(&graph).unwrap();
        for length in 1..=6 {
            let times: Vec<f64> = (0..length).map(|_| f64::from(draw.below(3))).collect();
            let counts = walks(&graph, &times);
            let back = walks(&graph, &times.iter().rev().copied().collect::<Vec<_>>());
            let mut known = BTreeMap::new();
            for (u, v) in (0..n as usize).flat_map(|u| (0..n as usize).map(move |v| (u, v))) {
                let mut all: Vec<[u64; 2]> = (0..n as usize).map(|w| [counts[u][w], counts[v][w]]).collect();
                all.sort_unstable();
                let found = (counts[u][v], back[u][v], all);
                let class = coloring.class(0, &pair(u, v));
                n_equal += usize::from(known.contains_key(&class));
                assert_eq!(known.entry(class).or_insert_with(|| found.clone()), &found, "seed {seed}, {times:?}");
            }
        }
    }
    assert!(n_equal > 1_000, "{n_equal} pairs were compared");
}

/// The other half of (e): on strongly regular graphs numbers of walks see nothing, walks along which each node is known by its events
/// with *both* nodes of the pair do. Those are bounded by marked DWL, not by 2-DWL.
#[test]
fn walks_whose_nodes_are_known_by_the_pair_exceed_2_dwl() {
    let rook = examples::all().unwrap().into_iter().find(|example| example.name == "rook").unwrap();
    let [a, b] = [&rook.a, &rook.b].map(|stream| Graph::new(stream, &GraphOptions::default()).unwrap());
    let sorted = |graph: &Graph, length: usize| {
        let mut all = walks(graph, &vec![1.0; length]).concat();
        all.sort_unstable();
        all
    };
    assert!((1..=10).all(|length| sorted(&a, length) == sorted(&b, length)));
    // Walks u, w, x, v over common neighbors w, x of the adjacent pair (u, v).
    let over_common = |graph: &Graph| {
        let met = walks(graph, &[1.0]);
        let is_common = |u: usize, v: usize, w: usize| met[u][w] * met[v][w] == 1;
        let walks_of = |u: usize, v: usize| {
            let pairs = (0..16).flat_map(|w| (0..16).map(move |x| (w, x)));
            pairs.filter(|&(w, x)| is_common(u, v, w) && is_common(u, v, x) && met[w][x] == 1).count()
        };
        let edges = (0..16).flat_map(|u| (0..16).map(move |v| (u, v))).filter(|&(u, v)| met[u][v] == 1);
        edges.map(|(u, v)| walks_of(u, v)).collect::<BTreeSet<_>>()
    };
    assert_eq!((over_common(&a), over_common(&b)), (BTreeSet::from([2]), BTreeSet::from([0])));
}

/// Facts about the aggregated graph are facts about lists of times: bridges of random streams with repeats and several times.
#[test]
fn bridges_of_random_streams_are_told_by_pairs() {
    let streams: Vec<(u32, Vec<Event>)> = (0..120)
        .map(|seed| {
            let mut draw = Draw::new(seed);
            let n = 4 + draw.below(3);
            (n, events(&mut draw, n, n + 2))
        })
        .collect();
    let graphs: Vec<Graph> = streams.iter().map(|(n, events)| graph(*n, events, &GraphOptions::default())).collect();
    let joined = |at: usize, u: usize, v: usize| {
        let is = |&(s, d, _): &Event| [(u, v), (v, u)].contains(&(s as usize, d as usize));
        u != v && streams[at].1.iter().any(is)
    };
    let is_bridge = |at: usize, u: usize, v: usize| {
        let n = streams[at].0 as usize;
        let (mut seen, mut open) = (BTreeSet::from([u]), vec![u]);
        while let Some(x) = open.pop() {
            let next = (0..n).filter(|&y| joined(at, x, y) && ![(u, v), (v, u)].contains(&(x, y)));
            open.extend(next.filter(|&y| seen.insert(y)).collect::<Vec<_>>());
        }
        !seen.contains(&v)
    };
    for test in [Dwl::new(2).unwrap(), marked(Reach::All)] {
        let coloring = test.color_all(&graphs.iter().collect::<Vec<_>>()).unwrap();
        let edges = (0..streams.len()).flat_map(|at| {
            let n = streams[at].0 as usize;
            (0..n).flat_map(move |u| (0..n).map(move |v| (at, u, v)))
        });
        let edges = edges.filter(|&(at, u, v)| joined(at, u, v));
        assert!(agree(edges.map(|(at, u, v)| (coloring.class(at, &pair(u, v)), is_bridge(at, u, v)))), "{test:?}");
    }
}
