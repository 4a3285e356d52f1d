//! Reads the keys of a JSON manifest, each once, with positions for its faults.

use belljar_policy::ShownText;
use serde_json::{Map, Value};

use super::path::PluginPath;
use crate::diagnostic::{FileFindings, FilePosition, place_of};

/// The longest manifest, in bytes. The largest public marketplace has some 250 kB.
pub(super) const MAX_JSON: usize = 2 << 20;

/// The most items of a list in a manifest.
pub(super) const MAX_ITEMS: usize = 1_000;

/// The most characters of a text that a person is shown.
const MAX_TEXT: usize = 2_000;

/// The unread keys of an object of a manifest.
pub(super) struct ManifestFields<'a, 'p> {
    text: &'a str,
    map: Map<String, Value>,
    pub(super) findings: &'a mut FileFindings<'p>,
}

/// Parses a file of a plugin as a JSON object. Half a surrogate pair and a byte order mark are mended.
pub(super) fn parse_object(
    bytes: &[u8],
    findings: &mut FileFindings<'_>,
) -> Option<Map<String, Value>> {
    match parse_value(bytes, findings)? {
        Value::Object(map) => Some(map),
        other => {
            let message = format!("it is {}, not an object", name_type(&other));
            findings.error(FilePosition::default(), "bad-json", message);
            None
        }
    }
}

/// Parses a file of a plugin as JSON.
pub(super) fn parse_value(bytes: &[u8], findings: &mut FileFindings<'_>) -> Option<Value> {
    if bytes.len() > MAX_JSON {
        let message = format!("it has {} bytes, and at most {MAX_JSON} are read", bytes.len());
        findings.error(FilePosition::default(), "too-large", message);
        return None;
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match belljar_received::json::from_slice(bytes) {
        Ok(value) => Some(value),
        Err(error) => {
            let clamp = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
            let at = FilePosition { line: clamp(error.line()), column: clamp(error.column()) };
            let why = error.to_string();
            let why = why.split(" at line ").next().unwrap_or_default();
            let message = format!("it is no JSON: {}", ShownText::clip_line(why, 200));
            findings.error(at, "bad-json", message);
            None
        }
    }
}

/// The type of a value, for a person.
pub(super) fn name_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

impl<'a, 'p> ManifestFields<'a, 'p> {
    pub(super) fn new(
        text: &'a str,
        map: Map<String, Value>,
        findings: &'a mut FileFindings<'p>,
    ) -> Self {
        Self { text, map, findings }
    }

    /// The position of a key: of its first mention, as nested objects may repeat it.
    pub(super) fn position(&self, key: &str) -> FilePosition {
        let quoted = format!("\"{key}\"");
        self.text.find(&quoted).map_or_else(FilePosition::default, |at| place_of(self.text, at))
    }

    /// Takes a value as it is.
    pub(super) fn take(&mut self, key: &str) -> Option<Value> {
        self.map.remove(key)
    }

    /// A value that stays unread.
    pub(super) fn peek(&self, key: &str) -> Option<&Value> {
        self.map.get(key)
    }

    /// A text. Another type is an error.
    pub(super) fn take_text(&mut self, key: &str) -> Option<String> {
        match self.take(key)? {
            Value::String(text) => Some(text.chars().take(MAX_TEXT).collect()),
            other => {
                self.report_type(key, &other, "a text");
                None
            }
        }
    }

    /// A boolean. Another type is an error.
    pub(super) fn take_flag(&mut self, key: &str) -> Option<bool> {
        match self.take(key)? {
            Value::Bool(flag) => Some(flag),
            other => {
                self.report_type(key, &other, "`true` or `false`");
                None
            }
        }
    }

    /// A list of texts. Another type is an error.
    pub(super) fn take_texts(&mut self, key: &str) -> Vec<String> {
        match self.take(key) {
            None => Vec::new(),
            Some(Value::Array(items)) if items.iter().all(Value::is_string) => {
                let texts = items.into_iter().take(MAX_ITEMS);
                texts.filter_map(|it| it.as_str().map(str::to_owned)).collect()
            }
            Some(other) => {
                self.report_type(key, &other, "a list of texts");
                Vec::new()
            }
        }
    }

    /// An object. Another type is an error.
    pub(super) fn take_object(&mut self, key: &str) -> Option<Map<String, Value>> {
        match self.take(key)? {
            Value::Object(map) => Some(map),
            other => {
                self.report_type(key, &other, "an object");
                None
            }
        }
    }

    /// A path or a list of paths; with `inline`, objects too. A path that is unfit is an error alone.
    pub(super) fn take_paths(&mut self, key: &str, inline: bool) -> Option<PathsField> {
        let mut field = PathsField::default();
        let items = match self.take(key)? {
            Value::Array(items) => items,
            one => vec![one],
        };
        if items.len() > MAX_ITEMS {
            let message =
                format!("`{key}` has {} items, and at most {MAX_ITEMS} are read", items.len());
            self.findings.error(self.position(key), "too-many", message);
        }
        for item in items.into_iter().take(MAX_ITEMS) {
            match item {
                Value::String(path) => self.push_path(key, &path, &mut field),
                Value::Object(map) if inline => field.inline.push(map),
                other => {
                    let wants = if inline { "a path or an object" } else { "a path" };
                    self.report_type(key, &other, wants);
                }
            }
        }
        Some(field)
    }

    fn push_path(&mut self, key: &str, written: &str, field: &mut PathsField) {
        let shown = ShownText::clip_line(written, 100);
        match PluginPath::parse(written) {
            Ok(path) => {
                if !written.starts_with('.') {
                    let message = format!("`{key}`: `{shown}` does not begin with `./`");
                    self.findings.warning(self.position(key), "loose-path", message, None);
                }
                field.paths.push(path);
            }
            Err(why) => {
                let message = format!("`{key}`: `{shown}` {why}");
                let hint = "write a path below the plugin, for example `./commands`";
                self.findings.error_hint(self.position(key), "bad-path", message, hint);
            }
        }
    }

    pub(super) fn report_type(&mut self, key: &str, value: &Value, wants: &str) {
        let message = format!("`{key}` is {}, not {wants}", name_type(value));
        self.findings.error(self.position(key), "bad-type", message);
    }

    pub(super) fn error(&mut self, key: &str, code: &'static str, message: String) {
        self.findings.error(self.position(key), code, message);
    }

    pub(super) fn warning(&mut self, key: &str, code: &'static str, message: String) {
        self.findings.warning(self.position(key), code, message, None);
    }

    /// The keys that nobody has read, escaped.
    pub(super) fn unread_keys(&self) -> Vec<String> {
        self.map.keys().map(|key| ShownText::clip_line(key, 80).to_string()).collect()
    }
}

/// The value of a key that names paths.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct PathsField {
    pub(super) paths: Vec<PluginPath>,
    pub(super) inline: Vec<Map<String, Value>>,
}
