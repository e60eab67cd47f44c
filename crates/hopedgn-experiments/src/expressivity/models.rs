//! The tested models, with small widths.

use serde::Serialize;

use super::{Case, TOLERANCE};
use hopedgn::Result;
use hopedgn::config::{ModelConfig, ModelName, ModelSettings, Replacing};

/// The k-DWL test that bounds a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Bound {
    /// Proposition 2: models that embed nodes independently.
    #[serde(rename = "1-DWL")]
    One,
    /// Proposition 4: HopeDGN.
    #[serde(rename = "2-DWL")]
    Two,
}

impl Bound {
    /// Order of the test.
    #[must_use]
    pub fn k(self) -> usize {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::One => "1-DWL",
            Self::Two => "2-DWL",
        }
    }
}

/// A model with small widths.
#[derive(Debug, Clone, PartialEq)]
pub struct TestedModel {
    /// Name of the model, and of what is changed in it.
    pub name: String,
    /// Its settings.
    pub config: ModelConfig,
    /// Its bound, where a proposition states one.
    pub bound: Option<Bound>,
}

impl TestedModel {
    /// Whether it is global HopeDGN without changes: the model of Proposition 5.
    #[must_use]
    pub fn is_global(&self) -> bool {
        matches!(&self.config.settings, ModelSettings::HopeDgnGlobal(settings) if settings.replacing == Replacing::All)
    }

    /// Logits that differ by less count as equal; `two` is the round in which 2-DWL separates, if it does.
    pub(super) fn tolerance(&self, two: Option<usize>) -> f32 {
        if self.config.name() == ModelName::HopeDgnGlobal && two.is_none() { 0.0 } else { TOLERANCE }
    }

    /// Estimated milliseconds for `case`.
    pub(super) fn cost(&self, case: &Case) -> f64 {
        let n = case.a.n_nodes() as f64;
        let n_pairs = if case.pairs.is_some() { 1.0 } else { n * n };
        let degree = 2.0 * case.a.len() as f64 / n;
        1.0 + match self.config.name() {
            ModelName::HopeDgnGlobal => 4e-2 * n * n * n,
            ModelName::Tgat | ModelName::Pint => 1e-2 * n_pairs * degree * degree,
            _ => 2e-2 * n_pairs * degree,
        }
    }

    /// Estimated milliseconds of one training.
    pub(super) fn cost_of_training(&self) -> f64 {
        if self.config.name() == ModelName::HopeDgnGlobal { 5_000.0 } else { 500.0 }
    }
}

/// All models, four of them also with MITE, and global HopeDGN also with its local equation.
pub fn all() -> Result<Vec<TestedModel>> {
    use ModelName::{DyRep, GraphMixer, HopeDgn, HopeDgnGlobal, Jodie, Tcl, Tgat, Tgn};
    let mut models = Vec::new();
    for name in ModelName::ALL {
        let bound = match name {
            Tgat | Tcl | GraphMixer | Jodie | DyRep | Tgn => Some(Bound::One),
            HopeDgn | HopeDgnGlobal => Some(Bound::Two),
            _ => None,
        };
        models.push(TestedModel { name: name.as_str().to_owned(), config: small(name, &[])?, bound });
        if name == HopeDgnGlobal {
            let config = small(name, &["replacing=met"])?;
            models.push(TestedModel { name: "hopedgn-global, met".to_owned(), config, bound });
        }
        if [Tgat, Tcl, GraphMixer, Tgn].contains(&name) {
            let config = small(name, &["mite=true"])?;
            models.push(TestedModel { name: format!("{} + MITE", name.as_str()), config, bound: None });
        }
    }
    Ok(models)
}

/// `name` with histories long enough for all events of every family but `long-ago`, and without random sampling.
fn small(name: ModelName, more: &[&str]) -> Result<ModelConfig> {
    let sizes = ["length=25", "neighbors=24", "k=8", "d-channel=6", "d-time=8", "d-mite=8", "d-cooccurrence=6"];
    let others = ["n-heads=2", "dropout=0", "beta=0.1", "sampling=recent"];
    // Wide enough that width does not limit what the equation separates.
    let own: &[&str] =
        if name == ModelName::HopeDgnGlobal { &["d-out=32", "n-blocks=3", "d-mite=16"] } else { &["d-out=16"] };
    ModelConfig::new(name).with_known(&[&sizes[..], &others, own, more].concat())
}
