//! The file that a stream is mapped from, and what is known of it.

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use memmap2::Mmap;

/// The file of a stream, if its columns are exactly those of the file. Clones share what is known of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origin(Option<Arc<MappedFile>>);

/// A file of events.
#[derive(Debug)]
pub(crate) struct MappedFile {
    path: Box<Path>,
    checksums: OnceLock<[u32; 3]>,
    /// Files beside it that were found sound, by name: each is verified once.
    sound: Mutex<Vec<(String, Arc<Mmap>)>>,
}

impl Origin {
    /// Mapped from `path`.
    pub(crate) fn file(path: &Path) -> Self {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()).into();
        Self(Some(Arc::new(MappedFile { path, checksums: OnceLock::new(), sound: Mutex::default() })))
    }

    pub(crate) fn get(&self) -> Option<&MappedFile> {
        self.0.as_deref()
    }
}

impl MappedFile {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Checksums of its columns, computed once.
    pub(crate) fn checksums(&self, compute: impl FnOnce() -> [u32; 3]) -> [u32; 3] {
        *self.checksums.get_or_init(compute)
    }

    /// The file beside it called `name`, if it was found sound before.
    pub(crate) fn sound(&self, name: &str) -> Option<Arc<Mmap>> {
        let sound = self.sound.lock().unwrap_or_else(PoisonError::into_inner);
        sound.iter().find(|(known, _)| known == name).map(|(_, map)| Arc::clone(map))
    }

    /// Remembers that the file beside it called `name` is sound.
    pub(crate) fn set_sound(&self, name: &str, map: &Arc<Mmap>) {
        let mut sound = self.sound.lock().unwrap_or_else(PoisonError::into_inner);
        sound.retain(|(known, _)| known != name);
        sound.push((name.to_owned(), Arc::clone(map)));
    }

    /// Forgets all files beside it, which are about to be replaced.
    pub(crate) fn forget_sound(&self) {
        self.sound.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Where events are read from is no part of what they are.
impl PartialEq for Origin {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
