//! A sandbox over a temporary workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use belljar_policy::{
    AskedRights, Budget, BudgetCaps, BudgetLevel, CallPermission, DenyCode, Grants, GuestPath,
    HostRule, Limits, Mount, MountAccess, Rights, SecretName, ToolAsk, ToolName,
};
use belljar_sandbox::{
    CallEnding, CallResult, Compiler, Jar, JarSpec, JarTool, OutputPart, Overlay, PoolConfig,
    Sandbox, SandboxConfig, SecretStore, Wasm,
};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Stores that a test's pool holds.
const SLOTS: u32 = 64;

/// A sandbox that compiles in process, with a cache shared by all tests, and a workspace.
#[derive(Debug)]
pub struct TestHost {
    /// The sandbox.
    pub sandbox: Sandbox,
    dir: TempDir,
}

/// A jar with its rights at hand.
#[derive(Debug)]
pub struct TestJar {
    /// The jar.
    pub jar: Jar,
    /// Its rights.
    pub rights: Rights,
    /// Its budget.
    pub budget: Budget,
    /// Ends its calls.
    pub cancel: CancellationToken,
}

/// The builder of a jar. The start: the workspace read-only, no hosts, default limits.
#[derive(Debug, Clone)]
pub struct JarBuilder {
    /// Components, described when the jar is made.
    pub tools: Vec<Wasm>,
    /// The workspace's access; `None` = no mount.
    pub access: Option<MountAccess>,
    /// Granted and asked hosts.
    pub hosts: Vec<HostRule>,
    /// Granted and asked secrets.
    pub secrets: BTreeSet<SecretName>,
    /// Values of secrets.
    pub store: SecretStore,
    /// Limits.
    pub limits: Limits,
    /// The budget above the subagent's; `None` = of its own.
    pub parent: Option<Budget>,
    /// The overlay of the workspace, where it has one.
    pub overlay: Option<Overlay>,
    /// The access that single tools ask for in place of the workspace's.
    pub asks: BTreeMap<String, MountAccess>,
    /// Settings of every tool.
    pub config: BTreeMap<String, String>,
}

impl Default for TestHost {
    fn default() -> Self {
        Self::new()
    }
}

impl TestHost {
    /// An empty workspace.
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    /// The same with other settings.
    pub fn with(change: impl FnOnce(&mut SandboxConfig)) -> Self {
        let mut config = SandboxConfig {
            cache_dir: Some(target().join("belljar-test-cache")),
            compiler: Compiler::InProcess,
            pool: PoolConfig { slots: SLOTS },
            ..SandboxConfig::default()
        };
        change(&mut config);
        let sandbox = Sandbox::new(config).expect("a sandbox");
        Self { sandbox, dir: tempfile::tempdir().expect("a temporary directory") }
    }

    /// The workspace on the host.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Puts a file into the workspace.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// A file of the workspace, if it is there.
    pub fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.path().join(name)).ok()
    }

    /// A builder for a jar with these components.
    pub fn builder(&self, tools: impl IntoIterator<Item = Wasm>) -> JarBuilder {
        JarBuilder {
            tools: tools.into_iter().collect(),
            access: Some(MountAccess::Read),
            hosts: Vec::new(),
            secrets: BTreeSet::new(),
            store: SecretStore::default(),
            limits: Limits::default(),
            parent: None,
            overlay: None,
            asks: BTreeMap::new(),
            config: BTreeMap::new(),
        }
    }

    /// A jar with these components and the builder's start.
    pub async fn jar(&self, tools: impl IntoIterator<Item = Wasm>) -> TestJar {
        self.build(self.builder(tools)).await
    }

    /// Makes a jar.
    pub async fn build(&self, builder: JarBuilder) -> TestJar {
        let JarBuilder { tools, access, hosts, secrets, store, limits, parent, .. } = builder;
        let JarBuilder { overlay, asks, config, .. } = builder;
        let mut names = BTreeMap::new();
        let mut jar_tools = Vec::new();
        let ask = ToolAsk {
            mounts: access,
            hosts: hosts.clone(),
            secrets: secrets.clone(),
            ..ToolAsk::default()
        };
        for wasm in tools {
            let infos = self.sandbox.describe_tools(&wasm).await.unwrap_or_else(|e| panic!("{e}"));
            let tools: BTreeMap<_, _> =
                infos.iter().map(|tool| (tool.name.clone(), tool.hints)).collect();
            names.extend(tools.keys().map(|name| (name.clone(), CallPermission::Allow)));
            let own = tools.keys().find_map(|name| asks.get(name.as_str()).copied());
            jar_tools.push(JarTool {
                tools,
                wasm,
                ask: ToolAsk { mounts: own.or(access), ..ask.clone() },
                config: Arc::new(config.clone()),
            });
        }
        let mounts = access.map(|access| Mount {
            guest: GuestPath::workspace(),
            host: self.path().to_owned(),
            access,
        });
        let grants = Grants {
            tools: names,
            mounts: mounts.into_iter().collect(),
            hosts: vec![hosts],
            secrets,
            limits,
        };
        let (rights, _) = Rights::intersect_rights(&AskedRights::default(), &grants, None);
        let caps = BudgetCaps::for_agent(&limits);
        let budget = match parent {
            Some(parent) => parent.new_child(BudgetLevel::Subagent, caps),
            None => Budget::new_root(BudgetLevel::Subagent, caps),
        };
        let cancel = CancellationToken::new();
        let spec = JarSpec {
            rights: rights.clone(),
            budget: budget.clone(),
            tools: jar_tools,
            secrets: store,
            overlays: overlay
                .map(|overlay| (GuestPath::workspace(), overlay))
                .into_iter()
                .collect(),
            cancel: cancel.clone(),
        };
        let jar = self.sandbox.open_jar(spec).expect("a jar");
        TestJar { jar, rights, budget, cancel }
    }
}

impl TestJar {
    /// Calls a tool that the rights allow.
    pub async fn call(&self, tool: &str, arguments: &str) -> CallResult {
        let permit = self.rights.tool(tool).unwrap_or_else(|denied| panic!("{denied}"));
        self.jar.call_permitted(permit, arguments).await
    }

    /// The tools' names.
    pub fn names(&self) -> Vec<ToolName> {
        self.rights.offered_tools().map(|(name, _)| name.clone()).collect()
    }
}

/// A committed stock component.
pub fn stock(name: &str) -> Wasm {
    Wasm::new(unpacked(&root().join("tools/prebuilt"), name))
}

/// The bytes of a built component in a folder; a large one is kept compressed.
pub fn unpacked(folder: &Path, name: &str) -> Vec<u8> {
    let Ok(packed) = std::fs::read(folder.join(format!("{name}.wasm.zst"))) else {
        let path = folder.join(format!("{name}.wasm"));
        return std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    };
    let mut whole = Vec::new();
    let mut decoder = ruzstd::decoding::StreamingDecoder::new(&*packed)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    std::io::Read::read_to_end(&mut decoder, &mut whole)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    whole
}

/// A committed component that attacks are made with.
pub fn hostile(name: &str) -> Wasm {
    let path = root().join("host/prove/prebuilt").join(format!("{name}.wasm"));
    Wasm::new(std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

/// The text parts of a result, joined.
pub fn text(result: &CallResult) -> String {
    let output = match &result.outcome {
        Ok(output) => output,
        Err(error) => panic!("{error}: {:#?}", result.receipt),
    };
    let part = |part: &OutputPart| match part {
        OutputPart::Text(text) | OutputPart::Json(text) => text.clone(),
        OutputPart::Attachment { name, .. } => format!("[{name}]"),
    };
    output.parts.iter().map(part).collect()
}

/// The call ended well, with this text.
pub fn assert_text(result: &CallResult, expected: &str) {
    assert_eq!(text(result), expected);
    assert_eq!(result.receipt.ending, CallEnding::Completed);
}

/// The call did not give an output, and its receipt holds a refusal with this code.
pub fn assert_denied(result: &CallResult, code: DenyCode) {
    assert!(result.outcome.is_err(), "not refused: {result:#?}");
    let codes: Vec<_> = result.receipt.denials.iter().map(|denial| denial.code).collect();
    assert!(codes.contains(&code), "{codes:?} in {:#?}", result.receipt);
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}
