//! Reads the pairs to be scored.

mod extra;

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use ctdg::Problem;
use ctdg::dataset::{ColumnRef, PairColumns, TableReader, TableRow};
use ctdg::mite::Side;
use ctdg::time::TimeFormat;
use hopedgn::Events;
use hopedgn::predict::NamedPairs;

use crate::commands::data_args::{parse_column, parse_delimiter};
use crate::commands::time_arg::parse_time;
use crate::plural::count;
pub(crate) use extra::ExtraColumns;

/// The pairs to be scored, and how they are read.
#[derive(Debug, Args)]
pub(crate) struct PairsArgs {
    /// Pairs to score: CSV, TSV or Parquet, also compressed, or `-` for stdin
    #[arg(long, value_name = "FILE")]
    pairs: PathBuf,
    /// Columns of the pairs, by name or by position from 1 [default: recognised by name, or the first three]
    #[arg(long, value_name = "SRC,DST[,TIME]", value_delimiter = ',', value_parser = parse_column)]
    pairs_columns: Vec<ColumnRef>,
    /// Field separator of the pairs: one character, or `tab` [default: decided by the first line]
    #[arg(long, value_name = "CHAR", value_parser = parse_delimiter)]
    pairs_delimiter: Option<u8>,
}

/// Pairs in the order of the file.
#[derive(Debug)]
pub(crate) struct Pairs<'s> {
    pub(crate) named: NamedPairs<'s>,
    /// The columns that are neither source nor destination nor time.
    pub(crate) extra: ExtraColumns,
    /// A first row that cannot be a pair, and has no names that are recognised.
    pub(crate) skipped_header: Option<String>,
    /// Whether no column was recognised as time, though there are names, and no time was asked for.
    pub(crate) has_no_time: bool,
}

impl Pairs<'_> {
    /// Pairs with at least one node that is not in the data.
    pub(crate) fn n_unknown(&self) -> usize {
        (0..self.named.queries().len()).filter(|&pair| !self.named.known(pair).both()).count()
    }

    /// A pair as an example of `n`.
    pub(crate) fn example(&self, pair: usize, n: usize) -> String {
        let query = self.named.queries()[pair];
        let first = if n == 1 { "" } else { "the first: " };
        format!("{first}{},{}", self.named.name(query.src), self.named.name(query.dst))
    }
}

impl PairsArgs {
    /// The file, unless it is stdin.
    pub(crate) fn file(&self) -> Option<&Path> {
        Some(&*self.pairs).filter(|path| *path != Path::new("-"))
    }

    /// Reads all pairs; one without a time gets the time `at`, or that just after the last event. If `is_strict`, a node that is not
    /// in the data is an error.
    pub(crate) fn read<'s>(&self, events: &'s Events, at: Option<f64>, is_strict: bool) -> anyhow::Result<Pairs<'s>> {
        let table = match self.file() {
            Some(path) => TableReader::open(path, self.pairs_delimiter)?,
            None => TableReader::from_reader(Path::new("stdin"), io::stdin(), self.pairs_delimiter)?,
        };
        let mut reader = PairsReader {
            args: self,
            events,
            table,
            columns: PairColumns::IN_ORDER,
            names: None,
            default_time: at.unwrap_or_else(|| events.end()),
            is_strict,
            pairs: Pairs {
                named: NamedPairs::new(events)?,
                extra: ExtraColumns::default(),
                skipped_header: None,
                has_no_time: false,
            },
        };
        reader.run()?;
        let has_no_time = reader.pairs.has_no_time && at.is_none();
        Ok(Pairs { has_no_time, ..reader.pairs })
    }
}

struct PairsReader<'a, 's> {
    args: &'a PairsArgs,
    events: &'s Events,
    table: TableReader<'a>,
    columns: PairColumns,
    /// Names of all columns, if there are names.
    names: Option<Vec<String>>,
    default_time: f64,
    is_strict: bool,
    pairs: Pairs<'s>,
}

impl PairsReader<'_, '_> {
    fn run(&mut self) -> anyhow::Result<()> {
        let mut row = TableRow::default();
        let mut header = None;
        if let Some(names) = self.table.names().map(<[String]>::to_vec) {
            self.use_names(names).map_err(|error| advised(error.in_file(self.table.path())))?;
        } else if self.table.next(&mut row)? {
            let found = self.find_columns(&row);
            let is_header = found.map_err(|error| advised(error).context(self.table.place(&row)))?;
            if is_header {
                header = Some(row.iter().collect::<Vec<_>>().join(","));
            } else {
                self.push(&row)?;
            }
        }
        while self.table.next(&mut row)? {
            self.push(&row)?;
        }
        let found = header.map_or("no pairs".to_owned(), |header| format!("the header {header:?} and no pairs"));
        let name = self.table.path().display();
        let is_empty = self.pairs.named.queries().is_empty();
        anyhow::ensure!(!is_empty, "{name}: found {found}, expected one a line: SRC,DST[,TIME]");
        self.pairs.extra.finish(self.columns, self.names.as_deref());
        Ok(())
    }

    /// Decides by the first row of text where the columns are, and whether it is a row of names.
    fn find_columns(&mut self, row: &TableRow) -> ctdg::error::Result<bool> {
        let names: Vec<String> = row.iter().map(|name| name.trim().to_owned()).collect();
        let chosen = &self.args.pairs_columns;
        let are_names = |columns: &[ColumnRef]| columns.iter().any(|column| matches!(column, ColumnRef::Name(_)));
        if !chosen.is_empty() && !are_names(chosen) {
            self.columns = PairColumns::of_chosen(chosen, None, row.len())?;
        }
        let fields = [self.columns.src, self.columns.dst].map(|at| names.get(at).map_or("", String::as_str));
        let is_pair = self.pairs.named.knows(fields[0], fields[1]);
        let is_named = are_names(chosen) || (!is_pair && PairColumns::are_named_in(&names, self.events.read_options()));
        // Ids of the data are numbers, and these are not.
        let is_no_pair = names.len() > 1
            && !self.events.names().is_text()
            && fields.iter().all(|field| field.parse::<u64>().is_err());
        if is_named {
            self.use_names(names)?;
        } else if is_no_pair {
            if chosen.is_empty() {
                self.pairs.skipped_header = Some(names.join(","));
            }
            self.names = Some(names);
        }
        Ok(is_named || is_no_pair)
    }

    /// Finds the columns by their names, unless they are chosen by position.
    fn use_names(&mut self, names: Vec<String>) -> ctdg::error::Result<()> {
        self.columns = match &*self.args.pairs_columns {
            [] => {
                let columns = PairColumns::of_names(&names, self.events.read_options())?;
                self.pairs.has_no_time = columns.time.is_none();
                columns
            }
            chosen => PairColumns::of_chosen(chosen, Some(&names), names.len())?,
        };
        self.names = Some(names);
        Ok(())
    }

    fn push(&mut self, row: &TableRow) -> anyhow::Result<()> {
        self.try_push(row).map_err(|error| error.context(self.table.place(row)))
    }

    fn try_push(&mut self, row: &TableRow) -> anyhow::Result<()> {
        let PairColumns { src, dst, time } = self.columns;
        let field = |at: usize| row.get(at).map(str::trim).filter(|field| !field.is_empty());
        let (Some(_), Some(_)) = (field(src), field(dst)) else {
            if row.len() > src.max(dst) {
                let role = if field(src).is_none() { "source" } else { "destination" };
                anyhow::bail!("found an empty {role}, expected an id");
            }
            let fields = count(row.len(), "field");
            let advice = if row.len() == 1 { "; state the separator with --pairs-delimiter" } else { "" };
            anyhow::bail!("found {fields}, expected SRC,DST or SRC,DST,TIME{advice}");
        };
        let n_fields = self.names.as_ref().map_or(usize::MAX, Vec::len);
        if row.iter().skip(n_fields).any(|field| !field.trim().is_empty()) {
            let found = count(row.len(), "field");
            anyhow::bail!(
                "found {found}, expected {n_fields} as in the first row; quote fields that hold the separator"
            );
        }
        let time = time.and_then(|at| Some((at, field(at)?))).map(|(at, text)| self.time(text, row.get(at + 1)));
        let time = time.transpose()?.unwrap_or(self.default_time);
        let [src, dst] =
            [(src, Side::Src), (dst, Side::Dst)].map(|(at, side)| self.id(row.get(at).unwrap_or(""), side));
        if self.is_strict {
            self.refuse_unknown(src, Side::Src)?;
            self.refuse_unknown(dst, Side::Dst)?;
        }
        self.pairs.named.push(src, dst, time)?;
        self.pairs.extra.push(row, self.columns);
        Ok(())
    }

    /// The id that a field holds. Blanks around it count only where the data has them.
    fn id<'f>(&self, field: &'f str, side: Side) -> &'f str {
        let trimmed = field.trim();
        if trimmed.len() < field.len() && self.pairs.named.knows_node(field, side) { field } else { trimmed }
    }

    fn time(&self, text: &str, next: Option<&str>) -> anyhow::Result<f64> {
        let is_clock =
            |next: &str| next.len() >= 5 && next.as_bytes()[2] == b':' && next.as_bytes()[0].is_ascii_digit();
        let is_split = self.table.delimiter() == Some(b' ') && next.is_some_and(is_clock);
        if is_split && self.events.time_format() == TimeFormat::Date {
            let problem = Problem::SplitDate { date: text.to_owned(), clock: next.unwrap_or_default().to_owned() };
            return Err(ctdg::Error::from(problem).into());
        }
        let advice = if self.names.is_some() { "" } else { "; choose other columns with --pairs-columns" };
        parse_time(text, self.events)
            .map_err(|expected| anyhow::anyhow!("found the time {text:?}, expected {expected}{advice}"))
    }

    fn refuse_unknown(&self, id: &str, side: Side) -> anyhow::Result<()> {
        let named = &self.pairs.named;
        if named.knows_node(id, side) {
            return Ok(());
        }
        let (role, other_role, other) = match side {
            Side::Src => ("source", "destination", Side::Dst),
            Side::Dst => ("destination", "source", Side::Src),
        };
        let advice = if named.knows_node(id, other) {
            format!("it is a {other_role}: are the columns swapped?")
        } else if let Some(near) = named.nearest(id, side) {
            format!("did you mean {near:?}?")
        } else {
            "without --strict it is scored as a new node".to_owned()
        };
        anyhow::bail!("found the {role} {id:?}, expected the id of a {role} in the data; {advice}")
    }
}

/// `error` with what helps on this command line.
fn advised(error: ctdg::Error) -> anyhow::Error {
    match error.problem() {
        Problem::MissingColumn { .. } | Problem::DuplicateColumn { .. } => {
            anyhow::anyhow!("{}; name the columns with --pairs-columns SRC,DST[,TIME]", error.finding())
        }
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests;
