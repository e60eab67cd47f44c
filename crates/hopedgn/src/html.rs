//! What all HTML pages share: head, style sheet, escaping.

mod style;

/// How every page begins; `style` comes on top of the common one.
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
        style::STYLE
    )
}

/// Text that stands for nothing but itself, between tags and in quotes.
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
            // Not allowed in a page at all.
            c if c.is_control() => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}
