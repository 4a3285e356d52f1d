//! Compiles WebAssembly to machine code: the only set of engine settings, and the compiler.
//!
//! This crate is separate from the sandbox, so that a build script can compile components with the settings
//! of the program that loads them, without building the sandbox first.

mod packed;

use wasmtime::{Config, Engine, WasmFeatures};

pub use packed::{pack_code, unpack_code};

/// The size in bytes of WebAssembly from which compiler threads save more time than their start costs.
const PARALLEL_FROM: usize = 512 << 10;

/// The stack of guest code: 1 MiB, because an interpreter in a guest recurses deeply, and every store has to
/// reserve this much.
const WASM_STACK: usize = 1 << 20;

/// The stack of a store's fiber: the guest's stack, and that of host functions above it.
const FIBER_STACK: usize = 2 << 20;

/// The settings of every engine, and of the compiler, for the processor of this machine. Every setting that
/// affects machine code is fixed here. WebAssembly proposals that no supported toolchain needs are off,
/// because they would be attack surface.
pub fn engine_config() -> Config {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        // The support for concurrent component tasks costs a microsecond a call and is attack
        // surface, but each call runs alone in its store.
        .concurrency_support(false)
        .max_wasm_stack(WASM_STACK)
        .async_stack_size(FIBER_STACK)
        // A store must never see the data of another on a fiber stack.
        .async_stack_zeroing(true)
        .shared_memory(false)
        .gc_support(false)
        // The trap's name is enough for a receipt, and frames of foreign code are not shown.
        // Without backtraces, no table from machine code to WebAssembly is needed, which would
        // double the size.
        .wasm_backtrace_max_frames(None)
        .generate_address_map(false)
        // A trap leaves all frames of a guest at once, so no unwinding is needed.
        .native_unwind_info(false);
    // Multiple memories stay on, because wasmtime's own adapters between the instances of one
    // component use them.
    for feature in [
        WasmFeatures::THREADS,
        WasmFeatures::SHARED_EVERYTHING_THREADS,
        WasmFeatures::MEMORY64,
        WasmFeatures::EXCEPTIONS,
        WasmFeatures::GC,
        WasmFeatures::FUNCTION_REFERENCES,
        WasmFeatures::TAIL_CALL,
        WasmFeatures::RELAXED_SIMD,
    ] {
        config.wasm_features(feature, false);
    }
    config
}

/// Compiles a component to machine code, for the processor of this machine.
///
/// # Errors
///
/// The bytes are not a component, or use a proposal that is off.
pub fn compile_component(wasm: &[u8]) -> wasmtime::Result<Vec<u8>> {
    compile_with(engine_config(), wasm)
}

/// Compiles for any processor of a target, by Rust's name of the target: the code only uses instructions that
/// all these processors have. An engine of any such machine loads it.
///
/// # Errors
///
/// Those of [`compile_component`], and an error for an unknown target.
pub fn compile_for(target: &str, wasm: &[u8]) -> wasmtime::Result<Vec<u8>> {
    let mut config = engine_config();
    config.target(target)?;
    compile_with(config, wasm)
}

fn compile_with(mut config: Config, wasm: &[u8]) -> wasmtime::Result<Vec<u8>> {
    config.parallel_compilation(wasm.len() >= PARALLEL_FROM);
    Engine::new(&config)?.precompile_component(wasm)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_is_unpacked_and_nothing_else_is() {
        let code = compile_component(b"\0asm\x0d\0\x01\0").unwrap();
        assert!(Engine::detect_precompiled(&code).is_some());
        let packed = pack_code(&code);
        assert_eq!(unpack_code(&packed).unwrap(), code);
        assert_eq!(unpack_code(&packed[..packed.len() - 1]), None);
        assert_eq!(unpack_code(b""), None);
    }
}
