//! `belljar demo`.

use crate::kit::World;

#[test]
fn the_demo_hands_work_to_two_agents_and_shows_the_refused_escape() {
    let world = World::new();
    let done = world.run(&["demo"]).exits(0);
    for text in ["log-reader", "code-scout", "etc/passwd", "spawn_agent", "0.35"] {
        assert!(done.stdout.contains(text), "no `{text}` in\n{}", done.stdout);
    }
    assert!(!done.stdout.contains("root:"), "the escape read the file:\n{}", done.stdout);
    let refused: Vec<&str> =
        done.stdout.lines().filter(|line| line.contains("etc/passwd")).collect();
    assert!(refused.iter().any(|line| line.contains('✗')), "{refused:?}");
}

#[test]
fn the_demo_leaves_nothing_in_the_home() {
    let world = World::new();
    world.run(&["demo"]).exits(0);
    assert_eq!(world.home_state(), []);
    assert!(!world.home().join("sessions").exists());
    assert_eq!(std::fs::read_dir(world.workspace()).unwrap().count(), 0);
}

#[test]
fn the_demo_works_where_there_is_no_home_at_all() {
    let world = World::new();
    let output = world
        .command(&["demo"])
        .env("BELLJAR_HOME", "/proc/nowhere")
        .env_remove("BELLJAR_CACHE")
        .output()
        .unwrap();
    crate::kit::Done::of(output).exits(0).says("0.35");
}
