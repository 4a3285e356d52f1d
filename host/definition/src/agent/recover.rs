//! Repairs frontmatter that is not valid YAML, field by field.
//!
//! Hand-written descriptions contain `: `, quotes and line breaks that a strict parser refuses. Such
//! frontmatter is split at the lines that begin, in the first column, with a field of some known program.
//! Each piece is parsed strictly once more; if that fails, the value becomes a text, folded to one line. For
//! example, `description: Use when: asked` becomes the text `Use when: asked`.
//!
//! A guess never decides a right. A guessed piece is text, except for a plain list of names in `tools`. A
//! restricting field that occurs twice there rejects the file, because one of the two may be prose. If a
//! restricting field cannot be read, or may be hidden in prose, the agent loses all tools, because leaving
//! the field out would grant all. A file in belljar's own format is not repaired at all.

use belljar_policy::ShownText;

use super::keys::{self, NARROWING};
use super::limit_words;
use super::names::split_names;
use crate::diagnostic::{FileFindings, FilePosition, Severity, clamp_count};
use crate::dialect::CANONICAL_ONLY;
use crate::frontmatter::FrontmatterSplit;
use crate::snippet::without_secret;
use crate::yaml::{self, YamlError, YamlErrorKind, YamlKey, YamlNode, YamlValue};

/// Most characters of a line that a message repeats.
const MAX_SHOWN: usize = 60;

/// The most fields of one file. All known programs have some fifty fields, each used once; a file with more
/// is hostile.
const MAX_PIECES: usize = 100;

/// Repaired frontmatter.
pub(crate) struct RecoveredFields {
    pub(crate) entries: Vec<(YamlKey, YamlNode)>,
    /// The first restricting field that could not be read, with its position.
    pub(super) lost: Option<(String, FilePosition)>,
}

/// A field with all its lines.
struct FieldPiece<'a> {
    key: &'a str,
    /// The field that the key means, in its usual spelling.
    field: &'a str,
    /// The first line's number in the file, from 1.
    line: u32,
    /// The text after the colon of the first line.
    value: &'a str,
    /// All lines, the first with its key, without the file's indentation.
    lines: Vec<&'a str>,
}

/// Repairs frontmatter that the YAML parser refused with `error`. `None` = it cannot be repaired, and the
/// findings have the reason.
pub(crate) fn recover_fields(
    split: &FrontmatterSplit<'_>,
    error: &YamlError,
    findings: &mut FileFindings<'_>,
) -> Option<RecoveredFields> {
    let refuse = |findings: &mut FileFindings<'_>| {
        let message = format!("the frontmatter is not valid YAML: {}", error.message);
        findings.add_finding(Severity::Error, error.at, "yaml", message, error.hint.clone());
        None
    };
    let (preamble, pieces) = split_pieces(split, error.kind);
    let canonical = pieces.iter().any(|piece| CANONICAL_ONLY.contains(&piece.key));
    let described = pieces.iter().any(|piece| piece.key == "description");
    let many = pieces.len() > MAX_PIECES;
    // Frontmatter in braces may have several fields in one line, which a repair by lines would lose.
    let braces = preamble.iter().any(|line| line.trim_start().starts_with('{'));
    if braces || error.kind == YamlErrorKind::Hostile || canonical || !described || many {
        return refuse(findings);
    }
    let mut recovered = RecoveredFields { entries: Vec::new(), lost: None };
    let mut as_text = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    recovered.look_for_hidden(&preamble, split.yaml_line);
    for piece in &pieces {
        let key = piece.field;
        let at = FilePosition { line: piece.line, column: 1 };
        if seen.contains(&key) && keys::is_narrowing_key(key) {
            let message =
                format!("`{key}` stands here again, in frontmatter that is no valid YAML");
            let hint =
                "one of the two may be prose: correct the YAML, and keep the field that counts";
            findings.error_hint(at, "repeated-field", message, hint);
            return None;
        }
        if seen.contains(&key) {
            let message = format!("`{key}` stands here again; the first one counts");
            findings.warning(at, "repeated-field", message, None);
            recovered.look_for_hidden_in(piece);
            continue;
        }
        seen.push(key);
        if !recovered.take_valid_piece(piece) {
            as_text.push(format!("`{key}`"));
            recovered.as_text(piece, at);
        }
    }
    report_recovery(split, error, &as_text, findings);
    Some(recovered)
}

/// The value of a field, as text on one line.
pub(super) fn text_of(split: &FrontmatterSplit<'_>, field: &str) -> Option<String> {
    let (_, pieces) = split_pieces(split, YamlErrorKind::Duplicate);
    pieces.iter().find(|piece| piece.key == field).map(FieldPiece::folded_value)
}

/// Adds one warning about the repair, at the line where the strict parser stopped.
fn report_recovery(
    split: &FrontmatterSplit<'_>,
    error: &YamlError,
    as_text: &[String],
    findings: &mut FileFindings<'_>,
) {
    let nth = usize::try_from(error.at.line.saturating_sub(split.yaml_line)).unwrap_or(usize::MAX);
    let line = split.yaml.lines().nth(nth).unwrap_or_default();
    let line = ShownText::clip_line(without_secret(line).trim(), MAX_SHOWN).to_string();
    let read = match as_text {
        [] => String::new(),
        fields => format!("; {} is taken as text", fields.join(", ")),
    };
    let message = format!(
        "the frontmatter is not valid YAML, so it was read field by field{read}: {}, in `{line}`",
        error.message
    );
    findings.warning(error.at, "recovered-yaml", message, error.hint.clone());
}

/// Splits at known keys in the first column. Returns the lines before the first key and the pieces.
fn split_pieces<'a>(
    split: &FrontmatterSplit<'a>,
    kind: YamlErrorKind,
) -> (Vec<&'a str>, Vec<FieldPiece<'a>>) {
    let mut preamble = Vec::new();
    let mut pieces: Vec<FieldPiece<'a>> = Vec::new();
    // Whether the last piece is a description that is not valid YAML. It stays so, because further lines do
    // not repair it.
    let mut prose = false;
    for (n, line) in split.yaml.lines().enumerate() {
        let line = line.strip_prefix(split.indent).unwrap_or(line);
        let opened = key_of(line).filter(|(key, value)| is_field(key, value));
        let opened = opened.filter(|(key, _)| {
            prose = kind == YamlErrorKind::Syntax && (prose || ends_in_prose(&pieces, key));
            !prose || keys::is_narrowing_key(key) || !stands_in(&pieces, key)
        });
        let full = pieces.len() > MAX_PIECES;
        match (opened, pieces.last_mut()) {
            (Some(_), _) if full => break,
            (Some((key, value)), _) => {
                prose = false;
                let line_no = split.yaml_line.saturating_add(clamp_count(n));
                let (field, lines) = (keys::resolve_field(key), vec![line]);
                pieces.push(FieldPiece { key, field, line: line_no, value, lines });
            }
            (None, Some(piece)) => piece.lines.push(line),
            (None, None) => preamble.push(line),
        }
    }
    (preamble, pieces)
}

/// Whether a repeated key belongs to the prose of a broken description before it. A restricting field never
/// does: it is reported.
fn ends_in_prose(pieces: &[FieldPiece<'_>], key: &str) -> bool {
    let last = pieces.last().filter(|last| last.key == "description" && stands_in(pieces, key));
    last.is_some_and(|last| last.parse().is_none())
}

fn stands_in(pieces: &[FieldPiece<'_>], key: &str) -> bool {
    let field = keys::resolve_field(key);
    pieces.iter().any(|piece| piece.field == field)
}

/// Whether a line that begins with this key is a field. Some field names also begin lines of prose; their
/// values decide.
fn is_field(key: &str, value: &str) -> bool {
    let value = value.trim().trim_matches(['"', '\'']);
    match key {
        "steps" | "maxSteps" | "maxTurns" => value.starts_with(|c: char| c.is_ascii_digit()),
        "agents" => value.is_empty() || value.starts_with(['[', '*']),
        "disable" => matches!(value.to_ascii_lowercase().as_str(), "true" | "false" | "yes" | "no"),
        // Prose begins with such words too, but has more than one word in the line.
        _ if keys::is_narrowing_key(key) && !NARROWING.contains(&keys::resolve_field(key)) => {
            !value.is_empty() && !value.contains(' ')
        }
        _ if NARROWING.contains(&keys::resolve_field(key)) => true,
        _ if limit_words::is_word(key) => {
            value.is_empty() || value.starts_with(['[', '{']) || !value.contains(' ')
        }
        _ if !value.contains(' ') && limit_words::restricts_by(key, value) => true,
        _ => keys::is_known(key),
    }
}

/// The key at the beginning of a line, and the text after its colon.
fn key_of(line: &str) -> Option<(&str, &str)> {
    let (key, rest) = match line.chars().next()? {
        quote @ ('"' | '\'') => line.get(1..)?.split_once(quote)?,
        _ => {
            let end = line.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-')))?;
            line.split_at_checked(end)?
        }
    };
    let value = rest.trim_start_matches([' ', '\t']).strip_prefix(':')?;
    let ends = value.is_empty() || value.starts_with([' ', '\t', '\r']);
    (ends && !key.is_empty()).then_some((key, value))
}

impl FieldPiece<'_> {
    /// The fields of the piece, if it is valid YAML.
    fn parse(&self) -> Option<Vec<(YamlKey, YamlNode)>> {
        self.parse_lines(&self.lines)
    }

    /// Parses like [`FieldPiece::parse`], but only up to the next unknown field.
    fn parse_first(&self) -> Option<Vec<(YamlKey, YamlNode)>> {
        let end = self.lines.iter().skip(1).position(|line| key_of(line).is_some())?;
        self.parse_lines(self.lines.get(..=end)?)
    }

    /// Parses lines of the piece as YAML; `None` = they are not fields of this piece.
    fn parse_lines(&self, lines: &[&str]) -> Option<Vec<(YamlKey, YamlNode)>> {
        let root = yaml::parse_document(&lines.join("\n"), self.line).ok()?;
        match root.value {
            // A description with several unknown fields is a block text without its indentation.
            YamlValue::Map(entries) if self.key == "description" && entries.len() > 1 => {
                let (_, first) = entries.first()?;
                first.as_text().is_some_and(|text| !text.trim().is_empty()).then_some(entries)
            }
            YamlValue::Map(entries) if entries.first()?.0.text == self.key => Some(entries),
            _ => None,
        }
    }

    /// The names of tools in the value, separated by commas; `None` = the value contains anything else.
    fn tool_names(&self) -> Option<String> {
        let rest = self.lines.iter().skip(1).map(|line| line.trim());
        let items: Option<Vec<&str>> =
            rest.filter(|line| !line.is_empty()).map(|line| line.strip_prefix("- ")).collect();
        let folded = self.folded_value();
        let text = match items.filter(|items| self.value.trim().is_empty() && !items.is_empty()) {
            Some(items) => items.join(", "),
            None => {
                let inner = folded.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
                inner.unwrap_or(&folded).to_owned()
            }
        };
        let entries = split_names(&text, FilePosition::default());
        let names: Vec<&str> = entries.iter().map(|entry| strip_quotes(&entry.text)).collect();
        let plain = !names.is_empty() && names.iter().all(|name| is_plain_name(name));
        plain.then(|| names.join(", "))
    }

    /// The value as one line of text.
    fn folded_value(&self) -> String {
        let first = match self.value.trim() {
            // The mark of a block text (`|` or `>`) whose lines are not indented is dropped.
            mark if mark.starts_with(['|', '>']) && mark.len() <= 3 => "",
            value => value,
        };
        let rest = self.lines.iter().skip(1).map(|line| line.trim());
        let words: Vec<&str> =
            std::iter::once(first).chain(rest).filter(|line| !line.is_empty()).collect();
        strip_quotes(&words.join(" ")).to_owned()
    }
}

/// The text without its pair of quotes. A text with a further quote inside is returned whole, because the
/// outer quotes may not be a pair.
fn strip_quotes(text: &str) -> &str {
    for quote in ['"', '\''] {
        let inner = text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
        if let Some(inner) = inner.filter(|inner| !inner.contains(quote)) {
            return inner;
        }
    }
    text
}

impl RecoveredFields {
    /// Adds the fields of a piece that is valid YAML.
    fn take_valid_piece(&mut self, piece: &FieldPiece<'_>) -> bool {
        // In a description, a line that looks like a field is probably prose.
        let first = || piece.parse_first().filter(|_| piece.key != "description");
        let Some(entries) = piece.parse().or_else(|| {
            let entries = first()?;
            self.look_for_hidden_in(piece);
            Some(entries)
        }) else {
            return false;
        };
        for (n, (key, node)) in entries.into_iter().enumerate() {
            if n > 0 && keys::is_narrowing_key(&key.text) {
                // A restricting key that was written so that its line did not look like a field.
                self.record_lost_field(&key.text, key.at);
            } else if self.entries.iter().all(|(other, _)| other.text != key.text) {
                self.entries.push((key, node));
            }
        }
        true
    }

    /// Adds a piece that is not valid YAML: as text, or not at all if the field decides about rights.
    fn as_text(&mut self, piece: &FieldPiece<'_>, at: FilePosition) {
        let field = piece.field;
        let text = piece.folded_value();
        self.look_for_hidden_in(piece);
        let names = || piece.tool_names().filter(|_| matches!(field, "tools" | "allowedTools"));
        let value = match names() {
            Some(names) => names,
            None if keys::is_narrowing_key(field) => return self.record_lost_field(field, at),
            None => text,
        };
        let key = YamlKey { text: piece.key.to_owned(), at };
        self.entries.push((key, YamlNode { value: YamlValue::Text(value), at, written: None }));
    }

    fn record_lost_field(&mut self, field: &str, at: FilePosition) {
        self.lost.get_or_insert_with(|| (ShownText::clip_line(field, MAX_SHOWN).to_string(), at));
    }

    fn look_for_hidden_in(&mut self, piece: &FieldPiece<'_>) {
        let rest = piece.lines.get(1..).unwrap_or_default();
        self.look_for_hidden(rest, piece.line.saturating_add(1));
    }

    /// Searches ignored lines for restricting fields: wrongly indented, in a flow map, behind `?`, merged, or
    /// with an escaped key.
    fn look_for_hidden(&mut self, lines: &[&str], first_line: u32) {
        for (n, line) in lines.iter().enumerate() {
            let at = FilePosition { line: first_line.saturating_add(clamp_count(n)), column: 1 };
            if let Some(field) = find_hidden_field(line) {
                self.record_lost_field(field, at);
            }
        }
    }
}

/// The restricting field that the author of an ignored line may have meant; `None` = none.
fn find_hidden_field(line: &str) -> Option<&str> {
    const ANY: &str = "tools";
    let mark = |c: char| c.is_whitespace() || matches!(c, '-' | '?' | '{' | ',' | '[');
    let mut bare = line.trim_start_matches(mark);
    // A merged map or an aliased key may contain any field.
    let alias = bare.strip_prefix('*').and_then(|rest| rest.split_once([' ', '\t']));
    let alias = alias.is_some_and(|(name, rest)| {
        !name.is_empty() && !name.contains('*') && rest.trim_start().starts_with(':')
    });
    if alias || bare.starts_with("<<") {
        return Some(ANY);
    }
    while bare.starts_with(['&', '!']) {
        bare = bare.split_once([' ', '\t']).map_or("", |(_, rest)| rest.trim_start());
    }
    let bare = bare.trim_start_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '"' | '\''));
    let escaped = bare.strip_prefix('"').and_then(|rest| rest.split_once('"'));
    if escaped.is_some_and(|(key, rest)| key.contains('\\') && rest.trim_start().starts_with(':')) {
        return Some(ANY);
    }
    let alone = bare.trim().trim_matches(['"', '\'']);
    if line.trim_start().starts_with('?') && keys::is_narrowing_key(alone) {
        return Some(alone);
    }
    let (key, value) = key_of(bare)?;
    (keys::is_narrowing_key(key) && is_field(key, value)).then_some(key)
}

/// Whether a text is a tool's name, with or without a scope: not a comment, an alias, a tag or prose.
fn is_plain_name(text: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/' | '.');
    let (name, scope) = match text.strip_suffix(')').and_then(|rest| rest.split_once('(')) {
        Some((name, scope)) => (name, scope),
        None => (text, ""),
    };
    let plain_scope = !scope.contains(['(', ')', '#', '\n']);
    text == "*" || (plain_scope && name.starts_with(letter) && name.chars().all(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_begins_with_a_key_or_does_not() {
        assert_eq!(key_of("tools: Read"), Some(("tools", " Read")));
        assert_eq!(key_of("\"tools\" : Read"), Some(("tools", " Read")));
        assert_eq!(key_of("argument-hint:"), Some(("argument-hint", "")));
        for prose in ["use tools: x", "https://x", " tools: x", "tools", ": x", "", "é"] {
            assert_eq!(key_of(prose), None, "{prose}");
        }
    }

    #[test]
    fn quotes_go_only_as_a_pair() {
        assert_eq!(strip_quotes("\"a: b\""), "a: b");
        assert_eq!(strip_quotes("'a'"), "a");
        for kept in ["\"a\" and \"b\"", "\"a", "a'", "'", ""] {
            assert_eq!(strip_quotes(kept), kept);
        }
    }

    #[test]
    fn only_names_are_a_plain_list() {
        for name in ["Read", "mcp__x__y", "edit/editFiles", "*", "Bash(git diff: *)"] {
            assert!(is_plain_name(name), "{name}");
        }
        for other in
            ["", "Read # Write", "*x", "!Read", "Read Write", "[Read", "Bash(a", "(a)", "A(#)"]
        {
            assert!(!is_plain_name(other), "{other}");
        }
    }
}
