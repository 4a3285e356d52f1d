//! Shapes of agent files that are read only if the operator permits them.
//!
//! Some files are published with their frontmatter in a code fence or below a heading, or with fields one
//! level down under `meta:`. A page of documentation that shows an agent looks the same, so by default these
//! shapes are refused.

use super::tools::KnownTools;
use crate::diagnostic::{FileFindings, clamp_count};
use crate::frontmatter::{self, FrontmatterSplit, LineCursor};
use crate::yaml::{YamlKey, YamlNode, YamlValue};

/// The most lines before wrapped frontmatter: a heading, an introduction, the fence.
const MAX_LINES_BEFORE: usize = 10;

/// The key under which some files nest their fields.
const NEST: &str = "meta";

/// How the operator permits these shapes.
pub(super) const SWITCH: &str =
    "set `lenient = true` under `[agents]` in `belljar.toml`, or check with `--lenient`";

/// The accepted shapes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FrontmatterShapes {
    /// Frontmatter at the beginning, fields at its top level. The default.
    #[default]
    Ordinary,
    /// Also frontmatter in a code fence or after a heading, and fields under `meta:`.
    Lenient,
}

/// The inputs of parsing an agent file, beside its text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentContext {
    /// The tools that exist.
    pub known: KnownTools,
    /// The accepted shapes.
    pub shapes: FrontmatterShapes,
}

impl From<KnownTools> for AgentContext {
    fn from(known: KnownTools) -> Self {
        Self { known, shapes: FrontmatterShapes::default() }
    }
}

impl From<&KnownTools> for AgentContext {
    fn from(known: &KnownTools) -> Self {
        known.clone().into()
    }
}

/// The frontmatter in a code fence or after a heading, if the file has any.
pub(super) fn find_wrapped(text: &str) -> Option<FrontmatterSplit<'_>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = LineCursor { rest: text, line: 0 };
    let mut fence = None;
    for _ in 0..MAX_LINES_BEFORE {
        let (before, number) = (lines.rest, lines.line);
        let line = lines.next()?.trim_end();
        if line == "---" {
            let split = frontmatter::split_from(before, number).ok()?;
            return has_description(&split).then(|| without_fence(split, fence));
        }
        let opens = line.starts_with("```") || line.starts_with("~~~");
        match fence {
            None if opens => fence = Some(line.get(..3)?),
            None if line.trim().is_empty() || line.starts_with('#') => {}
            Some(_) if line.trim().is_empty() => {}
            None | Some(_) => return None,
        }
    }
    None
}

/// Whether the fields include a description, which text between horizontal rules does not have.
fn has_description(split: &FrontmatterSplit<'_>) -> bool {
    split.yaml.lines().any(|line| line.starts_with("description:"))
}

/// Leaves out the closing code fence: the next line that is not blank, or the last line of a file that is all
/// in the fence.
fn without_fence<'a>(mut split: FrontmatterSplit<'a>, fence: Option<&str>) -> FrontmatterSplit<'a> {
    let Some(fence) = fence else { return split };
    let mut lines = LineCursor { rest: split.body, line: split.fence_line };
    let next = lines.by_ref().find(|line| !line.trim().is_empty());
    if next.is_some_and(|line| line.trim() == fence) {
        (split.body, split.fence_line) = (lines.rest, lines.line);
        return split;
    }
    let inner = split.body.trim_end();
    if let Some(inner) = inner.strip_suffix(fence).filter(|inner| inner.ends_with('\n')) {
        split.body = inner;
    }
    split
}

/// The fields of a file; if only `meta:` has a description, the fields under `meta:` are moved to the top.
/// `None` = an error was added to `findings`: the operator does not permit nested fields, or one field is at
/// both places.
pub(super) fn unnest_fields(
    mut entries: Vec<(YamlKey, YamlNode)>,
    shapes: FrontmatterShapes,
    findings: &mut FileFindings<'_>,
) -> Option<Vec<(YamlKey, YamlNode)>> {
    let has = |entries: &[(YamlKey, YamlNode)], name: &str| {
        entries.iter().any(|(key, _)| key.text == name)
    };
    let at = entries.iter().position(|(key, node)| {
        let YamlValue::Map(inner) = &node.value else { return false };
        key.text == NEST && has(inner, "description")
    });
    let Some(at) = at.filter(|_| !has(&entries, "description")) else { return Some(entries) };
    let (key, node) = entries.remove(at);
    if shapes == FrontmatterShapes::Ordinary {
        let message = format!("the fields stand under `{NEST}:`, where they are not read");
        findings.error_hint(key.at, "nested-fields", message, SWITCH);
        return None;
    }
    let YamlValue::Map(inner) = node.value else { return Some(entries) };
    for (key, node) in inner {
        // The field that the author meant is unknown, and one of the two may be narrower.
        if has(&entries, &key.text) {
            let message = format!("a field stands at the top and under `{NEST}:`");
            findings.error_hint(key.at, "repeated-field", message, "keep one of them");
            return None;
        }
        entries.push((key, node));
    }
    let message = format!("{} fields are read from under `{NEST}:`", clamp_count(entries.len()));
    findings.note(key.at, "nested-fields", message);
    Some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: &str = "---\nname: a\ndescription: d\n---\n";

    #[test]
    fn frontmatter_is_found_in_a_fence_and_after_a_heading() {
        let found =
            |text: &str| find_wrapped(text).map(|split| (split.yaml_line, split.body.to_owned()));
        let fenced = format!("# A\n\n```yaml\n{FIELDS}```\n\nbody\n");
        assert_eq!(found(&fenced), Some((5, "\nbody\n".to_owned())));
        let whole = format!("```markdown\n{FIELDS}body\n```\n");
        assert_eq!(found(&whole), Some((3, "body\n".to_owned())));
        let after = format!("\u{feff}# A\n{FIELDS}body");
        assert_eq!(found(&after), Some((3, "body".to_owned())));
    }

    #[test]
    fn documentation_is_not_frontmatter() {
        for text in [
            "# A\n\n---\ntext\n---\nmore\n".to_owned(),
            format!("# A\n\nSome words.\n\n```\n{FIELDS}```\n"),
            format!("{}{FIELDS}body", "\n# h".repeat(20)),
            "# A\n---\ndescription: d\n".to_owned(),
            String::new(),
        ] {
            assert_eq!(find_wrapped(&text), None, "{text}");
        }
    }
}
