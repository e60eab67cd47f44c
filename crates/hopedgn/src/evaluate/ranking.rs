//! The rank of true destinations among candidates.

use ctdg::event::EventId;
use ctdg::metric::Ranking;
use ctdg::mite::PairQuery;
use ctdg::negative::{Candidates, Pass};

use super::Scorer;
use super::window::{RankedWindows, ask, score_with_all};
use crate::Result;
use crate::callbacks::{Callback, Stage};
use crate::metrics::RankingMetrics;
use crate::task::Task;

/// Ranks the destination of each event of the pass among candidates; `None` if the pass has no events.
///
/// # Complexity
/// One score for each event and candidate; memory for one block of queries and one list of candidates.
///
/// ```
/// # use hopedgn::{*, ctdg::split::SplitMode, model::{ModelConfig, build}, task::Task, tensor::Weights};
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// # let task = Task::new(&events, SplitMode::Dyglib)?;
/// use hopedgn::ctdg::{heuristic, negative::{CandidateCount, Pass}};
/// use hopedgn::{callbacks::NoCallback, evaluate::rank};
///
/// let mut heuristics = heuristic::all(&events, &task.full_store, &Pass::Test.base(&task.split))?;
/// let ranked = rank(&task, Pass::Test, &CandidateCount::All.into(), 50, &mut heuristics, &mut NoCallback)?;
/// assert!(ranked.is_some_and(|all| all.iter().all(|metrics| metrics.mrr > 0.0 && metrics.mrr <= 1.0)));
/// # Ok::<(), hopedgn::Error>(())
/// ```
pub fn rank<S: Scorer>(
    task: &Task<'_>,
    pass: Pass,
    candidates: &Candidates,
    batch_size: usize,
    scorers: &mut [S],
    callback: &mut dyn Callback,
) -> Result<Option<Vec<RankingMetrics>>> {
    let events = RankedEvents { pass, at_most: usize::MAX, batch_size };
    rank_some(task, events, candidates, scorers, callback)
}

/// Which events are ranked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RankedEvents {
    pub(crate) pass: Pass,
    /// So many of the pass at most, evenly spaced. A memory is still updated with all.
    pub(crate) at_most: usize,
    pub(crate) batch_size: usize,
}

/// [`rank`] for some events.
pub(crate) fn rank_some<S: Scorer>(
    task: &Task<'_>,
    ranked: RankedEvents,
    candidates: &Candidates,
    scorers: &mut [S],
    callback: &mut dyn Callback,
) -> Result<Option<Vec<RankingMetrics>>> {
    let RankedEvents { pass, at_most, batch_size } = ranked;
    let events = pass.events(&task.split);
    let n_ranked = at_most.min(events.len());
    if n_ranked == 0 {
        return Ok(None);
    }
    let mut lists = candidates.lists(task.stream, &task.split, pass)?;
    // Of each `len / n` successive events the last one.
    let n_ranked_until = |at: usize| at * n_ranked / events.len();
    let queries = |at: usize, event: EventId| -> Result<Option<Vec<PairQuery>>> {
        if n_ranked_until(at + 1) == n_ranked_until(at) {
            return Ok(None);
        }
        let positive = task.queries(&[event])[0];
        let mut queries = vec![positive];
        queries.extend(lists.of(event)?.into_iter().map(|dst| PairQuery { dst, ..positive }));
        Ok(Some(queries))
    };
    let mut windows = RankedWindows { task, events, batch_size, at: 0, queries };
    let mut rankings = vec![Ranking::new(); scorers.len()];
    let mut done = 0;
    ask(callback, Stage::Rank, 0, n_ranked)?;
    score_with_all(scorers, &mut windows, |window, scores| {
        for (scores, ranking) in scores.iter().zip(&mut rankings) {
            for (_, of_event) in window.by_event(scores) {
                ranking.push(of_event[0], &of_event[1..])?;
            }
        }
        done += window.ranked.len();
        ask(callback, Stage::Rank, done, n_ranked)
    })?;
    let metrics = |ranking: Ranking| {
        let (mrr, hits_at_10) = (ranking.mrr()?, ranking.hits_at(10)?);
        Ok(RankingMetrics { mrr, hits_at_10, ndcg_at_10: Some(ranking.ndcg_at(10)?) })
    };
    rankings.into_iter().map(metrics).collect::<Result<_>>().map(Some)
}

#[cfg(test)]
mod tests {
    use ctdg::event::EventStream;
    use ctdg::negative::{CandidateCount, TgbLists, TgbRule};
    use ctdg::split::SplitMode;

    use super::*;
    use crate::callbacks::NoCallback;
    use crate::collate::PairBatch;
    use crate::evaluate::window::MAX_QUERIES;

    const BATCH: usize = 7;

    /// An arbitrary score of a pair, with ties, that changes with each batch: what a memory does.
    #[derive(Default)]
    struct Recorder {
        batches: Vec<Vec<EventId>>,
        calls: Vec<usize>,
    }

    fn score(batch: usize, query: &PairQuery) -> f32 {
        ((7 * batch + 5 * query.src.index() + 3 * query.dst.index()) % 11) as f32
    }

    impl Scorer for Recorder {
        fn score(&mut self, batch: &[EventId], pairs: PairBatch<'_>) -> Result<Vec<f32>> {
            if !batch.is_empty() {
                self.batches.push(batch.to_vec());
            }
            self.calls.push(pairs.queries.len());
            Ok(pairs.queries.iter().map(|query| score(self.batches.len(), query)).collect())
        }
    }

    fn stream() -> EventStream {
        let rows = (0..600u32).map(|i| (i * 7 % 23, 23 + (i * 5 + i / 40) % 31, f64::from(i / 2)));
        EventStream::from_events(rows).unwrap()
    }

    #[test]
    fn ranks_among_candidates_of_tgb_equal_brute_force() {
        let stream = stream();
        let task = Task::new(&stream, SplitMode::Tgb).unwrap();
        for rule in [TgbRule::new(6), TgbRule::all()] {
            let mut recorder = Recorder::default();
            let scorers = std::slice::from_mut(&mut recorder);
            let found =
                rank(&task, Pass::Test, &Candidates::Tgb(rule), BATCH, scorers, &mut NoCallback).unwrap().unwrap();
            let mut lists = TgbLists::new(&stream, &task.split, rule);
            let mut reciprocal = Vec::new();
            for (index, batch) in task.split.test.chunks(BATCH).enumerate() {
                for &event in batch {
                    let of = |query: PairQuery| score(index + 1, &query);
                    let query = task.queries(&[event])[0];
                    let scores: Vec<f32> = lists.of(event).iter().map(|&dst| of(PairQuery { dst, ..query })).collect();
                    let above = scores.iter().filter(|&&score| score > of(query)).count();
                    let at_least = scores.iter().filter(|&&score| score >= of(query)).count();
                    reciprocal.push(1.0 / (1.0 + 0.5 * (above + at_least) as f64));
                }
            }
            let expected = reciprocal.iter().sum::<f64>() / reciprocal.len() as f64;
            assert!((found[0].mrr - expected).abs() < 1e-12, "{} is not {expected}", found[0].mrr);
            assert!(recorder.calls.iter().all(|&n| n <= MAX_QUERIES));
        }
    }

    #[test]
    fn few_ranked_events_are_spread_and_the_memory_sees_every_batch() {
        let stream = stream();
        let task = Task::new(&stream, SplitMode::Tgb).unwrap();
        let events = Pass::Val.events(&task.split);
        let all: Vec<Vec<EventId>> = events.chunks(BATCH).map(<[EventId]>::to_vec).collect();
        for n in [1, 5, 40, usize::MAX] {
            let mut recorder = Recorder::default();
            let (scorers, count) = (std::slice::from_mut(&mut recorder), CandidateCount::Some(4).into());
            let ranked = RankedEvents { pass: Pass::Val, at_most: n, batch_size: BATCH };
            rank_some(&task, ranked, &count, scorers, &mut NoCallback).unwrap().unwrap();
            assert_eq!(recorder.batches, all, "{n}");
            // Batches without a ranked event have one pair; each ranked event has its own and four more.
            let n_ranked: usize = recorder.calls.iter().filter(|&&n| n > 1).map(|n| n / 5).sum();
            assert_eq!(n_ranked, n.min(events.len()));
        }
    }
}
