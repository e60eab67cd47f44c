//! The threads of the module. Work runs in a pool of its own, without Python's lock.
//!
//! A forked process has none of its parent's threads, so it gets a new pool instead of waiting for the old one forever.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use hopedgn::Error;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::Failure;

/// The pool and the process that made it.
static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);
/// Threads that were asked for; 0 for all cores, or what `RAYON_NUM_THREADS` says.
static N_THREADS: AtomicUsize = AtomicUsize::new(0);

fn pool() -> Result<Arc<ThreadPool>, Failure> {
    let process = std::process::id();
    let mut held = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((owner, pool)) = held.as_ref().filter(|(owner, _)| *owner == process) {
        debug_assert_eq!(*owner, process);
        return Ok(Arc::clone(pool));
    }
    let n = N_THREADS.load(Ordering::Relaxed);
    let built = ThreadPoolBuilder::new().num_threads(n).thread_name(|index| format!("hopedgn-{index}")).build();
    let pool = Arc::new(built.map_err(|error| Failure::from(Error::Threads { detail: error.to_string() }))?);
    // The pool of a parent process is never dropped: it would signal threads that are not there.
    std::mem::forget(held.replace((process, Arc::clone(&pool))));
    Ok(pool)
}

/// Computes with all threads, without Python's lock.
pub(crate) fn compute<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> Result<T, Failure> {
    let pool = pool()?;
    Ok(py.detach(|| pool.install(work)))
}

/// The same for long work that stops soon after `stop` is set. Meanwhile this thread looks for signals; what a handler raised, such as
/// `KeyboardInterrupt`, is returned beside the result.
pub(crate) fn compute_until<T: Send>(
    py: Python<'_>,
    stop: &AtomicBool,
    work: impl FnOnce() -> T + Send,
) -> Result<(T, Option<PyErr>), Failure> {
    const LOOK: Duration = Duration::from_millis(50);
    let pool = pool()?;
    let mut raised = None;
    let result = py.detach(|| {
        thread::scope(|scope| {
            let waiting = thread::current();
            let worker = scope.spawn(move || {
                let result = pool.install(work);
                waiting.unpark();
                result
            });
            while !worker.is_finished() {
                thread::park_timeout(LOOK);
                #[expect(
                    clippy::redundant_closure_for_method_calls,
                    reason = "the method has one lifetime, not all of them"
                )]
                let looked = Python::attach(|py| py.check_signals());
                if let Err(error) = looked {
                    stop.store(true, Ordering::SeqCst);
                    raised.get_or_insert(error);
                }
            }
            worker.join()
        })
    });
    match result {
        Ok(result) => Ok((result, raised)),
        // As without a second thread: PyO3 turns the panic into an exception.
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Sets the number of threads; 0 for all cores.
#[pyfunction]
pub(crate) fn set_num_threads(n: usize) -> Result<(), Failure> {
    N_THREADS.store(n, Ordering::Relaxed);
    let old = POOL.lock().unwrap_or_else(PoisonError::into_inner).take();
    // Work that still runs keeps its pool; that of a parent process is never dropped.
    if let Some((owner, pool)) = old
        && owner != std::process::id()
    {
        std::mem::forget(pool);
    }
    pool().map(|_| ())
}

/// The number of threads.
#[pyfunction]
pub(crate) fn get_num_threads() -> Result<usize, Failure> {
    Ok(pool()?.current_num_threads())
}
