//! Data parallelism on the CPU: a batch in small chunks, each run forward and backward by one thread.
//!
//! A chunk of a few sequences keeps its intermediate values in the cache. Each chunk has its own [`Tape`]. Gradients are
//! summed in a fixed number of groups, each over its own chunks in order, and the groups are added in order: the result
//! does not depend on the number of threads. A batch of one chunk is computed by all threads, operation by operation.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;

use crate::{Error, Gradients, Parameters, ProcessGroup, Result, Tape, Threads, Var};

/// Rows of a chunk whose values fit a core's cache: about eight pairs of 64 tokens.
pub(crate) const CHUNK_ROWS: usize = 512;

/// The number of groups: the most threads that compute gradients at once, and the number of gradient copies.
const N_GROUPS: usize = 16;

/// Memory for summing gradients over chunks, reused between batches.
#[derive(Debug)]
pub(crate) struct Chunks {
    groups: Vec<Gradients>,
    /// The sums of a process group, all parameters in order.
    sums: Vec<f32>,
}

impl Chunks {
    /// For a model with `parameters`.
    #[must_use]
    pub(crate) fn new(parameters: &Parameters) -> Self {
        Self { groups: (0..N_GROUPS).map(|_| Gradients::zeros(parameters)).collect(), sums: Vec::new() }
    }

    /// The groups of a batch of `n_chunks`.
    pub(crate) fn n_used(n_chunks: usize) -> usize {
        n_chunks.min(N_GROUPS)
    }

    /// Runs `forward` for every chunk, adds the gradients of its losses to `gradients`, and returns the other results of
    /// `forward`, in order.
    ///
    /// The total loss is the *sum* over chunks. Where the loss of the batch is a mean, `forward` scales its share. Idle
    /// threads take the next chunk, so that chunks may differ in size; large ones should come first.
    pub(crate) fn run<T: Sync, R: Send, E: From<Error> + Send>(
        &mut self,
        parameters: &Parameters,
        chunks: &[T],
        gradients: &mut Gradients,
        forward: impl Fn(&mut Tape<'_>, &T) -> Result<(Var, R), E> + Sync,
    ) -> Result<Vec<R>, E> {
        let used = Self::n_used(chunks.len());
        let results = self.compute(parameters, chunks, 0..used, forward)?;
        gradients.add_all(&self.groups[..used]);
        Ok(results)
    }

    /// The chunks of `own` groups alone: their gradients stay in the groups, and their results are returned in order.
    pub(crate) fn compute<T: Sync, R: Send, E: From<Error> + Send>(
        &mut self,
        parameters: &Parameters,
        chunks: &[T],
        own: Range<usize>,
        forward: impl Fn(&mut Tape<'_>, &T) -> Result<(Var, R), E> + Sync,
    ) -> Result<Vec<R>, E> {
        let used = Self::n_used(chunks.len());
        let n_threads = own.len().min(rayon::current_num_threads());
        let queue = Mutex::new(Queue::new(&mut self.groups[own.clone()], own.start, used, chunks.len()));
        let work = || {
            let mut last = None;
            loop {
                let Some((chunk, mut sum)) = lock(&queue).take(last, n_threads) else { return };
                last = Some(chunk % used);
                let run_chunk = |sum: &mut Gradients| -> Result<R, E> {
                    let mut tape = Tape::with_threads(parameters, threads_of(chunks));
                    let (loss, result) = forward(&mut tape, &chunks[chunk])?;
                    tape.backward(loss, sum)?;
                    Ok(result)
                };
                if chunk < used {
                    sum.clear();
                }
                let result = run_chunk(&mut sum);
                lock(&queue).finish_chunk(chunk, sum, result);
            }
        };
        rayon::scope(|scope| {
            for _ in 0..n_threads {
                scope.spawn(|_| work());
            }
        });
        queue.into_inner().unwrap_or_else(PoisonError::into_inner).finish()
    }

    /// Overwrites `gradients` with the sum over all groups of a batch of `n_chunks`, of which every rank has computed its share, and
    /// returns the losses of all chunks, of which this rank knows its `own`. Gradients are added in the order of [`run`](Self::run): the
    /// result has the same bits for any number of ranks.
    pub(crate) fn sum_over(
        &mut self,
        group: &ProcessGroup,
        (n_chunks, own): (usize, &[f32]),
        gradients: &mut Gradients,
    ) -> Result<Vec<f32>> {
        const PART: usize = 1 << 13;
        let (n_values, share) = (gradients.n_values(), share(group, n_chunks));
        let groups = &self.groups[share.clone()];
        let losses: Vec<(usize, f32)> = chunks_of(share, n_chunks).zip(own.iter().copied()).collect();
        // The losses travel behind the gradients: one exchange costs less waiting than two.
        self.sums.resize(n_values + n_chunks, 0.0);
        group.sum_in_order(&mut self.sums, &mut |range, sums| {
            let (sums, of_losses) = sums.split_at_mut(range.end.min(n_values).saturating_sub(range.start));
            sums.par_chunks_mut(PART).enumerate().for_each(|(part, sums)| {
                for gradients in groups {
                    gradients.add_values_to(range.start + part * PART, sums);
                }
            });
            let first = range.start + sums.len();
            for &(chunk, loss) in &losses {
                if let Some(place) = (n_values + chunk).checked_sub(first).and_then(|at| of_losses.get_mut(at)) {
                    *place = loss;
                }
            }
        })?;
        gradients.set_values(&self.sums[..n_values]);
        Ok(self.sums.split_off(n_values))
    }
}

/// The adjacent groups of a batch of `n_chunks` that this rank computes.
pub(crate) fn share(group: &ProcessGroup, n_chunks: usize) -> Range<usize> {
    share_of(group.rank(), group.n_ranks(), n_chunks)
}

/// The groups of one of `n_ranks`: so many that all ranks have about as many chunks, which differ between groups.
fn share_of(rank: usize, n_ranks: usize, n_chunks: usize) -> Range<usize> {
    let used = Chunks::n_used(n_chunks);
    // The first groups have one chunk more where their number does not divide that of chunks.
    let n_before = |end: usize| end * (n_chunks / used.max(1)) + end.min(n_chunks % used.max(1));
    let end_of = |rank: usize| {
        let distance = |&end: &usize| (n_before(end) * n_ranks).abs_diff(rank * n_chunks);
        (0..=used).min_by_key(distance).unwrap_or(used)
    };
    end_of(rank)..end_of(rank + 1)
}

/// The chunks of some groups of a batch, in order.
pub(crate) fn chunks_of(groups: Range<usize>, n_chunks: usize) -> impl Iterator<Item = usize> {
    (0..n_chunks).filter(move |chunk| groups.contains(&(chunk % Chunks::n_used(n_chunks))))
}

/// The threads of a chunk: the calling one, or all of them where there is a single chunk.
fn threads_of<T>(chunks: &[T]) -> Threads {
    if chunks.len() == 1 { Threads::Pool } else { Threads::Caller }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The panic of another thread reaches the caller anyway; the queue is consistent between its methods.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The chunks that are left. Chunk `i` belongs to group `i mod used`, whose chunks run one after another.
struct Queue<'a, R, E> {
    /// Adjacent groups, from `first` on, of `used` in all.
    groups: Vec<Group<'a>>,
    first: usize,
    used: usize,
    results: Vec<Option<R>>,
    /// The first chunk that failed, and its error.
    error: Option<(usize, E)>,
}

struct Group<'a> {
    owner: &'a mut Gradients,
    /// The next chunk of the group.
    next: usize,
    /// `None` while a thread uses it.
    sum: Option<Gradients>,
}

impl<'a, R, E> Queue<'a, R, E> {
    fn new(groups: &'a mut [Gradients], first: usize, used: usize, n_chunks: usize) -> Self {
        let group = |(next, owner): (usize, &'a mut Gradients)| Group { next, sum: Some(std::mem::take(owner)), owner };
        let groups = (first..).zip(groups).map(group).collect();
        Self { groups, first, used, results: (0..n_chunks).map(|_| None).collect(), error: None }
    }

    /// A chunk whose group is free, with the group's sum, for one of `n_threads` that has just run a chunk of `last`.
    ///
    /// While there are enough groups, a thread stays with its own, whose sum is in its cache. Then the group with the most
    /// chunks left is next, so that all end at about the same time. `None` where every group with chunks left is busy: the
    /// threads that run them continue with those.
    fn take(&mut self, last: Option<usize>, n_threads: usize) -> Option<(usize, Gradients)> {
        if self.error.is_some() {
            return None;
        }
        let is_open = |group: &Group<'_>| group.sum.is_some() && group.next < self.results.len();
        let open = (0..self.groups.len()).filter(|&at| is_open(&self.groups[at]));
        let enough = open.clone().count() > 2 * n_threads;
        let own = last.map(|at| at - self.first).filter(|&at| enough && is_open(&self.groups[at]));
        let at = own.or_else(|| open.min_by_key(|&at| self.groups[at].next))?;
        let group = &mut self.groups[at];
        group.sum.take().map(|sum| (group.next, sum))
    }

    fn finish_chunk(&mut self, chunk: usize, sum: Gradients, result: Result<R, E>) {
        let group = &mut self.groups[chunk % self.used - self.first];
        group.sum = Some(sum);
        group.next += self.used;
        match result {
            Ok(result) => self.results[chunk] = Some(result),
            Err(error) if self.error.as_ref().is_none_or(|(first, _)| chunk < *first) => {
                self.error = Some((chunk, error));
            }
            Err(_) => {}
        }
    }

    /// The results of all chunks that ran, in order, or the error; returns the sums to their owners.
    fn finish(self) -> Result<Vec<R>, E> {
        for group in self.groups {
            *group.owner = group.sum.unwrap_or_default();
        }
        match self.error {
            Some((_, error)) => Err(error),
            None => Ok(self.results.into_iter().flatten().collect()),
        }
    }
}

/// Runs `forward` for every chunk on a no-grad tape, and returns its results in order.
pub(crate) fn evaluate<T: Sync, R: Send, E: Send>(
    parameters: &Parameters,
    chunks: &[T],
    forward: impl Fn(&mut Tape<'_>, &T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let one = |chunk: &T| forward(&mut Tape::no_grad(parameters, threads_of(chunks)), chunk);
    chunks.par_iter().with_max_len(1).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ParameterId, Result, Tensor};

    fn model() -> (Parameters, ParameterId) {
        let mut parameters = Parameters::default();
        let id = parameters.add("w", Tensor::vector(vec![2.0])).unwrap();
        (parameters, id)
    }

    /// The sum of `w · chunk` over chunks; fails at `bad`.
    fn run(n_chunks: usize, bad: &[usize]) -> (Result<Vec<usize>>, f32) {
        let (parameters, id) = model();
        let numbers: Vec<usize> = (0..n_chunks).collect();
        let mut gradients = Gradients::zeros(&parameters);
        let mut chunks = Chunks::new(&parameters);
        let forward = |tape: &mut Tape<'_>, &number: &usize| {
            let w = tape.parameter(id);
            let factor = tape.input(Tensor::vector(vec![number as f32]));
            if bad.contains(&number) {
                return Err(tape.repeat_row(factor, 1).and_then(|x| tape.mul(w, x)).unwrap_err());
            }
            Ok((tape.mul(w, factor)?, number))
        };
        let mut results = Ok(Vec::new());
        // Twice, to notice a sum left over from the first.
        for _ in 0..2 {
            gradients.clear();
            results = chunks.run(&parameters, &numbers, &mut gradients, forward);
        }
        (results, gradients.parameter(id).values()[0])
    }

    #[test]
    fn every_chunk_runs_once_and_results_are_in_order() {
        for n_chunks in [0, 1, 3, 16, 17, 100] {
            let (results, gradient) = run(n_chunks, &[]);
            assert_eq!(results.unwrap(), (0..n_chunks).collect::<Vec<_>>());
            assert_eq!(gradient, (0..n_chunks).sum::<usize>() as f32);
        }
    }

    #[test]
    fn a_failing_chunk_stops_the_batch_and_adds_no_gradients() {
        let (results, gradient) = run(40, &[7, 30]);
        assert!(results.unwrap_err().to_string().starts_with("mul: "));
        assert_eq!(gradient, 0.0);
    }

    #[test]
    fn ranks_share_all_chunks_as_evenly_as_groups_allow() {
        for n_ranks in 1..=9 {
            for n_chunks in [0, 1, 3, 16, 17, 25, 31, 50, 100] {
                let shares: Vec<_> = (0..n_ranks).map(|rank| share_of(rank, n_ranks, n_chunks)).collect();
                let joined: Vec<usize> = shares.iter().cloned().flatten().collect();
                assert_eq!(joined, (0..Chunks::n_used(n_chunks)).collect::<Vec<_>>());
                let sizes: Vec<usize> = shares.into_iter().map(|share| chunks_of(share, n_chunks).count()).collect();
                let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
                // Each end is off by half a group at most.
                assert!(most - least <= 2 * n_chunks.div_ceil(N_GROUPS), "{n_chunks}: {sizes:?}");
            }
        }
        let n_chunks_of_25 = [0, 1].map(|rank| chunks_of(share_of(rank, 2, 25), 25).count());
        assert_eq!(n_chunks_of_25, [12, 13], "half of the groups would be 16 and 9");
    }
}
