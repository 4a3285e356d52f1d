//! The answer of `belljar explain` and of the server: whether an agent may use a tool on a target, which
//! source decides, and what the operator can do.

use std::path::Path;

use belljar_definition::{
    BUILTIN_TOOLS, GrantChange, HOST_PLACEHOLDER, MountSpec, grant_command, grant_lines,
};
use belljar_policy::{
    CallPermission, DecisionExplanation, DecisionSource, GuestPath, HostRule, MountAccess,
    RequestTarget, RightsQuestion, ShownText, ToolAsk, ToolName, WORKSPACE,
};

use crate::host::Host;
use crate::rights::resolve::ResolvedAgent;
use crate::tools::builtin::tool::BuiltinTool;

/// Most characters of a target that are repeated in a text.
const MAX_SHOWN: usize = 200;

/// An explanation, with what the operator can do.
#[derive(Debug, Clone)]
pub struct RightsAdvice {
    /// The decision, with the source of each part.
    pub answer: DecisionExplanation,
    /// The lines of `belljar.toml` that would allow the call, if the grants are at fault.
    pub grant: Option<String>,
    /// The command that would write these lines, for example `belljar grant ...`.
    pub command: Option<String>,
    /// The section of `belljar.toml` for the agent's library, if that decides.
    pub section: Option<String>,
}

/// Why a question cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnanswerableQuestion {
    /// No tool of this name exists.
    #[error("there is no such tool")]
    NoTool,
    /// The target is neither a path nor a URL.
    #[error("`{target}`: {why}")]
    Target {
        /// The target, escaped.
        target: String,
        /// The fault.
        why: String,
    },
    /// The path leaves its directory, for example by `..`.
    #[error("`{0}` leaves its directory")]
    Leaves(String),
}

impl ResolvedAgent {
    /// Explains whether the agent may call a tool, with a path or a URL as target, and how the operator can allow
    /// it. `write` = the question is about writing; for a tool that requests to write, it always is.
    ///
    /// # Errors
    ///
    /// When the tool is unknown, or the target is invalid.
    pub fn rights_advice(
        &self,
        host: &Host,
        workspace: &Path,
        tool: &str,
        target: Option<&str>,
        write: bool,
    ) -> Result<RightsAdvice, UnanswerableQuestion> {
        let manifest = match host.tools.withheld_reason(tool) {
            Some(_) => ToolAsk::default(),
            None => manifest_of(host, tool)?,
        };
        if let Some(name) = target.filter(|_| BuiltinTool::from_name(tool).is_some_and(hands_work))
        {
            let mut answer = self.may_hand_to(host, workspace, tool, name);
            self.say_how_long_it_waits(tool, &mut answer);
            return Ok(RightsAdvice {
                answer,
                grant: None,
                command: None,
                section: host.settings.library_section(&self.id),
            });
        }
        let write = write || manifest.mounts == Some(MountAccess::ReadWrite);
        let question = parse_question(target, write)?;
        let mut answer = self.explain_tool(host, workspace, tool, &question, &manifest);
        self.say_how_long_it_waits(tool, &mut answer);
        let change = match answer.decided_by {
            Some(DecisionSource::Grants) if answer.permission == CallPermission::Deny => {
                missing_grant(self, tool, &question)
            }
            _ => None,
        };
        let command = change.as_ref().map(|change| grant_command(&self.id, change, false));
        let lines = change.as_ref().map(|change| {
            grant_lines(&host.settings, &self.id, self.definition.visibility, change)
        });
        Ok(RightsAdvice {
            answer,
            grant: lines,
            command: command.map(|command| host.for_its_tenant(&command)),
            section: host.settings.library_section(&self.id),
        })
    }
}

impl ResolvedAgent {
    /// Adds, for a tool that starts subagents, how long the grants let the agent wait for one.
    fn say_how_long_it_waits(&self, tool: &str, answer: &mut DecisionExplanation) {
        let Some(wait) = self.auto_background else { return };
        if BuiltinTool::from_name(tool) != Some(BuiltinTool::Spawn)
            || answer.permission == CallPermission::Deny
        {
            return;
        }
        for vote in answer.votes.iter_mut().filter(|vote| vote.source == DecisionSource::Grants) {
            let seconds = wait.as_secs();
            vote.why
                .push_str(&format!("; what takes longer than {seconds} s goes to the background"));
        }
    }
}

/// What the manifest of a tool's component requests. Built-in tools and tools of MCP servers request nothing.
fn manifest_of(host: &Host, tool: &str) -> Result<ToolAsk, UnanswerableQuestion> {
    match host.tools.find_component(tool) {
        Some(component) => Ok(component.manifest.ask.clone()),
        None if BUILTIN_TOOLS.contains(&tool) || host.tools.find_remote(tool).is_some() => {
            Ok(ToolAsk::default())
        }
        None => Err(UnanswerableQuestion::NoTool),
    }
}

/// Returns whether the target of the tool is the name of an agent.
fn hands_work(tool: BuiltinTool) -> bool {
    matches!(tool, BuiltinTool::Spawn | BuiltinTool::Parallel)
}

/// Parses a target: a URL, or a path as the agent sees it; `None` = the question is about the call without a
/// target.
fn parse_question(
    target: Option<&str>,
    write: bool,
) -> Result<RightsQuestion, UnanswerableQuestion> {
    let Some(target) = target else { return Ok(RightsQuestion::Call) };
    let shown = || ShownText::clip_line(target, MAX_SHOWN).to_string();
    if target.contains("://") {
        let parsed = RequestTarget::parse(target).map_err(|error| {
            UnanswerableQuestion::Target { target: shown(), why: error.to_string() }
        })?;
        return Ok(RightsQuestion::Url(parsed));
    }
    let path = match target.starts_with('/') {
        true => target.to_owned(),
        false => format!("{WORKSPACE}/{target}"),
    };
    if path.split('/').any(|part| part == "..") {
        return Err(UnanswerableQuestion::Leaves(shown()));
    }
    // The least right that lets an agent write is an overlay.
    let access = if write { MountAccess::Overlay } else { MountAccess::Read };
    Ok(RightsQuestion::Path(path, access))
}

/// The lines that the operator can add to the grants, if a missing grant is the reason of the refusal.
pub fn missing_grant(
    agent: &ResolvedAgent,
    tool: &str,
    question: &RightsQuestion,
) -> Option<GrantChange> {
    let asked_tools = agent.definition.asked.tools.clone();
    let mut change = GrantChange { asked_tools, ..GrantChange::default() };
    if agent.grants.tool_permission(tool) == CallPermission::Deny {
        change.tools.push((ToolName::new(tool).ok()?, CallPermission::Allow));
    }
    match question {
        RightsQuestion::Call => {}
        RightsQuestion::Path(path, access) => change.mounts.extend(mount_for_path(path, *access)),
        RightsQuestion::Url(target) => change.hosts.push(exact_rule(target)?),
    }
    (!change.is_empty()).then_some(change)
}

/// The host rule for exactly this scheme, host and port.
pub fn exact_rule(target: &RequestTarget) -> Option<HostRule> {
    target.to_string().parse().ok()
}

/// The mount that a grant would need for this path: the workspace, or the path's first directory. A question
/// about writing is answered by a grant to write in the directory itself, not in an overlay.
fn mount_for_path(path: &str, access: MountAccess) -> Option<MountSpec> {
    let access = if access == MountAccess::Read { access } else { MountAccess::ReadWrite };
    if GuestPath::workspace().covers_path(path) {
        return Some(MountSpec { guest: GuestPath::workspace(), host: None, access });
    }
    let first = path.split('/').find(|part| !part.is_empty())?;
    let guest = GuestPath::new(&format!("/{first}")).ok()?;
    Some(MountSpec { guest, host: Some(HOST_PLACEHOLDER.into()), access })
}
