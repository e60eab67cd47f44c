//! Naive implementation of k-DWL from its definition, as a reference.

use std::collections::BTreeMap;

use super::{Event, graph};
use crate::wl::random::{Pair, pair};
use ctdg::wl::{Dwl, GraphOptions};

/// Sequence of times between every two nodes, undirected.
fn sequences(n: u32, events: &[Event]) -> BTreeMap<(u32, u32), Vec<u64>> {
    let mut table: BTreeMap<(u32, u32), Vec<u64>> = BTreeMap::new();
    for u in 0..n {
        for v in 0..n {
            let between = events.iter().filter(|&&(s, d, _)| (s, d) == (u, v) || (s, d) == (v, u));
            let mut times: Vec<u64> = between.map(|&(.., t)| t.to_bits()).collect();
            times.sort_unstable();
            table.insert((u, v), times);
        }
    }
    table
}

fn tuples(n: u32, k: usize) -> Vec<Vec<u32>> {
    (0..k).fold(vec![Vec::new()], |shorter, _| {
        shorter.iter().flat_map(|tuple| (0..n).map(|node| [tuple.as_slice(), &[node]].concat())).collect()
    })
}

type Signature = (usize, Vec<(Vec<usize>, Vec<Vec<u64>>)>);

/// Stable colors of all tuples of both graphs, and the round in which counts first differ.
fn stable(pair: &Pair, k: usize) -> (Vec<usize>, Option<usize>) {
    let graphs = [
        (pair.n_nodes[0], sequences(pair.n_nodes[0], &pair.a)),
        (pair.n_nodes[1], sequences(pair.n_nodes[1], &pair.b)),
    ];
    let all: Vec<(usize, Vec<u32>)> =
        (0..2).flat_map(|side| tuples(graphs[side].0, k).into_iter().map(move |tuple| (side, tuple))).collect();
    let place: BTreeMap<&(usize, Vec<u32>), usize> = all.iter().zip(0..).collect();
    let mut colors = vec![0; all.len()];
    let mut differ = None;
    for round in 0.. {
        let mut counts: BTreeMap<usize, [usize; 2]> = BTreeMap::new();
        for ((side, _), &color) in all.iter().zip(&colors) {
            counts.entry(color).or_default()[*side] += 1;
        }
        if differ.is_none() && counts.values().any(|[a, b]| a != b) {
            differ = Some(round);
        }
        let signature = |(side, tuple): &(usize, Vec<u32>)| -> Signature {
            let (n, table) = &graphs[*side];
            let mut terms: Vec<(Vec<usize>, Vec<Vec<u64>>)> = Vec::new();
            for w in 0..*n {
                let put_in = |i: usize| {
                    let mut other = tuple.clone();
                    other[i] = w;
                    colors[place[&(*side, other)]]
                };
                let seen: Vec<Vec<u64>> = tuple.iter().map(|v| table[&(w, *v)].clone()).collect();
                if k > 1 || !seen[0].is_empty() {
                    terms.push(((0..k).map(put_in).collect(), seen));
                }
            }
            terms.sort();
            (colors[place[&(*side, tuple.clone())]], terms)
        };
        let mut names: BTreeMap<Signature, usize> = BTreeMap::new();
        let mut next = Vec::with_capacity(all.len());
        for tuple in &all {
            let fresh = names.len();
            next.push(*names.entry(signature(tuple)).or_insert(fresh));
        }
        if names.len() == counts.len() {
            break;
        }
        colors = next;
    }
    (colors, differ)
}

#[test]
fn classes_and_rounds_equal_the_naive_implementation() {
    for seed in 0..400 {
        let most_nodes = if seed % 4 == 0 { 6 } else { 5 };
        let pair = pair(seed, most_nodes);
        let options = GraphOptions::default();
        let (a, b) = (graph(pair.n_nodes[0], &pair.a, &options), graph(pair.n_nodes[1], &pair.b, &options));
        for k in 1..=3 {
            let (colors, round) = stable(&pair, k);
            let fast = Dwl::new(k).unwrap().compare(&a, &b).unwrap();
            let classes = [fast.coloring.classes(0), fast.coloring.classes(1)].concat();
            let classes: Vec<usize> = classes.into_iter().map(|class| class as usize).collect();
            assert_eq!(classes, colors, "k = {k}, {pair:?}");
            assert_eq!(fast.graphs.round, round, "k = {k}, {pair:?}");
        }
    }
}
