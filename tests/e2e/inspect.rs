//! `belljar tools`: whatever is called a component, and the tools themselves.

use std::path::Path;

use crate::kit::World;

const FILE_READ: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/prebuilt/file_read.wasm");

#[test]
fn garbage_a_core_module_and_a_cut_component_each_get_one_clear_message() {
    let world = World::new();
    let whole = std::fs::read(FILE_READ).unwrap();
    let cases: [(&str, &[u8], &str); 4] = [
        ("empty.wasm", b"", "not a WebAssembly file"),
        ("garbage.wasm", b"MZ\x90\0this is no wasm", "not a WebAssembly file"),
        ("core.wasm", b"\0asm\x01\0\0\0", "core module"),
        ("cut.wasm", &whole[..whole.len() / 2], "not a valid component"),
    ];
    for (name, bytes, text) in cases {
        let path = world.other(name, bytes);
        let done = world.run(&["tools", "inspect", path.to_str().unwrap()]).exits(2);
        assert_eq!(done.stdout, "", "{name}");
        assert_eq!(done.stderr.matches("error:").count(), 1, "{}", done.stderr);
        done.complains(text).complains(name);
    }
    world.run(&["tools", "inspect", "/nowhere.wasm"]).exits(2).complains("/nowhere.wasm");
    world.run(&["tools", "inspect", "file_raed"]).exits(2).complains("file_read");
}

#[test]
fn stock_tools_are_listed_and_inspected_without_compiling_one() {
    let world = World::new();
    let cache = world.home().join("a-cache-of-its-own");
    for args in [&["tools", "list"][..], &["tools", "inspect", "file_read"], &["agents", "list"]] {
        let done = world.command(args).env("BELLJAR_CACHE", &cache).output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
        let shown = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(shown.contains("file_read") || args[0] == "agents", "{shown}");
    }
    let kept = std::fs::read_dir(&cache).into_iter().flatten().map(Result::unwrap);
    let names: Vec<_> = kept.map(|entry| entry.file_name().into_string().unwrap()).collect();
    assert!(names.iter().all(|name| name == "key"), "{names:?}");
}

#[test]
fn a_component_shows_imports_needs_exports_digest_and_schemas() {
    let world = World::new();
    for name in [FILE_READ, "file_read"] {
        let done = world.run(&["tools", "inspect", name]).exits(0);
        done.says("wasi:filesystem/types").says("a mount").says("sha256:").says("\"path\"");
    }
    let shown = world.run(&["tools", "inspect", "file_read", "--json"]).exits(0).json();
    assert_eq!(shown["tools"][0]["name"], "file_read");
    assert!(shown["exports"].to_string().contains("belljar:tool/tools"));
}

#[test]
fn a_tool_can_be_called_by_hand_and_sees_only_the_workspace() {
    let world = World::new();
    world.file("note.txt", "hello\n");
    world.other("secret.txt", b"nobody may read this");
    world.run(&["tools", "call", "file_read", r#"{"path": "note.txt"}"#]).exits(0).says("hello");
    let done = world.run(&["tools", "call", "file_read", r#"{"path": "../secret.txt"}"#]).exits(1);
    assert!(!done.stdout.contains("nobody") && !done.stderr.contains("nobody"));
    world.run(&["tools", "call", "file_read", "{"]).exits(2).complains("JSON");
    world.run(&["tools", "call", "file_read", "[1]"]).exits(2).complains("object");
}

#[test]
fn writing_by_hand_needs_a_flag() {
    let world = World::new();
    let args = ["tools", "call", "file_write", r#"{"path": "new.txt", "content": "x"}"#];
    world.run(&args).exits(1);
    assert!(!world.workspace().join("new.txt").exists());
    let mut allowed = args.to_vec();
    allowed.push("--allow-write");
    world.run(&allowed).exits(0);
    assert_eq!(std::fs::read_to_string(world.workspace().join("new.txt")).unwrap(), "x");
}

#[test]
fn tools_list_names_the_stock_tools_in_a_fixed_order() {
    let world = World::new();
    let list = world.run(&["tools", "list", "--json"]).exits(0).json();
    let names: Vec<&str> =
        list.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"file_read"), "{names:?}");
    assert!(names.is_sorted(), "{names:?}");
    world.run(&["tools", "list"]).exits(0).says("file_read");
}

#[test]
fn a_tool_in_the_home_that_takes_a_built_in_name_is_reported_and_harms_nothing() {
    let world = World::new();
    let wasm = std::fs::read(FILE_READ).unwrap();
    let dir = world.home().join("tools/mine");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("tool.wasm"), &wasm).unwrap();
    world.home_file(
        "tools/mine/tool.toml",
        "manifest = 1\ndescription = \"x\"\nmounts = \"read\"\n",
    );
    world.home_file("tools/junk/tool.wasm", "junk");
    let done = world.run(&["tools", "list"]).says("file_read").complains("mine").complains("junk");
    assert_eq!(done.code, 1, "{}", done.stderr);
}

#[test]
fn tools_new_writes_a_project_that_names_its_sdk() {
    let world = World::new();
    world.run(&["tools", "new", "word_count"]).exits(0);
    let project = world.workspace().join("word_count");
    for file in ["Cargo.toml", "src/lib.rs", "tool.toml", "README.md", "sdk/wit/tool.wit"] {
        assert!(project.join(file).is_file(), "{file}");
    }
    world.run(&["tools", "new", "word_count"]).exits(1).complains("word_count");
    world.run(&["tools", "new", "../x"]).exits(2).complains("not a tool name");
    assert!(!Path::new(&world.workspace()).join("../x").exists());
}
