//! Opening stores, calling `file_read`, and many live jars, against bare wasmtime.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use belljar_policy::{
    AskedRights, Budget, BudgetCaps, BudgetLevel, CallPermission, Grants, GuestPath, Limits, Mount,
    MountAccess, Rights, ToolAsk, ToolName,
};
use belljar_sandbox::{
    Jar, JarSpec, JarTool, PoolConfig, Sandbox, SandboxConfig, SecretStore, ToolHints, Wasm,
};
use tokio_util::sync::CancellationToken;

use crate::bare::Bare;
use crate::measure::{median, micros, resident};
use crate::report::Row;

const TOOL: &str = "file_read";

/// Live bare stores, enough for a mean.
const BARE_STORES: usize = 1000;

/// The stock tool, a workspace with a 4 KiB file, and a sandbox with room for many stores.
pub(crate) struct Bench {
    sandbox: Sandbox,
    wasm: Wasm,
    workspace: tempfile::TempDir,
}

impl Bench {
    /// `slots`: how many stores may be live.
    pub(crate) fn new(root: &Path, slots: u32) -> anyhow::Result<Self> {
        let wasm = Wasm::new(std::fs::read(root.join("tools/prebuilt/file_read.wasm"))?);
        let config = SandboxConfig {
            cache_dir: Some(root.join("target/belljar-bench-cache")),
            pool: PoolConfig { slots },
            ..SandboxConfig::default()
        };
        let workspace = tempfile::tempdir()?;
        std::fs::write(workspace.path().join("page.txt"), "0123456789abcde\n".repeat(256))?;
        Ok(Self { sandbox: Sandbox::new(config)?, wasm, workspace })
    }

    fn jar(&self) -> anyhow::Result<Jar> {
        let name = ToolName::new(TOOL)?;
        let grants = Grants {
            tools: BTreeMap::from([(name.clone(), CallPermission::Allow)]),
            mounts: vec![Mount {
                guest: GuestPath::workspace(),
                host: self.workspace.path().to_path_buf(),
                access: MountAccess::Read,
            }],
            ..Grants::none()
        };
        let rights = Rights::intersect_rights(&AskedRights::default(), &grants, None).0;
        let tool = JarTool {
            tools: BTreeMap::from([(name, ToolHints { read_only: true, ..ToolHints::default() })]),
            wasm: self.wasm.clone(),
            ask: ToolAsk { mounts: Some(MountAccess::Read), ..ToolAsk::default() },
            config: Arc::default(),
        };
        let budget = Budget::new_root(
            BudgetLevel::Subagent,
            BudgetCaps::for_agent(&unmetered(rights.limits())),
        );
        Ok(self.sandbox.open_jar(JarSpec {
            rights,
            budget,
            tools: vec![tool],
            secrets: SecretStore::default(),
            overlays: BTreeMap::new(),
            cancel: CancellationToken::new(),
        })?)
    }
}

/// wasmtime's error is not a standard one.
pub(crate) fn plain(error: wasmtime::Error) -> anyhow::Error {
    anyhow::anyhow!("{error:#}")
}

/// Limits that a long bench does not use up.
fn unmetered(limits: &Limits) -> Limits {
    Limits { fuel: u64::MAX, read_bytes: u64::MAX, output_total_bytes: u64::MAX, ..*limits }
}

/// Opens and drops a store, in belljar and in bare wasmtime, in turns.
pub(crate) async fn open_and_drop(bench: &Bench, times: usize) -> anyhow::Result<Row> {
    let bare = Bare::new(bench.wasm.bytes(), bench.workspace.path(), 10).map_err(plain)?;
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..times {
        let jar = bench.jar()?;
        let started = Instant::now();
        jar.preopen_store(TOOL).await?;
        drop(jar);
        ours.push(started.elapsed());
        let started = Instant::now();
        drop(bare.open().await.map_err(plain)?);
        floor.push(started.elapsed());
    }
    let (ours, floor) = (median(ours), median(floor));
    let ratio = ours.as_secs_f64() / floor.as_secs_f64();
    Ok(Row::new("open and drop a file_read store", micros(ours))
        .against("bare wasmtime", micros(floor))
        .verdict(format!("{ratio:.2}x"), "at most 1.5x"))
}

/// One `file_read` of 4 KiB in an open jar, against `std::fs::read`.
pub(crate) async fn read_call(bench: &Bench, times: usize) -> anyhow::Result<Row> {
    let (ours, floor) = read_medians(bench, times).await?;
    let more = ours.saturating_sub(floor);
    Ok(Row::new("file_read of 4 KiB in an open jar", micros(ours))
        .against("std::fs::read", micros(floor))
        .verdict(format!("+{}", micros(more)), "under 60 µs more"))
}

/// The medians of a `file_read` of 4 KiB in an open jar, and of `std::fs::read`.
pub(crate) async fn read_medians(
    bench: &Bench,
    times: usize,
) -> anyhow::Result<(Duration, Duration)> {
    let jar = bench.jar()?;
    let grants = Grants {
        tools: BTreeMap::from([(ToolName::new(TOOL)?, CallPermission::Allow)]),
        ..Grants::none()
    };
    let permit = Rights::intersect_rights(&AskedRights::default(), &grants, None).0.tool(TOOL)?;
    let file = bench.workspace.path().join("page.txt");
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..times {
        let permit = permit.clone();
        let started = Instant::now();
        let result = jar.call_permitted(permit, r#"{"path":"page.txt"}"#).await;
        ours.push(started.elapsed());
        result.outcome?;
        let started = Instant::now();
        std::hint::black_box(std::fs::read(&file)?);
        floor.push(started.elapsed());
    }
    Ok((median(ours), median(floor)))
}

/// Many live jars with an open store each: resident memory, and whether opening slows down.
///
/// Takes the bench, because its pool has to go before the floor's can be made: 10,000 slots
/// with live stores use 60,000 of the 65,530 mappings that Linux gives a process by default.
pub(crate) async fn live_jars(bench: Bench, count: usize) -> anyhow::Result<Vec<Row>> {
    // The first store pays for the engine and the code.
    bench.jar()?.preopen_store(TOOL).await?;
    let before = resident().unwrap_or_default();
    let mut jars = Vec::with_capacity(count);
    let (mut first, mut last) = (Duration::ZERO, Duration::ZERO);
    for n in 0..count {
        let jar = bench.jar()?;
        let started = Instant::now();
        jar.preopen_store(TOOL).await?;
        let took = started.elapsed();
        if n < count / 10 {
            first += took;
        } else if n >= count - count / 10 {
            last += took;
        }
        jars.push(jar);
    }
    let each = resident().unwrap_or_default().saturating_sub(before) / count.max(1) as u64;
    drop(jars);
    let Bench { sandbox, wasm, workspace } = bench;
    drop(sandbox);
    let floor = Bare::new(wasm.bytes(), workspace.path(), BARE_STORES as u32).map_err(plain)?;
    let floor = floor.resident_each(BARE_STORES).await.map_err(plain)?;
    let rate = last.as_secs_f64() / first.as_secs_f64().max(f64::MIN_POSITIVE);
    Ok(vec![
        Row::new(format!("{count} live jars, resident each"), format!("{} KiB", each / 1024))
            .against("bare wasmtime", format!("{} KiB", floor / 1024))
            .verdict(format!("+{} KiB", each.saturating_sub(floor) / 1024), "at most 64 KiB more"),
        Row::new("opening the last tenth of them", micros(last / (count as u32 / 10).max(1)))
            .against("the first tenth", micros(first / (count as u32 / 10).max(1)))
            .verdict(format!("{rate:.2}x"), "linear: about 1x"),
    ])
}
