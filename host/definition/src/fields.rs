//! The fields of a file, removed one by one as they are read; the remaining fields are unknown.

use belljar_policy::Shown;

use crate::diagnostic::{Findings, Position, Severity};
use crate::suggest;
use crate::yaml::{self, Key, Node, Value};

/// Parses YAML with fields: `what` is the subject of messages, for example `the frontmatter`.
pub(crate) fn entries(
    text: &str,
    first_line: u32,
    what: &str,
    findings: &mut Findings<'_>,
) -> Option<Vec<(Key, Node)>> {
    let root = match yaml::parse(text, first_line) {
        Ok(root) => root,
        Err(error) => {
            let message = format!("{what} is not valid YAML: {}", error.message);
            findings.add(Severity::Error, error.at, "yaml", message, error.hint);
            return None;
        }
    };
    map_of(root, what, findings)
}

/// The fields of a document.
pub(crate) fn map_of(
    root: Node,
    what: &str,
    findings: &mut Findings<'_>,
) -> Option<Vec<(Key, Node)>> {
    match root.value {
        Value::Map(entries) => Some(entries),
        Value::Null => Some(Vec::new()),
        Value::Bool(_) | Value::Int(_) | Value::Float | Value::Text(_) | Value::List(_) => {
            let message = format!("{what} is {}, not fields", root.kind());
            let hint = "write `name: ...` and so on, one a line";
            findings.error_hint(root.at, "yaml", message, hint);
            None
        }
    }
}

/// The fields that are not read yet.
pub(crate) struct Fields<'f, 'p> {
    entries: Vec<(Key, Node)>,
    places: Vec<(String, Position)>,
    opening: Position,
    /// The place where a missing field belongs, for a hint.
    within: &'static str,
    /// The severity of a value of the wrong kind.
    fault: Severity,
    pub(crate) findings: &'f mut Findings<'p>,
}

impl<'f, 'p> Fields<'f, 'p> {
    pub(crate) fn new(
        entries: Vec<(Key, Node)>,
        opening: Position,
        findings: &'f mut Findings<'p>,
    ) -> Self {
        let places = entries.iter().map(|(key, _)| (key.text.clone(), key.at)).collect();
        let (within, fault) = ("between the fences", Severity::Error);
        Self { entries, places, opening, within, fault, findings }
    }

    /// The same fields of a file written for another program: a value of the wrong kind is a warning, and a
    /// limit in it is enforced as far as possible.
    pub(crate) fn of_a_stranger(mut self) -> Self {
        self.fault = Severity::Warning;
        self
    }

    /// Reports a value of the wrong kind.
    pub(crate) fn fault(
        &mut self,
        at: Position,
        code: &'static str,
        message: String,
        hint: Option<String>,
    ) {
        self.findings.add(self.fault, at, code, message, hint);
    }

    /// The same fields in a part without fences, for example `to the stage`.
    pub(crate) fn within(mut self, within: &'static str) -> Self {
        self.within = within;
        self
    }

    /// Removes a field and returns it.
    pub(crate) fn take(&mut self, name: &str) -> Option<(Key, Node)> {
        let at = self.entries.iter().position(|(key, _)| key.text == name)?;
        Some(self.entries.remove(at))
    }

    /// Removes and returns the first field whose key `fits`.
    pub(crate) fn take_where(&mut self, fits: impl Fn(&str) -> bool) -> Option<(Key, Node)> {
        let at = self.entries.iter().position(|(key, _)| fits(&key.text))?;
        Some(self.entries.remove(at))
    }

    /// The key of a field whose value is a list or a map.
    pub(crate) fn structured(&self, name: &str) -> Option<Key> {
        let (key, node) = self.entries.iter().find(|(key, _)| key.text == name)?;
        matches!(node.value, Value::List(_) | Value::Map(_)).then(|| key.clone())
    }

    /// The position of a field, removed or not; for a missing one, the opening fence.
    pub(crate) fn place(&self, name: &str) -> Position {
        self.place_of(name).unwrap_or(self.opening)
    }

    /// Whether a remaining key was probably meant as `name`, among the known keys. A misspelt field is not
    /// also reported as missing.
    pub(crate) fn misspelt(&self, name: &str, known: &[&str]) -> bool {
        self.entries.iter().any(|(key, _)| {
            !known.contains(&key.text.as_str())
                && suggest::nearest(&key.text, known.iter().copied()) == Some(name)
        })
    }

    /// The position of a field, removed or not, if the file has it.
    pub(crate) fn place_of(&self, name: &str) -> Option<Position> {
        self.places.iter().find(|(key, _)| key == name).map(|(_, at)| *at)
    }

    /// The remaining fields.
    pub(crate) fn into_rest(self) -> (Vec<(Key, Node)>, &'f mut Findings<'p>) {
        (self.entries, self.findings)
    }

    /// A required text field.
    pub(crate) fn required_text(&mut self, name: &'static str) -> Option<String> {
        let Some((key, node)) = self.take(name) else {
            let hint = format!("add a line `{name}: ...` {}", self.within);
            let message = format!("`{name}` is missing");
            self.findings.error_hint(self.opening, "missing-field", message, hint);
            return None;
        };
        match node.text() {
            Some(text) if !text.trim().is_empty() => Some(text.to_owned()),
            Some(_) => {
                self.findings.error(key.at, "missing-field", format!("`{name}` is empty"));
                None
            }
            None => {
                let message = format!("`{name}` is {}, not a text", node.kind());
                self.findings.error(key.at, "bad-field", message);
                None
            }
        }
    }

    /// An optional text field; an empty one counts as missing.
    pub(crate) fn optional_text(&mut self, name: &'static str) -> Option<String> {
        let (key, node) = self.take(name)?;
        if node.value == Value::Null {
            return None;
        }
        let text = node.text().map(str::to_owned);
        if text.is_none() {
            let message = format!("`{name}` is {}, not a text", node.kind());
            self.fault(key.at, "bad-field", message, None);
        }
        text
    }

    /// A field whose value is `true` or `false`.
    pub(crate) fn boolean(&mut self, name: &'static str) -> Option<bool> {
        let (key, node) = self.take(name)?;
        let value = boolean(&node);
        if value.is_none() {
            let shown = shown(&node);
            let message = format!("`{name}` is {shown}, neither `true` nor `false`");
            self.fault(key.at, "bad-field", message, None);
        }
        value
    }

    /// A whole number in the range. In a stranger's file, a number beyond the range becomes the nearest end,
    /// and an invalid one the lowest.
    pub(crate) fn number(&mut self, name: &'static str, range: (u64, u64)) -> Option<u64> {
        let (key, node) = self.take(name)?;
        let (low, high) = range;
        let value = node.integer().and_then(|n| u64::try_from(n).ok());
        let value = value.filter(|n| (low..=high).contains(n));
        if value.is_none() {
            let message = format!("`{name}` is {}, not a whole number", shown(&node));
            let hint = format!("write a number from {low} to {high}");
            let message = match node.integer() {
                Some(n) => format!("`{name}` is {n}, out of range"),
                None => message,
            };
            self.fault(key.at, "bad-field", message, Some(hint));
            if self.fault < Severity::Error {
                let above = node.integer().is_some_and(|n| n > i128::from(high));
                return Some(if above { high } else { low });
            }
        }
        value
    }
}

/// A boolean value, quoted or not.
pub(crate) fn boolean(node: &Node) -> Option<bool> {
    match &node.value {
        Value::Bool(value) => Some(*value),
        Value::Text(text) => match text.as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        },
        Value::Null | Value::Int(_) | Value::Float | Value::List(_) | Value::Map(_) => None,
    }
}

/// A value as quoted in a message.
pub(crate) fn shown(node: &Node) -> String {
    match node.text() {
        Some(text) => format!("`{}`", Shown::clipped(text, 60)),
        None => node.kind().to_owned(),
    }
}
