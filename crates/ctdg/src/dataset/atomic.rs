//! Atomic file writes: a file appears complete or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::dataset::source::Compression;
use crate::error::{Error, Result};

/// A temporary file next to its destination. [`PendingFile::commit`] renames it; dropping it removes it.
pub(crate) struct PendingFile {
    path: PathBuf,
    /// `None` for a device or a pipe, which is written directly.
    file: Option<NamedTempFile>,
}

impl PendingFile {
    /// Writes the temporary file of `path` through `fill`, compressed as the extension says.
    pub(crate) fn write(path: &Path, fill: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>) -> Result<Self> {
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
        let mut builder = tempfile::Builder::new();
        set_default_permissions(builder.prefix(".hopedgn-"));
        let mut file = builder.tempfile_in(folder)?;
        fill_compressed(file.as_file_mut(), compression, fill)?;
        if let Some(before) = before.filter(fs::Metadata::is_file) {
            file.as_file().set_permissions(before.permissions())?;
        }
        file.as_file().sync_all()?;
        Ok(Self { path: target, file: Some(file) })
    }

    /// Renames the file to its destination, replacing what was there.
    pub(crate) fn commit(self) -> Result<()> {
        let Some(file) = self.file else { return Ok(()) };
        file.persist(&self.path).map_err(|error| Error::io(&self.path, "write", error.error))?;
        Ok(())
    }
}

/// Gives the temporary file the permissions of an ordinary new file: 0666 less the umask.
fn set_default_permissions(builder: &mut tempfile::Builder<'_, '_>) {
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
