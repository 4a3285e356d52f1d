//! JSON schemas as models like them: short, inline, without dialect noise.

use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value};

/// The schema of an argument type, as JSON text.
pub(crate) fn of<A: JsonSchema>() -> String {
    let mut settings = SchemaSettings::draft2020_12();
    settings.meta_schema = None;
    settings.inline_subschemas = true;
    let schema = SchemaGenerator::new(settings).into_root_schema_for::<A>();
    let mut value = schema.to_value();
    tidy(&mut value);
    if let Value::Object(root) = &mut value {
        // The tool's own description says more than the type's name and doc comment.
        root.remove("title");
        root.remove("description");
        // A type without fields still has to be an object schema with properties.
        root.entry("type").or_insert_with(|| Value::from("object"));
        root.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    }
    value.to_string()
}

/// Removes what a model reads as noise: integer widths, line breaks of the source, and the `null` that `Option` adds
/// (such a field is simply not in `required`; an explicit null is still accepted).
fn tidy(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if map.get("format").and_then(Value::as_str).is_some_and(is_integer_width) {
                map.remove("format");
            }
            if let Some(Value::String(text)) = map.get_mut("description") {
                *text = unwrapped(text);
            }
            if map.get("default").is_some_and(Value::is_null) {
                map.remove("default");
            }
            if let Some(Value::Array(types)) = map.get_mut("type") {
                types.retain(|kind| kind != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    map.insert("type".to_owned(), only);
                }
            }
            map.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

/// A doc comment is wrapped for its source file; an empty line still ends a paragraph.
fn unwrapped(text: &str) -> String {
    let paragraph = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.split("\n\n").map(paragraph).collect::<Vec<_>>().join("\n\n")
}

fn is_integer_width(format: &str) -> bool {
    format.starts_with("uint") || format.starts_with("int")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    /// Not shown.
    struct Args {
        /// The file.
        path: String,
        /// How
        /// many.
        limit: Option<u32>,
    }

    #[test]
    fn a_schema_is_short_and_closed() {
        let schema: Value = serde_json::from_str(&of::<Args>()).unwrap();
        assert_eq!(
            schema,
            serde_json::json!({
                "type": "object",
                "properties": {
                    "path": { "description": "The file.", "type": "string" },
                    "limit": { "description": "How many.", "type": "integer", "minimum": 0 },
                },
                "required": ["path"],
                "additionalProperties": false,
            })
        );
    }

    #[test]
    fn a_tool_without_arguments_still_has_an_object_schema() {
        #[derive(serde::Deserialize, JsonSchema)]
        struct Nothing {}
        let schema: Value = serde_json::from_str(&of::<Nothing>()).unwrap();
        assert_eq!(schema, serde_json::json!({ "type": "object", "properties": {} }));
    }
}
