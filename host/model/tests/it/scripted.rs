//! Tests of the scripted model.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use belljar_model::{
    CallContext, ChatMessage, ChatModel, ChatRequest, ModelError, ScriptError, ScriptedModel,
    StopReason, StreamEvent, TimeoutPhase, TokenUsage, Transcript,
};
use proptest::prelude::*;

use crate::support::{call, chat, error, first_turn, reply, second_turn, tool, yaml};

fn script(yaml: &str) -> ScriptedModel {
    ScriptedModel::from_yaml(yaml, Path::new("t.yaml")).unwrap()
}

/// A transcript of one agent `a` whose first turn has these lines.
fn one_turn(turn: &str) -> String {
    let lines: Vec<String> = turn.lines().map(|line| format!("        {line}\n")).collect();
    let body = lines.concat();
    format!("transcript: 1\nagents:\n  - agent: a\n    turns:\n      - {}", body.trim_start())
}

const TWO_TURNS: &str = r##"
transcript: 1
agents:
  - agent: a
    turns:
      - expect:
          system_contains: [You read, "Be brief."]
          last_user_contains: what is in
          last_message_contains: [a and, b]
          tools: [file_list, file_read]
        say: Let me look.
        calls:
          - {name: file_read, arguments: {path: a, lines: [1, 20], deep: {no: on}}}
          - {name: file_read, raw_arguments: '{"path": ', id: own}
          - {name: file_list}
        usage: {input: 100, cached: 40, output: 5}
      - expect:
          results:
            - {name: file_read, contains: A, is_error: false}
            - {name: "file read", is_error: true}
        say: Done.
"##;

#[tokio::test]
async fn a_transcript_is_played_in_order() {
    let model = script(TWO_TURNS);
    assert_eq!(model.id(), "scripted:t.yaml");
    let (first, events) = chat(&model, &first_turn(), &CallContext::new("a")).await;
    let first = first.unwrap();
    assert_eq!(
        first.calls,
        [
            call("call_1_1", "file_read", r#"{"path":"a","lines":[1,20],"deep":{"no":"on"}}"#),
            call("own", "file_read", r#"{"path": "#),
            call("call_1_3", "file_list", "{}"),
        ]
    );
    assert_eq!(first.usage, TokenUsage { input_tokens: 100, cached_tokens: 40, output_tokens: 5 });
    assert_eq!(first.stop, StopReason::ToolUse);
    assert_eq!(events[..2], [StreamEvent::Started, StreamEvent::TextDelta("Let me look.".into())]);
    assert_eq!(model.unplayed_turns().len(), 1);
    let second = reply(&model, &second_turn()).await;
    assert_eq!((second.text.as_str(), second.stop), ("Done.", StopReason::EndTurn));
    assert!(second.usage.input_tokens > 0, "estimated");
    assert_eq!(model.unplayed_turns(), []);
}

#[tokio::test]
async fn every_expectation_that_is_not_met_fails_with_what_was_expected_and_what_came() {
    let mut no_tools = second_turn();
    no_tools.tools.clear();
    for (turn, request, expected, got) in [
        (
            "expect: {system_contains: nope}",
            first_turn(),
            "a system block that contains `nope`",
            "You read.",
        ),
        (
            "expect: {last_user_contains: [what, nope]}",
            first_turn(),
            "user message that contains `nope`",
            "what is in a and b?",
        ),
        (
            "expect: {last_message_contains: nope}",
            second_turn(),
            "last message that contains `nope`",
            "no such tool",
        ),
        (
            "expect: {tools: [file_read]}",
            first_turn(),
            "the tools `file_read`",
            "the tools `file_read`, `file_list`",
        ),
        ("expect: {tools: [file_read, file_list]}", no_tools, "the tools", "the tools none"),
        ("expect: {no_tools: true}", first_turn(), "no tools", "`file_list`"),
        (
            "expect: {results: []}",
            second_turn(),
            "results of none",
            "results of `file_read`, `file read`",
        ),
        (
            "expect: {results: [{name: file_read}]}",
            first_turn(),
            "results of `file_read`",
            "results of none",
        ),
        (
            "expect: {results: [{name: file_read, contains: B}, {name: file read}]}",
            second_turn(),
            "contains `B`",
            "the result `A`",
        ),
        (
            "expect: {results: [{name: file_read}, {name: file read, is_error: false}]}",
            second_turn(),
            "a result of `file read`",
            "the error `no such tool`",
        ),
    ] {
        let model = script(&one_turn(&format!("{turn}\nsay: hi")));
        let error = error(&model, &request).await;
        let ModelError::Script(mismatch) = &error else { panic!("{error:?}") };
        assert_eq!((mismatch.agent.as_str(), mismatch.spawn, mismatch.turn), ("a", 0, 1));
        assert!(mismatch.expected.contains(expected), "{turn}: {mismatch}");
        assert!(mismatch.got.contains(got), "{turn}: {mismatch}");
        assert!(error.to_string().starts_with(
            "transcript `t.yaml` does not match: agent `a`, spawn 0, turn 1: expected "
        ));
        assert_eq!(model.unplayed_turns().len(), 1, "a failed match uses up no turn");
    }
}

#[tokio::test]
async fn a_call_that_the_transcript_does_not_know_fails() {
    let model = script(&one_turn("say: hi"));
    reply(&model, &first_turn()).await;
    let more = error(&model, &first_turn()).await.to_string();
    assert!(more.contains("turn 2: expected no call after turn 1; got the user message"), "{more}");
    let (other, _) = chat(&model, &first_turn(), &CallContext::new("b\u{1b}")).await;
    let other = other.unwrap_err().to_string();
    assert!(other.contains("agent `b\\u{1b}`") && other.contains("`a (spawn 0)`"), "{other}");
}

#[tokio::test]
async fn spawn_indices_have_scripts_of_their_own_and_any_serves_the_rest() {
    let model = script(
        "transcript: 1\nagents:\n\
         - {agent: a, spawn: any, turns: [{say: any 1}, {say: any 2}]}\n\
         - {agent: a, spawn: 1, turns: [{say: second}]}\n",
    );
    let say = async |spawn: u32| {
        let mut cx = CallContext::new("a");
        cx.spawn_index = spawn;
        chat(&model, &first_turn(), &cx).await.0.unwrap().text
    };
    assert_eq!(say(0).await, "any 1");
    assert_eq!(say(7).await, "any 1");
    assert_eq!(say(1).await, "second");
    assert_eq!(say(0).await, "any 2");
    let left = model.unplayed_turns();
    assert_eq!((left.len(), left[0].spawn, left[0].played, left[0].turns), (1, Some(7), 1, 2));
}

#[tokio::test]
async fn failures_are_returned_as_the_wire_clients_would() {
    let retry_after = Some(Duration::from_secs(2));
    for (fail, expected) in [
        (
            "{status: 429, message: slow, retry_after: 2}",
            ModelError::RateLimited { retry_after, message: "slow".into() },
        ),
        ("{status: 401, message: no}", ModelError::Auth { status: 401, message: "no".into() }),
        (
            "{status: 500, message: no}",
            ModelError::Http { status: 500, retry_after: None, message: "no".into() },
        ),
        ("{kind: cut}", ModelError::Cut),
        ("{kind: network, message: no}", ModelError::Network { message: "no".into() }),
        ("{kind: protocol, message: no}", ModelError::Protocol { message: "no".into() }),
    ] {
        let model = script(&one_turn(&format!("say: half\nfail: {fail}")));
        let (result, events) = chat(&model, &first_turn(), &CallContext::new("a")).await;
        assert_eq!(result, Err(expected));
        assert_eq!(events, [StreamEvent::Started, StreamEvent::TextDelta("half".into())]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_hanging_turn_ends_by_timeout_or_cancellation() {
    for (turn, phase, after) in [
        ("hang: true", TimeoutPhase::FirstToken, 120),
        ("say: hm\nhang: true", TimeoutPhase::BetweenTokens, 60),
    ] {
        let (result, _) =
            chat(&script(&one_turn(turn)), &first_turn(), &CallContext::new("a")).await;
        assert_eq!(result, Err(ModelError::Timeout { phase, after: Duration::from_secs(after) }));

        let model = script(&one_turn(turn));
        let cx = CallContext::new("a");
        let begun = tokio::time::Instant::now();
        let request = first_turn();
        let (result, ()) = tokio::join!(chat(&model, &request, &cx), async {
            tokio::task::yield_now().await;
            cx.cancel.cancel();
        });
        assert_eq!(result.0, Err(ModelError::Cancelled));
        assert_eq!(begun.elapsed(), Duration::ZERO, "at once");
    }
}

#[tokio::test]
async fn one_transcript_can_be_played_many_times() {
    let transcript =
        Arc::new(Transcript::parse(&one_turn("say: hi"), Path::new("t.yaml")).unwrap());
    for _ in 0..3 {
        let model = ScriptedModel::new(Arc::clone(&transcript));
        assert_eq!(reply(&model, &first_turn()).await.text, "hi");
    }
}

#[test]
fn a_text_that_is_no_transcript_is_refused_with_the_place() {
    let parse = |yaml: &str| Transcript::parse(yaml, Path::new("t.yaml")).unwrap_err();
    let ScriptError::Syntax { line, column, message, .. } =
        parse("transcript: 1\nagents:\n  - agent: a\n    turns:\n      - shout: hi\n")
    else {
        panic!("not a syntax error");
    };
    assert_eq!((line, column), (Some(5), Some(9)), "{message}");
    assert!(message.contains("shout"), "{message}");
    for (yaml, part) in [
        ("transcript: 2\nagents: []", "has format 2; this program reads format 1"),
        ("transcript: 1\nagents: [{agent: a, turns: []}]", "agent `a`, spawn 0: it has no turns"),
        (
            "transcript: 1\nagents: [{agent: a, turns: [{say: x}]}, {agent: a, turns: [{say: y}]}]",
            "another entry",
        ),
        (
            "transcript: 1\nagents: [{agent: a, spawn: some, turns: [{say: x}]}]",
            "a number from 0 or `any`",
        ),
        (
            "transcript: 1\nagents: [{agent: a, spawn: -1, turns: [{say: x}]}]",
            "a number from 0 or `any`",
        ),
        (&one_turn("expect: {no_tools: true}"), "turn 1: nothing happens"),
        (&one_turn("say: x\nfail: {}"), "either `status` or `kind`"),
        (&one_turn("fail: {kind: cut}\nhang: true"), "exclude each other"),
        (&one_turn("calls: [{name: x, arguments: {}, raw_arguments: ''}]"), "exclude each other"),
        (&one_turn("calls: [{name: x}]\nfail: {kind: cut}"), "need a turn that succeeds"),
        ("", "t.yaml"),
    ] {
        let error = parse(yaml).to_string();
        assert!(error.contains(part), "{yaml}: {error}");
    }
}

#[test]
fn a_bomb_of_aliases_or_depth_is_refused() {
    let mut yaml = String::from(
        "transcript: 1\nagents:\n  - agent: a\n    turns:\n      - say: x\n        calls:\n          - name: x\n            arguments:\n              a0: &a0 [x, x, x, x, x, x, x, x, x]\n",
    );
    for level in 1..12 {
        let before = format!("*a{}, ", level - 1).repeat(9);
        yaml.push_str(&format!(
            "              a{level}: &a{level} [{}]\n",
            before.trim_end_matches(", ")
        ));
    }
    assert!(Transcript::parse(&yaml, Path::new("t.yaml")).is_err());
    let deep = format!("transcript: {}1{}", "[".repeat(20_000), "]".repeat(20_000));
    assert!(Transcript::parse(&deep, Path::new("t.yaml")).is_err());
    let large = "#".repeat(belljar_model::limits::MAX_TRANSCRIPT_BYTES + 1);
    assert!(matches!(
        Transcript::parse(&large, Path::new("t.yaml")),
        Err(ScriptError::TooLarge { .. })
    ));
}

#[test]
fn the_example_in_the_documentation_is_a_transcript() {
    let source = include_str!("../../src/scripted/mod.rs");
    let (_, rest) = source.split_once("//! ```yaml\n").unwrap();
    let (example, _) = rest.split_once("//! ```\n").unwrap();
    let yaml: Vec<&str> = example.lines().map(|line| line.strip_prefix("//!").unwrap()).collect();
    let yaml: Vec<&str> = yaml.iter().map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    Transcript::parse(&yaml.join("\n"), Path::new("doc.yaml")).unwrap();
}

proptest! {
    #[test]
    fn the_same_requests_get_the_same_answers(
        texts in prop::collection::vec(".{0,40}", 1..5),
        tools in prop::collection::vec("[a-z]{1,8}", 0..3),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let turns: Vec<serde_json::Value> = texts
            .iter()
            .map(|text| serde_json::json!({"say": text, "calls": [{"name": "x", "arguments": {"t": text}}]}))
            .collect();
        let yaml = yaml(&serde_json::json!({"transcript": 1, "agents": [{"agent": "a", "turns": turns}]}));
        let play = || {
            let model = script(&yaml);
            let mut request = ChatRequest { tools: tools.iter().map(|name| tool(name)).collect(), ..ChatRequest::default() };
            let mut replies = Vec::new();
            for _ in &texts {
                let reply = runtime.block_on(reply(&model, &request));
                request.messages.push(ChatMessage::Assistant { text: reply.text.clone(), calls: reply.calls.clone(), reasoning: None });
                replies.push(reply);
            }
            replies
        };
        let first = play();
        prop_assert_eq!(&first, &play());
        for (reply, text) in first.iter().zip(&texts) {
            prop_assert_eq!(&reply.text, text);
        }
    }
}
