//! What all attacks of a process share, and how one is run.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use async_trait::async_trait;
use belljar_sandbox::{
    Compiler, Component, DescribeLimits, Digest, HttpOptions, PoolConfig, Sandbox, SandboxConfig,
    SlowCompile, Wasm,
};
use futures::FutureExt;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::arena::{Arena, Growth};
use crate::attack::{Attack, Escape, Kind, Report, Stopped};
use crate::attacks::attacks;
use crate::guests::{FILE_READ, Guest, PROBE};
use crate::log::LogTap;
use crate::memory::{GROWTH_BOUND, PEAK_BOUND};
use crate::names::Names;
use crate::part::Part;

/// Stores that the pool holds: enough for the attacks, and few enough to be used up.
const SLOTS: u32 = 64;

/// Fuel of `describe`, a tenth of the default: no guest here needs more to answer, and those that
/// never do are done with sooner.
const DESCRIBE_FUEL: u64 = 1_000_000_000;

/// How long an attack may go on before it counts as not stopped.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a suite is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// Who compiles the guests; strangers' components belong into a child.
    pub compiler: Compiler,
    /// Where compiled guests are kept; `None` = in memory.
    pub cache_dir: Option<PathBuf>,
    /// A probe to use in place of the one in this library: `cargo xtask test-guests` brings the
    /// one that it has just built.
    pub probe: Option<Vec<u8>>,
}

/// One sandbox for all attacks, as in production. Cloning shares it.
#[derive(Clone)]
pub struct Suite(Arc<Shared>);

struct Shared {
    sandbox: Sandbox,
    compiler: Compiler,
    names: Names,
    probe: Option<Wasm>,
    guests: Mutex<HashMap<&'static str, Wasm>>,
    loaded: Mutex<HashMap<Digest, Component>>,
}

impl Suite {
    /// Makes the sandbox. Where the program has no log yet, one is installed that keeps nothing
    /// and looks for secrets; see [`LogTap`].
    ///
    /// # Errors
    ///
    /// When the cache directory cannot be used.
    pub fn new(options: Options) -> Result<Self> {
        let tapped = tracing_subscriber::registry().with(LogTap.with_filter(LevelFilter::DEBUG));
        // A program with a log of its own adds the layer itself.
        let _ = tapped.try_init();
        let names = Names::default();
        let config = SandboxConfig {
            cache_dir: options.cache_dir,
            compiler: options.compiler.clone(),
            pool: PoolConfig { slots: SLOTS },
            http: HttpOptions::default().with_resolver(names.clone()),
            describe: DescribeLimits { fuel: DESCRIBE_FUEL, ..DescribeLimits::default() },
            slow: SlowCompile::default(),
        };
        let sandbox = Sandbox::new(config).context("no sandbox for the attacks")?;
        Ok(Self(Arc::new(Shared {
            sandbox,
            compiler: options.compiler,
            names,
            probe: options.probe.map(Wasm::new),
            guests: Mutex::default(),
            loaded: Mutex::default(),
        })))
    }

    /// Compiles what nearly every attack needs, so that the first one's time is its own.
    ///
    /// # Errors
    ///
    /// When a guest does not load.
    pub async fn prepare(&self) -> Result<()> {
        for guest in [FILE_READ, PROBE] {
            let wasm = self.wasm(&guest);
            self.sandbox().describe(&wasm).await?;
            self.keep_loaded(&wasm).await?;
        }
        Ok(())
    }

    /// Runs one attack in an arena of its own. Run one at a time: time and memory are measured
    /// for the process as a whole.
    pub async fn run(&self, attack: &Attack) -> Report {
        match Arena::new(self).await {
            Ok(arena) => judge(attack, arena).await,
            Err(error) => {
                let why = format!("there is no arena: {error:#}");
                report(attack, Duration::ZERO, Growth::default(), Default::default(), Err(why))
            }
        }
    }

    pub(crate) fn sandbox(&self) -> &Sandbox {
        &self.0.sandbox
    }

    pub(crate) fn compiler(&self) -> &Compiler {
        &self.0.compiler
    }

    pub(crate) fn names(&self) -> &Names {
        &self.0.names
    }

    /// The component of a guest, its digest computed once.
    pub(crate) fn wasm(&self, guest: &Guest) -> Wasm {
        if let Some(probe) = self.0.probe.as_ref().filter(|_| guest.name == PROBE.name) {
            return probe.clone();
        }
        let mut guests = self.0.guests.lock().unwrap_or_else(PoisonError::into_inner);
        guests.entry(guest.name).or_insert_with(|| guest.wasm()).clone()
    }

    /// Loads a component and keeps it so.
    pub(crate) async fn keep_loaded(&self, wasm: &Wasm) -> Result<()> {
        let component = self.sandbox().load(wasm).await?;
        let mut loaded = self.0.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.insert(wasm.digest(), component);
        Ok(())
    }
}

/// The part `sandbox`: of all attacks those that end within about a second.
#[async_trait]
impl Part for Suite {
    fn ids(&self) -> Vec<&'static str> {
        attacks().filter(|attack| attack.embedded).map(|attack| attack.id).collect()
    }

    async fn prepare(&self) -> Result<()> {
        Self::prepare(self).await
    }

    async fn make(&self, id: &'static str) -> Report {
        match attacks().find(|attack| attack.id == id) {
            Some(attack) => self.run(attack).await,
            None => Report::unmade(id, Kind::Component, "there is no such attack"),
        }
    }
}

/// Makes the attack, and looks at all that it did.
async fn judge(attack: &Attack, arena: Arena) -> Report {
    let Some(neighbour) = arena.neighbour() else {
        let why = "the neighbour has not moved in".to_owned();
        return report(attack, Duration::ZERO, Growth::default(), Default::default(), Err(why));
    };
    let begun = Instant::now();
    let attacking = AssertUnwindSafe((attack.run)(&arena)).catch_unwind();
    // The neighbour asks once right beside the attack, however short that is.
    let (ended, ()) = futures::join!(tokio::time::timeout(PATIENCE, attacking), neighbour.ask());
    let stopped = match ended {
        Ok(Ok(stopped)) => stopped,
        Ok(Err(_)) => Err(Escape::new("the host panicked")),
        Err(_) => Err(Escape::new(format!("it went on for {} seconds", PATIENCE.as_secs()))),
    };
    let mut faults = arena.close().await;
    let ended = Instant::now();
    neighbour.stop().await;
    let growth = arena.growth();
    faults.extend(arena.effects().await);
    faults.extend(grown(growth));
    let seen = neighbour.seen(begun, ended);
    if seen.calls == 0 {
        faults.push("the neighbour did not call meanwhile".to_owned());
    }
    faults.extend(neighbour.wrong().map(|wrong| format!("the neighbour suffered: {wrong}")));
    drop(neighbour);
    if let Err(error) = arena.remove() {
        faults.push(format!("{error:#}"));
    }
    report(attack, ended - begun, growth, seen, verdict(attack, stopped, faults))
}

fn verdict(attack: &Attack, stopped: Stopped, faults: Vec<String>) -> Result<String, String> {
    match stopped {
        Ok(verdict) if !verdict.told.contains(attack.told) => {
            let told: String = verdict.told.chars().take(500).collect();
            Err(format!("it was told something else than `{}`: {told}", attack.told))
        }
        Ok(verdict) if faults.is_empty() => Ok(verdict.told.chars().take(500).collect()),
        Ok(_) => Err(faults.join("; ")),
        Err(escape) => Err(std::iter::once(escape.0).chain(faults).collect::<Vec<_>>().join("; ")),
    }
}

fn grown(growth: Growth) -> Option<String> {
    if growth.left > GROWTH_BOUND {
        return Some(format!("the process is {} bytes larger than before", growth.left));
    }
    (growth.peak > PEAK_BOUND).then(|| format!("the process grew by {} bytes", growth.peak))
}

fn report(
    attack: &Attack,
    elapsed: Duration,
    growth: Growth,
    seen: crate::neighbour::Seen,
    result: Result<String, String>,
) -> Report {
    Report {
        id: attack.id,
        kind: attack.kind,
        stopped_by: attack.stopped_by,
        elapsed,
        memory_growth_bytes: growth.left,
        memory_peak_bytes: growth.peak,
        neighbour_calls: seen.calls,
        neighbour_median: seen.median,
        neighbour_worst: seen.worst,
        result,
    }
}
