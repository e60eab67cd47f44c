//! All small graphs, one of each isomorphism class.

use std::collections::BTreeSet;

use ctdg::wl::{Graph, GraphOptions};

use super::{Event, graph};

/// A graph on `n` nodes: for each pair `u < v` 0 for no event, otherwise the time of its only event.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Small {
    pub(super) n: usize,
    times: Vec<u8>,
}

impl Small {
    fn place(u: usize, v: usize) -> usize {
        let (u, v) = (u.min(v), u.max(v));
        v * (v - 1) / 2 + u
    }

    /// The time at which two different nodes met, 0 if they did not.
    pub(super) fn time(&self, u: usize, v: usize) -> u8 {
        self.times[Self::place(u, v)]
    }

    pub(super) fn met(&self, u: usize, v: usize) -> bool {
        u != v && self.time(u, v) > 0
    }

    pub(super) fn read(&self) -> Graph {
        let pairs = (0..self.n).flat_map(|v| (0..v).map(move |u| (u, v))).filter(|&(u, v)| self.met(u, v));
        let number = |node: usize| u32::try_from(node).unwrap();
        let events: Vec<Event> = pairs.map(|(u, v)| (number(u), number(v), f64::from(self.time(u, v)))).collect();
        graph(number(self.n), &events, &GraphOptions::default())
    }

    /// The nodes that `from` reaches without the nodes in `without` and without the edge `cut`.
    pub(super) fn reached(&self, from: usize, without: &[usize], cut: Option<[usize; 2]>) -> usize {
        let (mut seen, mut open) = (vec![false; self.n], vec![from]);
        seen[from] = true;
        while let Some(u) = open.pop() {
            for v in (0..self.n).filter(|&v| self.met(u, v) && !without.contains(&v)) {
                let is_cut = cut.is_some_and(|pair| pair == [u, v] || pair == [v, u]);
                if !is_cut && !std::mem::replace(&mut seen[v], true) {
                    open.push(v);
                }
            }
        }
        seen.into_iter().filter(|&seen| seen).count()
    }

    pub(super) fn is_connected(&self) -> bool {
        self.n == 0 || self.reached(0, &[], None) == self.n
    }

    /// In a connected graph.
    pub(super) fn is_cut_vertex(&self, u: usize) -> bool {
        (0..self.n).find(|&v| v != u).is_some_and(|v| self.reached(v, &[u], None) < self.n - 1)
    }

    /// In a connected graph.
    pub(super) fn is_bridge(&self, u: usize, v: usize) -> bool {
        self.met(u, v) && self.reached(u, &[], Some([u, v])) < self.n
    }

    /// The least form over all orders of the nodes that sort them by `invariant`.
    fn canonical(&self) -> Self {
        let invariant = |u: usize| {
            let own = |u: usize| {
                let mut own: Vec<u8> = (0..self.n).filter(|&v| v != u).map(|v| self.time(u, v)).collect();
                own.sort_unstable();
                own
            };
            let mut around: Vec<(u8, Vec<u8>)> =
                (0..self.n).filter(|&v| v != u).map(|v| (self.time(u, v), own(v))).collect();
            around.sort();
            around
        };
        let invariants: Vec<_> = (0..self.n).map(invariant).collect();
        let mut order: Vec<usize> = (0..self.n).collect();
        order.sort_by_key(|&u| &invariants[u]);
        let mut best = None;
        self.orders(&invariants, &mut order, 0, &mut best);
        Self { n: self.n, times: best.unwrap_or_default() }
    }

    /// Tries all orders that keep `order[..fixed]` and exchange nodes of equal invariants.
    fn orders<I: PartialEq>(&self, same: &[I], order: &mut [usize], fixed: usize, best: &mut Option<Vec<u8>>) {
        if fixed == self.n {
            let times = (0..self.n).flat_map(|v| (0..v).map(move |u| (u, v)));
            let times: Vec<u8> = times.map(|(u, v)| self.time(order[u], order[v])).collect();
            if best.as_ref().is_none_or(|best| times < *best) {
                *best = Some(times);
            }
            return;
        }
        let first = order[fixed];
        for other in fixed..self.n {
            if same[order[other]] != same[first] {
                break;
            }
            order.swap(fixed, other);
            self.orders(same, order, fixed + 1, best);
            order.swap(fixed, other);
        }
    }
}

/// All graphs of `n` nodes with events at times 1 to `n_times`, at most one for each pair of different nodes.
pub(super) fn all(n: usize, n_times: u8) -> Vec<Small> {
    let mut graphs = BTreeSet::from([Small { n: 0, times: Vec::new() }]);
    for size in 1..=n {
        let choices = usize::from(n_times + 1).pow(u32::try_from(size - 1).unwrap());
        let mut larger = BTreeSet::new();
        for smaller in &graphs {
            for mut choice in 0..choices {
                let mut times = smaller.times.clone();
                for _ in 1..size {
                    times.push(u8::try_from(choice % usize::from(n_times + 1)).unwrap());
                    choice /= usize::from(n_times + 1);
                }
                larger.insert(Small { n: size, times }.canonical());
            }
        }
        graphs = larger;
    }
    graphs.into_iter().collect()
}

#[test]
fn there_are_as_many_graphs_as_known() {
    let counts = |n_times, up_to| (1..=up_to).map(|n| all(n, n_times).len()).collect::<Vec<_>>();
    assert_eq!(counts(1, 6), [1, 2, 4, 11, 34, 156], "graphs");
    assert_eq!(counts(2, 4), [1, 3, 10, 66], "graphs with edges of two kinds");
    let connected = |n| all(n, 1).iter().filter(|graph| graph.is_connected()).count();
    assert_eq!([2, 3, 4, 5, 6].map(connected), [1, 2, 6, 21, 112], "connected graphs");
}
