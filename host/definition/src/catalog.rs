//! All agents, teams or skills of one process: their files, their order, and the unused files with reasons.
//! The caller reads the files; one bad file never stops the others. For example, a home with `scout.md` and
//! an unparsable `broken.md` yields one entry and one skipped file.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use belljar_policy::ShownText;

use crate::agent::{AgentContext, AgentDefinition, NO_TOOLS, NotAnAgent};
use crate::diagnostic::{Diagnostic, FileFindings, FilePosition, Severity};
use crate::filed::{CatalogItem, FileKind, FileRead};
use crate::{AgentId, AgentScope, Slug, suggest};

mod index;

use index::CatalogIndex;

/// The most similar names that an error about an unknown name suggests.
const MAX_SUGGESTIONS: usize = 3;

/// The name of folders whose files are not used until a person moves them out.
const QUARANTINE: &str = "drafts";

/// A file that a scan found.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// The scope of the file.
    pub scope: AgentScope,
    /// The scanned directory: only a `drafts` folder below it makes a file a draft.
    pub root: PathBuf,
    /// The file.
    pub path: PathBuf,
    /// The content that was read.
    pub content: ScannedContent,
}

/// The content of a file, as a scan read it.
#[derive(Debug, Clone)]
pub enum ScannedContent {
    /// The whole content.
    Bytes(Vec<u8>),
    /// Not read, because the file is longer than [`FileKind::max_bytes`]; holds the length in bytes.
    TooLarge(u64),
    /// Not readable, for this reason.
    Unreadable(String),
    /// Not used, because the file changed since the installation.
    Altered,
}

/// One agent, team or skill of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogEntry<D = AgentDefinition> {
    /// The id, scope included.
    pub id: AgentId,
    /// The definition in its file.
    pub definition: D,
    /// Warnings and notes about the file.
    pub diagnostics: Vec<Diagnostic>,
}

/// A file that is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedFile {
    /// The scope of the file.
    pub scope: AgentScope,
    /// The file.
    pub path: PathBuf,
    /// The reason.
    pub reason: SkipReason,
}

/// Why a file is unused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkipReason {
    /// The file is invalid.
    Invalid(Vec<Diagnostic>),
    /// An entry with the same name was read before, from this file.
    Duplicate(PathBuf),
    /// The file is below a `drafts` folder.
    Quarantined,
    /// The file is not an agent file, for example a `README.md`.
    NotAnAgent(NotAnAgent),
}

/// All agents (or teams, or skills), in order: home, workspace, libraries by name; within each by path.
/// Libraries are last, so that a shortened list loses library agents first.
#[derive(Debug, Clone)]
pub struct Catalog<D = AgentDefinition> {
    entries: Vec<CatalogEntry<D>>,
    skipped: Vec<SkippedFile>,
    diagnostics: Vec<Diagnostic>,
    index: CatalogIndex,
}

/// No agent (or team, or skill) has the name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotFound {
    /// The kind of file that was searched for.
    pub kind: &'static FileKind,
    /// The requested name, escaped for display.
    pub name: String,
    /// Agents with similar names, or, for an ambiguous name, all of them.
    pub suggestions: Vec<String>,
    /// Whether several agents have the name.
    pub ambiguous: bool,
    /// An invalid file that may define the agent.
    pub broken: Option<PathBuf>,
}

impl std::error::Error for NotFound {}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FileKind { noun, folder, .. } = self.kind;
        if self.ambiguous {
            write!(f, "several {folder} are called `{}`", self.name)?;
        } else {
            write!(f, "no {noun} is called `{}`", self.name)?;
        }
        let names: Vec<&str> = self.suggestions.iter().map(String::as_str).collect();
        match (&self.broken, names.as_slice()) {
            (Some(path), _) => {
                let path = path.to_string_lossy();
                write!(
                    f,
                    "\n  hint: `{}` could not be understood; see `belljar {folder} check`",
                    ShownText::new(&path)
                )
            }
            (None, []) => write!(f, "\n  hint: `belljar {folder} list` shows all"),
            (None, names) if self.ambiguous => {
                write!(f, "\n  hint: write one of `{}`", names.join("`, `"))
            }
            (None, names) => write!(f, "\n  hint: did you mean `{}`?", names.join("`, `")),
        }
    }
}

impl<D> Default for Catalog<D> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            skipped: Vec::new(),
            diagnostics: Vec::new(),
            index: CatalogIndex::default(),
        }
    }
}

impl Catalog {
    /// Builds the catalogue of agents from these files; see [`Catalog::from_files`].
    pub fn from_agent_files(
        files: Vec<SourceFile>,
        context: impl Into<AgentContext>,
        project_override: bool,
    ) -> Self {
        Self::from_files(files, &context.into(), project_override)
    }

    /// The used agents.
    pub fn agents(&self) -> &[CatalogEntry] {
        &self.entries
    }
}

impl SourceFile {
    /// The path relative to the scanned directory.
    fn path_below_root(&self) -> &Path {
        self.path.strip_prefix(&self.root).unwrap_or(&self.path)
    }
}

/// Names of folders for copies and old files, which do not displace other files of the same name.
const SET_ASIDE: &[&str] = &[
    "archive",
    "archived",
    "archives",
    "backup",
    "backups",
    "bak",
    "deprecated",
    "legacy",
    "obsolete",
    "old",
    "unused",
];

/// Whether a file lies in a folder of copies, for example `backup/scout.md` or `agents.old/scout.md`.
fn is_set_aside(below: &Path) -> bool {
    let folders = below.parent().into_iter().flat_map(Path::components);
    let mut words = folders.filter_map(|folder| folder.as_os_str().to_str()).flat_map(|folder| {
        folder.split(['.', '-', '_', ' ']).map(str::to_ascii_lowercase).collect::<Vec<_>>()
    });
    words.any(|word| SET_ASIDE.contains(&word.as_str()))
}

impl<D: CatalogItem> Catalog<D> {
    /// Sorts and parses the files. With `project_override`, a workspace's entry replaces the home's entry of
    /// the same name; without, the workspace's file is reported and skipped.
    pub fn from_files(
        files: Vec<SourceFile>,
        context: &D::Context,
        project_override: bool,
    ) -> Self {
        Self::read_while(files, context, project_override, || true).unwrap_or_default()
    }

    /// Builds a catalogue like [`Catalog::from_files`], but stops with `None` once `goes_on` returns false; it is
    /// called before each file.
    pub fn read_while(
        mut files: Vec<SourceFile>,
        context: &D::Context,
        project_override: bool,
        mut goes_on: impl FnMut() -> bool,
    ) -> Option<Self> {
        files.retain(|file| D::accepts_path(file.path_below_root()));
        files.sort_by(|a, b| {
            let rank = |file: &SourceFile| matches!(file.scope, AgentScope::Library(_));
            let aside = |file: &SourceFile| is_set_aside(file.path_below_root());
            (rank(a), &a.scope, aside(a), &a.path).cmp(&(rank(b), &b.scope, aside(b), &b.path))
        });
        let mut builder =
            CatalogBuilder { catalog: Self::default(), taken: BTreeMap::new(), project_override };
        for file in files {
            if !goes_on() {
                return None;
            }
            builder.add_file(file, context);
        }
        let mut catalog = builder.catalog;
        catalog.index = CatalogIndex::from_entries(&catalog.entries, &catalog.skipped);
        Some(catalog)
    }

    /// All used entries.
    pub fn entries(&self) -> &[CatalogEntry<D>] {
        &self.entries
    }

    /// The unused files, documentation included.
    pub fn skipped_files(&self) -> &[SkippedFile] {
        &self.skipped
    }

    /// All findings for a person: errors of the skipped files, then warnings and notes of the agents. The
    /// note that an agent has the default tools is left out, because most agents of some libraries would
    /// repeat it.
    pub fn diagnostics(&self) -> impl Iterator<Item = &Diagnostic> {
        let own = self.entries.iter().flat_map(|entry| &entry.diagnostics);
        self.diagnostics.iter().chain(own.filter(|found| found.code != NO_TOOLS))
    }

    /// The agent with this identity.
    pub fn get(&self, id: &AgentId) -> Option<&CatalogEntry<D>> {
        self.entries_named(&id.slug).find(|entry| entry.id == *id)
    }

    /// The entries with this name, in the catalogue's order.
    pub(crate) fn entries_named(&self, slug: &Slug) -> impl Iterator<Item = &CatalogEntry<D>> {
        let places = self.index.entries.get(slug).into_iter().flatten();
        places.filter_map(|place| self.entries.get(*place))
    }

    /// The entry for a name without a scope: the home's, else the workspace's, else the only library's. A
    /// library's entry is refused if a broken file may define the name, because a stranger's agent must not
    /// replace the operator's broken one.
    pub fn find_unscoped(&self, slug: &Slug) -> Option<&CatalogEntry<D>> {
        let mut libraries = Vec::new();
        let mut workspace = None;
        for entry in self.entries_named(slug) {
            match entry.id.scope {
                AgentScope::Home => return Some(entry),
                AgentScope::Workspace(_) => workspace = workspace.or(Some(entry)),
                AgentScope::Library(_) => libraries.push(entry),
            }
        }
        workspace.or_else(|| match libraries.as_slice() {
            [only] if self.broken_file(slug).is_none() => Some(*only),
            _ => None,
        })
    }

    /// The agent with this id or name; for a name without a scope see [`Catalog::find_unscoped`].
    pub fn find_by_name(&self, name: &str) -> Result<&CatalogEntry<D>, NotFound> {
        if name.contains('/')
            && let Ok(id) = name.parse::<AgentId>()
            && let Some(entry) = self.get(&id)
        {
            return Ok(entry);
        }
        let (own_workspace, bare) = match name.strip_prefix("workspace/") {
            Some(rest) => (true, rest),
            None => (false, name),
        };
        let slug = Slug::from_name(bare);
        let found: Vec<_> = slug.iter().flat_map(|slug| self.entries_named(slug)).collect();
        if let Some(entry) = self.find_in_plugin(name, &found) {
            return Ok(entry);
        }
        let meant = match own_workspace {
            true => {
                found.iter().copied().find(|it| matches!(it.id.scope, AgentScope::Workspace(_)))
            }
            false => {
                // `pilot:scout` is never a library's `pilot-scout`.
                let is_meant = |it: &&CatalogEntry<D>| {
                    !name.contains(':') || !matches!(it.id.scope, AgentScope::Library(_))
                };
                slug.as_ref().and_then(|slug| self.find_unscoped(slug)).filter(is_meant)
            }
        };
        if let Some(entry) = meant {
            return Ok(entry);
        }
        match found.as_slice() {
            [] => Err(self.not_found(name, slug.as_ref())),
            // A single library entry is refused in favour of a broken file of that name.
            [_] if !own_workspace => Err(self.not_found(name, slug.as_ref())),
            several => Err(NotFound {
                kind: D::KIND,
                name: ShownText::clip_line(name, 100).to_string(),
                suggestions: several.iter().map(|entry| entry.id.to_string()).collect(),
                ambiguous: true,
                broken: None,
            }),
        }
    }

    /// The only entry with this name in its plugin, `PLUGIN:NAME`, unless an entry of the home or the
    /// workspace (in `own`) has the name: a stranger's plugin never replaces the operator's own.
    fn find_in_plugin(&self, name: &str, own: &[&CatalogEntry<D>]) -> Option<&CatalogEntry<D>> {
        let is_library = |it: &CatalogEntry<D>| matches!(it.id.scope, AgentScope::Library(_));
        if !name.contains(':') || own.iter().any(|entry| !is_library(entry)) {
            return None;
        }
        let (_, bare) = name.split_once(':')?;
        let slug = Slug::from_written(bare)?;
        let mut found = self.entries_named(&slug).filter(|entry| entry.id.has_plugin_name(name));
        match (found.next(), found.next()) {
            (Some(only), None) => Some(only),
            _ => None,
        }
    }

    /// Whether a library of this name has any file here, used or not.
    pub(crate) fn has_library(&self, name: &str) -> bool {
        self.index.libraries.contains(name)
    }

    /// The library with the most similar name.
    pub(crate) fn library_like(&self, name: &str) -> Option<&str> {
        let libraries = self.index.libraries.iter().map(String::as_str);
        suggest::find_nearest(name, libraries)
    }

    /// The error for a name that no entry has: similar names, and a broken file that may define it.
    fn not_found(&self, name: &str, slug: Option<&Slug>) -> NotFound {
        let slugs = self.entries.iter().map(|entry| entry.id.slug.as_str());
        // A file that was classified as no agent may still be meant as one.
        let broken = slug.and_then(|slug| {
            let none = |skipped: &&SkippedFile| {
                matches!(skipped.reason, SkipReason::NotAnAgent(_))
                    && Self::path_has_slug(&skipped.path, slug)
            };
            self.broken_file(slug).or_else(|| self.skipped.iter().find(none))
        });
        // An id is compared by its last part, and the suggestions are ids.
        let (scoped, last) = match name.rsplit_once('/') {
            Some((_, last)) => (true, last),
            None => (false, name),
        };
        let called = |slug: &str| {
            let named = self.entries.iter().filter(|entry| entry.id.slug.as_str() == slug);
            named.map(|entry| entry.id.grant_key()).collect::<Vec<_>>()
        };
        let near = suggest::rank_similar(last, slugs).into_iter();
        let mut suggestions: Vec<_> = near
            .flat_map(|slug| if scoped { called(slug) } else { vec![slug.to_owned()] })
            .collect();
        suggestions.dedup();
        suggestions.truncate(MAX_SUGGESTIONS);
        NotFound {
            kind: D::KIND,
            name: ShownText::clip_line(name, 100).to_string(),
            suggestions,
            ambiguous: false,
            broken: broken.map(|skipped| skipped.path.clone()),
        }
    }
}

impl<D: CatalogItem> Catalog<D> {
    /// Whether the path of an unused file (a draft, a broken file, a duplicate) would give this name.
    pub(crate) fn has_unused(&self, slug: &Slug) -> bool {
        self.index.unused.contains(slug)
    }

    /// The id for this name in the home, and the home's entry; `None` = no file of the home describes the
    /// agent.
    ///
    /// # Errors
    ///
    /// The name is invalid, or a broken file of the home has the name: such a file may grant less than no
    /// file.
    pub fn home_entry(&self, name: &str) -> Result<(AgentId, Option<&CatalogEntry<D>>), NotFound> {
        let Some(slug) = Slug::from_written(name) else { return Err(self.not_found(name, None)) };
        let id = AgentId { scope: AgentScope::Home, slug };
        let entry = self.get(&id);
        // A file without the form of an agent may still be meant as one.
        let broken = self.skipped.iter().find(|skipped| {
            let unread =
                matches!(skipped.reason, SkipReason::Invalid(_) | SkipReason::NotAnAgent(_));
            unread
                && skipped.scope == AgentScope::Home
                && Self::path_has_slug(&skipped.path, &id.slug)
        });
        match (entry, broken) {
            (None, Some(skipped)) => {
                let broken = Some(skipped.path.clone());
                Err(NotFound { broken, ..self.not_found(name, Some(&id.slug)) })
            }
            (entry, _) => Ok((id, entry)),
        }
    }

    /// An invalid file whose path yields this name.
    fn broken_file(&self, slug: &Slug) -> Option<&SkippedFile> {
        self.index.broken.get(slug).and_then(|place| self.skipped.get(*place))
    }

    fn path_has_slug(path: &Path, slug: &Slug) -> bool {
        D::name_of_path(path).and_then(|stem| Slug::from_name(&stem)).as_ref() == Some(slug)
    }
}

struct CatalogBuilder<D> {
    catalog: Catalog<D>,
    /// For each id in use, the index of its entry.
    taken: BTreeMap<AgentId, usize>,
    project_override: bool,
}

impl<D: CatalogItem> CatalogBuilder<D> {
    /// Parses a file and adds its entry, or the reason why it is not used.
    fn add_file(&mut self, file: SourceFile, context: &D::Context) {
        let folders = file.path_below_root().parent().into_iter().flat_map(Path::components);
        let draft =
            folders.into_iter().any(|part| part.as_os_str().eq_ignore_ascii_case(QUARANTINE));
        let SourceFile { scope, root: _, path, content } = file;
        if draft {
            return self.skip_file(scope, path, SkipReason::Quarantined);
        }
        let read = match content {
            ScannedContent::Bytes(bytes) => D::read_file(&path, &bytes, context),
            ScannedContent::TooLarge(length) => {
                FileRead::Invalid { diagnostics: D::too_large(&path, length) }
            }
            ScannedContent::Unreadable(why) => {
                let mut findings = FileFindings::new(&path);
                let message =
                    format!("the file cannot be read: {}", ShownText::clip_line(&why, 200));
                findings.error(FilePosition::default(), "unreadable", message);
                FileRead::Invalid { diagnostics: findings.into_diagnostics() }
            }
            ScannedContent::Altered => {
                FileRead::Invalid { diagnostics: altered_file_diagnostics(&scope, &path) }
            }
        };
        let read = if scope.is_own() { D::in_own_home(read) } else { read };
        match read {
            FileRead::Item { item, diagnostics } => {
                let id = AgentId { scope, slug: item.slug().clone() };
                self.insert_entry(CatalogEntry { id, definition: item, diagnostics });
            }
            FileRead::Invalid { diagnostics } => {
                self.catalog.diagnostics.extend(diagnostics.iter().cloned());
                self.skip_file(scope, path, SkipReason::Invalid(diagnostics));
            }
            FileRead::Other { reason } => {
                if !reason.is_silent() {
                    let message = format!("not {}: {}", D::KIND.a_noun, reason.as_str());
                    self.add_diagnostic(&path, Severity::Note, "not-an-agent", message, None);
                }
                self.skip_file(scope, path, SkipReason::NotAnAgent(reason));
            }
        }
    }

    /// Adds an entry, unless its name is in use. A workspace's entry may replace the home's entry.
    fn insert_entry(&mut self, entry: CatalogEntry<D>) {
        if let Some(first) = self.taken.get(&entry.id) {
            return self.refuse_duplicate(*first, entry, "rename one of them");
        }
        let home = AgentId::in_home(entry.id.slug.clone());
        let in_workspace = matches!(entry.id.scope, AgentScope::Workspace(_));
        if let Some(first) = self.taken.get(&home).copied().filter(|_| in_workspace) {
            if !self.project_override {
                let hint = "rename it, or set `project_override = true` in `belljar.toml` at home";
                return self.refuse_duplicate(first, entry, hint);
            }
            return self.replace_home_entry(first, home, entry);
        }
        self.taken.insert(entry.id.clone(), self.catalog.entries.len());
        self.catalog.entries.push(entry);
    }

    /// Reports a later file whose name is in use already.
    fn refuse_duplicate(&mut self, first: usize, entry: CatalogEntry<D>, hint: &str) {
        let Some(taken) = self.catalog.entries.get(first) else { return };
        let other = taken.definition.path().to_path_buf();
        let message = format!(
            "{} `{}` is skipped: `{}` already has that name",
            D::KIND.noun,
            ShownText::new(entry.definition.name()),
            ShownText::new(&other.to_string_lossy())
        );
        let path = entry.definition.path().to_path_buf();
        self.add_diagnostic(
            &path,
            Severity::Error,
            "duplicate-name",
            message,
            Some(hint.to_owned()),
        );
        self.skip_file(entry.id.scope, path, SkipReason::Duplicate(other));
    }

    /// Replaces the home's entry of a name by the workspace's.
    fn replace_home_entry(&mut self, first: usize, home: AgentId, entry: CatalogEntry<D>) {
        let path = entry.definition.path().to_path_buf();
        self.taken.remove(&home);
        self.taken.insert(entry.id.clone(), first);
        let Some(slot) = self.catalog.entries.get_mut(first) else { return };
        let old = std::mem::replace(slot, entry);
        let message = format!(
            "{} `{}` takes the place of `{}`, because `project_override` is set",
            D::KIND.noun,
            slot.id,
            ShownText::new(&old.definition.path().to_string_lossy())
        );
        let gone = old.definition.path().to_path_buf();
        self.add_diagnostic(&path, Severity::Note, "project-override", message, None);
        self.skip_file(old.id.scope, gone, SkipReason::Duplicate(path));
    }

    /// Adds a finding about a file as a whole.
    fn add_diagnostic(
        &mut self,
        path: &Path,
        severity: Severity,
        code: &'static str,
        message: String,
        hint: Option<String>,
    ) {
        let mut findings = FileFindings::new(path);
        findings.add_finding(severity, FilePosition::default(), code, message, hint);
        self.catalog.diagnostics.extend(findings.into_diagnostics());
    }

    fn skip_file(&mut self, scope: AgentScope, path: PathBuf, reason: SkipReason) {
        self.catalog.skipped.push(SkippedFile { scope, path, reason });
    }
}

/// The finding about a library's file that changed since its installation.
fn altered_file_diagnostics(scope: &AgentScope, path: &Path) -> Vec<Diagnostic> {
    let mut findings = FileFindings::new(path);
    let message = "the file is not the one that was installed, so it is not used";
    let hint = match scope {
        AgentScope::Library(name) => format!(
            "find out who changed it; `belljar agents update {name}` puts it right from its \
             source, `belljar agents remove {name}` takes the library away"
        ),
        AgentScope::Home | AgentScope::Workspace(_) => "find out who changed it".to_owned(),
    };
    findings.error_hint(FilePosition::default(), "altered", message, hint);
    findings.into_diagnostics()
}
