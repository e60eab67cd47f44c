//! The loss of link prediction.

use crate::math::sigmoid;
use crate::scratch::Scratch;
use crate::tape::{At, Sink};
use crate::{Result, Shape, Tape, Tensor, Var};

impl Tape<'_> {
    /// The binary cross-entropy of `logits` against `targets` in `[0, 1]`, summed and divided by `count`, `[1]`.
    ///
    /// With the number of targets as `count` it is their mean; with that of a larger batch it is this part's share of the
    /// batch's mean. Taken from the logits, so that no probability is rounded to 0 or 1 on the way; summed in `f64`. Of no
    /// logits it is 0.
    pub fn bce_with_logits(&mut self, logits: Var, targets: &[f32], count: usize) -> Result<Var> {
        if self.shape(logits).len() != targets.len() {
            let needed = format_args!("{} values", targets.len()).to_string();
            return Err(self.misfit("binary cross-entropy", "the logits", logits, needed));
        }
        if let Some(record) = self.record() {
            return record.bce_with_logits(logits.0, targets, count).map(Var);
        }
        let term = |x: f32, y: f32| f64::from(x.max(0.0) - x * y + (-x.abs()).exp().ln_1p());
        let total: f64 = self.value(logits).values().iter().zip(targets).map(|(&x, &y)| term(x, y)).sum();
        #[expect(clippy::cast_possible_truncation, reason = "the mean is rounded once, at the end")]
        let mean = (total / count.max(1) as f64) as f32;
        let targets = targets.to_vec();
        let backward = move |grad: Scratch, at: &At<'_>, sink: &mut Sink<'_>| {
            let share = grad[0] / count.max(1) as f32;
            let x = at.value(logits).values();
            let grad: Vec<f32> = x.iter().zip(&targets).map(|(&x, &y)| (sigmoid(x) - y) * share).collect();
            sink.give(logits, grad.into());
        };
        Ok(self.push(&[logits], Tensor::from_parts(Shape::Vector(1), vec![mean]), backward))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Parameters;
    use crate::testkit::{Case, check_gradients, matrix};

    #[test]
    fn gradients_match_differences() {
        let targets = [1.0, 0.0, 0.0, 1.0, 0.25];
        check_gradients(&[matrix(1, 5, 1)], |tape, x| tape.bce_with_logits(x[0], &targets, targets.len()));
    }

    #[test]
    fn values_and_gradients_are_those_of_pytorch() {
        let targets = [1.0, 0.0, 0.0, 1.0, 0.25, 1.0];
        Case::load("bce_with_logits").check(&["x"], |tape, x| tape.bce_with_logits(x[0], &targets, targets.len()));
    }

    #[test]
    fn shares_add_up_to_the_mean() {
        let parameters = Parameters::default();
        let mut tape = Tape::new(&parameters);
        let (values, targets) = ([0.5, -1.0, 2.0], [1.0, 0.0, 0.0]);
        let mut loss = |range: std::ops::Range<usize>| {
            let x = tape.input(Tensor::vector(values[range.clone()].to_vec()));
            let loss = tape.bce_with_logits(x, &targets[range], 3).unwrap();
            tape.value(loss).values()[0]
        };
        assert!((loss(0..1) + loss(1..3) - loss(0..3)).abs() < 1e-6);
    }

    #[test]
    fn certain_and_wrong_costs_the_logit() {
        let parameters = Parameters::default();
        let mut tape = Tape::new(&parameters);
        let x = tape.input(Tensor::vector(vec![200.0, -200.0]));
        let loss = tape.bce_with_logits(x, &[0.0, 1.0], 2).unwrap();
        assert_eq!(tape.value(loss).values(), [200.0]);
        assert!(tape.bce_with_logits(x, &[0.0], 1).is_err());
    }
}
