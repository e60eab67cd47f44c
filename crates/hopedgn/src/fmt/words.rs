//! Errors of parsers in words, and the name that a misspelt one is nearest to.

/// The known name that `name` is most likely a misspelling of, if any is near: at most a third of its letters differ.
///
/// ```
/// use hopedgn::fmt::nearest;
///
/// assert_eq!(nearest("droput", ["dropout", "d-out"]), Some("dropout"));
/// assert_eq!(nearest("colour", ["dropout", "d-out"]), None);
/// ```
#[must_use]
pub fn nearest<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let plain = |name: &str| name.to_lowercase().replace('_', "-");
    let (name, n_letters) = (plain(name), name.chars().count());
    let most = (n_letters / 3).max(1).min(n_letters.saturating_sub(1));
    let distances = known.into_iter().map(|known| (strsim::osa_distance(&name, &plain(known)), known));
    // The first of several equally near ones.
    distances.filter(|(distance, _)| *distance <= most).min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

/// Kinds of values as serde calls them, with the words for them.
const EXPECTED: [(&str, &str); 18] = [
    ("usize", "a whole number of at least 0"),
    ("u64", "a whole number of at least 0"),
    ("u32", "a whole number of at least 0"),
    ("u16", "a whole number of at least 0"),
    ("u8", "a whole number of at least 0"),
    ("a nonzero usize", "a whole number of at least 1"),
    ("i64", "a whole number"),
    ("i32", "a whole number"),
    ("isize", "a whole number"),
    ("f64", "a number"),
    ("f32", "a number"),
    ("floating point", "a number"),
    ("a boolean", "true or false"),
    ("a string", "text"),
    ("a character", "one character"),
    ("a sequence", "a list"),
    ("a map", "a group of settings"),
    ("struct", "a group of settings"),
];

/// Kinds of values that serde names before the value itself.
const FOUND: [&str; 5] = ["integer ", "floating point ", "boolean ", "string ", "character "];

/// What serde found wrong, without the names of Rust's types, and with the name that a misspelt one is nearest to.
///
/// ```
/// use hopedgn::fmt::in_words;
///
/// assert_eq!(in_words(&"invalid type: integer `1`, expected a boolean"), "found 1, expected true or false");
/// let found = in_words(&"unknown field `sed`, expected one of `data`, `seed`");
/// assert_eq!(found, "unknown field `sed`, expected one of `data`, `seed`; did you mean `seed`?");
/// ```
pub fn in_words(error: &impl std::fmt::Display) -> String {
    let text = error.to_string().trim().replace('\n', " ");
    if let Some(rest) = text.strip_prefix("unknown variant ") {
        let text = rest.split(" in `").next().unwrap_or(rest).trim_end();
        let quoted: Vec<&str> = text.split('`').skip(1).step_by(2).collect();
        let meant = quoted.split_first().and_then(|(name, known)| nearest(name, known.iter().copied()));
        return format!("found {}{}", text.replace('`', ""), did_you_mean(meant));
    }
    if text.starts_with("unknown field ") {
        let quoted: Vec<&str> = text.split('`').skip(1).step_by(2).collect();
        let meant = quoted.split_first().and_then(|(name, known)| nearest(name, known.iter().copied()));
        return format!("{text}{}", did_you_mean(meant));
    }
    // Text before the message, such as a path, stays.
    let Some((start, prefix)) =
        ["invalid type: ", "invalid value: "].iter().find_map(|prefix| Some((text.find(prefix)?, prefix)))
    else {
        return text;
    };
    let (before, message) = (&text[..start], &text[start + prefix.len()..]);
    let Some((found, expected)) = message.rsplit_once(", expected ") else { return text };
    let found = FOUND.iter().find_map(|kind| found.strip_prefix(kind)).unwrap_or(found);
    let found = match found {
        "sequence" => "a list",
        "map" => "a group of settings",
        found => found,
    };
    // A place in the file may follow, as in "u64 in `seed`".
    let words = |(kind, words): &(&str, &'static str)| {
        let rest = expected.strip_prefix(kind)?;
        (rest.is_empty() || rest.starts_with([' ', '\n'])).then_some(*words)
    };
    let expected = EXPECTED.iter().find_map(words).unwrap_or(expected);
    format!("{before}found {}, expected {expected}", found.replace('`', ""))
}

/// The suggestion behind an error.
pub(crate) fn did_you_mean(name: Option<&str>) -> String {
    name.map_or(String::new(), |name| format!("; did you mean `{name}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let known = ["k", "lr", "epochs", "time-encoding", "dropout"];
        for (name, meant) in
            [("kk", "k"), ("epoch", "epochs"), ("time_encoding", "time-encoding"), ("DROPOUT", "dropout")]
        {
            assert_eq!(nearest(name, known), Some(meant), "{name}");
        }
        assert_eq!(nearest("opechs", known), Some("epochs"), "two letters changed places");
        for name in ["x", "", "rate", "patience"] {
            assert_eq!(nearest(name, known), None, "{name:?}");
        }
    }

    #[test]
    fn types_of_rust_become_words() {
        for (error, words) in [
            ("invalid value: integer `-1`, expected usize", "found -1, expected a whole number of at least 0"),
            ("invalid type: string \"x\", expected u64", "found \"x\", expected a whole number of at least 0"),
            ("invalid type: floating point `1.5`, expected u64\n", "found 1.5, expected a whole number of at least 0"),
            ("invalid value: integer `-1`, expected u64 in `seed`", "found -1, expected a whole number of at least 0"),
            ("invalid value: integer `0`, expected a nonzero usize", "found 0, expected a whole number of at least 1"),
            ("invalid type: string \"no\", expected a boolean", "found \"no\", expected true or false"),
            ("invalid type: boolean `true`, expected f64", "found true, expected a number"),
            ("invalid type: integer `3`, expected a string", "found 3, expected text"),
            ("invalid type: string \"a\", expected a sequence", "found \"a\", expected a list"),
            ("invalid type: sequence, expected struct Grid", "found a list, expected a group of settings"),
            ("missing field `name`", "missing field `name`"),
        ] {
            assert_eq!(in_words(&error), words);
        }
    }

    #[test]
    fn misspelt_values_and_keys_name_the_nearest() {
        assert_eq!(
            in_words(&"unknown variant `recnet`, expected `recent` or `uniform`"),
            "found recnet, expected recent or uniform; did you mean `recent`?"
        );
        assert_eq!(
            in_words(&"unknown variant `some`, expected `none` or `dyglib`"),
            "found some, expected none or dyglib"
        );
        assert_eq!(
            in_words(&"unknown field `xyzzy`, expected `a` or `b`"),
            "unknown field `xyzzy`, expected `a` or `b`"
        );
    }
}
