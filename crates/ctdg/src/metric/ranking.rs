//! Rank of a true destination among negatives; MRR, Hits@k (here the same as Recall@k) and NDCG@k.

use crate::error::{Error, Place, Problem, Result};

/// The rank of a positive among negatives, from 1: `1 + ½(#{negative > positive} + #{negative ≥ positive})`, the mean of
/// the ranks under optimistic and pessimistic tie-breaking. Time O(n).
///
/// ```
/// assert_eq!(ctdg::metric::rank(0.5_f32, &[0.9, 0.5, 0.1])?, 2.5);
/// # Ok::<(), ctdg::Error>(())
/// ```
pub fn rank<S: Into<f64> + Copy>(positive: S, negatives: &[S]) -> Result<f64> {
    let positive = positive.into();
    if positive.is_nan() {
        return Err(Problem::NanScore.into());
    }
    let (mut above, mut tied) = (0_u64, 0_u64);
    for (index, &negative) in negatives.iter().enumerate() {
        match negative.into().partial_cmp(&positive) {
            Some(std::cmp::Ordering::Greater) => above += 1,
            Some(std::cmp::Ordering::Equal) => tied += 1,
            Some(std::cmp::Ordering::Less) => {}
            None => return Err(Error::at(Place::default().row(index as u64), Problem::NanScore)),
        }
    }
    Ok(1.0 + above as f64 + 0.5 * tied as f64)
}

/// Mean of `1 / rank`; an error when there is no rank.
pub fn mrr(ranks: &[f64]) -> Result<f64> {
    mean(ranks, |rank| 1.0 / rank)
}

/// Share of `ranks` that are at most `k`; an error when there is no rank. Ranks are averaged over ties, so the rank
/// 10.5 is not among the first 10.
pub fn hits_at(ranks: &[f64], k: u32) -> Result<f64> {
    mean(ranks, |rank| f64::from(u8::from(rank <= f64::from(k))))
}

/// Share of relevant destinations among the first `k`, averaged over queries. Each query has one true destination, so this is
/// [`hits_at`] under the name that recommender systems use.
///
/// ```
/// use ctdg::metric::{hits_at, recall_at};
///
/// let ranks = [1.0, 4.0, 12.0];
/// assert_eq!(recall_at(&ranks, 10)?, hits_at(&ranks, 10)?);
/// # Ok::<(), ctdg::Error>(())
/// ```
pub fn recall_at(ranks: &[f64], k: u32) -> Result<f64> {
    hits_at(ranks, k)
}

/// Normalised discounted cumulative gain of the first `k`: the mean of `1 / log2(1 + rank)` over ranks of at most `k`, 0 for
/// others. With one true destination the best possible gain is 1, so nothing is left to normalise.
///
/// ```
/// assert_eq!(ctdg::metric::ndcg_at(&[1.0, 3.0, 11.0], 10)?, (1.0 + 0.5) / 3.0);
/// # Ok::<(), ctdg::Error>(())
/// ```
pub fn ndcg_at(ranks: &[f64], k: u32) -> Result<f64> {
    mean(ranks, |rank| if rank <= f64::from(k) { 1.0 / (1.0 + rank).log2() } else { 0.0 })
}

fn mean(ranks: &[f64], value: impl Fn(f64) -> f64) -> Result<f64> {
    if ranks.is_empty() {
        return Err(Problem::NothingScored { what: "rank" }.into());
    }
    Ok(ranks.iter().map(|&rank| value(rank)).sum::<f64>() / ranks.len() as f64)
}

/// Collected ranks, from which MRR, hits@k and NDCG@k are computed for any `k`. Memory: 8 bytes per rank.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ranking {
    ranks: Vec<f64>,
}

impl Ranking {
    /// No rank yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the rank of `positive` among `negatives` and returns it.
    pub fn push<S: Into<f64> + Copy>(&mut self, positive: S, negatives: &[S]) -> Result<f64> {
        let rank = rank(positive, negatives)?;
        self.ranks.push(rank);
        Ok(rank)
    }

    /// Adds a rank computed elsewhere.
    pub fn push_rank(&mut self, rank: f64) -> Result<()> {
        if rank.is_finite() && rank >= 1.0 {
            self.ranks.push(rank);
            return Ok(());
        }
        let expected = "a number of at least 1".into();
        Err(Problem::Setting { name: "rank", found: rank.to_string(), expected }.into())
    }

    /// Appends the ranks of `other`.
    pub fn join(&mut self, other: &Self) {
        self.ranks.extend_from_slice(&other.ranks);
    }

    /// The ranks in order.
    #[must_use]
    pub fn ranks(&self) -> &[f64] {
        &self.ranks
    }

    /// Mean reciprocal rank; an error when there is no rank.
    pub fn mrr(&self) -> Result<f64> {
        mrr(&self.ranks)
    }

    /// Share of ranks of at most `k`; an error when there is no rank.
    pub fn hits_at(&self, k: u32) -> Result<f64> {
        hits_at(&self.ranks, k)
    }

    /// [`recall_at`] of the ranks.
    pub fn recall_at(&self, k: u32) -> Result<f64> {
        recall_at(&self.ranks, k)
    }

    /// [`ndcg_at`] of the ranks.
    pub fn ndcg_at(&self, k: u32) -> Result<f64> {
        ndcg_at(&self.ranks, k)
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "both sides are the same operations")]
mod tests {
    use super::*;

    #[test]
    fn tie_gets_the_mean_rank() {
        assert_eq!(rank(1.0, &[1.0; 9]).unwrap(), 5.5);
        assert_eq!(rank(1.0_f32, &[]).unwrap(), 1.0);
        assert_eq!(rank(1.0, &[2.0, f64::INFINITY, 0.0]).unwrap(), 3.0);
    }

    #[test]
    fn fractional_rank_is_not_rounded_down_for_hits() {
        let ranks = [1.0, 10.0, 10.5];
        assert_eq!(hits_at(&ranks, 10).unwrap(), 2.0 / 3.0);
        assert_eq!(hits_at(&ranks, 11).unwrap(), 1.0);
    }

    #[test]
    fn ranking_agrees_with_the_functions() {
        let mut ranking = Ranking::new();
        ranking.push(0.5_f32, &[0.9, 0.5]).unwrap();
        let mut second = Ranking::new();
        second.push_rank(4.0).unwrap();
        ranking.join(&second);
        assert_eq!(ranking.ranks(), [2.5, 4.0]);
        assert_eq!(ranking.mrr().unwrap(), 0.325);
        assert_eq!(ranking.hits_at(3).unwrap(), 0.5);
    }

    #[test]
    fn nan_is_never_ranked() {
        assert!(rank(f64::NAN, &[1.0]).is_err());
        assert!(rank(1.0, &[f64::NAN]).is_err());
        assert!(Ranking::new().push_rank(0.5).is_err());
        let message = Ranking::new().mrr().unwrap_err().to_string();
        assert_eq!(message, "found nothing scored, expected at least one rank");
    }
}
