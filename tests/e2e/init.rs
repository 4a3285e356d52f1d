//! `belljar init`.

use crate::kit::World;

#[test]
fn init_writes_a_configuration_four_agents_and_guidance() {
    let world = World::new();
    let done = world.run(&["init"]).exits(0);
    for file in [
        "belljar.toml",
        "AGENTS.md",
        "agents/general-purpose.md",
        "agents/research-assistant.md",
        "agents/code-analyst.md",
        "agents/summarizer.md",
    ] {
        assert!(world.home().join(file).is_file(), "{file}");
        assert!(done.stdout.contains(file), "{file}: {}", done.stdout);
    }
    world.run(&["agents", "check"]).exits(0);
    let guidance = std::fs::read_to_string(world.home().join("AGENTS.md")).unwrap();
    for said in [
        "two or more sources",
        "several topics",
        "a lot of text",
        "many or long files",
        "summarised",
        "prepared while",
        "a first pass",
        "one quick look-up",
        "longer than doing it",
        "Specialise one call through `context`",
        "independent topics at once",
    ] {
        assert!(guidance.contains(said), "no `{said}` in\n{guidance}");
    }
}

#[test]
fn init_never_overwrites_and_says_what_it_kept() {
    let world = World::new();
    world.home_file("belljar.toml", "# mine\n");
    world.home_file("agents/summarizer.md", "mine");
    let done = world.run(&["init"]).exits(0);
    assert_eq!(std::fs::read_to_string(world.home().join("belljar.toml")).unwrap(), "# mine\n");
    assert_eq!(std::fs::read_to_string(world.home().join("agents/summarizer.md")).unwrap(), "mine");
    let kept: Vec<&str> = done.stdout.lines().filter(|line| line.starts_with("kept")).collect();
    assert_eq!(kept.len(), 2, "{}", done.stdout);
    let before = world.home_state();
    world.run(&["init"]).exits(0);
    assert_eq!(world.home_state(), before);
}

#[test]
fn init_of_a_workspace_leaves_the_home_alone() {
    let world = World::new();
    let workspace = world.workspace();
    world.run(&["init", "--workspace", workspace.to_str().unwrap()]).exits(0);
    assert!(workspace.join(".belljar/belljar.toml").is_file());
    assert!(workspace.join("AGENTS.md").is_file());
    assert_eq!(world.home_state(), []);
    world.run(&["agents", "list"]).exits(0);
}
