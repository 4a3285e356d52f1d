//! Adds the folders of skills to an agent's rights: an agent that may load a skill may read the files beside
//! it.
//!
//! A folder is a read-only mount below `/skills`, and part of the right to call `use_skill`. If the agent's
//! file has `mounts` without `/skills/NAME`, or the parent lacks it, the agent does not get it, as with any
//! mount.

use belljar_catalogue::SkillFolder;
use belljar_definition::builtin_tools::USE_SKILL;
use belljar_policy::{AskedRights, Mount, Rights};

use crate::host::Host;

/// The rights with the folders of the host's skills. With a parent, only folders that the parent has.
pub(crate) fn with_skill_folders(
    rights: Rights,
    host: &Host,
    asked: &AskedRights,
    parent: Option<&Rights>,
) -> Rights {
    if !rights.has_tool(USE_SKILL) {
        return rights;
    }
    // A folder that was removed meanwhile is left out, because the jar could not open it.
    let there = host.skill_folders.iter().filter(|folder| folder.host.is_dir());
    let above = |mount: &Mount| parent.is_none_or(|parent| parent.mounts().contains(mount));
    rights.with_folders(there.map(SkillFolder::to_mount).filter(above), asked)
}

/// The folders of skills that an agent with these rights may read.
pub(crate) fn readable_folders(host: &Host, rights: &Rights) -> Vec<SkillFolder> {
    let readable =
        |folder: &&SkillFolder| rights.mounts().iter().any(|mount| *mount == folder.to_mount());
    host.skill_folders.iter().filter(readable).cloned().collect()
}
