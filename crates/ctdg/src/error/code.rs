//! Stable words for kinds of failure, for programs that read errors.

use super::{Error, Problem};

impl Error {
    /// The kind of failure as one stable word, for programs: `time-backwards`, `missing-column`, ….
    ///
    /// Messages may change between versions, these words do not.
    ///
    /// ```
    /// use ctdg::event::EventStream;
    ///
    /// let error = EventStream::from_events([(1, 2, 3.0), (1, 2, 2.0)]).unwrap_err();
    /// assert_eq!(error.code(), "time-backwards");
    /// ```
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.problem().code()
    }
}

impl Problem {
    /// [`Error::code`].
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Io { .. } => "io",
            Self::LogInUse => "log-in-use",
            Self::DamagedLog { .. } => "damaged-log",
            Self::Empty => "no-events",
            Self::MissingColumn { .. } => "missing-column",
            Self::DuplicateColumn { .. } => "duplicate-column",
            Self::UnknownDelimiter { .. } => "unknown-delimiter",
            Self::RowLength { .. } => "row-length",
            Self::NotANumber { .. } => "not-a-number",
            Self::NonFiniteTime { .. } => "non-finite-time",
            Self::InexactTime { .. } => "inexact-time",
            Self::MixedTimes { .. } => "mixed-times",
            Self::SplitDate { .. } => "split-date",
            Self::NoUnixTime { .. } => "no-unix-time",
            Self::NonFiniteValue { .. } => "non-finite-value",
            Self::TimeBackwards { .. } | Self::DateBackwards { .. } => "time-backwards",
            Self::NegativeId { .. } => "negative-id",
            Self::IdOverflow { .. } => "id-overflow",
            Self::TooMany { .. } => "too-many",
            Self::StraySidecar => "stray-feature-file",
            Self::SharedNames => "shared-names",
            Self::Null => "null-value",
            Self::WrongType { .. } => "wrong-type",
            Self::FeatureRows { .. } => "feature-rows",
            Self::FeatureWidth { .. } => "feature-width",
            Self::Truncated { .. } => "truncated-file",
            Self::Corrupt { .. } => "corrupt-file",
            Self::Version { .. } => "format-version",
            Self::UnusableIndex { .. } => "unusable-index",
            Self::WrongFormat { .. } => "wrong-format",
            Self::NotUtf8 => "not-utf-8",
            Self::Setting { .. } => "invalid-setting",
            Self::UnknownData { .. } => "unknown-data",
            Self::NotFetched { .. } => "not-fetched",
            Self::NoNegative => "no-negative",
            Self::NoCandidates { .. } => "no-candidates",
            Self::NanScore => "nan-score",
            Self::OneClass { .. } => "one-class",
            Self::LabelCount { .. } => "label-count",
            Self::NothingScored { .. } => "nothing-scored",
            Self::UnknownNode { .. } => "unknown-node",
            Self::WlBudget { .. } => "wl-memory",
            Self::WlSearch { .. } => "wl-search",
            Self::NotFetchable { .. } => "not-fetchable",
            Self::Addresses { .. } => "invalid-addresses",
            Self::Unverified { .. } => "unverified-download",
            Self::Unreachable { .. } => "unreachable",
            Self::Http { .. } => "http-status",
            Self::CutOff { .. } => "download-cut-off",
            Self::Checksum { .. } => "download-checksum",
            Self::TooLarge { .. } => "download-too-large",
            Self::UnsafeMember { .. } => "unsafe-archive",
            Self::MissingMember { .. } => "incomplete-archive",
            Self::WrongCounts { .. } => "wrong-counts",
            Self::Busy { .. } => "fetch-busy",
            Self::NoMirror { .. } => "no-mirror",
        }
    }
}
