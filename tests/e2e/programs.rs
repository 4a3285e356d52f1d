//! `belljar tools add` and `remove`: what somebody else has built, as a tool.

use serde_json::Value;

use crate::kit::World;

const SUITE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/peers/wasi-testsuite/assemblyscript/");
const PREBUILT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../prove/prebuilt/");

fn read(path: &str) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn a_core_module_is_shown_adapted_installed_granted_called_and_removed() {
    let world = World::new();
    let module = world.other("Say Hello.wasm", &read(&format!("{SUITE}fd_write-to-stdout.wasm")));
    let module = module.to_str().unwrap();
    // Nobody says yes, so it is looked at and no more.
    let before = world.home_state();
    let looked = world.run(&["tools", "add", module, "--mounts", "read"]).exits(2);
    let looked = looked.says("kind    command").says("the agent's mounts (read)");
    looked.says("always there").complains("nothing is installed");
    assert_eq!(world.home_state(), before);
    let added = world.run(&["tools", "add", module, "--mounts", "read", "--yes"]).exits(0);
    added.complains("adapted from a core module").says("asks for mounts (read)");
    world.run(&["tools", "add", module, "--mounts", "read", "--yes"]).exits(0).says("nothing to");
    world.home_file("agents/scout.md", "---\nname: scout\ndescription: d\n---\nLook.\n");
    world.run(&["grant", "scout", "--tool", "say_hello", "--yes"]).exits(0);
    let called = world.run(&["tools", "call", "say_hello", "{}"]).exits(0);
    called.says("\"exit_code\":0").says("hello");
    let shown = world.run(&["tools", "inspect", "say_hello", "--json"]).exits(0).json();
    assert_eq!(shown["kind"], "command");
    assert_eq!(shown["tools"][0]["name"], "say_hello");
    assert!(shown["tools"][0]["schema"]["properties"]["stdin"].is_object());
    // Another file under its name is nobody's until a person says so.
    let other = format!("{SUITE}proc_exit-failure.wasm");
    let asked = world.run(&["tools", "add", &other, "--name", "say_hello"]).exits(2);
    asked.complains("pin it instead");
    world.run(&["tools", "remove", "say_hello"]).exits(2).complains("nobody to ask");
    let removed = world.run(&["tools", "remove", "say_hello", "--yes"]).exits(0);
    removed.complains("grants `say_hello`").complains("still pins it");
    assert!(!world.home().join("tools/say_hello").exists());
    world.run(&["tools", "remove", "say_hello", "--yes"]).exits(2).complains("no tool `say_hello`");
    world.run(&["tools", "remove", "../agents", "--yes"]).exits(2);
    world.run(&["tools", "remove", "file_read", "--yes"]).exits(2).complains("a part of belljar");
    assert!(world.home().join("agents/scout.md").exists());
}

#[test]
fn an_installed_tool_that_nobody_pinned_says_so_in_a_line_and_what_to_do() {
    let world = World::new();
    for name in ["first", "other"] {
        let file = world
            .other(&format!("{name}/tool.wasm"), &read(&format!("{SUITE}proc_exit-success.wasm")));
        let added = world.run(&["tools", "add", file.to_str().unwrap(), "--yes"]).exits(0);
        // A build calls its file as it likes: the folder says what it is.
        added.says(&format!("tool {name} ("));
        assert!(world.home().join(format!("tools/{name}/tool.wasm")).exists());
    }
    let listed = world.run(&["tools", "list"]).exits(0);
    let lines: Vec<&str> = listed.stderr.lines().collect();
    assert_eq!(lines.len(), 3, "a line for each, and one for both: {}", listed.stderr);
    assert_eq!(listed.stderr.matches("` is not pinned").count(), 2);
    assert_eq!(listed.stderr.matches("belljar grant").count(), 1);
    for words in [&["tools", "call", "first", "{}"][..], &["tools", "inspect", "first"]] {
        let refused = world.run(words).exits(2).complains("tool `first` is not pinned");
        let refused = refused.complains("belljar grant AGENT --tool first");
        assert!(!refused.stderr.contains("tools list"), "{}", refused.stderr);
    }
    // What the hint says calls it.
    let path = world.home().join("tools/first/tool.wasm");
    world.run(&["tools", "call", path.to_str().unwrap(), "{}"]).exits(0);
    // A manifest that cannot be read is said where the tool is asked for.
    world.home_file("tools/first/tool.toml", "manifest = 1\n[command]\nworkspace_at = 'here'\n");
    let refused = world.run(&["tools", "call", "first", "{}"]).exits(2);
    refused.complains("is installed and cannot be used").complains("tool.toml: ");
    world.home_file("tools/first/tool.toml", "manifest = 1\nmounts = ['read']\n");
    world.run(&["tools", "call", "first", "{}"]).exits(2).complains("tool.toml:2:10: `mounts`");
}

#[test]
fn functions_are_offered_by_their_types_and_what_cannot_be_is_named() {
    let world = World::new();
    let loops = format!("{PREBUILT}fn_loop.wasm");
    let shown = world.run(&["tools", "inspect", &loops, "--json"]).exits(0).json();
    assert_eq!(shown["kind"], "functions");
    assert_eq!(shown["tools"][0]["name"], "fn_loop");
    let resource = format!("{PREBUILT}fn_resource.wasm");
    let refused = world.run(&["tools", "inspect", &resource]).exits(1);
    refused.complains("`take`: its parameter `file` holds a resource");
    world.run(&["tools", "add", &resource, "--yes"]).exits(1).complains("holds a resource");
    let impostor = format!("{PREBUILT}fn_impostor.wasm");
    let taken = world.run(&["tools", "add", &impostor, "--yes"]).exits(1);
    taken.complains("has a name of belljar's own");
    assert!(!world.home().join("tools").exists());
}

#[test]
fn a_manifest_beside_a_command_fixes_how_it_is_called() {
    let world = World::new();
    let module = read(&format!("{SUITE}proc_exit-failure.wasm"));
    let file = world.other("p/leave.wasm", &module);
    let text = "manifest = 1\ndescription = \"Leaves.\"\n[command]\nargs = [\"-q\", \"{name}\"]\n";
    world.other("p/tool.toml", text.as_bytes());
    let file = file.to_str().unwrap();
    world.run(&["tools", "add", file, "--host", "https://a.test"]).exits(2).complains("says what");
    world.run(&["tools", "add", file, "--yes"]).exits(0).says("Leaves.");
    world.run(&["grant", "--help"]).exits(0);
    let list: Value = world.run(&["tools", "list", "--json"]).json();
    assert!(!list.to_string().contains("\"leave\""), "it is not pinned");
    world.home_file("agents/scout.md", "---\nname: scout\ndescription: d\n---\nLook.\n");
    world.run(&["grant", "scout", "--tool", "leave", "--yes"]).exits(0);
    let called = world.run(&["tools", "call", "leave", r#"{"name": "now"}"#]).exits(0);
    called.says("\"exit_code\":33");
    let option = world.run(&["tools", "call", "leave", r#"{"name": "-v"}"#]).exits(1);
    option.complains("would be an option");
    world.other("p/tool.toml", b"manifest = 1\n[command]\nargs = [\"{\"]\n");
    world.run(&["tools", "add", file, "--yes"]).exits(1).complains("a brace without its other");
}
