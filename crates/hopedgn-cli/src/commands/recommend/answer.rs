//! Recommendations as text, JSON and files.

use std::fmt;
use std::path::Path;

use ctdg::dataset::{self, PendingFile, TableColumn, TableValues};
use ctdg::time::TimeFormat;
use hopedgn::{Events, Recommendation};
use serde::Serialize;

use crate::commands::score::out::OutFormat;
use crate::commands::score::rows::Id;
use crate::commands::table::Table;

/// Recommendations for all sources.
pub(crate) struct Answers<'a> {
    pub(crate) events: &'a Events,
    pub(crate) time: f64,
    /// Whether scores are probabilities.
    pub(crate) is_probability: bool,
    /// Whether JSON is a list of answers, rather than the one answer.
    pub(crate) is_list: bool,
    pub(crate) of_sources: Vec<OfSource>,
}

/// Recommendations for one source.
pub(crate) struct OfSource {
    pub(crate) src: String,
    pub(crate) items: Vec<Recommendation>,
}

/// Either form of the document.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Document {
    One(Answer),
    Many { recommendations: Vec<Answer> },
}

#[derive(Serialize)]
pub(crate) struct Answer {
    src: Id,
    time: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    date: Option<String>,
    items: Vec<Item>,
}

#[derive(Serialize)]
struct Item {
    rank: usize,
    dst: Id,
    #[serde(skip_serializing_if = "Option::is_none")]
    probability: Option<f32>,
    /// Where it is no probability.
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f32>,
    known: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Answers<'_> {
    pub(crate) fn n_items(&self) -> usize {
        self.of_sources.iter().map(|of_source| of_source.items.len()).sum()
    }

    pub(crate) fn json(&self) -> Document {
        match &*self.of_sources {
            [one] if !self.is_list => Document::One(self.answer(one)),
            all => Document::Many { recommendations: all.iter().map(|one| self.answer(one)).collect() },
        }
    }

    fn answer(&self, of_source: &OfSource) -> Answer {
        let format = self.events.time_format();
        let item = |(rank, item): (usize, &Recommendation)| Item {
            rank,
            dst: Id::of(item.dst.clone(), self.events),
            probability: item.probability,
            score: item.probability.is_none().then_some(item.score),
            known: item.known,
            reason: item.reason.map(|reason| reason.to_string()),
        };
        Answer {
            src: Id::of(of_source.src.clone(), self.events),
            time: self.time,
            date: (format == TimeFormat::Date).then(|| format.show(self.time)),
            items: (1..).zip(&of_source.items).map(item).collect(),
        }
    }

    /// Name of the column of scores.
    fn score_name(&self) -> &'static str {
        if self.is_probability { "probability" } else { "score" }
    }

    /// Writes a file, which appears complete or not at all: a row for each recommendation, or a JSON object for each source.
    pub(crate) fn write_file(&self, path: &Path, format: OutFormat) -> anyhow::Result<()> {
        let OutFormat::Table(format) = format else {
            let lines = PendingFile::write(path, |out| {
                for of_source in &self.of_sources {
                    serde_json::to_writer(&mut *out, &self.answer(of_source))?;
                    out.write_all(b"\n")?;
                }
                Ok(())
            })?;
            return Ok(lines.commit()?);
        };
        let rows: Vec<(&str, usize, &Recommendation)> = self
            .of_sources
            .iter()
            .flat_map(|OfSource { src, items }| (1..).zip(items).map(move |(rank, item)| (src.as_str(), rank, item)))
            .collect();
        let rows = &rows;
        let text = |name: &'static str, of: fn(&Recommendation) -> String| TableColumn {
            name: name.into(),
            values: TableValues::Text(Box::new(move |row| of(rows[row].2).into())),
        };
        let time = self.time;
        let mut columns = vec![
            TableColumn { name: "src".into(), values: TableValues::Text(Box::new(move |row| rows[row].0.into())) },
            TableColumn {
                name: "time".into(),
                values: TableValues::Times(self.events.time_format(), Box::new(move |_| time)),
            },
            TableColumn {
                name: "rank".into(),
                values: TableValues::Integers(Box::new(move |row| i64::try_from(rows[row].1).unwrap_or(i64::MAX))),
            },
            text("dst", |item| item.dst.clone()),
            TableColumn {
                name: self.score_name().into(),
                values: TableValues::Floats(Box::new(move |row| rows[row].2.score)),
            },
            text("known", |item| item.known.to_string()),
        ];
        if rows.iter().any(|(_, _, item)| item.reason.is_some()) {
            columns.push(text("reason", |item| item.reason.map(|reason| reason.to_string()).unwrap_or_default()));
        }
        Ok(dataset::write_table(path, format, rows.len(), &columns)?)
    }
}

/// A table for each source; reasons stand below their row.
impl fmt::Display for Answers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, OfSource { src, items }) in self.of_sources.iter().enumerate() {
            if place > 0 {
                writeln!(f)?;
            }
            writeln!(f, "destinations of {src} at {}, the likeliest first", self.events.time_format().show(self.time))?;
            let mut table = Table::new(["rank", "dst", self.score_name(), "met before"]);
            for (rank, item) in (1..).zip(items) {
                let known = if item.known { "yes" } else { "no" };
                table.row(&format!("{rank}"), [item.dst.clone(), shown(item.score), known.to_owned()]);
            }
            let table = table.to_string();
            let mut lines = table.lines();
            writeln!(f, "{}", lines.next().unwrap_or_default())?;
            for (line, item) in lines.zip(items) {
                writeln!(f, "{line}")?;
                if let Some(reason) = item.reason {
                    writeln!(f, "      {reason}")?;
                }
            }
        }
        Ok(())
    }
}

/// A probability to four digits, small ones with a power of ten.
fn shown(score: f32) -> String {
    if score >= 0.001 || score == 0.0 { format!("{score:.4}") } else { format!("{score:.1e}") }
}
