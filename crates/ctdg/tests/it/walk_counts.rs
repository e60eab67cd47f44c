//! Walk counts against a dense state with reach sets, as in PINT's code.

use std::collections::BTreeSet;

use ctdg::event::NodeId;
use ctdg::walk_counts::{SelfLoops, WalkCounts};
use proptest::prelude::*;

use crate::edge_cases;

/// All pairs and the reach sets.
struct Dense {
    r: Vec<Vec<[f32; 4]>>,
    reach: Vec<BTreeSet<usize>>,
}

impl Dense {
    fn new(n: usize) -> Self {
        let mut r = vec![vec![[0.0; 4]; n]; n];
        for (i, row) in r.iter_mut().enumerate() {
            row[i][0] = 1.0;
        }
        Self { r, reach: (0..n).map(|i| BTreeSet::from([i])).collect() }
    }

    /// Both directions are assigned from the old values, so a self-loop counts once.
    fn advance(&mut self, u: usize, v: usize) {
        let old = self.r.clone();
        for (from, to) in [(u, v), (v, u)] {
            for &i in &self.reach[from] {
                for length in 1..4 {
                    self.r[i][to][length] = old[i][to][length] + old[i][from][length - 1];
                }
            }
        }
        let union: BTreeSet<usize> = self.reach[u].union(&self.reach[v]).copied().collect();
        self.reach[u].clone_from(&union);
        self.reach[v] = union;
    }
}

fn check(counts: &WalkCounts, dense: &Dense) -> Result<(), TestCaseError> {
    for (i, row) in (0..).zip(&dense.r) {
        for (j, expected) in (0..).zip(row) {
            prop_assert_eq!(&counts.get(NodeId(i), NodeId(j)), expected, "r[{}, {}]", i, j);
        }
    }
    Ok(())
}

/// Events over many nodes, some of them frequent and close together, so that columns switch between sparse and dense.
fn crowded() -> impl Strategy<Value = Vec<(u32, u32)>> {
    let node = || prop_oneof![4 => 40u32..60, 1 => 0u32..200, 1 => 190u32..200];
    prop::collection::vec((node(), node()), 1..250)
}

proptest! {
    #[test]
    fn walk_counts_equal_a_dense_state_with_reach_sets(rows in edge_cases::rows(60)) {
        let (mut counts, mut dense) = (WalkCounts::new(8), Dense::new(8));
        check(&counts, &dense)?;
        for (src, dst, _) in rows {
            counts.advance(NodeId(src), NodeId(dst));
            dense.advance(src as usize, dst as usize);
            check(&counts, &dense)?;
        }
        let snapshot = counts.clone();
        counts.reset();
        check(&counts, &Dense::new(8))?;
        check(&snapshot, &dense)?;
    }

    #[test]
    fn walk_counts_of_many_nodes_equal_a_dense_state(rows in crowded()) {
        let (mut counts, mut dense) = (WalkCounts::new(200), Dense::new(200));
        for (src, dst) in rows {
            counts.advance(NodeId(src), NodeId(dst));
            dense.advance(src as usize, dst as usize);
        }
        check(&counts, &dense)?;
    }
}

#[test]
fn self_loop_counts_once_unless_asked_for_twice() {
    let mut counts = WalkCounts::new(1);
    counts.advance(NodeId(0), NodeId(0));
    assert_eq!(counts.get(NodeId(0), NodeId(0)), [1.0, 1.0, 0.0, 0.0]);
    counts.advance(NodeId(0), NodeId(0));
    assert_eq!(counts.get(NodeId(0), NodeId(0)), [1.0, 2.0, 1.0, 0.0]);
    let mut twice = WalkCounts::new(1).with_self_loops(SelfLoops::Twice);
    twice.advance(NodeId(0), NodeId(0));
    assert_eq!(twice.get(NodeId(0), NodeId(0)), [1.0, 2.0, 0.0, 0.0]);
    assert_eq!(counts.get(NodeId(7), NodeId(7)), [1.0, 0.0, 0.0, 0.0], "an unknown node has no walks");
    assert_eq!(counts.get(NodeId(0), NodeId(7)), [0.0; 4]);
}

#[test]
fn memory_is_below_a_dense_state() {
    let stream = ctdg::dataset::collegemsg().unwrap();
    let mut counts = WalkCounts::new(stream.n_nodes());
    for (&src, &dst) in stream.src().iter().zip(stream.dst()) {
        counts.advance(src, dst);
    }
    let dense = 16 * stream.n_nodes().pow(2);
    assert!(counts.bytes() < dense * 3 / 4, "{} bytes of {dense}", counts.bytes());
}
