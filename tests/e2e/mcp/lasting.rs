//! State between the calls of a client, and outputs that are too large for an answer.

use serde_json::{Value, json};

use super::client::{Client, Revision};
use super::{REVISIONS, text, world};
use crate::kit::World;

const GRANTS: &str = "[grants.mcp]\ntools = ['file_read', 'run_python']\n";

fn run(client: &mut Client, code: &str) -> Value {
    client.call("run_python", json!({ "code": code }))
}

/// INV-350.
#[test]
fn a_stateless_call_finds_nothing_of_another_and_a_session_does() {
    let world = world();
    world.home_file("belljar.toml", GRANTS);
    let mut client = Client::start(&world, &[], Revision::Older);
    run(&mut client, "kept = 'from before'");
    let answer = run(&mut client, "kept");
    assert!(text(&answer).contains("from before"), "{answer}");
    client.leave().exits(0);
    let mut client = Client::start(&world, &[], Revision::Newer);
    run(&mut client, "kept = 'from before'");
    let answer = run(&mut client, "'kept' in globals()");
    assert!(text(&answer).contains("False"), "{answer}");
    let answer = client.call("file_read", json!({"path": "note.txt"}));
    assert!(text(&answer).contains("the tide turns at six"), "{answer}");
    client.leave().exits(0);
}

fn large(world: &World) -> String {
    let large = "0123456789 and so on, until it is too much for an answer\n".repeat(1_900);
    world.file("large.txt", &large);
    large
}

/// INV-349.
#[test]
fn a_text_that_is_too_large_for_an_answer_is_a_link_to_all_of_it() {
    let world = world();
    let large = large(&world);
    for revision in REVISIONS {
        let mut client = Client::start(&world, &[], revision);
        let answer = client.call("file_read", json!({"path": "large.txt"}));
        let content = answer["result"]["content"].as_array().unwrap();
        let told = content[0]["text"].as_str().unwrap();
        assert!(told.starts_with("0123456789") && told.len() < 8_192, "{}", told.len());
        assert!(told.contains("all of it is the resource"), "{told}");
        let link = &content[1];
        assert_eq!(
            (&link["type"], &link["mimeType"]),
            (&json!("resource_link"), &json!("text/plain"))
        );
        let size = link["size"].as_u64().unwrap();
        assert!(size >= large.len() as u64, "{link}");
        let read = client.ask("resources/read", json!({"uri": link["uri"]}));
        let whole = read["result"]["contents"][0]["text"].as_str().unwrap();
        assert_eq!(whole.len() as u64, size);
        assert!(whole.starts_with(large.trim_end()), "all of it");
        let none =
            json!({"uri": link["uri"].as_str().unwrap().replace("attachments/2", "attachments/1")});
        let none = client.ask("resources/read", none);
        assert!(none["error"].is_object(), "{none}");
        let answer = client.call("file_read", json!({"path": "note.txt"}));
        assert!(text(&answer).contains("the tide turns at six"), "{answer}");
        client.leave().exits(0);
    }
}
