//! Extracts the wanted files from an untrusted archive.
//!
//! Only the members asked for are written, under their base name, into one folder, so a path inside the archive never
//! decides where bytes land. An archive with a member that points outside is refused as a whole.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use bzip2::bufread::MultiBzDecoder;
use zip::ZipArchive;
use zip::result::ZipError;

use super::source::{Archive, Format, Mirror, base_name, stays_inside};
use super::{Progress, Report};
use crate::error::{Error, Problem, Result, quoted};

/// Extracted files, ready for conversion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpacked {
    /// Format of the files. Their names do not tell: an unpacked download still ends in `.part`.
    pub format: Format,
    /// The files, in the order of [`Mirror::members`]; members of one archive lie in one folder.
    pub files: Vec<PathBuf>,
}

/// Unpacks `mirror`'s file at `path` into the empty `folder`.
pub(super) fn unpack(mirror: &Mirror, path: &Path, folder: &Path, report: Report<'_>) -> Result<Unpacked> {
    let files = match mirror.archive {
        Archive::None => vec![path.to_path_buf()],
        Archive::Zip => unzip(mirror, path, folder, report).map_err(|error| error.in_file(path))?,
        Archive::TarBz2 => untar(mirror, path, folder, report).map_err(|error| error.in_file(path))?,
    };
    Ok(Unpacked { format: mirror.format, files })
}

fn unzip(mirror: &Mirror, path: &Path, folder: &Path, report: Report<'_>) -> Result<Vec<PathBuf>> {
    let file = File::open(path).map_err(|error| Error::io(path, "open", error))?;
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(|error| damaged_zip(&error))?;
    for name in archive.file_names() {
        refuse_outside(&name.map_err(|error| damaged_zip(&error))?)?;
    }
    let mut left = mirror.max_bytes;
    let mut files = Vec::new();
    for member in &mirror.members {
        report(Progress::Unpacking { member });
        let mut entry = match archive.by_name(member) {
            Ok(entry) if entry.is_file() => entry,
            Ok(_) | Err(ZipError::FileNotFound) => return Err(Problem::MissingMember { member: member.clone() }.into()),
            Err(error) => return Err(damaged_zip(&error).into()),
        };
        let target = folder.join(base_name(member));
        left -= copy(&mut entry, &target, Bound { member, left, limit: mirror.max_bytes }, "zip")?;
        files.push(target);
    }
    Ok(files)
}

fn untar(mirror: &Mirror, path: &Path, folder: &Path, report: Report<'_>) -> Result<Vec<PathBuf>> {
    let file = File::open(path).map_err(|error| Error::io(path, "open", error))?;
    // Skipped members are decompressed as well, so the limit applies to the whole stream.
    let mut bounded = MultiBzDecoder::new(BufReader::new(file)).take(mirror.max_bytes + 1);
    let files = untar_members(mirror, &mut bounded, folder, report);
    if bounded.limit() == 0 { Err(too_large(&mirror.url, mirror.max_bytes)) } else { files }
}

fn untar_members(mirror: &Mirror, tar: &mut impl Read, folder: &Path, report: Report<'_>) -> Result<Vec<PathBuf>> {
    let mut found = vec![None; mirror.members.len()];
    for entry in tar::Archive::new(tar).entries().map_err(|error| damaged("tar.bz2", &error))? {
        let mut entry = entry.map_err(|error| damaged("tar.bz2", &error))?;
        let name = entry.path_bytes().into_owned();
        let name = str::from_utf8(&name).map_err(|_| Problem::UnsafeMember { member: quoted(&name) })?;
        refuse_outside(name)?;
        let wanted = mirror.members.iter().position(|member| member == name);
        let Some(place) = wanted.filter(|_| entry.header().entry_type().is_file()) else { continue };
        report(Progress::Unpacking { member: name });
        let target = folder.join(base_name(name));
        copy(&mut entry, &target, Bound { member: name, left: mirror.max_bytes, limit: mirror.max_bytes }, "tar.bz2")?;
        found[place] = Some(target);
    }
    let named = mirror.members.iter().zip(found);
    named.map(|(member, file)| Ok(file.ok_or_else(|| Problem::MissingMember { member: member.clone() })?)).collect()
}

/// Size limit while `member` is written.
#[derive(Clone, Copy)]
struct Bound<'a> {
    member: &'a str,
    left: u64,
    limit: u64,
}

/// Writes `from` to `target` and returns its length. Read failures blame the archive, write failures this machine.
fn copy(from: &mut impl Read, target: &Path, bound: Bound<'_>, format: &'static str) -> Result<u64> {
    let mut to = File::create(target).map_err(|error| Error::io(target, "create", error))?;
    let mut buffer = vec![0; 1 << 16];
    let mut done = 0;
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(done),
            Ok(n) => {
                done += n as u64;
                if done > bound.left {
                    return Err(too_large(bound.member, bound.limit));
                }
                to.write_all(&buffer[..n]).map_err(|error| Error::io(target, "write", error))?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(damaged(format, &error).into()),
        }
    }
}

/// Directory names may end in a slash, and tar names may start with `./`.
fn refuse_outside(name: &str) -> Result<()> {
    let name = name.trim_start_matches("./").trim_end_matches('/');
    if name.is_empty() || name == "." || stays_inside(name) {
        return Ok(());
    }
    Err(Problem::UnsafeMember { member: quoted(name.as_bytes()) }.into())
}

fn too_large(what: &str, limit: u64) -> Error {
    Problem::TooLarge { what: what.to_owned(), limit }.into()
}

fn damaged_zip(error: &ZipError) -> Problem {
    damaged("zip", error)
}

fn damaged(format: &'static str, error: &impl ToString) -> Problem {
    Problem::Corrupt { format, detail: error.to_string() }
}
