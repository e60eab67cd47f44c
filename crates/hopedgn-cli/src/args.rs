//! Flags that every command takes.

use clap::Args;

/// Flags of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Global {
    /// Print one JSON document to stdout and nothing else there
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print no progress, notes or warnings to stderr
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Number of threads [default: all cores]
    #[arg(long, global = true, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Refuse work that needs more memory, e.g. 4GiB [default: what the system has; 4GiB for wl]
    #[arg(long, global = true, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) max_memory: Option<u64>,
}

/// Parses a size: `4GiB`, `512MB`, `1000000`.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == ' ');
    let unit: u64 = match text[digits.len()..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        _ => return Err("expected a number of bytes such as 512MiB or 4GiB".into()),
    };
    let number: f64 = digits.parse().map_err(|_| "expected a number of bytes such as 512MiB or 4GiB".to_owned())?;
    if !(number.is_finite() && number >= 0.0) {
        return Err("expected at least 0 bytes".into());
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at least 0; the cast saturates at 2^64"
    )]
    let bytes = (number * unit as f64) as u64;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_parse_with_and_without_unit() {
        assert_eq!(parse_bytes("4GiB"), Ok(4 << 30));
        assert_eq!(parse_bytes("1.5 kB"), Ok(1_500));
        assert_eq!(parse_bytes("100"), Ok(100));
        assert!(parse_bytes("many").is_err() && parse_bytes("-1").is_err() && parse_bytes("4 GiBs").is_err());
    }
}
