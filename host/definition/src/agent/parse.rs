//! Parses an agent definition from bytes.

use std::collections::BTreeSet;
use std::path::Path;

use belljar_policy::{AskedRights, ShownText};

use super::documents::is_document;
use super::forms::AgentForm;
use super::recover::{self, RecoveredFields};
use super::shapes::{self, FrontmatterShapes};
use super::stated::NarrowingReader;
use super::swallowed::find_swallowed_field;
use super::tool_list::{ToolList, say_lost};
use super::{
    AgentDefinition, KnownTools, NotAnAgent, NotKept, ParsedAgentFile, SubagentsAsk, keys,
    leftovers, name, narrowed, requests, servers,
};
use crate::Dialect;
use crate::diagnostic::{FileFindings, FilePosition};
use crate::fields::{self, UnreadFields};
use crate::frontmatter::{self, FrontmatterSplit, MAX_DEFINITION, MAX_FRONTMATTER, NoSplit};
use crate::yaml::{self, YamlKey, YamlNode};

/// The code of the note that an agent file of a stranger has no `tools`.
pub(crate) const NO_TOOLS: &str = "no-tools";

/// Names of files that are documentation if they have no frontmatter, for example `README`.
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
    "notice",
    "copying",
    "copyright",
    "contributors",
    "maintainers",
    "credits",
    "gemini",
];

/// Parses an agent definition in one of the ordinary shapes; see [`parse_agent_in`].
pub fn parse_agent(path: &Path, bytes: &[u8], known_tools: &KnownTools) -> ParsedAgentFile {
    parse_agent_in(path, bytes, known_tools, FrontmatterShapes::Ordinary)
}

/// Parses an agent definition. `path` is for diagnostics and, in a foreign file without a `name`, is the
/// source of the name. Never panics; work and memory are bounded by [`MAX_DEFINITION`] and
/// [`MAX_FRONTMATTER`].
pub fn parse_agent_in(
    path: &Path,
    bytes: &[u8],
    known_tools: &KnownTools,
    shapes: FrontmatterShapes,
) -> ParsedAgentFile {
    let mut findings = FileFindings::new(path);
    if bytes.len() > MAX_DEFINITION {
        return parse_too_large(path, u64::try_from(bytes.len()).unwrap_or(u64::MAX));
    }
    if let Some(form) = AgentForm::for_path(path) {
        return parse_other_form(form, path, bytes, known_tools);
    }
    let text = match frontmatter::decode_utf8(bytes) {
        Ok(text) => text,
        Err(_) if frontmatter::is_utf16(bytes) => {
            say_utf16(&mut findings);
            return ParsedAgentFile::Invalid { diagnostics: findings.into_diagnostics() };
        }
        Err(_) if !opens_with_fence(bytes) => {
            let reason = no_agent(path, NoSplit::NoFrontmatter);
            return ParsedAgentFile::NotAnAgent { reason };
        }
        Err(at) => {
            findings.error_hint(
                at,
                "not-utf8",
                "the file is not UTF-8 from here on",
                "save it as UTF-8",
            );
            return ParsedAgentFile::Invalid { diagnostics: findings.into_diagnostics() };
        }
    };
    let split = match frontmatter::split_frontmatter(text) {
        Ok(split) => split,
        Err(why @ (NoSplit::Empty | NoSplit::NoFrontmatter)) => {
            match (shapes::find_wrapped(text), shapes) {
                (Some(split), FrontmatterShapes::Lenient) => split,
                (Some(_), FrontmatterShapes::Ordinary) => {
                    return ParsedAgentFile::NotAnAgent { reason: NotAnAgent::Wrapped };
                }
                (None, _) => return ParsedAgentFile::NotAnAgent { reason: no_agent(path, why) },
            }
        }
        Err(why) => {
            say_no_split(why, &mut findings);
            return ParsedAgentFile::Invalid { diagnostics: findings.into_diagnostics() };
        }
    };
    if is_document(path, &split) {
        return ParsedAgentFile::NotAnAgent { reason: NotAnAgent::OtherDocument };
    }
    let definition = read_agent(path, &split, known_tools, shapes, &mut findings);
    let failed = findings.has_errors();
    let diagnostics = findings.into_diagnostics();
    match definition {
        Some(definition) if !failed => {
            ParsedAgentFile::Agent { definition: Box::new(definition), diagnostics }
        }
        Some(_) | None => ParsedAgentFile::Invalid { diagnostics },
    }
}

/// Parses an agent that is not markdown (TOML, JSON or a recipe). Findings have the lines of the original
/// file.
fn parse_other_form(
    form: AgentForm,
    path: &Path,
    bytes: &[u8],
    known_tools: &KnownTools,
) -> ParsedAgentFile {
    let mut findings = FileFindings::new(path);
    let rewritten = match form.rewrite(path, bytes, &mut findings) {
        Ok(rewritten) => rewritten,
        Err(reason) => return ParsedAgentFile::NotAnAgent { reason },
    };
    let mut inner = FileFindings::new(path);
    let definition = match frontmatter::split_frontmatter(&rewritten.text) {
        Ok(split) => {
            let shapes = FrontmatterShapes::Ordinary;
            read_agent(path, &split, known_tools, shapes, &mut inner)
        }
        Err(why) => {
            say_no_split(why, &mut inner);
            None
        }
    };
    let failed = findings.has_errors() || inner.has_errors();
    let mut diagnostics = inner.into_diagnostics();
    diagnostics.iter_mut().for_each(|finding| rewritten.move_finding(finding));
    diagnostics.extend(findings.into_diagnostics());
    match definition {
        Some(mut definition) if !failed => {
            definition.body_line = rewritten.body_line();
            ParsedAgentFile::Agent { definition: Box::new(definition), diagnostics }
        }
        Some(_) | None => ParsedAgentFile::Invalid { diagnostics },
    }
}

/// The result for a file longer than [`MAX_DEFINITION`], for a caller that knows the length and has not read
/// the file.
pub fn parse_too_large(path: &Path, length: u64) -> ParsedAgentFile {
    let mut findings = FileFindings::new(path);
    findings.error_hint(
        FilePosition::default(),
        "too-large",
        format!("the file has {length} bytes; an agent definition has at most {MAX_DEFINITION}"),
        "move long reference text to files that the agent reads when it needs them",
    );
    ParsedAgentFile::Invalid { diagnostics: findings.into_diagnostics() }
}

/// Whether the bytes begin like a file with frontmatter.
fn opens_with_fence(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    bytes.trim_ascii_start().starts_with(b"---")
}

/// Reports a file with frontmatter in UTF-16.
pub(crate) fn say_utf16(findings: &mut FileFindings<'_>) {
    findings.error_hint(
        FilePosition { line: 1, column: 1 },
        "not-utf8",
        "the file is written in UTF-16, as Windows PowerShell writes files",
        "save it as UTF-8",
    );
}

/// Why a file without frontmatter is no agent.
pub(crate) fn no_agent(path: &Path, why: NoSplit) -> NotAnAgent {
    match why {
        _ if is_documentation(path) => NotAnAgent::Documentation,
        NoSplit::Empty => NotAnAgent::Empty,
        NoSplit::NoFrontmatter | NoSplit::Unclosed(_) | NoSplit::TooLong(..) => {
            NotAnAgent::NoFrontmatter
        }
    }
}

/// Whether a file has a name of documentation, for example `README.md` or `CHANGELOG-2.md`.
pub(crate) fn is_documentation(path: &Path) -> bool {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().to_lowercase());
    let stem = stem.unwrap_or_default();
    DOCUMENTATION.iter().any(|name| {
        stem.strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-', '_']))
    })
}

/// Reports frontmatter that is never closed or too long.
pub(crate) fn say_no_split(why: NoSplit, findings: &mut FileFindings<'_>) {
    match why {
        NoSplit::Unclosed(line) => findings.error_hint(
            FilePosition { line, column: 1 },
            "unclosed-frontmatter",
            "the frontmatter is never closed",
            "put a line `---` between the fields and the prompt",
        ),
        NoSplit::TooLong(line, length) => findings.error_hint(
            FilePosition { line, column: 1 },
            "frontmatter-too-large",
            format!("the frontmatter has {length} bytes, at most {MAX_FRONTMATTER} are read"),
            "move prose below the closing `---`",
        ),
        NoSplit::Empty | NoSplit::NoFrontmatter => {}
    }
}

/// Reads an agent from its frontmatter and body: name, description, tools, other requests, and what is
/// unknown.
fn read_agent(
    path: &Path,
    split: &FrontmatterSplit<'_>,
    known: &KnownTools,
    shapes: FrontmatterShapes,
    findings: &mut FileFindings<'_>,
) -> Option<AgentDefinition> {
    let opening = FilePosition { line: split.yaml_line.saturating_sub(1), column: 1 };
    let (entries, lost) = match yaml::parse_document(split.yaml, split.yaml_line) {
        Ok(root) => (fields::map_of(root, "the frontmatter", findings)?, None),
        Err(error) => {
            let RecoveredFields { entries, lost } =
                recover::recover_fields(split, &error, findings)?;
            (entries, lost)
        }
    };
    let lost = lost.or_else(|| find_swallowed_field(split, &entries, known));
    let mut entries = shapes::unnest_fields(entries, shapes, findings)?;
    normalize_field_names(&mut entries, findings);
    let dialect = Dialect::detect(path, &entries);
    let before = entries.len();
    // The field is applied here, so it must not be reported as unknown later.
    entries.retain(|(key, value)| {
        key.text != "isolation" || value.as_text().is_none_or(|text| text.trim() != "worktree")
    });
    let isolated = entries.len() < before;
    let mut fields = UnreadFields::new(entries, opening, findings);
    if dialect != Dialect::Canonical {
        fields = fields.with_fault_warnings();
    }
    let (name, slug) = name::read_name(path, dialect, &mut fields).unzip();
    let description = read_description(split, dialect, &mut fields);
    if split.body.trim().is_empty() {
        fields.findings.error_hint(
            FilePosition { line: split.fence_line, column: 1 },
            "missing-body",
            "there is no text after the frontmatter",
            "write the system prompt below the closing `---`",
        );
    }
    let mut tools = read_tools(&mut fields, dialect, known, lost.as_ref());
    let mut asked = requests::read_requests(&mut fields, dialect);
    let model = requests::read_model(&mut fields);
    let visibility = requests::read_visibility(&mut fields);
    let emit_structured_findings = fields.take_boolean("emitStructuredFindings").unwrap_or(false);
    let tools_as = requests::tools_as(&mut fields);
    let mut subagents = requests::read_subagents(&mut fields, &tools, known);
    let disabled = requests::read_disabled(&mut fields);
    let not_kept = read_limits(fields, dialect, &mut tools, &mut asked, &mut subagents);
    asked.tools = tools.tools;
    asked.at_most = tools.at_most;
    asked.others = tools.others;
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
        unclear: tools.unclear,
        model,
        visibility,
        emit_structured_findings,
        isolated,
        tools_as,
        subagents,
        deciders: tools.deciders,
        open_names: tools.open,
        not_kept,
        disabled,
        path: path.to_path_buf(),
    })
}

/// Reads the fields that state limits; a limit that cannot be enforced blocks the agent.
fn read_limits(
    mut fields: UnreadFields<'_, '_>,
    dialect: Dialect,
    tools: &mut ToolList,
    asked: &mut AskedRights,
    subagents: &mut Option<SubagentsAsk>,
) -> Vec<NotKept> {
    let mut not_kept = Vec::new();
    if subagents.as_ref().is_some_and(SubagentsAsk::is_nobody) {
        let field = if fields.place_of("agents").is_some() { "agents" } else { "subagents" };
        let by = (field.to_owned(), fields.field_position(field).line);
        narrowed::delegate_nothing(&by, tools);
    }
    NarrowingReader { tools, asked, subagents, not_kept: &mut not_kept }.read_fields(&mut fields);
    leftovers::report_unknown_fields(fields, dialect, &mut not_kept);
    if !not_kept.is_empty() {
        tools.tools = Some(BTreeSet::new());
    }
    tools.remove_denied();
    not_kept
}

/// Renames narrowing fields to the spelling of their reader.
fn normalize_field_names(entries: &mut [(YamlKey, YamlNode)], findings: &mut FileFindings<'_>) {
    for (key, _) in entries {
        let meant = keys::resolve_field(&key.text).to_owned();
        if meant != key.text {
            let message = format!("`{}` is read as `{meant}`", ShownText::clip_line(&key.text, 64));
            findings.warning(key.at, "spelling", message, None);
            key.text = meant;
        }
    }
}

/// Reads what the file says about tools, or notes that it says nothing.
fn read_tools(
    fields: &mut UnreadFields<'_, '_>,
    dialect: Dialect,
    known: &KnownTools,
    lost: Option<&(String, FilePosition)>,
) -> ToolList {
    let mut tools = ToolList::from_fields(fields, dialect, known);
    if dialect != Dialect::Canonical {
        servers::add_server_tools(fields, known, &mut tools);
    }
    if let Some((field, at)) = lost {
        say_lost(field, *at, fields);
        tools.drop_all_tools(field);
    }
    let unstated = tools.as_written.is_none() && !fields.findings.has_errors();
    if dialect != Dialect::Canonical && unstated {
        let message = "it has no `tools`, so it gets those that the grants give by default";
        fields.findings.note(fields.field_position("name"), NO_TOOLS, message);
    }
    tools
}

/// Reads the description. If a stranger's description is not text, its source becomes the text, because its
/// author forgot quotes.
fn read_description(
    split: &FrontmatterSplit<'_>,
    dialect: Dialect,
    fields: &mut UnreadFields<'_, '_>,
) -> Option<String> {
    let Some(key) = fields.structured_key("description").filter(|_| dialect != Dialect::Canonical)
    else {
        return fields.required_text("description");
    };
    let text = recover::text_of(split, "description").filter(|text| !text.is_empty());
    let Some(text) = text else { return fields.required_text("description") };
    fields.take_field("description");
    let message = "`description` is not a text in YAML; it is taken as it stands there";
    let hint = Some("quote it".to_owned());
    fields.findings.warning(key.at, "bad-field", message, hint);
    Some(text)
}
