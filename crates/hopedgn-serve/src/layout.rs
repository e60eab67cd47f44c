//! Where to draw the nodes of a small graph: a force-directed layout.
//!
//! Nodes repel each other and edges pull their ends together (Fruchterman and Reingold, 1991). Repulsion between distant nodes is that of the
//! centres of a coarse grid's cells, so that a step costs O(n · cells) instead of O(n²): 2,000 nodes take some tens of milliseconds.

/// Steps of the layout; each moves nodes less far than the one before.
const STEPS: usize = 80;
/// Cells of the grid along each axis.
const CELLS: usize = 12;

type Point = [f32; 2];

/// Positions of `n` nodes between −1 and 1. The first `fixed.len()` nodes stay where they are. Equal graphs have equal layouts.
pub(crate) fn layout(n: usize, fixed: &[Point], edges: &[(usize, usize)]) -> Vec<Point> {
    let mut at: Vec<Point> = (0..n).map(|node| fixed.get(node).copied().unwrap_or_else(|| spiral(node, n))).collect();
    if n > fixed.len() {
        let (ideal, weights) = (0.9 * (4.0 / n as f32).sqrt(), weights(n, edges));
        for step in 0..STEPS {
            let limit = 0.2 * (1.0 - step as f32 / STEPS as f32);
            let forces = forces(&at, edges, &weights, ideal);
            for (point, force) in at.iter_mut().zip(forces).skip(fixed.len()) {
                let length = force[0].hypot(force[1]).max(1e-9);
                let scale = length.min(limit) / length;
                point[0] += force[0] * scale;
                point[1] += force[1] * scale;
            }
        }
    }
    fit(&mut at);
    at
}

/// How much each edge pulls: between two nodes with many edges less, otherwise they would all be drawn in one heap.
fn weights(n: usize, edges: &[(usize, usize)]) -> Vec<f32> {
    let mut degrees = vec![0_u32; n];
    for &(a, b) in edges {
        degrees[a] += 1;
        degrees[b] += 1;
    }
    edges.iter().map(|&(a, b)| 1.0 / (degrees[a].min(degrees[b]) as f32).sqrt()).collect()
}

/// Points of a sunflower: evenly spread, no two at one place.
fn spiral(node: usize, n: usize) -> Point {
    let radius = ((node as f32 + 0.5) / n as f32).sqrt();
    let angle = node as f32 * 2.399_963;
    [radius * angle.cos(), radius * angle.sin()]
}

/// A cell of the grid: how many nodes it has, and the sum of their positions.
#[derive(Clone, Copy, Default)]
struct Cell {
    n: f32,
    sum: Point,
}

fn forces(at: &[Point], edges: &[(usize, usize)], weights: &[f32], ideal: f32) -> Vec<Point> {
    let reach = at.iter().flatten().fold(1e-6_f32, |reach, x| reach.max(x.abs()));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the number of cells")]
    let axis = |x: f32| (((x / reach + 1.0) * (CELLS as f32 / 2.0)) as usize).min(CELLS - 1);
    let cell_of = |point: &Point| axis(point[0]) * CELLS + axis(point[1]);
    let mut cells = vec![Cell::default(); CELLS * CELLS];
    let mut members = vec![Vec::new(); CELLS * CELLS];
    for (node, point) in at.iter().enumerate() {
        let cell = &mut cells[cell_of(point)];
        cell.n += 1.0;
        cell.sum[0] += point[0];
        cell.sum[1] += point[1];
        members[cell_of(point)].push(node);
    }
    let mut forces: Vec<Point> = at
        .iter()
        .map(|point| {
            let mut force = [-0.02 * point[0], -0.02 * point[1]];
            for (cell, nodes) in cells.iter().zip(&members).filter(|(cell, _)| cell.n > 0.0) {
                let center = [cell.sum[0] / cell.n, cell.sum[1] / cell.n];
                if (center[0] - point[0]).abs().max((center[1] - point[1]).abs()) > 3.0 * reach / CELLS as f32 {
                    repel(&mut force, *point, center, ideal * ideal * cell.n);
                } else {
                    for &other in nodes {
                        repel(&mut force, *point, at[other], ideal * ideal);
                    }
                }
            }
            force
        })
        .collect();
    for (&(a, b), weight) in edges.iter().zip(weights) {
        let [dx, dy] = [at[b][0] - at[a][0], at[b][1] - at[a][1]];
        let pull = weight * dx.hypot(dy) / ideal;
        for (node, sign) in [(a, 1.0), (b, -1.0)] {
            forces[node][0] += sign * pull * dx * 0.5;
            forces[node][1] += sign * pull * dy * 0.5;
        }
    }
    forces
}

fn repel(force: &mut Point, point: Point, other: Point, strength: f32) {
    let [dx, dy] = [point[0] - other[0], point[1] - other[1]];
    let distance = dx.mul_add(dx, dy * dy).max(1e-6);
    force[0] += strength * dx / distance;
    force[1] += strength * dy / distance;
}

/// Scales positions so that the farthest coordinate is 1.
fn fit(at: &mut [Point]) {
    let reach = at.iter().flatten().fold(0.0_f32, |reach, x| reach.max(x.abs()));
    if reach > 0.0 {
        at.iter_mut().flatten().for_each(|x| *x /= reach);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(a: Point, b: Point) -> f32 {
        (a[0] - b[0]).hypot(a[1] - b[1])
    }

    #[test]
    fn neighbours_are_drawn_nearer_than_others() {
        // Two cliques of ten, connected by one edge.
        let mut edges = vec![(0, 10)];
        for side in [0, 10] {
            edges.extend((side..side + 10).flat_map(|a| (a + 1..side + 10).map(move |b| (a, b))));
        }
        let at = layout(20, &[], &edges);
        let mean = |pairs: Vec<(usize, usize)>| {
            pairs.iter().map(|&(a, b)| distance(at[a], at[b])).sum::<f32>() / pairs.len() as f32
        };
        let within = mean(edges[1..].to_vec());
        let between = mean((0..10).flat_map(|a| (10..20).map(move |b| (a, b))).collect());
        assert!(between > 1.5 * within, "{between} {within}");
        assert_eq!(layout(20, &[], &edges), at);
    }

    #[test]
    fn positions_are_finite_and_within_bounds() {
        for n in [0, 1, 2, 3, 50] {
            let edges: Vec<_> = (1..n).map(|b| (0, b)).chain((n > 0).then_some((0, 0))).collect();
            let at = layout(n, &[[0.0, 0.0]][..n.min(1)], &edges);
            assert_eq!(at.len(), n);
            assert!(at.iter().flatten().all(|x| x.is_finite() && x.abs() <= 1.0), "{at:?}");
        }
    }
}
