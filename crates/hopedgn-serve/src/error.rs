//! Why a server cannot start or go on.

use std::path::PathBuf;

/// Result of every fallible function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a server cannot start or go on: what was found, what was expected, what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of the library below.
    #[error(transparent)]
    Hopedgn(#[from] hopedgn::Error),
    /// The operating system refused something.
    #[error("could not {action} {what}: {source}")]
    Io {
        /// What was attempted, e.g. `listen on`.
        action: &'static str,
        /// On what.
        what: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// An address that other machines reach, without tokens.
    #[error("found the address {address} without tokens, expected tokens where other machines reach the server")]
    OpenToAll {
        /// The address.
        address: std::net::SocketAddr,
    },
    /// A file of tokens, or of a certificate, that cannot be used.
    #[error("{}: found {found}, expected {expected}", file.display())]
    Secret {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        found: String,
        /// What it should hold.
        expected: &'static str,
    },
}

impl From<ctdg::Error> for Error {
    fn from(error: ctdg::Error) -> Self {
        Self::Hopedgn(error.into())
    }
}

impl Error {
    pub(crate) fn io(action: &'static str, what: impl std::fmt::Display, source: std::io::Error) -> Self {
        Self::Io { action, what: format!("{what}"), source }
    }

    /// The kind of failure as one stable word, for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Hopedgn(error) => error.code(),
            Self::Io { .. } => "io",
            Self::OpenToAll { .. } => "open-to-all",
            Self::Secret { .. } => "invalid-secret",
        }
    }
}
