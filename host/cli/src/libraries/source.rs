//! Where a library comes from.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use belljar_definition::Slug;
use belljar_policy::ShownText;
use serde::{Deserialize, Serialize};

use super::gather::{CollectedSource, FileGatherer};
use super::{archive, directory, git};
use crate::setup::exit::Failure;

/// A place of agents on this machine. Nothing is fetched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum LibrarySource {
    /// A directory as it is.
    Directory {
        /// Absolute, without links.
        path: PathBuf,
    },
    /// A `.tar.gz`.
    Archive {
        /// Absolute, without links.
        path: PathBuf,
    },
    /// A commit of a git repository.
    Git {
        /// The work tree or the bare repository; absolute, without links.
        path: PathBuf,
        /// The requested branch, tag or commit; absent = `HEAD`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rev: Option<String>,
    },
}

/// A source after all work of other programs: the rest is reading, and happens behind the OS sandbox.
pub(crate) enum PreparedSource {
    /// Read as it lies there.
    Directory(PathBuf),
    /// A compressed archive.
    Archive(PathBuf),
    /// The files of one commit, from git.
    Git(git::GitCommit),
}

impl LibrarySource {
    /// The source that the operator named.
    pub(crate) fn from_path(given: &Path, rev: Option<&str>) -> Result<Self, Failure> {
        let shown = ShownText::new(&given.to_string_lossy()).to_string();
        if looks_remote(given) {
            return Err(Failure::usage(format!("`{shown}` is not on this machine")).with_hint(
                "belljar fetches no library: clone it with git, and give the directory",
            ));
        }
        let failure = |why: String| Failure::usage(format!("`{shown}` cannot be used: {why}"));
        let path = given.canonicalize().map_err(|error| failure(error.to_string()))?;
        let Some(text) = path.to_str() else {
            return Err(failure("its path is not UTF-8, so it cannot be recorded".to_owned()));
        };
        // Spelt out for a person, it would be the name of another place.
        if text.chars().any(ShownText::is_hidden) {
            return Err(failure("its path holds characters that no screen shows".to_owned()));
        }
        let meta = fs::metadata(&path).map_err(|error| failure(error.to_string()))?;
        let source = if meta.is_dir() && git::is_repository(&path) {
            Self::Git { path, rev: rev.map(str::to_owned) }
        } else if meta.is_dir() {
            Self::Directory { path }
        } else if meta.is_file() && is_archive(&path) {
            Self::Archive { path }
        } else {
            return Err(failure("it is no directory, git repository or `.tar.gz`".to_owned()));
        };
        if rev.is_some() && !matches!(source, Self::Git { .. }) {
            return Err(failure("`--rev` is for git repositories".to_owned()));
        }
        Ok(source)
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Directory { path } | Self::Archive { path } | Self::Git { path, .. } => path,
        }
    }

    /// One word.
    pub(crate) fn kind_word(&self) -> &'static str {
        match self {
            Self::Directory { .. } => "directory",
            Self::Archive { .. } => "archive",
            Self::Git { .. } => "git",
        }
    }

    /// A name for the library, from the last part of the path.
    pub(crate) fn library_name(&self) -> Option<Slug> {
        let name = self.path().file_name()?.to_string_lossy().into_owned();
        let stem = [".tar.gz", ".tgz", ".git"].iter().find_map(|end| name.strip_suffix(end));
        Slug::from_name(stem.unwrap_or(&name))
    }

    /// Does what takes another program. To be called before the OS sandbox goes up.
    ///
    /// # Errors
    ///
    /// When the path leads elsewhere than at the agreement, or git fails.
    pub(crate) fn prepare_source(&self) -> Result<PreparedSource, Failure> {
        let path = self.path();
        let shown = ShownText::new(&path.to_string_lossy()).to_string();
        let real = path
            .canonicalize()
            .map_err(|error| Failure::new(format!("`{shown}` cannot be used: {error}")))?;
        if real != path {
            let real = real.to_string_lossy();
            return Err(Failure::usage(format!(
                "`{shown}` leads elsewhere now: to `{}`",
                ShownText::new(&real)
            ))
            .with_hint("remove the library and add it from there, if that is what you want"));
        }
        Ok(match self {
            Self::Directory { path } => PreparedSource::Directory(path.clone()),
            Self::Archive { path } => PreparedSource::Archive(path.clone()),
            Self::Git { path, rev } => PreparedSource::Git(git::read_commit(path, rev.as_deref())?),
        })
    }
}

impl PreparedSource {
    /// The paths that have to be readable behind the OS sandbox.
    pub(crate) fn readable_paths(&self) -> Vec<PathBuf> {
        match self {
            Self::Directory(path) | Self::Archive(path) => vec![path.clone()],
            Self::Git(_) => Vec::new(),
        }
    }

    /// The commit, where there is one.
    pub(crate) fn revision(&self) -> Option<&str> {
        match self {
            Self::Directory(_) | Self::Archive(_) => None,
            Self::Git(commit) => Some(&commit.id),
        }
    }

    /// Reads it.
    pub(crate) fn collect_files(self) -> Result<CollectedSource, Failure> {
        let mut gather = FileGatherer::default();
        match self {
            Self::Directory(path) => directory::read_directory(&path, &mut gather)?,
            Self::Archive(path) => archive::read_compressed(&path, &mut gather)?,
            Self::Git(commit) => archive::read_tar(commit.archive, &mut gather)?,
        }
        Ok(gather.into_collected())
    }
}

impl fmt::Display for LibrarySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path().to_string_lossy();
        write!(f, "{} {}", self.kind_word(), ShownText::new(&path))?;
        match self {
            Self::Git { rev: Some(rev), .. } => write!(f, " at {}", ShownText::clip_line(rev, 80)),
            Self::Directory { .. } | Self::Archive { .. } | Self::Git { .. } => Ok(()),
        }
    }
}

fn is_archive(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase());
    name.is_some_and(|name| name.ends_with(".tar.gz") || name.ends_with(".tgz"))
}

/// Whether the text is an address: with a scheme, or in git's form for ssh.
fn looks_remote(given: &Path) -> bool {
    let text = given.to_string_lossy();
    let ssh = text.split_once(':').is_some_and(|(host, _)| host.contains('@'));
    !given.exists() && (text.contains("://") || ssh)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_told_by_what_lies_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap().join("Some Agents.git");
        fs::create_dir(&path).unwrap();
        let source = LibrarySource::from_path(&path, None).unwrap();
        assert_eq!(source, LibrarySource::Directory { path: path.clone() });
        assert_eq!(source.library_name().unwrap().as_str(), "some-agents");
        assert!(
            LibrarySource::from_path(&path, Some("main")).unwrap_err().message.contains("--rev")
        );
        fs::create_dir(path.join(".git")).unwrap();
        assert_eq!(LibrarySource::from_path(&path, None).unwrap().kind_word(), "git");
        let archive = dir.path().join("x.tar.gz");
        fs::write(&archive, "").unwrap();
        assert_eq!(LibrarySource::from_path(&archive, None).unwrap().kind_word(), "archive");
        let other = dir.path().join("x.zip");
        fs::write(&other, "").unwrap();
        assert!(LibrarySource::from_path(&other, None).is_err());
    }

    #[test]
    fn a_source_that_leads_elsewhere_or_is_shown_otherwise_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (path, other) = (root.join("agents"), root.join("other"));
        fs::create_dir(&path).unwrap();
        let source = LibrarySource::from_path(&path, None).unwrap();
        assert!(source.prepare_source().is_ok());
        fs::rename(&path, &other).unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        let failure = source.prepare_source().err().unwrap();
        assert!(failure.message.contains("leads elsewhere now"), "{}", failure.message);
        for name in ["a\u{202e}b", "a\u{200b}", "a\u{1b}[2J"] {
            fs::create_dir(root.join(name)).unwrap();
            let failure = LibrarySource::from_path(&root.join(name), None).unwrap_err();
            assert!(failure.message.contains("no screen shows"), "{}", failure.message);
        }
    }

    #[test]
    fn an_address_is_not_fetched() {
        for address in ["https://example.org/a.git", "git@example.org:a/b.git", "ssh://x/y"] {
            let failure = LibrarySource::from_path(Path::new(address), None).unwrap_err();
            assert!(failure.hints[0].contains("clone it"), "{address}");
        }
    }
}
