//! The agents of a home and a workspace: finds their files, reads those that changed, and
//! keeps the catalogue made from them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use belljar_definition::{AgentId, Diagnostic, KnownTools, Scope, Severity, Slug};
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
        let catalog = Arc::new(Catalog::build(Vec::new(), &known, project_override));
        let state = State { files: BTreeMap::new(), problems: Vec::new(), catalog };
        let state = Mutex::new(state);
        let library = Self { roots, stock: Vec::new(), known, project_override, state };
        library.refresh();
        library
    }

    /// Adds agents that come with the program, as if they lay in the home. One stands back
    /// where the home has an agent or a file of its name; a broken file counts too, so that a
    /// broken edit is not covered up.
    #[must_use]
    pub fn with_stock(mut self, stock: Vec<SourceFile>) -> Self {
        self.stock = stock;
        let sources = self.state().files.values().map(|file| file.source.clone()).collect();
        let catalog = Arc::new(self.build(sources));
        self.state().catalog = catalog;
        self
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
        if !stale {
            return Vec::new();
        }
        let sources = state.files.values().map(|file| file.source.clone()).collect();
        let catalog = Arc::new(self.build(sources));
        let changes = changes(&state.catalog, &catalog);
        state.catalog = catalog;
        changes
    }

    fn build(&self, sources: Vec<SourceFile>) -> Catalog {
        let build = |sources| Catalog::build(sources, &self.known, self.project_override);
        if self.stock.is_empty() {
            return build(sources);
        }
        let found = build(sources.clone());
        let home = |file: &&SourceFile| file.scope == Scope::Home;
        let stems: BTreeSet<&OsStr> =
            sources.iter().filter(home).filter_map(|file| file.path.file_stem()).collect();
        let is_missing = |file: &&SourceFile| {
            let Some(stem) = file.path.file_stem() else { return false };
            let slug = stem.to_str().and_then(Slug::of);
            let there = slug.is_some_and(|slug| found.get(&AgentId::home(slug)).is_some());
            !there && !stems.contains(stem)
        };
        let missing: Vec<SourceFile> = self.stock.iter().filter(is_missing).cloned().collect();
        if missing.is_empty() {
            return found;
        }
        build(sources.into_iter().chain(missing).collect())
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
