//! The parameters that these wires have and an agent has no use for: what is taken without an
//! effect, what is taken where it asks for what is done anyway, and what is refused.

use belljar_policy::Shown;
use serde_json::{Map, Value};

use crate::http::problem::Problem;

/// The effect of a parameter.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Takes {
    /// It is taken, and changes nothing.
    Ignored,
    /// It is taken with one of these values, in JSON: what is done anyway.
    Only(&'static [&'static str]),
    /// It is refused; what to do instead.
    Never(&'static str),
}

/// A row of a table of parameters.
pub(crate) type Row = (&'static str, Takes);

const ZERO: Takes = Takes::Only(&["0", "0.0"]);
const ONE: Takes = Takes::Only(&["1", "1.0"]);
const TIER: Takes = Takes::Only(&["\"auto\"", "\"default\""]);

/// Those of chat completions.
pub(crate) const CHAT: &[Row] = &[
    ("audio", Takes::Never("an agent answers with text")),
    ("frequency_penalty", ZERO),
    ("function_call", Takes::Never("use `tool_choice`")),
    ("functions", Takes::Never("use `tools`")),
    ("logit_bias", Takes::Only(&["{}"])),
    ("logprobs", Takes::Only(&["false"])),
    ("modalities", Takes::Only(&["[\"text\"]"])),
    ("n", Takes::Only(&["1"])),
    ("prediction", Takes::Never("leave it out")),
    ("presence_penalty", ZERO),
    ("prompt_cache_key", Takes::Ignored),
    ("prompt_cache_retention", Takes::Ignored),
    ("safety_identifier", Takes::Ignored),
    ("seed", Takes::Ignored),
    ("service_tier", TIER),
    ("stop", Takes::Never("an agent ends its answer by itself")),
    ("top_logprobs", ZERO),
    ("top_p", ONE),
    ("user", Takes::Ignored),
    ("verbosity", Takes::Only(&["\"medium\""])),
    ("web_search_options", Takes::Never("an agent has its own tools")),
];

/// Those of responses.
pub(crate) const RESPONSES: &[Row] = &[
    ("context_management", Takes::Never("belljar summarises a long conversation by itself")),
    ("conversation", Takes::Never("use `previous_response_id`")),
    ("frequency_penalty", ZERO),
    ("include", Takes::Only(&["[]", "[\"reasoning.encrypted_content\"]"])),
    ("max_tool_calls", Takes::Never("the agent's own limits bound its calls")),
    ("presence_penalty", ZERO),
    ("prompt", Takes::Never("an agent has its own prompt")),
    ("prompt_cache_key", Takes::Ignored),
    ("prompt_cache_retention", Takes::Ignored),
    ("safety_identifier", Takes::Ignored),
    ("service_tier", TIER),
    ("stream_options", Takes::Ignored),
    ("top_logprobs", ZERO),
    ("top_p", ONE),
    ("truncation", Takes::Only(&["\"disabled\"", "\"auto\""])),
    ("user", Takes::Ignored),
];

/// INV-284: checks the parameters that are left. `null` is as good as absent.
pub(crate) fn check(rows: &[Row], others: &Map<String, Value>) -> Result<(), Problem> {
    for (name, value) in others.iter().filter(|(_, value)| !value.is_null()) {
        let Some((_, takes)) = rows.iter().find(|(known, _)| known == name) else {
            let shown = Shown::clipped(name, 60).to_string();
            return Err(Problem::invalid(format!("there is no parameter `{shown}`"))
                .param(shown)
                .code("unknown_parameter"));
        };
        match takes {
            Takes::Ignored => {}
            Takes::Only(values) => {
                if !values.contains(&value.to_string().as_str()) {
                    let values = values.join("`, `");
                    let detail = format!("`{name}` can only be `{values}` here");
                    return Err(unsupported(name, detail));
                }
            }
            Takes::Never(instead) => {
                let detail = format!("`{name}` is not supported");
                return Err(unsupported(name, detail).hint(*instead));
            }
        }
    }
    Ok(())
}

/// A parameter, or a value of it, that would mean something which is not done here.
pub(crate) fn unsupported(param: &str, detail: impl Into<String>) -> Problem {
    Problem::invalid(detail).param(param).code("unsupported_parameter")
}

/// A value that is none.
pub(crate) fn invalid(param: &str, detail: impl Into<String>) -> Problem {
    Problem::invalid(detail).param(param).code("invalid_value")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(rows: &[Row], value: Value) -> bool {
        check(rows, value.as_object().unwrap()).is_err()
    }

    #[test]
    fn a_parameter_that_would_change_the_meaning_is_refused() {
        for value in [
            json!({"n": 2}),
            json!({"logprobs": true}),
            json!({"audio": {}}),
            json!({"stop": ["x"]}),
            json!({"top_p": 0.5}),
            json!({"modalities": ["text", "audio"]}),
            json!({"nn": 1}),
        ] {
            assert!(refused(CHAT, value.clone()), "{value}");
        }
        assert!(refused(RESPONSES, json!({"conversation": "conv_1"})));
        assert!(refused(RESPONSES, json!({"include": ["file_search_call.results"]})));
    }

    #[test]
    fn a_parameter_that_asks_for_what_is_done_anyway_is_taken() {
        let taken = json!({"n": 1, "logprobs": false, "stop": null, "user": "me", "seed": 4});
        assert!(!refused(CHAT, taken));
        assert!(!refused(RESPONSES, json!({"truncation": "auto", "include": [], "top_p": 1.0})));
    }

    #[test]
    fn the_guide_names_every_parameter() {
        let guide = include_str!("../../../docs/openai.md");
        for (name, _) in CHAT.iter().chain(RESPONSES) {
            assert!(guide.contains(&format!("`{name}`")), "{name}");
        }
    }
}
