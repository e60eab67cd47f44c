//! Process groups: ranks that train one model together, each on its share of every batch.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Error, Result};

/// How the ranks of a [`ProcessGroup`] reach each other. Every rank calls the same functions in the same order.
///
/// A rank that is gone or silent is an [`Error::LostRank`] on all others; [`reform`](Self::reform) waits for its replacement.
pub trait Transport: Send + std::fmt::Debug {
    /// This process, from 0.
    fn rank(&self) -> usize;

    /// The number of processes.
    fn n_ranks(&self) -> usize;

    /// The `part` of every rank, in order of ranks.
    fn all_gather(&mut self, part: &[u8]) -> Result<Vec<Vec<u8>>>;

    /// Fills `values` with sums that are the same on every rank: from zero, `add` of rank 0, then of rank 1, … adds its own
    /// values to each block. `add` gets the range of a block and the block.
    fn sum_in_order(&mut self, values: &mut [f32], add: &mut dyn FnMut(Range<usize>, &mut [f32])) -> Result<()>;

    /// Tells the other ranks that this one ends, and why: an [`Error::FailedRank`] for them.
    fn abort(&mut self, reason: &str);

    /// Waits until all ranks, lost ones replaced, are here again.
    fn reform(&mut self) -> Result<()>;
}

/// The processes that train one model together. By default this one alone. A clone is the same group.
///
/// Every rank holds the same weights. Of each batch it computes the gradients of its share; the shares are added in a fixed
/// order, and every rank takes the same optimizer step.
///
/// ```
/// use hopedgn_tensor::ProcessGroup;
///
/// let alone = ProcessGroup::default();
/// assert_eq!((alone.rank(), alone.n_ranks(), alone.share(7)), (0, 1, 0..7));
/// assert_eq!(alone.all_gather(b"mine")?, [b"mine"]);
/// # Ok::<(), hopedgn_tensor::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct ProcessGroup {
    members: Option<Members>,
}

#[derive(Debug, Clone)]
struct Members {
    transport: Arc<Mutex<Box<dyn Transport>>>,
    rank: usize,
    n_ranks: usize,
    stop: Arc<Stop>,
}

/// Who wants to stop. Every exchange carries it, so that it costs no messages of its own.
#[derive(Debug, Default)]
struct Stop {
    is_wanted_here: AtomicBool,
    /// Whether any rank wanted to in the last exchange.
    is_agreed: AtomicBool,
}

impl Stop {
    fn is_wanted_here(&self) -> bool {
        self.is_wanted_here.load(Ordering::Relaxed)
    }

    fn agree(&self, is_wanted: bool) {
        self.is_agreed.store(is_wanted, Ordering::Relaxed);
    }
}

impl ProcessGroup {
    /// The processes that `transport` connects.
    #[must_use]
    pub fn new(transport: impl Transport + 'static) -> Self {
        let (rank, n_ranks) = (transport.rank(), transport.n_ranks());
        let transport: Arc<Mutex<Box<dyn Transport>>> = Arc::new(Mutex::new(Box::new(transport)));
        Self { members: Some(Members { transport, rank, n_ranks, stop: Arc::default() }) }
    }

    /// This process, from 0.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.members.as_ref().map_or(0, |members| members.rank)
    }

    /// The number of processes, at least 1.
    #[must_use]
    pub fn n_ranks(&self) -> usize {
        self.members.as_ref().map_or(1, |members| members.n_ranks)
    }

    /// Whether there is no other process.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.n_ranks() == 1
    }

    /// The part of `n` adjacent things that is this rank's. The parts of all ranks, in order, are the whole.
    #[must_use]
    pub fn share(&self, n: usize) -> Range<usize> {
        self.share_of(self.rank(), n)
    }

    /// The part of a rank.
    #[must_use]
    pub fn share_of(&self, rank: usize, n: usize) -> Range<usize> {
        rank * n / self.n_ranks()..(rank + 1) * n / self.n_ranks()
    }

    /// The `part` of every rank, in order of ranks.
    pub fn all_gather(&self, part: &[u8]) -> Result<Vec<Vec<u8>>> {
        let Some(Members { transport, stop, .. }) = &self.members else { return Ok(vec![part.to_vec()]) };
        let own = [part, &[u8::from(stop.is_wanted_here())]].concat();
        let mut parts = lock(transport).all_gather(&own)?;
        let n_stops = parts.iter_mut().filter_map(Vec::pop).filter(|&is_wanted| is_wanted == 1).count();
        stop.agree(n_stops > 0);
        Ok(parts)
    }

    /// Says whether this rank wants all to stop; the next exchange tells the others.
    pub fn want_stop(&self, is_wanted: bool) {
        if let Some(members) = &self.members {
            members.stop.is_wanted_here.store(is_wanted, Ordering::Relaxed);
        }
    }

    /// Whether any rank wanted to stop in the last exchange: the same on all ranks between two exchanges. False of one process.
    #[must_use]
    pub fn is_stop_agreed(&self) -> bool {
        self.members.as_ref().is_some_and(|members| members.stop.is_agreed.load(Ordering::Relaxed))
    }

    /// Concatenates the values of all ranks, in order of ranks.
    pub fn concat(&self, values: Vec<f32>) -> Result<Vec<f32>> {
        if self.is_alone() {
            return Ok(values);
        }
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let parts = self.all_gather(&bytes)?.concat();
        Ok(parts.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect())
    }

    /// Whether it is true of any rank.
    pub fn any(&self, is_true: bool) -> Result<bool> {
        Ok(self.all_gather(&[u8::from(is_true)])?.iter().any(|part| part == &[1]))
    }

    /// The result of this rank, unless another one failed: then all fail.
    pub fn agree<T, E: From<Error> + std::fmt::Display>(&self, result: Result<T, E>) -> Result<T, E> {
        if self.is_alone() {
            return result;
        }
        let reason = result.as_ref().err().map(ToString::to_string).unwrap_or_default();
        let reasons = self.all_gather(reason.as_bytes())?;
        let failed = reasons.iter().position(|reason| !reason.is_empty());
        match (result, failed) {
            (Err(error), _) => Err(error),
            (Ok(result), None) => Ok(result),
            (Ok(_), Some(rank)) => {
                Err(Error::FailedRank { rank, detail: String::from_utf8_lossy(&reasons[rank]).into_owned() }.into())
            }
        }
    }

    /// Tells the other ranks that this one ends, and why.
    pub fn abort(&self, reason: &str) {
        if let Some(mut transport) = self.transport() {
            transport.abort(reason);
        }
    }

    /// Waits until all ranks, lost ones replaced, are here again.
    pub fn reform(&self) -> Result<()> {
        self.transport().map_or(Ok(()), |mut transport| transport.reform())
    }

    /// See [`Transport::sum_in_order`].
    pub(crate) fn sum_in_order(
        &self,
        values: &mut Vec<f32>,
        add: &mut dyn FnMut(Range<usize>, &mut [f32]),
    ) -> Result<()> {
        let Some(Members { transport, stop, .. }) = &self.members else {
            values.fill(0.0);
            add(0..values.len(), values);
            return Ok(());
        };
        let (n, own) = (values.len(), if stop.is_wanted_here() { 1.0 } else { 0.0 });
        values.push(0.0);
        lock(transport).sum_in_order(values, &mut |range, sums| {
            let (sums, stops) = sums.split_at_mut(range.end.min(n) - range.start);
            for place in stops {
                *place += own;
            }
            add(range.start..range.start + sums.len(), sums);
        })?;
        stop.agree(values.pop().is_some_and(|n_stops| n_stops > 0.0));
        Ok(())
    }

    fn transport(&self) -> Option<MutexGuard<'_, Box<dyn Transport>>> {
        self.members.as_ref().map(|members| lock(&members.transport))
    }
}

fn lock(transport: &Mutex<Box<dyn Transport>>) -> MutexGuard<'_, Box<dyn Transport>> {
    // One thread of a process trains; after its panic the connections are closed, which the others notice.
    transport.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Nowhere(usize, usize);

    impl Transport for Nowhere {
        fn rank(&self) -> usize {
            self.0
        }
        fn n_ranks(&self) -> usize {
            self.1
        }
        fn all_gather(&mut self, part: &[u8]) -> Result<Vec<Vec<u8>>> {
            Ok((0..self.1).map(|rank| if rank == self.0 { part.to_vec() } else { Vec::new() }).collect())
        }
        fn sum_in_order(&mut self, _: &mut [f32], _: &mut dyn FnMut(Range<usize>, &mut [f32])) -> Result<()> {
            Ok(())
        }
        fn abort(&mut self, _: &str) {}
        fn reform(&mut self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn shares_are_adjacent_and_cover_everything_once() {
        for n_ranks in 1..=9 {
            for n in [0, 1, 3, 16, 17] {
                let shares: Vec<_> =
                    (0..n_ranks).map(|rank| ProcessGroup::new(Nowhere(rank, n_ranks)).share(n)).collect();
                let joined: Vec<usize> = shares.iter().cloned().flatten().collect();
                assert_eq!(joined, (0..n).collect::<Vec<_>>());
                let sizes: Vec<usize> = shares.iter().map(Range::len).collect();
                assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1, "{sizes:?}");
            }
        }
    }

    #[test]
    fn a_wish_to_stop_is_agreed_with_the_next_exchange_and_leaves_its_content() {
        let group = ProcessGroup::new(Nowhere(0, 2));
        group.want_stop(true);
        assert!(!group.is_stop_agreed());
        assert_eq!(group.all_gather(b"mine").unwrap(), [&b"mine"[..], b""]);
        assert!(group.is_stop_agreed());
        group.want_stop(false);
        let mut sums = vec![1.0, 2.0];
        group.sum_in_order(&mut sums, &mut |_, _| {}).unwrap();
        assert_eq!((sums, group.is_stop_agreed()), (vec![1.0, 2.0], false));
        let alone = ProcessGroup::default();
        alone.want_stop(true);
        assert!(!alone.is_stop_agreed());
    }
}
