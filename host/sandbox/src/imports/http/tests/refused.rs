//! Requests that are refused for their target or their form.

use super::*;

#[tokio::test]
async fn what_the_allowlist_does_not_name_is_not_reached() {
    let server = HttpPeer::with_reply(Reply::bytes(OK));
    let other = HttpPeer::with_reply(Reply::bytes(OK));
    let rig = Rig::new(&[&format!("http://{}", server.address)]);
    let port = server.address.port();
    let urls = [
        other.url("/"),
        format!("https://127.0.0.1:{port}/"),
        format!("http://127.0.0.2:{port}/"),
        format!("http://localhost:{port}/"),
        "http://127.0.0.1/".to_owned(),
    ];
    for url in &urls {
        assert_error!(rig.get(url).await, Error::HttpRequestDenied);
    }
    assert_eq!(rig.denials(), vec![DenyCode::HostNotAllowed; urls.len()]);
    assert_eq!((server.heads().len(), other.heads().len()), (0, 0));
    rig.get(&server.url("/")).await.unwrap();
}

#[tokio::test]
async fn without_rules_nothing_is_reached() {
    let server = HttpPeer::with_reply(Reply::bytes(OK));
    let rig = Rig::new(&[]);
    assert_error!(rig.get(&server.url("/")).await, Error::HttpRequestDenied);
    assert_eq!(server.heads().len(), 0);
}

#[tokio::test]
async fn a_rule_for_every_host_opens_no_address_of_this_machine_in_any_notation() {
    let server = HttpPeer::with_reply(Reply::bytes(OK));
    let port = server.address.port();
    let names = Names::of(&[&["127.0.0.1", "::1", "10.0.0.1", "169.254.169.254"]]);
    let rig = Rig::naming(&["http://*:*"], names);
    for host in [
        "127.0.0.1",
        "127.1",
        "0x7f.1",
        "0177.0.0.1",
        "2130706433",
        "0.0.0.0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "10.0.0.1",
        "192.168.0.1",
        "169.254.169.254",
        "localhost",
        "LOCALHOST.",
        "rebound.test",
    ] {
        match rig.get(&format!("http://{host}:{port}/")).await {
            Err(Error::DestinationIpProhibited) => {}
            other => panic!("{host}: {other:?}"),
        }
    }
    assert!(rig.denials().contains(&DenyCode::AddressNotAllowed));
    assert_eq!(server.heads().len(), 0);
    let open = Rig::new(&[&format!("http://127.0.0.1:{port}")]);
    open.get(&format!("http://0x7f.1:{port}/")).await.unwrap();
    assert!(server.heads()[0].contains(&format!("host: 127.0.0.1:{port}")), "as it was checked");
}

#[tokio::test]
async fn a_connection_goes_to_the_address_that_was_checked() {
    let good = HttpPeer::with_reply(Reply::bytes(OK));
    let port = good.address.port();
    let bad = HttpPeer::builder().at(&format!("127.0.0.2:{port}")).reply(Reply::bytes(OK));
    let names = Names::of(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let rules = [&*format!("http://api.test:{port}"), &*format!("http://127.0.0.1:{port}")];
    let rig = Rig::naming(&rules, names.clone());
    let url = format!("http://api.test:{port}/");
    rig.get(&url).await.unwrap();
    assert_eq!(names.asked.load(Ordering::SeqCst), 1, "a name is resolved once per request");
    assert_error!(rig.get(&url).await, Error::DestinationIpProhibited);
    assert_eq!((good.heads().len(), bad.heads().len()), (1, 0));
    assert_eq!(rig.denials(), [DenyCode::AddressNotAllowed]);
}

#[tokio::test]
async fn of_several_addresses_only_permitted_ones_are_tried() {
    let good = HttpPeer::with_reply(Reply::bytes(OK));
    let port = good.address.port();
    let bad = HttpPeer::builder().at(&format!("127.0.0.2:{port}")).reply(Reply::bytes(OK));
    let names = Names::of(&[&["127.0.0.2", "127.0.0.1"]]);
    let rules = [&*format!("http://api.test:{port}"), &*format!("http://127.0.0.1:{port}")];
    Rig::naming(&rules, names).get(&format!("http://api.test:{port}/")).await.unwrap();
    assert_eq!((good.heads().len(), bad.heads().len()), (1, 0));
}

#[tokio::test]
async fn the_next_address_is_tried_when_one_refuses() {
    let good = HttpPeer::builder().at("127.0.0.3:0").reply(Reply::bytes(OK));
    let port = good.address.port();
    let names = Names::of(&[&["127.0.0.4", "127.0.0.3"]]);
    let rules = [&*format!("http://api.test:{port}"), &*format!("http://127.0.0.0/29:{port}")];
    Rig::naming(&rules, names).get(&format!("http://api.test:{port}/")).await.unwrap();
    assert_eq!(good.heads().len(), 1);
}

#[tokio::test]
async fn a_name_without_an_address_is_an_error_and_no_denial() {
    let rig = Rig::naming(&["http://*"], Names::default());
    assert_error!(rig.get("http://gone.test/").await, Error::DnsError { .. });
    let rig = Rig::naming(&["http://*"], Names::of(&[&[]]));
    assert_error!(rig.get("http://gone.test/").await, Error::DestinationNotFound);
    assert_eq!(rig.denials(), []);
}

#[tokio::test]
async fn a_redirect_is_the_guests_to_follow_and_is_checked_like_any_request() {
    let away = b"HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/latest\r\n\
        content-length: 0\r\n\r\n";
    let second = HttpPeer::with_reply(Reply::bytes(away));
    let to_second =
        format!("HTTP/1.1 307 T\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n", second.url("/x"));
    let first = HttpPeer::with_reply(Reply::bytes(to_second.as_bytes()));
    let rules = [format!("http://{}", first.address), format!("http://{}", second.address)];
    let rig = Rig::new(&[&rules[0], &rules[1], "http://*"]);
    let mut url = first.url("/");
    for status in [307, 302] {
        let reply = rig.get(&url).await.unwrap();
        assert_eq!(reply.status, status);
        url = reply.headers["location"].to_str().unwrap().to_owned();
    }
    assert_error!(rig.get(&url).await, Error::DestinationIpProhibited);
    assert_eq!(rig.denials(), [DenyCode::AddressNotAllowed]);
}

#[tokio::test]
async fn requests_of_a_bad_form_are_refused() {
    let server = HttpPeer::with_reply(Reply::bytes(OK));
    let rig = Rig::new(&[&format!("http://{}", server.address)]);
    let at = server.address;
    let url = server.url("/");
    let requests = [
        Request::builder().method("CONNECT").uri(&url),
        Request::builder().method("TRACE").uri(&url),
        Request::builder().method("get").uri(&url),
        Request::builder().method("PROPFIND").uri(&url),
        Request::get(format!("http://user:password@{at}/")),
        Request::get(format!("http://user@{at}/")),
        Request::get(format!("http://@{at}/")),
        Request::get(format!("http://127.0.0.1@{at}/")),
        Request::get(format!("ftp://{at}/")),
        Request::get(&url).header("host", "other.test"),
        Request::get(&url).header("host", at.to_string()),
        Request::get(&url).header("connection", "close"),
        Request::get(&url).header("transfer-encoding", "chunked"),
        Request::get(&url).header("upgrade", "websocket"),
        Request::get(&url).header("proxy-anything", "x"),
        Request::get(&url).header("te", "trailers"),
        Request::get(&url).header("expect", "100-continue"),
    ];
    let count = requests.len();
    for request in requests {
        let shown = format!("{request:?}");
        match rig.send(request, "", None).await {
            Err(Error::HttpRequestDenied) => {}
            other => panic!("{shown}: {other:?}"),
        }
    }
    assert_eq!(rig.denials(), vec![DenyCode::RequestNotAllowed; count]);
    assert_eq!(server.heads().len(), 0);
    rig.get(&url).await.unwrap();
}

#[tokio::test]
async fn the_request_line_holds_a_path_only() {
    let server = HttpPeer::with_reply(Reply::bytes(OK));
    let rig = Rig::new(&[&format!("http://{}", server.address)]);
    for (path, line) in [
        ("", "GET / "),
        ("?q", "GET /?q "),
        ("//evil.test/x", "GET //evil.test/x "),
        ("/http://evil.test/", "GET /http://evil.test/ "),
    ] {
        rig.get(&server.url(path)).await.unwrap();
        let head = server.heads().pop().unwrap();
        assert!(head.starts_with(line), "{path}: {head}");
        assert_eq!(head.matches("host:").count(), 1);
    }
}

#[tokio::test]
async fn trailers_of_a_request_are_refused() {
    let server = HttpPeer::with_reply(Reply::bytes(OK).then_stall());
    let rig = Rig::new(&[&format!("http://{}", server.address)]);
    let trailers = http_body::Frame::trailers(HeaderMap::new());
    let frames = futures::stream::iter([Ok::<_, Error>(trailers)]);
    let body = http_body_util::StreamBody::new(frames).boxed_unsync();
    let request = Request::post(server.url("/")).body(body).unwrap();
    let sent = Arc::clone(&rig.gate).send_request(request, None).await.map(drop);
    assert_error!(sent, Error::HttpRequestDenied);
    assert_eq!(rig.denials(), [DenyCode::RequestNotAllowed]);
}
