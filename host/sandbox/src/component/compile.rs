//! Compiles a component, in a child process or in this one.
//!
//! A stranger can write a component whose compilation takes hours or all memory. So a child process compiles
//! it, with limits of the operating system on both. The host waits with a time limit of its own, and kills
//! the child when no caller waits any more.

use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use belljar_os_sandbox::{DerivedFile, RunningChild, Wall};
use belljar_policy::ShownText;
use belljar_work::{OPERATOR, WorkKind};
use rustix::process::{Resource, Rlimit, Signal};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use crate::Compiler;
use crate::component::adapt::{self, is_module};
use crate::component::artifact::CompiledArtifact;
use crate::component::cache::MAX_ENTRY;
use crate::component::inspect::MAX_COMPONENT;
use crate::component::wasm::Wasm;
use crate::error::{LoadError, SandboxError};

/// The address space of the compiling child: 4 GiB. The largest known tool uses 373 MiB of memory, and
/// threads and the allocator reserve a multiple of that.
const CHILD_MEMORY: u64 = 4 << 30;

/// The processor time of the compiling child, all threads together, in seconds. The largest known tool needs
/// 14 on a fast machine, and a slow machine needs ten times as much.
const CHILD_CPU_SECONDS: u64 = 300;

/// The most open files of the compiling child: its standard streams and a few of the runtime's.
const CHILD_FILES: u64 = 32;

/// How much the compiling child's priority is lowered (`nice`).
const CHILD_NICE: i32 = 10;

/// How long a caller waits for the compiling child: half an hour, because the child runs at a low priority
/// and may get a tenth of a busy machine's processor. A child that computes is ended earlier by
/// [`CHILD_CPU_SECONDS`]; this limit ends one that hangs.
pub(crate) const WAIT: Duration = Duration::from_secs(1_800);

/// The most bytes that are read of the child's error text.
const MAX_COMPLAINT: u64 = 4 << 10;

/// Compiles a component to machine code, in the place the configuration names.
pub(crate) async fn compile_component(
    compiler: &Compiler,
    wasm: &Wasm,
) -> Result<CompiledArtifact, LoadError> {
    // INV-225: refused here, because the child answers a core module with a component, not machine code.
    if is_module(wasm.bytes()) {
        return Err(LoadError::CoreModule);
    }
    let bytes = match compiler {
        Compiler::Child { program, args } => {
            let mut command = std::process::Command::new(program);
            command.args(args).env_clear();
            in_child(RunningChild::start_here(command), wasm.bytes()).await?
        }
        Compiler::Broker(broker) => {
            let made =
                tokio::time::timeout(WAIT, broker.make_derived(DerivedFile::Code, wasm.bytes()))
                    .await;
            made.map_err(|_| too_long(WAIT))?
                .map_err(|error| LoadError::Compile(error.to_string()))?
        }
        Compiler::InProcess => {
            let wasm = wasm.clone();
            belljar_work::run_job(&COMPILE, OPERATOR, move |_| compile_in_process(wasm.bytes()))
                .await
                .map_err(|_| LoadError::Compile("the compiler crashed".to_owned()))?
                .map_err(LoadError::Compile)?
        }
    };
    Ok(CompiledArtifact::from_trusted(bytes))
}

/// Converts a core module that is a command to a component, in the place where components are compiled,
/// because the module is a stranger's too.
pub(crate) async fn adapt_module(compiler: &Compiler, module: &[u8]) -> Result<Vec<u8>, LoadError> {
    if module.len() as u64 > MAX_COMPONENT {
        let size = module.len() as u64;
        return Err(LoadError::TooLarge { size, limit: MAX_COMPONENT });
    }
    if !is_module(module) {
        return Err(LoadError::NotWasm);
    }
    match compiler {
        Compiler::Child { program, args } => {
            let mut command = std::process::Command::new(program);
            command.args(args).env_clear();
            // The child sees from the first bytes that this is a module, and converts instead of compiling.
            pipe_through_child(RunningChild::start_here(command), &[module], MAX_COMPONENT, WAIT)
                .await
        }
        Compiler::Broker(_) => {
            let why = "core modules are adapted when they are installed, not behind the OS sandbox";
            Err(LoadError::Compile(why.to_owned()))
        }
        Compiler::InProcess => {
            let module = module.to_vec();
            belljar_work::run_job(&COMPILE, OPERATOR, move |_| adapt::adapt_trusted_module(&module))
                .await
                .map_err(|_| LoadError::Compile("the adapter crashed".to_owned()))?
                .map_err(LoadError::Compile)
        }
    }
}

/// A compilation counts as work of the operator, because components are installed tools or the program's
/// own.
const COMPILE: WorkKind = WorkKind { name: "compiling a component", time: WAIT };

/// The command-line argument with which a program starts itself as its compiler.
const CHILD: &str = "belljar-compile-component";

/// Whether the program calls [`compiler_child`], so that it can be started with [`CHILD`].
static BECOMES_COMPILER: AtomicBool = AtomicBool::new(false);

/// Compiles a component if the current process was started as a compiler. Call it first in the `main` of a
/// program whose sandbox is made from [`crate::SandboxConfig::compiling_in_child`]. Returns the exit code
/// for `main`, or `None` in an ordinary process.
///
/// ```no_run
/// # use std::process::ExitCode;
/// fn main() -> ExitCode {
///     if let Some(done) = belljar_sandbox::compiler_child() {
///         return done;
///     }
///     // The program itself.
///     ExitCode::SUCCESS
/// }
/// ```
pub fn compiler_child() -> Option<ExitCode> {
    BECOMES_COMPILER.store(true, Ordering::Relaxed);
    std::env::args_os().nth(1).filter(|first| first == CHILD).map(|_| compile_child(true))
}

/// Names the running program as the compiler. Refuses a program that does not call [`compiler_child`],
/// because its child would start the program once more, and so on endlessly.
pub(crate) fn this_program() -> Result<Compiler, SandboxError> {
    if !BECOMES_COMPILER.load(Ordering::Relaxed) {
        return Err(SandboxError::NoCompilerChild);
    }
    let program = std::env::current_exe().map_err(SandboxError::Program)?;
    Ok(Compiler::Child { program, args: vec![CHILD.into()] })
}

/// The whole life of a compiling child: reads a component from stdin and writes its machine code to stdout.
/// For a core module it writes the component made from it. The program named in [`crate::Compiler::Child`]
/// calls this first in `main`. Before it reads a byte, the child lowers its own priority, memory and time;
/// with `walled` it also raises an OS sandbox that allows no file, no network and no other program.
pub fn compile_child(walled: bool) -> ExitCode {
    belljar_os_sandbox::conceal_process();
    if walled {
        // The child shares the kernel with the host, which reports if the kernel lacks support.
        let _ = Wall::default().raise_wall();
    }
    match run_child() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            let _ = io::stderr().write_all(why.as_bytes());
            ExitCode::FAILURE
        }
    }
}

/// The work of the compiler's child process: limits itself, reads the component from stdin, compiles it, and
/// writes the machine code to stdout. A core module is adapted to a component instead.
fn run_child() -> Result<(), String> {
    let step = |what: &'static str| move |error: io::Error| format!("{what}: {error}");
    restrict_process(CHILD_MEMORY, 0).map_err(step("limiting the compiler"))?;
    let mut wasm = Vec::new();
    io::stdin()
        .lock()
        .take(MAX_COMPONENT + 1)
        .read_to_end(&mut wasm)
        .map_err(step("reading the component"))?;
    if wasm.len() as u64 > MAX_COMPONENT {
        return Err("the component is too large".to_owned());
    }
    let made = if is_module(&wasm) {
        adapt::adapt_trusted_module(&wasm)?
    } else {
        compile_in_process(&wasm)?
    };
    let mut stdout = io::stdout().lock();
    stdout.write_all(&made).and_then(|()| stdout.flush()).map_err(step("writing the code"))
}

/// Lowers the limits of the current process for good: `addresses` bytes of address space, `file` bytes in
/// any file, and the constants above. A lower existing limit stays.
pub(crate) fn restrict_process(addresses: u64, file: u64) -> io::Result<()> {
    for (resource, limit) in [
        (Resource::As, addresses),
        (Resource::Cpu, CHILD_CPU_SECONDS),
        (Resource::Nofile, CHILD_FILES),
        // A process that crashes on foreign input must not write a core dump.
        (Resource::Core, 0),
        (Resource::Fsize, file),
    ] {
        let now = rustix::process::getrlimit(resource);
        let limit = now.maximum.map_or(limit, |maximum| maximum.min(limit));
        let limit = Rlimit { current: Some(limit), maximum: Some(limit) };
        rustix::process::setrlimit(resource, limit)?;
    }
    let _ = rustix::process::nice(CHILD_NICE);
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(())
}

fn compile_in_process(wasm: &[u8]) -> Result<Vec<u8>, String> {
    belljar_engine::compile_component(wasm)
        .map_err(|error| ShownText::clip_line(&format!("{error:#}"), 1_000).to_string())
}

async fn in_child(started: io::Result<RunningChild>, wasm: &[u8]) -> Result<Vec<u8>, LoadError> {
    pipe_through_child(started, &[wasm], MAX_ENTRY, WAIT).await
}

fn too_long(wait: Duration) -> LoadError {
    LoadError::Compile(format!("it took over {} seconds", wait.as_secs()))
}

/// Writes `parts` to the stdin of a child, and returns its stdout, at most `limit` bytes. Fails after the
/// time `wait`. Dropping the future kills the child.
pub(crate) async fn pipe_through_child(
    started: io::Result<RunningChild>,
    parts: &[&[u8]],
    limit: u64,
    wait: Duration,
) -> Result<Vec<u8>, LoadError> {
    let failed = |what: &str, error: io::Error| LoadError::Compile(format!("{what}: {error}"));
    let mut child = started.map_err(|error| failed("the compiler does not start", error))?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async {
        if let Some(mut stdin) = stdin {
            // A child that refuses the input early closes the pipe; its error text is read below.
            for part in parts {
                let _ = stdin.write_all(part).await;
            }
        }
    };
    let work = async {
        let ((), code, complaint) =
            tokio::join!(write, read_bounded(stdout, limit), read_bounded(stderr, MAX_COMPLAINT));
        Ok::<_, io::Error>((child.wait().await?, code?, complaint?))
    };
    let (status, code, complaint) = tokio::time::timeout(wait, work)
        .await
        .map_err(|_| too_long(wait))?
        .map_err(|error| failed("talking to the compiler", error))?;
    let fits = code.len() as u64 <= limit;
    if status.success() && fits {
        return Ok(code);
    }
    if !fits {
        let most = limit >> 20;
        return Err(LoadError::Compile(format!("its machine code has more than {most} MiB")));
    }
    let complaint = String::from_utf8_lossy(&complaint);
    let shown = ShownText::clip_line(complaint.trim(), 1_000).to_string();
    Err(LoadError::Compile(if shown.is_empty() {
        format!("the compiler: {status}")
    } else {
        shown
    }))
}

/// Reads at most `limit` bytes, and one more if the input is longer, so that the caller sees it.
async fn read_bounded(from: Option<impl AsyncRead + Unpin>, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        from.take(limit + 1).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}
