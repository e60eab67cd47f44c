//! Damaged and random files give an error or a valid stream, never a panic or unbounded memory.

use std::path::Path;

use ctdg::dataset::{Format, ReadOptions, WriteFormat, read, write};
use ctdg::event::EventStream;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::tries;

/// Reads `bytes` in every format.
fn read_in_every_format(folder: &Path, bytes: &[u8]) {
    for name in ["x.csv", "x_features.npy"] {
        std::fs::write(folder.join(name), bytes).unwrap();
    }
    for format in Format::ALL {
        for sort in [false, true] {
            let options = ReadOptions { format, sort, ..ReadOptions::default() };
            if let Ok(stream) = read(&folder.join("x.csv"), &options) {
                assert!(stream.times().is_sorted());
                assert!(stream.src().iter().chain(stream.dst()).all(|node| node.index() < stream.n_nodes()));
            }
        }
    }
}

/// A valid file of each format, to be damaged.
fn valid_files() -> Vec<Vec<u8>> {
    let stream = EventStream::from_events((0..40).map(|i| (i % 5, i % 7, f64::from(i)))).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let files = ["a.csv", "b.csv.gz", "c.csv.zst", "d.parquet", "e.ctdg"].map(|name| {
        let path = folder.path().join(name);
        write(&stream, &path, WriteFormat::of_path(&path).unwrap()).unwrap();
        std::fs::read(path).unwrap()
    });
    files.into_iter().collect()
}

#[derive(Debug, Clone)]
enum Damage {
    Set(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Repeat(prop::sample::Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        4 => (any::<prop::sample::Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        1 => any::<prop::sample::Index>().prop_map(Damage::Cut),
        1 => any::<prop::sample::Index>().prop_map(Damage::Repeat),
    ]
}

fn damaged(mut bytes: Vec<u8>, damages: &[Damage]) -> Vec<u8> {
    for damage in damages {
        if bytes.is_empty() {
            break;
        }
        match damage {
            Damage::Set(at, byte) => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            Damage::Cut(at) => bytes.truncate(at.index(bytes.len())),
            Damage::Repeat(at) => bytes.extend_from_within(at.index(bytes.len())..),
        }
    }
    bytes
}

/// 150 tries unless the environment asks for more, from a fixed seed in either case.
fn config() -> ProptestConfig {
    let cases = u32::try_from(tries::number(150)).unwrap();
    ProptestConfig { rng_seed: RngSeed::Fixed(tries::seed()), ..ProptestConfig::with_cases(cases) }
}

#[test]
fn damaged_files_never_panic() {
    let files = valid_files();
    proptest!(config(), |(which in 0usize..5, damages in prop::collection::vec(damage(), 1..6))| {
        let folder = tempfile::tempdir().unwrap();
        read_in_every_format(folder.path(), &damaged(files[which].clone(), &damages));
    });
    tries::report("damaged files of events", config().cases as usize);
}

#[test]
fn damaged_features_never_panic() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/formats");
    let npy = std::fs::read(samples.join("ml_toy.npy")).unwrap();
    proptest!(config(), |(damages in prop::collection::vec(damage(), 1..6))| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::copy(samples.join("ml_toy.csv"), folder.path().join("ml_toy.csv")).unwrap();
        for name in ["ml_toy.npy", "ml_toy_node.npy"] {
            std::fs::write(folder.path().join(name), damaged(npy.clone(), &damages)).unwrap();
        }
        let _ = read(&folder.path().join("ml_toy.csv"), &ReadOptions::default());
    });
    tries::report("damaged files of features", config().cases as usize);
}

#[test]
fn random_tables_never_panic() {
    let word = "(src|dst|time|label|feat|u|i|ts|%|#|[0-9]{1,3}|-|nan|1e999|,|,|,|\t| |\n|\n|\"|\r|é){0,60}";
    proptest!(config(), |(text in word)| {
        let folder = tempfile::tempdir().unwrap();
        read_in_every_format(folder.path(), text.as_bytes());
    });
    tries::report("random tables", config().cases as usize);
}

#[test]
fn endless_row_is_refused() {
    // 40 MiB compressed to 40 kB: one line, or many lines in an unclosed quote.
    for (start, filler) in [("", b'7'), ("src,dst,time\n1,2,3\n\"", b'\n')] {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut packed, start.as_bytes()).unwrap();
        for _ in 0..40 {
            std::io::Write::write_all(&mut packed, &vec![filler; 1 << 20]).unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bomb.csv.gz");
        std::fs::write(&path, packed.finish().unwrap()).unwrap();
        let error = read(&path, &ReadOptions::default()).unwrap_err();
        assert!(error.to_string().contains("a row of more than 16 MiB"), "{error}");
    }
}
