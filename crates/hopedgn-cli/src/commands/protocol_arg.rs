//! `--protocol`: the rules of a benchmark.

use clap::ValueEnum;
use hopedgn::config::Protocol;

/// Whose rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ProtocolArg {
    /// DyGLib and the paper: some nodes masked, AP and AUC against negatives
    #[default]
    Dyglib,
    /// TGB: no node masked, the rank among many candidates
    Tgb,
}

impl From<ProtocolArg> for Protocol {
    fn from(protocol: ProtocolArg) -> Self {
        match protocol {
            ProtocolArg::Dyglib => Self::Dyglib,
            ProtocolArg::Tgb => Self::Tgb,
        }
    }
}
