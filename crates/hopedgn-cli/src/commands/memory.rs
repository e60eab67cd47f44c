//! Memory of this process, as Linux reports it.

/// Peak resident memory of this process in bytes, where the system reports it.
pub(crate) fn peak() -> Option<u64> {
    entry("/proc/self/status", "VmHWM:")
}

/// The entry `name` of a file under /proc, converted from KiB to bytes.
fn entry(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}
