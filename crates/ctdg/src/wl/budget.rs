//! Memory and time estimate of a run.

use std::fmt;

use rayon::current_num_threads;

use crate::error::{Problem, Result};
use crate::wl::MAX_K;
use crate::wl::dwl::Variant;
use crate::wl::graph::Graph;

/// Peak bytes per tuple in a round: the sort entry (32), two partitions with their class sizes (16),
/// the list of classes (12) and room for a vector that grows by doubling (20).
const BYTES_PER_TUPLE: u128 = 80;

/// Terms per second and thread, times k²: a lower bound of measurements on a Zen 3 core with graphs where every tuple is
/// compared in full (50 million for `k = 2`, 20 million for `k = 3`, 10 million for `k = 4`); other graphs are several
/// times faster.
const TERMS_PER_SECOND: f64 = 2e8;

/// Default memory limit of a run: 4 GiB.
pub const DEFAULT_MAX_MEMORY: u64 = 4 << 30;

/// Estimated cost of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Tuples of all graphs together: the sum of `n^k`, for marked DWL of `n³` nodes beside pairs.
    pub tuples: u128,
    /// Terms hashed per round: the sum of `n^k · n`, or twice the pairs with events for `k = 1`, and `n²` times that for
    /// marked DWL.
    pub terms_a_round: u128,
    /// Bytes in memory.
    pub memory: u128,
    /// Seconds per round, a rough upper estimate. The number of rounds is not known beforehand; fewer than ten are usual for
    /// `k ≥ 2`.
    pub seconds_a_round: f64,
}

impl Estimate {
    /// The cost of `k`-tuples of `graphs`.
    #[must_use]
    pub fn new(graphs: &[&Graph], k: usize, variant: Variant) -> Self {
        let nodes = || graphs.iter().map(|graph| graph.n_nodes() as u128);
        let is_marked = matches!(variant, Variant::Marked(_));
        let power = u32::try_from(if is_marked { 3 } else { k }).unwrap_or(u32::MAX);
        let tuples = sum(nodes().map(|n| n.saturating_pow(power)));
        let half_links = sum(graphs.iter().map(|graph| graph.n_half_links() as u128));
        let (terms_a_round, links) = if is_marked {
            // Neighbors of each node beside each pair, and once more the nodes of each pair.
            let of = |graph: &&Graph| {
                let n = graph.n_nodes() as u128;
                n.saturating_mul(n).saturating_mul(graph.n_half_links() as u128 + n)
            };
            (sum(graphs.iter().map(of)), sum(nodes().map(|n| n.saturating_mul(n).saturating_mul(12))))
        } else if k == 1 {
            (half_links, half_links.saturating_mul(12))
        } else {
            let factor = if variant == Variant::Oblivious { k as u128 } else { 1 };
            let terms = sum(nodes().map(|n| n.saturating_pow(power).saturating_mul(n).saturating_mul(factor)));
            // The matrix of sequences, once for the initial types and once for the rule.
            (terms, sum(nodes().map(|n| n.saturating_mul(n).saturating_mul(8))))
        };
        // Interaction sequences, seen from both sides.
        let sequences = sum(graphs.iter().map(|graph| graph.n_events() as u128 * 16));
        let memory = tuples.saturating_mul(BYTES_PER_TUPLE).saturating_add(links).saturating_add(sequences);
        let seconds_a_round = terms_a_round as f64 * (k * k) as f64 / (TERMS_PER_SECOND * current_num_threads() as f64);
        Self { tuples, terms_a_round, memory, seconds_a_round }
    }

    /// Refuses a run that would take more than `max_memory` bytes, or more tuples than fit 32 bits.
    pub(crate) fn check(self, graphs: &[&Graph], k: usize, variant: Variant, max_memory: u64) -> Result<()> {
        let fits =
            |estimate: &Self| estimate.memory <= u128::from(max_memory) && estimate.tuples < u128::from(u32::MAX);
        if fits(&self) {
            return Ok(());
        }
        let plain = if matches!(variant, Variant::Marked(_)) { Variant::Folklore } else { variant };
        let largest = (1..=MAX_K).rev().find(|&smaller| fits(&Self::new(graphs, smaller, plain)));
        Err(Problem::WlBudget {
            test: if plain == variant { format!("k = {k}") } else { "marked DWL".into() },
            tuples: self.tuples,
            needed: Bytes(self.memory).to_string(),
            allowed: Bytes(max_memory.into()).to_string(),
            largest: match largest {
                Some(k) => format!("the largest k that fits is {k}"),
                None => "no k fits".into(),
            },
        }
        .into())
    }
}

fn sum(values: impl Iterator<Item = u128>) -> u128 {
    values.fold(0, u128::saturating_add)
}

/// A number of bytes, shown as `1.5 GiB`.
#[derive(Debug, Clone, Copy)]
pub struct Bytes(pub u128);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];
        let (mut value, mut unit) = (self.0 as f64, 0);
        while value >= 1024.0 && unit + 1 < units.len() {
            value /= 1024.0;
            unit += 1;
        }
        let digits = usize::from(unit > 0 && value < 100.0);
        write!(f, "{value:.digits$} {}", units[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventStream;
    use crate::wl::graph::GraphOptions;

    fn ring(n: u32) -> Graph {
        let stream = EventStream::from_events((0..n).map(|node| (node, (node + 1) % n, f64::from(node)))).unwrap();
        Graph::new(&stream, &GraphOptions::default()).unwrap()
    }

    #[test]
    fn tuples_and_terms_are_counted_without_overflow() {
        let (a, b) = (ring(300), ring(200));
        let estimate = Estimate::new(&[&a, &b], 2, Variant::Folklore);
        assert_eq!(estimate.tuples, 90_000 + 40_000);
        assert_eq!(estimate.terms_a_round, 27_000_000 + 8_000_000);
        assert_eq!(Estimate::new(&[&a], 1, Variant::Folklore).terms_a_round, 600);
        assert_eq!(Estimate::new(&[&a, &b], 200, Variant::Folklore).tuples, u128::MAX);
    }

    #[test]
    fn marked_dwl_is_refused_by_its_triples_and_names_a_k_that_fits() {
        let graph = ring(1_000);
        let marked = Variant::Marked(crate::wl::Reach::All);
        let estimate = Estimate::new(&[&graph], 2, marked);
        assert_eq!((estimate.tuples, estimate.terms_a_round), (1_000_000_000, 1_000_000 * (2_000 + 1_000)));
        let refused = estimate.check(&[&graph], 2, marked, DEFAULT_MAX_MEMORY).unwrap_err().to_string();
        assert!(refused.contains("found marked DWL with 1000000000 tuples"), "{refused}");
        assert!(refused.contains("the largest k that fits is 2"), "{refused}");
    }

    #[test]
    fn oversized_run_is_refused_with_the_largest_k_that_fits() {
        let graph = ring(1_000);
        let estimate = Estimate::new(&[&graph], 3, Variant::Folklore);
        let refused = estimate.check(&[&graph], 3, Variant::Folklore, DEFAULT_MAX_MEMORY).unwrap_err().to_string();
        assert!(refused.contains("1000000000 tuples"), "{refused}");
        assert!(refused.contains("74.5 GiB") && refused.contains("4.0 GiB"), "{refused}");
        assert!(refused.contains("the largest k that fits is 2"), "{refused}");
        assert!(estimate.check(&[&graph], 3, Variant::Folklore, u64::MAX).is_ok());
    }
}
