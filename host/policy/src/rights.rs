//! Rights and their intersection. No other code makes rights.
//!
//! `Rights::intersect_rights` intersects what a definition asks for, the operator's grants, and the parent's
//! rights; `Rights::for_tool` intersects the result with a tool's manifest. A list that a definition does
//! not have narrows nothing, a list that a manifest does not have asks for nothing, and an empty list always
//! means nothing. For example, a definition without `hosts` has all granted hosts, and one with `hosts: []`
//! has none.

mod mounts;
mod narrowing;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    CallPermission, DecisionExplanation, DecisionSource, GuestPath, HostRule, HostScope, Limits,
    LimitsRequest, Mount, MountAccess, MountAsk, PeersAsk, PolicyDenial, SecretName, SourceVote,
    ToolName,
};
pub use narrowing::{NarrowingNote, WantedRight};

/// The rights that an agent's definition asks for. A field that is `None` narrows nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedRights {
    /// The tools the agent may call.
    pub tools: Option<BTreeSet<ToolName>>,
    /// The most allowed for calls of the named tools, whatever the grants say: refused, or allowed after a
    /// question. Narrows even without `tools`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub at_most: BTreeMap<ToolName, CallPermission>,
    /// The most allowed for calls of tools that `at_most` does not name, also of tools that are installed
    /// later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<CallPermission>,
    /// The mounts where the agent's tools may write.
    #[serde(default, skip_serializing_if = "WriteScope::is_unbounded")]
    pub writes: WriteScope,
    /// The mounts that the agent may use, with their access.
    pub mounts: Option<Vec<MountAsk>>,
    /// The network hosts the agent may reach.
    pub hosts: Option<Vec<HostRule>>,
    /// The limits; each can only lower the granted one.
    pub limits: LimitsRequest,
}

/// The mounts where an agent may write, by its own definition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WriteScope {
    /// In no mount: all are read-only.
    Nowhere,
    /// In the workspace; all other mounts are read-only.
    Workspace,
    /// In every mount granted writable.
    #[default]
    Anywhere,
}

/// The operator's grants for one agent, with defaults filled in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grants {
    /// What calls are allowed, by tool. Calls of a tool that is not in it are refused.
    pub tools: BTreeMap<ToolName, CallPermission>,
    /// The mounts, with their access.
    pub mounts: Vec<Mount>,
    /// Lists of rules for network hosts. A request has to match a rule in every list: that of the operator's
    /// home, then that of the workspace. Without a list, no host is allowed.
    pub hosts: Vec<Vec<HostRule>>,
    /// The secrets the host may add to requests of this agent.
    pub secrets: BTreeSet<SecretName>,
    /// The limits of the agent.
    pub limits: Limits,
}

/// The rights that a tool's manifest asks for. The default asks for nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolAsk {
    /// The most access to the agent's mounts; a manifest does not choose among mounts. `None`: it asks for no
    /// mount.
    pub mounts: Option<MountAccess>,
    /// The rules for network hosts the tool wants to reach.
    pub hosts: Vec<HostRule>,
    /// The secrets the tool's requests need.
    pub secrets: BTreeSet<SecretName>,
    /// The limits; each can only lower the agent's.
    pub limits: LimitsRequest,
    /// The other tools of the agent that the tool wants to call.
    #[serde(default)]
    pub peers: PeersAsk,
    /// Whether calls leave state for later ones. If the state gets lost, the next result says so to the
    /// model.
    #[serde(default)]
    pub keeps_state: bool,
    /// The name of the argument with which a call lowers its own time limit, in seconds.
    #[serde(default)]
    pub time_argument: Option<String>,
}

/// The rights of an agent in one run. The fields are private, so that rights come from an intersection or
/// [`Rights::none`] only.
#[derive(Debug, Clone)]
pub struct Rights {
    tools: BTreeMap<ToolName, CallPermission>,
    mounts: Vec<Mount>,
    hosts: HostScope,
    secrets: BTreeSet<SecretName>,
    limits: Limits,
    lists: Arc<ToolLists>,
}

/// What each source says about tools. It explains refusals, and grants nothing.
#[derive(Debug, Clone, Default)]
struct ToolLists {
    /// The requests of the agent's definition.
    asked: AskedRights,
    /// The permissions of the grants.
    granted: BTreeMap<ToolName, CallPermission>,
    parent: Option<Rights>,
    bars: BTreeMap<ToolName, SourceVote>,
}

/// Two values are equal if they grant the same, even if different sources refuse the rest.
impl PartialEq for Rights {
    fn eq(&self, other: &Self) -> bool {
        let Self { tools, mounts, hosts, secrets, limits, lists: _ } = self;
        *tools == other.tools
            && *mounts == other.mounts
            && *hosts == other.hosts
            && *secrets == other.secrets
            && *limits == other.limits
    }
}

impl Eq for Rights {}

/// A permit to call one tool, which the call needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolPermit {
    tool: ToolName,
    needs_answer: bool,
    /// Whether the person has to be asked about this very call, even after approving an earlier one.
    own_answer: bool,
}

/// The rights of a tool's store: the rights of the agent, narrowed by the tool's manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolRights {
    mounts: Vec<Mount>,
    hosts: HostScope,
    secrets: BTreeSet<SecretName>,
    limits: Limits,
    peers: BTreeSet<ToolName>,
}

impl WriteScope {
    /// The access left of `access`, on the mount at `guest`.
    pub fn left_of(self, access: MountAccess, guest: &GuestPath) -> MountAccess {
        let bounded = match self {
            Self::Nowhere => true,
            Self::Workspace => !GuestPath::workspace().covers_path(guest.as_str()),
            Self::Anywhere => false,
        };
        if bounded { access.min(MountAccess::Read) } else { access }
    }

    fn is_unbounded(&self) -> bool {
        *self == Self::Anywhere
    }
}

impl AskedRights {
    /// The most allowed for calls of a tool, by all fields but `tools`.
    pub fn highest_permission(&self, tool: &str) -> CallPermission {
        let named = self.at_most.get(tool).copied();
        named.or(self.others).unwrap_or(CallPermission::Allow)
    }

    /// A copy in which only the fields about tools are set.
    fn only_tools(&self) -> Self {
        let (tools, at_most) = (self.tools.clone(), self.at_most.clone());
        Self { tools, at_most, others: self.others, ..Self::default() }
    }
}

impl Grants {
    /// Grants without any right. The limits are the defaults.
    pub fn none() -> Self {
        Self {
            tools: BTreeMap::new(),
            mounts: Vec::new(),
            hosts: Vec::new(),
            secrets: BTreeSet::new(),
            limits: Limits::default(),
        }
    }

    /// Narrows these grants by a second file, for example the workspace's. `by` has the shape of a
    /// definition's requests. Of the secrets, which that shape does not have, only `secrets` stay.
    #[must_use]
    pub fn narrow_grants(
        mut self,
        by: AskedRights,
        secrets: Option<&BTreeSet<SecretName>>,
    ) -> Self {
        self.tools.retain(|name, _| by.tools.as_ref().is_none_or(|tools| tools.contains(name)));
        self.tools
            .iter_mut()
            .for_each(|(name, may)| *may = (*may).min(by.highest_permission(name.as_str())));
        self.mounts = effective_mounts(&by, &self, None, &mut Vec::new());
        self.limits = self.limits.narrowed(&by.limits);
        self.hosts.extend(by.hosts);
        self.secrets.retain(|name| secrets.is_none_or(|secrets| secrets.contains(name)));
        self
    }

    /// The rules for network hosts of the grants alone.
    pub fn host_scope(&self) -> HostScope {
        let mut lists = self.hosts.iter();
        let first = lists.next().cloned().unwrap_or_default();
        lists.fold(HostScope::from_rules(DecisionSource::Grants, first), |scope, list| {
            scope.with_rules(DecisionSource::Grants, list.clone())
        })
    }

    /// What the grants allow for calls of a tool; [`CallPermission::Deny`] if they do not mention it.
    pub fn tool_permission(&self, tool: &str) -> CallPermission {
        self.tools.get(tool).copied().unwrap_or(CallPermission::Deny)
    }
}

impl Rights {
    /// Rights without any tool, mount, host or secret.
    pub fn none() -> Self {
        Self {
            tools: BTreeMap::new(),
            mounts: Vec::new(),
            hosts: HostScope::none(),
            secrets: BTreeSet::new(),
            limits: Limits::default(),
            lists: Arc::default(),
        }
    }

    /// Intersects a definition, grants and the rights of a parent, if there is one. Also returns a note for
    /// each request of the definition that is not granted.
    pub fn intersect_rights(
        asked: &AskedRights,
        grants: &Grants,
        parent: Option<&Self>,
    ) -> (Self, Vec<NarrowingNote>) {
        let mut notes = Vec::new();
        let tools = effective_tools(asked, grants, parent, &mut notes);
        let mounts = effective_mounts(asked, grants, parent, &mut notes);
        let mut hosts = grants.host_scope();
        missing_hosts(asked, &hosts, parent, &mut notes);
        if let Some(rules) = &asked.hosts {
            hosts = hosts.with_rules(DecisionSource::Definition, rules.clone());
        }
        let mut secrets = grants.secrets.clone();
        let mut limits = grants.limits.narrowed(&asked.limits);
        if let Some(parent) = parent {
            hosts = hosts.and_scope(&parent.hosts);
            secrets.retain(|name| parent.secrets.contains(name));
            limits = limits.min(&parent.limits);
        }
        let lists = ToolLists {
            asked: asked.only_tools(),
            granted: grants.tools.clone(),
            parent: parent.cloned(),
            bars: BTreeMap::new(),
        };
        (Self { tools, mounts, hosts, secrets, limits, lists: Arc::new(lists) }, notes)
    }

    /// The rights of a subagent: what its definition asks for, narrowed by its grants and by these rights.
    pub fn attenuate_for_child(
        &self,
        asked: &AskedRights,
        grants: &Grants,
    ) -> (Self, Vec<NarrowingNote>) {
        Self::intersect_rights(asked, grants, Some(self))
    }

    /// Returns the rights with other explanations of refusals: the definition asked for `asked`, and `bars`
    /// say why tools were refused. For rights narrowed by more than definition, grants and parent.
    #[must_use]
    pub fn with_explanation(
        mut self,
        asked: &AskedRights,
        bars: BTreeMap<ToolName, SourceVote>,
    ) -> Self {
        let lists = ToolLists { asked: asked.only_tools(), bars, ..(*self.lists).clone() };
        self.lists = Arc::new(lists);
        self
    }

    /// Whether the rights grant nothing that `other` does not.
    pub fn is_within(&self, other: &Self) -> bool {
        self.tools
            .iter()
            .all(|(name, permission)| *permission <= other.tool_permission(name.as_str()))
            && self.mounts.iter().all(|mount| other.mounts.iter().any(|m| mount.is_within(m)))
            && self.hosts.is_within(&other.hosts)
            && self.secrets.is_subset(&other.secrets)
            && self.limits.within(&other.limits)
    }

    /// The tools to offer to the model, with what is allowed for their calls, never
    /// [`CallPermission::Deny`].
    pub fn offered_tools(&self) -> impl Iterator<Item = (&ToolName, CallPermission)> {
        self.tools.iter().map(|(name, permission)| (name, *permission))
    }

    /// What is allowed for calls of a tool; [`CallPermission::Deny`] if the rights do not have it.
    pub fn tool_permission(&self, tool: &str) -> CallPermission {
        self.tools.get(tool).copied().unwrap_or(CallPermission::Deny)
    }

    /// Whether a tool may be called, at once or after a person's approval. [`Self::tool`] also says why not.
    pub fn has_tool(&self, tool: &str) -> bool {
        self.tool_permission(tool) != CallPermission::Deny
    }

    /// The mounts that the agent may use.
    pub fn mounts(&self) -> &[Mount] {
        &self.mounts
    }

    /// The rules for network hosts.
    pub fn hosts(&self) -> &HostScope {
        &self.hosts
    }

    /// The names of the secrets that the agent's requests may use.
    pub fn secrets(&self) -> &BTreeSet<SecretName> {
        &self.secrets
    }

    /// The limits of the agent.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the rights with smaller limits, for example those of `--max-steps`.
    #[must_use]
    pub fn with_smaller_limits(mut self, request: &LimitsRequest) -> Self {
        self.limits = self.limits.narrowed(request);
        self
    }

    /// Whether a tool may be called, and who decided. All refusals are explained by this.
    pub fn explain_decision(&self, tool: &str) -> DecisionExplanation {
        let ToolLists { asked, granted, parent, bars } = &*self.lists;
        let granted = granted.get(tool).copied().unwrap_or(CallPermission::Deny);
        let parent = parent.as_ref().map(|parent| parent.tool_permission(tool));
        let decision = crate::explain::decide_tool(tool, asked, granted, parent, bars.get(tool));
        // The rights decide, even if the votes say otherwise.
        match (self.tool_permission(tool), decision.permission) {
            (CallPermission::Deny, CallPermission::Allow | CallPermission::Ask) => {
                decision.with_refusal("it is not among the rights of this agent")
            }
            (permission, _) => DecisionExplanation { permission, ..decision },
        }
    }

    /// Checks a call before it is made. The name comes from the model; it is looked up as it is, and never
    /// quoted.
    pub fn tool(&self, name: &str) -> Result<ToolPermit, PolicyDenial> {
        match self.tools.get_key_value(name) {
            Some((tool, CallPermission::Allow)) => {
                Ok(ToolPermit { tool: tool.clone(), needs_answer: false, own_answer: false })
            }
            Some((tool, CallPermission::Ask)) => {
                Ok(ToolPermit { tool: tool.clone(), needs_answer: true, own_answer: false })
            }
            Some((_, CallPermission::Deny)) | None => {
                Err(self.explain_decision(name).to_denial(name))
            }
        }
    }

    /// The rights of a tool's store: these rights, narrowed by the tool's manifest.
    pub fn for_tool(&self, ask: &ToolAsk) -> ToolRights {
        let mounts = ask.mounts.iter().flat_map(|most| {
            self.mounts.iter().map(|m| Mount { access: m.access.min(*most), ..m.clone() })
        });
        ToolRights {
            mounts: mounts.collect(),
            hosts: self.hosts.clone().with_rules(DecisionSource::Manifest, ask.hosts.clone()),
            secrets: self.secrets.intersection(&ask.secrets).cloned().collect(),
            limits: self.limits.narrowed(&ask.limits),
            peers: self.tools.keys().filter(|name| ask.peers.covers_tool(name)).cloned().collect(),
        }
    }
}

impl ToolPermit {
    /// The tool that may be called.
    pub fn tool(&self) -> &ToolName {
        &self.tool
    }

    /// Whether a person has to approve the call first ([`CallPermission::Ask`]).
    pub fn needs_answer(&self) -> bool {
        self.needs_answer
    }

    /// Whether approval of an earlier call is not enough: see [`Self::with_question`].
    pub fn needs_own_answer(&self) -> bool {
        self.own_answer
    }

    /// Returns a permit for a call a person has to approve, whatever the grants say and was approved before.
    /// A hook may require this.
    #[must_use]
    pub fn with_question(self) -> Self {
        Self { needs_answer: true, own_answer: true, ..self }
    }

    /// Returns the permit after a person who may decide approved this one call. Only the code that asks,
    /// `agent/src/tools/approval/consent.rs`, calls this; `cargo xtask tidy` refuses it anywhere else.
    #[must_use]
    pub fn consented(self) -> Self {
        Self { needs_answer: false, own_answer: false, ..self }
    }
}

impl ToolRights {
    /// Rights without mount, host and secret, under which `describe` runs.
    pub fn none(limits: Limits) -> Self {
        Self {
            mounts: Vec::new(),
            hosts: HostScope::none(),
            secrets: BTreeSet::new(),
            limits,
            peers: BTreeSet::new(),
        }
    }

    /// The directories the store opens for the guest.
    pub fn mounts(&self) -> &[Mount] {
        &self.mounts
    }

    /// The rules for network hosts.
    pub fn hosts(&self) -> &HostScope {
        &self.hosts
    }

    /// The names of the secrets that the host may add to requests.
    pub fn secrets(&self) -> &BTreeSet<SecretName> {
        &self.secrets
    }

    /// The limits of a call and of the store.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The tools that this store's guest may call, each a tool of the agent. Such a call is decided like one
    /// of the agent's model.
    pub fn peer_tools(&self) -> &BTreeSet<ToolName> {
        &self.peers
    }
}

/// The permission of each tool: the least of grants, definition and parent. Adds a note for each tool that
/// the definition names but does not get.
fn effective_tools(
    asked: &AskedRights,
    grants: &Grants,
    parent: Option<&Rights>,
    notes: &mut Vec<NarrowingNote>,
) -> BTreeMap<ToolName, CallPermission> {
    let mut tools = BTreeMap::new();
    for (name, granted) in &grants.tools {
        if asked.tools.as_ref().is_some_and(|asked| !asked.contains(name)) {
            continue;
        }
        let above =
            parent.map_or(CallPermission::Allow, |parent| parent.tool_permission(name.as_str()));
        let permission = (*granted).min(above).min(asked.highest_permission(name.as_str()));
        if permission != CallPermission::Deny {
            tools.insert(name.clone(), permission);
        }
    }
    let missing = |name: &&ToolName| {
        !tools.contains_key(*name)
            && asked.highest_permission(name.as_str()) != CallPermission::Deny
    };
    for name in asked.tools.iter().flatten().filter(missing) {
        let tool = name.as_str();
        let above = parent.map(|parent| parent.tool_permission(tool));
        let decision =
            crate::explain::decide_tool(tool, asked, grants.tool_permission(tool), above, None);
        let by = decision.decided_by.unwrap_or(DecisionSource::Grants);
        notes.push(NarrowingNote::new(by, WantedRight::Tool(name.clone())));
    }
    tools
}

/// Adds a note for each rule for hosts that the definition asks for and that the grants or the parent do not
/// cover.
fn missing_hosts(
    asked: &AskedRights,
    granted: &HostScope,
    parent: Option<&Rights>,
    notes: &mut Vec<NarrowingNote>,
) {
    for rule in asked.hosts.iter().flatten() {
        let by = if !granted.covers_rule(rule) {
            DecisionSource::Grants
        } else if parent.is_some_and(|parent| !parent.hosts.covers_rule(rule)) {
            DecisionSource::Parent
        } else {
            continue;
        };
        notes.push(NarrowingNote::new(by, WantedRight::Host(rule.clone())));
    }
}

fn effective_mounts(
    asked: &AskedRights,
    grants: &Grants,
    parent: Option<&Rights>,
    notes: &mut Vec<NarrowingNote>,
) -> Vec<Mount> {
    let mut mounts = Vec::new();
    for granted in &grants.mounts {
        let mut access = granted.access;
        if let Some(asks) = &asked.mounts {
            let Some(ask) = asks.iter().find(|ask| ask.guest == granted.guest) else { continue };
            access = access.min(ask.access);
        }
        access = asked.writes.left_of(access, &granted.guest);
        if let Some(parent) = parent {
            let same = |m: &&Mount| m.guest == granted.guest && m.host == granted.host;
            // If the parent lacks the mount and the definition asked for it, a note follows below. A mount
            // that only the grants name was not asked for, and needs no note.
            let Some(above) = parent.mounts.iter().find(same) else { continue };
            access = access.min(above.access);
        }
        mounts.push(Mount { access, ..granted.clone() });
    }
    for ask in asked.mounts.iter().flatten() {
        // Access the definition gives up itself is not missing. An overlay counts as writable, because the
        // agent can work in it as in the directory.
        let wanted = asked.writes.left_of(ask.access, &ask.guest).min(MountAccess::Overlay);
        match mounts.iter().find(|mount| mount.guest == ask.guest) {
            Some(mount) if mount.access >= wanted => {}
            _ => {
                let by = match grants.mounts.iter().find(|mount| mount.guest == ask.guest) {
                    Some(mount) if mount.access >= wanted => DecisionSource::Parent,
                    _ => DecisionSource::Grants,
                };
                notes.push(NarrowingNote::new(by, WantedRight::Mount(ask.clone())));
            }
        }
    }
    mounts
}
