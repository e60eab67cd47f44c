//! Costs against the number of events, as a chart.

use hopedgn::chart::{Axis, Chart, Key, Mark, N_SERIES, Size as Format};
use hopedgn::fmt::grouped;

use super::Size;

/// Name and microseconds of a cost for each history, pair or event.
type Cost = (&'static str, fn(&Size) -> f64);

const COSTS: [Cost; 5] = [
    ("load and build, an event", |size| 1e6 * (size.load_seconds + size.build_seconds) / size.events as f64),
    ("sample, a history", |size| 1e6 / size.histories_per_second),
    ("encode, a pair", |size| 1e6 / size.pairs_per_second),
    ("evaluate, an event", |size| 1e6 * size.evaluate_seconds_per_event()),
    ("train, a step", |size| 1e6 * size.seconds_per_step),
];

/// A line for each cost and number of nodes: a colour for each cost, a look for each number of nodes.
pub(super) fn draw(sizes: &[Size]) -> String {
    let mut nodes: Vec<usize> = sizes.iter().map(|size| size.nodes).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let mut events: Vec<f64> = sizes.iter().map(|size| size.events as f64).collect();
    events.sort_unstable_by(f64::total_cmp);
    events.dedup();
    let (mut legend, mut marks, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for (colour, (name, cost)) in COSTS.iter().enumerate() {
        legend.push(Key::line(colour, *name));
        for (look, &n_nodes) in nodes.iter().enumerate() {
            let series = colour + look * N_SERIES;
            let mut of_nodes: Vec<&Size> = sizes.iter().filter(|size| size.nodes == n_nodes).collect();
            of_nodes.sort_unstable_by_key(|size| size.events);
            let points: Vec<[f64; 2]> = of_nodes.iter().map(|size| [size.events as f64, cost(size)]).collect();
            values.extend(points.iter().map(|[_, value]| *value).filter(|value| *value > 0.0));
            marks.extend(points.iter().map(|&at| Mark::Dot { series, at, is_large: false }));
            marks.push(Mark::Line { series, points });
        }
    }
    if let [_, others @ ..] = &nodes[..] {
        let names = others.iter().enumerate().map(|(look, nodes)| (look + 1, nodes));
        legend.extend(names.map(|(look, nodes)| Key::line(look * N_SERIES, format!("{} nodes", grouped(*nodes)))));
    }
    let least = nodes.first().map_or(0, |nodes| *nodes);
    let x = Axis::log_of(&events).labelled(|value| Some(format!("{value:e}"))).titled("events");
    let title = format!("µs each; {} nodes where not said otherwise", grouped(least));
    Chart { title, size: Format::Square, x, y: Axis::log_around(&values), legend, marks }.standalone()
}
