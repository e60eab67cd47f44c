//! Deterministic force-directed layout.

use crate::event::NodeId;
use crate::svg::Point;
use crate::wl::graph::Graph;

/// Iterations of the spring model, each O(n²) for the repulsion.
const ROUNDS: usize = 400;
/// Attraction to the center per distance.
const GRAVITY: f64 = 1.5;
/// Above this many nodes the circular layout is kept.
const MAX_FORCE_DIRECTED: usize = 300;

/// A position for every node, coordinates between 0 and 1.
pub(super) fn layout(graph: &Graph) -> Vec<Point> {
    let n = graph.n_nodes();
    let mut positions: Vec<Point> = circle(n, &walk(graph));
    if n > 2 && n <= MAX_FORCE_DIRECTED {
        spring(graph, &mut positions);
    }
    fitted(positions)
}

/// Nodes in depth-first order, so that a ring lies on the circle as a ring.
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
            let neighbors = graph.neighbors(node).iter().rev().map(|&(neighbor, _)| neighbor);
            stack.extend(neighbors.filter(|neighbor| !seen[neighbor.index()]));
        }
    }
    order
}

fn circle(n: usize, order: &[usize]) -> Vec<Point> {
    let mut positions = vec![[0.0; 2]; n];
    for (position, &node) in order.iter().enumerate() {
        let angle = std::f64::consts::TAU * (position as f64 / n as f64 - 0.25);
        positions[node] = [angle.cos(), angle.sin()];
    }
    positions
}

/// Fruchterman and Reingold: neighbors attract with d²/l, all nodes repel with l²/d, step sizes shrink.
fn spring(graph: &Graph, positions: &mut [Point]) {
    let n = positions.len();
    let length = 1.8 / (n as f64).sqrt();
    for round in 0..ROUNDS {
        let step = 0.12 * (1.0 - round as f64 / ROUNDS as f64) + 0.001;
        let mut forces = vec![[0.0f64; 2]; n];
        for u in 0..n {
            for v in 0..u {
                let (dx, dy) = (positions[u][0] - positions[v][0], positions[u][1] - positions[v][1]);
                let squared = (dx * dx + dy * dy).max(1e-4);
                let push = length * length / squared;
                add(&mut forces, u, v, [dx * push, dy * push]);
            }
            let node = NodeId::from_index(u).expect("a node of a stream");
            for v in graph.neighbors(node).iter().map(|&(v, _)| v.index()).filter(|&v| v < u) {
                let (dx, dy) = (positions[u][0] - positions[v][0], positions[u][1] - positions[v][1]);
                let pull = -(dx * dx + dy * dy).sqrt() / length;
                add(&mut forces, u, v, [dx * pull, dy * pull]);
            }
        }
        for (position, force) in positions.iter_mut().zip(&forces) {
            // A weak attraction to the center keeps separate components on the page.
            let force = [force[0] - GRAVITY * position[0], force[1] - GRAVITY * position[1]];
            let size = (force[0] * force[0] + force[1] * force[1]).sqrt().max(1e-9);
            let scale = size.min(step) / size;
            *position = [position[0] + force[0] * scale, position[1] + force[1] * scale];
        }
    }
}

fn add(forces: &mut [Point], u: usize, v: usize, force: Point) {
    for axis in 0..2 {
        forces[u][axis] += force[axis];
        forces[v][axis] -= force[axis];
    }
}

/// Centers and scales uniformly into the unit square.
fn fitted(mut positions: Vec<Point>) -> Vec<Point> {
    let bound = |axis: usize, pick: fn(f64, f64) -> f64, start: f64| {
        positions.iter().map(|position| position[axis]).fold(start, pick)
    };
    let low = [0, 1].map(|axis| bound(axis, f64::min, f64::INFINITY));
    let high = [0, 1].map(|axis| bound(axis, f64::max, f64::NEG_INFINITY));
    let span = (high[0] - low[0]).max(high[1] - low[1]).max(1e-9);
    for position in &mut positions {
        for axis in 0..2 {
            let middle = f64::midpoint(low[axis], high[axis]);
            position[axis] = 0.5 + (position[axis] - middle) / span;
        }
    }
    positions
}
