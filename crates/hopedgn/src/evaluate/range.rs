//! Which events are tested: the test part of the split, newer events, or those of some times.

use std::ops::Range;

use crate::{Error, Events, Result};

/// Which events are tested.
///
/// ```
/// # use hopedgn::{Events, LinkPredictor};
/// # let message = |i: i32| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i));
/// # let events = Events::from_tuples((0..100).map(message))?;
/// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
/// use hopedgn::{EvaluateOptions, callbacks::NoCallback, evaluate::{Negatives, TestRange}};
///
/// let grown = Events::from_tuples((0..130).map(message))?; // thirty more messages
/// let options = |range| EvaluateOptions { negatives: vec![Negatives::Random], ranking: None, range };
/// let newer = predictor.evaluate_with(&grown, &options(TestRange::New), &mut NoCallback)?;
/// assert_eq!(newer.tested.map(|tested| (tested.events, tested.trained_on)), Some((30, 0)));
/// let times = TestRange::Times { from: 110.0, until: Some(120.0) };
/// let some = predictor.evaluate_with(&grown, &options(times), &mut NoCallback)?;
/// assert_eq!(some.tested.map(|tested| tested.events), Some(10));
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum TestRange {
    /// The test part of the run's own events.
    #[default]
    Split,
    /// All events after those of the run.
    New,
    /// Events from a time on, strictly before another one if it is given.
    Times {
        /// The first time.
        from: f64,
        /// Just after the last time.
        until: Option<f64>,
    },
}

impl TestRange {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Split => "test",
            Self::New => "new",
            Self::Times { .. } => "times",
        }
    }

    /// The events of `events` to test, of which the first `n_known` are those of the run; the run's own test part is not for this
    /// function.
    pub(crate) fn of(self, events: &Events, n_known: usize) -> Result<Range<usize>> {
        let show = |time: f64| events.time_format().show(time);
        let (range, what) = match self {
            Self::Split | Self::New => (n_known..events.len(), format!("after the {n_known} of the run")),
            Self::Times { from, until } => {
                if let Some(time) = [Some(from), until].into_iter().flatten().find(|time| !time.is_finite()) {
                    let (found, expected) = (time.to_string(), "a finite number".to_owned());
                    return Err(Error::Setting { name: "time", found, expected });
                }
                let end = until.map_or(events.len(), |until| events.cut(until).n_events());
                let before = until.map_or(String::new(), |until| format!(" and before {}", show(until)));
                (events.cut(from).n_events()..end, format!("from {} on{before}", show(from)))
            }
        };
        if range.is_empty() {
            let last = events.times().last().map_or("nowhere".to_owned(), |&last| show(last));
            return Err(Error::NoTestEvents { what, last });
        }
        Ok(range)
    }
}
