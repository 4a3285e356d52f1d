//! The form that a caller wants an answer to have, and how the model is to answer.

use belljar_agent::Effort;
use serde_json::{Value, json};

use crate::http::problem::Problem;
use crate::openai::params::{invalid, unsupported};

/// The schema of an answer; `None` = text. `format` is `response_format` of a chat completion, or
/// `text.format` of a response.
pub(crate) fn schema(format: Option<&Value>, param: &str) -> Result<Option<Value>, Problem> {
    let Some(format) = format.filter(|format| !format.is_null()) else { return Ok(None) };
    match format.get("type").and_then(Value::as_str) {
        Some("text") => Ok(None),
        Some("json_object") => Ok(Some(json!({"type": "object"}))),
        Some("json_schema") => {
            let inner = format.get("json_schema").unwrap_or(format);
            match inner.get("schema").filter(|schema| schema.is_object()) {
                Some(schema) => Ok(Some(schema.clone())),
                None => Err(invalid(param, format!("`{param}` has no schema"))),
            }
        }
        _ => {
            let detail = format!("`{param}` can only be `text`, `json_object` or `json_schema`");
            Err(unsupported(param, detail))
        }
    }
}

/// How much the model should think.
pub(crate) fn effort(word: Option<&str>, param: &str) -> Result<Option<Effort>, Problem> {
    match word {
        None => Ok(None),
        Some("minimal" | "low") => Ok(Some(Effort::Low)),
        Some("medium") => Ok(Some(Effort::Medium)),
        Some("high") => Ok(Some(Effort::High)),
        Some("xhigh" | "max") => Ok(Some(Effort::Max)),
        Some(_) => {
            let words = "`minimal`, `low`, `medium`, `high` or `xhigh`";
            Err(unsupported(param, format!("`{param}` can only be {words}")))
        }
    }
}

/// A temperature within its bounds.
pub(crate) fn temperature(asked: Option<f64>) -> Result<Option<f64>, Problem> {
    match asked {
        Some(value) if !(0.0..=2.0).contains(&value) => {
            Err(invalid("temperature", "`temperature` has to be 0 to 2"))
        }
        value => Ok(value),
    }
}

/// A number of tokens that is one.
pub(crate) fn tokens(asked: Option<u64>, param: &str) -> Result<Option<u64>, Problem> {
    match asked {
        Some(0) => Err(invalid(param, format!("`{param}` has to be at least 1"))),
        value => Ok(value),
    }
}

/// Notes of the caller's that an answer repeats.
pub(crate) fn metadata(given: Option<&Value>) -> Result<Value, Problem> {
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
    Err(invalid("metadata", detail))
}
