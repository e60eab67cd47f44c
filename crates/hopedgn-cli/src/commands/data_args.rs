//! `D` on the command line: a bundled or known name, or a path with ways to read it.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context as _;
use clap::{Args, Parser, ValueEnum};
use ctdg::Problem;
use ctdg::dataset::{self, ColumnRef, FeatureColumns, Format, ReadOptions};
use ctdg::event::{EventStream, IdKind};
use ctdg::fetch;

use crate::output::Output;
use crate::progress;

/// The data set and, for a file, how to read it.
#[derive(Debug, Clone, Args)]
pub(crate) struct Input {
    /// A bundled or fetched data set (see `hopedgn data list`), or a file
    #[arg(value_name = "D")]
    pub(crate) data: String,
    #[command(flatten)]
    pub(crate) from: ReadArgs,
}

/// Where data sets lie and how files are read.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReadArgs {
    #[command(flatten)]
    pub(crate) folder: DataFolder,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

/// Where fetched data sets lie.
#[derive(Debug, Clone, Args)]
pub(crate) struct DataFolder {
    /// Folder of fetched data sets [default: hopedgn in the user's data folder]
    #[arg(long, value_name = "DIR", env = "HOPEDGN_DATA_DIR", hide_env_values = true)]
    data_dir: Option<PathBuf>,
}

/// Where fetched data sets lie unless a folder is named.
pub(crate) fn own_folder() -> Option<PathBuf> {
    std::env::home_dir().map(|home| home.join(".local/share/hopedgn"))
}

impl DataFolder {
    pub(crate) fn path(&self) -> anyhow::Result<PathBuf> {
        if let Some(folder) = &self.data_dir {
            return Ok(folder.clone());
        }
        own_folder().context("found no home folder, expected one; name a folder with --data-dir")
    }

    /// Where the fetched data set `name` lies, or would.
    pub(crate) fn file(&self, name: &str) -> anyhow::Result<PathBuf> {
        Ok(self.path()?.join(name).with_extension(fetch::EXTENSION))
    }
}

/// How to read a file of events.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Reading a file")]
pub(crate) struct Reading {
    /// Format of the file; auto looks at its name and first line
    #[arg(long, value_enum, default_value_t = FormatArg::Auto)]
    pub(crate) format: FormatArg,
    /// Source column, by name or by position from 1
    #[arg(long, value_name = "COLUMN")]
    pub(crate) src: Option<ColumnRef>,
    /// Destination column
    #[arg(long, value_name = "COLUMN")]
    pub(crate) dst: Option<ColumnRef>,
    /// Time column
    #[arg(long, value_name = "COLUMN")]
    pub(crate) time: Option<ColumnRef>,
    /// Label column
    #[arg(long, value_name = "COLUMN")]
    pub(crate) label: Option<ColumnRef>,
    /// Feature columns: `none`, `rest`, or columns separated by commas [default: those called feat…]
    #[arg(long, value_name = "COLUMNS")]
    pub(crate) features: Option<String>,
    /// The first row is data, not names
    #[arg(long, conflicts_with = "header")]
    pub(crate) no_header: bool,
    /// The first row is names, not data
    #[arg(long)]
    pub(crate) header: bool,
    /// Field separator: one character, or `tab`
    #[arg(long, value_name = "CHAR", value_parser = parse_delimiter)]
    pub(crate) delimiter: Option<u8>,
    /// Whether node ids are integers or text
    #[arg(long, value_enum, default_value_t = IdsArg::Auto)]
    pub(crate) ids: IdsArg,
    /// Sources and destinations are different nodes even when their ids are equal
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    pub(crate) bipartite: Option<bool>,
    /// Put events in order of time instead of refusing a file that goes backwards
    #[arg(long)]
    pub(crate) sort: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum FormatArg {
    Auto,
    /// CSV, TSV, or blanks
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
    /// Our own .ctdg
    Binary,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum IdsArg {
    /// Integers if the first row's are
    Auto,
    Integer,
    Text,
}

fn parse_delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() => Ok(*byte),
        _ => Err("expected one character, or `tab`".into()),
    }
}

impl Reading {
    fn options(&self) -> anyhow::Result<ReadOptions> {
        let features = match self.features.as_deref() {
            None => FeatureColumns::Auto,
            Some("none") => FeatureColumns::None,
            Some("rest") => FeatureColumns::Rest,
            Some(list) => FeatureColumns::Chosen(list.split(',').map(str::parse).collect::<Result<_, _>>()?),
        };
        Ok(ReadOptions {
            format: match self.format {
                FormatArg::Auto => Format::Auto,
                FormatArg::Text => Format::Text,
                FormatArg::Jodie => Format::Jodie,
                FormatArg::Tgb => Format::Tgb,
                FormatArg::Konect => Format::Konect,
                FormatArg::Dyglib => Format::DyGLib,
                FormatArg::Parquet => Format::Parquet,
                FormatArg::Binary => Format::Binary,
            },
            src: self.src.clone(),
            dst: self.dst.clone(),
            time: self.time.clone(),
            label: self.label.clone(),
            features,
            header: (self.header || self.no_header).then_some(self.header),
            delimiter: self.delimiter,
            ids: match self.ids {
                IdsArg::Auto => IdKind::Auto,
                IdsArg::Integer => IdKind::Integer,
                IdsArg::Text => IdKind::Text,
            },
            bipartite: self.bipartite,
            sort: self.sort,
            progress: None,
        })
    }
}

/// Events and where they came from.
pub(crate) struct Loaded {
    /// What the person asked for.
    pub(crate) name: String,
    pub(crate) stream: EventStream,
    pub(crate) seconds: f64,
}

impl ReadArgs {
    /// Whether no flag says how to read a file.
    pub(crate) fn is_as_if_untyped(&self) -> bool {
        #[derive(Debug, Parser)]
        struct Untyped {
            #[command(flatten)]
            from: ReadArgs,
        }
        let untyped = Untyped::try_parse_from(["hopedgn"]);
        untyped.is_ok_and(|untyped| format!("{:?}", untyped.from.reading) == format!("{:?}", self.reading))
    }
}

impl Input {
    pub(crate) fn load(&self, output: &Output) -> anyhow::Result<Loaded> {
        self.from.load(&self.data, output)
    }
}

impl ReadArgs {
    /// Loads the data set or file called `data`. A name wins over a file of the same name; `./NAME` is the file.
    pub(crate) fn load(&self, data: &str, output: &Output) -> anyhow::Result<Loaded> {
        let start = Instant::now();
        let stream = if data == dataset::COLLEGEMSG {
            dataset::collegemsg()?
        } else if fetch::Source::named(data).is_ok() {
            let file = self.folder.file(data)?;
            if !file.exists() {
                return Err(ctdg::Error::from(Problem::NotFetched { name: data.to_owned() }).into());
            }
            dataset::read(&file, &ReadOptions::default())?
        } else if Path::new(data).exists() {
            read(Path::new(data), &self.reading, output)?
        } else {
            let known: Vec<&str> = names().collect();
            let (name, known) = (data.to_owned(), known.join(", "));
            return Err(ctdg::Error::from(Problem::UnknownData { name, known }).into());
        };
        Ok(Loaded { name: data.to_owned(), stream, seconds: start.elapsed().as_secs_f64() })
    }
}

/// The names that data sets have.
fn names() -> impl Iterator<Item = &'static str> {
    let fetched = fetch::Source::all().iter().map(|source| source.name.as_str());
    std::iter::once(dataset::COLLEGEMSG).chain(fetched)
}

/// Reads a file with a bar.
fn read(path: &Path, reading: &Reading, output: &Output) -> anyhow::Result<EventStream> {
    let bar = progress::bytes(output, "reading", 0);
    let report = |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    };
    let stream = dataset::read(path, &ReadOptions { progress: Some(&report), ..reading.options()? });
    bar.finish_and_clear();
    Ok(stream?)
}
