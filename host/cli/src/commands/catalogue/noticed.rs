//! Agents that a workspace keeps for other programs: named in one line until the workspace has been added as a
//! library. Nothing of them is loaded by that.

use std::fs;
use std::path::Path;

use belljar_policy::ShownText;

use crate::libraries::LibraryLock;
use crate::setup::home::HomePaths;
use crate::term::out::TerminalOutput;
use crate::term::table;

/// Folders of agents in a workspace, with the program that reads them.
const FOLDERS: &[(&str, &str)] = &[
    (".claude/agents", "Claude Code"),
    (".opencode/agent", "OpenCode"),
    (".opencode/agents", "OpenCode"),
    (".cursor/agents", "Cursor"),
    (".codex/agents", "Codex"),
    (".gemini/agents", "Gemini CLI"),
    (".github/agents", "Copilot"),
    (".github/chatmodes", "Copilot"),
    (".kiro/agents", "Kiro"),
];

/// Instructions of other programs, which no agent here reads by itself.
const INSTRUCTIONS: &[&str] = &["CLAUDE.md"];

/// Entries of one folder that are looked at.
const MAX_ENTRIES: usize = 1_000;

/// Names the agents that the workspace keeps for other programs, unless the workspace is a library already.
pub(crate) fn note_workspace_agents(places: &HomePaths, out: &TerminalOutput) {
    let lock = LibraryLock::read(&places.libraries_directory()).unwrap_or_default();
    let is_added = |path: &Path| places.workspace.starts_with(path);
    if lock.libraries.values().any(|it| it.source.local_path().is_some_and(is_added)) {
        return;
    }
    if let Some(text) = describe_agents(&places.workspace) {
        out.note(format_args!("this project has {text}: `belljar add .` shows what they ask for"));
    }
}

/// For example `4 agents written for Claude Code, and a CLAUDE.md`; `None` = no agents.
fn describe_agents(workspace: &Path) -> Option<String> {
    let mut found: Vec<(&str, usize)> = Vec::new();
    for (folder, program) in FOLDERS {
        let number = count_files(&workspace.join(folder));
        match found.iter_mut().find(|(known, _)| *known == *program) {
            Some((_, count)) => *count += number,
            None => found.push((*program, number)),
        }
    }
    found.retain(|(_, count)| *count > 0);
    let mut parts: Vec<String> = Vec::new();
    for (program, count) in found {
        let agents = match parts.is_empty() {
            true => table::format_quantity(count as u64, "agent"),
            false => count.to_string(),
        };
        parts.push(format!("{agents} written for {program}"));
    }
    if parts.is_empty() {
        return None;
    }
    let named = INSTRUCTIONS.iter().filter(|name| workspace.join(name).is_file());
    parts.extend(named.map(|name| format!("a {}", ShownText::new(name))));
    Some(parts.join(", "))
}

/// The files of a folder that have an agent's ending. No link is followed.
fn count_files(folder: &Path) -> usize {
    let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
    // Of both parts of the path, because a stranger made the workspace.
    if !folder.parent().is_some_and(is_folder) || !is_folder(folder) {
        return 0;
    }
    let entries = fs::read_dir(folder).into_iter().flatten().take(MAX_ENTRIES).flatten();
    let is_agent = |name: &str| {
        let name = name.to_ascii_lowercase();
        !name.starts_with("readme")
            && [".md", ".toml", ".json"].iter().any(|end| name.ends_with(end))
    };
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .filter(|entry| entry.file_name().to_str().is_some_and(is_agent))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_of_other_programs_are_counted_without_following_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (workspace, outside) = (dir.path().join("w"), dir.path().join("outside"));
        for folder in [".claude/agents", ".cursor", "other"] {
            fs::create_dir_all(workspace.join(folder)).unwrap();
        }
        fs::create_dir_all(&outside).unwrap();
        fs::write(outside.join("x.md"), "").unwrap();
        std::os::unix::fs::symlink(&outside, workspace.join(".cursor/agents")).unwrap();
        std::os::unix::fs::symlink(outside.join("x.md"), workspace.join(".claude/agents/l.md"))
            .unwrap();
        assert_eq!(describe_agents(&workspace), None);
        for name in ["a.md", "b.md", "README.md", "notes.txt"] {
            fs::write(workspace.join(".claude/agents").join(name), "").unwrap();
        }
        assert_eq!(describe_agents(&workspace).unwrap(), "2 agents written for Claude Code");
        fs::create_dir_all(workspace.join(".codex/agents")).unwrap();
        fs::write(workspace.join(".codex/agents/c.toml"), "").unwrap();
        fs::write(workspace.join("CLAUDE.md"), "").unwrap();
        let text = describe_agents(&workspace).unwrap();
        assert_eq!(text, "2 agents written for Claude Code, 1 written for Codex, a CLAUDE.md");
    }
}
