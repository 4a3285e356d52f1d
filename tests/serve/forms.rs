//! Requests that are none of the stated form: refused before a handler acts, on every route that
//! changes something.

use belljar_server::{HttpVerb, MAX_BODY, ROUTES, RequiredScope, RouteOp};
use serde_json::{Value, json};

use crate::client::{Answer, Stream};
use crate::kit::{Plan, World, attachment, response, session};
use crate::leaving::HANGING;

/// A path with the parts of a tenant in it.
fn filled(path: &str, tenant: &str) -> String {
    path.replace("{id}", &session(tenant))
        .replace("{attachment}", &attachment(tenant))
        .replace("{question}", "1")
        .replace("{slug}", "kept")
        .replace("{response}", &response(tenant))
}

/// Every route that takes a body.
fn with_body() -> impl Iterator<Item = (RouteOp, HttpVerb, &'static str)> {
    let routes = ROUTES.iter().filter(|route| {
        // As OpenAI has it, the first of these takes none.
        let takes_none =
            matches!(route.op, RouteOp::CancelResponse | RouteOp::Logout | RouteOp::Resume);
        matches!(route.verb, HttpVerb::Post | HttpVerb::Put) && !takes_none && route.is_described()
    });
    routes.map(|route| (route.op, route.verb, route.path))
}

/// Bodies that no route takes.
fn bodies() -> Vec<Vec<u8>> {
    let mut bodies: Vec<Vec<u8>> = [
        "",
        "{",
        "null",
        "[]",
        "7",
        r#"{"text":"x","text":"y"}"#,
        r#"{"nobody_has_this":1}"#,
        r#"{"text":{"deep":1}}"#,
        r#"{"slug":1,"text":2,"agent":3,"subagent":4,"answer":5}"#,
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec();
    bodies.push(b"{\"text\":\"\xff\"}".to_vec());
    bodies.push("[".repeat(10_000).into_bytes());
    bodies
}

fn is_problem(answer: &Answer, of: &str, statuses: &[u16]) {
    assert!(statuses.contains(&answer.status), "{of}: {}", answer.status);
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    let is_problem = body["type"].as_str().is_some_and(|kind| kind.starts_with("/problems/"));
    // The wires of OpenAI have a shape of their own.
    assert!(is_problem || body["error"]["message"].is_string(), "{of}: {body}");
}

/// The acts of a tenant, by its own log; the lines of refusals and of strangers are none of them.
async fn done(world: &World, tenant: &str) -> Vec<String> {
    let lines =
        world.store.for_tenant_name(tenant).read_audit(None, 200, i64::MAX).await.unwrap().rows;
    let mut done: Vec<_> = lines.into_iter().map(|line| line.action).collect();
    done.retain(|action| action != "refused" && action != "strangers");
    done
}

#[tokio::test]
async fn a_body_of_another_form_is_refused_by_every_route_and_nothing_is_done() {
    let world = World::new().await;
    let before = (world.state("blue").await, done(&world, "blue").await);
    for (op, verb, path) in with_body() {
        let path = filled(path, "blue");
        let call = || {
            let call = world.call_as("blue-admin", verb.as_str(), &path);
            if op == RouteOp::ReplaceAgent { call.header("if-match", "\"7\"") } else { call }
        };
        // Without a body a cancel is of the whole turn.
        for body in bodies().into_iter().filter(|body| op != RouteOp::Cancel || !body.is_empty()) {
            let answer = call().bytes("application/json", &body).send().await;
            let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
            // The one that a stranger may send is short.
            let refused: &[u16] = if op == RouteOp::Login { &[400, 413] } else { &[400] };
            is_problem(&answer, &format!("{} {shown}", op.name()), refused);
        }
        let answer = call().bytes("text/plain", b"{}").send().await;
        is_problem(&answer, op.name(), &[415]);
        let answer = call().bytes("application/json", &vec![b' '; MAX_BODY + 1]).send().await;
        is_problem(&answer, op.name(), &[413]);
    }
    assert_eq!((world.state("blue").await, done(&world, "blue").await), before);
    let text = json!({"agent": "teller", "text": "tell"});
    world.call_as("blue-member", "POST", "/v1/chat").json(&text).send().await.is(200);
}

#[tokio::test]
async fn an_id_of_another_form_names_nothing_whatever_is_done_with_it() {
    let world = World::new().await;
    let before = (world.state("blue").await, done(&world, "blue").await);
    for route in ROUTES.iter().filter(|route| route.path.contains('{')) {
        for id in ["%00", "%ff", "..%2f..%2fetc", "a%0d%0ab", "%e2%80%ae", &"9".repeat(4_000)] {
            let path =
                route.path.split('/').map(|part| if part.starts_with('{') { id } else { part });
            let path = path.collect::<Vec<_>>().join("/");
            let call = world.call_as("blue-admin", route.verb.as_str(), &path);
            let call = match route.verb {
                HttpVerb::Post | HttpVerb::Put => call.json(&json!({"text": "x"})),
                HttpVerb::Get | HttpVerb::Delete => call,
            };
            let answer = call.send().await;
            let shown = &path[..path.len().min(80)];
            is_problem(&answer, &format!("{} {shown}", route.name()), &[400, 404]);
        }
    }
    assert_eq!((world.state("blue").await, done(&world, "blue").await), before);
    assert!(
        ROUTES.iter().any(|route| route.needs == RequiredScope::Admin),
        "not for want of a right"
    );
}

/// A turn that hangs, and its session.
async fn hanging(world: &World) -> (Stream, String) {
    let body = json!({ "agent": "teller", "text": "tell", "stream": true });
    let mut stream = world.call_as("blue-member", "POST", "/v1/chat").json(&body).open().await;
    loop {
        let event = stream.next().await.expect("the turn ended");
        if event.kind == "text_delta" {
            let session = event.data["session"].as_str().unwrap().to_owned();
            return (stream, session);
        }
    }
}

#[tokio::test]
async fn a_session_that_answers_is_neither_deleted_nor_given_a_second_turn() {
    let world = World::with(Plan { transcript: HANGING, ..Plan::default() }).await;
    let (turn, session) = hanging(&world).await;
    let path = format!("/v1/sessions/{session}");
    let messages = world.store.for_tenant_name("blue").list_messages(&session).await.unwrap().len();
    for path in [path.as_str(), "/v1/sessions"] {
        world.call_as("blue-admin", "DELETE", path).send().await.is(409).problem("busy");
    }
    let again = json!({ "session": session, "text": "more" });
    let call = world.call_as("blue-member", "POST", "/v1/chat").json(&again);
    call.send().await.is(409).problem("busy");
    let after = world.store.for_tenant_name("blue").list_messages(&session).await.unwrap().len();
    assert_eq!(after, messages);
    // The neighbour deletes its own.
    world.call_as("red-admin", "DELETE", "/v1/sessions").send().await.is(200);
    let cancel = world.call_as("blue-member", "POST", &format!("{path}/cancel"));
    cancel.json(&json!({})).send().await.is(200);
    assert_eq!(turn.all().await.pop().unwrap().kind, "done");
    world.call_as("blue-admin", "DELETE", &path).send().await.is(200);
}
