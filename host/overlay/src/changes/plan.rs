//! Chooses the changes that are applied together, and those that are left.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::path::{Path, PathBuf};

use belljar_work::{StopSignal, WorkStopped};

use crate::changes::{
    ApplyOptions, ChangeConflict, FileChange, FileDifference, NodeKind, PathSelection,
};

/// The decision about each change.
#[derive(Debug, Default)]
pub(crate) struct ChangePlan {
    /// The applied changes, by index.
    pub(crate) applied: BTreeSet<usize>,
    /// Paths at which the workspace's version stays and the agent's change is dropped.
    pub(crate) dropped: Vec<PathBuf>,
    pub(crate) conflicts: Vec<(PathBuf, ChangeConflict)>,
    pub(crate) held_back: Vec<(PathBuf, &'static str)>,
}

/// The changes that must be applied together with each change, by index.
fn find_needs(files: &[FileChange], stop: &StopSignal) -> Result<Vec<Vec<usize>>, WorkStopped> {
    let mut by_path: HashMap<&Path, Vec<usize>> = HashMap::new();
    let mut renames: BTreeMap<&Path, usize> = BTreeMap::new();
    for (at, file) in files.iter().enumerate().filter(|(_, file)| file.part_of.is_none()) {
        by_path.entry(&file.path).or_default().push(at);
        if let FileDifference::Renamed { from, .. } = &file.kind {
            renames.insert(from, at);
        }
    }
    let at = |path: &Path| by_path.get(path).into_iter().flatten().copied();
    let kind = |at: &usize| files.get(*at).map(|file| (&file.kind, file.node));
    let is_new_dir = |at: &usize| {
        matches!(
            kind(at),
            Some((FileDifference::Added | FileDifference::Renamed { .. }, NodeKind::Directory))
        )
    };
    let is_deleted = |at: &usize| matches!(kind(at), Some((FileDifference::Deleted, _)));
    let of = |own: usize, file: &FileChange| {
        let mut needed = Vec::new();
        if let Some(dir) = &file.part_of {
            let goes = file.kind == FileDifference::Deleted;
            needed.extend(at(dir).filter(|at| is_deleted(at) == goes));
            return needed;
        }
        if file.kind == FileDifference::Deleted {
            if file.node == NodeKind::Directory
                && let Some(below) = &file.below
            {
                let after = (Bound::Excluded(below.as_path()), Bound::Unbounded);
                let inside = renames.range::<Path, _>(after);
                let inside = inside.take_while(|(from, _)| from.starts_with(below));
                needed.extend(inside.map(|(_, at)| *at));
            }
            return needed;
        }
        for above in file.path.ancestors().skip(1) {
            needed.extend(at(above).filter(is_new_dir));
        }
        needed.extend(at(&file.path).filter(|at| *at != own && is_deleted(at)));
        needed.extend(renames.get(file.place.as_path()).filter(|at| **at != own));
        needed
    };
    let each = files.iter().enumerate();
    each.map(|(own, file)| stop.check_raised().map(|()| of(own, file))).collect()
}

/// Marks each change as a conflict that needs a conflicting change.
pub(crate) fn spread_conflicts(
    files: &mut [FileChange],
    stop: &StopSignal,
) -> Result<(), WorkStopped> {
    let needs = find_needs(files, stop)?;
    let conflicts: Vec<_> = files.iter().map(|file| file.conflict.clone()).collect();
    let left = spread_over(files, &needs, conflicts);
    for (file, conflict) in files.iter_mut().zip(left) {
        file.conflict = conflict;
    }
    Ok(())
}

/// Spreads conflicts: a change that needs a conflicting change is in conflict too.
fn spread_over(
    files: &[FileChange],
    needs: &[Vec<usize>],
    mut conflicts: Vec<Option<ChangeConflict>>,
) -> Vec<Option<ChangeConflict>> {
    let mut needed_by = vec![Vec::new(); files.len()];
    for (at, needed) in needs.iter().enumerate() {
        for needed in needed {
            if let Some(by) = needed_by.get_mut(*needed) {
                by.push(at);
            }
        }
    }
    let left = |conflicts: &[Option<ChangeConflict>], at: usize| {
        conflicts.get(at).is_some_and(|conflict| conflict.is_some())
    };
    let mut open: Vec<usize> = (0..files.len()).filter(|at| left(&conflicts, *at)).collect();
    while let Some(at) = open.pop() {
        for by in needed_by.get(at).into_iter().flatten() {
            if !left(&conflicts, *by)
                && let (Some(conflict), Some(file)) = (conflicts.get_mut(*by), files.get(at))
            {
                *conflict = Some(ChangeConflict::Needs(file.path.clone()));
                open.push(*by);
            }
        }
    }
    conflicts
}

/// Chooses the changes to apply: the selected ones and their needs. Excluded are conflicts, changes that
/// would run later, and changes that need an excluded change.
pub(crate) fn choose_changes(
    files: &[FileChange],
    selection: &PathSelection,
    options: &ApplyOptions,
    stop: &StopSignal,
) -> Result<ChangePlan, WorkStopped> {
    let needs = find_needs(files, stop)?;
    let mut chosen = ChangePlan::default();
    let taken = select_with_needs(files, &needs, selection);
    let mut dropped = BTreeSet::new();
    let mut held = BTreeMap::new();
    let mut conflicts: Vec<Option<ChangeConflict>> = Vec::new();
    for (at, file) in files.iter().enumerate() {
        stop.check_raised()?;
        let raw = file.conflict.clone().filter(|it| !matches!(it, ChangeConflict::Needs(_)));
        let named = |paths: &Option<PathSelection>| {
            paths.as_ref().is_some_and(|paths| paths.includes_path(&file.path))
        };
        let open = raw.is_some() || file.merges;
        let left = if open && named(&options.mine) && file.part_of.is_none() {
            if taken.contains(&at) {
                dropped.insert(at);
            }
            Some(ChangeConflict::Changed)
        } else if named(&options.theirs) {
            raw.filter(|conflict| !gives_way(conflict))
        } else {
            raw
        };
        let left = left.or_else(|| {
            let reason = file.runs_later.filter(|_| !options.also_what_runs)?;
            held.insert(at, reason);
            Some(ChangeConflict::Needs(file.path.clone()))
        });
        conflicts.push(left);
    }
    // A directory is held back if a part of the directory would run later.
    for (at, reason) in held.clone() {
        for needed in
            files.get(at).filter(|it| it.part_of.is_some()).and(needs.get(at)).into_iter().flatten()
        {
            held.entry(*needed).or_insert(reason);
            if let (Some(conflict), Some(file)) = (conflicts.get_mut(*needed), files.get(*needed)) {
                conflict.get_or_insert(ChangeConflict::Needs(file.path.clone()));
            }
        }
    }
    let conflicts = spread_over(files, &needs, conflicts);
    for at in taken {
        let Some(file) = files.get(at) else { continue };
        match conflicts.get(at).cloned().flatten() {
            None => drop(chosen.applied.insert(at)),
            Some(_) if dropped.contains(&at) => chosen.dropped.push(file.path.clone()),
            Some(conflict) => match held.get(&at) {
                Some(reason) => chosen.held_back.push((file.path.clone(), *reason)),
                None => chosen.conflicts.push((file.path.clone(), conflict)),
            },
        }
    }
    leave_empty_dirs(files, &held, &mut chosen, stop)?;
    Ok(chosen)
}

/// The selected changes with their needs; a directory comes with all its parts.
fn select_with_needs(
    files: &[FileChange],
    needs: &[Vec<usize>],
    selection: &PathSelection,
) -> BTreeSet<usize> {
    let mut parts: HashMap<&Path, Vec<usize>> = HashMap::new();
    for (at, file) in files.iter().enumerate() {
        if let Some(dir) = &file.part_of {
            parts.entry(dir).or_default().push(at);
        }
    }
    let mut taken = BTreeSet::new();
    let selected = files.iter().enumerate().filter(|(_, file)| selection.includes_path(&file.path));
    let mut open: Vec<usize> = selected.map(|(at, _)| at).collect();
    while let Some(at) = open.pop() {
        if !taken.insert(at) {
            continue;
        }
        open.extend(needs.get(at).into_iter().flatten());
        if let Some(file) = files.get(at)
            && file.part_of.is_none()
            && file.node == NodeKind::Directory
        {
            open.extend(parts.get(file.path.as_path()).into_iter().flatten());
        }
    }
    taken
}

/// Leaves out a new directory with only left-out content, because an empty directory is useless, and its name
/// alone may have an effect in other programs.
fn leave_empty_dirs(
    files: &[FileChange],
    held: &BTreeMap<usize, &'static str>,
    chosen: &mut ChangePlan,
    stop: &StopSignal,
) -> Result<(), WorkStopped> {
    let mut left: BTreeSet<usize> = held.keys().copied().collect();
    let dirs: Vec<usize> = chosen.applied.iter().copied().rev().collect();
    for at in dirs {
        let Some(dir) = files.get(at) else { continue };
        stop.check_raised()?;
        if dir.kind != FileDifference::Added
            || dir.node != NodeKind::Directory
            || dir.part_of.is_some()
        {
            continue;
        }
        // The content comes after its directory; deeper directories were handled before.
        let inside = files.iter().enumerate().skip(at + 1);
        let inside = inside.take_while(|(_, file)| file.path.starts_with(&dir.path));
        let (mut holds, mut waits) = (false, false);
        for (at, _) in inside {
            holds |= chosen.applied.contains(&at);
            waits |= left.contains(&at);
            if holds {
                break;
            }
        }
        if waits && !holds {
            chosen.applied.remove(&at);
            left.insert(at);
        }
    }
    Ok(())
}

/// Whether choosing the agent's version resolves a conflict.
fn gives_way(conflict: &ChangeConflict) -> bool {
    match conflict {
        ChangeConflict::Changed
        | ChangeConflict::Gone
        | ChangeConflict::InTheWay
        | ChangeConflict::NewInside(_) => true,
        ChangeConflict::OtherKind
        | ChangeConflict::NoDirectory
        | ChangeConflict::Needs(_)
        | ChangeConflict::Protected
        | ChangeConflict::Special
        | ChangeConflict::Elsewhere => false,
    }
}
