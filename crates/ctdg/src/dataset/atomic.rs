//! Files that appear whole or not at all.

use std::io::{BufWriter, Write};
use std::path::Path;

use tempfile::NamedTempFile;

use crate::dataset::source::Compression;
use crate::error::{Error, Result};

/// A file being written beside its final place. [`PendingFile::commit`] moves it there; dropping it removes it.
pub(crate) struct PendingFile<'a> {
    path: &'a Path,
    file: NamedTempFile,
}

impl<'a> PendingFile<'a> {
    /// Writes `path` through `fill`, packed as its name asks for, without showing it yet.
    pub(crate) fn write(
        path: &'a Path,
        fill: impl FnOnce(&mut (dyn Write + Send)) -> std::io::Result<()>,
    ) -> Result<Self> {
        let failed = |source| Error::io(path, "write", source);
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut file = tempfile::Builder::new().prefix(".hopedgn-").tempfile_in(folder).map_err(failed)?;
        let name = path.to_string_lossy();
        let mut plain = BufWriter::with_capacity(1 << 16, file.as_file_mut());
        let filled = match Compression::of_name(&name).0 {
            Compression::None => fill(&mut plain),
            Compression::Gzip => {
                let mut packed = flate2::write::GzEncoder::new(&mut plain, flate2::Compression::default());
                fill(&mut packed).and_then(|()| packed.finish().map(drop))
            }
            Compression::Zstd => zstd::Encoder::new(&mut plain, 9).and_then(|mut packed| {
                fill(&mut packed)?;
                packed.finish().map(drop)
            }),
        };
        filled.and_then(|()| plain.flush()).map_err(failed)?;
        drop(plain);
        file.as_file().sync_all().map_err(failed)?;
        Ok(Self { path, file })
    }

    /// Puts the file in its place, replacing what was there.
    pub(crate) fn commit(self) -> Result<()> {
        let failed = |source| Error::io(self.path, "write", source);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // Temporary files are private; a data file is not.
            let permissions = std::fs::Permissions::from_mode(0o644);
            self.file.as_file().set_permissions(permissions).map_err(failed)?;
        }
        self.file.persist(self.path).map_err(|error| failed(error.error))?;
        Ok(())
    }
}
