//! Statistics of the dataset.

use ctdg::summary::{Distribution, Summary};

use super::{Fact, facts};
use crate::chart::{Bin, histogram};
use crate::fmt::{fixed, grouped};

pub(super) fn section(data: &Summary) -> String {
    let share = |part: usize| format!("{:.1} % of events", 100.0 * part as f64 / data.events.max(1) as f64);
    let width = |width: usize| if width == 0 { "none".to_owned() } else { grouped(width) };
    let [first, last] = data.time_range.map(|time| data.time_format.show(time));
    let sides = if data.bipartite { "bipartite" } else { "not bipartite" };
    let list: [Fact; 8] = [
        (
            "Nodes",
            grouped(data.nodes),
            format!("{} sources, {} destinations, {sides}", grouped(data.sources), grouped(data.destinations)),
        ),
        ("Events", grouped(data.events), format!("{} with a label", grouped(data.labelled))),
        ("Time", format!("{first} to {last}"), format!("{} distinct", grouped(data.distinct_times))),
        (
            "Pairs",
            grouped(data.distinct_pairs),
            format!("{} % of events repeat a pair", fixed(100.0 * data.repeat_share, 1)),
        ),
        ("Simultaneous with the previous event", grouped(data.ties), share(data.ties)),
        ("Duplicate events", grouped(data.duplicates), share(data.duplicates)),
        ("Self-loops", grouped(data.self_loops), share(data.self_loops)),
        ("Features", format!("edge {}, node {}", width(data.edge_features), width(data.node_features)), String::new()),
    ];
    let degree = distribution("Degree", "events per node", &data.degree);
    let history = distribution("History", "earlier events of an endpoint of an event", &data.history);
    format!("<h2>Data</h2>\n{}<div class=\"wide\">\n{degree}{history}</div>\n", facts(&list))
}

fn distribution(name: &str, what: &str, of: &Distribution) -> String {
    let [min, median, p90, max] = [of.min, of.median, of.p90, of.max].map(grouped);
    let empty = of.histogram.iter().take_while(|&&count| count == 0).count();
    let bin = |(place, &count): (usize, &u64)| Bin { name: range(place), count, text: grouped(count) };
    let bins: Vec<Bin> = of.histogram.iter().enumerate().skip(empty).map(bin).collect();
    format!(
        "<figure><figcaption><b>{name}</b><span>{what}</span><span>min {min}, median {median}, mean {}, 90 % at most {p90}, max {max}</span></figcaption>\n{}</figure>\n",
        fixed(of.mean, 1),
        histogram(&format!("{name}: {what}"), &bins)
    )
}

/// The values that `bin` of a [`Distribution`] counts.
fn range(bin: usize) -> String {
    match bin {
        0 | 1 => bin.to_string(),
        _ => format!("{}–{}", grouped(1u64 << (bin - 1)), grouped((1u64 << bin) - 1)),
    }
}
