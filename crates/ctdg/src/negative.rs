//! Negative sampling for training, evaluation and ranking.
//!
//! | sampler | negatives | for |
//! |---|---|---|
//! | [`RandomNegatives`] | the true source with a random destination | training and evaluation; bit-identical to DyGLib |
//! | [`PastNegatives`], historical | pairs that interacted before the batch but not in it | evaluation |
//! | [`PastNegatives`], inductive | of those, pairs not observed in training | evaluation |
//! | [`CandidateLists`] | many destinations for one source, by TGB's rule | ranking |
//! | [`TgbLists`] | the same, bit-identical to py-tgb | ranking under TGB's protocol |
//! | [`CandidateFile`] | those of a file | the same, with published lists |
//!
//! Random negatives ignore times; the others use only events up to their batch.
//!
//! ```
//! use ctdg::negative::{Pass, RandomNegatives};
//! use ctdg::split::{MASK_SEED, SplitMode, SplitRule};
//!
//! let stream = ctdg::dataset::collegemsg()?;
//! let split = SplitRule::of(&stream, SplitMode::Dyglib, MASK_SEED)?.apply(&stream)?;
//! let pass = Pass::Val;
//! let mut negatives = RandomNegatives::new(&stream, &pass.pool(&split), pass.seed());
//! let batch = &pass.events(&split)[..200];
//! assert_eq!(negatives.draw(batch.len()).len(), 200); // one destination per event, paired with the event's source
//! # Ok::<(), ctdg::Error>(())
//! ```

mod candidate_file;
mod candidate_source;
mod candidates;
mod of_pass;
mod past;
mod random;
mod tgb;

pub use candidate_file::CandidateFile;
pub use candidate_source::{CandidateSource, Candidates};
pub use candidates::{CandidateCount, CandidateLists};
pub use of_pass::{NegativeKind, PassNegatives};
pub use past::{PastKind, PastNegatives};
pub use random::RandomNegatives;
pub use tgb::{TGB_SEED, TgbLists, TgbRule};

use crate::event::{Cut, EventId, EventStream, up_to};
use crate::split::Split;

/// An evaluation pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// All validation events.
    Val,
    /// Validation events with a new node.
    NewNodeVal,
    /// All test events.
    Test,
    /// Test events with a new node.
    NewNodeTest,
}

impl Pass {
    /// The four passes, in the order of their seeds.
    pub const ALL: [Self; 4] = [Self::Val, Self::NewNodeVal, Self::Test, Self::NewNodeTest];

    /// DyGLib's seed for the negatives of this pass; the same in every run, so that all models are compared on the same
    /// negatives.
    #[must_use]
    pub fn seed(self) -> u32 {
        self as u32
    }

    /// The events of the pass.
    #[must_use]
    pub fn events(self, split: &Split) -> &[EventId] {
        match self {
            Self::Val => &split.val,
            Self::NewNodeVal => &split.new_node_val,
            Self::Test => &split.test,
            Self::NewNodeTest => &split.new_node_test,
        }
    }

    /// The events known before the pass: training, and for test also validation.
    #[must_use]
    pub fn base(self, split: &Split) -> Vec<EventId> {
        match self {
            Self::Val | Self::NewNodeVal => split.train.clone(),
            Self::Test | Self::NewNodeTest => [split.train.as_slice(), &split.val].concat(),
        }
    }

    /// The events whose nodes and pairs are candidates for negatives: all events, or only those with new nodes.
    #[must_use]
    pub fn pool(self, split: &Split) -> Vec<EventId> {
        match self {
            Self::Val | Self::Test => split.all(),
            Self::NewNodeVal | Self::NewNodeTest => self.events(split).to_vec(),
        }
    }

    /// End of the observed events: after the time of the last training event for validation, of the last validation
    /// event for test.
    #[must_use]
    pub fn observed(self, stream: &EventStream, split: &Split) -> Cut {
        let observed = match self {
            Self::Val | Self::NewNodeVal => &split.train,
            // A test may begin before validation.
            Self::Test | Self::NewNodeTest if split.val.is_empty() => &split.train,
            Self::Test | Self::NewNodeTest => &split.val,
        };
        observed.last().map_or(Cut::START, |last| up_to(stream.times(), stream.times()[last.index()]))
    }
}
