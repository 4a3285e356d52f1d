//! Secrets: where they go, and what comes back.

use super::*;
use crate::http::{Secret, SecretStore};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belljar_policy::SecretName;

const VALUE: &str = "s3cret/value+42";

fn secrets(bound: &str) -> JarSecrets {
    let mut store = SecretStore::default();
    let name = SecretName::new("key").unwrap();
    let rule = vec![bound.parse().unwrap()];
    let secret = Secret::new(&VALUE.into(), rule, "authorization", "Bearer ").unwrap();
    store.insert(name.clone(), secret);
    store.allowed(&[name].into())
}

fn rig(rules: &[&str], bound: &str) -> Rig {
    Rig::with(rules, &Limits::default(), HttpOptions::default(), secrets(bound))
}

/// A server with a secret bound to it.
async fn bound(reply: &[&[u8]]) -> (Server, Rig) {
    let server = Server::start(reply, Then::Close).await;
    let rule = format!("http://{}", server.at);
    let rig = rig(&[&rule], &rule);
    (server, rig)
}

fn reply(headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n{headers}\r\n{body}").into_bytes()
}

#[tokio::test]
async fn a_secret_goes_to_its_host_and_to_no_other() {
    let (mine, other) =
        (Server::start(&[OK], Then::Close).await, Server::start(&[OK], Then::Close).await);
    let rules = [format!("http://{}", mine.at), format!("http://{}", other.at)];
    let rig = rig(&[&rules[0], &rules[1]], &rules[0]);
    rig.send(Request::get(mine.url("/")).header("accept-encoding", "gzip, br"), "", None)
        .await
        .unwrap();
    let head = mine.heads().remove(0);
    assert!(head.contains(&format!("authorization: Bearer {VALUE}\r\n")), "{head}");
    assert!(head.contains("accept-encoding: identity\r\n") && !head.contains("gzip"), "{head}");
    let used = rig.record.take().0.secrets_used.into_iter().collect::<Vec<_>>();
    assert_eq!(used, ["key"]);

    rig.send(Request::get(other.url("/")).header("accept-encoding", "gzip"), "", None)
        .await
        .unwrap();
    let head = other.heads().remove(0);
    assert!(!head.contains("authorization") && head.contains("accept-encoding: gzip"), "{head}");
    assert!(rig.record.take().0.secrets_used.is_empty());
}

#[tokio::test]
async fn a_secret_does_not_follow_a_redirect_to_another_host() {
    let other = Server::start(&[OK], Then::Close).await;
    let away =
        format!("HTTP/1.1 302 F\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n", other.url("/"));
    let mine = Server::start(&[away.as_bytes()], Then::Close).await;
    let rules = [format!("http://{}", mine.at), format!("http://{}", other.at)];
    let rig = rig(&[&rules[0], &rules[1]], &rules[0]);
    let reply = rig.get(&mine.url("/")).await.unwrap();
    rig.get(reply.headers["location"].to_str().unwrap()).await.unwrap();
    assert!(!other.heads().remove(0).contains("authorization"));
}

#[tokio::test]
async fn a_secret_bound_without_a_scheme_is_not_sent_in_clear_text() {
    let server = Server::start(&[OK], Then::Close).await;
    let rule = format!("http://{}", server.at);
    let bound = format!("127.0.0.1:{}", server.at.port());
    rig(&[&rule], &bound).get(&server.url("/")).await.unwrap();
    assert!(!server.heads().remove(0).contains("authorization"));
}

#[tokio::test]
async fn the_guest_cannot_set_the_header_itself() {
    let (server, rig) = bound(&[OK]).await;
    let own = Request::get(server.url("/")).header("Authorization", "Basic mine");
    assert_error!(rig.send(own, "", None).await, Error::HttpRequestDenied);
    assert_eq!(rig.denials(), [DenyCode::RequestNotAllowed]);
    assert_eq!(server.heads().len(), 0);
    rig.get(&server.url("/")).await.unwrap();
}

#[tokio::test]
async fn an_echo_in_the_body_is_withheld_in_every_form() {
    let hex: String = VALUE.bytes().map(|b| format!("{b:02x}")).collect();
    let percent: String = url::form_urlencoded::byte_serialize(VALUE.as_bytes()).collect();
    for form in [
        VALUE.to_owned(),
        format!("{{\"authorization\":\"Bearer {VALUE}\"}}"),
        STANDARD.encode(format!("xx{VALUE}yy")),
        VALUE.replace('/', "\\/"),
        percent,
        hex,
    ] {
        let body = format!("before {form} after");
        let (server, rig) = bound(&[&reply("", &body)]).await;
        let reply = rig.get(&server.url("/")).await.unwrap();
        assert_error!(reply.body, Error::HttpRequestDenied);
        assert_eq!(reply.passed, b"", "{form}");
        assert_eq!(rig.denials(), [DenyCode::SecretInReply], "{form}");
    }
}

#[tokio::test]
async fn an_echo_in_pieces_is_withheld_before_its_first_half_is_out() {
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n7\r\nbefore \r\n";
    let (one, two) = VALUE.split_at(8);
    let one = format!("{:x}\r\n{one}\r\n", one.len());
    let two = format!("{:x}\r\n{two}\r\n0\r\n\r\n", two.len());
    let (server, rig) = bound(&[head.as_bytes(), one.as_bytes(), two.as_bytes()]).await;
    let reply = rig.get(&server.url("/")).await.unwrap();
    assert_error!(reply.body, Error::HttpRequestDenied);
    assert!(b"before ".starts_with(&reply.passed), "{:?}", reply.passed);
    assert_eq!(rig.denials(), [DenyCode::SecretInReply]);
}

#[tokio::test]
async fn an_echo_in_the_head_is_withheld() {
    let percent: String = url::form_urlencoded::byte_serialize(VALUE.as_bytes()).collect();
    for head in [
        reply(&format!("x-echo: Bearer {VALUE}\r\n"), ""),
        reply(&format!("location: http://evil.test/?k={percent}\r\n"), ""),
        reply(&format!("x-{}: 1\r\n", hex()), ""),
        format!("HTTP/1.1 200 {VALUE}\r\ncontent-length: 0\r\n\r\n").into_bytes(),
    ] {
        let (server, rig) = bound(&[&head]).await;
        assert_error!(rig.get(&server.url("/")).await, Error::HttpRequestDenied);
        assert_eq!(rig.denials(), [DenyCode::SecretInReply]);
    }
}

fn hex() -> String {
    VALUE.bytes().map(|b| format!("{b:02X}")).collect()
}

#[tokio::test]
async fn trailers_do_not_carry_an_echo() {
    let text = format!(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-echo\r\n\r\n\
         2\r\nok\r\n0\r\nx-echo: {VALUE}\r\n\r\n"
    );
    let (server, rig) = bound(&[text.as_bytes()]).await;
    let request = Request::get(server.url("/")).body(full("")).unwrap();
    let (reply, io) = Arc::clone(&rig.gate).send(request, None).await.unwrap();
    let io = tokio::spawn(Box::into_pin(io));
    let body = reply.into_body().collect().await.unwrap();
    assert!(body.trailers().is_none());
    assert_eq!(body.to_bytes(), "ok");
    io.abort();
}

#[tokio::test]
async fn what_cannot_be_searched_is_refused_only_where_a_secret_was_joined() {
    for head in [
        reply("content-encoding: gzip\r\n", "zipped"),
        reply("content-encoding: identity, BR\r\n", "zipped"),
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n2\r\nxx\r\n0\r\n\r\n".to_vec(),
    ] {
        let (server, rig) = bound(&[&head]).await;
        assert_error!(rig.get(&server.url("/")).await, Error::HttpResponseContentCoding(_));
        assert_eq!(rig.denials(), [DenyCode::SecretInReply]);
        let rule = format!("http://{}", server.at);
        Rig::new(&[&rule]).get(&server.url("/")).await.unwrap().body.unwrap();
    }
    let part = b"HTTP/1.1 206 P\r\ncontent-range: bytes 0-1/9\r\ncontent-length: 2\r\n\r\nxx";
    let (server, rig) = bound(&[part]).await;
    assert_error!(rig.get(&server.url("/")).await, Error::HttpRequestDenied);
    let ranged = Request::get(server.url("/")).header("range", "bytes=0-1");
    assert_error!(rig.send(ranged, "", None).await, Error::HttpRequestDenied);
    assert_eq!(rig.denials(), [DenyCode::SecretInReply, DenyCode::RequestNotAllowed]);
    assert_eq!(server.heads().len(), 1);
}

#[tokio::test]
async fn an_echo_of_a_host_that_was_not_sent_the_secret_is_withheld() {
    let mine = Server::start(&[OK], Then::Close).await;
    let mine = format!("http://{}", mine.at);
    let head = reply(&format!("x-told: {VALUE}\r\n"), "");
    let friend = Server::start(&[&head], Then::Close).await;
    let rig = rig(&[&mine, &format!("http://{}", friend.at)], &mine);
    assert_error!(rig.get(&friend.url("/")).await, Error::HttpRequestDenied);
    let friend = Server::start(&[&reply("", VALUE)], Then::Close).await;
    let rig = self::rig(&[&mine, &format!("http://{}", friend.at)], &mine);
    let told = rig.get(&friend.url("/")).await.unwrap();
    assert_error!(told.body, Error::HttpRequestDenied);
    assert_eq!(told.passed, b"");
    assert!(!friend.heads().remove(0).contains("authorization"));
    assert_eq!(rig.denials(), [DenyCode::SecretInReply]);
}

#[tokio::test]
async fn no_refusal_names_a_coding_that_is_the_secret() {
    for header in ["content-encoding", "transfer-encoding"] {
        for coding in [VALUE.to_owned(), format!("x{}", &VALUE[..12])] {
            let (server, rig) = bound(&[&reply(&format!("{header}: {coding}\r\n"), "")]).await;
            rig.get(&server.url("/")).await.map(drop).unwrap_err();
            let shown = format!("{:?}", rig.record.take()).to_ascii_lowercase();
            assert!(!shown.contains(&VALUE[..8]), "{shown}");
        }
    }
}

#[tokio::test]
async fn a_body_without_an_echo_passes_unchanged() {
    let body = format!("a beginning only: {}", &VALUE[..9]);
    let (server, rig) = bound(&[&reply("x-ok: 1\r\n", &body)]).await;
    let reply = rig.get(&server.url("/")).await.unwrap();
    assert_eq!(reply.body.unwrap(), body);
    assert_eq!(rig.denials(), []);
}

#[tokio::test]
async fn no_denial_and_no_error_holds_the_value() {
    let (server, rig) = bound(&[&reply("", VALUE)]).await;
    let reply = rig.get(&server.url("/")).await.unwrap();
    let shown = format!("{reply:?} {:?} {:?}", rig.record, rig.record.take());
    assert!(!shown.contains(VALUE), "{shown}");
}
