//! Bytes: those that are under way, and those that are stored.

use std::net::{IpAddr, Ipv4Addr};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::client::PATIENCE;
use crate::kit::{Plan, World, session};

const MIB: u64 = 1 << 20;

/// A request of which the head and the beginning of the body are sent.
async fn unfinished(world: &World, caller: &str, bytes: usize) -> TcpStream {
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    let head = format!(
        "POST /v1/chat HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n\"",
        world.address,
        world.keys[caller],
        bytes + 1_000
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // The server may refuse before all of it is sent.
    let _ = stream.write_all(&vec![b'x'; bytes]).await;
    stream
}

/// The status of the answer, if one comes.
async fn status(stream: &mut TcpStream) -> Option<String> {
    let mut told = vec![0; 4096];
    let read = tokio::time::timeout(PATIENCE, stream.read(&mut told)).await.ok()?.ok()?;
    String::from_utf8_lossy(&told[..read]).split(' ').nth(1).map(str::to_owned)
}

#[tokio::test]
async fn unfinished_bodies_take_a_tenants_bytes_and_none_of_its_neighbours() {
    let world = World::with(Plan { tenant_bytes: 8 * MIB, ..Plan::default() }).await;
    let before = world.state("blue").await;
    // Four of them are all that the tenant may have: their bytes, and what is made of them. Those
    // that grow side by side may be refused together, so there are more until it is full.
    let mut bodies = Vec::new();
    let refused = async {
        loop {
            bodies.push(unfinished(&world, "blue-member", 1 << 20).await);
            let ask = json!({"text": "x".repeat(1 << 20)});
            let call = world.call_as("blue-member", "POST", "/v1/preview").json(&ask);
            let answer = call.send().await;
            if answer.status == 429 {
                return answer;
            }
        }
    };
    let refused = tokio::time::timeout(PATIENCE, refused).await.expect("it was never refused");
    assert!(refused.problem("too-many")["detail"].as_str().unwrap().contains("bytes"));
    let neighbour = json!({"agent": "teller", "text": "tell".repeat(1000)});
    let call = world.call_as("red-member", "POST", "/v1/chat").json(&neighbour);
    assert_eq!(call.send().await.is(200).json()["status"], "completed");
    assert_eq!(world.state("blue").await, before);
    // Given up, they give back what they held.
    drop(bodies);
    let again = async {
        loop {
            let ask = json!({"agent": "teller", "text": "x".repeat(1 << 20)});
            let call = world.call_as("blue-member", "POST", "/v1/preview").json(&ask);
            if call.send().await.status == 200 {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, again).await.expect("nothing came back");
}

/// Gives a session so many large messages.
async fn fill(world: &World, tenant: &str, count: usize, bytes: usize) {
    use belljar_store::{MessageStatus, NewMessage, Role, StoreWrite};
    let message = |at: usize| NewMessage {
        id: format!("{tenant}-large-{at}"),
        role: Role::Assistant,
        status: MessageStatus::Completed,
        content: json!({"text": "y".repeat(bytes), "messages": []}),
        metadata: json!({}),
        created: 20,
    };
    let messages: Vec<_> = (0..count).map(message).collect();
    let append = StoreWrite::AppendMessages { session: session(tenant), messages };
    world.store.for_tenant_name(tenant).enqueue_writes(vec![append]).await.unwrap();
}

#[tokio::test]
async fn a_page_of_messages_ends_behind_its_bytes_and_the_next_one_has_the_rest() {
    let world = World::new().await;
    fill(&world, "blue", 10, 1 << 20).await;
    let path = format!("/v1/sessions/{}/messages?full=true", session("blue"));
    let (mut seen, mut pages, mut next) = (Vec::new(), 0, String::new());
    loop {
        let path = format!("{path}{next}");
        let answer = world.call_as("blue-read-only", "GET", &path).send().await.is(200);
        assert!(answer.body.len() < 4 << 20, "{} bytes", answer.body.len());
        let page = answer.json();
        let places = page["messages"].as_array().unwrap().iter().rev();
        seen.extend(places.map(|message| message["place"].as_i64().unwrap()));
        pages += 1;
        let Some(place) = page["next"].as_i64() else { break };
        next = format!("&before={place}");
    }
    assert_eq!(seen, (1..=12).rev().collect::<Vec<_>>(), "each once");
    assert!(pages >= 4, "{pages}");
}

#[tokio::test]
async fn readers_who_take_nothing_hold_their_tenants_bytes_and_none_of_their_neighbours() {
    let world = World::with(Plan { tenant_bytes: 20 * MIB, ..Plan::default() }).await;
    fill(&world, "blue", 1, 6 << 20).await;
    let ask = format!(
        "GET /v1/sessions/{}/messages?full=true HTTP/1.1\r\nhost: {}\r\n\
         authorization: Bearer {}\r\n\r\n",
        session("blue"),
        world.address,
        world.keys["blue-read-only"]
    );
    let mut slow = Vec::new();
    for _ in 0..6 {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        socket.bind((IpAddr::from(Ipv4Addr::LOCALHOST), 0).into()).unwrap();
        let mut stream = socket.connect(world.address).await.unwrap();
        stream.write_all(ask.as_bytes()).await.unwrap();
        slow.push(stream);
    }
    // One or two are answered; the others hear that there is no room.
    let mut statuses = Vec::new();
    for stream in &mut slow {
        statuses.push(status(stream).await.unwrap_or_default());
    }
    statuses.sort();
    assert_eq!(statuses.first().map(String::as_str), Some("200"), "{statuses:?}");
    assert_eq!(statuses.last().map(String::as_str), Some("429"), "{statuses:?}");
    let path = format!("/v1/sessions/{}/messages?full=true", session("red"));
    world.call_as("red-read-only", "GET", &path).send().await.is(200);
    drop(slow);
    let path = format!("/v1/sessions/{}/messages?full=true", session("blue"));
    let again =
        async { while world.call_as("blue-read-only", "GET", &path).send().await.status != 200 {} };
    tokio::time::timeout(PATIENCE, again).await.expect("nothing came back");
}

#[tokio::test]
async fn a_key_that_opens_all_the_streams_it_may_leaves_some_to_the_other_keys_of_its_tenant() {
    let world = World::with(Plan { tenant_bytes: 2 * MIB, ..Plan::default() }).await;
    let before = world.state("blue").await;
    let path = format!("/v1/sessions/{}/events", session("blue"));
    let open = async |caller: &str| world.call_as(caller, "GET", &path).open().await;
    let mut streams = Vec::new();
    loop {
        let stream = open("blue-read-only").await;
        if stream.status != 200 {
            break;
        }
        streams.push(stream);
        assert!(streams.len() < 100, "it is never refused");
    }
    assert!(streams.len() > 4, "{}", streams.len());
    let refused = world.call_as("blue-read-only", "GET", &path).send().await.is(429);
    let problem = refused.problem("too-many");
    assert!(problem["detail"].as_str().unwrap().contains("one key"), "{problem}");
    assert!(refused.headers.contains_key("retry-after"));
    // Its neighbours in the tenant get one, talk, and so does another tenant.
    assert_eq!(open("blue-member").await.status, 200);
    let body = json!({"agent": "teller", "text": "tell", "stream": true});
    let red = world.call_as("red-member", "POST", "/v1/chat").json(&body).open().await;
    assert_eq!(red.status, 200);
    assert_eq!(world.state("blue").await, before);
    drop(streams);
    let again = async { while open("blue-read-only").await.status != 200 {} };
    tokio::time::timeout(PATIENCE, again).await.expect("nothing came back");
}

#[tokio::test]
async fn a_tenant_that_has_stored_what_it_may_stores_no_more_until_it_makes_room() {
    let world = World::with(Plan { storage: Some(MIB), ..Plan::default() }).await;
    let chat = async |caller: &str, text: &str| {
        let body = json!({"agent": "teller", "text": text});
        world.call_as(caller, "POST", "/v1/chat").json(&body).send().await
    };
    // More than there is room for, at once.
    let refused = chat("blue-member", &"x".repeat(2 << 20)).await.is(507);
    refused.problem("storage-full");
    let mut turns = 0;
    let refused = loop {
        let answer = chat("blue-member", &"x".repeat(100 << 10)).await;
        if answer.status != 200 {
            break answer;
        }
        turns += 1;
        assert!(turns < 20, "it is never refused");
    };
    let problem = refused.is(507).problem("storage-full");
    for part in ["1048576", "tenant_storage_mib"] {
        assert!(problem["detail"].as_str().unwrap().contains(part), "{problem}");
    }
    assert!(problem["hint"].as_str().unwrap().contains("DELETE /v1/sessions"), "{problem}");
    let used = world.store.for_tenant_name("blue").stored_bytes().await.unwrap();
    assert!(used < 2 * MIB, "{used}");
    let before = world.state("blue").await;
    let agent = json!({"slug": "large", "text": crate::kit::agent("large") + &"x".repeat(250_000)});
    let call = world.call_as("blue-admin", "POST", "/v1/agents").json(&agent);
    call.send().await.is(507).problem("storage-full");
    assert_eq!(world.state("blue").await, before);
    chat("red-member", "tell").await.is(200);
    world.call_as("blue-admin", "DELETE", "/v1/sessions").send().await.is(200);
    let left: Value = chat("blue-member", "tell").await.is(200).json();
    assert!(left["session"].is_string());
}

#[tokio::test]
async fn a_turn_that_the_day_has_no_step_left_for_is_refused_before_anything_is_stored() {
    let world = World::with(Plan { tokens: Some(400), ..Plan::default() }).await;
    let chat = async |caller: &str, text: &str| {
        let body = json!({"agent": "teller", "text": text});
        world.call_as(caller, "POST", "/v1/chat").json(&body).send().await
    };
    assert_eq!(chat("blue-member", "tell").await.is(200).json()["usage"]["steps"], 1);
    let before = world.state("blue").await;
    // As many tokens as there are in a day are more than are left of it.
    let refused = chat("blue-member", &"x".repeat(400 * 16)).await.is(429);
    let limit = &refused.problem("day-limit")["limit"];
    assert_eq!((&limit["name"], &limit["most"]), (&json!("tenant_tokens_per_day"), &json!(400)));
    let left = limit["left"].as_u64().unwrap();
    assert!(left > 0 && left < 400, "{limit}");
    assert!(limit["resets"].as_str().unwrap().ends_with("T00:00:00Z"), "{limit}");
    let wait: u64 = refused.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=86_400).contains(&wait), "{wait}");
    assert_eq!(world.state("blue").await, before);
    // What fits is taken; from then on nothing is, and nothing is stored.
    chat("blue-member", &"x".repeat(usize::try_from(left).unwrap() * 8)).await.is(200);
    let before = world.state("blue").await;
    let stream = json!({"agent": "teller", "text": "tell", "stream": true});
    let call = world.call_as("blue-member", "POST", "/v1/chat").json(&stream);
    call.send().await.is(429).problem("day-limit");
    chat("blue-member", "tell").await.is(429);
    assert_eq!(world.state("blue").await, before);
    // The neighbour is unharmed, and the tenant may still look.
    chat("red-member", "tell").await.is(200);
    world.call_as("blue-member", "GET", "/v1/sessions").send().await.is(200);
}

/// An agent whose model bills more than its text, as one that thinks does.
const DEAR: &str = "
transcript: 1
each_run: true
agents:
  - agent: teller
    turns:
      - say: Once upon a time.
        usage: {input: 300, output: 100}
";

#[tokio::test]
async fn no_turn_begins_with_less_left_than_its_model_bills_for_a_step() {
    let world =
        World::with(Plan { transcript: DEAR, tokens: Some(1_000), ..Plan::default() }).await;
    let chat = async |caller: &str, body: Value| {
        world.call_as(caller, "POST", "/v1/chat").json(&body).send().await
    };
    let new = || json!({"agent": "teller", "text": "tell"});
    let first = chat("blue-member", new()).await.is(200).json();
    assert_eq!(first["status"], "completed");
    let again = json!({"session": first["session"], "text": "more"});
    assert_eq!(chat("blue-member", again.clone()).await.is(200).json()["status"], "completed");
    let before = world.state("blue").await;
    // 200 are left, a step takes 400, and of its text nobody would think so.
    for body in [new(), again] {
        let refused = chat("blue-member", body).await.is(429);
        let problem = refused.problem("day-limit");
        let limit = &problem["limit"];
        assert_eq!(
            (&limit["name"], &limit["left"]),
            (&json!("tenant_tokens_per_day"), &json!(200))
        );
        assert!(problem["detail"].as_str().unwrap().contains("at least 40"), "{problem}");
        assert!(limit["resets"].as_str().unwrap().ends_with("T00:00:00Z"), "{limit}");
    }
    assert_eq!(world.state("blue").await, before);
    assert_eq!(chat("red-member", new()).await.is(200).json()["status"], "completed");
}

#[tokio::test]
async fn an_answer_that_passes_the_day_is_kept_and_no_turn_begins_after_it() {
    let world = World::with(Plan { transcript: DEAR, tokens: Some(350), ..Plan::default() }).await;
    let chat = async |caller: &str| {
        let body = json!({"agent": "teller", "text": "tell"});
        world.call_as(caller, "POST", "/v1/chat").json(&body).send().await
    };
    // Nobody knows yet what it bills.
    let told = chat("blue-member").await.is(200).json();
    assert_eq!(
        (&told["status"], &told["text"]),
        (&json!("completed"), &json!("Once upon a time."))
    );
    let before = world.state("blue").await;
    chat("blue-member").await.is(429).problem("day-limit");
    assert_eq!(world.state("blue").await, before);
    chat("red-member").await.is(200);
}
