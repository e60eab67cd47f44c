//! The models a program knows: the built-in ones, and those that users register.

use hopedgn_tensor::Parameters;
use serde::Deserialize;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{
    Cawn, CommonSettings, DyGFormer, GlobalHopeDgn, GraphMixer, HopeDgn, Jodie, Model, ModelConfig, ModelName,
    ModelSettings, Pint, Stats, Tcl, Tgat, Tgn, TpNet, table,
};
use crate::collate::FeatureWidths;
use crate::fmt::{did_you_mean, in_words, nearest};
use crate::{Error, Result};

/// A model with its initial parameters.
///
/// Made by [`build`] and [`ModelRegistry::build`].
pub type BuiltModel = (Box<dyn Model>, Parameters);

/// A model of a user's, which [`ModelRegistry::register`] makes known by name.
///
/// ```
/// use hopedgn::{Model, ModelName, ModelRegistry, Result, collate::FeatureWidths, collate::Input};
/// use hopedgn::config::{CommonSettings, CustomModel, NoSettings};
/// # use hopedgn::{ctdg::mite::PairEncoderConfig, tensor::{Dropout, Parameters, Tape, Var}};
///
/// #[derive(Debug)]
/// struct Mine;
/// # impl Model for Mine {
/// #     fn name(&self) -> ModelName { ModelName::Custom(Self::NAME) }
/// #     fn encoding(&self) -> PairEncoderConfig { PairEncoderConfig::default() }
/// #     fn logits(&self, _: &mut Tape<'_>, _: &Input, _: Dropout) -> Result<Var> { unreachable!() }
/// # }
/// impl CustomModel for Mine { // and `impl Model for Mine`
///     const NAME: &'static str = "mine";
///     type Settings = NoSettings;
///     fn new(_: &NoSettings, _: &CommonSettings, _: FeatureWidths, seed: u64) -> Result<(Self, Parameters)> {
///         Ok((Self, Parameters::default()))
///     }
/// }
/// let mut registry = ModelRegistry::default();
/// assert_eq!(registry.register::<Mine>()?, ModelName::Custom("mine"));
/// assert!(registry.named("mine").is_ok());
/// # Ok::<(), hopedgn::Error>(())
/// ```
pub trait CustomModel: Model + Sized + 'static {
    /// Its name in configurations, run folders and reports: lower-case letters, digits and hyphens.
    const NAME: &'static str;

    /// The settings that it has besides [`CommonSettings`]; [`NoSettings`] where there are none. Name fields in kebab case
    /// (`#[serde(rename_all = "kebab-case")]`), as all settings are.
    type Settings: Default + Serialize + DeserializeOwned;

    /// Defaults of the common settings.
    #[must_use]
    fn common() -> CommonSettings {
        CommonSettings::DEFAULT
    }

    /// The model for features of these widths, with parameters drawn from `seed`.
    fn new(
        settings: &Self::Settings,
        common: &CommonSettings,
        widths: FeatureWidths,
        seed: u64,
    ) -> Result<(Self, Parameters)>;
}

/// For a [`CustomModel`] without settings of its own.
///
/// See [`CustomModel`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NoSettings {}

/// What the registry knows of a custom model.
#[derive(Debug, Clone, Copy)]
struct Entry {
    name: &'static str,
    defaults: fn() -> Result<(CommonSettings, toml::Table), toml::ser::Error>,
    check: fn(&toml::Table) -> Result<(), toml::de::Error>,
    build: fn(&toml::Table, &CommonSettings, FeatureWidths, u64) -> Result<BuiltModel>,
}

/// The models that can be named: the eleven built-in ones, and those that were registered.
///
/// A registry is a value that is passed on; there is no global one.
///
/// ```
/// use hopedgn::config::{ModelName, ModelRegistry};
/// let registry = ModelRegistry::default();
/// assert_eq!(registry.named("tgn")?, ModelName::Tgn);
/// assert!(registry.named("mine").is_err());
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct ModelRegistry {
    custom: Vec<Entry>,
}

impl ModelRegistry {
    /// Makes `M` known by its name, which no other model may have.
    ///
    /// [`CustomModel`] has an example.
    pub fn register<M: CustomModel>(&mut self) -> Result<ModelName> {
        let refuse = |detail: String| Err(Error::Config { place: format!("model {:?}", M::NAME), detail });
        let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !M::NAME.starts_with(|c: char| c.is_ascii_lowercase()) || !M::NAME.chars().all(is_letter) {
            return refuse("expected a name of lower-case letters, digits and hyphens".to_owned());
        }
        if ctdg::heuristic::NAMES.contains(&M::NAME) {
            return refuse(
                "found the name of a heuristic that is tested beside models, expected another name".to_owned(),
            );
        }
        if self.named(M::NAME).is_ok() {
            return refuse("found another model of this name, expected a name that is not taken".to_owned());
        }
        let entry = Entry {
            name: M::NAME,
            defaults: || Ok((M::common(), toml::Table::try_from(M::Settings::default())?)),
            check: |values| values.clone().try_into::<M::Settings>().map(drop),
            build: |values, common, widths, seed| {
                let settings: M::Settings = values.clone().try_into().map_err(|error| unreadable(M::NAME, &error))?;
                let (model, parameters) = M::new(&settings, common, widths, seed)?;
                Ok((Box::new(model), parameters))
            },
        };
        let shared = ModelConfig::new(ModelName::Custom(M::NAME)).table()?;
        let (_, own) = (entry.defaults)().map_err(|error| unreadable(M::NAME, &error))?;
        if let Some(taken) = own.keys().find(|setting| shared.contains_key(*setting)) {
            return refuse(format!("found a setting `{taken}`, which all models have; give it another name"));
        }
        self.custom.push(entry);
        Ok(ModelName::Custom(M::NAME))
    }

    /// The names of all models, the built-in ones first.
    pub fn names(&self) -> impl Iterator<Item = ModelName> {
        ModelName::ALL.into_iter().chain(self.custom.iter().map(|entry| ModelName::Custom(entry.name)))
    }

    /// The model called `name`.
    pub fn named(&self, name: &str) -> Result<ModelName> {
        self.names().find(|model| model.as_str() == name).ok_or_else(|| {
            let known: Vec<&str> = self.names().map(ModelName::as_str).collect();
            let expected = format!("one of {}; a model of your own must be registered first", known.join(", "));
            Error::Setting { name: "model.name", found: name.to_owned(), expected }
        })
    }

    /// The default settings of a model.
    ///
    /// ```
    /// use hopedgn::{ModelName, ModelRegistry};
    ///
    /// let config = ModelRegistry::default().defaults(ModelName::GraphMixer)?;
    /// assert_eq!(config.name(), ModelName::GraphMixer);
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    pub fn defaults(&self, name: ModelName) -> Result<ModelConfig> {
        let mut config = ModelConfig::new(name);
        if let ModelSettings::Custom(custom) = &mut config.settings {
            let entry = self.entry(custom.name)?;
            (config.common, custom.values) = (entry.defaults)().map_err(|error| unreadable(custom.name, &error))?;
        }
        Ok(config)
    }

    /// The model that `config` describes, for features of these widths, with parameters drawn from `seed`.
    pub fn build(&self, config: &ModelConfig, widths: FeatureWidths, seed: u64) -> Result<BuiltModel> {
        fn boxed<M: Model + 'static>((model, parameters): (M, Parameters)) -> BuiltModel {
            (Box::new(model), parameters)
        }
        config.check()?;
        let common = &config.common;
        Ok(match &config.settings {
            ModelSettings::HopeDgn(settings) => boxed(HopeDgn::new(settings, common, widths, seed)?),
            ModelSettings::HopeDgnGlobal(settings) => boxed(GlobalHopeDgn::new(settings, common, widths, seed)?),
            ModelSettings::DyGFormer(settings) => boxed(DyGFormer::new(settings, common, widths, seed)?),
            ModelSettings::Tgat(settings) => boxed(Tgat::new(settings, common, widths, seed)?),
            ModelSettings::Tcl(settings) => boxed(Tcl::new(settings, common, widths, seed)?),
            ModelSettings::GraphMixer(settings) => boxed(GraphMixer::new(settings, common, widths, seed)?),
            ModelSettings::Cawn(settings) => boxed(Cawn::new(settings, common, widths, seed)?),
            ModelSettings::Jodie(settings) => boxed(Jodie::new(settings, common, widths, seed)?),
            ModelSettings::DyRep(settings) => boxed(Tgn::dyrep(settings, common, widths, seed)?),
            ModelSettings::Tgn(settings) => boxed(Tgn::new(settings, common, widths, seed)?),
            ModelSettings::Pint(settings) => boxed(Pint::new(settings, common, widths, seed)?),
            ModelSettings::TpNet(settings) => boxed(TpNet::new(settings, common, widths, seed)?),
            ModelSettings::Stats(settings) => boxed(Stats::new(settings, common, widths, seed)?),
            ModelSettings::Custom(custom) => {
                return (self.entry(custom.name)?.build)(&custom.values, common, widths, seed);
            }
        })
    }

    /// The settings of the `[model]` part of a file, which `place` names in errors: missing ones are the model's defaults,
    /// those that only other models have are ignored.
    pub(crate) fn read(&self, table: toml::Table, place: &str) -> Result<ModelConfig> {
        let name = match table.get("name") {
            Some(name) => self.named(name.as_str().unwrap_or_default())?,
            None => ModelName::default(),
        };
        self.read_over(&self.defaults(name)?, table, place)
    }

    /// The same over `below` instead of the defaults; the name in `table` does not count.
    pub(crate) fn read_over(&self, below: &ModelConfig, mut table: toml::Table, place: &str) -> Result<ModelConfig> {
        table.remove("name");
        let mut all = below.table()?;
        for (setting, value) in table {
            let wrong = |detail: String| Error::Config { place: format!("{place}: model.{setting}"), detail };
            match all.get_mut(&setting) {
                Some(before) => *before = table::fitting(before, value).map_err(wrong)?,
                None if !self.owners(&setting)?.is_empty() => {}
                None => return Err(wrong(self.foreign(below, &setting)?)),
            }
        }
        self.checked(below.read(all, place)?, place)
    }

    /// `config`, if the settings of a custom model have the types that it gives them.
    pub(crate) fn checked(&self, config: ModelConfig, place: &str) -> Result<ModelConfig> {
        if let ModelSettings::Custom(custom) = &config.settings {
            let checked = (self.entry(custom.name)?.check)(&custom.values);
            checked.map_err(|error| Error::Config { place: place.to_owned(), detail: in_words(&error) })?;
        }
        Ok(config)
    }

    /// Why the model of `config` has no `setting`: which models do, and what it has instead.
    pub(crate) fn foreign(&self, config: &ModelConfig, setting: &str) -> Result<String> {
        let title = config.name().title();
        let mut own = config.table()?;
        own.remove("name");
        let names = table::names(&own, |_| true);
        let owners: Vec<&str> = self.owners(setting)?.into_iter().map(ModelName::title).collect();
        if !owners.is_empty() {
            let owners = owners.join(", ");
            let meant =
                same_meaning(setting).filter(|name| own.contains_key(*name)).map(|name| format!("model.{name}"));
            let meant = did_you_mean(meant.as_deref());
            return Ok(format!(
                "{title} has no setting `{setting}`, which belongs to {owners}; {title} has: {names}{meant}"
            ));
        }
        let meant = nearest(setting, own.keys().map(String::as_str)).map(|name| format!("model.{name}"));
        Ok(format!("{title} has no setting `{setting}`; {title} has: {names}{}", did_you_mean(meant.as_deref())))
    }

    /// The models that have `setting`.
    fn owners(&self, setting: &str) -> Result<Vec<ModelName>> {
        let mut owners = Vec::new();
        for name in self.names() {
            if self.defaults(name)?.has(setting) {
                owners.push(name);
            }
        }
        Ok(owners)
    }

    fn entry(&self, name: &'static str) -> Result<&Entry> {
        let known = self.custom.iter().find(|entry| entry.name == name);
        known.ok_or_else(|| Error::Config {
            place: format!("model {name:?}"),
            detail: "found no custom model of this name, expected one that was registered".to_owned(),
        })
    }
}

/// The setting of other models that means the same: how many events of a node are read.
fn same_meaning(setting: &str) -> Option<&'static str> {
    match setting {
        "neighbors" => Some("length"),
        "length" => Some("neighbors"),
        _ => None,
    }
}

fn unreadable(name: &str, error: &impl std::fmt::Display) -> Error {
    Error::Config { place: format!("settings of model {name:?}"), detail: in_words(error) }
}

/// The built-in model that `config` describes; [`ModelRegistry::build`] also knows custom ones.
///
/// ```
/// use hopedgn::config::{ModelConfig, ModelName};
/// use hopedgn::{collate::FeatureWidths, model};
///
/// let widths = FeatureWidths { node: None, edge: Some(4) };
/// let (model, parameters) = model::build(&ModelConfig::new(ModelName::Tcl), widths, 0)?;
/// assert_eq!((model.name(), model.width()), (ModelName::Tcl, 172));
/// assert!(parameters.n_values() > 0);
/// # Ok::<(), hopedgn::Error>(())
/// ```
pub fn build(config: &ModelConfig, widths: FeatureWidths, seed: u64) -> Result<BuiltModel> {
    ModelRegistry::default().build(config, widths, seed)
}
