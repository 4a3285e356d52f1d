//! `run_javascript`: a JavaScript interpreter (QuickJS) whose functions are the agent's tools.
//!
//! The interpreter and its standard functions (`prelude.js`) are set up when the component is built:
//! `init` runs then, and its memory becomes part of the component.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod answer;
mod calls;
mod engine;
mod random;
mod scope;

use std::cell::RefCell;

use belljar_guest::bindings::exports::belljar::tool::tools::Guest as Tool;
use belljar_guest::{Call, Definition, Hints, ToolError, ToolResult};
use serde_json::{Map, Value};

use crate::engine::Engine;

const NAME: &str = "run_javascript";

const DESCRIPTION: &str = include_str!("description.txt");

const SCHEMA: &str = include_str!("schema.json");

thread_local! {
    /// The interpreter of this instance, which lives as long as its store.
    static ENGINE: RefCell<Option<Engine>> = const { RefCell::new(None) };
}

/// The component. Written out: the SDK's macro would bring its makers of schemas, a tenth of the size.
// Only the component's exports use it, and those exist for WebAssembly alone.
#[allow(dead_code)]
struct RunJavaScript;

#[allow(dead_code)]
impl Tool for RunJavaScript {
    fn describe() -> Vec<Definition> {
        vec![Definition {
            name: NAME.to_owned(),
            description: DESCRIPTION.trim_end().to_owned(),
            input_schema: SCHEMA.to_owned(),
            hints: Hints::empty(),
        }]
    }

    fn invoke(call: Call) -> ToolResult {
        if call.tool != NAME {
            return Err(ToolError::NotFound(format!("this component has no tool `{}`", call.tool)));
        }
        let arguments = Arguments::read(&call.arguments).map_err(ToolError::InvalidArguments)?;
        ENGINE.with_borrow_mut(|slot| {
            if arguments.fresh {
                *slot = None;
            }
            let engine = match slot {
                Some(engine) => engine,
                None => slot.insert(start()?),
            };
            engine.run(&arguments.code)
        })
    }
}

/// The arguments that the component reads; the time limit is the host's to keep.
#[derive(Debug, PartialEq)]
struct Arguments {
    code: String,
    fresh: bool,
}

impl Arguments {
    fn read(text: &str) -> Result<Self, String> {
        let fields: Map<String, Value> =
            serde_json::from_str(text).map_err(|error| error.to_string())?;
        let (mut code, mut fresh) = (None, false);
        for (name, value) in fields {
            match (name.as_str(), value) {
                (_, Value::Null) | ("timeout", Value::Number(_)) => {}
                ("code", Value::String(text)) => code = Some(text),
                ("fresh", Value::Bool(yes)) => fresh = yes,
                ("code" | "timeout" | "fresh", _) => {
                    return Err(format!("`{name}` has the wrong type"));
                }
                _ => {
                    return Err(format!(
                        "unknown field `{name}`, expected one of `code`, `timeout`, `fresh`"
                    ));
                }
            }
        }
        let code = code.ok_or("missing field `code`")?;
        Ok(Self { code, fresh })
    }
}

fn start() -> Result<Engine, ToolError> {
    Engine::new().map_err(|error| ToolError::Failed(format!("JavaScript did not start: {error}")))
}

#[cfg(target_family = "wasm")]
belljar_guest::bindings::export!(RunJavaScript with_types_in belljar_guest::bindings);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_bad_argument_names_its_field() {
        let read = |text: &str| Arguments::read(text).map(|it| (it.code, it.fresh));
        let error = |text: &str| read(text).unwrap_err();
        assert_eq!(error("{}"), "missing field `code`");
        assert_eq!(error(r#"{"code": 1}"#), "`code` has the wrong type");
        assert_eq!(error(r#"{"code": "", "timeout": "1"}"#), "`timeout` has the wrong type");
        assert!(error(r#"{"cod": ""}"#).starts_with("unknown field `cod`"));
        assert_eq!(
            read(r#"{"code": "1", "fresh": null, "timeout": 2.5}"#),
            Ok(("1".into(), false))
        );
        assert_eq!(read(r#"{"code": "1", "fresh": true}"#), Ok(("1".into(), true)));
    }

    #[test]
    fn the_schema_is_an_object_with_the_arguments() {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        let names: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["code", "timeout", "fresh"]);
    }
}

#[cfg(target_family = "wasm")]
#[allow(missing_docs, unreachable_pub, unsafe_code, reason = "generated")]
mod preinit {
    wit_bindgen::generate!({
        inline: "package belljar:preinit; world preinit { export init: func(); }",
    });

    struct Preinit;

    impl Guest for Preinit {
        /// Runs once, when the component is built. Should it fail, the first call starts anew.
        fn init() {
            super::ENGINE.with_borrow_mut(|slot| {
                *slot = super::start().ok();
                if let Some(engine) = slot {
                    engine.settle();
                }
            });
        }
    }

    export!(Preinit);
}
