//! Settings as TOML values: kinds of values, and errors in words.

use toml::Value;

/// `value` as a setting whose value so far is `before`: an integer may stand for a real number.
pub(crate) fn fitting(before: &Value, value: Value) -> Result<Value, String> {
    let expected = match (before, &value) {
        #[expect(clippy::cast_precision_loss, reason = "a setting typed by a person")]
        (Value::Float(_), Value::Integer(whole)) => return Ok(Value::Float(*whole as f64)),
        (Value::Integer(_), Value::Integer(_))
        | (Value::Float(_), Value::Float(_))
        | (Value::Boolean(_), Value::Boolean(_))
        | (Value::String(_), Value::String(_))
        | (Value::Array(_), Value::Array(_))
        | (Value::Table(_), Value::Table(_))
        | (Value::Datetime(_), _) => return Ok(value),
        (Value::Integer(_), _) => "a whole number",
        (Value::Float(_), _) => "a number",
        (Value::Boolean(_), _) => "true or false",
        (Value::String(_), _) => "text",
        (Value::Array(_), _) => "a list",
        (Value::Table(_), _) => "a group of settings",
    };
    Err(format!("found {value}, expected {expected}"))
}

/// The value that a person wrote as `text` for such a setting. What is no TOML value is text, so that words need no quotes.
pub(crate) fn parse(before: &Value, text: &str) -> Result<Value, String> {
    let parsed = format!("value = {text}").parse::<toml::Table>().ok().and_then(|mut table| table.remove("value"));
    let value = match parsed {
        Some(value) if value.is_str() || !before.is_str() => value,
        _ => Value::String(text.to_owned()),
    };
    fitting(before, value)
}

/// What serde found wrong, without the names of Rust's types.
pub(crate) fn in_words(error: &impl std::fmt::Display) -> String {
    let text = error.to_string().trim().replace('\n', " ");
    if let Some(rest) = text.strip_prefix("unknown variant ") {
        let text = rest.split(" in `").next().unwrap_or(rest).trim_end();
        return format!("found {}", text.replace('`', ""));
    }
    let types = ["usize", "u64", "u32", "u16", "u8", "i64", "i32"];
    match types.iter().find(|name| text.contains(&format!("expected {name}"))) {
        Some(name) => text
            .replace("invalid value: integer ", "found ")
            .replace("invalid type: ", "found ")
            .replace(&format!("expected {name}"), "expected a whole number of at least 0")
            .replace('`', ""),
        None => text,
    }
}

/// The names of the entries of `table` that are `wanted`.
pub(crate) fn names(table: &toml::Table, wanted: impl Fn(&Value) -> bool) -> String {
    let names: Vec<&str> = table.iter().filter(|(_, value)| wanted(value)).map(|(name, _)| name.as_str()).collect();
    names.join(", ")
}
