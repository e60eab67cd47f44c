//! What events of the same time tell if earlier batches are visible.
//!
//! A model whose state advances by batches, such as a node memory or `DyGLib`'s `EdgeBank`, sees events at the very time of a
//! query if they lie in an earlier batch. A forecast cannot: they have not happened yet. The same heuristics are scored
//! twice, on the stream as it is, where a query sees what is strictly before its time, and on a copy in which each batch
//! of a moment is a moment of its own. Nothing else differs.

use serde::Serialize;

use super::batches::{Batches, PerSetting, share};
use crate::error::Result;
use crate::event::PairQuery;
use crate::event::{EventId, EventStream};
use crate::heuristic::{EdgeBank, EdgeBankMode, Heuristic, RecencyPopularity};
use crate::negative::{NegativeKind, Pass};
use crate::split::Split;
use crate::store::Store;

impl MomentScores {
    /// AP that events of the same time add.
    #[must_use]
    pub fn gain(&self) -> f64 {
        self.visible_ap - self.strict_ap
    }
}

/// By setting, with random negatives.
pub type SameMoment = PerSetting<Vec<MomentScores>>;

/// One heuristic with and without events of the same time. Beside those of [`crate::heuristic`] that do not read the clock
/// there is `destination-recency`: the place in the stream of the destination's last event.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MomentScores {
    /// Its name.
    pub heuristic: String,
    /// Share of events with an event of the same time in an earlier batch of the pass.
    pub share: f64,
    /// AP from events strictly before the query's time.
    pub strict_ap: f64,
    /// AP if events of the same time in earlier batches are visible too.
    pub visible_ap: f64,
}

/// Scores a pair by the place in the stream of its destination's last event, in either role.
///
/// It looks for the order of the file within a moment: where events are listed node by node, a destination that was just
/// listed comes next. It is a probe, chosen because it
/// shows the leak of `CanParl`, not a baseline.
struct DestinationRecency<'s>(&'s Store);

impl Heuristic for DestinationRecency<'_> {
    fn name(&self) -> String {
        "destination-recency".into()
    }

    fn score(&mut self, _batch: &[EventId], queries: &[PairQuery]) -> Result<Vec<f32>> {
        let place = |query: &PairQuery| {
            let last = self.0.history(query.dst, self.0.cut(query.time)).events.last();
            // Counted from the newest visible event, so that the places that decide are exact in f32.
            last.map_or(f32::NEG_INFINITY, |event| -((self.0.cut(query.time).n_events() - event.index()) as f32))
        };
        Ok(queries.iter().map(place).collect())
    }
}

/// Heuristics that do not read the clock: a copy with other times gives them nothing but what is visible.
fn timeless<'s>(stream: &'s EventStream, store: &'s Store, base: &[EventId]) -> Result<[Box<dyn Heuristic + 's>; 4]> {
    let bank = |mode| EdgeBank::new(stream, base, mode);
    Ok([
        Box::new(bank(EdgeBankMode::Unlimited)?),
        Box::new(bank(EdgeBankMode::Repeat)?),
        Box::new(RecencyPopularity::new(store)),
        Box::new(DestinationRecency(store)),
    ])
}

/// The scores of one pass.
pub(super) fn scores(
    stream: &EventStream,
    store: &Store,
    split: &Split,
    pass: Pass,
    batch: usize,
) -> Result<Option<Vec<MomentScores>>> {
    let Some(batches) = Batches::draw(stream, split, pass, NegativeKind::Random, batch)? else { return Ok(None) };
    let broken = Broken::of(stream, pass.events(split), batch)?;
    let broken_store = Store::build(&broken.stream)?;
    let base = pass.base(split);
    let strict = timeless(stream, store, &base)?;
    let visible = timeless(&broken.stream, &broken_store, &broken.ids(&base))?;
    let share = share_after_a_batch(stream, pass.events(split), batch);
    let both = |(mut strict, mut visible): (Box<dyn Heuristic + '_>, Box<dyn Heuristic + '_>)| {
        Ok(MomentScores {
            heuristic: strict.name(),
            share,
            strict_ap: batches.mean(|batch| strict.score(batch.events, &batch.queries))?.ap,
            visible_ap: batches
                .mean(|batch| {
                    let events = broken.ids(batch.events);
                    visible.score(&events, &broken.queries(&events, &batch.queries))
                })?
                .ap,
        })
    };
    strict.into_iter().zip(visible).map(both).collect::<Result<_>>().map(Some)
}

/// Share of `events` whose time is also that of an event of an earlier batch.
fn share_after_a_batch(stream: &EventStream, events: &[EventId], batch: usize) -> f64 {
    let time = |at: usize| stream.times()[events[at].index()];
    let is_visible = |&at: &usize| {
        let start = at - at % batch;
        start > 0 && time(start - 1) == time(at)
    };
    share((0..events.len()).filter(is_visible).count(), events.len())
}

/// A copy of a stream in which every batch of a pass is later than the batch before it, also within one time. Events of
/// that time which are not in the pass come last. Times are counted, not measured.
struct Broken {
    stream: EventStream,
    /// The id in the copy of each event.
    id: Vec<EventId>,
}

impl Broken {
    fn of(stream: &EventStream, pass: &[EventId], batch: usize) -> Result<Self> {
        let mut batch_of = vec![usize::MAX; stream.len()];
        for (at, event) in pass.iter().enumerate() {
            batch_of[event.index()] = at / batch;
        }
        let key = |event: &EventId| (stream.times()[event.index()], batch_of[event.index()]);
        let mut order: Vec<EventId> = stream.ids().collect();
        // Stable: within a batch the order of the stream stays.
        order.sort_by(|a, b| {
            let ((time_a, batch_a), (time_b, batch_b)) = (key(a), key(b));
            time_a.total_cmp(&time_b).then(batch_a.cmp(&batch_b))
        });
        let (mut id, mut events, mut moment) = (vec![EventId(0); stream.len()], Vec::new(), 0.0);
        for (place, event) in stream.ids().zip(&order) {
            if place.index() > 0 && key(&order[place.index() - 1]) != key(event) {
                moment += 1.0;
            }
            id[event.index()] = place;
            let of = stream.event(*event);
            events.push((of.src.0, of.dst.0, moment));
        }
        Ok(Self { stream: EventStream::from_events(events)?, id })
    }

    fn ids(&self, events: &[EventId]) -> Vec<EventId> {
        events.iter().map(|event| self.id[event.index()]).collect()
    }

    /// `queries` of `events` and of their negatives, at the times of the copy.
    fn queries(&self, events: &[EventId], queries: &[PairQuery]) -> Vec<PairQuery> {
        let times = events.iter().map(|event| self.stream.times()[event.index()]).cycle();
        queries.iter().zip(times).map(|(query, time)| PairQuery { time, ..*query }).collect()
    }
}
