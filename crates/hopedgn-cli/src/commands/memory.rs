//! What this program takes, and what it could take.

/// Most memory this program ever held, in bytes, where the system says.
pub(crate) fn peak() -> Option<u64> {
    entry("/proc/self/status", "VmHWM:")
}

/// Memory that programs can still have without others being put aside, in bytes, where the system says.
pub(crate) fn free() -> Option<u64> {
    entry("/proc/meminfo", "MemAvailable:")
}

/// A number of KiB in a file of the system, as bytes.
fn entry(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}
