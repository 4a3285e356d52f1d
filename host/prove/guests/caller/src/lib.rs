//! A tool that calls other tools, as its arguments say.
//!
//! `{"steps": [{"do": "...", ...}, ...]}` runs the steps in order; the answer is the JSON array of
//! what each gave: `{"ok": ...}`, or `{"error": kind, "text": ...}` with the contract's variant.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use belljar_guest::prelude::*;
use belljar_guest::{Call, peers};
use serde_json::{Value, json};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The steps, each an object with the field `do`.
    steps: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
enum Step {
    /// The names of the tools that can be called.
    List,
    /// The whole definition of one of them.
    Describe { tool: String },
    /// Calls one.
    Call(Asked),
    /// Calls several.
    Many { calls: Vec<Asked> },
    /// Makes the same call `times` times, all of them. Gives how many succeeded, and the last failure.
    Repeat { times: u64, call: Asked },
    /// Calls one with the text that the step before gave, as its argument `with`.
    Pass { tool: String, with: String },
    /// How many calls of this tool its store has seen, this one included.
    Count,
    /// Calls one of two tools, by a number that differs from store to store.
    Either { calls: [Asked; 2] },
    /// Says something in the log.
    Log { text: String },
    /// Never ends.
    Spin,
    /// Traps.
    Trap,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    tool: String,
    #[serde(default)]
    arguments: Value,
    /// The arguments as they are, in place of `arguments`.
    #[serde(default)]
    raw: Option<String>,
}

static CALLS: AtomicU64 = AtomicU64::new(0);

fn caller(args: Args) -> ToolResult {
    CALLS.fetch_add(1, Ordering::Relaxed);
    let mut said: Vec<Value> = Vec::new();
    for step in args.steps {
        let step = serde_json::from_value(step)
            .map_err(|error| ToolError::InvalidArguments(error.to_string()))?;
        let before = said.last().cloned().unwrap_or_default();
        said.push(run(step, &before));
    }
    Output::json(&said)
}

fn caller_again(args: Args) -> ToolResult {
    caller(args)
}

fn run(step: Step, before: &Value) -> Value {
    match step {
        Step::List => {
            let names: Vec<String> = peers::list().into_iter().map(|tool| tool.name).collect();
            json!({ "ok": names })
        }
        Step::Describe { tool } => {
            let found = peers::list().into_iter().find(|it| it.name == tool);
            json!({ "ok": found.map(|it| json!([it.description, it.input_schema])) })
        }
        Step::Call(asked) => told(peers::call_text(&call(asked))),
        Step::Many { calls } => {
            let calls: Vec<Call> = calls.into_iter().map(call).collect();
            json!({ "ok": peers::call_many(&calls).into_iter().map(told).collect::<Vec<_>>() })
        }
        Step::Repeat { times, call: asked } => {
            let (call, mut done, mut last) = (call(asked), 0, Value::Null);
            for _ in 0..times {
                match peers::call_text(&call) {
                    Ok(_) => done += 1,
                    failed => last = told(failed),
                }
            }
            json!({ "ok": done, "last": last })
        }
        Step::Pass { tool, with } => {
            let text = before.get("ok").cloned().unwrap_or_default();
            let arguments = json!({ with: text }).to_string();
            told(peers::call_text(&Call { tool, arguments }))
        }
        Step::Count => json!({ "ok": CALLS.load(Ordering::Relaxed) }),
        Step::Either { calls: [first, second] } => {
            // The standard library seeds its maps from the host.
            use std::hash::{BuildHasher as _, RandomState};
            let odd = RandomState::new().hash_one(0_u8) % 2 == 1;
            told(peers::call_text(&call(if odd { second } else { first })))
        }
        Step::Log { text } => {
            log::info(text);
            json!({ "ok": null })
        }
        Step::Spin => loop {
            black_box(());
        },
        Step::Trap => std::process::abort(),
    }
}

fn call(asked: Asked) -> Call {
    let arguments = asked.raw.unwrap_or_else(|| match asked.arguments {
        Value::Null => "{}".to_owned(),
        arguments => arguments.to_string(),
    });
    Call { tool: asked.tool, arguments }
}

fn told(result: ToolResult) -> Value {
    match result {
        Ok(output) => json!({ "ok": output.text_parts() }),
        Err(error) => {
            let (kind, text) = match error {
                ToolError::InvalidArguments(text) => ("invalid-arguments", text),
                ToolError::NotFound(text) => ("not-found", text),
                ToolError::Denied(text) => ("denied", text),
                ToolError::TooLarge(text) => ("too-large", text),
                ToolError::Failed(text) => ("failed", text),
            };
            json!({ "error": kind, "text": text })
        }
    }
}

belljar_guest::tools! {
    caller(Args): "Calls other tools.";
    caller_again(Args): "Calls other tools, from the same store.";
}
