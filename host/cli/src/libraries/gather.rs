//! The choice of a source's files, within bounds, and the left-out ones with reasons.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use belljar_catalogue::limits::{MAX_AGENT_DEPTH, MAX_AGENT_FILES};
use belljar_definition::{MAX_DEFINITION, may_hold_agent};
use belljar_policy::ShownText;

use crate::setup::exit::Failure;

/// Visited files and folders of a source. The largest public library has some ten thousand in all.
pub(super) const MAX_ENTRIES: usize = 100_000;

/// Bytes of all agent files together: what a few hundred of the longest have.
const MAX_TOTAL: usize = 32 << 20;

/// Bytes of one file of a source that is read whole: longer than every honest script or template.
const MAX_ANY_FILE: usize = 4 << 20;

/// Bytes of all files of a source that is read whole.
const MAX_ANY_TOTAL: usize = 64 << 20;

/// Left-out files named one by one.
const MAX_LEFT_OUT: usize = 500;

/// Bytes of a path below the source.
const MAX_PATH: usize = 512;

/// Hidden folders in which programs look for agents. Only a folder of agents below them counts.
const PLACES_OF_AGENTS: &[&str] = &[
    ".agent",
    ".agents",
    ".agentsmesh",
    ".amazonq",
    ".augment",
    ".belljar",
    ".claude",
    ".codebuddy",
    ".codex",
    ".config",
    ".copilot",
    ".crush",
    ".cursor",
    ".devin",
    ".factory",
    ".gemini",
    ".github",
    ".goose",
    ".grok",
    ".iflow",
    ".junie",
    ".kilo",
    ".kilocode",
    ".kimi",
    ".kiro",
    ".netclaw",
    ".opencode",
    ".pi",
    ".qoder",
    ".qwen",
    ".smallcode",
    ".trae",
    ".windsurf",
];

/// Folders of agents in these places, and below a skill.
const FOLDERS_OF_AGENTS: &[&str] =
    &["agent", "agents", "chatmodes", "cli-agents", "droids", "modes", "recipes", "subagents"];

/// Folders of other kinds of markdown with fields, for example `commands`.
const OTHER_KINDS: &[&str] =
    &["skills", "skill", "commands", "command", "prompts", "instructions", "hooks"];

/// Folders that are named as not installed, and looked into all the same.
const NAMED: &[&str] = &["teams"];

/// A file that may be an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GatheredFile {
    /// The path below the source, with `/` between its parts: no part is empty, `.`, `..` or has hidden
    /// characters.
    pub(crate) path: String,
    /// The content.
    pub(crate) bytes: Vec<u8>,
}

/// A file that is not installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeftOutFile {
    /// Its path; escaped.
    pub(crate) path: String,
    pub(crate) why: String,
}

/// The content of a source.
#[derive(Debug, Default)]
pub(crate) struct CollectedSource {
    /// In the order of their paths.
    pub(crate) files: Vec<GatheredFile>,
    /// Files that may have been meant as agents and were not taken.
    pub(crate) left_out: Vec<LeftOutFile>,
    /// How many more were left out.
    pub(crate) unnamed: usize,
    /// Folders of other kinds than agents: nothing of them is installed.
    pub(crate) folders: BTreeSet<String>,
}

/// The files of a source that are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum CollectScope {
    /// Files that may be agents.
    #[default]
    Agents,
    /// Every regular file, hidden ones included: for sources of more than agents.
    Everything,
}

impl CollectScope {
    /// The most bytes of one file; longer ones are left out.
    pub(super) fn longest_file(self) -> usize {
        match self {
            Self::Agents => MAX_DEFINITION,
            Self::Everything => MAX_ANY_FILE,
        }
    }

    /// Whether a file of this name may be one that is read, whatever its folder.
    pub(super) fn may_read(self, name: &str) -> bool {
        match self {
            Self::Agents => is_markdown(name) || is_other_form(name),
            Self::Everything => true,
        }
    }

    fn file_verdict(self, path: &str) -> FileVerdict {
        match self {
            Self::Agents => file_verdict(path),
            Self::Everything => match unfit_reason(path) {
                Some(why) => FileVerdict::LeaveOut(why),
                // The folder of git itself is never content.
                None if path.split('/').any(|part| part.eq_ignore_ascii_case(".git")) => {
                    FileVerdict::Pass
                }
                None => FileVerdict::Read,
            },
        }
    }

    /// The most files, and the most bytes of all of them.
    fn file_bounds(self) -> (usize, usize) {
        match self {
            Self::Agents => (MAX_AGENT_FILES, MAX_TOTAL),
            Self::Everything => (MAX_ENTRIES, MAX_ANY_TOTAL),
        }
    }
}

/// Takes files one by one.
#[derive(Debug, Default)]
pub(super) struct FileGatherer {
    scope: CollectScope,
    files: BTreeMap<String, Vec<u8>>,
    /// Those of the files, in lower case.
    paths: BTreeSet<String>,
    left_out: Vec<LeftOutFile>,
    unnamed: usize,
    folders: BTreeSet<String>,
    entries: usize,
    total: usize,
}

/// The verdict of a path about its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FileVerdict {
    /// Perhaps an agent: to be read.
    Read,
    /// Not one of the searched files.
    Pass,
    /// In a folder of another kind, named here.
    Other(String),
    /// It may be an agent, and is not taken.
    LeaveOut(&'static str),
}

impl FileGatherer {
    /// A gatherer of these files.
    pub(super) fn with_scope(scope: CollectScope) -> Self {
        Self { scope, ..Self::default() }
    }

    /// The files that are read.
    pub(super) fn scope(&self) -> CollectScope {
        self.scope
    }

    /// Counts one entry of the source.
    pub(super) fn count_entry(&mut self) -> Result<(), Failure> {
        self.entries += 1;
        if self.entries > MAX_ENTRIES {
            return Err(Failure::usage(format!(
                "the source has more than {MAX_ENTRIES} files and folders"
            ))
            .with_hint("give the folder in it that holds the agents"));
        }
        Ok(())
    }

    /// Whether to read the file at this path; notes a file left out.
    pub(super) fn wants_file(&mut self, path: &str) -> bool {
        match self.scope.file_verdict(path) {
            // On a file system without letter case both would be one file, ambiguously.
            FileVerdict::Read if self.paths.contains(&path.to_lowercase()) => {
                self.leave_out(path, "another file has this path too");
                false
            }
            FileVerdict::Read => true,
            FileVerdict::Pass => false,
            FileVerdict::Other(folder) => {
                self.folders.insert(folder);
                false
            }
            FileVerdict::LeaveOut(why) => {
                self.leave_out(path, why);
                false
            }
        }
    }

    /// Notes a wanted file whose content comes later, so that no other file takes its path.
    pub(super) fn reserve_path(&mut self, path: &str) {
        self.paths.insert(path.to_lowercase());
    }

    /// Notes a file that cannot be read, if its path is one of those that are read.
    pub(super) fn refuse_file(&mut self, path: &str, why: &str) {
        if self.wants_file(path) {
            self.leave_out(path, why);
        }
    }

    /// The most bytes of one file.
    pub(super) fn longest_file(&self) -> usize {
        self.scope.longest_file()
    }

    /// Keeps a file that was wanted.
    pub(super) fn keep_file(&mut self, path: &str, bytes: Vec<u8>) -> Result<(), Failure> {
        // Most files of these forms are no agents, and are not counted.
        let is_other = self.scope == CollectScope::Agents && is_other_form(path);
        if is_other && (bytes.len() > MAX_DEFINITION || !may_hold_agent(Path::new(path), &bytes)) {
            return Ok(());
        }
        if bytes.len() > self.longest_file() {
            self.leave_out(path, "it is longer than an agent may be");
            return Ok(());
        }
        self.total += bytes.len();
        let (most_files, most_bytes) = self.scope.file_bounds();
        if self.total > most_bytes || self.files.len() >= most_files {
            return Err(Failure::usage(format!(
                "the source has more than {most_files} files of the kind that is read, or more than \
                 {most_bytes} bytes of them"
            ))
            .with_hint("give the folder in it that holds the agents"));
        }
        self.paths.insert(path.to_lowercase());
        self.files.insert(path.to_owned(), bytes);
        Ok(())
    }

    /// Notes a file that is not taken.
    pub(super) fn leave_out(&mut self, path: &str, why: impl Into<String>) {
        if self.left_out.len() < MAX_LEFT_OUT {
            let path = ShownText::clip_line(path, MAX_PATH).to_string();
            self.left_out.push(LeftOutFile { path, why: why.into() });
        } else {
            self.unnamed += 1;
        }
    }

    pub(super) fn into_collected(self) -> CollectedSource {
        let Self { files, left_out, unnamed, folders, .. } = self;
        let files = files.into_iter().map(|(path, bytes)| GatheredFile { path, bytes }).collect();
        CollectedSource { files, left_out, unnamed, folders }
    }
}

/// Why belljar would not make this path: the lock file is parsed by the same rule.
pub(super) fn unfit_reason(path: &str) -> Option<&'static str> {
    if path.is_empty() || path.len() > MAX_PATH {
        return Some("its path is empty or too long");
    }
    for part in path.split('/') {
        if matches!(part, "" | "." | "..") || part.contains('\\') || part.len() > 255 {
            return Some("its path is not a plain one");
        }
        if part.chars().any(belljar_policy::ShownText::is_hidden) {
            return Some("its path holds characters that no screen shows");
        }
    }
    None
}

fn file_verdict(path: &str) -> FileVerdict {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let folders: Vec<&str> = folders.split('/').filter(|folder| !folder.is_empty()).collect();
    let known = |list: &[&str], folder: &str| list.contains(&folder.to_ascii_lowercase().as_str());
    let mut hidden = folders.iter().enumerate().filter(|(_, folder)| folder.starts_with('.'));
    let is_place = |(at, folder): (usize, &&str)| {
        let below = folders.get(at + 1..).unwrap_or_default();
        PLACES_OF_AGENTS.contains(folder) && below.iter().any(|it| known(FOLDERS_OF_AGENTS, it))
    };
    if name.starts_with('.') || !hidden.all(is_place) {
        return FileVerdict::Pass;
    }
    if let Some(at) = folders.iter().position(|folder| known(OTHER_KINDS, folder)) {
        let folder = folders.get(at).copied().unwrap_or_default();
        // A skill may bring agents of its own: `skills/NAME/agents/x.md`.
        let below = folders.get(at + 2..).unwrap_or_default();
        let is_skill = known(&["skills", "skill"], folder);
        if !is_skill || !below.iter().any(|it| known(FOLDERS_OF_AGENTS, it)) {
            return FileVerdict::Other(ShownText::clip_line(folder, 80).to_string());
        }
    }
    if !is_markdown(name) {
        let named = folders.iter().find(|folder| known(NAMED, folder));
        if let Some(folder) = named {
            return FileVerdict::Other((*folder).to_owned());
        }
        let reads =
            is_other_form(name) && unfit_reason(path).is_none() && folders.len() <= MAX_AGENT_DEPTH;
        return if reads { FileVerdict::Read } else { FileVerdict::Pass };
    }
    if name.eq_ignore_ascii_case("SKILL.md") {
        return FileVerdict::Other("skills".to_owned());
    }
    if let Some(why) = unfit_reason(path) {
        return FileVerdict::LeaveOut(why);
    }
    // Not of the lock, which may have such a path from before.
    let blurred = |part: &str| part.ends_with(['.', ' ']) || part.starts_with(' ');
    if path.split('/').any(blurred) {
        return FileVerdict::LeaveOut(
            "a part of its path begins or ends with what nobody sees there",
        );
    }
    if folders.len() > MAX_AGENT_DEPTH {
        return FileVerdict::LeaveOut("it lies too deep");
    }
    FileVerdict::Read
}

/// Whether a name is one of a form in which programs keep agents beside markdown.
fn is_other_form(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [".toml", ".json", ".yaml", ".yml"].iter().any(|end| name.ends_with(end))
}

fn is_markdown(name: &str) -> bool {
    name.len() > 3 && name.get(name.len() - 3..).is_some_and(|end| end.eq_ignore_ascii_case(".md"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_says_whether_a_file_is_looked_at() {
        let other = |name: &str| FileVerdict::Other(name.to_owned());
        for (path, expected) in [
            ("a.md", FileVerdict::Read),
            ("Agents/x.MD", FileVerdict::Read),
            (".claude/agents/a.md", FileVerdict::Read),
            ("x/.opencode/agent/sub/a.md", FileVerdict::Read),
            (".gemini/agents/a.md", FileVerdict::Read),
            (".kiro/agents/a.json", FileVerdict::Read),
            (".factory/droids/a.md", FileVerdict::Read),
            (".github/chatmodes/a.chatmode.md", FileVerdict::Read),
            (".config/opencode/agent/a.md", FileVerdict::Read),
            (".amazonq/cli-agents/a.json", FileVerdict::Read),
            ("categories/x/a.toml", FileVerdict::Read),
            ("skills/s/agents/a.md", FileVerdict::Read),
            ("skills/agents/a.md", other("skills")),
            ("commands/x/agents/a.md", other("commands")),
            (".vscode/agents/a.md", FileVerdict::Pass),
            (".claude/settings.json", FileVerdict::Pass),
            (".claude/commands/a.md", FileVerdict::Pass),
            (".git/agents/a.md", FileVerdict::Pass),
            (".github/agents/.hidden/a.md", FileVerdict::Pass),
            (".a.md", FileVerdict::Pass),
            ("a.txt", FileVerdict::Pass),
            (".md", FileVerdict::Pass),
            ("plugins/p/Skills/s/a.md", other("Skills")),
            ("x/skill.md", other("skills")),
            ("hooks/run.sh", other("hooks")),
            ("teams/pair.yaml", other("teams")),
            ("teams/lead.md", FileVerdict::Read),
            ("1/2/3/4/5/6/7/8/a.md", FileVerdict::Read),
            ("1/2/3/4/5/6/7/8/9/a.md", FileVerdict::LeaveOut("it lies too deep")),
            (
                "a\u{202e}.md",
                FileVerdict::LeaveOut("its path holds characters that no screen shows"),
            ),
            ("a\\b.md", FileVerdict::LeaveOut("its path is not a plain one")),
            (
                "agents./a.md",
                FileVerdict::LeaveOut(
                    "a part of its path begins or ends with what nobody sees there",
                ),
            ),
        ] {
            assert_eq!(file_verdict(path), expected, "{path}");
        }
    }

    #[test]
    fn a_path_is_taken_once_and_too_much_is_an_error() {
        let mut gather = FileGatherer::default();
        assert!(gather.wants_file("a.md"));
        gather.keep_file("a.md", b"x".to_vec()).unwrap();
        assert!(!gather.wants_file("a.md") && !gather.wants_file("A.md"));
        gather.keep_file("long.md", vec![0; MAX_DEFINITION + 1]).unwrap();
        for n in 0..MAX_TOTAL / MAX_DEFINITION - 1 {
            gather.keep_file(&format!("{n}.md"), vec![0; MAX_DEFINITION]).unwrap();
        }
        assert!(gather.keep_file("more.md", vec![0; MAX_DEFINITION]).is_err());
        let collected = gather.into_collected();
        assert_eq!(collected.left_out.len(), 3);
        assert_eq!(collected.files[0].path, "0.md");
    }
}
