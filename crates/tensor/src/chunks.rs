//! A batch in small chunks, each run forward and backward by one thread while its values are in the cache.
//!
//! A large operation after another drags every intermediate value through main memory; a chunk of a few sequences keeps
//! them near. Each chunk has its own [`Tape`]. Gradients are summed in a fixed number of groups, each over its own chunks
//! in order, and the groups are added in order: the result does not depend on the number of threads.

use rayon::prelude::*;

use crate::{Gradients, Parameters, Result, Tape, Threads, Var};

/// The number of groups: as many threads can be busy with gradients, and as many copies of the gradients are kept.
const N_GROUPS: usize = 16;

/// The memory for summing gradients over chunks, to be kept between batches.
#[derive(Debug)]
pub struct Chunks {
    groups: Vec<Gradients>,
}

impl Chunks {
    /// For a model with `parameters`.
    #[must_use]
    pub fn new(parameters: &Parameters) -> Self {
        Self { groups: (0..N_GROUPS).map(|_| Gradients::zeros(parameters)).collect() }
    }

    /// Runs `forward` for every chunk, adds the gradients of its losses to `gradients`, and returns what else it
    /// returned, in order.
    ///
    /// The total is the *sum* of the chunks' losses. Where the loss of the batch is a mean, `forward` scales its share.
    pub fn run<T: Sync, R: Send>(
        &mut self,
        parameters: &Parameters,
        chunks: &[T],
        gradients: &mut Gradients,
        forward: impl Fn(&mut Tape<'_>, &T) -> Result<(Var, R)> + Sync,
    ) -> Result<Vec<R>> {
        if chunks.is_empty() {
            return Ok(Vec::new());
        }
        let per_group = chunks.len().div_ceil(N_GROUPS);
        let work = chunks.par_chunks(per_group).zip(&mut self.groups);
        let results: Result<Vec<Vec<R>>> = work
            .with_max_len(1)
            .map(|(chunks, sum)| {
                sum.clear();
                let one = |chunk: &T| {
                    let mut tape = Tape::with_threads(parameters, Threads::Caller);
                    let (loss, result) = forward(&mut tape, chunk)?;
                    tape.backward(loss, sum)?;
                    Ok(result)
                };
                chunks.iter().map(one).collect()
            })
            .collect();
        let results = results?;
        for group in &self.groups[..results.len()] {
            gradients.add(group);
        }
        Ok(results.into_iter().flatten().collect())
    }
}

/// Runs `forward` for every chunk on a tape that keeps nothing for a way back, and returns what it returned, in order.
pub fn evaluate<T: Sync, R: Send>(
    parameters: &Parameters,
    chunks: &[T],
    forward: impl Fn(&mut Tape<'_>, &T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let one = |chunk: &T| forward(&mut Tape::frozen(parameters, Threads::Caller), chunk);
    chunks.par_iter().map(one).collect()
}
