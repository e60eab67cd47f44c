//! Atomic file writes: a file appears complete or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::dataset::litter::{sweep, temporary_prefix};
use crate::dataset::source::Compression;
use crate::error::{Error, Result};

/// A temporary file next to its destination. [`PendingFile::commit`] renames it; dropping it removes it.
///
/// Writing several before the first is renamed keeps a failure from leaving some new and some old.
///
/// ```
/// use ctdg::dataset::PendingFile;
///
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("pairs.csv");
/// let pending = PendingFile::write(&path, |out| out.write_all(b"1,2\n"))?;
/// assert!(!path.exists());
/// pending.commit()?;
/// assert_eq!(std::fs::read_to_string(&path)?, "1,2\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PendingFile {
    path: PathBuf,
    /// `None` for a device or a pipe, which is written directly.
    file: Option<NamedTempFile>,
}

impl PendingFile {
    /// Writes the temporary file of `path` through `fill`, compressed as the extension says. What dead processes left in its folder
    /// is removed.
    pub fn write(path: &Path, fill: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>) -> Result<Self> {
        Self::try_write(path, fill).map_err(|source| Error::io(path, "write", source))
    }

    fn try_write(path: &Path, fill: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>) -> io::Result<Self> {
        let compression = Compression::of_name(&path.to_string_lossy()).0;
        // A symbolic link stays; its target is replaced.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let before = fs::metadata(&target).ok();
        if before.as_ref().is_some_and(|before| !before.is_file() && !before.is_dir()) {
            fill_compressed(&mut File::options().write(true).open(&target)?, compression, fill)?;
            return Ok(Self { path: target, file: None });
        }
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        sweep(folder);
        let (prefix, mut builder) = (temporary_prefix(), tempfile::Builder::new());
        set_default_permissions(builder.prefix(&prefix));
        let mut file = builder.tempfile_in(folder)?;
        fill_compressed(file.as_file_mut(), compression, fill)?;
        if let Some(before) = before.filter(fs::Metadata::is_file) {
            file.as_file().set_permissions(before.permissions())?;
        }
        file.as_file().sync_all()?;
        Ok(Self { path: target, file: Some(file) })
    }

    /// Renames the file to its destination, replacing what was there.
    pub fn commit(self) -> Result<()> {
        let Some(file) = self.file else { return Ok(()) };
        file.persist(&self.path).map_err(|error| Error::io(&self.path, "write", error.error))?;
        Ok(())
    }
}

/// Gives the temporary file the permissions of an ordinary new file: 0666 less the umask.
pub(crate) fn set_default_permissions(builder: &mut tempfile::Builder<'_, '_>) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    #[cfg(not(unix))]
    let _ = builder;
}

fn fill_compressed(
    file: &mut File,
    compression: Compression,
    fill: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
) -> io::Result<()> {
    let mut plain = BufWriter::with_capacity(1 << 16, file);
    match compression {
        Compression::None => fill(&mut plain)?,
        Compression::Gzip => {
            let mut compressed = flate2::write::GzEncoder::new(&mut plain, flate2::Compression::default());
            fill(&mut compressed)?;
            compressed.finish()?;
        }
        Compression::Zstd => {
            let mut compressed = zstd::Encoder::new(&mut plain, 9)?;
            fill(&mut compressed)?;
            compressed.finish()?;
        }
    }
    plain.flush()
}
