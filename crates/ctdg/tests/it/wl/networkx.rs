//! k = 1 against `NetworkX`; `fixtures/wl/make.py` made the numbers.

use ctdg::wl::{Dwl, Graph, GraphOptions, Times};
use serde::Deserialize;

use super::{Event, compare, graph};

#[derive(Deserialize)]
struct Fixture {
    graphs: Vec<Entry>,
    pairs: Vec<Equal>,
}

#[derive(Deserialize)]
struct Entry {
    n_nodes: u32,
    events: Vec<Event>,
    #[serde(rename = "static")]
    fixed: Vec<u32>,
    dynamic: Vec<u32>,
}

/// Whether a graph and the next have the same hashes.
#[derive(Deserialize)]
struct Equal {
    static_equal: bool,
    dynamic_equal: bool,
}

fn read(entry: &Entry, times: Times) -> Graph {
    graph(entry.n_nodes, &entry.events, &GraphOptions { times, ..GraphOptions::default() })
}

#[test]
fn partitions_and_verdicts_equal_networkx() {
    let text = include_str!("../../../../../fixtures/wl/networkx.json");
    let Fixture { graphs, pairs } = serde_json::from_str(text).unwrap();
    assert_eq!((graphs.len(), pairs.len()), (60, 59));
    for entry in &graphs {
        for (times, expected) in [(Times::Dropped, &entry.fixed), (Times::Kept, &entry.dynamic)] {
            // Both number classes in order of their first node.
            let coloring = Dwl::new(1).unwrap().color(&read(entry, times)).unwrap();
            assert_eq!(coloring.classes(0), expected, "{:?} {times:?}", entry.events);
        }
    }
    let mut equal = [0; 2];
    for (two, expected) in graphs.windows(2).zip(&pairs) {
        let verdict = |times| !compare(1, &read(&two[0], times), &read(&two[1], times)).graphs.separated();
        assert_eq!(verdict(Times::Dropped), expected.static_equal);
        assert_eq!(verdict(Times::Kept), expected.dynamic_equal);
        equal[0] += usize::from(expected.static_equal);
        equal[1] += usize::from(expected.dynamic_equal);
    }
    assert!(equal[0] >= 10 && equal[1] >= 10, "copies among them: {equal:?}");
}
