//! Any bytes, read in any format: an error or a sound stream, never a panic and never unbounded memory.
//!
//! The first byte chooses the format, the rest is the file (and the feature matrix beside it).
#![no_main]

use std::cell::RefCell;

use ctdg::dataset::{Format, ReadOptions, read};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

thread_local! {
    static FOLDER: RefCell<TempDir> = RefCell::new(tempfile::tempdir().expect("a temporary folder"));
}

fuzz_target!(|input: &[u8]| {
    let Some((&choice, bytes)) = input.split_first() else { return };
    FOLDER.with_borrow(|folder| {
        let file = folder.path().join("x.csv");
        std::fs::write(&file, bytes).expect("room for a small file");
        let beside = folder.path().join("x_features.npy");
        if choice & 0x80 != 0 {
            std::fs::write(&beside, bytes).expect("room for a small file");
        } else {
            let _ = std::fs::remove_file(&beside);
        }
        let format = Format::ALL[usize::from(choice) % Format::ALL.len()];
        let options = ReadOptions { format, sort: choice & 0x40 != 0, ..ReadOptions::default() };
        if let Ok(stream) = read(&file, &options) {
            assert!(stream.times().is_sorted());
            assert!(stream.src().iter().chain(stream.dst()).all(|node| node.index() < stream.n_nodes()));
        }
    });
});
