//! A file of settings: some or all of those of a run, and how its data is read.

use ctdg::dataset::ReadOptions;

use super::{Config, ModelName, ModelRegistry, Preset, add_settings_of_its_time, check_format, merge, wrong};
use crate::Result;

/// Settings of a file, some or all of them. The `config.toml` of a run is one.
///
/// Besides the settings, a group `[read]` may say how the file of events is read.
///
/// ```
/// use hopedgn::config::{Config, ConfigFile, ModelName, ModelRegistry};
///
/// let file = ConfigFile::parse("data = \"mail.csv\"\n[model]\nname = \"tcl\"\n[train]\nlr = 0.001\n[read]\nsort = true", "my.toml")?;
/// assert!(file.data() == Some("mail.csv") && file.read_options().is_some_and(|options| options.sort));
/// let settings = ["train.epochs=3".to_owned()]; // wins over the file
/// let config = file.resolve(&ModelRegistry::default(), None, &[], &settings)?;
/// assert_eq!((config.model.name(), config.train.lr, config.train.epochs), (ModelName::Tcl, 0.001, 3));
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ConfigFile {
    /// Without `[read]`.
    table: toml::Table,
    read: Option<ReadOptions>,
    place: String,
}

impl ConfigFile {
    /// Reads the text of a file, which `place` names in errors. Settings are checked by [`ConfigFile::resolve`].
    pub fn parse(text: &str, place: &str) -> Result<Self> {
        let mut table: toml::Table = toml::from_str(text).map_err(|error| wrong(place, &error))?;
        let of_a_run = check_format(&mut table, place)?;
        if let Some(toml::Value::Table(model)) = table.get_mut("model").filter(|_| of_a_run) {
            add_settings_of_its_time(model);
        }
        let read = table.remove("read").map(toml::Value::try_into).transpose();
        let read = read.map_err(|error: toml::de::Error| wrong(&format!("{place}: [read]"), &error))?;
        Ok(Self { table, read, place: place.to_owned() })
    }

    /// The dataset, if the file names one.
    #[must_use]
    pub fn data(&self) -> Option<&str> {
        self.table.get("data").and_then(toml::Value::as_str)
    }

    /// How the file of events is read, if `[read]` says so.
    #[must_use]
    pub fn read_options(&self) -> Option<&ReadOptions> {
        self.read.as_ref()
    }

    /// The defaults of a model, changed by each of `presets`, then by this file, then by `settings` such as `model.k=16`. `model`
    /// wins over the model of the file; settings that only other models have are left out then, see [`ConfigFile::left_out`].
    pub fn resolve(
        &self,
        registry: &ModelRegistry,
        model: Option<ModelName>,
        presets: &[Preset],
        settings: &[String],
    ) -> Result<Config> {
        let named = self.model_settings().and_then(|model| model.get("name")).map(|name| match name.as_str() {
            Some(name) => registry.named(name),
            None => Err(wrong(&self.place, &format!("found model.name = {name}, expected text"))),
        });
        let model = model.map_or_else(|| named.unwrap_or(Ok(ModelName::default())), Ok)?;
        let below = Config::before_settings(registry, model, presets, settings)?;
        let (mut table, all) = (below.table()?, below.table()?);
        let mut found = self.table.clone();
        let model = match found.remove("model") {
            Some(toml::Value::Table(model)) => registry.read_over(&below.model, model, &self.place)?,
            Some(other) => {
                return Err(wrong(&self.place, &format!("found model = {other}, expected a group of settings")));
            }
            None => below.model.clone(),
        };
        merge(&mut table, found, "", &all).map_err(|detail| wrong(&self.place, &detail))?;
        let rest = below.read(registry, table, &self.place)?;
        Config { model, ..rest }.changed_by(registry, settings)
    }

    /// Settings of the file that the model of `config` does not have, as `model.k`.
    #[must_use]
    pub fn left_out(&self, config: &Config) -> Vec<String> {
        let names = self.model_settings().into_iter().flat_map(toml::Table::keys);
        let foreign = names.filter(|name| *name != "name" && !config.model.has(name));
        foreign.map(|name| format!("model.{name}")).collect()
    }

    fn model_settings(&self) -> Option<&toml::Table> {
        self.table.get("model").and_then(toml::Value::as_table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(text: &str, model: Option<ModelName>, settings: &[&str]) -> Result<Config> {
        let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
        ConfigFile::parse(text, "my.toml")?.resolve(&ModelRegistry::default(), model, &[Preset::Enron], &settings)
    }

    fn message(text: &str) -> String {
        resolve(text, None, &[]).unwrap_err().to_string()
    }

    #[test]
    fn a_file_stands_above_presets_and_below_single_settings() {
        let text = "seed = 4\n[model]\ndropout = 0.3\n[train]\nepochs = 7\nlr = 0.01\n";
        let config = resolve(text, None, &["train.epochs=9"]).unwrap();
        let plain = resolve("", None, &[]).unwrap();
        assert_eq!((config.seed, config.train.epochs, config.train.lr), (4, 9, 0.01));
        assert_eq!(config.model.common.dropout, 0.3);
        let [length, of_preset] = [&config, &plain].map(|config| config.model.table().unwrap()["length"].clone());
        assert_eq!((&length, length.as_integer()), (&of_preset, Some(256)), "what the file does not state");
    }

    #[test]
    fn the_config_file_of_a_run_gives_the_same_settings() {
        for model in ModelName::ALL {
            let settings = ["seed=3", "train.lr=0.002", "data=mail.csv"].map(str::to_owned);
            let config = Config::resolve(model, &[Preset::Uci, Preset::DyGLib], &settings).unwrap();
            assert_eq!(resolve(&config.to_toml().unwrap(), None, &[]).unwrap(), config, "{}", model.title());
        }
    }

    #[test]
    fn another_model_wins_and_names_what_it_leaves_out() {
        let text = "[model]\nname = \"hopedgn\"\nk = 7\ndropout = 0.3\n";
        let config = resolve(text, Some(ModelName::Jodie), &[]).unwrap();
        assert_eq!((config.model.name(), config.model.common.dropout), (ModelName::Jodie, 0.3));
        assert_eq!(ConfigFile::parse(text, "").unwrap().left_out(&config), ["model.k"]);
        let config = resolve(text, None, &["model.name=tgat"]).unwrap();
        assert_eq!(config.model.name(), ModelName::Tgat, "so does a single setting");
    }

    #[test]
    fn misspelt_settings_name_the_nearest() {
        assert_eq!(
            message("[train]\nepoch = 3\n"),
            "my.toml: found no setting `train.epoch`, expected one of batch, epochs, lr, objective, pair-weight, patience, \
             save-every, schedule, select, select-candidates, select-events, unmet-positives; did you mean `train.epochs`?"
        );
        assert!(message("dropout = 0.1\n").ends_with("; did you mean `model.dropout`?"));
        assert!(message("[model]\ndroput = 0.1\n").ends_with("; did you mean `model.dropout`?"));
        assert!(message("[modle]\nk = 3\n").ends_with("; did you mean `model`?"));
        let found = message("[read]\nsrot = true\n");
        assert!(
            found.starts_with("my.toml: [read]: unknown field `srot`") && found.contains("did you mean `sort`?"),
            "{found}"
        );
        assert!(message("seed = -1\n").ends_with("found -1, expected a whole number of at least 0"));
        assert!(message("model = 3\n").contains("expected a group of settings"));
    }
}
