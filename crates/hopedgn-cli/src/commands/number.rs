//! Numbers as people read them.

/// With commas between thousands.
pub(crate) fn grouped(number: impl TryInto<u64>) -> String {
    let digits = number.try_into().unwrap_or(u64::MAX).to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A time as short as it can be said.
pub(crate) fn time(time: f64) -> String {
    let plain = time == 0.0 || (1e-6..1e15).contains(&time.abs());
    if plain { time.to_string() } else { format!("{time:e}") }
}

/// A span of time to seven digits, for reading.
pub(crate) fn short(span: f64) -> String {
    let rounded: f64 = format!("{span:.6e}").parse().unwrap_or(span);
    time(rounded)
}

/// Seconds in the largest units that say something.
pub(crate) fn duration(seconds: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time of work, rounded")]
    let whole = seconds.round().max(0.0) as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}
