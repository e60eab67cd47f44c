//! A file cache of the fastest GEMM algorithm for each size, measured once on a GPU.
//!
//! Algorithms sum in different orders, and which of two nearly equal ones measures faster varies. Runs on one machine
//! compute the same bits because the first measurement is kept.
//!
//! For GPUs that this project had, the measurements come with the program.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::compile::write_atomically;

/// The opaque data of a cuBLASLt algorithm, valid for one version of the library.
pub(super) type Algorithm = [u64; 8];

/// Measured on GPUs that this project had, by the name of the cache, which holds that of the library's version. A new machine with such a
/// GPU tries no algorithm for these sizes in its first steps.
const MEASURED: &str = include_str!("measured_products.json");

/// Algorithms by [`Key::name`](super::gemm::Key::name).
pub(super) struct GemmCache {
    file: PathBuf,
    known: BTreeMap<String, Algorithm>,
    /// What came with the program.
    measured: BTreeMap<String, Algorithm>,
    is_writable: bool,
}

impl GemmCache {
    /// The cache called `name` in `folder`. Other characters than letters and digits become dashes.
    pub(super) fn open(folder: &Path, name: &str) -> Self {
        let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let file = folder.join(format!("products-{name}.json"));
        Self { known: read(&file), file, measured: measured().remove(&name).unwrap_or_default(), is_writable: true }
    }

    /// The algorithm that this machine measured, or that came with the program.
    pub(super) fn get(&self, key: &str) -> Option<Algorithm> {
        self.known.get(key).or_else(|| self.measured.get(key)).copied()
    }

    /// Whether algorithms can be stored, as far as is known.
    pub(super) fn is_writable(&self) -> bool {
        self.is_writable
    }

    /// Stores nothing more.
    pub(super) fn stop_writing(&mut self) {
        self.is_writable = false;
    }

    /// Stores an algorithm, unless another process has stored one meanwhile. Returns the stored one; `None` where the file
    /// cannot be written.
    pub(super) fn insert(&mut self, key: &str, algorithm: Algorithm) -> Option<Algorithm> {
        fs::create_dir_all(self.file.parent()?).ok()?;
        // One process at a time merges the entries of others with its own. The lock is released with the file.
        let lock_file = fs::File::create(self.file.with_extension("lock")).ok()?;
        // On file systems without locks the last writer wins.
        let _ = lock_file.lock();
        for (key, algorithm) in read(&self.file) {
            // Entries that this process has used stay as they are.
            self.known.entry(key).or_insert(algorithm);
        }
        let stored = *self.known.entry(key.to_owned()).or_insert(algorithm);
        write_atomically(&self.file, &serde_json::to_vec_pretty(&self.known).ok()?).ok()?;
        Some(stored)
    }
}

fn measured() -> BTreeMap<String, BTreeMap<String, Algorithm>> {
    serde_json::from_str(MEASURED).unwrap_or_default()
}

/// A missing or damaged file counts as empty.
fn read(file: &Path) -> BTreeMap<String, Algorithm> {
    fs::read(file).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_entry_wins_for_all_processes() {
        let folder = tempfile::tempdir().unwrap();
        let (mut one, mut other) = (GemmCache::open(folder.path(), "A GPU"), GemmCache::open(folder.path(), "A GPU"));
        assert_eq!(one.insert("8 x 9", [1; 8]), Some([1; 8]));
        assert_eq!(other.insert("8 x 9", [2; 8]), Some([1; 8]));
        assert_eq!(other.insert("9 x 9", [u64::MAX; 8]), Some([u64::MAX; 8]));
        assert_eq!(one.insert("7 x 9", [3; 8]), Some([3; 8]));
        let later = GemmCache::open(folder.path(), "A GPU");
        assert_eq!([later.get("8 x 9"), later.get("9 x 9")], [Some([1; 8]), Some([u64::MAX; 8])]);
        assert_eq!(GemmCache::open(folder.path(), "Another GPU").get("8 x 9"), None);
    }

    #[test]
    fn what_came_with_the_program_yields_to_what_the_machine_measured() {
        let folder = tempfile::tempdir().unwrap();
        let all = measured();
        let (name, products) = all.first_key_value().expect("the file of measurements is read");
        let (key, algorithm) = products.first_key_value().unwrap();
        assert_eq!(GemmCache::open(folder.path(), name).get(key), Some(*algorithm));
        fs::write(folder.path().join(format!("products-{name}.json")), format!(r#"{{"{key}": [1,2,3,4,5,6,7,8]}}"#))
            .unwrap();
        assert_eq!(GemmCache::open(folder.path(), name).get(key), Some([1, 2, 3, 4, 5, 6, 7, 8]));
        assert_eq!(GemmCache::open(folder.path(), "another GPU").get(key), None);
    }

    #[test]
    fn insert_into_an_unwritable_folder_returns_none() {
        let folder = tempfile::tempdir().unwrap();
        // A file in place of the folder.
        fs::write(folder.path().join("taken"), "").unwrap();
        assert_eq!(GemmCache::open(&folder.path().join("taken"), "x").insert("8 x 9", [1; 8]), None);
    }

    #[test]
    fn a_damaged_file_counts_as_empty() {
        let folder = tempfile::tempdir().unwrap();
        let open = || GemmCache::open(folder.path(), "x");
        fs::write(folder.path().join("products-x.json"), "{\"8 x 9\": [1, 2").unwrap();
        assert_eq!(open().get("8 x 9"), None);
        open().insert("8 x 9", [4; 8]);
        assert_eq!(open().get("8 x 9"), Some([4; 8]));
    }
}
