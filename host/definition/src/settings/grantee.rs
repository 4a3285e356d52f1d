//! The grantee of a section of `[grants]`.

use std::fmt;
use std::str::FromStr;

use belljar_policy::ShownText;

use crate::{AgentId, AgentIdError, AgentScope, LibraryName};

/// The grantee of a section: one agent or team, or all agents of a library, including those that an update
/// adds. An agent file cannot choose the second form, because no agent's name contains `*`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grantee {
    /// One agent or team.
    Agent(AgentId),
    /// All agents of a library or plugin: `library/NAME/*`, `library/MARKET/PLUGIN/*`.
    Library(LibraryName),
}

impl Grantee {
    /// Whether the grantee is an agent of this scope, or all of its agents.
    pub fn is_of(&self, scope: &AgentScope) -> bool {
        match (self, scope) {
            (Self::Agent(id), scope) => id.scope == *scope,
            (Self::Library(name), AgentScope::Library(library)) => name.as_str() == library,
            (Self::Library(_), AgentScope::Home | AgentScope::Workspace(_)) => false,
        }
    }

    /// Whether a section for this grantee applies to the agent.
    pub fn covers_agent(&self, agent: &AgentId) -> bool {
        match self {
            Self::Agent(id) => id == agent,
            Self::Library(_) => self.is_of(&agent.scope),
        }
    }

    /// The grantee that means all agents of this agent's library.
    pub(super) fn whole_library(&self) -> Option<Self> {
        match self {
            Self::Agent(AgentId { scope: AgentScope::Library(name), .. }) => {
                LibraryName::from_exact(name).map(Self::Library)
            }
            Self::Agent(AgentId { scope: AgentScope::Home | AgentScope::Workspace(_), .. })
            | Self::Library(_) => None,
        }
    }

    /// The shortest text for this grantee in grants: home agents by name alone.
    pub fn grant_key(&self) -> String {
        match self {
            Self::Agent(id) => id.grant_key(),
            Self::Library(_) => self.to_string(),
        }
    }
}

impl From<AgentId> for Grantee {
    fn from(id: AgentId) -> Self {
        Self::Agent(id)
    }
}

impl From<&AgentId> for Grantee {
    fn from(id: &AgentId) -> Self {
        Self::Agent(id.clone())
    }
}

impl From<&Grantee> for Grantee {
    fn from(grantee: &Grantee) -> Self {
        grantee.clone()
    }
}

impl fmt::Display for Grantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent(id) => id.fmt(f),
            Self::Library(name) => write!(f, "library/{}/*", ShownText::new(name.as_str())),
        }
    }
}

impl FromStr for Grantee {
    type Err = AgentIdError;

    fn from_str(text: &str) -> Result<Self, AgentIdError> {
        let library = text.strip_prefix("library/").and_then(|rest| rest.strip_suffix("/*"));
        match library.and_then(LibraryName::from_exact) {
            Some(name) => Ok(Self::Library(name)),
            None => text.parse().map(Self::Agent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_library_is_named_exactly_and_covers_its_own_agents_alone() {
        let whole: Grantee = "library/pub/*".parse().unwrap();
        assert_eq!(
            (whole.to_string(), whole.grant_key()),
            ("library/pub/*".into(), "library/pub/*".into())
        );
        let covers = |id: &str| whole.covers_agent(&id.parse().unwrap());
        assert!(covers("library/pub/a") && covers("library/pub/pub"));
        for other in
            ["library/pub-2/a", "library/publish/a", "home/pub", "workspace:/library/pub/a"]
        {
            assert!(!covers(other), "{other}");
        }
        let plugin: Grantee = "library/market/tools/*".parse().unwrap();
        assert_eq!(plugin.to_string(), "library/market/tools/*");
        let covers = |id: &str| plugin.covers_agent(&id.parse().unwrap());
        assert!(covers("library/market/tools/a"));
        for other in ["library/market/a", "library/tools/a", "library/other/tools/a"] {
            assert!(!covers(other), "{other}");
        }
        for bad in [
            "library/*/*",
            "library/Pub/*",
            "library//*",
            "library/a/b/c/*",
            "library/a/B/*",
            "*",
            "home/*",
            "library/pub/**",
            "library/pub/a*",
            "workspace:/w/*",
            "library/pub\u{200b}/*",
        ] {
            assert!(bad.parse::<Grantee>().is_err(), "{bad}");
        }
    }
}
