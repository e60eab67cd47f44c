//! Settings that change nothing, because what they belong to is switched off.

use super::{Config, Objective, Selection, wrong};
use crate::Result;

/// Settings that something reads, and what switches it on.
struct Group {
    settings: &'static [&'static str],
    what: &'static str,
    switch: &'static str,
}

const MITE: Group = Group {
    settings: &[
        "model.d-mite",
        "model.k",
        "model.mite-filler",
        "model.mite-history",
        "model.mite-normaliser",
        "model.mite-self-loops",
        "model.mite-valid-bit",
    ],
    what: "does not read MITE",
    switch: "model.mite=true",
};

const WALKS: Group = Group {
    settings: &["model.d-walk", "model.walk-decay", "model.walk-layers"],
    what: "does not read walks",
    switch: "model.walks=true",
};

const STATISTICS: Group = Group {
    settings: &["model.d-stats", "model.triads"],
    what: "does not read statistics",
    switch: "model.stats=true",
};

const RANKING: Group = Group {
    settings: &["train.select-events", "train.select-candidates"],
    what: "is not selected by rank",
    switch: "train.select=mrr",
};

const PAST_PAIRS: Group = Group {
    settings: &["train.unmet-positives", "train.pair-weight"],
    what: "is not trained against past pairs",
    switch: "train.objective=intensity",
};

impl Config {
    /// Refuses those of `settings`, such as `model.k=16`, that change nothing because what they belong to is switched off.
    ///
    /// ```
    /// use hopedgn::{Config, ModelName};
    ///
    /// let settings = ["model.k=16".to_owned()];
    /// let config = Config::resolve(ModelName::DyGFormer, &[], &settings)?;
    /// let error = config.check_effects(&settings).unwrap_err().to_string();
    /// assert_eq!(error, "model.k=16: found no effect: DyGFormer does not read MITE; add model.mite=true");
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    pub fn check_effects(&self, settings: &[String]) -> Result<()> {
        let statistics = &self.model.common.statistics;
        let groups = [
            (MITE, self.model.mite().is_none_or(|mite| mite.enabled)),
            (WALKS, statistics.walks.enabled),
            (STATISTICS, statistics.enabled),
            (RANKING, self.train.select != Selection::Ap),
            (PAST_PAIRS, self.train.objective == Objective::Intensity),
        ];
        for (Group { settings: names, what, switch }, is_on) in groups {
            let is_of_group = |setting: &&String| names.contains(&setting.split('=').next().unwrap_or_default().trim());
            if let Some(setting) = settings.iter().find(is_of_group).filter(|_| !is_on) {
                let title = self.model.name().title();
                return Err(wrong(setting, &format!("found no effect: {title} {what}; add {switch}")));
            }
        }
        Ok(())
    }
}
