//! Counts with their noun: `1 node`, `1,899 nodes`.

use hopedgn::fmt::grouped;

/// `n` with digits grouped, followed by `noun`, which takes an s unless `n` is 1.
pub(crate) fn count(n: usize, noun: &str) -> String {
    let ending = if n == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", grouped(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_is_singular() {
        assert_eq!([0, 1, 2, 1_899].map(|n| count(n, "node")), ["0 nodes", "1 node", "2 nodes", "1,899 nodes"]);
    }
}
