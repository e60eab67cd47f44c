//! Differences between two configurations, setting by setting.

use std::collections::BTreeMap;
use std::path::Path;

use super::Config;
use crate::error::SettingDifference;
use crate::{Error, Result};

/// The key of the settings in the metadata of a checkpoint.
const SETTINGS: &str = "settings";

/// Settings that may change when a run is resumed: they decide when training stops and how often it is saved, not what is learned.
pub const CHANGEABLE: [&str; 3] = ["train.epochs", "train.patience", "train.save-every"];

impl Config {
    /// Settings whose values differ from those of `recorded`. Settings that only one of them has do not count: another version may
    /// have written it.
    pub(crate) fn differences(&self, recorded: &toml::Table) -> Result<Vec<SettingDifference>> {
        let mut found = Vec::new();
        collect(&self.table()?, recorded, "", &mut found);
        Ok(found)
    }
}

impl Config {
    /// Metadata of a checkpoint: the settings that decide what is learned, without the name of the data.
    pub(crate) fn metadata(&self) -> Result<BTreeMap<String, String>> {
        let mut table = self.table()?;
        table.remove("data");
        for name in CHANGEABLE {
            let (group, setting) = name.split_once('.').unwrap_or(("", name));
            let group = table.get_mut(group).and_then(toml::Value::as_table_mut);
            group.and_then(|group| group.remove(setting));
        }
        let text = serde_json::to_string(&table).map_err(|error| super::wrong(SETTINGS, &error))?;
        Ok(BTreeMap::from([(SETTINGS.to_owned(), text)]))
    }

    /// Refuses the checkpoint in `file` if it was trained with other settings than these. Those of format 1 do not say.
    pub(crate) fn check_metadata(&self, metadata: &BTreeMap<String, String>, file: &Path) -> Result<()> {
        let Some(text) = metadata.get(SETTINGS) else { return Ok(()) };
        let recorded = serde_json::from_str(text).map_err(|error| super::wrong(SETTINGS, &error))?;
        let differences = self.differences(&recorded)?;
        if differences.is_empty() { Ok(()) } else { Err(Error::OtherSettings { file: file.to_owned(), differences }) }
    }
}

fn collect(now: &toml::Table, before: &toml::Table, group: &str, found: &mut Vec<SettingDifference>) {
    for (key, before) in before {
        let name = format!("{group}{key}");
        match (now.get(key), before) {
            (Some(toml::Value::Table(now)), toml::Value::Table(before)) => {
                collect(now, before, &format!("{name}."), found);
            }
            (Some(now), before) if now != before => {
                found.push(SettingDifference { name, found: now.to_string(), expected: before.to_string() });
            }
            _ => {}
        }
    }
}
