//! `belljar tools add`: installs a component that a stranger built, after showing its tools, its imports, and
//! which of these its manifest allows.

use std::fmt::Write as _;
use std::path::Path;

use belljar_definition::ToolManifest;
use belljar_policy::{HostRule, PeersAsk, ShownPath as _, ShownText, ToolAsk, ToolName};
use belljar_sandbox::{
    ComponentInspection, ComponentKind, Digest, ImportNeed, LoadError, Sandbox, Wasm,
};

use crate::args::tools::ToolAddArgs;
use crate::commands::tools::install::{self, MANIFEST, ToolInstall};
use crate::commands::tools::{inspect, words};
use crate::setup::embedded::STOCK_TOOLS;
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::{HomePaths, MAX_COMPONENT_BYTES, read_bounded};
use crate::setup::host;
use crate::setup::whose::AgentOwner;
use crate::term::out::{TerminalOutput, TextStyle};
use crate::term::table::{self, TextTable, plain_cell, styled_cell};

/// Runs the command: reads the component and its manifest, shows both, and installs them.
pub(super) fn run(
    args: &ToolAddArgs,
    operator: &HomePaths,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let whose = AgentOwner::to_change(&args.of, operator)?;
    let name = tool_name(args)?;
    let file = args.file.as_path();
    let bytes = read_bounded(file, MAX_COMPONENT_BYTES).map_err(|error| {
        Failure::usage(format!("failed to read `{}`: {error}", file.to_shown()))
    })?;
    let manifest = find_manifest(args, out)?;
    let sandbox = host::make_sandbox(&whose.places, out)?;
    let (bytes, inspection) = make_component(file, bytes, &sandbox, out)?;
    let wasm = install::call_as_command(Wasm::new(bytes).with_name(name.as_str()), &manifest)?;
    show_component(&wasm, &inspection, &manifest, &sandbox, out)?;
    let new = ToolInstall { name: &name, wasm, manifest, yes: args.yes, asks: true, of: &args.of };
    install::run(&new, operator, &whose.places, out)
}

/// The name under which the tool is installed: the given one, or one made of the file's name.
fn tool_name(args: &ToolAddArgs) -> Result<String, Failure> {
    let name = match &args.name {
        Some(name) => name.clone(),
        None => own_name(&args.file),
    };
    let legal = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if !legal || ToolName::new(&name).is_err() {
        let shown = ShownText::clip_line(&name, 80);
        return Err(Failure::usage(format!("`{shown}` is no name for a tool")).with_hint(
            "name it with `--name`: a small letter, then small letters, digits or `_`",
        ));
    }
    if STOCK_TOOLS.iter().any(|stock| stock.name == name) {
        return Err(Failure::usage(format!("`{name}` is the name of a built-in tool"))
            .with_hint("name it otherwise with `--name`"));
    }
    Ok(name)
}

/// Names of files and folders that builds produce, and that say nothing about the tool.
const NAMELESS: &[&str] = &[
    "a_out",
    "bin",
    "build",
    "component",
    "debug",
    "dist",
    "index",
    "main",
    "module",
    "out",
    "output",
    "pkg",
    "plugin",
    "release",
    "target",
    "tool",
    "wasm32_unknown_unknown",
    "wasm32_wasi",
    "wasm32_wasip1",
    "wasm32_wasip2",
];

/// The most folders above a file that are searched for a name.
const MAX_ABOVE: usize = 5;

/// A name for the tool: the file's own, or a folder's if the file's is generic.
fn own_name(file: &Path) -> String {
    let stem = legal_name(&file.file_stem().unwrap_or_default().to_string_lossy());
    let whole = file.canonicalize().unwrap_or_else(|_| file.to_path_buf());
    let folders = whole.ancestors().skip(1).take(MAX_ABOVE).filter_map(Path::file_name);
    let folders = folders.map(|name| legal_name(&name.to_string_lossy()));
    let says = |name: &String| !name.is_empty() && !NAMELESS.contains(&name.as_str());
    std::iter::once(stem.clone()).chain(folders).find(says).unwrap_or(stem)
}

/// Changes a name to one that a tool may have.
fn legal_name(name: &str) -> String {
    let legal = name.chars().map(|c| c.to_ascii_lowercase());
    let legal = legal.map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
    legal.skip_while(|c| !c.is_ascii_lowercase()).take(64).collect()
}

/// The text of the manifest: from the named file, from a file beside the component, or made from the options.
fn find_manifest(args: &ToolAddArgs, out: &TerminalOutput) -> Result<String, Failure> {
    if let Some(path) = &args.manifest {
        return install::read_manifest(path);
    }
    let beside = args.file.with_file_name(MANIFEST);
    let stated = args.mounts.is_some() || !args.host.is_empty();
    if beside.is_file() {
        if stated {
            return Err(Failure::usage(format!("`{}` says what it asks for", beside.to_shown()))
                .with_hint(
                    "leave out `--mounts` and `--host`, or name another with `--manifest`",
                ));
        }
        out.note(format_args!("its manifest is `{}`", beside.to_shown()));
        return install::read_manifest(&beside);
    }
    let mut text = "manifest = 1\n".to_owned();
    // Writing to a `String` cannot fail.
    if let Some(access) = &args.mounts {
        if !["read", "read-write"].contains(&access.as_str()) {
            return Err(Failure::usage("`--mounts` is neither `read` nor `read-write`"));
        }
        let _ = writeln!(text, "mounts = \"{access}\"");
    }
    if !args.host.is_empty() {
        let rule = |rule: &String| {
            let rule = rule.parse::<HostRule>().map_err(|e| Failure::usage(e.to_string()))?;
            Ok(toml::Value::from(rule.to_string()).to_string())
        };
        let rules = args.host.iter().map(rule).collect::<Result<Vec<_>, Failure>>()?;
        let _ = writeln!(text, "hosts = [{}]", rules.join(", "));
    }
    Ok(text)
}

/// The component in the file. A core module that is a command is adapted to one.
fn make_component(
    file: &Path,
    bytes: Vec<u8>,
    sandbox: &Sandbox,
    out: &TerminalOutput,
) -> Result<(Vec<u8>, ComponentInspection), Failure> {
    let refused = |why: String| Failure::usage(format!("`{}`: {why}", file.to_shown()));
    let (bytes, inspection) = match belljar_sandbox::inspect_component(&bytes) {
        Ok(inspection) => (bytes, inspection),
        Err(LoadError::CoreModule) => {
            let made = host::small_runtime()?.block_on(sandbox.adapt_module(&bytes));
            let made = made.map_err(|error| refused(error.to_string()))?;
            let digest = Digest::hash_bytes(&bytes);
            out.note(format_args!("adapted from a core module, sha256:{digest}"));
            let inspection = belljar_sandbox::inspect_component(&made);
            let inspection = inspection.map_err(|error| refused(error.to_string()))?;
            (made, inspection)
        }
        Err(error) => return Err(refused(error.to_string())),
    };
    match inspection.kind {
        Some(ComponentKind::Tool | ComponentKind::Command | ComponentKind::Functions) => {
            Ok((bytes, inspection))
        }
        Some(ComponentKind::Hook) => Err(refused("it is a hook, and no tool".to_owned())
            .with_hint("name it as `component` under `[[hooks]]` in `belljar.toml`")),
        None => Err(refused("it exports nothing that can be called".to_owned())
            .with_hint("`belljar tools inspect FILE` shows what it exports")),
    }
}

/// Shows the component's tools and imports, and for each import what the manifest allows.
fn show_component(
    wasm: &Wasm,
    inspection: &ComponentInspection,
    manifest: &str,
    sandbox: &Sandbox,
    out: &TerminalOutput,
) -> Result<(), Failure> {
    let ask = ToolManifest::parse(Path::new(MANIFEST), manifest)
        .map_err(|found| Failure::from_diagnostics("the tool's manifest is not valid", found))?
        .ask;
    if let Some(kind) = inspection.kind {
        out.print_line(format_args!("kind    {kind}"));
    }
    out.print_line(format_args!("digest  sha256:{}", inspection.digest));
    out.print_line(format_args!("size    {}", table::format_size(inspection.size)));
    out.print_line("");
    let mut imports = TextTable::new(out, &["imports", "gets"]);
    for import in &inspection.imports {
        let (style, gets) = granted_part(import.need, &ask);
        imports.push_row([plain_cell(ShownText::new(&import.name)), styled_cell(style, gets)]);
    }
    imports.print_to(out);
    let loaded = host::small_runtime()?.block_on(sandbox.load_component(wasm));
    let loaded = loaded.map_err(|error| Failure::new(format!("it does not load: {error}")))?;
    inspect::left_out(loaded.left_out(), out);
    out.print_line("");
    Ok(())
}

/// What a tool with these requests could do by an import, if an agent were granted all requests.
fn granted_part(need: ImportNeed, ask: &ToolAsk) -> (TextStyle, String) {
    match need {
        ImportNeed::Base | ImportNeed::Contract | ImportNeed::Config => {
            (TextStyle::Dim, "always there".to_owned())
        }
        ImportNeed::Files => match ask.mounts {
            Some(access) => (TextStyle::Yellow, format!("the agent's mounts ({access})")),
            None => (TextStyle::Dim, "no file: it asks for no mount".to_owned()),
        },
        ImportNeed::Network if ask.hosts.is_empty() => {
            (TextStyle::Dim, "no host: it asks for none".to_owned())
        }
        ImportNeed::Network => {
            let hosts = ToolAsk { hosts: ask.hosts.clone(), ..ToolAsk::default() };
            (TextStyle::Yellow, words::format_requests(&hosts))
        }
        ImportNeed::Peers if ask.peers == PeersAsk::None => {
            (TextStyle::Dim, "no tool: it asks for none".to_owned())
        }
        ImportNeed::Peers => {
            let peers = ToolAsk { peers: ask.peers.clone(), ..ToolAsk::default() };
            (TextStyle::Yellow, words::format_requests(&peers))
        }
        ImportNeed::Denied => (TextStyle::Red, "nothing: calls are refused".to_owned()),
        ImportNeed::Unknown => (TextStyle::Red, "the host does not know it".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_whose_name_says_nothing_is_called_as_its_folder() {
        let dir = tempfile::tempdir().unwrap();
        for (path, name) in [
            ("word-count.wasm", "word_count"),
            ("wc/tool.wasm", "wc"),
            ("Word-Count/component.wasm", "word_count"),
            ("lines/target/wasm32-wasip2/release/main.wasm", "lines"),
            ("target/wasm32-wasip2/release/lines.wasm", "lines"),
        ] {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            assert_eq!(own_name(&path), name, "{}", path.to_shown());
        }
        assert_eq!(own_name(Path::new("/tool.wasm")), "tool", "there is nothing else");
    }
}
