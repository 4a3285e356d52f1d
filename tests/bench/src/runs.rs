//! Whole subagent runs with the scripted model: three turns, two `file_read` calls.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use belljar_agent::{EventSink, Host, RunSpec, RunStatus, SystemClock, run};
use belljar_kit::world::{Plan, World, agent};
use belljar_model::{ModelRegistry, ScriptedModel, Transcript};
use belljar_sandbox::{Compiler, PoolConfig, Sandbox, SandboxConfig};
use tokio_util::sync::CancellationToken;

use crate::report::Row;

/// Runs in flight at a time: enough to keep two cores busy.
const IN_FLIGHT: usize = 8;

const TRANSCRIPT: &str = r#"
transcript: 1
agents:
  - agent: reader
    spawn: any
    turns:
      - calls: [{name: file_read, arguments: {path: page.txt}}]
      - calls: [{name: file_read, arguments: {path: page.txt}}]
      - say: Done.
"#;

/// How many runs end in a second on all cores of the machine.
pub(crate) async fn scripted(root: &Path, count: usize) -> anyhow::Result<Row> {
    let world = world(root, "", &[("reader.md", &agent("reader", "tools: [file_read]\n"))])?;
    let (host, spec) = (&world.host, world.spec("reader", "Read the page."));
    batch(host, &spec, count / 10 + IN_FLIGHT).await?;
    let started = Instant::now();
    batch(host, &spec, count).await?;
    let rate = count as f64 / started.elapsed().as_secs_f64();
    Ok(Row::new("scripted runs (3 turns, 2 tool calls)", format!("{rate:.0} a second"))
        .verdict(format!("{:.2} ms each", 1000.0 / rate), "at least 2,000 a second on 2 cores"))
}

async fn batch(host: &Host, spec: &RunSpec, count: usize) -> anyhow::Result<()> {
    let lanes = (0..IN_FLIGHT).map(|lane| {
        let (host, spec) = (host.clone(), spec.clone());
        let share = count / IN_FLIGHT + usize::from(lane < count % IN_FLIGHT);
        tokio::spawn(async move {
            for _ in 0..share {
                let mut host = host.clone();
                host.models = models()?;
                let outcome =
                    run(&host, spec.clone(), EventSink::none(), CancellationToken::new()).await;
                anyhow::ensure!(outcome.status == RunStatus::Completed, "{outcome:?}");
                anyhow::ensure!(outcome.receipts.len() == 2, "{:?}", outcome.receipts);
            }
            Ok(())
        })
    });
    for lane in lanes.collect::<Vec<_>>() {
        lane.await??;
    }
    Ok(())
}

/// A script plays once, so each run gets a model of its own; the transcript is parsed once.
fn models() -> anyhow::Result<Arc<ModelRegistry>> {
    static PARSED: OnceLock<Arc<Transcript>> = OnceLock::new();
    let transcript = match PARSED.get() {
        Some(parsed) => parsed,
        None => {
            let parsed = Transcript::parse(TRANSCRIPT, Path::new("bench.yaml"))?;
            PARSED.get_or_init(|| Arc::new(parsed))
        }
    };
    Ok(Arc::new(ModelRegistry::from_single(Arc::new(ScriptedModel::new(Arc::clone(transcript))))))
}

/// A world with `file_read` alone, a file to read, and as many stores as the runs in flight need.
pub(crate) fn world(root: &Path, settings: &str, agents: &[(&str, &str)]) -> anyhow::Result<World> {
    let page = "0123456789abcde\n".repeat(256);
    let mut world =
        World::new(Plan { settings, agents, files: &[("page.txt", &page)], ..Plan::default() });
    world.host.clock = Arc::new(SystemClock);
    world.host.sandbox = Sandbox::new(SandboxConfig {
        cache_dir: Some(root.join("target/belljar-bench-cache")),
        compiler: Compiler::InProcess,
        pool: PoolConfig { slots: 100 },
        ..SandboxConfig::default()
    })?;
    Ok(world)
}
