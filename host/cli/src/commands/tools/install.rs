//! `belljar tools build --install` and `belljar tools add`: installs a tool into a home, the operator's or a
//! tenant's, after listing the component's tools and showing the changes. A tool pinned in the home's
//! `belljar.toml` is pinned anew, with a person's consent.

use std::fmt::Write as _;
use std::path::Path;

use belljar_definition::{BUILTIN_TOOLS, FINDER_TOOLS, ToolManifest};
use belljar_policy::{ShownPath as _, ShownText};
use belljar_sandbox::{Sandbox, ToolInfo, Wasm};
use serde_json::json;

use crate::args::server::TenantArg;
use crate::commands::tools::words::{format_hints, format_requests};
use crate::setup::below::{self, FileAudience};
use crate::setup::config_lock::ConfigLock;
use crate::setup::embedded::STOCK_TOOLS;
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::{
    HomePaths, MAX_COMPONENT_BYTES, MAX_MANIFEST_BYTES, not_written, read_bounded, read_own_config,
};
use crate::setup::host;
use crate::setup::ours::make_private;
use crate::setup::pins;
use crate::term::diff;
use crate::term::out::TerminalOutput;

/// The file name of an installed component.
pub(super) const COMPONENT: &str = "tool.wasm";

/// The file name of an installed manifest.
pub(super) const MANIFEST: &str = "tool.toml";

/// A tool that is about to be installed.
pub(super) struct ToolInstall<'a> {
    /// The name of its directory in the home.
    pub(super) name: &'a str,
    pub(super) wasm: Wasm,
    /// The text of the manifest, which was parsed already.
    pub(super) manifest: String,
    /// True if no person is asked.
    pub(super) yes: bool,
    /// True if a person is asked even if no pin changes.
    pub(super) asks: bool,
    /// Names the owner of the home: the operator or a tenant.
    pub(super) of: &'a TenantArg,
}

/// A component and its manifest, in forms that can be compared with another version.
struct ToolVersion {
    wasm: Wasm,
    manifest: String,
    /// The imports and tools of the component as text, a line for each.
    offers: String,
}

/// Installs the tool, and writes a line to the owner's audit log. Nothing is written unless the component
/// lists its tools, their names are free, and a person agrees to a changed pin.
///
/// # Errors
///
/// When the component or its manifest is invalid, when there is nobody to ask, or when the home cannot be
/// written.
pub(super) fn run(
    new: &ToolInstall<'_>,
    operator: &HomePaths,
    places: &HomePaths,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let ToolInstall { name, yes, of, .. } = new;
    let manifest = new.manifest.clone();
    let wasm = &call_as_command(new.wasm.clone(), &manifest)?;
    let sandbox = host::make_sandbox(places, out)?;
    let tools = list_offered_tools(name, wasm, &sandbox)?;
    let to = places.tools_directory().join(name);
    let offers = offer_text(wasm, &Ok(tools.clone()))?;
    let version = ToolVersion { wasm: wasm.clone(), manifest, offers };
    let settings = host::read_settings(places)?;
    let pin = pins::pinned_digest(&settings, name);
    let digest = version.component_digest();
    let moves_pin = pin.is_some_and(|pin| pin != digest);
    let old = installed_version(&to, &sandbox);
    // A person who granted the pinned tool agreed to its manifest too, because it limits the agents' rights.
    let asks_for_other = old.as_ref().is_some_and(|old| old.manifest != version.manifest);
    match old {
        Some(old) if old.is_same(&version) && !moves_pin => {
            out.print_line(format_args!(
                "nothing to change: {} holds this component",
                to.to_shown()
            ));
            return Ok(CommandExit::Completed);
        }
        Some(old) => {
            if pin.is_some_and(|pin| pin != old.component_digest()) {
                out.print_warning(
                    "what is installed is not the component that `belljar.toml` pins",
                );
            }
            print_changes(&old, &version, out);
        }
        None => print_first_install(&tools, &version.manifest, out),
    }
    let question = match (moves_pin, pin.is_some() && asks_for_other) {
        (true, _) => {
            Some(format!("`{name}` is pinned: install this component, and pin it instead?"))
        }
        (false, true) => Some(format!("`{name}` is pinned: install this manifest for it?")),
        (false, false) => new.asks.then(|| format!("install `{name}`?")),
    };
    if let Some(question) = question
        && !ask_agreement(&question, *yes, out)?
    {
        return Ok(CommandExit::Cancelled);
    }
    write_version(&to, &places.home, &version)?;
    out.print_line(format_args!("installed in {}", to.to_shown()));
    if moves_pin {
        let path = places.config_path();
        let lock = ConfigLock::lock_file(&path)?;
        let old = read_own_config(&path)?.unwrap_or_default();
        let text = pins::with_digest(&old, name, &digest)
            .ok_or_else(|| Failure::usage(format!("`{}` is not valid", path.to_shown())))?;
        lock.replace_text(&old, &text)?;
        out.print_line(format_args!("pinned {digest} in {}", path.to_shown()));
    } else if pin.is_none() {
        out.note(grant_advice(name, &digest, &tools, of));
    }
    let detail = json!({ "digest": digest, "pinned": moves_pin });
    let what = ("install_tool", "the tool is installed");
    of.audit_action(operator, what, vec![((*name).to_owned(), detail)])?;
    Ok(CommandExit::Completed)
}

/// The command that grants the tool to an agent. For a component with a single tool of its own name, that
/// grant also pins the component.
fn grant_advice(name: &str, digest: &str, tools: &[ToolInfo], of: &TenantArg) -> String {
    let own = tools.iter().any(|tool| tool.name.as_str() == name);
    let grant = of.format_command(&format!("belljar grant AGENT --tool {name}"));
    match tools {
        [_] if own => format!("next: `{grant}` lets an agent call it"),
        _ if own => {
            format!(
                "next: `{grant}` pins it and lets an agent call `{name}`; then grant the others"
            )
        }
        _ => {
            let grant = of.format_command("belljar grant AGENT --tool TOOL");
            format!(
                "next: pin it in `belljar.toml` with the lines\n[tools.{name}]\ndigest = \
                 \"{digest}\"\nthen `{grant}` lets an agent call one of its tools"
            )
        }
    }
}

impl ToolVersion {
    fn component_digest(&self) -> String {
        format!("sha256:{}", self.wasm.digest())
    }

    fn is_same(&self, other: &Self) -> bool {
        self.wasm.digest() == other.wasm.digest() && self.manifest == other.manifest
    }
}

/// Reads a manifest, and returns its text if it is valid.
pub(super) fn read_manifest(path: &Path) -> Result<String, Failure> {
    let text = read_bounded(path, MAX_MANIFEST_BYTES).map_err(|error| {
        Failure::usage(format!("failed to read `{}`: {error}", path.to_shown()))
    })?;
    let text = String::from_utf8(text)
        .map_err(|_| Failure::usage(format!("`{}` is not valid UTF-8", path.to_shown())))?;
    match ToolManifest::parse(path, &text) {
        Ok(_) => Ok(text),
        Err(found) => Err(Failure::from_diagnostics("the tool's manifest is not valid", found)),
    }
}

/// Lists the component's tools; an error if no agent could use one.
fn list_offered_tools(
    name: &str,
    wasm: &Wasm,
    sandbox: &Sandbox,
) -> Result<Vec<ToolInfo>, Failure> {
    let refused = |why: String| Failure::new(format!("`{name}` is not installed: {why}"));
    let tools = host::small_runtime()?.block_on(sandbox.describe_tools(wasm));
    let tools = tools.map_err(|error| refused(error.to_string()))?;
    let taken = tools.iter().find(|tool| {
        let of_tool = |stock: &str| stock == tool.name.as_str();
        BUILTIN_TOOLS.iter().chain(&FINDER_TOOLS).copied().any(of_tool)
            || STOCK_TOOLS.iter().any(|it| of_tool(it.name))
    });
    match taken {
        None => Ok(tools.to_vec()),
        Some(tool) => Err(refused(format!("its tool `{}` has a name of belljar's own", tool.name))
            .with_hint("give the tool another name")),
    }
}

/// The installed version of this tool. `None` = not installed, or unreadable.
fn installed_version(dir: &Path, sandbox: &Sandbox) -> Option<ToolVersion> {
    let wasm = Wasm::new(read_bounded(&dir.join(COMPONENT), MAX_COMPONENT_BYTES).ok()?);
    let wasm = wasm.with_name(dir.file_name()?.to_string_lossy());
    let manifest = read_bounded(&dir.join(MANIFEST), MAX_MANIFEST_BYTES).unwrap_or_default();
    let manifest = String::from_utf8_lossy(&manifest).into_owned();
    let wasm = call_as_command(wasm.clone(), &manifest).unwrap_or(wasm);
    let tools = host::small_runtime().ok()?.block_on(sandbox.describe_tools(&wasm));
    let tools = tools.map(|tools| tools.to_vec()).map_err(|error| error.to_string());
    let offers = offer_text(&wasm, &tools).unwrap_or_else(|failure| failure.message);
    Some(ToolVersion { wasm, manifest, offers })
}

/// The imports of a component, and its tools with descriptions and schemas, as text with a line for each.
fn offer_text(wasm: &Wasm, tools: &Result<Vec<ToolInfo>, String>) -> Result<String, Failure> {
    let inspection = belljar_sandbox::inspect_component(wasm.bytes())
        .map_err(|error| Failure::new(format!("the component cannot be read: {error}")))?;
    let mut text = String::new();
    for import in &inspection.imports {
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "import {} ({})", import.name, import.need);
    }
    match tools {
        Err(why) => {
            let _ = writeln!(text, "its tools cannot be listed: {why}");
        }
        Ok(tools) => tools.iter().for_each(|tool| {
            let schema = serde_json::to_string_pretty(&tool.schema).unwrap_or_default();
            let _ = writeln!(
                text,
                "tool {} ({})\n{}\n{schema}",
                tool.name,
                format_hints(tool),
                tool.description
            );
        }),
    }
    Ok(text)
}

/// Prints what differs between two versions: imports, tools and requests.
fn print_changes(old: &ToolVersion, new: &ToolVersion, out: &TerminalOutput) {
    let offers = old.offers != new.offers;
    let manifest = old.manifest != new.manifest;
    if offers {
        diff::print_diff(COMPONENT, &old.offers, &new.offers, out);
    }
    if manifest {
        diff::print_diff(MANIFEST, &old.manifest, &new.manifest, out);
    }
    if !offers && !manifest {
        out.print_line(
            "its code changes; its tools, their schemas, its imports and tool.toml do not",
        );
    }
}

/// Prints the tools and requests of a newly installed component.
fn print_first_install(tools: &[ToolInfo], manifest: &str, out: &TerminalOutput) {
    for tool in tools {
        let description = ShownText::new(&tool.description);
        out.print_line(format_args!("tool {} ({}): {description}", tool.name, format_hints(tool)));
    }
    if let Ok(manifest) = ToolManifest::parse(Path::new(MANIFEST), manifest) {
        out.print_line(format_args!("asks for {}", format_requests(&manifest.ask)));
    }
}

/// Asks a person to agree to the change. For a pinned tool, yes means that agents with the tool use this
/// component, or their present component with this manifest.
fn ask_agreement(question: &str, yes: bool, out: &TerminalOutput) -> Result<bool, Failure> {
    if yes {
        return Ok(true);
    }
    match out.ask(question) {
        Some(true) => Ok(true),
        Some(false) => {
            out.note("nothing is installed");
            Ok(false)
        }
        None => {
            let what = question.split('?').next().unwrap_or_default();
            Err(Failure::usage(format!("there is nobody to ask ({what}), so nothing is installed"))
                .with_hint("look at what is shown above and repeat the command with `--yes`"))
        }
    }
}

/// Marks the component as a command, if its manifest says so.
pub(super) fn call_as_command(wasm: Wasm, manifest: &str) -> Result<Wasm, Failure> {
    let parsed = ToolManifest::parse(Path::new(MANIFEST), manifest)
        .map_err(|found| Failure::from_diagnostics("the tool's manifest is not valid", found))?;
    belljar_catalogue::wrap_command(wasm, &parsed).map_err(|why| {
        Failure::new(format!("the tool's manifest is not valid: `[command]`: {why}"))
    })
}

/// Writes the component and its manifest, each in one step. The checked bytes are written.
fn write_version(to: &Path, home: &Path, version: &ToolVersion) -> Result<(), Failure> {
    let directory = below::in_home(home, to);
    let directory = directory.map_err(|error| not_written("create", to, &error))?;
    for (name, bytes) in
        [(COMPONENT, version.wasm.bytes()), (MANIFEST, version.manifest.as_bytes())]
    {
        let put = directory.replace_file(Path::new(name), bytes, FileAudience::Owner);
        put.map_err(|error| not_written("write", &to.join(name), &error))?;
    }
    make_private(to)
        .map_err(|error| Failure::new(format!("failed to close `{}`: {error}", to.to_shown())))
}
