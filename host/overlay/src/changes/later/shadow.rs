//! Finds new files that a language would load instead of a module of its own, for example `json.py`.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use belljar_work::{StopSignal, WorkStopped};

use super::folded_names;
use super::name::name_ending;
use super::table::{LaterTables, ShadowLanguage};
use crate::changes::workspace::Workspace;
use crate::changes::{FileChange, FileDifference, NodeKind};

/// Marks the new files that replace a module.
pub(super) fn mark_shadowing(
    table: &'static LaterTables,
    files: &mut [FileChange],
    workspace: &Workspace,
    stop: &StopSignal,
) -> Result<(), WorkStopped> {
    let is_new = |file: &&FileChange| {
        matches!(file.kind, FileDifference::Added | FileDifference::Renamed { .. })
    };
    let new: HashSet<PathBuf> = files.iter().filter(is_new).map(|file| file.path.clone()).collect();
    let mut place = ModuleDirectories { workspace, new: &new, packages: HashMap::new() };
    for language in &table.languages {
        let names: HashSet<String> =
            language.names.iter().map(|name| name.to_lowercase()).collect();
        for file in files.iter_mut() {
            stop.check_raised()?;
            if file.runs_later.is_none()
                && file.node == NodeKind::File
                && new.contains(&file.path)
                && comes_before(language, &names, &file.path, &mut place)
            {
                file.runs_later = Some(&language.reason);
            }
        }
    }
    Ok(())
}

/// Whether a language finds the file, or a package of the same name, before its own module.
fn comes_before(
    language: &ShadowLanguage,
    modules: &HashSet<String>,
    path: &Path,
    place: &mut ModuleDirectories<'_>,
) -> bool {
    let names = folded_names(path);
    let Some((last, dirs)) = names.split_last() else { return false };
    let fits =
        name_ending(last).is_some_and(|ending| language.endings.iter().any(|it| it == ending));
    let Some(stem) = last.split('.').next().filter(|_| fits) else { return false };
    if language.roots.iter().any(|root| root == "*") {
        let above = path.parent().unwrap_or(Path::new(""));
        if modules.contains(stem) && place.is_root(above, language) {
            return true;
        }
        let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
        above.reverse();
        let mut package = dirs.iter().zip(above.into_iter().skip(1));
        return package.any(|(name, dir)| {
            modules.contains(name)
                && place.becomes_package(dir, language)
                && place.is_root(dir.parent().unwrap_or(Path::new("")), language)
        });
    }
    let is_root = |from: usize| match from.checked_sub(1).and_then(|above| dirs.get(above)) {
        None => language.roots.iter().any(|root| root == "."),
        Some(dir) => language.roots.iter().any(|root| root == dir),
    };
    (0..names.len()).filter(|from| is_root(*from)).any(|from| {
        let dirs = dirs.get(from..).unwrap_or_default();
        let is_package = language.package.as_deref() == Some(stem);
        let own = (!is_package).then_some(stem);
        let name: Vec<&str> = dirs.iter().map(String::as_str).chain(own).collect();
        modules.contains(&name.join("/"))
    })
}

/// The directories of the workspace, present and future.
struct ModuleDirectories<'a> {
    workspace: &'a Workspace,
    new: &'a HashSet<PathBuf>,
    /// Whether directories of the workspace are packages.
    packages: HashMap<PathBuf, bool>,
}

impl ModuleDirectories<'_> {
    /// Whether a language looks up modules in a directory. A package is no such directory. Exceptions are the
    /// workspace's own directory, and a directory made a package only by these changes, because a program may
    /// be started there.
    fn is_root(&mut self, dir: &Path, language: &ShadowLanguage) -> bool {
        let is_new = || self.workspace.look_at(dir).is_ok_and(|found| found.is_none());
        if dir.as_os_str().is_empty() {
            return true;
        }
        if is_new() {
            return !self.init_of(dir, language).iter().any(|init| self.new.contains(init));
        }
        !self.is_package(dir, language)
    }

    /// Whether these changes make a directory a package.
    fn becomes_package(&mut self, dir: &Path, language: &ShadowLanguage) -> bool {
        let new = self.init_of(dir, language).iter().any(|init| self.new.contains(init));
        new && !self.is_package(dir, language)
    }

    /// Whether a directory of the workspace is a package of the language, for example has an `__init__.py`.
    fn is_package(&mut self, dir: &Path, language: &ShadowLanguage) -> bool {
        if let Some(known) = self.packages.get(dir) {
            return *known;
        }
        let is_there = |init: &PathBuf| self.workspace.look_at(init).is_ok_and(|it| it.is_some());
        let is_package = self.init_of(dir, language).iter().any(is_there);
        self.packages.insert(dir.to_owned(), is_package);
        is_package
    }

    /// The paths of the files that make a directory a package, for example `__init__.py`.
    fn init_of(&self, dir: &Path, language: &ShadowLanguage) -> Vec<PathBuf> {
        let init = language.package.as_deref();
        let endings = language.endings.iter();
        init.map(|init| endings.map(|it| dir.join(format!("{init}.{it}"))).collect())
            .unwrap_or_default()
    }
}
