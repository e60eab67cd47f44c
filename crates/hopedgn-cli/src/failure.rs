//! An error as one JSON document: what `--json` prints on stdout when a command cannot run.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use ctdg::error::{Place, printable_lines};
use hopedgn::Error;
use hopedgn::tensor::Error as TensorError;
use serde::Serialize;

use crate::remedy;

/// `{"error": {"code": …, "message": …}}`, with the place where one is known.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Failure {
    error: Facts,
}

#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct Facts {
    /// A stable word: that of the library's error, or one of [`USAGE`], [`INVALID_ARGUMENT`], [`INVALID_INPUT`], [`IO`].
    code: &'static str,
    message: String,
    /// The file or folder at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// From 1, header included.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    /// Of a binary table, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<u64>,
    /// From 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column_name: Option<String>,
}

/// Arguments that do not parse.
const USAGE: &str = "usage";
/// An argument whose value, or the file it names, cannot be used.
const INVALID_ARGUMENT: &str = "invalid-argument";
/// The same, at a known place of that file.
const INVALID_INPUT: &str = "invalid-input";
/// The memory is used up; the allocator says so itself.
const OUT_OF_MEMORY: &str = "out-of-memory";
/// The operating system refused a file operation; the libraries use the same word.
const IO: &str = "io";

impl Failure {
    /// The code of an allocation that failed.
    pub(crate) const OUT_OF_MEMORY: &'static str = OUT_OF_MEMORY;

    /// The error that ends a command.
    pub(crate) fn of(error: &anyhow::Error, flags: &[String]) -> Self {
        // A command states a place as context where its own code reads a file.
        let mut place = error.downcast_ref::<Place>().cloned().unwrap_or_default();
        let mut code = if place == Place::default() { INVALID_ARGUMENT } else { INVALID_INPUT };
        for cause in error.chain() {
            let (word, inner) = if let Some(error) = cause.downcast_ref::<Error>() {
                (error.code(), place_of(error))
            } else if let Some(error) = cause.downcast_ref::<ctdg::Error>() {
                (error.code(), error.place().clone())
            } else if let Some(error) = cause.downcast_ref::<TensorError>() {
                (error.code(), Place::default())
            } else if cause.is::<io::Error>() {
                (IO, Place::default())
            } else {
                continue;
            };
            code = word;
            place = Place {
                file: place.file.or(inner.file),
                line: place.line.or(inner.line),
                row: place.row.or(inner.row),
                column: place.column.or(inner.column),
                name: place.name.or(inner.name),
            };
            break;
        }
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let Place { file, line, row, column, name } = place;
        let message = printable_lines(&remedy::message(error, flags)).into_owned();
        Self { error: Facts { code, message, file: file.as_deref().map(text), line, row, column, column_name: name } }
    }

    /// Arguments that the parser refused, its message in one line.
    pub(crate) fn of_usage(error: &clap::Error) -> Self {
        let text = error.render().to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        let is_about_help = |part: &&str| part.starts_with("Usage:") || part.starts_with("For more information");
        let parts = text.split("\n\n").map(str::trim).take_while(|part| !is_about_help(part));
        let lines = parts.map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "));
        let message = printable_lines(&lines.collect::<Vec<_>>().join("; ")).into_owned();
        Self { error: Facts { code: USAGE, message, ..Facts::default() } }
    }
}

/// Whether `--json` is among arguments that may not parse.
pub(crate) fn wants_json<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> bool {
    arguments.into_iter().take_while(|word| word.as_ref() != "--").any(|word| word.as_ref() == "--json")
}

/// The file or folder that an error is about.
fn place_of(error: &Error) -> Place {
    match error {
        Error::Data(error) => error.place().clone(),
        Error::Experiment { file, line, .. } => {
            Place { line: line.and_then(|line| u64::try_from(line).ok()), ..Place::file(file) }
        }
        Error::Checkpoint { file: path, .. }
        | Error::Damaged { file: path, .. }
        | Error::Run { folder: path, .. }
        | Error::RunFolderTaken { folder: path }
        | Error::NotARunFolder { folder: path }
        | Error::NoWeights { folder: path }
        | Error::NoCheckpoint { folder: path }
        | Error::RunFolderBusy { folder: path }
        | Error::TrainingNotComplete { folder: path } => Place::file(path),
        _ => Place::default(),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;
    use clap::Parser as _;
    use ctdg::Problem;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[arg(value_name = "D")]
        _data: String,
        #[arg(long = "json")]
        _json: bool,
    }

    fn facts(error: impl Into<anyhow::Error>) -> Facts {
        Failure::of(&error.into(), &["sort".to_owned()]).error
    }

    #[test]
    fn errors_of_the_libraries_keep_their_code_and_place() {
        let backwards = || {
            let place = Place::file("x.csv").line(3).column(3, "time");
            ctdg::Error::at(place, Problem::TimeBackwards { found: 2.0, previous: 3.0 })
        };
        let expected = Facts {
            code: "time-backwards",
            message:
                "x.csv, line 3, column 3 (time): found the time 2 after 3, expected times that never go backwards; \
                      sort the file, or let --sort do it"
                    .into(),
            file: Some("x.csv".into()),
            line: Some(3),
            row: None,
            column: Some(3),
            column_name: Some("time".into()),
        };
        assert_eq!(facts(backwards()), expected);
        assert_eq!(facts(Error::from(backwards())), expected, "the same inside an error of hopedgn");
        let context = facts(anyhow::Error::from(backwards()).context("reading"));
        assert_eq!((context.code, context.line), ("time-backwards", Some(3)), "also behind a context");
        let folder = facts(Error::NotARunFolder { folder: "runs/x".into() });
        assert_eq!((folder.code, folder.file.as_deref()), ("not-a-run-folder", Some("runs/x")));
        assert_eq!(facts(TensorError::NoGpu { reason: "no driver".into() }).code, "no-gpu");
    }

    #[test]
    fn messages_of_the_command_line_have_a_code_by_what_is_known() {
        assert_eq!(facts(anyhow::anyhow!("found --k 0, expected 1 to 4")).code, INVALID_ARGUMENT);
        let at = facts(anyhow::anyhow!("found 1 field").context(Place::file("pairs.csv").line(2)));
        assert_eq!((at.code, at.file.as_deref(), at.line), (INVALID_INPUT, Some("pairs.csv"), Some(2)));
        assert_eq!(at.message, "pairs.csv, line 2: found 1 field");
        let refused: io::Result<()> = Err(io::ErrorKind::PermissionDenied.into());
        assert_eq!(facts(refused.context("could not create runs").unwrap_err()).code, IO);
    }

    #[test]
    fn usage_errors_are_one_line_without_help() {
        let message = |arguments: &[&str]| {
            let error = Line::try_parse_from(["hopedgn"].iter().chain(arguments)).unwrap_err();
            Failure::of_usage(&error).error.message
        };
        assert_eq!(message(&["--jsn"]), "unexpected argument '--jsn' found; tip: a similar argument exists: '--json'");
        assert_eq!(message(&[]), "the following required arguments were not provided: <D>");
    }

    #[test]
    fn json_is_wanted_before_the_end_of_flags_only() {
        assert!(wants_json(["train", "--json", "--oops"]));
        assert!(!wants_json(["data", "info", "--", "--json"]) && !wants_json(["train", "--set", "json"]));
    }
}
