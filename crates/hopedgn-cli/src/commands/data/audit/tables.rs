//! The tables of the report, as cells: text and HTML show the same ones.

use ctdg::audit::{LinkScores, PerSetting};
use ctdg::heuristic;
use ctdg::negative::NegativeKind;
use hopedgn::fmt::{fixed, grouped};

use super::Report;

/// A table: its title, what its numbers are, and its rows, the header first.
pub(super) struct Cells {
    pub(super) title: &'static str,
    pub(super) note: &'static str,
    pub(super) header: Vec<&'static str>,
    pub(super) rows: Vec<(String, Vec<String>)>,
}

/// All tables, in the order of the checks.
pub(super) fn all(report: &Report) -> [Cells; 5] {
    [heuristics(report), padding(report), same_moment(report), never_met(report), parts(report)]
}

/// A fraction in percent with one decimal; a dash for none.
fn percent(fraction: Option<f64>) -> String {
    fraction.map_or("–".to_owned(), |fraction| fixed(100.0 * fraction, 1))
}

fn heuristics(report: &Report) -> Cells {
    let row = |name: &str| {
        let cell = |kind: NegativeKind| {
            let of = |row: &&ctdg::audit::HeuristicScores| row.heuristic == name && row.negatives == kind;
            let scores = report.audit.heuristics.iter().find(of).map(|row| &row.scores);
            let ap = |setting: fn(&PerSetting<LinkScores>) -> Option<LinkScores>| {
                percent(scores.and_then(setting).map(|scores| scores.ap))
            };
            [ap(|scores| scores.transductive), ap(|scores| scores.inductive)]
        };
        (name.to_owned(), NegativeKind::ALL.into_iter().flat_map(cell).collect())
    };
    Cells {
        title: "Untrained heuristics",
        note: "AP in percent against random, historical and inductive negatives; all test events, then those of new nodes",
        header: vec!["heuristic", "random", "new", "historical", "new", "inductive", "new"],
        rows: heuristic::NAMES.into_iter().map(row).collect(),
    }
}

fn padding(report: &Report) -> Cells {
    let row = |row: &ctdg::audit::Padding| {
        let PerSetting { transductive: all, inductive: new } = row.scores;
        let cells = vec![
            row.patch.to_string(),
            percent(all.and_then(|scores| scores.val_ap)),
            percent(all.map(|scores| scores.ap)),
            percent(new.map(|scores| scores.ap)),
            percent(all.map(|scores| scores.positives_shorter)),
            percent(all.map(|scores| scores.same)),
        ];
        (row.length.to_string(), cells)
    };
    Cells {
        title: "Padded length",
        note: "AP of the padded length alone, in percent, by longest sequence; then batches whose positives are shorter, or the same",
        header: vec!["length", "patch", "val", "test", "new", "shorter", "same"],
        rows: report.audit.padding.iter().map(row).collect(),
    }
}

fn same_moment(report: &Report) -> Cells {
    let PerSetting { transductive: all, inductive: new } = &report.audit.same_moment;
    let scores = |name: &str| {
        let of = |setting: &Option<Vec<ctdg::audit::MomentScores>>| {
            setting.iter().flatten().find(|scores| scores.heuristic == name).cloned()
        };
        let (all, new) = (of(all), of(new));
        let cells = [&all, &new].into_iter().flat_map(|scores| {
            let scores = scores.as_ref();
            [scores.map(|of| of.strict_ap), scores.map(|of| of.visible_ap), scores.map(|of| of.share)]
        });
        (name.to_owned(), cells.map(percent).collect())
    };
    let names = all.iter().flatten().map(|scores| scores.heuristic.as_str());
    Cells {
        title: "Same moment",
        note: "AP in percent from the strict past, and with events of the query's time in earlier batches; share of such queries",
        header: vec!["heuristic", "strict", "visible", "share", "new: strict", "visible", "share"],
        rows: names.map(scores).collect(),
    }
}

fn never_met(report: &Report) -> Cells {
    let row = |row: &ctdg::audit::NeverMet| {
        let PerSetting { transductive: all, inductive: new } = row.scores;
        let cells = [all, new].into_iter().flat_map(|scores| {
            [
                scores.map(|scores| scores.first_meetings),
                scores.map(|scores| scores.never_met_negatives),
                scores.map(|scores| scores.ap),
            ]
        });
        (row.negatives.as_str().to_owned(), cells.map(percent).collect())
    };
    Cells {
        title: "Never met",
        note: "share of events that are first meetings and of negatives that never met, AP of \"never met\", in percent",
        header: vec!["negatives", "events", "negatives", "AP", "new: events", "negatives", "AP"],
        rows: report.audit.never_met.iter().map(row).collect(),
    }
}

fn parts(report: &Report) -> Cells {
    let row = |part: &ctdg::audit::PartCounts| {
        let cells = vec![
            grouped(part.events),
            grouped(part.nodes),
            grouped(part.first_seen_nodes),
            grouped(part.new_nodes),
            percent(Some(part.new_node_events)),
            percent(Some(part.repeats)),
        ];
        (part.part.to_owned(), cells)
    };
    Cells {
        title: "Parts",
        note: "nodes first seen in the part, nodes that training lacks, and percent of events that have one or repeat a pair",
        header: vec!["part", "events", "nodes", "first seen", "new", "events with new", "repeats"],
        rows: report.audit.counts.parts.iter().map(row).collect(),
    }
}
