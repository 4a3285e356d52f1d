//! Arguments from JSON, with errors that a model can act on.

use crate::ToolError;
use serde::de::DeserializeOwned;

/// Reads the arguments of a call.
///
/// The fast path is one plain parse. Only a failure is parsed again, with the path of the
/// offending field tracked, because serde's own text names a field that is missing or
/// unknown but not one that has the wrong type.
pub(crate) fn parse<A: DeserializeOwned>(json: &str) -> Result<A, ToolError> {
    serde_json::from_str(json).map_err(|plain| explain::<A>(json, &plain))
}

fn explain<A: DeserializeOwned>(json: &str, plain: &serde_json::Error) -> ToolError {
    let mut reader = serde_json::Deserializer::from_str(json);
    let text = match serde_path_to_error::deserialize::<_, A>(&mut reader) {
        Ok(_) => without_position(&plain.to_string()),
        Err(error) => {
            let field = error.path().to_string();
            let cause = without_position(&error.inner().to_string());
            // `.` is the whole object; serde names the field itself in `unknown field ..`.
            if field == "." || cause.contains(&format!("`{field}`")) {
                cause
            } else {
                format!("`{field}`: {cause}")
            }
        }
    };
    ToolError::InvalidArguments(text)
}

/// Drops serde_json's ` at line 1 column 2`: the model did not write lines.
fn without_position(text: &str) -> String {
    match text.rfind(" at line ") {
        Some(at) => text[..at].to_owned(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Args {
        path: String,
        limit: Option<u32>,
    }

    fn message(json: &str) -> String {
        match parse::<Args>(json) {
            Err(ToolError::InvalidArguments(text)) => text,
            other => panic!("expected invalid arguments, got {other:?}"),
        }
    }

    #[test]
    fn each_kind_of_bad_argument_names_its_field() {
        assert_eq!(message("{}"), "missing field `path`");
        assert_eq!(
            message(r#"{"path":"a","depht":1}"#),
            "unknown field `depht`, expected `path` or `limit`"
        );
        assert_eq!(
            message(r#"{"path":3}"#),
            "`path`: invalid type: integer `3`, expected a string"
        );
        assert_eq!(
            message(r#"{"path":"a","limit":-1}"#),
            "`limit`: invalid value: integer `-1`, expected u32"
        );
    }

    #[test]
    fn an_explicit_null_means_absent() {
        let args: Args = parse(r#"{"path":"a","limit":null}"#).unwrap();
        assert_eq!(args.limit, None);
    }
}
