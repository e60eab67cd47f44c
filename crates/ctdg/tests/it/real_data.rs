//! Real datasets for tests.
//!
//! `HOPEDGN_TEST_DATA` names their folder; a relative path counts from the workspace root. If it is set, a missing file
//! fails the test. If it is not, tests use `../shared/data` beside the repository, and are skipped with a message where
//! that does not exist.

use std::path::{Path, PathBuf};

/// The folder of real datasets, or `None` if the calling test is to be skipped.
#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
pub(crate) fn folder(test: &str) -> Option<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if let Some(folder) = std::env::var_os("HOPEDGN_TEST_DATA") {
        let folder = workspace.join(folder);
        assert!(folder.is_dir(), "HOPEDGN_TEST_DATA: found no folder {}, expected the real data", folder.display());
        return Some(folder);
    }
    let folder = workspace.join("../shared/data");
    if !folder.is_dir() {
        eprintln!("{test}: skipped, no real data; set HOPEDGN_TEST_DATA to their folder");
        return None;
    }
    Some(folder)
}

/// The file `name` of the real data, or `None` if the calling test is to be skipped.
///
/// # Panics
/// When the folder exists but the file does not.
pub(crate) fn file(name: &str) -> Option<PathBuf> {
    let path = folder(name)?.join(name);
    assert!(path.is_file(), "found no file {}, expected the real dataset", path.display());
    Some(path)
}
