//! Traces of `belljar serve`: what reaches the operator's collector, what never does, and that
//! one which takes nothing stops nobody.

use std::collections::BTreeMap;

use belljar_kit::peers::{HttpPeer, Reply};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

use crate::kit::World;
use crate::kit::server::{Server, key};

/// Words that may be in no trace: those of the person, the model, a file and a tool's arguments.
const SAID: [&str; 6] =
    ["brumal-ask", "brumal-answer", "brumal-file", "brumal-task", "brumal_tool", "brumal-call"];

const TRANSCRIPT: &str = "
transcript: 1
agents:
  - agent: lead
    turns:
      - calls:
          - {name: file_read, arguments: {path: brumal-file.txt}, id: brumal-call}
          - {name: brumal_tool, arguments: {}}
          - {name: spawn_agent, arguments: {agent: helper, task: brumal-task one}}
          - {name: spawn_agent, arguments: {agent: helper, task: brumal-task two}}
        usage: {input: 100, cached: 40, output: 7}
      - say: brumal-answer
        usage: {input: 10, output: 2}
  - agent: helper
    spawn: any
    turns:
      - calls: [{name: file_read, arguments: {path: brumal-file.txt}}]
      - say: brumal-answer of a helper
";

/// Where the server's spans are sent.
struct Collector(HttpPeer);

impl Collector {
    fn start() -> Self {
        Self(HttpPeer::with_reply(Reply::status("200 OK")))
    }

    fn spans(&self) -> Vec<Span> {
        let requests = self.0.requests().into_iter();
        let batches =
            requests.map(|taken| ExportTraceServiceRequest::decode(&taken.raw[..]).unwrap());
        let resources = batches.flat_map(|batch| batch.resource_spans);
        resources.flat_map(|of| of.scope_spans).flat_map(|of| of.spans).collect()
    }
}

fn world() -> World {
    let world = World::new();
    world.file("brumal-file.txt", "brumal-file says this\n");
    let agent = |name: &str, tools: &str| {
        let text = format!(
            "---\nname: {name}\ndescription: Works.\ntools: {tools}\nvisibility: user-facing\n---\nWork.\n"
        );
        world.home_file(&format!("agents/{name}.md"), &text);
    };
    agent("lead", "[file_read, spawn_agent]");
    agent("helper", "[file_read]");
    let transcript = world.other("transcript.yaml", TRANSCRIPT.as_bytes());
    let model =
        format!("[models.main]\nkind = 'scripted'\nmodel = '{}'\n", transcript.to_str().unwrap());
    world.home_file("belljar.toml", &model);
    world
}

fn attributes(span: &Span) -> BTreeMap<&str, String> {
    let text = |value: &Value| match value {
        Value::StringValue(text) => text.clone(),
        Value::IntValue(number) => number.to_string(),
        Value::BoolValue(truth) => truth.to_string(),
        other => panic!("{other:?}"),
    };
    let value = |kv: &opentelemetry_proto::tonic::common::v1::KeyValue| {
        text(kv.value.as_ref().unwrap().value.as_ref().unwrap())
    };
    span.attributes.iter().map(|kv| (kv.key.as_str(), value(kv))).collect()
}

/// Each span below its parent, with what it says of itself.
fn tree(spans: &[Span], parent: &[u8], depth: usize, lines: &mut Vec<String>) {
    let mut below: Vec<&Span> = spans.iter().filter(|span| span.parent_span_id == parent).collect();
    below.sort_by_key(|span| (span.start_time_unix_nano, span.name.clone()));
    for span in below {
        let of = attributes(span);
        let shown = ["belljar.status", "belljar.ending", "error.type", "http.response.status_code"];
        let shown: Vec<&str> = shown.iter().filter_map(|key| Some(of.get(key)?.as_str())).collect();
        lines.push(format!("{}{} {}", "  ".repeat(depth), span.name, shown.join(" ")));
        tree(spans, &span.span_id, depth + 1, lines);
    }
}

#[cfg(unix)]
#[test]
fn a_turn_is_one_trace_from_the_request_to_the_tools_and_holds_nothing_that_was_said() {
    let (world, collector) = (world(), Collector::start());
    let key = key(&world, "local", "member");
    let endpoint = collector.0.url("");
    let env = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-api-key=brumal-header"),
        ("OTEL_SERVICE_NAME", "jars"),
    ];
    let server = Server::start_with(&world, &[], &env);
    let body = r#"{"agent": "lead", "text": "brumal-ask"}"#;
    let (trace, parent) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
    let from = format!("traceparent: 00-{trace}-{parent}-01\r\n");
    // Nobody's request is no span, and belongs to no trace.
    assert_eq!(server.post("/v1/chat", &from, body).0, 401);
    let head = format!("{from}authorization: Bearer {key}\r\n");
    let (status, answer) = server.post("/v1/chat", &head, body);
    assert!(status == 200 && answer.contains("brumal-answer"), "{status}: {answer}");
    assert_eq!(server.get("/healthz", None).0, 200);
    // What waits is sent before the end.
    let done = server.terminate().exits(0);
    assert!(!done.stderr.contains("gen_ai"), "spans are no lines of the log: {}", done.stderr);

    let spans = collector.spans();
    let mut lines = Vec::new();
    let above: Vec<u8> =
        (0..8).map(|i| u8::from_str_radix(&parent[2 * i..2 * i + 2], 16).unwrap()).collect();
    tree(&spans, &above, 0, &mut lines);
    let helper = [
        "      execute_tool spawn_agent completed",
        "        invoke_agent helper completed",
        "          chat transcript.yaml ",
        "          execute_tool file_read completed",
        "          chat transcript.yaml ",
    ];
    let mut expected = vec![
        "POST /v1/chat 200",
        "  turn completed",
        "    invoke_agent lead completed",
        "      chat transcript.yaml ",
        "      execute_tool file_read completed",
        "      execute_tool refused refused refused",
    ];
    expected.extend(helper);
    expected.extend(helper);
    expected.push("      chat transcript.yaml ");
    assert_eq!(lines, expected, "of {} spans", spans.len());
    assert_eq!(lines.len(), spans.len(), "every span has its place");
    let ids: Vec<u8> =
        (0..16).map(|i| u8::from_str_radix(&trace[2 * i..2 * i + 2], 16).unwrap()).collect();
    assert!(spans.iter().all(|span| span.trace_id == ids));
    assert!(spans.iter().all(|span| span.events.is_empty() && span.links.is_empty()));

    let named = |name: &str| attributes(spans.iter().find(|span| span.name == name).unwrap());
    let turn = named("turn");
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(turn["gen_ai.conversation.id"], answer["session"].as_str().unwrap());
    assert_eq!(turn["belljar.message"], answer["message"].as_str().unwrap());
    assert_eq!((&*turn["belljar.tenant"], &*turn["belljar.resumed"]), ("local", "false"));
    assert_eq!(turn["belljar.subagents"], "2");
    let lead = named("invoke_agent lead");
    assert_eq!((&*lead["belljar.depth"], &*lead["belljar.path"]), ("0", "lead"));
    assert_eq!(lead["gen_ai.usage.input_tokens"], "110");
    assert_eq!(lead["gen_ai.usage.cache_read.input_tokens"], "40");
    assert_eq!(named("invoke_agent helper")["belljar.depth"], "1");
    assert!(named("execute_tool file_read")["belljar.fuel"].parse::<u64>().unwrap() > 0);
    assert_eq!(named("POST /v1/chat")["http.route"], "/v1/chat");

    let requests = collector.0.requests();
    for request in &requests {
        assert!(request.head.starts_with("POST /v1/traces "), "{request:?}");
        assert_eq!(request.header("x-api-key"), Some("brumal-header"));
    }
    let all = requests.into_iter().map(|request| request.text).collect::<String>();
    assert!(all.contains("jars"), "the service's name");
    let home = world.home().display().to_string();
    for secret in SAID.into_iter().chain([key.as_str(), "brumal-header", home.as_str(), ".rs"]) {
        assert!(!all.contains(secret), "`{secret}` is in a trace");
    }
}

#[cfg(unix)]
#[test]
fn a_turn_that_goes_on_after_a_restart_is_a_trace_that_says_so() {
    let (world, collector) = (world(), Collector::start());
    let hanging = "transcript: 1\nagents:\n  - agent: lead\n    turns: [{say: wait, hang: true}]\n";
    world.other("transcript.yaml", hanging.as_bytes());
    let server = Server::start(&world, &[]);
    let body = r#"{"agent": "lead", "text": "brumal-ask", "stream": true}"#;
    server.until("POST", "/v1/chat", body, "text_delta");
    // Killed outright.
    drop(server);
    world.other("transcript.yaml", TRANSCRIPT.as_bytes());
    let endpoint = collector.0.url("");
    let server = Server::start_with(&world, &[], &[("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)]);
    let listed: serde_json::Value =
        serde_json::from_str(&server.get("/v1/sessions", None).1).unwrap();
    let session = listed["sessions"][0]["id"].as_str().unwrap();
    let events = format!("/v1/sessions/{session}/events?after=0");
    server.until("GET", &events, "", "run_finished");
    server.terminate().exits(0).complains("resuming 1 interrupted turn");
    let spans = collector.spans();
    let turn = spans.iter().find(|span| span.name == "turn").unwrap();
    let of = attributes(turn);
    assert_eq!((&*of["belljar.resumed"], &*of["belljar.status"]), ("true", "completed"));
    assert!(turn.parent_span_id.is_empty());
    let mut lines = Vec::new();
    tree(&spans, &turn.span_id, 0, &mut lines);
    assert_eq!(lines[0], "invoke_agent lead completed");
    let requests = spans.iter().filter(|span| span.name.starts_with("GET ")).count();
    assert_eq!(lines.len() + 1 + requests, spans.len(), "{lines:#?}");
}

#[cfg(unix)]
#[test]
fn a_collector_that_takes_nothing_stops_no_turn() {
    // One never answers, one is not there.
    let silent = HttpPeer::with_reply(Reply::silence());
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (address, log) in
        [(silent.address, "not all traces were sent"), (gone, "does not take traces")]
    {
        let world = world();
        let config = world.home().join("belljar.toml");
        let text = std::fs::read_to_string(config).unwrap();
        world.home_file(
            "belljar.toml",
            &format!("{text}[server]\notlp_endpoint = 'http://{address}'\n"),
        );
        let server = Server::start_with(&world, &[], &[("OTEL_BSP_SCHEDULE_DELAY", "10")]);
        let body = r#"{"agent": "lead", "text": "x"}"#;
        let (status, answer) = server.post("/v1/chat", "", body);
        assert!(status == 200 && answer.contains("brumal-answer"), "{status}: {answer}");
        for _ in 0..20 {
            assert_eq!(server.get("/v1/sessions", None).0, 200);
        }
        let done = server.terminate().exits(0);
        let said = done.stderr.matches(log).count();
        assert_eq!(said, 1, "{}", done.stderr);
        assert!(done.stderr.contains("stopped"), "{}", done.stderr);
    }
}

#[test]
fn a_collector_that_cannot_be_one_is_refused_at_the_start() {
    let world = World::new();
    world.home_file("belljar.toml", "[server]\notlp_endpoint = 'collector:4318'\n");
    let done = world.run(&["serve", "--listen", "127.0.0.1:0"]).exits(2);
    done.complains("`otlp_endpoint` under `[server]`").complains("http://127.0.0.1:4318");
}
