//! One cell: its type, and its fields as Jupyter wants them.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The type of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Code,
    Markdown,
    Raw,
}

impl Kind {
    /// As notebooks write it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Code => "code",
            Kind::Markdown => "markdown",
            Kind::Raw => "raw",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Kind> {
        [Kind::Code, Kind::Markdown, Kind::Raw].into_iter().find(|kind| kind.name() == name)
    }
}

/// A new cell.
pub(crate) fn new(kind: Kind, id: Option<String>, source: &str) -> Map<String, Value> {
    let mut cell = Map::new();
    set(&mut cell, "metadata", Value::Object(Map::new()));
    if let Some(id) = id {
        set(&mut cell, "id", Value::String(id));
    }
    change(&mut cell, kind, source);
    cell
}

/// Gives a cell this type and source. Results of a source that is no longer there would
/// mislead, so a code cell loses its outputs and their number; the fields that its type does
/// not have, which Jupyter would refuse, go too.
pub(crate) fn change(cell: &mut Map<String, Value>, kind: Kind, source: &str) {
    set(cell, "cell_type", Value::from(kind.name()));
    match kind {
        Kind::Code => {
            set(cell, "execution_count", Value::Null);
            set(cell, "outputs", Value::Array(Vec::new()));
            cell.shift_remove("attachments");
        }
        Kind::Markdown | Kind::Raw => {
            cell.shift_remove("execution_count");
            cell.shift_remove("outputs");
        }
    }
    let source = match cell.get("source") {
        Some(Value::String(_)) => Value::from(source),
        _ => source.split_inclusive('\n').collect(),
    };
    set(cell, "source", source);
}

/// Sets a field where it stands. A new one goes to where Jupyter, which sorts them, has it.
fn set(cell: &mut Map<String, Value>, key: &str, value: Value) {
    if let Some(old) = cell.get_mut(key) {
        *old = value;
        return;
    }
    let at = cell.keys().position(|other| other.as_str() > key).unwrap_or(cell.len());
    cell.shift_insert(at, key.to_owned(), value);
}
