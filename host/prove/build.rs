//! Makes a component of every guest, and a constant of every component.
//!
//! `guests/NAME.wat` becomes the crate-private constant `NAME` of `src/guests.rs`, and so does
//! `prebuilt/NAME.wasm`. The crate denies dead code, so a guest that lies in its folder
//! without an attack that uses it fails the build.
//!
//! Most guests are a few fields of a core module: what a tool needs besides (memory,
//! allocation, `describe`, the form of an answer) is [`ANSWERS`]. A file that starts with
//! `(module` or `(component` is taken as it is.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context, Result, anyhow};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// What a fragment is put into. It has `func $invoke (param $tool i32) (param $tool_len i32)
/// (param $args i32) (param $args_len i32) (result i32)`, which gives a pointer to its answer:
/// `call $text ptr len`, `$json ptr len`, `$fail kind ptr len`. It may have a memory of its own
/// (exported as `memory`) and a `func $before_describe`. Bytes 0x300 to 0x10000 are its own; the
/// description lies at 0x10000, the heap starts at 0x20000.
const ANSWERS: &str = include_str!("../../tests/kit/src/answers.wat");

/// How `$invoke` is found.
const INVOKE: &str = r#"(export "belljar:tool/tools@0.1.0#invoke" (func $invoke))"#;

/// Where the answer of `describe` lies in a fragment's memory.
const DESCRIPTION: u32 = 0x1_0000;

fn main() -> Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let (guests, prebuilt) = (here.join("guests"), here.join("prebuilt"));
    let contract = here.join("../../guest-sdk/wit/tool.wit");
    let answers = here.join("../../tests/kit/src/answers.wat");
    for watched in [&guests, &prebuilt, &contract, &answers] {
        println!("cargo:rerun-if-changed={}", watched.display());
    }
    let worlds = Worlds { contract: text(&contract)?, guest: text(&guests.join("guest.wit"))? };
    let mut code = String::new();
    for (name, path) in files(&guests, "wat")? {
        println!("cargo:rerun-if-changed={}", path.display());
        let text = text(&path)?;
        let component = component(&worlds, &name, &text)
            .with_context(|| format!("`{}` is no guest", path.display()))?;
        let to = out.join(format!("{name}.wasm"));
        fs::write(&to, component)?;
        constant(&mut code, &name, &about(&text), &to)?;
    }
    for (name, path) in files(&prebuilt, "wasm")? {
        println!("cargo:rerun-if-changed={}", path.display());
        let about = format!("Built from `guests/{name}`.");
        constant(&mut code, &name, &about, &path)?;
    }
    fs::write(out.join("guests.rs"), code)?;
    Ok(())
}

/// The WIT texts that guests are written against.
struct Worlds {
    contract: String,
    guest: String,
}

/// The files of a folder with an ending, by stem, sorted.
fn files(folder: &Path, ending: &str) -> Result<Vec<(String, PathBuf)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|found| found == ending) {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            files.push((stem, path));
        }
    }
    files.sort();
    Ok(files)
}

/// One constant. Private to the crate, so that an unused one is dead code.
fn constant(code: &mut String, name: &str, about: &str, wasm: &Path) -> Result<()> {
    writeln!(
        code,
        "/// {about}\npub(crate) const {}: Guest = Guest {{ name: {name:?}, wasm: include_bytes!({wasm:?}) }};",
        name.to_uppercase()
    )?;
    Ok(())
}

/// The first comment of a guest.
fn about(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix(";;")).map(str::trim);
    lines.collect::<Vec<_>>().join(" ")
}

fn component(worlds: &Worlds, name: &str, text: &str) -> Result<Vec<u8>> {
    let body = text.lines().find(|line| !line.starts_with(";;") && !line.trim().is_empty());
    let body = body.unwrap_or_default();
    if body.starts_with("(component") {
        return Ok(wat::parse_str(text)?);
    }
    let whole = if body.starts_with("(module") { text.to_owned() } else { module(name, text)? };
    let mut module = wat::parse_str(&whole).map_err(|error| anyhow!("{error}"))?;
    let mut resolve = Resolve::default();
    resolve.push_str("tool.wit", &worlds.contract)?;
    let package = resolve.push_str("guest.wit", &worlds.guest)?;
    let world = resolve.select_world(&[package], Some("guest"))?;
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)?;
    ComponentEncoder::default().module(&module)?.validate(true).encode()
}

/// A core module around a fragment: its imports first, as the text format wants them.
fn module(name: &str, fragment: &str) -> Result<String> {
    let (imports, fields): (Vec<&str>, Vec<&str>) =
        fragment.lines().partition(|line| line.starts_with("(import "));
    let (imports, fields) = (imports.join("\n"), fields.join("\n"));
    let memory =
        if fields.contains("(export \"memory\")") { "" } else { "(memory (export \"memory\") 4)" };
    let first =
        if fields.contains("(func $before_describe") { "(call $before_describe)" } else { "" };
    let data = description(name)?;
    Ok(format!(
        r#"(module
  {imports}
  {memory}
  (data (i32.const {DESCRIPTION}) "{data}")
  {fields}
  {ANSWERS}
  {INVOKE}
  (func (export "belljar:tool/tools@0.1.0#describe") (result i32)
    {first}
    (i32.const {DESCRIPTION})))"#
    ))
}

/// The memory image of the answer of `describe`: one read-only tool, as the text of a data
/// segment.
fn description(name: &str) -> Result<String> {
    const RECORD: usize = 28;
    const READ_ONLY: u8 = 1;
    let first_string = 8 + RECORD;
    let about = format!("The hostile tool {name}.");
    let mut strings = Vec::new();
    let mut image = Vec::new();
    image.extend((DESCRIPTION + 8).to_le_bytes());
    image.extend(1_u32.to_le_bytes());
    for text in [name, &about, r#"{"type": "object"}"#] {
        let at = DESCRIPTION + u32::try_from(first_string + strings.len())?;
        image.extend(at.to_le_bytes());
        image.extend(u32::try_from(text.len())?.to_le_bytes());
        strings.extend(text.bytes());
    }
    image.extend([READ_ONLY, 0, 0, 0]);
    image.extend(strings);
    let mut data = String::new();
    for byte in image {
        write!(data, "\\{byte:02x}")?;
    }
    Ok(data)
}

fn text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| path.display().to_string())
}
