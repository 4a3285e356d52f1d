//! The command line itself.

use crate::kit::{Done, World};

#[test]
fn help_shows_the_exit_codes_and_names_the_demo() {
    let world = World::new();
    let done = world.run(&["--help"]).exits(0);
    for text in ["Exit codes:", "130", "belljar demo"] {
        assert!(done.stdout.contains(text), "no `{text}` in\n{}", done.stdout);
    }
}

#[test]
fn completions_are_printed_for_every_shell() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        world.run(&["completions", shell]).exits(0).says("belljar");
    }
}

#[test]
fn without_a_terminal_nothing_is_coloured() {
    let world = World::new();
    for args in [&["tools", "list"][..], &["agents", "list"], &["doctor"], &["run", "x"], &["frob"]]
    {
        for no_color in ["", "1"] {
            let output = world.command(args).env("NO_COLOR", no_color).output().unwrap();
            let done = Done::of(output);
            assert!(!done.stdout.contains('\u{1b}'), "{args:?}: {}", done.stdout);
            assert!(!done.stderr.contains('\u{1b}'), "{args:?}: {}", done.stderr);
        }
    }
}

#[test]
fn a_reader_that_stops_early_is_no_error() {
    let world = World::new();
    let mut child = world.spawn(&["completions", "bash"]);
    drop(child.stdout.take());
    assert_eq!(Done::of(child.wait_with_output().unwrap()).stderr, "");
}

#[test]
fn doctor_finds_a_fresh_installation_sound() {
    let world = World::new();
    let done = world.run(&["doctor"]).exits(0);
    for text in ["sandbox", "models", "cache"] {
        assert!(done.stdout.contains(text), "no `{text}` in\n{}", done.stdout);
    }
    let checks = world.run(&["doctor", "--json"]).exits(0).json();
    assert!(checks.as_array().unwrap().len() > 4, "{checks}");
}

#[test]
fn every_default_limit_is_listed_and_documented() {
    let world = World::new();
    let done = world.run(&["limits"]).exits(0);
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/security/budgets.md");
    let page = std::fs::read_to_string(page).unwrap_or_default();
    for row in belljar_policy::LIMITS {
        assert!(done.stdout.contains(row.key), "{}", row.key);
        assert!(page.contains(&format!("`{}`", row.key)), "budgets.md lacks `{}`", row.key);
    }
}

#[test]
fn a_workspace_that_is_not_there_is_a_usage_error() {
    let world = World::new();
    world.run(&["agents", "list", "--workspace", "/nowhere"]).exits(2).complains("/nowhere");
}

#[test]
fn the_compiling_child_refuses_what_is_no_component() {
    let world = World::new();
    let done = world.run_with_stdin(&["compile-component"], "garbage");
    assert_ne!(done.code, 0);
}
