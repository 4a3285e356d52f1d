//! The fields of a file. Each is removed when read, so the remaining fields are unknown.

use belljar_policy::ShownText;

use crate::diagnostic::{FileFindings, FilePosition, Severity};
use crate::suggest;
use crate::yaml::{self, YamlKey, YamlNode, YamlValue};

/// Parses YAML with fields: `what` is the subject of messages, for example `the frontmatter`.
pub(crate) fn parse_fields(
    text: &str,
    first_line: u32,
    what: &str,
    findings: &mut FileFindings<'_>,
) -> Option<Vec<(YamlKey, YamlNode)>> {
    let root = match yaml::parse_document(text, first_line) {
        Ok(root) => root,
        Err(error) => {
            let message = format!("{what} is not valid YAML: {}", error.message);
            findings.add_finding(Severity::Error, error.at, "yaml", message, error.hint);
            return None;
        }
    };
    map_of(root, what, findings)
}

/// The fields of a document.
pub(crate) fn map_of(
    root: YamlNode,
    what: &str,
    findings: &mut FileFindings<'_>,
) -> Option<Vec<(YamlKey, YamlNode)>> {
    match root.value {
        YamlValue::Map(entries) => Some(entries),
        YamlValue::Null => Some(Vec::new()),
        YamlValue::Bool(_)
        | YamlValue::Int(_)
        | YamlValue::Float
        | YamlValue::Text(_)
        | YamlValue::List(_) => {
            let message = format!("{what} is {}, not fields", root.describe_kind());
            let hint = "write `name: ...` and so on, one a line";
            findings.error_hint(root.at, "yaml", message, hint);
            None
        }
    }
}

/// The fields that are not read yet.
pub(crate) struct UnreadFields<'f, 'p> {
    entries: Vec<(YamlKey, YamlNode)>,
    places: Vec<(String, FilePosition)>,
    opening: FilePosition,
    /// The place where a missing field belongs, for a hint.
    within: &'static str,
    /// The severity of a value of the wrong kind.
    fault: Severity,
    pub(crate) findings: &'f mut FileFindings<'p>,
}

impl<'f, 'p> UnreadFields<'f, 'p> {
    /// The fields of a file with an opening fence.
    pub(crate) fn new(
        entries: Vec<(YamlKey, YamlNode)>,
        opening: FilePosition,
        findings: &'f mut FileFindings<'p>,
    ) -> Self {
        let places = entries.iter().map(|(key, _)| (key.text.clone(), key.at)).collect();
        let (within, fault) = ("between the fences", Severity::Error);
        Self { entries, places, opening, within, fault, findings }
    }

    /// The same fields, read as a stranger's: a value of the wrong kind is only a warning, and a limit in the
    /// value is enforced as far as possible.
    pub(crate) fn with_fault_warnings(mut self) -> Self {
        self.fault = Severity::Warning;
        self
    }

    /// Reports a value of the wrong kind, as error or warning.
    pub(crate) fn report_fault(
        &mut self,
        at: FilePosition,
        code: &'static str,
        message: String,
        hint: Option<String>,
    ) {
        self.findings.add_finding(self.fault, at, code, message, hint);
    }

    /// The same fields in a part of a file, or in a file without fences. Hints about missing fields name the
    /// part by `within`, for example `to the stage`.
    pub(crate) fn with_location(mut self, within: &'static str) -> Self {
        self.within = within;
        self
    }

    /// Removes a field and returns it.
    pub(crate) fn take_field(&mut self, name: &str) -> Option<(YamlKey, YamlNode)> {
        let at = self.entries.iter().position(|(key, _)| key.text == name)?;
        Some(self.entries.remove(at))
    }

    /// Removes and returns the first field whose key `fits`.
    pub(crate) fn take_matching(
        &mut self,
        fits: impl Fn(&str) -> bool,
    ) -> Option<(YamlKey, YamlNode)> {
        let at = self.entries.iter().position(|(key, _)| fits(&key.text))?;
        Some(self.entries.remove(at))
    }

    /// The key of a field whose value is a list or a map.
    pub(crate) fn structured_key(&self, name: &str) -> Option<YamlKey> {
        let (key, node) = self.entries.iter().find(|(key, _)| key.text == name)?;
        matches!(node.value, YamlValue::List(_) | YamlValue::Map(_)).then(|| key.clone())
    }

    /// The position of a field, removed or not; for a missing field, of the opening fence.
    pub(crate) fn field_position(&self, name: &str) -> FilePosition {
        self.place_of(name).unwrap_or(self.opening)
    }

    /// Whether a remaining key was probably meant as `name`, among the known keys. A misspelt field is not
    /// also reported as missing.
    pub(crate) fn has_misspelling(&self, name: &str, known: &[&str]) -> bool {
        self.entries.iter().any(|(key, _)| {
            !known.contains(&key.text.as_str())
                && suggest::find_nearest(&key.text, known.iter().copied()) == Some(name)
        })
    }

    /// The position of a field, removed or not, if the file has it.
    pub(crate) fn place_of(&self, name: &str) -> Option<FilePosition> {
        self.places.iter().find(|(key, _)| key == name).map(|(_, at)| *at)
    }

    /// The remaining fields.
    pub(crate) fn into_rest(self) -> (Vec<(YamlKey, YamlNode)>, &'f mut FileFindings<'p>) {
        (self.entries, self.findings)
    }

    /// A required text field.
    pub(crate) fn required_text(&mut self, name: &'static str) -> Option<String> {
        let Some((key, node)) = self.take_field(name) else {
            let hint = format!("add a line `{name}: ...` {}", self.within);
            let message = format!("`{name}` is missing");
            self.findings.error_hint(self.opening, "missing-field", message, hint);
            return None;
        };
        match node.as_text() {
            Some(text) if !text.trim().is_empty() => Some(text.to_owned()),
            Some(_) => {
                self.findings.error(key.at, "missing-field", format!("`{name}` is empty"));
                None
            }
            None => {
                let message = format!("`{name}` is {}, not a text", node.describe_kind());
                self.findings.error(key.at, "bad-field", message);
                None
            }
        }
    }

    /// An optional text field; an empty one counts as missing.
    pub(crate) fn optional_text(&mut self, name: &'static str) -> Option<String> {
        let (key, node) = self.take_field(name)?;
        if node.value == YamlValue::Null {
            return None;
        }
        let text = node.as_text().map(str::to_owned);
        if text.is_none() {
            let message = format!("`{name}` is {}, not a text", node.describe_kind());
            self.report_fault(key.at, "bad-field", message, None);
        }
        text
    }

    /// A field whose value is `true` or `false`.
    pub(crate) fn take_boolean(&mut self, name: &'static str) -> Option<bool> {
        let (key, node) = self.take_field(name)?;
        let value = parse_boolean(&node);
        if value.is_none() {
            let shown = quote_value(&node);
            let message = format!("`{name}` is {shown}, neither `true` nor `false`");
            self.report_fault(key.at, "bad-field", message, None);
        }
        value
    }

    /// A whole number in the range. In a stranger's file, a number beyond the range becomes the nearest end,
    /// and an invalid one the lowest.
    pub(crate) fn take_number(&mut self, name: &'static str, range: (u64, u64)) -> Option<u64> {
        let (key, node) = self.take_field(name)?;
        let (low, high) = range;
        let value = node.as_integer().and_then(|n| u64::try_from(n).ok());
        let value = value.filter(|n| (low..=high).contains(n));
        if value.is_none() {
            let message = format!("`{name}` is {}, not a whole number", quote_value(&node));
            let hint = format!("write a number from {low} to {high}");
            let message = match node.as_integer() {
                Some(n) => format!("`{name}` is {n}, out of range"),
                None => message,
            };
            self.report_fault(key.at, "bad-field", message, Some(hint));
            if self.fault < Severity::Error {
                let above = node.as_integer().is_some_and(|n| n > i128::from(high));
                return Some(if above { high } else { low });
            }
        }
        value
    }
}

/// A boolean value, quoted or not.
pub(crate) fn parse_boolean(node: &YamlNode) -> Option<bool> {
    match &node.value {
        YamlValue::Bool(value) => Some(*value),
        YamlValue::Text(text) => match text.as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        },
        YamlValue::Null
        | YamlValue::Int(_)
        | YamlValue::Float
        | YamlValue::List(_)
        | YamlValue::Map(_) => None,
    }
}

/// A value as quoted in a message.
pub(crate) fn quote_value(node: &YamlNode) -> String {
    match node.as_text() {
        Some(text) => format!("`{}`", ShownText::clip_line(text, 60)),
        None => node.describe_kind().to_owned(),
    }
}
