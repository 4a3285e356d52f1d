//! The form that a caller requires of an answer, and the settings of the model for it.

use belljar_agent::{Effort, Sampling};
use serde_json::{Value, json};

use crate::http::problem::Problem;
use crate::openai::params::{invalid_value, unsupported_parameter};

/// The JSON schema that the answer must match; `None` for plain text. `format` is `response_format` of a chat
/// completion, or `text.format` of a response.
pub(crate) fn parse_schema(format: Option<&Value>, param: &str) -> Result<Option<Value>, Problem> {
    let Some(format) = format.filter(|format| !format.is_null()) else { return Ok(None) };
    match format.get("type").and_then(Value::as_str) {
        Some("text") => Ok(None),
        Some("json_object") => Ok(Some(json!({"type": "object"}))),
        Some("json_schema") => {
            let inner = format.get("json_schema").unwrap_or(format);
            match inner.get("schema").filter(|schema| schema.is_object()) {
                Some(schema) => Ok(Some(schema.clone())),
                None => Err(invalid_value(param, format!("`{param}` has no schema"))),
            }
        }
        _ => {
            let detail = format!("`{param}` can only be `text`, `json_object` or `json_schema`");
            Err(unsupported_parameter(param, detail))
        }
    }
}

/// Parses the requested amount of reasoning.
pub(crate) fn parse_effort(word: Option<&str>, param: &str) -> Result<Option<Effort>, Problem> {
    match word {
        None => Ok(None),
        Some("none" | "minimal" | "low") => Ok(Some(Effort::Low)),
        Some("medium") => Ok(Some(Effort::Medium)),
        Some("high") => Ok(Some(Effort::High)),
        Some("xhigh" | "max") => Ok(Some(Effort::Max)),
        Some(_) => {
            let words = "`none`, `minimal`, `low`, `medium`, `high` or `xhigh`";
            Err(unsupported_parameter(param, format!("`{param}` can only be {words}")))
        }
    }
}

/// Checks a temperature against the allowed range.
pub(crate) fn check_temperature(asked: Option<f64>) -> Result<Option<f64>, Problem> {
    match asked {
        Some(value) if !(0.0..=2.0).contains(&value) => {
            Err(invalid_value("temperature", "`temperature` has to be 0 to 2"))
        }
        value => Ok(value),
    }
}

/// The most stop words in a request.
const MAX_STOPS: usize = 4;

/// The most bytes of one stop word.
const MAX_STOP_BYTES: usize = 1_024;

/// The sampling parameters of a request, unparsed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SamplingRequest<'a> {
    pub(crate) top_p: Option<f64>,
    pub(crate) presence_penalty: Option<f64>,
    pub(crate) frequency_penalty: Option<f64>,
    pub(crate) seed: Option<i64>,
    pub(crate) stop: Option<&'a Value>,
}

/// Parses the sampling parameters, and checks their ranges.
pub(crate) fn parse_sampling(asked: SamplingRequest<'_>) -> Result<Sampling, Problem> {
    let within = |param: &str, value: Option<f64>, low: f64, high: f64| match value {
        Some(value) if !(low..=high).contains(&value) => {
            Err(invalid_value(param, format!("`{param}` has to be {low} to {high}")))
        }
        value => Ok(value),
    };
    Ok(Sampling {
        top_p: within("top_p", asked.top_p, 0.0, 1.0)?,
        presence_penalty: within("presence_penalty", asked.presence_penalty, -2.0, 2.0)?,
        frequency_penalty: within("frequency_penalty", asked.frequency_penalty, -2.0, 2.0)?,
        seed: asked.seed,
        stop: parse_stops(asked.stop)?,
    })
}

/// Parses the stop words: a single one, or a list.
fn parse_stops(given: Option<&Value>) -> Result<Vec<String>, Problem> {
    let unfit = || {
        let detail = format!("`stop` has to be a text or a list of at most {MAX_STOPS} of them");
        invalid_value("stop", format!("{detail}, each of 1 to {MAX_STOP_BYTES} bytes"))
    };
    let words = match given {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::String(word)) => vec![word.clone()],
        Some(Value::Array(words)) if words.len() <= MAX_STOPS => {
            let word = |word: &Value| word.as_str().map(str::to_owned);
            words.iter().map(word).collect::<Option<_>>().ok_or_else(unfit)?
        }
        Some(_) => return Err(unfit()),
    };
    if words.iter().all(|word| (1..=MAX_STOP_BYTES).contains(&word.len())) {
        Ok(words)
    } else {
        Err(unfit())
    }
}

/// Refuses 0 as the number of tokens in the parameter `param`.
pub(crate) fn check_tokens(asked: Option<u64>, param: &str) -> Result<Option<u64>, Problem> {
    match asked {
        Some(0) => Err(invalid_value(param, format!("`{param}` has to be at least 1"))),
        value => Ok(value),
    }
}

/// Parses `metadata`: texts by name that the caller sends and that the answer repeats.
pub(crate) fn parse_metadata(given: Option<&Value>) -> Result<Value, Problem> {
    const MOST: usize = 16;
    let Some(given) = given.filter(|given| !given.is_null()) else { return Ok(json!({})) };
    let fits = given.as_object().is_some_and(|map| {
        map.len() <= MOST
            && map.iter().all(|(key, value)| {
                key.chars().count() <= 64
                    && value.as_str().is_some_and(|text| text.chars().count() <= 512)
            })
    });
    if fits {
        return Ok(given.clone());
    }
    let detail = "`metadata` can have 16 texts of 512 characters, with names of 64";
    Err(invalid_value("metadata", detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_end_an_answer_are_few_and_short_and_none_is_empty() {
        let of = |stop: Value| parse_stops(Some(&stop)).ok();
        assert_eq!(of(json!(null)), Some(vec![]));
        assert_eq!(of(json!([])), Some(vec![]));
        assert_eq!(of(json!("a")), Some(vec!["a".to_owned()]));
        assert_eq!(of(json!(["a", "\n", "c", "d"])).map(|words| words.len()), Some(4));
        for bad in [
            json!(""),
            json!(["a", ""]),
            json!(["a", "b", "c", "d", "e"]),
            json!([1]),
            json!({}),
            json!("x".repeat(1_025)),
        ] {
            assert_eq!(of(bad.clone()), None, "{bad}");
        }
    }

    #[test]
    fn numbers_of_sampling_have_the_bounds_of_the_wire() {
        let asked = SamplingRequest {
            top_p: Some(0.5),
            presence_penalty: Some(-2.0),
            ..SamplingRequest::default()
        };
        assert_eq!(parse_sampling(asked).unwrap().top_p, Some(0.5));
        for (param, asked) in [
            ("top_p", SamplingRequest { top_p: Some(1.5), ..SamplingRequest::default() }),
            (
                "presence_penalty",
                SamplingRequest { presence_penalty: Some(2.5), ..SamplingRequest::default() },
            ),
            (
                "frequency_penalty",
                SamplingRequest { frequency_penalty: Some(-3.0), ..SamplingRequest::default() },
            ),
        ] {
            assert_eq!(parse_sampling(asked).unwrap_err().param_and_code().0, Some(param));
        }
    }
}
