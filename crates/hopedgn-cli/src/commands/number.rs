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

/// A time without needless decimals.
pub(crate) fn time(time: f64) -> String {
    let text = format!("{time:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
