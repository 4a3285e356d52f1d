//! The schema of a session's event. Each kind is one schema without `allOf`, because generators of clients
//! cannot read `allOf` beside a `oneOf`.

use belljar_agent::EventKind;
use utoipa::openapi::schema::{KnownFormat, SchemaFormat, SchemaType};
use utoipa::openapi::{Object, ObjectBuilder, OneOfBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema as _, ToSchema as _};

use crate::openapi::document::SchemaMap;

/// The name of the schema in the document.
const NAME: &str = "SessionEvent";

const ABOUT: &str = "An event of a session. Later versions have more kinds and more fields: pass over what \
    you do not know. Its texts are foreign: escape them before a person sees them.";

/// Adds the schema of events, and the schemas of the parts that several kinds share.
pub(super) fn add_event_schemas(schemas: &mut SchemaMap) {
    let mut parts = Vec::new();
    EventKind::schemas(&mut parts);
    schemas.0.extend(parts);
    let RefOr::T(Schema::OneOf(kinds)) = EventKind::schema() else { return };
    let mut event = OneOfBuilder::new().description(Some(ABOUT));
    for kind in kinds.items {
        let RefOr::T(Schema::Object(kind)) = kind else { continue };
        event = event.item(with_optional_fields(kind));
    }
    schemas.0.insert(NAME.to_owned(), event.into());
}

/// Adds to a kind's schema the fields that all kinds have.
fn with_optional_fields(mut kind: Object) -> Object {
    for field in kind.properties.values_mut() {
        // A field without a value is absent in an event, and never `null`.
        if let RefOr::T(Schema::Object(field)) = field
            && let SchemaType::Array(kinds) = &field.schema_type
            && let Some(own) = kinds.iter().find(|kind| **kind != Type::Null)
        {
            field.schema_type = SchemaType::Type(own.clone());
        }
    }
    let of = |kind, about| ObjectBuilder::new().schema_type(kind).description(Some(about));
    let text = |about| of(Type::String, about);
    let number = |about| {
        let format = SchemaFormat::KnownFormat(KnownFormat::Int64);
        of(Type::Integer, about).format(Some(format))
    };
    for (name, field) in [
        ("event_id", number("Counts from 1 in the session, without gaps.")),
        ("at", number("When it happened, in milliseconds since 1970.")),
        ("session", text("The session.")),
        ("message", text("The turn: the agent's message.")),
        ("v", number("The version of the schema.")),
        ("run", text("The run.")),
        ("seq", number("Counts from 0 in the run, without gaps.")),
        ("agent", text("The path of the agent that it is about: `main/scout#0`.")),
    ] {
        kind.properties.insert(name.to_owned(), field.build().into());
        kind.required.push(name.to_owned());
    }
    kind
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use belljar_agent::Event;
    use serde_json::{Map, Value, json};
    use strum::VariantNames as _;

    use super::*;
    use crate::openapi::document::build_document;

    /// An example value of a schema. At the second `time` all optional fields are left out; each time a
    /// choice uses its next word.
    fn example(name: &str, schema: &Value, all: &Value, time: usize) -> Value {
        let part = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next());
        let schema = part.map_or(schema, |part| &all[part]);
        if let Some(words) = schema["enum"].as_array() {
            return words[time % words.len()].clone();
        }
        match schema["type"].as_str().unwrap() {
            "object" => {
                // An object that requires no field, for example counts, is written with all of them.
                let required = schema["required"].as_array();
                let fields = schema["properties"].as_object().unwrap().iter();
                let there = fields.filter(|(name, _)| {
                    time != 1
                        || required.is_none_or(|all| all.iter().any(|required| required == *name))
                });
                let field = |(name, field): (&String, &Value)| {
                    // An optional flag is left out where it is false.
                    let is_required =
                        required.is_none_or(|all| all.iter().any(|required| required == name));
                    let time = if is_required { time } else { 0 };
                    (name.clone(), example(name, field, all, time))
                };
                there.map(field).collect::<Map<_, _>>().into()
            }
            "array" if time == 1 => json!([]),
            "array" => json!([example(name, &schema["items"], all, time)]),
            "boolean" => json!(time.is_multiple_of(2)),
            "integer" => json!(if time == 1 { 0 } else { 17 }),
            "string" => json!(if time == 1 { "" } else { name }),
            other => panic!("{other}: add an example of it"),
        }
    }

    /// The most words of any choice in this schema.
    fn words(schema: &Value, all: &Value) -> usize {
        let part = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next());
        let schema = part.map_or(schema, |part| &all[part]);
        let fields = schema["properties"].as_object().into_iter().flat_map(Map::values);
        let below = fields.chain(schema.get("items")).map(|below| words(below, all)).max();
        below.unwrap_or(0).max(schema["enum"].as_array().map_or(0, Vec::len))
    }

    /// Writes each kind of event with each field and each word, as JSON. A new one is added by
    /// `INSTA_UPDATE=always cargo test golden`.
    #[test]
    fn golden_events_are_as_reviewed_and_read_back() {
        let document = serde_json::to_value(build_document()).unwrap();
        let all = &document["components"]["schemas"];
        let (mut lines, mut kinds) = (String::new(), BTreeSet::new());
        for kind in all[NAME]["oneOf"].as_array().unwrap() {
            let name = &kind["properties"]["type"]["enum"][0];
            kinds.insert(name.as_str().unwrap());
            for time in 0..words(kind, all).max(2) {
                let mut example = example("", kind, all, time);
                let text = example.to_string();
                let event: Event = serde_json::from_str(&text)
                    .unwrap_or_else(|error| panic!("{name} does not read: {error}: {text}"));
                let json = serde_json::to_string(&event).unwrap();
                for of_session in ["event_id", "at", "session", "message"] {
                    example.as_object_mut().unwrap().remove(of_session);
                }
                let back: Value = serde_json::from_str(&json).unwrap();
                assert_eq!(back, example, "the schema of {name} is not its JSON");
                let again: Event = serde_json::from_str(&json).unwrap();
                assert_eq!(serde_json::to_string(&again).unwrap(), json);
                assert_eq!(again, event);
                lines.push_str(&json);
                lines.push('\n');
            }
        }
        assert_eq!(kinds, EventKind::VARIANTS.iter().copied().collect());
        belljar_kit::golden!("events", lines);
    }

    /// The store may contain events of the versions 1 and 2, which must still be readable.
    #[test]
    fn an_event_of_an_older_program_reads() {
        let head = r#"{"event_id":1,"at":2,"session":"s","message":"m","v":2,"run":"r","seq":0,"agent":"a""#;
        let asked =
            r#""type":"permission_asked","id":1,"call_id":"c","tool":"t","arguments":"{}"}"#;
        let asked: Event = serde_json::from_str(&format!("{head},{asked}")).unwrap();
        assert!(
            matches!(asked.kind, EventKind::PermissionAsked { mounts, .. } if mounts.is_empty())
        );
        let warns = r#""type":"warning","message":"words"}"#;
        let warns: Event = serde_json::from_str(&format!("{head},{warns}")).unwrap();
        assert!(matches!(warns.kind, EventKind::Warning { message } if message.is_empty()));
        let later = r#""type":"of_a_later_program","x":1}"#;
        assert!(serde_json::from_str::<Event>(&format!("{head},{later}")).is_err());
    }
}
