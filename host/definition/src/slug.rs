//! Ids of agents: the slug of a name, and its scope.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use belljar_policy::{ShownText, is_hidden};
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// The longest slug, in characters.
const MAX_SLUG: usize = 64;

/// The longest slug, in bytes, because it is also a file's name, with a suffix.
const MAX_SLUG_BYTES: usize = 200;

/// A name normalized for look-up: lower-case letters and digits of any script, joined by single `-`. For
/// example, `Code Reviewer`, `code_reviewer` and `code:reviewer` all become `code-reviewer`; `Prüfer` becomes
/// `prüfer`, whether its `ü` was one character or two (Unicode's form NFC).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Slug(String);

/// The source of an agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentScope {
    /// The operator's own directory.
    Home,
    /// An installed library, by its name, for example `reviewers`; a plugin of a marketplace has both names,
    /// for example `market/reviewers`.
    Library(String),
    /// The workspace with this canonical path, for example `/home/ann/project`.
    Workspace(PathBuf),
}

/// The library of the agents that are edited through the service: their ids are `library/api/SLUG`. An
/// installed library cannot have this name.
pub const API_LIBRARY: &str = "api";

impl AgentScope {
    /// Whether the owner of the home wrote the files, and not a stranger: in the home itself, or through the
    /// service.
    pub fn is_own(&self) -> bool {
        match self {
            Self::Home => true,
            Self::Library(name) => name == API_LIBRARY,
            Self::Workspace(_) => false,
        }
    }
}

/// The name of an installed library: a slug, or for a plugin of a marketplace two of them, for example
/// `market/reviewers`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LibraryName(String);

impl LibraryName {
    /// The name of a plugin, with its marketplace if it came from one.
    pub fn for_plugin(market: Option<&Slug>, plugin: &Slug) -> Self {
        Self(market.map_or_else(|| plugin.to_string(), |market| format!("{market}/{plugin}")))
    }

    /// Returns a text as a name if it has the exact form of one.
    pub fn from_exact(text: &str) -> Option<Self> {
        let is_exact = |part: &str| Slug::from_exact(part).is_some_and(|slug| slug.0 == part);
        let parts = text.split('/').count();
        (parts <= 2 && text.split('/').all(is_exact)).then(|| Self(text.to_owned()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The scope of the library's agents.
    pub fn into_scope(self) -> AgentScope {
        AgentScope::Library(self.0)
    }
}

impl From<Slug> for LibraryName {
    fn from(slug: Slug) -> Self {
        Self(slug.0)
    }
}

impl From<&Slug> for LibraryName {
    fn from(slug: &Slug) -> Self {
        Self(slug.0.clone())
    }
}

impl fmt::Display for LibraryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The id of an agent in grants: scope and slug, so that an agent of a cloned repository never inherits the
/// grants of a namesake.
///
/// As text: `home/scout`, `library/NAME/scout`, `workspace:PATH/scout`; `scout` alone means `home/scout`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentId {
    /// The source of the agent.
    pub scope: AgentScope,
    /// The name, for example `code-reviewer`.
    pub slug: Slug,
}

/// An invalid agent id, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not an agent identity: {why}; write `scout`, `home/scout`, `library/NAME/scout` or `workspace:/PATH/scout`"
)]
pub struct AgentIdError {
    text: String,
    why: &'static str,
}

impl Slug {
    /// The slug of a name. `None` = no letter, digit or symbol, or invisible characters, for example controls
    /// of the writing direction (INV-503).
    pub fn from_name(name: &str) -> Option<Self> {
        if name.chars().any(is_refused) {
            return None;
        }
        let (mut slug, mut length) = (String::new(), 0);
        for c in fold_name(name) {
            let next = match is_kept(c) {
                true => c,
                false if slug.is_empty() || slug.ends_with('-') => continue,
                false => '-',
            };
            if length == MAX_SLUG || slug.len() + next.len_utf8() > MAX_SLUG_BYTES {
                break;
            }
            slug.push(next);
            length += 1;
        }
        let slug = slug.trim_end_matches('-');
        (!slug.is_empty()).then(|| Self(slug.to_owned()))
    }

    /// Returns a text as a slug if the text already has the form of one, for example `code-reviewer`, but not
    /// `Code_Reviewer`. So a near miss never matches silently. Beyond ASCII, neither the letter case nor the
    /// Unicode form counts.
    pub fn from_exact(text: &str) -> Option<Self> {
        let same = |slug: &Self| match text.is_ascii() {
            true => slug.0 == text,
            false => fold_name(text).eq(slug.0.chars()),
        };
        Self::from_name(text).filter(same)
    }

    /// The slug of a name in the spelling of a file or of a person: `Code Reviewer`, `مراجع الكود`. `None` =
    /// the text may match several names (`*`), is a path (`/`), begins or ends with a space or `-`, or is
    /// longer than a slug.
    pub fn from_written(text: &str) -> Option<Self> {
        let open = |c: char| c.is_whitespace() || c == '-';
        let whole = !text.starts_with(open) && !text.ends_with(open);
        let fits = text.chars().count() <= MAX_SLUG && text.len() <= MAX_SLUG_BYTES;
        let alone = !text.contains(['*', '/', '\\']);
        Self::from_name(text).filter(|_| whole && fits && alone).or_else(|| Self::from_exact(text))
    }

    /// The slug as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AgentId {
    /// An agent of the operator's own directory.
    pub fn in_home(slug: Slug) -> Self {
        Self { scope: AgentScope::Home, slug }
    }

    /// Whether a text is the name of this agent or skill in its plugin: `PLUGIN:NAME`, whatever the
    /// marketplace. For example, `tools:reviewer` names `library/market/tools/reviewer`.
    pub fn has_plugin_name(&self, text: &str) -> bool {
        let AgentScope::Library(library) = &self.scope else { return false };
        let plugin = library.rsplit('/').next().unwrap_or(library);
        let Some((named, name)) = text.trim().split_once(':') else { return false };
        Slug::from_written(named).is_some_and(|slug| slug.0 == plugin)
            && Slug::from_written(name).is_some_and(|slug| slug == self.slug)
    }

    /// The shortest text for this id in grants: home agents by slug alone.
    pub fn grant_key(&self) -> String {
        match self.scope {
            AgentScope::Home => self.slug.to_string(),
            AgentScope::Library(_) | AgentScope::Workspace(_) => self.to_string(),
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
        Self::from_exact(&text).ok_or_else(|| no_name(&text))
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
            AgentScope::Home => write!(f, "home/{}", self.slug),
            AgentScope::Library(name) => {
                write!(f, "library/{}/{}", ShownText::new(name), self.slug)
            }
            AgentScope::Workspace(path) => {
                // On Windows the path is displayed unchanged; the last `/` still separates the
                // slug.
                write!(f, "workspace:{}/{}", path.display(), self.slug)
            }
        }
    }
}

impl FromStr for AgentId {
    type Err = AgentIdError;

    fn from_str(text: &str) -> Result<Self, AgentIdError> {
        let error = |why| AgentIdError { text: ShownText::clip_line(text, 200).to_string(), why };
        if let Some(rest) = text.strip_prefix("workspace:") {
            let (path, slug) =
                rest.rsplit_once('/').ok_or_else(|| error("the agent's name is missing"))?;
            let path = PathBuf::from(path);
            if !path.is_absolute() {
                return Err(error("the workspace's path is not absolute"));
            }
            return Ok(Self { scope: AgentScope::Workspace(path), slug: parse_slug(slug, text)? });
        }
        let parts: Vec<&str> = text.split('/').collect();
        match parts.as_slice() {
            [slug] | ["home", slug] => Ok(Self::in_home(parse_slug(slug, text)?)),
            ["library", name, slug] => {
                let name = parse_slug(name, text)?.0;
                Ok(Self { scope: AgentScope::Library(name), slug: parse_slug(slug, text)? })
            }
            ["library", market, plugin, slug] => {
                let (market, plugin) = (parse_slug(market, text)?, parse_slug(plugin, text)?);
                let name = LibraryName::for_plugin(Some(&market), &plugin);
                Ok(Self { scope: name.into_scope(), slug: parse_slug(slug, text)? })
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

/// INV-562: parses an agent's name in the spelling of its file, or as a slug.
fn parse_slug(text: &str, whole: &str) -> Result<Slug, AgentIdError> {
    Slug::from_written(text).ok_or_else(|| no_name(whole))
}

/// The error that an id has no valid name.
fn no_name(whole: &str) -> AgentIdError {
    AgentIdError {
        text: ShownText::clip_line(whole, 200).to_string(),
        why: "names are letters and digits joined by `-`, or as their files write them",
    }
}

/// The characters of a name in lower case, in the slugs' encoding.
fn fold_name(name: &str) -> impl Iterator<Item = char> + '_ {
    let seen = name.chars().filter(|c| !is_selector(*c));
    // Lower-casing may change the number of characters, so the encoding is normalized again.
    seen.nfc().flat_map(char::to_lowercase).nfc()
}

/// Whether a character is a part of a slug; all others separate words.
fn is_kept(c: char) -> bool {
    match c.is_ascii() {
        true => c.is_ascii_alphanumeric(),
        // A mark is part of the letter before it, for example a vowel in the scripts of India.
        false => c.is_alphanumeric() || is_combining_mark(c) || is_symbol(c),
    }
}

/// Whether a character is an arrow, sign or picture, because a name may consist of these alone.
fn is_symbol(c: char) -> bool {
    matches!(c, '\u{2190}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}')
}

/// Whether a character only selects how the previous one is displayed.
fn is_selector(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}')
}

/// Whether a character is refused in names because it is invisible. Joiners are needed in the scripts of
/// Persian and of India, so they are accepted, and separate words.
pub(crate) fn is_refused(c: char) -> bool {
    is_hidden(c) && !is_selector(c) && !matches!(c, '\u{200c}' | '\u{200d}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_slugs() {
        let slug = |name: &str| Slug::from_name(name).map(String::from);
        assert_eq!(slug("Code Reviewer").as_deref(), Some("code-reviewer"));
        assert_eq!(slug("a:b/c__d").as_deref(), Some("a-b-c-d"));
        assert_eq!(slug("--x--").as_deref(), Some("x"));
        assert_eq!(slug(&"a".repeat(500)).map(|s| s.len()), Some(64));
        assert_eq!(slug(&"\u{4ee3}".repeat(500)).map(|s| s.chars().count()), Some(64));
        assert!(slug(&"🚀".repeat(500)).is_some_and(|slug| slug.len() <= 200));
        assert_eq!(slug("?!"), None);
    }

    #[test]
    fn a_name_of_any_script_is_its_own_slug() {
        let slug = |name: &str| Slug::from_name(name).map(String::from);
        for (name, expected) in [
            ("代码 审查", "代码-审查"),
            ("Prüfer", "prüfer"),
            ("Pru\u{308}fer", "prüfer"),
            ("ΣΟΦΙΑ", "σοφια"),
            ("हिन्दी", "हिन्दी"),
            ("مراجع", "مراجع"),
            ("می\u{200c}خواهم", "می-خواهم"),
            ("Straße – 1", "straße-1"),
            ("🚀", "🚀"),
            ("❤\u{fe0f} love", "❤-love"),
        ] {
            assert_eq!(slug(name).as_deref(), Some(expected), "{name}");
        }
    }

    #[test]
    fn different_names_of_a_script_are_different_agents() {
        let names = ["é", "è", "e", "ü", "u", "हिन्दी", "हिनदी", "हिन-दी", "代", "码", "🚀", "🔥"];
        let slugs: std::collections::BTreeSet<_> =
            names.iter().map(|name| Slug::from_name(name)).collect();
        assert_eq!(slugs.len(), names.len());
    }

    #[test]
    fn what_nobody_sees_is_in_no_name() {
        for c in [
            '\u{202e}',
            '\u{2066}',
            '\u{200f}',
            '\u{61c}',
            '\u{200b}',
            '\u{feff}',
            '\0',
            '\n',
            '\u{1b}',
            '\u{9b}',
            '\u{e0041}',
            '\u{ad}',
        ] {
            for name in [format!("ab{c}cd"), format!("代{c}码")] {
                assert_eq!(Slug::from_name(&name), None, "{name:?}");
                assert!(name.parse::<AgentId>().is_err() && Slug::try_from(name).is_err());
            }
        }
    }

    #[test]
    fn an_identity_is_typed_as_the_name_is_written() {
        for (text, expected) in [
            ("prüfer", "home/prüfer"),
            ("Prüfer", "home/prüfer"),
            ("pru\u{308}fer", "home/prüfer"),
            ("library/büro/代码", "library/büro/代码"),
            ("library/bu\u{308}ro/代码", "library/büro/代码"),
            ("workspace:/srv/x/审查", "workspace:/srv/x/审查"),
            ("prüfer eins", "home/prüfer-eins"),
            ("Code Reviewer", "home/code-reviewer"),
            ("Café Reviewer (C#)", "home/café-reviewer-c"),
            ("مراجع الكود", "home/مراجع-الكود"),
            ("library/Моя библиотека/代 码", "library/моя-библиотека/代-码"),
            ("workspace:/srv/x/Код Ревью", "workspace:/srv/x/код-ревью"),
        ] {
            assert_eq!(text.parse::<AgentId>().unwrap().to_string(), expected);
        }
        let long = "代".repeat(65);
        for near in ["-prüfer", "prüfer-", " prüfer", "prüfer\u{a0}", "代/码", "代*", "a*b", &long]
        {
            assert!(near.parse::<AgentId>().is_err(), "{near}");
        }
    }

    #[test]
    fn a_slug_is_its_own_slug() {
        // Beyond them lie ideographs, which have neither case nor marks.
        for c in ('\0'..='\u{2fff}').chain('\u{a000}'..='\u{abff}').chain('\u{f900}'..='\u{11fff}')
        {
            let name = format!("{c}a{c}\u{308}");
            if let Some(slug) = Slug::from_name(&name) {
                assert_eq!(Slug::from_exact(slug.as_str()).as_ref(), Some(&slug), "{name:?}");
            }
        }
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
        for bad in ["", "?", "a/b", "home/", "library/x", "workspace:rel/scout", "workspace:/"] {
            assert!(bad.parse::<AgentId>().is_err(), "{bad:?}");
        }
    }
}
