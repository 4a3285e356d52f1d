//! A jar in another program: reads a file with the stock tool `file_read`, which can see one
//! directory and nothing else.
//!
//! ```text
//! cargo run -p belljar-sandbox --example embed -- DIRECTORY FILE
//! ```

#![allow(clippy::print_stdout, reason = "an example speaks")]

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use belljar_policy::{
    Access, Asked, Budget, Caps, Grants, GuestPath, Level, Limits, Mount, Permission, Rights,
    ToolAsk,
};
use belljar_sandbox::{
    Compiler, Jar, JarSpec, JarTool, Part, Sandbox, SandboxConfig, SecretStore, Wasm, compile_child,
};
use tokio_util::sync::CancellationToken;

/// The first argument with which this program is its own compiler.
const COMPILE: &str = "compile-component";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    // Strangers' components are compiled in a child process, with limits.
    if args.first().is_some_and(|first| first == COMPILE) {
        return compile_child(true);
    }
    let [directory, file] = &args[..] else {
        println!("usage: embed DIRECTORY FILE");
        return ExitCode::FAILURE;
    };
    match run(Path::new(directory), file) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run(directory: &Path, file: &str) -> Result<(), Box<dyn Error>> {
    let program = std::env::current_exe()?;
    let compiler = Compiler::Child { program, args: vec![COMPILE.into()] };
    let sandbox = Sandbox::new(SandboxConfig { compiler, ..SandboxConfig::default() })?;

    let component = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/prebuilt/file_read.wasm");
    let jar = make_jar(&sandbox, Wasm::new(std::fs::read(component)?), directory).await?;

    // What a model would ask for: a tool's name, and arguments as JSON.
    let permit = jar.rights.tool("file_read")?;
    let result = jar.jar.call(permit, &format!("{{\"path\": {file:?}}}")).await;
    for part in result.outcome?.parts {
        if let Part::Text(text) = part {
            println!("{text}");
        }
    }
    let receipt = result.receipt;
    println!("read {:?}, {} fuel, {} µs", receipt.paths_read, receipt.fuel, receipt.times.total);
    jar.jar.close().await;
    Ok(())
}

/// A jar and the rights it was made from, which give the permits for its calls.
struct Embedded {
    jar: Jar,
    rights: Rights,
}

async fn make_jar(
    sandbox: &Sandbox,
    wasm: Wasm,
    directory: &Path,
) -> Result<Embedded, Box<dyn Error>> {
    // Runs the component's `describe`, in a store that has nothing.
    let described = sandbox.describe(&wasm).await?;
    let tools: BTreeMap<_, _> =
        described.iter().map(|tool| (tool.name.clone(), tool.hints)).collect();

    // What the operator gives: the tools, and one directory to read.
    let grants = Grants {
        tools: tools.keys().map(|name| (name.clone(), Permission::Allow)).collect(),
        mounts: vec![Mount {
            guest: GuestPath::workspace(),
            host: directory.to_owned(),
            access: Access::Read,
        }],
        ..Grants::none()
    };
    let (rights, _) = Rights::effective(&Asked::default(), &grants, None);

    // What the tool asks for: both have to agree.
    let ask =
        ToolAsk { mounts: Some(Access::Read), secrets: BTreeSet::new(), ..ToolAsk::default() };
    let spec = JarSpec {
        rights: rights.clone(),
        budget: Budget::root(Level::Subagent, Caps::of(&Limits::default())),
        tools: vec![JarTool { tools, wasm, ask, config: Arc::default() }],
        secrets: SecretStore::default(),
        cancel: CancellationToken::new(),
    };
    Ok(Embedded { jar: sandbox.jar(spec)?, rights })
}
