//! Temporary files and folders: names that tell their writer, and removal of those whose writer died.
//!
//! A name is `.hopedgn-SYSTEM-PID-…`. `SYSTEM` stands for one boot of one machine and its namespace of processes, so that a
//! process number is only looked up where it means something; elsewhere a temporary file counts as abandoned after a day.

use std::fs;
use std::path::Path;
use std::time::Duration;

/// How the name of every temporary file and folder begins.
const PREFIX: &str = ".hopedgn-";

/// After so long without a change, what a process of another system wrote is abandoned.
const ABANDONED_AFTER: Duration = Duration::from_hours(24);

/// The beginning of the name of a temporary file or folder of this process.
#[must_use]
pub fn temporary_prefix() -> String {
    format!("{PREFIX}{}-{}-", system().unwrap_or_else(|| "other".to_owned()), std::process::id())
}

/// Removes what processes that died left in `folder`. Best effort: what cannot be read or removed stays.
///
/// ```
/// use ctdg::dataset::{sweep, temporary_prefix};
///
/// # let folder = tempfile::tempdir()?;
/// let mine = folder.path().join(format!("{}draft", temporary_prefix()));
/// std::fs::write(&mine, "half of it")?;
/// sweep(folder.path());
/// assert!(mine.exists()); // this process is alive
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut here = None;
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| is_temporary(&entry, name)) else { continue };
        let here = here.get_or_insert_with(system);
        let is_dead = match writer(name) {
            Some((system, pid)) if here.as_deref() == Some(system) => !is_running(pid),
            _ => is_abandoned(&entry),
        };
        if is_dead {
            let path = entry.path();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let _ = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        }
    }
}

/// Version 0.1 wrote `.hopedgn-XXXXXX`, and folders `.NAME.PID.new` for new runs, which held two files.
fn is_temporary(entry: &fs::DirEntry, name: &str) -> bool {
    let draft = name.strip_prefix('.').and_then(|name| name.strip_suffix(".new"));
    let is_draft = draft.and_then(|draft| draft.rsplit_once('.')).is_some_and(|(_, pid)| pid.parse::<u32>().is_ok());
    name.starts_with(PREFIX) || (is_draft && holds_only(&entry.path(), &["config.toml", "manifest.json"]))
}

fn holds_only(folder: &Path, names: &[&str]) -> bool {
    let is_known = |entry: &fs::DirEntry| {
        entry.file_name().to_str().is_some_and(|name| names.contains(&name) || name.starts_with(PREFIX))
    };
    fs::read_dir(folder).is_ok_and(|entries| entries.flatten().all(|entry| is_known(&entry)))
}

/// System and process number in a name.
fn writer(name: &str) -> Option<(&str, u32)> {
    let mut parts = name.strip_prefix(PREFIX)?.split('-');
    let (system, pid) = (parts.next()?, parts.next()?);
    parts.next()?;
    Some((system, pid.parse().ok()?))
}

/// This boot of this machine and this namespace of processes, as eight digits; `None` where the system does not tell.
fn system() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    // FNV-1a: a tag, not a secret.
    let bytes = boot.trim().bytes().chain(namespace.to_string_lossy().bytes().collect::<Vec<u8>>());
    let hash = bytes.fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    Some(format!("{hash:08x}"))
}

/// Only asked where `/proc` told the system.
fn is_running(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

fn is_abandoned(entry: &fs::DirEntry) -> bool {
    let changed = entry.metadata().and_then(|metadata| metadata.modified()).ok();
    changed.and_then(|changed| changed.elapsed().ok()).is_some_and(|age| age > ABANDONED_AFTER)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::PathBuf;
    use std::time::SystemTime;

    use super::*;

    /// Larger than any process number.
    const DEAD: u32 = u32::MAX - 1;

    struct Home(tempfile::TempDir);

    impl Home {
        fn file(&self, name: &str, age: Duration) -> PathBuf {
            let path = self.0.path().join(name);
            fs::write(&path, "half of it").unwrap();
            let metadata = fs::metadata(&path).unwrap();
            File::options().write(true).open(&path).unwrap().set_modified(metadata.modified().unwrap() - age).unwrap();
            path
        }

        fn left(&self) -> Vec<String> {
            let entries = fs::read_dir(self.0.path()).unwrap().flatten();
            let mut names: Vec<String> =
                entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
            names.sort();
            names
        }
    }

    #[test]
    fn only_what_dead_processes_left_is_removed() {
        let home = Home(tempfile::tempdir().unwrap());
        let (new, old) = (Duration::ZERO, 2 * ABANDONED_AFTER);
        let here = system().unwrap_or_else(|| "unknown".to_owned());
        let draft = home.0.path().join(format!("{PREFIX}{here}-{DEAD}-run.new"));
        fs::create_dir(&draft).unwrap();
        fs::write(draft.join("config.toml"), "").unwrap();
        home.file(&format!("{PREFIX}{here}-{DEAD}-aaaaaa"), new);
        let mut kept = Vec::from([
            home.file(&format!("{}bbbbbb", temporary_prefix()), old),
            // The first process of every system runs.
            home.file(&format!("{PREFIX}{here}-1-cccccc"), old),
            home.file(&format!("{PREFIX}00000000-{DEAD}-dddddd"), new),
            home.file(&format!("{PREFIX}eeeeee"), new),
            home.file(".run.new", old),
            home.file(&format!(".mine.{DEAD}.new"), old),
            home.file(".hidden", old),
            home.file("events.csv", old),
        ]);
        home.file(&format!("{PREFIX}00000000-{DEAD}-ffffff"), old);
        home.file(&format!("{PREFIX}gggggg"), old);
        if system().is_none() {
            return; // Without /proc only the age counts.
        }
        sweep(home.0.path());
        kept.sort();
        let kept: Vec<String> =
            kept.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
        assert_eq!(home.left(), kept);
    }

    #[test]
    fn writing_a_file_sweeps_its_folder() {
        let home = Home(tempfile::tempdir().unwrap());
        let Some(here) = system() else { return };
        home.file(&format!("{PREFIX}{here}-{DEAD}-aaaaaa"), Duration::ZERO);
        home.file(&format!("{}bbbbbb", temporary_prefix()), Duration::ZERO);
        crate::dataset::write_file(&home.0.path().join("mine.txt"), "whole").unwrap();
        assert_eq!(home.left(), [format!("{}bbbbbb", temporary_prefix()), "mine.txt".to_owned()]);
    }

    #[test]
    fn a_clock_that_was_set_back_abandons_nothing() {
        let home = Home(tempfile::tempdir().unwrap());
        let path = home.file(&format!("{PREFIX}hhhhhh"), Duration::ZERO);
        let later = SystemTime::UNIX_EPOCH + Duration::from_hours(24 * 365 * 200);
        File::options().write(true).open(&path).unwrap().set_modified(later).unwrap();
        sweep(home.0.path());
        assert!(path.exists());
    }
}
