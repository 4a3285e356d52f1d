//! The sources of a marketplace's entries.

use std::fmt;

use belljar_policy::ShownText;
use serde_json::{Map, Value};

use super::path::PluginPath;

/// The longest address or name of a source.
const MAX_TEXT: usize = 1_000;

/// The source of a plugin that a marketplace lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntrySource {
    /// A folder of the marketplace itself.
    Folder(PluginPath),
    /// A git repository, and the folder in it.
    Git {
        /// An address with `https`.
        url: String,
        /// The folder; empty = the root.
        folder: PluginPath,
        /// The requested commit.
        pin: RevisionPin,
    },
    /// A package of npm.
    Npm {
        /// The name, with its scope.
        package: String,
        /// The version; `None` = the latest one.
        version: Option<String>,
        /// Another registry.
        registry: Option<String>,
    },
    /// An archive.
    Archive {
        /// An address with `https`.
        url: String,
        /// The digest of the archive, 64 hex digits.
        sha256: Option<String>,
    },
}

/// The requested commit of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RevisionPin {
    /// A branch or tag.
    pub reference: Option<String>,
    /// A whole commit id. It beats `reference`.
    pub sha: Option<String>,
}

impl RevisionPin {
    /// The name that decides: the commit, else the branch or tag.
    pub fn revision(&self) -> Option<&str> {
        self.sha.as_deref().or(self.reference.as_deref())
    }
}

impl EntrySource {
    /// Whether the source names its content: a commit or a digest.
    pub fn is_pinned(&self) -> bool {
        match self {
            Self::Folder(_) | Self::Npm { .. } => false,
            Self::Git { pin, .. } => pin.sha.is_some(),
            Self::Archive { sha256, .. } => sha256.is_some(),
        }
    }
}

impl fmt::Display for EntrySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |text: &str| ShownText::clip_line(text, 200).to_string();
        match self {
            Self::Folder(path) => path.fmt(f),
            Self::Git { url, folder, pin } => {
                write!(f, "git {}", shown(url))?;
                if !folder.as_str().is_empty() {
                    write!(f, " {folder}")?;
                }
                match pin.revision() {
                    Some(revision) => write!(f, " at {}", shown(revision)),
                    None => Ok(()),
                }
            }
            Self::Npm { package, version, .. } => {
                write!(f, "npm {}", shown(package))?;
                match version {
                    Some(version) => write!(f, "@{}", shown(version)),
                    None => Ok(()),
                }
            }
            Self::Archive { url, .. } => write!(f, "archive {}", shown(url)),
        }
    }
}

/// Reads an entry's source: a path below the marketplace, or an object with a kind.
///
/// # Errors
///
/// The reason, for a person.
pub(super) fn read_source(
    source: Option<&Value>,
    root: &PluginPath,
) -> Result<EntrySource, String> {
    match source {
        None | Some(Value::Null) => Err("it has no `source`".to_owned()),
        Some(Value::String(written)) => read_folder(written, root),
        Some(Value::Object(map)) => read_object(map, root),
        Some(_) => Err("its `source` is neither a path nor an object".to_owned()),
    }
}

fn read_folder(written: &str, root: &PluginPath) -> Result<EntrySource, String> {
    let shown = ShownText::clip_line(written, 100);
    let path = PluginPath::parse(written).map_err(|why| format!("its source `{shown}` {why}"))?;
    let whole = PluginPath::parse(&root.join(path.as_str()));
    whole.map(EntrySource::Folder).map_err(|why| format!("its source `{shown}` {why}"))
}

fn read_object(map: &Map<String, Value>, root: &PluginPath) -> Result<EntrySource, String> {
    let kind = text(map, "source")?.or(text(map, "type")?);
    let pin = || -> Result<RevisionPin, String> {
        Ok(RevisionPin { reference: read_reference(map)?, sha: read_sha(map)? })
    };
    let need = |key: &str| text(map, key)?.ok_or_else(|| format!("its source has no `{key}`"));
    match kind.as_deref() {
        Some("github") => {
            let repo = need("repo")?;
            let repo = repo.trim_end_matches(".git");
            if !is_repository_name(repo) {
                let shown = ShownText::clip_line(repo, 100);
                return Err(format!("its source `{shown}` is no `owner/repository`"));
            }
            let url = format!("https://github.com/{repo}.git");
            Ok(EntrySource::Git { url, folder: read_subfolder(map)?, pin: pin()? })
        }
        Some("url" | "git") => {
            let url = https_url(&need("url")?)?;
            Ok(EntrySource::Git { url, folder: read_subfolder(map)?, pin: pin()? })
        }
        Some("git-subdir") => {
            let given = need("url")?;
            // `owner/repository` is accepted there too.
            let url = match is_repository_name(given.trim_end_matches(".git")) {
                true => format!("https://github.com/{}.git", given.trim_end_matches(".git")),
                false => https_url(&given)?,
            };
            need("path")?;
            Ok(EntrySource::Git { url, folder: read_subfolder(map)?, pin: pin()? })
        }
        Some("npm") => {
            let package = need("package")?;
            if !is_package_name(&package) {
                let shown = ShownText::clip_line(&package, 100);
                return Err(format!("its source `{shown}` is no name of a package"));
            }
            let registry = text(map, "registry")?.map(|url| https_url(&url)).transpose()?;
            Ok(EntrySource::Npm { package, version: text(map, "version")?, registry })
        }
        Some("archive") => {
            let url = https_url(&need("url")?)?;
            let sha256 = text(map, "sha256")?;
            let is_digest = |hex: &String| hex.len() == 64 && is_hex(hex);
            if !sha256.as_ref().is_none_or(is_digest) {
                return Err("its `sha256` is no SHA-256".to_owned());
            }
            Ok(EntrySource::Archive { url, sha256: sha256.map(|hex| hex.to_ascii_lowercase()) })
        }
        Some("local" | "directory" | "path") => read_folder(&need("path")?, root),
        // INV-634: a marketplace never names a program to start.
        Some("command") => Err("its source is a command, and belljar starts no program that a \
                                marketplace names"
            .to_owned()),
        Some(other) => {
            Err(format!("its kind of source, `{}`, is unknown", ShownText::clip_line(other, 40)))
        }
        None => Err("its source has no kind".to_owned()),
    }
}

/// A bounded text without characters that no screen shows.
fn text(map: &Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.len() > MAX_TEXT => {
            Err(format!("its `{key}` is too long"))
        }
        Some(Value::String(text)) if text.chars().any(ShownText::is_hidden) => {
            Err(format!("its `{key}` has characters that no screen shows"))
        }
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("its `{key}` is no text")),
    }
}

fn read_subfolder(map: &Map<String, Value>) -> Result<PluginPath, String> {
    let Some(written) = text(map, "path")? else { return Ok(PluginPath::default()) };
    let shown = ShownText::clip_line(&written, 100);
    PluginPath::parse(&written).map_err(|why| format!("its path `{shown}` {why}"))
}

/// INV-635: a `sha` is a whole commit id, or the entry is refused: a shortened one could mean another commit.
fn read_sha(map: &Map<String, Value>) -> Result<Option<String>, String> {
    let Some(sha) = text(map, "sha")? else { return Ok(None) };
    match matches!(sha.len(), 40 | 64) && is_hex(&sha) {
        true => Ok(Some(sha.to_ascii_lowercase())),
        false => Err("its `sha` is no whole commit id".to_owned()),
    }
}

/// A branch or tag: never an option of git, or a range.
fn read_reference(map: &Map<String, Value>) -> Result<Option<String>, String> {
    let Some(reference) = text(map, "ref")? else { return Ok(None) };
    let is_fit =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '@' | '+');
    let fits = !reference.is_empty()
        && reference.len() <= 200
        && reference.chars().all(is_fit)
        && !reference.starts_with(['-', '/'])
        && !reference.contains("..")
        && !reference.contains("@{");
    match fits {
        true => Ok(Some(reference)),
        false => Err("its `ref` is no name of a branch or tag".to_owned()),
    }
}

/// An address with `https`, a host, and neither a name nor a password.
fn https_url(url: &str) -> Result<String, String> {
    let shown = ShownText::clip_line(url, 100).to_string();
    let Some(rest) = url.strip_prefix("https://") else {
        return Err(format!("its address `{shown}` does not begin with `https://`"));
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.is_empty() || authority.contains('@') || url.contains([' ', '#', '\\', '"']) {
        return Err(format!("its address `{shown}` has no plain host"));
    }
    Ok(url.to_owned())
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// `owner/repository`.
fn is_repository_name(text: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && part.len() <= 100
            && !part.starts_with(['-', '.'])
            && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
    };
    text.split_once('/').is_some_and(|(owner, name)| is_part(owner) && is_part(name))
}

/// `name` or `@scope/name`, as npm allows.
fn is_package_name(text: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with(['.', '_', '-'])
            && part.chars().all(|c| {
                c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-')
            })
    };
    text.len() <= 214
        && match text.strip_prefix('@') {
            Some(rest) => {
                rest.split_once('/').is_some_and(|(scope, name)| is_part(scope) && is_part(name))
            }
            None => is_part(text),
        }
}
