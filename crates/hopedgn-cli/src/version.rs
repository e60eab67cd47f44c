//! What this program was built from; `build.rs` finds it out.

/// The version, with the commit where it is known: `0.2.0 (0123456789ab)`.
pub(crate) const TEXT: &str = env!("HOPEDGN_VERSION");

/// The commit, where it is known; it ends in `-dirty` if sources differed from it.
pub(crate) fn commit() -> Option<&'static str> {
    Some(env!("HOPEDGN_COMMIT")).filter(|commit| !commit.is_empty())
}
