//! Checks the paper's statements about its two figures, and the verdicts.

#![expect(clippy::many_single_char_names, reason = "nodes are called as in the paper's figures")]

use super::*;
use crate::wl::{Dwl, Graph, GraphOptions, isomorphism, tuple_isomorphism};

fn graph(example: &Example) -> Graph {
    Graph::new(&example.a, &GraphOptions { until: example.until, ..GraphOptions::default() }).unwrap()
}

fn interactions(graph: &Graph, u: u32) -> Vec<(u32, Vec<f64>)> {
    graph.pair_events(NodeId(u)).map(|(neighbor, sequence)| (neighbor.0, sequence.forth)).collect()
}

#[test]
fn figure_1_matches_its_caption() {
    let example = figure_1().unwrap();
    let graph = graph(&example);
    let [a, b, c, d] = [0, 1, 2, 3];
    assert!(interactions(&graph, b).contains(&(a, vec![1.0])) && interactions(&graph, b).contains(&(c, vec![2.0])));
    assert_eq!(interactions(&graph, a), [(b, vec![1.0])], "A and D have no common neighbor");
    assert!(interactions(&graph, d).iter().all(|(node, _)| *node != b));
    let same = |s: u32, t: u32| tuple_isomorphism((&graph, &[NodeId(s)]), (&graph, &[NodeId(t)])).unwrap();
    assert!(same(c, d).is_some(), "C and D are isomorphic before t4");
    let [s, t] = example.tuples.as_ref().unwrap();
    assert!(tuple_isomorphism((&graph, s), (&graph, t)).unwrap().is_none());
    assert_eq!(example.tuple_argument().unwrap(), "A,C=A,D");
}

#[test]
fn proof_figure_matches_its_proof() {
    let example = proof_figure().unwrap();
    let graph = graph(&example);
    let [a, b, c, g, h] = [0, 1, 2, 6, 7];
    assert_eq!(interactions(&graph, b), [(a, vec![1.0]), (c, vec![2.0])]);
    assert_eq!(interactions(&graph, h), [(a, vec![4.0]), (g, vec![3.0])]);
    let same = |s: u32, t: u32| tuple_isomorphism((&graph, &[NodeId(s)]), (&graph, &[NodeId(t)])).unwrap();
    assert!(same(c, g).is_some());
    assert_eq!(example.tuple_argument().unwrap(), "a,c=a,g");
}

#[test]
fn ordered_examples_are_one_graph_without_times() {
    let static_options = GraphOptions { times: crate::wl::Times::Dropped, ..GraphOptions::default() };
    let names = ["square-order", "triangles-order", "rook-order", "latin-order", "cfi-k33-order"];
    for example in all().unwrap().iter().filter(|example| names.contains(&example.name)) {
        let mut times = [example.a.times().to_vec(), example.b.times().to_vec()];
        for times in &mut times {
            times.sort_by(f64::total_cmp);
        }
        assert_eq!(times[0], times[1], "{}: as many events at each time", example.name);
        let read = |stream| Graph::new(stream, &static_options).unwrap();
        assert!(isomorphism(&read(&example.a), &read(&example.b)).unwrap().is_some(), "{}", example.name);
    }
}

#[test]
fn random_streams_repeat_with_their_seed() {
    let stream = random(30, 200, 7).unwrap();
    assert_eq!(stream, random(30, 200, 7).unwrap());
    assert_ne!(stream, random(30, 200, 8).unwrap());
    assert!(stream.n_nodes() <= 30 && stream.len() == 200);
    let graph = Graph::new(&stream, &GraphOptions::default()).unwrap();
    assert!(!Dwl::new(2).unwrap().compare(&graph, &graph).unwrap().graphs.separated());
}
