//! The share of one address, and what browsers are told of pages that may call.

use std::net::{IpAddr, Ipv4Addr};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::client::PATIENCE;
use crate::kit::{Plan, World, session};
use crate::socket::Socket;

/// Another address of this machine.
const NEIGHBOUR: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// The answer to a connection that is not taken, whatever it asks for.
async fn turned_away(world: &World, request: &str) -> Option<String> {
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    let mut told = vec![0; 4096];
    // Where it is taken, nothing is said before the request.
    let _ = stream.write_all(request.as_bytes()).await;
    let read = tokio::time::timeout(PATIENCE, stream.read(&mut told)).await.unwrap().unwrap_or(0);
    let told = String::from_utf8_lossy(&told[..read]).into_owned();
    told.starts_with("HTTP/1.1 429 ").then_some(told)
}

#[tokio::test]
async fn an_address_has_its_connections_and_its_neighbour_others() {
    let world = World::with(Plan { connections: 2, ..Plan::default() }).await;
    let before = world.state("blue").await;
    // A WebSocket is one as long as it is open.
    let sockets =
        [Socket::open(&world, "blue-member").await, Socket::open(&world, "blue-member").await];
    let (path, key) = (format!("/v1/sessions/{}", session("blue")), &world.keys["blue-admin"]);
    let delete = format!(
        "DELETE {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {key}\r\n\r\n",
        world.address
    );
    let told = turned_away(&world, &delete).await.expect("it was taken");
    assert!(told.contains("/problems/too-many") && told.contains("retry-after: 5"), "{told}");
    assert_eq!(world.state("blue").await, before);
    world.call_as("blue-admin", "GET", &path).from(NEIGHBOUR).send().await.is(200);
    // Whoever leaves makes room.
    drop(sockets);
    let get = format!("GET /healthz HTTP/1.1\r\nhost: {}\r\n\r\n", world.address);
    let room = async { while turned_away(&world, &get).await.is_some() {} };
    tokio::time::timeout(PATIENCE, room).await.expect("there is still no room");
}

#[tokio::test]
async fn connections_that_say_nothing_make_room_for_those_that_ask() {
    let world = World::with(Plan { connections: 3, ..Plan::default() }).await;
    let mut socket = Socket::open(&world, "blue-member").await;
    let mut silent = Vec::new();
    for _ in 0..10 {
        let mut stream = TcpStream::connect(world.address).await.unwrap();
        // The beginning of a head is no request yet.
        stream.write_all(b"GET /healthz HTTP/1.1\r\n").await.unwrap();
        silent.push(stream);
        world.call_as("blue-member", "GET", "/v1/sessions").send().await.is(200);
    }
    let mut byte = [0];
    let closed = tokio::time::timeout(PATIENCE, silent[0].read(&mut byte)).await.unwrap();
    assert!(matches!(closed, Ok(0) | Err(_)), "{closed:?}");
    assert_eq!(socket.ask(serde_json::json!({"type": "ping"})).await["type"], "pong");
    world.call("GET", "/healthz").from(NEIGHBOUR).send().await.is(200);
}

#[tokio::test]
async fn an_address_that_tries_keys_waits_and_its_neighbour_does_not() {
    let world = World::with(Plan { failures: 3, ..Plan::default() }).await;
    let path = format!("/v1/sessions/{}", session("blue"));
    let before = world.state("blue").await;
    // Without a key nothing is tried.
    for _ in 0..5 {
        world.call("GET", &path).send().await.is(401);
    }
    for caller in ["unknown", "mixed", "revoked"] {
        world.call_as(caller, "GET", &path).send().await.is(401);
    }
    // Not even a good one is looked at now.
    let answer = world.call_as("blue-admin", "DELETE", &path).send().await.is(429);
    answer.problem("too-many");
    let wait: u64 = answer.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=20).contains(&wait), "{wait}");
    assert_eq!(world.state("blue").await, before);
    assert_eq!(Socket::refused(&world, "blue-admin").await, 429);
    world.call("GET", "/healthz").send().await.is(200);
    world.call_as("blue-admin", "DELETE", &path).from(NEIGHBOUR).send().await.is(200);
}

#[tokio::test]
async fn pages_of_listed_origins_may_call_and_no_others() {
    const APP: &str = "https://app.example.org";
    let world = World::with(Plan { origins: &[APP], ..Plan::default() }).await;
    let preflight = async |origin: &str| {
        let call = world.call("OPTIONS", "/v1/chat").header("origin", origin);
        let call = call.header("access-control-request-method", "POST");
        call.header("access-control-request-headers", "authorization,content-type").send().await
    };
    let answer = preflight(APP).await.is(200);
    let says = |name: &str| answer.headers[name].to_str().unwrap().to_ascii_lowercase();
    assert_eq!(says("access-control-allow-origin"), APP);
    assert!(says("vary").contains("origin"));
    for header in ["authorization", "content-type", "last-event-id", "if-match"] {
        assert!(says("access-control-allow-headers").contains(header), "{header}");
    }
    for method in ["get", "post", "put", "delete"] {
        assert!(says("access-control-allow-methods").contains(method), "{method}");
    }
    assert!(!answer.headers.contains_key("access-control-allow-credentials"));
    // Refusals too: a page has to see why.
    for (caller, status) in [("blue-member", 200), ("unknown", 401)] {
        let call = world.call_as(caller, "GET", "/v1/sessions").header("origin", APP);
        let answer = call.send().await.is(status);
        assert_eq!(answer.headers["access-control-allow-origin"], APP);
        let exposed = answer.headers["access-control-expose-headers"].to_str().unwrap();
        assert!(exposed.contains("retry-after") && exposed.contains("etag"), "{exposed}");
    }
    let allowed = "access-control-allow-origin";
    for stranger in ["https://evil.test", "https://app.example.org.evil.test", "null"] {
        assert!(!preflight(stranger).await.is(403).headers.contains_key(allowed), "{stranger}");
        let call = world.call_as("blue-member", "GET", "/v1/sessions").header("origin", stranger);
        assert!(!call.send().await.is(403).headers.contains_key(allowed), "{stranger}");
    }
    let plain = world.call_as("blue-member", "GET", "/v1/sessions").send().await.is(200);
    assert!(!plain.headers.contains_key(allowed));
    assert!(plain.headers["vary"].to_str().unwrap().contains("origin"), "for caches");
}

#[tokio::test]
async fn where_no_origin_is_listed_nothing_is_said_to_pages() {
    let world = World::new().await;
    world.call("OPTIONS", "/v1/chat").send().await.is(405).problem("method");
    let own = format!("http://{}", world.address);
    let call = world.call_as("blue-member", "GET", "/v1/sessions").header("origin", &own);
    assert!(!call.send().await.is(200).headers.contains_key("access-control-allow-origin"));
}
