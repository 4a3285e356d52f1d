//! The scopes of agents, in answers and requests.

use belljar_definition::{AgentId, Scope, Slug};
use belljar_policy::Shown;

use crate::http::problem::Problem;

/// The scope of stored agents: every route accepts `library/api/NAME` for one.
pub(crate) const KEPT: &str = "library/api";

/// The requested scope: `None` = all.
#[derive(Debug)]
pub(crate) struct InScope(Option<String>);

impl InScope {
    pub(crate) fn of(word: Option<String>) -> Result<Self, Problem> {
        let known = |word: &str| {
            matches!(word, "home" | "workspace" | "library")
                || word.strip_prefix("library/").is_some_and(|name| Slug::of(name).is_some())
        };
        match word {
            Some(word) if !known(&word) => Err(Problem::invalid(
                "`scope` is none of `home`, `workspace`, `library`, `library/NAME`",
            )),
            word => Ok(Self(word)),
        }
    }

    /// Returns whether the filter includes an agent's scope.
    pub(crate) fn holds(&self, scope: &str) -> bool {
        match self.0.as_deref() {
            None => true,
            Some("library") => scope.starts_with("library/"),
            Some(word) => scope == word,
        }
    }
}

/// The scope of an agent, without paths of the host.
pub(crate) fn scope(id: &AgentId) -> String {
    scope_word(&id.scope)
}

/// The word for a scope, without the path of a workspace.
pub(crate) fn scope_word(scope: &Scope) -> String {
    match scope {
        Scope::Home => "home".to_owned(),
        Scope::Library(name) => format!("library/{}", Shown::new(name)),
        Scope::Workspace(_) => "workspace".to_owned(),
    }
}

/// The name that finds an agent: the slug, or `library/NAME/slug`.
pub(crate) fn name_of(id: &AgentId) -> String {
    match &id.scope {
        Scope::Home | Scope::Workspace(_) => id.slug.to_string(),
        Scope::Library(name) => format!("library/{}/{}", Shown::new(name), id.slug),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_asked_for_by_its_own_word() {
        let of = |word: &str| InScope::of(Some(word.to_owned()));
        let all = ["home", "workspace", KEPT, "library/other"];
        let held = |wanted: &InScope| all.iter().filter(|scope| wanted.holds(scope)).count();
        assert_eq!(held(&InScope::of(None).unwrap()), 4);
        assert_eq!(held(&of("library").unwrap()), 2);
        for word in all {
            assert_eq!(held(&of(word).unwrap()), 1, "{word}");
        }
        for bad in ["", "library/", "Home", "drafts", "workspace:/srv"] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }
}
