//! Places of the host in what leaves a running server: every row that it could tell of holds one,
//! and every route is asked.

use belljar_server::{HttpVerb, ROUTES};
use belljar_store::{
    AuditEntry, EventBlock, MessageStatus, NewAttachment, NewMessage, ReceiptRow, Role, StoreWrite,
};
use serde_json::{Value, json};

use crate::kit::{World, agent, session};

/// A mark in the words of a person and a model, and in those of an admin.
const SAID: &str = "MINE";

/// Rows of every kind that name this place, wherever the host writes.
async fn plant(world: &World, place: &str) {
    let store = world.store.for_tenant_name("blue");
    let session = session("blue");
    let said = format!("{SAID} {place}/x");
    let message = NewMessage {
        id: "blue-placed".to_owned(),
        role: Role::User,
        status: MessageStatus::InFlight,
        content: json!({ "text": said, "messages": [
            { "role": "user", "text": format!("[notice] {place}/x") },
            { "role": "assistant", "text": "hm", "calls": [
                { "id": "1", "name": "file_read", "arguments": format!("{{\"path\":\"{said}\"}}") },
            ] },
            { "role": "tool", "results": [
                { "id": "1", "name": "file_read", "content": format!("no {place}/x"), "is_error": true },
            ] },
        ] }),
        metadata: json!({ "error": format!("{place}/x is missing"), place: 1 }),
        created: 20,
    };
    let receipt = ReceiptRow {
        id: "receipt".to_owned(),
        agent: "top".to_owned(),
        step: 1,
        call_id: "1".to_owned(),
        tool: "file_read".to_owned(),
        ok: false,
        ending: format!("error {place}"),
        fuel: 1,
        micros: 1,
        body: json!({ "read": [format!("{place}/x")] }),
        created: 20,
    };
    let attachment = NewAttachment {
        id: "20261122T000000009Z-file".to_owned(),
        call_id: None,
        name: format!("{place}/page.txt"),
        media_type: format!("text/{place}"),
        data: b"bytes".to_vec(),
        created: 20,
    };
    let event =
        json!({ "id": 6, "type": "notice", "why": format!("{place}/x"), "workspace": place });
    let line = AuditEntry {
        id: "99990101T000000000Z-0000".to_owned(),
        at: 30,
        actor: "key:1".to_owned(),
        action: "x".to_owned(),
        object: format!("{place}/x"),
        detail: json!({ "at": place }),
    };
    let block = EventBlock { first_seq: 6, events: vec![event.to_string()] };
    let of = || (session.clone(), "blue-placed".to_owned());
    let (session_id, message_id) = of();
    store
        .enqueue_writes(vec![
            StoreWrite::AppendMessages { session: session_id.clone(), messages: vec![message] },
            StoreWrite::Receipts {
                session: session_id.clone(),
                message: message_id.clone(),
                receipts: vec![receipt.into()],
            },
            StoreWrite::Events { session: of().0, message: of().1, block },
            StoreWrite::Attachments {
                session: session_id,
                message: message_id,
                attachments: vec![attachment],
            },
            StoreWrite::Audit(line),
        ])
        .await
        .unwrap();
    let text = agent("placed").replace("Tell.", &said);
    store.save_agent("placed", &text, 7, None).await.unwrap();
}

/// All that is told at a path, its headers and its body.
async fn told(world: &World, caller: &str, path: &str) -> String {
    let answer = world.call_as(caller, "GET", path).send().await;
    assert!(answer.status < 500, "{path}: {}", answer.status);
    format!("{:?} {}", answer.headers, String::from_utf8_lossy(&answer.body))
}

#[tokio::test]
async fn no_route_names_a_place_of_the_host_and_what_was_said_stays_as_it_was() {
    let world = World::new().await;
    let place = world.dir.path().canonicalize().unwrap().display().to_string();
    plant(&world, &place).await;
    let mut asked = 0;
    for route in ROUTES.iter().filter(|route| route.verb == HttpVerb::Get) {
        let path = route
            .path
            .replace("{id}", &session("blue"))
            .replace("{slug}", "placed")
            .replace("{attachment}", "20261122T000000009Z-file")
            .replace("{question}", "1");
        let query = match path.rsplit('/').next() {
            Some("messages") => "?full=true",
            Some("events") => "?follow=false",
            Some("grants") => "?agent=teller",
            _ => "",
        };
        let caller = if path == "/metrics" { "local-admin" } else { "blue-admin" };
        let text = told(&world, caller, &format!("{path}{query}")).await;
        let left = text.replace(&format!("{SAID} {place}"), SAID);
        let at = left.find(&place).map(|at| left[at.saturating_sub(80)..].to_owned());
        assert_eq!(at, None, "{path}");
        asked += 1;
    }
    assert!(asked >= 20, "{asked}");

    // The person's own words, the model's call and the agent's text are as they were written.
    let said = format!("{SAID} {place}/x");
    let path = format!("/v1/sessions/{}/messages?full=true", session("blue"));
    let page = world.call_as("blue-admin", "GET", &path).send().await.is(200).json();
    let own: Vec<&Value> = page["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["id"] == "blue-placed")
        .collect();
    assert_eq!(own[0]["text"], said.as_str());
    assert_eq!(own[0]["messages"][0]["text"], "[notice] data/x");
    let arguments = own[0]["messages"][1]["calls"][0]["arguments"].as_str().unwrap();
    assert!(arguments.contains(&said), "{arguments}");
    let kept = world.call_as("blue-admin", "GET", "/v1/agents/placed").send().await.is(200).json();
    assert!(kept["text"].as_str().unwrap().contains(&said), "{kept}");
}
