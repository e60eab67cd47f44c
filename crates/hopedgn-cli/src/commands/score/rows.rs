//! Scores as rows of text and JSON.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};

use ctdg::dataset::{TableColumn, TableValues, write_table_text};
use ctdg::event::NodeId;
use ctdg::mite::PairQuery;
use ctdg::time::TimeFormat;
use hopedgn::predict::{KnownNodes, Likelihood, Prediction};
use hopedgn::{Events, Explanation};
use serde::{Serialize, Serializer};

use super::pairs::{ExtraColumns, Pairs};

/// The score of each pair, in the order of the file. Rows are made when they are written.
pub(crate) struct Scores<'a> {
    pub(crate) pairs: &'a Pairs<'a>,
    pub(crate) events: &'a Events,
    pub(crate) predictions: &'a [Prediction],
    pub(crate) explanations: Option<&'a Vec<Explanation<Id>>>,
}

/// The id of a node: a number where those of the data are.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum Id {
    Number(u64),
    Text(String),
}

impl Id {
    pub(crate) fn of(name: String, events: &Events) -> Self {
        match name.parse::<u64>() {
            Ok(number) if !events.names().is_text() && number.to_string() == name => Self::Number(number),
            _ => Self::Text(name),
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// Source or destination of a pair.
type NodeOf = fn(PairQuery) -> NodeId;

/// One score.
#[derive(Serialize)]
pub(crate) struct Row<'a> {
    src: Id,
    dst: Id,
    time: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    date: Option<String>,
    score: f32,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    likelihood: Option<Likelihood>,
    known: KnownNodes,
    #[serde(skip_serializing_if = "Option::is_none")]
    columns: Option<ExtraFields<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<&'a Explanation<Id>>,
}

/// The other columns of a row, by name.
struct ExtraFields<'a> {
    extra: &'a ExtraColumns,
    row: usize,
}

impl Serialize for ExtraFields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = self.extra.names.iter().enumerate();
        serializer.collect_map(fields.map(|(column, name)| (name, self.extra.get(self.row, column))))
    }
}

/// `{"scores": […]}`.
impl Serialize for Scores<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct AllRows<'a>(&'a Scores<'a>);
        impl Serialize for AllRows<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_seq((0..self.0.len()).map(|row| self.0.row(row)))
            }
        }
        serializer.collect_map([("scores", AllRows(self))])
    }
}

impl<'a> Scores<'a> {
    pub(crate) fn len(&self) -> usize {
        self.predictions.len()
    }

    pub(crate) fn row(&self, row: usize) -> Row<'a> {
        let query = self.pairs.named.queries()[row];
        let id = |node| Id::of(self.pairs.named.name(node), self.events);
        let (format, extra) = (self.events.time_format(), &self.pairs.extra);
        Row {
            src: id(query.src),
            dst: id(query.dst),
            time: query.time,
            date: (format == TimeFormat::Date).then(|| format.show(query.time)),
            score: self.predictions[row].score,
            likelihood: self.predictions[row].likelihood,
            known: self.pairs.named.known(row),
            columns: (!extra.names.is_empty()).then_some(ExtraFields { extra, row }),
            explanation: self.explanations.map(|explanations| &explanations[row]),
        }
    }

    /// The columns of a table, from row `first` on.
    pub(crate) fn columns(&self, first: usize) -> Vec<TableColumn<'a>> {
        let Self { pairs, predictions, .. } = *self;
        let (named, extra) = (&pairs.named, &pairs.extra);
        let query = move |row: usize| named.queries()[first + row];
        let id = |of: NodeOf| TableValues::Text(Box::new(move |row| named.name(of(query(row))).into()));
        let format = self.events.time_format();
        let number = |name: &'static str, of: fn(&Prediction) -> f32| TableColumn {
            name: name.into(),
            values: TableValues::Floats(Box::new(move |row| of(&predictions[first + row]))),
        };
        let likelihood = |name, of: fn(&Prediction) -> f32| {
            predictions.first().is_some_and(|first| first.likelihood.is_some()).then(|| number(name, of))
        };
        let mut columns = vec![
            TableColumn { name: "src".into(), values: id(|query| query.src) },
            TableColumn { name: "dst".into(), values: id(|query| query.dst) },
            TableColumn {
                name: "time".into(),
                values: TableValues::Times(format, Box::new(move |row| query(row).time)),
            },
            number("score", |prediction| prediction.score),
        ];
        columns.extend(likelihood("probability", |of| of.likelihood.map_or(f32::NAN, |of| of.probability)));
        columns.extend(likelihood("intensity", |of| of.likelihood.map_or(f32::NAN, |of| of.intensity)));
        columns.extend(likelihood("lift", |of| of.likelihood.map_or(f32::NAN, |of| of.lift)));
        columns.push(TableColumn {
            name: "known".into(),
            values: TableValues::Text(Box::new(move |row| named.known(first + row).as_str().into())),
        });
        for (column, name) in extra.names.iter().enumerate() {
            let is_taken = |name: &str| columns.iter().any(|column| column.name == name);
            let name = free_name(name, is_taken);
            let text = move |row: usize| Cow::Borrowed(extra.get(first + row, column));
            columns.push(TableColumn { name, values: TableValues::Text(Box::new(text)) });
        }
        columns
    }

    /// [`Scores::columns`] for a format with types: ids that are integers of the data become a column of integers.
    pub(crate) fn typed_columns(&self) -> Vec<TableColumn<'a>> {
        let named = &self.pairs.named;
        let mut columns = self.columns(0);
        let sides: [NodeOf; 2] = [|query| query.src, |query| query.dst];
        for (column, of) in columns.iter_mut().zip(sides) {
            if self.integer_ids(of) {
                let integer = move |row: usize| named.name(of(named.queries()[row])).parse();
                column.values =
                    TableValues::Integers(Box::new(move |row| integer(row).expect("checked by `integer_ids`")));
            }
        }
        columns
    }

    /// Whether all ids of one side are integers of the data that 64 bits with a sign hold as they are written.
    fn integer_ids(&self, of: NodeOf) -> bool {
        let names = self.events.names();
        let fits = |number: u64| i64::try_from(number).is_ok();
        let is_integer = |node: NodeId| {
            if node.index() < names.len() {
                return names.integer(node).is_some_and(fits);
            }
            matches!(Id::of(self.pairs.named.name(node), self.events), Id::Number(number) if fits(number))
        };
        !names.is_text() && self.pairs.named.queries().iter().all(|&query| is_integer(of(query)))
    }

    /// CSV; with explanations, each below its row.
    pub(crate) fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let Some(explanations) = self.explanations else {
            return write_table_text(out, b',', self.len(), &self.columns(0));
        };
        let mut header = Vec::new();
        write_table_text(&mut header, b',', 0, &self.columns(0))?;
        out.write_all(&header)?;
        for (row, explanation) in explanations.iter().enumerate() {
            let mut table = Vec::new();
            write_table_text(&mut table, b',', 1, &self.columns(row))?;
            out.write_all(&table[header.len()..])?;
            for line in explanation.to_string().lines() {
                writeln!(out, "  {line}")?;
            }
        }
        Ok(())
    }
}

/// `name`, with a number behind it if another column is called so.
pub(crate) fn free_name(name: &str, is_taken: impl Fn(&str) -> bool) -> Cow<'_, str> {
    let mut free = Cow::Borrowed(name);
    for number in 2.. {
        if !is_taken(&free) {
            break;
        }
        free = format!("{name}_{number}").into();
    }
    free
}
