//! Presets: settings that go together, read from `presets.toml`.

use std::sync::OnceLock;

use serde::Deserialize;

use super::ModelName;
use crate::fmt::{did_you_mean, nearest};
use crate::{Error, Result};

/// Settings that go together.
///
/// ```
/// use hopedgn::config::Preset;
/// assert_eq!(Preset::named("quick")?, Preset::Quick);
/// assert_eq!(Preset::for_data("data/ml_enron.csv"), Some(Preset::Enron));
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// A small model and few epochs.
    Quick,
    /// Padding, message order, rounding and schedule of DyGLib, on top of other presets.
    DyGLib,
    /// The most accurate predictions under every protocol, on top of other presets.
    Best,
    /// HopeDGN with relations among tokens, on top of other presets.
    Relational,
    /// The bundled messages, as the paper treats UCI.
    CollegeMsg,
    /// The paper's settings for UCI.
    Uci,
    /// The paper's settings for Wikipedia.
    Wikipedia,
    /// The paper's settings for Reddit.
    Reddit,
    /// The paper's settings for Enron.
    Enron,
    /// The paper's settings for LastFM.
    LastFm,
    /// The paper's settings for MOOC.
    Mooc,
    /// The paper's settings for Canadian Parliament.
    CanParl,
}

/// A preset as `presets.toml` has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Entry {
    name: String,
    about: String,
    /// The settings that differ from the defaults, for every model that has them.
    #[serde(default)]
    settings: toml::Table,
    /// Further settings by model name.
    #[serde(default)]
    models: toml::Table,
    /// Further settings of training by model name.
    #[serde(default)]
    train: toml::Table,
    /// Further settings of a preset on top of others: by the name of a preset below it, then by model name.
    #[serde(default)]
    above: toml::Table,
    /// The preset whose `models` hold here too.
    like: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    preset: Vec<Entry>,
}

/// The name of a dataset, or of its file without folders and extensions.
///
/// ```
/// assert_eq!(hopedgn::config::data_stem("data/ml_enron.csv.gz"), "ml_enron");
/// ```
#[must_use]
pub fn data_stem(data: &str) -> &str {
    let file = data.rsplit(['/', '\\']).next().unwrap_or(data);
    file.split('.').next().unwrap_or(file)
}

/// [`data_stem`] as part of a folder's name, whatever the data is called: letters, digits, `-`, `_`, not too long, never empty.
///
/// ```
/// assert_eq!(hopedgn::config::folder_stem("mail/2024 (final).csv"), "2024_final");
/// assert_eq!(hopedgn::config::folder_stem("../.."), "data");
/// ```
#[must_use]
pub fn folder_stem(data: &str) -> String {
    const MAX_CHARS: usize = 48;
    let file = data.rsplit(['/', '\\']).next().unwrap_or(data).trim_start_matches('.');
    let mut stem = String::new();
    for c in data_stem(file).chars() {
        match c {
            c if c.is_alphanumeric() || c == '-' || c == '_' => stem.push(c),
            _ if stem.ends_with('_') => {}
            _ => stem.push('_'),
        }
    }
    let stem: String = stem.trim_matches(['-', '_']).chars().take(MAX_CHARS).collect();
    if stem.is_empty() { "data".to_owned() } else { stem }
}

/// The bundled file.
///
/// # Panics
/// Never: the file is part of the program, and a test reads it.
fn entries() -> &'static [Entry] {
    static FILE: OnceLock<File> = OnceLock::new();
    let file =
        FILE.get_or_init(|| toml::from_str(include_str!("presets.toml")).expect("the bundled presets are valid"));
    &file.preset
}

impl Preset {
    /// All presets.
    #[must_use]
    pub fn all() -> &'static [Self] {
        &[
            Self::Quick,
            Self::DyGLib,
            Self::Best,
            Self::Relational,
            Self::CollegeMsg,
            Self::Uci,
            Self::Wikipedia,
            Self::Reddit,
            Self::Enron,
            Self::LastFm,
            Self::Mooc,
            Self::CanParl,
        ]
    }

    /// Its name; for those of the paper, the dataset's.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::DyGLib => "dyglib",
            Self::Best => "best",
            Self::Relational => "hopedgn-relational",
            Self::CollegeMsg => "collegemsg",
            Self::Uci => "uci",
            Self::Wikipedia => "wikipedia",
            Self::Reddit => "reddit",
            Self::Enron => "enron",
            Self::LastFm => "lastfm",
            Self::Mooc => "mooc",
            Self::CanParl => "canparl",
        }
    }

    /// What it is for.
    #[must_use]
    pub fn about(self) -> &'static str {
        self.entry().map_or("", |entry| &entry.about)
    }

    /// Whether it is applied on top of a dataset's preset instead of replacing it.
    #[must_use]
    pub fn is_on_top(self) -> bool {
        matches!(self, Self::DyGLib | Self::Best | Self::Relational)
    }

    /// The preset called `name`.
    pub fn named(name: &str) -> Result<Self> {
        Self::all().iter().copied().find(|preset| preset.name() == name).ok_or_else(|| {
            let known: Vec<&str> = Self::all().iter().map(|preset| preset.name()).collect();
            let meant = did_you_mean(nearest(name, known.iter().copied()));
            let detail = format!("found no preset of this name, expected one of {}{meant}", known.join(", "));
            Error::Config { place: name.to_owned(), detail }
        })
    }

    /// The paper's preset for a dataset, by its name or by that of its file without extensions.
    #[must_use]
    pub fn for_data(data: &str) -> Option<Self> {
        let stem = data_stem(data);
        let stem = stem.strip_prefix("ml_").unwrap_or(stem);
        let is_paper = |preset: &Self| *preset != Self::Quick && !preset.is_on_top();
        Self::all().iter().copied().filter(is_paper).find(|preset| preset.name() == stem)
    }

    /// The presets of a run: `own`, that of the data, and the one called `named`, which replaces it unless it goes on top.
    ///
    /// ```
    /// use hopedgn::Preset;
    ///
    /// let presets = |named| Preset::of_run(Preset::for_data("uci.csv"), Some(named));
    /// assert_eq!(presets("best")?, [Preset::Uci, Preset::Best]);
    /// assert_eq!(presets("quick")?, [Preset::Quick]);
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    pub fn of_run(own: Option<Self>, named: Option<&str>) -> Result<Vec<Self>> {
        let named = named.map(Self::named).transpose()?;
        let own = own.filter(|_| named.is_none_or(Self::is_on_top));
        Ok(own.into_iter().chain(named).collect())
    }

    /// The settings it changes for `model` on top of the presets `below`; later layers win.
    pub(super) fn layers(self, model: ModelName, below: &[Self]) -> Vec<toml::Table> {
        let Some(entry) = self.entry() else { return Vec::new() };
        let like = entry.like.as_ref().and_then(|like| entries().iter().find(|entry| entry.name == *like));
        let of_model = |group: &str, by_model: &toml::Table| {
            let settings = by_model.get(model.as_str())?.clone();
            Some(toml::Table::from_iter([(group.to_owned(), settings)]))
        };
        let models = like.into_iter().chain([entry]).flat_map(|entry| {
            [of_model("model", &entry.models), of_model("train", &entry.train)].into_iter().flatten()
        });
        let above = below.iter().filter_map(|below| entry.above.get(below.name())?.get(model.as_str())?.as_table());
        std::iter::once(entry.settings.clone()).chain(models).chain(above.cloned()).collect()
    }

    fn entry(self) -> Option<&'static Entry> {
        entries().iter().find(|entry| entry.name == self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ModelConfig;

    #[test]
    fn every_preset_of_the_file_has_a_variant() {
        let names: Vec<&str> = entries().iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, Preset::all().iter().map(|preset| preset.name()).collect::<Vec<_>>());
        assert!(Preset::all().iter().all(|preset| !preset.about().is_empty()));
    }

    #[test]
    fn odd_names_of_data_make_tame_names_of_folders() {
        let long = "x".repeat(300);
        for (data, expected) in [
            ("collegemsg", "collegemsg"),
            ("data/ml_enron.csv.gz", "ml_enron"),
            ("../../etc/passwd", "passwd"),
            ("..", "data"),
            ("", "data"),
            ("a/", "data"),
            (".csv", "csv"),
            (".hidden.csv", "hidden"),
            ("-out-.csv", "out"),
            ("-rf", "rf"),
            ("two words.csv", "two_words"),
            ("  .csv", "data"),
            ("a\nb\u{1b}[31m\0.csv", "a_b_31m"),
            ("..\\..\\evil.csv", "evil"),
            ("q?*<>|:\".csv", "q"),
            ("\u{202e}gpj.csv", "gpj"),
            ("größe_東京.csv", "größe_東京"),
            (long.as_str(), &long[..48]),
        ] {
            assert_eq!(folder_stem(data), expected, "{data:?}");
        }
    }

    #[test]
    fn every_setting_of_a_preset_belongs_to_a_model() {
        for entry in entries() {
            for (model, settings) in &entry.models {
                let defaults = ModelConfig::new(ModelName::named(model).unwrap());
                let unknown = settings.as_table().unwrap().keys().find(|setting| !defaults.has(setting));
                assert_eq!(unknown, None, "{} {model}", entry.name);
            }
            let general = entry.settings.get("model").and_then(toml::Value::as_table);
            for setting in general.into_iter().flat_map(toml::Table::keys) {
                let is_known = ModelName::ALL.iter().any(|&name| ModelConfig::new(name).has(setting));
                assert!(is_known, "{} {setting}", entry.name);
            }
            for (below, by_model) in &entry.above {
                assert!(!Preset::named(below).unwrap().is_on_top(), "{} above {below}", entry.name);
                for (model, settings) in by_model.as_table().unwrap() {
                    let defaults = ModelConfig::new(ModelName::named(model).unwrap());
                    let unknown = settings["model"].as_table().unwrap().keys().find(|setting| !defaults.has(setting));
                    assert_eq!(unknown, None, "{} above {below} {model}", entry.name);
                }
            }
        }
    }

    #[test]
    fn best_has_settings_of_its_own_for_a_dataset() {
        let relations = |data, preset| {
            let presets = Preset::of_run(Preset::for_data(data), preset).unwrap();
            let layers = (0..presets.len()).flat_map(|at| presets[at].layers(ModelName::HopeDgn, &presets[..at]));
            layers.filter_map(|layer| layer.get("model")?.get("relations")?.as_bool()).next_back()
        };
        assert_eq!(relations("wikipedia.csv", Some("best")), Some(true));
        assert_eq!(relations("uci.csv", Some("best")), None);
        assert_eq!(relations("wikipedia.csv", None), None);
    }
}
