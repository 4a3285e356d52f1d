//! The available tools: built in, installed in the home, and provided by the host itself.
//!
//! An installed tool cannot have a built-in's name, and is offered only after its component's digest is
//! pinned in the operator's settings. For example, `~/.belljar/tools/fetch` without `digest` under
//! `[tools.fetch]` yields a warning and no tool. Descriptions come from the sandbox, which stores them by
//! digest; a tool is described when an agent first uses it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use belljar_definition::{
    BUILTIN_TOOLS, Diagnostic, FINDER_TOOLS, KnownTools, ResumeMode, Settings, Severity,
    ToolManifest,
};
use belljar_mcp::{ListedTool, Server};
use belljar_model::ToolSpec;
use belljar_policy::{Rights, ShownText, ToolName};
use belljar_sandbox::{
    DescribeError, JarTool, Sandbox, ToolHints, ToolInfo, Wasm, inspect_component,
};
use futures::future::join_all;
use tokio::sync::OnceCell;

use crate::limits::{MAX_COMPONENT_BYTES, MAX_MANIFEST_BYTES};
use crate::servers::{self, McpServers};
use crate::tool_files::{self, InstalledTool, ReadError, read_bounded};

/// The code of the warning about an unpinned installed tool.
pub const UNPINNED: &str = "unpinned-tool";

/// One built-in tool, embedded in the program.
#[derive(Debug, Clone)]
pub struct StockTool {
    /// The name of the tool and of its component, for example `file_read`.
    pub name: Cow<'static, str>,
    /// The component.
    pub wasm: Wasm,
    /// The text of its `tool.toml`.
    pub manifest: Cow<'static, str>,
}

impl StockTool {
    /// A tool with this component and manifest text.
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        wasm: Wasm,
        manifest: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { name: name.into(), wasm, manifest: manifest.into() }
    }

    /// Reads a tool from its two files; the tool gets the name of the component's file.
    ///
    /// # Errors
    ///
    /// The path that cannot be read, with the cause.
    pub fn from_files(component: &Path, manifest: &Path) -> Result<Self, (PathBuf, ReadError)> {
        let read =
            |path: &Path, most| read_bounded(path, most).map_err(|error| (path.to_owned(), error));
        let wasm = Wasm::new(read(component, MAX_COMPONENT_BYTES)?);
        let manifest = read(manifest, MAX_MANIFEST_BYTES)?;
        let name = component.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self::new(name, wasm, String::from_utf8_lossy(&manifest).into_owned()))
    }
}

/// The source of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComponentOrigin {
    /// Embedded in the program.
    Stock,
    /// `tools/NAME/` in the home.
    Home,
}

/// One component with its manifest and settings.
#[derive(Debug)]
pub struct ToolComponent {
    /// The name of the directory; its settings are under `[tools.NAME]`.
    pub name: ToolName,
    /// The source of the component.
    pub origin: ComponentOrigin,
    /// The component.
    pub wasm: Wasm,
    /// The requested rights.
    pub manifest: ToolManifest,
    /// The settings that the component reads by `wasi:config`.
    pub config: Arc<BTreeMap<String, String>>,
    infos: OnceCell<Result<Arc<[ToolInfo]>, DescribeError>>,
    imports: OnceLock<Arc<[String]>>,
}

/// The index of all tools, by name.
#[derive(Debug, Default)]
pub struct ToolCatalogue {
    components: Vec<Arc<ToolComponent>>,
    /// The component that offers each tool.
    owners: BTreeMap<ToolName, Arc<ToolComponent>>,
    /// Tools that exist but are not offered, for example for lack of a pin, each with the reason.
    held: BTreeMap<ToolName, String>,
    /// The tools of MCP servers.
    servers: McpServers,
    problems: Vec<Diagnostic>,
}

/// The tools of one agent.
#[derive(Debug)]
pub struct ToolOffer {
    /// The tools to advertise, ordered by name, so that the beginning of a prompt stays the same for the
    /// provider's cache.
    pub specs: Vec<(ToolName, ToolSpec)>,
    /// The tools that run in the jar.
    pub jar_tools: Vec<JarTool>,
    /// Belljar's own tools that only read. Other tools' hints are unverified, so their calls are never
    /// repeated.
    pub repeatable: BTreeSet<ToolName>,
    /// Belljar's own tools whose manifest lets an interrupted call run again ([`ResumeMode::Replay`]).
    pub replayable: BTreeSet<ToolName>,
    /// Tools of MCP servers, outside of the jar, each with its server.
    pub remote: BTreeMap<ToolName, Arc<Server>>,
    /// Warnings for a person about granted tools that cannot be offered.
    pub warnings: Vec<String>,
    /// The granted tools that cannot be offered, each with the reason.
    pub left_out: BTreeMap<ToolName, String>,
}

impl ToolCatalogue {
    /// Builds the catalogue of the built-in tools. An invalid manifest is a bug of this program and is
    /// reported as a problem.
    pub fn from_stock(tools: impl IntoIterator<Item = StockTool>, settings: &Settings) -> Self {
        let mut catalogue = Self::default();
        for tool in tools {
            let path = PathBuf::from(format!("{}/tool.toml", tool.name));
            let manifest = match ToolManifest::parse(&path, &tool.manifest) {
                Ok(manifest) => manifest,
                Err(problems) => {
                    catalogue.problems.extend(problems);
                    continue;
                }
            };
            let Ok(name) = ToolName::new(&tool.name) else {
                catalogue.record_problem(
                    &path,
                    "bad-name",
                    format!("`{}` is no tool name", tool.name),
                );
                continue;
            };
            let component =
                build_component(name, ComponentOrigin::Stock, tool.wasm, manifest, settings);
            // Each stock component offers one tool under the component's name, so no stock tool
            // needs a description before its use.
            catalogue.owners.insert(component.name.clone(), Arc::clone(&component));
            catalogue.components.push(component);
        }
        catalogue
    }

    /// Adds the tools installed in `dir` (`~/.belljar/tools`). Reads and describes them concurrently; a
    /// faulty tool does not stop others from loading.
    #[must_use]
    pub async fn with_home(mut self, dir: &Path, settings: &Settings, sandbox: &Sandbox) -> Self {
        let (installed, problems) =
            tool_files::scan_tools(dir, |name| self.is_reserved(name)).await;
        self.problems.extend(problems);
        let mut pinned = Vec::new();
        for InstalledTool { name, path, wasm, manifest } in installed {
            if manifest.resume == ResumeMode::Replay {
                let message = "`resume = \"replay\"` is for belljar's own tools".to_owned();
                self.record_problem(&path, "not-here", message);
                continue;
            }
            let digest = wasm.digest().to_string();
            let pin = settings.tools.get(name.as_str()).and_then(|tool| tool.digest.clone());
            match pin {
                Some(pin) if pin.trim_start_matches("sha256:") == digest => {
                    pinned.push((
                        path,
                        build_component(name, ComponentOrigin::Home, wasm, manifest, settings),
                    ));
                }
                Some(_) => {
                    let why = format!("tool `{name}` is not the one that is pinned");
                    self.withhold_tool(name, &path, "changed-tool", why, &digest);
                }
                None => {
                    let why = format!("tool `{name}` is not pinned");
                    self.withhold_tool(name, &path, UNPINNED, why, &digest);
                }
            }
        }
        let described = pinned.iter().map(|(_, component)| component.describe_tools(sandbox));
        let described = join_all(described).await;
        let described: Vec<_> = described.into_iter().map(|infos| infos.cloned()).collect();
        for ((path, component), infos) in pinned.into_iter().zip(described) {
            self.add_component(&path, component, infos);
        }
        self
    }

    /// Adds the MCP servers of the settings and their accepted tools from one file per server in `dir`
    /// (`~/.belljar/mcp`). No server is contacted.
    #[must_use]
    pub fn with_servers(mut self, dir: &Path, settings: &Settings) -> Self {
        self.servers = McpServers::from_settings(dir, settings);
        self.problems.append(&mut self.servers.problems);
        self
    }

    /// The names of tools that agent files and grants may use.
    pub fn known_tools(&self) -> KnownTools {
        let host = BUILTIN_TOOLS.iter().filter_map(|name| ToolName::new(name).ok());
        let owned = self.owners.keys().chain(self.held.keys()).cloned();
        let known = KnownTools::new(owned.chain(host).chain(self.servers.tool_names().cloned()));
        known.with_server_names(&self.servers.called)
    }

    /// Whether the tool exists. Builds no list, because the function is called for each tool of each agent.
    pub fn knows_tool(&self, tool: &str) -> bool {
        self.owners.contains_key(tool)
            || self.held.contains_key(tool)
            || BUILTIN_TOOLS.contains(&tool)
            || self.servers.tool_names().any(|name| name.as_str() == tool)
    }

    /// Errors of tools and their manifests.
    pub fn problems(&self) -> &[Diagnostic] {
        &self.problems
    }

    /// The components, built-in ones first.
    pub fn components(&self) -> &[Arc<ToolComponent>] {
        &self.components
    }

    /// The component that offers a tool.
    pub fn find_component(&self, tool: &str) -> Option<&Arc<ToolComponent>> {
        self.owners.get(tool)
    }

    /// The MCP servers of the settings.
    pub fn servers(&self) -> &[Arc<Server>] {
        self.servers.list_servers()
    }

    /// The MCP server of a tool, with the accepted tool.
    pub fn find_remote(&self, tool: &str) -> Option<(&Arc<Server>, &ListedTool)> {
        self.servers.find_tool(tool)
    }

    /// Why an installed tool is not offered to any agent; `None` = offered or unknown.
    pub fn withheld_reason(&self, tool: &str) -> Option<String> {
        self.held.get(tool).cloned()
    }

    /// The available tools that these rights permit. A tool that cannot be described is left out, with a
    /// warning.
    pub async fn offer_tools(&self, sandbox: &Sandbox, rights: &Rights) -> ToolOffer {
        let (mut warnings, mut left_out) = (Vec::new(), BTreeMap::new());
        let (mut specs, mut remote) = (Vec::new(), BTreeMap::new());
        let mut wanted: Vec<(&Arc<ToolComponent>, Vec<&ToolName>)> = Vec::new();
        for (name, _) in rights.offered_tools() {
            match self.owners.get(name) {
                Some(owner) => match wanted.iter_mut().find(|(known, _)| Arc::ptr_eq(known, owner))
                {
                    Some((_, names)) => names.push(name),
                    None => wanted.push((owner, vec![name])),
                },
                None if BUILTIN_TOOLS.contains(&name.as_str()) => {}
                None => {
                    if let Some((server, tool)) = self.servers.find_tool(name.as_str()) {
                        specs.push((name.clone(), servers::tool_spec(name, tool)));
                        remote.insert(name.clone(), Arc::clone(server));
                        continue;
                    }
                    let held = self.held.get(name).cloned();
                    warnings.push(
                        match held.or_else(|| self.servers.unavailable_reason(name.as_str())) {
                            Some(why) => format!("tool `{name}` is left out: {why}"),
                            None => format!("tool `{name}` is granted, but there is no such tool"),
                        },
                    );
                }
            }
        }
        let infos = join_all(wanted.iter().map(|(owner, _)| owner.describe_tools(sandbox))).await;
        let mut jar_tools = Vec::new();
        let (mut repeatable, mut replayable) = (BTreeSet::new(), BTreeSet::new());
        for ((owner, names), infos) in wanted.iter().zip(infos) {
            match infos {
                Ok(infos) => {
                    let tools = owner.add_specs(names, infos, &mut specs, &mut warnings);
                    let missing = names.iter().filter(|name| !tools.contains_key(**name));
                    let why = format!("component `{}` does not offer it", owner.name);
                    left_out.extend(missing.map(|name| ((*name).clone(), why.clone())));
                    if owner.origin == ComponentOrigin::Stock {
                        let reading = tools.iter().filter(|(_, hints)| hints.read_only);
                        repeatable.extend(reading.map(|(name, _)| name.clone()));
                        if owner.manifest.resume == ResumeMode::Replay {
                            replayable.extend(tools.keys().cloned());
                        }
                    }
                    if !tools.is_empty() {
                        jar_tools.push(owner.jar_tool(tools));
                    }
                }
                Err(error) => {
                    warnings.push(format!("tool `{}` is left out: {error}", owner.name));
                    let why = error.to_string();
                    left_out.extend(names.iter().map(|name| ((*name).clone(), why.clone())));
                }
            }
        }
        specs.sort_by(|(a, _), (b, _)| a.cmp(b));
        ToolOffer { specs, jar_tools, repeatable, replayable, remote, warnings, left_out }
    }

    /// Adds an installed component and its tools, or reports why not.
    fn add_component(
        &mut self,
        path: &Path,
        component: Arc<ToolComponent>,
        infos: Result<Arc<[ToolInfo]>, DescribeError>,
    ) {
        let infos = match infos {
            Ok(infos) => infos,
            Err(error) => {
                self.record_problem(
                    path,
                    "bad-tool",
                    format!("tool `{}`: {error}", component.name),
                );
                return;
            }
        };
        for info in infos.iter() {
            if self.is_reserved(&info.name) {
                let message = format!(
                    "tool `{}` of `{}` is left out: the name is taken",
                    info.name, component.name
                );
                self.record_problem(path, "name-taken", message);
            } else {
                self.owners.insert(info.name.clone(), Arc::clone(&component));
            }
        }
        self.components.push(component);
    }

    /// Keeps an installed tool from agents, and reports the reason with the digest to pin.
    fn withhold_tool(
        &mut self,
        name: ToolName,
        path: &Path,
        code: &'static str,
        why: String,
        digest: &str,
    ) {
        self.problems.push(Diagnostic {
            severity: Severity::Warning,
            hint: Some(format!(
                "if you trust it, `belljar grant AGENT --tool {name}` lets an agent call it and pins \
                 `digest = \"sha256:{digest}\"` under `[tools.{name}]` in `belljar.toml`"
            )),
            ..Diagnostic::for_file(path, code, why.clone())
        });
        self.held.insert(name, why);
    }

    /// Whether a tool of the host itself or a built-in has the name.
    fn is_reserved(&self, name: &ToolName) -> bool {
        let name = name.as_str();
        BUILTIN_TOOLS.contains(&name)
            || FINDER_TOOLS.contains(&name)
            || self.owners.contains_key(name)
    }

    fn record_problem(&mut self, path: &Path, code: &'static str, message: String) {
        self.problems.push(Diagnostic::for_file(path, code, message));
    }
}

impl ToolComponent {
    /// The tools of this component, described once.
    pub async fn describe_tools(
        &self,
        sandbox: &Sandbox,
    ) -> Result<&Arc<[ToolInfo]>, DescribeError> {
        let infos = self.infos.get_or_init(|| sandbox.describe_tools(&self.wasm)).await;
        infos.as_ref().map_err(Clone::clone)
    }

    /// The names of imported interfaces, escaped. Computed once from all bytes; empty for an invalid
    /// component.
    pub fn imported_interfaces(&self) -> &Arc<[String]> {
        self.imports.get_or_init(|| {
            let found =
                inspect_component(self.wasm.bytes()).map(|found| found.imports).unwrap_or_default();
            let names =
                found.iter().map(|import| ShownText::clip_line(&import.name, 200).to_string());
            names.collect::<BTreeSet<_>>().into_iter().collect()
        })
    }

    /// Adds the specs of the named tools, and returns their hints.
    fn add_specs(
        &self,
        names: &[&ToolName],
        infos: &[ToolInfo],
        specs: &mut Vec<(ToolName, ToolSpec)>,
        warnings: &mut Vec<String>,
    ) -> BTreeMap<ToolName, ToolHints> {
        let mut tools = BTreeMap::new();
        for name in names {
            let Some(info) = infos.iter().find(|info| info.name == **name) else {
                warnings.push(format!("component `{}` offers no tool `{name}`", self.name));
                continue;
            };
            tools.insert(info.name.clone(), info.hints);
            let spec = ToolSpec {
                name: info.name.as_str().to_owned(),
                description: info.description.clone(),
                schema: info.schema.clone(),
            };
            specs.push((info.name.clone(), spec));
        }
        tools
    }

    /// The component with the chosen tools, for a jar.
    fn jar_tool(&self, tools: BTreeMap<ToolName, ToolHints>) -> JarTool {
        JarTool {
            tools,
            wasm: self.wasm.clone(),
            ask: self.manifest.ask.clone(),
            config: Arc::clone(&self.config),
        }
    }
}

/// A component from its bytes, manifest and settings.
fn build_component(
    name: ToolName,
    origin: ComponentOrigin,
    wasm: Wasm,
    manifest: ToolManifest,
    settings: &Settings,
) -> Arc<ToolComponent> {
    let config = settings.tools.get(name.as_str()).map(|tool| tool.config.clone());
    let config = Arc::new(config.unwrap_or_default());
    Arc::new(ToolComponent {
        name,
        origin,
        wasm,
        manifest,
        config,
        infos: OnceCell::new(),
        imports: OnceLock::new(),
    })
}
