//! Text of files, names and paths made safe for a terminal.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

/// `text` with everything a terminal would act on or hide written as an escape such as `\u{1b}`: control characters, NUL,
/// line breaks, and the characters that reorder text or end a line.
///
/// ```
/// use ctdg::error::printable;
///
/// assert_eq!(printable("ann"), "ann");
/// assert_eq!(printable("\u{1b}[2Jann\n\0"), r"\u{1b}[2Jann\n\0");
/// ```
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, is_unsafe)
}

/// [`printable`] for text of several lines: line breaks and tabs stay.
///
/// ```
/// assert_eq!(ctdg::error::printable_lines("a\tb\n\u{7}\r\n"), "a\tb\n\\u{7}\\r\n");
/// ```
#[must_use]
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_unsafe(c) && c != '\n' && c != '\t')
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return text.into();
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\0' | '\t' | '\n' | '\r' if is_escaped(c) => safe.extend(c.escape_debug()),
            c if is_escaped(c) => safe.extend(c.escape_unicode()),
            c => safe.push(c),
        }
    }
    safe.into()
}

/// Control characters, line and paragraph separators, and marks that change the direction of text.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// A value whose display is [`printable`].
pub(crate) struct Printable<T>(pub(crate) T);

impl<T: fmt::Display> fmt::Display for Printable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", self.0)
    }
}

/// Escapes what is written through it.
struct Escaping<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl fmt::Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write_str(&printable(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_acts_on_is_left() {
        let all: String = (0..=0x2fff_u32).filter_map(char::from_u32).collect();
        let safe = printable(&all);
        assert!(!safe.contains(is_unsafe));
        assert!(
            safe.contains(r"\u{1b}") && safe.contains(r"\u{9b}") && safe.contains(r"\u{202e}"),
            "CSI both ways, bidi"
        );
        assert_eq!(
            printable("Zoë, 東京 \"quoted\" it's \\n"),
            "Zoë, 東京 \"quoted\" it's \\n",
            "the rest is left alone"
        );
        assert!(matches!(printable("plain"), Cow::Borrowed(_)));
    }
}
