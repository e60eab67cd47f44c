//! The kinds of failure, ordered by stage: file, table, values, use, network.

use crate::error::limit::{GROWING, IN_MEMORY, IN_MEMORY_OF, TO_SORT};
use crate::error::{Error, Remedy, counted};

/// What went wrong, with the facts: what was found and what was expected. [`Problem::remedy`] says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The operating system refused a file operation.
    #[error("could not {action}: {source}")]
    Io {
        /// What was attempted, e.g. `open`.
        action: &'static str,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A file without a single event.
    #[error("found no events, expected at least one")]
    Empty,
    /// No column for a required role.
    #[error("found no {role} column among {have}, expected one of {expected}")]
    MissingColumn {
        /// `source`, `destination` or `time`.
        role: &'static str,
        /// Accepted names.
        expected: String,
        /// The columns of the file.
        have: String,
    },
    /// Two columns of one name, or two roles on one column.
    #[error("found {what} twice, expected it once")]
    DuplicateColumn {
        /// The repeated column.
        what: String,
    },
    /// Text in which no separator of fields is recognised.
    #[error("found one field {found}, expected fields separated by commas, tabs, semicolons or blanks")]
    UnknownDelimiter {
        /// The first line, quoted and shortened.
        found: String,
        /// A character that seems to separate fields.
        guess: Option<char>,
    },
    /// A row shorter or longer than the others.
    #[error("found {}, expected {expected}", counted(*found, "field"))]
    RowLength {
        /// Fields in the row.
        found: u64,
        /// Fields of the header, or of the first row.
        expected: u64,
    },
    /// Text where a number is expected.
    #[error("found {found}, expected {expected}")]
    NotANumber {
        /// The text, quoted and shortened.
        found: String,
        /// e.g. `a number`.
        expected: &'static str,
    },
    /// A NaN or infinite time.
    #[error("found the time {found}, expected a finite number")]
    NonFiniteTime {
        /// The value as text.
        found: String,
    },
    /// An integer time that a 64-bit float cannot hold.
    #[error(
        "found the time {found}, which would be rounded to {rounded}, expected one that a 64-bit float holds exactly"
    )]
    InexactTime {
        /// The time as text.
        found: String,
        /// What it would become.
        rounded: String,
    },
    /// A column of times that holds both numbers and dates.
    #[error("found {found}, expected {expected} as in the first row")]
    MixedTimes {
        /// The value and its kind.
        found: String,
        /// `a number` or `a date`.
        expected: &'static str,
    },
    /// A date and its clock time in two fields, because blanks separate fields.
    #[error("found the date {date} and the clock time {clock} in two fields, expected one field for the time")]
    SplitDate {
        /// The date, quoted.
        date: String,
        /// The clock time, quoted.
        clock: String,
    },
    /// A Unix time that is no date between the years 1 and 9999.
    #[error("found the time {found}, expected {unit} since 1970 that give a date between the years 1 and 9999")]
    NoUnixTime {
        /// The time as text.
        found: String,
        /// `seconds`, `milliseconds`, …
        unit: &'static str,
    },
    /// A log that another process appends to.
    #[error("found a log that another process has open for writing, expected it to be free")]
    LogInUse,
    /// Bytes of a log that are no records.
    #[error("found damage in bytes {from} to {to}, expected the record of {events} from number {first} on")]
    DamagedLog {
        /// The first of them.
        from: u64,
        /// Behind the last of them.
        to: u64,
        /// How many events were there.
        events: String,
        /// The sequence number of the first one.
        first: u64,
    },
    /// A NaN or infinite feature or label.
    #[error("found {found}, expected a finite number")]
    NonFiniteValue {
        /// The value as text.
        found: String,
    },
    /// Time goes backwards and sorting was not asked for.
    #[error("found the time {found} after {previous}, expected times that never go backwards")]
    TimeBackwards {
        /// This event's time.
        found: f64,
        /// The time before it.
        previous: f64,
    },
    /// Dates that go backwards, and sorting was not asked for.
    #[error("found the date {found} after {previous}, expected times that never go backwards")]
    DateBackwards {
        /// This event's time.
        found: String,
        /// The time before it.
        previous: String,
    },
    /// A negative integer id.
    #[error("found the negative node id {found}, expected an integer of at least 0")]
    NegativeId {
        /// The id.
        found: String,
    },
    /// An integer id beyond 64 bits.
    #[error("found the node id {found}, expected at most {max}", max = u64::MAX)]
    IdOverflow {
        /// The id as text.
        found: String,
    },
    /// More of something than this crate counts.
    #[error("found more than {max} {what}, expected at most that many")]
    TooMany {
        /// `nodes`, `events`, …
        what: &'static str,
        /// The limit.
        max: u64,
    },
    /// A feature file that would be read together with the file about to be written.
    #[error("found this file next to the one to write, expected none, because it would be read as its features")]
    StraySidecar,
    /// A bipartite stream whose sources and destinations share names, for a format with one namespace.
    #[error("found names that sources and destinations share, expected different ones in a text file")]
    SharedNames,
    /// A null where a value is expected (Parquet).
    #[error("found no value, expected one in every row")]
    Null,
    /// A column whose type does not fit its role (Parquet, npy).
    #[error("found values of type {found}, expected {expected}")]
    WrongType {
        /// The type in the file.
        found: String,
        /// Accepted types.
        expected: &'static str,
    },
    /// Feature rows and events (or nodes) do not agree in number.
    #[error("found {found} feature rows, expected {expected}, one for each of the {of}")]
    FeatureRows {
        /// Rows in the file.
        found: u64,
        /// Rows needed.
        expected: u64,
        /// `events`, `nodes`, …
        of: &'static str,
    },
    /// A row with another number of features than the first.
    #[error("found {found} features, expected {expected} as in the first row")]
    FeatureWidth {
        /// Features in this row.
        found: u64,
        /// Features in the first row.
        expected: u64,
    },
    /// A compressed stream ends too early.
    #[error("found the end of the {format} data too early, expected more of it")]
    Truncated {
        /// `gzip`, `zstd`, …
        format: &'static str,
    },
    /// Bytes that violate their format.
    #[error("found damaged {format} data ({detail}), expected a sound file")]
    Corrupt {
        /// `gzip`, `zstd`, `Parquet`, …
        format: &'static str,
        /// What the decoder says.
        detail: String,
    },
    /// A `.ctdg` file of another version.
    #[error("found version {found} of the format, expected {expected}")]
    Version {
        /// The file's.
        found: u64,
        /// The one this program reads.
        expected: u64,
    },
    /// An index that is damaged, or of other events.
    #[error("found {found}, expected the index of the events beside it")]
    UnusableIndex {
        /// What it is.
        found: String,
    },
    /// A file of another format than asked for.
    #[error("found {found}, expected {expected}")]
    WrongFormat {
        /// The format it seems to have.
        found: String,
        /// The format asked for.
        expected: String,
    },
    /// Bytes that are not UTF-8 text.
    #[error("found bytes that are not UTF-8, expected text")]
    NotUtf8,
    /// A setting outside its range.
    #[error("found {name} = {found}, expected {expected}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// Its value.
        found: String,
        /// The range.
        expected: String,
    },
    /// A name that is neither bundled, known nor a file.
    #[error("found no dataset or file called {name}, expected one of {known} or a path")]
    UnknownData {
        /// The name asked for.
        name: String,
        /// What is known.
        known: String,
    },
    /// A known dataset that has not been fetched yet.
    #[error("the dataset {name} is not on this machine")]
    NotFetched {
        /// The dataset.
        name: String,
    },
    /// No pair left to draw a negative from.
    #[error("found no pair to draw a negative from, expected a source and destination that the batch does not hold")]
    NoNegative,
    /// A file of candidates that lacks an event.
    #[error("found no candidates for the event {src}, {dst} at {time}, expected a line for each event to rank")]
    NoCandidates {
        /// Name of its source.
        src: String,
        /// Name of its destination.
        dst: String,
        /// Its time.
        time: String,
    },
    /// A score that is not a number.
    #[error("found a score that is not a number (NaN), expected a number")]
    NanScore,
    /// Scores of one class only, for which neither average precision nor ROC AUC is defined.
    #[error("found {positives} positives and {negatives} negatives, expected at least one of each")]
    OneClass {
        /// Scores labelled as positives.
        positives: u64,
        /// Scores labelled as negatives.
        negatives: u64,
    },
    /// Labels and scores do not agree in number.
    #[error("found {found} labels, expected {expected}, one for each score")]
    LabelCount {
        /// Labels given.
        found: u64,
        /// Scores given.
        expected: u64,
    },
    /// A mean over nothing.
    #[error("found nothing scored, expected at least one {what}")]
    NothingScored {
        /// `batch` or `rank`.
        what: &'static str,
    },
    /// No node of that name.
    #[error("found no node called {name}, expected a node of the stream")]
    UnknownNode {
        /// The name asked for.
        name: String,
    },
    /// A k-DWL run beyond the memory limit.
    #[error("found {test} with {tuples} tuples, which takes about {needed}, expected at most {allowed}; {largest}")]
    WlBudget {
        /// The test asked for.
        test: String,
        /// Tuples of all graphs.
        tuples: u128,
        /// Memory estimated.
        needed: String,
        /// Memory allowed.
        allowed: String,
        /// The largest dimension within the limit, in words.
        largest: String,
    },
    /// An isomorphism search beyond the step limit.
    #[error("found neither an isomorphism nor a proof that there is none in {steps} steps, expected one of them")]
    WlSearch {
        /// Steps taken.
        steps: u64,
    },
    /// A name without an address to fetch it from.
    #[error("found no address for a dataset called {name}, expected one of {known}")]
    NotFetchable {
        /// The name asked for.
        name: String,
        /// The names that have one.
        known: String,
    },
    /// An invalid list of addresses.
    #[error("found {found} in the list of addresses, expected {expected}")]
    Addresses {
        /// The offending value, or what the parser says.
        found: String,
        /// What is expected there.
        expected: &'static str,
    },
    /// An address whose file could be changed on its way, or could not be verified.
    #[error("found {why} for {url}, expected an https address and a published checksum")]
    Unverified {
        /// The address.
        url: String,
        /// `plain http` or `no checksum`.
        why: &'static str,
    },
    /// No response from an address.
    #[error("could not reach {url}: {detail}")]
    Unreachable {
        /// The address.
        url: String,
        /// The network error.
        detail: String,
    },
    /// A response without the file.
    #[error("found status {status} at {url}, expected 200")]
    Http {
        /// The address.
        url: String,
        /// HTTP status.
        status: u16,
    },
    /// A transfer that ended early.
    #[error("found {found} bytes of {url} before the transfer stopped ({cause}), expected {expected}")]
    CutOff {
        /// The address.
        url: String,
        /// Bytes received.
        found: u64,
        /// Bytes of the whole file, if the server stated it.
        expected: String,
        /// The network error.
        cause: String,
    },
    /// A file whose checksum is not the published one.
    #[error("found the checksum {found} for {url}, expected {expected}")]
    Checksum {
        /// The address.
        url: String,
        /// What was computed.
        found: String,
        /// What the publisher states.
        expected: String,
    },
    /// A download or archive beyond its size limit.
    #[error("found more than {limit} bytes in {what}, expected at most that many")]
    TooLarge {
        /// The address or the archive's member.
        what: String,
        /// The limit.
        limit: u64,
    },
    /// An archive that would write outside its folder.
    #[error("found the member {member} in the archive, expected only names that stay inside its folder")]
    UnsafeMember {
        /// The name, quoted.
        member: String,
    },
    /// An archive that lacks a file.
    #[error("found no file {member} in the archive, expected one")]
    MissingMember {
        /// The name.
        member: String,
    },
    /// A fetched dataset of another size than published.
    #[error("found {nodes} nodes and {events} events, expected {expected_nodes} and {expected_events}")]
    WrongCounts {
        /// Nodes found.
        nodes: u64,
        /// Events found.
        events: u64,
        /// Nodes published.
        expected_nodes: u64,
        /// Events published.
        expected_events: u64,
    },
    /// A concurrent fetch of the same dataset into the same folder.
    #[error("found another fetch of {name} into this folder running, expected to be the only one")]
    Busy {
        /// The dataset.
        name: String,
    },
    /// Every mirror of a dataset failed.
    #[error("found no working mirror of {name}: {}", listed(.failures))]
    NoMirror {
        /// The dataset.
        name: String,
        /// One failure per mirror, in the order they were tried.
        failures: Vec<Error>,
    },
}

fn listed(failures: &[Error]) -> String {
    failures.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | ")
}

impl Problem {
    /// A temporary file that could not be written.
    pub(crate) fn spill(source: std::io::Error) -> Self {
        Self::Io { action: "write a temporary file", source }
    }

    /// What can be done about it, where something can.
    #[must_use]
    pub fn remedy(&self) -> Option<Remedy> {
        Some(match self {
            Self::MissingColumn { .. } => Remedy::NameColumns,
            Self::DuplicateColumn { .. } => Remedy::ChooseColumnsByPosition,
            Self::TimeBackwards { .. } | Self::DateBackwards { .. } => Remedy::Sort,
            Self::InexactTime { .. } => Remedy::DeclareTimeUnit,
            Self::NoUnixTime { .. } => Remedy::CorrectTimeUnit,
            Self::MixedTimes { .. } => Remedy::OneKindOfTime,
            Self::SplitDate { .. } => Remedy::JoinDate,
            Self::UnknownDelimiter { guess, .. } => Remedy::NameDelimiter(*guess),
            Self::Unverified { .. } => Remedy::WaiveVerification,
            Self::NegativeId { .. }
            | Self::IdOverflow { .. }
            | Self::NotANumber { expected: "an integer node id", .. } => Remedy::TextIds,
            Self::NotANumber { .. }
            | Self::NonFiniteTime { .. }
            | Self::NonFiniteValue { .. }
            | Self::WrongType { .. } => Remedy::CorrectValue,
            Self::Truncated { .. } => Remedy::CopyTruncated,
            Self::Corrupt { .. } => Remedy::CopyDamaged,
            Self::DamagedLog { .. } => Remedy::RepairLog,
            Self::LogInUse => Remedy::FreeLog,
            Self::NotUtf8 => Remedy::SaveAsUtf8,
            Self::StraySidecar => Remedy::WriteElsewhere,
            Self::SharedNames => Remedy::WriteTypedFormat,
            Self::Null => Remedy::FillNulls,
            Self::FeatureRows { .. } => Remedy::RemakeFeatures,
            Self::FeatureWidth { .. } | Self::RowLength { .. } => Remedy::EvenRows,
            Self::Empty => Remedy::CheckInput,
            Self::NotFetched { name } => Remedy::Fetch(name.clone()),
            Self::UnknownData { .. } => Remedy::ListDatasets,
            Self::UnknownNode { .. } => Remedy::UseInputNames,
            Self::NoCandidates { .. } => Remedy::DrawCandidates,
            Self::WlBudget { .. } => Remedy::SmallerK,
            Self::WlSearch { .. } => Remedy::CompareWithDwl,
            Self::Version { .. } => Remedy::ConvertAgain,
            Self::UnusableIndex { .. } => Remedy::IndexAgain,
            Self::TooMany { what: IN_MEMORY | IN_MEMORY_OF, .. } => Remedy::BuildIndex,
            Self::TooMany { what: TO_SORT, .. } => Remedy::SortBefore,
            Self::TooMany { what: GROWING, .. } => Remedy::FewerEvents,
            Self::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => Remedy::FreeDisk,
            Self::NanScore => Remedy::LowerLearningRate,
            Self::OneClass { .. } => Remedy::ScoreBothClasses,
            Self::Http { status: 408 | 425 | 429 | 500.., .. } => Remedy::RetryLater,
            Self::Http { .. } => Remedy::DownloadByHand,
            Self::Unreachable { .. } => Remedy::CheckConnection,
            Self::CutOff { .. } => Remedy::Resume,
            Self::Checksum { .. } => Remedy::Redownload,
            Self::TooLarge { .. } | Self::UnsafeMember { .. } | Self::MissingMember { .. } => Remedy::InspectFile,
            Self::WrongCounts { .. } => Remedy::InspectDataset,
            Self::Busy { .. } => Remedy::Wait,
            _ => return None,
        })
    }
}
