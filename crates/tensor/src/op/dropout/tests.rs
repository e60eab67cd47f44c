use super::*;
use crate::testkit::{check_gradients, matrix};
use crate::{Parameters, Shape, Tensor};

#[test]
fn gradients_match_finite_differences() {
    let dropout = Dropout::new(0.3, 7, Mode::Train).unwrap();
    check_gradients(&[matrix(1, 70, 5)], |tape, x| Ok(tape.dropout(x[0], dropout)));
}

#[test]
fn the_share_of_zeros_is_the_rate_and_the_mean_is_preserved() {
    let parameters = Parameters::default();
    let run = |seed: u64| {
        let mut tape = Tape::new(&parameters);
        let x = tape.input(Tensor::full(Shape::Matrix(1000, 100), 1.0));
        let y = tape.dropout(x, Dropout::new(0.1, seed, Mode::Train).unwrap());
        tape.value(y).clone()
    };
    let y = run(1);
    let zeros = y.values().iter().filter(|&&y| y == 0.0).count() as f64 / 1e5;
    // Four standard deviations of a share of 100,000 draws.
    assert!((zeros - 0.1).abs() < 0.004, "{zeros}");
    assert!(y.values().iter().all(|&y| y == 0.0 || y == 1.0 / 0.9));
    assert_eq!(y, run(1));
    assert_ne!(y, run(2));
}

/// Whether each of `count` positions from `first` on is kept.
fn kept(dropout: Dropout, first: usize, count: usize) -> Vec<bool> {
    let mut values = vec![1.0; count];
    dropout.apply(first, &mut values);
    values.iter().map(|&value| value != 0.0).collect()
}

#[test]
fn the_mask_of_a_position_does_not_depend_on_the_slice() {
    let dropout = Dropout::new(0.4, 3, Mode::Train).unwrap();
    let all = kept(dropout, 0, 100);
    for (first, count) in [(0, 7), (1, 40), (15, 2), (16, 16), (17, 83), (31, 33), (50, 0)] {
        assert_eq!(kept(dropout, first, count), all[first..first + count]);
    }
    let (mut a, mut b) = (vec![1.0; 40], vec![1.0; 40]);
    dropout.apply_to_both(5, &mut a, &mut b);
    assert_eq!(a, b);
    assert_eq!(kept(dropout, 5, 40), all[5..45]);
}

#[test]
fn masks_of_seeds_sites_and_positions_are_independent() {
    const COUNT: usize = 200_000;
    let base = Dropout::new(0.5, 1, Mode::Train).unwrap();
    let uses = [base, Dropout { seed: 2, ..base }, base.site(0), base.site(1), base.site(2), base.site(0).site(1)];
    let masks = uses.map(|dropout| kept(dropout, 0, COUNT + 64));
    // Two fair coins agree half the time; five standard deviations of a share of COUNT draws.
    let check = |a: &[bool], b: &[bool], what: &str| {
        let agreed = a.iter().zip(b).take(COUNT).filter(|(a, b)| a == b).count() as f64 / COUNT as f64;
        assert!((agreed - 0.5).abs() < 5.0 * 0.5 / (COUNT as f64).sqrt(), "{what}: {agreed}");
    };
    for (i, a) in masks.iter().enumerate() {
        for (j, b) in masks.iter().enumerate().skip(i + 1) {
            check(a, b, &format!("uses {i} and {j}"));
        }
        for step in [1, 2, 7, 8, 16, 64] {
            check(a, &a[step..], &format!("use {i}, {step} apart"));
        }
    }
}

#[test]
fn evaluation_drops_nothing() {
    let parameters = Parameters::default();
    let mut tape = Tape::new(&parameters);
    let x = tape.input(matrix(1, 2, 2));
    assert_eq!(tape.dropout(x, Dropout::new(0.5, 1, Mode::Evaluate).unwrap()), x);
    assert!(Dropout::new(1.0, 1, Mode::Evaluate).is_err());
    assert!(Dropout::new(f32::NAN, 1, Mode::Train).is_err());
}
