//! What connects source and destination: events of their own, common neighbours, paths of three events.

use std::collections::BTreeMap;

use ctdg::event::NodeId;
use ctdg::mite::{PairQuery, PairTokens, Side};
use ctdg::store::Store;

use super::{CommonNeighbor, MAX_PATHS, NeighborPath};

/// The most times that are listed of two neighbours.
const MAX_BETWEEN: usize = 32;

/// Times of each node among the tokens of each side, newest first.
pub(super) struct Neighbors {
    times: BTreeMap<NodeId, [Vec<f64>; 2]>,
}

impl Neighbors {
    pub(super) fn of(tokens: &PairTokens, store: &Store) -> Self {
        let mut times = BTreeMap::<NodeId, [Vec<f64>; 2]>::new();
        for side in [Side::Src, Side::Dst] {
            let nodes = &tokens.nodes()[tokens.tokens(0, side)][1..];
            let mut last = None;
            for (node, event) in nodes.iter().zip(tokens.events(0, side)).rev() {
                // A self-loop appears twice in the history of its node.
                if last.replace(event) != Some(event) {
                    times.entry(*node).or_default()[side as usize].push(store.time(event));
                }
            }
        }
        Self { times }
    }

    pub(super) fn pair_times(&self, query: PairQuery) -> Vec<f64> {
        let with =
            |node: NodeId, side: Side| self.times.get(&node).map_or(&[][..], |times| times[side as usize].as_slice());
        // Both histories are truncated: take the one that goes further back.
        let [a, b] = [with(query.dst, Side::Src), with(query.src, Side::Dst)];
        if a.len() >= b.len() { a.to_vec() } else { b.to_vec() }
    }

    pub(super) fn common(&self, query: PairQuery) -> Vec<CommonNeighbor> {
        let between = |(&node, [with_src, with_dst]): (&NodeId, &[Vec<f64>; 2])| {
            let counts = !with_src.is_empty() && !with_dst.is_empty() && node != query.src && node != query.dst;
            counts.then(|| CommonNeighbor { node, src_times: with_src.clone(), dst_times: with_dst.clone() })
        };
        let mut common: Vec<_> = self.times.iter().filter_map(between).collect();
        let newest = |neighbor: &CommonNeighbor| neighbor.src_times[0].max(neighbor.dst_times[0]);
        common.sort_by(|a, b| newest(b).total_cmp(&newest(a)));
        common
    }

    /// The most recent paths through a neighbour of each side, and how many there are. One lookup for each pair of neighbours.
    pub(super) fn paths(&self, query: PairQuery, store: &Store) -> (Vec<NeighborPath>, usize) {
        let cut = store.cut(query.time);
        let of_side = |side: Side| {
            let is_between = move |node: NodeId| node != query.src && node != query.dst;
            let nodes = self.times.iter().filter(move |(node, _)| is_between(**node));
            nodes.filter_map(move |(&node, times)| Some((node, *times[side as usize].first()?)))
        };
        let mut found = Vec::new();
        for (a, with_src) in of_side(Side::Src) {
            for (b, with_dst) in of_side(Side::Dst).filter(|(b, _)| *b != a) {
                if let Some(newest) = store.pair_events(a, b, cut).last() {
                    let mut times = [with_src, store.time(newest), with_dst];
                    times.sort_by(|x, y| y.total_cmp(x));
                    found.push((times, [a, b]));
                }
            }
        }
        // By the newest of the three events, then by the second, then by the oldest.
        found.sort_by(|(x, _), (y, _)| {
            let by_time = y.iter().zip(x).map(|(y, x)| y.total_cmp(x));
            by_time.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
        });
        let n_paths = found.len();
        found.truncate(MAX_PATHS);
        let path = |(_, [a, b]): ([f64; 3], [NodeId; 2])| {
            let mut between = store.pair_events(a, b, cut).to_vec();
            between.dedup();
            NeighborPath {
                src_neighbor: a,
                dst_neighbor: b,
                src_times: self.times[&a][Side::Src as usize].clone(),
                between_times: between.iter().rev().take(MAX_BETWEEN).map(|&event| store.time(event)).collect(),
                dst_times: self.times[&b][Side::Dst as usize].clone(),
            }
        };
        (found.into_iter().map(path).collect(), n_paths)
    }
}
