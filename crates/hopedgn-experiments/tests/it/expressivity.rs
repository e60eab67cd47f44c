//! The paper's propositions on random small streams: what equal colours say of embeddings, and what different ones do.

use std::collections::HashMap;

use ctdg::event::{EventId, EventStream, NodeId};
use ctdg::mite::PairQuery;
use ctdg::random::Stream;
use ctdg::store::Store;
use ctdg::wl::{Dwl, Graph, Reading};
use hopedgn::collate::{FeatureTables, FeatureWidths, GlobalInput};
use hopedgn::config::{Config, ModelName, ModelSettings};
use hopedgn::memory::Memory;
use hopedgn::model::{self, GlobalHopeDgn};
use hopedgn::score::PairScorer;
use hopedgn_experiments::expressivity::{self, Bound, School, Subject};
use hopedgn_tensor::{Device, Dropout, Gradients, Parameters, Tape, Threads, Weights};
use rayon::prelude::*;

/// Logits that should be equal, in units of the larger of 1 and the largest: attention adds the same terms in another order,
/// over up to eight neighbours in two hops, which moves an `f32` by a few roundings of 6e-8 each. Embeddings of global HopeDGN
/// need no tolerance.
const EQUAL: f32 = 5e-6;

/// Values that differ by more are different: another order of the same sums moves them by some 1e-6.
const DIFFERENT: f32 = expressivity::TOLERANCE;

/// Events of a stream.
type Events = Vec<(u32, u32, f64)>;

fn stream(seed: u64) -> EventStream {
    EventStream::from_events(tied(seed, true)).unwrap()
}

/// Few nodes that meet often at few times, so that many pairs look alike and many meetings are simultaneous. All of them meet
/// somebody, some themselves.
fn tied(seed: u64, with_loops: bool) -> Events {
    let mut random = Stream::named(seed, "expressive");
    let n_nodes = 4 + random.below(5);
    let n_events = n_nodes + random.below(5);
    let n_times = 1 + random.below(3);
    let mut events: Vec<(u32, u32, f64)> = Vec::new();
    for i in 0..n_events {
        let u = if i < n_nodes { i } else { random.below(n_nodes) };
        // Neighbours on a ring mostly: symmetric graphs have large classes. Sometimes a node meets itself.
        let step = if random.chance(0.7) { 1 } else { random.below(n_nodes) };
        let step = if with_loops { step } else { step.max(1) };
        events.push((u, (u + step) % n_nodes, f64::from(1 + random.below(n_times))));
    }
    events.sort_by(|one, other| one.2.total_cmp(&other.2));
    events
}

/// A random stream of four nodes, each of which becomes two: every event becomes two, between the first and the first and
/// between the second and the second, or crossed. Both halves of a node see the same, to any depth.
fn doubled(seed: u64) -> Events {
    let mut random = Stream::named(seed, "doubled");
    let mut events = Vec::new();
    for i in 0..4 + random.below(5) {
        let u = if i < 4 { i } else { random.below(4) };
        let v = (u + 1 + random.below(3)) % 4;
        let crossed = random.below(2);
        // Nobody meets two at once: then the order of the file would say something.
        let time = f64::from(1 + i) / 4.0;
        events.extend([(2 * u, 2 * v + crossed, time), (2 * u + 1, 2 * v + 1 - crossed, time)]);
    }
    events
}

/// Streams side by side, none of whose nodes meet those of another.
fn side_by_side(streams: impl Iterator<Item = Events>) -> EventStream {
    let (mut events, mut n_nodes) = (Events::new(), 0);
    for stream in streams {
        let most = stream.iter().map(|&(u, v, _)| u.max(v)).max().unwrap_or(0);
        events.extend(stream.into_iter().map(|(u, v, time)| (u + n_nodes, v + n_nodes, time)));
        n_nodes += most + 1;
    }
    events.sort_by(|one, other| one.2.total_cmp(&other.2));
    EventStream::from_events(events).unwrap()
}

/// After all events.
const NOW: f64 = 4.0;

fn nodes(stream: &EventStream) -> Vec<NodeId> {
    (0..stream.n_nodes()).filter_map(NodeId::from_index).collect()
}

fn global(settings: &[&str], seed: u64) -> (GlobalHopeDgn, Parameters) {
    let settings: Vec<String> = settings.iter().map(|setting| format!("model.{setting}")).collect();
    let config = Config::resolve(ModelName::HopeDgnGlobal, &[], &settings).unwrap().model;
    let ModelSettings::HopeDgnGlobal(settings) = &config.settings else { panic!("another model") };
    GlobalHopeDgn::new(settings, &config.common, FeatureWidths::default(), seed).unwrap()
}

/// All pairs of `stream`, in lexicographic order.
fn all_pairs(model: &GlobalHopeDgn, stream: &EventStream) -> GlobalInput {
    let nodes = nodes(stream);
    let query = |&src: &NodeId| nodes.iter().map(move |&dst| PairQuery { src, dst, time: NOW });
    let queries: Vec<PairQuery> = nodes.iter().flat_map(query).collect();
    let store = Store::build(stream).unwrap();
    GlobalInput::of(model.global_layout(), &FeatureTables::of(stream).unwrap(), &store, &queries).unwrap()
}

/// Their embeddings.
fn embeddings((model, parameters): &(GlobalHopeDgn, Parameters), stream: &EventStream) -> Vec<Vec<f32>> {
    let mut tape = Tape::frozen(parameters, Threads::Caller);
    let pairs = model.embed(&mut tape, &all_pairs(model, stream), Dropout::NONE).unwrap();
    let width = tape.shape(pairs).cols();
    tape.read(pairs).unwrap().chunks_exact(width).map(<[f32]>::to_vec).collect()
}

/// The classes of all pairs after `n_rounds` rounds of 2-DWL, in the same order.
fn colours(stream: &EventStream, n_rounds: Option<usize>) -> Vec<u32> {
    let graph = Graph::new(stream, &Reading { until: Some(NOW), ..Reading::default() }).unwrap();
    let test = Dwl { max_rounds: n_rounds, ..Dwl::new(2).unwrap() };
    test.color(&graph).unwrap().classes(0).to_vec()
}

/// Proposition 4, layer by layer, to the last bit: after as many rounds as the model has layers, on 2,000 streams.
#[test]
fn pairs_of_one_colour_have_one_embedding() {
    let n_equal: usize = (0..2000_u64).into_par_iter().map(pairs_of_one_colour).sum();
    assert!(n_equal > 20_000, "{n_equal} pairs were compared");
}

/// Compares all pairs of one colour on a stream, and says how many there were.
fn pairs_of_one_colour(seed: u64) -> usize {
    let stream = if seed % 4 < 2 { stream(seed) } else { EventStream::from_events(doubled(seed)).unwrap() };
    let n_layers = 1 + usize::try_from(seed % 3).unwrap();
    let blocks = format!("n-blocks={n_layers}");
    let replacing = if seed.is_multiple_of(2) { "replacing=all" } else { "replacing=met" };
    let model = global(&["d-out=8", "d-mite=6", "d-time=4", &blocks, replacing], seed);
    let (colours, embeddings) = (colours(&stream, Some(n_layers)), embeddings(&model, &stream));
    assert_eq!(colours.len(), embeddings.len());
    let (mut first, mut n_equal) = (HashMap::new(), 0);
    for (colour, embedding) in colours.into_iter().zip(&embeddings) {
        let other: &mut &Vec<f32> = first.entry(colour).or_insert(embedding);
        assert_eq!(*other, embedding, "stream {seed}, {n_layers} layers");
        n_equal += 1;
    }
    n_equal - first.len()
}

/// Proposition 5, measured: with as many layers as 2-DWL needs rounds, of all pairs of classes of 1,000 streams.
#[test]
#[expect(clippy::print_stdout, reason = "the rate is what is measured")]
fn pairs_of_different_colours_nearly_always_have_different_embeddings() {
    let of_stream: Vec<(usize, Vec<[usize; 2]>)> = (0..1000).into_par_iter().map(pairs_of_different_colours).collect();
    let n_all: usize = of_stream.iter().map(|(n, _)| n).sum();
    let failing: Vec<_> =
        (0..).zip(&of_stream).flat_map(|(seed, (_, failing))| failing.iter().map(move |pairs| (seed, pairs))).collect();
    let rate = 1.0 - failing.len() as f64 / n_all as f64;
    println!("separated {rate:.6} of {n_all} pairs of classes; not separated (stream, [pair, pair]): {failing:?}");
    assert!(n_all > 100_000 && rate > 0.999, "{rate} of {n_all}, {failing:?}");
}

/// How many pairs of classes a stream has, and the first pairs of those that no draw of the weights separates.
fn pairs_of_different_colours(seed: u64) -> (usize, Vec<[usize; 2]>) {
    let stream = stream(seed);
    let graph = Graph::new(&stream, &Reading { until: Some(NOW), ..Reading::default() }).unwrap();
    let coloring = Dwl::new(2).unwrap().color(&graph).unwrap();
    let blocks = format!("n-blocks={}", coloring.rounds().max(1));
    let mut firsts: Vec<usize> = Vec::new();
    let classes = coloring.classes(0);
    for (at, class) in classes.iter().enumerate() {
        if firsts.iter().all(|&first| classes[first] != *class) {
            firsts.push(at);
        }
    }
    let mut failing: Vec<[usize; 2]> =
        firsts.iter().enumerate().flat_map(|(at, &one)| firsts[..at].iter().map(move |&other| [one, other])).collect();
    let n_all = failing.len();
    for draw in 1..=3 {
        if failing.is_empty() {
            break;
        }
        let (model, mut parameters) = global(&["d-out=32", "d-mite=16", &blocks], draw);
        expressivity::spread(ModelName::HopeDgnGlobal, &mut parameters);
        let pairs = embeddings(&(model, parameters), &stream);
        failing.retain(|&[one, other]| expressivity::furthest(&pairs[one], &pairs[other]) <= DIFFERENT);
    }
    (n_all, failing)
}

/// Proposition 2 of the models that represent nodes one by one, on 2,000 streams without simultaneous events of one node, side
/// by side by 25. Memories keep one message of several simultaneous events, and which one is a matter of the file; those
/// without a memory are tried on 2,000 streams with such events as well.
///
/// Nobody meets himself: the store has such an event twice in its node's list, and 1-DWL once.
#[test]
fn nodes_of_one_colour_are_one_to_models_of_nodes() {
    let subjects: Vec<Subject> =
        expressivity::subjects().unwrap().into_iter().filter(|subject| subject.bound == Some(Bound::One)).collect();
    assert_eq!(subjects.len(), 6);
    let school = School::new(0).unwrap();
    let n_equal: usize = (0..80_u64)
        .into_par_iter()
        .map(|part| {
            let seeds = || 25 * part..25 * (part + 1);
            let streams = [side_by_side(seeds().map(doubled)), side_by_side(seeds().map(|seed| tied(seed, false)))];
            let mut n_equal = 0;
            for subject in &subjects {
                let ready = school.drawn(subject, part).unwrap();
                let has_memory = [ModelName::Jodie, ModelName::DyRep, ModelName::Tgn].contains(&subject.config.name());
                for stream in &streams[..if has_memory { 1 } else { 2 }] {
                    n_equal += nodes_of_one_colour(stream, subject, &ready);
                }
            }
            n_equal
        })
        .sum();
    assert!(n_equal > 40_000, "{n_equal} nodes were compared");
}

/// Compares all nodes of one colour, as a source and as a destination, and says how many there were.
fn nodes_of_one_colour(stream: &EventStream, subject: &Subject, ready: &expressivity::Ready) -> usize {
    let graph = Graph::new(stream, &Reading { until: Some(NOW), ..Reading::default() }).unwrap();
    let colours = Dwl::new(1).unwrap().color(&graph).unwrap().node_classes(0);
    let nodes = nodes(stream);
    let both =
        |&node: &NodeId| [(node, nodes[0]), (nodes[0], node)].map(|(src, dst)| PairQuery { src, dst, time: NOW });
    let logits = expressivity::logits(stream, ready, &nodes.iter().flat_map(both).collect::<Vec<_>>()).unwrap();
    let mut first = HashMap::new();
    for (colour, logits) in colours.iter().zip(logits.chunks_exact(2)) {
        let other: &mut &[f32] = first.entry(*colour).or_insert(logits);
        let off = expressivity::furthest(other, logits);
        assert!(off < EQUAL, "{}: {other:?} {logits:?}", subject.name);
    }
    nodes.len() - first.len()
}

/// JODIE sets gaps against what is usual in the stream that it learns from, for sources and for destinations. Taken from each
/// graph itself, that is a number of the whole graph and of the direction of its events, and tells apart what 1-DWL does not.
#[test]
fn jodie_sees_beyond_1_dwl_only_if_each_graph_is_its_own_measure() {
    let families = expressivity::families(1, 0).unwrap();
    let case = &families.iter().find(|family| family.name == "triangles-order").unwrap().cases[0];
    let subjects = expressivity::subjects().unwrap();
    let jodie = subjects.iter().find(|subject| subject.config.name() == ModelName::Jodie).unwrap();
    assert_eq!(expressivity::dwl(case).unwrap()[0], None);
    let ready = School::new(0).unwrap().drawn(jodie, 0).unwrap();
    assert!(!expressivity::separates(case, [&ready].into_iter(), expressivity::TOLERANCE).unwrap());

    let (model, parameters) = model::build(&jodie.config, FeatureWidths::default(), 0).unwrap();
    let weights = Weights::new(&Device::cpu(), parameters).unwrap();
    let own_measure = |stream: &EventStream| {
        let (store, tables) = (Store::build(stream).unwrap(), FeatureTables::of(stream).unwrap());
        let events: Vec<EventId> = stream.ids().collect();
        let mut memory = Memory::new(&Device::cpu(), model.memory().unwrap(), stream, &events).unwrap();
        let query = PairQuery { src: NodeId(0), dst: NodeId(1), time: case.until };
        let simultaneous = events.chunk_by(|&one, &other| store.time(one) == store.time(other));
        let mut scorer = PairScorer::new(&*model, &tables, &store);
        for events in simultaneous {
            scorer.logits_with(&weights, &PairQuery::of(stream, events), &mut memory, events).unwrap();
        }
        scorer.logits_with(&weights, &[query], &mut memory, &[]).unwrap()
    };
    assert!(expressivity::furthest(&own_measure(&case.a), &own_measure(&case.b)) > expressivity::TOLERANCE);
}

#[test]
fn too_many_pairs_are_refused_beforehand() {
    let check = |settings: &[&str], events: Events| {
        let layout = global(&[&["d-out=32"], settings].concat(), 0).0.global_layout();
        layout.check(&Store::build(&EventStream::from_events(events).unwrap()).unwrap())
    };
    let ring = |n: u32| -> Events { (0..n).map(|i| (i, (i + 1) % n, f64::from(i))).collect() };
    assert!(check(&["n-blocks=2"], ring(400)).is_ok() && check(&["n-blocks=1"], ring(100_000)).is_ok());
    let message = check(&["n-blocks=2"], ring(2000)).unwrap_err().to_string();
    assert!(message.contains("the pairs of 2000 nodes would take") && message.contains("model.n-blocks"), "{message}");
    assert!(check(&["n-blocks=3"], ring(400)).is_err());
    // Where only those count whom one of the two met, it depends on who met whom.
    let star = |n: u32| -> Events { (2..n).flat_map(|i| [(0, i, f64::from(i)), (1, i, f64::from(i))]).collect() };
    assert!(check(&["n-blocks=3", "replacing=met"], ring(2000)).is_ok());
    assert!(check(&["n-blocks=2", "replacing=met"], star(100)).is_ok());
    let message = check(&["n-blocks=2", "replacing=met"], star(2000)).unwrap_err().to_string();
    assert!(message.contains("would take"), "{message}");
}

/// Proposition 3 on the figures of the paper, both sides of 2-DWL, and what is lost by going local.
#[test]
fn the_examples_come_out_as_the_paper_says() {
    let (families, subjects) = (expressivity::families(1, 0).unwrap(), expressivity::subjects().unwrap());
    let school = School::new(0).unwrap();
    let separates = |family: &str, subject: &str| {
        let family = families.iter().find(|one| one.name == family).unwrap();
        let subject = subjects.iter().find(|one| one.name == subject).unwrap();
        let ready: Vec<expressivity::Ready> = (0..3).map(|seed| school.drawn(subject, seed).unwrap()).collect();
        expressivity::separates(&family.cases[0], ready.iter(), expressivity::TOLERANCE).unwrap()
    };
    for figure in ["figure-1", "proof-figure", "triadic"] {
        for subject in ["hopedgn", "hopedgn-global", "hopedgn-global, met", "tgat + MITE", "graphmixer + MITE"] {
            assert!(separates(figure, subject), "{subject} on {figure}");
        }
        assert!(!separates(figure, "tgat") && !separates(figure, "graphmixer"), "{figure}");
    }
    for (graphs, expected) in [("rings", true), ("triangles", true), ("triangles-order", true), ("rook", false)] {
        assert_eq!(separates(graphs, "hopedgn-global"), expected, "{graphs}");
    }
    for pairs in ["path-3", "path-4", "path-5", "long-ago"] {
        assert!(separates(pairs, "hopedgn-global") && !separates(pairs, "hopedgn"), "{pairs}");
    }
    assert!(separates("path-4", "hopedgn-global, met") && !separates("path-5", "hopedgn-global, met"));
    assert!(!separates("copies", "hopedgn-global") && !separates("copies-turned", "hopedgn-global"));
}

/// Weights that were learned see no more than the propositions allow.
#[test]
fn training_goes_beyond_no_bound() {
    let (families, subjects) = (expressivity::families(1, 0).unwrap(), expressivity::subjects().unwrap());
    let school = School::new(0).unwrap();
    for name in ["tgat", "tgn", "hopedgn"] {
        let subject = subjects.iter().find(|one| one.name == name).unwrap();
        let (ready, training) = school.taught(subject, 0).unwrap();
        assert!(training.last_loss < training.first_loss, "{training:?}");
        for family in families.iter().filter(|family| family.cases[0].a.len() <= 48) {
            let case = &family.cases[0];
            let is_told = expressivity::dwl(case).unwrap()[subject.bound.unwrap().k() - 1].is_some();
            // A memory sees the order of simultaneous events.
            let is_excused = case.has_ties() && name == "tgn";
            if !is_told && !is_excused {
                assert!(
                    !expressivity::separates(case, [&ready].into_iter(), expressivity::TOLERANCE).unwrap(),
                    "{name} on {}",
                    family.name
                );
            }
        }
    }
}

#[test]
#[expect(clippy::cast_possible_truncation, reason = "a small step")]
fn the_loss_of_global_hopedgn_changes_as_its_gradient_says() {
    let stream = stream(3);
    for more in [["n-blocks=1", "pair-start=features"], ["n-blocks=3", "pair-start=types"]] {
        let (model, parameters) = global(&[&["d-out=6", "d-mite=5", "d-time=4"][..], &more].concat(), 4);
        let input = all_pairs(&model, &stream);
        let targets: Vec<f32> = (0..input.queried.len()).map(|at| f32::from(u8::from(at % 3 == 0))).collect();
        let loss = |parameters: &Parameters| {
            let mut tape = Tape::new(parameters);
            let logits = model.pair_logits(&mut tape, &input, Dropout::NONE).unwrap();
            let loss = tape.bce_with_logits(logits, &targets, targets.len()).unwrap();
            let value = f64::from(tape.read(loss).unwrap()[0]);
            let mut gradients = Gradients::zeros(parameters);
            tape.backward(loss, &mut gradients).unwrap();
            (value, gradients)
        };
        let gradients = loss(&parameters).1;
        for (id, name, _) in parameters.iter() {
            let slopes = gradients.parameter(id).values();
            let square: f64 = slopes.iter().map(|&slope| f64::from(slope).powi(2)).sum();
            let moved = |step: f64| {
                let mut moved = parameters.clone();
                for (weight, slope) in moved.get_mut(id).values_mut().iter_mut().zip(slopes) {
                    *weight += (step / square.sqrt()) as f32 * slope;
                }
                loss(&moved).0
            };
            let slope = (moved(3e-3) - moved(-3e-3)) / 6e-3;
            // Roundings of a loss near 1 by some 6e-8, divided by the step; and the curvature.
            assert!((slope - square.sqrt()).abs() < 2e-2 * square.sqrt() + 1e-4, "{name}: {slope} {}", square.sqrt());
        }
    }
}
