//! The agents of a home and a workspace: finds their files, reads those that changed, and
//! keeps the catalogue made from them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use belljar_definition::{AgentId, Diagnostic, KnownTools, Scope, Severity};
use belljar_definition::{Catalog, SourceFile};

use crate::scan::{self, Fingerprint, Found};

/// One directory of agent files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Whose agents they are.
    pub scope: Scope,
    /// The directory; it may be missing.
    pub dir: PathBuf,
}

/// The agents that exist, kept up to date with their files.
#[derive(Debug)]
pub struct Library {
    roots: Vec<Root>,
    stock: Vec<SourceFile>,
    known: KnownTools,
    project_override: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    files: BTreeMap<(usize, PathBuf), File>,
    problems: Vec<Diagnostic>,
    catalog: Arc<Catalog>,
}

#[derive(Debug, Clone)]
struct File {
    fingerprint: Option<Fingerprint>,
    source: SourceFile,
}

/// What became of an agent when its file was edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It is new.
    Added(AgentId),
    /// Its definition is another one now.
    Changed(AgentId),
    /// It is gone. The diagnostics say why, where its file is still there and broken.
    Removed(AgentId, Vec<Diagnostic>),
}

impl Root {
    /// `<home>/agents`.
    pub fn home(home: &std::path::Path) -> Self {
        Self { scope: Scope::Home, dir: home.join("agents") }
    }

    /// `<workspace>/.belljar/agents`; the workspace's path is canonical.
    pub fn workspace(workspace: &std::path::Path) -> Self {
        let dir = workspace.join(".belljar").join("agents");
        Self { scope: Scope::Workspace(workspace.to_owned()), dir }
    }
}

impl Library {
    /// Reads all files below the roots, which come in the order of precedence: home, then
    /// workspace.
    pub fn open(roots: Vec<Root>, known: KnownTools, project_override: bool) -> Self {
        Self::open_with_stock(roots, Vec::new(), known, project_override)
    }

    /// As [`Library::open`], with agents that come with the program, as if they lay in the
    /// home. One stands back where the home has an agent or a file of its name; a broken file
    /// counts too, so that a broken edit is not covered up.
    pub fn open_with_stock(
        roots: Vec<Root>,
        stock: Vec<SourceFile>,
        known: KnownTools,
        project_override: bool,
    ) -> Self {
        let catalog = Arc::new(Catalog::default());
        let state = State { files: BTreeMap::new(), problems: Vec::new(), catalog };
        let library = Self { roots, stock, known, project_override, state: Mutex::new(state) };
        let catalog = {
            let mut state = library.state();
            library.scan(&mut state);
            library.build(&state)
        };
        library.state().catalog = Arc::new(catalog);
        library
    }

    /// The agents as of the last refresh.
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.state().catalog)
    }

    /// What is wrong with files and directories, the catalogue's findings included.
    pub fn problems(&self) -> Vec<Diagnostic> {
        let state = self.state();
        let mut all = state.problems.clone();
        all.extend(state.catalog.diagnostics().cloned());
        all
    }

    /// Looks at the files again and reads those whose size, times or inode changed. Says what
    /// became of which agent; a removal through a broken edit is also logged as a warning.
    pub fn refresh(&self) -> Vec<Change> {
        let mut state = self.state();
        if !self.scan(&mut state) {
            return Vec::new();
        }
        let catalog = Arc::new(self.build(&state));
        let changes = changes(&state.catalog, &catalog);
        state.catalog = catalog;
        changes
    }

    /// Brings the files up to date; whether there is any difference.
    fn scan(&self, state: &mut State) -> bool {
        let (mut files, mut problems, mut stale) = (BTreeMap::new(), Vec::new(), false);
        for (index, root) in self.roots.iter().enumerate() {
            for Found { path, fingerprint } in scan::find(root, &mut problems) {
                let key = (index, path);
                let known = state.files.remove(&key);
                let file = match known {
                    Some(file) if fingerprint.is_some() && file.fingerprint == fingerprint => file,
                    Some(_) | None => {
                        stale = true;
                        File { fingerprint, source: scan::read(root, &key.1) }
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

    /// The catalogue of the files and of those stock agents that nothing stands in for. A
    /// home agent that goes by a stock agent's name under another file name shows up as a
    /// duplicate; the catalogue is then made once more, without that stock agent.
    fn build(&self, state: &State) -> Catalog {
        let sources = || state.files.values().map(|file| &file.source);
        let build = |stock: &[&SourceFile]| {
            let mut all: Vec<SourceFile> = sources().cloned().collect();
            all.extend(stock.iter().map(|file| (*file).clone()));
            Catalog::build(all, &self.known, self.project_override)
        };
        let home = sources().filter(|file| file.scope == Scope::Home);
        let stems: BTreeSet<&OsStr> = home.filter_map(|file| file.path.file_stem()).collect();
        let free = |file: &&SourceFile| file.path.file_stem().is_some_and(|s| !stems.contains(s));
        let mut stock: Vec<&SourceFile> = self.stock.iter().filter(free).collect();
        let catalog = build(&stock);
        let before = stock.len();
        stock.retain(|file| {
            let skipped = catalog.skipped().iter();
            !skipped.into_iter().any(|skipped| skipped.path == file.path)
        });
        if stock.len() == before { catalog } else { build(&stock) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic while the lock is held leaves an older catalogue, or files to read again.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn changes(before: &Catalog, after: &Catalog) -> Vec<Change> {
    let ids: BTreeSet<&AgentId> =
        before.agents().iter().chain(after.agents()).map(|agent| &agent.id).collect();
    let mut changes = Vec::new();
    for id in ids {
        match (before.get(id), after.get(id)) {
            (None, Some(_)) => changes.push(Change::Added(id.clone())),
            (Some(old), Some(new)) if old.definition != new.definition => {
                changes.push(Change::Changed(id.clone()));
            }
            (Some(old), None) => {
                let path = &old.definition.path;
                let why: Vec<Diagnostic> = after
                    .diagnostics()
                    .filter(|found| found.path == *path && found.severity == Severity::Error)
                    .cloned()
                    .collect();
                for found in &why {
                    tracing::warn!(agent = %id, "an edit broke an agent: {found}");
                }
                changes.push(Change::Removed(id.clone(), why));
            }
            (Some(_), Some(_)) | (None, None) => {}
        }
    }
    changes
}
