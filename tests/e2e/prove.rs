//! `belljar prove`, with some of its attacks; the suite under `host/prove` makes all.

use crate::kit::World;

#[test]
fn attacks_are_made_and_what_stopped_each_is_shown() {
    let world = World::new();
    let done = world.run(&["prove", "files-absolute"]).exits(0);
    done.says("stopped").says("INV-5").says("none got through");
    let json = world.run(&["prove", "files-absolute", "--json"]).exits(0).json();
    let attacks = json["attacks"].as_array().unwrap();
    assert_eq!(
        (json["got_through"].as_u64(), json["made"].as_u64()),
        (Some(0), Some(attacks.len() as u64))
    );
    assert!(!attacks.is_empty() && attacks.iter().all(|one| one["result"]["stopped"].is_string()));
    assert!(attacks.iter().all(|one| one["neighbour_calls"].as_u64() > Some(0)));
}

#[test]
fn a_word_that_no_attack_has_is_told() {
    World::new().run(&["prove", "nonesuch"]).exits(2).complains("nonesuch").complains("files");
}
