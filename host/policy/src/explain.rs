//! Explains why a tool or request is allowed or refused: the vote of each of the four sources.
//!
//! [`Rights::decision`] makes the only [`Explanation`] of a tool's permission; a run's refusals, `belljar
//! explain` and an agent's missing rights are all derived from it. For example, `shell` granted as `ask` and
//! forbidden by the definition has the votes "definition: refuses" and "grants: asks", so the definition
//! decides.

use std::fmt;

use crate::{
    Access, Asked, Denied, DenyCode, Grants, HostRule, HostScope, Mount, MountAsk, Permission,
    Rights, Shown, Source, Target, ToolAsk,
};

/// A question about a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RightsQuestion {
    /// May the tool be called at all?
    Call,
    /// May the tool use this guest path, with this access?
    Path(String, Access),
    /// May the tool send a request to this target?
    Url(Target),
}

/// The answer of one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stance {
    /// Yes.
    Allows,
    /// Yes, after a person's approval.
    Asks,
    /// No.
    Refuses,
    /// Unstated, so no narrowing.
    Silent,
}

/// One source's answer with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vote {
    /// The source.
    pub source: Source,
    /// The answer.
    pub stance: Stance,
    /// The reason, in a few words.
    pub why: String,
}

/// The final answer, with all votes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The final permission.
    pub permission: Permission,
    /// The first source that refuses, or else the first that asks; `None` = all allow.
    pub decided_by: Option<Source>,
    /// All votes: definition, manifest, grants, parent, and belljar's own if it refuses.
    pub votes: Vec<Vote>,
}

/// Characters of a tool's name that are shown, because a model chose the name.
const MAX_SHOWN: usize = 64;

impl Explanation {
    /// Computes the final answer from the votes about calling a tool.
    fn of(votes: Vec<Vote>) -> Self {
        let by = |stance| votes.iter().find(|vote| vote.stance == stance);
        let (permission, decided_by) = match (by(Stance::Refuses), by(Stance::Asks)) {
            (Some(vote), _) => (Permission::Deny, Some(vote.source)),
            (None, Some(vote)) => (Permission::Ask, Some(vote.source)),
            (None, None) => (Permission::Allow, None),
        };
        Self { permission, decided_by, votes }
    }

    /// Adds a refusal by belljar, for this reason. An earlier refusal still decides.
    #[must_use]
    pub fn withheld(mut self, why: impl Into<String>) -> Self {
        self.votes.push(vote(Source::Host, Stance::Refuses, why));
        if self.permission != Permission::Deny {
            self.permission = Permission::Deny;
            self.decided_by = Some(Source::Host);
        }
        self
    }

    /// The refusal of an unknown tool, by belljar itself.
    pub fn of_no_tool() -> Self {
        Self::of(vec![vote(Source::Host, Stance::Refuses, "there is no such tool")])
    }

    /// The reason of the deciding source; empty if all allow.
    pub fn why(&self) -> &str {
        let decided = |vote: &&Vote| {
            Some(vote.source) == self.decided_by
                && matches!(vote.stance, Stance::Refuses | Stance::Asks)
        };
        self.votes.iter().find(decided).map_or("", |vote| &vote.why)
    }

    /// The refusal of a call; `tool` is the name that the model wrote.
    pub fn denied(&self, tool: &str) -> Denied {
        let by = self.decided_by.unwrap_or(Source::Host);
        let facts = format!("tool `{}`: {}", Shown::clipped(tool, MAX_SHOWN), self.why());
        Denied::new(DenyCode::ToolNotAllowed, by, facts)
    }
}

/// Whether a tool may be called at all, from each source's statement about its name.
pub(crate) fn decision(
    tool: &str,
    asked: &Asked,
    granted: Permission,
    parent: Option<Permission>,
    bar: Option<&Vote>,
) -> Explanation {
    let mut votes = vec![
        definition_calls(tool, asked),
        vote(Source::Manifest, Stance::Silent, "a manifest does not decide who calls the tool"),
        permission_vote(Source::Grants, granted),
        match parent {
            None => vote(Source::Parent, Stance::Silent, "there is no parent"),
            Some(parent) => permission_vote(Source::Parent, parent),
        },
    ];
    votes.extend(bar.cloned());
    Explanation::of(votes)
}

impl fmt::Display for Stance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allows => "allows",
            Self::Asks => "asks",
            Self::Refuses => "refuses",
            Self::Silent => "says nothing",
        })
    }
}

/// Collects the vote of each source. The permission is that of [`Rights`]: the votes only explain it. A tool
/// that the definition, the grants or the parent refuse to call has no files and no network either.
pub fn explain(
    tool: &str,
    question: &RightsQuestion,
    asked: &Asked,
    manifest: &ToolAsk,
    grants: &Grants,
    parent: Option<&Rights>,
) -> Explanation {
    let above = parent.map(|parent| parent.permission(tool));
    let calls = decision(tool, asked, grants.permission(tool), above, None);
    let callable = calls.permission != Permission::Deny;
    let votes = match question {
        RightsQuestion::Path(path, access) if callable => {
            path_votes(path, *access, asked, manifest, grants, parent)
        }
        RightsQuestion::Url(target) if callable => {
            url_votes(target, asked, manifest, grants, parent)
        }
        RightsQuestion::Call | RightsQuestion::Path(..) | RightsQuestion::Url(_) => return calls,
    };
    match votes.iter().find(|vote| vote.stance == Stance::Refuses).map(|vote| vote.source) {
        Some(source) => {
            Explanation { permission: Permission::Deny, decided_by: Some(source), votes }
        }
        None => Explanation { votes, ..calls },
    }
}

fn vote(source: Source, stance: Stance, why: impl Into<String>) -> Vote {
    Vote { source, stance, why: why.into() }
}

fn definition_calls(tool: &str, asked: &Asked) -> Vote {
    let listed = asked.tools.as_ref().is_none_or(|tools| tools.contains(tool));
    match asked.most(tool) {
        Permission::Deny => {
            return vote(Source::Definition, Stance::Refuses, "it gives the tool up");
        }
        Permission::Ask if listed => {
            return vote(Source::Definition, Stance::Asks, "it wants a person asked first");
        }
        Permission::Ask | Permission::Allow => {}
    }
    match &asked.tools {
        None => vote(Source::Definition, Stance::Silent, "it has no `tools`"),
        Some(tools) if tools.contains(tool) => {
            vote(Source::Definition, Stance::Allows, "its `tools` name it")
        }
        Some(_) => vote(Source::Definition, Stance::Refuses, "its `tools` do not name it"),
    }
}

fn permission_vote(source: Source, permission: Permission) -> Vote {
    match permission {
        Permission::Allow => vote(source, Stance::Allows, "`allow`"),
        Permission::Ask => vote(source, Stance::Asks, "`ask`"),
        Permission::Deny => vote(source, Stance::Refuses, "the tool is denied or not granted"),
    }
}

/// Collects the votes about one mount: a source's vote about another mount would not count. A path may be in
/// several mounts; any of them suffices for a guest, so the widest mount counts.
fn path_votes(
    path: &str,
    access: Access,
    asked: &Asked,
    manifest: &ToolAsk,
    grants: &Grants,
    parent: Option<&Rights>,
) -> Vec<Vote> {
    let (rights, _) = Rights::effective(asked, grants, parent);
    let granted = widest(rights.mounts(), path)
        .filter(|own| own.access >= access)
        .and_then(|own| grants.mounts.iter().find(|mount| mount.guest == own.guest))
        .or_else(|| widest(&grants.mounts, path));
    let bounded = granted.is_some_and(|own| asked.writes.left_of(access, &own.guest) < access);
    let definition = match &asked.mounts {
        _ if bounded => vote(Source::Definition, Stance::Refuses, "it does not write there"),
        None => vote(Source::Definition, Stance::Silent, "it has no `mounts`"),
        Some(asks) => {
            let same = |ask: &&MountAsk| match granted {
                Some(mount) => ask.guest == mount.guest,
                None => ask.guest.covers(path),
            };
            let found = asks.iter().filter(same).map(|ask| ask.access).max();
            access_vote(Source::Definition, found, access)
        }
    };
    let above = match parent {
        None => vote(Source::Parent, Stance::Silent, "there is no parent"),
        Some(parent) => {
            let found = match granted {
                Some(own) => {
                    parent.mounts().iter().find(|m| m.guest == own.guest && m.host == own.host)
                }
                None => widest(parent.mounts(), path),
            };
            access_vote(Source::Parent, found.map(|mount| mount.access), access)
        }
    };
    vec![
        definition,
        access_vote(Source::Manifest, manifest.mounts, access),
        access_vote(Source::Grants, granted.map(|mount| mount.access), access),
        above,
    ]
}

fn widest<'a>(mounts: &'a [Mount], path: &str) -> Option<&'a Mount> {
    let covering = mounts.iter().filter(|mount| mount.guest.covers(path));
    covering.max_by_key(|mount| (mount.access, mount.guest.as_str().len()))
}

fn access_vote(source: Source, has: Option<Access>, wants: Access) -> Vote {
    match has {
        Some(has) if has >= wants => {
            vote(source, Stance::Allows, format!("a mount with {has} access"))
        }
        Some(has) => vote(source, Stance::Refuses, format!("only a mount with {has} access")),
        None => vote(source, Stance::Refuses, "no mount there"),
    }
}

fn url_votes(
    target: &Target,
    asked: &Asked,
    manifest: &ToolAsk,
    grants: &Grants,
    parent: Option<&Rights>,
) -> Vec<Vote> {
    let definition = match &asked.hosts {
        None => vote(Source::Definition, Stance::Silent, "it has no `hosts`"),
        Some(rules) => rules_vote(Source::Definition, rules, target),
    };
    vec![
        definition,
        rules_vote(Source::Manifest, &manifest.hosts, target),
        scope_vote(Source::Grants, &grants.host_scope(), target),
        match parent {
            None => vote(Source::Parent, Stance::Silent, "there is no parent"),
            Some(parent) => scope_vote(Source::Parent, parent.hosts(), target),
        },
    ]
}

fn rules_vote(source: Source, rules: &[HostRule], target: &Target) -> Vote {
    if rules.is_empty() {
        return vote(source, Stance::Refuses, "no host is listed");
    }
    scope_vote(source, &HostScope::of(source, rules.to_vec()), target)
}

fn scope_vote(source: Source, scope: &HostScope, target: &Target) -> Vote {
    match scope.check(target) {
        Ok(_) => vote(source, Stance::Allows, "a host rule fits"),
        Err(Denied { .. }) => vote(source, Stance::Refuses, "no host rule fits"),
    }
}
