//! Settings of a model: those that all models have, and those of each.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::bounds::{check_walks, refuse, within};
use super::registry::ModelRegistry;
use super::{
    CawnSettings, DyGFormerSettings, GlobalHopeDgnSettings, GraphMixerSettings, HopeDgnSettings, JodieSettings,
    PintSettings, StatsSettings, TclSettings, TgatSettings, TgnSettings, TpNetSettings, global, graphmixer, stats,
    table, tpnet,
};
use crate::collate::{MiteSettings, StatisticsSettings};
use crate::fmt::in_words;
use crate::{Error, Result};

/// The name of a model.
///
/// ```
/// use hopedgn::config::ModelName;
/// assert_eq!(ModelName::named("dygformer")?, ModelName::DyGFormer);
/// assert_eq!(ModelName::DyGFormer.title(), "DyGFormer");
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ModelName {
    /// HopeDGN over the latest events of both nodes.
    #[default]
    HopeDgn,
    /// HopeDGN over all pairs of nodes.
    HopeDgnGlobal,
    /// Transformer over the histories of both nodes, with co-occurrence counts.
    DyGFormer,
    /// Temporal attention over one or two hops of neighbours.
    Tgat,
    /// Transformer with cross-attention between both neighbourhoods.
    Tcl,
    /// MLP-Mixer over the latest events.
    GraphMixer,
    /// Causal anonymous walks.
    Cawn,
    /// Memory projected by elapsed time.
    Jodie,
    /// Memory with messages from the neighbourhood of the other node.
    DyRep,
    /// Memory with temporal attention over neighbours.
    Tgn,
    /// Memory with injective aggregation and relative positions.
    Pint,
    /// MLP-Mixer over the latest events, with temporal walks by random projections.
    TpNet,
    /// A perceptron over exact statistics of the pair.
    Stats,
    /// A model registered with a [`ModelRegistry`], by its name there.
    Custom(&'static str),
}

impl ModelName {
    /// The built-in models.
    pub const ALL: [Self; 13] = [
        Self::HopeDgn,
        Self::HopeDgnGlobal,
        Self::DyGFormer,
        Self::Tgat,
        Self::Tcl,
        Self::GraphMixer,
        Self::Cawn,
        Self::Jodie,
        Self::DyRep,
        Self::Tgn,
        Self::Pint,
        Self::TpNet,
        Self::Stats,
    ];

    /// As in configurations and reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HopeDgn => "hopedgn",
            Self::HopeDgnGlobal => "hopedgn-global",
            Self::DyGFormer => "dygformer",
            Self::Tgat => "tgat",
            Self::Tcl => "tcl",
            Self::GraphMixer => "graphmixer",
            Self::Cawn => "cawn",
            Self::Jodie => "jodie",
            Self::DyRep => "dyrep",
            Self::Tgn => "tgn",
            Self::Pint => "pint",
            Self::TpNet => "tpnet",
            Self::Stats => "stats",
            Self::Custom(name) => name,
        }
    }

    /// As its authors write it; for a custom model, its name.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::HopeDgn => "HopeDGN",
            Self::HopeDgnGlobal => "Global HopeDGN",
            Self::DyGFormer => "DyGFormer",
            Self::Tgat => "TGAT",
            Self::Tcl => "TCL",
            Self::GraphMixer => "GraphMixer",
            Self::Cawn => "CAWN",
            Self::Jodie => "JODIE",
            Self::DyRep => "DyRep",
            Self::Tgn => "TGN",
            Self::Pint => "PINT",
            Self::TpNet => "TPNet",
            Self::Stats => "Statistics",
            Self::Custom(name) => name,
        }
    }

    /// The built-in model called `name`; [`ModelRegistry::named`] also knows custom ones.
    pub fn named(name: &str) -> Result<Self> {
        ModelRegistry::default().named(name)
    }
}

impl Serialize for ModelName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A name that is not built in is taken for that of a custom model; [`ModelRegistry`] refuses it unless it was registered.
impl<'de> Deserialize<'de> for ModelName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        // The name lives as long as the program: files name few models.
        Ok(Self::named(&name).unwrap_or_else(|_| Self::Custom(name.leak())))
    }
}

/// Settings that every model has.
///
/// ```
/// use hopedgn::config::{CommonSettings, ModelConfig, ModelName};
///
/// assert_eq!(ModelConfig::new(ModelName::Tgat).common, CommonSettings::DEFAULT);
/// assert_eq!(CommonSettings { dropout: 0.0, ..CommonSettings::DEFAULT }.d_out, 172);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct CommonSettings {
    /// Width of an embedding and of a memory, `d`.
    pub d_out: usize,
    /// Width of the time encoding, `Dt`.
    pub d_time: usize,
    /// Dropout probability in training.
    pub dropout: f32,
    /// Statistics and walks of pairs beside what the model reads.
    #[serde(flatten)]
    pub statistics: StatisticsSettings,
}

impl CommonSettings {
    /// The defaults of most models.
    pub const DEFAULT: Self = Self { d_out: 172, d_time: 100, dropout: 0.1, statistics: StatisticsSettings::DEFAULT };

    fn check(&self) -> Result<()> {
        within(&[
            ("model.d-out", self.d_out, 1 << 14),
            ("model.d-time", self.d_time, 1 << 14),
            ("model.d-stats", self.statistics.d_stats, 1 << 14),
        ])?;
        check_walks(&self.statistics.walks)?;
        if !(0.0..1.0).contains(&self.dropout) {
            return refuse("model.dropout", self.dropout, "a number from 0 up to but not including 1");
        }
        Ok(())
    }
}

impl Default for CommonSettings {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Settings of a custom model as they stand under `[model]`; [`CustomModel::Settings`](super::CustomModel) gives them types.
///
/// [`CustomModel`](super::CustomModel) has an example of a model that has them.
#[derive(Debug, Clone, PartialEq)]
pub struct CustomSettings {
    /// The name it is registered by.
    pub name: &'static str,
    /// Every setting with its value.
    pub values: toml::Table,
}

impl Serialize for CustomSettings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.values.serialize(serializer)
    }
}

/// The settings that only some models have.
///
/// ```
/// use hopedgn::config::{ModelConfig, ModelName, ModelSettings};
///
/// let config = ModelConfig::new(ModelName::Tgat);
/// let ModelSettings::Tgat(settings) = &config.settings else { unreachable!() };
/// assert_eq!(settings.past.neighbors, 20);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ModelSettings {
    /// Of [`HopeDgn`](super::HopeDgn).
    HopeDgn(HopeDgnSettings),
    /// Of [`GlobalHopeDgn`](super::GlobalHopeDgn).
    HopeDgnGlobal(GlobalHopeDgnSettings),
    /// Of [`DyGFormer`](super::DyGFormer).
    DyGFormer(DyGFormerSettings),
    /// Of [`Tgat`](super::Tgat).
    Tgat(TgatSettings),
    /// Of [`Tcl`](super::Tcl).
    Tcl(TclSettings),
    /// Of [`GraphMixer`](super::GraphMixer).
    GraphMixer(GraphMixerSettings),
    /// Of [`Cawn`](super::Cawn).
    Cawn(CawnSettings),
    /// Of [`Jodie`](super::Jodie).
    Jodie(JodieSettings),
    /// Of [`Tgn`](super::Tgn) as DyRep.
    DyRep(TgnSettings),
    /// Of [`Tgn`](super::Tgn).
    Tgn(TgnSettings),
    /// Of [`Pint`](super::Pint).
    Pint(PintSettings),
    /// Of [`TpNet`](super::TpNet).
    TpNet(TpNetSettings),
    /// Of [`Stats`](super::Stats).
    Stats(StatsSettings),
    /// Of a model registered by a user.
    Custom(CustomSettings),
}

impl ModelSettings {
    /// The same model with the settings of `table`, which has all of them and no others.
    fn read(&self, table: toml::Table) -> Result<Self, toml::de::Error> {
        Ok(match self {
            Self::HopeDgn(_) => Self::HopeDgn(table.try_into()?),
            Self::HopeDgnGlobal(_) => Self::HopeDgnGlobal(table.try_into()?),
            Self::DyGFormer(_) => Self::DyGFormer(table.try_into()?),
            Self::Tgat(_) => Self::Tgat(table.try_into()?),
            Self::Tcl(_) => Self::Tcl(table.try_into()?),
            Self::GraphMixer(_) => Self::GraphMixer(table.try_into()?),
            Self::Cawn(_) => Self::Cawn(table.try_into()?),
            Self::Jodie(_) => Self::Jodie(table.try_into()?),
            Self::DyRep(_) => Self::DyRep(table.try_into()?),
            Self::Tgn(_) => Self::Tgn(table.try_into()?),
            Self::Pint(_) => Self::Pint(table.try_into()?),
            Self::TpNet(_) => Self::TpNet(table.try_into()?),
            Self::Stats(_) => Self::Stats(table.try_into()?),
            Self::Custom(custom) => Self::Custom(CustomSettings { name: custom.name, values: table }),
        })
    }
}

/// Which model, and its settings.
///
/// In a `config.toml` all of them stand under `[model]`.
///
/// ```
/// use hopedgn::config::{ModelConfig, ModelName};
/// let config = ModelConfig::new(ModelName::HopeDgn).with("k", 16)?.with("dropout", 0.0)?;
/// assert_eq!(config.mite().map(|mite| mite.k), Some(16));
///
/// let error = config.with("neighbors", 5).unwrap_err().to_string();
/// assert!(error.contains("HopeDGN has no setting `neighbors`, which belongs to TGAT, TCL"), "{error}");
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// What all models have.
    pub common: CommonSettings,
    /// What only some models have; decides which model it is.
    pub settings: ModelSettings,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self::new(ModelName::HopeDgn)
    }
}

impl ModelConfig {
    /// The defaults of a built-in model; [`ModelRegistry::defaults`] has those of custom ones, which here have no settings.
    #[must_use]
    pub fn new(name: ModelName) -> Self {
        let common = match name {
            ModelName::HopeDgnGlobal => global::COMMON,
            ModelName::GraphMixer => graphmixer::COMMON,
            ModelName::TpNet => tpnet::COMMON,
            ModelName::Stats => stats::COMMON,
            _ => CommonSettings::DEFAULT,
        };
        let settings = match name {
            ModelName::HopeDgn => ModelSettings::HopeDgn(HopeDgnSettings::default()),
            ModelName::HopeDgnGlobal => ModelSettings::HopeDgnGlobal(GlobalHopeDgnSettings::default()),
            ModelName::DyGFormer => ModelSettings::DyGFormer(DyGFormerSettings::default()),
            ModelName::Tgat => ModelSettings::Tgat(TgatSettings::default()),
            ModelName::Tcl => ModelSettings::Tcl(TclSettings::default()),
            ModelName::GraphMixer => ModelSettings::GraphMixer(GraphMixerSettings::default()),
            ModelName::Cawn => ModelSettings::Cawn(CawnSettings::default()),
            ModelName::Jodie => ModelSettings::Jodie(JodieSettings::default()),
            ModelName::DyRep => ModelSettings::DyRep(TgnSettings::default()),
            ModelName::Tgn => ModelSettings::Tgn(TgnSettings::default()),
            ModelName::Pint => ModelSettings::Pint(PintSettings::default()),
            ModelName::TpNet => ModelSettings::TpNet(TpNetSettings::default()),
            ModelName::Stats => ModelSettings::Stats(StatsSettings::default()),
            ModelName::Custom(name) => ModelSettings::Custom(CustomSettings { name, values: toml::Table::new() }),
        };
        Self { common, settings }
    }

    /// Which model.
    #[must_use]
    pub fn name(&self) -> ModelName {
        match &self.settings {
            ModelSettings::HopeDgn(_) => ModelName::HopeDgn,
            ModelSettings::HopeDgnGlobal(_) => ModelName::HopeDgnGlobal,
            ModelSettings::DyGFormer(_) => ModelName::DyGFormer,
            ModelSettings::Tgat(_) => ModelName::Tgat,
            ModelSettings::Tcl(_) => ModelName::Tcl,
            ModelSettings::GraphMixer(_) => ModelName::GraphMixer,
            ModelSettings::Cawn(_) => ModelName::Cawn,
            ModelSettings::Jodie(_) => ModelName::Jodie,
            ModelSettings::DyRep(_) => ModelName::DyRep,
            ModelSettings::Tgn(_) => ModelName::Tgn,
            ModelSettings::Pint(_) => ModelName::Pint,
            ModelSettings::TpNet(_) => ModelName::TpNet,
            ModelSettings::Stats(_) => ModelName::Stats,
            ModelSettings::Custom(custom) => ModelName::Custom(custom.name),
        }
    }

    /// The MITE settings, of models that have them.
    #[must_use]
    pub fn mite(&self) -> Option<&MiteSettings> {
        match &self.settings {
            ModelSettings::HopeDgn(settings) => Some(&settings.mite),
            ModelSettings::DyGFormer(settings) => Some(&settings.mite),
            ModelSettings::Tgat(settings) => Some(&settings.mite),
            ModelSettings::Tcl(settings) => Some(&settings.mite),
            ModelSettings::GraphMixer(settings) => Some(&settings.mite),
            ModelSettings::Cawn(settings) => Some(&settings.mite),
            ModelSettings::DyRep(settings) | ModelSettings::Tgn(settings) => Some(&settings.mite),
            ModelSettings::Pint(settings) => Some(&settings.mite),
            ModelSettings::HopeDgnGlobal(_)
            | ModelSettings::Jodie(_)
            | ModelSettings::TpNet(_)
            | ModelSettings::Stats(_)
            | ModelSettings::Custom(_) => None,
        }
    }

    /// Whether MITE is switched on.
    #[must_use]
    pub fn has_mite(&self) -> bool {
        self.mite().is_some_and(|mite| mite.enabled)
    }

    /// The width of the transformer, of the models that are one over channels.
    #[must_use]
    pub fn encoder_width(&self) -> Option<usize> {
        match &self.settings {
            ModelSettings::HopeDgn(settings) => Some(settings.encoder_width()),
            ModelSettings::DyGFormer(settings) => Some(settings.encoder_width()),
            _ => None,
        }
    }

    /// The heads of that transformer; 1 for other models.
    #[must_use]
    pub fn encoder_heads(&self) -> usize {
        match &self.settings {
            ModelSettings::HopeDgn(settings) => settings.patches.n_heads,
            ModelSettings::DyGFormer(settings) => settings.patches.n_heads,
            _ => 1,
        }
    }

    /// Whether the model has a setting of this name, as under `[model]`.
    #[must_use]
    pub fn has(&self, setting: &str) -> bool {
        self.table().is_ok_and(|table| table.contains_key(setting))
    }

    /// The same model with one setting changed; `setting` is named as in a `config.toml`.
    pub fn with(&self, setting: &str, value: impl Into<toml::Value>) -> Result<Self> {
        let mut all = self.table()?;
        let place = format!("model.{setting}");
        let wrong = |detail: String| Error::Config { place: place.clone(), detail };
        let Some(before) = all.get_mut(setting) else {
            return Err(wrong(ModelRegistry::default().foreign(self, setting)?));
        };
        *before = table::fitting(before, value.into()).map_err(wrong)?;
        self.read(all, &place)
    }

    /// The same model with those of `settings`, such as `k=16`, that it has: one list of sizes for several models.
    ///
    /// ```
    /// use hopedgn::config::{ModelConfig, ModelName};
    ///
    /// for name in ModelName::ALL {
    ///     let small = ModelConfig::new(name).with_known(&["d-out=8", "neighbors=4", "length=4"])?;
    ///     assert_eq!(small.common.d_out, 8);
    /// }
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    pub fn with_known(&self, settings: &[&str]) -> Result<Self> {
        let mut all = self.table()?;
        for setting in settings {
            let (name, text) = setting.split_once('=').unwrap_or((setting, ""));
            let wrong = |detail: String| Error::Config { place: format!("model.{setting}"), detail };
            if let Some(before) = all.get_mut(name) {
                *before = table::parse(before, text).map_err(wrong)?;
            }
        }
        let config = self.read(all, "model")?;
        config.check()?;
        Ok(config)
    }

    /// Refuses values outside their bounds.
    pub fn check(&self) -> Result<()> {
        let common = &self.common;
        common.check()?;
        if let Some(mite) = self.mite() {
            within(&[("model.d-mite", mite.d_mite, 1 << 14), ("model.k", mite.k, 1 << 14)])?;
            if !mite.filler.is_finite() {
                return refuse("model.mite-filler", mite.filler, "a finite number");
            }
        }
        match &self.settings {
            ModelSettings::HopeDgn(settings) => settings.patches.check(settings.encoder_width()),
            ModelSettings::HopeDgnGlobal(settings) => settings.check(common),
            ModelSettings::DyGFormer(settings) => settings.check(),
            ModelSettings::Tgat(settings) => settings.check(common),
            ModelSettings::Tcl(settings) => settings.check(common),
            ModelSettings::GraphMixer(settings) => settings.check(common),
            ModelSettings::Cawn(settings) => settings.check(common),
            ModelSettings::Jodie(_) => super::bounds::check_size(1, common),
            ModelSettings::DyRep(settings) | ModelSettings::Tgn(settings) => settings.check(common),
            ModelSettings::Pint(settings) => settings.check(common),
            ModelSettings::TpNet(settings) => settings.check(common),
            ModelSettings::Stats(_) => StatsSettings::check(common),
            ModelSettings::Custom(_) => Ok(()),
        }
    }

    /// Every setting as under `[model]`.
    pub(crate) fn table(&self) -> Result<toml::Table> {
        toml::Table::try_from(self)
            .map_err(|error| Error::Config { place: "model".to_owned(), detail: error.to_string() })
    }

    /// The same model with the settings of `table`, which has all of them and no others; `place` names it in errors.
    pub(crate) fn read(&self, mut table: toml::Table, place: &str) -> Result<Self> {
        let wrong = |error: toml::de::Error| Error::Config { place: place.to_owned(), detail: in_words(&error) };
        table.remove("name");
        let shared = toml::Table::try_from(CommonSettings::DEFAULT).unwrap_or_default();
        let (common, own): (toml::Table, toml::Table) =
            table.into_iter().partition(|(setting, _)| shared.contains_key(setting));
        Ok(Self { common: common.try_into().map_err(wrong)?, settings: self.settings.read(own).map_err(wrong)? })
    }
}

impl Serialize for ModelConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Flat<'a> {
            name: ModelName,
            #[serde(flatten)]
            common: &'a CommonSettings,
            #[serde(flatten)]
            settings: &'a ModelSettings,
        }
        Flat { name: self.name(), common: &self.common, settings: &self.settings }.serialize(serializer)
    }
}

/// Of a built-in model. Missing settings are the model's defaults; those that only other models have are ignored, since
/// older programs wrote the settings of all models.
impl<'de> Deserialize<'de> for ModelConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let table = toml::Table::deserialize(deserializer)?;
        ModelRegistry::default().read(table, "model").map_err(de::Error::custom)
    }
}
