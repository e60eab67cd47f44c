//! Mapped stores against stores in memory, and index files that are not what they should be.

use std::fs;
use std::path::{Path, PathBuf};

use ctdg::dataset::{ReadOptions, WriteFormat, read, write};
use ctdg::event::{EventId, EventStream, NodeId};
use ctdg::index;
use ctdg::mite::{MiteScope, PairEncoder, PairEncoderConfig, PairQuery, PairTokens, SecondHop, SecondHopTime, Side};
use ctdg::sample::Sampling;
use ctdg::split::{MASK_SEED, SplitMode, SplitRule};
use ctdg::statistics::N_STATISTICS;
use ctdg::store::Store;
use ctdg::triads::{N_TRIADS, TriadFinder};
use ctdg::walks::{TemporalWalks, WalkConfig};
use proptest::prelude::*;

use crate::edge_cases;

/// A `.ctdg` file in a folder of its own.
struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    fn of(stream: &EventStream) -> Self {
        let home = Self { folder: tempfile::tempdir().unwrap() };
        write(stream, &home.file(), WriteFormat::Binary).unwrap();
        home
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("events.ctdg")
    }

    fn stream(&self) -> EventStream {
        read(&self.file(), &ReadOptions::default()).unwrap()
    }

    fn stores(&self) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> =
            fs::read_dir(index::folder(&self.file())).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }
}

fn build(stream: &EventStream) -> index::Built {
    index::build(stream, index::MIN_MEMORY, &|_, _| {}).unwrap()
}

/// The same as of a stream of more than 2^32 − 1 events.
fn build_wide(stream: &EventStream) -> index::Built {
    index::build_wide(stream, index::MIN_MEMORY, &|_, _| {}).unwrap()
}

const CONFIGS: [PairEncoderConfig; 3] = {
    let recent = PairEncoderConfig {
        length: 4,
        k: 3,
        scope: MiteScope::Full,
        precision: ctdg::mite::TimePrecision::F64,
        self_loops: ctdg::mite::SelfLoops::Once,
        sampling: Sampling::Recent,
        second: None,
    };
    let second = Some(SecondHop { length: 2, time: SecondHopTime::Event });
    [
        recent,
        PairEncoderConfig { sampling: Sampling::Uniform, second, ..recent },
        PairEncoderConfig { sampling: Sampling::TimeIntervalAware { a: 0.5 }, scope: MiteScope::Truncated, ..recent },
    ]
};

/// Every answer of one store equals that of the other at `time`, bit for bit, for all pairs of `nodes`.
fn check(mapped: &Store, in_memory: &Store, nodes: &[NodeId], time: f64) {
    assert!(mapped.is_mapped() && !in_memory.is_mapped());
    assert_eq!(mapped.n_nodes(), in_memory.n_nodes());
    let cut = in_memory.cut(time);
    assert_eq!(mapped.cut(time), cut);
    for &node in nodes {
        assert_eq!(mapped.history(node, cut), in_memory.history(node, cut), "{node:?}");
        for &other in nodes {
            assert_eq!(mapped.pair_events(node, other, cut), in_memory.pair_events(node, other, cut));
        }
    }
    let pairs = nodes.iter().flat_map(|&src| nodes.iter().map(move |&dst| PairQuery { src, dst, time }));
    let queries: Vec<PairQuery> = pairs.collect();
    assert_eq!(mapped.statistics().rows(&queries), in_memory.statistics().rows(&queries));
    let config = WalkConfig { layers: 2, width: 8, decay: 0.1 };
    assert_eq!(TemporalWalks::new(mapped, config).rows(&queries), TemporalWalks::new(in_memory, config).rows(&queries));
    for config in CONFIGS {
        let (mut expected, mut found) = (PairTokens::default(), PairTokens::default());
        PairEncoder::new(in_memory, config).encode(&queries, &mut expected);
        PairEncoder::new(mapped, config).encode(&queries, &mut found);
        assert_eq!((found.nodes(), found.ages(), found.rows()), (expected.nodes(), expected.ages(), expected.rows()));
        assert_eq!(found.second_events(), expected.second_events());
        for pair in 0..queries.len() {
            for side in [Side::Src, Side::Dst] {
                assert_eq!(found.events(pair, side), expected.events(pair, side));
            }
        }
        for row in 0..expected.n_rows() {
            for side in [Side::Src, Side::Dst] {
                assert_eq!(found.intervals(row, side), expected.intervals(row, side));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn answers_of_a_mapped_store_equal_those_in_memory(
        stream in edge_cases::stream(60),
        time in edge_cases::time(),
        every in 1_usize..4,
        is_wide in any::<bool>(),
    ) {
        let home = Home::of(&stream);
        let mapped = home.stream();
        prop_assert!(!Store::build(&mapped).unwrap().is_mapped(), "there is no index yet");
        if is_wide { build_wide(&mapped) } else { build(&mapped) };
        let nodes: Vec<NodeId> = (0..8).chain([99]).map(NodeId).collect();
        check(&Store::build(&mapped).unwrap(), &Store::build(&stream).unwrap(), &nodes, time);
        let ids: Vec<EventId> = stream.ids().filter(|id| id.index() % every == 0).collect();
        let part = Store::of_events(&mapped, &ids).unwrap();
        check(&part, &Store::of_events(&stream, &ids).unwrap(), &nodes, time);
        prop_assert_eq!(home.stores().len(), if ids.len() == stream.len() { 1 } else { 2 });
        let id_bytes = if is_wide { 8 } else { 4 };
        prop_assert!(home.stores().iter().all(|file| fs::read(file).unwrap()[16] == id_bytes));
    }

    #[test]
    fn what_is_left_out_of_a_wide_index_equals_that_in_memory(
        stream in edge_cases::stream(60),
        time in edge_cases::time(),
        every in 1_usize..4,
    ) {
        let home = Home::of(&stream);
        build_wide(&home.stream());
        let [mapped, in_memory] = [&home.stream(), &stream].map(|stream| Store::build(stream).unwrap());
        let left_out: Vec<EventId> = stream.ids().filter(|id| id.index() % every == 0).collect();
        let nodes = (0..8).map(NodeId);
        let mut rows = [[0.0; N_STATISTICS]; 2];
        for (src, dst) in nodes.clone().flat_map(|src| nodes.clone().map(move |dst| (src, dst))) {
            let (query, cut) = (PairQuery { src, dst, time }, in_memory.cut(time));
            for (store, row) in [&mapped, &in_memory].into_iter().zip(&mut rows) {
                store.statistics().write_without(&query, &left_out, row);
            }
            prop_assert_eq!(rows[0], rows[1]);
            let meetings = [&mapped, &in_memory].map(|store| store.meetings(src, dst, cut, &left_out));
            prop_assert_eq!(meetings[0], meetings[1]);
            let mut triads = [[0.0; N_TRIADS]; 2];
            for (store, row) in [&mapped, &in_memory].into_iter().zip(&mut triads) {
                TriadFinder::new(store).write(&query, &left_out, row);
            }
            prop_assert_eq!(triads[0], triads[1]);
        }
    }
}

/// Index files of earlier versions can be read: these are the bytes of `hopedgn data index --memory 1MiB` when events had 32 bits only.
#[test]
fn an_index_of_a_small_stream_has_the_bytes_of_earlier_versions() {
    let stream = EventStream::from_events((0..200).map(|i| (i % 7, i % 11, f64::from(i / 3)))).unwrap();
    let home = Home::of(&stream);
    build(&home.stream());
    let split = SplitRule::of(&stream, SplitMode::Dyglib, MASK_SEED).unwrap().apply(&stream).unwrap();
    Store::of_events(&home.stream(), &split.train).unwrap();
    let [all, part]: [PathBuf; 2] = home.stores().try_into().unwrap();
    assert_eq!(part.file_name().unwrap(), "part-129-d8519952.store");
    assert_eq!([&all, &part].map(|file| crc32fast::hash(&fs::read(file).unwrap())), [0x8710_bee0, 0xff16_8aea]);
}

#[test]
fn a_wide_index_takes_the_bytes_that_it_says() {
    let stream = EventStream::from_events((0..100_u32).map(|i| (i, i + 1, f64::from(i)))).unwrap();
    let bytes = [build, build_wide].map(|build| {
        let home = Home::of(&stream);
        build(&home.stream()).bytes
    });
    // Two entries, a source, a destination and a moment for each event, with up to 63 bytes of padding a column.
    assert!((bytes[1] - bytes[0]).abs_diff(100 * 5 * 4) < 5 * 64, "{bytes:?}");
}

/// Larger than the memory limit by so much that dozens of runs are spilled; with a hub, a pair that always repeats, and loops.
fn large() -> EventStream {
    let event = |i: u32| match i % 5 {
        0 => (0, 1 + i * 31 % 997, f64::from(i / 7)),
        1 => (500, 501, f64::from(i / 7)),
        2 => (501, 500, f64::from(i / 7)),
        3 => (i % 1_009, i % 1_009, f64::from(i / 7)),
        _ => (i * 17 % 1_013, i * 29 % 1_019, f64::from(i / 7)),
    };
    EventStream::from_events((0..600_000).map(event)).unwrap()
}

#[test]
fn a_stream_many_times_the_memory_limit_gives_the_same_answers() {
    for build in [build, build_wide] {
        check_large(build);
    }
}

fn check_large(build: fn(&EventStream) -> index::Built) {
    let stream = large();
    let home = Home::of(&stream);
    let mapped = home.stream();
    let built = build(&mapped);
    assert!(!built.was_there && built.bytes > 20 * index::MIN_MEMORY, "{built:?}");
    let nodes = [0, 1, 3, 17, 500, 501, 700, 1_018, 5_000].map(NodeId);
    let ids: Vec<EventId> = stream.ids().filter(|id| id.index() % 3 > 0).collect();
    let (part, expected) = (Store::of_events(&mapped, &ids).unwrap(), Store::of_events(&stream, &ids).unwrap());
    for time in [0.0, 10.0, 40_000.5, 1e9] {
        check(&Store::build(&mapped).unwrap(), &Store::build(&stream).unwrap(), &nodes, time);
        check(&part, &expected, &nodes, time);
    }
    assert!(build(&mapped).was_there, "a sound index is kept");
}

#[test]
fn an_empty_stream_and_lone_nodes_have_an_index() {
    for events in [vec![], vec![(3, 3, 1.0)], vec![(7, 2, 1.0)]] {
        let stream = EventStream::from_events(events).unwrap();
        let home = Home::of(&stream);
        let mapped = home.stream();
        build(&mapped);
        let nodes: Vec<NodeId> = (0..9).map(NodeId).collect();
        check(&Store::build(&mapped).unwrap(), &Store::build(&stream).unwrap(), &nodes, 5.0);
    }
}

#[test]
fn events_that_are_not_those_of_a_file_have_no_index() {
    let stream = EventStream::from_events([(0, 1, 1.0), (1, 2, 2.0)]).unwrap();
    let error = index::build(&stream, index::MIN_MEMORY, &|_, _| {}).unwrap_err();
    assert!(error.to_string().contains("expected those of a .ctdg file"), "{error}");
    let home = Home::of(&stream);
    build(&home.stream());
    // Times in another unit are not those of the file.
    let options = ReadOptions { time_unit: Some(ctdg::dataset::TimeUnit::Ms), ..ReadOptions::default() };
    let dated = read(&home.file(), &options).unwrap();
    assert!(!Store::build(&dated).unwrap().is_mapped());
    assert!(index::build(&home.stream(), index::MIN_MEMORY - 1, &|_, _| {}).is_err());
}

#[test]
fn an_index_of_other_events_is_refused_and_can_be_replaced() {
    let one = EventStream::from_events([(0, 1, 1.0), (1, 2, 2.0), (0, 2, 3.0)]).unwrap();
    let home = Home::of(&one);
    build(&home.stream());
    Store::of_events(&home.stream(), &[EventId(1)]).unwrap();
    assert_eq!(home.stores().len(), 2);
    for other in [
        EventStream::from_events([(0, 1, 1.0), (1, 2, 2.0)]).unwrap(),
        EventStream::from_events([(0, 1, 1.0), (1, 2, 2.0), (0, 2, 3.5)]).unwrap(),
        EventStream::from_events([(0, 1, 1.0), (1, 2, 2.0), (2, 0, 3.0)]).unwrap(),
    ] {
        write(&other, &home.file(), WriteFormat::Binary).unwrap();
        let error = Store::build(&home.stream()).unwrap_err();
        assert_eq!(error.code(), "unusable-index");
        let message = error.to_string();
        assert!(
            message.contains("all.store: found the index of ") && message.contains("build the index again"),
            "{message}"
        );
        assert!(Store::of_events(&home.stream(), &[EventId(1)]).is_err());
    }
    assert!(!build(&home.stream()).was_there);
    assert_eq!(home.stores().len(), 1, "parts of other events are gone");
    assert!(Store::build(&home.stream()).unwrap().is_mapped());
}

/// Every kind of damage: cut off, longer, and one flipped bit anywhere.
fn damaged(bytes: &[u8], at: usize) -> Vec<u8> {
    match at % 5 {
        0 => bytes[..at % bytes.len()].to_vec(),
        1 => [bytes, &[0]].concat(),
        _ => {
            let mut bytes = bytes.to_vec();
            let place = at % bytes.len();
            bytes[place] ^= 1 << (at % 8);
            bytes
        }
    }
}

#[test]
fn a_damaged_index_is_refused_or_changes_nothing() {
    for build in [build, build_wide] {
        check_damaged(build);
    }
}

fn check_damaged(build: fn(&EventStream) -> index::Built) {
    let stream = EventStream::from_events((0..200).map(|i| (i % 7, i % 11, f64::from(i / 3)))).unwrap();
    let home = Home::of(&stream);
    build(&home.stream());
    let [all]: [PathBuf; 1] = home.stores().try_into().unwrap();
    let sound = fs::read(&all).unwrap();
    let nodes: Vec<NodeId> = (0..12).map(NodeId).collect();
    let in_memory = Store::build(&stream).unwrap();
    let mut n_refused = 0;
    for at in (0..sound.len()).step_by(37) {
        fs::write(&all, damaged(&sound, at)).unwrap();
        match Store::build(&home.stream()) {
            // Only bytes between columns may differ.
            Ok(store) => check(&store, &in_memory, &nodes, 50.0),
            Err(error) => {
                assert_eq!(error.code(), "unusable-index", "{error}");
                assert!(error.to_string().contains("all.store: found "), "{error}");
                n_refused += 1;
            }
        }
    }
    assert!(n_refused > sound.len() / 37 * 9 / 10, "{n_refused}");
    assert!(!build(&home.stream()).was_there, "a damaged one is built again");
    assert_eq!(fs::read(&all).unwrap(), sound, "with the same bytes");
}

#[test]
fn a_build_that_fails_leaves_nothing() {
    let stream = EventStream::from_events([(0, 1, 1.0), (1, 2, 2.0)]).unwrap();
    let home = Home::of(&stream);
    let folder = index::folder(&home.file());
    // A file is where the folder should be.
    fs::write(&folder, "mine").unwrap();
    let error = index::build(&home.stream(), index::MIN_MEMORY, &|_, _| {}).unwrap_err();
    assert!(error.to_string().contains("events.ctdg.index: could not create"), "{error}");
    fs::remove_file(&folder).unwrap();
    let left = || {
        let entries = fs::read_dir(home.folder.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(left(), ["events.ctdg"]);
    // What a process that was killed left is removed by the next build.
    fs::create_dir(&folder).unwrap();
    let litter = leftover(&folder);
    build(&home.stream());
    assert!(!litter.exists());
    assert_eq!(home.stores(), [folder.join("all.store")]);
}

/// A temporary file of a process that is gone.
fn leftover(folder: &Path) -> PathBuf {
    let mine = ctdg::dataset::temporary_prefix();
    let gone = mine.replace(&std::process::id().to_string(), &(u32::MAX - 1).to_string());
    let path = folder.join(format!("{gone}draft"));
    fs::write(&path, "half of it").unwrap();
    path
}
