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
    MAX_ALL_MATERIAL_BYTES, MAX_ALL_MATERIAL_FILES, MAX_MATERIAL_BYTES, MAX_MATERIAL_DEPTH,
    MAX_MATERIAL_FILES, MAX_MATERIAL_NAMES, MAX_SKILL_FOLDERS,
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
    /// The folders with other files, in the catalogue's order, those of workspaces last.
    pub folders: Vec<SkillFolder>,
    /// The folders that are left out, with the reasons.
    pub problems: Vec<Diagnostic>,
}

/// The end of the message about the first folder that is not looked at.
const REST: &str = "; nor those of the skills after it";

/// The files that a person agreed to, of an installed library: by path below its directory.
type AgreedFiles = BTreeMap<PathBuf, Digest>;

/// The part of the bounds on all folders that is left.
struct MaterialBudget {
    entries: usize,
    bytes: u64,
}

/// The look through one folder.
struct FolderWalk<'a> {
    folder: &'a Path,
    /// The library's directory, and its agreed files; `None` = every file counts.
    agreed: Option<(&'a Path, &'a AgreedFiles)>,
    files: BTreeSet<PathBuf>,
    bytes: u64,
    entries: usize,
    left: &'a mut MaterialBudget,
    stop: &'a StopSignal,
}

/// The reason why a folder is left out.
enum FolderRefusal {
    /// No further folder is looked at.
    Ended(String),
    /// The folder is not as it has to be.
    Unfit(String),
}

impl From<WorkStopped> for FolderRefusal {
    fn from(_: WorkStopped) -> Self {
        Self::Ended("the look at the folders took too long".to_owned())
    }
}

impl SkillFolder {
    /// The folder as a mount, read-only for every agent.
    pub fn to_mount(&self) -> Mount {
        Mount { guest: self.guest.clone(), host: self.host.clone(), access: MountAccess::Read }
    }
}

impl SkillLibrary {
    /// Looks at the folders of the skills that a model may load, and of `called`: skills that a person called,
    /// by id. Once the signal is raised or a bound on all folders is reached, what was found so far is kept.
    pub fn find_folders(&self, called: &[AgentId], stop: &StopSignal) -> SkillFolders {
        let catalog = self.catalog();
        let mut found = SkillFolders::default();
        let mut left =
            MaterialBudget { entries: MAX_ALL_MATERIAL_FILES, bytes: MAX_ALL_MATERIAL_BYTES };
        let readable = |skill: &&CatalogEntry<SkillDefinition>| {
            skill.definition.callers.model || called.contains(&skill.id)
        };
        // A stranger's folders come last, so that they use up nothing before the operator's.
        let is_foreign = |skill: &&CatalogEntry<SkillDefinition>| {
            matches!(skill.id.scope, AgentScope::Workspace(_))
        };
        let (foreign, own): (Vec<_>, Vec<_>) =
            catalog.entries().iter().filter(readable).partition(is_foreign);
        for skill in own.into_iter().chain(foreign) {
            let Some(folder) = skill_directory(self.roots(), skill) else { continue };
            if found.folders.len() >= MAX_SKILL_FOLDERS {
                found.leave_out(
                    skill,
                    &format!("{MAX_SKILL_FOLDERS} folders of skills are read{REST}"),
                );
                break;
            }
            let hidden = catalog.entries().iter().filter(|other| !readable(other));
            let looked = match hidden
                .map(|other| other.definition.path())
                .find(|path| path.starts_with(folder.directory))
            {
                Some(_) => Err(FolderRefusal::Unfit("a skill in it is not for models".to_owned())),
                None => folder.look_through(skill, &mut left, stop),
            };
            match looked {
                Ok(None) => {}
                Ok(Some(folder)) => found.folders.push(folder),
                Err(FolderRefusal::Unfit(why)) => found.leave_out(skill, &why),
                Err(FolderRefusal::Ended(why)) => {
                    found.leave_out(skill, &format!("{why}{REST}"));
                    break;
                }
            }
        }
        found
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
        left: &mut MaterialBudget,
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
        let mut walk = FolderWalk { folder, agreed, files, bytes, entries, left, stop };
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
            let Some(left) = self.left.entries.checked_sub(1) else {
                let why = format!("all skills have more than {MAX_ALL_MATERIAL_FILES} other files");
                return Err(FolderRefusal::Ended(why));
            };
            self.left.entries = left;
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
        let Some(left) = self.left.bytes.checked_sub(length) else {
            let why =
                format!("the files of all skills have more than {MAX_ALL_MATERIAL_BYTES} bytes");
            return Err(FolderRefusal::Ended(why));
        };
        self.left.bytes = left;
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
