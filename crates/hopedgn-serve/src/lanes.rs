//! Threads that compute: one for scores, whose requests share forward passes, one for questions that take longer.

use std::sync::Arc;

use hopedgn::predict::{KnownNodes, NamedPairs, Prediction};
use tokio::sync::{mpsc, oneshot};

use crate::engine::{Engine, View};

/// Pairs that share a forward pass, unless one request has more.
const GROUP_PAIRS: usize = 4096;

/// A pair to score; without a time, just after the newest event.
#[derive(Debug, Clone)]
pub(crate) struct Pair {
    pub(crate) src: String,
    pub(crate) dst: String,
    pub(crate) time: Option<f64>,
}

/// The score of a pair.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scored {
    pub(crate) time: f64,
    pub(crate) prediction: Prediction,
    pub(crate) known: KnownNodes,
}

/// Scores of one request, with the model and the number of events they were computed at.
#[derive(Debug)]
pub(crate) struct Scores {
    pub(crate) model: String,
    pub(crate) seq: u64,
    pub(crate) pairs: Vec<Scored>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoAnswer {
    #[error("found more requests than can be answered, expected fewer at a time; repeat it later")]
    Busy,
    #[error("found a server that is stopping, expected one that answers; repeat it with the next one")]
    Stopping,
    #[error("found a defect of the server, expected an answer; please report it with the request")]
    Defect,
    #[error(transparent)]
    Failed(#[from] hopedgn::Error),
}

impl<T> From<mpsc::error::TrySendError<T>> for NoAnswer {
    fn from(error: mpsc::error::TrySendError<T>) -> Self {
        match error {
            mpsc::error::TrySendError::Full(_) => Self::Busy,
            mpsc::error::TrySendError::Closed(_) => Self::Stopping,
        }
    }
}

type Reply<T> = oneshot::Sender<Result<T, NoAnswer>>;

/// The thread of scores.
#[derive(Debug, Clone)]
pub(crate) struct ScoreLane {
    sender: mpsc::Sender<(Vec<Pair>, Reply<Scores>)>,
}

impl ScoreLane {
    /// Starts the thread; it ends with the last clone of the handle.
    pub(crate) fn start(engine: Arc<Engine>, waiting: usize) -> std::io::Result<Self> {
        let (sender, mut receiver) = mpsc::channel::<(Vec<Pair>, Reply<Scores>)>(waiting.max(1));
        std::thread::Builder::new().name("scores".into()).spawn(move || {
            while let Some(first) = receiver.blocking_recv() {
                let mut n_pairs = first.0.len();
                let mut group = vec![first];
                while n_pairs < GROUP_PAIRS
                    && let Ok(next) = receiver.try_recv()
                {
                    n_pairs += next.0.len();
                    group.push(next);
                }
                metrics::histogram!("hopedgn_score_group_pairs").record(n_pairs as f64);
                survive(|| score_group(&engine, group));
            }
        })?;
        Ok(Self { sender })
    }

    /// The scores of `pairs`.
    pub(crate) async fn score(&self, pairs: Vec<Pair>) -> Result<Scores, NoAnswer> {
        let (reply, answer) = oneshot::channel();
        self.sender.try_send((pairs, reply))?;
        answer.await.unwrap_or(Err(NoAnswer::Defect))
    }

    /// Requests that wait.
    pub(crate) fn n_waiting(&self) -> usize {
        self.sender.max_capacity() - self.sender.capacity()
    }
}

/// Runs `work`; a panic in it, which is a defect, ends that work and not the thread. Those who wait for it are told.
fn survive(work: impl FnOnce()) {
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err() {
        metrics::counter!("hopedgn_panics_total").increment(1);
        tracing::error!("a computation panicked");
    }
}

fn score_group(engine: &Engine, group: Vec<(Vec<Pair>, Reply<Scores>)>) {
    let view = engine.view();
    let all = view.and_then(|view| {
        let pairs: Vec<&Pair> = group.iter().flat_map(|(pairs, _)| pairs).collect();
        Ok((score(&view, &pairs)?, view))
    });
    match all {
        Ok((scored, view)) => {
            engine.monitor().scored(scored.iter().map(|scored| scored.prediction.score));
            let mut scored = scored.into_iter();
            for (pairs, reply) in group {
                let pairs = scored.by_ref().take(pairs.len()).collect();
                let answer = Scores { model: view.model.name.clone(), seq: view.seq(), pairs };
                // A client that has gone does not wait for it.
                let _ = reply.send(Ok(answer));
            }
        }
        // One that fails must not fail the others.
        Err(_) if group.len() > 1 => group.into_iter().for_each(|one| score_group(engine, vec![one])),
        Err(error) => {
            if let Some((_, reply)) = group.into_iter().next() {
                let _ = reply.send(Err(NoAnswer::Failed(error)));
            }
        }
    }
}

/// The scores of `pairs`. No score depends on the other pairs.
pub(crate) fn score(view: &View, pairs: &[&Pair]) -> hopedgn::Result<Vec<Scored>> {
    let events = view.predictor.events();
    let (mut named, end) = (NamedPairs::new(events)?, events.end());
    for pair in pairs {
        named.push(&pair.src, &pair.dst, pair.time.unwrap_or(end))?;
    }
    let predictions = view.predictor.predictions(named.queries(), &mut |_| {})?;
    let scored = predictions.into_iter().zip(named.queries()).enumerate();
    Ok(scored
        .map(|(at, (prediction, query))| Scored { time: query.time, prediction, known: named.known(at) })
        .collect())
}

type Work = Box<dyn FnOnce(hopedgn::Result<View>) + Send>;

/// The thread of questions that take longer.
#[derive(Debug, Clone)]
pub(crate) struct AnswerLane {
    sender: mpsc::Sender<Work>,
}

impl AnswerLane {
    /// Starts the thread; it ends with the last clone of the handle.
    pub(crate) fn start(engine: Arc<Engine>, waiting: usize) -> std::io::Result<Self> {
        let (sender, mut receiver) = mpsc::channel::<Work>(waiting.max(1));
        std::thread::Builder::new().name("answers".into()).spawn(move || {
            while let Some(work) = receiver.blocking_recv() {
                survive(|| work(engine.view()));
            }
        })?;
        Ok(Self { sender })
    }

    /// What `answer` makes of the events and the model as they are then.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        answer: impl FnOnce(&View) -> hopedgn::Result<T> + Send + 'static,
    ) -> Result<T, NoAnswer> {
        let (reply, answered) = oneshot::channel();
        let work = move |view: hopedgn::Result<View>| {
            let _ = reply.send(view.and_then(|view| answer(&view)));
        };
        self.sender.try_send(Box::new(work))?;
        match answered.await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(NoAnswer::Defect),
        }
    }

    /// Questions that wait.
    pub(crate) fn n_waiting(&self) -> usize {
        self.sender.max_capacity() - self.sender.capacity()
    }
}
