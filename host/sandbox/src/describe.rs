//! What a component says of its tools: asked once per digest, checked, kept.
//!
//! `describe` is a stranger's code and its answer a stranger's text, which every later model
//! request repeats. It runs in a throwaway store that has nothing, and an answer that breaks
//! a rule is refused as a whole: a tool that lies about its schema is not half-trusted.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use belljar_policy::{Shown, ToolName};
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::answer::check_json;
use crate::bindings::exports::belljar::tool::tools::{Definition, Hints as WitHints};
use crate::cache::{Cache, Kind};
use crate::config::DescribeLimits;
use crate::error::DescribeError;
use crate::load::Loader;
use crate::store::{Done, Job};
use crate::throwaway::{self, Bounds};
use crate::tool_info::{Hints, ToolInfo};
use crate::wasm::{Digest, Wasm};

/// The longest name of a tool, in bytes, as the contract says.
const MAX_NAME: usize = 64;

/// Answers that were checked.
#[derive(Debug)]
pub(crate) struct Describer {
    limits: DescribeLimits,
    loader: Arc<Loader>,
    cache: Option<Arc<Cache>>,
    known: Mutex<HashMap<Digest, Arc<Entry>>>,
}

type Answer = Result<Arc<[ToolInfo]>, DescribeError>;
type Entry = OnceCell<Answer>;

impl Describer {
    /// Knows nothing yet.
    pub(crate) fn new(
        limits: DescribeLimits,
        loader: Arc<Loader>,
        cache: Option<Arc<Cache>>,
    ) -> Self {
        Self { limits, loader, cache, known: Mutex::default() }
    }

    /// The tools of a component.
    pub(crate) async fn describe(&self, wasm: &Wasm) -> Answer {
        let digest = wasm.digest();
        let entry = Arc::clone(self.known().entry(digest).or_default());
        let answer = entry.get_or_init(|| self.ask_once(wasm)).await.clone();
        if answer.is_err() {
            let mut known = self.known();
            if known.get(&digest).is_some_and(|now| Arc::ptr_eq(now, &entry)) {
                known.remove(&digest);
            }
        }
        answer
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<Digest, Arc<Entry>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask_once(&self, wasm: &Wasm) -> Answer {
        // Narrower limits must not be answered from what wider ones let in.
        let DescribeLimits { tools, description_bytes, schema_bytes, .. } = self.limits;
        let name = format!("{}-{tools}-{description_bytes}-{schema_bytes}", wasm.digest());
        let found = self.cache.as_ref().and_then(|cache| cache.get(Kind::Describe, &name));
        if let Some(found) = found
            && let Ok(tools) = serde_json::from_slice::<Vec<ToolInfo>>(&found)
        {
            return Ok(tools.into());
        }
        let definitions = self.ask(wasm).await?;
        let tools = check(definitions, &self.limits).map_err(DescribeError::Invalid)?;
        if let Some(cache) = &self.cache
            && let Ok(text) = serde_json::to_vec(&tools)
        {
            cache.put(Kind::Describe, &name, &text);
        }
        Ok(tools.into())
    }

    /// Runs `describe` in a store without any grant.
    async fn ask(&self, wasm: &Wasm) -> Result<Vec<Definition>, DescribeError> {
        let limits = &self.limits;
        let loaded = self.loader.load(wasm).await?;
        let texts = limits.description_bytes.saturating_add(limits.schema_bytes);
        let bounds = Bounds {
            fuel: limits.fuel,
            memory_bytes: limits.memory_bytes,
            time: limits.time,
            answer_bytes: texts.saturating_mul(limits.tools) as u64,
        };
        let cancel = CancellationToken::new();
        match throwaway::run(&self.loader, &loaded, Job::Describe, &bounds, &cancel).await? {
            Ok(Done::Described(definitions)) => Ok(definitions),
            Ok(Done::Opened | Done::Invoked(_) | Done::Judged(_)) => {
                Err(DescribeError::Failed("it answered something else".to_owned()))
            }
            Err(why) => Err(DescribeError::Failed(why)),
        }
    }
}

/// Checks an answer as a whole. The error says what a tool author has to change.
fn check(definitions: Vec<Definition>, limits: &DescribeLimits) -> Result<Vec<ToolInfo>, String> {
    if definitions.is_empty() {
        return Err("it offers no tool".to_owned());
    }
    if definitions.len() > limits.tools {
        return Err(format!(
            "{} tools, and at most {} are accepted",
            definitions.len(),
            limits.tools
        ));
    }
    let mut names = BTreeSet::new();
    let mut tools = Vec::with_capacity(definitions.len());
    for definition in definitions {
        let tool = check_one(definition, limits)?;
        if !names.insert(tool.name.clone()) {
            return Err(format!("two tools are named `{}`", tool.name));
        }
        tools.push(tool);
    }
    Ok(tools)
}

fn check_one(definition: Definition, limits: &DescribeLimits) -> Result<ToolInfo, String> {
    let Definition { name, description, input_schema, hints } = definition;
    let name = check_name(&name)?;
    let wrong = |what: String| format!("tool `{name}`: {what}");
    check_text(&description, limits.description_bytes).map_err(wrong)?;
    let schema = check_schema(&input_schema, limits.schema_bytes).map_err(wrong)?;
    let hints = Hints {
        read_only: hints.contains(WitHints::READ_ONLY),
        idempotent: hints.contains(WitHints::IDEMPOTENT),
        open_world: hints.contains(WitHints::OPEN_WORLD),
    };
    Ok(ToolInfo { name, description, schema, hints })
}

fn check_name(name: &str) -> Result<ToolName, String> {
    let fits = name.len() <= MAX_NAME
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    let error = || {
        let shown = Shown::clipped(name, MAX_NAME);
        format!(
            "`{shown}` is not a tool name: use a small letter, then small letters, digits or `_`, at most {MAX_NAME} in all"
        )
    };
    if fits { ToolName::new(name).map_err(|_| error()) } else { Err(error()) }
}

/// The model reads it, and so does the operator: nothing in it may be invisible.
fn check_text(text: &str, limit: usize) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err("it has no description".to_owned());
    }
    if text.len() > limit {
        return Err(format!(
            "its description has {} bytes, and at most {limit} are accepted",
            text.len()
        ));
    }
    visible(text, "its description")
}

fn visible(text: &str, what: &str) -> Result<(), String> {
    let hidden =
        |c: &char| !Shown::multiline(c.encode_utf8(&mut [0; 4])).to_string().chars().eq([*c]);
    match text.chars().find(hidden) {
        None => Ok(()),
        Some(c) => Err(format!("{what} holds the hidden character U+{:04X}", u32::from(c))),
    }
}

fn check_schema(text: &str, limit: usize) -> Result<Value, String> {
    if text.len() > limit {
        return Err(format!(
            "its schema has {} bytes, and at most {limit} are accepted",
            text.len()
        ));
    }
    check_json(text).map_err(|why| format!("its schema is not JSON: {why}"))?;
    let schema: Value =
        serde_json::from_str(text).map_err(|error| format!("its schema is not JSON: {error}"))?;
    if schema.get("type") != Some(&Value::from("object")) {
        return Err("its schema is not of an object: write `\"type\": \"object\"`".to_owned());
    }
    // Escapes in JSON can hide what the text does not show.
    visible_strings(&schema)?;
    if let Err(error) = jsonschema::meta::validate(&schema) {
        let why = error.to_string();
        return Err(format!("its schema is not a JSON Schema: {}", Shown::clipped(&why, 300)));
    }
    Ok(schema)
}

fn visible_strings(value: &Value) -> Result<(), String> {
    match value {
        Value::String(text) => visible(text, "its schema"),
        Value::Array(items) => items.iter().try_for_each(visible_strings),
        Value::Object(fields) => fields.iter().try_for_each(|(key, value)| {
            visible(key, "its schema")?;
            visible_strings(value)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(name: &str, description: &str, schema: &str) -> Definition {
        Definition {
            name: name.to_owned(),
            description: description.to_owned(),
            input_schema: schema.to_owned(),
            hints: WitHints::READ_ONLY,
        }
    }

    const SCHEMA: &str = r#"{"type": "object", "properties": {"a": {"type": "string"}}}"#;

    fn refused(definitions: Vec<Definition>) -> String {
        check(definitions, &DescribeLimits::default()).unwrap_err()
    }

    #[test]
    fn an_honest_answer_passes() {
        let tools = check(
            vec![definition("a_1", "Does\nthings.", SCHEMA), definition("b", "Ä", SCHEMA)],
            &DescribeLimits::default(),
        )
        .unwrap();
        assert_eq!(tools[0].name.as_str(), "a_1");
        assert!(tools[0].hints.read_only && !tools[0].hints.open_world);
    }

    #[test]
    fn each_lie_is_named() {
        let ok = || definition("a", "d", SCHEMA);
        for (liar, part) in [
            (vec![], "no tool"),
            (vec![ok(), ok()], "two tools"),
            (vec![definition("A", "d", SCHEMA)], "not a tool name"),
            (vec![definition("a-b", "d", SCHEMA)], "not a tool name"),
            (vec![definition("a\u{1b}[2J", "d", SCHEMA)], "\\u{1b}"),
            (vec![definition("a", " ", SCHEMA)], "no description"),
            (vec![definition("a", "x\u{202e}y", SCHEMA)], "U+202E"),
            (vec![definition("a", "x\u{1b}[0m", SCHEMA)], "U+001B"),
            (vec![definition("a", &"x".repeat(17 << 10), SCHEMA)], "bytes"),
            (vec![definition("a", "d", "{")], "not JSON"),
            (vec![definition("a", "d", "[]")], "not of an object"),
            (vec![definition("a", "d", r#"{"type":"object","properties":3}"#)], "JSON Schema"),
            (vec![definition("a", "d", r#"{"type":"object","title":"\u202e"}"#)], "U+202E"),
            (
                vec![definition(
                    "a",
                    "d",
                    &format!("{{\"type\":\"object\",\"x\":{0}", "[".repeat(99)),
                )],
                "nests",
            ),
            (vec![definition("a", "d", &format!("\"{}\"", "x".repeat(65 << 10)))], "bytes"),
            ((0..65).map(|n| definition(&format!("t{n}"), "d", SCHEMA)).collect(), "65 tools"),
        ] {
            let why = refused(liar);
            assert!(why.contains(part), "{why:?} should say {part:?}");
        }
    }
}
