//! Attacks by requests that must be refused before their content is read: by host name, origin, form or size.

use serde_json::json;

use super::super::client::{get_request, new_request, upgrade_request};
use super::super::stage::ServerStage;
use super::{Row, check_refused, escape_unless, expect_raw_refused, expect_refused, row};
use crate::attack::{Escape, Stopped, Verdict};

pub(super) const ATTACKS: &[Row] = &[
    row!(
        "server-host-of-another",
        "calls the server by the name of a page's own host",
        "the names of the server (INV-90)",
        "wrong-host",
        other_host
    ),
    row!(
        "server-host-twice",
        "names two hosts, of which one is right",
        "the names of the server (INV-90)",
        "HTTP/1.1 4",
        host_twice
    ),
    row!(
        "server-host-in-the-target",
        "names another host in the request's target",
        "the names of the server (INV-90)",
        "HTTP/1.1 4",
        send_absolute_target
    ),
    row!(
        "server-host-with-a-user",
        "puts the right name behind a user's",
        "the names of the server (INV-90)",
        "wrong-host",
        send_user_host
    ),
    row!(
        "server-origin-of-another",
        "calls from a page of a stranger, with a good key",
        "the origins that may call (INV-90)",
        "origin",
        send_foreign_origin
    ),
    row!(
        "server-origin-null",
        "calls from a page without an origin",
        "the origins that may call (INV-90)",
        "origin",
        send_null_origin
    ),
    row!(
        "server-origin-on-a-socket",
        "opens a WebSocket from a page of a stranger",
        "the origins that may call (INV-90)",
        "origin",
        socket_origin
    ),
    row!(
        "server-smuggle-two-bodies",
        "says two lengths of one body",
        "the parser of heads (INV-120)",
        "HTTP/1.1 400",
        two_lengths
    ),
    row!(
        "server-smuggle-chunks",
        "says a length and chunks of one body",
        "the parser of heads (INV-120)",
        "server-smuggle",
        smuggle_in_chunks
    ),
    row!(
        "server-smuggle-line-ends",
        "hides a second head behind a bare line feed",
        "the parser of heads (INV-120)",
        "HTTP/1.1 4",
        bare_feed
    ),
    row!(
        "server-smuggle-in-a-chunk",
        "says a chunk of a size that no number holds",
        "the parser of heads (INV-120)",
        "HTTP/1.1 4",
        huge_chunk
    ),
    row!(
        "server-head-too-long",
        "sends a head of a megabyte",
        "bytes of a head (INV-120)",
        "HTTP/1.1 431",
        long_head
    ),
    row!(
        "server-head-of-many-lines",
        "sends a head of 500 lines",
        "lines of a head (INV-120)",
        "HTTP/1.1 431",
        many_lines
    ),
    row!(
        "server-other-protocol",
        "begins with the words of another protocol",
        "the parser of heads (INV-120)",
        "closed",
        other_protocol
    ),
    row!(
        "server-body-too-long",
        "sends a body of 5 MiB",
        "bytes of a body (INV-120)",
        "too-large",
        long_body
    ),
    row!(
        "server-body-of-another-kind",
        "sends JSON as a form, as a page could without asking",
        "bodies are JSON (INV-120)",
        "media-type",
        send_json_form
    ),
    row!(
        "server-body-deep",
        "sends JSON that is nested 100,000 times",
        "depth of JSON (INV-120)",
        "invalid-request",
        send_deep_json
    ),
    row!(
        "server-body-unknown-field",
        "adds a field that the route does not know",
        "bodies are of one form (INV-120)",
        "invalid-request",
        unknown_field
    ),
    row!(
        "server-path-steps-back",
        "steps back in a path, escaped",
        "ids are checked for their form (INV-120)",
        "not-found",
        steps_back
    ),
    row!(
        "server-method-unknown",
        "asks with a method that no route has",
        "the one table of routes (INV-86)",
        "method",
        send_trace
    ),
];

/// Attack `server-host-of-another`: the attacker calls the server by the name of a page's own host.
async fn other_host(stage: &ServerStage) -> Stopped {
    expect_refused(stage, "red-admin", get_request("/v1/sessions").with_host("evil.test"), 421)
        .await
}

/// Attack `server-host-twice`: the attacker names two hosts, of which one is right.
async fn host_twice(stage: &ServerStage) -> Stopped {
    let text = "GET /v1/sessions HTTP/1.1\r\nhost: HOST\r\nhost: evil.test\r\nauthorization: Bearer KEY\r\nconnection: close\r\n\r\n";
    expect_raw_refused(stage, text, &[400, 421]).await
}

/// Attack `server-host-in-the-target`: the attacker names another host in the request's target.
async fn send_absolute_target(stage: &ServerStage) -> Stopped {
    let text = "GET http://evil.test/v1/sessions HTTP/1.1\r\nhost: HOST\r\nauthorization: Bearer KEY\r\nconnection: close\r\n\r\n";
    expect_raw_refused(stage, text, &[400, 421]).await
}

/// Attack `server-host-with-a-user`: the attacker puts the right name behind a user's.
async fn send_user_host(stage: &ServerStage) -> Stopped {
    let host = format!("evil.test@{}", stage.address());
    expect_refused(stage, "red-admin", get_request("/v1/sessions").with_host(&host), 421).await
}

/// Attack `server-origin-of-another`: the attacker calls from a page of a stranger, with a good key.
async fn send_foreign_origin(stage: &ServerStage) -> Stopped {
    let path = format!("/v1/sessions/{}", stage.session_id("red")?);
    expect_refused(
        stage,
        "red-admin",
        new_request("DELETE", &path).with_line("origin: https://evil.test"),
        403,
    )
    .await
}

/// Attack `server-origin-null`: the attacker calls from a page without an origin.
async fn send_null_origin(stage: &ServerStage) -> Stopped {
    expect_refused(stage, "red-admin", get_request("/v1/sessions").with_line("origin: null"), 403)
        .await
}

/// Attack `server-origin-on-a-socket`: the attacker opens a WebSocket from a page of a stranger.
async fn socket_origin(stage: &ServerStage) -> Stopped {
    let ask = upgrade_request().with_line("origin: https://evil.test");
    let mut wire = stage.client_for("red-admin").send_open(&ask).await?;
    Ok(Verdict::with_words(wire.read_until("origin").await?))
}

/// Attack `server-smuggle-two-bodies`: the attacker says two lengths of one body.
async fn two_lengths(stage: &ServerStage) -> Stopped {
    let text = "POST /v1/agents/validate HTTP/1.1\r\nhost: HOST\r\nauthorization: Bearer KEY\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}x";
    expect_raw_refused(stage, text, &[400]).await
}

/// Attack `server-smuggle-chunks`: the attacker states both a length and chunks for one body, and a second
/// request follows the last chunk. The first request must be refused, and the second never answered.
async fn smuggle_in_chunks(stage: &ServerStage) -> Stopped {
    let text = format!(
        "POST /v1/agents/validate HTTP/1.1\r\nhost: {0}\r\nauthorization: Bearer {1}\r\ncontent-type: application/json\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nDELETE /v1/sessions HTTP/1.1\r\nhost: {0}\r\nauthorization: Bearer {1}\r\nconnection: close\r\n\r\n",
        stage.address(),
        stage.api_key("red-admin")?
    );
    let answer = stage.client_for("").send_raw(text.as_bytes()).await?;
    escape_unless(answer.status >= 400, || format!("answered {}", answer.body))?;
    escape_unless(!answer.body.contains("\"deleted\""), || {
        format!("answered twice: {}", answer.body)
    })?;
    Ok(Verdict::with_words(format!("server-smuggle: {} {}", answer.status, answer.body)))
}

/// Attack `server-smuggle-line-ends`: the attacker hides a second head behind a bare line feed.
async fn bare_feed(stage: &ServerStage) -> Stopped {
    let text = "GET /v1/sessions HTTP/1.1\r\nhost: evil.test\nhost: HOST\nx: y\r\nconnection: close\r\nauthorization: Bearer KEY\r\n\r\n";
    expect_raw_refused(stage, text, &[400, 421]).await
}

/// Attack `server-smuggle-in-a-chunk`: the attacker says a chunk of a size that no number holds.
async fn huge_chunk(stage: &ServerStage) -> Stopped {
    let text = "POST /v1/agents/validate HTTP/1.1\r\nhost: HOST\r\nauthorization: Bearer KEY\r\ncontent-type: application/json\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}\r\n0\r\n\r\n";
    expect_raw_refused(stage, text, &[400]).await
}

/// Attack `server-head-too-long`: the attacker sends a head of a megabyte.
async fn long_head(stage: &ServerStage) -> Stopped {
    let text = format!("GET /healthz HTTP/1.1\r\nhost: HOST\r\nx: {}\r\n\r\n", "a".repeat(1 << 20));
    expect_raw_refused(stage, &text, &[431]).await
}

/// Attack `server-head-of-many-lines`: the attacker sends a head of 500 lines.
async fn many_lines(stage: &ServerStage) -> Stopped {
    let lines: String = (0..500).map(|number| format!("x-{number}: y\r\n")).collect();
    expect_raw_refused(
        stage,
        &format!("GET /healthz HTTP/1.1\r\nhost: HOST\r\n{lines}\r\n"),
        &[431],
    )
    .await
}

/// Attack `server-other-protocol`: the attacker begins with the words of another protocol.
async fn other_protocol(stage: &ServerStage) -> Stopped {
    let bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    match stage.client_for("").send_raw(bytes).await {
        Ok(answer) if answer.status < 400 => Err(Escape::new(answer.body)),
        Ok(answer) => Ok(Verdict::with_words(format!("closed: {}", answer.head))),
        Err(error) => Ok(Verdict::with_words(format!("closed: {error:#}"))),
    }
}

/// Attack `server-body-too-long`: the attacker sends a body of 5 MiB.
async fn long_body(stage: &ServerStage) -> Stopped {
    let body = json!({ "agent": "teller", "text": "a".repeat(5 << 20) });
    expect_refused(stage, "red-member", new_request("POST", "/v1/chat").with_json(&body), 413).await
}

/// Attack `server-body-of-another-kind`: the attacker sends JSON as a form, as a page could without asking.
async fn send_json_form(stage: &ServerStage) -> Stopped {
    let body = "{\"agent\":\"teller\",\"text\":\"tell\"}";
    let text = format!(
        "POST /v1/chat HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-type: text/plain\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        stage.address(),
        stage.api_key("red-member")?,
        body.len()
    );
    check_refused(stage.client_for("").send_raw(text.as_bytes()).await?, 415)
}

/// Attack `server-body-deep`: the attacker sends JSON that is nested 100,000 times.
async fn send_deep_json(stage: &ServerStage) -> Stopped {
    let body = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    expect_refused(stage, "red-member", new_request("POST", "/v1/chat").with_json_text(&body), 400)
        .await
}

/// Attack `server-body-unknown-field`: the attacker adds a field that the route does not know.
async fn unknown_field(stage: &ServerStage) -> Stopped {
    let body = json!({ "agent": "teller", "text": "tell", "tenant": "blue" });
    expect_refused(stage, "red-member", new_request("POST", "/v1/chat").with_json(&body), 400).await
}

/// Attack `server-path-steps-back`: the attacker steps back in a path, escaped.
async fn steps_back(stage: &ServerStage) -> Stopped {
    let path = format!("/v1/sessions/..%2f..%2fblue%2f{}", stage.session_id("blue")?);
    expect_refused(stage, "red-admin", get_request(&path), 404).await
}

/// Attack `server-method-unknown`: the attacker asks with a method that no route has.
async fn send_trace(stage: &ServerStage) -> Stopped {
    expect_refused(stage, "red-admin", new_request("TRACE", "/v1/sessions"), 405).await
}
