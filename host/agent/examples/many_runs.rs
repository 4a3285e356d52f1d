//! Embeds the agent crate, without a store: one agent, a scripted model, the stock `file_read`, and as many
//! runs as fit in two seconds.
//!
//! ```sh
//! cargo run --example many_runs
//! ```

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use belljar_agent::{EventSink, Host, RunSpec, RunStatus, resolve_agent, run};
use belljar_catalogue::{Library, LibraryRoot, StockTool, ToolCatalogue};
use belljar_definition::Settings;
use belljar_model::{ModelRegistry, ScriptedModel, Transcript};
use belljar_sandbox::{Sandbox, SandboxConfig};
use tokio_util::sync::CancellationToken;

const AGENT: &str = "---
name: reader
description: Reads two files.
visibility: user-facing
tools: [file_read]
---
You read files.
";

const TRANSCRIPT: &str = "
transcript: 1
agents:
  - agent: reader
    turns:
      - calls: [{name: file_read, arguments: {path: a.txt}}]
      - calls: [{name: file_read, arguments: {path: b.txt}}]
      - say: Both are short.
";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let home = tempfile::tempdir().unwrap();
    let workspace = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("agents")).unwrap();
    std::fs::write(home.path().join("agents/reader.md"), AGENT).unwrap();
    for name in ["a.txt", "b.txt"] {
        std::fs::write(workspace.path().join(name), "some text\n".repeat(100)).unwrap();
    }

    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let tool = StockTool::from_files(
        &root.join("tools/prebuilt/file_read.wasm"),
        &root.join("tools/file_read/tool.toml"),
    )
    .unwrap();
    let settings = Arc::new(Settings::default());
    let sandbox = Sandbox::new(SandboxConfig::default()).unwrap();
    let tools = ToolCatalogue::from_stock([tool], &settings);
    let library =
        Library::open(vec![LibraryRoot::for_home(home.path())], tools.known_tools(), false);
    let transcript = Arc::new(Transcript::parse(TRANSCRIPT, Path::new("example")).unwrap());
    let nobody = ScriptedModel::new(Arc::clone(&transcript));
    let models = Arc::new(ModelRegistry::from_single(Arc::new(nobody)));
    let host = Host::new(sandbox, models, settings, Arc::new(tools), Arc::new(library));
    let agent = Arc::new(resolve_agent(&host, "reader", workspace.path()).unwrap());

    let one = async |host: &Host| {
        // Each value plays the transcript once.
        let model = Arc::new(ScriptedModel::new(Arc::clone(&transcript)));
        let mut host = host.clone();
        host.models = Arc::new(ModelRegistry::from_single(model));
        let task = "How long are a.txt and b.txt?";
        let spec = RunSpec::new(Arc::clone(&agent), task, workspace.path().to_owned());
        let outcome = run(&host, spec, EventSink::none(), CancellationToken::new()).await;
        assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    };
    // The first run compiles the component.
    one(&host).await;
    let start = Instant::now();
    let mut runs = 0;
    while start.elapsed() < Duration::from_secs(2) {
        one(&host).await;
        runs += 1;
    }
    println!(
        "{:.0} runs a second, one after the other",
        f64::from(runs) / start.elapsed().as_secs_f64()
    );
}
