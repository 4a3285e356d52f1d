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

#[test]
fn a_part_is_made_alone_with_the_program_that_runs() {
    let done = World::new().run(&["prove", "--libraries", "name-api", "--json"]).exits(0).json();
    let attacks = done["attacks"].as_array().unwrap();
    assert_eq!((attacks.len(), &attacks[0]["id"]), (1, &"libraries-name-api".into()));
    let told = attacks[0]["result"]["stopped"].as_str().unwrap();
    assert!(told.contains("belljar's own word"), "{told}");
    World::new().run(&["prove", "--libraries", "files-absolute"]).exits(2).complains("libraries");
}

#[test]
fn a_server_is_started_attacked_and_ended() {
    let done = World::new().run(&["prove", "--server", "key-none", "--json"]).exits(0).json();
    let attacks = done["attacks"].as_array().unwrap();
    assert_eq!((attacks.len(), &attacks[0]["id"]), (1, &"server-key-none".into()));
    assert!(attacks[0]["result"]["stopped"].as_str().unwrap().contains("no-key"));
    assert!(attacks[0]["neighbour_calls"].as_u64() > Some(0));
}

#[test]
fn an_agent_of_editors_is_started_attacked_and_ended() {
    let done =
        World::new().run(&["prove", "--editor", "agent-of-nobody", "--json"]).exits(0).json();
    let attacks = done["attacks"].as_array().unwrap();
    assert_eq!((attacks.len(), &attacks[0]["id"]), (1, &"acp-agent-of-nobody".into()));
    assert!(attacks[0]["result"]["stopped"].as_str().unwrap().contains("-32602"));
    assert!(attacks[0]["neighbour_calls"].as_u64() > Some(0));
}
