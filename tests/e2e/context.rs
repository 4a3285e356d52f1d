//! `belljar context`: what a request costs with a library of a stranger, and why.

use crate::kit::World;

const SETTINGS: &str = "[models.main]\nkind = 'scripted'\nmodel = 'script.yaml'\n";

/// A home with so many agents of its own, one of them about herons.
fn world(agents: usize) -> World {
    let world = World::new();
    world.home_file("belljar.toml", SETTINGS);
    world.home_file("script.yaml", "transcript: 1\nagents: []\n");
    let about = "Checks programs of one kind for mistakes, and explains how each could be mended.";
    for n in 0..agents {
        let text = format!("---\nname: checker-{n}\ndescription: {about}\n---\nYou check.\n");
        world.home_file(&format!("agents/checker-{n}.md"), &text);
    }
    let heron = "---\nname: zoologist\ndescription: Knows where herons breed.\n---\nYou know.\n";
    world.home_file("agents/zoologist.md", heron);
    world
}

#[test]
fn the_parts_of_a_request_are_shown_with_their_tokens_and_what_is_found_instead_of_listed() {
    let world = world(150);
    let args = ["context", "general-purpose", "Where do herons breed?"];
    let done = world.run(&args).exits(0).says("`find_agent` finds the others").says("agents");
    let done = done.says("- `zoologist`: Knows where herons breed.").says("in all, to scripted:");
    assert!(!done.stdout.contains("system_notice"), "{}", done.stdout);
    let json = world.run(&[&args[..], &["--json"]].concat()).exits(0).json();
    let parts = json["parts"].as_array().unwrap();
    let sum: u64 = parts.iter().map(|part| part["tokens"].as_u64().unwrap()).sum();
    assert_eq!(json["tokens"], sum);
    let few = World::new();
    few.home_file("belljar.toml", SETTINGS);
    few.home_file("script.yaml", "transcript: 1\nagents: []\n");
    let few = few.run(&[&args[..], &["--json"]].concat()).exits(0).json();
    let more = sum - few["tokens"].as_u64().unwrap();
    assert!(more <= 1_500, "{more} tokens more than without: {json:#}");
    assert_eq!(few["matched"], serde_json::Value::Null);
}

#[test]
fn a_budget_and_pinned_names_are_settings_and_a_wrong_key_is_named() {
    let world = world(150);
    let settings = format!("{SETTINGS}[context]\nlibrary_tokens = 100000\n");
    world.home_file("belljar.toml", &settings);
    let args = ["context", "general-purpose", "hello", "--json"];
    let wide = world.run(&args).exits(0).json();
    world.home_file("belljar.toml", &format!("{SETTINGS}[context]\npinned = ['checker-149']\n"));
    let pinned = world.run(&args).exits(0).json();
    assert!(wide["tokens"].as_u64() > pinned["tokens"].as_u64(), "{wide:#}");
    world.home_file("belljar.toml", &format!("{SETTINGS}[context]\nbudget = 5\n"));
    world.run(&args).exits(2).complains("`budget` is not a key of `context`");
    world.home_file("belljar.toml", SETTINGS);
    world.run(&["context", "nobody", "hello"]).exits(2).complains("nobody");
    world.home_file("belljar.toml", "");
    world
        .run(&["context", "general-purpose", "hello"])
        .exits(5)
        .complains("no model is configured");
}
