//! The scopes of agents in requests and answers, for example `home` or `library/NAME`.

use belljar_definition::{AgentId, AgentScope, Slug};
use belljar_policy::ShownText;

use crate::http::problem::Problem;

/// The scope of agents stored by API calls. Each such agent is named `library/api/NAME` in every route.
pub(crate) const KEPT: &str = "library/api";

/// A filter by scope; `None` includes every scope.
#[derive(Debug)]
pub(crate) struct InScope(Option<String>);

impl InScope {
    /// Checks the word of a filter by scope, for example `home` or `library/NAME`.
    pub(crate) fn from_word(word: Option<String>) -> Result<Self, Problem> {
        let known = |word: &str| {
            matches!(word, "home" | "workspace" | "library")
                || word.strip_prefix("library/").is_some_and(|name| Slug::from_name(name).is_some())
        };
        match word {
            Some(word) if !known(&word) => Err(Problem::invalid(
                "`scope` is none of `home`, `workspace`, `library`, `library/NAME`",
            )),
            word => Ok(Self(word)),
        }
    }

    /// Returns whether the filter includes an agent's scope.
    pub(crate) fn includes_scope(&self, scope: &str) -> bool {
        match self.0.as_deref() {
            None => true,
            Some("library") => scope.starts_with("library/"),
            Some(word) => scope == word,
        }
    }
}

/// The scope of an agent as text, without paths of the host.
pub(crate) fn scope_of_agent(id: &AgentId) -> String {
    scope_word(&id.scope)
}

/// The word for a scope in answers; for a workspace, without its path on the host.
pub(crate) fn scope_word(scope: &AgentScope) -> String {
    match scope {
        AgentScope::Home => "home".to_owned(),
        AgentScope::Library(name) => format!("library/{}", ShownText::new(name)),
        AgentScope::Workspace(_) => "workspace".to_owned(),
    }
}

/// The name by which a request finds an agent: its slug, or `library/NAME/slug` for an agent of a
/// library.
pub(crate) fn name_of(id: &AgentId) -> String {
    match &id.scope {
        AgentScope::Home | AgentScope::Workspace(_) => id.slug.to_string(),
        AgentScope::Library(name) => format!("library/{}/{}", ShownText::new(name), id.slug),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_asked_for_by_its_own_word() {
        let of = |word: &str| InScope::from_word(Some(word.to_owned()));
        let all = ["home", "workspace", KEPT, "library/other"];
        let held =
            |wanted: &InScope| all.iter().filter(|scope| wanted.includes_scope(scope)).count();
        assert_eq!(held(&InScope::from_word(None).unwrap()), 4);
        assert_eq!(held(&of("library").unwrap()), 2);
        for word in all {
            assert_eq!(held(&of(word).unwrap()), 1, "{word}");
        }
        for bad in ["", "library/", "Home", "drafts", "workspace:/srv"] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }
}
