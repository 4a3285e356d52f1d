//! The network in real stores: the stock page reader with servers on this machine.

use belljar_kit::peers::{HttpPeer, Reply};
use belljar_kit::{TestHost, TestJar, assert_denied, stock, text};
use belljar_policy::{DenyCode, Limits, SecretName};
use belljar_sandbox::http::Secret;
use belljar_sandbox::{CallResult, SecretStore};

/// A server with one page.
fn serve_page(body: &str) -> HttpPeer {
    HttpPeer::with_reply(Reply::text(body))
}

async fn jar(host: &TestHost, rules: &[String], limits: Limits) -> TestJar {
    let mut builder = host.builder([stock("web_fetch")]);
    builder.hosts = rules.iter().map(|rule| rule.parse().unwrap()).collect();
    builder.limits = limits;
    host.build(builder).await
}

async fn fetch(jar: &TestJar, url: &str) -> CallResult {
    jar.call("web_fetch", &serde_json::json!({ "url": url }).to_string()).await
}

#[tokio::test]
async fn a_page_of_a_granted_host_is_read_and_billed() {
    let (host, server) = (TestHost::new(), serve_page("hello there"));
    let jar = jar(&host, &[server.url("")], Limits::default()).await;
    let result = fetch(&jar, &server.url("")).await;
    assert!(text(&result).contains("hello there"));
    assert_eq!(result.receipt.hosts, [server.url("")]);
    assert_eq!(result.receipt.bytes.sent, server.heads()[0].len() as u64);
    assert!(result.receipt.bytes.received > 11);
}

#[tokio::test]
async fn a_host_that_is_not_granted_is_not_reached() {
    let (host, server) = (TestHost::new(), serve_page("hello there"));
    let other = serve_page("other");
    let jar = jar(&host, &[server.url("")], Limits::default()).await;
    let result = fetch(&jar, &other.url("")).await;
    assert_denied(&result, DenyCode::HostNotAllowed);
    assert_eq!(other.heads().len(), 0);
    let told = result.outcome.unwrap_err().to_string();
    assert!(!told.contains("grant") && !told.contains("rule"), "no recipe: {told}");
    assert!(text(&fetch(&jar, &server.url("")).await).contains("hello there"));
}

#[tokio::test]
async fn without_a_granted_host_no_request_leaves() {
    let (host, server) = (TestHost::new(), serve_page("hello there"));
    let jar = jar(&host, &[], Limits::default()).await;
    let result = fetch(&jar, &server.url("")).await;
    assert!(result.outcome.is_err());
    assert!(!result.receipt.denials.is_empty());
    assert_eq!(server.heads().len(), 0);
}

#[tokio::test]
async fn a_redirect_does_not_lead_past_the_gate() {
    let host = TestHost::new();
    let inner = serve_page("inner");
    let outer = HttpPeer::with_reply(Reply::redirect("302 Found", &inner.url("/x")));
    // Every host, but of this machine only the one.
    let jar = jar(&host, &[outer.url(""), "http://*:*".to_owned()], Limits::default()).await;
    let result = fetch(&jar, &outer.url("")).await;
    assert_denied(&result, DenyCode::AddressNotAllowed);
    assert_eq!((outer.heads().len(), inner.heads().len()), (1, 0));
}

#[tokio::test]
async fn an_endless_page_ends_at_the_limit_and_other_jars_go_on() {
    let host = TestHost::new();
    let head = Reply::bytes("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n");
    let endless = HttpPeer::with_reply(head.then_repeat("x".repeat(4096)));
    let good = serve_page("hello there");
    let limits = Limits { ingress_bytes: 400_000, ..Limits::default() };
    let spent = jar(&host, &[endless.url("")], limits).await;
    let result = fetch(&spent, &endless.url("")).await;
    assert!(result.outcome.is_err() || text(&result).len() < 600_000);
    assert!(result.receipt.bytes.received < 600_000, "{}", result.receipt.bytes.received);
    let fresh = jar(&host, &[good.url("")], limits).await;
    assert!(text(&fetch(&fresh, &good.url("")).await).contains("hello there"));
}

#[tokio::test]
async fn a_secret_is_joined_by_the_host_and_an_echo_never_reaches_the_tool() {
    const VALUE: &str = "a-secret-of-this-test";
    let host = TestHost::new();
    let (plain, echo) = (serve_page("hello"), serve_page(VALUE));
    let mut builder = host.builder([stock("web_fetch")]);
    builder.hosts = [plain.url(""), echo.url("")].map(|rule| rule.parse().unwrap()).to_vec();
    let name = SecretName::new("key").unwrap();
    let bound = builder.hosts.clone();
    let mut store = SecretStore::default();
    let secret = Secret::new(&VALUE.into(), bound, "authorization", "Bearer ").unwrap();
    store.insert(name.clone(), secret);
    (builder.store, builder.secrets) = (store, [name].into());
    let jar = host.build(builder).await;

    let result = fetch(&jar, &plain.url("")).await;
    assert!(text(&result).contains("hello"));
    assert_eq!(result.receipt.secrets_used, ["key"]);
    let head = plain.heads().remove(0);
    assert!(head.contains(&format!("authorization: Bearer {VALUE}\r\n")), "{head}");

    let result = fetch(&jar, &echo.url("")).await;
    assert_denied(&result, DenyCode::SecretInReply);
    let shown = format!("{result:?}");
    assert!(!shown.contains(VALUE), "{shown}");
}
