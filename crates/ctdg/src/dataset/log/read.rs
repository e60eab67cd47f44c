//! A log as a dataset.

use std::path::Path;

use super::header::Header;
use super::recover::{self, Records};
use super::{BASE, EVENTS};
use crate::dataset::{ReadOptions, binary};
use crate::error::{Error, Result};
use crate::event::{EventStream, IdKind, NodeId, StreamBuilder};

/// The events before the first appended one.
pub(super) fn base(folder: &Path, header: &Header) -> Result<EventStream> {
    match header.base {
        Some(_) => binary::read(&folder.join(BASE), &ReadOptions::default()),
        None => EventStream::from_events([]),
    }
}

/// The events of base and log, as a file of them is read: in order of time, names as integers if all of them are. An unfinished append at
/// the end is left out: a server may be at work. Damage is an error.
pub fn read(folder: &Path) -> Result<EventStream> {
    // Before the records: a server that appends meanwhile notes only what is among them.
    let marker = recover::marker(folder);
    // Not mapped: a server that could not finish an append cuts the file off.
    let path = folder.join(EVENTS);
    let bytes = std::fs::read(&path).map_err(|source| Error::io(&path, "read", source))?;
    let (header, _) = recover::header(folder, &bytes)?;
    recover::check_base(folder, &header)?;
    let base = base(folder, &header)?;
    let edge_width = header.edge_width as usize;
    let names: Vec<String> =
        (0..base.n_nodes()).filter_map(NodeId::from_index).map(|node| base.names().name(node)).collect();
    let is_integer = |name: &str| name.parse::<u64>().is_ok_and(|number| number.to_string() == name);
    let mut are_integers = names.iter().all(|name| is_integer(name));
    let mut records = Records::new(&bytes, header.n_base());
    for record in &mut records {
        record.visit(edge_width, |event| {
            are_integers = are_integers && is_integer(event.src) && is_integer(event.dst);
            Ok(())
        })?;
    }
    recover::check_end(folder, &records, marker)?;

    let ids = if are_integers { IdKind::Integer } else { IdKind::Text };
    let mut builder = StreamBuilder::new(ids, header.bipartite, true);
    builder.set_time_format(header.time_format);
    let n_events = usize::try_from(records.sequence).unwrap_or(usize::MAX);
    builder.reserve(n_events, edge_width);
    for id in base.ids() {
        let event = base.event(id);
        let [src, dst] = [event.src, event.dst].map(|node| names[node.index()].as_bytes());
        builder.push(src, dst, event.time, event.label).map_err(|rejected| *rejected.problem)?;
        if let Some(features) = base.edge_features() {
            builder.push_features(features.row(id.index()).iter().copied())?;
        }
    }
    for record in &mut Records::new(&bytes, header.n_base()) {
        record.visit(edge_width, |event| {
            let pushed = builder.push(event.src.as_bytes(), event.dst.as_bytes(), event.time, event.label);
            pushed.map_err(|rejected| *rejected.problem)?;
            if edge_width > 0 {
                builder.push_features(event.features())?;
            }
            Ok(())
        })?;
    }
    builder.finish(None)
}
