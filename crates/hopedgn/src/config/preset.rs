//! Settings under a name, read from `presets.toml`.

use std::sync::OnceLock;

use serde::Deserialize;

use crate::{Error, Result};

/// Settings that go together.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Preset {
    /// What it is called; for those of the paper, the data set.
    pub name: String,
    /// What it is for.
    pub about: String,
    /// The settings that differ from the defaults.
    #[serde(default)]
    pub settings: toml::Table,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    preset: Vec<Preset>,
}

impl Preset {
    /// All of them.
    ///
    /// # Panics
    /// Never: the file is part of the program, and a test reads it.
    pub fn all() -> &'static [Self] {
        static ALL: OnceLock<Vec<Preset>> = OnceLock::new();
        ALL.get_or_init(|| {
            let file: File = toml::from_str(include_str!("presets.toml")).expect("the bundled presets are sound");
            file.preset
        })
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
        let file = data.rsplit(['/', '\\']).next().unwrap_or(data);
        let stem = file.split('.').next().unwrap_or(file);
        let stem = stem.strip_prefix("ml_").unwrap_or(stem);
        Self::all().iter().find(|preset| preset.name != "quick" && preset.name == stem)
    }
}
