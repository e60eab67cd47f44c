//! Choosing the fastest of the algorithms that cuBLASLt knows for a product, by trying them.

use cudarc::cublaslt::sys;
use cudarc::driver::result;

use super::compile::driver_version;
use super::context::driver;
use super::gemm::{Algo, Key, Product, Products, WORKSPACE};
use super::gemm_cache::Choices;
use super::memory::Event;
use super::streams::Lane;
use crate::Result;
use crate::device::CudaOptions;

/// Below so many multiplications a product hardly matters.
const LEAST_WORK: usize = 1 << 25;
/// Algorithms that are tried.
const CANDIDATES: usize = 16;
/// Each is run so often at a time, and so many times: the best counts.
const RUNS: u8 = 6;
const GROUPS: usize = 3;
/// One that the library thinks better is kept unless another is faster by more than this.
const MARGIN: f32 = 1.02;

/// Milliseconds after which a run is not worth repeating.
const LONG: f32 = 1.0;
/// The first driver whose clock this program knows how to read: that of CUDA 12.8.
const TIMED: i32 = 12_080;

/// What was found out about products on such a card with such a library; nothing where nothing can be found out.
#[expect(unsafe_code, reason = "a call of the library")]
pub(super) fn choices(options: &CudaOptions, card: &str) -> Option<Choices> {
    let folder = options.cache.as_ref().filter(|_| driver_version() >= TIMED)?;
    // SAFETY: this only asks for a number.
    let version = unsafe { sys::cublasLtGetVersion() };
    Some(Choices::open(folder, &format!("{card}-{version}-{}", options.precision.as_str())))
}

impl Products {
    /// The fastest algorithm; none where answers are not kept, or where trying does not pay.
    pub(super) fn fastest(&mut self, p: &Product, key: &Key, lane: Lane) -> Result<Option<Algo>> {
        let Some(choices) = &self.choices else { return Ok(None) };
        // By the sizes of the question, so that the answer does not depend on which of its batches comes first.
        if key.sizes.iter().product::<usize>() < LEAST_WORK || (p.add && 4 * p.m * p.n > WORKSPACE) {
            return Ok(None);
        }
        let question = key.name();
        if let Some(data) = choices.get(&question) {
            return Ok(Some(Algo { data }));
        }
        let candidates = self.candidates(p, key.sizes, CANDIDATES)?;
        // Nothing else runs while the clock does, and a sum that has begun is not added to: what is found of it goes to
        // the workspace that nobody is using.
        result::ctx::synchronize().map_err(driver("compute"))?;
        let idle = self.workspaces[usize::from(lane == Lane::Main)];
        let trial = Product { c: if p.add { idle } else { p.c }, ..*p };
        let mut times = Vec::with_capacity(candidates.len());
        for candidate in &candidates {
            times.push(self.time(candidate, &trial, lane)?);
        }
        let best = times.iter().copied().fold(f32::INFINITY, f32::min);
        let chosen = candidates.iter().zip(&times).find(|(_, time)| time.is_finite() && **time <= MARGIN * best);
        let kept = chosen
            .zip(self.choices.as_mut())
            .and_then(|((algorithm, _), choices)| choices.keep(&question, algorithm.data));
        if kept.is_none() {
            // What cannot be kept would be another one after the next start.
            self.choices = None;
        }
        Ok(kept.map(|data| Algo { data }))
    }

    /// Milliseconds of one run; without end for an algorithm that does not do.
    fn time(&mut self, algorithm: &Algo, p: &Product, lane: Lane) -> Result<f32> {
        let stream = self.streams[usize::from(lane == Lane::Side)];
        let (begin, end) = (Event::timed()?, Event::timed()?);
        let mut best = f32::INFINITY;
        if self.run_with(algorithm, p, lane).is_err() {
            return Ok(best);
        }
        for _ in 0..GROUPS {
            begin.record(stream)?;
            for _ in 0..RUNS {
                if self.run_with(algorithm, p, lane).is_err() {
                    return Ok(f32::INFINITY);
                }
            }
            end.record(stream)?;
            best = best.min(end.since(&begin)? / f32::from(RUNS));
            if best > LONG {
                break;
            }
        }
        Ok(best)
    }
}
