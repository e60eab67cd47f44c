//! Tables: test results, and one row per epoch.

use std::fmt::Write;

use super::Setting;
use crate::fmt::{fixed, percent, rate};
use crate::html::escaped;
use crate::metrics::{EpochRecord, LinkMetrics, Summary};

/// The model beside the heuristics, in both settings.
pub(super) fn results(summary: &Summary) -> String {
    let settings: [(&str, &str, Setting); 2] = [
        ("Transductive", "all test events", |settings| settings.transductive),
        ("Inductive", "test events with a node that does not occur in training", |settings| settings.inductive),
    ];
    let mut tables = String::new();
    for (name, what, metrics) in settings {
        let mut rows = vec![Row { name: &summary.model, metrics: metrics(&summary.test), is_model: true }];
        rows.extend(summary.heuristics.iter().map(|(name, settings)| Row {
            name,
            metrics: metrics(settings),
            is_model: false,
        }));
        tables.push_str(&comparison(name, what, &rows));
    }
    format!(
        r#"<h2>Test results</h2>
<p class="quiet">In percent, the best of each column in bold. Per batch: AP and AUC of each batch of events and their
negatives, averaged, as papers report them. Over the split: computed once over all scores. Scorers other than {} are
heuristics without training.</p>
<div class="wide">
{tables}</div>
"#,
        escaped(&summary.model)
    )
}

struct Row<'a> {
    name: &'a str,
    metrics: Option<LinkMetrics>,
    is_model: bool,
}

impl Row<'_> {
    fn values(&self) -> Option<[f64; 4]> {
        self.metrics.map(|metrics| [metrics.ap, metrics.auc, metrics.ap_global, metrics.auc_global])
    }
}

fn comparison(name: &str, what: &str, rows: &[Row<'_>]) -> String {
    let caption = format!("<b>{name}</b>: {what}");
    if rows.iter().all(|row| row.metrics.is_none()) {
        return format!("<p class=\"quiet\">{caption}. There are none.</p>\n");
    }
    // Compared as shown: equal text is equally good.
    let best: Vec<Option<String>> = (0..4)
        .map(|column| {
            let values = rows.iter().filter_map(|row| Some(row.values()?[column]));
            let compared = values.filter(|value| value.is_finite());
            compared.reduce(f64::max).filter(|_| rows.len() > 1).map(percent)
        })
        .collect();
    let mut out = format!(
        r#"<div class="scroll"><table><caption>{caption}</caption>
<thead><tr><th></th><th colspan="2" scope="colgroup">per batch</th><th colspan="2" scope="colgroup">over the split</th></tr>
<tr><th></th><th scope="col">AP</th><th scope="col">AUC</th><th scope="col">AP</th><th scope="col">AUC</th></tr></thead>
<tbody>
"#
    );
    for row in rows {
        let class = if row.is_model { " class=\"model\"" } else { "" };
        let _ = write!(out, "<tr{class}><th scope=\"row\">{}</th>", escaped(row.name));
        for (column, best) in best.iter().enumerate() {
            let shown = row.values().map_or("–".to_owned(), |values| percent(values[column]));
            if best.as_ref() == Some(&shown) {
                let _ = write!(out, "<td><b>{shown}</b></td>");
            } else {
                let _ = write!(out, "<td>{shown}</td>");
            }
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    out
}

/// One row per epoch, collapsed.
pub(super) fn epochs(history: &[EpochRecord], best: Option<usize>) -> String {
    let mut out = String::from(
        r#"<details><summary>Every epoch</summary>
<p class="quiet">Validation is per batch and in percent; the checkpoint of the marked epoch is kept.</p>
<div class="scroll"><table class="epochs">
<thead><tr><th></th><th></th><th colspan="2" scope="colgroup">transductive</th><th colspan="2" scope="colgroup">inductive</th><th colspan="2" scope="colgroup">seconds</th><th></th></tr>
<tr><th scope="col">epoch</th><th scope="col">loss</th><th scope="col">AP</th><th scope="col">AUC</th><th scope="col">AP</th><th scope="col">AUC</th><th scope="col">training</th><th scope="col">validation</th><th scope="col">pairs per second</th></tr></thead>
<tbody>
"#,
    );
    for record in history {
        let class = if best == Some(record.epoch) { " class=\"best\"" } else { "" };
        let _ = write!(out, "<tr{class}><th scope=\"row\">{}</th><td>{}</td>", record.epoch, fixed(record.loss, 4));
        for metrics in [record.val.transductive, record.val.inductive] {
            for value in [metrics.map(|metrics| metrics.ap), metrics.map(|metrics| metrics.auc)] {
                let _ = write!(out, "<td>{}</td>", value.map_or("–".to_owned(), percent));
            }
        }
        let (train, eval) = (fixed(record.train_seconds, 1), fixed(record.eval_seconds, 1));
        let _ = writeln!(out, "<td>{train}</td><td>{eval}</td><td>{}</td></tr>", rate(record.pairs_per_second));
    }
    out.push_str("</tbody></table></div>\n</details>\n");
    out
}
