//! Where the candidates of a ranking come from.

use std::path::PathBuf;

use super::{CandidateCount, CandidateFile, CandidateLists, Pass, TgbLists, TgbRule};
use crate::error::Result;
use crate::event::{EventId, EventStream, NodeId};
use crate::random::RandomStream;
use crate::split::Split;

/// The destinations that true ones are ranked among.
///
/// ```
/// use ctdg::negative::{CandidateCount, Candidates, TgbRule};
///
/// let own: Candidates = CandidateCount::Some(100).into();
/// assert_ne!(own, Candidates::Tgb(TgbRule::new(100))); // the same rule, but other draws
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Candidates {
    /// Drawn with this crate's generator, each list independently of the others.
    Drawn(CandidateCount),
    /// Drawn as py-tgb does.
    Tgb(TgbRule),
    /// From a file, as [`CandidateFile`] describes it.
    File(PathBuf),
}

impl From<CandidateCount> for Candidates {
    fn from(count: CandidateCount) -> Self {
        Self::Drawn(count)
    }
}

impl Candidates {
    /// The lists for one pass over `split`. Reads the file, if that is where they are.
    pub fn lists<'s>(&self, stream: &'s EventStream, split: &Split, pass: Pass) -> Result<CandidateSource<'s>> {
        Ok(CandidateSource(match self {
            Self::Drawn(count) => {
                let random = RandomStream::named(u64::from(pass.seed()), "ranking");
                Kind::Drawn(CandidateLists::new(stream, split, *count, random))
            }
            Self::Tgb(rule) => Kind::Tgb(Box::new(TgbLists::new(stream, split, *rule))),
            Self::File(path) => Kind::File(stream, CandidateFile::read(path, stream)?),
        }))
    }
}

/// Lists of candidates; made by [`Candidates::lists`].
#[derive(Debug)]
pub struct CandidateSource<'s>(Kind<'s>);

#[derive(Debug)]
enum Kind<'s> {
    Drawn(CandidateLists<'s>),
    Tgb(Box<TgbLists<'s>>),
    File(&'s EventStream, CandidateFile),
}

impl CandidateSource<'_> {
    /// The candidates of `event`. Ascending events are fastest.
    pub fn of(&mut self, event: EventId) -> Result<Vec<NodeId>> {
        Ok(match &mut self.0 {
            Kind::Drawn(lists) => lists.of(event),
            Kind::Tgb(lists) => lists.of(event),
            Kind::File(stream, file) => file.of(stream, event)?.to_vec(),
        })
    }
}
