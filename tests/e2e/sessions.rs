//! `belljar sessions`: what a chat left, shown, exported and deleted.

use serde_json::Value;

use crate::kit::World;

const TALK: &str = r#"
transcript: 1
agents:
  - agent: general-purpose
    turns:
      - say: "Good \u001b[2Jday."
"#;

/// A world with one session; its id.
fn talked() -> (World, String) {
    let world = World::new();
    let transcript = world.other("transcript.yaml", TALK.as_bytes());
    let args = ["chat", "--transcript", transcript.to_str().unwrap()];
    world.run_with_stdin(&args, "hello\n").exits(0);
    let id = list(&world)[0]["id"].as_str().unwrap().to_owned();
    (world, id)
}

fn list(world: &World) -> Vec<Value> {
    let sessions = world.run(&["sessions", "list", "--json"]).exits(0).json();
    sessions.as_array().unwrap().clone()
}

#[test]
fn a_session_is_listed_shown_and_exported_whole() {
    let (world, id) = talked();
    world.run(&["sessions", "list"]).exits(0).says(&id).says("hello");
    let shown = world.run(&["sessions", "show", &id[..15]]).exits(0).says("hello");
    assert!(!shown.stdout.contains('\u{1b}'), "{}", shown.stdout);
    let export = world.run(&["sessions", "export", &id]).exits(0).json();
    assert_eq!(export["session"]["id"], id.as_str());
    assert_eq!(export["messages"].as_array().unwrap().len(), 2);
    for list in ["subagents", "receipts", "answers", "attachments", "events"] {
        assert!(export[list].is_array(), "{list}");
    }
    world.run(&["sessions", "show", "1999"]).exits(2).complains("there is no session");
}

#[test]
fn the_latest_session_goes_by_that_name_wherever_one_is_named() {
    let world = World::new();
    for word in ["show", "export", "rm"] {
        world.run(&["sessions", word, "latest"]).exits(2).complains("no session");
    }
    let (world, id) = talked();
    world.run(&["sessions", "show", "latest"]).exits(0).says(&id).says("hello");
    let export = world.run(&["sessions", "export", "latest"]).exits(0).json();
    assert_eq!(export["session"]["id"], id.as_str());
    let none = world.other("none.yaml", b"transcript: 1\nagents: []\n");
    let args = ["chat", "--transcript", none.to_str().unwrap(), "--resume", "latest"];
    world.run_with_stdin(&args, "").exits(0).complains(&id);
    world.run(&["sessions", "rm", "latest"]).exits(2).complains("--yes");
    world.run(&["sessions", "rm", "latest", "--yes"]).exits(0).complains(&id);
    assert_eq!(list(&world).len(), 0);
    let unknown = world.run(&["sessions", "show", "nope"]).exits(2);
    unknown.complains("no session `nope`").complains("`latest`");
}

#[test]
fn nothing_is_deleted_without_a_word() {
    let (world, id) = talked();
    world.run(&["sessions", "rm", &id]).exits(2).complains("--yes");
    world.run(&["sessions", "rm", "--all"]).exits(2).complains("--yes");
    world.run(&["sessions", "rm"]).exits(2);
    assert_eq!(list(&world).len(), 1);
    world.run(&["sessions", "rm", &id, "--yes"]).exits(0);
    assert_eq!(list(&world).len(), 0);
    world.run(&["sessions", "rm", "--all", "--yes"]).exits(0);
}

#[test]
fn sessions_of_a_tenant_are_not_ones_own() {
    let (world, id) = talked();
    world.run(&["tenants", "add", "blue"]).exits(0);
    let none = world.run(&["sessions", "list", "--tenant", "blue", "--json"]).exits(0);
    assert_eq!(none.json().as_array().unwrap().len(), 0);
    world.run(&["sessions", "show", &id, "--tenant", "blue"]).exits(2);
    world.run(&["sessions", "rm", "--all", "--yes", "--tenant", "blue"]).exits(0);
    assert_eq!(list(&world).len(), 1);
    world.run(&["sessions", "list", "--tenant", "nobody"]).exits(2).complains("no tenant");
}
