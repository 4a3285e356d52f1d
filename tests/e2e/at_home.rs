//! Who works in their own directory: its `.belljar` is the home and no workspace's.

use std::process::Command;

use crate::kit::{Done, World};

const SCRIPT: &str = "transcript: 1\neach_run: true\nagents:\n  - agent: scout\n    turns:\n      \
                      - calls: [{name: file_write, arguments: {path: a.md, content: x}}]\n      \
                      - say: Done.\n";

const SETTINGS: &str = "[models.main]\nkind = 'scripted'\nmodel = 'script.yaml'\n[roles]\nmain = 'main'\n\
                        [secrets.a]\nhost = 'https://a.example'\nheader = 'X-A'\nenv = 'A'\n";

fn world() -> World {
    let world = World::with_default_home();
    world.home_file("belljar.toml", SETTINGS);
    world.home_file("script.yaml", SCRIPT);
    world.home_file(
        "agents/scout.md",
        "---\nname: scout\ndescription: d\ntools: [file_read, file_write]\n---\nYou look.\n",
    );
    world
}

/// A command in the directory that holds the home.
fn at_home(world: &World, args: &[&str]) -> Done {
    let mut command: Command = world.command(args);
    Done::of(command.current_dir(world.home().parent().unwrap()).output().unwrap())
}

#[test]
fn its_settings_and_agents_are_the_operators_alone() {
    let world = world();
    let listed = at_home(&world, &["agents", "list", "--json"]).exits(0);
    let scopes: Vec<String> =
        listed.json().as_array().unwrap().iter().map(|it| it["id"].to_string()).collect();
    assert!(scopes.contains(&"\"home/scout\"".to_owned()), "{scopes:?}");
    assert!(!listed.stdout.contains("workspace:"), "{}", listed.stdout);
    let doctor = at_home(&world, &["doctor"]).says("configuration");
    assert!(!doctor.stdout.contains("not valid"), "{}", doctor.stdout);
    let done = at_home(&world, &["run", "--agent", "scout", "look"]).exits(0).says("Done.");
    done.complains("in an overlay").complains("belljar's own home with it");
    let own = world.home().join("belljar.toml");
    let told = at_home(&world, &["init", "--workspace", "."]).exits(2);
    told.complains("is belljar's home").complains("without `--workspace`");
    assert!(std::fs::read_to_string(own).unwrap().starts_with("[models.main]"));
    // Elsewhere the same words are a stranger's, and are refused.
    world.file(".belljar/belljar.toml", SETTINGS);
    world.run(&["agents", "list"]).exits(2).complains("has no place in a workspace's");
}

#[cfg(unix)]
#[test]
fn a_home_that_is_a_link_is_one_too_and_a_link_of_a_workspace_to_it_is_not() {
    let world = world();
    let (home, elsewhere) = (world.home(), world.home().with_file_name("dotfiles"));
    std::fs::rename(&home, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &home).unwrap();
    at_home(&world, &["run", "--agent", "scout", "look"]).exits(0).says("Done.");
    // A repository that links to the home makes nothing of it its own, nor itself the home.
    std::os::unix::fs::symlink(&elsewhere, world.workspace().join(".belljar")).unwrap();
    let listed = world.run(&["agents", "list", "--json"]);
    assert!(!listed.stdout.contains("workspace:"), "{}", listed.stdout);
}
