//! The index in memory: all names whose meaning differs from the lower directory.
//!
//! The tree holds only the changed names and the directories that lead to them. A name a directory of the
//! tree does not hold is looked up in the lower directory named by `origin`, whose path may differ if the
//! directory was moved. Only [`IndexTree::apply_record`] changes a tree, both for a new change and for a
//! record that is read from the index on disk.

mod settle;

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};

pub(super) use self::settle::{KnownOrigin, SettledPaths, TakenFile, UnsettledPaths};
use super::record::{
    ContentOrigin, FileRecord, FileTime, FileTimes, IndexChange, IndexRecord, LowerState, MODE,
};
use super::rel::RelPath;

/// The number of the root directory.
pub(super) const ROOT: u64 = 0;

/// All differences from the lower directory.
#[derive(Debug, Clone)]
pub(super) struct IndexTree {
    dirs: HashMap<u64, IndexDirectory>,
    files: HashMap<u64, FileNode>,
    /// The numbers of directories, by the path of the lower directory that shows through.
    by_lower: HashMap<RelPath, u64>,
    /// The numbers of files, by the lower path of the original.
    files_by_lower: HashMap<RelPath, u64>,
    digests: HashMap<LowerState, [u8; 32]>,
    next_dir: u64,
    next_file: u64,
    /// The number of entries that count for the quota: all except directories at their original paths.
    count: u64,
    /// The number of the host's last change of the lower directory: see [`IndexChange::Settled`].
    settled: u64,
}

/// A directory with a difference, directly or further below.
#[derive(Debug, Clone)]
pub(super) struct IndexDirectory {
    parent: Option<(u64, OsString)>,
    /// The lower directory whose other names show through. `None` if none shows through.
    pub(super) origin: Option<DirOrigin>,
    pub(super) entries: HashMap<OsString, IndexEntry>,
    pub(super) times: FileTimes,
    /// When an entry was last changed.
    pub(super) changed: Option<FileTime>,
    pub(super) mode: u32,
}

/// The lower directory that shows through a directory of the index.
#[derive(Debug, Clone)]
pub(super) struct DirOrigin {
    pub(super) rel: RelPath,
    /// The state of the lower directory when the directory was moved; `None` before a move.
    pub(super) seen: Option<LowerState>,
}

/// The meaning of a name in a directory of the index.
#[derive(Debug, Clone, Default)]
pub(super) struct IndexEntry {
    /// The object of the name. `None` if the name was removed.
    pub(super) node: Option<IndexNode>,
    /// The object of the same name in the lower directory, which the entry hides.
    pub(super) hidden: Option<LowerState>,
    /// When the lower object was hidden. For a directory, the earliest such time of its entries.
    pub(super) since: Option<FileTime>,
}

/// The object that a name refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IndexNode {
    Directory(u64),
    File(u64),
}

/// A file changed, moved, linked or made.
#[derive(Debug, Clone)]
pub(super) struct FileNode {
    pub(super) names: u32,
    pub(super) record: FileRecord,
    /// Times that a guest set while the content is still in the lower directory.
    pub(super) times: FileTimes,
}

/// The error for a record that contradicts the records before it.
#[derive(Debug)]
pub(super) struct RecordMisfit;

impl IndexTree {
    /// An index without differences.
    pub(super) fn new() -> Self {
        let root = IndexDirectory {
            parent: None,
            origin: Some(DirOrigin { rel: RelPath::default(), seen: None }),
            entries: HashMap::new(),
            times: FileTimes::default(),
            changed: None,
            mode: MODE,
        };
        Self {
            dirs: [(ROOT, root)].into(),
            files: HashMap::new(),
            by_lower: [(RelPath::default(), ROOT)].into(),
            files_by_lower: HashMap::new(),
            digests: HashMap::new(),
            next_dir: ROOT + 1,
            next_file: 1,
            count: 0,
            settled: 0,
        }
    }

    pub(super) fn find_dir(&self, id: u64) -> Option<&IndexDirectory> {
        self.dirs.get(&id)
    }

    pub(super) fn find_file(&self, id: u64) -> Option<&FileNode> {
        self.files.get(&id)
    }

    pub(super) fn iter_files(&self) -> impl Iterator<Item = (u64, &FileNode)> {
        self.files.iter().map(|(id, file)| (*id, file))
    }

    pub(super) fn dir_below(&self, lower: &[u8]) -> Option<u64> {
        self.by_lower.get(lower).copied()
    }

    pub(super) fn file_below(&self, lower: &[u8]) -> Option<u64> {
        self.files_by_lower.get(lower).copied()
    }

    pub(super) fn find_digest(&self, seen: &LowerState) -> Option<[u8; 32]> {
        self.digests.get(seen).copied()
    }

    /// Whether the index is empty: no difference, and no directory added for a change.
    pub(super) fn is_plain(&self) -> bool {
        self.dirs.len() == 1 && self.find_dir(ROOT).is_none_or(|root| root.entries.is_empty())
    }

    pub(super) fn entry_count(&self) -> u64 {
        self.count
    }

    /// A number that no file of the index has had.
    pub(super) fn next_file(&mut self) -> u64 {
        let id = self.next_file;
        self.next_file += 1;
        id
    }

    /// Marks all numbers up to `id` as used.
    pub(super) fn reserve_ids(&mut self, id: u64) {
        self.next_file = self.next_file.max(id.saturating_add(1));
    }

    /// The path of a directory, as guests see the path.
    pub(super) fn path_of(&self, id: u64) -> Option<RelPath> {
        let mut names = Vec::new();
        let mut dir = self.dirs.get(&id)?;
        while let Some((parent, name)) = &dir.parent {
            names.push(name.as_os_str());
            dir = self.dirs.get(parent)?;
        }
        Some(names.iter().rev().fold(RelPath::default(), |path, name| path.join(name)))
    }

    /// Whether a directory shows the lower directory of the same path.
    pub(super) fn is_own_place(&self, id: u64) -> bool {
        let Some(dir) = self.dirs.get(&id) else { return false };
        let Some((parent, name)) = &dir.parent else { return true };
        let above = self.dirs.get(parent).and_then(|parent| parent.origin.as_ref());
        match (&dir.origin, above) {
            (Some(own), Some(above)) => own.rel == above.rel.join(name),
            _ => false,
        }
    }

    /// Applies one change. Returns the number of the file that lost its last name, if any.
    pub(super) fn apply_record(
        &mut self,
        record: &IndexRecord,
    ) -> Result<Option<u64>, RecordMisfit> {
        let at = record.at;
        match &record.act {
            IndexChange::File { path, id, file, hidden, new } => {
                let (dir, name) = self.find_parent(path)?;
                if self.files.contains_key(id) {
                    return Err(RecordMisfit);
                }
                self.reserve_ids(*id);
                if let Some(origin) = &file.origin {
                    self.files_by_lower.insert(origin.rel.clone(), *id);
                }
                let (record, times) = (file.clone(), FileTimes::default());
                self.files.insert(*id, FileNode { names: 1, record, times });
                let gone = self.set_name(dir, name, Some(IndexNode::File(*id)), (*hidden, at))?;
                if *new {
                    self.touch_dir(dir, at);
                }
                Ok(gone)
            }
            IndexChange::Link { path, id, hidden } => {
                let (dir, name) = self.find_parent(path)?;
                self.files.get_mut(id).ok_or(RecordMisfit)?.names += 1;
                let gone = self.set_name(dir, name, Some(IndexNode::File(*id)), (*hidden, at))?;
                self.touch_dir(dir, at);
                Ok(gone)
            }
            IndexChange::Directory { path, origin, mode, hidden } => {
                let (dir, name) = self.find_parent(path)?;
                let lower = origin.as_ref();
                let lower =
                    lower.map(|from| DirOrigin { rel: from.rel.clone(), seen: Some(from.seen) });
                let made = origin.is_none().then_some(at);
                let id = self.add_dir(dir, name.clone(), lower, *mode);
                if let (Some(at), Some(new)) = (made, self.dirs.get_mut(&id)) {
                    new.times = FileTimes { accessed: Some(at), modified: Some(at) };
                    new.changed = Some(at);
                }
                let gone =
                    self.set_name(dir, name, Some(IndexNode::Directory(id)), (*hidden, at))?;
                self.touch_dir(dir, at);
                Ok(gone)
            }
            IndexChange::Gone { path, hidden } => {
                let (dir, name) = self.find_parent(path)?;
                let gone = self.set_name(dir, name, None, (*hidden, at))?;
                self.touch_dir(dir, at);
                Ok(gone)
            }
            IndexChange::Moved { from, to, left, hidden, mode } => {
                self.move_to(from, to, [*left, *hidden], *mode, at)
            }
            IndexChange::CopiedUp { id } => {
                let file = self.files.get_mut(id).ok_or(RecordMisfit)?;
                file.record.copied = true;
                file.times = FileTimes::default();
                Ok(None)
            }
            IndexChange::Times { path, times } => {
                self.set_times(path, *times, at)?;
                Ok(None)
            }
            IndexChange::Digest { seen, digest } => {
                self.digests.insert(*seen, *digest);
                Ok(None)
            }
            IndexChange::Settled { number } => {
                self.settled = *number;
                Ok(None)
            }
        }
    }

    fn move_to(
        &mut self,
        from: &RelPath,
        to: &RelPath,
        [left, hidden]: [Option<LowerState>; 2],
        mode: Option<u32>,
        at: FileTime,
    ) -> Result<Option<u64>, RecordMisfit> {
        let (old, old_name) = self.find_parent(from)?;
        let (new, new_name) = self.find_parent(to)?;
        if to.is_below(from) || from == to {
            return Err(RecordMisfit);
        }
        let known = self.dirs.get(&old).and_then(|dir| dir.entries.get(&old_name));
        let node = match known {
            Some(entry) => entry.node.ok_or(RecordMisfit)?,
            None => IndexNode::Directory(self.enter_dir(old, &old_name)?),
        };
        self.uncount_name(old, &old_name);
        let from_entries = &mut self.dirs.get_mut(&old).ok_or(RecordMisfit)?.entries;
        let earlier = from_entries.remove(&old_name).and_then(|entry| entry.since);
        if left.is_some() {
            let since = Some(earlier.unwrap_or(at));
            from_entries.insert(old_name, IndexEntry { node: None, hidden: left, since });
            self.count += 1;
        }
        if let IndexNode::Directory(id) = node {
            let dir = self.dirs.get_mut(&id).ok_or(RecordMisfit)?;
            dir.parent = Some((new, new_name.clone()));
            // Until the move, the directory hid the lower object of its own path; that object stays hidden
            // there.
            if let Some(lower) = &mut dir.origin {
                lower.seen = lower.seen.or(left);
            }
            // The lower directory was missing at the move, so a later lower directory of the same path must
            // not show through.
            let gone = dir.origin.take_if(|lower| lower.seen.is_none());
            if let Some(lower) = gone {
                self.by_lower.remove(&lower.rel);
            }
        }
        let gone = self.set_name(new, new_name, Some(node), (hidden, at))?;
        if let (IndexNode::File(id), Some(mode)) = (node, mode) {
            self.files.get_mut(&id).ok_or(RecordMisfit)?.record.mode = mode;
        }
        self.touch_dir(old, at);
        self.touch_dir(new, at);
        Ok(gone)
    }

    /// Sets the times of a file or directory of the index. A lower directory is added to the index first.
    fn set_times(
        &mut self,
        path: &RelPath,
        times: FileTimes,
        at: FileTime,
    ) -> Result<(), RecordMisfit> {
        let set = |known: &mut FileTimes| {
            known.accessed = times.accessed.or(known.accessed);
            known.modified = times.modified.or(known.modified);
        };
        let dir = match path.split() {
            None => ROOT,
            Some(_) => {
                let (dir, name) = self.find_parent(path)?;
                let entry = self.dirs.get(&dir).and_then(|dir| dir.entries.get(&name));
                match entry.map(|entry| entry.node) {
                    Some(Some(IndexNode::File(id))) => {
                        set(&mut self.files.get_mut(&id).ok_or(RecordMisfit)?.times);
                        return Ok(());
                    }
                    Some(Some(IndexNode::Directory(id))) => id,
                    Some(None) => return Err(RecordMisfit),
                    None => self.enter_dir(dir, &name)?,
                }
            }
        };
        let dir = self.dirs.get_mut(&dir).ok_or(RecordMisfit)?;
        set(&mut dir.times);
        dir.changed = Some(at);
        Ok(())
    }

    /// The directory with a path, and the last name of the path. Adds the directories on the path to the
    /// index.
    fn find_parent(&mut self, path: &RelPath) -> Result<(u64, OsString), RecordMisfit> {
        let mut dir = ROOT;
        let mut names = path.names();
        let last = names.next_back().ok_or(RecordMisfit)?.to_owned();
        for name in names {
            dir = self.enter_dir(dir, name)?;
        }
        Ok((dir, last))
    }

    /// The number of a subdirectory, which is added to the index if it is only in the lower directory.
    fn enter_dir(&mut self, dir: u64, name: &OsStr) -> Result<u64, RecordMisfit> {
        let here = self.dirs.get(&dir).ok_or(RecordMisfit)?;
        match here.entries.get(name).map(|entry| entry.node) {
            Some(Some(IndexNode::Directory(id))) => Ok(id),
            Some(_) => Err(RecordMisfit),
            None => {
                let rel = here.origin.as_ref().ok_or(RecordMisfit)?.rel.join(name);
                let lower = Some(DirOrigin { rel, seen: None });
                let id = self.add_dir(dir, name.to_owned(), lower, MODE);
                let entries = &mut self.dirs.get_mut(&dir).ok_or(RecordMisfit)?.entries;
                let node = Some(IndexNode::Directory(id));
                entries.insert(name.to_owned(), IndexEntry { node, hidden: None, since: None });
                Ok(id)
            }
        }
    }

    /// Adds a directory without entries to the index. The caller adds the entry to the parent.
    fn add_dir(
        &mut self,
        parent: u64,
        name: OsString,
        origin: Option<DirOrigin>,
        mode: u32,
    ) -> u64 {
        let id = self.next_dir;
        self.next_dir += 1;
        if let Some(lower) = &origin {
            self.by_lower.insert(lower.rel.clone(), id);
        }
        let (entries, times) = (HashMap::new(), FileTimes::default());
        let parent = Some((parent, name));
        let dir = IndexDirectory { parent, origin, entries, times, changed: None, mode };
        self.dirs.insert(id, dir);
        id
    }

    /// Sets the object of a name. A previous object loses the name.
    fn set_name(
        &mut self,
        dir: u64,
        name: OsString,
        node: Option<IndexNode>,
        (hidden, at): (Option<LowerState>, FileTime),
    ) -> Result<Option<u64>, RecordMisfit> {
        self.uncount_name(dir, &name);
        let since = hidden.map(|_| self.hidden_since(dir, &name).unwrap_or(at));
        let entries = &mut self.dirs.get_mut(&dir).ok_or(RecordMisfit)?.entries;
        let before = entries.remove(&name).and_then(|entry| entry.node);
        if node.is_some() || hidden.is_some() {
            entries.insert(name.clone(), IndexEntry { node, hidden, since });
            if self.is_counted(dir, &name) {
                self.count += 1;
            }
        }
        Ok(match before {
            Some(IndexNode::File(id)) => self.lose_name(id),
            Some(IndexNode::Directory(id)) => {
                self.forget_dir(id);
                None
            }
            None => None,
        })
    }

    /// Since when a name hides a lower object; for a directory, the earliest such time of its entries.
    fn hidden_since(&self, dir: u64, name: &OsStr) -> Option<FileTime> {
        let entry = self.dirs.get(&dir)?.entries.get(name)?;
        let held = match entry.node {
            Some(IndexNode::Directory(id)) => self.dirs.get(&id),
            Some(IndexNode::File(_)) | None => None,
        };
        let held = held.into_iter().flat_map(|held| held.entries.values());
        held.filter_map(|entry| entry.since).chain(entry.since).min()
    }

    fn lose_name(&mut self, id: u64) -> Option<u64> {
        let file = self.files.get_mut(&id)?;
        file.names = file.names.saturating_sub(1);
        if file.names > 0 {
            return None;
        }
        let file = self.files.remove(&id)?;
        // `files_by_lower` may refer to another file by now, made from a newer version of the lower file.
        if let Some(origin) = &file.record.origin
            && self.file_below(origin.rel.as_bytes()) == Some(id)
        {
            self.files_by_lower.remove(&origin.rel);
        }
        Some(id)
    }

    /// Removes a directory guests saw as empty, whose entries therefore only hide lower objects.
    fn forget_dir(&mut self, id: u64) {
        let Some(dir) = self.dirs.remove(&id) else { return };
        if let Some(lower) = &dir.origin {
            self.by_lower.remove(&lower.rel);
        }
        self.count = self.count.saturating_sub(dir.entries.len() as u64);
    }

    fn is_counted(&self, dir: u64, name: &OsStr) -> bool {
        let entry = self.dirs.get(&dir).and_then(|dir| dir.entries.get(name));
        match entry.map(|entry| entry.node) {
            None => false,
            Some(Some(IndexNode::Directory(id))) => !self.is_own_place(id),
            Some(_) => true,
        }
    }

    fn uncount_name(&mut self, dir: u64, name: &OsStr) {
        if self.is_counted(dir, name) {
            self.count = self.count.saturating_sub(1);
        }
    }

    fn touch_dir(&mut self, dir: u64, at: FileTime) {
        if let Some(dir) = self.dirs.get_mut(&dir) {
            dir.times.modified = Some(at);
            dir.changed = Some(at);
        }
    }

    /// The changes that build this tree from an empty tree, for a compact index on disk.
    pub(super) fn to_records(&self) -> Vec<IndexRecord> {
        let mut dump = TreeDump::from_tree(self);
        dump.dump_dir(ROOT, &RelPath::default());
        dump.dump_digests();
        if self.settled > 0 {
            dump.add_record(IndexChange::Settled { number: self.settled });
        }
        let TreeDump { records, times, .. } = dump;
        records.into_iter().chain(times).collect()
    }
}

/// The records that [`IndexTree::to_records`] has made so far.
struct TreeDump<'a> {
    tree: &'a IndexTree,
    /// The numbers of the files that already have a record.
    told: HashMap<u64, ()>,
    /// The states of lower files whose digests are written at the end.
    seen: Vec<LowerState>,
    records: Vec<IndexRecord>,
    /// The time of hiding that the next records get.
    at: FileTime,
    /// The records that set times. Written last, because every other record changes the time of its
    /// directory.
    times: Vec<IndexRecord>,
}

impl<'a> TreeDump<'a> {
    fn from_tree(tree: &'a IndexTree) -> Self {
        Self {
            tree,
            told: HashMap::new(),
            seen: Vec::new(),
            records: Vec::new(),
            at: FileTime::default(),
            times: Vec::new(),
        }
    }

    /// Adds the records of a directory's entries, recursively, by name.
    fn dump_dir(&mut self, id: u64, path: &RelPath) {
        let Some(dir) = self.tree.find_dir(id) else { return };
        let mut names: Vec<_> = dir.entries.iter().collect();
        names.sort_by_key(|(name, _)| *name);
        for (name, entry) in names {
            let path = path.join(name);
            self.seen.extend(entry.hidden);
            self.at = entry.since.unwrap_or_default();
            match entry.node {
                None => self.add_record(IndexChange::Gone { path, hidden: entry.hidden }),
                Some(IndexNode::File(id)) => self.dump_file(id, path, entry.hidden),
                Some(IndexNode::Directory(id)) => self.sub_dir(id, path, entry.hidden),
            }
        }
        if dir.times != FileTimes::default() {
            let (at, path) = (dir.changed.unwrap_or_default(), path.clone());
            self.times.push(IndexRecord { at, act: IndexChange::Times { path, times: dir.times } });
        }
    }

    /// Adds the record of a file. Further names of the file become links.
    fn dump_file(&mut self, id: u64, path: RelPath, hidden: Option<LowerState>) {
        let Some(node) = self.tree.find_file(id) else { return };
        if self.told.insert(id, ()).is_some() {
            self.add_record(IndexChange::Link { path, id, hidden });
            return;
        }
        self.seen.extend(node.record.origin.as_ref().map(|origin| origin.seen));
        let file = node.record.clone();
        self.add_record(IndexChange::File { path: path.clone(), id, file, hidden, new: false });
        if node.times != FileTimes::default() {
            self.add_record(IndexChange::Times { path, times: node.times });
        }
    }

    fn sub_dir(&mut self, id: u64, path: RelPath, hidden: Option<LowerState>) {
        let Some(dir) = self.tree.find_dir(id) else { return };
        let origin = dir.origin.as_ref().and_then(|lower| {
            Some(ContentOrigin { rel: lower.rel.clone(), seen: lower.seen.or(hidden)? })
        });
        // A directory at its original path needs no record: the records of its entries add the directory.
        if !self.tree.is_own_place(id) || hidden.is_some() {
            self.seen.extend(origin.as_ref().map(|origin| origin.seen));
            self.add_record(IndexChange::Directory {
                path: path.clone(),
                origin,
                mode: dir.mode,
                hidden,
            });
        }
        self.dump_dir(id, &path);
    }

    fn dump_digests(&mut self) {
        let mut told = HashMap::new();
        for seen in std::mem::take(&mut self.seen) {
            if let Some(digest) = self.tree.find_digest(&seen)
                && told.insert(seen, ()).is_none()
            {
                self.add_record(IndexChange::Digest { seen, digest });
            }
        }
    }

    fn add_record(&mut self, act: IndexChange) {
        self.records.push(IndexRecord { at: self.at, act });
    }
}
