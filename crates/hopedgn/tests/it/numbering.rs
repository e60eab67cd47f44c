//! A score depends on names, times and features of the events it looks back on: not on how nodes are numbered, not on unrelated
//! nodes, not on the other pairs of a file, and not on the future.
//!
//! Every test tries every model with every sampling on random streams. `HOPEDGN_TRIES` and `HOPEDGN_SEED` in the environment say
//! how many streams and which; a few by default.

use ctdg::event::{EventId, Features, IdKind, NodeId, StreamBuilder};
use ctdg::random::RandomStream;
use ctdg::store::Store;
use hopedgn::Events;
use hopedgn::collate::{FeatureTables, FeatureWidths};
use hopedgn::config::{ModelConfig, ModelName};
use hopedgn::memory::{Memory, MemoryState};
use hopedgn::model::{self, Model};
use hopedgn::predict::{History, NamedPairs, logits};
use hopedgn_tensor::{Device, Weights};

use crate::tries;

/// Source, destination, time.
type Row = (String, String, f64);

/// Events that a memory is updated with at a time, unless a test says otherwise.
const BATCH: usize = 8;

/// Calls `attempt` with the random numbers of each try, and prints how many there were.
fn each_try(test: &str, mut attempt: impl FnMut(&mut RandomStream, &ModelConfig)) {
    let mut n = 0;
    for index in 0..tries::number(2) {
        for config in models(index % 2 == 0) {
            attempt(&mut RandomStream::named(tries::seed(), test).fork(index), &config);
            n += 1;
        }
    }
    tries::report(test, n);
}

/// Every model with every sampling it knows, with MITE, walks, directions and relations or without; each also with statistics.
fn models(mite: bool) -> Vec<ModelConfig> {
    let sizes = ["length=5", "neighbors=3", "k=3", "d-channel=4", "d-time=4", "d-mite=4", "d-out=8", "n-heads=2"];
    // Global HopeDGN reads all nodes by default, unrelated ones too.
    let others = ["d-cooccurrence=4", "replacing=met"];
    let settings = [&sizes[..], &others].concat();
    let mut all = Vec::new();
    for name in ModelName::ALL {
        let config = ModelConfig::new(name).with_known(&settings).unwrap();
        let config = config.with("mite", mite).unwrap_or(config);
        let others = ["triads=true", "direction=true", "relations=true", "walks=true", "d-walk=20", "walk-decay=0.1"];
        let config = if mite { config.with_known(&others).unwrap() } else { config };
        if !config.common.statistics.enabled {
            all.push(config.with("stats", true).unwrap());
        }
        if !config.has("sampling") {
            all.push(config);
            continue;
        }
        for sampling in ["recent", "uniform", "time-interval-aware"] {
            all.push(config.with("sampling", sampling).unwrap());
        }
    }
    all
}

fn below(random: &mut RandomStream, n: usize) -> usize {
    random.index(n)
}

/// Events among `names` at equal and different times from `start` on.
fn rows(random: &mut RandomStream, names: &[&str], n: usize, start: f64) -> Vec<Row> {
    let mut time = start;
    let mut row = |_| {
        time += f64::from(random.below(3));
        let [src, dst] = [(); 2].map(|()| names[below(random, names.len())].to_owned());
        (src, dst, time)
    };
    (0..n).map(&mut row).collect()
}

const NAMES: [&str; 7] = ["m1", "m2", "m3", "m5", "m6", "m7", "m9"];
/// Sorted before, between and after [`NAMES`].
const UNRELATED: [&str; 4] = ["a", "m4", "m55", "z"];

/// One value per event and one per node, from what is written in the file; 0 for unrelated nodes, as for unknown ones: features
/// of nodes have no time, a node of the file has them before its first event.
fn with_features(events: &Events, rows: &[Row]) -> Events {
    let value = |text: &str| text.bytes().fold(0.1_f32, |sum, byte| (sum * 1.7 + f32::from(byte) * 0.01).fract());
    let of_events = rows.iter().map(|(src, dst, time)| value(&format!("{src} {dst} {time}"))).collect::<Vec<_>>();
    let nodes = (0..events.n_nodes()).filter_map(NodeId::from_index);
    let of_node = |name: &str| if UNRELATED.contains(&name) { 0.0 } else { value(name) };
    let of_nodes = nodes.map(|node| of_node(&events.names().name(node))).collect::<Vec<_>>();
    let mut columns = (**events).clone().into_columns();
    columns.edge_features = Some(Features::new(1, of_events).unwrap());
    columns.node_features = Some(Features::new(1, of_nodes).unwrap());
    Events::from_stream("events", ctdg::event::EventStream::new(columns).unwrap())
}

fn events(rows: &[Row]) -> Events {
    let mut builder = StreamBuilder::new(IdKind::Text, false, false);
    for (src, dst, time) in rows {
        builder.push(src.as_bytes(), dst.as_bytes(), *time, 0.0).unwrap();
    }
    with_features(&Events::from_stream("events", builder.finish(None).unwrap()), rows)
}

/// A model with its weights and, where it has a memory, statistics of elapsed times.
struct Scorer {
    model: Box<dyn Model>,
    weights: Weights,
    memory: Option<MemoryState>,
}

impl Scorer {
    fn new(config: &ModelConfig, events: &Events) -> Self {
        let (model, parameters) = model::build(config, FeatureWidths::of(events), 1).unwrap();
        let train: Vec<EventId> = events.ids().take(events.len() / 2).collect();
        let memory = |form| Memory::new(&Device::cpu(), form, events, &train).unwrap().snapshot().unwrap();
        let memory = model.memory().map(memory);
        Self { weights: Weights::new(&Device::cpu(), parameters).unwrap(), model, memory }
    }

    fn has_memory(&self) -> bool {
        self.memory.is_some()
    }

    /// The bits of the score of each of `pairs`, which are one file.
    fn bits(&self, events: &Events, pairs: &[Row], batch: usize) -> Vec<u32> {
        let mut named = NamedPairs::new(events).unwrap();
        for (src, dst, time) in pairs {
            named.push(src, dst, *time).unwrap();
        }
        let (store, tables) = (Store::build(events).unwrap(), FeatureTables::of(events).unwrap());
        let history = History { stream: events, memory: self.memory.as_ref(), store: &store, tables: &tables, batch };
        let logits = logits(&history, &*self.model, &self.weights, named.queries(), &mut |_| {}).unwrap();
        logits.into_iter().map(f32::to_bits).collect()
    }
}

/// Pairs of known and unknown nodes at times from `first` to `last`, times of events among them.
fn pairs(random: &mut RandomStream, n: usize, first: f64, last: f64) -> Vec<Row> {
    let names = [&NAMES[..], &["m0", "m8"]].concat();
    let mut pair = |_| {
        let [src, dst] = [(); 2].map(|()| names[below(random, names.len())].to_owned());
        (src, dst, (first + random.unit() * (last - first)).round())
    };
    (0..n).map(&mut pair).collect()
}

fn title(config: &ModelConfig) -> String {
    format!("{} with {config:?}", config.name().as_str())
}

/// `rows` and `more` in order of time; those of `rows` first among equal times.
fn merged(rows: &[Row], more: &[Row]) -> Vec<Row> {
    let mut all = [rows, more].concat();
    all.sort_by(|a, b| a.2.total_cmp(&b.2));
    all
}

#[test]
fn unrelated_nodes_change_no_score() {
    each_try("unrelated", |random, config| {
        if config.common.statistics.enabled {
            return; // They count events of the whole stream.
        }
        let rows = rows(random, &NAMES, 60, 0.0);
        let (first, last) = (rows[0].2, rows[59].2);
        let base = events(&rows);
        let scorer = Scorer::new(config, &base);
        let pairs = pairs(random, 12, first, last + 3.0);
        // A memory advances by batches of events and counts from the first event: with one event at a time and none earlier,
        // unrelated events make no difference.
        let batch = if scorer.has_memory() { 1 } else { BATCH };
        let expected = scorer.bits(&base, &pairs, batch);
        assert!(expected.iter().any(|&bits| bits != expected[0]), "{} gives one score to all", title(config));
        for unrelated in [&UNRELATED[..1], &UNRELATED[1..3], &UNRELATED[3..], &UNRELATED] {
            let start = if scorer.has_memory() { first } else { first - 20.0 };
            let more = self::rows(random, unrelated, 30, start);
            let grown = events(&merged(&rows, &more));
            assert_eq!(scorer.bits(&grown, &pairs, batch), expected, "{unrelated:?} beside {}", title(config));
        }
    });
}

#[test]
fn other_pairs_of_a_file_change_no_score() {
    each_try("pairs", |random, config| {
        let rows = rows(random, &NAMES, 60, 0.0);
        let events = events(&rows);
        let scorer = Scorer::new(config, &events);
        let pairs = pairs(random, 10, rows[20].2, rows[59].2 + 3.0);
        let expected = scorer.bits(&events, &pairs, BATCH);
        for size in [1, 3, 7] {
            let found: Vec<u32> = pairs.chunks(size).flat_map(|some| scorer.bits(&events, some, BATCH)).collect();
            assert_eq!(found, expected, "{size} at a time, {}", title(config));
        }
        // Pairs of other unknown nodes, before and between, and another order.
        let mut order: Vec<usize> = (0..pairs.len()).collect();
        random.shuffle(&mut order);
        let mut file = Vec::new();
        for &at in &order {
            for side in 0..random.below(3) {
                let stranger = format!("q{}", random.below(50));
                let known = NAMES[below(random, NAMES.len())].to_owned();
                let (src, dst) = if side == 0 { (stranger, known) } else { (known, stranger) };
                file.push((src, dst, pairs[at].2));
            }
            file.push(pairs[at].clone());
        }
        let found = scorer.bits(&events, &file, BATCH);
        for (bits, row) in found.iter().zip(&file) {
            if let Some(at) = pairs.iter().position(|pair| pair == row) {
                assert_eq!(*bits, expected[at], "{row:?}, {}", title(config));
            }
        }
    });
}

#[test]
fn future_events_and_nodes_change_no_score() {
    each_try("future", |random, config| {
        let rows = rows(random, &NAMES, 60, 0.0);
        let now = rows[40].2;
        let past: Vec<Row> = rows.iter().filter(|row| row.2 < now).cloned().collect();
        let whole = events(&rows);
        let scorer = Scorer::new(config, &whole);
        let mut pairs = pairs(random, 10, rows[15].2, now);
        // Pairs of nodes that first occur in the future.
        pairs.extend(UNRELATED.map(|name| (name.to_owned(), NAMES[0].to_owned(), now)));
        pairs.push((UNRELATED[1].to_owned(), UNRELATED[1].to_owned(), now));
        let expected = scorer.bits(&whole, &pairs, BATCH);
        let names = [&NAMES[..], &UNRELATED].concat();
        for n in [0, 1, 25] {
            // Some at the very time of the query.
            let future = self::rows(random, &names, n, now);
            let other = events(&[past.as_slice(), &future].concat());
            assert_eq!(scorer.bits(&other, &pairs, BATCH), expected, "{n} other events, {}", title(config));
        }
    });
}
