//! Ordered multi-threaded prefetch of batches.

use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Items that each worker keeps in its queue.
const QUEUE: usize = 2;

/// Calls `consume` with items 0, 1, 2, … in order while `n_workers` threads produce the next ones.
///
/// Worker `w` of `n` produces items w, w + n, w + 2n, …, and stops when its callback returns `false`. `consume` also gets the
/// time it waited for the item.
pub(crate) fn in_order<T: Send, E>(
    n_workers: usize,
    work: impl Fn(usize, &mut (dyn FnMut(T) -> bool + Send)) + Sync,
    mut consume: impl FnMut(T, Duration) -> Result<(), E>,
) -> Result<(), E> {
    let work = &work;
    thread::scope(|scope| {
        let worker = |index: usize| -> Receiver<T> {
            let (sender, items) = sync_channel(QUEUE);
            scope.spawn(move || work(index, &mut |item| sender.send(item).is_ok()));
            items
        };
        let workers: Vec<_> = (0..n_workers).map(worker).collect();
        for items in workers.iter().cycle() {
            let start = Instant::now();
            let Ok(item) = items.recv() else { break };
            consume(item, start.elapsed())?;
        }
        Ok(())
    })
}

/// Runs `work` in a `rayon` pool of the current thread alone, as a worker should that is one of several.
pub(crate) fn on_this_thread<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    match rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build() {
        Ok(alone) => alone.install(work),
        Err(_) => work(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(n_items: usize, n_workers: usize, stop_at: usize) -> Result<Vec<usize>, Vec<usize>> {
        let mut got = Vec::new();
        let work = |worker: usize, send: &mut (dyn FnMut(usize) -> bool + Send)| {
            let mut items = (worker..n_items).step_by(n_workers);
            while items.next().is_some_and(&mut *send) {}
        };
        let result = in_order(n_workers, work, |item, _| {
            got.push(item);
            if item == stop_at { Err(()) } else { Ok(()) }
        });
        if result.is_ok() { Ok(got) } else { Err(got) }
    }

    #[test]
    fn items_come_in_order_from_any_number_of_workers() {
        for n_items in [0, 1, 5, 40] {
            for n_workers in [1, 2, 3, 7] {
                assert_eq!(run(n_items, n_workers, usize::MAX), Ok((0..n_items).collect()));
            }
        }
    }

    #[test]
    fn an_error_of_the_consumer_ends_the_workers() {
        assert_eq!(run(1000, 3, 10), Err((0..=10).collect()));
    }
}
