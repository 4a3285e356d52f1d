//! A form that a server wants a person to fill in: parsed, checked, and completed with its defaults.

use serde_json::{Map, Value};

use super::address::ElicitedAddress;
use super::field::{FormField, says_secret};

/// The most fields of one form, because no person answers more questions in a row.
const MAX_FIELDS: usize = 16;

/// The most bytes of a form's message.
const MAX_MESSAGE: usize = 4_000;

/// A server's request to a person during a call.
#[derive(Debug, PartialEq)]
pub(crate) enum Elicitation {
    /// To fill in a form.
    Form(ElicitationForm),
    /// To open an address.
    Address(ElicitedAddress),
}

/// A form that a person is asked to fill in. Its texts are a stranger's.
#[derive(Debug, PartialEq)]
pub(crate) struct ElicitationForm {
    pub(crate) message: String,
    pub(crate) fields: Vec<FormField>,
}

/// The reason why a request is not shown to a person.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum UnfitRequest {
    /// It does not follow MCP; the text states how.
    Malformed(&'static str),
    /// Nobody should answer it, for example because it asks for a secret.
    Declined(&'static str),
}

impl Elicitation {
    /// Reads the parameters of a request.
    pub(crate) fn from_params(params: &Value) -> Result<Self, UnfitRequest> {
        let message = params.get("message").and_then(Value::as_str);
        let message = message.ok_or(UnfitRequest::Malformed("a form has no message"))?;
        if message.len() > MAX_MESSAGE {
            return Err(UnfitRequest::Malformed("the message of a form is too long"));
        }
        match params.get("mode").map(Value::as_str) {
            None | Some(Some("form")) => {
                let form =
                    ElicitationForm { message: message.to_owned(), fields: parse_fields(params)? };
                let typed = form.fields.iter().any(FormField::is_of_words);
                let named = typed && says_secret(message, false);
                match named || form.fields.iter().any(FormField::wants_secret) {
                    // INV-362: a form that asks for a secret is declined.
                    true => Err(UnfitRequest::Declined("a form seems to ask for a secret")),
                    false => Ok(Self::Form(form)),
                }
            }
            Some(Some("url")) => ElicitedAddress::from_params(message, params).map(Self::Address),
            Some(_) => Err(UnfitRequest::Malformed("a form is of a kind that is not known")),
        }
    }
}

impl ElicitationForm {
    /// Returns whether the form can be sent with its defaults alone: every required field has one, and at
    /// least one field has.
    pub(crate) fn can_be_left(&self) -> bool {
        let said = |field: &&FormField| field.default.is_some();
        self.fields.iter().any(|field| said(&field))
            && self.fields.iter().filter(|field| field.is_required).all(|field| said(&field))
    }

    /// The content to send: the person's values, and defaults for missing ones. `None` if a required value is
    /// missing or a value does not fit. INV-361: no other content is ever sent.
    pub(crate) fn build_content(&self, mut said: Map<String, Value>) -> Option<Map<String, Value>> {
        let mut content = Map::new();
        for field in &self.fields {
            let value = said.remove(&field.name).or_else(|| field.default.clone());
            match value {
                Some(value) if field.kind.accepts_value(&value) => {
                    content.insert(field.name.clone(), value)
                }
                None if !field.is_required => None,
                Some(_) | None => return None,
            };
        }
        said.is_empty().then_some(content)
    }
}

/// Parses the fields of a form, which must be a flat object with at most [`MAX_FIELDS`] properties.
fn parse_fields(params: &Value) -> Result<Vec<FormField>, UnfitRequest> {
    let malformed =
        || UnfitRequest::Malformed("a form is not flat, or of other fields than forms have");
    let schema = params.get("requestedSchema").ok_or_else(malformed)?;
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err(malformed());
    }
    let properties = schema.get("properties").and_then(Value::as_object).ok_or_else(malformed)?;
    if properties.len() > MAX_FIELDS {
        return Err(UnfitRequest::Malformed("a form has too many fields"));
    }
    let required = match schema.get("required") {
        None => Vec::new(),
        Some(names) => names.as_array().ok_or_else(malformed)?.iter().collect(),
    };
    let is_required = |name: &str| required.iter().any(|one| one.as_str() == Some(name));
    let fields = properties.iter();
    let fields = fields.map(|(name, field)| FormField::from_schema(name, field, is_required(name)));
    fields.collect::<Option<_>>().ok_or_else(malformed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn form(properties: Value, required: Value) -> Result<Elicitation, UnfitRequest> {
        Elicitation::from_params(&json!({
            "message": "m",
            "requestedSchema": {"type": "object", "properties": properties, "required": required},
        }))
    }

    fn read(properties: Value, required: Value) -> ElicitationForm {
        match form(properties, required) {
            Ok(Elicitation::Form(form)) => form,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_was_not_said_is_filled_in_and_nothing_that_does_not_fit_is_sent() {
        let form = read(
            json!({
                "name": {"type": "string", "default": "Jo"},
                "age": {"type": "integer", "default": 30},
                "note": {"type": "string"},
            }),
            json!(["name"]),
        );
        let said = |value: Value| value.as_object().cloned().unwrap();
        let content = |value: Value| form.build_content(said(value)).map(Value::Object);
        assert!(form.can_be_left());
        assert_eq!(content(json!({})), Some(json!({"name": "Jo", "age": 30})));
        assert_eq!(
            content(json!({"age": 1, "note": "n"})),
            Some(json!({"name": "Jo", "age": 1, "note": "n"}))
        );
        for wrong in [json!({"age": "1"}), json!({"other": 1}), json!({"name": null})] {
            assert_eq!(content(wrong.clone()), None, "{wrong}");
        }
        let open = read(json!({"a": {"type": "string"}}), json!(["a"]));
        assert!(!open.can_be_left());
        assert_eq!(open.build_content(Map::new()), None);
    }

    #[test]
    fn a_form_that_is_not_flat_or_asks_for_a_secret_reaches_nobody() {
        let nested = json!({"a": {"type": "object", "properties": {"b": {"type": "string"}}}});
        assert!(matches!(form(nested, json!([])), Err(UnfitRequest::Malformed(_))));
        let many: Map<String, Value> =
            (0..17).map(|n| (n.to_string(), json!({"type": "boolean"}))).collect();
        assert!(matches!(form(Value::Object(many), json!([])), Err(UnfitRequest::Malformed(_))));
        let secret = json!({"user": {"type": "string"}, "pass word": {"type": "string"}});
        assert!(matches!(form(secret, json!([])), Err(UnfitRequest::Declined(_))));
        let asked = json!({"message": "your password?", "requestedSchema": {
            "type": "object", "properties": {"a": {"type": "string"}},
        }});
        assert!(matches!(Elicitation::from_params(&asked), Err(UnfitRequest::Declined(_))));
        for wrong in [
            json!({}),
            json!({"message": 3}),
            json!({"message": "m"}),
            json!({"message": "m", "requestedSchema": {"type": "string"}}),
            json!({"message": "m", "mode": "voice"}),
            json!({"message": "x".repeat(MAX_MESSAGE + 1), "requestedSchema": {"type": "object", "properties": {}}}),
        ] {
            assert!(
                matches!(Elicitation::from_params(&wrong), Err(UnfitRequest::Malformed(_))),
                "{wrong}"
            );
        }
    }
}
