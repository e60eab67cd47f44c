//! Tests that try random cases: a few by default, as many as `HOPEDGN_TRIES` says in a long run, from the seed `HOPEDGN_SEED`.

#[expect(clippy::disallowed_methods, reason = "a long run of the same tests asks for more tries")]
fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The number of tries, `default` unless the environment says another.
pub(crate) fn number(default: u64) -> u64 {
    from_environment("HOPEDGN_TRIES").unwrap_or(default)
}

/// The seed of the tries.
pub(crate) fn seed() -> u64 {
    from_environment("HOPEDGN_SEED").unwrap_or(0)
}

/// Prints how many tries there were.
#[expect(clippy::print_stdout, reason = "a long run is known by its number of tries")]
pub(crate) fn report(what: &str, n: usize) {
    println!("{what}: {n} tries");
}
