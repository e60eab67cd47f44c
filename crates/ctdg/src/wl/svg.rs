//! SVG picture of graphs: nodes colored by class, edges labelled by times.

mod layout;

use crate::error::counted;
use crate::event::NodeId;
use crate::svg::{Point, Svg};
use crate::wl::graph::Graph;
use layout::layout;

/// Side of the square that each graph is drawn in.
const SIDE: f64 = 520.0;
const MARGIN: f64 = 46.0;
const TITLE: f64 = 44.0;
const LEGEND: f64 = 44.0;
const FONT: f64 = 11.0;
/// Most nodes with a name.
const MAX_NAMED: usize = 80;
/// Most edges with their times.
const MAX_LABELLED: usize = 80;
/// Most classes in the legend; the others are counted.
const MAX_CLASSES: usize = 12;

/// One graph of a picture.
#[derive(Debug, Clone)]
pub struct Panel<'a> {
    /// Title above the graph.
    pub title: &'a str,
    /// The graph.
    pub graph: &'a Graph,
    /// The class of each node, as [`Coloring::node_classes`](crate::wl::Coloring::node_classes) gives it.
    pub classes: Vec<u32>,
    /// Nodes with a thick outline: the tuple in question, or none.
    pub marked: &'a [NodeId],
}

/// Draws the panels side by side. Equal classes have equal colors in all of them. The picture depends only on the
/// arguments.
///
/// # Panics
/// When a panel does not have one class per node.
#[must_use]
pub fn draw(panels: &[Panel<'_>]) -> String {
    let mut order: Vec<u32> = panels.iter().flat_map(|panel| panel.classes.iter().copied()).collect();
    order.sort_unstable();
    order.dedup();
    let mut svg = Svg::standalone(SIDE * panels.len() as f64, TITLE + SIDE + LEGEND, FONT);
    for (index, panel) in panels.iter().enumerate() {
        assert_eq!(panel.classes.len(), panel.graph.n_nodes(), "one class per node");
        let transform = format!("translate({:.0} 0)", SIDE * index as f64);
        svg.group(transform, |svg| draw_panel(svg, panel, &order));
    }
    draw_legend(&mut svg, panels, &order);
    svg.finish()
}

fn draw_panel(svg: &mut Svg, panel: &Panel<'_>, order: &[u32]) {
    let graph = panel.graph;
    let n = graph.n_nodes();
    let inner = SIDE - 2.0 * MARGIN;
    let onto_page = |[x, y]: Point| [MARGIN + x * inner, TITLE + MARGIN + y * inner];
    let scene = Scene {
        positions: layout(graph).into_iter().map(onto_page).collect(),
        radius: (70.0 / (n.max(1) as f64).sqrt()).clamp(3.0, 15.0),
        edges: edges(graph),
    };
    let legible = scene.edges.len() <= MAX_LABELLED;
    let [nodes, events, pairs] =
        [(n, "node"), (graph.n_events(), "event"), (scene.edges.len(), "pair")].map(|(n, noun)| counted(n, noun));
    let counts = format!("{nodes}, {events}, {pairs} met");
    let remark = if legible { "" } else { "; too many to write their times" };
    svg.text([MARGIN, 24.0], panel.title).attr("font-size", 15).attr("fill", "#222222");
    svg.text([MARGIN, 42.0], format_args!("{counts}{remark}")).attr("fill", "#666666");
    scene.draw_edges(svg, if legible { 0.8 } else { 0.35 });
    if legible {
        scene.draw_times(svg);
    }
    scene.draw_nodes(svg, panel, order);
}

/// A pair with interactions, with its times as text.
type Edge = (usize, usize, String);

fn edges(graph: &Graph) -> Vec<Edge> {
    let mut edges = Vec::new();
    for u in (0..graph.n_nodes()).filter_map(NodeId::from_index) {
        let later = graph.pair_events(u).filter(|(v, _)| *v >= u);
        edges.extend(later.map(|(v, sequence)| (u.index(), v.index(), sequence.to_string())));
    }
    edges
}

/// One graph with the positions of its nodes on the page.
struct Scene {
    positions: Vec<Point>,
    radius: f64,
    edges: Vec<Edge>,
}

impl Scene {
    fn draw_edges(&self, svg: &mut Svg, opacity: f64) {
        for (u, v, _) in &self.edges {
            if u == v {
                let center = self.outwards(*u, 1.5 * self.radius);
                svg.circle(center, self.radius).attr("fill", "none").attr("stroke", "#888888");
            } else {
                let line = svg.line(self.positions[*u], self.positions[*v]);
                line.attr("stroke", "#888888").attr("stroke-opacity", opacity);
            }
        }
    }

    fn draw_nodes(&self, svg: &mut Svg, panel: &Panel<'_>, order: &[u32]) {
        for (node, &center) in self.positions.iter().enumerate() {
            let class = order.binary_search(&panel.classes[node]).unwrap_or_default();
            let marked = panel.marked.iter().any(|marked| marked.index() == node);
            let (stroke, width) = if marked { ("#000000", 3.5) } else { ("#444444", 1.0) };
            let circle = svg.circle(center, self.radius).attr("fill", fill(class));
            circle.attr("stroke", stroke).attr("stroke-width", width);
            if self.positions.len() <= MAX_NAMED {
                let name = NodeId::from_index(node).map(|node| panel.graph.names().name(node)).unwrap_or_default();
                draw_name(svg, &name, center, self.radius);
            }
        }
    }

    /// Writes the times at the candidate position along the edge that covers least of nodes, other edges and earlier
    /// labels.
    fn draw_times(&self, svg: &mut Svg) {
        const ALONG: [f64; 11] = [0.5, 0.46, 0.54, 0.42, 0.58, 0.37, 0.63, 0.31, 0.69, 0.25, 0.75];
        let mut labels: Vec<(Point, f64)> = Vec::new();
        for (index, (u, v, times)) in self.edges.iter().enumerate().filter(|(_, edge)| edge.2 != "met") {
            let times = shortened(times);
            let half_width = 0.29 * FONT * times.chars().count() as f64 + 2.0;
            let cost = |spot: &Point| {
                let texts: f64 =
                    labels.iter().map(|&(other, half)| covered(*spot, other, half_width + half, FONT * 1.2)).sum();
                let reach = (half_width + self.radius, FONT * 0.6 + self.radius);
                let nodes: f64 = self.positions.iter().map(|&node| covered(*spot, node, reach.0, reach.1)).sum();
                let others = self.edges.iter().enumerate().filter(|&(other, (s, t, _))| other != index && s != t);
                let near = others.map(|(_, (s, t, _))| distance(*spot, self.positions[*s], self.positions[*t]));
                let lines: f64 = near.map(|distance| (FONT * 0.7 - distance).max(0.0) * 10.0).sum();
                texts + 2.0 * nodes + lines
            };
            let [x, y] = if u == v {
                self.outwards(*u, 3.2 * self.radius)
            } else {
                let ([x1, y1], [x2, y2]) = (self.positions[*u], self.positions[*v]);
                let spots = ALONG.iter().map(|along| [x1 + (x2 - x1) * along, y1 + (y2 - y1) * along]);
                spots.min_by(|a, b| cost(a).total_cmp(&cost(b))).unwrap_or([x1, y1])
            };
            labels.push(([x, y], half_width));
            let background = svg.rect([x - half_width, y - FONT * 0.6], [2.0 * half_width, FONT * 1.2]);
            background.attr("rx", 3).attr("fill", "#ffffff").attr("fill-opacity", 0.9);
            svg.text([x, y + FONT * 0.36], times).attr("text-anchor", "middle").attr("fill", "#22409a");
        }
    }

    /// The point at `distance` from `node`, away from the middle of the picture.
    fn outwards(&self, node: usize, distance: f64) -> Point {
        let ([x, y], middle) = (self.positions[node], [SIDE / 2.0, TITLE + SIDE / 2.0]);
        let away = [x - middle[0], y - middle[1]];
        let length = away[0].hypot(away[1]);
        let unit = if length < 1.0 { [0.0, -1.0] } else { [away[0] / length, away[1] / length] };
        [x + unit[0] * distance, y + unit[1] * distance]
    }
}

/// Draws a short name inside its node, a long one below it.
fn draw_name(svg: &mut Svg, name: &str, [x, y]: Point, radius: f64) {
    let length = name.chars().count().max(2) as f64;
    let inside = 1.7 * radius / (0.6 * length);
    let (size, y) = if inside >= 8.0 { (inside.min(13.0), y) } else { (9.5, y + radius + 7.0) };
    let text = svg.text([x, y + size * 0.36], name).number("font-size", size);
    text.attr("text-anchor", "middle").attr("fill", "#111111");
}

/// Overlap of a box around `spot` with one around `other`, given the sums of their half-widths and half-heights.
fn covered(spot: Point, other: Point, reach_x: f64, reach_y: f64) -> f64 {
    let (dx, dy) = (reach_x - (spot[0] - other[0]).abs(), reach_y - (spot[1] - other[1]).abs());
    if dx > 0.0 && dy > 0.0 { dx * dy } else { 0.0 }
}

/// Distance of `spot` from the line between `a` and `b`.
fn distance(spot: Point, a: Point, b: Point) -> f64 {
    let along = [b[0] - a[0], b[1] - a[1]];
    let from = [spot[0] - a[0], spot[1] - a[1]];
    let squared = (along[0] * along[0] + along[1] * along[1]).max(1e-9);
    let share = ((from[0] * along[0] + from[1] * along[1]) / squared).clamp(0.0, 1.0);
    (from[0] - share * along[0]).hypot(from[1] - share * along[1])
}

fn shortened(times: &str) -> String {
    const MAX_CHARS: usize = 24;
    if times.chars().count() <= MAX_CHARS {
        return times.to_owned();
    }
    let head: String = times.chars().take(MAX_CHARS - 1).collect();
    format!("{head}…")
}

fn draw_legend(svg: &mut Svg, panels: &[Panel<'_>], order: &[u32]) {
    let y = TITLE + SIDE + LEGEND / 2.0;
    let baseline = y + FONT * 0.35;
    let mut x = MARGIN;
    let mut n_shown = 0;
    for (index, class) in order.iter().enumerate().take(MAX_CLASSES) {
        let count = |panel: &Panel<'_>| panel.classes.iter().filter(|other| *other == class).count().to_string();
        let counts: Vec<String> = panels.iter().map(count).collect();
        let text = format!("class {class}: {}", counts.join(" + "));
        svg.circle([x, y], 6.0).attr("fill", fill(index)).attr("stroke", "#444444");
        svg.text([x + 10.0, baseline], &text).attr("fill", "#222222");
        x += 26.0 + 0.56 * FONT * text.chars().count() as f64;
        n_shown = index + 1;
        if x > SIDE * panels.len() as f64 - 160.0 {
            break;
        }
    }
    if n_shown < order.len() {
        let text = format!("and {} more classes", order.len() - n_shown);
        svg.text([x, baseline], text).attr("fill", "#666666");
    }
}

/// Consecutive classes have distant hues; after nine of them they become paler or darker.
fn fill(class: usize) -> String {
    let hue = (0.125 + class as f64 * 0.618_034).fract() * 6.0;
    let (low, high) = [(0.45, 0.95), (0.7, 1.0), (0.25, 0.75)][class / 9 % 3];
    // Each channel is high for a third of the circle, low for a third, and linear in between.
    let channel = |offset: f64| {
        let distance = (hue - offset).abs();
        let distance = distance.min(6.0 - distance);
        let share: f64 = (2.0 - distance).clamp(0.0, 1.0);
        255.0 * (low + (high - low) * share)
    };
    let [red, green, blue] = [0.0, 2.0, 4.0].map(channel);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 255")]
    let hex = |value: f64| format!("{:02x}", value.round() as u8);
    format!("#{}{}{}", hex(red), hex(green), hex(blue))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventStream;
    use crate::wl::{Dwl, GraphOptions};

    fn picture(events: &[(u32, u32, f64)]) -> String {
        let graph =
            Graph::new(&EventStream::from_events(events.iter().copied()).unwrap(), &GraphOptions::default()).unwrap();
        let run = Dwl::new(1).unwrap().compare(&graph, &graph).unwrap();
        let panel = |side| Panel {
            title: "a < b & c",
            graph: &graph,
            classes: run.coloring.node_classes(side),
            marked: &[NodeId(0)],
        };
        draw(&[panel(0), panel(1)])
    }

    #[test]
    fn every_node_and_every_pair_is_drawn_with_its_times() {
        let svg = picture(&[(0, 1, 1.0), (1, 2, 2.0), (0, 1, 3.5), (2, 2, 4.0)]);
        assert_eq!(svg.matches("<line").count(), 4, "two lines a panel");
        assert_eq!(svg.matches("1, 3.5").count(), 2);
        assert!(svg.contains("a &lt; b &amp; c") && !svg.contains("a < b"));
        assert!(!svg.contains("NaN"));
    }

    #[test]
    fn pictures_are_deterministic() {
        let events = [(0, 1, 1.0), (1, 2, 2.0), (2, 3, 3.0), (4, 5, 3.0)];
        assert_eq!(picture(&events), picture(&events));
    }

    #[test]
    fn graphs_with_one_node_and_none_are_drawn() {
        assert!(picture(&[(0, 0, 1.0)]).contains("1 node, 1 event, "));
        let empty = Graph::new(&EventStream::from_events([]).unwrap(), &GraphOptions::default()).unwrap();
        let svg = draw(&[Panel { title: "", graph: &empty, classes: Vec::new(), marked: &[] }]);
        assert!(svg.ends_with("</svg>\n"));
    }
}
