//! Taking the wanted files out of an archive that nobody vouches for.
//!
//! Only the members asked for are written, under their last name, into one folder; how an archive spells a path can
//! therefore never decide where bytes land. An archive that tries is refused as a whole all the same.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use bzip2::bufread::MultiBzDecoder;
use zip::ZipArchive;
use zip::result::ZipError;

use super::source::{Archive, Format, Home, last_name, stays_inside};
use super::{Progress, Report};
use crate::error::{Error, Problem, Result, quoted};

/// What a conversion works from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpacked {
    /// How to read the files. Their names are no guide: a file that was not packed still ends in `.part`.
    pub format: Format,
    /// The files, in the order of [`Home::members`]; members of one archive lie in one folder.
    pub files: Vec<PathBuf>,
}

/// Unpacks `home`'s file at `path` into the empty `folder`.
pub(super) fn unpack(home: &Home, path: &Path, folder: &Path, report: Report<'_>) -> Result<Unpacked> {
    let files = match home.archive {
        Archive::None => vec![path.to_path_buf()],
        Archive::Zip => unzip(home, path, folder, report).map_err(|error| error.in_file(path))?,
        Archive::TarBz2 => untar(home, path, folder, report).map_err(|error| error.in_file(path))?,
    };
    Ok(Unpacked { format: home.format, files })
}

fn unzip(home: &Home, path: &Path, folder: &Path, report: Report<'_>) -> Result<Vec<PathBuf>> {
    let file = File::open(path).map_err(|error| Error::io(path, "open", error))?;
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(|error| damaged_zip(&error))?;
    for name in archive.file_names() {
        refuse_outside(&name.map_err(|error| damaged_zip(&error))?)?;
    }
    let mut left = home.at_most;
    let mut files = Vec::new();
    for member in &home.members {
        report(Progress::Unpacking { member });
        let mut entry = match archive.by_name(member) {
            Ok(entry) if entry.is_file() => entry,
            Ok(_) | Err(ZipError::FileNotFound) => return Err(Problem::MissingMember { member: member.clone() }.into()),
            Err(error) => return Err(damaged_zip(&error).into()),
        };
        let target = folder.join(last_name(member));
        left -= copy(&mut entry, &target, Bound { member, left, limit: home.at_most }, "zip")?;
        files.push(target);
    }
    Ok(files)
}

fn untar(home: &Home, path: &Path, folder: &Path, report: Report<'_>) -> Result<Vec<PathBuf>> {
    let file = File::open(path).map_err(|error| Error::io(path, "open", error))?;
    // The members that are skipped must be decompressed as well, so the bound lies on the whole stream.
    let mut bounded = MultiBzDecoder::new(BufReader::new(file)).take(home.at_most + 1);
    let files = untar_members(home, &mut bounded, folder, report);
    if bounded.limit() == 0 { Err(too_large(&home.url, home.at_most)) } else { files }
}

fn untar_members(home: &Home, tar: &mut impl Read, folder: &Path, report: Report<'_>) -> Result<Vec<PathBuf>> {
    let mut found = vec![None; home.members.len()];
    for entry in tar::Archive::new(tar).entries().map_err(|error| damaged("tar.bz2", &error))? {
        let mut entry = entry.map_err(|error| damaged("tar.bz2", &error))?;
        let name = entry.path_bytes().into_owned();
        let name = str::from_utf8(&name).map_err(|_| Problem::UnsafeMember { member: quoted(&name) })?;
        refuse_outside(name)?;
        let wanted = home.members.iter().position(|member| member == name);
        let Some(place) = wanted.filter(|_| entry.header().entry_type().is_file()) else { continue };
        report(Progress::Unpacking { member: name });
        let target = folder.join(last_name(name));
        copy(&mut entry, &target, Bound { member: name, left: home.at_most, limit: home.at_most }, "tar.bz2")?;
        found[place] = Some(target);
    }
    let named = home.members.iter().zip(found);
    named.map(|(member, file)| Ok(file.ok_or_else(|| Problem::MissingMember { member: member.clone() })?)).collect()
}

/// How much of `member` may still be written.
#[derive(Clone, Copy)]
struct Bound<'a> {
    member: &'a str,
    left: u64,
    limit: u64,
}

/// Writes `from` to `target` and returns its length. A failure to read is the archive's fault, one to write is ours.
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

/// A directory's name may end in a slash, and tar likes to begin with `./`.
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
