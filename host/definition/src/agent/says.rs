//! Classifies a value: yes, no, empty, less than all, or something else.

use super::limit_words::MAX_NAME;
use super::words::{TABLES, flatten_text, split_words};
use crate::yaml::{YamlNode, YamlValue};

/// The meaning of a value for its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueMeaning {
    /// Null, or a text with nothing in it.
    Nothing,
    Yes,
    No,
    /// An empty list or map.
    Empty,
    /// A text with a restricting word.
    Less,
    /// A list of anything.
    List,
    /// A number.
    Number,
    /// A text or a map.
    Other,
}

impl ValueMeaning {
    /// Classifies a value.
    pub(super) fn from_node(node: &YamlNode) -> Self {
        match &node.value {
            YamlValue::Null => Self::Nothing,
            YamlValue::Bool(yes) => Self::from_bool(*yes),
            YamlValue::Int(0) => Self::No,
            YamlValue::Int(1) => Self::Yes,
            YamlValue::Int(_) | YamlValue::Float => Self::Number,
            YamlValue::Text(text) => Self::from_text(text),
            YamlValue::List(items) if items.is_empty() => Self::Empty,
            YamlValue::List(items) => {
                let says = |says| items.iter().all(|item| Self::from_node(item) == says);
                match (says(Self::Yes), says(Self::No)) {
                    (true, _) => Self::Yes,
                    (_, true) => Self::No,
                    _ => Self::List,
                }
            }
            YamlValue::Map(entries) if entries.is_empty() => Self::Empty,
            YamlValue::Map(_) => Self::Other,
        }
    }

    fn from_bool(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }

    /// The meaning of a text by itself.
    pub(super) fn from_text(text: &str) -> Self {
        let Some(tables) = TABLES.as_ref() else { return Self::Less };
        let text = text.trim();
        let plain = flatten_text(text);
        let plain = plain.trim_matches(['"', '\'', '.', '!', '`']);
        if plain.is_empty() {
            return Self::Nothing;
        }
        if tables.yes.contains(plain) {
            return Self::Yes;
        }
        if tables.no.contains(plain) {
            return Self::No;
        }
        if text.parse::<f64>().is_ok() {
            return Self::Number;
        }
        let less = text.len() <= MAX_NAME
            && (tables.limiting.contains(plain)
                || split_words(text).iter().any(|word| tables.takes.contains(word)));
        if less { Self::Less } else { Self::Other }
    }
}
