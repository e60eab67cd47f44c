//! `--model` and `--mite`.

use clap::Args;
use hopedgn::{ModelName, ModelRegistry};

/// Which model.
#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    /// The model: hopedgn, hopedgn-global, dygformer, tgat, tcl, graphmixer, cawn, jodie, dyrep, tgn or pint
    #[arg(long, value_name = "M", default_value = ModelName::HopeDgn.as_str())]
    model: String,
    /// Add MITE to the model's input: when each neighbour interacted with both nodes [HopeDGN: always]
    #[arg(long)]
    mite: bool,
}

impl ModelArgs {
    pub(crate) fn name(&self, registry: &ModelRegistry) -> anyhow::Result<ModelName> {
        registry.named(&self.model).map_err(|_| {
            let known: Vec<&str> = registry.names().map(ModelName::as_str).collect();
            anyhow::anyhow!("found --model {}, expected one of {}", self.model, known.join(", "))
        })
    }

    /// The settings that the other flags stand for.
    pub(crate) fn settings(&self) -> Option<String> {
        self.mite.then(|| "model.mite=true".to_owned())
    }
}
