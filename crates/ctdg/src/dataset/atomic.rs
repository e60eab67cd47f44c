//! Files that appear whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::dataset::source::Compression;
use crate::error::{Error, Result};

/// A file being written beside its final place. [`PendingFile::commit`] moves it there; dropping it removes it.
pub(crate) struct PendingFile {
    path: PathBuf,
    /// Nothing for a device or a pipe, which is written to as it is.
    file: Option<NamedTempFile>,
}

impl PendingFile {
    /// Writes `path` through `fill`, packed as its name asks for, without showing it yet.
    pub(crate) fn write(path: &Path, fill: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>) -> Result<Self> {
        Self::try_write(path, fill).map_err(|source| Error::io(path, "write", source))
    }

    fn try_write(path: &Path, fill: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>) -> io::Result<Self> {
        let compression = Compression::of_name(&path.to_string_lossy()).0;
        // A link stays a link: what it points to is replaced.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let before = fs::metadata(&target).ok();
        if before.as_ref().is_some_and(|before| !before.is_file() && !before.is_dir()) {
            fill_packed(&mut File::options().write(true).open(&target)?, compression, fill)?;
            return Ok(Self { path: target, file: None });
        }
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut builder = tempfile::Builder::new();
        allow_others(builder.prefix(".hopedgn-"));
        let mut file = builder.tempfile_in(folder)?;
        fill_packed(file.as_file_mut(), compression, fill)?;
        if let Some(before) = before.filter(fs::Metadata::is_file) {
            file.as_file().set_permissions(before.permissions())?;
        }
        file.as_file().sync_all()?;
        Ok(Self { path: target, file: Some(file) })
    }

    /// Puts the file in its place, replacing what was there.
    pub(crate) fn commit(self) -> Result<()> {
        let Some(file) = self.file else { return Ok(()) };
        file.persist(&self.path).map_err(|error| Error::io(&self.path, "write", error.error))?;
        Ok(())
    }
}

/// Private by default, a temporary file gets what an ordinary new file gets; the system takes the person's umask off it.
fn allow_others(builder: &mut tempfile::Builder<'_, '_>) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    #[cfg(not(unix))]
    let _ = builder;
}

fn fill_packed(
    file: &mut File,
    compression: Compression,
    fill: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
) -> io::Result<()> {
    let mut plain = BufWriter::with_capacity(1 << 16, file);
    match compression {
        Compression::None => fill(&mut plain)?,
        Compression::Gzip => {
            let mut packed = flate2::write::GzEncoder::new(&mut plain, flate2::Compression::default());
            fill(&mut packed)?;
            packed.finish()?;
        }
        Compression::Zstd => {
            let mut packed = zstd::Encoder::new(&mut plain, 9)?;
            fill(&mut packed)?;
            packed.finish()?;
        }
    }
    plain.flush()
}
