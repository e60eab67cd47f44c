//! What a score means: with the intensity objective a probability, otherwise a number that separates.

use hopedgn_tensor::Weights;
use serde::Serialize;

use super::sigmoid;
use crate::Result;
use crate::model::{LOG_DESTINATIONS, LOG_SUM};

/// What the logits of a model mean.
///
/// ```
/// use hopedgn::predict::ScoreMeaning;
///
/// let of_four = ScoreMeaning::NextPartner { log_destinations: 4_f32.ln(), log_sum: 0.0 };
/// assert_eq!(of_four.score(0.0), 0.25); // as likely as by chance
/// assert_eq!(of_four.score(9.0), 1.0);
/// assert_eq!(ScoreMeaning::Separation.score(0.0), 0.5);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ScoreMeaning {
    /// [`Objective::Dyglib`](crate::config::Objective): true pairs have higher scores than random ones. The sigmoid of a logit is the
    /// share of true pairs among equally many true and random ones; how likely a pair is to interact depends on how many pairs there
    /// are, so it is no probability of that.
    Separation,
    /// [`Objective::Intensity`](crate::config::Objective): the probability that the next partner of the source is the destination.
    ///
    /// ```text
    /// P = exp(logit) / (|V| · S)
    /// ```
    ///
    /// Noise-contrastive estimation makes the sum over all destinations about one; the constant `S` makes it one on average over the
    /// validation events. Nothing forces it to be one for each event.
    NextPartner {
        /// `ln |V|`, of the destinations of training.
        log_destinations: f32,
        /// `ln S`; 0 for a model with a memory, which is not measured.
        log_sum: f32,
    },
}

/// What a model says about one pair.
///
/// Made by [`LinkPredictor::predictions`](crate::LinkPredictor::predictions).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// Between 0 and 1, the higher the likelier. With [`ScoreMeaning::NextPartner`] the probability.
    pub score: f32,
    /// What the score means in numbers; only with [`ScoreMeaning::NextPartner`].
    pub likelihood: Option<Likelihood>,
}

/// How likely a pair is, in three numbers.
///
/// Part of a [`Prediction`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Likelihood {
    /// `P(v | u, t)`: that the next partner of the source is this destination. Over all destinations the sum is about one; at most 1.
    pub probability: f32,
    /// How often this pair interacts, relative to a pair drawn at random from those that have interacted: 1 is as often. It compares
    /// pairs with different sources at one time. It is no number of events in a unit of time, and for a pair that has never interacted
    /// it is an extrapolation: training compares pairs that have.
    pub intensity: f32,
    /// `P(v | u, t) · |V|`: how many times likelier than by chance, each of the destinations of training being equally likely.
    pub lift: f32,
}

impl ScoreMeaning {
    /// That of a model with these weights.
    pub(crate) fn of(weights: &Weights) -> Result<Self> {
        let parameters = weights.parameters()?;
        let constant = |name: &str| parameters.id(name).map(|id| parameters.get(id).values()[0]);
        Ok(match (constant(LOG_DESTINATIONS), constant(LOG_SUM)) {
            (Some(log_destinations), Some(log_sum)) => Self::NextPartner { log_destinations, log_sum },
            _ => Self::Separation,
        })
    }

    /// The score of a logit, between 0 and 1.
    #[must_use]
    pub fn score(self, logit: f32) -> f32 {
        match self {
            Self::Separation => sigmoid(logit),
            Self::NextPartner { log_destinations, log_sum } => (logit - log_destinations - log_sum).exp().min(1.0),
        }
    }

    /// What the two [outputs](crate::score::Output) for a pair, of the partner and of the pair, say.
    pub(crate) fn prediction(self, [partner, pair]: [f32; 2]) -> Prediction {
        let score = self.score(partner);
        let Self::NextPartner { log_destinations, .. } = self else { return Prediction { score, likelihood: None } };
        let lift = score * log_destinations.exp();
        Prediction { score, likelihood: Some(Likelihood { probability: score, intensity: pair.exp(), lift }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_stay_within_bounds() {
        let meaning = ScoreMeaning::NextPartner { log_destinations: 50_f32.ln(), log_sum: 0.1 };
        for logit in [-200.0, -3.0, 0.0, 5.0, 200.0] {
            assert!((0.0..=1.0).contains(&meaning.score(logit)), "{logit}");
        }
    }
}
