//! Fetching against a local server.
#![cfg(feature = "fetch")]
#![expect(clippy::unwrap_used, reason = "where a helper fails, the test does")]

mod archive;
mod resume;
mod server;

use std::fmt::Write;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ctdg::fetch::{Counts, Fetched, Format, IfPresent, Options, Progress, Route, Source, Unpacked, Unverified, fetch};
use ctdg::{Error, Problem, Result};
use server::{Response, Server};
use tempfile::TempDir;

const COUNTS: Counts = Counts { nodes: 3, events: 2 };
const VERSION: &str = "\"v1\"";

/// A target folder and the reports of fetches into it.
struct Target {
    folder: TempDir,
    warnings: Vec<String>,
    downloaded: Vec<u64>,
}

impl Target {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), warnings: Vec::new(), downloaded: Vec::new() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn fetch(&mut self, source: &Source) -> Result<Fetched> {
        self.fetch_with(source, &options(), &join)
    }

    fn fetch_with(
        &mut self,
        source: &Source,
        options: &Options,
        convert: &dyn Fn(&Unpacked, &Path) -> Result<Counts>,
    ) -> Result<Fetched> {
        fetch(source, self.folder.path(), options, convert, &mut |progress| match progress {
            Progress::Warning(warning) => self.warnings.push(warning.to_owned()),
            Progress::Downloading { done, .. } => self.downloaded.push(done),
            _ => {}
        })
    }

    /// Files in the folder, without the lock.
    fn files(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != ".toy.lock")
            .collect();
        names.sort();
        names
    }

    #[track_caller]
    fn assert_holds(&self, content: &[u8]) {
        assert_eq!(self.files(), ["toy.ctdg"]);
        assert!(fs::read(self.path("toy.ctdg")).unwrap() == content, "the content is not what was served");
    }
}

/// No pauses and no proxy; the local server speaks plain http.
fn options() -> Options {
    let unverified = Unverified::Accept;
    Options { attempts: 3, pause: Duration::ZERO, route: Route::Direct, unverified, ..Options::default() }
}

/// Conversion that concatenates the files.
fn join(unpacked: &Unpacked, to: &Path) -> Result<Counts> {
    let content: Vec<u8> = unpacked.files.iter().flat_map(|file| fs::read(file).unwrap()).collect();
    fs::write(to, content).map_err(|error| Error::io(to, "write", error))?;
    Ok(COUNTS)
}

/// A source whose mirrors have these addresses and these further keys, in TOML.
fn source(mirrors: &[(String, &str)]) -> Source {
    let mut toml = "[[source]]\nname = \"toy\"\nnodes = 3\nevents = 2\n".to_owned();
    for (url, more) in mirrors {
        write!(toml, "[[source.mirror]]\nurl = \"{url}\"\nat-most-mib = 1\n{more}\n").unwrap();
    }
    Source::parse(&toml).unwrap().remove(0)
}

fn plain(server: &Server) -> Source {
    source(&[(server.url("/toy.csv"), "format = \"jodie\"")])
}

/// Aperiodic bytes, so that a wrong offset shows.
fn bytes(length: u32) -> Vec<u8> {
    (0..length).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

fn is_status(error: &Error, expected: u16) -> bool {
    matches!(error.problem(), Problem::Http { status, .. } if *status == expected)
}

#[test]
fn plain_file_is_fetched_completely() {
    let content = bytes(300_000);
    let served = content.clone();
    let server = Server::start(move |request| Response::file(&served, VERSION, request));
    let target = Target::new();
    let mut stages = Vec::new();
    let convert = |unpacked: &Unpacked, to: &Path| {
        assert_eq!(unpacked.format, Format::Jodie);
        join(unpacked, to)
    };
    let fetched = fetch(&plain(&server), target.folder.path(), &options(), &convert, &mut |progress| match progress {
        Progress::Connecting { .. } => stages.push("connecting"),
        Progress::Downloading { done: 300_000, total: Some(300_000) } => stages.push("downloaded"),
        Progress::Converting => stages.push("converting"),
        _ => {}
    });
    let fetched = fetched.unwrap();
    assert_eq!(fetched.path, target.path("toy.ctdg"));
    assert_eq!(fetched.origin.unwrap().url, server.url("/toy.csv"));
    assert_eq!(stages, ["connecting", "downloaded", "converting"]);
    target.assert_holds(&content);
}

#[test]
fn file_without_content_length_is_fetched_completely() {
    let server = Server::start(|_| Response::whole(b"here").unannounced());
    let mut target = Target::new();
    target.fetch(&plain(&server)).unwrap();
    target.assert_holds(b"here");
}

#[test]
fn present_data_set_is_kept_without_a_request() {
    let server = Server::start(|_| Response::status(404));
    let mut target = Target::new();
    fs::write(target.path("toy.ctdg"), "before").unwrap();
    let fetched = target.fetch(&plain(&server)).unwrap();
    assert_eq!(fetched.origin, None);
    assert!(server.requests().is_empty());
    target.assert_holds(b"before");
}

#[test]
fn present_data_set_is_replaced_on_demand() {
    let server = Server::start(|_| Response::whole(b"after"));
    let mut target = Target::new();
    fs::write(target.path("toy.ctdg"), "before").unwrap();
    let again = Options { present: IfPresent::Replace, ..options() };
    target.fetch_with(&plain(&server), &again, &join).unwrap();
    target.assert_holds(b"after");
}

#[test]
fn status_404_is_an_error_and_is_not_retried() {
    let server = Server::start(|_| Response::status(404));
    let mut target = Target::new();
    let error = target.fetch(&plain(&server)).unwrap_err();
    assert!(is_status(&error, 404), "{error}");
    assert!(error.to_string().contains(&server.url("/toy.csv")), "{error}");
    assert_eq!(server.requests().len(), 1);
    assert!(target.files().is_empty(), "{:?}", target.files());
}

#[test]
fn transient_server_errors_are_retried() {
    let server = Server::start(|request| match request.nth {
        0 => Response::status(500),
        1 => Response::status(429).header("Retry-After", "0"),
        _ => Response::whole(b"here"),
    });
    let mut target = Target::new();
    target.fetch(&plain(&server)).unwrap();
    target.assert_holds(b"here");

    let down = Server::start(|_| Response::status(503));
    let error = Target::new().fetch(&plain(&down)).unwrap_err();
    assert!(is_status(&error, 503), "{error}");
    assert_eq!(down.requests().len(), 3);
}

#[test]
fn unreachable_address_is_named_in_the_error() {
    // Bound but never accepting: a free port could be taken by another test.
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/toy.csv", deaf.local_addr().unwrap());
    let impatient = Options { attempts: 1, idle_timeout: Duration::from_millis(50), ..options() };
    let source = source(&[(url.clone(), "format = \"jodie\"")]);
    let error = Target::new().fetch_with(&source, &impatient, &join).unwrap_err();
    assert!(matches!(error.problem(), Problem::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains(&url), "{error}");
}

#[test]
fn https_address_without_tls_is_an_error() {
    let server = Server::start(|_| Response::whole(b"here"));
    let url = server.url("/toy.csv").replace("http://", "https://");
    let error = Target::new().fetch(&source(&[(url.clone(), "format = \"jodie\"")])).unwrap_err();
    assert!(matches!(error.problem(), Problem::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains(&url), "{error}");
}

#[test]
fn second_mirror_is_used_when_the_first_fails() {
    let server = Server::start(|request| match request.path.as_str() {
        "/second/toy.csv" => Response::whole(b"second"),
        _ => Response::status(404),
    });
    let mirrors = |second: &str| {
        source(&[(server.url("/toy.csv"), "format = \"jodie\""), (server.url(second), "format = \"konect\"")])
    };
    let mut target = Target::new();
    let fetched = target.fetch(&mirrors("/second/toy.csv")).unwrap();
    assert_eq!(fetched.origin.unwrap().url, server.url("/second/toy.csv"));
    assert!(target.warnings[0].contains(&server.url("/toy.csv")), "{:?}", target.warnings);
    target.assert_holds(b"second");

    let error = Target::new().fetch(&mirrors("/third/toy.csv")).unwrap_err();
    assert!(matches!(error.problem(), Problem::NoMirror { failures, .. } if failures.len() == 2), "{error}");
    assert!(error.to_string().contains(&server.url("/third/toy.csv")), "{error}");
}

#[test]
fn download_beyond_its_size_limit_is_stopped() {
    let server = Server::start(|request| {
        let answer = Response::whole(&vec![0; (1 << 20) + 1]);
        if request.nth == 0 { answer } else { answer.unannounced() }
    });
    let mut target = Target::new();
    for _ in 0..2 {
        let error = target.fetch(&plain(&server)).unwrap_err();
        assert!(matches!(error.problem(), Problem::TooLarge { .. }), "{error}");
        assert!(target.files().is_empty(), "{:?}", target.files());
    }
}

#[test]
fn counts_other_than_published_are_refused() {
    let server = Server::start(|_| Response::whole(b"here"));
    let mut target = Target::new();
    let short = |unpacked: &Unpacked, to: &Path| join(unpacked, to).map(|counts| Counts { events: 1, ..counts });
    let error = target.fetch_with(&plain(&server), &options(), &short).unwrap_err();
    assert!(matches!(error.problem(), Problem::WrongCounts { events: 1, expected_events: 2, .. }), "{error}");
    assert!(target.files().is_empty(), "{:?}", target.files());
}

#[test]
fn local_failure_keeps_the_download() {
    let server = Server::start(|_| Response::whole(b"here"));
    let mut target = Target::new();
    let full = |_: &Unpacked, to: &Path| Err(Error::io(to, "write", std::io::ErrorKind::StorageFull.into()));
    let error = target.fetch_with(&plain(&server), &options(), &full).unwrap_err();
    assert!(matches!(error.problem(), Problem::Io { .. }), "{error}");
    assert_eq!(target.files(), ["toy.toy.csv.part", "toy.toy.csv.part.json"]);

    target.fetch(&plain(&server)).unwrap();
    assert_eq!(server.requests().len(), 1);
    target.assert_holds(b"here");
}

#[test]
fn concurrent_fetch_of_the_same_set_is_refused() {
    let server = Server::start(|_| Response::whole(b"here"));
    let source = plain(&server);
    let mut target = Target::new();
    let folder = target.folder.path().to_path_buf();
    let second = |unpacked: &Unpacked, to: &Path| {
        let error = fetch(&source, &folder, &options(), &join, &mut |_| ()).unwrap_err();
        assert!(matches!(error.problem(), Problem::Busy { .. }), "{error}");
        join(unpacked, to)
    };
    target.fetch_with(&source, &options(), &second).unwrap();
    target.assert_holds(b"here");
}

#[test]
fn leftovers_of_a_killed_fetch_are_removed() {
    let server = Server::start(|_| Response::whole(b"here"));
    let mut target = Target::new();
    fs::create_dir_all(target.path(".toy.tmp/raw")).unwrap();
    fs::write(target.path(".toy.tmp/raw/half.csv"), "half").unwrap();
    target.fetch(&plain(&server)).unwrap();
    target.assert_holds(b"here");
}

#[test]
fn what_cannot_be_verified_is_refused_before_it_is_downloaded() {
    let server = Server::start(|_| Response::whole(b"here"));
    let strict = Options { unverified: Unverified::Refuse, ..options() };
    let sha256 = format!("format = \"jodie\"\nsha256 = \"{}\"", "0".repeat(64));
    let secure = "https://127.0.0.1:1/toy.csv".to_owned();
    let record = format!("format = \"jodie\"\nchecksum-url = \"{}\"", server.url("/record"));
    for (url, more, why) in [
        (server.url("/toy.csv"), &*sha256, "found plain http for http://"),
        (secure.clone(), "format = \"jodie\"", "found no checksum for https://"),
        (secure, &record, "found plain http for http://"),
    ] {
        let mut target = Target::new();
        let error = target.fetch_with(&source(&[(url, more)]), &strict, &join).unwrap_err();
        assert!(matches!(error.problem(), Problem::Unverified { .. }), "{error}");
        assert!(error.to_string().starts_with(why), "{error}");
        assert!(target.files().is_empty(), "{:?}", target.files());
    }
    assert!(server.requests().is_empty());
}
