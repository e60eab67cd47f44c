//! Which algorithm is fastest for a product of a given size, measured once on a card and kept in a file.
//!
//! Algorithms differ in the order of their sums, and the fastest of two that are nearly as fast may be another one
//! tomorrow. Only because the first answer is kept do all runs on a machine compute the same bits.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::compile::keep;

/// The library's own description of an algorithm, good for one version of it.
pub(super) type Algorithm = [u64; 8];

/// Answers by the name of the question.
pub(super) struct Choices {
    file: PathBuf,
    known: BTreeMap<String, Algorithm>,
}

impl Choices {
    /// What was kept in `folder` under a name of letters, digits and dashes.
    pub(super) fn open(folder: &Path, name: &str) -> Self {
        let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let file = folder.join(format!("products-{name}.json"));
        let known = read(&file);
        Self { file, known }
    }

    pub(super) fn get(&self, question: &str) -> Option<Algorithm> {
        self.known.get(question).copied()
    }

    /// Keeps an answer, unless another program has kept one meanwhile: the one that holds, or nothing where none can be
    /// kept.
    pub(super) fn keep(&mut self, question: &str, answer: Algorithm) -> Option<Algorithm> {
        fs::create_dir_all(self.file.parent()?).ok()?;
        // One program at a time reads what others have found and adds to it; the lock goes with the file.
        let gate = fs::File::create(self.file.with_extension("lock")).ok()?;
        // Some file systems cannot lock: then the last writer is believed.
        let _ = gate.lock();
        for (question, answer) in read(&self.file) {
            // Answers that this program has used already stay as they are.
            self.known.entry(question).or_insert(answer);
        }
        let holds = *self.known.entry(question.to_owned()).or_insert(answer);
        keep(&self.file, &serde_json::to_vec_pretty(&self.known).ok()?).ok()?;
        Some(holds)
    }
}

/// A file that is missing or damaged has no answers.
fn read(file: &Path) -> BTreeMap<String, Algorithm> {
    fs::read(file).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_answer_holds_for_all_programs() {
        let folder = tempfile::tempdir().unwrap();
        let (mut one, mut other) = (Choices::open(folder.path(), "A card"), Choices::open(folder.path(), "A card"));
        assert_eq!(one.keep("8 x 9", [1; 8]), Some([1; 8]));
        assert_eq!(other.keep("8 x 9", [2; 8]), Some([1; 8]));
        assert_eq!(other.keep("9 x 9", [u64::MAX; 8]), Some([u64::MAX; 8]));
        assert_eq!(one.keep("7 x 9", [3; 8]), Some([3; 8]));
        let later = Choices::open(folder.path(), "A card");
        assert_eq!([later.get("8 x 9"), later.get("9 x 9")], [Some([1; 8]), Some([u64::MAX; 8])]);
        assert_eq!(Choices::open(folder.path(), "Another card").get("8 x 9"), None);
    }

    #[test]
    fn what_cannot_be_kept_is_not_answered() {
        let folder = tempfile::tempdir().unwrap();
        // A file stands where the folder should be.
        fs::write(folder.path().join("taken"), "").unwrap();
        assert_eq!(Choices::open(&folder.path().join("taken"), "x").keep("8 x 9", [1; 8]), None);
    }

    #[test]
    fn a_damaged_file_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Choices::open(folder.path(), "x");
        fs::write(folder.path().join("products-x.json"), "{\"8 x 9\": [1, 2").unwrap();
        assert_eq!(open().get("8 x 9"), None);
        open().keep("8 x 9", [4; 8]);
        assert_eq!(open().get("8 x 9"), Some([4; 8]));
    }
}
