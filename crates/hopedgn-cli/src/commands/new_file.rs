//! Files that a command is told to write: an existing one is replaced only with `--force`, the input never.

use std::path::Path;

use clap::Args;

/// Whether a file may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Args)]
pub(crate) struct Force {
    /// Replace a file that exists
    #[arg(long)]
    force: bool,
}

impl Force {
    /// Refuses `path` if it is a file that exists, unless `--force` was given. Devices and pipes are written to.
    pub(crate) fn check(self, path: &Path) -> anyhow::Result<()> {
        let is_taken = std::fs::metadata(path).is_ok_and(|found| found.is_file());
        anyhow::ensure!(
            self.force || !is_taken,
            "found {}, expected no such file yet; name another one, or replace it with --force",
            path.display()
        );
        Ok(())
    }
}

/// Refuses to write `path` if it is the file `input` under whatever name.
pub(crate) fn refuse_input(path: &Path, input: &Path) -> anyhow::Result<()> {
    anyhow::ensure!(
        !is_same_file(path, input),
        "found {}, which is the input, expected another file to write; name another one",
        path.display()
    );
    Ok(())
}

/// Refuses an unwritable path before anything is computed.
pub(crate) fn check_writable(path: &Path) -> anyhow::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    anyhow::ensure!(
        folder.is_dir() && !path.is_dir(),
        "found {}, expected a file in a folder that exists; create the folder, or name another",
        path.display()
    );
    Ok(())
}

/// Whether both names lead to one file: through `.` and `..`, symbolic links or hard links.
fn is_same_file(a: &Path, b: &Path) -> bool {
    let (Ok(a), Ok(b)) = (a.canonicalize(), b.canonicalize()) else { return false };
    a == b || is_same_inode(&a, &b)
}

#[cfg(unix)]
fn is_same_inode(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let id = |path: &Path| {
        std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map(|found| (found.dev(), found.ino()))
    };
    id(a).is_some_and(|found| id(b) == Some(found))
}

#[cfg(not(unix))]
fn is_same_inode(_: &Path, _: &Path) -> bool {
    false
}
