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

#[cfg(unix)]
#[test]
fn a_workspace_whose_own_folder_is_a_link_has_nothing_made_behind_it() {
    use std::os::unix::fs::symlink;
    let world = World::new();
    let outside = world.other("elsewhere/kept.txt", b"kept").parent().unwrap().to_path_buf();
    let workspace = world.workspace();
    let init = ["init", "--workspace", workspace.to_str().unwrap()];
    let folder = workspace.join(".belljar");
    symlink(&outside, &folder).unwrap();
    world.run(&init).exits(1).complains(".belljar` is a link");
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1, "nothing is made there");
    // Nor is anything read through it, or through a link in its place.
    std::fs::write(outside.join("belljar.toml"), "not-for-you = \"a secret\"\n").unwrap();
    let read = world.run(&["agents", "list"]).exits(2).complains(".belljar` is a link");
    assert!(!read.stderr.contains("a secret"), "{}", read.stderr);
    std::fs::remove_file(&folder).unwrap();
    std::fs::create_dir(&folder).unwrap();
    symlink(outside.join("belljar.toml"), folder.join("belljar.toml")).unwrap();
    world.run(&init).exits(1).complains("belljar.toml` is a link");
    let read = world.run(&["agents", "list"]).exits(2);
    assert!(!read.stderr.contains("a secret"), "{}", read.stderr);
    // The neighbours: instructions that lead to another name of theirs are kept, a folder is filled.
    std::fs::remove_file(folder.join("belljar.toml")).unwrap();
    world.file("CLAUDE.md", "mine");
    symlink("CLAUDE.md", workspace.join("AGENTS.md")).unwrap();
    world.run(&init).exits(0).says("wrote").says("kept");
    assert_eq!(std::fs::read_to_string(workspace.join("CLAUDE.md")).unwrap(), "mine");
    // A home that is a link as a whole, and a linked file of settings, are the person's own.
    let home = world.home();
    std::fs::remove_dir_all(&home).unwrap();
    let kept = world.other("dotfiles/belljar/belljar.toml", b"# mine\n");
    symlink(kept.parent().unwrap(), &home).unwrap();
    world.home_file("agents/scout.md", "---\nname: scout\ndescription: d\n---\nLook.\n");
    world.run(&["grant", "scout", "--host", "https://a.test", "--yes"]).exits(0);
    assert!(std::fs::read_to_string(&kept).unwrap().contains("https://a.test"));
}
