//! Pairs that did not happen, to be told from those that did.
//!
//! | kind | what is drawn | for |
//! |---|---|---|
//! | [`RandomNegatives`] | the true source with any destination | training and evaluation; equal to DyGLib's bit for bit |
//! | [`PastNegatives`], historical | pairs that met before the batch but not in it | evaluation |
//! | [`PastNegatives`], inductive | of those, the ones never seen up to the end of training | evaluation |
//! | [`CandidateLists`] | many destinations for one source | ranking, in TGB's manner |
//!
//! Random negatives never look at times; the others see only what happened up to their batch.

mod candidates;
mod past;
mod random;

pub use candidates::{CandidateCount, CandidateLists};
pub use past::{PastKind, PastNegatives};
pub use random::RandomNegatives;

use crate::event::{Cut, EventId, EventStream, up_to};
use crate::split::Split;

/// One pass over evaluation events.
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

    /// DyGLib's seed for the negatives of this pass; the same in every run, so that models meet the same ones.
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

    /// The events known before the pass begins: training, and for test validation too.
    #[must_use]
    pub fn base(self, split: &Split) -> Vec<EventId> {
        match self {
            Self::Val | Self::NewNodeVal => split.train.clone(),
            Self::Test | Self::NewNodeTest => [split.train.as_slice(), &split.val].concat(),
        }
    }

    /// The events whose nodes and pairs serve as negatives: all events, or only those with new nodes.
    #[must_use]
    pub fn pool(self, split: &Split) -> Vec<EventId> {
        match self {
            Self::Val | Self::Test => split.all(),
            Self::NewNodeVal | Self::NewNodeTest => self.events(split).to_vec(),
        }
    }

    /// Where the pass's model stopped seeing pairs: after the moment of the last training event for validation, of the
    /// last validation event for test.
    #[must_use]
    pub fn observed(self, stream: &EventStream, split: &Split) -> Cut {
        let seen = match self {
            Self::Val | Self::NewNodeVal => &split.train,
            Self::Test | Self::NewNodeTest => &split.val,
        };
        seen.last().map_or(Cut::START, |last| up_to(stream.times(), stream.times()[last.index()]))
    }
}
