//! Code in jars: `run_javascript` and `run_python`, opened, called, called back from, and what a model
//! reads of a task with and without them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use belljar_agent::{Outcome, RunStatus};
use belljar_kit::world::{Plan, World, agent, stock};
use belljar_policy::{
    AskedRights, Budget, BudgetCaps, BudgetLevel, CallPermission, Grants, Limits, PeersAsk, Rights,
    ToolAsk, ToolName,
};
use belljar_sandbox::{
    Compiler, Jar, JarSpec, JarTool, PoolConfig, Sandbox, SandboxConfig, SecretStore, ToolHints,
    Wasm,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::measure::{median, micros, resident_anon};
use crate::report::Row;

/// Files of the task that is done by calls and by code.
const FILES: usize = 40;

/// Calls that one answer of a model makes: an agent takes at most 32 in a step.
const CALLS_PER_STEP: usize = 20;

/// Calls that one script makes; the default limit of nested calls is 1,000.
const NESTED: usize = 500;

/// Calls before one is called warm: they touch the pages that every later one finds.
const WARMING: usize = 20;

/// An interpreter, the shortest script in it, and what its rows should reach.
struct Language {
    tool: &'static str,
    script: &'static str,
    open: &'static str,
    first: &'static str,
    warm: &'static str,
    resident: &'static str,
}

const LANGUAGES: [Language; 2] = [
    Language {
        tool: "run_javascript",
        script: "1+1",
        open: "at most 50 µs",
        first: "at most 60 µs",
        warm: "at most 25 µs",
        resident: "at most 160 KiB",
    },
    Language {
        tool: "run_python",
        script: "print(1)",
        open: "at most 800 µs",
        first: "at most 1,200 µs",
        warm: "at most 150 µs",
        resident: "at most 1,536 KiB",
    },
];

/// All rows. `times`: calls of each kind; `jars`: live jars of each language.
pub(crate) async fn rows(root: &Path, times: usize, jars: usize) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for language in &LANGUAGES {
        let bench = Bench::new(root, language.tool, jars as u32 + 10)?;
        rows.extend(language.calls(&bench, times).await?);
        rows.push(language.live(&bench, jars).await?);
    }
    rows.push(nested(root, times).await?);
    rows.push(tokens(root).await?);
    Ok(rows)
}

impl Language {
    /// Opening a store, the first call in it, and later ones. A first call of an agent opens the store, so
    /// their sum is printed as well.
    async fn calls(&self, bench: &Bench, times: usize) -> anyhow::Result<Vec<Row>> {
        let Self { tool, script, .. } = self;
        let arguments = json!({ "code": script }).to_string();
        let (mut open, mut first, mut both, mut warm) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for _ in 0..times {
            let jar = bench.jar()?;
            let started = Instant::now();
            jar.preopen_store(tool).await?;
            open.push(started.elapsed());
            first.push(bench.call(&jar, &arguments).await?);
            both.push(bench.call(&bench.jar()?, &arguments).await?);
        }
        let jar = bench.jar()?;
        for n in 0..times + WARMING {
            let took = bench.call(&jar, &arguments).await?;
            warm.extend((n >= WARMING).then_some(took));
        }
        Ok(vec![
            Row::new(format!("open a {tool} store"), micros(median(open))).verdict("", self.open),
            Row::new(format!("first `{script}` in it"), micros(median(first)))
                .verdict("", self.first),
            Row::new(format!("first `{script}`, its store opened for it"), micros(median(both))),
            Row::new(format!("warm `{script}`"), micros(median(warm))).verdict("", self.warm),
        ])
    }

    /// Memory of live jars that have run a script.
    async fn live(&self, bench: &Bench, count: usize) -> anyhow::Result<Row> {
        let arguments = json!({ "code": self.script }).to_string();
        bench.call(&bench.jar()?, &arguments).await?;
        let before = resident_anon().unwrap_or_default();
        let mut jars = Vec::with_capacity(count);
        for _ in 0..count {
            let jar = bench.jar()?;
            bench.call(&jar, &arguments).await?;
            jars.push(jar);
        }
        let each = resident_anon().unwrap_or_default().saturating_sub(before) / count.max(1) as u64;
        Ok(Row::new(
            format!("{count} live {} jars after a call, RssAnon each", self.tool),
            format!("{} KiB", each / 1024),
        )
        .verdict("", self.resident))
    }
}

/// A sandbox and an interpreter in it.
struct Bench {
    sandbox: Sandbox,
    wasm: Wasm,
    tool: ToolName,
}

impl Bench {
    fn new(root: &Path, tool: &str, slots: u32) -> anyhow::Result<Self> {
        let config = SandboxConfig { pool: PoolConfig { slots }, ..config(root) };
        let wasm = belljar_kit::stock(tool);
        Ok(Self { sandbox: Sandbox::new(config)?, wasm, tool: ToolName::new(tool)? })
    }

    fn rights(&self) -> Rights {
        let tools = BTreeMap::from([(self.tool.clone(), CallPermission::Allow)]);
        let grants = Grants { tools, ..Grants::none() };
        Rights::intersect_rights(&AskedRights::default(), &grants, None).0
    }

    fn jar(&self) -> anyhow::Result<Jar> {
        let rights = self.rights();
        let limits = Limits { fuel: u64::MAX, output_total_bytes: u64::MAX, ..*rights.limits() };
        let tool = JarTool {
            tools: BTreeMap::from([(self.tool.clone(), ToolHints::default())]),
            wasm: self.wasm.clone(),
            ask: ToolAsk { peers: PeersAsk::All, ..ToolAsk::default() },
            config: Arc::default(),
        };
        Ok(self.sandbox.open_jar(JarSpec {
            rights,
            budget: Budget::new_root(BudgetLevel::Subagent, BudgetCaps::for_agent(&limits)),
            tools: vec![tool],
            secrets: SecretStore::default(),
            overlays: BTreeMap::new(),
            cancel: CancellationToken::new(),
        })?)
    }

    async fn call(&self, jar: &Jar, arguments: &str) -> anyhow::Result<Duration> {
        let permit = self.rights().tool(self.tool.as_str())?;
        let started = Instant::now();
        let result = jar.call_permitted(permit, arguments).await;
        let took = started.elapsed();
        result.outcome?;
        Ok(took)
    }
}

fn config(root: &Path) -> SandboxConfig {
    SandboxConfig {
        cache_dir: Some(root.join("target/belljar-bench-cache")),
        compiler: Compiler::InProcess,
        ..SandboxConfig::default()
    }
}

/// A call of `file_read` that a script makes, with all that an agent's calls pass, against the same
/// call made in a jar by the host.
async fn nested(root: &Path, times: usize) -> anyhow::Result<Row> {
    let few = crate::stores::Bench::new(root, 100)?;
    let (direct, _) = crate::stores::read_medians(&few, times).await?;
    let script =
        |calls: usize| format!("for _ in range({calls}):\n    tools.file_read(path='page.txt')\n");
    let (mut empty, mut full) = (Vec::new(), Vec::new());
    for _ in 0..(times / 50).clamp(3, 20) {
        for (calls, into) in [(0, &mut empty), (NESTED, &mut full)] {
            let world = world(
                root,
                "[grants.it]\ntools = [\"run_python\", \"file_read\"]\n",
                &turns(&[json!({"name": "run_python", "arguments": {"code": script(calls)}})]),
            )?;
            let started = Instant::now();
            completed(&world).await?;
            into.push(started.elapsed());
        }
    }
    let each = median(full).saturating_sub(median(empty)) / NESTED as u32;
    Ok(Row::new("file_read of 4 KiB from Python, of an agent", micros(each))
        .against("called by the host in a jar", micros(direct))
        .verdict(format!("+{}", micros(each.saturating_sub(direct))), "at most 40 µs more"))
}

/// The bill of a model for reading files and counting something, by code and by calls.
async fn tokens(root: &Path) -> anyhow::Result<Row> {
    let names: Vec<String> = (0..FILES).map(|n| format!("notes/{n:02}.txt")).collect();
    let reads: Vec<_> = names
        .iter()
        .map(|path| json!({"name": "file_read", "arguments": {"path": path}}))
        .collect();
    let calls =
        world(root, "[grants.it]\ntools = [\"run_python\", \"file_read\"]\n", &turns(&reads))?;
    let script = format!(
        "paths = [f'notes/{{n:02}}.txt' for n in range({FILES})]\n\
         sum(text.count('alarm') for text in parallel(tools.file_read.of(path=p) for p in paths))"
    );
    let code = world(
        root,
        "[grants.it]\ntools = [\"run_python\", \"file_read\"]\ntools_as = \"code\"\n",
        &turns(&[json!({"name": "run_python", "arguments": {"code": script}})]),
    )?;
    let (calls, code) = (billed(&completed(&calls).await?), billed(&completed(&code).await?));
    let share = code as f64 / calls.max(1) as f64;
    Ok(Row::new(
        format!("tokens of a task over {FILES} files, `tools_as = \"code\"`"),
        code.to_string(),
    )
    .against("`calls`", calls.to_string())
    .verdict(format!("{share:.2}x"), "at most 0.2x"))
}

fn billed(outcome: &Outcome) -> u64 {
    outcome.total.input_tokens.saturating_add(outcome.total.output_tokens)
}

/// A transcript in which answers make these calls, and the last is the end.
fn turns(calls: &[serde_json::Value]) -> String {
    let steps = calls.chunks(CALLS_PER_STEP);
    let steps = steps.map(|calls| format!("      - calls: {}\n", serde_json::Value::from(calls)));
    let steps: String = steps.collect();
    format!("transcript: 1\nagents:\n  - agent: it\n    turns:\n{steps}      - say: \"200\"\n")
}

fn world(root: &Path, settings: &str, transcript: &str) -> anyhow::Result<World> {
    let page = "0123456789abcde\n".repeat(256);
    let note =
        "a note about an alarm that rang\n".repeat(5) + &"and other lines of it\n".repeat(60);
    let names: Vec<String> = (0..FILES).map(|n| format!("notes/{n:02}.txt")).collect();
    let mut files: Vec<(&str, &str)> =
        names.iter().map(|it| (it.as_str(), note.as_str())).collect();
    files.push(("page.txt", &page));
    let mut world = World::new(Plan {
        transcript,
        settings,
        agents: &[("it.md", &agent("it", ""))],
        files: &files,
        tools: vec![stock("run_python"), stock("file_read")],
        ..Plan::default()
    });
    world.host.sandbox =
        Sandbox::new(SandboxConfig { pool: PoolConfig { slots: 100 }, ..config(root) })?;
    Ok(world)
}

async fn completed(world: &World) -> anyhow::Result<Outcome> {
    let outcome = world.go("it").await;
    anyhow::ensure!(outcome.status == RunStatus::Completed, "{:?}", outcome.error);
    let failed = outcome.receipts.iter().find(|call| call.error.is_some());
    anyhow::ensure!(failed.is_none(), "{failed:?}");
    Ok(outcome)
}
