//! Skills: `skills/NAME/SKILL.md`, or plain `skills/NAME.md`.
//!
//! A file has frontmatter with `name`, `description` and optional `triggers`; `use_skill` loads the body. A
//! file without frontmatter is a skill too, named like the file (for a `SKILL.md`, like the folder) and
//! described by its first line. A skill is text for a model and grants no right. Files written for other
//! programs load unchanged; their fields about tools narrow the agent that uses the skill.

use std::path::{Path, PathBuf};

use belljar_policy::ShownText;

use crate::agent::{is_documentation, no_agent, recover_fields, say_no_split, say_utf16};
use crate::diagnostic::{FileFindings, FilePosition};
use crate::fields::{self, UnreadFields, quote_value};
use crate::filed::{self, CatalogItem, FileKind, FileRead, is_markdown};
use crate::frontmatter::{self, FrontmatterSplit, NoSplit, is_utf16};
use crate::team::report_not_utf8;
use crate::yaml::{self, YamlKey, YamlNode, YamlValue};
use crate::{NotAnAgent, Slug, UseTerms, suggest};

/// The longest skill file, in bytes; the longest public one has 290 kB.
pub const MAX_SKILL: usize = 512 << 10;

/// The longest first line that becomes a description, in characters.
const MAX_FIRST_LINE: usize = 1_024;

/// The most triggers of one skill.
const MAX_TRIGGERS: usize = 32;

/// The shortest and longest trigger, in characters. A shorter word would occur in every text.
const TRIGGER_LENGTH: (usize, usize) = (3, 100);

/// The name, in lower case, of a skill's file in a folder of its own.
const SKILL_FILE: &str = "skill.md";

/// The spellings of the field that hides a skill from models.
const NOT_FOR_MODELS: &[&str] =
    &["disable-model-invocation", "disable_model_invocation", "disableModelInvocation"];

/// The spellings of the field that decides whether a person may load a skill.
const FOR_PERSONS: &[&str] =
    &["user-invocable", "user_invocable", "userInvocable", "user-invokable"];

const KEYS: &[&str] =
    &["name", "description", "triggers", "disable-model-invocation", "user-invocable"];

/// A valid skill file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillDefinition {
    /// The name for people, as written; else the folder's or the file's.
    pub name: String,
    /// The name by which it is found, for example `release-notes`.
    pub slug: Slug,
    /// The situation in which to use the skill; not blank.
    pub description: String,
    /// Words and phrases: a task that contains one of them triggers the skill.
    pub triggers: Vec<String>,
    /// Who may load the skill, by the author.
    pub callers: SkillCallers,
    /// What the author says about the use of the skill: tools, a model, arguments.
    pub terms: UseTerms,
    /// The text: every byte after the frontmatter; not blank.
    pub body: String,
    /// The file.
    pub path: PathBuf,
}

/// Who may load a skill; by default everyone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SkillCallers {
    /// Whether a model may load the skill, by `use_skill` or because its task has a trigger. False with
    /// `disable-model-invocation: true`.
    pub model: bool,
    /// Whether a person may load the skill, by a command in an editor or a prompt in an MCP client. False
    /// with `user-invocable: false`.
    pub person: bool,
}

impl SkillDefinition {
    /// Whether a skill's file has a folder of its own, with room for other files.
    pub fn is_in_folder(path: &Path) -> bool {
        is_skill_file(path)
    }
}

impl Default for SkillCallers {
    fn default() -> Self {
        Self { model: true, person: true }
    }
}

impl CatalogItem for SkillDefinition {
    const KIND: &'static FileKind =
        &FileKind { noun: "skill", a_noun: "a skill", folder: "skills", max_bytes: MAX_SKILL };

    type Context = ();

    /// Accepts each `SKILL.md` at any depth, and markdown files directly in the folder. Other files are
    /// material of a skill.
    fn accepts_path(below: &Path) -> bool {
        if is_skill_file(below) {
            return true;
        }
        let top = below.parent().is_none_or(|folder| folder.as_os_str().is_empty());
        top && is_markdown(below) && !is_documentation(below)
    }

    fn is_material(below: &Path) -> bool {
        !is_skill_file(below)
    }

    fn read_file(path: &Path, bytes: &[u8], (): &()) -> FileRead<Self> {
        if bytes.len() > MAX_SKILL {
            let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            return FileRead::Invalid { diagnostics: Self::too_large(path, length) };
        }
        let mut findings = FileFindings::new(path);
        let split = match frontmatter::decode_utf8(bytes).map(frontmatter::split_frontmatter) {
            Ok(Ok(split)) => split,
            Ok(Err(NoSplit::NoFrontmatter)) if !is_documentation(path) => {
                let skill = read_plain_skill(path, bytes, &mut findings);
                return FileRead::from_findings(skill, findings);
            }
            Ok(Err(why @ (NoSplit::Empty | NoSplit::NoFrontmatter))) => {
                return reject_unsplit(path, why);
            }
            Ok(Err(why)) => {
                say_no_split(why, &mut findings);
                return FileRead::from_findings(None, findings);
            }
            Err(_) if is_documentation(path) => {
                return reject_unsplit(path, NoSplit::NoFrontmatter);
            }
            Err(_) if is_utf16(bytes) => {
                say_utf16(&mut findings);
                return FileRead::from_findings(None, findings);
            }
            Err(at) => {
                report_not_utf8(at, &mut findings);
                return FileRead::from_findings(None, findings);
            }
        };
        let skill = read_skill(path, &split, &mut findings);
        FileRead::from_findings(skill, findings)
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

/// The result for a file that has no frontmatter: an error for a `SKILL.md`, otherwise no skill.
fn reject_unsplit(path: &Path, why: NoSplit) -> FileRead<SkillDefinition> {
    // A `SKILL.md` is always meant as a skill; another file without frontmatter may be anything.
    if is_skill_file(path) {
        let mut findings = FileFindings::new(path);
        let message = match why {
            NoSplit::Empty => "the file is empty",
            NoSplit::NoFrontmatter | NoSplit::Unclosed(_) | NoSplit::TooLong(..) => {
                NotAnAgent::NoFrontmatter.as_str()
            }
        };
        let hint = "begin it with `---`, `name: ...`, `description: ...`, `---`";
        findings.error_hint(FilePosition { line: 1, column: 1 }, "no-frontmatter", message, hint);
        return FileRead::from_findings(None, findings);
    }
    FileRead::Other { reason: no_agent(path, why) }
}

/// Reads a file without frontmatter as a skill: the whole file is its body.
fn read_plain_skill(
    path: &Path,
    bytes: &[u8],
    findings: &mut FileFindings<'_>,
) -> Option<SkillDefinition> {
    let body = frontmatter::decode_utf8(bytes).ok()?.trim_start_matches('\u{feff}').to_owned();
    let at = FilePosition { line: 1, column: 1 };
    let Some(description) = first_line(&body) else {
        findings.error(at, "missing-body", "there is no text but the marks of a heading");
        return None;
    };
    let name = SkillDefinition::name_of_path(path).unwrap_or_default();
    let shown = ShownText::new(&name);
    let message =
        format!("it has no frontmatter: its name is `{shown}`, its description its first line");
    findings.note(at, "no-frontmatter", message);
    let (name, slug) = filed::checked_name(&name, at, findings)?;
    let (triggers, callers) = (Vec::new(), SkillCallers::default());
    Some(SkillDefinition {
        name,
        slug,
        description,
        triggers,
        callers,
        terms: UseTerms::default(),
        body,
        path: path.to_path_buf(),
    })
}

/// The first line of a text that has words. Rules, comments, pictures, code fences and empty headings are
/// skipped.
pub(crate) fn first_line(body: &str) -> Option<String> {
    const SILENT: [&str; 4] = ["```", "~~~", "<!--", "!["];
    let lines = body.split(['\n', '\r']).map(|line| line.trim_start_matches('#').trim());
    let mut told = lines.filter(|line| !SILENT.iter().any(|mark| line.starts_with(mark)));
    let line = told.find(|line| line.chars().any(|c| !c.is_ascii_punctuation() && c != ' '))?;
    Some(line.chars().take(MAX_FIRST_LINE).collect())
}

/// Reads a skill from its frontmatter and body.
fn read_skill(
    path: &Path,
    split: &FrontmatterSplit<'_>,
    findings: &mut FileFindings<'_>,
) -> Option<SkillDefinition> {
    let opening = FilePosition { line: split.yaml_line.saturating_sub(1), column: 1 };
    let entries = parse_frontmatter(split, findings)?;
    let mut fields = UnreadFields::new(entries, opening, findings);
    let name = read_name(path, &mut fields);
    let description = read_description(split, &mut fields);
    let triggers = read_triggers(&mut fields);
    let callers = SkillCallers {
        model: !is_stated(NOT_FOR_MODELS, true, &mut fields),
        person: !is_stated(FOR_PERSONS, false, &mut fields),
    };
    let terms = UseTerms::take_from(&mut fields);
    if split.body.trim().is_empty() {
        let at = FilePosition { line: split.fence_line, column: 1 };
        let message = "there is no text after the frontmatter";
        let hint = "write the instructions below the closing `---`";
        fields.findings.error_hint(at, "missing-body", message, hint);
    }
    report_unknown_fields(fields);
    let (name, slug) = name?;
    let body = split.body.to_owned();
    let path = path.to_path_buf();
    let (description, triggers) = (description?, triggers?);
    Some(SkillDefinition { name, slug, description, triggers, callers, terms, body, path })
}

/// The fields of the frontmatter. Broken YAML is repaired like that of agents; a skill grants no right, so no
/// limit can be lost.
pub(crate) fn parse_frontmatter(
    split: &FrontmatterSplit<'_>,
    findings: &mut FileFindings<'_>,
) -> Option<Vec<(YamlKey, YamlNode)>> {
    match yaml::parse_document(split.yaml, split.yaml_line) {
        Ok(root) => fields::map_of(root, "the frontmatter", findings),
        Err(error) => Some(recover_fields(split, &error, findings)?.entries),
    }
}

/// Reads `name`, or takes the name from the path, with the slug.
fn read_name(path: &Path, fields: &mut UnreadFields<'_, '_>) -> Option<(String, Slug)> {
    let written = fields.optional_text("name").filter(|name| !name.trim().is_empty());
    let at = fields.field_position("name");
    let name = written.unwrap_or_else(|| {
        let name = SkillDefinition::name_of_path(path).unwrap_or_default();
        let message =
            format!("it has no `name`; the file's name serves: `{}`", ShownText::new(&name));
        fields.findings.warning(at, "missing-name", message, None);
        name
    });
    filed::checked_name(&name, at, fields.findings)
}

/// The description, or the first line of the text if the frontmatter has none, as in other programs.
fn read_description(
    split: &FrontmatterSplit<'_>,
    fields: &mut UnreadFields<'_, '_>,
) -> Option<String> {
    let at = fields.field_position("description");
    let written = fields.take_field("description");
    if let Some((key, node)) = written.filter(|(_, node)| node.value != YamlValue::Null) {
        match node.as_text() {
            Some(text) if text.trim().is_empty() => {}
            Some(text) => return Some(text.to_owned()),
            None => {
                let message = format!("`description` is {}, not a text", node.describe_kind());
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
fn read_triggers(fields: &mut UnreadFields<'_, '_>) -> Option<Vec<String>> {
    let Some((key, node)) = fields.take_field("triggers") else { return Some(Vec::new()) };
    let findings = &mut *fields.findings;
    let words: Vec<_> = match &node.value {
        YamlValue::Null => return Some(Vec::new()),
        YamlValue::List(items) => items.iter().map(|item| (item.at, item.as_text())).collect(),
        YamlValue::Text(text) => text.split(',').map(|word| (node.at, Some(word))).collect(),
        YamlValue::Bool(_) | YamlValue::Int(_) | YamlValue::Float | YamlValue::Map(_) => {
            let message = format!("`triggers` is {}, not a list of words", node.describe_kind());
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
            let shown = ShownText::clip_line(&word, 60);
            let message = format!("`{shown}` is not a trigger, and is left out");
            let hint = format!("write words of {short} to {long} characters");
            findings.warning(at, "bad-trigger", message, Some(hint));
            continue;
        }
        triggers.push(word);
    }
    Some(triggers)
}

/// Whether the file has a field with one of these names whose value means `restricts`. An unknown value
/// counts as that too, because the author may have meant a restriction.
fn is_stated(names: &[&str], restricts: bool, fields: &mut UnreadFields<'_, '_>) -> bool {
    let mut is_stated = false;
    while let Some((key, node)) = fields.take_matching(|name| names.contains(&name)) {
        let value = fields::parse_boolean(&node);
        if value.is_none() {
            let message = format!(
                "`{}` is {}, neither `true` nor `false`: it counts as `{restricts}`",
                ShownText::clip_line(&key.text, 64),
                quote_value(&node)
            );
            fields.findings.warning(key.at, "bad-field", message, None);
        }
        is_stated |= value.unwrap_or(restricts) == restricts;
    }
    is_stated
}

/// Reports the remaining keys. Other programs define many, so only a likely misspelling is a warning.
fn report_unknown_fields(fields: UnreadFields<'_, '_>) {
    let (left, findings) = fields.into_rest();
    let (mut ignored, mut first) = (Vec::new(), None);
    for (key, _) in &left {
        let name = ShownText::clip_line(&key.text, 64).to_string();
        match suggest::did_you_mean(&key.text, KEYS.iter().copied().chain(UseTerms::KEYS)) {
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
