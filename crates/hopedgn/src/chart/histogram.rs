//! Horizontal bars with a name and a number each.

use ctdg::svg::Svg;

/// A bar.
///
/// See [`histogram`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bin {
    /// On its left.
    pub name: String,
    /// Its length.
    pub count: u64,
    /// On its right.
    pub text: String,
}

/// The bars below one another, as a part of a page that has [`STYLE`](super::STYLE).
///
/// ```
/// use hopedgn::chart::{Bin, histogram};
///
/// let bin = |name: &str, count: u64| Bin { name: name.to_owned(), count, text: count.to_string() };
/// let svg = histogram("events per node", &[bin("1", 40), bin("2–3", 12)]);
/// assert!(svg.contains("2–3") && svg.contains("events per node"));
/// ```
#[must_use]
pub fn histogram(title: &str, bins: &[Bin]) -> String {
    const ROW: f64 = 19.0;
    const LEFT: f64 = 104.0;
    const LONGEST: f64 = 200.0;
    let largest = bins.iter().map(|bin| bin.count).max().unwrap_or(0).max(1) as f64;
    let height = ROW * bins.len() as f64;
    let mut svg = Svg::with_root(|root| {
        root.attr("class", "chart")
            .attr("viewBox", format_args!("0 0 {:.0} {height:.0}", super::WIDTH))
            .attr("role", "img")
            .attr("aria-label", title)
    });
    for (row, Bin { name, count, text }) in bins.iter().enumerate() {
        let top = ROW * row as f64;
        // A count above zero is always visible.
        let length = if *count > 0 { (LONGEST * *count as f64 / largest).max(1.0) } else { 0.0 };
        svg.text([LEFT - 8.0, top + 13.5], name).attr("text-anchor", "end");
        svg.rect([LEFT, top + 3.0], [length, 13.0]).attr("class", "bar s0").attr("rx", 1.5);
        svg.text([LEFT + length + 6.0, top + 13.5], text);
    }
    svg.finish()
}
