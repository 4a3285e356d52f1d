//! Classifies a value: yes, no, empty, less than all, or something else.

use super::limit_words::MAX_NAME;
use super::words::{TABLES, flat, words};
use crate::yaml::{Node, Value};

/// The meaning of a value for its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Says {
    /// No value.
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

impl Says {
    pub(super) fn of(node: &Node) -> Self {
        match &node.value {
            Value::Null => Self::Nothing,
            Value::Bool(yes) => Self::of_bool(*yes),
            Value::Int(0) => Self::No,
            Value::Int(1) => Self::Yes,
            Value::Int(_) | Value::Float => Self::Number,
            Value::Text(text) => Self::of_text(text),
            Value::List(items) if items.is_empty() => Self::Empty,
            Value::List(items) => {
                let says = |says| items.iter().all(|item| Self::of(item) == says);
                match (says(Self::Yes), says(Self::No)) {
                    (true, _) => Self::Yes,
                    (_, true) => Self::No,
                    _ => Self::List,
                }
            }
            Value::Map(entries) if entries.is_empty() => Self::Empty,
            Value::Map(_) => Self::Other,
        }
    }

    fn of_bool(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }

    /// The meaning of a text by itself.
    pub(super) fn of_text(text: &str) -> Self {
        let Some(tables) = TABLES.as_ref() else { return Self::Less };
        let text = text.trim();
        let plain = flat(text);
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
                || words(text).iter().any(|word| tables.takes.contains(word)));
        if less { Self::Less } else { Self::Other }
    }
}
