//! Downloads public datasets: resumable, checksummed, converted to `.ctdg`.
//!
//! The steps: download into a partial file, verify its checksum, unpack, convert, verify the counts, move into place. A file
//! that cannot be verified (plain http, or no published checksum) is refused unless [`Options::unverified`] accepts it. Whatever fails, the target folder never holds an incomplete dataset, and an
//! interrupted download resumes where it stopped, in the same call or in a later one. Mirrors are tried in order.
//!
//! ```no_run
//! use ctdg::fetch::{Options, Source, fetch, to_binary};
//!
//! let source = Source::named("wikipedia")?;
//! let fetched = fetch(source, "data".as_ref(), &Options::default(), &to_binary, &mut |_| ())?;
//! println!("{}", fetched.path.display());
//! # Ok::<(), ctdg::Error>(())
//! ```

mod checksum;
mod convert;
mod download;
mod http;
mod partial;
mod source;
mod unpack;

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use checksum::{Algorithm, Checksum};
pub use convert::to_binary;
pub use source::{Archive, Counts, Format, Mirror, Source};
pub use unpack::Unpacked;

use crate::error::{Error, Problem, Result};
use download::Download;
use http::Client;
use partial::PartialFile;

/// Extension of the file that [`fetch`](fetch()) writes.
pub const EXTENSION: &str = "ctdg";

/// Retries, timeouts and proxy of a fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Consecutive attempts without a new byte before a mirror is given up.
    pub attempts: u32,
    /// Wait after a failed attempt; doubles with each consecutive attempt without a new byte.
    pub pause: Duration,
    /// Longest wait for a connection.
    pub connect_timeout: Duration,
    /// Longest wait for the next bytes.
    pub idle_timeout: Duration,
    /// Whether to use a proxy.
    pub route: Route,
    /// What to do if the dataset is already there.
    pub present: IfPresent,
    /// What to do with a file that cannot be verified.
    pub unverified: Unverified,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            attempts: 4,
            pause: Duration::from_secs(1),
            connect_timeout: Duration::from_secs(20),
            idle_timeout: Duration::from_mins(1),
            route: Route::Environment,
            present: IfPresent::Keep,
            unverified: Unverified::Refuse,
        }
    }
}

/// What to do with a mirror whose address is plain http, or for whose file no checksum is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unverified {
    /// Refuse it, before anything is downloaded.
    Refuse,
    /// Accept it; a checksum that is published is still verified.
    Accept,
}

/// Whether to use a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// The proxy named by `HTTPS_PROXY` and related environment variables, if any.
    Environment,
    /// No proxy.
    Direct,
}

/// What to do if the dataset is already there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfPresent {
    /// Keep it and fetch nothing.
    Keep,
    /// Fetch it again and replace it.
    Replace,
}

/// Progress of a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress<'a> {
    /// Requesting a file.
    Connecting {
        /// Its address.
        url: &'a str,
        /// Number of this attempt, from 1.
        attempt: u32,
    },
    /// Receiving the file.
    Downloading {
        /// Bytes so far, those of earlier attempts included.
        done: u64,
        /// Bytes of the whole file, if the server stated it.
        total: Option<u64>,
    },
    /// Verifying the checksum.
    Checking {
        /// Bytes read.
        done: u64,
        /// Bytes of the file.
        total: u64,
    },
    /// Extracting a file from the archive.
    Unpacking {
        /// Its name in the archive.
        member: &'a str,
    },
    /// Converting to `.ctdg`.
    Converting,
    /// A problem that does not stop the fetch.
    Warning(&'a str),
}

/// Progress callback.
type Report<'a> = &'a mut dyn FnMut(Progress<'_>);

/// Converts the fetched files to the file at the path and returns their counts. A failure means that the files are bad,
/// unless it is [`Problem::Io`].
pub type Convert<'a> = dyn Fn(&Unpacked, &Path) -> Result<Counts> + 'a;

/// A dataset that is on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Its file.
    pub path: PathBuf,
    /// Where it came from; `None` if it was there already.
    pub origin: Option<Origin>,
}

/// Origin of a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The address.
    pub url: String,
    /// The published checksum, verified; `None` if none is published.
    pub checksum: Option<Checksum>,
}

/// Fetches `source` into the folder `into`, as `<name>.ctdg`.
///
/// While it runs, and after a failure that a later call can resume from, the folder also holds `<name>.<file>.part` and
/// `<name>.<file>.part.json`; the hidden `.<name>.lock` stays.
pub fn fetch(
    source: &Source,
    into: &Path,
    options: &Options,
    convert: &Convert<'_>,
    report: &mut dyn FnMut(Progress<'_>),
) -> Result<Fetched> {
    fs::create_dir_all(into).map_err(|error| Error::io(into, "create", error))?;
    let path = into.join(&source.name).with_extension(EXTENSION);
    let _lock = lock(into, &source.name, report)?;
    if options.present == IfPresent::Keep && path.exists() {
        return Ok(Fetched { path, origin: None });
    }
    let fetching = Fetching { source, into, path: &path, options, convert, client: Client::new(options) };
    let mut failures = Vec::new();
    for mirror in &source.mirrors {
        match fetching.try_mirror(mirror, report) {
            Ok(origin) => {
                for mirror in &source.mirrors {
                    PartialFile::new(into, source, mirror).discard()?;
                }
                return Ok(Fetched { path, origin: Some(origin) });
            }
            Err(error) if is_local(&error) => return Err(error),
            Err(error) => {
                if failures.len() + 1 < source.mirrors.len() {
                    report(Progress::Warning(&format!("trying the next mirror: {}", error.finding())));
                }
                failures.push(error);
            }
        }
    }
    Err(match failures.len() {
        1 => failures.remove(0),
        _ => Problem::NoMirror { name: source.name.clone(), failures }.into(),
    })
}

struct Fetching<'a> {
    source: &'a Source,
    into: &'a Path,
    path: &'a Path,
    options: &'a Options,
    convert: &'a Convert<'a>,
    client: Client,
}

impl Fetching<'_> {
    fn try_mirror(&self, mirror: &Mirror, report: Report<'_>) -> Result<Origin> {
        self.refuse_plain_http(mirror)?;
        let checksum = checksum::published(&self.client, mirror, report);
        if checksum.is_none() && self.options.unverified == Unverified::Refuse {
            return Err(Problem::Unverified { url: mirror.url.clone(), why: "no checksum" }.into());
        }
        let part = PartialFile::new(self.into, self.source, mirror);
        let download = Download { client: &self.client, mirror, part: &part, will_check: checksum.is_some() };
        download.run(self.options, report)?;
        let settled = self.settle(mirror, part.path(), checksum.as_ref(), report);
        if settled.as_ref().is_err_and(|error| !is_local(error)) {
            // Bad bytes: resuming from them would fail again.
            part.discard()?;
        }
        settled.map(|()| Origin { url: mirror.url.clone(), checksum })
    }

    fn refuse_plain_http(&self, mirror: &Mirror) -> Result<()> {
        let mut urls = std::iter::once(&mirror.url).chain(&mirror.checksum_url);
        match urls.find(|url| !url.starts_with("https://")) {
            Some(url) if self.options.unverified == Unverified::Refuse => {
                Err(Problem::Unverified { url: url.clone(), why: "plain http" }.into())
            }
            _ => Ok(()),
        }
    }

    /// Everything after the download.
    fn settle(&self, mirror: &Mirror, part: &Path, checksum: Option<&Checksum>, report: Report<'_>) -> Result<()> {
        if let Some(checksum) = checksum {
            checksum::compare(part, &mirror.url, checksum, report)?;
        }
        let work_dir = WorkDir::open(self.into, &self.source.name)?;
        let unpacked = unpack::unpack(mirror, part, &work_dir.raw, report)?;
        report(Progress::Converting);
        let finished = work_dir.folder.join(&self.source.name).with_extension(EXTENSION);
        let Counts { nodes, events } = (self.convert)(&unpacked, &finished)?;
        let expected = self.source.counts;
        if expected != (Counts { nodes, events }) {
            let (expected_nodes, expected_events) = (expected.nodes, expected.events);
            return Err(Problem::WrongCounts { nodes, events, expected_nodes, expected_events }.into());
        }
        let put = || {
            File::open(&finished)?.sync_all()?;
            fs::rename(&finished, self.path)
        };
        put().map_err(|error| Error::io(self.path, "move into place", error))
    }
}

/// Hidden temporary folder for unpacking and converting, removed on drop. It lies in the target folder, so that the
/// finished file only has to be renamed; leftovers of a killed process are removed first.
struct WorkDir {
    folder: PathBuf,
    raw: PathBuf,
}

impl WorkDir {
    fn open(into: &Path, name: &str) -> Result<Self> {
        let folder = into.join(format!(".{name}.tmp"));
        let failed = |error| Error::io(&folder, "create", error);
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let raw = folder.join("raw");
        fs::create_dir_all(&raw).map_err(failed)?;
        Ok(Self { folder, raw })
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        // The next fetch removes what cannot be removed now.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Excludes a second fetch of the same set while the file is held; the system releases it if the process dies.
fn lock(into: &Path, name: &str, report: Report<'_>) -> Result<File> {
    let path = into.join(format!(".{name}.lock"));
    let file = File::create(&path).map_err(|error| Error::io(&path, "create", error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Problem::Busy { name: name.to_owned() }.into()),
        Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {
            report(Progress::Warning(
                "this file system has no locks; make sure that no other fetch runs in this folder",
            ));
            Ok(file)
        }
        Err(TryLockError::Error(error)) => Err(Error::io(&path, "lock", error)),
    }
}

/// Whether the failure is local, so that another mirror would not help.
fn is_local(error: &Error) -> bool {
    matches!(error.problem(), Problem::Io { .. })
}
