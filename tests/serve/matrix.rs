//! Every route of the table, by every kind of caller, on its own tenant's objects and another's.
//!
//! A refused call leaves no trace, and no call of one tenant's changes anything of another's.

use std::collections::BTreeMap;

use belljar_server::{PathObject, ROUTES, RequiredScope, Route, RouteOp};
use serde_json::{Value, json};

use crate::client::{Answer, Call};
use crate::kit::{Plan, TENANTS, World, attachment, response, session};

/// A caller: the name of its key, its tenant, and how far it reaches; no tenant = it is nobody.
type Caller = (&'static str, Option<&'static str>, RequiredScope);

const CALLERS: [Caller; 13] = [
    ("", None, RequiredScope::Nothing),
    ("unknown", None, RequiredScope::Nothing),
    ("mixed", None, RequiredScope::Nothing),
    ("revoked", None, RequiredScope::Nothing),
    ("closed-admin", None, RequiredScope::Nothing),
    ("blue-read-only", Some("blue"), RequiredScope::ReadOnly),
    ("blue-member", Some("blue"), RequiredScope::Member),
    ("blue-admin", Some("blue"), RequiredScope::Admin),
    ("red-read-only", Some("red"), RequiredScope::ReadOnly),
    ("red-member", Some("red"), RequiredScope::Member),
    ("red-admin", Some("red"), RequiredScope::Admin),
    ("local-read-only", Some("local"), RequiredScope::ReadOnly),
    ("local-admin", Some("local"), RequiredScope::Operator),
];

/// The status that a call has to have.
fn expected(route: &Route, caller: &Caller, target: &str) -> u16 {
    let (_, tenant, reach) = caller;
    if route.op == RouteOp::Login {
        // With the key of the caller: whoever has one is let in.
        return if tenant.is_some() { 204 } else { 401 };
    }
    let Some(tenant) = tenant else {
        return if route.needs == RequiredScope::Nothing { 200 } else { 401 };
    };
    if *reach < route.needs {
        return 403;
    }
    // In their bodies these name a session too.
    let in_body = matches!(route.op, RouteOp::Chat | RouteOp::Preview | RouteOp::CreateResponse);
    let names = route.object != PathObject::None || in_body;
    // An agent is named by its slug, and every tenant has one of that name: its own.
    let own = matches!(route.object, PathObject::Agent | PathObject::Model);
    if names && !own && *tenant != target {
        return 404;
    }
    match route.op {
        RouteOp::CreateAgent => 201,
        RouteOp::Logout => 204,
        // Nobody asks anything.
        RouteOp::Answer => 404,
        // It was none in the background.
        RouteOp::CancelResponse => 400,
        // None of the protocol, which says so itself.
        RouteOp::McpSend => 415,
        RouteOp::McpListen => 406,
        RouteOp::McpEnd => 400,
        // It is no WebSocket.
        RouteOp::WebSocket => 400,
        _ => 200,
    }
}

fn path(route: &Route, target: &str) -> String {
    let path = route.path.replace("{id}", &session(target));
    let path = path.replace("{attachment}", &attachment(target)).replace("{question}", "1");
    let path = path.replace("{slug}", "kept").replace("{model}", "teller");
    let path = path.replace("{response}", &response(target));
    match route.op {
        RouteOp::ReadGrants => format!("{path}?agent=teller"),
        RouteOp::Explain => format!("{path}?agent=teller&tool=clarify"),
        RouteOp::WatchEvents => format!("{path}?follow=false"),
        _ => path,
    }
}

fn body(route: &Route, target: &str) -> Option<Value> {
    match route.op {
        RouteOp::CompleteChat => {
            let messages = json!([{ "role": "user", "content": "more" }]);
            Some(json!({ "model": "teller", "messages": messages }))
        }
        RouteOp::CreateResponse => {
            let previous = response(target);
            Some(json!({ "model": "teller", "input": "x", "previous_response_id": previous }))
        }
        RouteOp::Chat | RouteOp::Preview => {
            Some(json!({ "session": session(target), "text": "more" }))
        }
        RouteOp::Cancel | RouteOp::ApplyChanges | RouteOp::DiscardChanges | RouteOp::UndoApply => {
            Some(json!({}))
        }
        RouteOp::Answer => Some(json!({ "answer": "yes" })),
        RouteOp::CreateAgent => Some(json!({ "slug": "new", "text": crate::kit::agent("new") })),
        RouteOp::ReplaceAgent => {
            let text = crate::kit::agent("kept").replace("Tells.", "Tells more.");
            Some(json!({ "text": text }))
        }
        RouteOp::ValidateAgent => Some(json!({ "text": "nothing" })),
        _ => None,
    }
}

fn request(world: &World, route: &Route, caller: &Caller, target: &str) -> Call {
    let mut call = world.call(route.verb.as_str(), &path(route, target));
    if let Some(key) = world.keys.get(caller.0) {
        call = call.key(key);
    }
    if route.op == RouteOp::ReplaceAgent {
        call = call.header("if-match", "\"7\"");
    }
    if route.op == RouteOp::Login {
        let key = world.keys.get(caller.0).map_or("nothing", String::as_str);
        return call.json(&json!({ "key": key }));
    }
    match body(route, target) {
        Some(body) => call.json(&body),
        None => call,
    }
}

/// An agent that says the same whoever asks, and how often.
const TELLING: &str = "
transcript: 1
each_run: true
agents:
  - agent: teller
    turns:
      - say: Once upon a time.
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_route_is_open_to_whom_the_table_says_and_to_nobody_else() {
    let world = World::with(Plan { transcript: TELLING, ..Plan::default() }).await;
    let mut cells = 0;
    for route in ROUTES {
        for caller in &CALLERS {
            for target in ["blue", "red"] {
                cell(&world, route, caller, target).await;
                cells += 1;
            }
        }
    }
    assert_eq!(cells, ROUTES.len() * CALLERS.len() * 2);
}

async fn cell(world: &World, route: &Route, caller: &Caller, target: &str) {
    let at = format!("{} by `{}` on {target}'s", route.name(), caller.0);
    let mut before = BTreeMap::new();
    for tenant in TENANTS {
        before.insert(tenant, world.state(tenant).await);
    }
    let answer: Answer = request(world, route, caller, target).send().await;
    let wanted = expected(route, caller, target);
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    assert_eq!(answer.status, wanted, "{at}: {text}");
    if wanted >= 400 && route.is_openai() {
        assert!(answer.json()["error"]["message"].is_string(), "{at}: {text}");
    } else if wanted >= 400 && (route.is_described() || matches!(wanted, 401 | 403)) {
        answer.problem(match wanted {
            400 => "invalid-request",
            401 => "no-key",
            403 => "scope",
            404 => "not-found",
            503 => "unavailable",
            other => panic!("{at}: {other}"),
        });
    }
    for tenant in TENANTS {
        let after = world.state(tenant).await;
        let may_change = wanted < 400 && caller.1 == Some(tenant);
        if may_change {
            if after != before[tenant] {
                world.seed(tenant).await;
            }
        } else {
            assert_eq!(after, before[tenant], "{at} changed what {tenant} has");
        }
    }
}

#[tokio::test]
async fn what_is_another_tenants_answers_exactly_as_what_is_not_there() {
    let world = World::new().await;
    for route in ROUTES.iter().filter(|route| route.object != PathObject::None) {
        let (theirs, nothing) = (session("red"), session("none"));
        let of = async |id: &str, agent: &str| {
            let path = route.path.replace("{id}", id).replace("{attachment}", &attachment("red"));
            let path = path.replace("{question}", "1").replace("{slug}", agent);
            let path = path.replace("{model}", agent).replace("{response}", &format!("resp_{id}"));
            let mut call = world.call_as("blue-admin", route.verb.as_str(), &path);
            if let Some(body) = body(route, "red") {
                call = call.header("if-match", "7").json(&body);
            }
            let answer = call.send().await;
            let text = String::from_utf8(answer.body).unwrap();
            (answer.status, text.replace(id, "ID").replace(agent, "AGENT"))
        };
        world.store.for_tenant_name("red").save_agent("theirs", "x", 7, None).await.ok();
        let (one, other) = (of(&theirs, "theirs").await, of(&nothing, "nobodys").await);
        assert_eq!(one, other, "{}", route.name());
        assert_eq!(one.0, 404, "{}", route.name());
    }
}
