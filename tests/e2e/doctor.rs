//! `belljar doctor`: what it says of files that are there and not as they should be.

use serde_json::Value;

use crate::kit::World;

/// The check of this name, if it was made.
fn check(world: &World, name: &str) -> Option<Value> {
    let checks = world.run(&["doctor", "--json"]).json();
    checks.as_array().unwrap().iter().find(|check| check["name"] == name).cloned()
}

#[test]
fn a_hook_component_has_to_be_one() {
    let world = World::new();
    assert_eq!(check(&world, "hooks"), None);
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let config = |component: &str| {
        let path = format!("{root}/{component}");
        assert!(std::path::Path::new(&path).is_file(), "{path}");
        let text = format!("[[hooks]]\nevent = \"PreToolUse\"\ncomponent = \"{path}\"\n");
        world.home_file("belljar.toml", &text);
        check(&world, "hooks").unwrap()
    };
    let good = config("guest-sdk/examples/hook-guard/hook_guard.wasm");
    assert_eq!(good["finding"], "good", "{good}");
    let tool = config("tools/prebuilt/file_read.wasm");
    assert_eq!(tool["finding"], "bad", "{tool}");
    assert!(tool.to_string().contains("not a belljar hook"), "{tool}");
    let text = config("README.md");
    assert!(
        text["finding"] == "bad" && text.to_string().contains("not a WebAssembly file"),
        "{text}"
    );
}

#[test]
fn a_library_that_was_changed_is_told_with_what_puts_it_right() {
    let world = World::new();
    assert_eq!(check(&world, "libraries"), None);
    let agent = b"---\nname: reader\ndescription: Reads.\ntools: Read\n---\nYou read.\n";
    let source = world.other("src/zoo/reader.md", agent);
    let source = source.parent().unwrap().to_str().unwrap();
    world.run(&["agents", "add", source, "--yes"]).exits(0);
    assert_eq!(check(&world, "libraries").unwrap()["finding"], "good");
    let shown = world.run(&["agents", "show", "reader", "--json"]).exits(0).json();
    let file = shown["path"].as_str().unwrap();
    std::fs::write(file, "---\nname: reader\ndescription: Other.\n---\nx\n").unwrap();
    let found = check(&world, "libraries").unwrap();
    assert_eq!(found["finding"], "bad");
    assert!(found.to_string().contains("belljar agents update zoo"), "{found}");
}

#[test]
fn broken_teams_and_skills_are_counted_and_the_way_to_more_is_named() {
    let world = World::new();
    world.home_file("skills/bad.md", "---\nname: bad\ndescription: [x]\n---\nx\n");
    world.home_file("teams/bad.yaml", "name: bad\n");
    for kind in ["skills", "teams"] {
        let found = check(&world, kind).unwrap();
        assert_eq!(found["finding"], "bad", "{found}");
        assert!(found.to_string().contains(&format!("belljar {kind} check")), "{found}");
    }
}

#[test]
fn a_tenant_whose_agents_may_write_can_be_served() {
    let world = World::new();
    world.run(&["tenants", "add", "acme"]).exits(0);
    let own = world.tenant("acme");
    let grant = "[grants.writer]\nmounts = [{ path = '/workspace', access = 'read-write' }]\n";
    world.home_file(&format!("{own}/home/belljar.toml"), grant);
    let said = world.run(&["doctor"]).stdout;
    assert!(said.contains("can be served") && !said.contains("cannot be served"), "{said}");
}
