//! Compiles WebAssembly to machine code. The settings of all engines are here.
//!
//! A crate of its own, so that a build script can compile components with the settings of the program that
//! loads them, before the sandbox is built.

mod packed;

use wasmtime::{Config, Engine, WasmFeatures};

pub use packed::{pack_code, unpack_code};

/// The bytes of WebAssembly from which on compiler threads save more time than starting them takes.
const PARALLEL_FROM: usize = 512 << 10;

/// The bytes of stack for guest code: 1 MiB, because an interpreter in a guest calls itself deeply, and
/// every store reserves as much.
const WASM_STACK: usize = 1 << 20;

/// The bytes of a store's fiber stack: for the guest, and for host functions that the guest calls.
const FIBER_STACK: usize = 2 << 20;

/// The settings of every engine and of the compiler, for the processor of this machine. Every setting that
/// affects machine code is here. Proposals of WebAssembly that no supported toolchain needs are switched
/// off, because they would be attack surface.
pub fn engine_config() -> Config {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        // Support for concurrent tasks in a component would cost a microsecond per call and be attack
        // surface, and each call runs alone in its store.
        .concurrency_support(false)
        .max_wasm_stack(WASM_STACK)
        .async_stack_size(FIBER_STACK)
        // A store must never see data of another store on a fiber stack.
        .async_stack_zeroing(true)
        .shared_memory(false)
        .gc_support(false)
        // A receipt needs the name of a trap only, and frames of foreign code are not shown. Without
        // backtraces there is no table from machine code to WebAssembly, which would double the size.
        .wasm_backtrace_max_frames(None)
        .generate_address_map(false)
        // A trap leaves all frames of a guest at once, so nothing is unwound.
        .native_unwind_info(false);
    // Several memories stay allowed, because wasmtime's own adapters between the instances of a component
    // need them.
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
/// The bytes are not a component, or use a proposal that is switched off.
pub fn compile_component(wasm: &[u8]) -> wasmtime::Result<Vec<u8>> {
    compile_with(engine_config(), wasm)
}

/// Compiles a component for all processors of a target, given by Rust's name for the target. The code uses
/// only instructions that all these processors have, and loads into an engine on any of them.
///
/// # Errors
///
/// The errors of [`compile_component`]; also, the target is not known.
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
