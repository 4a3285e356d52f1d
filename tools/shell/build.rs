//! Gives the component the stack that a recursive interpreter needs.

/// Bytes of the component's own stack. The linker's 1 MiB is used up by a dozen nested
/// functions and substitutions, and running over it is a trap, not an error of the script.
const STACK: usize = 8 << 20;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_FAMILY").is_ok_and(|family| family == "wasm") {
        println!("cargo::rustc-link-arg-cdylib=-zstack-size={STACK}");
    }
}
