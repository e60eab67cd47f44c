//! A picture of both graphs: nodes coloured by class, edges labelled by times.

mod layout;

use std::fmt::Write;

use crate::event::NodeId;
use crate::wl::graph::Graph;
use layout::{Point, layout};

/// Side of the square that each graph is drawn in.
const SIDE: f64 = 520.0;
const MARGIN: f64 = 46.0;
const TITLE: f64 = 44.0;
const LEGEND: f64 = 44.0;
const FONT: f64 = 11.0;
/// Names stand in the nodes only where they can be read.
const MOST_NAMED: usize = 80;
/// Times stand on the edges only where they can be read.
const MOST_LABELLED: usize = 80;
/// Classes in the legend; the rest is counted.
const MOST_CLASSES: usize = 12;

/// One graph of a picture.
#[derive(Debug, Clone)]
pub struct Panel<'a> {
    /// Stands above it.
    pub title: &'a str,
    /// What is drawn.
    pub graph: &'a Graph,
    /// The class of each node, as [`Coloring::node_classes`](crate::wl::Coloring::node_classes) gives it.
    pub classes: Vec<u32>,
    /// Nodes with a thick rim: the tuple in question, or none.
    pub marked: &'a [NodeId],
}

/// Draws the panels side by side. Equal classes have equal colours in all of them. The picture depends on nothing but
/// its arguments.
///
/// # Panics
/// When a panel does not have one class per node.
#[must_use]
pub fn draw(panels: &[Panel<'_>]) -> String {
    let mut order: Vec<u32> = panels.iter().flat_map(|panel| panel.classes.iter().copied()).collect();
    order.sort_unstable();
    order.dedup();
    let (width, height) = (SIDE * panels.len() as f64, TITLE + SIDE + LEGEND);
    let mut svg = String::new();
    put(
        &mut svg,
        &format!(
            r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0} {height:.0}" width="{width:.0}" height="{height:.0}" font-family="sans-serif" font-size="{FONT}">
<rect width="100%" height="100%" fill="#ffffff"/>"##
        ),
    );
    for (place, panel) in panels.iter().enumerate() {
        assert_eq!(panel.classes.len(), panel.graph.n_nodes(), "one class per node");
        put(&mut svg, &format!(r#"<g transform="translate({:.0} 0)">"#, SIDE * place as f64));
        draw_panel(&mut svg, panel, &order);
        put(&mut svg, "</g>");
    }
    draw_legend(&mut svg, panels, &order);
    put(&mut svg, "</svg>");
    svg
}

fn put(svg: &mut String, line: &str) {
    svg.push_str(line);
    svg.push('\n');
}

fn draw_panel(svg: &mut String, panel: &Panel<'_>, order: &[u32]) {
    let graph = panel.graph;
    let n = graph.n_nodes();
    let places: Vec<Point> = layout(graph)
        .into_iter()
        .map(|[x, y]| [MARGIN + x * (SIDE - 2.0 * MARGIN), TITLE + MARGIN + y * (SIDE - 2.0 * MARGIN)])
        .collect();
    let radius = (70.0 / (n.max(1) as f64).sqrt()).clamp(3.0, 15.0);
    put(svg, &format!(r##"<text x="{MARGIN}" y="24" font-size="15" fill="#222222">{}</text>"##, escaped(panel.title)));
    let edges = edges(graph);
    let label_edges = edges.len() <= MOST_LABELLED;
    let counts = format!("{n} nodes, {} events, {} pairs met", graph.n_events(), edges.len());
    let remark = if label_edges { "" } else { "; too many to write their times" };
    put(svg, &format!(r##"<text x="{MARGIN}" y="42" fill="#666666">{counts}{remark}</text>"##));
    for (u, v, _) in &edges {
        let ([x1, y1], [x2, y2]) = (places[*u], places[*v]);
        let opacity = if label_edges { 0.8 } else { 0.35 };
        put(
            svg,
            &if u == v {
                let r = radius * 0.9;
                format!(
                    r##"<circle cx="{x1:.1}" cy="{:.1}" r="{r:.1}" fill="none" stroke="#888888"/>"##,
                    y1 - radius - r * 0.6
                )
            } else {
                format!(
                    r##"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" stroke="#888888" stroke-opacity="{opacity}"/>"##
                )
            },
        );
    }
    for (node, &[x, y]) in places.iter().enumerate() {
        let class = order.binary_search(&panel.classes[node]).unwrap_or_default();
        let marked = panel.marked.iter().any(|marked| marked.index() == node);
        let (rim, width) = if marked { ("#000000", 3.0) } else { ("#444444", 1.0) };
        put(
            svg,
            &format!(
                r#"<circle cx="{x:.1}" cy="{y:.1}" r="{radius:.1}" fill="{}" stroke="{rim}" stroke-width="{width}"/>"#,
                fill(class)
            ),
        );
        if n <= MOST_NAMED {
            let name = NodeId::from_index(node).map(|node| graph.names().name(node)).unwrap_or_default();
            let size = (1.7 * radius / name.chars().count().max(2) as f64 * 1.1).clamp(4.0, 13.0);
            put(
                svg,
                &format!(
                    r##"<text x="{x:.1}" y="{:.1}" font-size="{size:.1}" text-anchor="middle" fill="#111111">{}</text>"##,
                    y + size * 0.35,
                    escaped(&name)
                ),
            );
        }
    }
    if label_edges {
        draw_times(svg, &edges, &places, radius);
    }
}

/// Each pair that met once, with its times as text.
fn edges(graph: &Graph) -> Vec<(usize, usize, String)> {
    let mut edges = Vec::new();
    for u in (0..graph.n_nodes()).filter_map(NodeId::from_index) {
        let later = graph.meetings(u).filter(|(v, _)| *v >= u);
        edges.extend(later.map(|(v, sequence)| (u.index(), v.index(), sequence.to_string())));
    }
    edges
}

/// Writes the times where they hide least: of some places along the edge, the one farthest from nodes and from what is
/// written already.
fn draw_times(svg: &mut String, edges: &[(usize, usize, String)], places: &[Point], radius: f64) {
    const ALONG: [f64; 9] = [0.5, 0.44, 0.56, 0.38, 0.62, 0.32, 0.68, 0.26, 0.74];
    let mut written: Vec<(Point, f64)> = Vec::new();
    for (u, v, times) in edges {
        let times = if times.chars().count() > 24 { shortened(times) } else { times.clone() };
        let half_width = 0.3 * FONT * times.chars().count() as f64 + 2.0;
        let spot = |along: &f64| -> Point {
            let ([x1, y1], [x2, y2]) = (places[*u], places[*v]);
            [x1 + (x2 - x1) * along, y1 + (y2 - y1) * along]
        };
        let overlap = |[x, y]: Point| {
            let covers = |other: Point, half: f64, height: f64| {
                let (dx, dy) = (half_width + half - (x - other[0]).abs(), FONT * 0.6 + height - (y - other[1]).abs());
                if dx > 0.0 && dy > 0.0 { dx * dy } else { 0.0 }
            };
            let texts: f64 = written.iter().map(|&(other, half)| covers(other, half, FONT * 0.6)).sum();
            let nodes: f64 = places.iter().map(|&node| covers(node, radius, radius)).sum();
            texts + 2.0 * nodes
        };
        let [x, y] = if u == v {
            [places[*u][0], places[*u][1] - 2.7 * radius]
        } else {
            let spots = ALONG.iter().map(spot);
            spots.min_by(|&a, &b| overlap(a).total_cmp(&overlap(b))).unwrap_or(places[*u])
        };
        written.push(([x, y], half_width));
        put(
            svg,
            &format!(
                r##"<text x="{x:.1}" y="{:.1}" text-anchor="middle" fill="#22409a" stroke="#ffffff" stroke-width="3" paint-order="stroke">{}</text>"##,
                y + FONT * 0.35,
                escaped(&times)
            ),
        );
    }
}

fn shortened(times: &str) -> String {
    let head: String = times.chars().take(22).collect();
    format!("{head}…")
}

fn draw_legend(svg: &mut String, panels: &[Panel<'_>], order: &[u32]) {
    let y = TITLE + SIDE + LEGEND / 2.0;
    let mut x = MARGIN;
    for (place, class) in order.iter().enumerate().take(MOST_CLASSES) {
        let count = |panel: &Panel<'_>| panel.classes.iter().filter(|other| *other == class).count().to_string();
        let counts: Vec<String> = panels.iter().map(count).collect();
        let text = format!("class {class}: {}", counts.join(" + "));
        put(
            svg,
            &format!(
                r##"<circle cx="{x:.1}" cy="{y:.1}" r="6" fill="{}" stroke="#444444"/><text x="{:.1}" y="{:.1}" fill="#222222">{text}</text>"##,
                fill(place),
                x + 10.0,
                y + FONT * 0.35
            ),
        );
        x += 26.0 + 0.56 * FONT * text.chars().count() as f64;
        if x > SIDE * panels.len() as f64 - 160.0 && place + 1 < order.len() {
            let text = format!("and {} more classes", order.len() - place - 1);
            put(svg, &format!(r##"<text x="{x:.1}" y="{:.1}" fill="#666666">{text}</text>"##, y + FONT * 0.35));
            return;
        }
    }
    if order.len() > MOST_CLASSES {
        let text = format!("and {} more classes", order.len() - MOST_CLASSES);
        put(svg, &format!(r##"<text x="{x:.1}" y="{:.1}" fill="#666666">{text}</text>"##, y + FONT * 0.35));
    }
}

/// Neighbouring classes lie far apart on the colour circle; after a turn of it they become paler or darker.
fn fill(class: usize) -> String {
    let turn = (class as f64 * 0.618_034).fract();
    let lightness = [68.0, 82.0, 55.0][class / 9 % 3];
    format!("hsl({:.0} 70% {lightness:.0}%)", (45.0 + 360.0 * turn) % 360.0)
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => {
                // Not allowed in XML at all.
                let _ = write!(out, "\\u{:x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventStream;
    use crate::wl::{Dwl, Reading};

    fn picture(events: &[(u32, u32, f64)]) -> String {
        let graph =
            Graph::new(&EventStream::from_events(events.iter().copied()).unwrap(), &Reading::default()).unwrap();
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
    fn pictures_are_the_same_every_time() {
        let events = [(0, 1, 1.0), (1, 2, 2.0), (2, 3, 3.0), (4, 5, 3.0)];
        assert_eq!(picture(&events), picture(&events));
    }

    #[test]
    fn one_node_and_none_at_all_can_be_drawn() {
        assert!(picture(&[(0, 0, 1.0)]).contains("1 nodes"));
        let nobody = Graph::new(&EventStream::from_events([]).unwrap(), &Reading::default()).unwrap();
        let empty = draw(&[Panel { title: "", graph: &nobody, classes: Vec::new(), marked: &[] }]);
        assert!(empty.ends_with("</svg>\n"));
    }
}
