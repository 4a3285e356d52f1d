//! The folders of skills among an agent's rights: whoever may load a skill may read the files beside it.
//!
//! A folder is a read-only mount below `/skills`, part of the right to call `use_skill`. An agent file whose
//! `mounts` leave `/skills/NAME` out, and a parent without it, keep it from an agent as they keep any mount.

use belljar_catalogue::SkillFolder;
use belljar_definition::builtin_tools::USE_SKILL;
use belljar_policy::{AskedRights, Mount, Rights};

use crate::host::Host;

/// The rights with the folders of the host's skills, within those of a parent.
pub(crate) fn with_skill_folders(
    rights: Rights,
    host: &Host,
    asked: &AskedRights,
    parent: Option<&Rights>,
) -> Rights {
    if !rights.has_tool(USE_SKILL) {
        return rights;
    }
    // A folder that was removed meanwhile would keep the jar from opening.
    let there = host.skill_folders.iter().filter(|folder| folder.host.is_dir());
    let above = |mount: &Mount| parent.is_none_or(|parent| parent.mounts().contains(mount));
    rights.with_folders(there.map(SkillFolder::to_mount).filter(above), asked)
}

/// The folders that an agent with these rights reads.
pub(crate) fn readable_folders(host: &Host, rights: &Rights) -> Vec<SkillFolder> {
    let readable =
        |folder: &&SkillFolder| rights.mounts().iter().any(|mount| *mount == folder.to_mount());
    host.skill_folders.iter().filter(readable).cloned().collect()
}
