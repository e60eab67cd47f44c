//! Verdicts on the graphs and tuples of a run, found round by round.

use crate::event::NodeId;
use crate::wl::joint::{Joint, TupleIndex};
use crate::wl::refine::Partition;
use crate::wl::rule::Rule;
use crate::wl::verdict::Verdict;
use crate::wl::witness::{Witness, Writer};

/// Pairs of tuples to compare; separated when any pair is.
type TuplePairs = Vec<(usize, usize)>;

/// Keeps the first round in which the graphs, or the tuples, differ.
pub(crate) struct Judge<'a> {
    writer: Writer<'a>,
    is_comparison: bool,
    tuple_pairs: Option<TuplePairs>,
    graphs: Verdict,
    tuples: Option<Verdict>,
}

impl<'a> Judge<'a> {
    pub(crate) fn new(
        joint: &'a Joint<'a>,
        tuple_index: &'a TupleIndex,
        tuples: Option<(&[NodeId], &[NodeId])>,
    ) -> Self {
        let undecided = Verdict { round: None, witness: None };
        Self {
            writer: Writer { joint, tuple_index },
            is_comparison: joint.graphs.len() == 2,
            tuple_pairs: tuples.map(|(s, t)| tuple_pairs(tuple_index, s, t)),
            graphs: undecided.clone(),
            tuples: tuples.map(|_| undecided),
        }
    }

    /// Takes in the partition `current`, in which `rule` split the classes of `previous`; the initial one without `previous`.
    pub(crate) fn see<const N: usize, R: Rule<N>>(
        &mut self,
        rule: &R,
        round: usize,
        previous: Option<&Partition>,
        current: &Partition,
    ) {
        if self.graphs.round.is_none() && self.is_comparison && self.writer.counts_differ(current) {
            let witness = self.writer.graphs(rule, round, previous, current);
            self.graphs = Verdict { round: Some(round), witness: Some(witness) };
        }
        let differ = |&&(s, t): &&(usize, usize)| current.colors[s] != current.colors[t];
        if let Some(verdict) = self.tuples.as_mut().filter(|verdict| verdict.round.is_none())
            && let Some(&pair) = self.tuple_pairs.as_ref().and_then(|pairs| pairs.iter().find(differ))
        {
            let contrast = self.writer.contrast(rule, pair, previous);
            let witness = Witness { round, classes: Vec::new(), n_classes: 0, contrast: Some(contrast) };
            *verdict = Verdict { round: Some(round), witness: Some(witness) };
        }
    }

    /// The verdicts on the graphs and on the tuples.
    pub(crate) fn verdicts(self) -> (Verdict, Option<Verdict>) {
        (self.graphs, self.tuples)
    }
}

/// The pairs of `k`-tuples that represent `s` and `t`.
fn tuple_pairs(tuple_index: &TupleIndex, s: &[NodeId], t: &[NodeId]) -> TuplePairs {
    let (k, m) = (tuple_index.k, s.len());
    // If both graphs are the same, the second copy still is graph 1.
    let pair = |positions: &[usize]| {
        let choose = |tuple: &[NodeId]| positions.iter().map(|&position| tuple[position]).collect::<Vec<_>>();
        (tuple_index.number(0, &choose(s)), tuple_index.number(1, &choose(t)))
    };
    if m <= k {
        return vec![pair(&(0..k).map(|position| position.min(m - 1)).collect::<Vec<_>>())];
    }
    let choices = TupleIndex::new(k, [m]);
    let all = (0..choices.len()).map(|choice| {
        let mut positions = vec![0; k];
        choices.write_nodes(0, choice, &mut positions);
        pair(&positions)
    });
    all.collect()
}
