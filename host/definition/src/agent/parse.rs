//! From bytes to an agent definition.

use std::path::Path;

use belljar_policy::Shown;

use super::requests;
use super::tool_list::ToolList;
use super::{AgentDefinition, KnownTools, NotAnAgent, Parsed};
use crate::diagnostic::{Findings, Place};
use crate::dialect::{CANONICAL_ONLY, CANONICAL_SHARED};
use crate::fields::{self, Fields};
use crate::frontmatter::{self, MAX_DEFINITION, MAX_FRONTMATTER, NoSplit, Split};
use crate::{Dialect, Slug, suggest};

/// The longest name for people, in characters.
const MAX_NAME: usize = 100;

/// Names of files that are documentation when they have no frontmatter.
const DOCUMENTATION: &[&str] = &[
    "readme",
    "changelog",
    "contributing",
    "license",
    "licence",
    "security",
    "code_of_conduct",
    "code-of-conduct",
    "agents",
    "claude",
    "index",
    "todo",
    "notes",
    "authors",
    "support",
];

/// Fields that other programs read and that mean nothing here, for display or for rights
/// that belljar does not take from a file.
const IGNORED: &[&str] = &[
    "color",
    "emoji",
    "vibe",
    "category",
    "capabilities",
    "mode",
    "version",
    "temperature",
    "author",
    "type",
    "dependencies",
    "complexity",
    "tags",
    "hidden",
    "argument-hint",
    "user-invocable",
    "effort",
    "top_p",
    "background",
    "memory",
    "isolation",
    "initialPrompt",
    "prompt",
    "license",
    "metadata",
];

/// Fields whose meaning would be a right or an effect: said aloud, never honoured.
const NOT_HONOURED: &[&str] =
    &["hooks", "mcpServers", "mcp-servers", "permissionMode", "permissions", "skills", "handoffs"];

/// Reads an agent definition. `path` is for diagnostics and, in foreign files without a
/// `name`, gives the name. Never panics; work and memory are bounded by [`MAX_DEFINITION`]
/// and [`MAX_FRONTMATTER`].
pub fn parse_agent(path: &Path, bytes: &[u8], known_tools: &KnownTools) -> Parsed {
    let mut findings = Findings::new(path);
    if bytes.len() > MAX_DEFINITION {
        return parse_too_large(path, u64::try_from(bytes.len()).unwrap_or(u64::MAX));
    }
    let text = match frontmatter::utf8(bytes) {
        Ok(text) => text,
        Err(_) if !opens_with_fence(bytes) => {
            let reason = no_agent(path, NoSplit::NoFrontmatter);
            return Parsed::NotAnAgent { reason };
        }
        Err(at) => {
            findings.error_hint(
                at,
                "not-utf8",
                "the file is not UTF-8 from here on",
                "save it as UTF-8",
            );
            return Parsed::Invalid { diagnostics: findings.finish() };
        }
    };
    let split = match frontmatter::split(text) {
        Ok(split) => split,
        Err(why @ (NoSplit::Empty | NoSplit::NoFrontmatter)) => {
            return Parsed::NotAnAgent { reason: no_agent(path, why) };
        }
        Err(why) => {
            say_no_split(why, &mut findings);
            return Parsed::Invalid { diagnostics: findings.finish() };
        }
    };
    let definition = read(path, &split, known_tools, &mut findings);
    let failed = findings.has_errors();
    let diagnostics = findings.finish();
    match definition {
        Some(definition) if !failed => {
            Parsed::Agent { definition: Box::new(definition), diagnostics }
        }
        Some(_) | None => Parsed::Invalid { diagnostics },
    }
}

/// The answer for a file that is longer than [`MAX_DEFINITION`], for callers that know the
/// length and so need not read it.
pub fn parse_too_large(path: &Path, length: u64) -> Parsed {
    let mut findings = Findings::new(path);
    findings.error_hint(
        Place::default(),
        "too-large",
        format!("the file has {length} bytes; an agent definition has at most {MAX_DEFINITION}"),
        "move long reference text to files that the agent reads when it needs them",
    );
    Parsed::Invalid { diagnostics: findings.finish() }
}

/// Whether the bytes begin as a file with frontmatter does.
pub(crate) fn opens_with_fence(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    bytes.trim_ascii_start().starts_with(b"---")
}

/// Why a file without frontmatter is passed over.
pub(crate) fn no_agent(path: &Path, why: NoSplit) -> NotAnAgent {
    match why {
        _ if is_documentation(path) => NotAnAgent::Documentation,
        NoSplit::Empty => NotAnAgent::Empty,
        NoSplit::NoFrontmatter | NoSplit::Unclosed(_) | NoSplit::TooLong(..) => {
            NotAnAgent::NoFrontmatter
        }
    }
}

/// Whether a file is named like documentation: `README.md`, `CHANGELOG-2.md`.
pub(crate) fn is_documentation(path: &Path) -> bool {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().to_lowercase());
    let stem = stem.unwrap_or_default();
    DOCUMENTATION.iter().any(|name| {
        stem.strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-', '_']))
    })
}

/// Reports frontmatter that is not closed, or too long.
pub(crate) fn say_no_split(why: NoSplit, findings: &mut Findings<'_>) {
    match why {
        NoSplit::Unclosed(line) => findings.error_hint(
            Place { line, column: 1 },
            "unclosed-frontmatter",
            "the frontmatter is never closed",
            "put a line `---` between the fields and the prompt",
        ),
        NoSplit::TooLong(line, length) => findings.error_hint(
            Place { line, column: 1 },
            "frontmatter-too-large",
            format!("the frontmatter has {length} bytes, at most {MAX_FRONTMATTER} are read"),
            "move prose below the closing `---`",
        ),
        NoSplit::Empty | NoSplit::NoFrontmatter => {}
    }
}

fn read(
    path: &Path,
    split: &Split<'_>,
    known: &KnownTools,
    findings: &mut Findings<'_>,
) -> Option<AgentDefinition> {
    let opening = Place { line: split.yaml_line.saturating_sub(1), column: 1 };
    let entries = fields::entries(split.yaml, split.yaml_line, "the frontmatter", findings)?;
    let dialect = Dialect::detect(path, &entries);
    let mut fields = Fields::new(entries, opening, findings);
    let (name, slug) = read_name(path, dialect, &mut fields).unzip();
    let description = fields.required_text("description");
    if split.body.trim().is_empty() {
        fields.findings.error_hint(
            Place { line: split.fence_line, column: 1 },
            "missing-body",
            "there is no text after the frontmatter",
            "write the system prompt below the closing `---`",
        );
    }
    let tools = ToolList::read(&mut fields, dialect, known);
    let asked = requests::read(&mut fields, dialect, &tools);
    let model = requests::model(&mut fields);
    let visibility = requests::visibility(&mut fields);
    let emit_structured_findings = fields.boolean("emitStructuredFindings").unwrap_or(false);
    let subagents = requests::subagents(&mut fields, &tools, known);
    let disabled = dialect == Dialect::OpenCode && fields.boolean("disable").unwrap_or(false);
    say_leftovers(fields, dialect);
    Some(AgentDefinition {
        name: name?,
        slug: slug?,
        description: description?,
        body: split.body.to_owned(),
        body_line: split.fence_line.saturating_add(1),
        dialect,
        asked,
        tools_as_written: tools.as_written,
        translated: tools.translated,
        unknown_tools: tools.unknown,
        unavailable: tools.unavailable,
        model,
        visibility,
        emit_structured_findings,
        subagents,
        disabled,
        path: path.to_path_buf(),
    })
}

fn read_name(path: &Path, dialect: Dialect, fields: &mut Fields<'_, '_>) -> Option<(String, Slug)> {
    let stem = stem(path);
    let written = if dialect == Dialect::Canonical {
        Some(fields.required_text("name")?)
    } else {
        fields.optional_text("name").filter(|name| !name.trim().is_empty())
    };
    let at = fields.place("name");
    let name = match written {
        Some(name) => name.trim().to_owned(),
        None => {
            let message =
                format!("it has no `name`; the file's name serves: `{}`", Shown::new(&stem));
            fields.findings.warning(at, "missing-name", message, None);
            stem.clone()
        }
    };
    if name.chars().count() > MAX_NAME || name.chars().any(char::is_control) {
        let message = format!("`name` has more than {MAX_NAME} characters, or control characters");
        fields.findings.error(at, "bad-name", message);
        return None;
    }
    if let Some(slug) = Slug::of(&name) {
        return Some((name, slug));
    }
    let Some(slug) = Slug::of(&stem) else {
        fields.findings.error_hint(
            at,
            "bad-name",
            format!("`{}` gives no identity", Shown::new(&name)),
            "give `name`, or the file, at least one letter a to z or digit",
        );
        return None;
    };
    let message = format!("`{}` has no letter a to z; look it up as `{slug}`", Shown::new(&name));
    fields.findings.note(at, "name-from-file", message);
    Some((name, slug))
}

/// The file's name without the endings that agent files have.
fn stem(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = name.strip_suffix(".md").unwrap_or(&name);
    let stem =
        [".agent", ".chatmode"].iter().find_map(|end| stem.strip_suffix(end)).unwrap_or(stem);
    stem.to_owned()
}

/// Says what became of the fields that nobody read.
/// Fields of any dialect by which an author takes something away from an agent.
const NARROWING: &[&str] = &["tools", "disallowedTools", "allowedTools", "permission", "maxTurns"];

fn say_leftovers(fields: Fields<'_, '_>, dialect: Dialect) {
    let (left, findings) = fields.into_rest();
    let mut ignored = Vec::new();
    let mut first = None;
    for (key, _) in &left {
        let name = Shown::clipped(&key.text, 64).to_string();
        if NOT_HONOURED.contains(&key.text.as_str()) {
            let message = format!("`{name}` is not honoured: a file grants itself nothing here");
            findings.warning(key.at, "not-honoured", message, None);
        } else if dialect == Dialect::Canonical && !IGNORED.contains(&key.text.as_str()) {
            let known = CANONICAL_ONLY.iter().chain(CANONICAL_SHARED).copied();
            let hint = suggest::did_you_mean(&key.text, known)
                .unwrap_or_else(|| "it is ignored; remove it".to_owned());
            let message = format!("`{name}` is not a field of an agent definition");
            findings.warning(key.at, "unknown-field", message, Some(hint));
        } else if let Some(meant) = suggest::nearest(&key.text, NARROWING.iter().copied()) {
            // Left out without a word, a slip here would give an agent more than its author meant.
            let message = format!("`{name}` is not a field, and so narrows nothing");
            let hint = format!("did you mean `{meant}`?");
            findings.warning(key.at, "unknown-field", message, Some(hint));
        } else {
            first = first.or(Some(key.at));
            ignored.push(format!("`{name}`"));
        }
    }
    if let Some(at) = first {
        ignored.truncate(20);
        findings.note(at, "ignored-fields", format!("ignored: {}", ignored.join(", ")));
    }
}
