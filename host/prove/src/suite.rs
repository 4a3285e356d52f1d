//! The state that all attacks of a process share: the sandbox, the compiled guests and the names.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use belljar_sandbox::{
    Compiler, Component, DescribeLimits, Digest, HttpOptions, PoolConfig, Sandbox, SandboxConfig,
    SlowCompile, Wasm,
};
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::guests::{FILE_READ, Guest, PROBE};
use crate::log::LogTap;
use crate::names::NameTable;

/// The stores that the pool of the sandbox can hold: enough for the attacks, and few enough that an attack
/// can use them up.
const SLOTS: u32 = 64;

/// The fuel of describing a component, a tenth of the default: no guest here needs more to answer, and guests
/// that never answer end sooner.
const DESCRIBE_FUEL: u64 = 1_000_000_000;

/// The options of a suite.
#[derive(Debug, Clone)]
pub struct SuiteOptions {
    /// The compiler of guests. Components of strangers are compiled in a child process.
    pub compiler: Compiler,
    /// The directory of compiled guests; `None` = they are kept in memory.
    pub cache_dir: Option<PathBuf>,
    /// A probe to use in place of the built-in one: `cargo xtask test guests` passes the one that it has just
    /// built.
    pub probe: Option<Vec<u8>>,
}

/// One sandbox for all attacks, as in production. Clones share it.
#[derive(Clone)]
pub struct Suite(Arc<SuiteState>);

struct SuiteState {
    sandbox: Sandbox,
    compiler: Compiler,
    names: NameTable,
    probe: Option<Wasm>,
    guests: Mutex<HashMap<&'static str, Wasm>>,
    loaded: Mutex<HashMap<Digest, Component>>,
}

impl Suite {
    /// Creates the sandbox. If the program has no log subscriber yet, installs one that keeps nothing and
    /// searches every line for secrets.
    ///
    /// # Errors
    /// When the cache directory cannot be used.
    pub fn new(options: SuiteOptions) -> Result<Self> {
        let tapped = tracing_subscriber::registry().with(LogTap.with_filter(LevelFilter::DEBUG));
        // This fails if the program has a subscriber, which then has to include the layer itself.
        let _ = tapped.try_init();
        let names = NameTable::default();
        let config = SandboxConfig {
            cache_dir: options.cache_dir,
            compiler: options.compiler.clone(),
            pool: PoolConfig { slots: SLOTS },
            http: HttpOptions::default().with_resolver(names.clone()),
            describe: DescribeLimits { fuel: DESCRIBE_FUEL, ..DescribeLimits::default() },
            slow: SlowCompile::default(),
        };
        let sandbox = Sandbox::new(config).context("no sandbox for the attacks")?;
        Ok(Self(Arc::new(SuiteState {
            sandbox,
            compiler: options.compiler,
            names,
            probe: options.probe.map(Wasm::new),
            guests: Mutex::default(),
            loaded: Mutex::default(),
        })))
    }

    /// Compiles what nearly every attack needs, so the first attack's time does not contain it.
    ///
    /// # Errors
    /// When a guest does not load.
    pub async fn prepare(&self) -> Result<()> {
        for guest in [FILE_READ, PROBE] {
            let wasm = self.guest_wasm(&guest);
            self.sandbox().describe_tools(&wasm).await?;
            self.keep_loaded(&wasm).await?;
        }
        Ok(())
    }

    pub(crate) fn sandbox(&self) -> &Sandbox {
        &self.0.sandbox
    }

    pub(crate) fn compiler(&self) -> &Compiler {
        &self.0.compiler
    }

    pub(crate) fn name_table(&self) -> &NameTable {
        &self.0.names
    }

    /// The component of a guest. Its digest is computed once.
    pub(crate) fn guest_wasm(&self, guest: &Guest) -> Wasm {
        if let Some(probe) = self.0.probe.as_ref().filter(|_| guest.name == PROBE.name) {
            return probe.clone();
        }
        let mut guests = self.0.guests.lock().unwrap_or_else(PoisonError::into_inner);
        guests.entry(guest.name).or_insert_with(|| guest.to_wasm()).clone()
    }

    /// Loads a component, and keeps it loaded until the suite is dropped.
    pub(crate) async fn keep_loaded(&self, wasm: &Wasm) -> Result<()> {
        let component = self.sandbox().load_component(wasm).await?;
        let mut loaded = self.0.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.insert(wasm.digest(), component);
        Ok(())
    }
}
