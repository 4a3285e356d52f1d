//! Schemas whose patterns cost much: refused, without an effect, and the neighbour unharmed.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use belljar_store::KeyScope;
use belljar_work::{MAX_RUNNING_PER_OWNER, MAX_WAITING_PER_OWNER, WorkKind};
use futures::FutureExt as _;
use futures::future::join_all;
use serde_json::{Map, Value, json};

use super::{complete, error, post, respond, text, user};
use crate::client::{Answer, PATIENCE};
use crate::kit::{Plan, World, agent};

/// Memory that a refused request may take, with that of the tests beside this one. It was 2.1 GiB.
const GROWTH: u64 = 512 << 20;

/// The memory that this process has ever had, in bytes.
fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// A response that has to fit a schema.
fn formed(schema: &Value) -> Value {
    let format = json!({"type": "json_schema", "name": "x", "schema": schema});
    json!({"model": "teller", "input": "tell", "text": {"format": format}})
}

async fn neighbour(world: &World) {
    let body = json!({"model": "teller", "messages": [user("tell")]});
    complete(world, "red-member", body).await.is(200);
}

/// INV-400.
#[tokio::test]
async fn schemas_whose_patterns_are_large_are_refused_and_cost_no_memory() {
    let world = World::new().await;
    let large: Map<String, Value> =
        (0..150).map(|n| (format!("\\pL{{180}}{n}"), json!({}))).collect();
    let slow = |n: usize| json!({"pattern": format!("a[ab]{{{}}}[^ab]", 850 + n)});
    let slow: Vec<Value> = (0..40).map(slow).collect();
    let (before, memory) = (world.state("blue").await, most_memory());
    for (schema, place) in [
        (json!({"patternProperties": large}), "/patternProperties/"),
        (json!({"allOf": slow}), "at most 20000"),
    ] {
        let refused = respond(&world, "blue-member", formed(&schema)).await.is(400);
        let told = error(&refused, "invalid_value");
        assert_eq!(told["param"], "text.format.schema");
        assert!(text(&told["message"]).contains(place), "{told}");
        assert!(!refused.headers.contains_key("x-belljar-run"), "nothing ran");
        assert_eq!(world.state("blue").await, before);
    }
    let grown = most_memory().saturating_sub(memory);
    assert!(grown < GROWTH, "{} MiB", grown >> 20);
    neighbour(&world).await;
}

/// INV-401.
#[tokio::test]
async fn slow_patterns_leave_a_neighbours_chat_alone() {
    let answer = format!("{}c", "ab".repeat(15_000));
    let says = format!("      - say: '\"{answer}\"'\n").repeat(3);
    let head = "transcript: 1\neach_run: true\nagents:\n  - agent: teller\n    turns:\n";
    let transcript = format!("{head}{says}");
    let world = World::with(Plan { transcript: &transcript, ..Plan::default() }).await;
    let slow = |count: usize| {
        let pattern = |n: usize| json!({"pattern": format!("a[ab]{{{}}}[^ab]", 851 + n)});
        formed(&json!({"allOf": (0..count).map(pattern).collect::<Vec<_>>()}))
    };
    // One such pattern is matched, on a thread of its own.
    let matched = respond(&world, "blue-member", slow(1));
    let mut answered = 0;
    tokio::pin!(matched);
    let matched = loop {
        tokio::select! {
            biased;
            matched = &mut matched => break matched,
            () = neighbour(&world) => answered += 1,
        }
    };
    assert_eq!(matched.is(200).json()["status"], "completed");
    assert!(answered > 0, "no neighbour was answered meanwhile");
    // More of them are not matched at all: the model is told, three times, and there is no answer.
    let refused = respond(&world, "blue-member", slow(12)).await;
    let told = refused.json();
    assert_eq!(told["error"]["code"], "format_not_met", "{told}");
    assert!(text(&told["error"]["message"]).contains("too long"), "{told}");
    neighbour(&world).await;
}

const HANGING: &str = "
transcript: 1
each_run: true
agents:
  - agent: teller
    turns:
      - say: '1'
        hang: true
";

/// INV-402.
#[tokio::test]
async fn the_memory_of_schemas_is_in_flight_until_the_turn_has_ended() {
    let world = World::with(Plan { transcript: HANGING, tenant_bytes: 2 << 20, ..Plan::default() });
    let world = world.await;
    // Some 1.3 MiB: a pattern with a group may have a table of 1 MiB.
    let pattern = |n: usize| json!({"pattern": format!("(x)[a-f]{{{}}}", 600 + n)});
    let mut body = formed(&json!({"allOf": (0..1).map(pattern).collect::<Vec<_>>()}));
    body["background"] = json!(true);
    let first = respond(&world, "blue-member", body.clone()).await.is(200).json();
    let before = world.state("blue").await;
    error(&respond(&world, "blue-member", body.clone()).await.is(429), "rate_limit_exceeded");
    assert_eq!(world.state("blue").await, before);
    // Neither another tenant nor a request without a schema is concerned. Each is ended before the next:
    // this host has room for two turns, and a third would wait until a model's silence has lasted a minute.
    let other = json!({"model": "teller", "input": "tell", "background": true});
    for (caller, body) in [("blue-member", other), ("red-member", body.clone())] {
        let response = respond(&world, caller, body).await.is(200).json();
        cancel(&world, caller, &response).await;
    }
    cancel(&world, "blue-member", &first).await;
    let last = respond(&world, "blue-member", body).await.is(200).json();
    cancel(&world, "blue-member", &last).await;
}

async fn cancel(world: &World, caller: &str, response: &Value) {
    let path = format!("/v1/responses/{}/cancel", text(&response["id"]));
    post(world, caller, &path, &json!({})).await.is(200);
}

/// Work of a test's own, which takes a tenant's threads until its hold is dropped.
const HELD: WorkKind = WorkKind { name: "work of a test", time: PATIENCE };

/// Places of a tenant among the host's threads that are taken.
type Held = (Pin<Box<dyn Future<Output = ()>>>, Vec<Sender<()>>);

async fn hold(tenant: &str, places: usize) -> Held {
    let tenant: Arc<str> = tenant.into();
    let (holds, held): (Vec<_>, Vec<_>) = (0..places).map(|_| channel::<()>()).unzip();
    let job = |held: Receiver<()>| {
        let tenant = Arc::clone(&tenant);
        async move {
            let _ = belljar_work::run_job(&HELD, &tenant, move |_| held.recv()).await;
        }
    };
    let jobs: Vec<_> = held.into_iter().map(job).collect();
    let mut jobs: Held = (Box::pin(join_all(jobs).map(drop)), holds);
    // Once polled, each has its place.
    tokio::select! {
        biased;
        () = &mut jobs.0 => panic!("they wait until they are dropped"),
        () = std::future::ready(()) => {}
    }
    jobs
}

/// A tenant whose threads no other test takes, with a member's key.
async fn newcomer(world: &World, tenant: &str) -> String {
    let root = world.dir.path().join(tenant);
    std::fs::create_dir_all(root.join("home/agents")).unwrap();
    std::fs::create_dir_all(root.join("workspace")).unwrap();
    std::fs::write(root.join("home/agents/teller.md"), agent("teller")).unwrap();
    world.store.tenant_registry().create_tenant(tenant, 1).await.unwrap();
    world.new_key(tenant, KeyScope::Member).await
}

async fn send_as(world: &World, key: &str, path: &str, body: &Value) -> Answer {
    world.call("POST", path).key(key).json(body).send().await
}

/// INV-480: at each entrance, and never as a fault of the schema. Nothing runs, nothing is stored, a request
/// without a schema and the neighbour are answered, and so is the same request a little later.
#[tokio::test]
async fn schemas_that_wait_behind_others_of_their_tenant_are_429_and_those_that_wait_too_long_503()
{
    let transcript = format!("{ANY}{}", "      - say: '{}'\n".repeat(8));
    let plan = Plan { transcript: &transcript, ..Plan::default() };
    let world = World::with(plan).await;
    let key = newcomer(&world, "crowded").await;
    let schema = json!({"type": "object"});
    let format = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}});
    let completion =
        json!({"model": "teller", "messages": [user("tell")], "response_format": format});
    let plain = json!({"model": "teller", "messages": [user("tell")]});
    // It is opened before its threads are taken.
    send_as(&world, &key, "/v1/chat/completions", &plain).await.is(200);
    let before = world.state("crowded").await;
    for (places, status, code) in [
        (MAX_RUNNING_PER_OWNER + MAX_WAITING_PER_OWNER, 429, "rate_limit_exceeded"),
        (MAX_RUNNING_PER_OWNER, 503, "unavailable"),
    ] {
        let held = hold("crowded", places).await;
        let (response, completed) = tokio::join!(
            async { send_as(&world, &key, "/v1/responses", &formed(&schema)).await },
            async { send_as(&world, &key, "/v1/chat/completions", &completion).await },
        );
        for refused in [response, completed] {
            let refused = refused.is(status);
            let told = error(&refused, code);
            assert!(text(&told["message"]).contains("JSON Schemas"), "{told}");
            assert!(told["param"].is_null(), "no part of the request is at fault: {told}");
            if status == 429 {
                let wait = refused.headers["retry-after"].to_str().unwrap().parse::<u64>();
                assert!(wait.unwrap() > 0);
            }
            assert!(!refused.headers.contains_key("x-belljar-run"), "nothing ran");
        }
        assert_eq!(world.state("crowded").await, before);
        neighbour(&world).await;
        drop(held);
    }
    send_as(&world, &key, "/v1/chat/completions", &plain).await.is(200);
    let answered = send_as(&world, &key, "/v1/responses", &formed(&schema)).await.is(200);
    assert_eq!(answered.json()["status"], "completed");
}

const ANY: &str = "transcript: 1\neach_run: true\nagents:\n  - agent: teller\n    turns:\n";
