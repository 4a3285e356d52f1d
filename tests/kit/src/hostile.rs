//! The components that `belljar prove` attacks with, from `host/prove/guests`.
//!
//! Most are a few fields of a core module: what a tool needs besides (memory, allocation,
//! `describe`, the form of an answer) is `answers.wat`. A text that starts with `(module` or
//! `(component` is taken as it is; a module with a `_start` is a command, and adapted.

use crate::guest::{ANSWERS, DESCRIPTION, WatTool, command, component};

/// How `$invoke` is found.
const INVOKE: &str = r#"(export "belljar:tool/tools@0.1.0#invoke" (func $invoke))"#;

/// A component of this name, of a text of `host/prove/guests` and of the world there.
///
/// A fragment has `func $invoke (param $tool i32) (param $tool_len i32) (param $args i32) (param
/// $args_len i32) (result i32)`, which gives a pointer to its answer: `call $text ptr len`, `$json
/// ptr len`, `$fail kind ptr len`. It may have a memory of its own (exported as `memory`) and a
/// `func $before_describe`. Bytes 0x300 to 0x10000 are its own; the description lies at 0x10000,
/// the heap starts at 0x20000.
pub fn hostile_guest(name: &str, text: &str, world: &str) -> Vec<u8> {
    let body = text.lines().find(|line| !line.starts_with(";;") && !line.trim().is_empty());
    let body = body.unwrap_or_default();
    if body.starts_with("(component") {
        return wat::parse_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    if body.starts_with("(module") && text.contains("_start") {
        command(text)
    } else if body.starts_with("(module") {
        component(world, text)
    } else {
        component(world, &module(name, text))
    }
}

/// A core module around a fragment: its imports first, as the text format wants them.
fn module(name: &str, fragment: &str) -> String {
    let (imports, fields): (Vec<&str>, Vec<&str>) =
        fragment.lines().partition(|line| line.starts_with("(import "));
    let (imports, fields) = (imports.join("\n"), fields.join("\n"));
    let memory =
        if fields.contains("(export \"memory\")") { "" } else { "(memory (export \"memory\") 4)" };
    let first =
        if fields.contains("(func $before_describe") { "(call $before_describe)" } else { "" };
    let mut tool = WatTool::new(name, "");
    for (_, description, _) in &mut tool.tools {
        *description = format!("The hostile tool {name}.");
    }
    let data = tool.description();
    format!(
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
    )
}
