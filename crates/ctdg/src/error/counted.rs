//! Counts with their noun.

/// `n` and `noun`, which takes an s unless `n` is 1.
///
/// ```
/// use ctdg::error::counted;
///
/// assert_eq!([0u64, 1, 2].map(|n| counted(n, "event")), ["0 events", "1 event", "2 events"]);
/// ```
pub fn counted(n: impl TryInto<u64>, noun: &str) -> String {
    let n = n.try_into().unwrap_or(u64::MAX);
    let ending = if n == 1 { "" } else { "s" };
    format!("{n} {noun}{ending}")
}
