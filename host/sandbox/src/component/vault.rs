//! The vault: a part of the broker, outside the OS sandbox, that makes and stores machine code and checked
//! descriptions of components for the process inside. A fault inside the OS sandbox has no access to it.
//!
//! The process inside sends a component's bytes or its digest; it neither reads the cache's key nor writes
//! an entry. What is stored under a digest was made from bytes with that digest, by child processes behind
//! OS sandboxes of their own: one compiles and runs no code of the component, the other runs `describe`
//! without any access.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use belljar_os_sandbox::{DerivedFile, Making, RunningChild, Wall};
use belljar_overlay::Digest;

use crate::Compiler;
use crate::component::adapt::is_module;
use crate::component::artifact::CompiledArtifact;
use crate::component::cache::{CacheKind, ComponentCache, MAX_ENTRY};
use crate::component::compile::{compile_component, pipe_through_child, restrict_process};
use crate::component::describe::{ToolDescriber, check_on_thread, tools_name};
use crate::component::described::{DescribeLimits, ToolClaim};
use crate::component::engine::EnginePair;
use crate::component::inspect::MAX_COMPONENT;
use crate::component::load::{ComponentLoader, code_name};
use crate::component::tool_info::ToolInfo;
use crate::component::wasm::Wasm;
use crate::config::SlowCompile;
use crate::error::{LoadError, SandboxError};

/// The bytes of address space of the describing child: the engine reserves all memories of a component as a
/// whole, with guard pages. The store limits how much of them is used.
const DESCRIBE_ADDRESSES: u64 = 1 << 40;

/// The bytes of the unnamed file in which the engine keeps the initial content of a memory. The child can
/// write no other file.
const DESCRIBE_FILE: u64 = 512 << 20;

/// The most bytes of the describing child's answer: 64 tools of the largest size, with JSON's overhead.
const MAX_TOOLS: u64 = 16 << 20;

/// How long the vault waits for the describing child: the time limit of `describe`, and its start.
const DESCRIBE_WAIT: Duration = Duration::from_secs(30);

/// Prepares a cache directory for a [`ComponentVault`]: makes it private, with a key in it.
///
/// # Errors
///
/// The directory cannot be used; the text has the reason.
pub fn prepare_cache(directory: &Path) -> Result<(), SandboxError> {
    ComponentCache::open(directory).map(drop)
}

/// Makes compiled code and checked descriptions of components, and stores them in the cache. Lives in the
/// broker.
#[derive(Debug)]
pub struct ComponentVault {
    program: PathBuf,
    compiler: Compiler,
    describer: Vec<OsString>,
    cache: OnceLock<Option<ComponentCache>>,
    engines: EnginePair,
}

impl ComponentVault {
    /// Makes a vault. Started with the arguments `compiler`, the program must call [`crate::compile_child`];
    /// with the arguments `describer`, [`describe_child`].
    pub fn new(program: PathBuf, compiler: Vec<OsString>, describer: Vec<OsString>) -> Self {
        let child = Compiler::Child { program: program.clone(), args: compiler };
        Self {
            program,
            compiler: child,
            describer,
            cache: OnceLock::new(),
            engines: EnginePair::new(0),
        }
    }

    fn find_cached(&self, made: DerivedFile, digest: Digest) -> Option<Vec<u8>> {
        let cache = self.cache.get()?.as_ref()?;
        match made {
            DerivedFile::Code => {
                cache.find_entry(CacheKind::Artifact, &code_name(digest, &self.engines).ok()?)
            }
            DerivedFile::Tools => cache
                .find_entry(CacheKind::Describe, &tools_name(digest, &DescribeLimits::default())),
        }
    }

    /// Stores a derived file in the cache, if there is a cache.
    fn store_cached(&self, made: DerivedFile, digest: Digest, bytes: &[u8]) {
        let Some(Some(cache)) = self.cache.get() else { return };
        match made {
            DerivedFile::Code => {
                if let Ok(name) = code_name(digest, &self.engines) {
                    cache.store_entry(CacheKind::Artifact, &name, bytes);
                }
            }
            DerivedFile::Tools => {
                let name = tools_name(digest, &DescribeLimits::default());
                cache.store_entry(CacheKind::Describe, &name, bytes);
            }
        }
    }

    async fn make_code(&self, wasm: &Wasm) -> Result<Vec<u8>, String> {
        let made = compile_component(&self.compiler, wasm).await.map_err(|error| match error {
            LoadError::Compile(why) => why,
            other => other.to_string(),
        })?;
        self.store_cached(DerivedFile::Code, wasm.digest(), made.as_bytes());
        Ok(made.into_bytes())
    }

    /// Makes the checked descriptions of a component, in a describing child. The component may control that
    /// child, so the child's answer is checked like a component's.
    async fn make_tools(&self, wasm: &Wasm) -> Result<Vec<u8>, String> {
        let code = match self.find_cached(DerivedFile::Code, wasm.digest()) {
            Some(code) => code,
            None => self.make_code(wasm).await?,
        };
        let mut command = std::process::Command::new(&self.program);
        command.args(&self.describer).env_clear();
        let length = (code.len() as u64).to_le_bytes();
        let parts = [length.as_slice(), &code, wasm.bytes()];
        let told =
            pipe_through_child(RunningChild::start_here(command), &parts, MAX_TOOLS, DESCRIBE_WAIT)
                .await;
        let told = told.map_err(|error| error.to_string())?;
        let tools: Vec<ToolInfo> =
            serde_json::from_slice(&told).map_err(|error| error.to_string())?;
        let claims = tools.into_iter().map(claim_from_tool).collect();
        let tools = check_on_thread(claims, DescribeLimits::default()).await?;
        let bytes = serde_json::to_vec(&tools).map_err(|error| error.to_string())?;
        self.store_cached(DerivedFile::Tools, wasm.digest(), &bytes);
        Ok(bytes)
    }
}

impl belljar_os_sandbox::BrokerVault for ComponentVault {
    fn open_cache(&self, directory: Option<&Path>) {
        // The process that started the broker has tried this directory and reported any error.
        let cache = directory.and_then(|directory| ComponentCache::open(directory).ok());
        let _ = self.cache.set(cache);
        // Cache names of code depend on an engine; it is made here, so that the first request does not wait.
        let _ = code_name(Digest::hash_bytes(&[]), &self.engines);
    }

    fn find_derived(&self, made: DerivedFile, digest: &str) -> Option<Vec<u8>> {
        self.find_cached(made, Digest::from_hex(digest)?)
    }

    fn make_derived<'a>(&'a self, made: DerivedFile, component: Vec<u8>) -> Making<'a> {
        Box::pin(async move {
            if component.len() as u64 > MAX_COMPONENT {
                return Err("the component is too large".to_owned());
            }
            // INV-225: a compiling child answers a module with a component, which would be stored as machine
            // code.
            if is_module(&component) {
                return Err("a core module, not a component".to_owned());
            }
            let wasm = Wasm::new(component);
            match made {
                DerivedFile::Code => self.make_code(&wasm).await,
                DerivedFile::Tools => self.make_tools(&wasm).await,
            }
        })
    }
}

fn claim_from_tool(tool: ToolInfo) -> ToolClaim {
    let ToolInfo { name, description, schema, hints } = tool;
    let (name, schema) = (name.as_str().to_owned(), schema.to_string());
    ToolClaim { name, description, schema, hints }
}

/// The whole life of a describing child: reads machine code and its component from stdin, and writes the
/// checked descriptions of the component's tools to stdout. Before it reads a byte, the child lowers its
/// limits and raises an OS sandbox that allows nothing.
pub fn describe_child() -> ExitCode {
    belljar_os_sandbox::conceal_process();
    // The child shares the kernel with the host, which reports if the kernel lacks support.
    let _ = Wall::default().raise_wall();
    let described = run_describe_child().and_then(|tools| {
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(&tools).and_then(|()| stdout.flush());
        written.map_err(|error| error.to_string())
    });
    match described {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            let _ = io::stderr().write_all(why.as_bytes());
            ExitCode::FAILURE
        }
    }
}

fn run_describe_child() -> Result<Vec<u8>, String> {
    let text = |error: io::Error| error.to_string();
    restrict_process(DESCRIBE_ADDRESSES, DESCRIBE_FILE).map_err(text)?;
    let mut stdin = io::stdin().lock();
    let mut length = [0; 8];
    stdin.read_exact(&mut length).map_err(text)?;
    let (mut code, mut component) = (Vec::new(), Vec::new());
    let length = u64::from_le_bytes(length).min(MAX_ENTRY);
    stdin.by_ref().take(length).read_to_end(&mut code).map_err(text)?;
    stdin.take(MAX_COMPONENT).read_to_end(&mut component).map_err(text)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(text)?.block_on(async {
        let (engines, wasm) = (Arc::new(EnginePair::new(0)), Wasm::new(component));
        let slow = SlowCompile::default();
        let loader = Arc::new(ComponentLoader::new(Compiler::InProcess, slow, None, None, engines));
        // The code comes from the broker's own cache or compiler, so it is trusted.
        let loaded = loader.preload_code(CompiledArtifact::from_trusted(code), &wasm).await;
        loaded.map_err(|error| error.to_string())?;
        let describer = ToolDescriber::new(DescribeLimits::default(), loader, None, None);
        let tools = describer.describe_tools(&wasm).await.map_err(|error| error.to_string())?;
        serde_json::to_vec(&*tools).map_err(|error| error.to_string())
    })
}
