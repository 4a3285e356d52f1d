//! `belljar tools new` and `belljar tools build`: a tool of one's own.

use std::fs;
use std::path::{Path, PathBuf};

use belljar_policy::{Shown, ShownPath as _};
use belljar_sandbox::Wasm;

use crate::args::tools::ToolBuildArgs;
use crate::commands::tools::install::{self, New};
use crate::setup::embedded::{self, SDK};
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::{MAX_COMPONENT_BYTES, Places, read_bounded};
use crate::setup::whose::Whose;
use crate::term::out::Out;
use belljar_guest_build::{Build, Toolchain};

/// The embedded project; `{{name}}` in it is filled in.
const TEMPLATE: &str = "template/";

/// Writes a project that builds as it is, with the SDK that this belljar was made with.
pub(crate) fn new(name: &str, dir: Option<&Path>, out: &Out) -> Result<Exit, Failure> {
    check_name(name)?;
    let dir = dir.map_or_else(|| PathBuf::from(name), Path::to_path_buf);
    // Made here and not found: nothing in it can be somebody's work.
    fs::create_dir(&dir).map_err(|error| {
        Failure::new(format!("failed to create `{}`: {error}", dir.shown()))
            .hint("name a directory that does not exist yet with `--dir`")
    })?;
    for (path, template) in embedded::below(SDK, TEMPLATE) {
        // Under its own name it would hide files of belljar's own repository from git.
        let path = if path == "gitignore" { ".gitignore" } else { path };
        let text = String::from_utf8_lossy(template).replace("{{name}}", name);
        let to = dir.join(path);
        let write = || {
            to.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(&to, text)
        };
        write()
            .map_err(|error| Failure::new(format!("failed to write `{}`: {error}", to.shown())))?;
    }
    let sdk = SDK.iter().filter(|(path, _)| !path.starts_with(TEMPLATE)).copied();
    embedded::unpack(sdk, &dir.join("sdk"))?;
    out.line(format_args!("wrote the tool `{name}` to {}", dir.shown()));
    out.note(format_args!("next: `belljar tools build {}`", dir.shown()));
    Ok(Exit::Completed)
}

/// Builds a project and puts the component beside its manifest.
pub(crate) fn build(
    args: &ToolBuildArgs,
    places: impl FnOnce() -> Result<Places, Failure>,
    out: &Out,
) -> Result<Exit, Failure> {
    let dir = args.dir.as_path();
    if !dir.join("Cargo.toml").is_file() {
        return Err(Failure::usage(format!("`{}` holds no `Cargo.toml`", dir.shown()))
            .hint("start a tool with `belljar tools new NAME`"));
    }
    // What may be wrong is looked at before the build, which takes long.
    let to = to(args, places)?;
    let manifest = dir.join("tool.toml");
    if args.install || manifest.exists() {
        install::manifest(&manifest)?;
    }
    let toolchain = Toolchain::detect()?;
    out.note(format_args!("building with {}", toolchain.describe()));
    let target_dir = std::path::absolute(dir.join("target"))
        .map_err(|error| Failure::new(format!("failed to find `{}`: {error}", dir.shown())))?;
    let build = Build {
        root: dir,
        package: None,
        profile: "release",
        target_dir: &target_dir,
        locked: false,
    };
    let built = build.run(&toolchain)?;
    let component = dir.join("tool.wasm");
    copy(&built, &component)?;
    let wasm = read_bounded(&component, MAX_COMPONENT_BYTES).map_err(|error| {
        Failure::new(format!("failed to read `{}`: {error}", component.shown()))
    })?;
    let inspection = belljar_sandbox::inspect(&wasm)
        .map_err(|error| Failure::new(format!("`{}`: {error}", component.shown())))?;
    if inspection.tool_export.is_none() {
        return Err(Failure::new(format!("`{}` is not a belljar tool", component.shown()))
            .hint("publish a function with `belljar_guest::tools!`"));
    }
    out.line(format_args!("built {} (sha256:{})", component.shown(), inspection.digest));
    let Some((operator, whose)) = to else {
        out.note(format_args!("next: `belljar tools inspect {}`", component.shown()));
        return Ok(Exit::Completed);
    };
    let name = installed_name(dir)?;
    let wasm = Wasm::new(wasm).named(name.as_str());
    let new = New { name: &name, wasm, manifest: &manifest, yes: args.yes, of: &args.of };
    install::run(&new, &operator, &whose.places, out)
}

/// Where a build is installed: the operator's places, and whose home it is; `None` = nowhere.
fn to(
    args: &ToolBuildArgs,
    places: impl FnOnce() -> Result<Places, Failure>,
) -> Result<Option<(Places, Whose)>, Failure> {
    if args.install {
        let operator = places()?;
        let whose = Whose::to_change(&args.of, &operator)?;
        return Ok(Some((operator, whose)));
    }
    match args.of.is_named() {
        true => Err(Failure::usage("`--tenant` and `--data` say where a tool is installed")
            .hint("add `--install`, or leave them out")),
        false => Ok(None),
    }
}

/// The name under which a project is installed: that of its directory.
fn installed_name(dir: &Path) -> Result<String, Failure> {
    let name = dir.canonicalize().ok();
    let name = name.as_deref().and_then(Path::file_name).and_then(|name| name.to_str());
    let name = name.unwrap_or_default().replace('-', "_");
    check_name(&name)?;
    if embedded::STOCK_TOOLS.iter().any(|stock| stock.name == name) {
        return Err(Failure::usage(format!("`{name}` is the name of a built-in tool"))
            .hint("rename the project's directory"));
    }
    Ok(name)
}

/// Words that no Rust function can be called.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// A tool's name is a Rust function here, so it is narrower than what the policy accepts.
fn check_name(name: &str) -> Result<(), Failure> {
    if KEYWORDS.contains(&name) {
        return Err(Failure::usage(format!("`{name}` is a word of the Rust language"))
            .hint("choose a name of two words, such as `word_count`"));
    }
    if is_name(name) {
        return Ok(());
    }
    let failure = Failure::usage(format!("`{}` is not a tool name", Shown::clipped(name, 80)))
        .hint("use a lower-case letter, then letters, digits and `_`, at most 64 in all");
    let meant = name.to_ascii_lowercase().replace(['-', ' ', '.'], "_");
    let is_meant = is_name(&meant) && !KEYWORDS.contains(&meant.as_str());
    Err(if is_meant { failure.hint(format!("such as `{meant}`")) } else { failure })
}

fn is_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_lowercase)
        && bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'_')
        && bytes.len() <= 64
}

fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    fs::copy(from, to).map(drop).map_err(|error| {
        Failure::new(format!("failed to copy `{}` to `{}`: {error}", from.shown(), to.shown()))
    })
}

#[cfg(test)]
mod tests {
    use belljar_definition::ToolManifest;

    use super::*;

    #[test]
    fn a_new_project_holds_its_templates_and_the_sdk_and_no_placeholder() {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().join("p");
        new("word_count", Some(&project), &Out::new(true, false)).unwrap();
        for path in ["Cargo.toml", "src/lib.rs", "tool.toml", "README.md", ".gitignore"] {
            let text = fs::read_to_string(project.join(path)).unwrap();
            assert!(!text.contains("{{"), "{path}: {text}");
        }
        let cargo = fs::read_to_string(project.join("Cargo.toml")).unwrap();
        assert!(cargo.contains("name = \"word_count\""), "{cargo}");
        assert!(project.join("sdk/wit/tool.wit").is_file());
        assert!(project.join("sdk/rust/Cargo.toml").is_file());
        let manifest = fs::read_to_string(project.join("tool.toml")).unwrap();
        assert!(ToolManifest::parse(Path::new("tool.toml"), &manifest).is_ok());
    }

    #[test]
    fn a_directory_that_is_there_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        assert!(new("word_count", Some(dir.path()), &Out::new(true, false)).is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn names_that_are_no_rust_function_are_refused() {
        for bad in ["", "1a", "a-b", "Abc", "a/b", "../x", "fn", "fn\n"] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
        let hints = |name: &str| check_name(name).unwrap_err().hints;
        assert_eq!(hints("Word-Count")[1], "such as `word_count`");
        assert_eq!((hints("../x").len(), hints("Fn").len()), (1, 1));
    }
}
