//! Requests that are refused before anybody looks at them, and that every refusal is problem
//! details.

use std::time::Duration;

use belljar_server::MAX_BODY;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::client::PATIENCE;
use crate::kit::{World, session};

#[tokio::test]
async fn a_request_for_another_name_is_refused_whatever_its_key() {
    let world = World::new().await;
    let port = world.address.port();
    let to = async |host: &str| {
        world.call_as("blue-admin", "GET", "/v1/sessions").header("host", host).send().await
    };
    for host in ["evil.test", &format!("evil.test:{port}"), "localhost:1"] {
        to(host).await.is(421).problem("wrong-host");
    }
    for host in ["jar.example.org", &format!("localhost:{port}"), &format!("127.0.0.1:{port}")] {
        to(host).await.is(200);
    }
    // Whoever looks after the machine knows it by its address.
    for path in ["/healthz", "/readyz"] {
        world.call("GET", path).header("host", "10.0.0.7").send().await.is(200);
    }
}

#[tokio::test]
async fn a_page_of_a_stranger_is_refused_and_changes_nothing() {
    let world = World::new().await;
    let path = format!("/v1/sessions/{}", session("blue"));
    let before = world.state("blue").await;
    for origin in ["https://evil.test", "null", "http://localhost:1"] {
        let call = world.call_as("blue-admin", "DELETE", &path).header("origin", origin);
        call.send().await.is(403).problem("origin");
    }
    assert_eq!(world.state("blue").await, before);
    let own = format!("http://{}", world.address);
    world.call_as("blue-admin", "DELETE", &path).header("origin", &own).send().await.is(200);
}

#[tokio::test]
async fn a_body_that_is_too_large_or_no_json_is_refused() {
    let world = World::new().await;
    let post = || world.call_as("blue-admin", "POST", "/v1/agents/validate");
    let large = vec![b' '; MAX_BODY + 1];
    post().bytes("application/json", &large).send().await.is(413).problem("too-large");
    post().bytes("text/plain", b"{}").send().await.is(415).problem("media-type");
    post().send().await.is(415).problem("media-type");
    for body in ["", "{", "[]", r#"{"text": 1}"#, r#"{"text": "x", "\u001b[2J": 1}"#] {
        let answer = post().bytes("application/json", body.as_bytes()).send().await.is(400);
        let problem = answer.problem("invalid-request");
        assert!(!problem["detail"].as_str().unwrap().contains('\u{1b}'), "{problem}");
    }
    post().json(&json!({ "text": "x" })).send().await.is(200);
}

#[tokio::test]
async fn a_query_or_a_path_of_another_form_is_refused() {
    let world = World::new().await;
    let get = async |path: &str| world.call_as("blue-admin", "GET", path).send().await;
    for path in [
        "/v1/sessions?limit=0",
        "/v1/sessions?limit=201",
        "/v1/sessions?limit=x",
        "/v1/sessions?limt=1",
        "/v1/usage?since=yesterday",
        "/v1/grants",
    ] {
        get(path).await.is(400).problem("invalid-request");
    }
    for path in [
        "/v1/sessions/%00",
        "/v1/sessions/..%2f..%2fetc",
        "/v1/sessions/%ff",
        "/v1/agents/Not-A-Slug",
        "/views",
    ] {
        get(path).await.is(404).problem("not-found");
    }
    let answer = world.call_as("blue-admin", "PATCH", "/v1/sessions").send().await.is(405);
    answer.problem("method");
    assert!(answer.headers["allow"].to_str().unwrap().contains("GET"));
}

#[tokio::test]
async fn no_answer_may_be_taken_for_a_page() {
    let world = World::new().await;
    for path in ["/v1/sessions", "/healthz", "/nothing"] {
        let headers = world.call_as("blue-admin", "GET", path).send().await.headers;
        assert_eq!(headers["x-content-type-options"], "nosniff", "{path}");
        assert_eq!(headers["cache-control"], "no-store", "{path}");
        assert!(
            headers["content-security-policy"].to_str().unwrap().contains("default-src 'none'")
        );
    }
}

/// The answer of a connection to these bytes.
async fn raw(world: &World, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut text = Vec::new();
    // The server may close the connection while more is sent.
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut text)).await.unwrap();
    String::from_utf8_lossy(&text).into_owned()
}

#[tokio::test]
async fn a_head_without_end_is_cut_off_and_the_next_one_answered() {
    let world = World::new().await;
    let mut head = format!("GET /healthz HTTP/1.1\r\nhost: {}\r\n", world.address).into_bytes();
    for number in 0..100 {
        head.extend_from_slice(format!("x-{number}: y\r\n").as_bytes());
    }
    head.extend_from_slice(b"\r\n");
    assert!(raw(&world, &head).await.starts_with("HTTP/1.1 431"));
    let long = format!("GET /healthz HTTP/1.1\r\nx: {}\r\n", "y".repeat(64 << 10));
    assert!(raw(&world, long.as_bytes()).await.starts_with("HTTP/1.1 431"));
    world.call("GET", "/healthz").send().await.is(200);
}

#[tokio::test]
async fn a_head_of_the_bound_is_answered_and_one_byte_more_is_not() {
    const MAX_HEAD: usize = 32 << 10;
    let world = World::new().await;
    let head = |length: usize| {
        let start =
            format!("GET /healthz HTTP/1.1\r\nhost: {}\r\nconnection: close\r\nx: ", world.address);
        let fill = "y".repeat(length - start.len() - 4);
        format!("{start}{fill}\r\n\r\n").into_bytes()
    };
    assert!(raw(&world, &head(MAX_HEAD)).await.starts_with("HTTP/1.1 200"));
    for length in [MAX_HEAD + 1, 40_000, 60_000] {
        let answer = raw(&world, &head(length)).await;
        assert!(answer.starts_with("HTTP/1.1 431"), "{length}: {answer}");
    }
    world.call("GET", "/healthz").send().await.is(200);
}

#[tokio::test]
async fn whoever_says_nothing_holds_up_nobody() {
    let world = World::new().await;
    let mut silent = Vec::new();
    for _ in 0..50 {
        silent.push(TcpStream::connect(world.address).await.unwrap());
    }
    let answered = world.call("GET", "/healthz").send();
    tokio::time::timeout(Duration::from_secs(5), answered).await.unwrap().is(200);
}
