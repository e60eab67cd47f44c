//! The tested models, with small widths.

use ctdg::wl::{Dwl, Reach};
use serde::Serialize;

use super::{Case, TOLERANCE};
use hopedgn::Result;
use hopedgn::config::{ModelConfig, ModelName, ModelSettings, Replacing};

/// The test that bounds a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Bound {
    /// Proposition 2: models that embed nodes independently.
    #[serde(rename = "1-DWL")]
    One,
    /// Proposition 4: HopeDGN.
    #[serde(rename = "2-DWL")]
    Two,
    /// Models whose nodes are known by their events with both nodes of the pair, and by each other.
    #[serde(rename = "marked DWL")]
    Marked,
    /// The same, by nodes that met the pair alone: relational HopeDGN.
    #[serde(rename = "marked DWL, met")]
    MarkedMet,
}

impl Bound {
    /// All of them, in the order of [`Verdicts::round`](super::Verdicts::round).
    pub const ALL: [Self; 4] = [Self::One, Self::Two, Self::Marked, Self::MarkedMet];

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::One => "1-DWL",
            Self::Two => "2-DWL",
            Self::Marked => "marked DWL",
            Self::MarkedMet => "marked DWL, met",
        }
    }

    /// The test.
    pub(super) fn test(self) -> Result<Dwl> {
        Ok(match self {
            Self::One => Dwl::new(1)?,
            Self::Two => Dwl::new(2)?,
            Self::Marked => Dwl::marked(Reach::All)?,
            Self::MarkedMet => Dwl::marked(Reach::Met)?,
        })
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

/// A model with a setting changed, as a row of its own below the model.
struct ModelVariant {
    of: ModelName,
    name: &'static str,
    setting: &'static str,
    bound: Option<Bound>,
}

const VARIANTS: &[ModelVariant] = &[
    variant(ModelName::HopeDgn, "hopedgn + relations", "relations=true", Some(Bound::MarkedMet)),
    variant(ModelName::HopeDgnGlobal, "hopedgn-global, met", "replacing=met", Some(Bound::Two)),
    // Two hops, each node known by its events with the pair.
    variant(ModelName::Tgat, "tgat + MITE", "mite=true", Some(Bound::Marked)),
    variant(ModelName::Tcl, "tcl + MITE", "mite=true", None),
    variant(ModelName::GraphMixer, "graphmixer + MITE", "mite=true", None),
    variant(ModelName::Tgn, "tgn + MITE", "mite=true", None),
];

const fn variant(of: ModelName, name: &'static str, setting: &'static str, bound: Option<Bound>) -> ModelVariant {
    ModelVariant { of, name, setting, bound }
}

/// All models, each followed by its variants.
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
        for variant in VARIANTS.iter().filter(|variant| variant.of == name) {
            let config = small(name, &[variant.setting])?;
            models.push(TestedModel { name: variant.name.to_owned(), config, bound: variant.bound });
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
