//! Splits, negatives and `EdgeBank` against published values on real data (see [`real_data`](crate::real_data)).

use ctdg::dataset::{ReadOptions, read};
use ctdg::event::{Event, EventStream, NodeId};
use ctdg::heuristic::{EdgeBank, EdgeBankMode, Heuristic};
use ctdg::metric::BatchMean;
use ctdg::mite::PairQuery;
use ctdg::negative::{Pass, RandomNegatives};
use ctdg::split::{MASK_SEED, Split, SplitMode, SplitRule, dyglib_id, fingerprint, n_nodes_of};

use crate::real_data;

/// The stream, the split and the reference masked nodes of the dataset `name`, or `None` to skip the test.
fn real(name: &str) -> Option<(EventStream, Split, Vec<u64>)> {
    let events = real_data::file(&format!("{name}/{name}.csv.gz"))?;
    let masked = real_data::file(&format!("{name}/{name}_inductive_nodes.txt"))?;
    let stream = read(&events, &ReadOptions::default()).unwrap();
    let split = SplitRule::of(&stream, SplitMode::Dyglib, MASK_SEED).unwrap().apply(&stream).unwrap();
    let masked = std::fs::read_to_string(masked).unwrap();
    let masked = masked.split_whitespace().map(|id| id.parse().unwrap()).collect();
    Some((stream, split, masked))
}

struct Expected {
    name: &'static str,
    nodes: usize,
    /// Train, val, test, new-node val, new-node test.
    events: [usize; 5],
    nodes_of: [usize; 5],
    new_nodes: Option<usize>,
    n_masked: usize,
    sum: Option<u64>,
    sha256: &'static str,
    /// In tenths of a second, to compare exactly.
    times: [f64; 2],
}

/// Protocol §3.1 and the table in the data folder.
const EXPECTED: [Expected; 4] = [
    Expected {
        name: "wikipedia",
        nodes: 9_227,
        events: [81_029, 23_621, 23_621, 12_016, 11_715],
        nodes_of: [6_141, 3_256, 3_564, 2_120, 2_437],
        new_nodes: Some(3_086),
        n_masked: 922,
        sum: Some(5_108_188),
        sha256: "c10a516f07054a60",
        times: [1_862_652.1, 2_218_288.6],
    },
    Expected {
        name: "enron",
        nodes: 184,
        events: [69_452, 18_786, 18_785, 5_232, 4_206],
        nodes_of: [159, 155, 141, 110, 103],
        new_nodes: Some(25),
        n_masked: 18,
        sum: Some(1_843),
        sha256: "5af6a06bb119552b",
        times: [83_843_725.6, 93_431_801.0],
    },
    Expected {
        name: "uci",
        nodes: 1_899,
        events: [34_352, 8_975, 8_976, 5_002, 5_932],
        nodes_of: [1_370, 1_036, 847, 830, 684],
        new_nodes: Some(529),
        n_masked: 189,
        sum: Some(224_768),
        sha256: "97a800fe488c0cae",
        times: [1_085_843_361.6, 1_088_723_119.3],
    },
    Expected {
        name: "canparl",
        nodes: 734,
        events: [45_179, 11_809, 10_113, 5_863, 5_064],
        nodes_of: [616, 344, 342, 344, 342],
        new_nodes: None,
        n_masked: 73,
        sum: None,
        sha256: "",
        times: [283_996_800.0, 347_155_200.0],
    },
];

#[test]
fn splits_of_real_data_equal_dyglib() {
    for expected in EXPECTED {
        let Some((stream, split, masked)) = real(expected.name) else { continue };
        let name = expected.name;
        assert_eq!(stream.n_nodes(), expected.nodes, "{name}");
        let subsets = [&split.train, &split.val, &split.test, &split.new_node_val, &split.new_node_test];
        assert_eq!(subsets.map(Vec::len), expected.events, "{name}");
        assert_eq!(subsets.map(|events| n_nodes_of(&stream, events)), expected.nodes_of, "{name}");
        let ids: Vec<u64> = split.rule.masked.iter().map(|&node| dyglib_id(node)).collect();
        assert_eq!(ids, masked, "{name}: DyGLib's masked nodes");
        assert_eq!(ids.len(), expected.n_masked);
        assert!(expected.new_nodes.is_none_or(|n| n == split.new_nodes.len()), "{name}");
        let fingerprint = fingerprint(&split.rule.masked);
        assert!(expected.sum.is_none_or(|sum| sum == fingerprint.sum), "{name}");
        assert!(fingerprint.sha256.starts_with(expected.sha256), "{name}");
        for (found, expected) in [split.rule.val_time, split.rule.test_time].into_iter().zip(expected.times) {
            assert!((found - expected).abs() < 1e-6, "{name}: {found} {expected}");
        }
    }
}

#[test]
fn features_of_real_data_are_read_from_the_sidecar() {
    let Some((stream, ..)) = real("canparl") else { return };
    let features = stream.edge_features().expect("vote counts");
    assert_eq!((features.n_rows(), features.width()), (74_478, 1));
    assert!(features.values().iter().all(|value| (1.0..=203.0).contains(value) && value.fract() == 0.0));
}

#[test]
fn random_negatives_of_real_data_equal_dyglib() {
    // Protocol §5.1: first eight destinations of batch 0, destination pool, source pool.
    type Row = ([u64; 8], usize, usize);
    let tables: [(&str, [Row; 5]); 2] = [
        (
            "wikipedia",
            [
                ([8402, 8633, 8429, 9085, 8726, 8708, 9215, 8557], 1000, 8227),
                ([9166, 9008, 8298, 8651, 8599, 8308, 8649, 8267], 588, 1532),
                ([9183, 8285, 8650, 8964, 8355, 8697, 9200, 9122], 1000, 8227),
                ([9181, 8274, 9023, 8743, 8832, 8737, 8685, 8357], 594, 1843),
                ([8584, 9100, 9147, 9155, 8693, 8870, 8739, 8467], 795, 5346),
            ],
        ),
        (
            "enron",
            [
                ([94, 130, 119, 45, 126, 25, 68, 4], 184, 181),
                ([51, 95, 150, 55, 51, 176, 131, 17], 98, 87),
                ([104, 102, 154, 126, 37, 144, 19, 23], 184, 181),
                ([40, 86, 65, 39, 84, 33, 114, 127], 98, 76),
                ([111, 53, 40, 101, 39, 156, 42, 2], 158, 143),
            ],
        ),
    ];
    for (name, rows) in tables {
        let Some((stream, split, _)) = real(name) else { continue };
        let evaluation = Pass::ALL.map(|pass| RandomNegatives::new(&stream, &pass.pool(&split), pass.seed()));
        let training = RandomNegatives::new(&stream, &split.train, 0);
        for (mut sampler, (expected, n_destinations, n_sources)) in evaluation.into_iter().chain([training]).zip(rows) {
            assert_eq!((sampler.destinations().len(), sampler.n_sources()), (n_destinations, n_sources), "{name}");
            let first: Vec<NodeId> = sampler.draw(200);
            assert_eq!(first[..8].iter().map(|&node| dyglib_id(node)).collect::<Vec<_>>(), expected, "{name}");
            let second = sampler.draw(200);
            assert_ne!(first, second);
            sampler.reset();
            assert_eq!(sampler.draw(200), first, "a pass restarts the sequence");
        }
    }
}

#[test]
fn edge_bank_on_real_data_reaches_published_scores() {
    // Best mode for random negatives, DyGLib's test AP in percent, and the tolerance in points: larger where many times
    // are equal, because DyGLib's memory also has events at the time of the batch's first event.
    let table = [
        ("wikipedia", EdgeBankMode::Unlimited, 90.37, 0.005),
        ("uci", EdgeBankMode::Unlimited, 76.20, 0.025),
        ("enron", EdgeBankMode::WindowProportional, 83.53, 0.12),
        ("canparl", EdgeBankMode::WindowProportional, 64.55, 0.12),
    ];
    for (name, mode, published, tolerance) in table {
        let Some((stream, split, _)) = real(name) else { continue };
        let mut bank = EdgeBank::new(&stream, &Pass::Test.base(&split), mode).unwrap();
        let mut negatives = RandomNegatives::new(&stream, &Pass::Test.pool(&split), Pass::Test.seed());
        let mut mean = BatchMean::new();
        for batch in split.test.chunks(200) {
            let events: Vec<_> = batch.iter().map(|&id| stream.event(id)).collect();
            let query = |event: &Event, dst| PairQuery { src: event.src, dst, time: event.time };
            let mut queries: Vec<_> = events.iter().map(|event| query(event, event.dst)).collect();
            queries.extend(events.iter().zip(negatives.draw(batch.len())).map(|(event, dst)| query(event, dst)));
            let labels: Vec<bool> = (0..queries.len()).map(|at| at < batch.len()).collect();
            mean.push(&bank.score(batch, &queries).unwrap(), &labels).unwrap();
        }
        let found = 100.0 * mean.mean().unwrap().ap;
        assert!((found - published).abs() <= tolerance, "{name}: {found} {published}");
    }
}

#[test]
fn bundled_data_set_has_its_published_counts() {
    let stream = ctdg::dataset::collegemsg().unwrap();
    assert_eq!((stream.len(), stream.n_nodes()), (59_835, 1_899));
    assert!(stream.times().iter().all(|time| time % 60.0 == 0.0), "to the minute");
    // The same messages as UCI, whose masked nodes are known, in the same order.
    let split = SplitRule::of(&stream, SplitMode::Dyglib, MASK_SEED).unwrap();
    assert_eq!(fingerprint(&split.masked).sum, 224_768);
    if let Some((uci, ..)) = real("uci") {
        assert_eq!((stream.src(), stream.dst()), (uci.src(), uci.dst()));
    }
}
