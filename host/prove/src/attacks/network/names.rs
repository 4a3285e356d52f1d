//! Attacks by requests to hosts that are not granted, and by names that seem to be another host's.

use std::net::{IpAddr, Ipv4Addr};

use belljar_policy::DenyCode;
use serde_json::{Value, json};

use super::{WireRecorder, all_denied, check_untouched, get_step, open_network_jar, request_step};
use crate::Arena;
use crate::attack::{Attack, AttackKind, Escape, Stopped, Verdict};
use crate::peer::page_script;

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    Attack {
        id: "network-host-not-listed",
        kind: AttackKind::Network,
        tries: "asks hosts that are not granted, some of which are the granted one by another name",
        stopped_by: "the allowlist, by scheme, host and port (INV-10)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(host_not_listed(arena)),
    },
    Attack {
        id: "network-port-not-listed",
        kind: AttackKind::Network,
        tries: "asks the granted host on other ports",
        stopped_by: "the allowlist, by scheme, host and port (INV-10)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(port_not_listed(arena)),
    },
    Attack {
        id: "network-scheme-downgrade",
        kind: AttackKind::Network,
        tries: "asks in clear text where TLS is granted, and by schemes of its own",
        stopped_by: "the allowlist, by scheme, host and port (INV-10)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(downgrade_to_http(arena)),
    },
    Attack {
        id: "network-user-name-in-the-url",
        kind: AttackKind::Network,
        tries: "writes the granted host as a user name before another host",
        stopped_by: "a URL with a user name is refused whole (INV-10)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(user_name(arena)),
    },
    Attack {
        id: "network-odd-authorities",
        kind: AttackKind::Network,
        tries: "writes authorities that two parsers read in two ways",
        stopped_by: "the authority is parsed once, and what was parsed is what is used (INV-10)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(odd_authorities(arena)),
    },
    Attack {
        id: "network-absolute-form",
        kind: AttackKind::Network,
        tries: "puts another host's URL into the request line",
        stopped_by: "the request line holds a path only (INV-10)",
        told: "path refused",
        embedded: true,
        run: |arena| Box::pin(absolute_form(arena)),
    },
    Attack {
        id: "network-conflicting-host",
        kind: AttackKind::Network,
        tries: "sets `host` and other headers that are about the connection",
        stopped_by: "such headers are the host's to write (INV-10)",
        told: "Forbidden",
        embedded: true,
        run: |arena| Box::pin(conflicting_host(arena)),
    },
    Attack {
        id: "network-line-breaks",
        kind: AttackKind::Network,
        tries: "puts line breaks into header, path, method and authority, to add lines of its own",
        stopped_by: "every part is parsed before it is taken",
        told: "refused",
        embedded: true,
        run: |arena| Box::pin(line_breaks(arena)),
    },
    Attack {
        id: "network-methods",
        kind: AttackKind::Network,
        tries: "opens a tunnel with `CONNECT`, has its request repeated with `TRACE`",
        stopped_by: "a list of methods that pass (INV-10)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(send_odd_methods(arena)),
    },
    Attack {
        id: "network-two-requests-in-one",
        kind: AttackKind::Network,
        tries: "announces an empty body and sends a second request in it",
        stopped_by: "a body is as long as it was announced",
        told: "HttpRequestBodySize",
        embedded: true,
        run: |arena| Box::pin(two_requests(arena)),
    },
    Attack {
        id: "network-look-alikes",
        kind: AttackKind::Network,
        tries: "asks names that look like the granted one, in other scripts and as punycode",
        stopped_by: "names are compared in their ASCII form, whole (INV-10)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(look_alikes(arena)),
    },
    Attack {
        id: "network-around-a-wildcard",
        kind: AttackKind::Network,
        tries: "asks names that a careless match of `*.corp.test` takes",
        stopped_by: "a wildcard means names below the name, by whole labels (INV-10)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(around_a_wildcard(arena)),
    },
    Attack {
        id: "network-data-in-a-name",
        kind: AttackKind::Network,
        tries: "asks for names that carry data to whoever serves the domain",
        stopped_by: "a name is resolved only after the allowlist has it (INV-10)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(data_in_a_name(arena)),
    },
];

/// The error word of a request that the gate refuses.
const DENIED: &str = "HttpRequestDenied";
/// The error of the interface for a text that is no authority (host and port).
const UNUSABLE: &str = "authority refused";

fn loopback_addresses() -> Vec<IpAddr> {
    vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]
}

/// Attack `network-host-not-listed`: the attacker asks hosts that are not granted, some of which are the
/// granted one by another name.
async fn host_not_listed(arena: &Arena) -> Stopped {
    let peer = arena.start_peer(page_script("here")).await?;
    let jar = open_network_jar(arena, &[&peer.grant_rule()]).await?;
    let port = peer.address().port();
    arena.set_name_answers("unlisted.test", [loopback_addresses()]);
    arena.set_name_answers("localhost", [loopback_addresses()]);
    let asked = ["unlisted.test", "localhost", "127.0.0.2", "0.0.0.0", "[::1]", "[::ffff:7f00:1]"];
    let steps: Vec<_> = asked.iter().map(|host| get_step(&format!("{host}:{port}"), "/")).collect();
    let steps = jar.run_steps(json!(steps)).await?;
    check_untouched(&jar, &peer).await?;
    all_denied(&steps, &[DENIED], DenyCode::HostNotAllowed)
}

/// Attack `network-port-not-listed`: the attacker asks the granted host on other ports.
async fn port_not_listed(arena: &Arena) -> Stopped {
    let peer = arena.start_peer(page_script("here")).await?;
    let jar = open_network_jar(arena, &[&peer.grant_rule()]).await?;
    let other = arena.forbidden_address();
    let asked = [other.to_string(), "127.0.0.1".into(), "127.0.0.1:".into(), "127.0.0.1:0".into()];
    let steps: Vec<_> = asked.iter().map(|authority| get_step(authority, "/")).collect();
    let steps = jar.run_steps(json!(steps)).await?;
    check_untouched(&jar, &peer).await?;
    all_denied(&steps, &[DENIED], DenyCode::HostNotAllowed)
}

/// Attack `network-scheme-downgrade`: the attacker asks in clear text where TLS is granted, and by schemes of
/// its own.
async fn downgrade_to_http(arena: &Arena) -> Stopped {
    let at = arena.forbidden_address().to_string();
    let jar = open_network_jar(arena, &[&format!("https://{at}")]).await?;
    let schemes = ["http", "HTTP", "ftp", "ws", "file", "https+http", "javascript"];
    let steps = schemes.map(|scheme| request_step(&at, "/", json!({ "scheme": scheme })));
    let steps = jar.run_steps(json!(steps)).await?;
    all_denied(&steps, &[DENIED, "HttpProtocolError"], DenyCode::HostNotAllowed)
}

/// Attack `network-user-name-in-the-url`: the attacker writes the granted host as a user name before another
/// host.
async fn user_name(arena: &Arena) -> Stopped {
    let peer = arena.start_peer(page_script("here")).await?;
    let (at, other) = (peer.address(), arena.forbidden_address());
    // Wherever a parser overlooks the user name, one of these would be allowed.
    let jar = open_network_jar(arena, &[&peer.grant_rule()]).await?;
    let asked = [
        format!("{at}@{other}"),
        format!("127.0.0.1@{other}"),
        format!("user:password@{at}"),
        format!("user@{at}"),
        format!("@{at}"),
        format!(":@{at}"),
        format!("{other}@{at}"),
        format!("a@b@{at}"),
    ];
    let steps: Vec<_> = asked.iter().map(|authority| get_step(authority, "/")).collect();
    let steps = jar.run_steps(json!(steps)).await?;
    check_untouched(&jar, &peer).await?;
    all_denied(&steps, &[DENIED, UNUSABLE], DenyCode::RequestNotAllowed)
}

/// Attack `network-odd-authorities`: the attacker writes authorities that two parsers read in two ways.
async fn odd_authorities(arena: &Arena) -> Stopped {
    let peer = arena.start_peer(page_script("here")).await?;
    let jar = open_network_jar(arena, &[&peer.grant_rule()]).await?;
    let (at, other) = (peer.address(), arena.forbidden_address());
    let asked = [
        format!("{other}#@{at}"),
        format!("{other}/@{at}"),
        format!("{other}\\@{at}"),
        format!("{other}?{at}"),
        format!("{other},{at}"),
        format!("{other} {at}"),
        format!("{other}\t"),
        format!("{other}\0.{at}"),
        format!("127.0.0.1:{}:{}", at.port(), other.port()),
        format!("127.0.0.1%00.test:{}", other.port()),
        format!("127.0.0.1:+{}", other.port()),
        format!("[127.0.0.1]:{}", other.port()),
        format!("[::1:{}", other.port()),
        format!(":{}", other.port()),
        format!("127.0.0.1:{}", u64::from(at.port()) + 65_536),
        String::new(),
        // Depending on the parser, each may seem to be granted; all lead to the forbidden address.
        format!("127.0.0.1:0{}", other.port()),
        format!("127.0.0.1.:{}", other.port()),
    ];
    let steps: Vec<_> = asked.iter().map(|authority| get_step(authority, "/")).collect();
    let steps = jar.run_steps(json!(steps)).await?;
    check_untouched(&jar, &peer).await?;
    let words = [DENIED, UNUSABLE, "HttpRequestUriInvalid"];
    all_denied(&steps, &words, DenyCode::HostNotAllowed)
}

/// Attack `network-absolute-form`: the attacker puts another host's URL into the request line.
async fn absolute_form(arena: &Arena) -> Stopped {
    let peer = arena.start_peer(page_script("here")).await?;
    let jar = open_network_jar(arena, &[&peer.grant_rule()]).await?;
    let (at, other) = (peer.address().to_string(), arena.forbidden_address());
    let whole = [format!("http://{other}/x"), format!("{other}/x"), format!("@{other}/x")];
    let steps: Vec<_> = whole.iter().map(|path| get_step(&at, path)).collect();
    let refused = jar.run_steps(json!(steps)).await?;
    check_untouched(&jar, &peer).await?;
    let paths =
        [format!("//{other}/x"), format!("/http://{other}/x"), format!("?http://{other}/x")];
    let steps: Vec<_> = paths.iter().map(|path| get_step(&at, path)).collect();
    let passed = jar.run_steps(json!(steps)).await?;
    for step in 0..paths.len() {
        passed.step_value(step)?;
    }
    for asked in peer.received_requests() {
        let hosts = asked.head.lines().filter(|line| line.starts_with("host:"));
        let hosts: Vec<_> = hosts.collect();
        if !asked.head.starts_with("GET /") || hosts != [format!("host: {at}")] {
            return Err(Escape::new(format!("the peer was asked: {}", asked.head)));
        }
    }
    refused.all_refused(0, &["path refused"])
}

/// Attack `network-conflicting-host`: the attacker sets `host` and other headers that are about the
/// connection.
async fn conflicting_host(arena: &Arena) -> Stopped {
    let peer = arena.start_peer(page_script("here")).await?;
    let jar = open_network_jar(arena, &[&peer.grant_rule()]).await?;
    let at = peer.address().to_string();
    let headers = [
        ("host", "other.test"),
        ("Host", &*at),
        ("HOST", "other.test"),
        ("connection", "keep-alive, upgrade"),
        ("upgrade", "h2c"),
        ("http2-settings", "AAMAAABk"),
        ("transfer-encoding", "chunked"),
        ("keep-alive", "timeout=9999"),
        ("te", "trailers"),
        ("trailer", "host"),
        ("expect", "100-continue"),
        ("via", "1.1 other.test"),
        ("forwarded", "host=other.test"),
        ("proxy-authorization", "Basic eA=="),
        ("proxy-connection", "close"),
    ];
    let steps =
        headers.map(|(name, value)| request_step(&at, "/", json!({ "headers": [[name, value]] })));
    let steps = jar.run_steps(json!(steps)).await?;
    check_untouched(&jar, &peer).await?;
    steps.all_refused(0, &["Forbidden"])
}

/// Attack `network-line-breaks`: the attacker puts line breaks into header, path, method and authority, to
/// add lines of its own.
async fn line_breaks(arena: &Arena) -> Stopped {
    let peer = arena.start_peer(page_script("here")).await?;
    let jar = open_network_jar(arena, &[&peer.grant_rule()]).await?;
    let at = peer.address().to_string();
    let header =
        |name: &str, value: &str| request_step(&at, "/", json!({ "headers": [[name, value]] }));
    let method = |text: &str| request_step(&at, "/", json!({ "method": text }));
    let steps = json!([
        header("x", "1\r\nhost: other.test"),
        header("x", "1\nhost: other.test"),
        header("x", "1\0"),
        header("x\r\nhost", "other.test"),
        header("x: 1\r\nhost", "other.test"),
        header("host ", "other.test"),
        header("", "other.test"),
        method("GET / HTTP/1.1\r\nhost: other.test\r\n\r\nGET"),
        method("GET /x"),
        method(""),
        get_step(&at, "/ HTTP/1.1\r\nhost: other.test\r\n\r\n"),
        get_step(&at, "/a b"),
        get_step(&at, "/a\nb"),
        get_step(&format!("{at}\r\nhost: other.test"), "/"),
    ]);
    let steps = jar.run_steps(steps).await?;
    check_untouched(&jar, &peer).await?;
    let words = ["InvalidSyntax", "Forbidden", "method refused", "path refused", UNUSABLE];
    steps.all_refused(0, &words)
}

/// Attack `network-methods`: the attacker opens a tunnel with `CONNECT`, has its request repeated with
/// `TRACE`.
async fn send_odd_methods(arena: &Arena) -> Stopped {
    let peer = arena.start_peer(page_script("here")).await?;
    let jar = open_network_jar(arena, &[&peer.grant_rule()]).await?;
    let at = peer.address().to_string();
    let methods = ["CONNECT", "TRACE", "get", "PRI", "PROPFIND", "TRACK", "DEBUG"];
    let steps = methods.map(|method| request_step(&at, "/", json!({ "method": method })));
    let steps = jar.run_steps(json!(steps)).await?;
    check_untouched(&jar, &peer).await?;
    all_denied(&steps, &[DENIED], DenyCode::RequestNotAllowed)
}

/// Attack `network-two-requests-in-one`: the attacker announces an empty body and sends a second request in
/// it.
async fn two_requests(arena: &Arena) -> Stopped {
    let wire = WireRecorder::start(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await?;
    let jar = open_network_jar(arena, &[&format!("http://{}", wire.at)]).await?;
    let second = format!("DELETE /all HTTP/1.1\r\nhost: {}\r\n\r\n", arena.forbidden_address());
    let announced = |length: &str| -> Value {
        let headers = json!([["content-length", length]]);
        request_step(&wire.at.to_string(), "/", json!({ "headers": headers, "body": second }))
    };
    let steps = jar.run_steps(json!([announced("0"), announced("6")])).await?;
    // The jar is closed, so all that the host has sent is on the wire.
    jar.jar().close().await;
    let sent = String::from_utf8_lossy(&wire.received_bytes().await?).into_owned();
    // A request that is refused before its head was sent leaves nothing on the wire.
    let other = !sent.is_empty() && !sent.starts_with("GET / ");
    if other || sent.matches("HTTP/1.1").count() > 2 || sent.contains("/all") {
        return Err(Escape::new(format!("more was sent than announced: {sent}")));
    }
    steps.all_refused(0, &["HttpRequestBodySize", "closed"])
}

/// Attack `network-look-alikes`: the attacker asks names that look like the granted one, in other scripts and
/// as punycode.
async fn look_alikes(arena: &Arena) -> Stopped {
    let port = arena.forbidden_address().port();
    // The address itself is granted, so only the name can be the reason of a refusal.
    let granted = [format!("http://paypal.test:{port}"), format!("http://127.0.0.1:{port}")];
    let jar = open_network_jar(arena, &[&granted[0], &granted[1]]).await?;
    let ascii = ["xn--pypal-4ve.test", "paypaI.test", "paypa1.test", "paypal.test.evil.test"];
    let ascii = ascii.iter().chain(&["paypal-test", "xpaypal.test", "paypal.test0"]);
    let ascii: Vec<_> = ascii.copied().chain(["www.paypal.test", "paypal.tes"]).collect();
    for name in &ascii {
        arena.set_name_answers(name, [loopback_addresses()]);
    }
    let foreign =
        ["p\u{430}ypal.test", "paypal\u{3002}test", "ｐａｙｐａｌ.test", "pay\u{200d}pal.test"];
    let names = ascii.iter().chain(&foreign);
    let steps: Vec<_> = names.map(|name| get_step(&format!("{name}:{port}"), "/")).collect();
    let steps = jar.run_steps(json!(steps)).await?;
    // Names that differ only in letter case or a final dot are the same name.
    arena.set_name_answers("paypal.test", [Vec::new()]);
    let same = ["PayPal.TEST", "paypal.test."].map(|name| get_step(&format!("{name}:{port}"), "/"));
    jar.run_steps(json!(same)).await?.all_refused(0, &["DestinationNotFound"])?;
    all_denied(&steps, &[DENIED, UNUSABLE], DenyCode::HostNotAllowed)
}

/// Attack `network-around-a-wildcard`: the attacker asks names that a careless match of `*.corp.test` takes.
async fn around_a_wildcard(arena: &Arena) -> Stopped {
    let port = arena.forbidden_address().port();
    let granted = [format!("http://*.corp.test:{port}"), format!("http://127.0.0.1:{port}")];
    let jar = open_network_jar(arena, &[&granted[0], &granted[1]]).await?;
    let names = [
        "corp.test",
        "corp.test.",
        "evilcorp.test",
        "a.corp.test.evil.test",
        "a.corp.tests",
        "corp.test.a",
        ".corp.test",
        "a..corp.test",
        "*.corp.test.evil.test",
        "a.corp-test",
    ];
    for name in names {
        arena.set_name_answers(name.trim_end_matches('.'), [loopback_addresses()]);
    }
    let steps = names.map(|name| get_step(&format!("{name}:{port}"), "/"));
    let steps = jar.run_steps(json!(steps)).await?;
    all_denied(&steps, &[DENIED, UNUSABLE], DenyCode::HostNotAllowed)
}

/// Attack `network-data-in-a-name`: the attacker asks for names that carry data to whoever serves the domain.
async fn data_in_a_name(arena: &Arena) -> Stopped {
    let peer = arena.start_peer(page_script("here")).await?;
    let jar = open_network_jar(arena, &[&peer.grant_rule()]).await?;
    let name = |n: u32| format!("{n}-5374-6f6c-656e.drop.test");
    // These names do not exist: if one had been looked up, the error would state it.
    let steps: Vec<_> = (0..20)
        .map(|n| get_step(&name(n), "/"))
        .chain((20..30).map(|n| json!({ "do": "resolve", "name": name(n) })))
        .collect();
    let steps = jar.run_steps(json!(steps)).await?;
    check_untouched(&jar, &peer).await?;
    let told = steps.step_error(0)?;
    steps.all_refused(0, &[DENIED, "access-denied"])?;
    Ok(Verdict::with_words(told))
}
