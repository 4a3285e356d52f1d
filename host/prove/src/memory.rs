//! The memory of this process.

/// The most bytes by which one attack may leave the process larger. What stays is machine code that was
/// loaded for the first time, and pages of pool slots that are kept for the next store; neither grows with
/// repetition, which [`crate::Suite::run_soak`] proves. Free memory that the C library has kept is returned
/// before measuring, so it does not count.
pub const GROWTH_BOUND: u64 = 48 << 20;

/// The most bytes by which the process may grow while an attack runs: the jar's memory at its default limit,
/// and [`GROWTH_BOUND`].
pub(crate) const PEAK_BOUND: u64 = (256 << 20) + GROWTH_BOUND;

/// The resident bytes of this process; `None` if the system does not report them.
pub(crate) fn resident_bytes() -> Option<u64> {
    read_resident("self")
}

/// The resident bytes of another process; `None` if the system does not report them.
pub(crate) fn process_resident_bytes(id: u32) -> Option<u64> {
    read_resident(&id.to_string())
}

fn read_resident(process: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/statm")).ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    pages.checked_mul(rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_touched_is_counted() {
        let before = super::resident_bytes().unwrap();
        let touched = std::hint::black_box(vec![1_u8; 32 << 20]);
        let after = super::resident_bytes().unwrap();
        assert!(after >= before + (30 << 20), "{before} {after} {}", touched.len());
    }
}
