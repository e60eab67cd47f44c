//! The argument `D`: a bundled or fetched dataset by name, or a file of events with the flags that say how to read it.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use ctdg::Problem;
use ctdg::dataset::{self, ColumnRef, FeatureColumns, Format, ReadOptions, ReadReport, TimeUnit};
use ctdg::event::{EventStream, IdKind, Spill};
use ctdg::fetch;
use hopedgn::Events;

use crate::output::Output;
use crate::plural::count;
use crate::progress;

/// The folder of fetched datasets, and how a file is read.
///
/// Flatten it last: arguments after it would be listed under its help heading.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Reading a file")]
pub(crate) struct ReadArgs {
    #[command(flatten)]
    pub(crate) folder: DataFolder,
    #[command(flatten)]
    file: FileArgs,
}

/// The folder of fetched datasets.
#[derive(Debug, Clone, Args)]
pub(crate) struct DataFolder {
    /// Folder of fetched datasets [default: ~/.local/share/hopedgn]
    #[arg(long, value_name = "DIR", env = "HOPEDGN_DATA_DIR", hide_env_values = true)]
    data_dir: Option<PathBuf>,
}

/// The folder of fetched datasets unless `--data-dir` names another.
pub(crate) fn default_data_folder() -> Option<PathBuf> {
    std::env::home_dir().map(|home| home.join(".local/share/hopedgn"))
}

impl DataFolder {
    pub(crate) fn path(&self) -> anyhow::Result<PathBuf> {
        if let Some(folder) = &self.data_dir {
            return Ok(folder.clone());
        }
        default_data_folder().context("found no home folder, expected one; name a folder with --data-dir")
    }

    /// The file of the fetched dataset `name`, whether it exists or not.
    pub(crate) fn file(&self, name: &str) -> anyhow::Result<PathBuf> {
        Ok(self.path()?.join(name).with_extension(fetch::EXTENSION))
    }
}

/// How to read a file of events.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
struct FileArgs {
    /// Format of the file
    #[arg(long, value_enum, default_value_t = FormatArg::Auto)]
    format: FormatArg,
    /// Source column, by name or by position from 1
    #[arg(long, value_name = "COLUMN", value_parser = parse_column)]
    src: Option<ColumnRef>,
    /// Destination column
    #[arg(long, value_name = "COLUMN", value_parser = parse_column)]
    dst: Option<ColumnRef>,
    /// Time column
    #[arg(long, value_name = "COLUMN", value_parser = parse_column)]
    time: Option<ColumnRef>,
    /// Label column
    #[arg(long, value_name = "COLUMN", value_parser = parse_column)]
    label: Option<ColumnRef>,
    /// Feature columns: `none`, `rest`, `numeric`, or columns separated by commas [default: those called feat…]
    #[arg(long, value_name = "COLUMNS", value_parser = parse_features)]
    features: Option<FeatureColumns>,
    /// The first row is data, not column names
    #[arg(long, conflicts_with = "header")]
    no_header: bool,
    /// The first row is column names, not data
    #[arg(long)]
    header: bool,
    /// Field separator: one character, or `tab`
    #[arg(long, value_name = "CHAR", value_parser = parse_delimiter)]
    delimiter: Option<u8>,
    /// Whether node ids are integers or text
    #[arg(long, value_enum, default_value_t = IdsArg::Auto)]
    ids: IdsArg,
    /// Sources and destinations are different nodes even when their ids are equal
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    bipartite: Option<bool>,
    /// Sort events by time instead of refusing a file whose times go backwards
    #[arg(long)]
    sort: bool,
    /// The times are Unix times in this unit: read them as dates, to the microsecond
    #[arg(long, value_enum, value_name = "UNIT")]
    time_unit: Option<UnitArg>,
    /// Drop events that repeat an earlier one in everything: ids, time, label, features
    #[arg(long)]
    dedup: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum UnitArg {
    /// Seconds since 1970
    S,
    /// Milliseconds
    Ms,
    /// Microseconds
    Us,
    /// Nanoseconds, rounded to microseconds
    Ns,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FormatArg {
    /// Decided by the file's name and first line
    Auto,
    /// CSV, TSV or columns separated by blanks
    Text,
    /// JODIE's raw CSV
    Jodie,
    /// TGB's edge list
    Tgb,
    /// KONECT's out.* file
    Konect,
    /// `ml_NAME.csv` with its two .npy files
    Dyglib,
    Parquet,
    /// .ctdg, the memory-mapped form that `data convert` writes
    Binary,
    /// The folder of a log, to which `serve` appends
    Log,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum IdsArg {
    /// Integers if those of the first row are
    Auto,
    Integer,
    Text,
}

/// Parses a column: digits are a position. (`From<&str>`, which clap would take, makes everything a name.)
pub(crate) fn parse_column(text: &str) -> Result<ColumnRef, ctdg::Error> {
    text.parse()
}

/// Parses a field separator.
pub(crate) fn parse_delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        b"\"" | b"\n" | b"\r" => Err("expected a character that neither quotes fields nor ends lines".into()),
        [byte] if byte.is_ascii() => Ok(*byte),
        _ => Err("expected one ASCII character, or `tab`".into()),
    }
}

fn parse_features(text: &str) -> Result<FeatureColumns, ctdg::Error> {
    Ok(match text {
        "none" => FeatureColumns::None,
        "rest" => FeatureColumns::Rest,
        "numeric" => FeatureColumns::Numeric,
        list => FeatureColumns::Chosen(list.split(',').map(str::parse).collect::<Result<_, _>>()?),
    })
}

impl ReadArgs {
    /// The flags as data, which a run folder can keep.
    pub(crate) fn options(&self) -> ReadOptions {
        let FileArgs { format, ids, time_unit, .. } = self.file;
        let file = self.file.clone();
        ReadOptions {
            format: match format {
                FormatArg::Auto => Format::Auto,
                FormatArg::Text => Format::Text,
                FormatArg::Jodie => Format::Jodie,
                FormatArg::Tgb => Format::Tgb,
                FormatArg::Konect => Format::Konect,
                FormatArg::Dyglib => Format::DyGLib,
                FormatArg::Parquet => Format::Parquet,
                FormatArg::Binary => Format::Binary,
                FormatArg::Log => Format::Log,
            },
            src: file.src,
            dst: file.dst,
            time: file.time,
            label: file.label,
            features: file.features.unwrap_or(FeatureColumns::Auto),
            header: (file.header || file.no_header).then_some(file.header),
            delimiter: file.delimiter,
            ids: match ids {
                IdsArg::Auto => IdKind::Auto,
                IdsArg::Integer => IdKind::Integer,
                IdsArg::Text => IdKind::Text,
            },
            bipartite: file.bipartite,
            sort: file.sort,
            time_unit: time_unit.map(|unit| match unit {
                UnitArg::S => TimeUnit::S,
                UnitArg::Ms => TimeUnit::Ms,
                UnitArg::Us => TimeUnit::Us,
                UnitArg::Ns => TimeUnit::Ns,
            }),
            dedup: file.dedup,
            spill: None,
        }
    }

    /// The flags, and `below` for what they leave open.
    pub(crate) fn options_over(&self, below: &ReadOptions) -> ReadOptions {
        let (typed, below) = (self.options(), below.clone());
        ReadOptions {
            format: if typed.format == Format::Auto { below.format } else { typed.format },
            src: typed.src.or(below.src),
            dst: typed.dst.or(below.dst),
            time: typed.time.or(below.time),
            label: typed.label.or(below.label),
            features: if typed.features == FeatureColumns::Auto { below.features } else { typed.features },
            header: typed.header.or(below.header),
            delimiter: typed.delimiter.or(below.delimiter),
            ids: if typed.ids == IdKind::Auto { below.ids } else { typed.ids },
            bipartite: typed.bipartite.or(below.bipartite),
            sort: typed.sort || below.sort,
            time_unit: typed.time_unit.or(below.time_unit),
            dedup: typed.dedup || below.dedup,
            spill: below.spill,
        }
    }

    /// Whether no flag says how to read a file.
    pub(crate) fn is_default(&self) -> bool {
        self.options() == ReadOptions::default()
    }

    /// Loads the dataset or file called `data`, a file as these flags say.
    pub(crate) fn load(&self, data: &str, output: &Output) -> anyhow::Result<Events> {
        self.load_with(data, &self.options(), output)
    }

    /// Loads the dataset or file called `data`. A name wins over a file of the same name; `./NAME` is the file. `options` apply
    /// to a file that the user named, not to bundled and fetched datasets.
    pub(crate) fn load_with(&self, data: &str, options: &ReadOptions, output: &Output) -> anyhow::Result<Events> {
        self.load_reported(data, options, output).map(|(events, _)| events)
    }

    /// [`ReadArgs::load_with`], and what of the file is not in the events.
    pub(crate) fn load_reported(
        &self,
        data: &str,
        options: &ReadOptions,
        output: &Output,
    ) -> anyhow::Result<(Events, ReadReport)> {
        if data == dataset::COLLEGEMSG {
            return Ok((Events::collegemsg()?, ReadReport::default()));
        }
        if fetch::Source::named(data).is_ok() {
            let file = self.folder.file(data)?;
            if !file.exists() {
                return Err(ctdg::Error::from(Problem::NotFetched { name: data.to_owned() }).into());
            }
            let stream = dataset::read(&file, &ReadOptions::default())?;
            return Ok((Events::from_stream(data, stream), ReadReport::default()));
        }
        let file = Path::new(data);
        if !file.exists() {
            let known: Vec<&str> = names().collect();
            let (name, known) = (data.to_owned(), known.join(", "));
            return Err(ctdg::Error::from(Problem::UnknownData { name, known }).into());
        }
        let (stream, report) = read(file, options, output)?;
        if options.dedup {
            output.remark(format_args!("{} dropped", count(report.n_duplicates, "repeated event")));
        }
        Ok((Events::from_stream(data, stream).with_source(file, options), report))
    }

    /// The file of `data`, if it is one.
    pub(crate) fn file_of(&self, data: &str) -> anyhow::Result<Option<PathBuf>> {
        Ok(match data {
            dataset::COLLEGEMSG => None,
            name if fetch::Source::named(name).is_ok() => Some(self.folder.file(name)?),
            file => Some(file.into()),
        })
    }
}

/// Spilling to the folder of the file `out`, so that the columns of a stream together keep to `memory` bytes.
pub(crate) fn spill_beside(out: &Path, memory: u64) -> Spill {
    /// Columns of events, and one for those that are made from others.
    const N_COLUMNS: u64 = 8;
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Spill { folder: folder.to_owned(), memory: usize::try_from(memory / N_COLUMNS).unwrap_or(usize::MAX) }
}

/// Names of bundled and fetchable datasets.
fn names() -> impl Iterator<Item = &'static str> {
    let fetchable = fetch::Source::all().iter().map(|source| source.name.as_str());
    std::iter::once(dataset::COLLEGEMSG).chain(fetchable)
}

/// Reads a file with a progress bar.
fn read(path: &Path, options: &ReadOptions, output: &Output) -> anyhow::Result<(EventStream, ReadReport)> {
    let bar = progress::bytes(output, "reading", 0);
    let report = |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    };
    let loaded = dataset::read_with_report(path, options, &report);
    bar.finish_and_clear();
    Ok(loaded?)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        read: ReadArgs,
    }

    fn options(flags: &[&str]) -> ReadOptions {
        Line::try_parse_from([&["hopedgn"], flags].concat()).expect("valid flags").read.options()
    }

    #[test]
    fn options_are_default_without_flags() {
        assert_eq!(options(&[]), ReadOptions::default());
        assert_eq!(
            options(&["--data-dir", "elsewhere"]),
            ReadOptions::default(),
            "a folder is not a way to read a file"
        );
    }

    #[test]
    fn digits_are_the_position_of_a_column() {
        let flags = ["--src=2", "--dst=whom", "--time=1", "--label=4"];
        let ReadOptions { src, dst, time, label, .. } = options(&flags);
        let position = |at| Some(ColumnRef::Position(at));
        assert_eq!([src, dst, time, label], [position(2), Some("whom".into()), position(1), position(4)]);
        assert!(Line::try_parse_from(["hopedgn", "--src=0"]).is_err(), "positions count from 1");
    }

    #[test]
    fn flags_win_over_other_options_one_by_one() {
        let below: ReadOptions = serde_json::from_str(
            r#"{"format": "text", "src": "a", "dst": "b", "time": "t", "delimiter": ";", "ids": "text", "sort": true, "header": true}"#,
        )
        .expect("options");
        let over = |flags: &[&str]| {
            let line = Line::try_parse_from([&["hopedgn"], flags].concat()).expect("valid flags");
            line.read.options_over(&below)
        };
        assert_eq!(over(&[]), below);
        let changed = over(&["--dst=2", "--no-header", "--dedup", "--ids=integer"]);
        let expected = ReadOptions {
            dst: Some(ColumnRef::Position(2)),
            header: Some(false),
            dedup: true,
            ids: IdKind::Integer,
            ..below.clone()
        };
        assert_eq!(changed, expected);
    }

    #[test]
    fn every_flag_changes_its_option_and_survives_json() {
        let flags = [
            "--format=text",
            "--src=a",
            "--dst=2",
            "--time=t",
            "--label=l",
            "--features=x,7",
            "--no-header",
            "--delimiter=tab",
            "--ids=text",
            "--bipartite",
            "--sort",
            "--time-unit=ms",
            "--dedup",
        ];
        for flag in flags {
            let options = options(&[flag]);
            assert_ne!(options, ReadOptions::default(), "{flag}");
            let json = serde_json::to_string(&options).expect("JSON");
            assert_eq!(serde_json::from_str::<ReadOptions>(&json).expect("options"), options, "{json}");
        }
    }
}
