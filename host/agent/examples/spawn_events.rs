//! An agent that delegates to another, in a program that shows what happens.
//!
//! ```sh
//! cargo run --example spawn_events
//! ```

#![allow(clippy::print_stdout, reason = "an example speaks")]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use belljar_agent::{Agent, CancellationToken, EventKind, EventSink};
use belljar_model::ScriptedModel;
use belljar_sandbox::{Sandbox, SandboxConfig};

const BOSS: &str = "---\nname: boss\ndescription: Delegates.\ntools: [spawn_agent]\n---\nDelegate.";
const SCOUT: &str = "---\nname: scout\ndescription: Looks.\nmodelRole: main\n---\nYou look.";
const SCRIPT: &str = "
transcript: 1
agents:
  - agent: boss
    turns:
      - calls: [{name: spawn_agent, arguments: {agent: scout, task: Look around.}}]
      - say: The scout saw a tree.
  - agent: scout
    turns: [{say: There is a tree.}]
";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let workspace = tempfile::tempdir()?;
    // No agent here calls a stranger's tool; a program with such agents compiles in a child.
    let sandbox = Sandbox::new(SandboxConfig::default())?;
    let agent = Agent::builder(&sandbox, workspace.path())
        .agent("boss.md", BOSS)
        .agent("scout.md", SCOUT)
        .model(Arc::new(ScriptedModel::from_yaml(SCRIPT, Path::new("script"))?))
        .build()?;
    let children = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&children);
    let events = EventSink::with_listener(move |event| {
        if let EventKind::SubagentDone { .. } = event.kind {
            counted.fetch_add(1, Ordering::Relaxed);
        }
        println!("{} {}", event.agent, event.kind.name());
    });
    let outcome = agent.run_with("What is there?", events, CancellationToken::new()).await;
    println!("{}: {}", outcome.status, outcome.output);
    assert_eq!(children.load(Ordering::Relaxed), 1, "{:?}", outcome.error);
    Ok(())
}
