//! Skills: `skills/NAME/SKILL.md`, or plain `skills/NAME.md`.
//!
//! A file has frontmatter with `name`, `description` and optional `triggers`; `use_skill` loads the body. A
//! file without frontmatter is a skill too, named like the file (for a `SKILL.md`, like the folder) and
//! described by its first line. A skill is text for a model and grants no right. Files written for other
//! programs load unchanged; their fields about tools are reported and have no effect.

use std::path::{Path, PathBuf};

use belljar_policy::Shown;

use crate::agent::{is_documentation, no_agent, recover, say_no_split, say_utf16};
use crate::diagnostic::{Findings, Position};
use crate::fields::{self, Fields, shown};
use crate::filed::{self, FileKind, FileRead, Filed, is_markdown};
use crate::frontmatter::{self, NoSplit, Split, is_utf16};
use crate::team::say_not_utf8;
use crate::yaml::{self, Key, Node, Value};
use crate::{NotAnAgent, Slug, suggest};

/// The longest skill file, in bytes; the longest public ones have some 60 kB.
pub const MAX_SKILL: usize = 256 << 10;

/// The longest first line that becomes a description, in characters.
const MAX_FIRST_LINE: usize = 1_024;

/// The most triggers of one skill.
const MAX_TRIGGERS: usize = 32;

/// The range of a trigger's length, in characters, because shorter words occur in every text.
const TRIGGER_LENGTH: (usize, usize) = (3, 100);

/// The lower-case name of a skill's file in a folder of its own.
const SKILL_FILE: &str = "skill.md";

/// The spellings of the field that lists allowed tools.
const ALLOWED_TOOLS: &[&str] = &["allowed-tools", "allowed_tools", "allowedTools", "tools"];

/// The spellings of the field that hides a skill from models.
const NOT_FOR_MODELS: &[&str] =
    &["disable-model-invocation", "disable_model_invocation", "disableModelInvocation"];

/// The spellings of the field that decides whether a person may load a skill.
const FOR_PERSONS: &[&str] =
    &["user-invocable", "user_invocable", "userInvocable", "user-invokable"];

const KEYS: &[&str] = &[
    "name",
    "description",
    "triggers",
    "allowed-tools",
    "disable-model-invocation",
    "user-invocable",
];

/// A valid skill file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// The name for people, as written; else the folder's or the file's.
    pub name: String,
    /// The name for look-up, for example `release-notes`.
    pub slug: Slug,
    /// The situation in which to use the skill; not blank.
    pub description: String,
    /// Words and phrases; a task that contains one adds the skill.
    pub triggers: Vec<String>,
    /// The callers that the author permits.
    pub callers: SkillCallers,
    /// The text: every byte after the frontmatter; not blank.
    pub body: String,
    /// The file.
    pub path: PathBuf,
}

/// The callers that may load a skill; by default all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SkillCallers {
    /// Whether a model may load the skill, with `use_skill` or by a trigger in its task.
    /// `disable-model-invocation: true` forbids both.
    pub model: bool,
    /// Whether a person may load the skill, with a command of an editor or a prompt of an MCP client.
    /// `user-invocable: false` forbids both.
    pub person: bool,
}

impl Default for SkillCallers {
    fn default() -> Self {
        Self { model: true, person: true }
    }
}

impl Filed for Skill {
    const KIND: &'static FileKind =
        &FileKind { noun: "skill", a_noun: "a skill", folder: "skills", max_bytes: MAX_SKILL };

    type Context = ();

    /// Accepts `SKILL.md` at any depth, and the markdown files of the folder itself; other files in a skill's
    /// folder are its material.
    fn wants(below: &Path) -> bool {
        if is_skill_file(below) {
            return true;
        }
        let top = below.parent().is_none_or(|folder| folder.as_os_str().is_empty());
        top && is_markdown(below) && !is_documentation(below)
    }

    fn read(path: &Path, bytes: &[u8], (): &()) -> FileRead<Self> {
        if bytes.len() > MAX_SKILL {
            let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            return FileRead::Invalid { diagnostics: Self::too_large(path, length) };
        }
        let mut findings = Findings::new(path);
        let split = match frontmatter::utf8(bytes).map(frontmatter::split) {
            Ok(Ok(split)) => split,
            Ok(Err(NoSplit::NoFrontmatter)) if !is_documentation(path) => {
                let skill = plain(path, bytes, &mut findings);
                return FileRead::of(skill, findings);
            }
            Ok(Err(why @ (NoSplit::Empty | NoSplit::NoFrontmatter))) => return other(path, why),
            Ok(Err(why)) => {
                say_no_split(why, &mut findings);
                return FileRead::of(None, findings);
            }
            Err(_) if is_documentation(path) => return other(path, NoSplit::NoFrontmatter),
            Err(_) if is_utf16(bytes) => {
                say_utf16(&mut findings);
                return FileRead::of(None, findings);
            }
            Err(at) => {
                say_not_utf8(at, &mut findings);
                return FileRead::of(None, findings);
            }
        };
        let skill = read(path, &split, &mut findings);
        FileRead::of(skill, findings)
    }

    fn name_of_path(path: &Path) -> Option<String> {
        let named = if is_skill_file(path) { path.parent()?.file_name() } else { path.file_stem() };
        named.map(|name| name.to_string_lossy().into_owned())
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn slug(&self) -> &Slug {
        &self.slug
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

fn is_skill_file(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(SKILL_FILE))
}

fn other(path: &Path, why: NoSplit) -> FileRead<Skill> {
    // A `SKILL.md` is always meant as a skill; another file without frontmatter may be anything.
    if is_skill_file(path) {
        let mut findings = Findings::new(path);
        let message = match why {
            NoSplit::Empty => "the file is empty",
            NoSplit::NoFrontmatter | NoSplit::Unclosed(_) | NoSplit::TooLong(..) => {
                NotAnAgent::NoFrontmatter.as_str()
            }
        };
        let hint = "begin it with `---`, `name: ...`, `description: ...`, `---`";
        findings.error_hint(Position { line: 1, column: 1 }, "no-frontmatter", message, hint);
        return FileRead::of(None, findings);
    }
    FileRead::Other { reason: no_agent(path, why) }
}

/// Parses a skill without frontmatter: the whole file is its body.
fn plain(path: &Path, bytes: &[u8], findings: &mut Findings<'_>) -> Option<Skill> {
    let body = frontmatter::utf8(bytes).ok()?.trim_start_matches('\u{feff}').to_owned();
    let at = Position { line: 1, column: 1 };
    let Some(description) = first_line(&body) else {
        findings.error(at, "missing-body", "there is no text but the marks of a heading");
        return None;
    };
    let name = Skill::name_of_path(path).unwrap_or_default();
    let shown = Shown::new(&name);
    let message =
        format!("it has no frontmatter: its name is `{shown}`, its description its first line");
    findings.note(at, "no-frontmatter", message);
    let (name, slug) = filed::checked_name(&name, at, findings)?;
    let (triggers, callers) = (Vec::new(), SkillCallers::default());
    Some(Skill { name, slug, description, triggers, callers, body, path: path.to_path_buf() })
}

/// The first line of a text with words: not a rule, comment, picture, code fence or empty heading.
fn first_line(body: &str) -> Option<String> {
    const SILENT: [&str; 4] = ["```", "~~~", "<!--", "!["];
    let lines = body.split(['\n', '\r']).map(|line| line.trim_start_matches('#').trim());
    let mut told = lines.filter(|line| !SILENT.iter().any(|mark| line.starts_with(mark)));
    let line = told.find(|line| line.chars().any(|c| !c.is_ascii_punctuation() && c != ' '))?;
    Some(line.chars().take(MAX_FIRST_LINE).collect())
}

fn read(path: &Path, split: &Split<'_>, findings: &mut Findings<'_>) -> Option<Skill> {
    let opening = Position { line: split.yaml_line.saturating_sub(1), column: 1 };
    let entries = entries(split, findings)?;
    let mut fields = Fields::new(entries, opening, findings);
    let name = name(path, &mut fields);
    let description = description(split, &mut fields);
    let triggers = triggers(&mut fields);
    let callers = SkillCallers {
        model: !is_stated(NOT_FOR_MODELS, true, &mut fields),
        person: !is_stated(FOR_PERSONS, false, &mut fields),
    };
    say_allowed_tools(&mut fields);
    if split.body.trim().is_empty() {
        let at = Position { line: split.fence_line, column: 1 };
        let message = "there is no text after the frontmatter";
        let hint = "write the instructions below the closing `---`";
        fields.findings.error_hint(at, "missing-body", message, hint);
    }
    leftovers(fields);
    let (name, slug) = name?;
    let body = split.body.to_owned();
    let path = path.to_path_buf();
    let (description, triggers) = (description?, triggers?);
    Some(Skill { name, slug, description, triggers, callers, body, path })
}

/// The fields of the frontmatter. Broken YAML is repaired like that of agents; a skill grants no right, so no
/// limit can be lost.
fn entries(split: &Split<'_>, findings: &mut Findings<'_>) -> Option<Vec<(Key, Node)>> {
    match yaml::parse(split.yaml, split.yaml_line) {
        Ok(root) => fields::map_of(root, "the frontmatter", findings),
        Err(error) => Some(recover(split, &error, findings)?.entries),
    }
}

fn name(path: &Path, fields: &mut Fields<'_, '_>) -> Option<(String, Slug)> {
    let written = fields.optional_text("name").filter(|name| !name.trim().is_empty());
    let at = fields.place("name");
    let name = written.unwrap_or_else(|| {
        let name = Skill::name_of_path(path).unwrap_or_default();
        let message = format!("it has no `name`; the file's name serves: `{}`", Shown::new(&name));
        fields.findings.warning(at, "missing-name", message, None);
        name
    });
    filed::checked_name(&name, at, fields.findings)
}

/// The description, or the first line of the text if the frontmatter has none, as in other programs.
fn description(split: &Split<'_>, fields: &mut Fields<'_, '_>) -> Option<String> {
    let at = fields.place("description");
    let written = fields.take("description");
    if let Some((key, node)) = written.filter(|(_, node)| node.value != Value::Null) {
        match node.text() {
            Some(text) if text.trim().is_empty() => {}
            Some(text) => return Some(text.to_owned()),
            None => {
                let message = format!("`description` is {}, not a text", node.kind());
                fields.findings.error(key.at, "bad-field", message);
                return None;
            }
        }
    }
    let line = first_line(split.body);
    match line {
        Some(_) => {
            let message = "it has no `description`; the first line of its text serves".to_owned();
            let hint = "say in it when to use the skill: a model sees nothing else of it before";
            fields.findings.warning(at, "missing-description", message, Some(hint.to_owned()));
        }
        None => {
            let hint = "add a line `description: ...` between the fences";
            let message = "`description` is missing";
            fields.findings.error_hint(at, "missing-field", message, hint);
        }
    }
    line
}

/// Reads the triggers: a list, or one text with commas.
fn triggers(fields: &mut Fields<'_, '_>) -> Option<Vec<String>> {
    let Some((key, node)) = fields.take("triggers") else { return Some(Vec::new()) };
    let findings = &mut *fields.findings;
    let words: Vec<_> = match &node.value {
        Value::Null => return Some(Vec::new()),
        Value::List(items) => items.iter().map(|item| (item.at, item.text())).collect(),
        Value::Text(text) => text.split(',').map(|word| (node.at, Some(word))).collect(),
        Value::Bool(_) | Value::Int(_) | Value::Float | Value::Map(_) => {
            let message = format!("`triggers` is {}, not a list of words", node.kind());
            findings.error(key.at, "bad-field", message);
            return None;
        }
    };
    if words.len() > MAX_TRIGGERS {
        let message = format!("`triggers` has more than {MAX_TRIGGERS} entries");
        findings.error(key.at, "too-many", message);
        return None;
    }
    let mut triggers = Vec::new();
    for (at, word) in words {
        let word = word.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        let (short, long) = TRIGGER_LENGTH;
        if !(short..=long).contains(&word.chars().count()) {
            let message = format!("`{}` is not a trigger", Shown::clipped(&word, 60));
            let hint = format!("write words of {short} to {long} characters");
            findings.error_hint(at, "bad-trigger", message, hint);
            return None;
        }
        triggers.push(word);
    }
    Some(triggers)
}

/// Whether the file restricts its callers by a field with one of these names. An unknown value restricts too,
/// because the author may have meant a restriction.
fn is_stated(names: &[&str], restricts: bool, fields: &mut Fields<'_, '_>) -> bool {
    let mut is_stated = false;
    while let Some((key, node)) = fields.take_where(|name| names.contains(&name)) {
        let value = fields::boolean(&node);
        if value.is_none() {
            let message = format!(
                "`{}` is {}, neither `true` nor `false`: it counts as `{restricts}`",
                Shown::clipped(&key.text, 64),
                shown(&node)
            );
            fields.findings.warning(key.at, "bad-field", message, None);
        }
        is_stated |= value.unwrap_or(restricts) == restricts;
    }
    is_stated
}

/// Reports the file's fields about tools, which have no effect.
fn say_allowed_tools(fields: &mut Fields<'_, '_>) {
    for name in ALLOWED_TOOLS {
        let Some((key, node)) = fields.take(name) else { continue };
        let tools = match &node.value {
            Value::List(items) => items.iter().take(20).map(shown).collect::<Vec<_>>().join(", "),
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float
            | Value::Text(_)
            | Value::Map(_) => shown(&node),
        };
        let message = format!("`{name}` is {tools}: a skill gives and takes no tools here");
        fields.findings.note(key.at, "tools-not-honoured", message);
    }
}

/// Reports the remaining keys. Other programs define many, so only a likely misspelling is a warning.
fn leftovers(fields: Fields<'_, '_>) {
    let (left, findings) = fields.into_rest();
    let (mut ignored, mut first) = (Vec::new(), None);
    for (key, _) in &left {
        let name = Shown::clipped(&key.text, 64).to_string();
        match suggest::did_you_mean(&key.text, KEYS.iter().copied()) {
            Some(hint) => {
                let message = format!("`{name}` is not a field of a skill");
                findings.warning(key.at, "unknown-field", message, Some(hint));
            }
            None => {
                first = first.or(Some(key.at));
                ignored.push(format!("`{name}`"));
            }
        }
    }
    if let Some(at) = first {
        ignored.truncate(20);
        findings.note(at, "ignored-fields", format!("ignored: {}", ignored.join(", ")));
    }
}
