//! Why a destination is likely, in plain words: what the past says about the pair and about the destination.

use std::fmt;

use ctdg::mite::PairQuery;
use ctdg::statistics::{DESTINATION, N_STATISTICS, NODE_WINDOWS};
use ctdg::store::Store;
use ctdg::time::TimeFormat;

use crate::fmt::{age, grouped};

/// Newest events among which those of the destination are counted.
const WINDOW: u32 = 1 << 10;

/// What the past says about a pair: how often the two met, and how busy the destination is.
///
/// These are facts about the events, which models read or may read; [`explain`](crate::explain) measures what changes a score.
///
/// ```
/// use hopedgn::{Events, ctdg::{mite::PairQuery, store::Store}, predict::Reason};
///
/// let events = Events::from_tuples([("a", "b", 1.0), ("c", "b", 4.0), ("a", "b", 6.0)])?;
/// let (src, dst) = (events.src()[0], events.dst()[0]);
/// let reason = Reason::of(&Store::build(&events)?, &PairQuery { src, dst, time: 8.0 });
/// assert_eq!(reason.to_string(), "met 2 times, last at 6, 2 before; 3 of the last 3 events went to it");
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reason {
    /// Earlier events of the two, in either direction.
    pub n_meetings: usize,
    /// Time of the last of them.
    pub last_meeting: Option<f64>,
    /// Events that went to the destination, of the newest [`Reason::n_newest`].
    pub n_recent: usize,
    /// The newest events before the query time, 1,024 or all there are.
    pub n_newest: usize,
    time: f64,
    time_format: TimeFormat,
}

impl Reason {
    /// What the events of `store` before the query say.
    #[must_use]
    pub fn of(store: &Store, query: &PairQuery) -> Self {
        let PairQuery { src, dst, time } = *query;
        let cut = store.cut(time);
        let meetings = store.pair_events(src, dst, cut);
        let mut row = [0.0; N_STATISTICS];
        store.statistics().write(query, &mut row);
        // Of the destination as a source, then as a destination; windows are the last columns of each.
        let as_destination = &row[DESTINATION][DESTINATION.len() / 2..];
        let windows = &as_destination[as_destination.len() - NODE_WINDOWS.len()..];
        let window = NODE_WINDOWS.iter().position(|&window| window == WINDOW).map_or(0.0, |at| windows[at]);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
        let n_recent = window as usize;
        Self {
            // A self-loop is in the lists of both of its ends.
            n_meetings: if src == dst { meetings.len() / 2 } else { meetings.len() },
            last_meeting: meetings.last().map(|event| store.time(event)),
            n_recent,
            // A window begins with a moment, so it may hold more.
            n_newest: cut.n_events().min(WINDOW as usize).max(n_recent),
            time,
            time_format: store.time_format(),
        }
    }

    /// When the last meeting was.
    fn when(&self, last: f64) -> String {
        format!("{}, {}", self.time_format.show(last), age(self.time_format, last, self.time))
    }
}

/// In one line.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.n_meetings, self.last_meeting) {
            (0, _) | (_, None) => f.write_str("never met")?,
            (1, Some(last)) => write!(f, "met once, at {}", self.when(last))?,
            (n, Some(last)) => write!(f, "met {} times, last at {}", grouped(n), self.when(last))?,
        }
        let newest = grouped(self.n_newest);
        match self.n_recent {
            0 => write!(f, "; none of the last {newest} events went to it"),
            n => write!(f, "; {} of the last {newest} events went to it", grouped(n)),
        }
    }
}

#[cfg(test)]
mod tests {
    use ctdg::event::{Columns, EventStream, NodeId};

    use super::*;

    fn reason(format: TimeFormat, src: u32, dst: u32, time: f64) -> String {
        let days =
            [(0, 1, 0.0), (1, 0, 1.0), (2, 3, 2.0), (4, 4, 3.0)].map(|(src, dst, day)| (src, dst, day * 86_400.0));
        let columns = EventStream::from_events(days).unwrap().into_columns();
        let stream = EventStream::new(Columns { time_format: format, ..columns }).unwrap();
        let store = Store::build(&stream).unwrap();
        Reason::of(&store, &PairQuery { src: NodeId(src), dst: NodeId(dst), time }).to_string()
    }

    #[test]
    fn reasons_state_meetings_and_recent_events_in_words() {
        use TimeFormat::{Date, Number};
        let expected = "met 2 times, last at 1970-01-02 00:00:00, 4.0 days before; 1 of the last 4 events went to it";
        assert_eq!(reason(Date, 0, 1, 5.0 * 86_400.0), expected);
        let expected = "met once, at 172800, 100 before; 1 of the last 3 events went to it";
        assert_eq!(reason(Number, 2, 3, 172_900.0), expected);
        assert_eq!(
            reason(Number, 2, 3, 172_800.0),
            "never met; none of the last 2 events went to it",
            "strictly before"
        );
        let expected = "met once, at 1970-01-04 00:00:00, 1 h 0 min before; 1 of the last 4 events went to it";
        assert_eq!(reason(Date, 4, 4, 3.0 * 86_400.0 + 3600.0), expected, "a self-loop is one event");
    }
}
