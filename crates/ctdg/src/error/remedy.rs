//! What can be done about a [`Problem`](crate::Problem).

use std::fmt;

/// What the reader of an error can do about it.
///
/// Displays as a short imperative phrase that fits behind a semicolon. A front end that has its own way to apply a remedy
/// (a command-line flag, a button) matches on the variant and words it itself; [`Error::finding`](crate::Error::finding)
/// is the message without the remedy.
///
/// ```
/// use ctdg::error::Remedy;
///
/// let error = ctdg::Error::from(ctdg::Problem::TimeBackwards { found: 2.5, previous: 3.0 });
/// assert_eq!(error.remedy(), Some(Remedy::Sort));
/// assert_eq!(Remedy::Sort.to_string(), "sort the events by time, or read with sorting on");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remedy {
    /// Say which columns hold source, destination and time, or that the first row is data.
    NameColumns,
    /// Choose columns by position because names or roles collide.
    ChooseColumnsByPosition,
    /// Sort the events by time.
    Sort,
    /// Declare the unit of Unix times, or make the numbers smaller.
    DeclareTimeUnit,
    /// Declare another unit of the times, or none.
    CorrectTimeUnit,
    /// Write all times as numbers, or all as dates.
    OneKindOfTime,
    /// Quote a date with its clock time, or put a `T` between them.
    JoinDate,
    /// Say which character separates fields; the one that seems to, if any.
    NameDelimiter(Option<char>),
    /// Read ids as text.
    TextIds,
    /// Correct a value, or choose other columns.
    CorrectValue,
    /// Get a complete copy of a truncated file.
    CopyTruncated,
    /// Get a sound copy of a damaged file.
    CopyDamaged,
    /// Repair the log, which keeps every whole event.
    RepairLog,
    /// Stop the process that has the log, or use another folder.
    FreeLog,
    /// Save the text as UTF-8.
    SaveAsUtf8,
    /// Write under another name, because a feature file of that name is in the way.
    WriteElsewhere,
    /// Write a format that keeps the names of sources and destinations apart.
    WriteTypedFormat,
    /// Drop or fill rows without a value.
    FillNulls,
    /// Make the feature file again from the same events.
    RemakeFeatures,
    /// Make every row equally long.
    EvenRows,
    /// Check that the file and the columns are the right ones.
    CheckInput,
    /// Download the dataset of that name.
    Fetch(String),
    /// Look up the known datasets.
    ListDatasets,
    /// Use node names of the input.
    UseInputNames,
    /// Make the file of candidates for these events, or draw candidates.
    DrawCandidates,
    /// Take a smaller k, or allow more memory.
    SmallerK,
    /// Compare with k-DWL instead of searching for an isomorphism.
    CompareWithDwl,
    /// Convert the original file again.
    ConvertAgain,
    /// Build the index again, or remove its folder.
    IndexAgain,
    /// Write the events as `.ctdg` and build its index, which numbers events with 64 bits where it must.
    BuildIndex,
    /// Sort the events by time before they are read.
    SortBefore,
    /// Leave out the oldest events.
    FewerEvents,
    /// Make room on the disk.
    FreeDisk,
    /// Lower the learning rate, or check the input.
    LowerLearningRate,
    /// Score both classes together.
    ScoreBothClasses,
    /// Try again later: the server is busy or down.
    RetryLater,
    /// Download the file by hand and convert it: its address may have changed.
    DownloadByHand,
    /// Check connection and proxy, then try again.
    CheckConnection,
    /// Accept a download that cannot be verified.
    WaiveVerification,
    /// Try again; the download resumes.
    Resume,
    /// Try again from the start; the bad download has been removed.
    Redownload,
    /// Inspect a download that is not the published file.
    InspectFile,
    /// Inspect a dataset that is not the published one.
    InspectDataset,
    /// Wait for the other process.
    Wait,
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NameColumns => {
                "name the source, destination and time columns (by name or by position from 1), or read without a header"
            }
            Self::ChooseColumnsByPosition => "rename one, or choose columns by position",
            Self::Sort => "sort the events by time, or read with sorting on",
            Self::DeclareTimeUnit => {
                "declare the unit if these are Unix times; otherwise subtract a first time, or divide"
            }
            Self::CorrectTimeUnit => "declare another unit of the times, or none",
            Self::OneKindOfTime => "write all times as numbers, or all as dates",
            Self::JoinDate => "put a T between date and clock time, or quote both together",
            Self::NameDelimiter(None) => "say which character separates fields",
            Self::NameDelimiter(Some(guess)) => return write!(f, "say which character separates fields, maybe {guess:?}"),
            Self::TextIds => "read the ids as text",
            Self::CorrectValue => "correct the value, or choose other columns",
            Self::CopyTruncated => "the file was cut off; fetch or copy it again",
            Self::CopyDamaged => "fetch or copy the file again",
            Self::RepairLog => "restore a backup, or repair the log, which keeps every whole event",
            Self::FreeLog => "stop that process, or use another folder",
            Self::SaveAsUtf8 => "save the file as UTF-8",
            Self::WriteElsewhere => "write under another name, or remove this file first",
            Self::WriteTypedFormat => "write .parquet or .ctdg, which keep them apart",
            Self::FillNulls => "drop the rows without a value, or fill them in",
            Self::RemakeFeatures => "make the feature file again from the same events",
            Self::EvenRows => "make every row equally long",
            Self::CheckInput => "check that the right file and columns were given",
            Self::Fetch(name) => return write!(f, "fetch the dataset {name} first"),
            Self::ListDatasets => "check the name against the known datasets",
            Self::UseInputNames => "name nodes as the input does",
            Self::DrawCandidates => {
                "make the file from the same events, with names and times as in the data, or rank without a file"
            }
            Self::SmallerK => "take a smaller k, or allow more memory",
            Self::CompareWithDwl => "compare with k-DWL for k = 3 or 4 instead",
            Self::ConvertAgain => "convert the original file again with this version",
            Self::IndexAgain => "build the index again, or remove its folder",
            Self::BuildIndex => "write the events as .ctdg and build its index, which takes more",
            Self::SortBefore => "sort the events by time before they are read",
            Self::FewerEvents => "leave out the oldest events",
            Self::FreeDisk => "make room on the disk, or use another one",
            Self::LowerLearningRate => {
                "the model has diverged: lower its learning rate, or look for bad values in its input"
            }
            Self::ScoreBothClasses => "score positives and negatives together",
            Self::RetryLater => "the server is busy or down; try again later",
            Self::DownloadByHand => "the file may have moved; download it by hand and convert it",
            Self::CheckConnection => "check the connection and the proxy settings, then try again",
            Self::WaiveVerification => "download it where it can be verified, or waive verification",
            Self::Resume => "try again; the download resumes where it stopped",
            Self::Redownload => "what was downloaded has been removed; try again",
            Self::InspectFile => "this is not the published file; download it by hand and look at it",
            Self::InspectDataset => "this is not the published dataset; download it by hand and look at it",
            Self::Wait => "wait for the other one to end",
        })
    }
}
