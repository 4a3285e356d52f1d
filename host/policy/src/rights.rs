//! Rights and their intersection: the only source of rights.
//!
//! `Rights::intersect_rights` intersects the definition's requests, the operator's grants and the parent's rights.
//! `Rights::for_tool` intersects the result with the tool's manifest. An absent list in a definition means no
//! narrowing; an absent list in a manifest means no request; an empty list always means nothing. For example,
//! a definition without `hosts` has all granted hosts, one with `hosts: []` has none.

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

/// The rights that an agent definition asks for. `None` = unstated, so no narrowing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedRights {
    /// The tools, under belljar's names.
    pub tools: Option<BTreeSet<ToolName>>,
    /// The highest permission of named tools, below the grants: denied, or asked for first. Narrows even
    /// without `tools`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub at_most: BTreeMap<ToolName, CallPermission>,
    /// The highest permission of tools outside of `at_most`, including later installed ones. `None` =
    /// unstated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<CallPermission>,
    /// The mounts that the agent's tools may write to at most.
    #[serde(default, skip_serializing_if = "WriteScope::is_unbounded")]
    pub writes: WriteScope,
    /// The mounts.
    pub mounts: Option<Vec<MountAsk>>,
    /// The hosts.
    pub hosts: Option<Vec<HostRule>>,
    /// The limits, field by field.
    pub limits: LimitsRequest,
}

/// The mounts that an agent may write to, by its own definition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WriteScope {
    /// No mount: every mount is read-only.
    Nowhere,
    /// The workspace; every other mount is read-only.
    Workspace,
    /// Every mount that the grants make writable.
    #[default]
    Anywhere,
}

/// The operator's grants for one agent, with defaults filled in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grants {
    /// The tools; an unlisted tool is denied.
    pub tools: BTreeMap<ToolName, CallPermission>,
    /// The mounts.
    pub mounts: Vec<Mount>,
    /// The hosts: a request must match an entry in every list (home, then workspace). No list = no host.
    pub hosts: Vec<Vec<HostRule>>,
    /// The secrets that the host may add to this agent's requests.
    pub secrets: BTreeSet<SecretName>,
    /// The limits.
    pub limits: Limits,
}

/// The rights that a tool's manifest asks for. The default asks for nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolAsk {
    /// The highest access to the agent's mounts; the manifest cannot choose mounts. `None` = no mount.
    pub mounts: Option<MountAccess>,
    /// Hosts.
    pub hosts: Vec<HostRule>,
    /// Secrets.
    pub secrets: BTreeSet<SecretName>,
    /// Limits, which can only narrow.
    pub limits: LimitsRequest,
    /// Other tools of the agent that this tool may call.
    #[serde(default)]
    pub peers: PeersAsk,
    /// Whether calls leave state for later ones; a result then mentions the loss of that state.
    #[serde(default)]
    pub keeps_state: bool,
    /// The argument by which a call lowers its own time limit, in seconds.
    #[serde(default)]
    pub time_argument: Option<String>,
}

/// The rights of one agent in one run. Private fields: only an intersection or [`Rights::none`] makes a
/// value.
#[derive(Debug, Clone)]
pub struct Rights {
    tools: BTreeMap<ToolName, CallPermission>,
    mounts: Vec<Mount>,
    hosts: HostScope,
    secrets: BTreeSet<SecretName>,
    limits: Limits,
    lists: Arc<ToolLists>,
}

/// The tool names of each source, which only explain refusals and grant nothing.
#[derive(Debug, Clone, Default)]
struct ToolLists {
    asked: AskedRights,
    granted: BTreeMap<ToolName, CallPermission>,
    parent: Option<Rights>,
    bars: BTreeMap<ToolName, SourceVote>,
}

/// Rights are equal if they grant the same, whichever source refuses the rest.
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

/// A permit to call one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolPermit {
    tool: ToolName,
    needs_answer: bool,
    /// Whether the answer must be to this very call, not to an earlier one.
    own_answer: bool,
}

/// The rights of one store: an agent's rights ∩ one tool's manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolRights {
    mounts: Vec<Mount>,
    hosts: HostScope,
    secrets: BTreeSet<SecretName>,
    limits: Limits,
    peers: BTreeSet<ToolName>,
}

impl WriteScope {
    /// The part of `access` that remains on a mount at `guest`.
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
    /// The highest permission of a tool, by all fields other than `tools`.
    pub fn highest_permission(&self, tool: &str) -> CallPermission {
        let named = self.at_most.get(tool).copied();
        named.or(self.others).unwrap_or(CallPermission::Allow)
    }

    /// A copy with only the statements about tools.
    fn only_tools(&self) -> Self {
        let (tools, at_most) = (self.tools.clone(), self.at_most.clone());
        Self { tools, at_most, others: self.others, ..Self::default() }
    }
}

impl Grants {
    /// Grants without any right; the limits are the defaults.
    pub fn none() -> Self {
        Self {
            tools: BTreeMap::new(),
            mounts: Vec::new(),
            hosts: Vec::new(),
            secrets: BTreeSet::new(),
            limits: Limits::default(),
        }
    }

    /// These grants ∩ what a second file states, in the shape of a definition's requests; of secrets, which no
    /// definition asks for, only `secrets` stay.
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

    /// The network allowlist of the grants alone.
    pub fn host_scope(&self) -> HostScope {
        let mut lists = self.hosts.iter();
        let first = lists.next().cloned().unwrap_or_default();
        lists.fold(HostScope::from_rules(DecisionSource::Grants, first), |scope, list| {
            scope.with_rules(DecisionSource::Grants, list.clone())
        })
    }

    /// The granted permission of a tool; unstated = [`CallPermission::Deny`].
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

    /// Computes definition ∩ grants ∩ parent, with a note for each refused request of the definition. Without
    /// a parent, the grants alone bound the definition.
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

    /// The rights of a child: the child's definition ∩ the child's grants ∩ these rights.
    pub fn attenuate_for_child(
        &self,
        asked: &AskedRights,
        grants: &Grants,
    ) -> (Self, Vec<NarrowingNote>) {
        Self::intersect_rights(asked, grants, Some(self))
    }

    /// The same rights with other explanations of refusals: the definition asks for `asked`, and `bars`
    /// denied tools. Needed where more than definition, grants and parent narrowed the rights.
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

    /// Whether these rights grant nothing beyond `other`.
    pub fn is_within(&self, other: &Self) -> bool {
        self.tools
            .iter()
            .all(|(name, permission)| *permission <= other.tool_permission(name.as_str()))
            && self.mounts.iter().all(|mount| other.mounts.iter().any(|m| mount.is_within(m)))
            && self.hosts.is_within(&other.hosts)
            && self.secrets.is_subset(&other.secrets)
            && self.limits.within(&other.limits)
    }

    /// The tools that may be advertised, with their permission; never [`CallPermission::Deny`].
    pub fn offered_tools(&self) -> impl Iterator<Item = (&ToolName, CallPermission)> {
        self.tools.iter().map(|(name, permission)| (name, *permission))
    }

    /// The permission of a tool; unlisted = [`CallPermission::Deny`].
    pub fn tool_permission(&self, tool: &str) -> CallPermission {
        self.tools.get(tool).copied().unwrap_or(CallPermission::Deny)
    }

    /// Whether a tool may be called, at once or after a person's approval: [`Self::tool`] without the reason
    /// for a refusal.
    pub fn has_tool(&self, tool: &str) -> bool {
        self.tool_permission(tool) != CallPermission::Deny
    }

    /// The mounts.
    pub fn mounts(&self) -> &[Mount] {
        &self.mounts
    }

    /// The network allowlist.
    pub fn hosts(&self) -> &HostScope {
        &self.hosts
    }

    /// The secrets, by name.
    pub fn secrets(&self) -> &BTreeSet<SecretName> {
        &self.secrets
    }

    /// The limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The same rights under smaller limits, for example those of `--max-steps`.
    #[must_use]
    pub fn with_smaller_limits(mut self, request: &LimitsRequest) -> Self {
        self.limits = self.limits.narrowed(request);
        self
    }

    /// The same rights where no overlay can be stored: overlaid mounts become read-only.
    #[must_use]
    pub fn without_overlays(mut self) -> Self {
        for mount in self.mounts.iter_mut().filter(|mount| mount.access == MountAccess::Overlay) {
            mount.access = MountAccess::Read;
        }
        self
    }

    /// The same rights without lasting effects in any mount: writable mounts become overlays. Without
    /// `network`, all hosts and secrets are removed too.
    #[must_use]
    pub fn for_rehearsal(mut self, network: bool) -> Self {
        for mount in &mut self.mounts {
            mount.access = mount.access.min(MountAccess::Overlay);
        }
        if !network {
            self.hosts = HostScope::none();
            self.secrets.clear();
        }
        self
    }

    /// Whether a tool may be called, and which source decided: the explanation behind every refusal.
    pub fn explain_decision(&self, tool: &str) -> DecisionExplanation {
        let ToolLists { asked, granted, parent, bars } = &*self.lists;
        let granted = granted.get(tool).copied().unwrap_or(CallPermission::Deny);
        let parent = parent.as_ref().map(|parent| parent.tool_permission(tool));
        let decision = crate::explain::decide_tool(tool, asked, granted, parent, bars.get(tool));
        // The rights decide, even if the explanation differs.
        match (self.tool_permission(tool), decision.permission) {
            (CallPermission::Deny, CallPermission::Allow | CallPermission::Ask) => {
                decision.with_refusal("it is not among the rights of this agent")
            }
            (permission, _) => DecisionExplanation { permission, ..decision },
        }
    }

    /// Checks a call before its dispatch. The name comes from the model, so it is looked up unchanged and
    /// never quoted.
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

    /// The rights of one tool's store: these rights ∩ the manifest.
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
    /// The tool.
    pub fn tool(&self) -> &ToolName {
        &self.tool
    }

    /// Whether a person has to approve before the call ([`CallPermission::Ask`]).
    pub fn needs_answer(&self) -> bool {
        self.needs_answer
    }

    /// Whether approval of an earlier call does not suffice: see [`Self::with_question`].
    pub fn needs_own_answer(&self) -> bool {
        self.own_answer
    }

    /// The permit for a call that needs a person's approval, whatever the grant and earlier approvals: a hook
    /// may require this question.
    #[must_use]
    pub fn with_question(self) -> Self {
        Self { needs_answer: true, own_answer: true, ..self }
    }

    /// The permit after an entitled person approved this one call. Only the code that asks calls this
    /// function, `agent/src/tools/approval/consent.rs`: `cargo xtask tidy` refuses it anywhere else.
    #[must_use]
    pub fn consented(self) -> Self {
        Self { needs_answer: false, own_answer: false, ..self }
    }
}

impl ToolRights {
    /// No mount, no host, no secret: the rights under which `describe` runs.
    pub fn none(limits: Limits) -> Self {
        Self {
            mounts: Vec::new(),
            hosts: HostScope::none(),
            secrets: BTreeSet::new(),
            limits,
            peers: BTreeSet::new(),
        }
    }

    /// Directories to preopen.
    pub fn mounts(&self) -> &[Mount] {
        &self.mounts
    }

    /// The network allowlist.
    pub fn hosts(&self) -> &HostScope {
        &self.hosts
    }

    /// Secrets that the host may add.
    pub fn secrets(&self) -> &BTreeSet<SecretName> {
        &self.secrets
    }

    /// The limits of a call and of the store.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The tools that this store may call, each a tool of the agent. Such a call is decided like a call of
    /// the agent's model.
    pub fn peer_tools(&self) -> &BTreeSet<ToolName> {
        &self.peers
    }
}

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
            // A missing mount that was requested gets its note below; a mount that only the grants
            // name was never requested.
            let Some(above) = parent.mounts.iter().find(same) else { continue };
            access = access.min(above.access);
        }
        mounts.push(Mount { access, ..granted.clone() });
    }
    for ask in asked.mounts.iter().flatten() {
        // Access that the definition itself gives up is not missing. An overlay counts as writable,
        // because the agent can work there like in the directory.
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
