//! Attacks on OpenAI's API: by what a caller sends with a turn besides text.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::super::client::{get_request, new_request};
use super::super::stage::ServerStage;
use super::{Row, escape_unless, expect_refused, row};
use crate::attack::{Stopped, Verdict};

/// The time within which the neighbour must be answered. Before the defence, it took a minute.
const SOON: Duration = Duration::from_secs(15);

pub(super) const ATTACKS: &[Row] = &[
    row!(
        "server-openai-tool-of-belljars",
        "brings a tool with the name of one that reads files",
        "names of belljar's own tools (INV-280)",
        "belljar's own",
        shadow_host_tool
    ),
    row!(
        "server-openai-schema-doubling",
        "brings a schema that takes 2^40 steps to check",
        "the weight of a schema (INV-283)",
        "too large",
        send_doubling_schema
    ),
    row!(
        "server-openai-schema-circle",
        "brings a schema that refers to itself for ever",
        "circles in a schema (INV-283)",
        "circle",
        send_circular_schema
    ),
    row!(
        "server-openai-schema-elsewhere",
        "brings a schema that refers to a file of the host",
        "a schema refers to itself alone (INV-283)",
        "no part of it",
        send_file_reference
    ),
    row!(
        "server-openai-pattern-large",
        "brings 150 patterns of 3 KB that take 2 GB when they are compiled",
        "the bytes of a compiled pattern (INV-400)",
        "a pattern that takes more than",
        large_patterns
    ),
    row!(
        "server-openai-patterns-slow",
        "brings 40 patterns that stop the server for seconds with an answer of 60 KB",
        "the states of a schema's patterns (INV-400)",
        "states when they are compiled",
        slow_patterns
    ),
    row!(
        "server-openai-patterns-of-tools",
        "brings 64 tools whose patterns are small each and large together",
        "the bytes of a request's schemas (INV-400)",
        "schemas of this request",
        patterns_of_tools
    ),
    row!(
        "server-openai-schema-marking",
        "brings `unevaluatedProperties` thirty levels deep, each of which doubles the work",
        "the steps of a schema (INV-400)",
        "in each other",
        send_marking_schema
    ),
    row!(
        "server-openai-answer-slow-to-check",
        "has a model answer 30 KB that patterns of the caller's take minutes to match",
        "the steps of a check, counted before it begins (INV-401)",
        "too long for the patterns",
        slow_answer
    ),
    row!(
        "server-openai-calls-many",
        "brings 30,000 calls and their results in the reverse order, three times at once",
        "calls and results are looked up (INV-482)",
        "blue is answered",
        many_calls
    ),
    row!(
        "server-openai-tools-many",
        "brings a thousand tools",
        "how many tools a caller may bring (INV-283)",
        "more than",
        send_many_tools
    ),
    row!(
        "server-openai-image-inside",
        "sends an image whose address is the server's own",
        "nothing is fetched for a caller (INV-287)",
        "nothing is fetched",
        send_url_image
    ),
    row!(
        "server-openai-response-made-up",
        "goes on from a response whose id leads out of its tenant",
        "responses are looked up by tenant (INV-281)",
        "previous_response_not_found",
        made_up
    ),
    row!(
        "server-openai-reader-talks",
        "begins a response with a key that may look",
        "the scope of a route (INV-86)",
        "permission_denied",
        respond_as_reader
    ),
];

fn function_tool(name: &str, schema: Value) -> Value {
    json!({ "type": "function", "name": name, "parameters": schema })
}

/// Sends a request for a response as the tenant `red`, and checks that it is refused with `status`.
async fn expect_response_refused(stage: &ServerStage, more: Value, status: u16) -> Stopped {
    let mut body = json!({ "model": "teller", "input": "tell" });
    for (name, value) in more.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    expect_refused(
        stage,
        "red-member",
        new_request("POST", "/v1/responses").with_json(&body),
        status,
    )
    .await
}

/// Attack `server-openai-tool-of-belljars`: the attacker brings a tool with the name of one that reads files.
async fn shadow_host_tool(stage: &ServerStage) -> Stopped {
    let tools = json!([function_tool("file_read", json!({ "type": "object" }))]);
    expect_response_refused(stage, json!({ "tools": tools }), 400).await
}

/// Attack `server-openai-schema-doubling`: the attacker brings a schema that takes 2^40 steps to check.
async fn send_doubling_schema(stage: &ServerStage) -> Stopped {
    let mut parts = Map::new();
    parts.insert("d0".to_owned(), json!({ "type": "string" }));
    for level in 1..40 {
        let below = json!({ "$ref": format!("#/$defs/d{}", level - 1) });
        parts.insert(format!("d{level}"), json!({ "allOf": [below, below] }));
    }
    let schema = json!({ "$defs": parts, "$ref": "#/$defs/d39" });
    let format = json!({ "type": "json_schema", "name": "x", "schema": schema });
    expect_response_refused(stage, json!({ "text": { "format": format } }), 400).await
}

/// Attack `server-openai-schema-circle`: the attacker brings a schema that refers to itself for ever.
async fn send_circular_schema(stage: &ServerStage) -> Stopped {
    let of_itself = json!({ "anyOf": [{ "$ref": "#/$defs/a" }] });
    let schema = json!({ "$defs": { "a": of_itself }, "$ref": "#/$defs/a" });
    expect_response_refused(stage, json!({ "tools": [function_tool("look", schema)] }), 400).await
}

/// Attack `server-openai-schema-elsewhere`: the attacker brings a schema that refers to a file of the host.
async fn send_file_reference(stage: &ServerStage) -> Stopped {
    let schema = json!({ "$ref": "file:///etc/passwd" });
    expect_response_refused(stage, json!({ "tools": [function_tool("look", schema)] }), 400).await
}

/// Attack `server-openai-pattern-large`: the attacker brings 150 patterns of 3 KB that take 2 GB when they
/// are compiled.
async fn large_patterns(stage: &ServerStage) -> Stopped {
    let patterns: Map<String, Value> =
        (0..150).map(|n| (format!("\\pL{{180}}{n}"), json!({}))).collect();
    expect_format_refused(stage, &json!({ "patternProperties": patterns })).await
}

/// Attack `server-openai-patterns-slow`: the attacker brings 40 patterns that stop the server for seconds
/// with an answer of 60 KB.
async fn slow_patterns(stage: &ServerStage) -> Stopped {
    let pattern = |n: usize| json!({ "pattern": format!("a[ab]{{{}}}[^ab]", 850 + n) });
    expect_format_refused(stage, &json!({ "allOf": (0..40).map(pattern).collect::<Vec<_>>() }))
        .await
}

/// Attack `server-openai-patterns-of-tools`: the attacker brings 64 tools whose patterns are small each and
/// large together.
async fn patterns_of_tools(stage: &ServerStage) -> Stopped {
    let look = |n: usize| {
        let pattern = |m: usize| json!({ "pattern": format!("^\\p{{L}}{{2}}{n}x{m}$") });
        let patterns: Vec<Value> = (0..4).map(pattern).collect();
        function_tool(&format!("look{n}"), json!({ "type": "object", "allOf": patterns }))
    };
    let tools: Vec<Value> = (0..64).map(look).collect();
    expect_response_refused(stage, json!({ "tools": tools }), 400).await
}

/// Attack `server-openai-schema-marking`: the attacker brings `unevaluatedProperties` thirty levels deep,
/// each of which doubles the work.
async fn send_marking_schema(stage: &ServerStage) -> Stopped {
    let level = |below: Value| json!({ "anyOf": [below, { "minProperties": 1 }], "unevaluatedProperties": false });
    let schema = (0..30).fold(json!({ "type": "object" }), |below, _| level(below));
    expect_format_refused(stage, &schema).await
}

/// Requests a response in the form of a JSON Schema, and checks that the schema is refused.
async fn expect_format_refused(stage: &ServerStage, schema: &Value) -> Stopped {
    let format = json!({ "type": "json_schema", "name": "x", "schema": schema });
    expect_response_refused(stage, json!({ "text": { "format": format } }), 400).await
}

/// Attack `server-openai-answer-slow-to-check`: the attacker has a model answer 30 KB that patterns of the
/// caller's take minutes to match.
async fn slow_answer(stage: &ServerStage) -> Stopped {
    stage.red_may_change();
    let pattern = |n: usize| json!({ "pattern": format!("a[ab]{{{}}}[^ab]", 850 + n) });
    let schema = json!({ "allOf": (0..20).map(pattern).collect::<Vec<_>>() });
    let format = json!({ "type": "json_schema", "name": "x", "schema": schema });
    let body = json!({ "model": "letters", "input": "go", "text": { "format": format } });
    let answer = stage
        .client_for("red-member")
        .send(&new_request("POST", "/v1/responses").with_json(&body))
        .await?;
    // This request changes nothing, because blue's data is compared after the attack.
    let blue = stage.client_for("blue-member").send(&get_request("/v1/sessions")).await?;
    escape_unless(blue.status == 200, || blue.body.clone())?;
    escape_unless(answer.body.contains("format_not_met"), || answer.body.clone())?;
    Ok(Verdict::with_words(answer.body))
}

/// Attack `server-openai-calls-many`: the attacker brings 30,000 calls and their results in the reverse
/// order, three times at once.
async fn many_calls(stage: &ServerStage) -> Stopped {
    stage.red_may_change();
    let call = |n: usize| json!({ "type": "function_call", "call_id": format!("c{n}"), "name": "f", "arguments": "{}" });
    let result = |n: usize| json!({ "type": "function_call_output", "call_id": format!("c{n}"), "output": "" });
    let mut input: Vec<Value> = (0..30_000).map(call).collect();
    input.extend((0..30_000).rev().map(result));
    let ask = new_request("POST", "/v1/responses")
        .with_json(&json!({ "model": "teller", "input": input }));
    let red = stage.client_for("red-member");
    let floods = futures::future::join_all((0..3).map(|_| red.send(&ask)));
    let mut longest = Duration::ZERO;
    // All are read to the end, because a turn that runs on would change what red has during the next attack.
    let answers = tokio::select! {
        answers = floods => answers,
        stopped = watch_neighbour(stage, &mut longest) => return stopped,
    };
    for answer in answers {
        answer?;
    }
    escape_unless(longest < SOON, || format!("blue waited {longest:?}"))?;
    Ok(Verdict::with_words("blue is answered"))
}

/// Sends a request as blue ten times a second until one is refused; records the longest time to an answer.
async fn watch_neighbour(stage: &ServerStage, longest: &mut Duration) -> Stopped {
    let mut every = tokio::time::interval(Duration::from_millis(100));
    loop {
        every.tick().await;
        let begun = Instant::now();
        // This request changes nothing, because blue's data is compared after the attack.
        let blue = stage.client_for("blue-member").send(&get_request("/v1/sessions")).await?;
        *longest = begun.elapsed().max(*longest);
        escape_unless(blue.status == 200, || blue.body.clone())?;
    }
}

/// Attack `server-openai-tools-many`: the attacker brings a thousand tools.
async fn send_many_tools(stage: &ServerStage) -> Stopped {
    let tools: Vec<Value> =
        (0..1_000).map(|n| function_tool(&format!("t{n}"), json!({}))).collect();
    expect_response_refused(stage, json!({ "tools": tools }), 400).await
}

/// Attack `server-openai-image-inside`: the attacker sends an image whose address is the server's own.
async fn send_url_image(stage: &ServerStage) -> Stopped {
    let url = format!("http://{}/v1/audit", stage.address());
    let part = json!({ "type": "input_image", "image_url": url });
    let input = json!([{ "role": "user", "content": [part] }]);
    expect_response_refused(stage, json!({ "input": input }), 400).await
}

/// Attack `server-openai-response-made-up`: the attacker goes on from a response whose id leads out of its
/// tenant.
async fn made_up(stage: &ServerStage) -> Stopped {
    expect_response_refused(stage, json!({ "previous_response_id": "resp_../blue" }), 404).await
}

/// Attack `server-openai-reader-talks`: the attacker begins a response with a key that may look.
async fn respond_as_reader(stage: &ServerStage) -> Stopped {
    let body = json!({ "model": "teller", "input": "tell" });
    expect_refused(stage, "red-reader", new_request("POST", "/v1/responses").with_json(&body), 403)
        .await
}
