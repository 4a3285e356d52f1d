//! `belljar.toml`: the operator's file at home, and the workspace's, which can only narrow.

mod auto_background;
mod command;
mod defaults;
mod edit;
mod grantee;
mod grants;
mod hooks;
mod issuers;
mod matcher;
mod mcp;
mod mcp_grants;
mod mcp_oauth;
mod mcp_program;
mod models;
mod named;
mod revoke;
mod schema;
mod sections;
mod server;
mod subagents;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use belljar_policy::{Access, Grants, HostRule, Mount, Permission, SecretName, ToolName};

use crate::diagnostic::{Diagnostic, Position};
use crate::{AgentId, KnownTools, Missing, Scope, Shapes, Slug, SubagentsAsk, ToolsAs, Visibility};

use auto_background::AutoBackground;
pub use command::{command_of, grant_command, shell_word};
pub use defaults::{DEFAULTS, DefaultGrant};
pub use edit::{GrantChange, HOST_PLACEHOLDER, apply_grant, apply_grants, grant_lines};
pub use grantee::Grantee;
pub use grants::{GrantSpec, MountSpec};
pub use hooks::{HookAction, HookEvent, HookSetting};
pub use issuers::{IssuerSetting, SignatureKind, TokenRule, TokenScope};
pub use matcher::HookMatcher;
pub use mcp::McpSetting;
pub use mcp_grants::McpGrants;
pub use mcp_oauth::McpOauthSetting;
pub use mcp_program::{McpProgram, McpValue};
pub use revoke::{GrantRemoval, MountRemoval, NotRevoked, revoke_grants};
pub use server::ServerSetting;
pub use subagents::SubagentPolicy;

/// Everything that the operator's file, and the workspace's, say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// Whether a workspace's agent may take the place of a home agent of the same name.
    /// Default: no.
    pub project_override: bool,
    /// Whether a command refuses to run where the OS sandbox does not stand. Absent = `serve` and
    /// `prove` do, and others run with a warning. Only the home file says.
    pub require_os_sandbox: Option<bool>,
    /// How many runs that ended are kept, the newest; 0 = each is deleted when it ends. Absent =
    /// the session's default.
    pub keep_runs: Option<u64>,
    /// The share of a model's context, in percent, above which the older turns of a session are
    /// summarised; 0 = never. Absent = the session's default.
    pub compact_at: Option<u64>,
    /// `lenient` under `[agents]`: which shapes of agent files are read. Only the home file says.
    pub shapes: Shapes,
    /// `strict` under `[agents]`: what becomes of an agent that asks for tools that nobody has. Only
    /// the home file says.
    pub missing_tools: Missing,
    /// `overlay`, `overlay_bytes` and `overlay_files` under `[agents]`. Only the home file says.
    pub overlays: OverlaySetting,
    /// `profile` under `[agents]`: how much a subagent has where its grant does not say. Only the home
    /// file says.
    pub profile: Profile,
    /// The models whose role has the profile [`Profile::Small`]; each is the model of a role.
    pub small_models: BTreeSet<String>,
    /// `[models.NAME]`.
    pub models: BTreeMap<String, ModelSetting>,
    /// `[roles]`: role to model name. Every value is a key of `models`.
    pub roles: BTreeMap<String, String>,
    /// `[secrets.NAME]`.
    pub secrets: BTreeMap<SecretName, SecretSetting>,
    /// `[tools.NAME]`.
    pub tools: BTreeMap<ToolName, ToolSetting>,
    /// `[mcp.NAME]`. Only the home file has any.
    pub mcp: BTreeMap<String, McpSetting>,
    /// `[mcp.NAME]` with a `command`. Only the home file has any.
    pub mcp_programs: BTreeMap<String, McpProgram>,
    /// `[[hooks]]`, in the order of the file. Only the home file has any.
    pub hooks: Vec<HookSetting>,
    /// `[subagents]`.
    pub subagents: SubagentPolicy,
    /// `[server]`. Only the home file says.
    pub server: ServerSetting,
    home: Layer,
    workspace: Layer,
    warnings: Vec<Diagnostic>,
    named_tools: Vec<NamedTool>,
    named_agents: Vec<named::NamedAgent>,
}

/// How much a subagent has where its grant does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// As every agent.
    #[default]
    Whole,
    /// Fewer steps and tokens, and shorter prompts.
    Small,
}

/// Whether agents get an overlay of the workspace, and what all overlays of a home may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverlaySetting {
    /// Whether an agent without a grant for writing writes to an overlay. Default: yes.
    pub by_default: bool,
    /// Most bytes of all overlays of this home together; absent = the sandbox's default.
    pub bytes: Option<u64>,
    /// Most files of all overlays of this home together; absent = the sandbox's default.
    pub files: Option<u64>,
}

impl Default for OverlaySetting {
    fn default() -> Self {
        Self { by_default: true, bytes: None, files: None }
    }
}

/// A configured model. The model crate checks the values further.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelSetting {
    /// Which wire to speak.
    pub kind: ModelKind,
    /// Base of the API; absent = the provider's own.
    pub base_url: Option<String>,
    /// The provider's name of the model; for `scripted` the path of a transcript.
    pub model: String,
    /// Where the key comes from.
    pub key: KeySetting,
    /// Most output tokens of one answer; absent = the server decides.
    pub max_output_tokens: Option<u64>,
    /// Tokens that a request and its answer may have together; absent = not known, and no
    /// history is made to fit.
    pub context_tokens: Option<u64>,
    /// Whether it reads images; absent = as its provider is known to.
    pub images: Option<bool>,
    /// `low`, `medium`, `high` or `max`; absent = the server decides.
    pub effort: Option<String>,
    /// Sampling temperature, 0 to 2; absent = the server decides.
    pub temperature: Option<f64>,
    /// Allows a key to go over plain http to another machine. Default: no.
    pub allow_insecure: bool,
    /// More headers to send. Not for keys: names of headers that carry one are refused.
    pub headers: BTreeMap<String, String>,
    /// The field that carries the output limit on an `openai` wire: `max_tokens` or
    /// `max_completion_tokens`. Absent = the newer one for OpenAI's own API, else the older.
    pub max_tokens_field: Option<String>,
    /// Whether a stream is asked for its usage by `stream_options`; `None` = until it is refused.
    pub stream_options: Option<bool>,
    /// More fields for the body of every request, for what only this server knows. The model
    /// crate refuses those that it writes itself.
    pub extra_body: serde_json::Map<String, serde_json::Value>,
}

/// A kind of model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelKind {
    /// Chat completions.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
    /// Plays a transcript.
    Scripted,
}

/// Where a key or a secret comes from. Never the value itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySetting {
    /// There is none.
    None,
    /// This environment variable, for example `OPENAI_API_KEY`.
    Env(String),
    /// This file: absolute, or relative to the directory of `belljar.toml`, for example `keys/openai`.
    File(PathBuf),
}

/// A secret and what it is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretSetting {
    /// The hosts to whose requests it is joined.
    pub host: HostRule,
    /// The header with the secret, for example `authorization`.
    pub header: String,
    /// The text before it in the header, for example `Bearer `.
    pub prefix: String,
    /// Where its value comes from; never [`KeySetting::None`].
    pub value: KeySetting,
}

/// The operator's words about a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolSetting {
    /// The configuration that the tool reads.
    pub config: BTreeMap<String, String>,
    /// The component's digest, `sha256:` and 64 hex digits; a tool that is not built in needs
    /// it.
    pub digest: Option<String>,
}

/// The grants of one file.
#[derive(Debug, Clone, Default, PartialEq)]
struct Layer {
    defaults: BTreeMap<Visibility, GrantSpec>,
    grants: BTreeMap<Grantee, GrantSpec>,
    /// `workspace/NAME` in a workspace's own file.
    own: BTreeMap<Slug, GrantSpec>,
}

/// A tool that a grant names, for [`Settings::check_tools`].
#[derive(Debug, Clone, PartialEq)]
struct NamedTool {
    tool: ToolName,
    path: PathBuf,
    at: Position,
}

impl Settings {
    /// Reads the home file and the workspace's, each where there is one. `home_dir` stands for
    /// `~` in host paths. An error in either file is an error: half of a policy is none.
    pub fn parse(
        home: Option<(&Path, &str)>,
        workspace: Option<(&Path, &str)>,
        home_dir: Option<&Path>,
    ) -> Result<Self, Vec<Diagnostic>> {
        let mut settings = Self::default();
        let mut problems = Vec::new();
        if let Some((path, text)) = home {
            problems.extend(schema::read_home(&mut settings, path, text, home_dir));
        }
        if let Some((path, text)) = workspace {
            problems.extend(schema::read_workspace(&mut settings, path, text));
        }
        if problems.is_empty() { Ok(settings) } else { Err(problems) }
    }

    /// The grants of this agent in a run in this workspace.
    pub fn grants(&self, id: &AgentId, visibility: Visibility, workspace_root: &Path) -> Grants {
        let grants = self.home_grant(&id.into(), visibility).resolve(workspace_root);
        self.workspace_grant(id, visibility).narrow(grants)
    }

    /// The grant of the home file and the built-in defaults, every key stated.
    pub fn home_grant(&self, to: &Grantee, visibility: Visibility) -> GrantSpec {
        self.combined(visibility, to, self.home.grants.get(to))
    }

    /// The same settings as if no section of the home file stated a mount.
    #[must_use]
    pub fn without_mounts(&self) -> Self {
        let mut without = self.clone();
        let (defaults, grants) = (&mut without.home.defaults, &mut without.home.grants);
        for section in defaults.values_mut().chain(grants.values_mut()) {
            section.mounts = None;
        }
        without
    }

    /// The permission that the home file states for this tool by name: in the agent's own section,
    /// else in that of its library.
    pub fn named(&self, id: &AgentId, tool: &ToolName) -> Option<Permission> {
        let own = Grantee::from(id);
        let sections = [self.own_grant(&own), own.whole().and_then(|to| self.own_grant(&to))];
        sections.into_iter().flatten().find_map(|section| {
            let listed = section.tools.as_ref().and_then(|tools| tools.get(tool));
            listed.or_else(|| section.add_tools.get(tool)).copied()
        })
    }

    /// The section of the home file for the whole library of this agent, where there is one.
    pub fn library_section(&self, id: &AgentId) -> Option<String> {
        let whole = Grantee::from(id).whole()?;
        self.home.grants.contains_key(&whole).then(|| format!("[grants.\"{whole}\"]"))
    }

    /// The defaults with the sections of the home file over them.
    fn combined(&self, visibility: Visibility, to: &Grantee, own: Option<&GrantSpec>) -> GrantSpec {
        let mut spec = defaults::spec(visibility, self.overlays.by_default);
        let stated = self.stated(visibility, to, own);
        let mounts = stated.clone().filter_map(|stated| stated.mounts.as_ref()).next_back();
        if mounts.is_some_and(|mounts| mounts.iter().any(|m| m.access == Access::ReadWrite)) {
            defaults::without_overlay_tools(&mut spec, visibility);
        }
        stated.fold(spec, |spec, stated| spec.overlaid(stated))
    }

    /// The sections of the home file about somebody, the narrowest last: it counts.
    fn stated<'a>(
        &'a self,
        visibility: Visibility,
        to: &Grantee,
        own: Option<&'a GrantSpec>,
    ) -> impl DoubleEndedIterator<Item = &'a GrantSpec> + Clone + use<'a> {
        let whole = to.whole().and_then(|whole| self.home.grants.get(&whole));
        [self.home.defaults.get(&visibility), whole, own].into_iter().flatten()
    }

    /// Every directory that the home file lets anybody mount in this workspace, and how: a
    /// workspace's own file only narrows. May name one directory several times.
    pub fn mounts(&self, workspace_root: &Path) -> Vec<Mount> {
        let defaults = Visibility::ALL.map(|row| defaults::spec(row, self.overlays.by_default));
        let stated = self.home.defaults.values().chain(self.home.grants.values());
        let specs = defaults.into_iter().chain(stated.cloned());
        specs.flat_map(|spec| spec.resolve(workspace_root).mounts).collect()
    }

    /// Every host that the home file lets anybody reach.
    pub fn granted_hosts(&self) -> impl Iterator<Item = &HostRule> {
        let stated = self.home.defaults.values().chain(self.home.grants.values());
        stated.filter_map(|spec| spec.hosts.as_ref()).flatten()
    }

    /// Narrows each mount that the home file states to what `most` says of it in this workspace;
    /// `None` = it is taken out. Gives those that were narrowed, each with the section that states
    /// it. The built-in defaults stay: they only read the workspace itself.
    pub fn narrow_mounts(
        &mut self,
        workspace_root: &Path,
        most: impl Fn(&Mount) -> Option<Access>,
    ) -> Vec<(String, Mount)> {
        let mut narrowed = Vec::new();
        let defaults = self.home.defaults.iter_mut();
        let defaults =
            defaults.map(|(visibility, spec)| (format!("[defaults.{visibility}]"), spec));
        let grants = self.home.grants.iter_mut();
        let grants = grants.map(|(id, spec)| (format!("[grants.\"{id}\"]"), spec));
        for (section, spec) in defaults.chain(grants) {
            let found = spec.narrow_mounts(workspace_root, &most);
            narrowed.extend(found.into_iter().map(|mount| (section.clone(), mount)));
        }
        narrowed
    }

    /// Whom this agent may hand work to, as the operator says; its own definition may narrow it
    /// further.
    pub fn delegation(&self, id: &AgentId, visibility: Visibility) -> Vec<SubagentsAsk> {
        let home = self.home_grant(&id.into(), visibility).subagents;
        vec![home, self.workspace_grant(id, visibility).subagents]
    }

    /// How this agent is shown its tools, where the operator says so: the workspace's file before the
    /// one at home, as nobody gets a right by it.
    pub fn tools_as(&self, id: &AgentId, visibility: Visibility) -> Option<ToolsAs> {
        let workspace = self.workspace_grant(id, visibility).tools_as;
        let to = Grantee::from(id);
        let mut home = self.stated(visibility, &to, self.home.grants.get(&to));
        workspace.or_else(|| home.rfind(|stated| stated.tools_as.is_some())?.tools_as)
    }

    /// How long this agent waits for a subagent before that goes to the background by itself;
    /// `None` = until it ends. Only the home file says.
    pub fn auto_background(&self, id: &AgentId, visibility: Visibility) -> Option<Duration> {
        self.home_grant(&id.into(), visibility).auto_background.and_then(AutoBackground::wait)
    }

    /// The agents and libraries that the operator's file grants something by name, whether there are
    /// such or not.
    pub fn grantees(&self) -> impl Iterator<Item = &Grantee> {
        self.home.grants.keys()
    }

    /// The sections of the home file that name this tool, as they are headed there.
    pub fn sections_naming(&self, tool: &str) -> Vec<String> {
        let names = |spec: &GrantSpec| {
            let listed = spec.tools.as_ref().is_some_and(|tools| tools.contains_key(tool));
            listed || spec.add_tools.contains_key(tool)
        };
        let defaults = self.home.defaults.iter().filter(|(_, spec)| names(spec));
        let grants = self.home.grants.iter().filter(|(_, spec)| names(spec));
        let defaults = defaults.map(|(visibility, _)| format!("[defaults.{visibility}]"));
        defaults.chain(grants.map(|(id, _)| format!("[grants.\"{id}\"]"))).collect()
    }

    /// Things in the files that are allowed and probably not meant.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// A warning for each tool that a grant names and that does not exist.
    pub fn check_tools(&self, known: &KnownTools) -> Vec<Diagnostic> {
        let missing = self.named_tools.iter().filter(|named| !known.contains(named.tool.as_str()));
        missing
            .map(|named| Diagnostic {
                path: named.path.clone(),
                line: named.at.line,
                column: named.at.column,
                severity: crate::Severity::Warning,
                code: "unknown-tool",
                message: format!("tool `{}` does not exist", named.tool),
                hint: known
                    .suggest(named.tool.as_str())
                    .map(|word| format!("did you mean `{word}`?")),
            })
            .collect()
    }

    /// The keys that the workspace's file states for an agent. There, a bare name means the home
    /// agent and the workspace's own: narrowing one too many is safe.
    fn workspace_grant(&self, id: &AgentId, visibility: Visibility) -> GrantSpec {
        let layer = &self.workspace;
        let to = Grantee::from(id);
        let stated = layer.grants.get(&to).or_else(|| match &id.scope {
            Scope::Workspace(_) => layer
                .own
                .get(&id.slug)
                .or_else(|| layer.grants.get(&AgentId::home(id.slug.clone()).into())),
            Scope::Home | Scope::Library(_) => None,
        });
        let mut base = layer.defaults.get(&visibility).cloned().unwrap_or_default();
        if let Some(whole) = to.whole().and_then(|whole| layer.grants.get(&whole)) {
            base = base.overlaid(whole);
        }
        stated.map_or(base.clone(), |stated| base.overlaid(stated))
    }
}
