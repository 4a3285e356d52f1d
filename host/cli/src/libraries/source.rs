//! Where a library comes from.

use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use belljar_definition::Slug;
use belljar_policy::{RequestTarget, ShownText};
use serde::{Deserialize, Serialize};

use super::commit::GitCommit;
use super::fetch::{
    DownloadAddress, FetchedContent, GitAddress, NpmAddress, RemoteAddress, SourceFetcher,
    is_loopback, strip_ending,
};
use super::folder::open_file;
use super::gather::{CollectScope, CollectedSource, FileGatherer};
use super::{archive, directory, git};
use crate::setup::exit::Failure;

/// A place of agents: on this machine, or at an address that everybody may read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum LibrarySource {
    /// A directory as it is.
    Directory {
        /// Absolute, without links.
        path: PathBuf,
    },
    /// A `.zip`, `.tar` or `.tar.gz`.
    Archive {
        /// Absolute, without links.
        path: PathBuf,
    },
    /// A single agent.
    File {
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
        /// The folder below the root.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        folder: Option<String>,
    },
    /// A commit of a git repository on another machine.
    Repository {
        /// Its address.
        url: String,
        /// The requested branch, tag or commit; absent = the server's choice.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rev: Option<String>,
        /// The folder below the root.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        folder: Option<String>,
    },
    /// An archive or a single agent on another machine.
    Download {
        /// Its address.
        url: String,
    },
    /// A package of npm's registry.
    Npm {
        /// Its name.
        package: String,
        /// The requested version or tag; absent = `latest`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
    },
}

/// A source after all work of other programs: the rest is reading, and happens behind the OS sandbox.
pub(crate) struct PreparedSource {
    content: PreparedContent,
    /// The commit, or the SHA-256 of what was fetched.
    pub(crate) revision: Option<String>,
    /// The version of a package.
    pub(crate) version: Option<String>,
    scope: CollectScope,
    shown: String,
}

/// The content of a prepared source.
enum PreparedContent {
    /// Read as it lies there.
    Directory(PathBuf),
    /// An archive.
    Archive(File),
    /// A single agent, with its name.
    Agent(String, File),
    /// The files of one commit, from git.
    Commit(GitCommit),
}

impl LibrarySource {
    /// The source that the operator typed. What lies on this machine wins over an address.
    pub(crate) fn from_typed(given: &Path, rev: Option<&str>) -> Result<Self, Failure> {
        if !given.exists()
            && let Some(typed) = given.to_str()
            && let Some(address) = RemoteAddress::parse_typed(typed)?
        {
            return Self::from_address(address, rev);
        }
        Self::from_path(given, rev)
    }

    /// The source at an address.
    fn from_address(address: RemoteAddress, rev: Option<&str>) -> Result<Self, Failure> {
        match address {
            RemoteAddress::Git(mut address) => {
                if let Some(rev) = rev {
                    if address.rev.is_some() {
                        return Err(Failure::usage("the address and `--rev` both name a revision")
                            .with_hint("leave one of them out"));
                    }
                    address =
                        GitAddress::from_parts(&address.url, Some(rev), address.folder.as_deref())?;
                }
                let GitAddress { url, rev, folder } = address;
                Ok(Self::Repository { url, rev, folder })
            }
            _ if rev.is_some() => Err(Failure::usage("`--rev` is for git repositories")),
            RemoteAddress::Download(DownloadAddress { url }) => Ok(Self::Download { url }),
            RemoteAddress::Npm(NpmAddress { package, version, .. }) => {
                Ok(Self::Npm { package, version })
            }
        }
    }

    fn from_path(given: &Path, rev: Option<&str>) -> Result<Self, Failure> {
        let shown = ShownText::new(&given.to_string_lossy()).to_string();
        let failure = |why: String| Failure::usage(format!("`{shown}` cannot be used: {why}"));
        let path = given.canonicalize().map_err(|error| {
            failure(error.to_string()).with_hint(
                "a source is a path of this machine, `owner/repo`, an https address or `npm:PACKAGE`",
            )
        })?;
        let Some(text) = path.to_str() else {
            return Err(failure("its path is not UTF-8, so it cannot be recorded".to_owned()));
        };
        // Spelt out for a person, it would be the name of another place.
        if text.chars().any(ShownText::is_hidden) {
            return Err(failure("its path holds characters that no screen shows".to_owned()));
        }
        let meta = fs::metadata(&path).map_err(|error| failure(error.to_string()))?;
        let rev = rev.map(str::to_owned);
        if meta.is_dir() && git::is_repository(&path) {
            return Ok(Self::Git { path, rev, folder: None });
        }
        if meta.is_dir() {
            return match (rev, git::find_around(&path)) {
                (None, _) => Ok(Self::Directory { path }),
                (Some(rev), Some((root, below))) => {
                    let folder = below.to_string_lossy().into_owned();
                    Ok(Self::Git { path: root.to_path_buf(), rev: Some(rev), folder: Some(folder) })
                }
                (Some(_), None) => {
                    Err(failure("`--rev` is for git repositories, and it lies in none".to_owned()))
                }
            };
        }
        if rev.is_some() {
            return Err(failure("`--rev` is for git repositories".to_owned()));
        }
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase());
        let ends = |endings: &[&str]| {
            name.as_ref().is_some_and(|name| endings.iter().any(|end| name.ends_with(end)))
        };
        match meta.is_file() {
            true if ends(&[".tar.gz", ".tgz", ".tar", ".zip"]) => Ok(Self::Archive { path }),
            true if ends(&[".md"]) => Ok(Self::File { path }),
            _ => Err(failure(
                "it is no directory, git repository or file of a known kind (`.zip`, `.tar`, `.tar.gz`, `.md`)"
                    .to_owned(),
            )),
        }
    }

    /// The same source at this commit, if it is a repository.
    pub(crate) fn at_commit(self, id: Option<&str>) -> Self {
        let id = id.map(str::to_owned);
        match self {
            Self::Git { path, rev, folder } => Self::Git { path, rev: id.or(rev), folder },
            Self::Repository { url, rev, folder } => {
                Self::Repository { url, rev: id.or(rev), folder }
            }
            other @ (Self::Directory { .. }
            | Self::Archive { .. }
            | Self::File { .. }
            | Self::Download { .. }
            | Self::Npm { .. }) => other,
        }
    }

    /// The source of a folder below this source, and the folder that is still to be cut out of what is read:
    /// of a repository on another machine, only the folder is fetched.
    pub(crate) fn below_folder(self, below: &str) -> (Self, String) {
        match self {
            Self::Repository { url, rev, folder: None } if !below.is_empty() => {
                (Self::Repository { url, rev, folder: Some(below.to_owned()) }, String::new())
            }
            other => (other, below.to_owned()),
        }
    }

    /// Refuses an address of this machine: for sources that a stranger's list names.
    ///
    /// # Errors
    ///
    /// INV-636: the address is on this machine, or it is none.
    pub(crate) fn refuse_own_machine(self) -> Result<Self, Failure> {
        if let Self::Repository { url, .. } | Self::Download { url } = &self {
            let target = RequestTarget::parse(url)
                .map_err(|_| Failure::usage("its marketplace names an address that is none"))?;
            if is_loopback(&target) {
                return Err(Failure::usage(format!(
                    "its marketplace names an address of this machine: {}",
                    ShownText::clip_line(url, 200)
                ))
                .with_hint("nothing is fetched from there; only you can name such an address"));
            }
        }
        Ok(self)
    }

    /// The path, the address or the package, without a revision or a folder: `git` and the path, for example.
    pub(crate) fn origin(&self) -> (&'static str, &str) {
        let origin = match self {
            Self::Repository { url, .. } | Self::Download { url } => Some(url.as_str()),
            Self::Npm { package, .. } => Some(package.as_str()),
            Self::Directory { path }
            | Self::Archive { path }
            | Self::File { path }
            | Self::Git { path, .. } => path.to_str(),
        };
        (self.kind_word(), origin.unwrap_or_default())
    }

    /// The path on this machine; `None` = the source is at an address.
    pub(crate) fn local_path(&self) -> Option<&Path> {
        match self {
            Self::Directory { path }
            | Self::Archive { path }
            | Self::File { path }
            | Self::Git { path, .. } => Some(path),
            Self::Repository { .. } | Self::Download { .. } | Self::Npm { .. } => None,
        }
    }

    /// The address, checked by the rules for typed ones.
    ///
    /// # Errors
    ///
    /// The recorded text is not one that belljar records.
    fn address(&self) -> Result<Option<RemoteAddress>, Failure> {
        Ok(Some(match self {
            Self::Repository { url, rev, folder } => {
                RemoteAddress::Git(GitAddress::from_parts(url, rev.as_deref(), folder.as_deref())?)
            }
            Self::Download { url } => RemoteAddress::Download(DownloadAddress::from_url(url)?),
            Self::Npm { package, version } => {
                let typed = match version {
                    Some(version) => format!("{package}@{version}"),
                    None => package.clone(),
                };
                RemoteAddress::Npm(NpmAddress::from_typed(&typed)?)
            }
            Self::Directory { .. }
            | Self::Archive { .. }
            | Self::File { .. }
            | Self::Git { .. } => {
                return Ok(None);
            }
        }))
    }

    /// Why belljar would not record this source.
    pub(super) fn check_recorded(&self) -> Result<(), String> {
        if self.local_path().is_some_and(|path| !path.is_absolute()) {
            return Err("the path of its source is not absolute".to_owned());
        }
        self.address().map(drop).map_err(|failure| failure.message)
    }

    /// One word.
    pub(crate) fn kind_word(&self) -> &'static str {
        match self {
            Self::Directory { .. } => "directory",
            Self::Archive { .. } => "archive",
            Self::File { .. } => "file",
            Self::Git { .. } | Self::Repository { .. } => "git",
            Self::Download { .. } => "download",
            Self::Npm { .. } => "npm",
        }
    }

    /// A name for the library, from the last part of the path or address.
    pub(crate) fn library_name(&self) -> Option<Slug> {
        if let Self::Git { folder: Some(folder), .. } = self {
            return Slug::from_name(folder.rsplit('/').next()?);
        }
        let name = match self.local_path() {
            Some(path) => path.file_name()?.to_string_lossy().into_owned(),
            None => self.address().ok()??.last_name()?,
        };
        Slug::from_name(strip_ending(&name))
    }

    /// Does what takes another program or a connection. To be called before the OS sandbox goes up.
    ///
    /// # Errors
    ///
    /// When the path leads elsewhere than at the agreement, the source cannot be fetched, or git fails.
    pub(crate) fn prepare_source(
        &self,
        fetcher: &SourceFetcher<'_>,
        scope: CollectScope,
    ) -> Result<PreparedSource, Failure> {
        if let Some(address) = self.address()? {
            let fetched = fetcher.fetch_source(&address, scope)?;
            let content = match (fetched.content, &address) {
                (FetchedContent::Commit(commit), _) => PreparedContent::Commit(commit),
                (FetchedContent::File(file), RemoteAddress::Download(DownloadAddress { url }))
                    if is_agent_address(url) =>
                {
                    let name = address.last_name().unwrap_or_default();
                    PreparedContent::Agent(format!("{name}.md"), file)
                }
                (FetchedContent::File(file), _) => PreparedContent::Archive(file),
            };
            let (revision, version) = (Some(fetched.revision), fetched.version);
            return Ok(PreparedSource {
                content,
                revision,
                version,
                scope,
                shown: self.to_string(),
            });
        }
        let path = self.unmoved_path()?;
        let shown = ShownText::new(&path.to_string_lossy()).to_string();
        let open = |path: &Path| {
            open_file(path)
                .map(|(file, _)| file)
                .map_err(|error| Failure::usage(format!("failed to open `{shown}`: {error}")))
        };
        let content = match self {
            Self::Archive { path } => PreparedContent::Archive(open(path)?),
            Self::File { path } => {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                PreparedContent::Agent(name, open(path)?)
            }
            Self::Git { path, rev, folder } => PreparedContent::Commit(git::read_commit(
                path,
                rev.as_deref(),
                folder.as_deref(),
                scope,
            )?),
            Self::Directory { .. }
            | Self::Repository { .. }
            | Self::Download { .. }
            | Self::Npm { .. } => PreparedContent::Directory(path),
        };
        let revision = match &content {
            PreparedContent::Commit(commit) => Some(commit.id.clone()),
            PreparedContent::Directory(_)
            | PreparedContent::Archive(_)
            | PreparedContent::Agent(..) => None,
        };
        Ok(PreparedSource { content, revision, version: None, scope, shown })
    }

    /// The path of a source on this machine, if it leads where it led.
    fn unmoved_path(&self) -> Result<PathBuf, Failure> {
        let path = self.local_path().unwrap_or(Path::new("/"));
        let shown = ShownText::new(&path.to_string_lossy()).to_string();
        let real = path
            .canonicalize()
            .map_err(|error| Failure::new(format!("`{shown}` cannot be used: {error}")))?;
        if real == path {
            return Ok(real);
        }
        let real = real.to_string_lossy();
        Err(Failure::usage(format!(
            "`{shown}` leads elsewhere now: to `{}`",
            ShownText::new(&real)
        ))
        .with_hint("remove the library and add it from there, if that is what you want"))
    }
}

impl PreparedSource {
    /// The paths that have to be readable behind the OS sandbox.
    pub(crate) fn readable_paths(&self) -> Vec<PathBuf> {
        match &self.content {
            PreparedContent::Directory(path) => vec![path.clone()],
            PreparedContent::Archive(_)
            | PreparedContent::Agent(..)
            | PreparedContent::Commit(_) => Vec::new(),
        }
    }

    /// A line about the revision for a person.
    pub(crate) fn describe_revision(&self) -> Option<String> {
        let revision = self.revision.as_ref()?;
        Some(match (&self.content, &self.version) {
            (PreparedContent::Commit(_), _) => {
                format!("commit {revision}; what is not committed is left out")
            }
            (_, Some(version)) => {
                format!("version {}, SHA-256 {revision}", ShownText::new(version))
            }
            (_, None) => format!("SHA-256 {revision}"),
        })
    }

    /// Reads the files that may be agents.
    pub(crate) fn collect_files(self) -> Result<CollectedSource, Failure> {
        let mut gather = FileGatherer::with_scope(self.scope);
        match self.content {
            PreparedContent::Directory(path) => directory::read_directory(&path, &mut gather)?,
            PreparedContent::Archive(file) => {
                archive::read_archive(file, &self.shown, &mut gather)?;
            }
            PreparedContent::Agent(name, file) => read_agent(&name, file, &mut gather)?,
            PreparedContent::Commit(commit) => commit.gather_files(&mut gather)?,
        }
        Ok(gather.into_collected())
    }
}

/// Gathers a single agent.
fn read_agent(name: &str, file: File, gather: &mut FileGatherer) -> Result<(), Failure> {
    use std::io::Read as _;
    if !gather.wants_file(name) {
        return Ok(());
    }
    let mut bytes = Vec::new();
    file.take(gather.longest_file() as u64 + 1).read_to_end(&mut bytes).map_err(|error| {
        Failure::new(format!("failed to read `{}`: {error}", ShownText::new(name)))
    })?;
    gather.keep_file(name, bytes)
}

/// Whether an address names a single agent.
fn is_agent_address(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    path.to_ascii_lowercase().ends_with(".md")
}

impl fmt::Display for LibrarySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self {
            Self::Repository { url, .. } | Self::Download { url } => url.clone(),
            Self::Npm { package, version: None } => package.clone(),
            Self::Npm { package, version: Some(version) } => format!("{package}@{version}"),
            Self::Directory { .. }
            | Self::Archive { .. }
            | Self::File { .. }
            | Self::Git { .. } => {
                self.local_path().unwrap_or(Path::new("")).to_string_lossy().into_owned()
            }
        };
        write!(f, "{} {}", self.kind_word(), ShownText::new(&place))?;
        let (Self::Git { rev, folder, .. } | Self::Repository { rev, folder, .. }) = self else {
            return Ok(());
        };
        if let Some(folder) = folder {
            write!(f, " folder {}", ShownText::clip_line(folder, 200))?;
        }
        match rev {
            Some(rev) => write!(f, " at {}", ShownText::clip_line(rev, 80)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect_local(source: &LibrarySource) -> Result<PreparedSource, Failure> {
        let home = PathBuf::from("/nowhere");
        let (cache, workspace) = (home.clone(), home.clone());
        let places = crate::setup::home::HomePaths { home, cache, workspace, user_home: None };
        let out = crate::term::out::TerminalOutput::new(true, true);
        let fetcher = SourceFetcher { out: &out, places: &places, walled: false };
        source.prepare_source(&fetcher, CollectScope::Agents)
    }

    #[test]
    fn a_source_is_told_by_what_lies_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap().join("Some Agents.git");
        fs::create_dir(&path).unwrap();
        let source = LibrarySource::from_typed(&path, None).unwrap();
        assert_eq!(source, LibrarySource::Directory { path: path.clone() });
        assert_eq!(source.library_name().unwrap().as_str(), "some-agents");
        assert!(
            LibrarySource::from_typed(&path, Some("main")).unwrap_err().message.contains("--rev")
        );
        fs::create_dir(path.join(".git")).unwrap();
        assert_eq!(LibrarySource::from_typed(&path, None).unwrap().kind_word(), "git");
        fs::create_dir_all(path.join("a/b")).unwrap();
        let below = LibrarySource::from_typed(&path.join("a/b"), Some("v1")).unwrap();
        assert_eq!(below.library_name().unwrap().as_str(), "b");
        let (rev, folder) = (Some("v1".to_owned()), Some("a/b".to_owned()));
        assert_eq!(below, LibrarySource::Git { path: path.clone(), rev, folder });
        for (name, kind) in
            [("x.tar.gz", "archive"), ("x.zip", "archive"), ("x.TAR", "archive"), ("x.md", "file")]
        {
            let file = dir.path().join(name);
            fs::write(&file, "").unwrap();
            assert_eq!(LibrarySource::from_typed(&file, None).unwrap().kind_word(), kind, "{name}");
            assert!(LibrarySource::from_typed(&file, Some("main")).is_err(), "{name}");
        }
        let other = dir.path().join("x.exe");
        fs::write(&other, "").unwrap();
        assert!(LibrarySource::from_typed(&other, None).is_err());
    }

    #[test]
    fn a_source_that_leads_elsewhere_or_is_shown_otherwise_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (path, other) = (root.join("agents"), root.join("other"));
        fs::create_dir(&path).unwrap();
        let source = LibrarySource::from_typed(&path, None).unwrap();
        assert!(collect_local(&source).is_ok());
        fs::rename(&path, &other).unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        let failure = collect_local(&source).err().unwrap();
        assert!(failure.message.contains("leads elsewhere now"), "{}", failure.message);
        for name in ["a\u{202e}b", "a\u{200b}", "a\u{1b}[2J"] {
            fs::create_dir(root.join(name)).unwrap();
            let failure = LibrarySource::from_typed(&root.join(name), None).unwrap_err();
            assert!(failure.message.contains("no screen shows"), "{}", failure.message);
        }
    }

    #[test]
    fn an_address_is_recorded_and_named() {
        for (typed, name, shown) in [
            ("o/r/agents/web@v1", "web", "git https://github.com/o/r.git folder agents/web at v1"),
            ("https://example.org/x/Some.zip", "some", "download https://example.org/x/Some.zip"),
            ("npm:@s/p@1.0.0", "p", "npm @s/p@1.0.0"),
        ] {
            let source = LibrarySource::from_typed(Path::new(typed), None).unwrap();
            assert_eq!(source.library_name().unwrap().as_str(), name);
            assert_eq!(source.to_string(), shown);
            assert_eq!(source.check_recorded(), Ok(()));
            let text = toml::to_string(&source).unwrap();
            assert_eq!(toml::from_str::<LibrarySource>(&text).unwrap(), source, "{text}");
        }
        let from = |typed: &str, rev| LibrarySource::from_typed(Path::new(typed), Some(rev));
        assert!(from("o/r", "main").is_ok());
        assert!(from("o/r@v1", "main").unwrap_err().message.contains("both name a revision"));
        assert!(from("npm:x", "main").unwrap_err().message.contains("--rev"));
        let edited =
            LibrarySource::Repository { url: "ext::sh -c id".to_owned(), rev: None, folder: None };
        assert!(edited.check_recorded().is_err());
    }
}
