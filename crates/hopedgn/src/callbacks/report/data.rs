//! What the data set looks like.

use std::fmt::Write;

use ctdg::summary::{Distribution, Summary};

use super::{Fact, facts};
use crate::fmt::{fixed, grouped, time};

pub(super) fn section(data: &Summary) -> String {
    let share = |part: usize| format!("{:.1} % of events", 100.0 * part as f64 / data.events.max(1) as f64);
    let width = |width: usize| if width == 0 { "none".to_owned() } else { grouped(width) };
    let [first, last] = data.time_range;
    let sides = if data.bipartite { "bipartite" } else { "not bipartite" };
    let list: [Fact; 8] = [
        (
            "Nodes",
            grouped(data.nodes),
            format!("{} sources, {} destinations, {sides}", grouped(data.sources), grouped(data.destinations)),
        ),
        ("Events", grouped(data.events), format!("{} with a label", grouped(data.labelled))),
        ("Time", format!("{} to {}", time(first), time(last)), format!("{} distinct", grouped(data.distinct_times))),
        (
            "Pairs",
            grouped(data.distinct_pairs),
            format!("{} % of events repeat one", fixed(100.0 * data.repeat_share, 1)),
        ),
        ("Events at the time of the one before", grouped(data.ties), share(data.ties)),
        ("Events equal to an earlier one", grouped(data.duplicates), share(data.duplicates)),
        ("Events of a node with itself", grouped(data.self_loops), share(data.self_loops)),
        ("Features", format!("edge {}, node {}", width(data.edge_features), width(data.node_features)), String::new()),
    ];
    let degree = distribution("Degree", "events per node that has any", &data.degree);
    let history = distribution("History", "events that an endpoint has behind it", &data.history);
    format!("<h2>Data</h2>\n{}<div class=\"wide\">\n{degree}{history}</div>\n", facts(&list))
}

fn distribution(name: &str, what: &str, of: &Distribution) -> String {
    // Bars as wide as they are long on paper too, hence SVG.
    const ROW: f64 = 19.0;
    const LEFT: f64 = 104.0;
    const WIDEST: f64 = 190.0;
    let [min, median, p90, max] = [of.min, of.median, of.p90, of.max].map(grouped);
    let mut out = format!(
        "<figure><figcaption><b>{name}</b><span>{what}</span><span>min {min}, median {median}, mean {}, 90 % at most {p90}, max {max}</span></figcaption>\n",
        fixed(of.mean, 1)
    );
    let empty = of.histogram.iter().take_while(|&&count| count == 0).count();
    let bins = &of.histogram[empty..];
    let largest = bins.iter().copied().max().unwrap_or(0).max(1) as f64;
    let height = ROW * bins.len() as f64;
    let _ = writeln!(out, r#"<svg viewBox="0 0 360 {height}" role="img" aria-label="{name}: {what}">"#);
    for (place, &count) in bins.iter().enumerate() {
        let top = ROW * place as f64;
        let length = WIDEST * count as f64 / largest;
        // A count that is not zero always shows.
        let length = if count > 0 { length.max(1.0) } else { 0.0 };
        let (line, start, end) = (top + 13.5, LEFT - 8.0, LEFT + length + 6.0);
        let (range, count) = (range(empty + place), grouped(count));
        let _ = writeln!(
            out,
            r#"<text x="{start}" y="{line:.1}" text-anchor="end">{range}</text><rect class="bar" x="{LEFT}" y="{:.1}" width="{length:.1}" height="13" rx="1.5"/><text x="{end:.1}" y="{line:.1}">{count}</text>"#,
            top + 3.0
        );
    }
    out.push_str("</svg></figure>\n");
    out
}

/// The values that `bin` of a [`Distribution`] counts.
fn range(bin: usize) -> String {
    match bin {
        0 | 1 => bin.to_string(),
        _ => format!("{}–{}", grouped(1u64 << (bin - 1)), grouped((1u64 << bin) - 1)),
    }
}
