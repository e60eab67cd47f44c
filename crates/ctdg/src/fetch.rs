//! Fetching the paper's data sets from their public homes.
//!
//! A fetch is a chain of steps: download into a part file, compare its checksum where the publisher states one, unpack,
//! convert, compare the counts, move into place. Whatever fails, the target folder never holds half a data set, and a
//! download that was cut off goes on where it stopped, in the same call or in a later one. A set with several homes is
//! fetched from the first that works.
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
mod part;
mod source;
mod unpack;

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use checksum::{Algorithm, Checksum};
pub use convert::to_binary;
pub use source::{Archive, Counts, Format, Home, Source};
pub use unpack::Unpacked;

use crate::error::{Error, Problem, Result};
use download::Download;
use http::Client;
use part::Part;

/// Ending of the file a data set ends up in.
pub const EXTENSION: &str = "ctdg";

/// How a fetch goes about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Attempts in a row that bring nothing new before a home is given up.
    pub attempts: u32,
    /// Wait after a failed attempt, doubled with each further one that brings nothing.
    pub pause: Duration,
    /// Longest wait for a connection.
    pub connect_timeout: Duration,
    /// Longest wait for the next bytes.
    pub idle_timeout: Duration,
    /// How to get to the network.
    pub route: Route,
    /// What to do with a data set that is already there.
    pub present: Present,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            attempts: 4,
            pause: Duration::from_secs(1),
            connect_timeout: Duration::from_secs(20),
            idle_timeout: Duration::from_mins(1),
            route: Route::Environment,
            present: Present::Keep,
        }
    }
}

/// How to get to the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// Through the proxy that `HTTPS_PROXY` and its relatives name, if any.
    Environment,
    /// Straight.
    Direct,
}

/// What to do with a data set that is already there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Present {
    /// Leave it as it is and fetch nothing.
    Keep,
    /// Fetch it again and put the new one in its place.
    Replace,
}

/// What a fetch is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress<'a> {
    /// Asking for a file.
    Connecting {
        /// Its address.
        url: &'a str,
        /// The how-manieth time, from 1.
        attempt: u32,
    },
    /// Bytes are coming.
    Downloading {
        /// How many are here, with those of earlier attempts.
        done: u64,
        /// How many there are, if the server told.
        total: Option<u64>,
    },
    /// Comparing the checksum.
    Checking {
        /// Bytes read.
        done: u64,
        /// Bytes of the file.
        total: u64,
    },
    /// Taking a file out of the archive.
    Unpacking {
        /// Its name there.
        member: &'a str,
    },
    /// Converting.
    Converting,
    /// Something the person should know, though the fetch goes on.
    Remark(&'a str),
}

/// Who is told of the progress.
type Report<'a> = &'a mut dyn FnMut(Progress<'_>);

/// Turns fetched files into the file at the path, and says what they held. A failure means that the files are bad,
/// unless it is [`Problem::Io`].
pub type Convert<'a> = dyn Fn(&Unpacked, &Path) -> Result<Counts> + 'a;

/// A data set that is on this machine now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Its file.
    pub path: PathBuf,
    /// Where it came from; `None` if it was here before.
    pub origin: Option<Origin>,
}

/// Where a data set came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The address.
    pub url: String,
    /// The published checksum that the download had; `None` if none is published.
    pub checksum: Option<Checksum>,
}

/// Fetches `source` into the folder `into`, as `<name>.ctdg`.
///
/// While it runs, and after a failure that a later call can make good, the folder also holds `<name>.<file>.part` and
/// its note; the hidden `.<name>.lock` stays.
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
    if options.present == Present::Keep && path.exists() {
        return Ok(Fetched { path, origin: None });
    }
    let fetching = Fetching { source, into, path: &path, options, convert, client: Client::new(options) };
    let mut failures = Vec::new();
    for home in &source.homes {
        match fetching.try_home(home, report) {
            Ok(origin) => {
                for home in &source.homes {
                    Part::new(into, source, home).discard()?;
                }
                return Ok(Fetched { path, origin: Some(origin) });
            }
            Err(error) if is_ours(&error) => return Err(error),
            Err(error) => {
                if failures.len() + 1 < source.homes.len() {
                    report(Progress::Remark(&format!("trying the next home: {}", error.problem())));
                }
                failures.push(error);
            }
        }
    }
    Err(match failures.len() {
        1 => failures.remove(0),
        _ => Problem::NoHome { name: source.name.clone(), failures }.into(),
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
    fn try_home(&self, home: &Home, report: Report<'_>) -> Result<Origin> {
        let checksum = checksum::published(&self.client, home, report);
        let part = Part::new(self.into, self.source, home);
        let download = Download { client: &self.client, home, part: &part, will_check: checksum.is_some() };
        download.run(self.options, report)?;
        let settled = self.settle(home, part.path(), checksum.as_ref(), report);
        if settled.as_ref().is_err_and(|error| !is_ours(error)) {
            // The bytes are bad: going on from them would only fail again.
            part.discard()?;
        }
        settled.map(|()| Origin { url: home.url.clone(), checksum })
    }

    /// Everything after the download.
    fn settle(&self, home: &Home, part: &Path, checksum: Option<&Checksum>, report: Report<'_>) -> Result<()> {
        if let Some(checksum) = checksum {
            checksum::compare(part, &home.url, checksum, report)?;
        }
        let workshop = Workshop::open(self.into, &self.source.name)?;
        let unpacked = unpack::unpack(home, part, &workshop.raw, report)?;
        report(Progress::Converting);
        let finished = workshop.folder.join(&self.source.name).with_extension(EXTENSION);
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
        put().map_err(|error| Error::io(self.path, "put in place", error))
    }
}

/// The hidden folder in which files are unpacked and converted, gone when this goes. It lies in the target folder, so
/// that the finished file only has to be renamed; what a killed process left there is cleared away.
struct Workshop {
    folder: PathBuf,
    raw: PathBuf,
}

impl Workshop {
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

impl Drop for Workshop {
    fn drop(&mut self) {
        // The next fetch clears what cannot be removed now.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Keeps a second fetch of the same set away for as long as the file is held; the system lets go of it if we die.
fn lock(into: &Path, name: &str, report: Report<'_>) -> Result<File> {
    let path = into.join(format!(".{name}.lock"));
    let file = File::create(&path).map_err(|error| Error::io(&path, "create", error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Problem::Busy { name: name.to_owned() }.into()),
        Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {
            report(Progress::Remark("this file system has no locks: see to it that no other fetch runs here"));
            Ok(file)
        }
        Err(TryLockError::Error(error)) => Err(Error::io(&path, "lock", error)),
    }
}

/// Whether this machine and not the home is to blame, so that another home would not help.
fn is_ours(error: &Error) -> bool {
    matches!(error.problem(), Problem::Io { .. })
}
