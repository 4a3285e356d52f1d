//! Tool components from WebAssembly text.

use std::fmt::Write;

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

const CONTRACT: &str = include_str!("../../../guest-sdk/wit-0.1/tool.wit");
const HOOK_CONTRACT: &str = include_str!("../../../guest-sdk/wit-hook/hook.wit");

/// The rest that a tool in text needs: memory, allocation, the form of an answer.
pub(crate) const ANSWERS: &str = include_str!("answers.wat");

/// Where the answer of `describe` lies in a guest's memory.
pub(crate) const DESCRIPTION: u32 = 0x1_0000;

/// A tool component of which only `invoke` is written by hand.
#[derive(Debug, Clone)]
pub struct WatTool {
    /// The tools it describes: name, description, schema.
    pub tools: Vec<(String, String, String)>,
    /// The contract's flags: 1 read-only, 2 idempotent, 4 open-world.
    pub hints: u8,
    /// Imports of the core module: `(import "wasi:..." "..." (func $name ...))`.
    pub imports: String,
    /// The same for the world: `import wasi:...;`.
    pub world: String,
    /// WIT packages that the world needs: `package wasi:... { ... }`.
    pub packages: String,
    /// Further items of the core module: functions, globals, data below 64 KiB.
    pub items: String,
    /// Pages of memory at the start.
    pub pages: u32,
    /// The instructions of `describe` before it answers.
    pub describe: String,
    /// The body of `invoke`. Parameters: `$tool $tool_len $args $args_len`, all `i32`. Gives
    /// a pointer to the answer: call `$text ptr len`, `$json ptr len`, `$fail kind ptr len`.
    pub invoke: String,
}

/// A component with one tool, of which the body of `invoke` is given: see [`WatTool::invoke`].
pub fn wat_tool(name: &str, invoke: &str) -> Vec<u8> {
    WatTool::new(name, invoke).build()
}

/// A hook component of which the body of `check` is given. Parameters: `$event $event_len`.
/// Gives a pointer to the answer: call `$pass`, `$deny ptr len`, `$ask ptr len`,
/// `$narrow ptr len` or `$error ptr len`. The text `text` lies at 0x300.
pub fn wat_hook(check: &str, text: &str) -> Vec<u8> {
    let data = text.bytes().fold(String::new(), |mut data, byte| {
        write!(data, "\\{byte:02x}").unwrap();
        data
    });
    let core = format!(
        r#"(module
  (memory (export "memory") 2)
  (data (i32.const 0x300) "{data}")
  (global $heap (mut i32) (i32.const 0x10000))
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 7)) (i32.const -8)))
    (global.set $heap (i32.add (local.get $at) (local.get 3)))
    (local.get $at))
  (func $say (param $kind i32) (param $at i32) (param $len i32) (result i32)
    (i32.store (i32.const 0x100) (i32.const 0))
    (i32.store (i32.const 0x104) (local.get $kind))
    (i32.store (i32.const 0x108) (local.get $at))
    (i32.store (i32.const 0x10c) (local.get $len))
    (i32.const 0x100))
  (func $pass (result i32) (call $say (i32.const 0) (i32.const 0) (i32.const 0)))
  (func $deny (param i32 i32) (result i32)
    (call $say (i32.const 1) (local.get 0) (local.get 1)))
  (func $ask (param i32 i32) (result i32)
    (call $say (i32.const 2) (local.get 0) (local.get 1)))
  (func $narrow (param i32 i32) (result i32)
    (call $say (i32.const 3) (local.get 0) (local.get 1)))
  (func $error (param i32 i32) (result i32)
    (i32.store (i32.const 0x100) (i32.const 1))
    (i32.store (i32.const 0x104) (local.get 0))
    (i32.store (i32.const 0x108) (local.get 1))
    (i32.const 0x100))
  (func (export "belljar:hook/hooks@0.1.0#check")
    (param $event i32) (param $event_len i32) (result i32)
    {check}))"#
    );
    component("package test:hook;\nworld hook { export belljar:hook/hooks@0.1.0; }", &core)
}

impl WatTool {
    /// One read-only tool.
    pub fn new(name: &str, invoke: &str) -> Self {
        let schema = r#"{"type": "object"}"#.to_owned();
        Self {
            tools: vec![(name.to_owned(), format!("The test tool {name}."), schema)],
            hints: 1,
            imports: String::new(),
            world: String::new(),
            packages: String::new(),
            items: String::new(),
            pages: 4,
            describe: String::new(),
            invoke: invoke.to_owned(),
        }
    }

    /// The component.
    pub fn build(&self) -> Vec<u8> {
        let Self { imports, items, pages, describe, invoke, .. } = self;
        let data = self.description();
        let core = format!(
            r#"(module
  {imports}
  (memory (export "memory") {pages})
  (data (i32.const {DESCRIPTION}) "{data}")
  {ANSWERS}
  {items}
  (func (export "belljar:tool/tools@0.1.0#describe") (result i32)
    {describe}
    (i32.const {DESCRIPTION}))
  (func (export "belljar:tool/tools@0.1.0#invoke")
    (param $tool i32) (param $tool_len i32) (param $args i32) (param $args_len i32) (result i32)
    {invoke}))"#
        );
        let world = format!(
            "package test:guest;\nworld guest {{ {} export belljar:tool/tools@0.1.0; }}\n{}",
            self.world, self.packages
        );
        component(&world, &core)
    }

    /// The memory image of the answer, as the text of a data segment.
    pub(crate) fn description(&self) -> String {
        const DEFINITION: usize = 28;
        let list = 8;
        let mut strings = Vec::new();
        let mut records = Vec::new();
        let first_string = list + DEFINITION * self.tools.len();
        for (name, description, schema) in &self.tools {
            for text in [name, description, schema] {
                let at = DESCRIPTION + u32::try_from(first_string + strings.len()).unwrap();
                records.extend(at.to_le_bytes());
                records.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
                strings.extend(text.bytes());
            }
            records.extend([self.hints, 0, 0, 0]);
        }
        let mut image = Vec::new();
        image.extend((DESCRIPTION + 8).to_le_bytes());
        image.extend(u32::try_from(self.tools.len()).unwrap().to_le_bytes());
        image.extend(records);
        image.extend(strings);
        assert!(image.len() < 0x1_0000, "the description is too long for a fixture");
        image.iter().fold(String::new(), |mut text, byte| {
            write!(text, "\\{byte:02x}").unwrap();
            text
        })
    }
}

/// A command of preview 1 in text, adapted as `belljar tools add` does it.
pub fn command(core: &str) -> Vec<u8> {
    let module = wat::parse_str(core).unwrap_or_else(|error| panic!("{error}\n{core}"));
    belljar_sandbox::adapt_here(&module).unwrap_or_else(|error| panic!("{error}\n{core}"))
}

/// Any component: a world in WIT (its only world counts; the contract is at hand unless the
/// text has one of its own) and a core module in text that implements it.
pub fn component(wit: &str, core: &str) -> Vec<u8> {
    let mut module = wat::parse_str(core).unwrap_or_else(|error| panic!("{error}\n{core}"));
    let mut resolve = Resolve::default();
    if !wit.contains("package belljar:tool") {
        resolve.push_str("tool.wit", CONTRACT).unwrap();
    }
    if !wit.contains("package belljar:hook") {
        resolve.push_str("hook.wit", HOOK_CONTRACT).unwrap();
    }
    let package = resolve.push_str("test.wit", wit).unwrap_or_else(|error| panic!("{error:?}"));
    let world = resolve.select_world(&[package], None).unwrap();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default()
        .module(&module)
        .unwrap_or_else(|error| panic!("{error:?}"))
        .validate(true)
        .encode()
        .unwrap_or_else(|error| panic!("{error:?}"))
}
