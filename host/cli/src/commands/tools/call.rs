//! `belljar tools call`: one tool, once, by hand.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use belljar_definition::ToolManifest;
use belljar_policy::{Access, HostRule, Shown, ShownPath as _, ToolAsk, ToolName};
use belljar_sandbox::{CallError, CallResult, Output, Part, Wasm};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::commands::tools;
use crate::commands::tools::single::Single;
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::{MAX_MANIFEST_BYTES, Places, read_bounded};
use crate::setup::host::{self, Assembly};
use crate::term::out::Out;
use crate::term::table;

/// Most bytes of arguments on stdin: what the session accepts from a model.
const MAX_ARGUMENT_BYTES: u64 = belljar_agent::limits::MAX_ARGUMENT_BYTES as u64;

/// A call as the command line states it.
pub(crate) struct Call<'a> {
    pub(crate) tool: &'a str,
    pub(crate) arguments: &'a str,
    pub(crate) write: bool,
    pub(crate) hosts: &'a [String],
    pub(crate) json: bool,
}

/// What is called.
struct Found {
    wasm: Wasm,
    ask: ToolAsk,
    config: BTreeMap<String, String>,
    /// Absent for a file, whose tool is then its only one.
    tool: Option<ToolName>,
}

pub(crate) fn run(call: &Call<'_>, places: &Places, out: &Out) -> Result<Exit, Failure> {
    let arguments = arguments(call.arguments)?;
    let hosts = call
        .hosts
        .iter()
        .map(|rule| rule.parse::<HostRule>().map_err(|error| Failure::usage(error.to_string())))
        .collect::<Result<Vec<_>, _>>()?;
    let (found, sandbox) = find(call.tool, places, out)?;
    let cancel = CancellationToken::new();
    let runtime = host::runtime()?;
    let result = runtime.block_on(async {
        host::cancel_on_interrupt(&cancel, out);
        let tool = match &found.tool {
            Some(tool) => tool.clone(),
            None => only_tool(&sandbox, &found.wasm, call.tool).await?,
        };
        let access = if call.write { Access::ReadWrite } else { Access::Read };
        let single = Single {
            wasm: &found.wasm,
            ask: found.ask,
            config: found.config,
            tool: &tool,
            arguments: &arguments,
            workspace: &places.workspace,
            access,
            hosts,
            cancel: cancel.clone(),
        };
        single.call(&sandbox).await
    })?;
    if call.json {
        out.json(&as_json(&result))?;
    } else {
        print(&result, out);
    }
    match &result.outcome {
        Ok(_) => Ok(Exit::Completed),
        Err(CallError::Cancelled) => Ok(Exit::Cancelled),
        Err(_) if call.json => Ok(Exit::Failed),
        Err(error) => Err(Failure::new(Shown::multiline(&error.to_string()).to_string())),
    }
}

/// The arguments, checked to be a JSON object.
fn arguments(given: &str) -> Result<String, Failure> {
    let text = if given == "-" {
        let mut text = String::new();
        let read = std::io::stdin().take(MAX_ARGUMENT_BYTES + 1).read_to_string(&mut text);
        read.map_err(|error| Failure::usage(format!("failed to read the arguments: {error}")))?;
        text
    } else {
        given.to_owned()
    };
    if text.len() as u64 > MAX_ARGUMENT_BYTES {
        return Err(Failure::usage(format!(
            "the arguments have more than {MAX_ARGUMENT_BYTES} bytes"
        )));
    }
    match serde_json::from_str::<Value>(&text) {
        Ok(Value::Object(_)) => Ok(text),
        Ok(_) => Err(Failure::usage("the arguments are not a JSON object")
            .hint("write `{\"name\": \"value\"}`; `belljar tools inspect TOOL` shows the schema")),
        Err(error) => Err(Failure::usage(format!("the arguments are not JSON: {error}"))),
    }
}

fn find(
    word: &str,
    places: &Places,
    out: &Out,
) -> Result<(Found, belljar_sandbox::Sandbox), Failure> {
    if tools::is_path(word) {
        let wasm = tools::read_component(word)?;
        let ask = manifest_beside(Path::new(word), out)?;
        let found = Found { wasm, ask, config: BTreeMap::new(), tool: None };
        return Ok((found, host::sandbox(places, out)?));
    }
    let host = Assembly::new(places, out)?.host()?;
    let component = host.tools.owner(word).ok_or_else(|| tools::no_tool(&host, word))?;
    let found = Found {
        wasm: component.wasm.clone(),
        ask: component.manifest.ask.clone(),
        config: component.config.as_ref().clone(),
        tool: ToolName::new(word).ok(),
    };
    Ok((found, host.sandbox.clone()))
}

/// What the `tool.toml` beside a component asks for; without one, nothing.
fn manifest_beside(component: &Path, out: &Out) -> Result<ToolAsk, Failure> {
    let path = component.with_file_name("tool.toml");
    if !path.exists() {
        out.note(format_args!("there is no `{}`, so the tool gets no mount", path.shown()));
        return Ok(ToolAsk::default());
    }
    let text = read_bounded(&path, MAX_MANIFEST_BYTES)
        .map_err(|error| Failure::usage(format!("failed to read `{}`: {error}", path.shown())))?;
    let manifest = ToolManifest::parse(&path, &String::from_utf8_lossy(&text))
        .map_err(|diagnostics| Failure::diagnostics("", diagnostics))?;
    Ok(manifest.ask)
}

/// The tool of a component that has one.
async fn only_tool(
    sandbox: &belljar_sandbox::Sandbox,
    wasm: &Wasm,
    path: &str,
) -> Result<ToolName, Failure> {
    let path = Shown::new(path);
    let infos = sandbox.describe(wasm).await;
    let infos = infos.map_err(|error| Failure::usage(format!("`{path}`: {error}")))?;
    match &infos[..] {
        [info] => Ok(info.name.clone()),
        infos => {
            let names: Vec<String> = infos.iter().map(|info| format!("`{}`", info.name)).collect();
            Err(Failure::usage(format!("`{path}` offers several tools: {}", names.join(", ")))
                .hint("install it, then call a tool by its name"))
        }
    }
}

fn print(result: &CallResult, out: &Out) {
    if let Ok(Output { parts }) = &result.outcome {
        for part in parts {
            match part {
                Part::Text(text) => out.text(&Shown::multiline(text).to_string()),
                Part::Json(text) => out.foreign_json(text),
                Part::Attachment { name, media_type, data } => out.line(format_args!(
                    "attachment {} ({}, {})",
                    Shown::new(name),
                    Shown::new(media_type),
                    table::size(data.len() as u64)
                )),
            }
        }
    }
    let receipt = &result.receipt;
    for line in &receipt.logs {
        out.note(format_args!("{}: {}", Shown::new(&line.level), Shown::new(&line.message)));
    }
    for denial in &receipt.denials {
        out.note(format_args!("refused: {}: {}", denial.code, Shown::new(&denial.facts)));
    }
    out.note(format_args!(
        "{}, {} fuel, {} read, {} written",
        table::micros(receipt.times.total),
        table::fuel(receipt.fuel),
        table::size(receipt.bytes.read),
        table::size(receipt.bytes.written)
    ));
}

fn as_json(result: &CallResult) -> Value {
    let outcome = match &result.outcome {
        Ok(output) => json!({ "parts": output.parts.iter().map(part).collect::<Vec<_>>() }),
        Err(error) => json!({ "error": error.to_string() }),
    };
    json!({ "outcome": outcome, "receipt": result.receipt })
}

fn part(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({ "text": text }),
        Part::Json(text) => {
            json!({ "json": serde_json::from_str::<Value>(text).unwrap_or_default() })
        }
        Part::Attachment { name, media_type, data } => {
            json!({ "attachment": name, "media_type": media_type, "bytes": data.len() })
        }
    }
}
