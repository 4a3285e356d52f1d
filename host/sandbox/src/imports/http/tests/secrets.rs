//! Secrets: which requests get them, and what a reply may contain.

use super::*;
use crate::imports::http::{Secret, SecretStore};
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
    store.allowed_secrets(&[name].into())
}

fn rig(rules: &[&str], bound: &str) -> Rig {
    Rig::with(rules, &Limits::default(), HttpOptions::default(), secrets(bound))
}

/// A server with a secret bound to it.
async fn bound(reply: &[&[u8]]) -> (HttpPeer, Rig) {
    let server = HttpPeer::with_reply(in_pieces(reply));
    let rule = format!("http://{}", server.address);
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
        (HttpPeer::with_reply(Reply::bytes(OK)), HttpPeer::with_reply(Reply::bytes(OK)));
    let rules = [format!("http://{}", mine.address), format!("http://{}", other.address)];
    let rig = rig(&[&rules[0], &rules[1]], &rules[0]);
    rig.send(Request::get(mine.url("/")).header("accept-encoding", "gzip, br"), "", None)
        .await
        .unwrap();
    let head = mine.heads().remove(0);
    assert!(head.contains(&format!("authorization: Bearer {VALUE}\r\n")), "{head}");
    assert!(head.contains("accept-encoding: identity\r\n") && !head.contains("gzip"), "{head}");
    let used = rig.record.drain_lists().0.secrets_used.into_iter().collect::<Vec<_>>();
    assert_eq!(used, ["key"]);

    rig.send(Request::get(other.url("/")).header("accept-encoding", "gzip"), "", None)
        .await
        .unwrap();
    let head = other.heads().remove(0);
    assert!(!head.contains("authorization"), "{head}");
    assert!(head.contains("accept-encoding: identity") && !head.contains("gzip"), "{head}");
    assert!(rig.record.drain_lists().0.secrets_used.is_empty());
}

#[tokio::test]
async fn a_secret_does_not_follow_a_redirect_to_another_host() {
    let other = HttpPeer::with_reply(Reply::bytes(OK));
    let away =
        format!("HTTP/1.1 302 F\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n", other.url("/"));
    let mine = HttpPeer::with_reply(Reply::bytes(away.as_bytes()));
    let rules = [format!("http://{}", mine.address), format!("http://{}", other.address)];
    let rig = rig(&[&rules[0], &rules[1]], &rules[0]);
    let reply = rig.get(&mine.url("/")).await.unwrap();
    rig.get(reply.headers["location"].to_str().unwrap()).await.unwrap();
    assert!(!other.heads().remove(0).contains("authorization"));
}

#[tokio::test]
async fn a_secret_bound_without_a_scheme_is_not_sent_in_clear_text() {
    let server = HttpPeer::with_reply(Reply::bytes(OK));
    let rule = format!("http://{}", server.address);
    let bound = format!("127.0.0.1:{}", server.address.port());
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
        VALUE.replace('/', "\\\\\\/").replace('+', "\\\\u002b"),
        VALUE.replace('+', "%2B"),
        VALUE.replace('/', "&#x2F;"),
        percent,
        hex,
    ] {
        let body = format!("before {form} after");
        let (server, rig) = bound(&[&reply("", &body)]).await;
        assert_error!(rig.get(&server.url("/")).await, Error::HttpRequestDenied);
        assert_eq!(rig.denials(), [DenyCode::SecretInReply], "{form}");
    }
}

#[tokio::test]
async fn an_echo_in_pieces_is_withheld_with_all_of_its_reply() {
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n7\r\nbefore \r\n";
    let (one, two) = VALUE.split_at(8);
    let one = format!("{:x}\r\n{one}\r\n", one.len());
    let two = format!("{:x}\r\n{two}\r\n0\r\n\r\n", two.len());
    let (server, rig) = bound(&[head.as_bytes(), one.as_bytes(), two.as_bytes()]).await;
    assert_error!(rig.get(&server.url("/")).await, Error::HttpRequestDenied);
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
async fn trailers_are_searched_and_those_without_an_echo_arrive() {
    let with = |line: &str| {
        format!(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n\
             2\r\nok\r\n0\r\n{line}\r\n\r\n"
        )
    };
    for line in [format!("x-sum: {VALUE}"), format!("x-{}: 1", hex())] {
        let (server, rig) = bound(&[with(&line).as_bytes()]).await;
        assert_error!(rig.get(&server.url("/")).await, Error::HttpRequestDenied);
        assert_eq!(rig.denials(), [DenyCode::SecretInReply]);
    }
    let (server, rig) = bound(&[with("x-sum: 17").as_bytes()]).await;
    let request = Request::get(server.url("/")).body(full("")).unwrap();
    let (reply, _io) = Arc::clone(&rig.gate).send_request(request, None).await.unwrap();
    let body = reply.into_body().collect().await.unwrap();
    assert_eq!(body.trailers().unwrap()["x-sum"], "17");
    assert_eq!(body.to_bytes(), "ok");
}

#[tokio::test]
async fn what_cannot_be_searched_is_refused_only_in_a_run_with_secrets() {
    for head in [
        reply("content-encoding: gzip\r\n", "zipped"),
        reply("content-encoding: identity, BR\r\n", "zipped"),
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n2\r\nxx\r\n0\r\n\r\n".to_vec(),
    ] {
        let (server, rig) = bound(&[&head]).await;
        assert_error!(rig.get(&server.url("/")).await, Error::HttpResponseContentCoding(_));
        assert_eq!(rig.denials(), [DenyCode::SecretInReply]);
        let rule = format!("http://{}", server.address);
        // Whoever asks for a coding gets the bytes as they came.
        let asks = Request::get(server.url("/")).header("accept-encoding", "gzip, br");
        Rig::new(&[&rule]).send(asks, "", None).await.unwrap().body.unwrap();
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
    let mine = HttpPeer::with_reply(Reply::bytes(OK));
    let mine = format!("http://{}", mine.address);
    let head = reply(&format!("x-told: {VALUE}\r\n"), "");
    let friend = HttpPeer::with_reply(Reply::bytes(&head));
    let rig = rig(&[&mine, &format!("http://{}", friend.address)], &mine);
    assert_error!(rig.get(&friend.url("/")).await, Error::HttpRequestDenied);
    let friend = HttpPeer::with_reply(Reply::bytes(reply("", VALUE)));
    let rig = self::rig(&[&mine, &format!("http://{}", friend.address)], &mine);
    assert_error!(rig.get(&friend.url("/")).await, Error::HttpRequestDenied);
    assert!(!friend.heads().remove(0).contains("authorization"));
    assert_eq!(rig.denials(), [DenyCode::SecretInReply]);
}

#[tokio::test]
async fn no_refusal_names_a_coding_that_is_the_secret() {
    for header in ["content-encoding", "transfer-encoding"] {
        for coding in [VALUE.to_owned(), format!("x{}", &VALUE[..12])] {
            let (server, rig) = bound(&[&reply(&format!("{header}: {coding}\r\n"), "")]).await;
            rig.get(&server.url("/")).await.map(drop).unwrap_err();
            let shown = format!("{:?}", rig.record.drain_lists()).to_ascii_lowercase();
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
    let told = rig.get(&server.url("/")).await.unwrap_err();
    let shown = format!("{told:?} {:?} {:?}", rig.record, rig.record.drain_lists());
    assert!(!shown.contains(VALUE), "{shown}");
}

#[tokio::test]
async fn what_another_tool_of_the_run_is_sent_is_searched_too() {
    let server = HttpPeer::with_reply(Reply::bytes(reply("", VALUE)));
    let zipped = HttpPeer::with_reply(Reply::bytes(reply("content-encoding: gzip\r\n", "x")));
    let kind = HttpPeer::with_reply(Reply::bytes(OK));
    let rules = [&server, &zipped, &kind].map(|server| format!("http://{}", server.address));
    let rig = |secrets| {
        let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
        Rig::with(&rules, &Limits::default(), HttpOptions::default(), secrets)
    };
    let other = rig(of_another_tool());
    assert_error!(other.get(&server.url("/")).await, Error::HttpRequestDenied);
    assert_error!(other.get(&zipped.url("/")).await, Error::HttpResponseContentCoding(None));
    let part = Request::get(kind.url("/")).header("range", "bytes=0-3");
    assert_error!(other.send(part, "", None).await, Error::HttpRequestDenied);
    let denied = [DenyCode::SecretInReply, DenyCode::SecretInReply, DenyCode::RequestNotAllowed];
    assert_eq!(other.denials(), denied);
    assert_eq!(kind.heads().len(), 0);
    assert_eq!(other.get(&kind.url("/")).await.unwrap().body.unwrap(), "hello");
    let stranger = rig(JarSecrets::default());
    assert_eq!(stranger.get(&server.url("/")).await.unwrap().body.unwrap(), VALUE);
}

/// The secrets of a tool without a secret, in a run in which another tool has a secret.
fn of_another_tool() -> JarSecrets {
    let name = SecretName::new("key").unwrap();
    let mut store = SecretStore::default();
    let rule = vec!["http://127.0.0.1:1".parse().unwrap()];
    store.insert(name.clone(), Secret::new(&VALUE.into(), rule, "authorization", "").unwrap());
    store.for_run(&[name].into()).allowed_secrets(&std::collections::BTreeSet::new())
}

#[tokio::test]
async fn a_run_whose_replies_keep_holding_a_secret_asks_for_nothing_more() {
    let server = HttpPeer::with_reply(Reply::bytes(reply("", VALUE)));
    let rule = format!("http://{}", server.address);
    let rig = Rig::with(&[&rule], &Limits::default(), HttpOptions::default(), of_another_tool());
    let mut last = 0;
    while !rig.denials().contains(&DenyCode::LimitReached) {
        last = server.heads().len();
        assert!(last < 100, "there is no end of it");
        assert_error!(rig.get(&server.url("/")).await, Error::HttpRequestDenied);
    }
    assert_eq!(server.heads().len(), last, "the last request was not sent");
}

#[tokio::test]
async fn a_reply_that_is_held_counts_as_memory_until_it_is_read_or_dropped() {
    use belljar_policy::Meter;
    let body = "x".repeat(150_000);
    let server = HttpPeer::with_reply(Reply::bytes(reply("", &body)));
    let rule = format!("http://{}", server.address);
    let rig = |memory_bytes| {
        let limits = Limits { memory_bytes, ..Limits::default() };
        Rig::with(&[&rule], &limits, HttpOptions::default(), of_another_tool())
    };
    let small = rig(128 << 10);
    assert_error!(small.get(&server.url("/")).await, Error::HttpResponseBodySize(None));
    assert_eq!(small.denials(), [DenyCode::LimitReached]);
    let large = rig(192 << 10);
    let request = Request::get(server.url("/")).body(full("")).unwrap();
    let (held, _io) = Arc::clone(&large.gate).send_request(request, None).await.unwrap();
    assert_eq!(large.budget.spent_amount(Meter::Memory), 192 << 10);
    drop(held);
    assert_eq!(large.get(&server.url("/")).await.unwrap().body.unwrap(), body);
    for rig in [small, large] {
        assert_eq!(rig.budget.spent_amount(Meter::Memory), 0);
    }
}
