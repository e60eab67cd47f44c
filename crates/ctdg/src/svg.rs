//! SVG writer: shapes, text and groups as one deterministic string.
//!
//! ```
//! use ctdg::svg::Svg;
//!
//! let mut svg = Svg::standalone(120.0, 40.0, 11.0);
//! svg.line([10.0, 20.0], [110.0, 20.0]).attr("stroke", "#888888");
//! svg.circle([60.0, 20.0], 5.0).attr("fill", "#22409a");
//! svg.group("translate(10 0)", |svg| {
//!     svg.text([50.0, 12.0], "a < b").attr("text-anchor", "middle");
//! });
//! let picture = svg.finish();
//! assert!(picture.starts_with("<svg") && picture.contains("a &lt; b"));
//! ```
//!
//! Text and attributes are escaped. Coordinates have one decimal ([`number`]), so equal arguments give equal bytes.

use std::borrow::Cow;
use std::fmt::{Display, Write as _};

/// A point: x to the right, y down.
pub type Point = [f64; 2];

/// A picture that grows element by element, one element a line, on a white background.
#[derive(Debug, Clone)]
pub struct Svg {
    out: String,
}

impl Svg {
    /// A picture for a file of its own: white background, `font_size` for all text without a size of its own.
    #[must_use]
    pub fn standalone(width: f64, height: f64, font_size: f64) -> Self {
        let mut svg = Self::with_root(|root| {
            root.attr("xmlns", "http://www.w3.org/2000/svg")
                .attr("viewBox", format_args!("0 0 {width:.0} {height:.0}"))
                .attr("width", format_args!("{width:.0}"))
                .attr("height", format_args!("{height:.0}"))
                .attr("font-family", "sans-serif")
                .attr("font-size", font_size)
        });
        svg.element("rect").attr("width", "100%").attr("height", "100%").attr("fill", "#ffffff");
        svg
    }

    /// A picture inside an HTML page, whose style sheet it shares. Screen readers read `label`.
    #[must_use]
    pub fn inline(width: f64, height: f64, label: impl Display) -> Self {
        Self::with_root(|root| {
            root.attr("viewBox", format_args!("0 0 {width:.0} {height:.0}"))
                .attr("role", "img")
                .attr("aria-label", label)
        })
    }

    /// A picture whose `<svg>` element has the attributes that `attributes` adds.
    #[must_use]
    pub fn with_root(attributes: impl FnOnce(Element<'_>) -> Element<'_>) -> Self {
        let mut svg = Self { out: String::new() };
        attributes(svg.element("svg")).open();
        svg
    }

    /// A straight line; invisible without a `stroke`.
    pub fn line(&mut self, from: Point, to: Point) -> Element<'_> {
        self.element("line").number("x1", from[0]).number("y1", from[1]).number("x2", to[0]).number("y2", to[1])
    }

    /// A rectangle, by its top left corner and its `[width, height]`.
    pub fn rect(&mut self, corner: Point, size: [f64; 2]) -> Element<'_> {
        let rect = self.element("rect").number("x", corner[0]).number("y", corner[1]);
        rect.number("width", size[0]).number("height", size[1])
    }

    /// A circle.
    pub fn circle(&mut self, center: Point, radius: f64) -> Element<'_> {
        self.element("circle").number("cx", center[0]).number("cy", center[1]).number("r", radius)
    }

    /// A path in the notation of SVG, e.g. `M1 5H25`; [`number`] formats its coordinates.
    pub fn path(&mut self, data: impl Display) -> Element<'_> {
        self.element("path").attr("d", data)
    }

    /// Straight lines from point to point.
    pub fn polyline(&mut self, points: impl IntoIterator<Item = Point>) -> Element<'_> {
        let mut data = String::new();
        for [x, y] in points {
            let command = if data.is_empty() { 'M' } else { 'L' };
            let _ = write!(data, "{command}{} {}", number(x), number(y));
        }
        self.path(data).attr("fill", "none")
    }

    /// Text whose baseline starts at `at`, unless `text-anchor` says otherwise.
    pub fn text(&mut self, at: Point, text: impl Display) -> Element<'_> {
        let mut element = self.element("text").number("x", at[0]).number("y", at[1]);
        element.content.push_str(&escape(&text.to_string()));
        element
    }

    /// What `draw` draws, under a `transform` such as `translate(10 0)`.
    pub fn group(&mut self, transform: impl Display, draw: impl FnOnce(&mut Self)) {
        self.element("g").attr("transform", transform).open();
        draw(self);
        self.out.push_str("</g>\n");
    }

    /// Any other element.
    pub fn element(&mut self, name: &'static str) -> Element<'_> {
        let _ = write!(self.out, "<{name}");
        Element { out: &mut self.out, name, content: String::new(), is_open: false }
    }

    /// Ends the picture and returns its source.
    #[must_use]
    pub fn finish(mut self) -> String {
        self.out.push_str("</svg>\n");
        self.out
    }
}

/// An element under construction: takes attributes, and is complete when dropped.
#[derive(Debug)]
pub struct Element<'a> {
    out: &'a mut String,
    name: &'static str,
    /// Escaped content between start and end tag.
    content: String,
    /// Whether children follow, and the end tag after them.
    is_open: bool,
}

#[allow(clippy::must_use_candidate, clippy::return_self_not_must_use, reason = "a dropped element is a complete one")]
impl Element<'_> {
    /// Adds an attribute.
    pub fn attr(self, name: &str, value: impl Display) -> Self {
        let _ = write!(self.out, " {name}=\"{}\"", escape(&value.to_string()));
        self
    }

    /// Adds a coordinate or a length, formatted by [`number`].
    pub fn number(self, name: &str, value: f64) -> Self {
        self.attr(name, number(value))
    }

    /// Adds a tooltip.
    pub fn title(mut self, text: impl Display) -> Self {
        let _ = write!(self.content, "<title>{}</title>", escape(&text.to_string()));
        self
    }

    fn open(mut self) {
        self.is_open = true;
    }
}

impl Drop for Element<'_> {
    fn drop(&mut self) {
        let _ = match &*self.content {
            "" if self.is_open => writeln!(self.out, ">"),
            "" => writeln!(self.out, "/>"),
            content => writeln!(self.out, ">{content}</{}>", self.name),
        };
    }
}

/// A coordinate with one decimal; never `-0.0`.
#[must_use]
pub fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    if text == "-0.0" { "0.0".to_owned() } else { text }
}

/// `text` for use in an element or attribute. Control characters, which XML forbids, become `\u` and their code.
#[must_use]
pub fn escape(text: &str) -> Cow<'_, str> {
    let is_special = |c: char| matches!(c, '&' | '<' | '>' | '"') || c.is_control();
    if !text.contains(is_special) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_written_in_order_one_a_line() {
        let mut svg = Svg::standalone(10.0, 20.0, 11.0);
        svg.rect([1.0, 2.0], [3.0, 4.25]).attr("rx", 3);
        svg.group("translate(5 0)", |svg| {
            svg.polyline([[0.0, 0.0], [1.0, -0.01]]).title("tip");
        });
        svg.text([0.0, 1.0], "x").attr("fill", "#111111");
        let expected = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 10 20\" width=\"10\" height=\"20\" \
                        font-family=\"sans-serif\" font-size=\"11\">\n\
                        <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
                        <rect x=\"1.0\" y=\"2.0\" width=\"3.0\" height=\"4.2\" rx=\"3\"/>\n\
                        <g transform=\"translate(5 0)\">\n\
                        <path d=\"M0.0 0.0L1.0 0.0\" fill=\"none\"><title>tip</title></path>\n\
                        </g>\n\
                        <text x=\"0.0\" y=\"1.0\" fill=\"#111111\">x</text>\n\
                        </svg>\n";
        assert_eq!(svg.finish(), expected);
    }

    #[test]
    fn text_and_attributes_are_escaped() {
        assert_eq!(escape("plain"), "plain");
        assert_eq!(escape("a<b & \"c\">\u{7}"), "a&lt;b &amp; &quot;c&quot;&gt;\\u7");
        let mut svg = Svg::inline(1.0, 1.0, "a & b");
        svg.text([0.0, 0.0], "<script>").attr("id", "\"");
        let svg = svg.finish();
        assert!(svg.starts_with("<svg viewBox=\"0 0 1 1\" role=\"img\" aria-label=\"a &amp; b\">\n"), "{svg}");
        assert!(svg.contains("id=\"&quot;\">&lt;script&gt;</text>"), "{svg}");
    }
}
