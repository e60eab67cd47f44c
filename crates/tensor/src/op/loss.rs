//! The loss of link prediction.

use crate::math::sigmoid;
use crate::tape::{At, Sink};
use crate::{Result, Shape, Tape, Tensor, Var};

impl Tape<'_> {
    /// The mean binary cross-entropy of `logits` against `targets` in `[0, 1]`, `[1]`.
    ///
    /// Taken from the logits, so that no probability is rounded to 0 or 1 on the way; summed in `f64`. Of no logits it is
    /// 0.
    pub fn bce_with_logits(&mut self, logits: Var, targets: &[f32]) -> Result<Var> {
        let count = self.shape(logits).len();
        if count != targets.len() {
            let needed = format_args!("{} values", targets.len()).to_string();
            return Err(self.misfit("binary cross-entropy", "the logits", logits, needed));
        }
        let term = |x: f32, y: f32| f64::from(x.max(0.0) - x * y + (-x.abs()).exp().ln_1p());
        let total: f64 = self.value(logits).values().iter().zip(targets).map(|(&x, &y)| term(x, y)).sum();
        #[expect(clippy::cast_possible_truncation, reason = "the mean is rounded once, at the end")]
        let mean = (total / count.max(1) as f64) as f32;
        let targets = targets.to_vec();
        let backward = move |grad: Vec<f32>, at: &At<'_>, sink: &mut Sink<'_>| {
            let share = grad[0] / count.max(1) as f32;
            let x = at.value(logits).values();
            sink.give(logits, x.iter().zip(&targets).map(|(&x, &y)| (sigmoid(x) - y) * share).collect());
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
        check_gradients(&[matrix(1, 5, 1)], |tape, x| tape.bce_with_logits(x[0], &targets));
    }

    #[test]
    fn values_and_gradients_are_those_of_pytorch() {
        let targets = [1.0, 0.0, 0.0, 1.0, 0.25, 1.0];
        Case::load("bce_with_logits").check(&["x"], |tape, x| tape.bce_with_logits(x[0], &targets));
    }

    #[test]
    fn certain_and_wrong_costs_the_logit() {
        let parameters = Parameters::default();
        let mut tape = Tape::new(&parameters);
        let x = tape.input(Tensor::vector(vec![200.0, -200.0]));
        let loss = tape.bce_with_logits(x, &[0.0, 1.0]).unwrap();
        assert_eq!(tape.value(loss).values(), [200.0]);
        assert!(tape.bce_with_logits(x, &[0.0]).is_err());
    }
}
