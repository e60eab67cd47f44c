//! HTML report of a run: one self-contained page without scripts, for screens of any width, light and dark, and for print.

mod calibration;
mod curves;
mod data;
mod table;
#[cfg(test)]
mod tests;

use std::fmt::Write;

use crate::chart;
use crate::fmt::{grouped, memory, percent, seconds};
use crate::html::{escaped, page_head};
use crate::metrics::{EpochRecord, Evaluation, LinkMetrics, PerSetting, Summary};
use curves::{Curve, Curves};

/// Contents of the page.
///
/// ```
/// use hopedgn::callbacks::report::{Report, html};
///
/// let title = "TGN on mail";
/// let report = Report { title, config_toml: "seed = 0", data: None, history: &[], summary: None, evaluation: None };
/// assert!(html(&report).contains("<h1>TGN on mail</h1>"));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// e.g. `HopeDGN on collegemsg, seed 0`.
    pub title: &'a str,
    /// The text of `config.toml`.
    pub config_toml: &'a str,
    /// Statistics of the dataset.
    pub data: Option<&'a ctdg::summary::Summary>,
    /// The epochs so far.
    pub history: &'a [EpochRecord],
    /// `None` while the run trains, or if it was interrupted.
    pub summary: Option<&'a Summary>,
    /// Test metrics under other protocols, if they were measured.
    pub evaluation: Option<&'a Evaluation>,
}

/// The page; equal reports give equal bytes.
///
/// ```
/// # use hopedgn::{Events, LinkPredictor};
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
/// use hopedgn::callbacks::report::{Report, html};
///
/// let (title, config_toml, history) = ("my run", &*predictor.config().to_toml()?, predictor.history());
/// let summary = predictor.summary();
/// let page = html(&Report { title, config_toml, data: None, history, summary, evaluation: None });
/// assert!(page.starts_with("<!DOCTYPE html>") && page.contains("Validation AP"));
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[must_use]
pub fn html(report: &Report<'_>) -> String {
    let mut page = page_head(report.title, chart::STYLE);
    page.push_str(&headline(report));
    if let Some(summary) = report.summary {
        page.push_str(&table::results(summary, report.evaluation));
    }
    if let Some(calibration) = report.evaluation.and_then(|evaluation| evaluation.calibration.as_ref()) {
        page.push_str(&calibration::section(calibration));
    }
    page.push_str(&training(report));
    if let Some(data) = report.data {
        page.push_str(&data::section(data));
    }
    let config = escaped(report.config_toml);
    let _ = writeln!(
        page,
        "<h2>Configuration</h2>\n<details><summary>config.toml</summary>\n<pre>{config}</pre>\n</details>\n</body>\n</html>"
    );
    page
}

impl Report<'_> {
    /// The best epoch: the run's, or the best so far.
    fn best(&self) -> Option<usize> {
        let so_far = || self.history.iter().rev().find(|record| record.better).map(|record| record.epoch);
        self.summary.map(|summary| summary.best_epoch).or_else(so_far)
    }

    fn best_record(&self) -> Option<&EpochRecord> {
        let best = self.best()?;
        self.history.iter().find(|record| record.epoch == best)
    }
}

fn headline(report: &Report<'_>) -> String {
    if let Some(summary) = report.summary {
        let note = better_heuristics(summary, report.evaluation);
        return tiles("Test", &summary.test, Some(summary)) + &note + &facts(&facts_of_run(summary));
    }
    let unfinished = "The run is still training or was interrupted; it has not been tested yet.";
    match report.best_record() {
        Some(best) => {
            let note = format!("<p class=\"note\">{unfinished} These are its best numbers on validation so far.</p>\n");
            note + &tiles("Validation", &best.val, None) + &facts(&facts_so_far(report.history, best))
        }
        None => format!("<p class=\"note\">{unfinished}</p>\n"),
    }
}

/// A note on each test in which an untrained heuristic is better than the model.
fn better_heuristics(summary: &Summary, evaluation: Option<&Evaluation>) -> String {
    let of_evaluation = evaluation.map(Evaluation::better_heuristics).unwrap_or_default();
    // The summary has the test against random negatives.
    let others = of_evaluation.into_iter().filter(|better| better.test != "random negatives");
    let better: Vec<String> = summary.better_heuristic().into_iter().chain(others).map(|one| one.to_string()).collect();
    if better.is_empty() {
        return String::new();
    }
    let better = escaped(&better.join("; "));
    format!("<p class=\"note\">{better}. Train longer, or try a larger or another model.</p>\n")
}

/// One number of a pass.
type Metric = fn(&LinkMetrics) -> f64;

/// One of the two settings.
type Setting = fn(&PerSetting) -> Option<LinkMetrics>;

/// Headline metrics; those of a test have the best heuristic beside them.
fn tiles(part: &str, settings: &PerSetting, summary: Option<&Summary>) -> String {
    let mut out = String::from("<div class=\"tiles\">\n");
    let columns: [(&str, Metric); 2] = [("AP", |metrics| metrics.ap), ("AUC", |metrics| metrics.auc)];
    let both: [(&str, Setting); 2] =
        [("transductive", |settings| settings.transductive), ("inductive", |settings| settings.inductive)];
    for (setting, metrics) in both {
        for (name, value) in columns {
            let shown = match metrics(settings).map(|metrics| percent(value(&metrics))) {
                Some(shown) => format!("{shown}<i>\u{a0}%</i>"),
                None => "–".to_owned(),
            };
            let _ = write!(out, "<div class=\"tile\"><span>{part} {name}, {setting}</span><b>{shown}</b>");
            let others = summary.into_iter().flat_map(|summary| &summary.heuristics);
            let others = others.filter_map(|(name, settings)| Some((name, value(&metrics(settings)?))));
            let best = others.filter(|(_, value)| value.is_finite()).max_by(|a, b| a.1.total_cmp(&b.1));
            if let Some((name, value)) = best {
                let _ = write!(out, "<small>best heuristic: {}\u{a0}%, {}</small>", percent(value), escaped(name));
            } else if metrics(settings).is_none() {
                out.push_str("<small>no such events</small>");
            }
            out.push_str("</div>\n");
        }
    }
    out.push_str("</div>\n");
    out
}

/// Name, value and detail of a fact; the last two are HTML.
type Fact = (&'static str, String, String);

fn facts(facts: &[Fact]) -> String {
    let mut out = String::from("<dl>\n");
    for (name, value, more) in facts {
        let more = if more.is_empty() { String::new() } else { format!("<small>{more}</small>") };
        let _ = writeln!(out, "<div><dt>{name}</dt><dd>{value}{more}</dd></div>");
    }
    out.push_str("</dl>\n");
    out
}

fn facts_of_run(summary: &Summary) -> Vec<Fact> {
    let fact = |name, value: String| (name, value, String::new());
    let mut facts = vec![
        fact("Data", escaped(&summary.data)),
        fact("Model", escaped(&summary.model)),
        fact("Seed", summary.seed.to_string()),
        fact("Parameters", grouped(summary.parameters)),
        fact("Epochs", format!("{}, best {}", grouped(summary.epochs), grouped(summary.best_epoch))),
        fact("Time per epoch", seconds(summary.seconds_per_epoch)),
        fact("Device", escaped(&summary.device)),
    ];
    facts.extend(summary.peak_memory.map(|bytes| fact("Peak memory", memory(bytes))));
    facts
}

fn facts_so_far(history: &[EpochRecord], best: &EpochRecord) -> Vec<Fact> {
    let spent: f64 = history.iter().map(|record| record.train_seconds + record.eval_seconds).sum();
    let mean = spent / history.len().max(1) as f64;
    let epochs = format!("{} so far, best {}", grouped(history.len()), grouped(best.epoch));
    vec![("Epochs", epochs, String::new()), ("Time per epoch", seconds(mean), String::new())]
}

fn training(report: &Report<'_>) -> String {
    if report.history.is_empty() {
        return "<h2>Training</h2>\n<p class=\"quiet\">No epoch has ended yet.</p>\n".to_owned();
    }
    let best = report.best().map(|best| (best, if report.summary.is_some() { "best" } else { "best so far" }));
    let both = |transductive, inductive| {
        vec![Curve { name: "transductive", value: transductive }, Curve { name: "inductive", value: inductive }]
    };
    let ap = both(|record| Some(100.0 * record.val.transductive?.ap), |record| Some(100.0 * record.val.inductive?.ap));
    let auc =
        both(|record| Some(100.0 * record.val.transductive?.auc), |record| Some(100.0 * record.val.inductive?.auc));
    let loss = vec![Curve { name: "mean over batches", value: |record| Some(record.loss) }];
    let (any, percent) = ([f64::NEG_INFINITY, f64::INFINITY], [0.0, 100.0]);
    let mrr = vec![Curve { name: "all validation events", value: |record| Some(100.0 * record.val_mrr?) }];
    let mrr = Curves { title: "Validation MRR, %", lines: mrr, bounds: percent, decimals: 2 };
    let is_ranked = report.history.iter().any(|record| record.val_mrr.is_some());
    let charts = [
        Curves { title: "Training loss", lines: loss, bounds: any, decimals: 4 },
        Curves { title: "Validation AP, %", lines: ap, bounds: percent, decimals: 2 },
        Curves { title: "Validation AUC, %", lines: auc, bounds: percent, decimals: 2 },
    ];
    let charts = charts.iter().chain(is_ranked.then_some(&mrr));
    let charts: String = charts.map(|curves| curves.figure(report.history, best)).collect();
    let epochs = table::epochs(report.history, report.best());
    format!("<h2>Training</h2>\n<div class=\"wide\">\n{charts}</div>\n{epochs}")
}
