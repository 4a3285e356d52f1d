//! Finds the files of agents, teams or skills below a directory and reads them, within bounds.
//!
//! Links to directories are not followed, so the search cannot loop. A linked file is read in the home,
//! because the operator owns the home; in a workspace, which may be a stranger's, only if its target is
//! inside. `drafts/` and hidden folders are skipped. In an installed library only the agreed files are read,
//! without a search.

use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use belljar_definition::{
    AgentScope, CatalogItem, Diagnostic, FileKind, ScannedContent, Severity, SourceFile,
};
use belljar_sandbox::Digest;
use belljar_work::{StopSignal, WorkStopped};

use crate::library::LibraryRoot;
use crate::limits::{MAX_AGENT_BYTES, MAX_AGENT_DEPTH, MAX_AGENT_FILES, MAX_SCAN_ENTRIES};
use crate::tool_files::{ReadError, read_bounded};

/// The folder whose files are not offered.
pub(crate) const DRAFTS: &str = "drafts";

/// The message for a link that leaves its workspace.
const OUTSIDE: &str = "the link leads out of the workspace";

/// A file of the requested kind.
#[derive(Debug)]
pub(crate) struct FoundFile {
    pub(crate) path: PathBuf,
    /// Shows whether the file has changed since the last scan; `None` = unknown, so the file is read every
    /// time.
    pub(crate) fingerprint: Option<FileFingerprint>,
}

/// The metadata of a file that an edit changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileFingerprint {
    len: u64,
    modified: Option<std::time::SystemTime>,
    /// Inode and change time, on systems that have them. They reveal an edit that keeps the length and resets
    /// the time.
    unix: Option<(u64, i64, i64)>,
}

struct RootWalk<'a> {
    root: &'a LibraryRoot,
    /// Whether a file is of the requested kind, by its path below the root.
    wants: fn(&Path) -> bool,
    found: Vec<FoundFile>,
    entries: usize,
    problems: &'a mut Vec<Diagnostic>,
    stop: &'a StopSignal,
}

/// The files of this kind below the root, ordered by path.
pub(crate) fn find_files<D: CatalogItem>(
    root: &LibraryRoot,
    problems: &mut Vec<Diagnostic>,
    stop: &StopSignal,
) -> Result<Vec<FoundFile>, WorkStopped> {
    if let Some(files) = &root.pinned {
        let wanted = files.keys().filter(|below| D::accepts_path(below) && !D::is_material(below));
        return list_pinned(root, wanted, problems, stop);
    }
    let mut walk =
        RootWalk { root, wants: D::accepts_path, found: Vec::new(), entries: 0, problems, stop };
    if walk.leads_out(&root.dir) {
        walk.record_problem(&root.dir, "link-outside", OUTSIDE.to_owned());
        return Ok(walk.found);
    }
    walk.walk_directory(&root.dir, 0)?;
    walk.found.sort_by(|a, b| a.path.cmp(&b.path));
    if walk.found.len() > MAX_AGENT_FILES {
        walk.found.truncate(MAX_AGENT_FILES);
        let FileKind { noun, .. } = D::KIND;
        let message = format!("more than {MAX_AGENT_FILES} {noun} files; the rest is left out");
        walk.problems.push(Diagnostic::for_file(&root.dir, "too-many", message));
    }
    let kept = within_bytes::<D>(&walk.found);
    if kept < walk.found.len() {
        walk.found.truncate(kept);
        let FileKind { noun, .. } = D::KIND;
        let message = format!(
            "the {noun} files have more than {MAX_AGENT_BYTES} bytes; those behind the first {kept} are left out"
        );
        walk.problems.push(Diagnostic::for_file(&root.dir, "too-many", message));
    }
    Ok(walk.found)
}

/// The number of leading files whose total size is at most [`MAX_AGENT_BYTES`]. A file that is too long for
/// its kind is not read, and does not count.
fn within_bytes<D: CatalogItem>(found: &[FoundFile]) -> usize {
    let longest = u64::try_from(D::KIND.max_bytes).unwrap_or(u64::MAX);
    let mut left = MAX_AGENT_BYTES;
    let fits = |file: &&FoundFile| {
        let length = file.fingerprint.as_ref().map_or(longest, |fingerprint| fingerprint.len);
        let after = left.checked_sub(if length > longest { 0 } else { length });
        left = after.unwrap_or(left);
        after.is_some()
    };
    found.iter().take_while(fits).count()
}

/// Reads one file; the catalogue reports its errors.
pub(crate) fn read_source<D: CatalogItem>(root: &LibraryRoot, path: &Path) -> SourceFile {
    let limit = u64::try_from(D::KIND.max_bytes).unwrap_or(u64::MAX);
    let content = match read_bounded(path, limit) {
        // The digest is checked on the bytes that are parsed, so a later change has no effect.
        Ok(bytes) if is_agreed(root, path, &bytes) => ScannedContent::Bytes(bytes),
        Ok(_) => ScannedContent::Altered,
        Err(ReadError::TooLarge(_)) if root.pinned.is_some() => ScannedContent::Altered,
        Err(ReadError::TooLarge(length)) => ScannedContent::TooLarge(length),
        Err(found) => ScannedContent::Unreadable(found.to_string()),
    };
    let (scope, root) = (root.scope.clone(), root.dir.clone());
    SourceFile { scope, root, path: path.to_owned(), content }
}

/// The existing files of an installed library.
fn list_pinned<'a>(
    root: &LibraryRoot,
    files: impl Iterator<Item = &'a PathBuf>,
    problems: &mut Vec<Diagnostic>,
    stop: &StopSignal,
) -> Result<Vec<FoundFile>, WorkStopped> {
    let (mut found, mut missing) = (Vec::new(), 0_usize);
    for below in files {
        stop.check_raised()?;
        let path = root.dir.join(below);
        match fs::symlink_metadata(&path) {
            Ok(meta) => found
                .push(FoundFile { path, fingerprint: Some(FileFingerprint::from_metadata(&meta)) }),
            Err(_) => missing += 1,
        }
    }
    if missing > 0 {
        let message = format!("{missing} files of an installed library are not there any more");
        problems.push(Diagnostic::for_file(&root.dir, "library-incomplete", message));
    }
    Ok(found)
}

/// Whether a file may be used: outside of a library, or with the agreed digest.
fn is_agreed(root: &LibraryRoot, path: &Path, bytes: &[u8]) -> bool {
    let Some(files) = &root.pinned else { return true };
    let below = path.strip_prefix(&root.dir).ok();
    below
        .and_then(|below| files.get(below))
        .is_some_and(|digest| *digest == Digest::hash_bytes(bytes))
}

impl RootWalk<'_> {
    /// Visits the entries of a directory and of all directories below, within the bounds.
    fn walk_directory(&mut self, dir: &Path, depth: usize) -> Result<(), WorkStopped> {
        let entries = match fs::read_dir(dir) {
            Ok(entries) => entries,
            Err(found) if found.kind() == io::ErrorKind::NotFound && depth == 0 => return Ok(()),
            Err(found) => {
                self.record_problem(dir, "read", format!("cannot be read: {found}"));
                return Ok(());
            }
        };
        let mut folders = Vec::new();
        for entry in entries.flatten() {
            self.stop.check_raised()?;
            self.entries += 1;
            if self.entries > MAX_SCAN_ENTRIES {
                if self.entries == MAX_SCAN_ENTRIES + 1 {
                    let message =
                        format!("more than {MAX_SCAN_ENTRIES} files; the rest is left out");
                    self.record_problem(&self.root.dir.clone(), "too-many", message);
                }
                return Ok(());
            }
            if let Some(folder) = self.visit_entry(&entry) {
                folders.push(folder);
            }
        }
        if depth >= MAX_AGENT_DEPTH {
            if let Some(folder) = folders.first() {
                let message = format!("folders more than {MAX_AGENT_DEPTH} deep are left out");
                self.record_problem(&folder.clone(), "too-deep", message);
            }
            return Ok(());
        }
        for folder in folders {
            self.walk_directory(&folder, depth + 1)?;
        }
        Ok(())
    }

    /// Whether a file is of the requested kind.
    fn is_wanted(&self, path: &Path) -> bool {
        (self.wants)(path.strip_prefix(&self.root.dir).unwrap_or(path))
    }

    /// Adds a file of the kind; returns a folder to search.
    fn visit_entry(&mut self, entry: &DirEntry) -> Option<PathBuf> {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') {
            return None;
        }
        let path = entry.path();
        let kind = match entry.file_type() {
            Ok(kind) => kind,
            Err(found) => {
                self.record_problem(&path, "read", format!("cannot be looked at: {found}"));
                return None;
            }
        };
        let draft = name.eq_ignore_ascii_case(DRAFTS);
        if kind.is_dir() {
            return (!draft).then_some(path);
        }
        if kind.is_symlink() {
            self.visit_link(&path, draft);
        } else if self.is_wanted(&path) {
            // Special files are added too: the catalogue reports the wrong kind.
            let fingerprint =
                entry.metadata().ok().map(|meta| FileFingerprint::from_metadata(&meta));
            self.found.push(FoundFile { path, fingerprint });
        }
        None
    }

    /// Adds a linked file, if the link may be followed.
    fn visit_link(&mut self, path: &Path, draft: bool) {
        let Ok(meta) = fs::metadata(path) else {
            if self.is_wanted(path) {
                self.record_problem(path, "dangling-link", "the link leads nowhere".to_owned());
            }
            return;
        };
        if meta.is_dir() {
            if !draft {
                let message = "a linked folder is not followed".to_owned();
                let mut note = Diagnostic::for_file(path, "linked-folder", message);
                note.severity = Severity::Note;
                self.problems.push(note);
            }
            return;
        }
        if !self.is_wanted(path) {
            return;
        }
        if self.leads_out(path) {
            self.record_problem(path, "link-outside", OUTSIDE.to_owned());
        } else {
            let fingerprint = Some(FileFingerprint::from_metadata(&meta));
            self.found.push(FoundFile { path: path.to_owned(), fingerprint });
        }
    }

    /// Whether a path of a workspace leads to a target outside.
    fn leads_out(&self, path: &Path) -> bool {
        match &self.root.scope {
            AgentScope::Home | AgentScope::Library(_) => false,
            AgentScope::Workspace(workspace) => {
                path.canonicalize().is_ok_and(|target| !target.starts_with(workspace))
            }
        }
    }

    fn record_problem(&mut self, path: &Path, code: &'static str, message: String) {
        self.problems.push(Diagnostic::for_file(path, code, message));
    }
}

impl FileFingerprint {
    /// The size, times and inode of a file.
    fn from_metadata(meta: &Metadata) -> Self {
        #[cfg(unix)]
        let unix = {
            use std::os::unix::fs::MetadataExt as _;
            Some((meta.ino(), meta.ctime(), meta.ctime_nsec()))
        };
        #[cfg(not(unix))]
        let unix = None;
        Self { len: meta.len(), modified: meta.modified().ok(), unix }
    }
}
