//! Tables: test results, and one row per epoch.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::fmt::{fixed, percent, rate};
use crate::html::escaped;
use crate::metrics::{EpochRecord, Evaluation, LinkMetrics, PerSetting, RankingMetrics, RankingTest, Summary};

/// The model beside the heuristics in both settings, under every protocol that was measured.
pub(super) fn results(summary: &Summary, evaluation: Option<&Evaluation>) -> String {
    let rows = |(name, settings)| Row { name, settings, is_model: name == summary.model.as_str() };
    let model = std::iter::once((summary.model.as_str(), &summary.test));
    let scorers = model.chain(summary.heuristics.iter().map(|(name, settings)| (name.as_str(), settings)));
    let tables = both_settings(&scorers.map(rows).collect::<Vec<_>>(), &LINKS, link_values);
    let mut out = format!(
        r#"<h2>Test results</h2>
<p class="quiet">In percent, the best of each column in bold. Per batch: AP and AUC of each batch of events and their
negatives, averaged, as papers report them. Over the split: computed once over all scores. Scorers other than {} are
heuristics without training.</p>
{tables}"#,
        escaped(&summary.model)
    );
    let Some(evaluation) = evaluation else { return out };
    // Those against random negatives stand above.
    for (kind, scorers) in evaluation.negatives.iter().filter(|(kind, _)| *kind != "random") {
        let _ = writeln!(out, "<h3>Against {} negatives</h3>", escaped(kind));
        out.push_str(&both_settings(&model_first(scorers, &evaluation.model), &LINKS, link_values));
    }
    for ranking in evaluation.ranking.iter().chain(&evaluation.other_rankings) {
        let _ = writeln!(
            out,
            "<h3>Ranking among {}</h3>\n<p class=\"quiet\">MRR: mean of 1 / rank of the true destination. Hits@10: share of ranks of \
             at most 10, which is also Recall@10, since one destination is true. NDCG@10: mean of 1 / log2(1 + rank) of these, 0 for \
             others. In percent.</p>",
            escaped(&among(ranking))
        );
        let rows = model_first(&ranking.scorers, &evaluation.model);
        out.push_str(&match ranking.protocol {
            Some(_) => all_events(&rows, &RANKING, rank_values),
            None => both_settings(&rows, &RANKING, rank_values),
        });
    }
    out
}

/// What true destinations were ranked among.
fn among(RankingTest { candidates, protocol, .. }: &RankingTest) -> String {
    let among = match (candidates.as_u64(), candidates.as_str()) {
        (Some(count), _) => format!("at most {count} other destinations"),
        (None, Some(file)) if file != "all" => format!("the candidates of {file}"),
        _ => "all other destinations".to_owned(),
    };
    if protocol.is_some() { format!("{among}, TGB\u{2019}s protocol") } else { among }
}

/// A scorer with its metrics.
struct Row<'a, M> {
    name: &'a str,
    settings: &'a PerSetting<M>,
    is_model: bool,
}

/// The model, then the heuristics.
fn model_first<'a, M>(scorers: &'a BTreeMap<String, PerSetting<M>>, model: &str) -> Vec<Row<'a, M>> {
    let row = |(name, settings): (&'a String, &'a PerSetting<M>)| Row { name, settings, is_model: name == model };
    let mut rows: Vec<Row<'_, M>> = scorers.iter().map(row).collect();
    rows.sort_by_key(|row| !row.is_model);
    rows
}

/// Groups of columns; a group without a title has no row of titles.
type Columns = [(&'static str, &'static [&'static str])];

const LINKS: [(&str, &[&str]); 2] = [("per batch", &["AP", "AUC"]), ("over the split", &["AP", "AUC"])];

const RANKING: [(&str, &[&str]); 1] = [("", &["MRR", "Hits@10", "NDCG@10"])];

fn link_values(metrics: LinkMetrics) -> Vec<f64> {
    vec![metrics.ap, metrics.auc, metrics.ap_global, metrics.auc_global]
}

fn rank_values(metrics: RankingMetrics) -> Vec<f64> {
    vec![metrics.mrr, metrics.hits_at_10, metrics.ndcg_at_10.unwrap_or(f64::NAN)]
}

/// Two tables of the same scorers.
fn both_settings<M: Copy>(rows: &[Row<'_, M>], columns: &Columns, values: fn(M) -> Vec<f64>) -> String {
    let transductive = |row: &Row<'_, M>| row.settings.transductive.map(values);
    let inductive = |row: &Row<'_, M>| row.settings.inductive.map(values);
    let new_nodes = "test events with a node that does not occur in training";
    let tables = comparison("Transductive", "all test events", rows, columns, transductive)
        + &comparison("Inductive", new_nodes, rows, columns, inductive);
    format!("<div class=\"wide\">\n{tables}</div>\n")
}

/// One table, where new nodes are not tested by themselves.
fn all_events<M: Copy>(rows: &[Row<'_, M>], columns: &Columns, values: fn(M) -> Vec<f64>) -> String {
    comparison("Test", "all test events", rows, columns, |row| row.settings.transductive.map(values))
}

fn comparison<M>(
    name: &str,
    what: &str,
    rows: &[Row<'_, M>],
    columns: &Columns,
    values: impl Fn(&Row<'_, M>) -> Option<Vec<f64>>,
) -> String {
    let caption = format!("<b>{name}</b>: {what}");
    let all: Vec<Option<Vec<f64>>> = rows.iter().map(values).collect();
    if all.iter().all(Option::is_none) {
        return format!("<p class=\"quiet\">{caption}. There are none.</p>\n");
    }
    let names: Vec<&str> = columns.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    // Compared as shown: equal text is equally good.
    let best: Vec<Option<String>> = (0..names.len())
        .map(|column| {
            let values = all.iter().filter_map(|values| Some(values.as_ref()?[column]));
            let compared = values.filter(|value| value.is_finite());
            compared.reduce(f64::max).filter(|_| rows.len() > 1).map(percent)
        })
        .collect();
    let mut out = format!("<div class=\"scroll\"><table><caption>{caption}</caption>\n<thead>");
    if columns.iter().any(|(title, _)| !title.is_empty()) {
        out.push_str("<tr><th></th>");
        for (title, names) in columns {
            let _ = write!(out, "<th colspan=\"{}\" scope=\"colgroup\">{title}</th>", names.len());
        }
        out.push_str("</tr>\n");
    }
    out.push_str("<tr><th></th>");
    for name in &names {
        let _ = write!(out, "<th scope=\"col\">{name}</th>");
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for (row, values) in rows.iter().zip(&all) {
        let class = if row.is_model { " class=\"model\"" } else { "" };
        let _ = write!(out, "<tr{class}><th scope=\"row\">{}</th>", escaped(row.name));
        for (column, best) in best.iter().enumerate() {
            let shown = values.as_ref().map_or("–".to_owned(), |values| percent(values[column]));
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
    let is_ranked = history.iter().any(|record| record.val_mrr.is_some());
    let mrr = if is_ranked { "<th scope=\"col\">MRR</th>" } else { "" };
    let n_of_all = if is_ranked { 3 } else { 2 };
    let mut out = format!(
        r#"<details><summary>Every epoch</summary>
<p class="quiet">Validation is per batch and in percent; the checkpoint of the marked epoch is kept.</p>
<div class="scroll"><table class="epochs">
<thead><tr><th></th><th></th><th colspan="{n_of_all}" scope="colgroup">transductive</th><th colspan="2" scope="colgroup">inductive</th><th colspan="2" scope="colgroup">seconds</th><th></th></tr>
<tr><th scope="col">epoch</th><th scope="col">loss</th>{mrr}<th scope="col">AP</th><th scope="col">AUC</th><th scope="col">AP</th><th scope="col">AUC</th><th scope="col">training</th><th scope="col">validation</th><th scope="col">pairs per second</th></tr></thead>
<tbody>
"#,
    );
    for record in history {
        let class = if best == Some(record.epoch) { " class=\"best\"" } else { "" };
        let _ = write!(out, "<tr{class}><th scope=\"row\">{}</th><td>{}</td>", record.epoch, fixed(record.loss, 4));
        let shown = |value: Option<f64>| value.map_or("–".to_owned(), percent);
        if is_ranked {
            let _ = write!(out, "<td>{}</td>", shown(record.val_mrr));
        }
        for metrics in [record.val.transductive, record.val.inductive] {
            for value in [metrics.map(|metrics| metrics.ap), metrics.map(|metrics| metrics.auc)] {
                let _ = write!(out, "<td>{}</td>", shown(value));
            }
        }
        let (train, eval) = (fixed(record.train_seconds, 1), fixed(record.eval_seconds, 1));
        let _ = writeln!(out, "<td>{train}</td><td>{eval}</td><td>{}</td></tr>", rate(record.pairs_per_second));
    }
    out.push_str("</tbody></table></div>\n</details>\n");
    out
}
