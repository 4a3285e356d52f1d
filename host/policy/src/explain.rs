//! Explains why a tool or a request is allowed or refused: each of the four sources of rights has a vote.
//!
//! [`Rights::explain_decision`] is the only place that makes a [`DecisionExplanation`] for calls of a tool.
//! Refusals during a run, `belljar explain`, and the list of an agent's missing rights are made from it. For
//! example, if the grants say `ask` for `shell` and the definition forbids it, the votes are "definition:
//! refuses" and "grants: asks", so the definition decides.

use std::fmt;

use crate::{
    AskedRights, CallPermission, DecisionSource, DenyCode, Grants, HostRule, HostScope, Mount,
    MountAccess, MountAsk, PolicyDenial, RequestTarget, Rights, ShownText, ToolAsk,
};

/// A question about what a tool may do for an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RightsQuestion {
    /// May the tool be called at all?
    Call,
    /// May the tool use this guest path with this access?
    Path(String, MountAccess),
    /// May the tool send a request to this target?
    Url(RequestTarget),
}

/// What a source of rights says to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceStance {
    /// The source allows it.
    Allows,
    /// The source allows it after a person's approval.
    Asks,
    /// The source refuses it.
    Refuses,
    /// The source says nothing about it, and so does not narrow.
    Silent,
}

/// What one source of rights says, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceVote {
    /// The source of rights that answers.
    pub source: DecisionSource,
    /// What the source says.
    pub stance: SourceStance,
    /// The reason in a few words, for example "its `tools` do not name it".
    pub why: String,
}

/// The answer to a question, with the votes of all sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionExplanation {
    /// The final permission.
    pub permission: CallPermission,
    /// The first source that refuses; if none does, the first that asks; `None`: all allow.
    pub decided_by: Option<DecisionSource>,
    /// The votes of the definition, the manifest, the grants and the parent, and of belljar itself if it
    /// refuses.
    pub votes: Vec<SourceVote>,
}

/// The most characters of a tool's name shown, because a model may have invented the name.
const MAX_SHOWN: usize = 64;

impl DecisionExplanation {
    /// Finds the answer that these votes about calling a tool give.
    fn from_votes(votes: Vec<SourceVote>) -> Self {
        let by = |stance| votes.iter().find(|vote| vote.stance == stance);
        let (permission, decided_by) = match (by(SourceStance::Refuses), by(SourceStance::Asks)) {
            (Some(vote), _) => (CallPermission::Deny, Some(vote.source)),
            (None, Some(vote)) => (CallPermission::Ask, Some(vote.source)),
            (None, None) => (CallPermission::Allow, None),
        };
        Self { permission, decided_by, votes }
    }

    /// Adds a refusal by belljar itself, for this reason. If a source refused already, that source still
    /// decides.
    #[must_use]
    pub fn with_refusal(mut self, why: impl Into<String>) -> Self {
        self.votes.push(new_vote(DecisionSource::Host, SourceStance::Refuses, why));
        if self.permission != CallPermission::Deny {
            self.permission = CallPermission::Deny;
            self.decided_by = Some(DecisionSource::Host);
        }
        self
    }

    /// The explanation for a tool that does not exist: belljar itself refuses.
    pub fn for_unknown_tool() -> Self {
        Self::from_votes(vec![new_vote(
            DecisionSource::Host,
            SourceStance::Refuses,
            "there is no such tool",
        )])
    }

    /// The reason of the source that decided; empty if all allow.
    pub fn deciding_reason(&self) -> &str {
        let decided = |vote: &&SourceVote| {
            Some(vote.source) == self.decided_by
                && matches!(vote.stance, SourceStance::Refuses | SourceStance::Asks)
        };
        self.votes.iter().find(decided).map_or("", |vote| &vote.why)
    }

    /// Makes the refusal of a call. `tool` is the name as the model wrote it.
    pub fn to_denial(&self, tool: &str) -> PolicyDenial {
        let by = self.decided_by.unwrap_or(DecisionSource::Host);
        let facts =
            format!("tool `{}`: {}", ShownText::clip_line(tool, MAX_SHOWN), self.deciding_reason());
        PolicyDenial::new(DenyCode::ToolNotAllowed, by, facts)
    }
}

/// Decides whether a tool may be called at all, from what each source says about its name. `bar` is a
/// further refusal, for example by belljar itself.
pub(crate) fn decide_tool(
    tool: &str,
    asked: &AskedRights,
    granted: CallPermission,
    parent: Option<CallPermission>,
    bar: Option<&SourceVote>,
) -> DecisionExplanation {
    let mut votes = vec![
        definition_calls(tool, asked),
        new_vote(
            DecisionSource::Manifest,
            SourceStance::Silent,
            "a manifest does not decide who calls the tool",
        ),
        permission_vote(DecisionSource::Grants, granted),
        match parent {
            None => new_vote(DecisionSource::Parent, SourceStance::Silent, "there is no parent"),
            Some(parent) => permission_vote(DecisionSource::Parent, parent),
        },
    ];
    votes.extend(bar.cloned());
    DecisionExplanation::from_votes(votes)
}

impl fmt::Display for SourceStance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allows => "allows",
            Self::Asks => "asks",
            Self::Refuses => "refuses",
            Self::Silent => "says nothing",
        })
    }
}

/// Collects the votes of all sources about a question. The answer itself comes from [`Rights`]; the votes
/// only explain it. A tool the definition, the grants or the parent do not let the agent call has no files
/// and no network either.
pub fn explain_tool(
    tool: &str,
    question: &RightsQuestion,
    asked: &AskedRights,
    manifest: &ToolAsk,
    grants: &Grants,
    parent: Option<&Rights>,
) -> DecisionExplanation {
    let above = parent.map(|parent| parent.tool_permission(tool));
    let calls = decide_tool(tool, asked, grants.tool_permission(tool), above, None);
    let callable = calls.permission != CallPermission::Deny;
    let votes = match question {
        RightsQuestion::Path(path, access) if callable => {
            path_votes(path, *access, asked, manifest, grants, parent)
        }
        RightsQuestion::Url(target) if callable => {
            url_votes(target, asked, manifest, grants, parent)
        }
        RightsQuestion::Call | RightsQuestion::Path(..) | RightsQuestion::Url(_) => return calls,
    };
    match votes.iter().find(|vote| vote.stance == SourceStance::Refuses).map(|vote| vote.source) {
        Some(source) => DecisionExplanation {
            permission: CallPermission::Deny,
            decided_by: Some(source),
            votes,
        },
        None => DecisionExplanation { votes, ..calls },
    }
}

fn new_vote(source: DecisionSource, stance: SourceStance, why: impl Into<String>) -> SourceVote {
    SourceVote { source, stance, why: why.into() }
}

/// The definition's vote about calls of a tool: by its highest permission for the tool, then by its list
/// `tools`.
fn definition_calls(tool: &str, asked: &AskedRights) -> SourceVote {
    let listed = asked.tools.as_ref().is_none_or(|tools| tools.contains(tool));
    match asked.highest_permission(tool) {
        CallPermission::Deny => {
            return new_vote(
                DecisionSource::Definition,
                SourceStance::Refuses,
                "it gives the tool up",
            );
        }
        CallPermission::Ask if listed => {
            return new_vote(
                DecisionSource::Definition,
                SourceStance::Asks,
                "it wants a person asked first",
            );
        }
        CallPermission::Ask | CallPermission::Allow => {}
    }
    match &asked.tools {
        None => new_vote(DecisionSource::Definition, SourceStance::Silent, "it has no `tools`"),
        Some(tools) if tools.contains(tool) => {
            new_vote(DecisionSource::Definition, SourceStance::Allows, "its `tools` name it")
        }
        Some(_) => new_vote(
            DecisionSource::Definition,
            SourceStance::Refuses,
            "its `tools` do not name it",
        ),
    }
}

fn permission_vote(source: DecisionSource, permission: CallPermission) -> SourceVote {
    match permission {
        CallPermission::Allow => new_vote(source, SourceStance::Allows, "`allow`"),
        CallPermission::Ask => new_vote(source, SourceStance::Asks, "`ask`"),
        CallPermission::Deny => {
            new_vote(source, SourceStance::Refuses, "the tool is denied or not granted")
        }
    }
}

/// The votes about a path: all about the same mount, because votes about different mounts would not add up.
/// If the path is in several mounts, the one with the most access counts, because a guest may use any of
/// them.
fn path_votes(
    path: &str,
    access: MountAccess,
    asked: &AskedRights,
    manifest: &ToolAsk,
    grants: &Grants,
    parent: Option<&Rights>,
) -> Vec<SourceVote> {
    let (rights, _) = Rights::intersect_rights(asked, grants, parent);
    let granted = widest_mount(rights.mounts(), path)
        .filter(|own| own.access >= access)
        .and_then(|own| grants.mounts.iter().find(|mount| mount.guest == own.guest))
        .or_else(|| widest_mount(&grants.mounts, path));
    let bounded = granted.is_some_and(|own| asked.writes.left_of(access, &own.guest) < access);
    let definition = match &asked.mounts {
        _ if bounded => {
            new_vote(DecisionSource::Definition, SourceStance::Refuses, "it does not write there")
        }
        None => new_vote(DecisionSource::Definition, SourceStance::Silent, "it has no `mounts`"),
        Some(asks) => {
            let same = |ask: &&MountAsk| match granted {
                Some(mount) => ask.guest == mount.guest,
                None => ask.guest.covers_path(path),
            };
            let found = asks.iter().filter(same).map(|ask| ask.access).max();
            access_vote(DecisionSource::Definition, found, access)
        }
    };
    let above = match parent {
        None => new_vote(DecisionSource::Parent, SourceStance::Silent, "there is no parent"),
        Some(parent) => {
            let found = match granted {
                Some(own) => {
                    parent.mounts().iter().find(|m| m.guest == own.guest && m.host == own.host)
                }
                None => widest_mount(parent.mounts(), path),
            };
            access_vote(DecisionSource::Parent, found.map(|mount| mount.access), access)
        }
    };
    vec![
        definition,
        access_vote(DecisionSource::Manifest, manifest.mounts, access),
        access_vote(DecisionSource::Grants, granted.map(|mount| mount.access), access),
        above,
    ]
}

fn widest_mount<'a>(mounts: &'a [Mount], path: &str) -> Option<&'a Mount> {
    let covering = mounts.iter().filter(|mount| mount.guest.covers_path(path));
    covering.max_by_key(|mount| (mount.access, mount.guest.as_str().len()))
}

fn access_vote(source: DecisionSource, has: Option<MountAccess>, wants: MountAccess) -> SourceVote {
    match has {
        Some(has) if has >= wants => {
            new_vote(source, SourceStance::Allows, format!("a mount with {has} access"))
        }
        Some(has) => {
            new_vote(source, SourceStance::Refuses, format!("only a mount with {has} access"))
        }
        None => new_vote(source, SourceStance::Refuses, "no mount there"),
    }
}

/// The votes of all sources about a URL: definition, manifest, grants and parent.
fn url_votes(
    target: &RequestTarget,
    asked: &AskedRights,
    manifest: &ToolAsk,
    grants: &Grants,
    parent: Option<&Rights>,
) -> Vec<SourceVote> {
    let definition = match &asked.hosts {
        None => new_vote(DecisionSource::Definition, SourceStance::Silent, "it has no `hosts`"),
        Some(rules) => rules_vote(DecisionSource::Definition, rules, target),
    };
    vec![
        definition,
        rules_vote(DecisionSource::Manifest, &manifest.hosts, target),
        scope_vote(DecisionSource::Grants, &grants.host_scope(), target),
        match parent {
            None => new_vote(DecisionSource::Parent, SourceStance::Silent, "there is no parent"),
            Some(parent) => scope_vote(DecisionSource::Parent, parent.hosts(), target),
        },
    ]
}

fn rules_vote(source: DecisionSource, rules: &[HostRule], target: &RequestTarget) -> SourceVote {
    if rules.is_empty() {
        return new_vote(source, SourceStance::Refuses, "no host is listed");
    }
    scope_vote(source, &HostScope::from_rules(source, rules.to_vec()), target)
}

fn scope_vote(source: DecisionSource, scope: &HostScope, target: &RequestTarget) -> SourceVote {
    match scope.check_target(target) {
        Ok(_) => new_vote(source, SourceStance::Allows, "a host rule fits"),
        Err(PolicyDenial { .. }) => new_vote(source, SourceStance::Refuses, "no host rule fits"),
    }
}
