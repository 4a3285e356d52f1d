//! Builds a jar from tools and rights, for a program without agents.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use belljar_overlay::Overlay;
use belljar_policy::{
    AskedRights, Budget, BudgetCaps, BudgetLevel, CallPermission, Grants, GuestPath,
    GuestPathError, HostRule, HostRuleError, Limits, Mount, MountAccess, Rights, SecretName,
    ShownPath as _, ToolAsk,
};
use tokio_util::sync::CancellationToken;

use crate::Wasm;
use crate::component::inspect::MAX_COMPONENT;
use crate::error::{DescribeError, JarError, LoadError};
use crate::imports::http::{Secret, SecretStore};
use crate::jar::{Jar, JarSpec, JarTool};
use crate::sandbox::Sandbox;

/// Builds a [`Jar`] step by step. Tools get only what is granted here: without a directory they see no file,
/// without a host they have no network. Limits default to those of the command line ([`Limits::default`]).
/// Errors of all steps are returned by [`JarBuilder::build`].
#[derive(Debug)]
#[must_use = "a builder makes nothing until `build`"]
pub struct JarBuilder {
    tools: Vec<(Option<PathBuf>, Wasm)>,
    grants: Grants,
    secrets: SecretStore,
    overlays: BTreeMap<GuestPath, Overlay>,
    cancel: CancellationToken,
    /// The first error of a step, for [`JarBuilder::build`] to return.
    problem: Option<JarBuildError>,
}

/// Why a jar cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum JarBuildError {
    /// The jar would have no tool.
    #[error("the jar has no tool")]
    NoTool,
    /// The file of a component cannot be read.
    #[error("failed to read component `{}`: {source}", path.to_shown())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The tools of a component cannot be listed.
    #[error("component `{component}`: {source}")]
    Describe {
        /// The path of the component's file, or the digest if it was passed as bytes.
        component: String,
        /// The cause.
        source: DescribeError,
    },
    /// The path for a directory is not a valid guest path; an example of a valid one is `/workspace`.
    #[error(transparent)]
    GuestPath(#[from] GuestPathError),
    /// A text is not a valid rule for hosts.
    #[error(transparent)]
    Host(#[from] HostRuleError),
    /// The jar cannot be opened: two tools have one name, or a directory cannot be opened.
    #[error(transparent)]
    Jar(#[from] JarError),
}

impl JarBuildError {
    /// A code for programs, the same in every version, for example `no-tool`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoTool => "no-tool",
            Self::Read { .. } => "component-not-read",
            Self::Describe { .. } => "component-not-described",
            Self::GuestPath(_) => "bad-guest-path",
            Self::Host(_) => "bad-host",
            Self::Jar(JarError::DuplicateTool(_)) => "duplicate-tool",
            Self::Jar(JarError::Mount { .. }) => "directory-not-opened",
        }
    }

    /// Advice for the caller: what to change.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoTool => "name a component with `JarBuilder::tool` or `tool_file`",
            Self::Read { .. } => "the path is the component itself, built for `wasm32-wasip2`",
            Self::Describe { source, .. } => not_described(source),
            Self::GuestPath(_) => "an absolute path without `.` and `..`, like `/workspace`",
            Self::Host(_) => "a rule is a host like `api.example.com`, or `https://*.example.com`",
            Self::Jar(JarError::DuplicateTool(_)) => "leave out one of the two components",
            Self::Jar(JarError::Mount { .. }) => "the directory has to be there before the jar",
        }
    }
}

/// Advice for the caller about a component that cannot be described.
fn not_described(error: &DescribeError) -> &'static str {
    match error {
        DescribeError::Load(LoadError::NotWasm) => {
            "the path is the component itself, built for `wasm32-wasip2`: not its project or manifest"
        }
        DescribeError::Load(LoadError::Missing(_)) => {
            "put the file there, or leave the component out"
        }
        DescribeError::Load(LoadError::CoreModule) => "build it for `wasm32-wasip2`",
        DescribeError::Load(LoadError::Malformed(_)) => {
            "the file is cut short or damaged: build it, or fetch it, once more"
        }
        DescribeError::Load(
            LoadError::WrongWorld(_) | LoadError::NoHook | LoadError::TooLarge { .. },
        ) => "the component has to export `belljar:tool/tools`",
        DescribeError::Load(LoadError::UnknownImport(_)) => {
            "its author has to build it for the interfaces of WASI 0.2 that the contract names"
        }
        DescribeError::Load(
            LoadError::Compile(_) | LoadError::Artifact(_) | LoadError::Host(_),
        ) => {
            "look at `SandboxConfig`: its `compiler` has to be a program that compiles, its \
             `cache_dir` a directory of this user; what the compiler's bounds do not hold is left out"
        }
        DescribeError::Failed(_) | DescribeError::Invalid(_) => {
            "its author has to mend what the component says of its tools"
        }
    }
}

impl Jar {
    /// Begins to build a jar for a program without agents.
    ///
    /// ```no_run
    /// # async fn f(sandbox: &belljar_sandbox::Sandbox) -> Result<(), Box<dyn std::error::Error>> {
    /// let jar = belljar_sandbox::Jar::builder()
    ///     .tool_file("tools/prebuilt/file_read.wasm")
    ///     .read_only("docs")
    ///     .build(sandbox)
    ///     .await?;
    /// let result = jar.call_tool("file_read", r#"{"path": "README.md"}"#).await?;
    /// println!("{}", result.outcome?.text());
    /// # Ok(()) }
    /// ```
    pub fn builder() -> JarBuilder {
        JarBuilder {
            tools: Vec::new(),
            grants: Grants::none(),
            secrets: SecretStore::default(),
            overlays: BTreeMap::new(),
            cancel: CancellationToken::new(),
            problem: None,
        }
    }
}

impl JarBuilder {
    /// Adds all tools of this component.
    pub fn tool(mut self, wasm: Wasm) -> Self {
        self.tools.push((None, wasm));
        self
    }

    /// Adds all tools of the component in this file.
    pub fn tool_file(mut self, path: impl AsRef<Path>) -> Self {
        match read_component(path.as_ref()) {
            Ok(bytes) => self.tools.push((Some(path.as_ref().to_owned()), Wasm::new(bytes))),
            Err(source) => {
                self.store_problem(JarBuildError::Read { path: path.as_ref().into(), source })
            }
        }
        self
    }

    /// Lets the tools read this directory, as `/workspace`.
    pub fn read_only(self, directory: impl AsRef<Path>) -> Self {
        self.mount(belljar_policy::WORKSPACE, directory, MountAccess::Read)
    }

    /// Lets the tools read and write this directory, as `/workspace`. Files and directories whose names mean
    /// rules or settings ([`belljar_policy::PROTECTED_NAMES`]) are read-only; `.git` is not protected.
    pub fn read_write(self, directory: impl AsRef<Path>) -> Self {
        self.mount(belljar_policy::WORKSPACE, directory, MountAccess::ReadWrite)
    }

    /// Mounts the overlay's directory as `/workspace`. Writes follow the rules of [`Self::read_write`], but
    /// go into the overlay's layer: the directory itself does not change. Jars with clones of an overlay see
    /// the same files.
    pub fn overlay(mut self, overlay: &Overlay) -> Self {
        self.overlays.insert(GuestPath::workspace(), overlay.clone());
        self.mount(belljar_policy::WORKSPACE, overlay.path(), MountAccess::Overlay)
    }

    /// Mounts this directory at `guest`. For [`MountAccess::Overlay`] use [`Self::overlay`].
    pub fn mount(mut self, guest: &str, directory: impl AsRef<Path>, access: MountAccess) -> Self {
        match GuestPath::new(guest) {
            Ok(guest) => {
                let host = directory.as_ref().to_owned();
                self.grants.mounts.push(Mount { guest, host, access });
            }
            Err(error) => self.store_problem(error.into()),
        }
        self
    }

    /// Lets the tools reach a network host, for example `api.example.com` or `https://*.example.com`. Private
    /// addresses are refused unless a rule names them.
    pub fn host(mut self, rule: &str) -> Self {
        match rule.parse::<HostRule>() {
            Ok(rule) => match self.grants.hosts.first_mut() {
                Some(rules) => rules.push(rule),
                None => self.grants.hosts.push(vec![rule]),
            },
            Err(error) => self.store_problem(error.into()),
        }
        self
    }

    /// Adds a secret to requests for the hosts it is bound to, for tools whose manifest names the secret. No
    /// tool sees the value.
    pub fn secret(mut self, name: SecretName, secret: Secret) -> Self {
        self.grants.secrets.insert(name.clone());
        self.secrets.insert(name, secret);
        self
    }

    /// Sets the limits of each call and of the jar. Default: [`Limits::default`].
    pub fn limits(mut self, limits: Limits) -> Self {
        self.grants.limits = limits;
        self
    }

    /// Ends all calls permanently when the token is cancelled. Default: never.
    pub fn cancelled_by(mut self, cancel: CancellationToken) -> Self {
        self.cancel = cancel;
        self
    }

    /// Describes the components, and opens the directories. A component that is not in the cache is compiled
    /// first, which takes seconds for a large one ([`crate::SandboxConfig::slow`] reports it).
    ///
    /// # Errors
    ///
    /// The first error of any step. No guest code but `describe` has run by then.
    pub async fn build(mut self, sandbox: &Sandbox) -> Result<Jar, JarBuildError> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        if self.tools.is_empty() {
            return Err(JarBuildError::NoTool);
        }
        let ask = ToolAsk {
            mounts: Some(MountAccess::ReadWrite),
            hosts: self.grants.hosts.concat(),
            secrets: self.grants.secrets.clone(),
            ..ToolAsk::default()
        };
        let mut tools = Vec::with_capacity(self.tools.len());
        for (path, wasm) in self.tools {
            let described = sandbox.describe_tools(&wasm).await.map_err(|source| {
                let digest = || wasm.digest().to_string();
                let component = path.map_or_else(digest, |path| path.to_shown().to_string());
                JarBuildError::Describe { component, source }
            })?;
            let offered = described.iter().map(|tool| (tool.name.clone(), tool.hints)).collect();
            let names = described.iter().map(|tool| (tool.name.clone(), CallPermission::Allow));
            self.grants.tools.extend(names);
            tools.push(JarTool { tools: offered, wasm, ask: ask.clone(), config: Arc::default() });
        }
        let (rights, _) = Rights::intersect_rights(&AskedRights::default(), &self.grants, None);
        let budget =
            Budget::new_root(BudgetLevel::Subagent, BudgetCaps::for_agent(&self.grants.limits));
        let (secrets, overlays, cancel) = (self.secrets, self.overlays, self.cancel);
        Ok(sandbox.open_jar(JarSpec { rights, budget, tools, secrets, overlays, cancel })?)
    }

    /// Stores an error, unless an earlier step failed already.
    fn store_problem(&mut self, problem: JarBuildError) {
        self.problem.get_or_insert(problem);
    }
}

/// Reads a component's file, but at most one byte more than [`MAX_COMPONENT`], so that a later check sees
/// that it is too large.
fn read_component(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_COMPONENT + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
