//! The fields of a frontmatter, taken one by one; what is left at the end nobody knew.

use belljar_policy::Shown;

use crate::diagnostic::{Findings, Place};
use crate::yaml::{Key, Node, Value};

/// The fields that are still to be read.
pub(super) struct Fields<'f, 'p> {
    entries: Vec<(Key, Node)>,
    places: Vec<(String, Place)>,
    opening: Place,
    pub(super) findings: &'f mut Findings<'p>,
}

impl<'f, 'p> Fields<'f, 'p> {
    pub(super) fn new(
        entries: Vec<(Key, Node)>,
        opening: Place,
        findings: &'f mut Findings<'p>,
    ) -> Self {
        let places = entries.iter().map(|(key, _)| (key.text.clone(), key.at)).collect();
        Self { entries, places, opening, findings }
    }

    /// Takes a field out.
    pub(super) fn take(&mut self, name: &str) -> Option<(Key, Node)> {
        let at = self.entries.iter().position(|(key, _)| key.text == name)?;
        Some(self.entries.remove(at))
    }

    /// Where a field stands, taken or not; the opening fence for one that is absent.
    pub(super) fn place(&self, name: &str) -> Place {
        let found = self.places.iter().find(|(key, _)| key == name);
        found.map_or(self.opening, |(_, at)| *at)
    }

    /// What nobody took.
    pub(super) fn into_rest(self) -> (Vec<(Key, Node)>, &'f mut Findings<'p>) {
        (self.entries, self.findings)
    }

    /// A field that must be there and hold text.
    pub(super) fn required_text(&mut self, name: &'static str) -> Option<String> {
        let Some((key, node)) = self.take(name) else {
            let hint = format!("add a line `{name}: ...` between the fences");
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

    /// A field that holds text where it is there; nothing counts as absent.
    pub(super) fn optional_text(&mut self, name: &'static str) -> Option<String> {
        let (key, node) = self.take(name)?;
        if node.value == Value::Null {
            return None;
        }
        let text = node.text().map(str::to_owned);
        if text.is_none() {
            let message = format!("`{name}` is {}, not a text", node.kind());
            self.findings.error(key.at, "bad-field", message);
        }
        text
    }

    /// A field that holds `true` or `false`.
    pub(super) fn boolean(&mut self, name: &'static str) -> Option<bool> {
        let (key, node) = self.take(name)?;
        let value = boolean(&node);
        if value.is_none() {
            let shown = shown(&node);
            let message = format!("`{name}` is {shown}, neither `true` nor `false`");
            self.findings.error(key.at, "bad-field", message);
        }
        value
    }

    /// A field that holds a whole number of the range.
    pub(super) fn number(&mut self, name: &'static str, range: (u64, u64)) -> Option<u64> {
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
            self.findings.error_hint(key.at, "bad-field", message, hint);
        }
        value
    }
}

/// A boolean; a quoted one counts.
pub(super) fn boolean(node: &Node) -> Option<bool> {
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

/// A value as a message quotes it.
pub(super) fn shown(node: &Node) -> String {
    match node.text() {
        Some(text) => format!("`{}`", Shown::clipped(text, 60)),
        None => node.kind().to_owned(),
    }
}
