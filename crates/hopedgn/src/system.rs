//! What the operating system knows of this program. The only module of the library that reads a clock; no result depends on it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::{Error, Result};

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

/// Memory that this process may still take in bytes, where the system reports it: what is available without swapping, within the
/// limits of its control group (of a container, say) and of its address space (`ulimit -v`).
#[must_use]
pub fn free_memory() -> Option<u64> {
    let number = |file: &str| std::fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
    let group = |most: &str, used: &str| Some(number(most)?.saturating_sub(number(used)?));
    let limits = [
        entry("/proc/meminfo", "MemAvailable:"),
        group("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        group("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
        address_space(),
    ];
    limits.into_iter().flatten().min()
}

/// What is left of the limit of the address space.
fn address_space() -> Option<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let most = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let most: u64 = most.split_whitespace().next()?.parse().ok()?;
    Some(most.saturating_sub(entry("/proc/self/status", "VmSize:")?))
}

/// Refuses work that needs more than `allowed` bytes, or than the system has, before it begins. `what` takes a plural verb.
pub(crate) fn check_memory(what: impl FnOnce() -> String, needed: u64, allowed: Option<u64>) -> Result<()> {
    match allowed.or_else(free_memory) {
        Some(allowed) if needed > allowed => Err(Error::TooMuchMemory { what: what(), needed, allowed }),
        _ => Ok(()),
    }
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
