//! The result of `hopedgn wl` as text and as JSON.

use std::fmt;

use ctdg::time::TimeFormat;
use ctdg::wl::{self, Comparison, Dwl, Estimate, Graph, Witness};
use serde::Serialize;

use super::{Question, TestArgs};
use crate::plural::count;

/// Facts that stand beside the comparison.
pub(super) struct Facts<'a> {
    pub(super) question: &'a Question,
    pub(super) test: &'a Dwl,
    pub(super) graphs: &'a [Graph; 2],
    pub(super) estimate: Estimate,
    /// Number of colours after each round, from round 0.
    pub(super) classes: Vec<usize>,
    pub(super) seconds: f64,
    pub(super) isomorphic: Option<bool>,
    pub(super) args: &'a TestArgs,
}

/// `separated`, `round` and `witness` answer what was asked: of the tuples if there were any, otherwise of the graphs.
#[derive(Debug, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "fields of a JSON document")]
pub(super) struct Report {
    k: usize,
    separated: bool,
    round: Option<usize>,
    rounds: usize,
    tuples: usize,
    witness: Option<Witness>,
    /// The test by name, such as `2-DWL`.
    test: String,
    /// The nodes that marked DWL colours pairs by, `all` or `met`; null for k-DWL.
    marked: Option<&'static str>,
    /// `graphs` or `tuples`.
    compared: &'static str,
    /// The tuples compared, names of A and of B.
    tuple: Option<[Vec<String>; 2]>,
    /// Verdict on the graphs, also when tuples are compared.
    graphs: GraphVerdict,
    stable: bool,
    /// Number of colours after each round, from round 0.
    classes: Vec<usize>,
    files: [String; 2],
    nodes: [usize; 2],
    events: [usize; 2],
    until: Option<f64>,
    #[serde(skip)]
    time_format: TimeFormat,
    directed: bool,
    exact: bool,
    isomorphic: Option<bool>,
    estimated_memory: f64,
    estimated_seconds_a_round: f64,
    seconds: f64,
}

#[derive(Debug, Serialize)]
struct GraphVerdict {
    separated: bool,
    round: Option<usize>,
}

impl Report {
    pub(super) fn new(facts: Facts<'_>, comparison: &Comparison) -> Self {
        let Facts { question, test, graphs, estimate, classes, seconds, isomorphic, args } = facts;
        let names = |side: usize, tuple: &[ctdg::event::NodeId]| -> Vec<String> {
            tuple.iter().map(|&node| question.streams[side].names().name(node)).collect()
        };
        let verdict = comparison.verdict().clone();
        Self {
            k: test.k(),
            marked: match test.variant {
                wl::Variant::Marked(wl::Reach::All) => Some("all"),
                wl::Variant::Marked(wl::Reach::Met) => Some("met"),
                wl::Variant::Folklore | wl::Variant::Oblivious => None,
            },
            separated: verdict.separated(),
            round: verdict.round,
            rounds: comparison.coloring.rounds(),
            tuples: comparison.coloring.n_tuples(),
            witness: verdict.witness,
            test: name(test, args),
            compared: if question.tuples.is_some() { "tuples" } else { "graphs" },
            tuple: question.tuples.as_ref().map(|[s, t]| [names(0, s), names(1, t)]),
            graphs: GraphVerdict { separated: comparison.graphs.separated(), round: comparison.graphs.round },
            stable: comparison.coloring.is_stable(),
            classes,
            files: question.titles.clone(),
            nodes: [graphs[0].n_nodes(), graphs[1].n_nodes()],
            events: [graphs[0].n_events(), graphs[1].n_events()],
            until: question.until,
            time_format: question.streams[0].time_format(),
            directed: args.directed,
            exact: test.interning == wl::Interning::Exact,
            isomorphic,
            estimated_memory: estimate.memory as f64,
            estimated_seconds_a_round: estimate.seconds_a_round,
            seconds,
        }
    }
}

/// The usual name of the test.
fn name(test: &Dwl, args: &TestArgs) -> String {
    if let wl::Variant::Marked(reach) = test.variant {
        let kind = if args.without_times { "WL" } else { "DWL" };
        let by = if reach == wl::Reach::Met { " by nodes that met the pair" } else { "" };
        return format!("marked {kind}{by}");
    }
    let kind = match (args.without_times, test.variant, test.k()) {
        (false, _, 1) | (false, wl::Variant::Folklore, _) => "DWL",
        (false, ..) => "DWL, oblivious",
        (true, _, 1) => "WL",
        (true, wl::Variant::Folklore, _) => "FWL",
        (true, ..) => "OWL",
    };
    let from = match (test.initial, args.without_times || test.variant == wl::Variant::Oblivious) {
        (wl::Initial::Types, false) => " from isomorphism types",
        _ => "",
    };
    format!("{}-{kind}{from}", test.k())
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let until = self.until.map(|until| format!(" until {}", self.time_format.show(until))).unwrap_or_default();
        let directed = if self.directed { ", directed" } else { "" };
        writeln!(f, "{}{until}{directed}", self.test)?;
        for (letter, side) in [("A", 0), ("B", 1)] {
            let (file, nodes) = (&self.files[side], count(self.nodes[side], "node"));
            let events = count(self.events[side], "event");
            writeln!(f, "  {letter}: {file}, {nodes}, {events}")?;
        }
        writeln!(f)?;
        if let Some([s, t]) = &self.tuple {
            let (s, t) = (s.join(", "), t.join(", "));
            writeln!(f, "({s}) in A and ({t}) in B: {}", self.verdict(self.round))?;
        }
        writeln!(f, "graphs: {}", self.verdict(self.graphs.round))?;
        if let Some(isomorphic) = self.isomorphic {
            let what = if self.tuple.is_some() { "tuples" } else { "graphs" };
            writeln!(f, "exhaustive search: the {what} are {}isomorphic", if isomorphic { "" } else { "not " })?;
        }
        writeln!(f, "\n| round | colours of {} tuples |", self.tuples)?;
        let width = format!("colours of {} tuples", self.tuples).len();
        writeln!(f, "| ----- | {} |", "-".repeat(width))?;
        for (round, classes) in self.classes.iter().enumerate() {
            writeln!(f, "| {round:5} | {classes:width$} |")?;
        }
        match &self.witness {
            Some(witness) => write!(f, "\n{witness}"),
            None => Ok(()),
        }
    }
}

impl Report {
    fn verdict(&self, round: Option<usize>) -> String {
        match (round, self.stable) {
            (Some(round), _) => format!("separated in round {round}"),
            (None, true) if self.exact => {
                format!("not separated; stable after round {}, so {} never separates them", self.rounds, self.test)
            }
            (None, true) => format!("not separated after round {}, almost certainly (128-bit hashes)", self.rounds),
            (None, false) => format!("not separated by round {}, where --rounds stopped the test", self.rounds),
        }
    }
}
