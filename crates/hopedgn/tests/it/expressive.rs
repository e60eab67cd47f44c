//! The paper's propositions on random small streams: what equal colours say of embeddings, and what different ones do.

use ctdg::event::{EventStream, NodeId};
use ctdg::mite::PairQuery;
use ctdg::random::Stream;
use ctdg::store::Store;
use ctdg::wl::{Dwl, Graph, Reading};
use hopedgn::config::{Config, ModelConfig, ModelName};
use hopedgn::encode::{FeatureTables, FeatureWidths, GlobalInput};
use hopedgn::lab::{self, LabConfig};
use hopedgn::model::{self, GlobalHopeDgn};
use hopedgn_tensor::{Device, Dropout, Gradients, Parameters, Tape, Threads, Weights};

/// Values that should be equal, in units of the largest: their sums are of the same terms in another order, of up to
/// eight nodes and three layers, which moves an `f32` by a few roundings of 6e-8 each.
const EQUAL: f32 = 5e-6;

/// Values that differ by more are different.
const DIFFERENT: f32 = 1e-5;

/// Few nodes that meet often at few times, so that many pairs look alike. All of them meet somebody.
fn stream(seed: u64) -> EventStream {
    let mut random = Stream::named(seed, "expressive");
    let n_nodes = 4 + random.below(5);
    let n_events = n_nodes + random.below(5);
    let n_times = 1 + random.below(3);
    let mut events: Vec<(u32, u32, f64)> = Vec::new();
    for i in 0..n_events {
        let u = if i < n_nodes { i } else { random.below(n_nodes) };
        // Neighbours on a ring mostly: symmetric graphs have large classes. Sometimes a node meets itself.
        let step = if random.chance(0.7) { 1 } else { random.below(n_nodes) };
        events.push((u, (u + step) % n_nodes, f64::from(1 + random.below(n_times))));
    }
    events.sort_by(|one, other| one.2.total_cmp(&other.2));
    EventStream::from_events(events).unwrap()
}

/// A random stream of four nodes, each of which becomes two: every event becomes two, between the first and the first and
/// between the second and the second, or crossed. Both halves of a node see the same, to any depth.
fn doubled(seed: u64) -> EventStream {
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
    EventStream::from_events(events).unwrap()
}

/// After all events.
const NOW: f64 = 4.0;

fn nodes(stream: &EventStream) -> Vec<NodeId> {
    (0..stream.n_nodes()).filter_map(NodeId::from_index).collect()
}

fn global(settings: &[&str], seed: u64) -> (GlobalHopeDgn, Parameters) {
    let settings: Vec<String> = settings.iter().map(|setting| format!("model.{setting}")).collect();
    let config = Config::resolve(ModelName::HopedgnGlobal, &[], &settings).unwrap().model;
    GlobalHopeDgn::new(&config, FeatureWidths::default(), seed).unwrap()
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

/// Proposition 4, layer by layer: after as many rounds as the model has layers.
#[test]
fn pairs_of_one_colour_have_one_embedding() {
    let (mut n_equal, mut furthest) = (0, 0.0_f32);
    for seed in 0..1500 {
        let stream = if seed % 4 < 2 { stream(seed) } else { doubled(seed) };
        let n_layers = 1 + usize::try_from(seed % 3).unwrap();
        let blocks = format!("n-blocks={n_layers}");
        let replacing = if seed % 2 == 0 { "replacing=all" } else { "replacing=met" };
        let model = global(&["d-out=8", "d-mite=6", "d-time=4", &blocks, replacing], seed);
        let (colours, embeddings) = (colours(&stream, Some(n_layers)), embeddings(&model, &stream));
        assert_eq!(colours.len(), embeddings.len());
        for one in 0..colours.len() {
            // One of the same colour is enough: equality is carried on.
            let Some(other) = (0..one).rev().find(|&other| colours[other] == colours[one]) else { continue };
            n_equal += 1;
            furthest = furthest.max(lab::furthest(&embeddings[one], &embeddings[other]));
        }
    }
    assert!(n_equal > 15_000, "{n_equal} pairs were compared");
    assert!(furthest < EQUAL, "{furthest}, of {n_equal}");
}

/// Proposition 5, measured: with as many layers as 2-DWL needs rounds, of all pairs of classes of a stream.
#[test]
#[expect(clippy::print_stdout, reason = "the rate is what is measured")]
fn pairs_of_different_colours_nearly_always_have_different_embeddings() {
    let (mut n_all, mut failing) = (0, Vec::new());
    for seed in 0..300 {
        let stream = stream(seed);
        let graph = Graph::new(&stream, &Reading { until: Some(NOW), ..Reading::default() }).unwrap();
        let coloring = Dwl::new(2).unwrap().color(&graph).unwrap();
        let blocks = format!("n-blocks={}", coloring.rounds().max(1));
        let draws = [1, 2, 3].map(|draw| {
            let (model, mut parameters) = global(&["d-out=32", "d-mite=16", &blocks], draw);
            lab::spread(&mut parameters);
            embeddings(&(model, parameters), &stream)
        });
        let classes = coloring.classes(0);
        let first = |class: u32| classes.iter().position(|&other| other == class);
        let firsts: Vec<usize> = (0..u32::try_from(coloring.n_classes()).unwrap()).filter_map(first).collect();
        for (at, &one) in firsts.iter().enumerate() {
            for &other in &firsts[..at] {
                n_all += 1;
                if draws.iter().all(|pairs| lab::furthest(&pairs[one], &pairs[other]) <= DIFFERENT) {
                    failing.push((seed, one, other));
                }
            }
        }
    }
    let rate = 1.0 - failing.len() as f64 / f64::from(n_all);
    println!("separated {rate:.6} of {n_all} pairs of classes; not separated (stream, pair, pair): {failing:?}");
    assert!(n_all > 5_000 && rate > 0.999, "{rate} of {n_all}, {failing:?}");
}

/// Proposition 2 of the models that represent nodes one by one: pairs whose nodes have equal colours of 1-DWL.
#[test]
fn nodes_of_one_colour_are_one_to_models_of_nodes() {
    let subjects: Vec<ModelConfig> = lab::subjects()
        .unwrap()
        .into_iter()
        .filter(|subject| subject.is_of_nodes)
        .map(|subject| subject.config)
        .collect();
    assert_eq!(subjects.len(), 6);
    let mut n_equal = 0;
    for seed in 0..200 {
        let stream = doubled(seed);
        let graph = Graph::new(&stream, &Reading { until: Some(NOW), ..Reading::default() }).unwrap();
        let colours = Dwl::new(1).unwrap().color(&graph).unwrap().node_classes(0);
        let nodes = nodes(&stream);
        let alike: Vec<(NodeId, NodeId)> = nodes
            .iter()
            .flat_map(|&one| nodes.iter().map(move |&other| (one, other)))
            .filter(|(one, other)| one < other && colours[one.index()] == colours[other.index()])
            .collect();
        let queries: Vec<PairQuery> = alike
            .iter()
            .flat_map(|&(one, other)| [one, other].map(|src| PairQuery { src, dst: nodes[0], time: NOW }))
            .collect();
        if queries.is_empty() {
            continue;
        }
        let tables = FeatureTables::of(&stream).unwrap();
        for config in &subjects {
            let (model, parameters) = model::build(config, tables.widths(), seed).unwrap();
            let weights = Weights::new(&Device::cpu(), parameters).unwrap();
            let logits = lab::logits(&stream, &tables, &*model, &weights, &queries).unwrap();
            for pair in logits.chunks_exact(2) {
                n_equal += 1;
                let off = lab::furthest(&pair[..1], &pair[1..]);
                assert!(off < EQUAL, "{} on stream {seed}: {pair:?}", config.name.as_str());
            }
        }
    }
    assert!(n_equal > 1_000, "{n_equal} pairs were compared");
}

#[test]
fn too_many_pairs_are_refused_beforehand() {
    let layers = |n: &str| global(&["d-out=32", n], 0).0.global_layout();
    assert!(layers("n-blocks=2").check_nodes(400).is_ok() && layers("n-blocks=1").check_nodes(100_000).is_ok());
    let message = layers("n-blocks=2").check_nodes(2000).unwrap_err().to_string();
    assert!(message.contains("the pairs of 2000 nodes would take") && message.contains("model.n-blocks"), "{message}");
    assert!(layers("n-blocks=3").check_nodes(400).is_err());
}

/// Proposition 3 on the figures of the paper, and both sides of 2-DWL on graphs that it separates or not.
#[test]
fn the_examples_come_out_as_the_paper_says() {
    let config = LabConfig { n_cases: 1, ..LabConfig::default() };
    let (families, subjects) = (lab::families(1, 0).unwrap(), lab::subjects().unwrap());
    let separates = |family: &str, subject: &str| {
        let family = families.iter().find(|one| one.name == family).unwrap();
        let subject = subjects.iter().find(|one| one.name == subject).unwrap();
        lab::separates(&family.cases[0], &subject.config, &config).unwrap()
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
    assert!(!separates("copies", "hopedgn-global") && !separates("copies-turned", "hopedgn-global"));
}

#[test]
#[expect(clippy::cast_possible_truncation, reason = "a small step")]
fn the_loss_of_global_hopedgn_changes_as_its_gradient_says() {
    let stream = stream(3);
    for more in [["n-blocks=1", "pair-start=features"], ["n-blocks=3", "pair-start=types"]] {
        let (model, parameters) = global(&[&["d-out=6", "d-mite=5", "d-time=4"][..], &more].concat(), 4);
        let input = all_pairs(&model, &stream);
        let targets: Vec<f32> = (0..input.asked.len()).map(|at| f32::from(u8::from(at % 3 == 0))).collect();
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
            let slope = (moved(1e-2) - moved(-1e-2)) / 2e-2;
            // Roundings of a loss near 1 by 6e-8, divided by the step; and the curvature.
            assert!((slope - square.sqrt()).abs() < 2e-2 * square.sqrt() + 3e-5, "{name}: {slope} {}", square.sqrt());
        }
    }
}
