//! The network in real stores: the stock page reader with servers on this machine.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use belljar_kit::{TestHost, TestJar, assert_denied, stock, text};
use belljar_policy::{DenyCode, Limits, SecretName};
use belljar_sandbox::http::Secret;
use belljar_sandbox::{CallResult, SecretStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A server with the same answer to every request. Records the heads of the requests.
struct Server {
    at: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// `endless` = the last 1,024 bytes of the answer repeat for ever.
    async fn start(answer: String, endless: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&heads);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    match stream.read_u8().await {
                        Ok(byte) => head.push(byte),
                        Err(_) => break,
                    }
                }
                seen.lock().unwrap().push(String::from_utf8(head).unwrap());
                let _ = stream.write_all(answer.as_bytes()).await;
                let tail = answer.len().saturating_sub(1024);
                while endless && stream.write_all(&answer.as_bytes()[tail..]).await.is_ok() {}
            }
        });
        Self { at, heads }
    }

    async fn page(headers: &str, body: &str) -> Self {
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\n\
             {headers}\r\n{body}"
        );
        Self::start(answer, false).await
    }

    fn rule(&self) -> String {
        format!("http://{}", self.at)
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
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
    let (host, server) = (TestHost::new(), Server::page("", "hello there").await);
    let jar = jar(&host, &[server.rule()], Limits::default()).await;
    let result = fetch(&jar, &server.rule()).await;
    assert!(text(&result).contains("hello there"));
    assert_eq!(result.receipt.hosts, [server.rule()]);
    assert_eq!(result.receipt.bytes.sent, server.heads()[0].len() as u64);
    assert!(result.receipt.bytes.received > 11);
}

#[tokio::test]
async fn a_host_that_is_not_granted_is_not_reached() {
    let (host, server) = (TestHost::new(), Server::page("", "hello there").await);
    let other = Server::page("", "other").await;
    let jar = jar(&host, &[server.rule()], Limits::default()).await;
    let result = fetch(&jar, &other.rule()).await;
    assert_denied(&result, DenyCode::HostNotAllowed);
    assert_eq!(other.heads().len(), 0);
    let told = result.outcome.unwrap_err().to_string();
    assert!(!told.contains("grant") && !told.contains("rule"), "no recipe: {told}");
    assert!(text(&fetch(&jar, &server.rule()).await).contains("hello there"));
}

#[tokio::test]
async fn without_a_granted_host_no_request_leaves() {
    let (host, server) = (TestHost::new(), Server::page("", "hello there").await);
    let jar = jar(&host, &[], Limits::default()).await;
    let result = fetch(&jar, &server.rule()).await;
    assert!(result.outcome.is_err());
    assert!(!result.receipt.denials.is_empty());
    assert_eq!(server.heads().len(), 0);
}

#[tokio::test]
async fn a_redirect_does_not_lead_past_the_gate() {
    let host = TestHost::new();
    let inner = Server::page("", "inner").await;
    let away =
        format!("HTTP/1.1 302 Found\r\nlocation: {}/x\r\ncontent-length: 0\r\n\r\n", inner.rule());
    let outer = Server::start(away, false).await;
    // All hosts are allowed, but of this machine only one address.
    let jar = jar(&host, &[outer.rule(), "http://*:*".to_owned()], Limits::default()).await;
    let result = fetch(&jar, &outer.rule()).await;
    assert_denied(&result, DenyCode::AddressNotAllowed);
    assert_eq!((outer.heads().len(), inner.heads().len()), (1, 0));
}

#[tokio::test]
async fn an_endless_page_ends_at_the_limit_and_other_jars_go_on() {
    let host = TestHost::new();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n";
    let endless = Server::start(format!("{head}{}", "x".repeat(4096)), true).await;
    let good = Server::page("", "hello there").await;
    let limits = Limits { ingress_bytes: 400_000, ..Limits::default() };
    let spent = jar(&host, &[endless.rule()], limits).await;
    let result = fetch(&spent, &endless.rule()).await;
    assert!(result.outcome.is_err() || text(&result).len() < 600_000);
    assert!(result.receipt.bytes.received < 600_000, "{}", result.receipt.bytes.received);
    let fresh = jar(&host, &[good.rule()], limits).await;
    assert!(text(&fetch(&fresh, &good.rule()).await).contains("hello there"));
}

#[tokio::test]
async fn a_secret_is_joined_by_the_host_and_an_echo_never_reaches_the_tool() {
    const VALUE: &str = "a-secret-of-this-test";
    let host = TestHost::new();
    let (plain, echo) = (Server::page("", "hello").await, Server::page("", VALUE).await);
    let mut builder = host.builder([stock("web_fetch")]);
    builder.hosts = [plain.rule(), echo.rule()].map(|rule| rule.parse().unwrap()).to_vec();
    let name = SecretName::new("key").unwrap();
    let bound = builder.hosts.clone();
    let mut store = SecretStore::default();
    let secret = Secret::new(&VALUE.into(), bound, "authorization", "Bearer ").unwrap();
    store.insert(name.clone(), secret);
    (builder.store, builder.secrets) = (store, [name].into());
    let jar = host.build(builder).await;

    let result = fetch(&jar, &plain.rule()).await;
    assert!(text(&result).contains("hello"));
    assert_eq!(result.receipt.secrets_used, ["key"]);
    let head = plain.heads().remove(0);
    assert!(head.contains(&format!("authorization: Bearer {VALUE}\r\n")), "{head}");

    let result = fetch(&jar, &echo.rule()).await;
    assert_denied(&result, DenyCode::SecretInReply);
    let shown = format!("{result:?}");
    assert!(!shown.contains(VALUE), "{shown}");
}
