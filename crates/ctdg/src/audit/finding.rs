//! Findings: a verdict on each check, in words.

use serde::Serialize;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// A score can rest on it without knowing who meets whom.
    Leak,
    /// Worth knowing when numbers are compared.
    Note,
    /// Nothing to report.
    Ok,
}

impl Verdict {
    /// Its name in files and tables.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Leak => "leak",
            Self::Note => "note",
            Self::Ok => "ok",
        }
    }

    /// Leak from `leak` on, note from `note` on.
    pub(super) fn from(value: f64, note: f64, leak: f64) -> Self {
        match value {
            value if value >= leak => Self::Leak,
            value if value >= note => Self::Note,
            _ => Self::Ok,
        }
    }

    pub(super) fn note_if(is_notable: bool) -> Self {
        if is_notable { Self::Note } else { Self::Ok }
    }
}

/// What is checked; in this order where verdicts are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// The padded length alone.
    Padding,
    /// Events of the same time in earlier batches.
    SameMoment,
    /// "Never met" against past pairs.
    NeverMet,
    /// Times rounded to `f32`.
    F32Times,
    /// Events that share their time.
    Ties,
    /// Events equal in source, destination and time.
    Duplicates,
    /// Events of a node with itself.
    SelfLoops,
    /// Pairs that met before.
    Repeats,
    /// Nodes that training does not have.
    NewNodes,
    /// Rate and popularity in training and test.
    Drift,
    /// Silences.
    Gaps,
    /// Untrained heuristics.
    Heuristics,
}

impl Check {
    /// Its title in reports.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Padding => "padded length",
            Self::SameMoment => "same moment",
            Self::NeverMet => "never met",
            Self::F32Times => "f32 times",
            Self::Ties => "ties",
            Self::Duplicates => "duplicates",
            Self::SelfLoops => "self-loops",
            Self::Repeats => "repeats",
            Self::NewNodes => "new nodes",
            Self::Drift => "drift",
            Self::Gaps => "gaps",
            Self::Heuristics => "heuristics",
        }
    }
}

/// The outcome of one check.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// What was checked.
    pub check: Check,
    /// How bad it is.
    pub verdict: Verdict,
    /// The number that decides, if there is one.
    pub value: Option<f64>,
    /// What was measured, in words.
    pub measured: String,
    /// Why it matters.
    pub explanation: &'static str,
    /// What to do about it.
    pub remedy: &'static str,
}
