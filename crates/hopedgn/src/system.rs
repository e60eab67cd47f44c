//! What the operating system knows of this program. The only module of the library that reads a clock; no result depends on it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Seconds since 1970.
#[must_use]
pub fn wall_time() -> f64 {
    #[expect(clippy::disallowed_methods, reason = "a label in files that people read; no result depends on it")]
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs_f64()
}

/// Peak resident memory of this process in bytes, where the system reports it.
#[must_use]
pub fn peak_memory() -> Option<u64> {
    entry("/proc/self/status", "VmHWM:")
}

/// Memory available without swapping in bytes, where the system reports it.
#[must_use]
pub fn free_memory() -> Option<u64> {
    entry("/proc/meminfo", "MemAvailable:")
}

/// Name and number of cores of the processor, where the system reports it.
#[must_use]
pub fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let mut models = text.lines().filter(|line| line.starts_with("model name"));
    let (_, name) = models.next()?.split_once(':')?;
    Some(format!("{}, {} cores", name.trim(), 1 + models.count()))
}

/// A number of KiB in a file of the system, as bytes.
fn entry(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}
