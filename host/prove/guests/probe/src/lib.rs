//! A hostile tool: it does to the host whatever its arguments say, with raw WASI calls.
//!
//! `{"steps": [{"do": "...", ...}, ...]}` runs the steps in order. Each gives `{"ok": ...}` or
//! `{"error": "..."}` with the interface's own word; the answer is the JSON array of them. A
//! step of [`answer`] replaces that answer with one of its own making.
//!
//! Resources that a step makes (descriptors, streams, pollables, ...) are kept in one list and
//! named by their place in it, from call to call, so that floods and misuse can be spelled out.

mod answer;
mod burn;
mod files;
mod held;
mod http;
mod sockets;
mod streams;
mod system;

use belljar_guest::prelude::*;
use serde_json::{Value, json};

/// What came of a step: a value, or the word of the refusal.
type Said = Result<Value, String>;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The steps, each an object with the field `do`.
    steps: Vec<Value>,
}

/// A step of any family. The families are asked one after the other.
#[derive(Deserialize)]
#[serde(untagged)]
enum Step {
    Flow(Flow),
    File(files::Step),
    Stream(streams::Step),
    System(system::Step),
    Burn(burn::Step),
    Http(Box<http::Step>),
    Socket(sockets::Step),
    Answer(answer::Step),
}

/// Steps about steps.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
enum Flow {
    /// Runs a step `times` times, at most until it fails; with `on`, in spite of failures.
    /// `{n}` in its texts is the turn. Says how many were done, and the last failure.
    Repeat {
        times: u64,
        step: Value,
        #[serde(default)]
        on: bool,
    },
    /// Gives back the resource with this number.
    Drop { held: usize },
}

fn probe(args: Args) -> ToolResult {
    let mut said = Vec::new();
    for step in &args.steps {
        match parse(step)? {
            Step::Answer(answer) => return answer.run(),
            step => said.push(told(run(step))),
        }
    }
    Output::json(&said)
}

fn parse(step: &Value) -> Result<Step, ToolError> {
    serde_json::from_value(step.clone())
        .map_err(|_| ToolError::InvalidArguments(format!("there is no such step: {step}")))
}

fn run(step: Step) -> Said {
    match step {
        Step::Flow(Flow::Repeat { times, step, on }) => repeat(times, &step, on),
        Step::Flow(Flow::Drop { held }) => held::take(held).map(|_| Value::Null),
        Step::File(step) => step.run(),
        Step::Stream(step) => step.run(),
        Step::System(step) => step.run(),
        Step::Burn(step) => Ok(step.run()),
        Step::Http(step) => step.run(),
        Step::Socket(step) => step.run(),
        Step::Answer(_) => Err("an answer cannot be repeated".to_owned()),
    }
}

fn repeat(times: u64, step: &Value, on: bool) -> Said {
    let numbered = step.to_string().contains("{n}");
    let (mut done, mut last) = (0_u64, None);
    for turn in 0..times {
        let step = if numbered { with_number(step, turn) } else { step.clone() };
        match run(parse(&step).map_err(|error| format!("{error:?}"))?) {
            Ok(_) => done += 1,
            Err(error) if on => last = Some(error),
            Err(error) => {
                last = Some(error);
                break;
            }
        }
    }
    Ok(json!({ "done": done, "error": last }))
}

fn with_number(value: &Value, turn: u64) -> Value {
    match value {
        Value::String(text) => Value::from(text.replace("{n}", &turn.to_string())),
        Value::Array(items) => items.iter().map(|item| with_number(item, turn)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), with_number(value, turn))).collect()
        }
        other => other.clone(),
    }
}

fn told(said: Said) -> Value {
    match said {
        Ok(value) => json!({ "ok": value }),
        Err(error) => json!({ "error": error }),
    }
}

belljar_guest::tools! {
    probe(Args): "Does to the host what its arguments say.";
}
