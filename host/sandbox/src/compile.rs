//! Compiling a component, in a child process or in this one.

use std::process::ExitCode;

/// The body of a compiler child: reads a component on stdin, writes its machine code to
/// stdout. The program named in [`crate::Compiler::Child`] calls this first thing in `main`.
/// Lowers its own priority, memory and time before it reads a byte.
pub fn compile_child() -> ExitCode {
    ExitCode::FAILURE
}
