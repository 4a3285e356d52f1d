//! `grant --asked`: grants what an agent's own file requests and the agent does not have yet, and nothing
//! else.

use belljar_agent::{Host, ResolvedAgent};
use belljar_definition::{AgentId, GrantChange, MountSpec};
use belljar_policy::{
    CallPermission, GuestPath, HostRule, MountAccess, ShownText, ToolName, WantedRight,
};

use super::writes_files;
use crate::term::out::TerminalOutput;

/// The requests of an agent, sorted by what happens with each.
#[derive(Debug, Default)]
pub(super) struct AgentRequests {
    /// The tools to grant.
    pub(super) tools: Vec<ToolName>,
    /// The access to the workspace to grant; `None` = the file requests none.
    pub(super) workspace: Option<MountAccess>,
    /// The hosts to grant.
    pub(super) hosts: Vec<HostRule>,
    /// The requests that are not granted because of `--read-only`.
    pub(super) left_out: Vec<String>,
    /// The requested tools that the operator's own grant denies by name.
    denied: Vec<ToolName>,
    /// The requested mounts whose directories only the operator can choose.
    directories: Vec<(GuestPath, MountAccess)>,
}

impl AgentRequests {
    /// Sorts the requests of this agent. `given` = rights that the command line names.
    pub(super) fn for_agent(
        agent: &ResolvedAgent,
        host: &Host,
        read_only: bool,
        given: &GrantChange,
    ) -> Self {
        let mut asks = Self::default();
        for missing in &agent.narrowed {
            match &missing.wanted {
                WantedRight::Tool(tool) if read_only && writes_files(host, tool) => {
                    asks.left_out.push(format!("call {tool}"));
                }
                WantedRight::Tool(tool) if is_denied(host, agent, tool) => {
                    asks.denied.push(tool.clone());
                }
                WantedRight::Tool(tool) => asks.tools.push(tool.clone()),
                WantedRight::Host(rule) => asks.hosts.push(rule.clone()),
                WantedRight::Mount(ask) => {
                    // The agent's file may itself give up writing in this mount.
                    let wanted = agent.definition.asked.writes.left_of(ask.access, &ask.guest);
                    let access = if read_only { MountAccess::Read } else { wanted };
                    if access < wanted {
                        asks.left_out.push(format!("write in {}", ask.guest));
                    }
                    if ask.guest == GuestPath::workspace() {
                        let has = agent.rights.mounts().iter();
                        let has = has.filter(|mount| mount.guest == ask.guest);
                        if has.map(|mount| mount.access).max() < Some(access) {
                            asks.workspace = Some(access);
                        }
                    } else if !given.mounts.iter().any(|mount| mount.guest == ask.guest) {
                        asks.directories.push((ask.guest.clone(), access));
                    }
                }
            }
        }
        asks
    }

    /// Adds the granted requests to a change of the agent's grant.
    pub(super) fn add_to(&self, change: &mut GrantChange) {
        change.tools.extend(self.tools.iter().map(|tool| (tool.clone(), CallPermission::Allow)));
        change.hosts.extend(self.hosts.iter().cloned());
        let guest = GuestPath::workspace();
        if let Some(access) = self.workspace
            && !change.mounts.iter().any(|mount| mount.guest == guest)
        {
            change.mounts.push(MountSpec { guest, host: None, access });
        }
    }

    /// The granted rights as abilities of the agent, one item each.
    pub(super) fn granted_abilities(&self) -> Vec<String> {
        let tools = self.tools.iter().map(|tool| format!("call {tool}"));
        let hosts =
            self.hosts.iter().map(|rule| format!("reach {}", ShownText::new(&rule.to_string())));
        let workspace = self.workspace.map(|access| match access {
            MountAccess::Read => "read the workspace".to_owned(),
            MountAccess::Overlay => "read the workspace, and write to an overlay of it".to_owned(),
            MountAccess::ReadWrite => "read and write the workspace".to_owned(),
        });
        tools.chain(workspace).chain(hosts).collect()
    }

    /// Prints one sentence about the granted requests, and one about the others.
    pub(super) fn print_requests(&self, id: &AgentId, out: &TerminalOutput) {
        let deeds = self.granted_abilities();
        if !deeds.is_empty() {
            out.print_line(format_args!(
                "`{id}` asks to, and with this may, {}",
                join_sentence(&deeds)
            ));
        }
        for hint in self.grant_hints() {
            out.print_line(hint);
        }
    }

    /// Hints about requests that have to be granted in another form.
    pub(super) fn grant_hints(&self) -> Vec<String> {
        let mut hints = Vec::new();
        if !self.left_out.is_empty() {
            hints.push(format!(
                "`--read-only` leaves it unable to {}",
                join_sentence(&self.left_out)
            ));
        }
        for tool in &self.denied {
            hints.push(format!(
                "`belljar.toml` denies it {tool}, and that stays; to allow it: `--tool {tool}`"
            ));
        }
        for (guest, access) in &self.directories {
            hints.push(format!(
                "which directory it sees at {guest} is yours to say: \
                 `--mount {guest}:/path/to/directory:{access}`"
            ));
        }
        hints
    }
}

/// INV-159: returns whether the operator has denied this tool to the agent or to its whole library. A request
/// in a file does not change the denial.
fn is_denied(host: &Host, agent: &ResolvedAgent, tool: &ToolName) -> bool {
    host.settings.stated_permission(&agent.id, tool) == Some(CallPermission::Deny)
}

/// Joins words to `a`, `a and b` or `a, b and c`.
fn join_sentence(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}
