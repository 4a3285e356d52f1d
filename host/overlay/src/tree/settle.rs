//! Corrects the index after the host applied, undid or dropped changes.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};

use super::super::record::{ContentOrigin, FileRecord, FileTime, FileTimes, LowerState, MODE};
use super::super::rel::{RelPath, split_last};
use super::{DirOrigin, FileNode, IndexEntry, IndexNode, IndexTree, ROOT};

/// Paths that the host applied or dropped. Lower paths are the ones before all moves; other paths are as
/// guests see them.
#[derive(Debug, Default)]
pub(crate) struct SettledPaths {
    /// Lower paths that do not exist any more.
    pub(crate) gone: Vec<RelPath>,
    /// Moves, each from a lower path to the path that guests see.
    pub(crate) moved: Vec<(RelPath, RelPath)>,
    pub(crate) directories: Vec<RelPath>,
    pub(crate) files: Vec<RelPath>,
    /// Paths at which the agent's changes are dropped.
    pub(crate) dropped: Vec<RelPath>,
}

/// What an undo removed or restored in the lower directory, with the present states.
#[derive(Debug, Default)]
pub(crate) struct UnsettledPaths {
    pub(crate) gone: Vec<(RelPath, KnownOrigin)>,
    pub(crate) moved: Vec<(RelPath, RelPath, LowerState)>,
    pub(crate) directories: Vec<RelPath>,
    pub(crate) files: Vec<TakenFile>,
    /// Names to hide again, because changes dropped there make the lower objects visible.
    pub(crate) dropped: Vec<(RelPath, KnownOrigin)>,
}

/// The lower object from which a change began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownOrigin {
    /// The state of the lower object when the change began.
    pub(crate) seen: LowerState,
    /// Since when the object is hidden; `None`: from now on.
    pub(crate) since: Option<FileTime>,
    pub(crate) digest: Option<[u8; 32]>,
}

/// A file whose content goes back from the lower directory to the overlay.
#[derive(Debug)]
pub(crate) struct TakenFile {
    /// The path as guests see it.
    pub(crate) path: RelPath,
    /// The number of the file in the layer.
    pub(crate) id: u64,
    /// Whether the content is in the layer.
    pub(crate) copied: bool,
    pub(crate) mode: u32,
    pub(crate) origin: Option<ContentOrigin>,
    pub(crate) digest: Option<[u8; 32]>,
    /// Whether the change was dropped before, so that the lower directory never had the content.
    pub(crate) dropped: bool,
}

impl IndexTree {
    /// The number that the last [`Self::settle_paths`] or [`Self::unsettle_paths`] stored.
    pub(crate) fn settled_number(&self) -> u64 {
        self.settled
    }

    /// Lets the lower directory show wherever the host applied a change. Returns the numbers of the files
    /// that lost their last name.
    pub(crate) fn settle_paths(&mut self, number: u64, done: &SettledPaths) -> Vec<u64> {
        let mut lost = Vec::new();
        for lower in done.gone.iter().chain(done.moved.iter().map(|(from, _)| from)) {
            self.vacate_place(lower);
        }
        let moves = done.moved.iter().map(|(from, to)| (from.clone(), to.clone()));
        self.relocate_places(&moves.collect());
        for path in &done.directories {
            if let Some(IndexNode::Directory(id)) = self.node_at(path) {
                self.set_origin(id, Some(DirOrigin { rel: path.clone(), seen: None }));
            }
        }
        for path in &done.files {
            lost.extend(self.let_through(path));
        }
        for (_, to) in &done.moved {
            match self.node_at(to) {
                Some(IndexNode::Directory(id)) => {
                    let lower = DirOrigin { rel: to.clone(), seen: None };
                    self.set_origin(id, Some(lower));
                }
                // The file has other names, which are links to the same content, so it stays.
                Some(IndexNode::File(id))
                    if self.find_file(id).is_some_and(|file| file.names > 1) => {}
                Some(IndexNode::File(_)) => lost.extend(self.let_through(to)),
                None => {}
            }
        }
        self.settled = number;
        match done.dropped.as_slice() {
            [] => self.tidy_up(),
            dropped => lost.extend(self.discard_paths(dropped)),
        }
        lost
    }

    /// Drops the changes at the paths and below. Returns the numbers of the files that lost their last name.
    pub(crate) fn discard_paths(&mut self, paths: &[RelPath]) -> Vec<u64> {
        let (mut lost, mut back) = (Vec::new(), Vec::new());
        for path in paths {
            if path.as_bytes().is_empty() {
                self.drop_below(ROOT, &mut lost, &mut back);
            } else if let Some((dir, name)) = self.find_name(path) {
                self.drop_name(dir, &name, &mut lost, &mut back);
            }
        }
        for lower in &back {
            let known = self.dir_of(lower);
            if let Some(entries) = known.and_then(|(id, _)| self.dirs.get_mut(&id))
                && let Some((_, name)) = split_last(lower.as_bytes())
                && entries.entries.get(name).is_some_and(|entry| entry.node.is_none())
            {
                entries.entries.remove(name);
            }
        }
        self.hide_moved();
        self.tidy_up();
        lost
    }

    /// Reverses [`Self::settle_paths`].
    pub(crate) fn unsettle_paths(&mut self, number: u64, taken: &UnsettledPaths) {
        // Collected before the moves, because newer versions of an applied file are found by the file's
        // present lower path.
        let versions = taken.files.iter().map(|file| self.leave_below(file)).collect::<Vec<_>>();
        // Directories first, because a moved object may get the lower path of one of them.
        for path in &taken.directories {
            if let Some(IndexNode::Directory(id)) = self.node_at(path) {
                self.set_origin(id, None);
            }
        }
        let moves = taken.moved.iter().map(|(from, to, _)| (to.clone(), from.clone()));
        self.relocate_places(&moves.collect());
        let made = taken.directories.iter().map(|path| (path, None));
        let moved = taken.moved.iter().map(|(from, to, seen)| (to, Some((from, *seen))));
        let mut all: Vec<_> = made.chain(moved).collect();
        all.sort_by_key(|(path, _)| *path);
        for (path, from) in all {
            self.show_again(path, from);
        }
        for (file, version) in taken.files.iter().zip(versions) {
            self.file_again(file, version);
        }
        let now = |seen: &LowerState| KnownOrigin { seen: *seen, since: None, digest: None };
        let moved = taken.moved.iter().map(|(from, _, seen)| (from, now(seen)));
        for (lower, known) in taken.gone.iter().map(|(lower, known)| (lower, *known)).chain(moved) {
            self.hide_place(lower, known.seen, known.since);
        }
        let own: HashSet<u64> = taken.files.iter().map(|file| file.id).collect();
        for (lower, known) in &taken.dropped {
            // An object made at the path, or below, since the change stays.
            let entry = self.dir_of(lower).and_then(|(dir, name)| {
                self.dirs.get(&dir).and_then(|dir| dir.entries.get(&name)).map(|it| it.node)
            });
            let is_new = matches!(entry, Some(Some(IndexNode::File(id))) if own.contains(&id));
            if self.dir_below(lower.as_bytes()).is_none() && (entry.is_none() || is_new) {
                self.hide_place(lower, known.seen, known.since);
            }
        }
        let files = taken
            .files
            .iter()
            .filter_map(|file| file.origin.as_ref().map(|origin| (origin.seen, file.digest)));
        let places = taken.gone.iter().chain(&taken.dropped);
        let places = places.map(|(_, known)| (known.seen, known.digest));
        for (seen, digest) in files.chain(places) {
            self.digests.extend(digest.map(|digest| (seen, digest)));
        }
        self.settled = number;
        self.tidy_up();
    }

    /// Records that the object at a lower path was replaced by another with the same content, for example
    /// when the host restored it.
    pub(crate) fn see_again(&mut self, lower: &RelPath, now: LowerState) {
        let mut olds = Vec::new();
        if let Some((dir, name)) = self.dir_of(lower)
            && let Some(entry) = self.dirs.get_mut(&dir).and_then(|dir| dir.entries.get_mut(&name))
            && let Some(hidden) = &mut entry.hidden
        {
            olds.push(std::mem::replace(hidden, now));
            // The entries of a restored directory are older than now, so the time of hiding becomes now.
            entry.since = Some(FileTime::exact_now());
        }
        if let Some(file) = self.file_below(lower.as_bytes()).and_then(|id| self.files.get_mut(&id))
            && let Some(origin) = &mut file.record.origin
        {
            olds.push(std::mem::replace(&mut origin.seen, now));
        }
        if let Some(digest) = olds.iter().find_map(|old| self.digests.get(old)).copied() {
            self.digests.insert(now, digest);
        }
    }

    /// The digests of all objects that the index refers to.
    pub(crate) fn named_digests(&self) -> HashSet<[u8; 32]> {
        let hidden = self.dirs.values().flat_map(|dir| dir.entries.values());
        let hidden = hidden.filter_map(|entry| entry.hidden);
        let origins = self.files.values().filter_map(|file| file.record.origin.as_ref());
        let seen = hidden.chain(origins.map(|origin| origin.seen));
        seen.filter_map(|seen| self.find_digest(&seen)).collect()
    }

    /// The directory of the index around a lower path, and the path's last name.
    fn dir_of(&self, lower: &RelPath) -> Option<(u64, OsString)> {
        let (above, name) = lower.split()?;
        Some((self.dir_below(above)?, name.to_owned()))
    }

    /// The directory of the index around a path, and the path's last name.
    fn find_name(&self, path: &RelPath) -> Option<(u64, OsString)> {
        let mut dir = ROOT;
        let mut names = path.names();
        let last = names.next_back()?;
        for name in names {
            match self.dirs.get(&dir)?.entries.get(name)?.node? {
                IndexNode::Directory(id) => dir = id,
                IndexNode::File(_) => return None,
            }
        }
        self.dirs.get(&dir)?.entries.get(last)?;
        Some((dir, last.to_owned()))
    }

    fn node_at(&self, path: &RelPath) -> Option<IndexNode> {
        let (dir, name) = self.find_name(path)?;
        self.dirs.get(&dir)?.entries.get(&name)?.node
    }

    /// Forgets the object at a lower path that does not exist any more.
    fn vacate_place(&mut self, lower: &RelPath) {
        let Some((id, name)) = self.dir_of(lower) else { return };
        let Some(dir) = self.dirs.get_mut(&id) else { return };
        if let Some(entry) = dir.entries.get_mut(&name) {
            (entry.hidden, entry.since) = (None, None);
            if entry.node.is_none() {
                dir.entries.remove(&name);
            }
        }
    }

    /// Replaces the lower paths of moved objects and of everything below.
    fn relocate_places(&mut self, moves: &HashMap<RelPath, RelPath>) {
        let place = |rel: &RelPath| {
            let mut above = rel.as_bytes();
            loop {
                if let Some(to) = moves.get(above) {
                    let rest = rel.as_bytes().get(above.len()..).unwrap_or_default();
                    return RelPath::from_bytes(&[to.as_bytes(), rest].concat());
                }
                above = split_last(above)?.0;
            }
        };
        for dir in self.dirs.values_mut() {
            if let Some(lower) = &mut dir.origin
                && let Some(rel) = place(&lower.rel)
            {
                lower.rel = rel;
            }
        }
        for file in self.files.values_mut() {
            if let Some(origin) = &mut file.record.origin
                && let Some(rel) = place(&origin.rel)
            {
                origin.rel = rel;
            }
        }
        self.by_lower.clear();
        let dirs = self.dirs.iter();
        let below = dirs.filter_map(|(id, dir)| Some((dir.origin.as_ref()?.rel.clone(), *id)));
        self.by_lower.extend(below);
        self.files_by_lower.clear();
        let files = self.files.iter();
        let below =
            files.filter_map(|(id, file)| Some((file.record.origin.as_ref()?.rel.clone(), *id)));
        self.files_by_lower.extend(below);
    }

    /// Sets the lower directory that shows through a directory of the tree.
    fn set_origin(&mut self, id: u64, lower: Option<DirOrigin>) {
        let Some(dir) = self.dirs.get_mut(&id) else { return };
        if let Some(old) = dir.origin.take() {
            self.by_lower.remove(&old.rel);
        }
        if let Some(lower) = lower {
            self.by_lower.insert(lower.rel.clone(), id);
            dir.origin = Some(lower);
        }
    }

    /// Removes a file of the index from a path, so that the lower file shows.
    fn let_through(&mut self, path: &RelPath) -> Option<u64> {
        let Some(IndexNode::File(id)) = self.node_at(path) else { return None };
        let (dir, name) = self.find_name(path)?;
        self.dirs.get_mut(&dir)?.entries.remove(&name);
        self.let_go(id)
    }

    /// Removes one name of a file. If the content was in the layer, the file's other names no longer belong
    /// to the lower file.
    fn let_go(&mut self, id: u64) -> Option<u64> {
        let lost = self.lose_name(id);
        if let Some(file) = self.files.get_mut(&id)
            && file.record.copied
            && let Some(origin) = file.record.origin.take()
        {
            self.files_by_lower.remove(&origin.rel);
        }
        lost
    }

    /// Drops all names below a directory. Collects lost files in `lost` and restored paths in `back`.
    fn drop_below(&mut self, id: u64, lost: &mut Vec<u64>, back: &mut Vec<RelPath>) {
        let names = self.dirs.get(&id).map(|dir| dir.entries.keys().cloned().collect());
        let names: Vec<OsString> = names.unwrap_or_default();
        for name in names {
            self.drop_name(id, &name, lost, back);
        }
    }

    /// Drops one name of a directory, with everything below.
    fn drop_name(&mut self, dir: u64, name: &OsStr, lost: &mut Vec<u64>, back: &mut Vec<RelPath>) {
        let known = self.dirs.get(&dir);
        let own = known.and_then(|dir| Some(dir.origin.as_ref()?.rel.join(name)));
        let Some(entry) = known.and_then(|dir| dir.entries.get(name)) else { return };
        match entry.node {
            None => {}
            Some(IndexNode::Directory(id)) => {
                self.drop_below(id, lost, back);
                if self.is_own_place(id) {
                    return;
                }
                back.extend(
                    self.dirs.get(&id).and_then(|dir| Some(dir.origin.as_ref()?.rel.clone())),
                );
                self.purge_dir(id);
            }
            Some(IndexNode::File(id)) => {
                let Some(file) = self.files.get_mut(&id) else { return };
                let origin = file.record.origin.as_ref().map(|origin| origin.rel.clone());
                let at_home = origin.is_some() && origin == own;
                if at_home && !file.record.copied && file.names > 1 {
                    // The file is as in the lower directory, and its other names are links to it, so only
                    // its times are reset.
                    file.times = FileTimes::default();
                    return;
                }
                back.extend(origin.filter(|_| !at_home));
                match at_home {
                    true => lost.extend(self.let_go(id)),
                    false => lost.extend(self.lose_name(id)),
                }
            }
        }
        if let Some(dir) = self.dirs.get_mut(&dir) {
            dir.entries.remove(name);
        }
    }

    /// Forgets a directory of the index, with everything below.
    fn purge_dir(&mut self, id: u64) {
        let Some(dir) = self.dirs.remove(&id) else { return };
        if let Some(lower) = &dir.origin {
            self.by_lower.remove(&lower.rel);
        }
        for entry in dir.entries.values() {
            if let Some(IndexNode::Directory(id)) = entry.node {
                self.purge_dir(id);
            }
        }
    }

    /// Hides the lower paths from which objects were moved away.
    fn hide_moved(&mut self) {
        let dirs = self.dirs.iter().filter(|(id, _)| !self.is_own_place(**id));
        let dirs = dirs.filter_map(|(_, dir)| dir.origin.as_ref());
        let dirs = dirs.filter_map(|lower| Some((lower.rel.clone(), lower.seen?)));
        let files = self.files.iter().filter_map(|(id, file)| {
            let origin = file.record.origin.as_ref()?;
            let (dir, name) = self.dir_of(&origin.rel).unzip();
            let here = dir.and_then(|dir| self.dirs.get(&dir)?.entries.get(&name?)?.node);
            (here != Some(IndexNode::File(*id))).then(|| (origin.rel.clone(), origin.seen))
        });
        let moved: Vec<_> = dirs.chain(files).collect();
        for (lower, seen) in moved {
            self.hide_place(&lower, seen, None);
        }
    }

    /// Hides a lower path, unless already hidden. `since` = the time of hiding; `None` = now.
    fn hide_place(&mut self, lower: &RelPath, seen: LowerState, since: Option<FileTime>) {
        let since = Some(since.unwrap_or_else(FileTime::exact_now));
        let mut below: Vec<&OsStr> = Vec::new();
        let mut path = lower.as_bytes();
        let mut dir = loop {
            let Some((above, name)) = split_last(path) else { return };
            below.push(name);
            if let Some(id) = self.dir_below(above) {
                break id;
            }
            path = above;
        };
        while let Some(name) = below.pop() {
            let Some(known) = self.dirs.get_mut(&dir) else { return };
            let entry = known.entries.get_mut(name);
            if below.is_empty() {
                match entry {
                    Some(entry) if entry.hidden.is_none() => {
                        entry.hidden = Some(seen);
                        entry.since = since;
                    }
                    Some(_) => {}
                    None => {
                        let entry = IndexEntry { node: None, hidden: Some(seen), since };
                        known.entries.insert(name.to_owned(), entry);
                    }
                }
                return;
            }
            if entry.is_some() {
                // Another object is visible at the path, so the lower path is hidden already.
                return;
            }
            match self.enter_dir(dir, name) {
                Ok(id) => dir = id,
                Err(_) => return,
            }
        }
    }

    /// Adds a directory or a moved object to the index again.
    fn show_again(&mut self, path: &RelPath, from: Option<(&RelPath, LowerState)>) {
        use super::super::record::LowerKind;
        let is_dir = from.is_none_or(|(_, seen)| seen.kind == LowerKind::Directory);
        let lower = from.map(|(rel, seen)| DirOrigin { rel: rel.clone(), seen: Some(seen) });
        match (self.node_at(path), lower) {
            (Some(IndexNode::Directory(id)), lower) if is_dir => self.set_origin(id, lower),
            (Some(_), _) => {}
            (None, lower) if is_dir => {
                let Ok((dir, name)) = self.find_parent(path) else { return };
                let id = self.add_dir(dir, name.clone(), lower, MODE);
                if let Some(dir) = self.dirs.get_mut(&dir) {
                    let node = Some(IndexNode::Directory(id));
                    dir.entries.entry(name).or_default().node = node;
                }
            }
            (None, None) => {}
            (None, Some(DirOrigin { rel, seen })) => {
                let Some(seen) = seen else { return };
                let id = self.next_file();
                let origin = Some(ContentOrigin { rel, seen });
                let file = FileRecord { copied: false, mode: seen.mode, origin };
                self.show_file(path, id, file, None);
            }
        }
    }

    /// Separates the index's newer version of an applied file from the lower file. Returns the version's
    /// number and former record.
    fn leave_below(&mut self, file: &TakenFile) -> Option<(u64, FileRecord)> {
        let id = self.file_below(file.path.as_bytes()).filter(|_| !file.dropped)?;
        let known = self.files.get_mut(&id)?;
        let record = known.record.clone();
        known.record.origin = None;
        self.files_by_lower.remove(&file.path);
        Some((id, record))
    }

    /// Returns an applied file to the overlay. A newer version stays, and from now on counts as a change of
    /// the lower file before the apply.
    fn file_again(&mut self, file: &TakenFile, version: Option<(u64, FileRecord)>) {
        let copied = file.copied;
        let record = FileRecord { copied, mode: file.mode, origin: file.origin.clone() };
        let hidden = file.origin.as_ref().map(|origin| origin.seen);
        let known = self.find_name(&file.path);
        if file.dropped {
            if known.is_none() {
                self.show_file(&file.path, file.id, record, hidden);
            }
            return;
        }
        if let Some((old, made)) = &version {
            let id = if made.copied || !copied { *old } else { file.id };
            let copied = made.copied || copied;
            let record = FileRecord { copied, mode: made.mode, origin: file.origin.clone() };
            self.become_version((*old, id), record);
        }
        match known {
            None if version.is_none() => self.show_file(&file.path, file.id, record, hidden),
            None => {}
            Some((dir, name)) => {
                let Some(dir) = self.dirs.get_mut(&dir) else { return };
                let own = dir.origin.as_ref().map(|lower| lower.rel.join(&name));
                let origin = record.origin.filter(|origin| Some(&origin.rel) == own.as_ref());
                if let Some(entry) = dir.entries.get_mut(&name) {
                    entry.hidden = origin.map(|origin| origin.seen);
                    entry.since = entry.since.filter(|_| entry.hidden.is_some());
                    if entry.node.is_none() && entry.hidden.is_none() {
                        dir.entries.remove(&name);
                    }
                }
            }
        }
    }

    /// Gives a file another record, and another number if the layer did not have the content before.
    fn become_version(&mut self, (old, id): (u64, u64), record: FileRecord) {
        let Some(mut known) = self.files.remove(&old) else { return };
        if let Some(origin) = &record.origin {
            self.files_by_lower.insert(origin.rel.clone(), id);
        }
        known.record = record;
        self.files.insert(id, known);
        self.reserve_ids(id);
        if old != id {
            for entry in self.dirs.values_mut().flat_map(|dir| dir.entries.values_mut()) {
                if entry.node == Some(IndexNode::File(old)) {
                    entry.node = Some(IndexNode::File(id));
                }
            }
        }
    }

    /// Adds a file with the name `path` to the index, if the name has no object now.
    fn show_file(
        &mut self,
        path: &RelPath,
        id: u64,
        record: FileRecord,
        hidden: Option<LowerState>,
    ) {
        let Ok((dir, name)) = self.find_parent(path) else { return };
        let own = self.dirs.get(&dir).and_then(|dir| Some(dir.origin.as_ref()?.rel.join(&name)));
        let Some(dir) = self.dirs.get_mut(&dir) else { return };
        let entry = dir.entries.entry(name).or_default();
        if entry.node.is_some() {
            return;
        }
        entry.node = Some(IndexNode::File(id));
        let origin = record.origin.as_ref().map(|origin| &origin.rel);
        if hidden.is_some() && origin == own.as_ref() {
            entry.hidden = hidden;
        }
        if let Some(origin) = &record.origin {
            self.files_by_lower.insert(origin.rel.clone(), id);
        }
        self.reserve_ids(id);
        self.files.insert(id, FileNode { names: 1, record, times: FileTimes::default() });
    }

    /// Counts the entries anew, and forgets digests that nothing refers to.
    fn tidy_up(&mut self) {
        let tree = &*self;
        let names =
            tree.dirs.iter().flat_map(|(id, dir)| dir.entries.keys().map(move |it| (*id, it)));
        let count = names.filter(|(dir, name)| tree.is_counted(*dir, name)).count();
        self.count = count as u64;
        let hidden = self.dirs.values().flat_map(|dir| dir.entries.values());
        let hidden = hidden.filter_map(|entry| entry.hidden);
        let origins = self.files.values().filter_map(|file| file.record.origin.as_ref());
        let named: HashSet<LowerState> = hidden.chain(origins.map(|origin| origin.seen)).collect();
        self.digests.retain(|seen, _| named.contains(seen));
    }
}
