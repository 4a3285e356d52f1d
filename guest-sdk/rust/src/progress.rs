//! How far a long call has come. Display only.

/// Reports `done` out of `total` (absent where the end is not known), in the same unit of
/// the tool's choice. The host drops reports past its bound. Natively this does nothing.
pub fn report(done: u64, total: Option<u64>, message: &str) {
    #[cfg(target_family = "wasm")]
    crate::bindings::belljar::tool::progress::report(done, total, message);
    #[cfg(not(target_family = "wasm"))]
    let _ = (done, total, message);
}
