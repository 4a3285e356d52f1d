//! The agents, teams or skills of a home and a workspace: finds files, reads changed ones, and stores the
//! resulting catalogue. For example, after an edit of `~/.belljar/agents/scout.md`, the next refresh returns
//! a change of `scout`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use belljar_definition::{
    AgentContext, AgentDefinition, AgentId, AgentScope, Catalog, CatalogItem, CommandDefinition,
    Diagnostic, LibraryName, MAX_DEFINITION, Severity, SkillDefinition, SourceFile, TeamDefinition,
};
use belljar_sandbox::Digest;
use belljar_work::{StopSignal, WorkStopped};

use crate::scan::{self, FileFingerprint, FoundFile};
use crate::tool_files::{ReadError, read_bounded};

/// The teams of a home and a workspace.
pub type TeamLibrary = Library<TeamDefinition>;

/// The skills of a home and a workspace.
pub type SkillLibrary = Library<SkillDefinition>;

/// The commands of a home and a workspace.
pub type CommandLibrary = Library<CommandDefinition>;

/// One directory of agent, team or skill files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryRoot {
    /// The scope of the files, for example the home.
    pub scope: AgentScope,
    /// The directory; it may be missing.
    pub dir: PathBuf,
    /// The only files to read, by path below the directory, each with the digest that a person agreed to at
    /// the installation. `None` = all files.
    pub pinned: Option<Arc<BTreeMap<PathBuf, Digest>>>,
    /// The source of an installed library, and the commit.
    pub source: Option<(String, Option<String>)>,
}

/// The state of a library's files, compared with the installed ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PinState {
    /// Unchanged.
    Whole,
    /// At least one file has another content, so it is not used.
    Changed,
    /// At least one file is missing.
    Missing,
}

impl PinState {
    /// Compares these files below a directory with their digests.
    pub fn from_files(files: &BTreeMap<PathBuf, Digest>, dir: &Path) -> Self {
        let mut state = Self::Whole;
        for (below, digest) in files {
            match read_bounded(&dir.join(below), MAX_DEFINITION as u64) {
                Ok(bytes) if Digest::hash_bytes(&bytes) == *digest => {}
                Err(ReadError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                    return Self::Missing;
                }
                Ok(_) | Err(_) => state = Self::Changed,
            }
        }
        state
    }

    /// The state as text for a person.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Whole => "ok",
            Self::Changed => "changed on disk",
            Self::Missing => "files are missing",
        }
    }
}

/// The agents, teams or skills of several directories, refreshed from their files.
pub struct Library<D: CatalogItem = AgentDefinition> {
    roots: Vec<LibraryRoot>,
    stock: Vec<SourceFile>,
    context: D::Context,
    project_override: bool,
    /// The known files; absent while a caller scans, and the next caller waits for the return.
    files: Mutex<Option<KnownFiles>>,
    given_back: Condvar,
    /// Locked only briefly, so that a reader of the catalogue does not wait for a scan.
    shown: Mutex<ShownState<D>>,
}

/// The files at the last scan.
#[derive(Default)]
struct KnownFiles {
    files: BTreeMap<(usize, PathBuf), ScannedFile>,
    problems: Vec<Diagnostic>,
    /// Whether the catalogue lacks changes that were read.
    stale: bool,
}

struct ShownState<D> {
    catalog: Arc<Catalog<D>>,
    problems: Vec<Diagnostic>,
    /// The texts without a file, and whether the catalogue lacks them.
    others: (Vec<SourceFile>, bool),
}

/// The files during a scan, returned when dropped.
struct BorrowedFiles<'a, D: CatalogItem> {
    library: &'a Library<D>,
    known: KnownFiles,
}

/// How often a waiting caller checks the stop signal.
const HEARS: Duration = Duration::from_millis(20);

#[derive(Debug, Clone)]
struct ScannedFile {
    fingerprint: Option<FileFingerprint>,
    source: SourceFile,
}

/// The effect of a changed file on an agent, a team or a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LibraryChange {
    /// A new entry.
    Added(AgentId),
    /// A changed definition.
    Changed(AgentId),
    /// A removed entry. The diagnostics contain the reason if the file is broken, for example by an edit.
    Removed(AgentId, Vec<Diagnostic>),
}

impl LibraryRoot {
    /// `<home>/agents`.
    pub fn for_home(home: &Path) -> Self {
        Self::in_home::<AgentDefinition>(home)
    }

    /// `<workspace>/.belljar/agents`; the workspace's path is canonical.
    pub fn for_workspace(workspace: &Path) -> Self {
        Self::in_workspace::<AgentDefinition>(workspace)
    }

    /// The home's folder for this kind of file.
    pub fn in_home<D: CatalogItem>(home: &Path) -> Self {
        let dir = home.join(D::KIND.folder);
        Self { scope: AgentScope::Home, dir, pinned: None, source: None }
    }

    /// The workspace's folder for this kind of file; the workspace's path is canonical.
    pub fn in_workspace<D: CatalogItem>(workspace: &Path) -> Self {
        let dir = workspace.join(".belljar").join(D::KIND.folder);
        Self { scope: AgentScope::Workspace(workspace.to_owned()), dir, pinned: None, source: None }
    }

    /// An installed library: these files below `dir`, each with its digest.
    pub fn for_installed(
        name: impl Into<LibraryName>,
        dir: PathBuf,
        files: BTreeMap<PathBuf, Digest>,
    ) -> Self {
        let scope = name.into().into_scope();
        Self { scope, dir, pinned: Some(Arc::new(files)), source: None }
    }

    /// The same directory with the library's source, for example a repository's URL, and the revision.
    #[must_use]
    pub fn from_source(self, source: String, revision: Option<String>) -> Self {
        Self { source: Some((source, revision)), ..self }
    }

    /// The state of the files, if pinned.
    pub fn pin_state(&self) -> PinState {
        self.pinned.as_ref().map_or(PinState::Whole, |files| PinState::from_files(files, &self.dir))
    }
}

impl Library {
    /// Reads all agent files below the roots like [`Library::from_roots`], without stock entries.
    pub fn open(
        roots: Vec<LibraryRoot>,
        context: impl Into<AgentContext>,
        project_override: bool,
    ) -> Self {
        Self::from_roots(roots, Vec::new(), context.into(), project_override)
    }

    /// Reads all agent files like [`Library::open`], with agents that are part of the program; see
    /// [`Library::from_roots`].
    pub fn open_with_stock(
        roots: Vec<LibraryRoot>,
        stock: Vec<SourceFile>,
        context: impl Into<AgentContext>,
        project_override: bool,
    ) -> Self {
        Self::from_roots(roots, stock, context.into(), project_override)
    }
}

impl<D: CatalogItem + PartialEq> Library<D> {
    /// Reads all files below the roots, in the order of precedence: home, then workspace. `stock` is part of
    /// the program and counts as files of the home. A file of the same name in the home replaces a stock
    /// file, even if the file is broken, so that the stock file does not conceal a broken edit.
    pub fn from_roots(
        roots: Vec<LibraryRoot>,
        stock: Vec<SourceFile>,
        context: D::Context,
        project_override: bool,
    ) -> Self {
        let shown = ShownState {
            catalog: Arc::new(Catalog::default()),
            problems: Vec::new(),
            others: (Vec::new(), false),
        };
        // Stale from the beginning, because the stock entries belong into the catalogue even
        // without files.
        let known = KnownFiles { stale: true, ..KnownFiles::default() };
        let library = Self {
            roots,
            stock,
            context,
            project_override,
            files: Mutex::new(Some(known)),
            given_back: Condvar::new(),
            shown: Mutex::new(shown),
        };
        library.refresh();
        library
    }

    /// The directories of the library.
    pub fn roots(&self) -> &[LibraryRoot] {
        &self.roots
    }

    /// The catalogue as of the last refresh.
    pub fn catalog(&self) -> Arc<Catalog<D>> {
        Arc::clone(&self.lock_shown().catalog)
    }

    /// Errors of files and directories, and the findings of the catalogue.
    pub fn problems(&self) -> Vec<Diagnostic> {
        let (mut all, catalog) = {
            let shown = self.lock_shown();
            (shown.problems.clone(), Arc::clone(&shown.catalog))
        };
        all.extend(catalog.diagnostics().cloned());
        all
    }

    /// Scans the files, and reads those whose size, times or inode changed. Returns the changes; a removal by
    /// a broken edit is also logged as a warning.
    pub fn refresh(&self) -> Vec<LibraryChange> {
        self.refresh_until(&StopSignal::never_raised()).unwrap_or_default()
    }

    /// Refreshes like [`Library::refresh`], and stops between two files when the signal is raised. The
    /// catalogue is then unchanged, and the next refresh uses the files that were read.
    ///
    /// # Errors
    ///
    /// [`WorkStopped`] once the signal is raised.
    pub fn refresh_until(&self, stop: &StopSignal) -> Result<Vec<LibraryChange>, WorkStopped> {
        let mut looking = self.borrow_files(stop)?;
        self.rescan_files(&mut looking.known, stop)?;
        let (others, before) = {
            let mut shown = self.lock_shown();
            shown.problems.clone_from(&looking.known.problems);
            // The present catalogue lacks these texts.
            looking.known.stale |= std::mem::take(&mut shown.others.1);
            if !looking.known.stale {
                return Ok(Vec::new());
            }
            (shown.others.0.clone(), Arc::clone(&shown.catalog))
        };
        let catalog = Arc::new(self.build_catalog(&looking.known, &others, stop)?);
        let changes = diff_catalogs(&before, &catalog);
        looking.known.stale = false;
        self.lock_shown().catalog = catalog;
        Ok(changes)
    }

    /// Sets the texts without files, replacing earlier ones. The rules for files apply, for example against
    /// two texts with one name in a scope.
    pub fn set_other_texts(&self, others: Vec<SourceFile>) -> Vec<LibraryChange> {
        self.besides_until(others, &StopSignal::never_raised()).unwrap_or_default()
    }

    /// Sets the texts like [`Library::set_other_texts`], and stops like [`Library::refresh_until`]. The next refresh
    /// then includes the texts.
    ///
    /// # Errors
    ///
    /// [`WorkStopped`] once the signal is raised.
    pub fn besides_until(
        &self,
        others: Vec<SourceFile>,
        stop: &StopSignal,
    ) -> Result<Vec<LibraryChange>, WorkStopped> {
        self.lock_shown().others = (others, true);
        self.refresh_until(stop)
    }

    /// Waits until no other caller scans the files.
    fn borrow_files(&self, stop: &StopSignal) -> Result<BorrowedFiles<'_, D>, WorkStopped> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(known) = files.take() {
                return Ok(BorrowedFiles { library: self, known });
            }
            stop.check_raised()?;
            let woken = self.given_back.wait_timeout(files, HEARS);
            files = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Scans the directories and reads the changed files.
    fn rescan_files(&self, known: &mut KnownFiles, stop: &StopSignal) -> Result<(), WorkStopped> {
        let (mut seen, mut problems) = (BTreeMap::new(), Vec::new());
        let ended = self.scan_into(&mut seen, &mut problems, known, stop);
        if ended.is_err() {
            // The files that were not reached stay as they were.
            known.files.append(&mut seen);
            return ended;
        }
        // The rest of the old map are deleted files.
        known.stale |= !known.files.is_empty();
        known.files = seen;
        known.problems = problems;
        Ok(())
    }

    /// Scans every root, and reads the new and changed files into `seen`.
    fn scan_into(
        &self,
        seen: &mut BTreeMap<(usize, PathBuf), ScannedFile>,
        problems: &mut Vec<Diagnostic>,
        known: &mut KnownFiles,
        stop: &StopSignal,
    ) -> Result<(), WorkStopped> {
        for (index, root) in self.roots.iter().enumerate() {
            for FoundFile { path, fingerprint } in scan::find_files::<D>(root, problems, stop)? {
                stop.check_raised()?;
                let key = (index, path);
                let file = match known.files.remove(&key) {
                    Some(file) if fingerprint.is_some() && file.fingerprint == fingerprint => file,
                    Some(_) | None => {
                        known.stale = true;
                        ScannedFile { fingerprint, source: scan::read_source::<D>(root, &key.1) }
                    }
                };
                seen.insert(key, file);
            }
        }
        Ok(())
    }

    /// Builds the catalogue from the files and the stock entries without a replacement. A home's file with
    /// another file name but a stock entry's name appears as a duplicate; the catalogue is then built again
    /// without that stock entry.
    fn build_catalog(
        &self,
        known: &KnownFiles,
        others: &[SourceFile],
        stop: &StopSignal,
    ) -> Result<Catalog<D>, WorkStopped> {
        let sources = || known.files.values().map(|file| &file.source).chain(others);
        let build = |stock: &[&SourceFile]| {
            let mut all: Vec<SourceFile> = sources().cloned().collect();
            all.extend(stock.iter().map(|file| (*file).clone()));
            let goes_on = || !stop.is_raised();
            Catalog::read_while(all, &self.context, self.project_override, goes_on)
                .ok_or(WorkStopped)
        };
        let home = sources().filter(|file| file.scope == AgentScope::Home);
        let names: BTreeSet<String> = home.filter_map(|file| D::name_of_path(&file.path)).collect();
        let free = |file: &&SourceFile| {
            D::name_of_path(&file.path).is_some_and(|name| !names.contains(&name))
        };
        let mut stock: Vec<&SourceFile> = self.stock.iter().filter(free).collect();
        let catalog = build(&stock)?;
        let before = stock.len();
        stock.retain(|file| {
            let skipped = catalog.skipped_files().iter();
            !skipped.into_iter().any(|skipped| skipped.path == file.path)
        });
        if stock.len() == before { Ok(catalog) } else { build(&stock) }
    }

    fn lock_shown(&self) -> MutexGuard<'_, ShownState<D>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<D: CatalogItem> Drop for BorrowedFiles<'_, D> {
    /// Returns the files, also during a panic, so that the files read so far are not read again.
    fn drop(&mut self) {
        let known = std::mem::take(&mut self.known);
        *self.library.files.lock().unwrap_or_else(PoisonError::into_inner) = Some(known);
        self.library.given_back.notify_one();
    }
}

impl<D: CatalogItem> fmt::Debug for Library<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Library").field("roots", &self.roots).finish_non_exhaustive()
    }
}

/// The entries that were added, changed or removed between two catalogues.
fn diff_catalogs<D: CatalogItem + PartialEq>(
    before: &Catalog<D>,
    after: &Catalog<D>,
) -> Vec<LibraryChange> {
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

#[cfg(test)]
mod tests;
