//! What a dataset and its evaluation protocol give away: leaks that a score can rest on without knowing who meets whom.
//!
//! | check | question |
//! |---|---|
//! | [`Padding`] | Does the padded length of a batch tell positives from negatives? |
//! | [`SameMoment`] | What do events of the same time in earlier batches tell? |
//! | [`NeverMet`] | How far does "never met" get against negatives that are past pairs? |
//! | [`F32Times`] | Does a time rounded to `f32` let an event see itself? |
//! | [`Counts`], [`Activity`] | Ties, self-loops, duplicates, repeats, new nodes, drift, silences |
//! | [`HeuristicScores`] | What does each untrained heuristic reach under each protocol? |
//!
//! Each check has a [`Finding`]: a verdict, what was measured, why it matters and what to do.
//!
//! ```
//! use ctdg::audit::{Audit, AuditOptions, Check, Verdict};
//! use ctdg::event::EventStream;
//! use ctdg::split::{MASK_SEED, SplitMode, SplitRule};
//!
//! // One moment a day: whoever sees earlier batches of the day knows half of it.
//! let stream = EventStream::from_events((0..4_000u32).map(|i| (i % 7, 7 + i / 400, f64::from(i / 400))))?;
//! let split = SplitRule::of(&stream, SplitMode::Dyglib, MASK_SEED)?.apply(&stream)?;
//! let audit = Audit::of(&stream, &split, &AuditOptions::default(), &|_, _| ())?;
//! assert_eq!(audit.finding(Check::SameMoment).verdict, Verdict::Leak);
//! assert_eq!(audit.finding(Check::F32Times).verdict, Verdict::Ok);
//! # Ok::<(), ctdg::Error>(())
//! ```
//!
//! AP is the mean over batches, as published tables have it. Negatives are those of the evaluation, seeds included.
//! Validation batches decide how the padded length is read. The finding of [`SameMoment`] is the largest gain of several
//! heuristics on test events: an upper end, not an estimate.

mod activity;
mod batches;
mod counts;
mod f32_times;
mod finding;
mod judge;
mod never_met;
mod padding;
mod protocols;
mod same_moment;

pub use activity::{Activity, Gaps, PartActivity};
pub use batches::{LinkScores, PerSetting};
pub use counts::{Counts, PartCounts};
pub use f32_times::F32Times;
pub use finding::{Check, Finding, Verdict};
pub use never_met::{NeverMet, NeverMetScores};
pub use padding::{Longer, PADDING_SETTINGS, Padding, PaddingScores};
pub use protocols::HeuristicScores;
pub use same_moment::{MomentScores, SameMoment};

use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;

use crate::error::Result;
use crate::event::EventStream;
use crate::negative::{NegativeKind, Pass};
use crate::split::Split;
use crate::store::Store;
use batches::{Batches, TEST_PASSES};

/// Events of a batch in `DyGLib` and the paper.
pub const BATCH: usize = 200;

/// How a model would be evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditOptions {
    /// Events of an evaluation batch; 0 counts as 1.
    pub batch: usize,
    /// Longest sequences and patch sizes to look at; 0 counts as 1.
    pub padding: Vec<(usize, usize)>,
}

impl Default for AuditOptions {
    /// Batches of [`BATCH`] events, and [`PADDING_SETTINGS`].
    fn default() -> Self {
        Self { batch: BATCH, padding: PADDING_SETTINGS.to_vec() }
    }
}

/// All measurements, and what follows from them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Audit {
    /// Events of an evaluation batch.
    pub batch: usize,
    /// One for each check, the worst first.
    pub findings: Vec<Finding>,
    /// AP of the padded length alone, by longest sequence.
    pub padding: Vec<Padding>,
    /// What events of the same time in earlier batches tell.
    pub same_moment: SameMoment,
    /// AP of "never met", by kind of negatives.
    pub never_met: Vec<NeverMet>,
    /// Times rounded to `f32`.
    pub f32_times: F32Times,
    /// Ties, self-loops, duplicates, repeats and new nodes.
    pub counts: Counts,
    /// Drift and silences.
    pub activity: Activity,
    /// Untrained heuristics under each protocol.
    pub heuristics: Vec<HeuristicScores>,
}

impl Audit {
    /// Measures `stream` under `split`. `progress` gets the steps done and their number, from any thread.
    ///
    /// Time O(E log E) for E events; scores of the test events by five heuristics against three kinds of negatives take most
    /// of it. Memory: the store, and 48 bytes for each test event and kind of negatives.
    pub fn of(
        stream: &EventStream,
        split: &Split,
        options: &AuditOptions,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Self> {
        let n_protocols = NegativeKind::ALL.len() * TEST_PASSES.len();
        let (done, total) = (AtomicUsize::new(0), 3 + TEST_PASSES.len() + n_protocols);
        let step = || progress(done.fetch_add(1, Ordering::Relaxed) + 1, total);
        let batch = options.batch.max(1);
        progress(0, total);
        let store = Store::build(stream)?;
        step();
        let batches = |pass, kind| Batches::draw(stream, split, pass, kind, batch);
        let padding = padding::measure(&store, &options.padding, |pass| batches(pass, NegativeKind::Random))?;
        step();
        let same_moment = SameMoment::measure(|pass| {
            let scores = same_moment::scores(stream, &store, split, pass, batch);
            step();
            scores
        })?;
        let protocols = protocols::measure(|pass, kind| {
            let drawn = batches(pass, kind)?;
            let scores = protocols::scores(stream, &store, &pass.base(split), drawn.as_ref());
            let never_met = drawn.as_ref().map(|drawn| NeverMetScores::of(&store, drawn)).transpose();
            step();
            Ok((scores?, never_met?))
        })?;
        let (heuristics, never_met) = (protocols::rows(&protocols), never_met::rows(&protocols));
        let mut audit = Self {
            batch,
            findings: Vec::new(),
            padding,
            same_moment,
            never_met,
            f32_times: F32Times::of(stream),
            counts: Counts::of(stream, &store, split),
            activity: Activity::of(stream, split),
            heuristics,
        };
        audit.findings = judge::findings(&audit);
        step();
        Ok(audit)
    }

    /// The finding of `check`.
    ///
    /// # Panics
    /// When `findings` was changed and has none.
    #[must_use]
    pub fn finding(&self, check: Check) -> &Finding {
        self.findings.iter().find(|finding| finding.check == check).expect("there is one for each check")
    }

    /// Number of findings with `verdict`.
    #[must_use]
    pub fn count(&self, verdict: Verdict) -> usize {
        self.findings.iter().filter(|finding| finding.verdict == verdict).count()
    }

    /// The padding setting that validation events show to tell most; the longest sequence of several.
    #[must_use]
    pub fn strongest_padding(&self) -> Option<(&Padding, &PaddingScores)> {
        let measured = self.padding.iter().filter_map(|row| Some((row, row.scores.transductive.as_ref()?)));
        measured.max_by(|a, b| a.1.val_ap.unwrap_or(0.5).total_cmp(&b.1.val_ap.unwrap_or(0.5)))
    }

    /// The heuristic with the highest AP against `negatives` on test events, or on those with new nodes.
    #[must_use]
    pub fn best_heuristic(&self, negatives: NegativeKind, pass: Pass) -> Option<(&str, LinkScores)> {
        let rows = self.heuristics.iter().filter(|row| row.negatives == negatives);
        let scored = rows.filter_map(|row| Some((row.heuristic.as_str(), *row.scores.of(pass)?)));
        scored.max_by(|a, b| a.1.ap.total_cmp(&b.1.ap))
    }
}
