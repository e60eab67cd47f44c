//! GEMM autotuning: times the algorithms that cuBLASLt proposes and caches the fastest.

use cudarc::cublaslt::sys;
use cudarc::driver::result;

use super::compile::driver_version;
use super::context::driver;
use super::gemm::{Algo, Gemm, Gemms, Key, WORKSPACE};
use super::gemm_cache::GemmCache;
use super::memory::Event;
use super::streams::Stream;
use crate::Result;
use crate::device::CudaOptions;

/// Smaller GEMMs, in multiplications, are not worth tuning: an H200 takes less time for them than for a launch.
const MIN_WORK: usize = 1 << 27;
/// Algorithms that are timed.
const CANDIDATES: usize = 16;
/// Each is timed in groups of runs; the best group counts.
const RUNS: u8 = 6;
const GROUPS: usize = 3;
/// An earlier proposal of the heuristic wins unless a later one is faster by more than this.
const MARGIN: f32 = 1.02;

/// Milliseconds above which one group is enough.
const LONG_RUN: f32 = 1.0;
/// The first driver version whose event timer is supported: CUDA 12.8.
const MIN_TIMED_DRIVER: i32 = 12_080;

/// The cache of this GPU and library version; `None` without a cache folder or timer.
#[expect(unsafe_code, reason = "a cuBLASLt call")]
pub(super) fn open_cache(options: &CudaOptions, gpu_name: &str) -> Option<GemmCache> {
    let folder = options.cache.as_ref().filter(|_| driver_version() >= MIN_TIMED_DRIVER)?;
    // SAFETY: this only returns a number.
    let version = unsafe { sys::cublasLtGetVersion() };
    Some(GemmCache::open(folder, &format!("{gpu_name}-{version}-{}", options.precision.as_str())))
}

impl Gemms {
    /// The fastest algorithm; `None` without a cache, or where tuning does not pay.
    pub(super) fn fastest(&mut self, gemm: &Gemm, key: &Key, stream: Stream) -> Result<Option<Algo>> {
        let Some(cache) = &self.cache else { return Ok(None) };
        // By the rounded sizes, so that the result does not depend on which batch comes first.
        if key.sizes.iter().product::<usize>() < MIN_WORK || (gemm.accumulate && 4 * gemm.m * gemm.n > WORKSPACE) {
            return Ok(None);
        }
        let name = key.name();
        if let Some(data) = cache.get(&name) {
            return Ok(Some(Algo { data }));
        }
        if !cache.is_writable() {
            return Ok(None);
        }
        let candidates = self.candidates(gemm, key.sizes, CANDIDATES)?;
        // Nothing else runs during the timing. Trials of an accumulating GEMM write to the idle stream's workspace, so that
        // the sum is not changed.
        result::ctx::synchronize().map_err(driver("compute"))?;
        let idle = self.workspaces[usize::from(stream == Stream::Main)];
        let trial = Gemm { c: if gemm.accumulate { idle } else { gemm.c }, ..*gemm };
        let mut times = Vec::with_capacity(candidates.len());
        for candidate in &candidates {
            times.push(self.time(candidate, &trial, stream)?);
        }
        let best = times.iter().copied().fold(f32::INFINITY, f32::min);
        let chosen = candidates.iter().zip(&times).find(|(_, time)| time.is_finite() && **time <= MARGIN * best);
        let stored =
            chosen.zip(self.cache.as_mut()).and_then(|((algorithm, _), cache)| cache.insert(&name, algorithm.data));
        if stored.is_none() {
            // An algorithm that cannot be stored could be a different one after the next start.
            self.cache.iter_mut().for_each(GemmCache::stop_writing);
        }
        Ok(stored.map(|data| Algo { data }))
    }

    /// Milliseconds of one run; infinite for an algorithm that fails.
    fn time(&mut self, algorithm: &Algo, gemm: &Gemm, stream: Stream) -> Result<f32> {
        let raw_stream = self.streams[usize::from(stream == Stream::Grad)];
        let (begin, end) = (Event::timed()?, Event::timed()?);
        let mut best = f32::INFINITY;
        if self.run_with(algorithm, gemm, stream).is_err() {
            return Ok(best);
        }
        for _ in 0..GROUPS {
            begin.record(raw_stream)?;
            for _ in 0..RUNS {
                if self.run_with(algorithm, gemm, stream).is_err() {
                    return Ok(f32::INFINITY);
                }
            }
            end.record(raw_stream)?;
            best = best.min(end.elapsed_since(&begin)? / f32::from(RUNS));
            if best > LONG_RUN {
                break;
            }
        }
        Ok(best)
    }
}
