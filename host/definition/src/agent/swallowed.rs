//! Finds lines that were meant as fields but are parsed as text. For example: `tools:Read`, `tools = Read`, a
//! field in the lines of a description, or a field below a fence that closes too early.
//!
//! In YAML such a line is part of the text before it. The agent would keep every tool that the line denies. A
//! comment never counts, because no program reads fields in comments.

use std::collections::BTreeSet;

use belljar_policy::ShownText;

use super::keys::{self, NARROWING};
use super::names::{NameEntry, find_named_tools, split_names};
use super::says::ValueMeaning;
use super::stated;
use super::tools::KnownTools;
use super::words::{flatten_text, split_words, visible_text};
use crate::diagnostic::{FilePosition, clamp_count};
use crate::frontmatter::FrontmatterSplit;
use crate::suggest;
use crate::yaml::{YamlKey, YamlNode, YamlValue};

/// The longest key that is checked, in bytes.
const MAX_KEY: usize = 40;

/// Fields whose misspellings are checked.
const LISTS: &[&str] = &["tools", "allowedTools", "disallowedTools"];

/// The first lines of a body, which are checked for fields below a fence that closed too early.
const MAX_HEAD: usize = 30;

/// The marks that people write between a key and its value by mistake. The first one in a line counts.
const JOINTS: &[&str] = &[":", "=", ";", "->", "→", "|", "~", "<", ">", "\t", " - ", " "];

/// The first line that was probably meant as a narrowing field, with the field.
pub(super) fn find_swallowed_field(
    split: &FrontmatterSplit<'_>,
    entries: &[(YamlKey, YamlNode)],
    known: &KnownTools,
) -> Option<(String, FilePosition)> {
    let mut read = BTreeSet::new();
    entries.iter().for_each(|entry| lines_of(entry, &mut read));
    let lines: Vec<&str> = split.yaml.lines().collect();
    let place = |line| FilePosition { line, column: 1 };
    for (n, line) in lines.iter().enumerate() {
        let number = split.yaml_line.saturating_add(clamp_count(n));
        let next = lines.get(n + 1).copied().unwrap_or_default();
        if !read.contains(&number)
            && let Some(field) = field_of(line, next, known)
        {
            return Some((field, place(number)));
        }
    }
    let lines: Vec<&str> = split.body.lines().take(MAX_HEAD).collect();
    for (n, line) in lines.iter().enumerate() {
        let bare = line.trim();
        if bare.is_empty() || bare.bytes().all(|b| b == b'-') {
            continue;
        }
        let key = bare.split(':').next()?;
        if key.len() == bare.len() && !LISTS.contains(&keys::resolve_field(bare)) {
            return None;
        }
        if key.len() > MAX_KEY || key.split_whitespace().count() > 2 || bare.starts_with('#') {
            return None;
        }
        let next = lines.get(n + 1).copied().unwrap_or_default();
        if let Some(field) = field_of(line, next, known) {
            let number = split.fence_line.saturating_add(1).saturating_add(clamp_count(n));
            return Some((field, place(number)));
        }
    }
    None
}

/// Adds to `lines` the number of the line on which a field's key stands, and those of its nested fields.
fn lines_of((key, node): &(YamlKey, YamlNode), lines: &mut BTreeSet<u32>) {
    lines.insert(key.at.line);
    let mut left = vec![node];
    while let Some(node) = left.pop() {
        match &node.value {
            YamlValue::Map(entries) => {
                for (key, node) in entries {
                    lines.insert(key.at.line);
                    left.push(node);
                }
            }
            YamlValue::List(items) => left.extend(items),
            YamlValue::Null
            | YamlValue::Bool(_)
            | YamlValue::Int(_)
            | YamlValue::Float
            | YamlValue::Text(_) => {}
        }
    }
}

/// The narrowing field that a line resembles.
fn field_of(line: &str, next: &str, known: &KnownTools) -> Option<String> {
    let line = visible_text(line);
    let bare = line.trim();
    if bare.starts_with('#') {
        return None;
    }
    let mark = |c: char| c.is_whitespace() || "-*•>`\"'?{_+,<".contains(c);
    let bare = bare.trim_start_matches(mark);
    // A key alone on its line, with the value on the next.
    if LISTS.contains(&keys::resolve_field(bare)) {
        let value = next.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ':' | '-'));
        let nothing = next.trim_start().starts_with(':')
            && ValueMeaning::from_text(value) == ValueMeaning::No;
        if nothing || names_tools(value.trim_end(), ":", known) {
            return Some(ShownText::clip_line(keys::resolve_field(bare), MAX_KEY).to_string());
        }
    }
    // The first mark, whatever its length.
    let found = JOINTS.iter().filter_map(|joint| Some((bare.find(joint)?, *joint)));
    let mut found: Vec<_> = found.filter(|(at, _)| *at > 0).collect();
    found.sort_by_key(|(at, joint)| (*joint == " ", *at));
    for (at, joint) in found {
        let (key, value) = bare.split_at_checked(at)?;
        let key = key.trim_matches(mark).trim_matches(['`', ':', '.']);
        let value =
            value.trim_start_matches(|c: char| c.is_whitespace() || ":=;->→|~<*\"'`".contains(c));
        // The form `<tools>Read</tools>`.
        let value = value.split("</").next().unwrap_or(value);
        let value = value.trim_end_matches([',', '}', '"', '\'', '`', ';', '.']).trim();
        let is_list = value.is_empty() && joint == ":" && next.trim_start().starts_with("- ");
        let value = if is_list { next.trim_start().trim_start_matches("- ") } else { value };
        if key.len() <= MAX_KEY
            && key.split_whitespace().count() < 4
            && is_field_value(key, value, joint, known)
        {
            return Some(ShownText::clip_line(keys::resolve_field(key), MAX_KEY).to_string());
        }
    }
    None
}

/// Whether a value after such a key is a value of the field rather than prose.
fn is_field_value(key: &str, value: &str, joint: &str, known: &KnownTools) -> bool {
    let field = keys::resolve_field(key);
    let slip = || suggest::find_nearest(key, LISTS.iter().copied()).is_some() && !key.contains(' ');
    let lists = field != "agents" && field != "disable" && NARROWING.contains(&field)
        || joint.contains([':', '=']) && slip();
    let states = stated::is_stated(key);
    if !lists && !states {
        return false;
    }
    let says = ValueMeaning::from_text(value);
    let number = value.starts_with(|c: char| c.is_ascii_digit()) && value.split(' ').count() < 3;
    // A common word before a blank is prose, for example in `write no tests`.
    let plain =
        joint != " " || split_words(key).len() > 1 || flatten_text(key).starts_with("readonly");
    match (lists, says) {
        (true, ValueMeaning::No) => joint != " ",
        (_, ValueMeaning::Yes | ValueMeaning::No) if states => plain,
        (_, ValueMeaning::Number) | (true, _) if number => plain,
        (true, _) => names_tools(value, joint, known),
        (false, ValueMeaning::Less) => !value.contains(' '),
        // `permission_mode=plan`: one word after a key of several joined words.
        (false, _) => {
            let one = !value.is_empty() && !value.contains(' ') && joint.contains([':', '=']);
            number && plain || one && split_words(key).len() > 1
        }
    }
}

/// Whether a value consists only of tools' names, separated by commas. `joint` is the mark between the key and
/// the value, one of [`JOINTS`].
fn names_tools(value: &str, joint: &str, known: &KnownTools) -> bool {
    let value = value.trim_start_matches(['[', '{', '(']).trim_end_matches([']', '}', ')']);
    let bare =
        |entry: &NameEntry| entry.text.trim_matches(['"', '\'', '`', '*', '!', ' ']).to_owned();
    let entries = split_names(value, FilePosition::default());
    let is_name = |entry: &NameEntry| {
        let name = bare(entry);
        entry.text.trim() == "*" || !name.contains(' ') && find_named_tools(&name, known).is_known
    };
    // If only a blank joins key and value, the line may be prose, so each name needs a capital or a `_`.
    let capital = |entry: &NameEntry| {
        bare(entry).starts_with(|c: char| c.is_uppercase()) || bare(entry).contains('_')
    };
    !entries.is_empty()
        && entries.iter().all(is_name)
        && (joint != " " || entries.iter().all(capital))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_hand_is_told_from_prose() {
        let known = KnownTools::default();
        let field = |line: &str| field_of(line, "", &known);
        for line in [
            "tools:Read, Grep",
            "tools = Read",
            "tools=Read",
            "tools Read",
            "tools - Read",
            "tools; Read",
            "tools\tRead",
            "tools：Read",
            "Tools : Read",
            "  tools: Read",
            "**tools:** Read, Grep",
            "\"tools\": Read,",
            "tools -> Read",
            "tools := [Read, Grep]",
            "allowed tools = Read",
            "\u{200b}tools: Read",
            "tools: none",
            "readonly = true",
            "read_only:true",
            "max_turns = 3",
            "disallowedTools:Write",
            "sandbox_mode = read-only",
            "readonly true",
            "permission_mode=plan",
            "tools ~ Read",
            "tools < Read",
            "<tools>Read, Grep</tools>",
        ] {
            assert!(field(line).is_some(), "{line}");
        }
        for prose in [
            "# tools: Read",
            "tools: what you need for the work",
            "Tools are read first",
            "writes good code",
            "Read, Grep",
            "Permissions: ask a person before each of them",
            "edit: the file that was named",
            "network engineers",
            "Tools Used In This Work",
            "https://example.org/tools",
            "",
        ] {
            assert_eq!(field(prose), None, "{prose}");
        }
        assert_eq!(field_of("Tools:", "  - Read", &known).as_deref(), Some("tools"));
        assert_eq!(field_of("Tools:", "  - what is read", &known), None);
        for next in [": Read", "Read, Grep", "  - Read", ": none"] {
            assert_eq!(field_of("tools", next, &known).as_deref(), Some("tools"), "{next}");
        }
        assert_eq!(field_of("tools", "are for work", &known), None);
    }
}
