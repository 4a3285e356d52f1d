//! `belljar tools add`: installs a stranger's build, after showing the component, its imports, the possible
//! ones among them, and its requests.

use std::fmt::Write as _;
use std::path::Path;

use belljar_definition::ToolManifest;
use belljar_policy::{HostRule, PeersAsk, Shown, ShownPath as _, ToolAsk, ToolName};
use belljar_sandbox::{ComponentKind, Digest, Inspection, LoadError, Need, Sandbox, Wasm};

use crate::args::tools::ToolAddArgs;
use crate::commands::tools::install::{self, MANIFEST, New};
use crate::commands::tools::{inspect, words};
use crate::setup::embedded::STOCK_TOOLS;
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::{MAX_COMPONENT_BYTES, Places, read_bounded};
use crate::setup::host;
use crate::setup::whose::Whose;
use crate::term::out::{Out, Style};
use crate::term::table::{self, Table, plain, styled};

pub(super) fn run(args: &ToolAddArgs, operator: &Places, out: &Out) -> Result<Exit, Failure> {
    let whose = Whose::to_change(&args.of, operator)?;
    let name = name(args)?;
    let file = args.file.as_path();
    let bytes = read_bounded(file, MAX_COMPONENT_BYTES)
        .map_err(|error| Failure::usage(format!("failed to read `{}`: {error}", file.shown())))?;
    let manifest = manifest(args, out)?;
    let sandbox = host::sandbox(&whose.places, out)?;
    let (bytes, inspection) = component(file, bytes, &sandbox, out)?;
    let wasm = install::called(Wasm::new(bytes).named(name.as_str()), &manifest)?;
    show(&wasm, &inspection, &manifest, &sandbox, out)?;
    let new = New { name: &name, wasm, manifest, yes: args.yes, asks: true, of: &args.of };
    install::run(&new, operator, &whose.places, out)
}

/// The name to install it under: as given, or made of the file's.
fn name(args: &ToolAddArgs) -> Result<String, Failure> {
    let name = match &args.name {
        Some(name) => name.clone(),
        None => own_name(&args.file),
    };
    let legal = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if !legal || ToolName::new(&name).is_err() {
        let shown = Shown::clipped(&name, 80);
        return Err(Failure::usage(format!("`{shown}` is no name for a tool"))
            .hint("name it with `--name`: a small letter, then small letters, digits or `_`"));
    }
    if STOCK_TOOLS.iter().any(|stock| stock.name == name) {
        return Err(Failure::usage(format!("`{name}` is the name of a built-in tool"))
            .hint("name it otherwise with `--name`"));
    }
    Ok(name)
}

/// Names of files and folders without information about the tool: products of builds.
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

/// Parent folders of a file that may name its tool.
const MAX_ABOVE: usize = 5;

/// The suggested name: the file's own, or the folder's if the file's is generic.
fn own_name(file: &Path) -> String {
    let stem = legal(&file.file_stem().unwrap_or_default().to_string_lossy());
    let whole = file.canonicalize().unwrap_or_else(|_| file.to_path_buf());
    let folders = whole.ancestors().skip(1).take(MAX_ABOVE).filter_map(Path::file_name);
    let folders = folders.map(|name| legal(&name.to_string_lossy()));
    let says = |name: &String| !name.is_empty() && !NAMELESS.contains(&name.as_str());
    std::iter::once(stem.clone()).chain(folders).find(says).unwrap_or(stem)
}

/// The nearest name that a tool may have.
fn legal(name: &str) -> String {
    let legal = name.chars().map(|c| c.to_ascii_lowercase());
    let legal = legal.map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
    legal.skip_while(|c| !c.is_ascii_lowercase()).take(64).collect()
}

/// The manifest: named, found beside the file, or made from the options.
fn manifest(args: &ToolAddArgs, out: &Out) -> Result<String, Failure> {
    if let Some(path) = &args.manifest {
        return install::manifest(path);
    }
    let beside = args.file.with_file_name(MANIFEST);
    let stated = args.mounts.is_some() || !args.host.is_empty();
    if beside.is_file() {
        if stated {
            return Err(Failure::usage(format!("`{}` says what it asks for", beside.shown()))
                .hint("leave out `--mounts` and `--host`, or name another with `--manifest`"));
        }
        out.note(format_args!("its manifest is `{}`", beside.shown()));
        return install::manifest(&beside);
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

/// The component, made from a core module if necessary.
fn component(
    file: &Path,
    bytes: Vec<u8>,
    sandbox: &Sandbox,
    out: &Out,
) -> Result<(Vec<u8>, Inspection), Failure> {
    let refused = |why: String| Failure::usage(format!("`{}`: {why}", file.shown()));
    let (bytes, inspection) = match belljar_sandbox::inspect(&bytes) {
        Ok(inspection) => (bytes, inspection),
        Err(LoadError::CoreModule) => {
            let made = host::small_runtime()?.block_on(sandbox.adapt(&bytes));
            let made = made.map_err(|error| refused(error.to_string()))?;
            let digest = Digest::of(&bytes);
            out.note(format_args!("adapted from a core module, sha256:{digest}"));
            let inspection = belljar_sandbox::inspect(&made);
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
            .hint("name it as `component` under `[[hooks]]` in `belljar.toml`")),
        None => Err(refused("it exports nothing that can be called".to_owned())
            .hint("`belljar tools inspect FILE` shows what it exports")),
    }
}

/// The component, its imports, and the part that its manifest allows.
fn show(
    wasm: &Wasm,
    inspection: &Inspection,
    manifest: &str,
    sandbox: &Sandbox,
    out: &Out,
) -> Result<(), Failure> {
    let ask = ToolManifest::parse(Path::new(MANIFEST), manifest)
        .map_err(|found| Failure::diagnostics("the tool's manifest is not valid", found))?
        .ask;
    if let Some(kind) = inspection.kind {
        out.line(format_args!("kind    {kind}"));
    }
    out.line(format_args!("digest  sha256:{}", inspection.digest));
    out.line(format_args!("size    {}", table::size(inspection.size)));
    out.line("");
    let mut imports = Table::new(out, &["imports", "gets"]);
    for import in &inspection.imports {
        let (style, gets) = gets(import.need, &ask);
        imports.row([plain(Shown::new(&import.name)), styled(style, gets)]);
    }
    imports.print(out);
    let loaded = host::small_runtime()?.block_on(sandbox.load(wasm));
    let loaded = loaded.map_err(|error| Failure::new(format!("it does not load: {error}")))?;
    inspect::left_out(loaded.left_out(), out);
    out.line("");
    Ok(())
}

/// The part of an import that a tool with these requests has, if an agent is granted all of them.
fn gets(need: Need, ask: &ToolAsk) -> (Style, String) {
    match need {
        Need::Base | Need::Contract | Need::Config => (Style::Dim, "always there".to_owned()),
        Need::Files => match ask.mounts {
            Some(access) => (Style::Yellow, format!("the agent's mounts ({access})")),
            None => (Style::Dim, "no file: it asks for no mount".to_owned()),
        },
        Need::Network if ask.hosts.is_empty() => {
            (Style::Dim, "no host: it asks for none".to_owned())
        }
        Need::Network => {
            let hosts = ToolAsk { hosts: ask.hosts.clone(), ..ToolAsk::default() };
            (Style::Yellow, words::asks(&hosts))
        }
        Need::Peers if ask.peers == PeersAsk::None => {
            (Style::Dim, "no tool: it asks for none".to_owned())
        }
        Need::Peers => {
            let peers = ToolAsk { peers: ask.peers.clone(), ..ToolAsk::default() };
            (Style::Yellow, words::asks(&peers))
        }
        Need::Denied => (Style::Red, "nothing: calls are refused".to_owned()),
        Need::Unknown => (Style::Red, "the host does not know it".to_owned()),
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
            assert_eq!(own_name(&path), name, "{}", path.shown());
        }
        assert_eq!(own_name(Path::new("/tool.wasm")), "tool", "there is nothing else");
    }
}
