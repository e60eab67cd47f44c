//! HTML pages: head, style sheet with light and dark theme, escaping.

mod style;

pub use style::{DARK, LIGHT};

/// The beginning of a page, up to its heading; `style` is added to the common style sheet.
///
/// ```
/// let head = hopedgn::html::page_head("Runs & metrics", "table { width: 100%; }");
/// assert!(head.ends_with("<h1>Runs &amp; metrics</h1>\n"));
/// ```
#[must_use]
pub fn page_head(title: &str, style: &str) -> String {
    let title = escaped(title);
    format!(
        r#"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta name="color-scheme" content="light dark"/>
<link rel="icon" href="data:,"/>
<title>{title}</title>
<style>{}{style}</style>
</head>
<body>
<h1>{title}</h1>
"#,
        style::style()
    )
}

/// Text for use between tags and in quoted attributes.
///
/// ```
/// assert_eq!(hopedgn::html::escaped("a < b"), "a &lt; b");
/// ```
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            // HTML forbids them.
            c if c.is_control() => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}
