//! Settings under a name, read from `presets.toml`.

use std::sync::OnceLock;

use serde::Deserialize;

use super::ModelName;
use crate::{Error, Result};

/// Settings that go together.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Preset {
    /// What it is called; for those of the paper, the data set.
    pub name: String,
    /// What it is for.
    pub about: String,
    /// The settings that differ from the defaults, whatever the model.
    #[serde(default)]
    pub settings: toml::Table,
    /// What differs besides for a model, by its name.
    #[serde(default)]
    pub models: toml::Table,
    /// The preset whose models' settings hold here too.
    pub like: Option<String>,
    /// Whether it comes on top of a data set's own, instead of it.
    #[serde(default)]
    pub on_top: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    models: toml::Table,
    preset: Vec<Preset>,
}

/// The name of a data set, or of its file without folders and endings.
#[must_use]
pub fn data_stem(data: &str) -> &str {
    let file = data.rsplit(['/', '\\']).next().unwrap_or(data);
    file.split('.').next().unwrap_or(file)
}

/// The bundled file.
///
/// # Panics
/// Never: the file is part of the program, and a test reads it.
fn file() -> &'static File {
    static FILE: OnceLock<File> = OnceLock::new();
    FILE.get_or_init(|| toml::from_str(include_str!("presets.toml")).expect("the bundled presets are sound"))
}

/// What `model` changes of the defaults.
pub(super) fn of_model(model: ModelName) -> toml::Table {
    settings_of(&file().models, model)
}

/// The settings that `models` has for `model`, as settings of a run.
fn settings_of(models: &toml::Table, model: ModelName) -> toml::Table {
    let of_model = models.get(model.as_str()).cloned();
    of_model.map(|table| toml::Table::from_iter([("model".to_owned(), table)])).unwrap_or_default()
}

impl Preset {
    /// All of them.
    #[must_use]
    pub fn all() -> &'static [Self] {
        &file().preset
    }

    /// What it changes for `model`, first what weighs least.
    pub(super) fn layers(&self, model: ModelName) -> Vec<toml::Table> {
        let like = self.like.as_ref().and_then(|like| Self::all().iter().find(|preset| preset.name == *like));
        let models = like.into_iter().chain([self]).map(|preset| settings_of(&preset.models, model));
        std::iter::once(self.settings.clone()).chain(models).collect()
    }

    /// The preset called `name`.
    pub fn named(name: &str) -> Result<&'static Self> {
        Self::all().iter().find(|preset| preset.name == name).ok_or_else(|| {
            let known: Vec<&str> = Self::all().iter().map(|preset| preset.name.as_str()).collect();
            let detail = format!("found no preset of this name, expected one of {}", known.join(", "));
            Error::Config { place: name.to_owned(), detail }
        })
    }

    /// The paper's preset for a data set, by its name or by that of its file without endings.
    #[must_use]
    pub fn for_data(data: &str) -> Option<&'static Self> {
        let stem = data_stem(data);
        let stem = stem.strip_prefix("ml_").unwrap_or(stem);
        Self::all().iter().find(|preset| preset.name == stem && preset.name != "quick" && !preset.on_top)
    }
}
