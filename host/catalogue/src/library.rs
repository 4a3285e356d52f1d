//! The agents, teams or skills of a home and a workspace: finds files, reads changed ones, and keeps the
//! resulting catalogue.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use belljar_definition::{
    AgentContext, AgentDefinition, AgentId, Catalog, Diagnostic, Filed, MAX_DEFINITION, Scope,
    Severity, Skill, Slug, SourceFile, TeamDefinition,
};
use belljar_sandbox::Digest;

use crate::scan::{self, Fingerprint, Found};
use crate::tool_files::{ReadError, read_bounded};

/// The teams that exist.
pub type TeamLibrary = Library<TeamDefinition>;

/// The skills that exist.
pub type SkillLibrary = Library<Skill>;

/// The library of agents edited through the service, with ids like `library/api/SLUG`. No installed library
/// may have this name.
pub const API_LIBRARY: &str = "api";

/// One directory of agent files, or of teams or skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// The scope of the files.
    pub scope: Scope,
    /// The directory; it may be missing.
    pub dir: PathBuf,
    /// The only files to read, by path below the directory, each only with its digest: a person agreed to
    /// these at the installation. `None` = all files.
    pub pinned: Option<Arc<BTreeMap<PathBuf, Digest>>>,
    /// Of an installed library: where it came from, and the commit.
    pub source: Option<(String, Option<String>)>,
}

/// How files are, compared with what was agreed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pin {
    /// As they were.
    Whole,
    /// Some file says something else: it is not used.
    Changed,
    /// Some file is not there.
    Missing,
}

impl Pin {
    /// How these files below a directory are.
    pub fn of(files: &BTreeMap<PathBuf, Digest>, dir: &Path) -> Self {
        let mut state = Self::Whole;
        for (below, digest) in files {
            match read_bounded(&dir.join(below), MAX_DEFINITION as u64) {
                Ok(bytes) if Digest::of(&bytes) == *digest => {}
                Err(ReadError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                    return Self::Missing;
                }
                Ok(_) | Err(_) => state = Self::Changed,
            }
        }
        state
    }

    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Whole => "ok",
            Self::Changed => "changed on disk",
            Self::Missing => "files are missing",
        }
    }
}

/// The existing agents (or teams, or skills), kept up to date with their files.
pub struct Library<D: Filed = AgentDefinition> {
    roots: Vec<Root>,
    stock: Vec<SourceFile>,
    context: D::Context,
    project_override: bool,
    state: Mutex<State<D>>,
}

struct State<D> {
    files: BTreeMap<(usize, PathBuf), File>,
    /// Texts outside of files.
    others: Vec<SourceFile>,
    problems: Vec<Diagnostic>,
    catalog: Arc<Catalog<D>>,
}

#[derive(Debug, Clone)]
struct File {
    fingerprint: Option<Fingerprint>,
    source: SourceFile,
}

/// The effect of an edited file on an agent, a team or a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LibraryChange {
    /// It is new.
    Added(AgentId),
    /// The definition has changed.
    Changed(AgentId),
    /// Removed. The diagnostics have the reason if the file is broken, for example by an edit.
    Removed(AgentId, Vec<Diagnostic>),
}

impl Root {
    /// `<home>/agents`.
    pub fn home(home: &Path) -> Self {
        Self::in_home::<AgentDefinition>(home)
    }

    /// `<workspace>/.belljar/agents`; the workspace's path is canonical.
    pub fn workspace(workspace: &Path) -> Self {
        Self::in_workspace::<AgentDefinition>(workspace)
    }

    /// The home's folder of this kind.
    pub fn in_home<D: Filed>(home: &Path) -> Self {
        let dir = home.join(D::KIND.folder);
        Self { scope: Scope::Home, dir, pinned: None, source: None }
    }

    /// The workspace's folder of this kind; the workspace's path is canonical.
    pub fn in_workspace<D: Filed>(workspace: &Path) -> Self {
        let dir = workspace.join(".belljar").join(D::KIND.folder);
        Self { scope: Scope::Workspace(workspace.to_owned()), dir, pinned: None, source: None }
    }

    /// An installed library: these files below `dir`, each only with its digest.
    pub fn installed(name: &Slug, dir: PathBuf, files: BTreeMap<PathBuf, Digest>) -> Self {
        let scope = Scope::Library(name.to_string());
        Self { scope, dir, pinned: Some(Arc::new(files)), source: None }
    }

    /// The same, with where it came from.
    #[must_use]
    pub fn from_source(self, source: String, revision: Option<String>) -> Self {
        Self { source: Some((source, revision)), ..self }
    }

    /// The state of the files, if pinned.
    pub fn state(&self) -> Pin {
        self.pinned.as_ref().map_or(Pin::Whole, |files| Pin::of(files, &self.dir))
    }
}

impl Library {
    /// Reads all agent files below the roots; see [`Library::of`].
    pub fn open(
        roots: Vec<Root>,
        context: impl Into<AgentContext>,
        project_override: bool,
    ) -> Self {
        Self::of(roots, Vec::new(), context.into(), project_override)
    }

    /// As [`Library::open`], with agents that come with the program; see [`Library::of`].
    pub fn open_with_stock(
        roots: Vec<Root>,
        stock: Vec<SourceFile>,
        context: impl Into<AgentContext>,
        project_override: bool,
    ) -> Self {
        Self::of(roots, stock, context.into(), project_override)
    }
}

impl<D: Filed + PartialEq> Library<D> {
    /// Reads all files below the roots, in the order of precedence: home, then workspace. `stock` comes with
    /// the program, as if in the home. A stock file is hidden by a file of the same name in the home, even by
    /// a broken one, so that a broken edit is not covered up.
    pub fn of(
        roots: Vec<Root>,
        stock: Vec<SourceFile>,
        context: D::Context,
        project_override: bool,
    ) -> Self {
        let catalog = Arc::new(Catalog::default());
        let state =
            State { files: BTreeMap::new(), others: Vec::new(), problems: Vec::new(), catalog };
        let library = Self { roots, stock, context, project_override, state: Mutex::new(state) };
        let catalog = {
            let mut state = library.state();
            library.scan(&mut state);
            library.build(&state)
        };
        library.state().catalog = Arc::new(catalog);
        library
    }

    /// The directories of the library.
    pub fn roots(&self) -> &[Root] {
        &self.roots
    }

    /// The catalogue as of the last refresh.
    pub fn catalog(&self) -> Arc<Catalog<D>> {
        Arc::clone(&self.state().catalog)
    }

    /// Faults of files and directories, the catalogue's findings included.
    pub fn problems(&self) -> Vec<Diagnostic> {
        let state = self.state();
        let mut all = state.problems.clone();
        all.extend(state.catalog.diagnostics().cloned());
        all
    }

    /// Checks the files and reads those whose size, times or inode changed. Returns the changes; a removal
    /// through a broken edit is also logged as a warning.
    pub fn refresh(&self) -> Vec<LibraryChange> {
        let mut state = self.state();
        if !self.scan(&mut state) {
            return Vec::new();
        }
        let catalog = Arc::new(self.build(&state));
        let changes = changes(&state.catalog, &catalog);
        state.catalog = catalog;
        changes
    }

    /// Sets the texts besides the files, replacing earlier ones. The same rules hold, for example against two
    /// texts of one name in a scope.
    pub fn besides(&self, others: Vec<SourceFile>) -> Vec<LibraryChange> {
        let mut state = self.state();
        self.scan(&mut state);
        state.others = others;
        let catalog = Arc::new(self.build(&state));
        let changes = changes(&state.catalog, &catalog);
        state.catalog = catalog;
        changes
    }

    /// Brings the files up to date; whether there is any difference.
    fn scan(&self, state: &mut State<D>) -> bool {
        let (mut files, mut problems, mut stale) = (BTreeMap::new(), Vec::new(), false);
        for (index, root) in self.roots.iter().enumerate() {
            for Found { path, fingerprint } in scan::find::<D>(root, &mut problems) {
                let key = (index, path);
                let known = state.files.remove(&key);
                let file = match known {
                    Some(file) if fingerprint.is_some() && file.fingerprint == fingerprint => file,
                    Some(_) | None => {
                        stale = true;
                        File { fingerprint, source: scan::read::<D>(root, &key.1) }
                    }
                };
                files.insert(key, file);
            }
        }
        // What is left in the old map is gone from the disk.
        stale |= !state.files.is_empty();
        state.files = files;
        state.problems = problems;
        stale
    }

    /// The catalogue of the files and the unhidden stock ones. A file in the home with a stock file's name
    /// inside, but another file name, shows up as a duplicate; the catalogue is then made again without that
    /// stock file.
    fn build(&self, state: &State<D>) -> Catalog<D> {
        let sources = || state.files.values().map(|file| &file.source).chain(&state.others);
        let build = |stock: &[&SourceFile]| {
            let mut all: Vec<SourceFile> = sources().cloned().collect();
            all.extend(stock.iter().map(|file| (*file).clone()));
            Catalog::of(all, &self.context, self.project_override)
        };
        let home = sources().filter(|file| file.scope == Scope::Home);
        let names: BTreeSet<String> = home.filter_map(|file| D::name_of_path(&file.path)).collect();
        let free = |file: &&SourceFile| {
            D::name_of_path(&file.path).is_some_and(|name| !names.contains(&name))
        };
        let mut stock: Vec<&SourceFile> = self.stock.iter().filter(free).collect();
        let catalog = build(&stock);
        let before = stock.len();
        stock.retain(|file| {
            let skipped = catalog.skipped().iter();
            !skipped.into_iter().any(|skipped| skipped.path == file.path)
        });
        if stock.len() == before { catalog } else { build(&stock) }
    }

    fn state(&self) -> MutexGuard<'_, State<D>> {
        // A panic while the lock is held leaves an older catalogue, or files to read again.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<D: Filed> fmt::Debug for Library<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Library").field("roots", &self.roots).finish_non_exhaustive()
    }
}

fn changes<D: Filed + PartialEq>(before: &Catalog<D>, after: &Catalog<D>) -> Vec<LibraryChange> {
    let ids: BTreeSet<&AgentId> =
        before.entries().iter().chain(after.entries()).map(|entry| &entry.id).collect();
    let mut errors: BTreeMap<&Path, Vec<&Diagnostic>> = BTreeMap::new();
    for found in after.diagnostics().filter(|found| found.severity == Severity::Error) {
        errors.entry(&found.path).or_default().push(found);
    }
    let mut changes = Vec::new();
    for id in ids {
        match (before.get(id), after.get(id)) {
            (None, Some(_)) => changes.push(LibraryChange::Added(id.clone())),
            (Some(old), Some(new)) if old.definition != new.definition => {
                changes.push(LibraryChange::Changed(id.clone()));
            }
            (Some(old), None) => {
                let why = errors.get(old.definition.path()).into_iter().flatten();
                let why: Vec<Diagnostic> = why.map(|found| (*found).clone()).collect();
                for found in &why {
                    tracing::warn!(%id, "an edit broke {}: {found}", D::KIND.a_noun);
                }
                changes.push(LibraryChange::Removed(id.clone(), why));
            }
            (Some(_), Some(_)) | (None, None) => {}
        }
    }
    changes
}
