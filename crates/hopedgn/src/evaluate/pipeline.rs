//! Scoring on a GPU: host threads prepare windows while it computes earlier ones.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use hopedgn_tensor::Weights;

use super::Window;
use crate::Result;
use crate::prefetch;
use crate::score::{Output, PairScorer, PendingScores, PreparedScores};

/// Windows that a GPU may lag behind the host, so that the next one is always queued.
const MAX_LAG: usize = 2;

/// Windows that wait for each worker.
const QUEUE: usize = 1;

/// A model without memory, and how many threads prepare what it reads.
pub(super) struct Pipeline<'a> {
    pub(super) scorer: &'a PairScorer<'a>,
    pub(super) weights: &'a Weights,
    pub(super) output: Output,
    pub(super) n_workers: usize,
}

impl Pipeline<'_> {
    /// Scores `windows` and hands them to `consume` in order.
    pub(super) fn run<'e>(
        &self,
        windows: &mut (dyn Iterator<Item = Result<Window<'e>>> + Send),
        consume: &mut dyn FnMut(Window<'e>, Vec<f32>) -> Result<()>,
    ) -> Result<()> {
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..self.n_workers).map(|_| sync_channel(QUEUE)).unzip();
        // A worker owns its receiver, so that the sender below ends when the worker does.
        let receivers: Vec<Mutex<Option<Receiver<Result<Window<'e>>>>>> =
            receivers.into_iter().map(|receiver| Mutex::new(Some(receiver))).collect();
        let work = |worker: usize, send: &mut (dyn FnMut(Result<(Window<'e>, PreparedScores)>) -> bool + Send)| {
            let windows = receivers[worker].lock().unwrap_or_else(PoisonError::into_inner).take();
            prefetch::on_this_thread(|| self.prepare(windows.into_iter().flatten(), send));
        };
        thread::scope(|scope| {
            scope.spawn(move || {
                for (window, worker) in windows.zip(senders.iter().cycle()) {
                    let is_last = window.is_err();
                    if worker.send(window).is_err() || is_last {
                        break;
                    }
                }
            });
            let mut submitted: VecDeque<(Window<'e>, PendingScores)> = VecDeque::new();
            prefetch::in_order(self.n_workers, work, |ready, _| -> Result<()> {
                let (window, prepared) = ready?;
                submitted.push_back((window, self.scorer.submit(self.weights, prepared, self.output)?));
                while submitted.len() > MAX_LAG {
                    let Some((window, scores)) = submitted.pop_front() else { break };
                    consume(window, scores.wait()?)?;
                }
                Ok(())
            })?;
            submitted.into_iter().try_for_each(|(window, scores)| consume(window, scores.wait()?))
        })
    }

    /// Collates the windows of one worker.
    fn prepare<'e>(
        &self,
        windows: impl Iterator<Item = Result<Window<'e>>>,
        send: &mut (dyn FnMut(Result<(Window<'e>, PreparedScores)>) -> bool + Send),
    ) {
        let mut scorer = self.scorer.fork();
        for window in windows {
            let ready = window.and_then(|window| {
                let prepared = scorer.prepare_scores(self.weights.device(), window.pairs())?;
                Ok((window, prepared))
            });
            if !send(ready) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ctdg::event::EventStream;
    use ctdg::split::SplitMode;
    use hopedgn_tensor::Device;

    use super::*;
    use crate::Error;
    use crate::evaluate::{ModelScorer, Scorer};
    use crate::model::{ModelConfig, ModelName, build};
    use crate::task::Task;

    fn stream() -> EventStream {
        EventStream::from_events((0..400u32).map(|i| (i * 7 % 13, 13 + (i * 5 + i / 40) % 11, f64::from(i / 2))))
            .unwrap()
    }

    /// Calls `check` with a model's scorer and weights, and with windows of one batch each.
    fn with_windows(check: impl Fn(&PairScorer<'_>, &Weights, &[Window<'_>])) {
        let stream = stream();
        let task = Task::new(&stream, SplitMode::Dyglib).unwrap();
        let settings = ["d-channel=4", "length=6", "walks=true", "stats=true"];
        let config = ModelConfig::new(ModelName::HopeDgn).with_known(&settings).unwrap();
        let (model, parameters) = build(&config, task.tables.widths(), 0).unwrap();
        let weights = Weights::new(&Device::cpu(), parameters).unwrap();
        let scorer = PairScorer::new(&*model, &task.tables, &task.full_store);
        let windows: Vec<Window<'_>> = task
            .split
            .test
            .chunks(3)
            .map(|batch| Window::of_links(vec![batch], [task.queries(batch), task.queries(batch)].concat()))
            .collect();
        check(&scorer, &weights, &windows);
    }

    type Scored = Vec<(usize, Vec<f32>)>;

    fn run(
        (scorer, weights): (&PairScorer<'_>, &Weights),
        n_workers: usize,
        windows: &mut (dyn Iterator<Item = Result<Window<'_>>> + Send),
        stop_after: usize,
    ) -> (Scored, Result<()>) {
        let mut scored = Vec::new();
        let pipeline = Pipeline { scorer, weights, output: Output::Partner, n_workers };
        let result = pipeline.run(windows, &mut |window, scores| {
            scored.push((window.batches[0][0].index(), scores));
            if scored.len() == stop_after { Err(Error::Interrupted) } else { Ok(()) }
        });
        (scored, result)
    }

    #[test]
    fn windows_come_in_order_with_the_bits_of_a_scorer_that_does_not_look_ahead() {
        with_windows(|scorer, weights, windows| {
            let mut expected = Scored::new();
            let mut alone = ModelScorer::new(scorer.fork(), weights, None);
            let mut all = windows.iter().cloned().map(Ok);
            alone
                .score_windows(&mut all, &mut |window, scores| {
                    expected.push((window.batches[0][0].index(), scores));
                    Ok(())
                })
                .unwrap();
            assert_eq!(expected.len(), windows.len());
            for n_workers in [1, 2, 5] {
                let mut all = windows.iter().cloned().map(Ok);
                let (scored, result) = run((scorer, weights), n_workers, &mut all, usize::MAX);
                result.unwrap();
                assert_eq!(scored, expected, "{n_workers} workers");
            }
        });
    }

    #[test]
    fn an_error_of_the_windows_or_of_the_consumer_ends_all_threads() {
        with_windows(|scorer, weights, windows| {
            for n_workers in [1, 3] {
                let mut failing = windows.iter().cloned().map(Ok).take(4).chain([Err(Error::MissingInput)]);
                let (scored, result) = run((scorer, weights), n_workers, &mut failing, usize::MAX);
                assert!(matches!(result, Err(Error::MissingInput)) && scored.len() <= 4);
                let mut endless = windows.iter().cycle().cloned().map(Ok);
                let (scored, result) = run((scorer, weights), n_workers, &mut endless, 7);
                assert!(matches!(result, Err(Error::Interrupted)) && scored.len() == 7);
            }
        });
    }
}
