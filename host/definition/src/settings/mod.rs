//! Reads `belljar.toml`: the operator's file at home, and the workspace's file, which can only narrow. For
//! example, `[grants.scout]` at home may grant `shell`, and the workspace's section may then deny the same
//! tool.

mod auto_background;
mod command;
mod context;
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

use belljar_policy::{CallPermission, Grants, HostRule, Mount, MountAccess, SecretName, ToolName};

use crate::diagnostic::{Diagnostic, FilePosition};
use crate::{
    AgentId, AgentScope, FrontmatterShapes, KnownTools, MissingToolPolicy, Slug, SubagentsAsk,
    ToolsAs, Visibility,
};

use auto_background::AutoBackground;
pub use command::{command_of, grant_command, shell_word};
pub use context::ContextSetting;
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

/// The settings of the operator's file, narrowed by the workspace's file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// Whether a workspace's agent replaces a home agent of the same name. Default: no.
    pub project_override: bool,
    /// Whether a command refuses to run without a working OS sandbox. Absent = `serve` and `prove` refuse,
    /// other commands warn. Only the home file sets this value.
    pub require_os_sandbox: Option<bool>,
    /// How many ended runs are kept, the newest first; 0 = each is deleted when it ends. Absent = the
    /// session's default.
    pub keep_runs: Option<u64>,
    /// The share of a model's context, in percent, above which the older turns of a session are
    /// summarised; 0 = never. Absent = the session's default.
    pub compact_at: Option<u64>,
    /// `lenient` under `[agents]`: which shapes of agent files are read. Only the home file sets this value.
    pub shapes: FrontmatterShapes,
    /// `strict` under `[agents]`: how an agent is handled that asks for tools which are not installed. Only
    /// the home file sets this value.
    pub missing_tools: MissingToolPolicy,
    /// `[context]`: the budget for lists of agents, skills and tools. Only the home file has the section.
    pub context: ContextSetting,
    /// `overlay`, `overlay_bytes` and `overlay_files` under `[agents]`. Only the home file sets these values.
    pub overlays: OverlaySetting,
    /// `profile` under `[agents]`: the profile of a subagent whose grant has no `profile`. Only the home file
    /// sets this value.
    pub profile: SubagentProfile,
    /// The models whose role has the profile [`SubagentProfile::Small`].
    pub small_models: BTreeSet<String>,
    /// `[models.NAME]`: the configured models.
    pub models: BTreeMap<String, ModelSetting>,
    /// `[roles]`: role to model name. Every value is a key of `models`.
    pub roles: BTreeMap<String, String>,
    /// `[secrets.NAME]`.
    pub secrets: BTreeMap<SecretName, SecretSetting>,
    /// `[tools.NAME]`: configuration and digests of tools.
    pub tools: BTreeMap<ToolName, ToolSetting>,
    /// `[mcp.NAME]` with a `url`: MCP servers. Only the home file may have these sections.
    pub mcp: BTreeMap<String, McpSetting>,
    /// `[mcp.NAME]` with a `command`: MCP servers that are programs of this machine. Only the home file may
    /// have them.
    pub mcp_programs: BTreeMap<String, McpProgram>,
    /// The servers by the names that agent files have for them, in lower case.
    pub mcp_called: BTreeMap<String, String>,
    /// `[[hooks]]`, in the order of the file. Only the home file may have them.
    pub hooks: Vec<HookSetting>,
    /// `[subagents]`: the rules for all subagents.
    pub subagents: SubagentPolicy,
    /// `[server]`: the settings of `belljar serve`. Only the home file has the section.
    pub server: ServerSetting,
    home: GrantLayer,
    workspace: GrantLayer,
    warnings: Vec<Diagnostic>,
    named_tools: Vec<NamedTool>,
    named_agents: Vec<named::NamedAgent>,
}

/// How large the limits and prompts of a subagent are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SubagentProfile {
    /// As large as those of any agent.
    #[default]
    Whole,
    /// Fewer steps and tokens, and shorter prompts.
    Small,
}

/// Whether agents get an overlay of the workspace, and the shared limits of all overlays of a home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverlaySetting {
    /// Whether an agent without a grant for writing gets an overlay of the workspace. Default: yes.
    pub by_default: bool,
    /// Most bytes of all overlays of this home, summed; absent = the sandbox's default.
    pub bytes: Option<u64>,
    /// Most files of all overlays of this home, summed; absent = the sandbox's default.
    pub files: Option<u64>,
}

impl Default for OverlaySetting {
    fn default() -> Self {
        Self { by_default: true, bytes: None, files: None }
    }
}

/// A configured model. The model crate checks the values more strictly.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelSetting {
    /// The wire protocol.
    pub kind: ModelKind,
    /// Base URL of the API; absent = the provider's own.
    pub base_url: Option<String>,
    /// The provider's name of the model; for `scripted` the path of a transcript.
    pub model: String,
    /// The source of the API key.
    pub key: KeySetting,
    /// Most output tokens of one answer; absent = the server decides.
    pub max_output_tokens: Option<u64>,
    /// The limit of tokens of a request and its answer, summed; absent = unknown, and no history is shortened
    /// to fit.
    pub context_tokens: Option<u64>,
    /// Whether the model reads images; absent = the provider's known value.
    pub images: Option<bool>,
    /// `low`, `medium`, `high` or `max`; absent = the server decides.
    pub effort: Option<String>,
    /// Sampling temperature, 0 to 2; absent = the server decides.
    pub temperature: Option<f64>,
    /// Whether a key may be sent over plain http to another machine. Default: no.
    pub allow_insecure: bool,
    /// More headers to send. A header that usually carries a key is refused.
    pub headers: BTreeMap<String, String>,
    /// The field with the output limit on an `openai` wire: `max_tokens` or `max_completion_tokens`. Absent =
    /// the newer one for OpenAI's own API, else the older.
    pub max_tokens_field: Option<String>,
    /// Whether `stream_options` asks a stream for its usage; `None` = yes, until the server refuses the
    /// option.
    pub stream_options: Option<bool>,
    /// More fields for the body of every request, for options of one server alone. The model crate refuses
    /// fields that it writes itself.
    pub extra_body: serde_json::Map<String, serde_json::Value>,
}

/// A kind of model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelKind {
    /// OpenAI's chat completions.
    OpenAi,
    /// Anthropic's messages API.
    Anthropic,
    /// Replays a transcript.
    Scripted,
}

/// The source of a key or a secret, never the value itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySetting {
    /// No key.
    None,
    /// An environment variable, for example `OPENAI_API_KEY`.
    Env(String),
    /// A file: an absolute path, or a path relative to the directory of `belljar.toml`, for example
    /// `keys/openai`.
    File(PathBuf),
}

/// A secret with the host and header that may carry it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretSetting {
    /// The hosts whose requests get the secret.
    pub host: HostRule,
    /// The header with the secret, for example `authorization`.
    pub header: String,
    /// The text before the secret in the header, for example `Bearer `.
    pub prefix: String,
    /// The source of the value; never [`KeySetting::None`].
    pub value: KeySetting,
}

/// The operator's settings for a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolSetting {
    /// The configuration that the tool reads.
    pub config: BTreeMap<String, String>,
    /// The component's digest, `sha256:` and 64 hex digits; required for a tool that is not built in.
    pub digest: Option<String>,
}

/// The grants of one file.
#[derive(Debug, Clone, Default, PartialEq)]
struct GrantLayer {
    defaults: BTreeMap<Visibility, GrantSpec>,
    grants: BTreeMap<Grantee, GrantSpec>,
    /// The grants for a workspace's own agents: `workspace/NAME` in the workspace's file.
    own: BTreeMap<Slug, GrantSpec>,
}

/// A tool in a grant, for [`Settings::check_tools`].
#[derive(Debug, Clone, PartialEq)]
struct NamedTool {
    tool: ToolName,
    path: PathBuf,
    at: FilePosition,
}

impl Settings {
    /// Parses the home file and the workspace's file, where they exist. `home_dir` replaces `~` in host
    /// paths. An error in either file fails the whole call, because half of a policy would enforce nothing.
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

    /// The grants of the agent in a run in `workspace_root`: the home file's, narrowed by the workspace's
    /// file.
    pub fn agent_grants(
        &self,
        id: &AgentId,
        visibility: Visibility,
        workspace_root: &Path,
    ) -> Grants {
        let grants = self.home_grant(&id.into(), visibility).into_grants(workspace_root);
        self.workspace_grant(id, visibility).narrow_grants(grants)
    }

    /// The grant of a grantee by the home file and the built-in defaults, with every key stated.
    pub fn home_grant(&self, to: &Grantee, visibility: Visibility) -> GrantSpec {
        self.combined_grant(visibility, to, self.home.grants.get(to))
    }

    /// These settings without any mount that the home file states.
    #[must_use]
    pub fn without_mounts(&self) -> Self {
        let mut without = self.clone();
        let (defaults, grants) = (&mut without.home.defaults, &mut without.home.grants);
        for section in defaults.values_mut().chain(grants.values_mut()) {
            section.mounts = None;
        }
        without
    }

    /// The permission that the home file states for the tool by name: in the agent's own section, otherwise
    /// in the section of its library.
    pub fn stated_permission(&self, id: &AgentId, tool: &ToolName) -> Option<CallPermission> {
        let own = Grantee::from(id);
        let sections =
            [self.own_grant(&own), own.whole_library().and_then(|to| self.own_grant(&to))];
        sections.into_iter().flatten().find_map(|section| {
            let listed = section.tools.as_ref().and_then(|tools| tools.get(tool));
            listed.or_else(|| section.add_tools.get(tool)).copied()
        })
    }

    /// The heading of the home file's section for the whole library of this agent, if present.
    pub fn library_section(&self, id: &AgentId) -> Option<String> {
        let whole = Grantee::from(id).whole_library()?;
        self.home.grants.contains_key(&whole).then(|| format!("[grants.\"{whole}\"]"))
    }

    /// The built-in defaults, overlaid by the sections of the home file.
    fn combined_grant(
        &self,
        visibility: Visibility,
        to: &Grantee,
        own: Option<&GrantSpec>,
    ) -> GrantSpec {
        let mut spec = defaults::default_spec(visibility, self.overlays.by_default);
        let stated = self.stated_sections(visibility, to, own);
        let mounts = stated.clone().filter_map(|stated| stated.mounts.as_ref()).next_back();
        if mounts.is_some_and(|mounts| mounts.iter().any(|m| m.access == MountAccess::ReadWrite)) {
            defaults::without_overlay_tools(&mut spec, visibility);
        }
        stated.fold(spec, |spec, stated| spec.overridden_by(stated))
    }

    /// The sections of the home file that apply to a grantee, from the widest to the narrowest. The last
    /// section that states a key decides about it.
    fn stated_sections<'a>(
        &'a self,
        visibility: Visibility,
        to: &Grantee,
        own: Option<&'a GrantSpec>,
    ) -> impl DoubleEndedIterator<Item = &'a GrantSpec> + Clone + use<'a> {
        let whole = to.whole_library().and_then(|whole| self.home.grants.get(&whole));
        [self.home.defaults.get(&visibility), whole, own].into_iter().flatten()
    }

    /// Every mount that the home file and the defaults grant to any agent in the workspace. A directory may
    /// be named several times. The workspace's own file can only narrow these mounts.
    pub fn possible_mounts(&self, workspace_root: &Path) -> Vec<Mount> {
        let defaults =
            Visibility::ALL.map(|row| defaults::default_spec(row, self.overlays.by_default));
        let stated = self.home.defaults.values().chain(self.home.grants.values());
        let specs = defaults.into_iter().chain(stated.cloned());
        specs.flat_map(|spec| spec.into_grants(workspace_root).mounts).collect()
    }

    /// Every host that the home file grants to any agent.
    pub fn granted_hosts(&self) -> impl Iterator<Item = &HostRule> {
        let stated = self.home.defaults.values().chain(self.home.grants.values());
        stated.filter_map(|spec| spec.hosts.as_ref()).flatten()
    }

    /// Narrows each mount stated by the home file to the access that `most` returns; `None` removes the
    /// mount. Returns the narrowed mounts, each with the heading of its section. The built-in defaults stay,
    /// because they only read the workspace itself.
    pub fn narrow_mounts(
        &mut self,
        workspace_root: &Path,
        most: impl Fn(&Mount) -> Option<MountAccess>,
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

    /// The operator's rules about which agents may be subagents of this agent; the agent's own definition may
    /// narrow them further.
    pub fn delegation(&self, id: &AgentId, visibility: Visibility) -> Vec<SubagentsAsk> {
        let home = self.home_grant(&id.into(), visibility).subagents;
        vec![home, self.workspace_grant(id, visibility).subagents]
    }

    /// The operator's setting for how tools are shown to this agent. The workspace's file comes before the
    /// home file, because this setting grants no right.
    pub fn tools_as(&self, id: &AgentId, visibility: Visibility) -> Option<ToolsAs> {
        let workspace = self.workspace_grant(id, visibility).tools_as;
        let to = Grantee::from(id);
        let mut home = self.stated_sections(visibility, &to, self.home.grants.get(&to));
        workspace.or_else(|| home.rfind(|stated| stated.tools_as.is_some())?.tools_as)
    }

    /// How long this agent waits for a subagent before the subagent continues in the background; `None` =
    /// until the subagent ends. Only the home file sets this value.
    pub fn auto_background(&self, id: &AgentId, visibility: Visibility) -> Option<Duration> {
        self.home_grant(&id.into(), visibility).auto_background.and_then(AutoBackground::wait_time)
    }

    /// The agents and libraries that have a section in the home file, whether or not they exist.
    pub fn grantees(&self) -> impl Iterator<Item = &Grantee> {
        self.home.grants.keys()
    }

    /// The headings of the home file's sections that name this tool.
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

    /// Warnings about settings that are allowed and probably not intended.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// A warning for each tool in a grant that does not exist.
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
                    .suggest_name(named.tool.as_str())
                    .map(|word| format!("did you mean `{word}`?")),
            })
            .collect()
    }

    /// The keys that the workspace's file states for an agent. In that file, a bare name matches both the
    /// home agent and the workspace's own agent: narrowing one agent too many is safe.
    fn workspace_grant(&self, id: &AgentId, visibility: Visibility) -> GrantSpec {
        let layer = &self.workspace;
        let to = Grantee::from(id);
        let stated = layer.grants.get(&to).or_else(|| match &id.scope {
            AgentScope::Workspace(_) => layer
                .own
                .get(&id.slug)
                .or_else(|| layer.grants.get(&AgentId::in_home(id.slug.clone()).into())),
            AgentScope::Home | AgentScope::Library(_) => None,
        });
        let mut base = layer.defaults.get(&visibility).cloned().unwrap_or_default();
        if let Some(whole) = to.whole_library().and_then(|whole| layer.grants.get(&whole)) {
            base = base.overridden_by(whole);
        }
        stated.map_or(base.clone(), |stated| base.overridden_by(stated))
    }
}
