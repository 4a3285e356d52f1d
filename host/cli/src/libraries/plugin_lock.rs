//! Installed plugins and known marketplaces in `libraries/lock.toml`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use belljar_definition::{LibraryName, Slug};
use belljar_sandbox::Digest;
use serde::{Deserialize, Serialize};

use super::gather::unfit_reason;
use super::lock::{check_place, parse_exact_slug, read_files, write_files};
use super::source::LibrarySource;

/// Most plugins.
pub(super) const MAX_PLUGINS: usize = 200;

/// Most marketplaces.
pub(super) const MAX_MARKETS: usize = 50;

/// The longest version or name as an author wrote it.
const MAX_WRITTEN: usize = 200;

/// The name of an installed plugin: `MARKET/PLUGIN`, or `PLUGIN` of a source without a marketplace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PluginKey {
    pub(crate) market: Option<Slug>,
    pub(crate) plugin: Slug,
}

/// One installed plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InstalledPlugin {
    /// The directory below the folder of libraries: one plain name.
    pub(crate) directory: String,
    /// The name as its author wrote it, for `PLUGIN:skill`.
    pub(crate) name: String,
    /// Whether its agents and skills are in use.
    pub(crate) enabled: bool,
    /// The version as written.
    pub(crate) version: Option<String>,
    /// Where it came from.
    pub(crate) source: LibrarySource,
    /// The folder of the source that holds it, with `/` between its parts; empty = the source itself.
    pub(crate) folder: String,
    /// The commit.
    pub(crate) revision: Option<String>,
    /// All its files by path below the directory, with the agreed digests.
    pub(crate) files: BTreeMap<PathBuf, Digest>,
    /// Which of the files are agents.
    pub(crate) agents: Vec<PathBuf>,
    /// Which of the files are skills' own files, each a `SKILL.md`.
    pub(crate) skills: Vec<PathBuf>,
    /// Which of the files are commands.
    pub(crate) commands: Vec<PathBuf>,
}

/// A marketplace that the operator added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownMarket {
    /// The directory below the folder of libraries that holds its list.
    pub(crate) directory: String,
    /// Where it came from.
    pub(crate) source: LibrarySource,
    /// The commit.
    pub(crate) revision: Option<String>,
    /// The path of its list below the directory, and the agreed digest.
    pub(crate) files: BTreeMap<PathBuf, Digest>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenPlugin {
    directory: String,
    name: String,
    enabled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    folder: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    agents: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    skills: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    commands: Vec<String>,
    source: LibrarySource,
    files: BTreeMap<String, String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenMarket {
    directory: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    source: LibrarySource,
    files: BTreeMap<String, String>,
}

impl PluginKey {
    /// The key in the exact form of the lock.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        match text.split_once('/') {
            Some((market, plugin)) => Some(Self {
                market: Some(parse_exact_slug(market)?),
                plugin: parse_exact_slug(plugin)?,
            }),
            None => Some(Self { market: None, plugin: parse_exact_slug(text)? }),
        }
    }

    /// The name of the library of its agents and skills.
    pub(crate) fn library_name(&self) -> LibraryName {
        LibraryName::for_plugin(self.market.as_ref(), &self.plugin)
    }
}

impl fmt::Display for PluginKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.library_name().fmt(f)
    }
}

impl InstalledPlugin {
    /// These files with their digests.
    fn pick_files(&self, wanted: impl Fn(&PathBuf) -> bool) -> BTreeMap<PathBuf, Digest> {
        let picked = self.files.iter().filter(|(path, _)| wanted(path));
        picked.map(|(path, digest)| (path.clone(), *digest)).collect()
    }

    /// A digest of all files with their paths.
    pub(crate) fn content_digest(&self) -> String {
        let mut listing = String::new();
        for (path, digest) in &self.files {
            listing.push_str(&format!("{digest} {}\n", path.to_string_lossy()));
        }
        Digest::hash_bytes(listing.as_bytes()).to_string()
    }

    /// The agents with their digests.
    pub(crate) fn agent_files(&self) -> BTreeMap<PathBuf, Digest> {
        self.pick_files(|path| self.agents.contains(path))
    }

    /// The commands with their digests.
    pub(crate) fn command_files(&self) -> BTreeMap<PathBuf, Digest> {
        self.pick_files(|path| self.commands.contains(path))
    }

    /// The skills with their digests, and all files of their folders.
    pub(crate) fn skill_files(&self) -> BTreeMap<PathBuf, Digest> {
        self.pick_files(|path| self.skills.iter().any(|skill| is_file_of_skill(path, skill)))
    }
}

/// Whether a file is a skill's own one, or in its folder. A plugin that is one skill has its documents beside
/// it, which are no skills.
pub(crate) fn is_file_of_skill(path: &Path, skill: &Path) -> bool {
    match skill.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => path.starts_with(folder),
        _ => path == skill || path.components().count() > 1,
    }
}

impl WrittenPlugin {
    pub(super) fn from_installed(installed: &InstalledPlugin) -> Result<Self, String> {
        let texts = |paths: &[PathBuf]| -> Result<Vec<String>, String> {
            let text = |path: &PathBuf| path.to_str().map(str::to_owned);
            paths.iter().map(|path| text(path).ok_or("a path is not UTF-8".to_owned())).collect()
        };
        Ok(Self {
            directory: installed.directory.clone(),
            name: installed.name.clone(),
            enabled: installed.enabled,
            version: installed.version.clone(),
            revision: installed.revision.clone(),
            folder: installed.folder.clone(),
            agents: texts(&installed.agents)?,
            skills: texts(&installed.skills)?,
            commands: texts(&installed.commands)?,
            source: installed.source.clone(),
            files: write_files(&installed.files)?,
        })
    }

    pub(super) fn into_installed(self) -> Result<InstalledPlugin, String> {
        let Self { directory, name, enabled, version, revision, folder, source, .. } = self;
        check_place(&directory, &source, revision.as_deref())?;
        let is_short = |text: &str| text.len() <= MAX_WRITTEN;
        if !is_short(&name) || !version.as_deref().is_none_or(is_short) {
            return Err("its name or version is too long".to_owned());
        }
        if !folder.is_empty() && unfit_reason(&folder).is_some() {
            return Err("its folder is no plain path".to_owned());
        }
        let files = read_files(self.files)?;
        let among = |paths: Vec<String>| -> Result<Vec<PathBuf>, String> {
            let paths: Vec<PathBuf> = paths.into_iter().map(PathBuf::from).collect();
            match paths.iter().all(|path| files.contains_key(path)) {
                true => Ok(paths),
                false => Err("one of its parts is none of its files".to_owned()),
            }
        };
        let (agents, skills) = (among(self.agents)?, among(self.skills)?);
        let commands = among(self.commands)?;
        Ok(InstalledPlugin {
            directory,
            name,
            enabled,
            version,
            source,
            folder,
            revision,
            agents,
            skills,
            commands,
            files,
        })
    }
}

impl WrittenMarket {
    pub(super) fn from_market(market: &KnownMarket) -> Self {
        Self {
            directory: market.directory.clone(),
            revision: market.revision.clone(),
            source: market.source.clone(),
            // Its one path is belljar's own, and UTF-8.
            files: write_files(&market.files).unwrap_or_default(),
        }
    }

    pub(super) fn into_market(self) -> Result<KnownMarket, String> {
        let Self { directory, revision, source, files } = self;
        check_place(&directory, &source, revision.as_deref())?;
        let files = read_files(files)?;
        if files.len() != 1 {
            return Err("it has not one list".to_owned());
        }
        Ok(KnownMarket { directory, source, revision, files })
    }
}
