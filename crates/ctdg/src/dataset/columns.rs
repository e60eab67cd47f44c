//! Events from typed columns in memory, such as those of a data frame.

use crate::dataset::layout::{FeatureSpan, Layout};
use crate::dataset::time_column::{TimeColumn, TimeUnit, exact_integer, looks_like_date, unit_of_dates};
use crate::dataset::{Format, ReadOptions};
use crate::error::{Error, Place, Problem, Result};
use crate::event::{EventStream, Features, IdKind, Role, StreamBuilder};
use crate::time::TimeFormat;

/// What kind of values a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Integers of any size.
    Integer,
    /// Floating-point numbers.
    Float,
    /// Text.
    Text,
    /// Points in time.
    Date,
    /// Values that can be neither ids, times nor numbers; an error only where the column has a role.
    Other,
}

/// A column of text.
pub trait TextColumn: Sync {
    /// The text in `row`.
    fn text(&self, row: usize) -> &[u8];
}

impl<T: AsRef<[u8]> + Sync> TextColumn for Vec<T> {
    fn text(&self, row: usize) -> &[u8] {
        self[row].as_ref()
    }
}

/// Values of one column.
#[derive(Clone, Copy)]
pub enum ColumnValues<'a> {
    /// 32-bit integers.
    I32(&'a [i32]),
    /// 64-bit integers.
    I64(&'a [i64]),
    /// 32-bit integers from 0.
    U32(&'a [u32]),
    /// 64-bit integers from 0.
    U64(&'a [u64]),
    /// 32-bit floats.
    F32(&'a [f32]),
    /// 64-bit floats.
    F64(&'a [f64]),
    /// Text.
    Text(&'a dyn TextColumn),
    /// Points in time since 1970 in UTC.
    Timestamp(&'a [i64], TimeUnit),
    /// Days since 1970.
    Days(&'a [i32]),
    /// Values of another type, which this names.
    Other(&'a str),
}

/// Values of one column in some rows.
#[derive(Clone, Copy)]
pub struct ColumnBlock<'a> {
    /// The values; what stands in a row without a value does not matter.
    pub values: ColumnValues<'a>,
    /// The first row without a value.
    pub first_null: Option<usize>,
}

impl<'a> From<ColumnValues<'a>> for ColumnBlock<'a> {
    fn from(values: ColumnValues<'a>) -> Self {
        Self { values, first_null: None }
    }
}

/// Reads events from columns in memory, block by block. Roles follow from names and [`ReadOptions`] as for Parquet, and so do errors.
///
/// ```
/// use ctdg::dataset::{ColumnKind, ColumnReader, ColumnValues, ReadOptions};
///
/// let columns = [("src", ColumnKind::Integer), ("dst", ColumnKind::Text), ("t", ColumnKind::Float)];
/// let mut reader = ColumnReader::new(&columns, &ReadOptions::default())?;
/// let names = vec!["ann", "bob"];
/// let blocks = [ColumnValues::I64(&[7, 8]), ColumnValues::Text(&names), ColumnValues::F64(&[1.0, 2.5])];
/// reader.push(2, &blocks.map(Into::into))?;
/// let stream = reader.finish(None)?;
/// assert_eq!((stream.len(), stream.names().name(stream.dst()[1])), (2, "bob".to_owned()));
/// # Ok::<(), ctdg::Error>(())
/// ```
#[derive(Debug)]
pub struct ColumnReader {
    names: Vec<String>,
    layout: Layout,
    features: Vec<usize>,
    unit: Option<TimeUnit>,
    dedup: bool,
    builder: StreamBuilder,
}

/// The id of a node.
enum Id<'a> {
    Integer(u64),
    Text(&'a [u8]),
}

impl ColumnReader {
    /// A reader of columns with these names and kinds.
    pub fn new<N: AsRef<str>>(columns: &[(N, ColumnKind)], options: &ReadOptions) -> Result<Self> {
        let names: Vec<String> = columns.iter().map(|(name, _)| name.as_ref().to_owned()).collect();
        let kind = |at: usize| columns[at].1;
        let dates: Vec<usize> = (0..names.len()).filter(|&at| kind(at) == ColumnKind::Date).collect();
        let layout = Layout::resolve(Format::Parquet, options, Some(&names), &[], &dates)?;
        let mut features = match &layout.features {
            FeatureSpan::At(at) => at.clone(),
            FeatureSpan::From(from) => (*from..names.len()).collect(),
        };
        let is_number = |at: &usize| matches!(kind(*at), ColumnKind::Integer | ColumnKind::Float);
        features.extend(layout.optional.iter().copied().filter(is_number));
        let ids = match options.ids {
            IdKind::Auto if [layout.src, layout.dst].map(kind).contains(&ColumnKind::Text) => IdKind::Text,
            kind => kind,
        };
        let are_dates = matches!(kind(layout.time), ColumnKind::Date | ColumnKind::Text);
        if let Some(unit) = options.time_unit.filter(|_| are_dates) {
            let place = Place::default().column(layout.time as u64 + 1, &*names[layout.time]);
            return Err(Error::at(place, unit_of_dates(unit)));
        }
        let mut builder = StreamBuilder::new(ids, options.bipartite.unwrap_or(false), options.sort);
        if are_dates || options.time_unit.is_some() {
            builder.set_time_format(TimeFormat::Date);
        }
        Ok(Self { names, layout, features, unit: options.time_unit, dedup: options.dedup, builder })
    }

    /// Takes memory for `n` more rows at once.
    pub fn reserve(&mut self, n: usize) {
        self.builder.reserve(n, self.features.len());
    }

    /// Whether the column at `position` is read at all.
    #[must_use]
    pub fn is_read(&self, position: usize) -> bool {
        let Layout { src, dst, time, label, .. } = &self.layout;
        [*src, *dst, *time].contains(&position) || *label == Some(position) || self.features.contains(&position)
    }

    /// Adds `n` rows: one block for each column, in order; those of columns that are not read may be anything.
    ///
    /// # Panics
    /// When there are fewer blocks than columns, or fewer values than rows.
    pub fn push(&mut self, n: usize, blocks: &[ColumnBlock<'_>]) -> Result<()> {
        let first = self.builder.len() as u64;
        let at_null = |at: usize| blocks[at].first_null.map(|row| (row, at));
        if let Some((row, at)) = (0..blocks.len()).filter(|&at| self.is_read(at)).filter_map(at_null).min() {
            return Err(Error::at(self.place(first + row as u64, at), Problem::Null));
        }
        let Self { names, layout, features, unit, builder, .. } = self;
        let values = |at: usize| blocks[at].values;
        let (src, dst, time) = (values(layout.src), values(layout.dst), values(layout.time));
        let label = layout.label.map(values);
        let mut of_row = Vec::with_capacity(features.len());
        for row in 0..n {
            let names = &*names;
            let at = |at: usize| {
                move |problem: Problem| {
                    let place = Place::default().row(first + row as u64).column(at as u64 + 1, &*names[at]);
                    Error::at(place, problem)
                }
            };
            let src = id(src, row).map_err(at(layout.src))?;
            let dst = id(dst, row).map_err(at(layout.dst))?;
            let time = read_time(time, row, *unit).map_err(at(layout.time))?;
            let label = label.map_or(Ok(0.0), |label| number(label, row));
            let label = label.map_err(at(layout.position(Role::Label)))?;
            let pushed = match (src, dst) {
                (Id::Integer(src), Id::Integer(dst)) => builder.push_integers(src, dst, time, label),
                (src, dst) => builder.push(&src.into_text(), &dst.into_text(), time, label),
            };
            pushed.map_err(|rejected| at(layout.position(rejected.role))(*rejected.problem))?;
            of_row.clear();
            for &column in &*features {
                let value = number(values(column), row).map_err(at(column))?;
                if !value.is_finite() {
                    return Err(at(column)(Problem::NonFiniteValue { found: value.to_string() }));
                }
                of_row.push(value);
            }
            if !of_row.is_empty() {
                builder.push_features(of_row.iter().copied())?;
            }
        }
        Ok(())
    }

    /// The events, with one row of `edge_features` for each unless columns were features.
    pub fn finish(self, edge_features: Option<Features>) -> Result<EventStream> {
        let stream = self.builder.finish(edge_features)?;
        if self.dedup { stream.without_duplicates() } else { Ok(stream) }
    }

    fn place(&self, row: u64, at: usize) -> Place {
        Place::default().row(row).column(at as u64 + 1, &*self.names[at])
    }
}

impl<'a> Id<'a> {
    fn into_text(self) -> std::borrow::Cow<'a, [u8]> {
        match self {
            Self::Integer(id) => id.to_string().into_bytes().into(),
            Self::Text(id) => id.into(),
        }
    }
}

fn id(values: ColumnValues<'_>, row: usize) -> Result<Id<'_>, Problem> {
    let integer = match values {
        ColumnValues::U32(values) => return Ok(Id::Integer(u64::from(values[row]))),
        ColumnValues::U64(values) => return Ok(Id::Integer(values[row])),
        ColumnValues::I32(values) => i64::from(values[row]),
        ColumnValues::I64(values) => values[row],
        ColumnValues::Text(text) => return Ok(Id::Text(text.text(row))),
        other => return Err(wrong_type(other, "integers or text")),
    };
    u64::try_from(integer).map(Id::Integer).map_err(|_| Problem::NegativeId { found: integer.to_string() })
}

fn read_time(values: ColumnValues<'_>, row: usize, unit: Option<TimeUnit>) -> Result<f64, Problem> {
    let (integer, unit) = match values {
        ColumnValues::F64(values) => return real_time(values[row], unit),
        ColumnValues::F32(values) => return real_time(f64::from(values[row]), unit),
        ColumnValues::Text(text) if looks_like_date(text.text(row)) => return TimeColumn::Date.read(text.text(row)),
        ColumnValues::Days(values) => return Ok(f64::from(values[row]) * 86_400.0),
        ColumnValues::Timestamp(values, unit) => (i128::from(values[row]), Some(unit)),
        ColumnValues::I32(values) => (i128::from(values[row]), unit),
        ColumnValues::I64(values) => (i128::from(values[row]), unit),
        ColumnValues::U32(values) => (i128::from(values[row]), unit),
        ColumnValues::U64(values) => (i128::from(values[row]), unit),
        ColumnValues::Text(_) | ColumnValues::Other(_) => {
            return Err(wrong_type(values, "numbers or dates such as 2024-01-31T12:00:00Z"));
        }
    };
    unit.map_or_else(|| exact_integer(integer), |unit| unit.of_integer(integer))
}

fn real_time(time: f64, unit: Option<TimeUnit>) -> Result<f64, Problem> {
    unit.filter(|_| time.is_finite()).map_or(Ok(time), |unit| unit.of_number(time))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "labels and features are f32")]
fn number(values: ColumnValues<'_>, row: usize) -> Result<f32, Problem> {
    Ok(match values {
        ColumnValues::I32(values) => values[row] as f32,
        ColumnValues::I64(values) => values[row] as f32,
        ColumnValues::U32(values) => values[row] as f32,
        ColumnValues::U64(values) => values[row] as f32,
        ColumnValues::F32(values) => values[row],
        ColumnValues::F64(values) => values[row] as f32,
        other => return Err(wrong_type(other, "numbers")),
    })
}

fn wrong_type(values: ColumnValues<'_>, expected: &'static str) -> Problem {
    let found = match values {
        ColumnValues::F32(_) | ColumnValues::F64(_) => "floats",
        ColumnValues::Text(_) => "text",
        ColumnValues::Timestamp(..) | ColumnValues::Days(_) => "dates",
        ColumnValues::Other(name) => name,
        _ => "integers",
    };
    Problem::WrongType { found: found.to_owned(), expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [(&str, ColumnKind); 3] =
        [("u", ColumnKind::Integer), ("i", ColumnKind::Integer), ("ts", ColumnKind::Integer)];

    fn read(blocks: &[ColumnBlock<'_>; 3], n: usize, options: &ReadOptions) -> Result<EventStream> {
        let mut reader = ColumnReader::new(&COLUMNS, options)?;
        reader.push(n, blocks)?;
        reader.finish(None)
    }

    #[test]
    fn an_error_names_row_and_column_of_the_whole_table() {
        let mut reader = ColumnReader::new(&COLUMNS, &ReadOptions::default()).unwrap();
        let block = |ids: &'static [i64], times: &'static [f64]| {
            [ColumnValues::I64(ids), ColumnValues::I64(ids), ColumnValues::F64(times)].map(Into::into)
        };
        reader.push(2, &block(&[1, 2], &[1.0, 2.0])).unwrap();
        let error = reader.push(2, &block(&[1, 2], &[3.0, f64::NAN])).unwrap_err();
        let expected = "row 3, column 3 (ts): found the time NaN, expected a finite number; \
                        correct the value, or choose other columns";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn values_without_a_role_may_be_missing_but_ids_and_times_may_not() {
        let values = [ColumnValues::U32(&[1]), ColumnValues::U64(&[2]), ColumnValues::Days(&[1])];
        let mut blocks: [ColumnBlock<'_>; 3] = values.map(Into::into);
        assert_eq!(read(&blocks, 1, &ReadOptions::default()).unwrap().times(), [86_400.0]);
        blocks[1].first_null = Some(0);
        let error = read(&blocks, 1, &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.starts_with("row 0, column 2 (i): found no value"), "{error}");
    }

    #[test]
    fn timestamps_are_seconds_and_large_integers_are_refused_or_have_a_unit() {
        let nanoseconds = 1_706_702_400_125_000_000;
        let of = |time| [ColumnValues::I32(&[1]), ColumnValues::I32(&[2]), time].map(Into::into);
        let times = [nanoseconds];
        let dates = read(&of(ColumnValues::Timestamp(&times, TimeUnit::Ns)), 1, &ReadOptions::default()).unwrap();
        assert_eq!(dates.times(), [1_706_702_400.125]);
        let numbers = of(ColumnValues::I64(&[1_706_702_400_125_000_001]));
        let error = read(&numbers, 1, &ReadOptions::default()).unwrap_err();
        assert!(matches!(error.problem(), Problem::InexactTime { .. }), "{error}");
        let options = ReadOptions { time_unit: Some(TimeUnit::Ns), ..ReadOptions::default() };
        assert_eq!(read(&numbers, 1, &options).unwrap().times(), [1_706_702_400.125]);
    }

    #[test]
    fn numeric_columns_become_features_on_request_and_other_types_are_named() {
        let columns = [COLUMNS[0], COLUMNS[1], COLUMNS[2], ("x", ColumnKind::Float), ("note", ColumnKind::Text)];
        let options = ReadOptions { features: crate::dataset::FeatureColumns::Numeric, ..ReadOptions::default() };
        let mut reader = ColumnReader::new(&columns, &options).unwrap();
        assert!(reader.is_read(3) && !reader.is_read(4));
        let note = vec!["hello", "hello"];
        let ids = ColumnValues::I64(&[1, 2]);
        let blocks = [ids, ids, ids, ColumnValues::F32(&[0.5, 1.5]), ColumnValues::Text(&note)].map(Into::into);
        reader.push(2, &blocks).unwrap();
        let stream = reader.finish(None).unwrap();
        assert_eq!(stream.edge_features().unwrap().values(), [0.5, 1.5]);
        let lists = [ColumnValues::Other("lists"), ids, ids].map(Into::into);
        let error = read(&lists, 1, &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.contains("(u): found values of type lists, expected integers or text"), "{error}");
    }
}
