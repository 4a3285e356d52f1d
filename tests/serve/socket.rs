//! The WebSocket: who gets one, and what is refused on it.

use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::client::PATIENCE;
use crate::kit::{World, session};

pub(crate) struct Socket(WebSocketStream<TcpStream>);

impl Socket {
    /// Opens one with these headers; the status of the refusal, or the socket and the subprotocol
    /// that the server chose.
    async fn with(world: &World, headers: &[(&str, &str)]) -> Result<(Self, Option<String>), u16> {
        let mut request = format!("ws://{}/v1/ws", world.address).into_client_request().unwrap();
        for (name, value) in headers {
            let name: hyper::header::HeaderName = name.parse().unwrap();
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        let stream = TcpStream::connect(world.address).await.unwrap();
        match client_async(request, stream).await {
            Ok((socket, response)) => {
                let chosen = response.headers().get("sec-websocket-protocol");
                let chosen = chosen.map(|chosen| chosen.to_str().unwrap().to_owned());
                Ok((Self(socket), chosen))
            }
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) async fn open(world: &World, caller: &str) -> Self {
        let key = format!("Bearer {}", world.keys[caller]);
        let opened = Self::with(world, &[("authorization", &key)]).await;
        opened.map_err(|status| format!("refused with {status}")).unwrap().0
    }

    /// The status with which one is refused.
    pub(crate) async fn refused(world: &World, caller: &str) -> u16 {
        let key = format!("Bearer {}", world.keys[caller]);
        Self::with(world, &[("authorization", &key)]).await.err().expect("it was let in")
    }

    pub(crate) async fn say(&mut self, message: Value) {
        self.say_text(&message.to_string()).await;
    }

    pub(crate) async fn say_text(&mut self, message: &str) {
        self.0.send(Message::text(message)).await.unwrap();
    }

    /// The next message in words; `None` = the connection is closed.
    pub(crate) async fn hear(&mut self) -> Option<Value> {
        loop {
            let next = tokio::time::timeout(PATIENCE, self.0.next()).await;
            match next.expect("the socket stood still")? {
                Ok(Message::Text(text)) => return Some(serde_json::from_str(&text).unwrap()),
                Ok(Message::Close(_)) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// The next message of a type; before it may be those of other types, and no more.
    async fn hear_until(&mut self, wanted: &str, before: &[&str]) -> Value {
        loop {
            let message = self.hear().await.expect("the connection was closed");
            let kind = message["type"].as_str().unwrap_or_default();
            if kind == wanted {
                return message;
            }
            assert!(before.contains(&kind), "{message}");
        }
    }

    pub(crate) async fn ask(&mut self, message: Value) -> Value {
        self.say(message).await;
        self.hear().await.expect("the connection was closed")
    }
}

#[tokio::test]
async fn a_socket_takes_its_key_from_a_header_or_a_subprotocol() {
    let world = World::new().await;
    let mut socket = Socket::open(&world, "blue-read-only").await;
    assert_eq!(
        socket.ask(json!({ "type": "ping", "id": "1" })).await,
        json!({
            "type": "pong", "id": "1"
        })
    );
    let bearer = format!("bearer.{}", world.keys["blue-read-only"]);
    let both = format!("belljar.v1, {bearer}");
    let opened = Socket::with(&world, &[("sec-websocket-protocol", &both)]).await;
    assert_eq!(opened.map(|(_, chosen)| chosen), Ok(Some("belljar.v1".to_owned())));
    let opened = Socket::with(&world, &[("sec-websocket-protocol", &bearer)]).await;
    assert_eq!(opened.map(|(_, chosen)| chosen), Ok(Some(bearer)));
    for headers in [
        vec![],
        vec![("sec-websocket-protocol", "bearer.bj_x")],
        vec![("authorization", "Bearer bj_x")],
    ] {
        assert_eq!(Socket::with(&world, &headers).await.map(|_| ()), Err(401), "{headers:?}");
    }
    let key = format!("Bearer {}", world.keys["blue-admin"]);
    let page = [("authorization", key.as_str()), ("origin", "https://evil.test")];
    assert_eq!(Socket::with(&world, &page).await.map(|_| ()), Err(403));
}

#[tokio::test]
async fn what_the_scope_does_not_allow_is_refused_on_a_socket_too() {
    let world = World::new().await;
    let mut socket = Socket::open(&world, "blue-read-only").await;
    let session = session("blue");
    for message in [
        json!({ "type": "chat", "id": "7", "text": "hi" }),
        json!({ "type": "cancel", "id": "7", "session": session }),
        json!({ "type": "answer", "id": "7", "session": session, "question": 1, "answer": "yes" }),
    ] {
        let answer = socket.ask(message).await;
        assert_eq!((&answer["type"], &answer["id"]), (&json!("error"), &json!("7")));
        assert_eq!(answer["problem"]["type"], "/problems/scope", "{answer}");
    }
    let audit =
        world.store.for_tenant_name("blue").read_audit(None, 10, i64::MAX).await.unwrap().rows;
    let refused = audit.iter().filter(|line| line.action == "refused").count();
    assert_eq!(refused, 3);
}

#[tokio::test]
async fn another_tenants_session_is_not_there_on_a_socket_either() {
    let world = World::new().await;
    let mut socket = Socket::open(&world, "blue-admin").await;
    let red = session("red");
    for message in [
        json!({ "type": "subscribe", "session": red, "after": 0 }),
        json!({ "type": "chat", "session": red, "text": "hi" }),
        json!({ "type": "cancel", "session": red }),
        json!({ "type": "answer", "session": red, "question": 1, "text": "x" }),
    ] {
        let answer = socket.ask(message).await;
        assert_eq!(answer["problem"]["type"], "/problems/not-found", "{answer}");
    }
    let own = socket.ask(json!({ "type": "cancel", "session": session("blue") })).await;
    assert_eq!((&own["type"], &own["cancelled"]), (&json!("cancelled"), &json!(false)));
}

#[tokio::test]
async fn a_session_that_is_deleted_ends_what_watches_it_and_nothing_else() {
    let world = World::new().await;
    let mut socket = Socket::open(&world, "blue-admin").await;
    let mut other = Socket::open(&world, "red-admin").await;
    let subscribe = |whose| json!({ "type": "subscribe", "session": session(whose), "after": 0 });
    socket.say(subscribe("blue")).await;
    other.say(subscribe("red")).await;
    assert_eq!(socket.hear_until("subscribed", &["event"]).await["session"], session("blue"));
    assert_eq!(other.hear_until("subscribed", &["event"]).await["session"], session("red"));
    let deleted = format!("/v1/sessions/{}", session("blue"));
    world.call_as("blue-admin", "DELETE", &deleted).send().await.is(200);
    assert_eq!(socket.hear_until("unsubscribed", &["event"]).await["session"], session("blue"));
    // The connection itself goes on, and so does the neighbour's watch.
    let again = socket.ask(subscribe("blue")).await;
    assert_eq!(again["problem"]["type"], "/problems/not-found", "{again}");
    other.say(json!({ "type": "ping" })).await;
    other.hear_until("pong", &["event"]).await;
}

#[tokio::test]
async fn a_message_of_another_form_is_an_error_and_a_huge_one_the_end() {
    let world = World::new().await;
    let mut socket = Socket::open(&world, "blue-admin").await;
    for message in [json!([]), json!({ "type": "run" }), json!({ "type": "ping", "x": 1 })] {
        let answer = socket.ask(message).await;
        assert_eq!(answer["problem"]["type"], "/problems/invalid-request", "{answer}");
    }
    let huge = "x".repeat(2 << 20);
    // The server may close before all of it is sent.
    let _ = socket.0.send(Message::text(huge)).await;
    assert_eq!(socket.hear().await, None);
    let mut next = Socket::open(&world, "blue-admin").await;
    assert_eq!(next.ask(json!({ "type": "ping" })).await["type"], "pong");
}

#[tokio::test]
async fn a_key_that_is_revoked_talks_no_more_on_an_open_socket() {
    let world = World::new().await;
    let mut socket = Socket::open(&world, "blue-member").await;
    let key = &world.keys["blue-member"];
    assert!(world.store.tenant_registry().revoke_key(&key[3..19], 9).await.unwrap());
    socket.say(json!({ "type": "chat", "text": "hi" })).await;
    assert_eq!(socket.hear().await, None);
}

#[tokio::test]
async fn a_server_that_stops_says_so_on_its_sockets() {
    let world = World::new().await;
    let mut socket = Socket::open(&world, "blue-read-only").await;
    assert_eq!(socket.ask(json!({ "type": "ping" })).await["type"], "pong");
    world.stop.cancel();
    assert_eq!(socket.hear().await, None);
    let served = world.served.lock().unwrap().take().unwrap();
    tokio::time::timeout(PATIENCE, served).await.expect("it never stopped").unwrap();
}
