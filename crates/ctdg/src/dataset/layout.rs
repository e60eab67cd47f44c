//! Assigns roles (source, destination, time, label, features) to columns.

use rustc_hash::FxHashMap;

use crate::dataset::time_column::{looks_like_date, looks_like_time};
use crate::dataset::{ColumnRef, FeatureColumns, Format, ReadOptions};
use crate::error::{Problem, Result, counted};
use crate::event::Role;

/// Column names recognised for each role, most specific first.
const SOURCE: &[&str] = &["src", "source", "u", "user_id", "user", "from", "sender", "src_id", "source_id"];
const DESTINATION: &[&str] =
    &["dst", "destination", "target", "dest", "i", "v", "item_id", "item", "to", "receiver", "dst_id", "target_id"];
const TIME: &[&str] = &["time", "timestamp", "ts", "t", "unixts", "day", "date", "datetime"];
const LABEL: &[&str] = &["label", "state_label", "y"];

/// Positions of the roles, from 0.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Layout {
    pub(crate) src: usize,
    pub(crate) dst: usize,
    pub(crate) time: usize,
    pub(crate) label: Option<usize>,
    pub(crate) features: FeatureSpan,
    /// Further features: columns that are kept if every value is a number.
    pub(crate) optional: Vec<usize>,
    /// Columns in all, used or not.
    pub(crate) n_columns: usize,
}

/// Positions of the features, from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FeatureSpan {
    /// Exactly these; empty means no features.
    At(Vec<usize>),
    /// From there to the end of the row.
    From(usize),
}

impl Default for FeatureSpan {
    fn default() -> Self {
        Self::At(Vec::new())
    }
}

impl Layout {
    /// Finds the roles among the column names `header`, or by position when there is none. `dates` are the columns that hold
    /// dates: a single one is the time if no column has a name or position for it.
    ///
    /// Linear in the number of columns.
    pub(crate) fn resolve(
        format: Format,
        options: &ReadOptions,
        header: Option<&[String]>,
        first_row: &[&[u8]],
        dates: &[usize],
    ) -> Result<Self, Problem> {
        let n_columns = header.map_or(first_row.len(), |header| header.len().max(first_row.len()));
        let find = Finder::new(header, n_columns, dates);
        // Positions where the format defines them, or where there is no header.
        let fixed = match format {
            Format::Jodie => Some([0, 1, 2]),
            Format::Tgb => Some([1, 2, 0]),
            Format::Konect => Some([0, 1, 3]),
            _ if header.is_none() => Some(find.without_header(first_row)),
            _ => None,
        };
        let src = find.role("source", options.src.as_ref(), SOURCE, fixed.map(|at| at[0]))?;
        let dst = find.role("destination", options.dst.as_ref(), DESTINATION, fixed.map(|at| at[1]))?;
        let time = find.time(options.time.as_ref(), fixed.map(|at| at[2]), [src, dst])?;
        let label = match (&options.label, format) {
            (Some(chosen), _) => Some(find.chosen("label", chosen)?),
            (None, Format::Jodie) => Some(3),
            (None, _) => find.known(LABEL)?,
        };
        let roles = [Some(src), Some(dst), Some(time), label];
        for (place, role) in roles.iter().enumerate() {
            if role.is_some() && roles[..place].contains(role) {
                let what = find.describe(role.expect("checked"));
                return Err(Problem::DuplicateColumn { what });
            }
        }
        let free = |at: &usize| !roles.contains(&Some(*at));
        let features = match (&options.features, format) {
            (FeatureColumns::None, _) | (FeatureColumns::Auto | FeatureColumns::Numeric, Format::Konect) => {
                FeatureSpan::At(Vec::new())
            }
            (FeatureColumns::Auto | FeatureColumns::Numeric, Format::Jodie) => FeatureSpan::From(4),
            (FeatureColumns::Auto | FeatureColumns::Numeric, Format::Tgb) => {
                let numeric = |at: &usize| first_row.get(*at).is_some_and(|field| is_numeric_list(field));
                FeatureSpan::At((0..n_columns).filter(free).filter(numeric).collect())
            }
            (FeatureColumns::Auto | FeatureColumns::Numeric, _) => find.features()?,
            (FeatureColumns::Rest, _) => FeatureSpan::At((0..n_columns).filter(free).collect()),
            (FeatureColumns::Chosen(columns), _) => {
                let at = columns.iter().map(|column| find.chosen("feature", column));
                FeatureSpan::At(at.collect::<Result<_, _>>()?)
            }
        };
        let mut layout = Self { src, dst, time, label, features, optional: Vec::new(), n_columns };
        if options.features == FeatureColumns::Numeric {
            layout.optional = layout.unused();
        }
        Ok(layout)
    }

    /// Columns without a role, in order.
    pub(crate) fn unused(&self) -> Vec<usize> {
        let mut is_used = vec![false; self.n_columns];
        let features: &[usize] = match &self.features {
            FeatureSpan::At(at) => at,
            FeatureSpan::From(from) => {
                is_used.iter_mut().skip(*from).for_each(|used| *used = true);
                &[]
            }
        };
        let roles = [self.src, self.dst, self.time].into_iter().chain(self.label);
        for at in roles.chain(features.iter().copied()).chain(self.optional.iter().copied()) {
            if let Some(used) = is_used.get_mut(at) {
                *used = true;
            }
        }
        (0..self.n_columns).filter(|&at| !is_used[at]).collect()
    }

    /// Fewest fields that a row must have.
    pub(crate) fn n_needed(&self) -> usize {
        let feature = match &self.features {
            FeatureSpan::At(at) => at.iter().max().copied(),
            FeatureSpan::From(_) => None,
        };
        let last = [Some(self.src), Some(self.dst), Some(self.time), self.label, feature].into_iter().flatten().max();
        last.map_or(0, |last| last + 1)
    }

    pub(crate) fn position(&self, role: Role) -> usize {
        match role {
            Role::Source => self.src,
            Role::Destination => self.dst,
            Role::Time => self.time,
            Role::Label => self.label.unwrap_or(self.time),
        }
    }
}

/// Where a table of pairs has source, destination and, if it has one, time: positions from 0.
///
/// ```
/// use ctdg::dataset::{PairColumns, ReadOptions};
///
/// let names = ["when", "sender", "note", "receiver"].map(String::from);
/// let mut options = ReadOptions::default();
/// assert_eq!(PairColumns::of_names(&names, &options)?, PairColumns { src: 1, dst: 3, time: None });
/// options.time = Some("when".into()); // as the events were read
/// assert_eq!(PairColumns::of_names(&names, &options)?, PairColumns { src: 1, dst: 3, time: Some(0) });
/// # Ok::<(), ctdg::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairColumns {
    /// The source.
    pub src: usize,
    /// The destination.
    pub dst: usize,
    /// The time.
    pub time: Option<usize>,
}

impl PairColumns {
    /// Source, destination and time, in this order: those of a table without names, whose rows may end before the time.
    pub const IN_ORDER: Self = Self { src: 0, dst: 1, time: Some(2) };

    /// By the names of the columns: those that `options` name for events, or else those that are recognised in a file of
    /// events.
    pub fn of_names(names: &[String], options: &ReadOptions) -> Result<Self> {
        let find = PairFinder { find: Finder::new(Some(names), names.len(), &[]), options };
        let missing = |role, known: &[&str]| find.find.missing(role, quoted_list(known));
        let src = find.src()?.ok_or_else(|| missing("source", SOURCE))?;
        let dst = find.dst()?.ok_or_else(|| missing("destination", DESTINATION))?;
        Self { src, dst, time: find.time()? }.distinct(&find.find)
    }

    /// The columns that `chosen` names in the order source, destination, time, the last of which may be missing. `names` are
    /// those of the table, if it has some, and `n_columns` counts its columns.
    pub fn of_chosen(chosen: &[ColumnRef], names: Option<&[String]>, n_columns: usize) -> Result<Self> {
        let find = Finder::new(names, n_columns, &[]);
        let ([src, dst] | [src, dst, _]) = chosen else {
            let (name, expected) = ("columns", "source, destination and perhaps time".to_owned());
            return Err(Problem::Setting { name, found: chosen.len().to_string(), expected }.into());
        };
        let time = chosen.get(2).map(|time| find.chosen("time", time)).transpose()?;
        Self { src: find.chosen("source", src)?, dst: find.chosen("destination", dst)?, time }.distinct(&find)
    }

    /// Whether `row` is a row of column names: at least two of source, destination and time are named in it.
    #[must_use]
    pub fn are_named_in(row: &[String], options: &ReadOptions) -> bool {
        let find = PairFinder { find: Finder::new(Some(row), row.len(), &[]), options };
        // A name that occurs twice is a name.
        let is_named = |found: &Result<Option<usize>, Problem>| !matches!(found, Ok(None));
        [find.src(), find.dst(), find.time()].into_iter().filter(|found| is_named(found)).count() >= 2
    }

    fn distinct(self, find: &Finder<'_>) -> Result<Self> {
        let Self { src, dst, time } = self;
        match [Some(src).filter(|src| *src == dst || Some(*src) == time), time.filter(|time| *time == dst)] {
            [Some(at), _] | [_, Some(at)] => Err(Problem::DuplicateColumn { what: find.describe(at) }.into()),
            [None, None] => Ok(self),
        }
    }
}

/// Finds the columns of pairs by the names that events were read with.
struct PairFinder<'a> {
    find: Finder<'a>,
    options: &'a ReadOptions,
}

impl PairFinder<'_> {
    fn src(&self) -> Result<Option<usize>, Problem> {
        self.role(self.options.src.as_ref(), SOURCE)
    }

    fn dst(&self) -> Result<Option<usize>, Problem> {
        self.role(self.options.dst.as_ref(), DESTINATION)
    }

    fn time(&self) -> Result<Option<usize>, Problem> {
        self.role(self.options.time.as_ref(), TIME)
    }

    /// A position is that in a file of events, and says nothing about pairs.
    fn role(&self, chosen: Option<&ColumnRef>, known: &[&str]) -> Result<Option<usize>, Problem> {
        if let Some(ColumnRef::Name(name)) = chosen
            && let Some(at) = self.find.named(name)?
        {
            return Ok(Some(at));
        }
        self.find.known(known)
    }
}

struct Finder<'a> {
    header: Option<&'a [String]>,
    n_columns: usize,
    /// Columns of dates.
    dates: &'a [usize],
    /// Where each name is, in lower case.
    by_name: FxHashMap<String, Found>,
}

/// The columns of one name.
#[derive(Clone, Copy)]
enum Found {
    Once(usize),
    Twice,
}

impl<'a> Finder<'a> {
    fn new(header: Option<&'a [String]>, n_columns: usize, dates: &'a [usize]) -> Self {
        let mut by_name = FxHashMap::default();
        for (at, name) in header.unwrap_or_default().iter().enumerate() {
            by_name
                .entry(name.to_ascii_lowercase())
                .and_modify(|found| *found = Found::Twice)
                .or_insert(Found::Once(at));
        }
        Self { header, n_columns, dates, by_name }
    }

    /// Source, destination and time of a file without names: the first three columns, unless another one alone holds dates.
    fn without_header(&self, first_row: &[&[u8]]) -> [usize; 3] {
        let third_is_time = first_row.get(2).is_some_and(|field| std::str::from_utf8(field).is_ok_and(looks_like_time));
        match self.dates {
            [0] if !third_is_time => [1, 2, 0],
            [1] if !third_is_time => [0, 2, 1],
            [date] if !third_is_time => [0, 1, *date],
            _ => [0, 1, 2],
        }
    }

    /// The time column: as chosen, at its position, by its name, or the only one with dates.
    fn time(&self, chosen: Option<&ColumnRef>, fixed: Option<usize>, taken: [usize; 2]) -> Result<usize, Problem> {
        let found = self.role("time", chosen, TIME, fixed);
        match (&found, self.dates) {
            (Err(Problem::MissingColumn { .. }), [date]) if chosen.is_none() && !taken.contains(date) => Ok(*date),
            _ => found,
        }
    }

    fn role(
        &self,
        role: &'static str,
        chosen: Option<&ColumnRef>,
        known: &[&str],
        fixed: Option<usize>,
    ) -> Result<usize, Problem> {
        if let Some(chosen) = chosen {
            return self.chosen(role, chosen);
        }
        if let Some(at) = fixed {
            return if at < self.n_columns { Ok(at) } else { Err(self.missing(role, format!("column {}", at + 1))) };
        }
        self.known(known)?.ok_or_else(|| self.missing(role, quoted_list(known)))
    }

    fn chosen(&self, role: &'static str, column: &ColumnRef) -> Result<usize, Problem> {
        match column {
            ColumnRef::Position(position) if (1..=self.n_columns).contains(position) => Ok(position - 1),
            ColumnRef::Position(position) => Err(self.missing(role, format!("column {position}"))),
            ColumnRef::Name(name) => self.named(name)?.ok_or_else(|| self.missing(role, format!("{name:?}"))),
        }
    }

    /// The first of `names` that is a column.
    fn known(&self, names: &[&str]) -> Result<Option<usize>, Problem> {
        for name in names {
            if let Some(at) = self.named(name)? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// The column called `name`; an error if there are two.
    fn named(&self, name: &str) -> Result<Option<usize>, Problem> {
        match self.by_name.get(&name.to_ascii_lowercase()) {
            Some(Found::Once(at)) => Ok(Some(*at)),
            Some(Found::Twice) => Err(Problem::DuplicateColumn { what: format!("the column {name:?}") }),
            None => Ok(None),
        }
    }

    /// Columns named `feat…`, in order.
    fn features(&self) -> Result<FeatureSpan, Problem> {
        let header = self.header.unwrap_or_default();
        let is_feature = |name: &str| name.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("feat"));
        let at: Vec<_> = (0..header.len()).filter(|&at| is_feature(&header[at])).collect();
        for &place in &at {
            self.named(&header[place])?;
        }
        Ok(FeatureSpan::At(at))
    }

    fn describe(&self, at: usize) -> String {
        match self.header.and_then(|header| header.get(at)) {
            Some(name) => format!("the column {name:?}"),
            None => format!("column {}", at + 1),
        }
    }

    fn missing(&self, role: &'static str, expected: String) -> Problem {
        let have = match self.header {
            Some(header) => quoted_list(header),
            None => format!("{} without names", counted(self.n_columns, "column")),
        };
        Problem::MissingColumn { role, expected, have }
    }
}

fn quoted_list(names: &[impl AsRef<str>]) -> String {
    const MAX_LISTED: usize = 12;
    let mut list: Vec<_> = names.iter().take(MAX_LISTED).map(|name| format!("{:?}", name.as_ref())).collect();
    if names.len() > MAX_LISTED {
        list.push(format!("… ({} in all)", names.len()));
    }
    list.join(", ")
}

/// The fields of `row` that start with a date.
pub(crate) fn date_columns(row: &[&[u8]]) -> Vec<usize> {
    (0..row.len()).filter(|&at| looks_like_date(row[at])).collect()
}

/// Whether `row` contains a recognised column name.
pub(crate) fn looks_like_header(row: &[String]) -> bool {
    let known = [SOURCE, DESTINATION, TIME].concat();
    row.iter().any(|field| known.iter().any(|name| field.eq_ignore_ascii_case(name)))
}

/// The format that has the header `names`.
pub(crate) fn format_of_header(names: &[String]) -> Format {
    let is = |at: usize, known: &[&str]| {
        names.get(at).is_some_and(|name| known.iter().any(|known| name.eq_ignore_ascii_case(known)))
    };
    if names.last().is_some_and(|last| last == "comma_separated_list_of_features") && is(0, SOURCE) {
        Format::Jodie
    } else if is(0, TIME) && is(1, SOURCE) && is(2, DESTINATION) {
        Format::Tgb
    } else {
        Format::Text
    }
}

fn is_numeric_list(field: &[u8]) -> bool {
    std::str::from_utf8(field)
        .is_ok_and(|text| !text.is_empty() && text.split(',').all(|part| part.trim().parse::<f32>().is_ok()))
}
