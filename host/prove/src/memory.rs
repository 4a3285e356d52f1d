//! How large this process is.

/// By how much one attack may leave the process larger than it was, in bytes. What stays is
/// machine code loaded for the first time and pages of pool slots that are kept for the next
/// store; neither grows with repetition, which [`crate::Suite::run_soak`] proves. Free memory that the C
/// library kept does not count: it is given back before the process is weighed.
pub const GROWTH_BOUND: u64 = 48 << 20;

/// By how much the process may grow while an attack runs: the jar's own memory at its default
/// limit, and as much again as may stay.
pub(crate) const PEAK_BOUND: u64 = (256 << 20) + GROWTH_BOUND;

/// Resident bytes of this process; `None` where the system does not say.
pub(crate) fn resident_bytes() -> Option<u64> {
    read_resident("self")
}

/// The same of another process.
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
