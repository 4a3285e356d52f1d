//! Identities: the slug of a name, and the scope it belongs to.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use belljar_policy::Shown;
use serde::{Deserialize, Serialize};

/// The longest slug, in bytes.
const MAX_SLUG: usize = 64;

/// A name made fit for look-up: lower-case ASCII letters and digits, joined by single `-`.
/// `Code Reviewer`, `code_reviewer` and `code:reviewer` are all `code-reviewer`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Slug(String);

/// Where an agent comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// The operator's own directory.
    Home,
    /// An installed library, by its name.
    Library(String),
    /// The workspace with this canonical path.
    Workspace(PathBuf),
}

/// Who an agent is to the grants: scope and slug, so that an agent of a cloned repository
/// never inherits what was granted to a namesake.
///
/// As text: `home/scout`, `library/NAME/scout`, `workspace:PATH/scout`; `scout` alone means
/// `home/scout`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentId {
    /// Where it comes from.
    pub scope: Scope,
    /// Its name.
    pub slug: Slug,
}

/// Why a text is not an identity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not an agent identity: {why}; write `scout`, `home/scout`, `library/NAME/scout` or `workspace:/PATH/scout`"
)]
pub struct AgentIdError {
    text: String,
    why: &'static str,
}

impl Slug {
    /// The slug of a name; `None` where the name holds no ASCII letter or digit.
    pub fn of(name: &str) -> Option<Self> {
        let mut slug = String::new();
        for c in name.chars() {
            if slug.len() >= MAX_SLUG {
                break;
            }
            if c.is_ascii_alphanumeric() {
                slug.push(c.to_ascii_lowercase());
            } else if !slug.is_empty() && !slug.ends_with('-') {
                slug.push('-');
            }
        }
        let slug = slug.trim_end_matches('-');
        (!slug.is_empty()).then(|| Self(slug.to_owned()))
    }

    /// The slug of a name without any ASCII letter or digit: its characters by their numbers.
    pub(crate) fn spelt_out(name: &str) -> Option<Self> {
        let mut slug = String::new();
        for c in name.chars().filter(|c| c.is_alphanumeric()) {
            let next = format!("{}u{:x}", if slug.is_empty() { "" } else { "-" }, u32::from(c));
            if slug.len() + next.len() > MAX_SLUG {
                break;
            }
            slug.push_str(&next);
        }
        (!slug.is_empty()).then_some(Self(slug))
    }

    /// The slug as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AgentId {
    /// An agent of the operator's own directory.
    pub fn home(slug: Slug) -> Self {
        Self { scope: Scope::Home, slug }
    }

    /// The shortest text that grants accept for this identity: home agents by slug alone.
    pub fn grant_key(&self) -> String {
        match self.scope {
            Scope::Home => self.slug.to_string(),
            Scope::Library(_) | Scope::Workspace(_) => self.to_string(),
        }
    }
}

impl fmt::Display for Slug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Slug {
    type Error = AgentIdError;
    fn try_from(text: String) -> Result<Self, AgentIdError> {
        exact_slug(&text, &text)
    }
}

impl From<Slug> for String {
    fn from(slug: Slug) -> Self {
        slug.0
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.scope {
            Scope::Home => write!(f, "home/{}", self.slug),
            Scope::Library(name) => write!(f, "library/{}/{}", Shown::new(name), self.slug),
            Scope::Workspace(path) => {
                // On Windows the path is shown as it is; the last `/` still ends it.
                write!(f, "workspace:{}/{}", path.display(), self.slug)
            }
        }
    }
}

impl FromStr for AgentId {
    type Err = AgentIdError;

    fn from_str(text: &str) -> Result<Self, AgentIdError> {
        let error = |why| AgentIdError { text: Shown::clipped(text, 200).to_string(), why };
        if let Some(rest) = text.strip_prefix("workspace:") {
            let (path, slug) =
                rest.rsplit_once('/').ok_or_else(|| error("the agent's name is missing"))?;
            let path = PathBuf::from(path);
            if !path.is_absolute() {
                return Err(error("the workspace's path is not absolute"));
            }
            return Ok(Self { scope: Scope::Workspace(path), slug: exact_slug(slug, text)? });
        }
        let parts: Vec<&str> = text.split('/').collect();
        match parts.as_slice() {
            [slug] | ["home", slug] => Ok(Self::home(exact_slug(slug, text)?)),
            ["library", name, slug] => {
                let name = exact_slug(name, text)?.0;
                Ok(Self { scope: Scope::Library(name), slug: exact_slug(slug, text)? })
            }
            _ => Err(error("no scope is written like that")),
        }
    }
}

impl TryFrom<String> for AgentId {
    type Error = AgentIdError;
    fn try_from(text: String) -> Result<Self, AgentIdError> {
        text.parse()
    }
}

impl From<AgentId> for String {
    fn from(id: AgentId) -> Self {
        id.to_string()
    }
}

/// Grants name slugs exactly: a near miss must not match in silence.
fn exact_slug(text: &str, whole: &str) -> Result<Slug, AgentIdError> {
    match Slug::of(text) {
        Some(slug) if slug.0 == text => Ok(slug),
        _ => Err(AgentIdError {
            text: Shown::clipped(whole, 200).to_string(),
            why: "names are lower-case letters and digits joined by `-`",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_slugs() {
        let slug = |name: &str| Slug::of(name).map(String::from);
        assert_eq!(slug("Code Reviewer").as_deref(), Some("code-reviewer"));
        assert_eq!(slug("a:b/c__d").as_deref(), Some("a-b-c-d"));
        assert_eq!(slug("--x--").as_deref(), Some("x"));
        assert_eq!(slug(&"a".repeat(500)).map(|s| s.len()), Some(64));
        assert_eq!(slug("\u{4ee3}\u{7801}"), None);
        let spelt = |name: &str| Slug::spelt_out(name).map(String::from);
        assert_eq!(spelt("\u{4ee3}\u{7801}").as_deref(), Some("u4ee3-u7801"));
        assert!(spelt(&"\u{4ee3}".repeat(500)).is_some_and(|slug| slug.len() <= 64));
        assert_eq!(spelt("?!"), None);
    }

    #[test]
    fn identities_survive_a_round_trip() {
        for text in ["home/scout", "library/wshobson/scout", "workspace:/srv/my repo/scout"] {
            assert_eq!(text.parse::<AgentId>().unwrap().to_string(), text);
        }
        assert_eq!("scout".parse::<AgentId>().unwrap().to_string(), "home/scout");
    }

    #[test]
    fn texts_that_name_nobody_are_refused() {
        for bad in ["", "Scout", "a/b", "home/", "library/x", "workspace:rel/scout", "workspace:/"]
        {
            assert!(bad.parse::<AgentId>().is_err(), "{bad:?}");
        }
    }
}
