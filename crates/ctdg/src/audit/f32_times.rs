//! Times rounded to `f32`, as `DyGLib` stores those of neighbours.
//!
//! The second hop of TGAT asks for the neighbours of a neighbour at the rounded time of the event between them. Where
//! rounding goes up, that query sees the event itself, and whatever happened up to the rounded time.

use serde::Serialize;

use super::batches::share;
use crate::event::{EventStream, up_to};

/// What rounding does to the times of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct F32Times {
    /// Share of events whose rounded time is another.
    pub changed: f64,
    /// Share of events that a query at their own rounded time sees: those that are rounded up.
    pub sees_itself: f64,
    /// Share of events whose rounded time also shows a query events later than themselves.
    pub sees_later: f64,
    /// The largest difference between a time and its rounding.
    pub largest_error: f64,
}

impl F32Times {
    /// Of all events of `stream`.
    #[must_use]
    pub fn of(stream: &EventStream) -> Self {
        let [mut changed, mut sees_itself, mut sees_later] = [0; 3];
        let mut largest_error = 0.0_f64;
        for (id, &time) in stream.ids().zip(stream.times()) {
            #[expect(clippy::cast_possible_truncation, reason = "the rounding that is measured")]
            let rounded = f64::from(time as f32);
            if rounded == time {
                continue;
            }
            changed += 1;
            // A time beyond what f32 holds becomes infinite.
            largest_error = largest_error.max((rounded - time).abs()).min(f64::MAX);
            let visible = stream.cut(rounded);
            sees_itself += usize::from(visible.sees(id));
            sees_later += usize::from(visible > up_to(stream.times(), time));
        }
        let of_all = |n| share(n, stream.len());
        Self {
            changed: of_all(changed),
            sees_itself: of_all(sees_itself),
            sees_later: of_all(sees_later),
            largest_error,
        }
    }
}
