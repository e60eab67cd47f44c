//! Known verdicts and edge cases.

use ctdg::event::{Columns, EventStream, Features, NodeNames};
use ctdg::time::TimeFormat;
use ctdg::wl::{Cause, Direction, Dwl, Graph, GraphOptions, Initial, Labels, Times, examples};

use super::{compare, graph, nodes, stream};

/// The verdicts as docs/src/dwl.md shows them.
const TABLE: &str = "\
| example         | compared | nodes | 1-DWL  | 2-DWL  | marked | marked, met | 3-DWL  | 1-WL | 2-FWL  | 3-FWL  | isomorphic |
| --------------- | -------- | ----- | ------ | ------ | ------ | ----------- | ------ | ---- | ------ | ------ | ---------- |
| figure-1        | A,C=A,D  | 6     | no     | yes, 1 | yes, 0 | yes, 0      | yes, 1 | no   | yes, 1 | yes, 1 | no         |
| proof-figure    | a,c=a,g  | 8     | no     | yes, 1 | yes, 0 | yes, 0      | yes, 1 | no   | no     | no     | no         |
| rings           | graphs   | 8     | no     | yes, 1 | yes, 0 | yes, 0      | yes, 1 | no   | yes, 1 | yes, 1 | no         |
| square-order    | graphs   | 4     | yes, 1 | yes, 1 | yes, 0 | yes, 0      | yes, 1 | no   | no     | no     | no         |
| triangles       | graphs   | 6     | no     | yes, 2 | yes, 0 | yes, 0      | yes, 2 | no   | yes, 1 | yes, 0 | no         |
| triangles-order | graphs   | 6     | no     | yes, 1 | yes, 0 | yes, 0      | yes, 1 | no   | no     | no     | no         |
| rook            | graphs   | 16    | no     | no     | yes, 1 | yes, 1      | yes, 2 | no   | no     | yes, 1 | no         |
| rook-order      | graphs   | 16    | no     | no     | yes, 1 | yes, 1      | yes, 1 | no   | no     | no     | no         |
| latin           | graphs   | 25    | no     | no     | yes, 1 | yes, 1      | yes, 1 | no   | no     | yes, 1 | no         |
| latin-order     | graphs   | 25    | no     | no     | yes, 1 | yes, 1      | yes, 1 | no   | no     | no     | no         |
| chang           | graphs   | 28    | no     | no     | yes, 1 | yes, 1      | yes, 1 | no   | no     | yes, 1 | no         |
| cfi-k33         | graphs   | 24    | no     | no     | yes, 1 | no          | yes, 1 | no   | no     | yes, 1 | no         |
| cfi-k33-order   | graphs   | 24    | no     | no     | yes, 1 | yes, 1      | yes, 1 | no   | no     | no     | no         |
| cfi-triangles   | graphs   | 26    | no     | yes, 3 | no     | no          | yes, 2 | no   | yes, 3 | yes, 2 | no         |
| cfi-cube        | graphs   | 32    | no     | no     | no     | no          | yes, 2 | no   | no     | yes, 2 | no         |
| cfi-k5          | graphs   | 40    | no     | no     | no     | no          | no     | no   | no     | no     | no         |
";

#[test]
fn verdicts_of_the_examples_are_fixed_and_documented() {
    let table = examples::table(|_| {}).unwrap().to_string();
    assert_eq!(table, TABLE);
    let documented = include_str!("../../../../../docs/src/dwl.md");
    assert!(documented.contains(TABLE), "docs/src/dwl.md shows another table");
}

#[test]
fn graphs_without_nodes_or_with_one() {
    let options = GraphOptions::default();
    let [none, one, looped] = [(0, vec![]), (1, vec![]), (1, vec![(0, 0, 1.0)])].map(|(n, e)| graph(n, &e, &options));
    for k in 1..=4 {
        for same in [&none, &one, &looped] {
            let run = compare(k, same, same);
            assert_eq!((run.graphs.round, run.coloring.is_stable()), (None, true));
        }
        assert_eq!(compare(k, &none, &one).graphs.round, Some(0), "one tuple more");
        assert_eq!(compare(k, &one, &looped).graphs.round, Some(1), "a self-loop is an interaction");
    }
}

#[test]
fn graphs_of_different_size_are_separated_in_round_0() {
    let options = GraphOptions::default();
    let (a, b) = (graph(3, &[(0, 1, 1.0)], &options), graph(4, &[(0, 1, 1.0)], &options));
    for k in 1..=4 {
        let run = compare(k, &a, &b);
        assert_eq!(run.graphs.round, Some(0));
        let witness = run.graphs.witness.unwrap();
        let power = u32::try_from(k).unwrap();
        assert_eq!(witness.classes[0].counts, [3u64.pow(power), 4u64.pow(power)]);
        assert_eq!(witness.contrast, None);
    }
}

#[test]
fn repeats_and_equal_times_count() {
    let options = GraphOptions::default();
    let read = |events| graph(2, events, &options);
    let (once, twice) = (read(&[(0, 1, 1.0)]), read(&[(0, 1, 1.0), (1, 0, 1.0)]));
    let later = read(&[(0, 1, 2.0)]);
    for k in 1..=3 {
        assert_eq!(compare(k, &once, &twice).graphs.round, Some(1), "the same time twice is another sequence");
        assert_eq!(compare(k, &once, &later).graphs.round, Some(1), "another time is another sequence");
    }
    let fixed = GraphOptions { times: Times::Dropped, ..GraphOptions::default() };
    let (once, twice) = (graph(2, &[(0, 1, 1.0)], &fixed), graph(2, &[(0, 1, 1.0), (0, 1, 5.0)], &fixed));
    assert!((1..=3).all(|k| !compare(k, &once, &twice).graphs.separated()), "without times both have one edge");
}

#[test]
fn k_2_separates_disconnected_components() {
    // Two paths of two and one lone node, against a path of three nodes and a pair: node degrees differ.
    let options = GraphOptions::default();
    let (a, b) = (graph(5, &[(0, 1, 1.0), (2, 3, 1.0)], &options), graph(5, &[(0, 1, 1.0), (1, 2, 1.0)], &options));
    assert_eq!(compare(1, &a, &b).graphs.round, Some(1));
    // Seen from a node of an equal component only the rest of the graph differs: k = 2 sees it, k = 1 does not.
    let (c, d) = (graph(4, &[(0, 1, 1.0), (2, 3, 2.0)], &options), graph(4, &[(0, 1, 1.0), (2, 3, 3.0)], &options));
    let told = |k| Dwl::new(k).unwrap().compare_tuples((&c, &nodes(&[0])), (&d, &nodes(&[0]))).unwrap();
    assert_eq!((told(1).tuples.unwrap().round, told(1).graphs.round), (None, Some(1)));
    assert!(told(2).tuples.unwrap().separated());
}

#[test]
fn initial_types_distinguish_equal_nodes_and_labels_do_not() {
    // 0 and 1 interact with the same node at the same time: twins.
    let twins = graph(3, &[(0, 2, 1.0), (1, 2, 1.0)], &GraphOptions::default());
    for k in 2..=4 {
        let constant = Dwl::new(k).unwrap();
        let types = Dwl { initial: Initial::Types, ..constant.clone() };
        let told = |test: &Dwl| {
            let run = test.compare_tuples((&twins, &nodes(&[0, 0])), (&twins, &nodes(&[0, 1]))).unwrap();
            run.tuples.unwrap().round
        };
        assert_eq!((told(&constant), told(&types)), (None, Some(0)));
    }
}

#[test]
fn k_1_does_not_distinguish_self_loops_from_equivalent_neighbors() {
    let options = GraphOptions::default();
    let (each_other, themselves) =
        (graph(2, &[(0, 1, 1.0)], &options), graph(2, &[(0, 0, 1.0), (1, 1, 1.0)], &options));
    let rounds = |test: Dwl| test.compare(&each_other, &themselves).unwrap().graphs.round;
    assert_eq!(rounds(Dwl::new(1).unwrap()), None, "the definition as written");
    assert_eq!(rounds(Dwl { initial: Initial::Types, ..Dwl::new(1).unwrap() }), Some(0));
    assert!((2..=4).all(|k| rounds(Dwl::new(k).unwrap()).is_some()));
}

#[test]
fn direction_matters_only_when_asked_for() {
    // A directed ring, and one with an event reversed.
    let (a, b) = ([(0, 1, 1.0), (1, 2, 1.0), (2, 0, 1.0)], [(0, 1, 1.0), (1, 2, 1.0), (0, 2, 1.0)]);
    let read = |events, direction| graph(3, events, &GraphOptions { direction, ..GraphOptions::default() });
    let separated = |direction| compare(1, &read(&a, direction), &read(&b, direction)).graphs.round;
    assert_eq!(separated(Direction::Undirected), None);
    assert_eq!(separated(Direction::Directed), Some(1));
    let mixed = Dwl::new(1).unwrap().compare(&read(&a, Direction::Directed), &read(&a, Direction::Undirected));
    assert!(mixed.unwrap_err().to_string().contains("directed and undirected"));
}

#[test]
fn labels_given_or_from_features_split_the_first_round() {
    let events = [(0, 1, 1.0), (2, 3, 1.0)];
    let given = |labels: &[u64]| {
        graph(4, &events, &GraphOptions { labels: Labels::Given(labels.to_vec()), ..GraphOptions::default() })
    };
    for k in 1..=3 {
        assert_eq!(compare(k, &given(&[0, 0, 1, 1]), &given(&[1, 1, 0, 0])).graphs.round, None);
        assert_eq!(compare(k, &given(&[0, 0, 1, 1]), &given(&[0, 0, 0, 1])).graphs.round, Some(0));
        let crossed = compare(k, &given(&[0, 0, 1, 1]), &given(&[0, 1, 0, 1])).graphs.round;
        assert_eq!(crossed, Some(1), "same label counts, other neighbors");
    }
    let featured = |rows: [f32; 4]| {
        let columns = stream(4, &events).into_columns();
        let columns = Columns { node_features: Some(Features::new(1, rows.to_vec()).unwrap()), ..columns };
        let options = GraphOptions { labels: Labels::Features, ..GraphOptions::default() };
        Graph::new(&EventStream::new(columns).unwrap(), &options).unwrap()
    };
    assert_eq!(compare(1, &featured([0.5, 0.5, 2.0, 2.0]), &featured([2.0, 2.0, 0.5, 0.5])).graphs.round, None);
    assert_eq!(compare(1, &featured([0.5, 0.5, 2.0, 2.0]), &featured([0.5, 0.5, 3.0, 3.0])).graphs.round, Some(0));
    assert_eq!(compare(1, &featured([0.0; 4]), &featured([-0.0; 4])).graphs.round, None, "-0 is 0");
}

#[test]
fn graphs_of_one_size_are_equal_before_the_first_event() {
    let options = GraphOptions { until: Some(1.0), ..GraphOptions::default() };
    let (a, b) = (graph(3, &[(0, 1, 1.0)], &options), graph(3, &[(0, 1, 1.0), (1, 2, 2.0)], &options));
    assert_eq!((a.n_events(), b.n_events()), (0, 0));
    assert!((1..=4).all(|k| !compare(k, &a, &b).graphs.separated()));
}

#[test]
fn witness_of_figure_1_names_the_common_neighbor() {
    let example = examples::all().unwrap().swap_remove(0);
    let graph = Graph::new(&example.a, &GraphOptions { until: example.until, ..GraphOptions::default() }).unwrap();
    let [s, t] = example.tuples.unwrap();
    let run = Dwl::new(2).unwrap().compare_tuples((&graph, &s), (&graph, &t)).unwrap();
    let contrast = run.tuples.unwrap().witness.unwrap().contrast.unwrap();
    assert_eq!(contrast.cause, Cause::Sequences);
    let first = &contrast.terms[0];
    assert_eq!((first.nodes[0].as_slice(), first.counts), (&["B".to_owned()][..], [1, 0]));
    let met: Vec<&[f64]> = first.sequences.iter().map(|sequence| sequence.forth.as_slice()).collect();
    assert_eq!(met, [&[1.0][..], &[2.0]]);
    assert_eq!(run.graphs.round, None, "one graph against itself");
}

#[test]
fn witness_of_graphs_counts_classes_and_contrasts_two_tuples() {
    let example = examples::all().unwrap().into_iter().find(|example| example.name == "triangles").unwrap();
    let read = |stream| Graph::new(stream, &GraphOptions::default()).unwrap();
    let witness = compare(2, &read(&example.a), &read(&example.b)).graphs.witness.unwrap();
    assert_eq!((witness.round, witness.classes[0].counts), (2, [18, 0]));
    let contrast = witness.contrast.as_ref().unwrap();
    assert_eq!(contrast.cause, Cause::Classes, "sequences alone agree in round 2");
    assert!(contrast.terms.iter().all(|term| term.counts[0] != term.counts[1]));
    let text = witness.to_string();
    assert!(text.contains("18 in A, 0 in B") && text.contains("classes of round 1"), "{text}");
}

#[test]
fn max_rounds_limits_the_run() {
    let path: Vec<(u32, u32, f64)> = (0..9).map(|node| (node, node + 1, 1.0)).collect();
    let graph = graph(10, &path, &GraphOptions::default());
    let limited = |max_rounds| {
        let test = Dwl { max_rounds, ..Dwl::new(1).unwrap() };
        let coloring = test.color(&graph).unwrap();
        (coloring.rounds(), coloring.is_stable(), coloring.n_classes())
    };
    assert_eq!(limited(None), (4, true, 5), "nodes are separated by their distance to the ends");
    assert_eq!(limited(Some(2)), (2, false, 3));
    assert_eq!(limited(Some(0)), (0, false, 1));
}

#[test]
fn invalid_runs_are_refused_with_a_remedy() {
    for k in [0, 5, usize::MAX] {
        assert!(Dwl::new(k).unwrap_err().to_string().contains("expected 1, 2, 3 or 4"));
    }
    let small = graph(3, &[(0, 1, 1.0)], &GraphOptions::default());
    let test = Dwl::new(2).unwrap();
    let ask = |s: &[u32], t: &[u32]| test.compare_tuples((&small, &nodes(s)), (&small, &nodes(t))).unwrap_err();
    assert!(ask(&[0, 9], &[0, 1]).to_string().contains("no node called 9"));
    assert!(ask(&[0, 1], &[0]).to_string().contains("the same length"));
    assert!(ask(&[], &[]).to_string().contains("at least 1"));
    let tight = Dwl { max_memory: 100, ..Dwl::new(2).unwrap() };
    assert!(tight.color(&small).unwrap_err().to_string().contains("allow more memory"));
    let lone = EventStream::new(Columns {
        names: NodeNames::counted(0, 70_000),
        time_format: TimeFormat::Number,
        ..EventStream::from_events([(0, 1, 1.0)]).unwrap().into_columns()
    });
    let large = Graph::new(&lone.unwrap(), &GraphOptions::default()).unwrap();
    let generous = Dwl { max_memory: u64::MAX, ..Dwl::new(2).unwrap() };
    let refused = generous.color(&large).unwrap_err().to_string();
    assert!(refused.contains("the largest k that fits is 1"), "{refused}");
}
