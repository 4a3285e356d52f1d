//! One grant: the keys of a section of `belljar.toml`, and the combination of sections.
//!
//! In one file a key of `[grants.X]` replaces the same key of `[defaults.V]`, which replaces the built-in
//! default; `add_tools` adds to it. The workspace's file then narrows the result of the home file, key by
//! key, and can never add to it. For example, `hosts` of `[grants.scout]` at home replaces `hosts` of the
//! defaults, and a workspace's `hosts` can only remove some of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use belljar_policy::{
    AskedRights, CallPermission, Grants, GuestPath, HostRule, Limits, LimitsRequest, Mount,
    MountAccess, MountAsk, SecretName, ToolName,
};

use super::AutoBackground;
use crate::{SubagentsAsk, ToolsAs};

/// The keys that one section states; `None` = the key is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GrantSpec {
    /// The tools; an unlisted tool is denied.
    pub tools: Option<BTreeMap<ToolName, CallPermission>>,
    /// Tools in addition to those without this section, each with its permission. Only a grant of the home
    /// file may have additional tools, and never beside `tools`.
    pub add_tools: BTreeMap<ToolName, CallPermission>,
    /// The directories that the agent's tools see.
    pub mounts: Option<Vec<MountSpec>>,
    /// The network hosts that the agent may reach.
    pub hosts: Option<Vec<HostRule>>,
    /// The names of the secrets that the host may join to the agent's requests.
    pub secrets: Option<BTreeSet<SecretName>>,
    /// The limits, field by field.
    pub limits: LimitsRequest,
    /// The rules about subagents, key by key.
    pub subagents: SubagentsAsk,
    /// How long the agent waits for a subagent before the subagent continues in the background.
    pub(super) auto_background: Option<AutoBackground>,
    /// How the agent's tools are shown to the agent.
    pub tools_as: Option<ToolsAs>,
}

/// A mount as stated in `belljar.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountSpec {
    /// The path in the guest.
    pub guest: GuestPath,
    /// The directory on the host: absolute, or relative to the workspace; `None` = the
    /// workspace itself.
    pub host: Option<PathBuf>,
    /// The access that is allowed.
    pub access: MountAccess,
}

impl MountSpec {
    fn into_mount(self, workspace: &Path) -> Mount {
        let host = self.host.map(|host| workspace.join(host));
        let host = host.unwrap_or_else(|| workspace.to_path_buf());
        Mount { guest: self.guest, host, access: self.access }
    }
}

impl GrantSpec {
    /// A section that states every key and grants nothing.
    pub(super) fn empty_grant() -> Self {
        Self {
            tools: Some(BTreeMap::new()),
            add_tools: BTreeMap::new(),
            mounts: Some(Vec::new()),
            hosts: Some(Vec::new()),
            secrets: Some(BTreeSet::new()),
            limits: LimitsRequest::default(),
            subagents: SubagentsAsk::default(),
            auto_background: None,
            tools_as: None,
        }
    }

    /// A copy in which every key stated by `over` is replaced, and the tools of its `add_tools` are added.
    #[must_use]
    pub(super) fn overridden_by(&self, over: &Self) -> Self {
        let mut limits = self.limits;
        for row in belljar_policy::LIMITS {
            if let Some(value) = over.limits.get(row.key) {
                limits.set(row.key, value);
            }
        }
        let mut tools = over.tools.clone().or_else(|| self.tools.clone());
        if !over.add_tools.is_empty() {
            let added = over.add_tools.iter().map(|(name, permission)| (name.clone(), *permission));
            tools.get_or_insert_default().extend(added);
        }
        Self {
            tools,
            add_tools: BTreeMap::new(),
            mounts: over.mounts.clone().or_else(|| self.mounts.clone()),
            hosts: over.hosts.clone().or_else(|| self.hosts.clone()),
            secrets: over.secrets.clone().or_else(|| self.secrets.clone()),
            limits,
            subagents: self.subagents.overridden_by(&over.subagents),
            auto_background: over.auto_background.or(self.auto_background),
            tools_as: over.tools_as.or(self.tools_as),
        }
    }

    /// Whether the section states no key.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The grants for a run in this workspace. An unstated key grants nothing.
    pub(super) fn into_grants(self, workspace: &Path) -> Grants {
        let mounts = self.mounts.unwrap_or_default();
        let mounts = mounts.into_iter().map(|mount| mount.into_mount(workspace));
        Grants {
            tools: self.tools.unwrap_or_default(),
            mounts: mounts.collect(),
            // Exactly one list, even if empty: a list of the workspace must never be the only one.
            hosts: vec![self.hosts.unwrap_or_default()],
            secrets: self.secrets.unwrap_or_default(),
            limits: Limits::default().granted(&self.limits),
        }
    }

    /// Narrows each mount to the access that `most` returns for it; returns the narrowed mounts in their
    /// former state.
    pub(super) fn narrow_mounts(
        &mut self,
        workspace: &Path,
        most: impl Fn(&Mount) -> Option<MountAccess>,
    ) -> Vec<Mount> {
        let mut narrowed = Vec::new();
        for stated in self.mounts.take().into_iter() {
            let kept = stated.into_iter().filter_map(|spec| {
                let mount = spec.clone().into_mount(workspace);
                let access = most(&mount).map(|most| mount.access.min(most));
                if access != Some(mount.access) {
                    narrowed.push(mount);
                }
                access.map(|access| MountSpec { access, ..spec })
            });
            self.mounts = Some(kept.collect());
        }
        narrowed
    }

    /// As a file of the workspace, for `policy` to narrow the grants of the home file by.
    pub(super) fn narrow_grants(self, grants: Grants) -> Grants {
        let asks = |spec: MountSpec| MountAsk { guest: spec.guest, access: spec.access };
        let asked = AskedRights {
            tools: self.tools.as_ref().map(|tools| tools.keys().cloned().collect()),
            at_most: self.tools.unwrap_or_default(),
            mounts: self.mounts.map(|mounts| mounts.into_iter().map(asks).collect()),
            hosts: self.hosts,
            limits: self.limits,
            ..AskedRights::default()
        };
        grants.narrow_grants(asked, self.secrets.as_ref())
    }
}
