//! Human-checkable explanation of a difference between two graphs or tuples.

use std::fmt;

use serde::Serialize;

use crate::event::NodeId;
use crate::wl::graph::Sequence;
use crate::wl::joint::{Joint, TupleIndex};
use crate::wl::refine::Partition;
use crate::wl::rule::{Description, Rule};

/// Classes and terms shown at most; the rest is counted.
const SHOWN: usize = 8;

/// The difference in the first round in which there is one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Witness {
    /// That round.
    pub round: usize,
    /// For two graphs: classes with unequal counts, largest difference first, at most eight.
    pub classes: Vec<ClassCount>,
    /// How many such classes there are.
    pub n_classes: usize,
    /// Two tuples with equal colors until this round, and how they differ in it. `None` if graphs already differ in the
    /// initial colors.
    pub contrast: Option<Contrast>,
}

/// How often a class occurs in either graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClassCount {
    /// The class, as numbered in its round.
    pub class: u32,
    /// Tuples of the first and the second graph.
    pub counts: [u64; 2],
    /// Names of the nodes of one such tuple.
    pub example: Vec<String>,
    /// The graph that the example is from, 0 or 1.
    pub example_graph: usize,
}

/// Comparison of two tuples.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contrast {
    /// Names of the nodes of the tuple of the first and of the second graph.
    pub tuples: [Vec<String>; 2],
    /// What differs.
    pub cause: Cause,
    /// Terms with different multiplicities, those with most interactions first, at most eight.
    pub terms: Vec<Term>,
    /// How many such terms there are.
    pub n_terms: usize,
}

/// Kind of difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// The initial colors: labels, equal nodes, or sequences within the tuple.
    Initial,
    /// The sequences of other nodes with the tuple's nodes, regardless of classes.
    Sequences,
    /// The previous classes of the tuples with another node substituted.
    Classes,
    /// For marked DWL, the classes of the nodes beside the pair, in the same round.
    Nodes,
}

/// The contribution of one node `w` (or several equivalent ones) to a tuple's color.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Term {
    /// How many nodes contribute it to the first and to the second tuple.
    pub counts: [u64; 2],
    /// Names of some of those nodes.
    pub nodes: [Vec<String>; 2],
    /// Interaction times of `w` with each node of the tuple, seen from the tuple's node. Empty for the oblivious test.
    pub sequences: Vec<Sequence>,
    /// The previous classes of the tuples with `w` substituted; for marked DWL the class of `w` beside the pair.
    pub classes: Vec<u32>,
    /// The position of `w`, for the oblivious test.
    pub place: Option<usize>,
}

/// Creates the witnesses of one run.
pub(crate) struct Writer<'a> {
    pub(crate) joint: &'a Joint<'a>,
    pub(crate) tuple_index: &'a TupleIndex,
}

impl Writer<'_> {
    /// Whether some class is more frequent in one of the two graphs.
    pub(crate) fn counts_differ(&self, partition: &Partition) -> bool {
        self.counts(partition).iter().any(|counts| counts[0] != counts[1])
    }

    fn counts(&self, partition: &Partition) -> Vec<[u64; 2]> {
        let mut counts = vec![[0; 2]; partition.n_classes()];
        let first_of_second = self.tuple_index.first_of(1);
        for (tuple, &color) in partition.colors.iter().enumerate() {
            counts[color as usize][usize::from(tuple >= first_of_second)] += 1;
        }
        counts
    }

    /// Why the graphs differ in `current`, the partition after `previous`.
    pub(crate) fn graphs<const N: usize, R: Rule<N>>(
        &self,
        rule: &R,
        round: usize,
        previous: Option<&Partition>,
        current: &Partition,
    ) -> Witness {
        let counts = self.counts(current);
        let mut unequal: Vec<u32> = (0..).zip(&counts).filter(|(_, n)| n[0] != n[1]).map(|(class, _)| class).collect();
        unequal.sort_by_key(|&class| {
            let [a, b] = counts[class as usize];
            (std::cmp::Reverse(a.abs_diff(b)), class)
        });
        let mut examples = vec![None; counts.len()];
        for (tuple, &color) in current.colors.iter().enumerate() {
            let in_second = tuple >= self.tuple_index.first_of(1);
            let [a, b] = counts[color as usize];
            if in_second == (b > a) {
                examples[color as usize].get_or_insert(tuple);
            }
        }
        let shown = unequal.iter().take(SHOWN).filter_map(|&class| {
            let tuple = examples[class as usize]?;
            let (example_graph, example) = (self.tuple_index.part_of(tuple), self.names(tuple));
            Some(ClassCount { class, counts: counts[class as usize], example, example_graph })
        });
        let contrast = previous.and_then(|previous| {
            // Counts were equal before this round, so an old class that split unequally has a new class with more tuples
            // in one graph and a sibling with more in the other: two tuples with equal colors until now.
            let first = |class: &u32| examples[*class as usize];
            let more_in_a = |class: &&u32| counts[**class as usize][0] > counts[**class as usize][1];
            let s = unequal.iter().find(more_in_a).and_then(first)?;
            let siblings = unequal.iter().filter(|class| !more_in_a(class)).filter_map(first);
            let t = { siblings }.find(|&t| previous.colors[t] == previous.colors[s])?;
            Some(self.contrast(rule, (s, t), Some(previous)))
        });
        Witness { round, classes: shown.collect(), n_classes: unequal.len(), contrast }
    }

    /// Why the tuples `s` and `t`, alike in `previous`, differ in the next round; without `previous` they differ in
    /// their initial colors.
    pub(crate) fn contrast<const N: usize, R: Rule<N>>(
        &self,
        rule: &R,
        (s, t): (usize, usize),
        previous: Option<&Partition>,
    ) -> Contrast {
        let tuples = [self.names(s), self.names(t)];
        let Some(previous) = previous else {
            return Contrast { tuples, cause: Cause::Initial, terms: Vec::new(), n_terms: 0 };
        };
        let mut contributions: Vec<([u64; N], usize, usize)> = Vec::new();
        for (side, tuple) in [s, t].into_iter().enumerate() {
            rule.terms(tuple, &previous.colors, |w, key| contributions.push((key, side, w)));
        }
        contributions.sort_unstable();
        let mut differing: Vec<([u64; N], [Vec<usize>; 2])> = Vec::new();
        for equal in contributions.chunk_by(|a, b| a.0 == b.0) {
            let nodes =
                [0, 1].map(|of| equal.iter().filter(|term| term.1 == of).map(|term| term.2).collect::<Vec<_>>());
            if nodes[0].len() != nodes[1].len() {
                differing.push((equal[0].0, nodes));
            }
        }
        let cause = if sequences_differ::<N, R>(&differing) { Cause::Sequences } else { R::CAUSE };
        let never = |key: &[u64; N]| R::describe(*key).links.iter().filter(|&&link| link == 0).count();
        differing.sort_by_key(|(key, _)| never(key));
        let n_terms = differing.len();
        let graphs = [s, t].map(|tuple| self.tuple_index.part_of(tuple));
        let terms = differing.into_iter().take(SHOWN).map(|(key, nodes)| self.term(R::describe(key), &nodes, graphs));
        Contrast { tuples, cause, terms: terms.collect(), n_terms }
    }

    fn term(&self, description: Description, nodes: &[Vec<usize>; 2], graphs: [usize; 2]) -> Term {
        let Description { position, colors, links } = description;
        let name = |part: usize, node: &usize| {
            let node = NodeId::from_index(*node).expect("a node of the stream");
            self.joint.graphs[part].graph.names().name(node)
        };
        Term {
            counts: [0, 1].map(|side| nodes[side].len() as u64),
            nodes: [0, 1].map(|side| nodes[side].iter().take(SHOWN).map(|node| name(graphs[side], node)).collect()),
            sequences: links.iter().map(|&link| Sequence::of_row(self.joint.links.row(link))).collect(),
            classes: colors,
            place: position,
        }
    }

    fn names(&self, tuple: usize) -> Vec<String> {
        let (part, nodes) = self.tuple_index.nodes(tuple);
        nodes.into_iter().map(|node| self.joint.graphs[part].graph.names().name(node)).collect()
    }
}

/// Whether the multisets of sequences differ when classes are ignored.
fn sequences_differ<const N: usize, R: Rule<N>>(differing: &[([u64; N], [Vec<usize>; 2])]) -> bool {
    let mut surplus: Vec<(Vec<u32>, i64)> = Vec::new();
    for (key, nodes) in differing {
        let count = |side: usize| i64::try_from(nodes[side].len()).expect("fewer than 2^63 nodes");
        surplus.push((R::describe(*key).links, count(0) - count(1)));
    }
    surplus.sort_unstable();
    surplus.chunk_by(|a, b| a.0 == b.0).any(|equal| equal.iter().map(|(_, surplus)| surplus).sum::<i64>() != 0)
}

fn tuple(names: &[String]) -> String {
    format!("({})", names.join(", "))
}

impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { round, classes, n_classes, contrast } = self;
        if *n_classes > 0 {
            writeln!(f, "{n_classes} classes of round {round} occur unequally often:")?;
        }
        for ClassCount { class, counts: [a, b], example, example_graph } in classes {
            let graph = ["A", "B"][*example_graph];
            writeln!(f, "  class {class}: {a} in A, {b} in B, for example {} in {graph}", tuple(example))?;
        }
        if *n_classes > classes.len() {
            writeln!(f, "  … and {} more", n_classes - classes.len())?;
        }
        let Some(Contrast { tuples: [s, t], cause, terms, n_terms }) = contrast else { return Ok(()) };
        let (s, t) = (tuple(s), tuple(t));
        match cause {
            Cause::Initial => return writeln!(f, "{s} in A and {t} in B differ in their initial colors"),
            Cause::Sequences => {
                writeln!(f, "{s} in A and {t} in B are alike until round {round}, which sees other interactions:")?;
            }
            Cause::Nodes => {
                writeln!(
                    f,
                    "{s} in A and {t} in B are alike until round {round}, which has other classes beside them:"
                )?;
            }
            Cause::Classes => {
                let before = round.saturating_sub(1);
                writeln!(
                    f,
                    "{s} in A and {t} in B are alike until round {round}, which sees other classes of round {before}:"
                )?;
            }
        }
        for term in terms {
            writeln!(f, "  {term}")?;
        }
        if *n_terms > terms.len() {
            writeln!(f, "  … and {} more", n_terms - terms.len())?;
        }
        Ok(())
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |side: usize| {
            let (count, nodes) = (self.counts[side], &self.nodes[side]);
            let dots = if count > nodes.len() as u64 { ", …" } else { "" };
            match count {
                0 => "none".to_owned(),
                _ => format!("{count} ({}{dots})", nodes.join(", ")),
            }
        };
        let sequences: Vec<String> = self.sequences.iter().map(|sequence| format!("[{sequence}]")).collect();
        let classes: Vec<String> = self.classes.iter().map(u32::to_string).collect();
        write!(f, "w in A: {}; w in B: {}", side(0), side(1))?;
        if !sequences.is_empty() {
            write!(f, "; met the tuple's nodes at {}", sequences.join(" "))?;
        }
        if let Some(place) = self.place {
            write!(f, "; put in place {}", place + 1)?;
        }
        write!(f, "; gives class {}", classes.join(" "))
    }
}
