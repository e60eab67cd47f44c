//! `hopedgn data list`: datasets that have a name.

use std::fmt::{self, Display};

use clap::Args;
use ctdg::dataset;
use ctdg::fetch::{Counts, Source};
use ctdg::generate::InteractionSpec;
use serde::Serialize;

use crate::commands::data_args::DataFolder;
use crate::output::{Outcome, Output};
use hopedgn::fmt::grouped;

/// The paper's name for the bundled CollegeMsg events.
const SAME_AS_BUNDLED: &str = "uci";

/// List datasets that have a name: bundled, fetched, fetchable and generated
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hopedgn data list\n  hopedgn data list --json")]
pub(crate) struct List {
    #[command(flatten)]
    folder: DataFolder,
}

#[derive(Serialize)]
struct Entry {
    name: String,
    nodes: Option<u64>,
    events: Option<u64>,
    /// `bundled`, `here`, `fetch` or `generate`.
    status: &'static str,
    /// How to get it, or its file.
    how: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

#[derive(Serialize)]
struct Catalogue {
    data: Vec<Entry>,
}

pub(crate) fn run(args: &List, output: &Output) -> anyhow::Result<Outcome> {
    let mut data = vec![Entry {
        name: dataset::COLLEGEMSG.into(),
        nodes: Some(1_899),
        events: Some(59_835),
        status: "bundled",
        how: "inside this program".into(),
        note: Some("the same events as uci"),
    }];
    for source in Source::all() {
        let file = args.folder.file(&source.name)?;
        let here = file.exists();
        let Counts { nodes, events } = source.counts;
        data.push(Entry {
            name: source.name.clone(),
            nodes: Some(nodes),
            events: Some(events),
            status: if here { "here" } else { "fetch" },
            how: if here { file.display().to_string() } else { format!("hopedgn data fetch {}", source.name) },
            note: (source.name == SAME_AS_BUNDLED).then_some("the same events as collegemsg"),
        });
    }
    for name in InteractionSpec::NAMES {
        let spec = InteractionSpec::named(name);
        data.push(Entry {
            name: name.into(),
            nodes: spec.as_ref().map(|spec| u64::from(spec.n_users) + u64::from(spec.n_items)),
            events: spec.as_ref().map(|spec| u64::from(spec.n_events)),
            status: "generate",
            how: format!("hopedgn data generate {name} OUT"),
            note: None,
        });
    }
    for name in ["triadic", "tastes"] {
        let how = format!("hopedgn data generate {name} OUT");
        data.push(Entry { name: name.into(), nodes: None, events: None, status: "generate", how, note: None });
    }
    let catalogue = Catalogue { data };
    output.answer(&catalogue, &catalogue)?;
    Ok(Outcome::Done)
}

impl Display for Catalogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<12} {:>8} {:>10}  {:<9} how", "name", "nodes", "events", "status")?;
        for Entry { name, nodes, events, status, how, note } in &self.data {
            let note = note.map_or(String::new(), |note| format!("  ({note})"));
            let count = |count: &Option<u64>| count.map_or("any".into(), grouped);
            writeln!(f, "{name:<12} {:>8} {:>10}  {status:<9} {how}{note}", count(nodes), count(events))?;
        }
        Ok(())
    }
}
