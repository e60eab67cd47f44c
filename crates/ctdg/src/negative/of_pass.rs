//! The negatives that an evaluation pass compares its events with.

use serde::{Deserialize, Serialize};

use super::{Pass, PastKind, PastNegatives, RandomNegatives};
use crate::error::Result;
use crate::event::{EventId, EventStream, NodeId};
use crate::random::RandomStream;
use crate::split::Split;

/// Kinds of negatives of an evaluation, one for each event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NegativeKind {
    /// The true source with a random destination.
    Random,
    /// Pairs that interacted before, but not at this time.
    Historical,
    /// Of those, pairs that first interacted after the training part.
    Inductive,
}

impl NegativeKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Random, Self::Historical, Self::Inductive];

    /// The name in files and on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Historical => "historical",
            Self::Inductive => "inductive",
        }
    }
}

/// The negatives of one pass, with the pool and the seed that belong to it. Batches are drawn in order.
///
/// ```
/// use ctdg::negative::{NegativeKind, Pass, PassNegatives};
/// use ctdg::split::{MASK_SEED, SplitMode, SplitRule};
///
/// let stream = ctdg::dataset::collegemsg()?;
/// let split = SplitRule::of(&stream, SplitMode::Dyglib, MASK_SEED)?.apply(&stream)?;
/// let mut negatives = PassNegatives::new(&stream, &split, Pass::Test, NegativeKind::Random);
/// let pairs = negatives.draw(&split.test[..200], 0)?;
/// assert_eq!(pairs[0].0, stream.event(split.test[0]).src); // random ones keep the source
/// # Ok::<(), ctdg::Error>(())
/// ```
#[derive(Debug)]
pub struct PassNegatives<'s> {
    stream: &'s EventStream,
    sampler: Sampler<'s>,
}

#[derive(Debug)]
enum Sampler<'s> {
    Random(Box<RandomNegatives>),
    Past(Box<PastNegatives<'s>>),
}

impl<'s> PassNegatives<'s> {
    /// Those of `pass`, from its first batch on.
    #[must_use]
    pub fn new(stream: &'s EventStream, split: &Split, pass: Pass, kind: NegativeKind) -> Self {
        let past = |past_kind| {
            let random = RandomStream::named(u64::from(pass.seed()), &format!("negative-eval/{}", kind.as_str()));
            Sampler::Past(Box::new(PastNegatives::new(stream, pass.pool(split), past_kind, random)))
        };
        let sampler = match kind {
            NegativeKind::Random => Sampler::Random(Box::new(Self::random(stream, split, pass))),
            NegativeKind::Historical => past(PastKind::Historical),
            NegativeKind::Inductive => past(PastKind::Inductive { observed: pass.observed(stream, split) }),
        };
        Self { stream, sampler }
    }

    /// Those of the pool of `pass`, without a list of all events.
    fn random(stream: &EventStream, split: &Split, pass: Pass) -> RandomNegatives {
        match pass {
            Pass::Val | Pass::Test => {
                let all = (0..split.rule.n_events).map(EventId::from_index);
                RandomNegatives::over(stream, &all, pass.seed())
            }
            Pass::NewNodeVal | Pass::NewNodeTest => RandomNegatives::new(stream, pass.events(split), pass.seed()),
        }
    }

    /// One pair for each event of `batch`, which is batch number `index` of the pass.
    pub fn draw(&mut self, batch: &[EventId], index: u64) -> Result<Vec<(NodeId, NodeId)>> {
        match &mut self.sampler {
            Sampler::Random(random) => {
                let sources = batch.iter().map(|id| self.stream.src()[id.index()]);
                Ok(sources.zip(random.draw(batch.len())).collect())
            }
            Sampler::Past(past) => past.draw(batch, index),
        }
    }
}
