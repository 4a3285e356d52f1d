//! Limits of bytes, headers, connections and time.

use super::*;
use belljar_policy::Meter;
use std::time::Duration;

fn rig(server: &HttpPeer, limits: &Limits) -> Rig {
    let rule = format!("http://{}", server.address);
    Rig::with(&[&rule], limits, HttpOptions::default(), JarSecrets::default())
}

#[tokio::test]
async fn an_endless_body_ends_at_the_ingress_budget() {
    let chunk = [b"1000\r\n", &[b'x'; 4096][..], b"\r\n"].concat();
    let head: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let pieces = std::iter::once(head).chain(std::iter::repeat_n(&*chunk, 500));
    let server = HttpPeer::with_reply(in_pieces(&pieces.collect::<Vec<_>>()).then_stall());
    let rig = rig(&server, &Limits { ingress_bytes: 100_000, ..Limits::default() });
    let reply = rig.get(&server.url("/")).await.unwrap();
    assert_error!(reply.body, Error::HttpResponseBodySize(_));
    assert!(reply.passed.len() <= 100_000);
    assert!(rig.budget.spent_amount(Meter::Ingress) < 200_000, "one read past the limit at most");
    assert_eq!(rig.denials(), [DenyCode::LimitReached]);
}

#[tokio::test]
async fn a_declared_length_past_the_bound_is_refused_before_it_is_read() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n";
    let server = HttpPeer::with_reply(Reply::bytes(head).then_stall());
    let rig = rig(&server, &Limits::default());
    let length = Some(99_999_999_999);
    match rig.get(&server.url("/")).await {
        Err(Error::HttpResponseBodySize(found)) => assert_eq!(found, length),
        other => panic!("{other:?}"),
    }
    assert_eq!(rig.denials(), [DenyCode::LimitReached]);
}

#[tokio::test]
async fn nothing_past_the_egress_budget_is_sent() {
    let server = HttpPeer::with_reply(Reply::bytes(OK).then_stall());
    let rig = rig(&server, &Limits { egress_bytes: 300, ..Limits::default() });
    let sent = rig.send(Request::post(server.url("/")), &"x".repeat(400), None).await;
    assert_error!(sent, Error::HttpRequestBodySize(_));
    assert_eq!(server.heads().len(), 0);
    assert_eq!(rig.budget.spent_amount(Meter::Egress), 0, "what was not sent is not billed");
    assert_eq!(rig.denials(), [DenyCode::LimitReached]);
    rig.get(&server.url("/small")).await.unwrap();
    assert!(rig.budget.spent_amount(Meter::Egress) > 0);
}

#[tokio::test]
async fn a_flood_of_headers_is_refused() {
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(200));
    let server = HttpPeer::with_reply(Reply::bytes(many.as_bytes()).then_stall());
    let limits = Limits::default();
    let refused = rig(&server, &limits).get(&server.url("/")).await;
    assert_error!(refused, Error::HttpResponseHeaderSectionSize(_));
    let long = [b"HTTP/1.1 200 OK\r\na: ", &[b'x'; 100_000][..]].concat();
    let server = HttpPeer::with_reply(Reply::bytes(&long).then_stall());
    let refused = rig(&server, &limits).get(&server.url("/")).await;
    assert_error!(refused, Error::HttpResponseHeaderSectionSize(_));
}

#[tokio::test]
async fn a_reply_head_of_the_bound_is_read_and_one_byte_more_is_not() {
    let head = |length: usize| {
        let start = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\na: ";
        format!("{start}{}\r\n\r\n", "x".repeat(length - start.len() - 4))
    };
    for (length, read) in [(0, true), (1, false), (6_000, false), (30_000, false)] {
        let head = head(crate::imports::http::MAX_HEADER_BYTES + length);
        let server = HttpPeer::with_reply(Reply::bytes(head.as_bytes()));
        let reply = rig(&server, &Limits::default()).get(&server.url("/")).await;
        match read {
            true => drop(reply.unwrap()),
            false => assert_error!(reply, Error::HttpResponseHeaderSectionSize(_)),
        }
    }
}

#[tokio::test]
async fn large_requests_are_refused_by_their_part() {
    let server = HttpPeer::with_reply(Reply::bytes(OK));
    let rig = rig(&server, &Limits::default());
    let url = server.url("/");
    let path = server.url(&format!("/{}", "x".repeat(9_000)));
    assert_error!(rig.get(&path).await, Error::HttpRequestUriTooLong);
    let long = Request::get(&url).header("x-long", "x".repeat(70_000));
    assert_error!(rig.send(long, "", None).await, Error::HttpRequestHeaderSectionSize(_));
    let many = (0..101).fold(Request::get(&url), |r, n| r.header(format!("x-{n}"), "1"));
    assert_error!(rig.send(many, "", None).await, Error::HttpRequestHeaderSectionSize(_));
    assert_eq!(server.heads().len(), 0);
    rig.get(&url).await.unwrap();
}

#[tokio::test]
async fn connections_are_limited_and_given_back() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf.";
    let server = HttpPeer::with_reply(Reply::bytes(head).then_stall());
    let rig = rig(&server, &Limits { connections: 1, ..Limits::default() });
    let request = || Request::get(server.url("/")).body(full("")).unwrap();
    let (reply, io) = Arc::clone(&rig.gate).send_request(request(), None).await.unwrap();
    let second = Arc::clone(&rig.gate).send_request(request(), None).await.map(drop);
    assert_error!(second, Error::ConnectionLimitReached);
    assert_eq!(rig.denials(), [DenyCode::LimitReached]);
    assert_eq!(server.heads().len(), 1);
    drop((reply, io));
    Arc::clone(&rig.gate).send_request(request(), None).await.map(drop).unwrap();
}

#[tokio::test]
async fn the_stores_of_a_jar_share_their_connections() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf.";
    let server = HttpPeer::with_reply(Reply::bytes(head).then_stall());
    let limits = Limits { connections: 1, ..Limits::default() };
    let jar = ConnectionLimit::from_limits(&limits);
    let store = || {
        let rule = format!("http://{}", server.address).parse().unwrap();
        let scope = HostScope::from_rules(DecisionSource::Grants, vec![rule]);
        let record = Arc::new(CallRecord::new(
            Budget::new_root(BudgetLevel::Call, BudgetCaps::unlimited()),
            0,
        ));
        let (secrets, options) = (JarSecrets::default(), HttpOptions::default());
        HttpCtx::new(scope, secrets, &Limits::default(), &jar, record, options).hooks.gate
    };
    let request = || Request::get(server.url("/")).body(full("")).unwrap();
    let held = store().send_request(request(), None).await.unwrap();
    let second = store().send_request(request(), None).await.map(drop);
    assert_error!(second, Error::ConnectionLimitReached);
    drop(held);
    store().send_request(request(), None).await.map(drop).unwrap();
}

#[tokio::test]
async fn a_failed_request_gives_its_place_back() {
    let server = HttpPeer::with_reply(Reply::bytes(b"not http\r\n\r\n"));
    let rig = rig(&server, &Limits { connections: 1, ..Limits::default() });
    for _ in 0..3 {
        assert_error!(rig.get(&server.url("/")).await, Error::HttpProtocolError);
    }
}

#[tokio::test]
async fn silence_ends_a_request_at_every_stage() {
    let short = Some(Duration::from_millis(20));
    let all = RequestOptions {
        connect_timeout: short,
        first_byte_timeout: short,
        between_bytes_timeout: short,
    };
    let later = RequestOptions { connect_timeout: None, ..all };

    let mute = HttpPeer::with_reply(Reply::silence());
    let rig = rig(&mute, &Limits::default());
    let sent = rig.send(Request::get(mute.url("/")), "", Some(later)).await;
    assert_error!(sent, Error::ConnectionReadTimeout);

    let half = HttpPeer::with_reply(
        Reply::bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf").then_stall(),
    );
    let rule = format!("http://{}", half.address);
    let rig = Rig::new(&[&rule]);
    let reply = rig.send(Request::get(half.url("/")), "", Some(later)).await.unwrap();
    assert_error!(reply.body, Error::ConnectionReadTimeout);
    assert_eq!(reply.passed, b"half");

    let options = HttpOptions::default().with_resolver(Never);
    let rig = Rig::with(&["http://*"], &Limits::default(), options, JarSecrets::default());
    let sent = rig.send(Request::get("http://slow.test/"), "", Some(all)).await;
    assert_error!(sent, Error::DnsTimeout);
}

#[test]
fn timeouts_of_the_guest_stay_within_bounds() {
    use crate::imports::http::connect::HttpTimeouts;
    let unstated = HttpTimeouts::from_options(None);
    let none = Some(Duration::ZERO);
    let asked = |time| RequestOptions {
        connect_timeout: time,
        first_byte_timeout: time,
        between_bytes_timeout: time,
    };
    assert!(HttpTimeouts::from_options(Some(asked(none))).connect > Duration::ZERO);
    assert_eq!(HttpTimeouts::from_options(Some(asked(Some(Duration::MAX)))), unstated);
}

struct Never;

#[async_trait::async_trait]
impl NameResolver for Never {
    async fn resolve_name(&self, _name: &str) -> std::io::Result<Vec<IpAddr>> {
        std::future::pending().await
    }
}
