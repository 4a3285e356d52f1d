//! The other files of skills: the folder of each `SKILL.md`, readable by agents at a separate path. For
//! example, agents read `~/.belljar/skills/tides/scripts/table.py` as `/skills/tides/scripts/table.py`.
//!
//! The module only checks the folders. A jar opens them as read-only mounts, and the jar's file host refuses
//! every link that leads out and every special file. A folder beyond the bounds, or an installed folder with
//! a file that a person did not agree to, is left out with a message.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};

use belljar_definition::{
    AgentId, AgentScope, CatalogEntry, CatalogItem as _, Diagnostic, SkillDefinition,
};
use belljar_policy::{GuestPath, Mount, MountAccess};
use belljar_sandbox::Digest;
use belljar_work::{StopSignal, WorkStopped};

use crate::library::{LibraryRoot, SkillLibrary};
use crate::limits::{
    MAX_MATERIAL_BYTES, MAX_MATERIAL_DEPTH, MAX_MATERIAL_FILES, MAX_MATERIAL_NAMES,
    MAX_SKILL_FOLDERS,
};
use crate::tool_files::read_bounded;

/// The directory in every guest below which the folders of skills are.
const SKILL_FOLDERS: &str = "/skills";

/// The folder of one skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFolder {
    /// The skill.
    pub id: AgentId,
    /// The path for agents, for example `/skills/tides`.
    pub guest: GuestPath,
    /// The directory, without links.
    pub host: PathBuf,
    /// The first other files, by path below the folder, in order. Foreign text.
    pub files: Vec<String>,
    /// The number of other files.
    pub count: usize,
}

/// The folders of a library's skills.
#[derive(Debug, Clone, Default)]
pub struct SkillFolders {
    /// The folders with other files, in the catalogue's order.
    pub folders: Vec<SkillFolder>,
    /// The folders that are left out, with the reasons.
    pub problems: Vec<Diagnostic>,
}

/// The files of an installed library that a person agreed to, by path below the library's directory.
type AgreedFiles = BTreeMap<PathBuf, Digest>;

/// The walk through the folder of one skill.
struct FolderWalk<'a> {
    folder: &'a Path,
    /// The library's directory, and its agreed files; `None` = every file counts.
    agreed: Option<(&'a Path, &'a AgreedFiles)>,
    files: BTreeSet<PathBuf>,
    bytes: u64,
    entries: usize,
    stop: &'a StopSignal,
}

/// The reason why a folder is left out.
enum FolderRefusal {
    /// The caller has given up.
    Stopped(WorkStopped),
    /// The folder exceeds a bound or has a file that was not agreed to.
    Unfit(String),
}

impl From<WorkStopped> for FolderRefusal {
    fn from(stopped: WorkStopped) -> Self {
        Self::Stopped(stopped)
    }
}

impl SkillFolder {
    /// The folder as a mount, read-only for every agent.
    pub fn to_mount(&self) -> Mount {
        Mount { guest: self.guest.clone(), host: self.host.clone(), access: MountAccess::Read }
    }
}

impl SkillLibrary {
    /// Finds the folders of the skills that a model may load, and of `called`: the ids of skills called by a
    /// person.
    ///
    /// # Errors
    ///
    /// [`WorkStopped`] once the signal is raised.
    pub fn find_folders(
        &self,
        called: &[AgentId],
        stop: &StopSignal,
    ) -> Result<SkillFolders, WorkStopped> {
        let catalog = self.catalog();
        let mut found = SkillFolders::default();
        let readable = |skill: &&CatalogEntry<SkillDefinition>| {
            skill.definition.callers.model || called.contains(&skill.id)
        };
        for skill in catalog.entries().iter().filter(readable) {
            let Some(folder) = skill_directory(self.roots(), skill) else { continue };
            let hidden = catalog.entries().iter().filter(|other| !readable(other));
            let looked = match hidden
                .map(|other| other.definition.path())
                .find(|path| path.starts_with(folder.directory))
            {
                Some(_) => Err(FolderRefusal::Unfit("a skill in it is not for models".to_owned())),
                None => folder.look_through(skill, stop),
            };
            match looked {
                Ok(None) => {}
                Ok(Some(_)) if found.folders.len() >= MAX_SKILL_FOLDERS => {
                    let why = format!("more than {MAX_SKILL_FOLDERS} skills have other files");
                    found.leave_out(skill, &why);
                }
                Ok(Some(folder)) => found.folders.push(folder),
                Err(FolderRefusal::Stopped(stopped)) => return Err(stopped),
                Err(FolderRefusal::Unfit(why)) => found.leave_out(skill, &why),
            }
        }
        Ok(found)
    }
}

impl SkillFolders {
    fn leave_out(&mut self, skill: &CatalogEntry<SkillDefinition>, why: &str) {
        let message = format!("agents cannot read its other files: {why}");
        let path = skill.definition.path();
        self.problems.push(Diagnostic::for_file(path, "skill-folder", message));
    }
}

/// A skill's directory in a root.
struct SkillDirectory<'a> {
    root: &'a LibraryRoot,
    directory: &'a Path,
}

/// The directory of a skill with a directory of its own. A plain `skills/NAME.md` has none, nor has a
/// `SKILL.md` directly in the folder of all skills; of an installed library only agreed files count anyway.
fn skill_directory<'a>(
    roots: &'a [LibraryRoot],
    skill: &'a CatalogEntry<SkillDefinition>,
) -> Option<SkillDirectory<'a>> {
    let path = skill.definition.path();
    if !SkillDefinition::is_in_folder(path) {
        return None;
    }
    let directory = path.parent()?;
    let root = roots
        .iter()
        .find(|root| root.scope == skill.id.scope && directory.starts_with(&root.dir))?;
    let whole = directory == root.dir && root.pinned.is_none();
    (!whole).then_some(SkillDirectory { root, directory })
}

impl SkillDirectory<'_> {
    /// The folder, unless the skill has no other files.
    fn look_through(
        &self,
        skill: &CatalogEntry<SkillDefinition>,
        stop: &StopSignal,
    ) -> Result<Option<SkillFolder>, FolderRefusal> {
        let unfit = |error: std::io::Error| FolderRefusal::Unfit(error.to_string());
        let host = self.directory.canonicalize().map_err(unfit)?;
        // A stranger's link may lead to what agents must not read, also inside the workspace.
        if let AgentScope::Workspace(_) = &self.root.scope
            && host != self.directory
        {
            return Err(FolderRefusal::Unfit("the folder is reached through a link".to_owned()));
        }
        let agreed = self.root.pinned.as_deref().map(|files| (self.root.dir.as_path(), files));
        let (files, bytes, entries) = (BTreeSet::new(), 0, 0);
        let folder = self.directory;
        let mut walk = FolderWalk { folder, agreed, files, bytes, entries, stop };
        walk.walk_directory(folder, 0)?;
        walk.files.remove(skill.definition.path().strip_prefix(folder).unwrap_or(Path::new("")));
        if walk.files.is_empty() {
            return Ok(None);
        }
        let guest = GuestPath::new(&format!("{SKILL_FOLDERS}/{}", folder_name(&skill.id)));
        let guest = guest.map_err(|error| FolderRefusal::Unfit(error.to_string()))?;
        let named = walk.files.iter().take(MAX_MATERIAL_NAMES);
        Ok(Some(SkillFolder {
            id: skill.id.clone(),
            guest,
            host,
            files: named.map(|path| path.to_string_lossy().into_owned()).collect(),
            count: walk.files.len(),
        }))
    }
}

/// The name of a skill's folder: the slug, or `LIBRARY:SLUG`, for example `reviewers:security`. No slug has a
/// colon, so no two skills share a name.
fn folder_name(id: &AgentId) -> String {
    match &id.scope {
        AgentScope::Home => id.slug.to_string(),
        // A workspace's skill never has the slug of a skill of the home.
        AgentScope::Workspace(_) => id.slug.to_string(),
        AgentScope::Library(name) => format!("{}:{}", name.replace('/', ":"), id.slug),
    }
}

impl FolderWalk<'_> {
    fn walk_directory(&mut self, directory: &Path, depth: usize) -> Result<(), FolderRefusal> {
        let entries =
            fs::read_dir(directory).map_err(|error| FolderRefusal::Unfit(error.to_string()))?;
        for entry in entries.flatten() {
            self.stop.check_raised()?;
            self.entries += 1;
            if self.entries > MAX_MATERIAL_FILES {
                let why = format!("there are more than {MAX_MATERIAL_FILES} files");
                return Err(FolderRefusal::Unfit(why));
            }
            self.visit_entry(&entry, depth)?;
        }
        Ok(())
    }

    fn visit_entry(&mut self, entry: &DirEntry, depth: usize) -> Result<(), FolderRefusal> {
        let path = entry.path();
        let kind = entry.file_type().map_err(|error| FolderRefusal::Unfit(error.to_string()))?;
        // The files of a version control system and of editors are nothing of the skill's.
        if self.agreed.is_none() && entry.file_name().as_encoded_bytes().starts_with(b".") {
            return Ok(());
        }
        if kind.is_dir() {
            if depth >= MAX_MATERIAL_DEPTH {
                let why = format!("folders are more than {MAX_MATERIAL_DEPTH} deep");
                return Err(FolderRefusal::Unfit(why));
            }
            return self.walk_directory(&path, depth + 1);
        }
        if !kind.is_file() {
            // A link or a special file is left to the jar's file host; an installed skill has none.
            return match self.agreed {
                None => Ok(()),
                Some(_) => {
                    Err(FolderRefusal::Unfit("a link or a special file is in it".to_owned()))
                }
            };
        }
        let length = entry.metadata().map_or(u64::MAX, |meta| meta.len());
        self.bytes = self.bytes.saturating_add(length);
        if self.bytes > MAX_MATERIAL_BYTES {
            let why = format!("the files have more than {MAX_MATERIAL_BYTES} bytes");
            return Err(FolderRefusal::Unfit(why));
        }
        self.check_agreed(&path, length)?;
        self.files.insert(path.strip_prefix(self.folder).unwrap_or(&path).to_path_buf());
        Ok(())
    }

    /// Checks that an installed file has the digest that a person agreed to.
    fn check_agreed(&self, path: &Path, length: u64) -> Result<(), FolderRefusal> {
        let Some((root, files)) = self.agreed else { return Ok(()) };
        let agreed = path.strip_prefix(root).ok().and_then(|below| files.get(below));
        let same = agreed.is_some_and(|agreed| {
            read_bounded(path, length).is_ok_and(|bytes| Digest::hash_bytes(&bytes) == *agreed)
        });
        if same {
            return Ok(());
        }
        let why = "a file in it is not as it was installed; `belljar agents update` puts it right";
        Err(FolderRefusal::Unfit(why.to_owned()))
    }
}

#[cfg(test)]
mod tests;
