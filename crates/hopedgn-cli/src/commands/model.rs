//! Which model: the flags.

use clap::Args;
use clap::builder::PossibleValuesParser;
use hopedgn::config::ModelName;

/// Which model.
#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    /// The model
    #[arg(long, value_name = "M", default_value = ModelName::HopeDgn.as_str(),
          value_parser = PossibleValuesParser::new(ModelName::ALL.map(ModelName::as_str)))]
    model: String,
    /// Let the model see when each neighbour met both nodes; HopeDGN does anyway
    #[arg(long)]
    mite: bool,
}

impl ModelArgs {
    pub(crate) fn name(&self) -> ModelName {
        ModelName::named(&self.model).unwrap_or_default()
    }

    /// What it sets besides.
    pub(crate) fn settings(&self) -> Option<String> {
        self.mite.then(|| "model.mite=true".to_owned())
    }
}
