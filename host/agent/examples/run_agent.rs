//! An agent in another program: its file, one tool, a scripted model, and a task.
//!
//! ```sh
//! cargo run --example run_agent
//! ```

#![allow(clippy::print_stdout, reason = "an example speaks")]

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use belljar_agent::{Agent, RunStatus};
use belljar_model::ScriptedModel;
use belljar_sandbox::{Sandbox, SandboxConfig, compiler_child};

const READER: &str =
    "---\nname: reader\ndescription: Reads notes.\ntools: [file_read]\n---\nYou read.";

// Replaces a model: `belljar_model` has clients for real ones.
const SCRIPT: &str = "
transcript: 1
agents:
  - agent: reader
    turns:
      - calls: [{name: file_read, arguments: {path: notes.txt}}]
      - say: The plants need water.
";

fn main() -> ExitCode {
    // Tools are compiled in a child process, with limits: this program again.
    if let Some(done) = compiler_child() {
        return done;
    }
    run().map_or_else(
        |error| {
            println!("error: {error}");
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    )
}

/// Builds the agent, runs a task and prints the output.
#[tokio::main]
async fn run() -> Result<(), Box<dyn Error>> {
    let workspace = tempfile::tempdir()?;
    std::fs::write(workspace.path().join("notes.txt"), "Water the plants.\n")?;
    let sandbox = Sandbox::new(SandboxConfig::compiling_in_child()?)?;
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools");
    let agent = Agent::builder(&sandbox, workspace.path())
        .agent("reader.md", READER)
        .tool_files(tools.join("prebuilt/file_read.wasm"), tools.join("file_read/tool.toml"))
        .model(Arc::new(ScriptedModel::from_yaml(SCRIPT, Path::new("script"))?))
        .build()?;
    let outcome = agent.run("What do my notes say?").await;
    println!("{}: {} ({} calls)", outcome.status, outcome.output, outcome.receipts.len());
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    Ok(())
}
