//! Positional counts against a dense state with reach sets, as the original keeps it.

use std::collections::BTreeSet;

use ctdg::event::NodeId;
use ctdg::walk_counts::WalkCounts;
use proptest::prelude::*;

use crate::nasty;

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

    fn advance(&mut self, u: usize, v: usize) {
        let old = self.r.clone();
        for (from, to) in [(u, v), (v, u)] {
            for &i in &self.reach[from] {
                for place in 1..4 {
                    self.r[i][to][place] += old[i][from][place - 1];
                }
            }
        }
        let union: BTreeSet<usize> = self.reach[u].union(&self.reach[v]).copied().collect();
        self.reach[u].clone_from(&union);
        self.reach[v] = union;
    }
}

fn check(positions: &WalkCounts, dense: &Dense) -> Result<(), TestCaseError> {
    for (i, row) in (0..).zip(&dense.r) {
        for (j, expected) in (0..).zip(row) {
            prop_assert_eq!(&positions.get(NodeId(i), NodeId(j)), expected, "r[{}, {}]", i, j);
        }
    }
    Ok(())
}

/// Events over many nodes, some of them busy and close together: windows open, grow, shrink back to lists and move.
fn crowded() -> impl Strategy<Value = Vec<(u32, u32)>> {
    let node = || prop_oneof![4 => 40u32..60, 1 => 0u32..200, 1 => 190u32..200];
    prop::collection::vec((node(), node()), 1..250)
}

proptest! {
    #[test]
    fn positions_equal_a_dense_state_with_reach_sets(rows in nasty::rows(60)) {
        let (mut positions, mut dense) = (WalkCounts::new(8), Dense::new(8));
        check(&positions, &dense)?;
        for (src, dst, _) in rows {
            positions.advance(NodeId(src), NodeId(dst));
            dense.advance(src as usize, dst as usize);
            check(&positions, &dense)?;
        }
        let snapshot = positions.clone();
        positions.reset();
        check(&positions, &Dense::new(8))?;
        check(&snapshot, &dense)?;
    }

    #[test]
    fn positions_of_many_nodes_equal_a_dense_state(rows in crowded()) {
        let (mut positions, mut dense) = (WalkCounts::new(200), Dense::new(200));
        for (src, dst) in rows {
            positions.advance(NodeId(src), NodeId(dst));
            dense.advance(src as usize, dst as usize);
        }
        check(&positions, &dense)?;
    }
}

#[test]
fn a_self_loop_counts_both_ways() {
    let mut positions = WalkCounts::new(1);
    positions.advance(NodeId(0), NodeId(0));
    assert_eq!(positions.get(NodeId(0), NodeId(0)), [1.0, 2.0, 0.0, 0.0]);
    positions.advance(NodeId(0), NodeId(0));
    assert_eq!(positions.get(NodeId(0), NodeId(0)), [1.0, 4.0, 4.0, 0.0]);
    assert_eq!(positions.get(NodeId(7), NodeId(7)), [1.0, 0.0, 0.0, 0.0], "an unknown node has met nobody");
    assert_eq!(positions.get(NodeId(0), NodeId(7)), [0.0; 4]);
}

#[test]
fn memory_stays_far_below_a_dense_state() {
    let stream = ctdg::dataset::collegemsg().unwrap();
    let mut positions = WalkCounts::new(stream.n_nodes());
    for (&src, &dst) in stream.src().iter().zip(stream.dst()) {
        positions.advance(src, dst);
    }
    let dense = 16 * stream.n_nodes().pow(2);
    assert!(positions.bytes() < dense * 3 / 4, "{} bytes of {dense}", positions.bytes());
}
