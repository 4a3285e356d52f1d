//! The files of the page, as a browser is sent them.

use std::io::Read as _;

use crate::client::Answer;
use crate::kit::{Plan, World};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
    trusted-types dompurify";

const VIEWS: [&str; 12] = [
    "/",
    "/sessions",
    "/sessions/20261122T000000000Z-blue",
    "/sessions/20261122T000000000Z-blue/subagents/main%2Fscout%230",
    "/agents",
    "/rights",
    "/tools",
    "/usage",
    "/audit",
    "/running",
    "/libraries",
    "/login",
];

/// The headers of every file of the page.
#[track_caller]
fn is_guarded(answer: &Answer, at: &str) {
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        assert_eq!(answer.headers[name], value, "{name} of {at}");
    }
    assert!(answer.headers["permissions-policy"].to_str().unwrap().contains("camera=()"), "{at}");
    assert!(!answer.headers.contains_key("set-cookie"), "{at}");
}

/// The places of this server that a text of the page names.
fn named(text: &str) -> Vec<String> {
    let places = text.split(['"', '\'']).filter(|part| part.starts_with('/') && part.len() > 1);
    places.map(str::to_owned).collect()
}

#[tokio::test]
async fn every_view_is_the_same_shell_for_everybody() {
    let world = World::new().await;
    let first = world.call("GET", "/").send().await.is(200);
    for view in VIEWS {
        let answer = world.call("GET", view).send().await.is(200);
        is_guarded(&answer, view);
        assert_eq!(answer.headers["content-type"], "text/html; charset=utf-8");
        assert_eq!(answer.headers["cache-control"], "no-cache");
        assert_eq!(answer.body, first.body, "{view}: nothing of whoever asks");
        let known = world.call_as("blue-admin", "GET", view).send().await.is(200);
        assert_eq!(known.body, first.body, "{view}");
    }
    let me = world.call_as("red-member", "GET", "/v1/me").send().await.is(200).json();
    let digest = format!("name=\"belljar-page\" content=\"{}\"", me["page"].as_str().unwrap());
    let shell = String::from_utf8(first.body).unwrap();
    assert!(shell.contains(&digest), "{shell}");
    for path in ["/views", "/v1", "/sessionsx", "/assets", "/assets/", "/index.html", "/../x"] {
        world.call("GET", path).send().await.is(404);
    }
    world.call("POST", "/").send().await.is(405);
}

#[tokio::test]
async fn a_browser_at_no_path_is_shown_the_page_and_a_program_the_problem() {
    let world = World::new().await;
    let shell = world.call("GET", "/").send().await.is(200).body;
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    for path in ["/nowhere", "/sessionsx/1", "/v2"] {
        let shown = world.call("GET", path).header("accept", browser).send().await.is(404);
        is_guarded(&shown, path);
        assert_eq!(
            (&shown.headers["content-type"], shown.body == shell),
            (&"text/html; charset=utf-8".parse().unwrap(), true)
        );
        world.call("GET", path).send().await.is(404).problem("not-found");
        let json = world.call("GET", path).header("accept", "application/json");
        json.send().await.is(404).problem("not-found");
    }
    // Of the API, and of nothing that is sent, there is no page.
    let api = world.call("GET", "/v1/nowhere").header("accept", browser).send().await.is(404);
    assert_eq!(api.json()["error"]["code"], "not_found");
    let sent = world.call("POST", "/nowhere").header("accept", browser).send().await.is(404);
    sent.problem("not-found");
}

#[tokio::test]
async fn what_the_shell_names_is_there_and_kept_for_ever() {
    let world = World::new().await;
    let shell = world.call("GET", "/").send().await.is(200);
    let places = named(std::str::from_utf8(&shell.body).unwrap());
    assert!(places.iter().any(|place| place.ends_with(".js")), "{places:?}");
    let mut sent = 0;
    for place in places {
        let plain = world.call("GET", &place).send().await.is(200);
        is_guarded(&plain, &place);
        if place.starts_with("/assets/") {
            assert_eq!(plain.headers["cache-control"], "public, max-age=31536000, immutable");
        }
        let call = world.call("GET", &place).header("accept-encoding", "gzip, deflate, br");
        let packed = call.send().await.is(200);
        sent += packed.body.len();
        if packed.headers.get("content-encoding").is_some_and(|value| value == "gzip") {
            let mut unpacked = Vec::new();
            let mut reader = flate2::read::GzDecoder::new(packed.body.as_slice());
            reader.read_to_end(&mut unpacked).unwrap();
            assert_eq!(unpacked, plain.body, "{place}");
        }
        assert_eq!(packed.headers["vary"], "accept-encoding");
    }
    assert!(sent < 250 << 10, "the first load is {sent} bytes");
}

#[tokio::test]
async fn the_page_is_for_whoever_calls_this_server_by_its_name() {
    let world = World::with(Plan { rate: 20, ..Plan::default() }).await;
    for name in ["evil.test", "localhost:1"] {
        let answer = world.call("GET", "/").header("host", name).send().await.is(421);
        answer.problem("wrong-host");
    }
    let other = world.call("GET", "/").header("origin", "https://evil.test");
    other.send().await.is(403).problem("origin");
    // Files have a rate of their own address, and its neighbour is not held up.
    let mut last = world.call("GET", "/").send().await;
    for _ in 0..100 {
        if last.status != 200 {
            break;
        }
        last = world.call("GET", "/").send().await;
    }
    last.is(429).problem("too-many");
    world.call("GET", "/").from([127, 0, 0, 9].into()).send().await.is(200);
    world.call_as("blue-admin", "GET", "/v1/me").send().await.is(200);
}

#[tokio::test]
async fn a_browser_that_came_by_https_is_told_to_stay_with_it_and_no_other() {
    let world = World::new().await;
    let pinned = async |host: &str, name: &str, value: &str| {
        let call = world.call("GET", "/").header("host", host).header(name, value);
        call.send().await.headers.contains_key("strict-transport-security")
    };
    let own = "https://jar.example.org";
    assert!(pinned("jar.example.org", "origin", own).await);
    assert!(pinned("jar.example.org", "cookie", "__Host-belljar=bl_x").await);
    assert!(!pinned("jar.example.org", "origin", "http://jar.example.org").await);
    assert!(!pinned("jar.example.org", "accept", "*/*").await);
    let here = world.address.to_string();
    assert!(!pinned(&here, "origin", &format!("https://{here}")).await);
    assert!(!pinned("evil.test", "origin", "https://evil.test").await, "not by that name");
}
