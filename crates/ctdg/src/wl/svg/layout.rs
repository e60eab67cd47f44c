//! Where the nodes go: springs and repulsion from a fixed start, so that one graph is always drawn one way.

use crate::event::NodeId;
use crate::svg::Point;
use crate::wl::graph::Graph;

/// Rounds of the spring model. Each costs n² for the repulsion.
const ROUNDS: usize = 400;
/// Pull of the middle, as a multiple of the distance to it.
const GRAVITY: f64 = 1.5;
/// Above this many nodes the circle is kept: springs would take too long and show nothing.
const MOST_SPRUNG: usize = 300;

/// A place for every node.
pub(super) fn layout(graph: &Graph) -> Vec<Point> {
    let n = graph.n_nodes();
    let mut places: Vec<Point> = circle(n, &walk(graph));
    if n > 2 && n <= MOST_SPRUNG {
        spring(graph, &mut places);
    }
    fitted(places)
}

/// Nodes in order of a walk that prefers neighbours, so that a ring lies on the circle as a ring.
fn walk(graph: &Graph) -> Vec<usize> {
    let n = graph.n_nodes();
    let (mut order, mut seen) = (Vec::with_capacity(n), vec![false; n]);
    for start in (0..n).filter_map(NodeId::from_index) {
        let mut stack = vec![start];
        while let Some(node) = stack.pop() {
            if std::mem::replace(&mut seen[node.index()], true) {
                continue;
            }
            order.push(node.index());
            let neighbours = graph.neighbours(node).iter().rev().map(|&(neighbour, _)| neighbour);
            stack.extend(neighbours.filter(|neighbour| !seen[neighbour.index()]));
        }
    }
    order
}

fn circle(n: usize, order: &[usize]) -> Vec<Point> {
    let mut places = vec![[0.0; 2]; n];
    for (place, &node) in order.iter().enumerate() {
        let angle = std::f64::consts::TAU * (place as f64 / n as f64 - 0.25);
        places[node] = [angle.cos(), angle.sin()];
    }
    places
}

/// Fruchterman and Reingold: neighbours pull with d²/l, all push with l²/d, steps shrink.
fn spring(graph: &Graph, places: &mut [Point]) {
    let n = places.len();
    let length = 1.8 / (n as f64).sqrt();
    for round in 0..ROUNDS {
        let step = 0.12 * (1.0 - round as f64 / ROUNDS as f64) + 0.001;
        let mut forces = vec![[0.0f64; 2]; n];
        for u in 0..n {
            for v in 0..u {
                let (dx, dy) = (places[u][0] - places[v][0], places[u][1] - places[v][1]);
                let squared = (dx * dx + dy * dy).max(1e-4);
                let push = length * length / squared;
                add(&mut forces, u, v, [dx * push, dy * push]);
            }
            let node = NodeId::from_index(u).expect("a node of a stream");
            for v in graph.neighbours(node).iter().map(|&(v, _)| v.index()).filter(|&v| v < u) {
                let (dx, dy) = (places[u][0] - places[v][0], places[u][1] - places[v][1]);
                let pull = -(dx * dx + dy * dy).sqrt() / length;
                add(&mut forces, u, v, [dx * pull, dy * pull]);
            }
        }
        for (place, force) in places.iter_mut().zip(&forces) {
            // A weak pull to the middle keeps parts that never met on the page.
            let force = [force[0] - GRAVITY * place[0], force[1] - GRAVITY * place[1]];
            let size = (force[0] * force[0] + force[1] * force[1]).sqrt().max(1e-9);
            let scale = size.min(step) / size;
            *place = [place[0] + force[0] * scale, place[1] + force[1] * scale];
        }
    }
}

fn add(forces: &mut [Point], u: usize, v: usize, force: Point) {
    for axis in 0..2 {
        forces[u][axis] += force[axis];
        forces[v][axis] -= force[axis];
    }
}

/// Moved and scaled evenly into the unit square, centred.
fn fitted(mut places: Vec<Point>) -> Vec<Point> {
    let bound =
        |axis: usize, pick: fn(f64, f64) -> f64, start: f64| places.iter().map(|place| place[axis]).fold(start, pick);
    let low = [0, 1].map(|axis| bound(axis, f64::min, f64::INFINITY));
    let high = [0, 1].map(|axis| bound(axis, f64::max, f64::NEG_INFINITY));
    let span = (high[0] - low[0]).max(high[1] - low[1]).max(1e-9);
    for place in &mut places {
        for axis in 0..2 {
            let middle = f64::midpoint(low[axis], high[axis]);
            place[axis] = 0.5 + (place[axis] - middle) / span;
        }
    }
    places
}
