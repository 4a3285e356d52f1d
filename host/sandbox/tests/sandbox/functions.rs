//! Exported functions of ordinary components, used as tools.

use belljar_kit::{TestHost, component, wat_tool};
use belljar_sandbox::{
    CallError, ComponentKind, OutputPart, ToolErrorKind, Wasm, inspect_component,
};
use serde_json::{Value, json};

/// An interface with every type that JSON can represent. A list is returned unchanged, so the same few
/// instructions work for all types.
const WIT: &str = "
package test:values@1.0.0;
interface all {
  record point { x: s32, y: f64, label: option<string> }
  variant shape { dot, circle(f32), named(tuple<string, u8>) }
  enum colour { red, dark-blue }
  flags perms { read, write, exec }
  record everything {
    b: bool, a: s8, c: u8, d: s16, e: u16, f: s32, g: u32, h: s64, i: u64, j: f32, k: f64,
    letter: char, text: string, bytes: list<u8>, points: list<point>, shape: shape,
    colour: colour, perms: perms, outcome: result<u32, string>, unit: result,
    maybe: option<option<u8>>, pair: tuple<u8, string>,
  }
  echo: func(items: list<everything>) -> list<everything>;
  shout: func(text: string) -> string;
  blob: func(bytes: list<u8>) -> list<u8>;
  refuse: func(why: string) -> result<u8, string>;
  nothing: func();
  count: func() -> u32;
  resource handle { constructor(); name: func() -> string; }
  take: func(it: handle);
}
world values { export all; }";

const CORE: &str = r#"(module
  (memory (export "memory") 4)
  (global $heap (mut i32) (i32.const 4096))
  (global $calls (mut i32) (i32.const 0))
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 15)) (i32.const -16)))
    (global.set $heap (i32.add (local.get $at) (local.get 3)))
    (local.get $at))
  (func $same (param i32 i32) (result i32)
    (i32.store (i32.const 0) (local.get 0))
    (i32.store (i32.const 4) (local.get 1))
    (i32.const 0))
  (export "test:values/all@1.0.0#echo" (func $same))
  (export "test:values/all@1.0.0#shout" (func $same))
  (export "test:values/all@1.0.0#blob" (func $same))
  (func (export "test:values/all@1.0.0#refuse") (param i32 i32) (result i32)
    (i32.store (i32.const 16) (i32.const 1))
    (i32.store (i32.const 20) (local.get 0))
    (i32.store (i32.const 24) (local.get 1))
    (i32.const 16))
  (func (export "test:values/all@1.0.0#nothing"))
  (func (export "test:values/all@1.0.0#count") (result i32)
    (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
    (global.get $calls))
  (func (export "test:values/all@1.0.0#[constructor]handle") (result i32) (i32.const 0))
  (func (export "test:values/all@1.0.0#[method]handle.name") (param i32) (result i32)
    (i32.const 0))
  (func (export "test:values/all@1.0.0#take") (param i32)))"#;

fn values() -> Wasm {
    Wasm::new(component(WIT, CORE))
}

fn everything() -> Value {
    json!({
        "b": true, "a": -128, "c": 255, "d": -32768, "e": 65535, "f": -2147483648_i64,
        "g": 4294967295_u64, "h": i64::MIN, "i": u64::MAX, "j": 0.5, "k": 0.1,
        "letter": "ß", "text": "Ebbe\n\u{1f30a}", "bytes": "AAEC/w==",
        "points": [{ "x": 1, "y": 2.5, "label": null }, { "x": 3, "y": -0.25, "label": "b" }],
        "shape": { "named": ["n", 7] }, "colour": "dark-blue", "perms": ["read", "exec"],
        "outcome": { "err": "no" }, "unit": "ok", "maybe": { "some": null },
        "pair": [9, "nine"],
    })
}

#[tokio::test]
async fn every_type_that_json_holds_comes_back_as_it_went() {
    let host = TestHost::new();
    assert_eq!(inspect_component(values().bytes()).unwrap().kind, Some(ComponentKind::Functions));
    let jar = host.jar([values()]).await;
    let mut other = everything();
    other["shape"] = json!("dot");
    other["outcome"] = json!({ "ok": 3 });
    other["maybe"] = Value::Null;
    other["perms"] = json!([]);
    other["k"] = json!("NaN");
    let items = json!({ "items": [everything(), other] });
    let result = jar.call("test_values_all_echo", &items.to_string()).await;
    let output = result.outcome.unwrap();
    let [OutputPart::Json(text)] = output.parts.as_slice() else { panic!("{output:?}") };
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), items["items"]);
}

#[tokio::test]
async fn text_bytes_errors_and_nothing_each_have_their_form() {
    let host = TestHost::new();
    let jar = host.jar([values()]).await;
    let call = async |tool: &str, arguments: Value| {
        jar.call(&format!("test_values_all_{tool}"), &arguments.to_string()).await.outcome
    };
    let shout = call("shout", json!({ "text": "hey" })).await.unwrap();
    assert_eq!(shout.parts, [OutputPart::Text("hey".to_owned())]);
    let blob = call("blob", json!({ "bytes": "AAH/" })).await.unwrap();
    let [OutputPart::Attachment { data, .. }] = blob.parts.as_slice() else { panic!("{blob:?}") };
    assert_eq!(data.as_ref(), [0, 1, 255]);
    let error = call("refuse", json!({ "why": "low tide" })).await.unwrap_err();
    let message = "low tide".to_owned();
    assert_eq!(error, CallError::Tool { kind: ToolErrorKind::Failed, message });
    let nothing = call("nothing", json!({})).await.unwrap();
    assert_eq!(nothing.parts, [OutputPart::Json("null".to_owned())]);
    // The component has a store of its own, which stays alive between calls, like every tool's.
    for turn in ["1", "2"] {
        let count = call("count", json!({})).await.unwrap();
        assert_eq!(count.parts, [OutputPart::Json(turn.to_owned())]);
    }
}

#[tokio::test]
async fn what_has_a_resource_is_left_out_by_name_and_the_rest_is_described() {
    let host = TestHost::new();
    let tools = host.sandbox.describe_tools(&values()).await.unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names.len(), 6, "{names:?}");
    let echo = tools.iter().find(|tool| tool.name.as_str() == "test_values_all_echo").unwrap();
    assert!(echo.hints.read_only, "it imports nothing");
    assert!(echo.description.contains("-> list<record"), "{}", echo.description);
    let item = &echo.schema["properties"]["items"]["items"];
    assert_eq!(item["properties"]["i"]["maximum"], json!(u64::MAX));
    assert_eq!(item["properties"]["colour"], json!({ "enum": ["red", "dark-blue"] }));
    assert_eq!(item["additionalProperties"], false);
    let loaded = host.sandbox.load_component(&values()).await.unwrap();
    let left_out: Vec<_> = loaded.left_out().iter().collect();
    assert_eq!(left_out.len(), 3, "{left_out:?}");
    assert!(left_out.iter().all(|it| it.reason.contains("resource")), "{left_out:?}");
    assert!(left_out.iter().any(|it| it.function == "test:values/all@1.0.0#take"));
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_refused_before_anything_runs() {
    let host = TestHost::new();
    let jar = host.jar([values(), Wasm::new(wat_tool("echo", ECHO))]).await;
    let wrong = [
        ("c", json!(256), "`c` is not a whole number of its range"),
        ("a", json!(1.5), "`a` is not a whole number"),
        ("i", json!(-1), "`i` is not a whole number"),
        ("j", json!(1e300), "too large for 32 bits"),
        ("letter", json!("ab"), "not one character"),
        ("bytes", json!("%%"), "not base64"),
        ("shape", json!("square"), "no case `square`"),
        ("shape", json!({ "circle": 1, "dot": null }), "neither a name"),
        ("shape", json!("circle"), "has no value"),
        ("colour", json!("red\u{202e}"), "no case `red\\u{202e}`"),
        ("perms", json!(["root"]), "no case `root`"),
        ("outcome", json!({ "maybe": 1 }), "no case `maybe`"),
        ("maybe", json!(3), "neither a name"),
        ("pair", json!([1]), "does not have 2 items"),
        ("points", json!([{ "x": 1 }]), "[0] `y` is missing"),
        ("extra", json!(1), "there is no `extra`"),
    ];
    for (field, value, why) in wrong {
        let mut item = everything();
        item[field] = value;
        let arguments = json!({ "items": [item] }).to_string();
        let result = jar.call("test_values_all_echo", &arguments).await;
        match result.outcome.unwrap_err() {
            CallError::Tool { kind: ToolErrorKind::InvalidArguments, message } => {
                assert!(message.contains(why), "{field}: {message}");
                assert!(message.starts_with("`items` [0]"), "{message}");
            }
            error => panic!("{field}: {error}"),
        }
    }
    // The count shows that no function was called in between. The neighbour answers.
    let counted = jar.call("test_values_all_count", "{}").await.outcome.unwrap();
    assert_eq!(counted.parts, [OutputPart::Json("1".to_owned())]);
    jar.call("echo", "{}").await.outcome.unwrap();
}

const ECHO: &str = "(call $text (local.get $args) (local.get $args_len))";

#[tokio::test]
async fn more_values_than_a_call_may_have_are_refused() {
    let host = TestHost::new();
    let jar = host.jar([values()]).await;
    let bytes = "A".repeat(4 * 500_000);
    let arguments = json!({ "bytes": bytes }).to_string();
    let error = jar.call("test_values_all_blob", &arguments).await.outcome.unwrap_err();
    assert!(error.to_string().contains("over 1000000 values"), "{error}");
}

#[tokio::test]
async fn cases_without_number_are_left_out_and_the_functions_beside_them_are_offered() {
    let named = |of: &str| (0..501).map(|n| format!("{of}{n}")).collect::<Vec<_>>().join(", ");
    let wit = format!(
        "package test:cases@1.0.0;\ninterface all {{\nenum many {{ {} }}\n\
         variant some {{ {}, last(u8) }}\nlook: func() -> list<many>;\n\
         pick: func(it: some);\ncount: func() -> u32;\n}}\nworld cases {{ export all; }}",
        named("a"),
        named("b")
    );
    let core = r#"(module
  (memory (export "memory") 1)
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 16))
  (func (export "test:cases/all@1.0.0#look") (result i32) (i32.const 16))
  (func (export "test:cases/all@1.0.0#pick") (param i32 i32))
  (func (export "test:cases/all@1.0.0#count") (result i32) (i32.const 7)))"#;
    let host = TestHost::new();
    let wasm = Wasm::new(component(&wit, core));
    let loaded = host.sandbox.load_component(&wasm).await.unwrap();
    let reasons: Vec<_> = loaded.left_out().iter().map(|it| it.reason.as_str()).collect();
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(reasons.iter().all(|it| it.contains("over 500 types and cases")), "{reasons:?}");
    let jar = host.jar([wasm]).await;
    let count = jar.call("test_cases_all_count", "{}").await.outcome.unwrap();
    assert_eq!(count.parts, [OutputPart::Json("7".to_owned())]);
}
