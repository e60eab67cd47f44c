//! Settings as TOML values.

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

/// The names of the entries of `table` that are `wanted`.
pub(crate) fn names(table: &toml::Table, wanted: impl Fn(&Value) -> bool) -> String {
    let names: Vec<&str> = table.iter().filter(|(_, value)| wanted(value)).map(|(name, _)| name.as_str()).collect();
    names.join(", ")
}
