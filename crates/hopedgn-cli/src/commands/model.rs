//! `--model`, `--mite`, `--stats`, `--triads` and `--walks`.

use clap::Args;
use hopedgn::fmt::nearest;
use hopedgn::{ModelName, ModelRegistry};

/// Which model.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags")]
pub(crate) struct ModelArgs {
    /// The model
    #[arg(long, value_name = "M")]
    model: Option<String>,
    /// Add MITE to the model's input: when each neighbour interacted with both nodes [HopeDGN: always]
    #[arg(long)]
    mite: bool,
    /// Add statistics of the pair over its whole past: how often, how recently, in which direction [stats: always]
    #[arg(long)]
    stats: bool,
    /// Add statistics with columns for triads: which common neighbours of the pair met each other, and how recently
    #[arg(long)]
    triads: bool,
    /// Add temporal walks of the pair: what both nodes are connected to, over up to three steps, the recent counting more [TPNet: always]
    #[arg(long)]
    walks: bool,
}

/// Help of `--model` with the names of all models of `registry`.
pub(crate) fn help(registry: &ModelRegistry) -> String {
    let names: Vec<&str> = registry.names().map(ModelName::as_str).collect();
    let (last, others) = names.split_last().expect("there are built-in models");
    format!("The model: {} or {last} [default: {}]", others.join(", "), ModelName::default().as_str())
}

impl ModelArgs {
    pub(crate) fn name(&self, registry: &ModelRegistry) -> anyhow::Result<ModelName> {
        Ok(self.chosen(registry)?.unwrap_or_default())
    }

    /// The model that the user names, if any.
    pub(crate) fn chosen(&self, registry: &ModelRegistry) -> anyhow::Result<Option<ModelName>> {
        let Some(name) = &self.model else { return Ok(None) };
        registry.named(name).map(Some).map_err(|_| {
            let known: Vec<&str> = registry.names().map(ModelName::as_str).collect();
            let meant = nearest(name, known.iter().copied()).map(|meant| format!("; did you mean {meant}?"));
            anyhow::anyhow!("found --model {name}, expected one of {}{}", known.join(", "), meant.unwrap_or_default())
        })
    }

    /// Whether nothing is said about the model.
    pub(crate) fn is_open(&self) -> bool {
        self.model.is_none() && !self.mite && !self.stats && !self.triads
    }

    /// The settings that the other flags stand for.
    pub(crate) fn settings(&self) -> impl Iterator<Item = String> {
        let flags = [
            (self.mite, "model.mite=true"),
            (self.stats || self.triads, "model.stats=true"),
            (self.triads, "model.triads=true"),
            (self.walks, "model.walks=true"),
        ];
        flags.into_iter().filter(|(is_given, _)| *is_given).map(|(_, setting)| setting.to_owned())
    }
}
