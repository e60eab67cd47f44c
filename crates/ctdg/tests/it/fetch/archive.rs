//! Checksums and archives: right, wrong, damaged and hostile.

use std::io::{Cursor, Write};

use bzip2::write::BzEncoder;
use ctdg::fetch::{Format, Source};
use ctdg::{Error, Problem, Result};
use md5::{Digest, Md5};
use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, ZipWriter};

use super::server::{Response, Server};
use super::{Target, bytes, join, options, source};

const MEMBERS: [&str; 3] = ["toy/ml_toy.csv", "toy/ml_toy.npy", "toy/ml_toy_node.npy"];
const DYGLIB_ZIP: &str = "archive = \"zip\"\nformat = \"dyglib\"\n\
                    members = [\"toy/ml_toy.csv\", \"toy/ml_toy.npy\", \"toy/ml_toy_node.npy\"]";
const TSV: &str = "archive = \"tar-bz2\"\nformat = \"konect\"\nmembers = [\"toy/out.toy\"]";

fn zipped(files: &[(&str, &[u8])]) -> Vec<u8> {
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        archive.start_file(*name, options).unwrap();
        archive.write_all(content).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// The three files and an unrelated one.
fn dyglib_zip() -> Vec<u8> {
    zipped(&[("toy/toy.csv", b"raw"), (MEMBERS[2], b"nodes"), (MEMBERS[0], b"events"), (MEMBERS[1], b"edges")])
}

fn tarred(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(BzEncoder::new(Vec::new(), bzip2::Compression::best()));
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        // By hand, since the crate refuses names that climb.
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        archive.append(&header, *content).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

fn md5_of(content: &[u8]) -> String {
    Md5::digest(content).iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

/// Serves `content` for any request and fetches it from a mirror with these keys.
fn fetch_one(content: Vec<u8>, file: &str, keys: &str) -> (Target, Result<()>) {
    let server = Server::start(move |_| Response::whole(&content));
    let mut target = Target::new();
    let fetched = target.fetch(&source(&[(server.url(file), keys)]));
    (target, fetched.map(|_| ()))
}

/// Fetches, and returns the error, having made sure that nothing is left.
#[track_caller]
fn refused(content: Vec<u8>, file: &str, keys: &str) -> Error {
    let (target, fetched) = fetch_one(content, file, keys);
    assert!(target.files().is_empty(), "{:?}", target.files());
    fetched.unwrap_err()
}

#[test]
fn zip_members_are_extracted_in_order() {
    let archive = dyglib_zip();
    let server = Server::start(move |_| Response::whole(&archive));
    let mut target = Target::new();
    let convert = |unpacked: &ctdg::fetch::Unpacked, to: &std::path::Path| {
        assert_eq!(unpacked.format, Format::Dyglib);
        let names: Vec<_> = unpacked.files.iter().map(|file| file.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["ml_toy.csv", "ml_toy.npy", "ml_toy_node.npy"]);
        join(unpacked, to)
    };
    target.fetch_with(&source(&[(server.url("/toy.zip"), DYGLIB_ZIP)]), &options(), &convert).unwrap();
    target.assert_holds(b"eventsedgesnodes");
}

#[test]
fn deflate64_archives_are_read() {
    // A stream without repeats is the same in both; only the number of the method differs.
    let files: Vec<_> = MEMBERS.iter().map(|name| (*name, b"content".as_slice())).collect();
    let mut archive = zipped(&files);
    for (signature, method) in [(b"PK\x03\x04", 8), (b"PK\x01\x02", 10)] {
        for start in 0..archive.len() - 4 {
            if archive[start..start + 4] == *signature {
                assert_eq!(archive[start + method], 8);
                archive[start + method] = 9;
            }
        }
    }
    let (target, fetched) = fetch_one(archive, "/toy.zip", DYGLIB_ZIP);
    fetched.unwrap();
    target.assert_holds(b"contentcontentcontent");
}

#[test]
fn tar_bz2_member_is_extracted() {
    let archive = tarred(&[("./toy/README", b"read me"), ("toy/out.toy", b"% asym\n1 2 1 5\n"), ("toy/meta", b"")]);
    let (target, fetched) = fetch_one(archive, "/toy.tar.bz2", TSV);
    fetched.unwrap();
    target.assert_holds(b"% asym\n1 2 1 5\n");
}

#[test]
fn archive_with_paths_outside_its_folder_is_refused() {
    let mut files = vec![("../../evil.csv", b"evil".as_slice())];
    files.extend(MEMBERS.iter().map(|name| (*name, b"content".as_slice())));
    for evil in ["../../evil.csv", "/evil.csv", "toy/../../evil.csv", "..\\evil.csv"] {
        files[0].0 = evil;
        let error = refused(zipped(&files), "/toy.zip", DYGLIB_ZIP);
        assert!(matches!(error.problem(), Problem::UnsafeMember { .. }), "{evil}: {error}");
        let error = refused(tarred(&[(evil, b"evil"), ("toy/out.toy", b"1 2 1 5")]), "/toy.tar.bz2", TSV);
        assert!(matches!(error.problem(), Problem::UnsafeMember { .. }), "{evil}: {error}");
    }
}

#[test]
fn archive_beyond_its_size_limit_is_refused() {
    let zeros = vec![0; 600 << 10];
    let bomb: Vec<_> = MEMBERS.iter().map(|name| (*name, zeros.as_slice())).collect();
    let error = refused(zipped(&bomb), "/toy.zip", DYGLIB_ZIP);
    assert!(matches!(error.problem(), Problem::TooLarge { limit: 1_048_576, .. }), "{error}");
    for name in ["toy/out.toy", "toy/unwanted"] {
        let error = refused(tarred(&[(name, &vec![0; 2 << 20]), ("toy/out.toy", b"")]), "/toy.tar.bz2", TSV);
        assert!(matches!(error.problem(), Problem::TooLarge { limit: 1_048_576, .. }), "{name}: {error}");
    }
}

#[test]
fn archive_without_a_member_is_refused() {
    let error = refused(zipped(&[(MEMBERS[0], b"events"), (MEMBERS[1], b"edges")]), "/toy.zip", DYGLIB_ZIP);
    assert!(matches!(error.problem(), Problem::MissingMember { member } if member == MEMBERS[2]), "{error}");
    let error = refused(tarred(&[("toy/other", b"")]), "/toy.tar.bz2", TSV);
    assert!(matches!(error.problem(), Problem::MissingMember { .. }), "{error}");
}

#[test]
fn damaged_archive_is_refused_and_removed() {
    let mut archive = dyglib_zip();
    let end = archive.len();
    archive.truncate(end - 10);
    for (content, file, keys) in [
        (archive, "/toy.zip", DYGLIB_ZIP),
        (b"<html>not found</html>".to_vec(), "/toy.zip", DYGLIB_ZIP),
        (b"<html>not found</html>".to_vec(), "/toy.tar.bz2", TSV),
    ] {
        let error = refused(content, file, keys);
        assert!(matches!(error.problem(), Problem::Corrupt { .. }), "{error}");
    }
}

#[test]
fn wrong_checksum_is_an_error_and_leaves_no_file() {
    let wrong = format!("format = \"jodie\"\nmd5 = \"{}\"", md5_of(b"what was published"));
    let error = refused(b"something else".to_vec(), "/toy.csv", &wrong);
    let Problem::Checksum { found, expected, .. } = error.problem() else { panic!("{error}") };
    assert_eq!(*found, format!("md5:{}", md5_of(b"something else")));
    assert_eq!(*expected, format!("md5:{}", md5_of(b"what was published")));
}

/// A server with the archive and a record that states `checksum` for it, and the mirror that names both.
fn with_record(checksum: Option<String>) -> (Server, Source) {
    let archive = dyglib_zip();
    let server = Server::start(move |request| match (request.path.as_str(), &checksum) {
        ("/record", Some(sum)) => {
            Response::whole(format!(r#"{{"files": [{{"key": "toy.zip", "checksum": "md5:{sum}"}}]}}"#).as_bytes())
        }
        ("/record", None) => Response::status(503),
        (_, _) if request.nth == 0 => Response::whole(&archive).cut_after(50),
        _ => Response::file(&archive, "W/\"weak\"", request),
    });
    let keys = format!("{DYGLIB_ZIP}\nchecksum-url = \"{}\"", server.url("/record"));
    let source = source(&[(server.url("/toy.zip"), &keys)]);
    (server, source)
}

#[test]
fn published_checksum_allows_resuming_an_unknown_version() {
    let (server, source) = with_record(Some(md5_of(&dyglib_zip())));
    let mut target = Target::new();
    let origin = target.fetch(&source).unwrap().origin.unwrap();
    assert_eq!(origin.checksum.unwrap().to_string(), format!("md5:{}", md5_of(&dyglib_zip())));
    let requests = server.requests();
    assert_eq!(requests[0].path, "/record");
    assert_eq!((requests[2].from(), &requests[2].if_range), (Some(50), &None));
    target.assert_holds(b"eventsedgesnodes");
}

#[test]
fn checksum_of_the_record_is_verified() {
    let (_server, source) = with_record(Some(md5_of(&bytes(10))));
    let mut target = Target::new();
    let error = target.fetch(&source).unwrap_err();
    assert!(matches!(error.problem(), Problem::Checksum { .. }), "{error}");
    assert!(target.files().is_empty(), "{:?}", target.files());
}

#[test]
fn unavailable_record_is_a_warning() {
    let (_server, source) = with_record(None);
    let mut target = Target::new();
    let origin = target.fetch(&source).unwrap().origin.unwrap();
    assert_eq!(origin.checksum, None);
    assert!(target.warnings[0].contains("no checksum"), "{:?}", target.warnings);
    target.assert_holds(b"eventsedgesnodes");
}

/// Two events among three nodes, as each publisher writes them, come out the same.
#[test]
fn all_published_formats_give_the_same_stream() {
    let jodie = "user_id,item_id,timestamp,state_label,comma_separated_list_of_features\n0,0,5,0,0\n1,0,7,0,0\n";
    let dyglib = ",u,i,ts,label,idx\n0,1,3,5,0,1\n1,2,3,7,0,2\n";
    let npy = |rows: usize| {
        let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, 1), }}");
        let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        bytes.extend(format!("{header:<117}\n").bytes());
        bytes.resize(bytes.len() + 4 * rows, 0);
        bytes
    };
    let members: [(&str, &[u8]); 3] = [(MEMBERS[0], dyglib.as_bytes()), (MEMBERS[1], &npy(3)), (MEMBERS[2], &npy(4))];
    let konect = "% bip\n1 3 1 5\n2 3 1 7\n";
    for (content, keys) in [
        (jodie.as_bytes().to_vec(), "format = \"jodie\""),
        (zipped(&members), DYGLIB_ZIP),
        (tarred(&[("toy/out.toy", konect.as_bytes())]), TSV),
    ] {
        let server = Server::start(move |_| Response::whole(&content));
        let mut target = Target::new();
        let mirror = source(&[(server.url("/toy"), keys)]);
        let fetched = target.fetch_with(&mirror, &options(), &ctdg::fetch::to_binary).unwrap();
        let stream = ctdg::dataset::read(&fetched.path, &ctdg::dataset::ReadOptions::default()).unwrap();
        let events: Vec<_> = stream.ids().map(|id| stream.event(id)).map(|e| (e.src.0, e.dst.0, e.time)).collect();
        assert_eq!(events, [(0, 2, 5.0), (1, 2, 7.0)], "{keys}");
        assert_eq!(stream.edge_features(), None, "all zeros mean no features");
    }
}
