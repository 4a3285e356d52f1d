//! What a script may use up.
//!
//! Time is the host's to bound: fuel and the call's timeout end an endless loop. What stays
//! here bounds memory, so that a script fails with the shell's own message before the jar's
//! memory limit ends the instance and with it the session.

use bashkit::{ExecutionLimits, FsLimits, MemoryLimits};
use std::time::Duration;

const MIB: usize = 1 << 20;

/// Bytes of stdout, and of stderr, that one call collects. The answer shows less; the rest
/// can be in `$( )` or a pipe.
const STREAM_BYTES: usize = 8 * MIB;

/// Bytes of pipes and captured output alive at the same time: a fifth of a jar's default
/// memory, since a copy or two of each can be alive too.
const LIVE_BYTES: u64 = 48 * MIB as u64;

/// Bytes of all variables of a session.
const VARIABLE_BYTES: usize = 16 * MIB;

/// Bytes of everything under `/tmp`, which is memory.
const SCRATCH_BYTES: u64 = 32 * MIB as u64;

/// Nested syntax, nested `$( )` and nested subshells. Each level costs stack, of which the
/// component has a fixed amount: deeper nesting has to be an error of the shell, not a trap.
const MAX_NESTING: usize = 24;

/// A call that waits longer than this is ended by the host's own timeout in any case; the
/// interpreter wants a number.
const NEVER: Duration = Duration::from_secs(24 * 60 * 60);

pub(crate) fn execution() -> ExecutionLimits {
    ExecutionLimits::new()
        .max_work_units(u64::MAX)
        .max_aggregate_input_bytes(u64::MAX)
        .max_live_intermediate_bytes(LIVE_BYTES)
        .max_commands(usize::MAX)
        .max_loop_iterations(usize::MAX)
        .max_total_loop_iterations(usize::MAX)
        .max_parser_operations(usize::MAX)
        .timeout(NEVER)
        .parser_timeout(NEVER)
        .max_stdout_bytes(STREAM_BYTES)
        .max_stderr_bytes(STREAM_BYTES)
        .max_subst_depth(MAX_NESTING)
        .max_subshell_depth(MAX_NESTING)
}

pub(crate) fn memory() -> MemoryLimits {
    MemoryLimits::new().max_total_variable_bytes(VARIABLE_BYTES)
}

pub(crate) fn scratch() -> FsLimits {
    FsLimits::new().max_total_bytes(SCRATCH_BYTES).max_file_size(SCRATCH_BYTES)
}
