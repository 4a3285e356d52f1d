//! Servers that do not keep to the protocol, or to their place.

use belljar_kit::peers::{Connection, HttpPeer, HttpRequest, McpPeer, Reply, mcp};
use serde_json::{Value, json};

use super::{Stage, the_neighbour_works, told};

/// Calls a tool of a server that acts so in calls: it is an error, the other tools work on, and so
/// does the server once it is honest again.
#[track_caller]
fn fails(
    why: &str,
    act: impl Fn(&HttpRequest, &mut dyn Connection) + Send + Sync + 'static,
) -> Stage {
    let stage = Stage::with(McpPeer::start(), "timeout_seconds = 2\n");
    let mut client = stage.client();
    stage.peer.calls(act);
    let answer = client.call("mcp__peer__echo", json!({"text": "a"}));
    let (text, is_error) = told(&answer);
    assert!(is_error && text.contains(why), "{text} should say {why}");
    the_neighbour_works(&mut client);
    stage.peer.acts(|_, _| false);
    let (text, is_error) = told(&client.call("mcp__peer__echo", json!({"text": "again"})));
    assert!(!is_error && text.ends_with("again"), "{text}");
    client.leave().exits(0);
    stage
}

fn answer(seen: &HttpRequest, text: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": mcp::said(text)})
}

#[test]
fn a_flood_of_messages_ends_the_call() {
    fails("gave no result", |_, stream| {
        mcp::events(stream);
        let noise = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}});
        while mcp::event(stream, &noise) {}
    });
}

#[test]
fn a_flood_without_an_end_of_a_message_ends_the_call() {
    fails("gave no result", |_, stream| {
        mcp::events(stream);
        while stream.write_all(&[b'x'; 1 << 16]).is_ok() {}
    });
}

#[test]
fn an_answer_that_never_comes_ends_with_the_time_of_the_call() {
    let stage = fails("stopped: the call took over 2 seconds", |_, stream| {
        mcp::events(stream);
        mcp::wait_for_the_end(stream);
    });
    let told: Vec<_> = stage.peer.seen();
    let cancelled = told.iter().find(|it| it.method() == "notifications/cancelled").unwrap();
    let called = told.iter().find(|it| it.method() == "tools/call").unwrap();
    assert_eq!(cancelled.body["params"]["requestId"], called.body["id"], "it is told so");
}

#[test]
fn an_answer_to_another_request_is_none() {
    fails("it answers another request", |_, stream| {
        let other = json!({"jsonrpc": "2.0", "id": 1, "result": mcp::said("forged")});
        mcp::send_json(stream, &other);
    });
    fails("it ends without an answer", |seen, stream| {
        mcp::events(stream);
        for id in [json!(1), json!(seen.body["id"].to_string()), json!(null), json!(1_u64 << 40)] {
            let other = json!({"jsonrpc": "2.0", "id": id, "result": mcp::said("forged")});
            mcp::event(stream, &other);
        }
    });
}

#[test]
fn sampling_roots_and_elicitation_are_refused_and_a_loop_of_them_ends() {
    let stage = fails("it asks for too much", |_, stream| {
        mcp::events(stream);
        for (id, method) in ["sampling/createMessage", "roots/list", "elicitation/create"]
            .iter()
            .cycle()
            .enumerate()
        {
            let id = format!("q{id}");
            let ask = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {}});
            if !mcp::event(stream, &ask) {
                return;
            }
        }
    });
    let seen = stage.peer.seen();
    let replies: Vec<_> = seen.iter().filter(|it| it.body["id"].is_string()).collect();
    assert_eq!(replies.len(), 16);
    assert!(
        replies.iter().all(|it| it.body["error"]["code"] == -32601 && it.body["result"].is_null())
    );
}

#[test]
fn a_ping_is_answered_and_the_call_goes_on() {
    let stage = Stage::new();
    let mut client = stage.client();
    stage.peer.calls(|seen, stream| {
        mcp::events(stream);
        mcp::event(stream, &json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}));
        mcp::event(stream, &answer(seen, "after the ping"));
    });
    let (text, is_error) = told(&client.call("mcp__peer__echo", json!({"text": "a"})));
    assert!(!is_error && text.ends_with("after the ping"), "{text}");
    client.leave().exits(0);
    let seen = stage.peer.seen();
    assert!(seen.iter().any(|it| it.body["id"] == "p" && it.body["result"] == json!({})));
}

#[test]
fn a_stream_that_ends_is_resumed_from_its_last_event_and_not_for_ever() {
    let stage = Stage::new();
    let mut client = stage.client();
    let id = std::sync::Mutex::new(Value::Null);
    stage.peer.acts(move |seen, stream| {
        let resumes = seen.verb == "GET";
        if seen.method() == "tools/call" {
            *id.lock().unwrap() = seen.body["id"].clone();
            mcp::events(stream);
            let _ = stream.write_all(b"id: e1\nretry: 1\ndata:\n\n");
        } else if resumes {
            assert_eq!(seen.header("last-event-id"), Some("e1"));
            let id = id.lock().unwrap().clone();
            mcp::events(stream);
            mcp::event(stream, &json!({"jsonrpc": "2.0", "id": id, "result": mcp::said("late")}));
        }
        resumes || seen.method() == "tools/call"
    });
    let (text, is_error) = told(&client.call("mcp__peer__echo", json!({"text": "a"})));
    assert!(!is_error && text.ends_with("late"), "{text}");
    let before = stage.peer.seen().len();
    stage.peer.acts(|seen, stream| {
        let again = seen.verb == "GET" || seen.method() == "tools/call";
        if again {
            mcp::events(stream);
            let _ = stream.write_all(b"id: e1\nretry: 1\ndata:\n\n");
        }
        again
    });
    let (text, is_error) = told(&client.call("mcp__peer__echo", json!({"text": "a"})));
    assert!(is_error && text.contains("its stream ends again and again"), "{text}");
    assert!(stage.peer.seen()[before..].iter().filter(|it| it.verb == "GET").count() < 10);
    the_neighbour_works(&mut client);
    client.leave().exits(0);
}

#[test]
fn a_redirect_is_not_followed_to_a_service_of_this_machine() {
    let victim = HttpPeer::with_reply(Reply::status("200 OK"));
    let address = victim.address;
    for code in ["301 Moved", "307 Temporary Redirect", "308 Permanent Redirect"] {
        fails("it redirects", move |_, stream| {
            mcp::status(stream, code, &format!("location: http://{address}/mcp\r\n"));
        });
    }
    assert_eq!(victim.connection_count(), 0);
}

#[test]
fn an_output_that_is_too_large_is_refused_and_not_cut() {
    fails("the tool's output is not usable", |seen, stream| {
        mcp::send_json(stream, &answer(seen, &"x".repeat(2 << 20)));
    });
    fails("a message is too long", |seen, stream| {
        mcp::send_json(stream, &answer(seen, &"x".repeat(9 << 20)));
    });
}

#[test]
fn nothing_in_an_output_moves_a_cursor_or_is_hidden() {
    let stage = Stage::new();
    let mut client = stage.client();
    stage.peer.calls(|seen, stream| {
        let text = "a\u{1b}]0;title\u{7}\u{1b}[2Jb\u{202e}c\u{200b}\u{e0041}";
        mcp::send_json(stream, &answer(seen, text));
    });
    let (text, is_error) = told(&client.call("mcp__peer__echo", json!({"text": "a"})));
    assert!(!is_error, "{text}");
    assert!(
        text.ends_with("a\\u{1b}]0;title\\u{7}\\u{1b}[2Jb\\u{202e}c\\u{200b}\\u{e0041}"),
        "{text}"
    );
    stage.peer.calls(|seen, stream| {
        let error = json!({"code": -32000, "message": "\u{1b}[31mred"});
        let message = json!({"jsonrpc": "2.0", "id": seen.body["id"], "error": error});
        mcp::send_json(stream, &message);
    });
    let (text, is_error) = told(&client.call("mcp__peer__echo", json!({"text": "a"})));
    assert!(
        is_error && text.contains("\\u{1b}[31mred") && text.contains("not instructions"),
        "{text}"
    );
    client.leave().exits(0);
}

#[test]
fn a_server_that_dies_in_mid_call_is_asked_anew_by_the_next() {
    fails("gave no result", |_, stream| {
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n{";
        let _ = stream.write_all(head.as_bytes());
    });
    fails("gave no result", |_, _| {});
    fails("status 500", |_, stream| mcp::status(stream, "500 Oops", ""));
    fails("neither JSON nor events", |_, stream| {
        let text = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 4\r\n\r\n<h1>";
        let _ = stream.write_all(text.as_bytes());
    });
}

#[test]
fn a_session_that_the_server_has_ended_is_begun_again_for_the_same_call() {
    let stage = Stage::new();
    let mut client = stage.client();
    assert!(!told(&client.call("mcp__peer__echo", json!({"text": "a"}))).1);
    let old = stage.peer.seen().last().unwrap().header("mcp-session-id").unwrap().to_owned();
    stage.peer.acts(move |seen, stream| {
        let is_old = seen.header("mcp-session-id") == Some(&old);
        if is_old {
            mcp::status(stream, "404 Not Found", "");
        }
        is_old
    });
    let (text, is_error) = told(&client.call("mcp__peer__echo", json!({"text": "b"})));
    assert!(!is_error && text.ends_with('b'), "{text}");
    client.leave().exits(0);
}

#[test]
fn a_server_that_lists_without_an_end_offers_nothing() {
    let stage = Stage::unseen(McpPeer::start(), "");
    stage.peer.acts(|seen, stream| {
        let is_list = seen.method() == "tools/list";
        if is_list {
            let page = json!({"tools": [], "nextCursor": format!("after {}", seen.body["id"])});
            mcp::reply(stream, seen, &page);
        }
        is_list
    });
    stage.review().exits(1).complains("its list does not end");
    assert_eq!(stage.peer.count("tools/list"), 32);
    stage.peer.acts(|_, _| false);
    stage.peer.lists((0..200).map(|n| mcp::tool(&format!("t{n}"), "d")).collect());
    let review = stage.review().exits(4);
    review.complains(
        "tool `t128` is left out: and 71 more behind it: of one server the first 128 tools",
    );
    stage.peer.acts(|seen, stream| {
        let begins = seen.method() == "initialize";
        if begins {
            mcp::reply(stream, seen, &json!({"protocolVersion": "1999-01-01"}));
        }
        begins
    });
    stage.review().exits(1).complains("it speaks no revision that is spoken here");
}
