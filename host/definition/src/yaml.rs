//! Parses YAML into a tree whose keys and values have positions in the file.
//!
//! Every limit of the parser is set here, because the cost of a stranger's file must not depend on the
//! parser's defaults.

mod hint;

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_yaml::Spanned;
use serde_yaml::options::{DuplicateKeyPolicy, MergeKeyPolicy, NonFiniteFloatPolicy};

use crate::diagnostic::{FilePosition, place_of};
use crate::frontmatter::MAX_FRONTMATTER;

/// Levels of nesting; real frontmatter has at most four.
const MAX_DEPTH: usize = 16;

/// Keys, values and lists in all, after aliases are expanded; the largest public file has about 200.
const MAX_NODES: usize = 10_000;

/// Most anchors, and most uses of anchors. Hardly any file has one, and a file that expands enormously needs
/// many.
const MAX_ALIASES: usize = 32;

/// A value with its position.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct YamlNode {
    pub(crate) value: YamlValue,
    pub(crate) at: FilePosition,
    /// The text of a scalar that is no string, as written, for example `007` or `1.10`.
    pub(crate) written: Option<String>,
}

/// The value of a node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum YamlValue {
    Null,
    Bool(bool),
    Int(i128),
    Float,
    Text(String),
    List(Vec<YamlNode>),
    Map(Vec<(YamlKey, YamlNode)>),
}

/// A key with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct YamlKey {
    pub(crate) text: String,
    pub(crate) at: FilePosition,
}

/// Why a text cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct YamlError {
    pub(crate) at: FilePosition,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) kind: YamlErrorKind,
}

/// The kinds of invalid YAML, which decide about a repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum YamlErrorKind {
    /// The text breaks the grammar, as hand-written text often does.
    Syntax,
    /// A key occurs twice.
    Duplicate,
    /// Too costly to parse, or with text that a person would not see: not repaired.
    Hostile,
}

impl YamlNode {
    /// A scalar as text. A number or boolean is returned as it was written.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match &self.value {
            YamlValue::Text(text) => Some(text),
            YamlValue::Bool(_) | YamlValue::Int(_) | YamlValue::Float => self.written.as_deref(),
            YamlValue::Null | YamlValue::List(_) | YamlValue::Map(_) => None,
        }
    }

    /// A whole number, quoted or not.
    pub(crate) fn as_integer(&self) -> Option<i128> {
        match &self.value {
            YamlValue::Int(n) => Some(*n),
            YamlValue::Text(text) => text.trim().parse().ok(),
            YamlValue::Null
            | YamlValue::Bool(_)
            | YamlValue::Float
            | YamlValue::List(_)
            | YamlValue::Map(_) => None,
        }
    }

    /// The kind of value, for a message.
    pub(crate) fn describe_kind(&self) -> &'static str {
        match self.value {
            YamlValue::Null => "nothing",
            YamlValue::Bool(_) => "a boolean",
            YamlValue::Int(_) | YamlValue::Float => "a number",
            YamlValue::Text(_) => "a text",
            YamlValue::List(_) => "a list",
            YamlValue::Map(_) => "a map",
        }
    }
}

/// Parses one YAML document. `first_line` is the line of the file at which `yaml` begins; positions are those
/// in the file.
pub(crate) fn parse_document(yaml: &str, first_line: u32) -> Result<YamlNode, YamlError> {
    if let Some(at) = lone_return(yaml) {
        let line = first_line.saturating_add(at.line).saturating_sub(1);
        let message = "a carriage return that ends no line".to_owned();
        let hint = Some("save the file with ordinary line endings".to_owned());
        let kind = YamlErrorKind::Hostile;
        return Err(YamlError { at: FilePosition { line, ..at }, message, hint, kind });
    }
    match serde_yaml::from_str_with_options::<Spanned<RawYaml>>(yaml, parser_options()) {
        Ok(root) => match find_tagged(&root, yaml) {
            Some(location) => Err(YamlError {
                at: to_position(&location, first_line),
                message: "a tag of one's own (`!`) is not read".to_owned(),
                hint: Some("put what begins with `!` in quotes".to_owned()),
                kind: YamlErrorKind::Syntax,
            }),
            None => Ok(convert_node(root, yaml, first_line)),
        },
        Err(error) => Err(explain_error(&error, yaml, first_line)),
    }
}

/// The position of a carriage return without a line feed. This parser ends a line there but other programs do
/// not, and on a terminal the text after it covers the text before.
fn lone_return(yaml: &str) -> Option<FilePosition> {
    let bytes = yaml.as_bytes();
    let alone = |at: &usize| bytes.get(*at) == Some(&b'\r') && bytes.get(at + 1) != Some(&b'\n');
    (0..bytes.len()).find(alone).map(|at| place_of(yaml, at))
}

/// The parser's limits, all set to this module's constants.
fn parser_options() -> serde_yaml::Options {
    serde_yaml::options! {
        budget: serde_yaml::budget! {
            flow_nesting_limit: MAX_DEPTH,
            max_depth: MAX_DEPTH,
            max_nodes: MAX_NODES,
            max_events: 3 * MAX_NODES,
            max_aliases: MAX_ALIASES,
            max_anchors: MAX_ALIASES,
            max_recorded_anchor_events: MAX_NODES,
            max_recorded_anchor_bytes: MAX_FRONTMATTER,
            max_buffered_comment_events: 1_000,
            max_documents: 1,
            max_total_scalar_bytes: 2 * MAX_FRONTMATTER,
            max_total_comment_bytes: MAX_FRONTMATTER,
            max_merge_keys: 0,
        },
        alias_limits: serde_yaml::alias_limits! {
            max_total_replayed_events: MAX_NODES,
            max_replay_stack_depth: MAX_DEPTH,
            max_alias_expansions_per_anchor: MAX_ALIASES,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Error,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        strict_booleans: true,
        with_snippet: false,
    }
}

/// Converts the parser's tree to one with positions in the file.
fn convert_node(raw: Spanned<RawYaml>, yaml: &str, first_line: u32) -> YamlNode {
    let at = to_position(&raw.referenced, first_line);
    let written = match raw.value {
        RawYaml::Bool(_) | RawYaml::Int(_) | RawYaml::Float => source_text(&raw.defined, yaml),
        RawYaml::Null | RawYaml::Text(_) | RawYaml::List(_) | RawYaml::Map(_) => None,
    };
    let value = match raw.value {
        RawYaml::Null => YamlValue::Null,
        RawYaml::Bool(b) => YamlValue::Bool(b),
        RawYaml::Int(n) => YamlValue::Int(n),
        RawYaml::Float => YamlValue::Float,
        RawYaml::Text(text) => YamlValue::Text(text),
        RawYaml::List(list) => YamlValue::List(
            list.into_iter().map(|item| convert_node(item, yaml, first_line)).collect(),
        ),
        RawYaml::Map(map) => YamlValue::Map(
            map.into_iter()
                .map(|(key, value)| {
                    let at = to_position(&key.referenced, first_line);
                    (YamlKey { text: key.value, at }, convert_node(value, yaml, first_line))
                })
                .collect(),
        ),
    };
    YamlNode { value, at, written }
}

/// The first value with a tag of the author's own, for example `!Write`. The parser drops tags, so the value
/// would lose its meaning: `!except [Bash]` would be the list alone.
fn find_tagged(raw: &Spanned<RawYaml>, yaml: &str) -> Option<serde_yaml::Location> {
    if has_tag(&raw.defined, yaml) {
        return Some(raw.defined);
    }
    match &raw.value {
        RawYaml::List(items) => items.iter().find_map(|item| find_tagged(item, yaml)),
        RawYaml::Map(entries) => entries.iter().find_map(|(key, value)| {
            has_tag(&key.defined, yaml).then_some(key.defined).or_else(|| find_tagged(value, yaml))
        }),
        RawYaml::Null | RawYaml::Bool(_) | RawYaml::Int(_) | RawYaml::Float | RawYaml::Text(_) => {
            None
        }
    }
}

/// Whether a value has a tag of the author's own.
fn has_tag(location: &serde_yaml::Location, yaml: &str) -> bool {
    let Some(start) = location.span().byte_offset().and_then(|at| usize::try_from(at).ok()) else {
        return false;
    };
    let Some((before, after)) = yaml.split_at_checked(start) else { return false };
    let own = |text: &str| text.starts_with('!') && !text.starts_with("!!");
    // No unquoted value begins this way, and the parser's position of some values is after their
    // tags.
    let line = before.rsplit('\n').next().unwrap_or_default();
    let last = line.trim_end().rsplit([' ', '\t', '[', '{', ',']).next().unwrap_or_default();
    own(after) || own(last)
}

/// The text of a value as written.
fn source_text(location: &serde_yaml::Location, yaml: &str) -> Option<String> {
    let span = location.span();
    let start = usize::try_from(span.byte_offset()?).ok()?;
    let end = start.checked_add(usize::try_from(span.byte_len()?).ok()?)?;
    Some(yaml.get(start..end)?.trim().to_owned())
}

/// The position in the file of a position in the YAML text.
fn to_position(location: &serde_yaml::Location, first_line: u32) -> FilePosition {
    let clip = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    match clip(location.line()) {
        0 => FilePosition { line: first_line, column: 0 },
        line => FilePosition {
            line: first_line.saturating_add(line - 1),
            column: clip(location.column()),
        },
    }
}

/// The error of the parser as a message with a position, a hint and a kind.
fn explain_error(error: &serde_yaml::Error, yaml: &str, first_line: u32) -> YamlError {
    let at = error.location().map_or(FilePosition { line: first_line, column: 0 }, |found| {
        to_position(&found, first_line)
    });
    let error = error.without_snippet();
    if let Some((message, hint)) = explain_cost_error(error) {
        let kind = YamlErrorKind::Hostile;
        return YamlError { at, message, hint: Some(hint.to_owned()), kind };
    }
    if let serde_yaml::Error::DuplicateMappingKey { .. } = error {
        let message = "a key stands here for the second time".to_owned();
        let kind = YamlErrorKind::Duplicate;
        return YamlError { at, message, hint: Some("keep one of them".to_owned()), kind };
    }
    // The first line of the rendering is the message. The parser appends its own position within
    // `yaml`, which is cut off.
    let message = error.render();
    let message = message.lines().next().unwrap_or_default();
    let message = message.split(" at line ").next().unwrap_or(message);
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let message =
        belljar_policy::ShownText::clip_line(message.trim_end_matches('.'), 300).to_string();
    let nth = usize::try_from(at.line.saturating_sub(first_line)).unwrap_or(usize::MAX);
    let hint = hint::find_hint(&message, yaml, nth, first_line);
    let hidden = |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r');
    let kind = if yaml.contains(hidden) { YamlErrorKind::Hostile } else { YamlErrorKind::Syntax };
    YamlError { at, message, hint, kind }
}

/// The message and hint about valid YAML that would cost too much; `None` = another error.
fn explain_cost_error(error: &serde_yaml::Error) -> Option<(String, &'static str)> {
    use serde_yaml::Error as E;
    use serde_yaml::budget::BudgetBreach as Breach;
    const ALIASES: &str = "write the values out instead of anchors and aliases";
    let aliases =
        || Some((format!("more than {MAX_ALIASES} aliases, or aliases of aliases"), ALIASES));
    match error {
        E::Budget { breach: Breach::Depth { .. }, .. } => depth_error(),
        E::Budget { breach: Breach::Nodes { .. } | Breach::Events { .. }, .. } => {
            Some((format!("more than {MAX_NODES} values"), "move data below the closing `---`"))
        }
        E::MergeKeyNotAllowed { .. } | E::Budget { breach: Breach::MergeKeys { .. }, .. } => {
            Some(("merge keys are not read".to_owned(), ALIASES))
        }
        E::Budget { breach: Breach::Documents { .. }, .. } | E::MultipleDocuments { .. } => {
            Some(("more than one YAML document".to_owned(), "keep one of them"))
        }
        E::Budget { .. }
        | E::AliasReplayCounterOverflow { .. }
        | E::AliasReplayLimitExceeded { .. }
        | E::AliasExpansionLimitExceeded { .. }
        | E::AliasReplayStackDepthExceeded { .. }
        | E::RecursiveReferencesRequireWeakTypes { .. } => aliases(),
        // The scanner's own limit on nesting is only visible in its message.
        error if error.render().contains("recursion limit exceeded") => depth_error(),
        // The parser reports this breach only as text.
        error if error.render().contains("budget breached") => aliases(),
        _ => None,
    }
}

fn depth_error() -> Option<(String, &'static str)> {
    Some((format!("nested deeper than {MAX_DEPTH} levels"), "flatten it"))
}

/// The tree of the parser.
enum RawYaml {
    Null,
    Bool(bool),
    Int(i128),
    Float,
    Text(String),
    List(Vec<Spanned<RawYaml>>),
    Map(Vec<(Spanned<String>, Spanned<RawYaml>)>),
}

impl<'de> Deserialize<'de> for RawYaml {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = RawYaml;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<RawYaml, E> {
        Ok(RawYaml::Null)
    }

    fn visit_none<E: de::Error>(self) -> Result<RawYaml, E> {
        Ok(RawYaml::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<RawYaml, D::Error> {
        RawYaml::deserialize(deserializer)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<RawYaml, E> {
        Ok(RawYaml::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<RawYaml, E> {
        Ok(RawYaml::Int(value.into()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<RawYaml, E> {
        Ok(RawYaml::Int(value.into()))
    }

    fn visit_i128<E: de::Error>(self, value: i128) -> Result<RawYaml, E> {
        Ok(RawYaml::Int(value))
    }

    fn visit_u128<E: de::Error>(self, value: u128) -> Result<RawYaml, E> {
        Ok(i128::try_from(value).map_or(RawYaml::Float, RawYaml::Int))
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<RawYaml, E> {
        Ok(RawYaml::Float)
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<RawYaml, E> {
        Ok(RawYaml::Text(value.to_owned()))
    }

    fn visit_string<E: de::Error>(self, value: String) -> Result<RawYaml, E> {
        Ok(RawYaml::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<RawYaml, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = access.next_element()? {
            list.push(item);
        }
        Ok(RawYaml::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<RawYaml, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = access.next_entry()? {
            map.push(entry);
        }
        Ok(RawYaml::Map(map))
    }
}
