//! Parameters of OpenAI's API that an agent cannot use: accepted without effect, ignored with a note, or
//! refused.

use belljar_policy::ShownText;
use serde_json::{Map, Value};

use crate::http::problem::Problem;
use crate::openai::left_out::IgnoredParts;

/// How a parameter is treated.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ParameterEffect {
    /// It is accepted, because it changes nothing about an answer.
    Ignored,
    /// These JSON values are accepted, because they match what belljar does anyway; other values are ignored
    /// and named in the answer.
    Only(&'static [&'static str]),
    /// It is refused, because it refers to an object elsewhere without which no answer is possible. The text
    /// is a hint for the caller.
    Never(&'static str),
}

/// A row of a table: a parameter's name, and how it is treated.
pub(crate) type Row = (&'static str, ParameterEffect);

const TIER: ParameterEffect = ParameterEffect::Only(&["\"auto\"", "\"default\""]);

/// Ignored with any value, and named in the answer.
const LEFT_OUT: ParameterEffect = ParameterEffect::Only(&[]);

/// The parameters of chat completions.
pub(crate) const CHAT: &[Row] = &[
    ("audio", LEFT_OUT),
    ("function_call", LEFT_OUT),
    ("functions", ParameterEffect::Only(&["[]"])),
    ("logit_bias", ParameterEffect::Only(&["{}"])),
    ("logprobs", ParameterEffect::Only(&["false"])),
    ("modalities", ParameterEffect::Only(&["[\"text\"]"])),
    ("n", ParameterEffect::Only(&["1"])),
    ("prediction", LEFT_OUT),
    ("prompt_cache_key", ParameterEffect::Ignored),
    ("prompt_cache_retention", ParameterEffect::Ignored),
    ("safety_identifier", ParameterEffect::Ignored),
    ("service_tier", TIER),
    ("top_logprobs", ParameterEffect::Only(&["0"])),
    ("user", ParameterEffect::Ignored),
    ("verbosity", ParameterEffect::Only(&["\"medium\""])),
    ("web_search_options", LEFT_OUT),
];

/// The parameters of responses.
pub(crate) const RESPONSES: &[Row] = &[
    ("context_management", LEFT_OUT),
    ("conversation", ParameterEffect::Never("use `previous_response_id`")),
    ("include", ParameterEffect::Only(&["[]", "[\"reasoning.encrypted_content\"]"])),
    ("max_tool_calls", LEFT_OUT),
    ("prompt", ParameterEffect::Never("an agent has its own prompt")),
    ("prompt_cache_key", ParameterEffect::Ignored),
    ("prompt_cache_retention", ParameterEffect::Ignored),
    ("safety_identifier", ParameterEffect::Ignored),
    ("service_tier", TIER),
    ("stream_options", ParameterEffect::Ignored),
    ("top_logprobs", ParameterEffect::Only(&["0"])),
    ("truncation", ParameterEffect::Only(&["\"disabled\"", "\"auto\""])),
    ("user", ParameterEffect::Ignored),
];

/// INV-284: treats each remaining parameter by the table; an unknown one is ignored too. `null` counts as
/// absent.
pub(crate) fn check_parameters(
    rows: &[Row],
    others: &Map<String, Value>,
    left: &mut IgnoredParts,
) -> Result<(), Problem> {
    for (name, value) in others.iter().filter(|(_, value)| !value.is_null()) {
        match rows.iter().find(|(known, _)| known == name).map(|(_, takes)| takes) {
            Some(ParameterEffect::Ignored) => {}
            Some(ParameterEffect::Only(values)) if values.contains(&value.to_string().as_str()) => {
            }
            Some(ParameterEffect::Only(_)) | None => left.add_part(name),
            Some(ParameterEffect::Never(instead)) => {
                let detail = format!("`{name}` is not supported");
                return Err(unsupported_parameter(name, detail).with_hint(*instead));
            }
        }
    }
    Ok(())
}

/// Records the fields of an object as ignored, except for the `known` ones.
pub(crate) fn leave_others(at: &str, of: Option<&Value>, known: &[&str], left: &mut IgnoredParts) {
    let others = of.and_then(Value::as_object).into_iter().flatten();
    for (name, _) in others.filter(|(name, value)| !value.is_null() && !known.contains(&&***name)) {
        left.add_part(&format!("{at}.{}", ShownText::clip_line(name, 60)));
    }
}

/// The problem of a parameter whose meaning is not supported.
pub(crate) fn unsupported_parameter(param: &str, detail: impl Into<String>) -> Problem {
    Problem::invalid(detail).with_param(param).with_code("unsupported_parameter")
}

/// The problem of a parameter with an invalid value.
pub(crate) fn invalid_value(param: &str, detail: impl Into<String>) -> Problem {
    Problem::invalid(detail).with_param(param).with_code("invalid_value")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn left_out(rows: &[Row], value: Value) -> Result<String, Problem> {
        let mut left = IgnoredParts::default();
        check_parameters(rows, value.as_object().unwrap(), &mut left)?;
        Ok(format!("{left:?}"))
    }

    #[test]
    fn a_parameter_that_is_not_served_is_left_out_by_name() {
        for value in [
            json!({"n": 2}),
            json!({"logprobs": true}),
            json!({"audio": {}}),
            json!({"modalities": ["text", "audio"]}),
            json!({"nn": 1}),
        ] {
            let name = value.as_object().unwrap().keys().next().unwrap().clone();
            assert!(left_out(CHAT, value).unwrap().contains(&format!("{name:?}")), "{name}");
        }
        let include = json!({"include": ["file_search_call.results"], "client_metadata": {}});
        let left = left_out(RESPONSES, include).unwrap();
        assert!(left.contains("\"include\"") && left.contains("client_metadata"), "{left}");
        assert!(left_out(RESPONSES, json!({"conversation": "conv_1"})).is_err());
    }

    #[test]
    fn a_parameter_that_asks_for_what_is_done_anyway_is_taken() {
        let taken = json!({"n": 1, "logprobs": false, "audio": null, "user": "me"});
        let none = format!("{:?}", IgnoredParts::default());
        assert_eq!(left_out(CHAT, taken).unwrap(), none);
        assert_eq!(
            left_out(RESPONSES, json!({"truncation": "auto", "include": []})).unwrap(),
            none
        );
    }

    #[test]
    fn the_guide_names_every_parameter() {
        let guide = include_str!("../../../docs/openai.md");
        for (name, _) in CHAT.iter().chain(RESPONSES) {
            assert!(guide.contains(&format!("`{name}`")), "{name}");
        }
    }
}
