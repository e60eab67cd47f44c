//! Generators of streams with edge cases: equal times, repeats, self-loops, isolated nodes.

use ctdg::event::EventStream;
use proptest::prelude::*;

/// Sorted rows `(src, dst, time)` over few nodes and fewer times.
pub(crate) fn rows(most: usize) -> impl Strategy<Value = Vec<(u32, u32, f64)>> {
    let row = (0u32..6, 0u32..6, 0u8..8);
    prop::collection::vec(row, 1..most).prop_map(|mut rows| {
        rows.sort_by_key(|row| row.2);
        // Fractional and negative times too.
        rows.into_iter().map(|(src, dst, time)| (src, dst, f64::from(time) / 2.0 - 1.0)).collect()
    })
}

/// A stream of at most `most` events over eight nodes, of which 6 and 7 never occur.
pub(crate) fn stream(most: usize) -> impl Strategy<Value = EventStream> {
    rows(most).prop_map(|rows| with_isolated_nodes(&rows))
}

/// A stream of `rows` with two more nodes that have no event.
pub(crate) fn with_isolated_nodes(rows: &[(u32, u32, f64)]) -> EventStream {
    let mut columns = EventStream::from_events(rows.iter().copied()).expect("rows are in order").into_columns();
    columns.names = ctdg::event::NodeNames::counted(0, 8);
    EventStream::new(columns).expect("more names than nodes do no harm")
}

/// Query times around and between event times.
pub(crate) fn time() -> impl Strategy<Value = f64> {
    (0u8..20).prop_map(|time| f64::from(time) / 4.0 - 1.5)
}
