//! Reproducible `.tar.gz` archives, and checksums.

use std::fmt::Write as _;
use std::io::Write as _;

use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};

/// A file of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    /// Relative, with slashes.
    pub(crate) path: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) is_program: bool,
}

impl File {
    pub(crate) fn new(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), bytes: bytes.into(), is_program: false }
    }
}

/// The files below a folder `root`, sorted by path, all with one time stamp and without an owner.
pub(crate) fn tar_gz(root: &str, mut files: Vec<File>, epoch: u64) -> anyhow::Result<Vec<u8>> {
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let mut archive = tar::Builder::new(Vec::new());
    archive.mode(tar::HeaderMode::Deterministic);
    for File { path, bytes, is_program } in &files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(if *is_program { 0o755 } else { 0o644 });
        header.set_mtime(epoch);
        header.set_uid(0);
        header.set_gid(0);
        archive.append_data(&mut header, format!("{root}/{path}"), bytes.as_slice())?;
    }
    let tar = archive.into_inner()?;
    // Neither a name nor a time in the header, and no operating system.
    let mut gzip = GzBuilder::new().mtime(0).operating_system(255).write(Vec::new(), Compression::new(6));
    gzip.write_all(&tar)?;
    Ok(gzip.finish()?)
}

/// In hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn files() -> Vec<File> {
        let program = File { is_program: true, ..File::new("bin/hopedgn", "program") };
        vec![program, File::new("README.md", "text"), File::new("a/long.txt", vec![b'x'; 3000])]
    }

    #[test]
    fn the_order_of_the_files_changes_no_byte() {
        let forth = tar_gz("root", files(), 1_700_000_000).unwrap();
        let back = tar_gz("root", files().into_iter().rev().collect(), 1_700_000_000).unwrap();
        assert_eq!(sha256(&forth), sha256(&back));
        assert_ne!(forth, tar_gz("root", files(), 1).unwrap(), "the time stamp is in it");
    }

    #[test]
    fn entries_have_path_mode_time_and_no_owner() {
        let bytes = tar_gz("root", files(), 1_700_000_000).unwrap();
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes.as_slice()));
        let entries = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            let header = entry.header();
            assert_eq!((header.uid().unwrap(), header.gid().unwrap(), header.mtime().unwrap()), (0, 0, 1_700_000_000));
            let path = entry.path().unwrap().display().to_string();
            (path, entry.header().mode().unwrap(), text.len())
        });
        let expected = [("root/README.md", 0o644, 4), ("root/a/long.txt", 0o644, 3000), ("root/bin/hopedgn", 0o755, 7)];
        assert_eq!(entries.collect::<Vec<_>>(), expected.map(|(path, mode, size)| (path.to_owned(), mode, size)));
    }
}
