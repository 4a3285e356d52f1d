//! `belljar tools call`: calls one tool once, for the author of a tool.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::Path;

use belljar_definition::ToolManifest;
use belljar_policy::{HostRule, MountAccess, ShownPath as _, ShownText, ToolAsk, ToolName};
use belljar_sandbox::{CallError, CallResult, OutputPart, Receipt, SecretStore, ToolOutput, Wasm};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::args::tools::ToolCallArgs;
use crate::commands::tools;
use crate::commands::tools::single::SingleToolCall;
use crate::commands::tools::{crash, given, refused};
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::{HomePaths, MAX_MANIFEST_BYTES, read_bounded};
use crate::setup::host;
use crate::setup::whose::AgentOwner;
use crate::term::out::{TerminalOutput, TextStyle};
use crate::term::table;

/// Most bytes of arguments on stdin: the same limit as for a model.
const MAX_ARGUMENT_BYTES: u64 = belljar_agent::limits::MAX_ARGUMENT_BYTES as u64;

/// A call, as the options of the command line describe it.
pub(crate) struct ToolCallCommand<'a> {
    args: &'a ToolCallArgs,
    hosts: Vec<HostRule>,
    secrets: SecretStore,
}

impl<'a> ToolCallCommand<'a> {
    /// Parses the options: host rules, and the values of secrets.
    pub(crate) fn from_args(args: &'a ToolCallArgs, places: &HomePaths) -> Result<Self, Failure> {
        let rule = |rule: &String| {
            rule.parse::<HostRule>().map_err(|error| Failure::usage(error.to_string()))
        };
        let hosts = args.host.iter().map(rule).collect::<Result<Vec<_>, _>>()?;
        let secrets = given::read_secrets(&args.secret, &hosts, places)?;
        Ok(Self { args, hosts, secrets })
    }
}

/// The tool that is called, with its component and requests.
struct CalledTool {
    wasm: Wasm,
    ask: ToolAsk,
    config: BTreeMap<String, String>,
    /// The tool; `None` = the command line names a component, which must have a single tool.
    tool: Option<ToolName>,
}

/// Makes the call, and prints its result and receipt.
pub(crate) fn run(
    call: ToolCallCommand<'_>,
    whose: &AgentOwner,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let ToolCallCommand { args, hosts, secrets } = call;
    let arguments = parse_arguments(&args.arguments)?;
    let (found, sandbox) = find_tool(args, whose, out)?;
    for name in secrets.names().filter(|name| !found.ask.secrets.contains(*name)) {
        out.print_warning(format_args!(
            "the tool does not get secret `{name}`: its `tool.toml` does not ask for it"
        ));
    }
    let cancel = CancellationToken::new();
    let ask = found.ask.clone();
    let runtime = host::make_runtime()?;
    let result = runtime.block_on(async {
        host::cancel_on_interrupt(&cancel, out);
        let tool = match &found.tool {
            Some(tool) => tool.clone(),
            None => only_tool(&sandbox, &found.wasm, &args.component).await?,
        };
        let single = SingleToolCall {
            wasm: &found.wasm,
            ask: found.ask,
            config: found.config,
            tool: &tool,
            arguments: &arguments,
            workspace: &whose.places.workspace,
            access: mount_access(args),
            hosts: hosts.clone(),
            secrets,
            cancel: cancel.clone(),
        };
        single.call_in_jar(&sandbox).await
    })?;
    if args.json {
        out.print_json(&as_json(&result))?;
    } else {
        let given = CallRights { hosts: &hosts, access: mount_access(args), arguments: &arguments };
        print_result(&result, &ask, &given, out);
    }
    match &result.outcome {
        Ok(_) => Ok(CommandExit::Completed),
        Err(CallError::Cancelled) => Ok(CommandExit::Cancelled),
        Err(_) if args.json => Ok(CommandExit::Failed),
        Err(error) => Err(Failure::new(failure_reason(error, &result.receipt))),
    }
}

/// The reason for a failed call, for the tool's author: after a crash, the tool's own message.
fn failure_reason(error: &CallError, receipt: &Receipt) -> String {
    match (error, crash::panic_message(&receipt.stderr)) {
        (CallError::Trapped(_), Some(panic)) => format!("the tool crashed: {panic}"),
        (error, _) => ShownText::multiline(&error.to_string()).to_string(),
    }
}

/// The hint for malformed arguments. A shell removes the quotes in JSON, unless the whole is quoted.
const OBJECT: &str = "write a JSON object in quotes, `'{\"name\": \"value\"}'`; `belljar tools inspect \
                      TOOL` shows the schema";

/// Parses the arguments, which must be a JSON object; `-` reads them from stdin.
fn parse_arguments(given: &str) -> Result<String, Failure> {
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
    match belljar_received::json::from_str::<Value>(&text) {
        Ok(Value::Object(_)) => Ok(text),
        Ok(_) => Err(Failure::usage("the arguments are not a JSON object").with_hint(OBJECT)),
        Err(error) => {
            Err(Failure::usage(format!("the arguments are not JSON: {error}")).with_hint(OBJECT))
        }
    }
}

/// Finds the component named on the command line, by its file, its name or one of its tools, and the chosen
/// tool.
fn find_tool(
    args: &ToolCallArgs,
    whose: &AgentOwner,
    out: &TerminalOutput,
) -> Result<(CalledTool, belljar_sandbox::Sandbox), Failure> {
    let word = args.component.as_str();
    let chosen = args.tool.as_deref().map(ToolName::new).transpose();
    let chosen = chosen.map_err(|error| Failure::usage(error.to_string()))?;
    if tools::is_path(word) {
        let (wasm, ask) = with_manifest(tools::read_component(word)?, Path::new(word), out)?;
        let found = CalledTool { wasm, ask, config: BTreeMap::new(), tool: chosen };
        return Ok((found, host::make_sandbox(&whose.places, out)?));
    }
    let host = whose.build_host(out)?;
    let (component, named) = match host.tools.find_component(word) {
        Some(owner) => (owner, ToolName::new(word).ok()),
        None => {
            let all = host.tools.components().iter();
            let component = all.into_iter().find(|component| component.name.as_str() == word);
            (component.ok_or_else(|| tools::no_tool(&host, word))?, None)
        }
    };
    let found = CalledTool {
        wasm: component.wasm.clone(),
        ask: component.manifest.ask.clone(),
        config: component.config.as_ref().clone(),
        tool: chosen.or(named),
    };
    Ok((found, host.sandbox.clone()))
}

/// Reads the `tool.toml` beside a component file: how it is called, and its requests. Without a file it
/// requests nothing.
fn with_manifest(
    wasm: Wasm,
    component: &Path,
    out: &TerminalOutput,
) -> Result<(Wasm, ToolAsk), Failure> {
    let path = component.with_file_name("tool.toml");
    if !path.exists() {
        out.note(format_args!("there is no `{}`, so the tool gets no mount", path.to_shown()));
        return Ok((wasm, ToolAsk::default()));
    }
    let text = read_bounded(&path, MAX_MANIFEST_BYTES).map_err(|error| {
        Failure::usage(format!("failed to read `{}`: {error}", path.to_shown()))
    })?;
    let manifest = ToolManifest::parse(&path, &String::from_utf8_lossy(&text))
        .map_err(|diagnostics| Failure::from_diagnostics("", diagnostics))?;
    let wasm = belljar_catalogue::wrap_command(wasm, &manifest)
        .map_err(|why| Failure::usage(format!("`{}`: `[command]`: {why}", path.to_shown())))?;
    Ok((wasm, manifest.ask))
}

/// The name of the tool in a component that has a single tool.
async fn only_tool(
    sandbox: &belljar_sandbox::Sandbox,
    wasm: &Wasm,
    path: &str,
) -> Result<ToolName, Failure> {
    let path = ShownText::new(path);
    let infos = sandbox.describe_tools(wasm).await;
    let infos = infos.map_err(|error| Failure::usage(format!("`{path}`: {error}")))?;
    match &infos[..] {
        [info] => Ok(info.name.clone()),
        infos => {
            let names: Vec<String> = infos.iter().map(|info| format!("`{}`", info.name)).collect();
            Err(Failure::usage(format!("`{path}` offers several tools: {}", names.join(", ")))
                .with_hint("say which with `--tool NAME`"))
        }
    }
}

/// The rights that the command line gives to the call.
struct CallRights<'a> {
    hosts: &'a [HostRule],
    access: MountAccess,
    /// The arguments as the person wrote them, for advice about hosts in them.
    arguments: &'a str,
}

fn mount_access(args: &ToolCallArgs) -> MountAccess {
    if args.allow_write { MountAccess::ReadWrite } else { MountAccess::Read }
}

/// Prints the output of the call, the tool's streams and log lines, and the refusals.
fn print_result(result: &CallResult, ask: &ToolAsk, given: &CallRights<'_>, out: &TerminalOutput) {
    if let Ok(ToolOutput { parts }) = &result.outcome {
        for part in parts {
            match part {
                OutputPart::Text(text) => out.print_text(&ShownText::multiline(text).to_string()),
                OutputPart::Json(text) => out.foreign_json(text),
                OutputPart::Attachment { name, media_type, data } => out.print_line(format_args!(
                    "attachment {} ({}, {})",
                    ShownText::new(name),
                    ShownText::new(media_type),
                    table::format_size(data.len() as u64)
                )),
            }
        }
    }
    let receipt = &result.receipt;
    crash::print_streams(receipt, out);
    for line in &receipt.logs {
        out.note(format_args!(
            "{}: {}",
            ShownText::new(&line.level),
            ShownText::new(&line.message)
        ));
    }
    print_denials(receipt, ask, given, out);
    out.note(format_args!(
        "{}, {} fuel, {} read, {} written",
        table::format_micros(receipt.times.total),
        table::format_fuel(receipt.fuel),
        table::format_size(receipt.bytes.read),
        table::format_size(receipt.bytes.written)
    ));
}

/// Prints the refusals. Below the first refusal of each host, and below the first refused write, is what
/// would allow it.
fn print_denials(receipt: &Receipt, ask: &ToolAsk, given: &CallRights<'_>, out: &TerminalOutput) {
    let mut advised = BTreeSet::new();
    let hint =
        |line: &str| out.note(format_args!("  {} {line}", out.paint_err(TextStyle::Cyan, "hint:")));
    for denial in &receipt.denials {
        out.note(format_args!("refused: {}: {}", denial.code, ShownText::new(&denial.facts)));
        for line in refused::for_write(denial, ask, given.access) {
            if advised.insert(line.clone()) {
                hint(&line);
            }
        }
        let Some(target) = refused::denied_target(denial) else { continue };
        let shown = target.to_string();
        if !denial.facts.contains(&shown) {
            out.note(format_args!("  it asked for `{shown}`"));
        }
        if advised.insert(shown) {
            let lines = refused::for_call(&target, ask, given.hosts, given.arguments);
            lines.iter().for_each(|line| hint(line));
        }
    }
}

/// The result as a JSON object: outcome and receipt.
fn as_json(result: &CallResult) -> Value {
    let outcome = match &result.outcome {
        Ok(output) => json!({ "parts": output.parts.iter().map(part_json).collect::<Vec<_>>() }),
        Err(error) => json!({ "error": error.to_string() }),
    };
    json!({ "outcome": outcome, "receipt": result.receipt })
}

/// One part of a tool's output as a JSON object.
fn part_json(part: &OutputPart) -> Value {
    match part {
        OutputPart::Text(text) => json!({ "text": text }),
        OutputPart::Json(text) => {
            json!({ "json": serde_json::from_str::<Value>(text).unwrap_or_default() })
        }
        OutputPart::Attachment { name, media_type, data } => {
            json!({ "attachment": name, "media_type": media_type, "bytes": data.len() })
        }
    }
}
