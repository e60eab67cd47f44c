//! Content of datasets: whether two runs saw the same events, whatever their file is called.

use ctdg::error::counted;
use serde::{Deserialize, Serialize};

use super::Found;
use hopedgn::run::{DataRecord, RunFolder};

/// Identity of the events of a dataset, as a run records it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// Number of events.
    pub events: usize,
    /// Number of nodes.
    pub nodes: usize,
    /// SHA-256 of sources, destinations, times and features.
    pub sha256: String,
    /// The same by names of nodes, however they are numbered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256_by_name: Option<String>,
}

impl Content {
    /// That of a run's manifest; nothing where none was recorded.
    #[must_use]
    pub fn of(record: &DataRecord) -> Option<Self> {
        let DataRecord { events, nodes, sha256, sha256_by_name, .. } = record;
        let (sha256, sha256_by_name) = (sha256.clone(), sha256_by_name.clone());
        (!sha256.is_empty()).then_some(Self { events: *events, nodes: *nodes, sha256, sha256_by_name })
    }

    /// That of the run in a folder.
    pub(super) fn of_run(run: &RunFolder) -> Option<Self> {
        run.manifest().ok().and_then(|manifest| Self::of(&manifest.data))
    }

    /// Whether both are the same events: equal by numbers of nodes, or by their names.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let by_name = self.sha256_by_name.is_some() && self.sha256_by_name == other.sha256_by_name;
        self.events == other.events && (self.sha256 == other.sha256 || by_name)
    }

    /// The beginning of the hash, which is enough to tell contents apart.
    fn short(&self) -> &str {
        self.sha256.get(..12).unwrap_or(&self.sha256)
    }
}

/// What the runs behind the numbers were trained on: a line for each content, and one for runs that recorded none.
pub(super) fn contents(found: &[Found]) -> Vec<String> {
    let done: Vec<&Found> = found.iter().filter(|one| one.outcome.is_some() && !one.cell.is_smoke).collect();
    let mut groups: Vec<(&str, &Content, Vec<&Found>)> = Vec::new();
    for &one in &done {
        let Some(content) = &one.content else { continue };
        let same = |(data, known, _): &&mut (&str, &Content, _)| *data == one.cell.data && known.is_same(content);
        match groups.iter_mut().find(same) {
            Some((.., runs)) => runs.push(one),
            None => groups.push((&one.cell.data, content, vec![one])),
        }
    }
    let mut lines = Vec::new();
    for (data, content, runs) in &groups {
        let at_hand = match &runs[0].cell.content {
            Some(_) => "the file at hand",
            None => "not compared with a file: none is at hand",
        };
        let several = groups.iter().filter(|(other, ..)| other == data).count() > 1;
        let warning = if several {
            format!(
                "; runs of {data} saw different events, so their numbers do not compare: keep one of them in the archives, or name the data with --data-dir"
            )
        } else {
            String::new()
        };
        lines.push(format!(
            "{data}: {} of {}, SHA-256 {}… ({}), {at_hand}{warning}",
            counted(content.events, "event"),
            counted(content.nodes, "node"),
            content.short(),
            counted(runs.len(), "run")
        ));
    }
    let unknown: Vec<&&Found> = done.iter().filter(|one| one.content.is_none()).collect();
    if !unknown.is_empty() {
        let mut names: Vec<&str> = Vec::new();
        for one in &unknown {
            if !names.contains(&one.cell.data.as_str()) {
                names.push(&one.cell.data);
            }
        }
        lines.push(format!(
            "matched by the name of the data alone, since no fingerprint of its content was recorded: {} ({})",
            counted(unknown.len(), "run"),
            names.join(", ")
        ));
    }
    lines
}
