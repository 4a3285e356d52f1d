//! Tests that recordings can be played.

use std::path::Path;
use std::sync::Arc;

use belljar_kit_peers::HttpPeer;
use belljar_model::{
    CallContext, ChatMessage, ChatModel, ChatRequest, ModelError, ModelRegistry, ModelReply,
    Recording, RecordingModel, ScriptedModel, StopReason, StreamEvent, ToolResult,
};
use proptest::prelude::*;
use serde_json::json;

use crate::support::{chat, first_turn, openai, result, status, stream, yaml};
use crate::wild::{DONE, delta, finish};

/// Plays a conversation of agent `a` to its end: every call gets a result, in turn a success and a failure.
async fn converse(model: &dyn ChatModel, turns: usize) -> Vec<Result<ModelReply, ModelError>> {
    let mut request = first_turn();
    let mut results = Vec::new();
    for _ in 0..turns {
        let (result, _) = chat(model, &request, &CallContext::new("a")).await;
        if let Ok(reply) = &result {
            answer(&mut request, reply);
        }
        results.push(result);
    }
    results
}

fn answer(request: &mut ChatRequest, reply: &ModelReply) {
    let ModelReply { text, calls, reasoning, .. } = reply.clone();
    let answered = calls
        .iter()
        .enumerate()
        .map(|(index, call)| result(&call.id, &call.name, "content", index % 2 == 1));
    let results: Vec<ToolResult> = answered.collect();
    request.messages.push(ChatMessage::Assistant { text, calls, reasoning });
    if !results.is_empty() {
        request.messages.push(ChatMessage::Tool { results });
    }
}

fn play(yaml: &str) -> Arc<ScriptedModel> {
    Arc::new(
        ScriptedModel::from_yaml(yaml, Path::new("recorded.yaml"))
            .unwrap_or_else(|e| panic!("{e}\n{yaml}")),
    )
}

#[tokio::test]
async fn a_run_over_the_wire_is_recorded_and_plays_back() {
    let delta = |delta: serde_json::Value| json!({"choices": [{"delta": delta}]}).to_string();
    let call = |index: u64, arguments: &str| json!({"index": index, "id": format!("id{index}"), "function": {"name": "file_read", "arguments": arguments}});
    let end = |reason: &str| {
        json!({
            "choices": [{"delta": {}, "finish_reason": reason}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 3},
        })
        .to_string()
    };
    let calls = json!({"tool_calls": [call(0, "{\"path\":\"a\"}"), call(1, "{\"path\": ")]});
    let server = HttpPeer::with_replies(vec![
        stream(&[&delta(json!({"content": "no: look"})), &delta(calls), &end("tool_calls")]),
        stream(&[&delta(json!({"content": "half"}))]),
        status(400, "", "too long"),
        stream(&[&delta(json!({"content": "Done.\n"})), &end("length")]),
    ]);
    let recorder = RecordingModel::new(Arc::new(openai(&server)));
    let mut live = converse(&recorder, 4).await;
    let yaml = recorder.to_yaml().unwrap();
    let model = play(&yaml);
    let mut played = converse(&*model, 4).await;
    for reply in live.iter_mut().chain(&mut played).flatten() {
        reply.calls.iter_mut().for_each(|call| call.id.clear());
    }
    assert_eq!(played, live, "{yaml}");
    assert_eq!(model.unplayed_turns(), []);
    assert!(yaml.contains("file_list"), "the tools are expected: {yaml}");
}

#[tokio::test]
async fn a_recording_fails_when_other_tools_are_offered_or_other_results_come() {
    let script = r#"{"transcript": 1, "agents": [{"agent": "a", "turns": [
        {"say": "look", "calls": [{"name": "file_read", "arguments": {"path": "a"}}]}, {"say": "done"}]}]}"#;
    let recorder = RecordingModel::new(play(script));
    converse(&recorder, 2).await;
    let yaml = recorder.to_yaml().unwrap();

    let mut request = first_turn();
    request.tools.pop();
    let (result, _) = chat(&*play(&yaml), &request, &CallContext::new("a")).await;
    assert!(matches!(result, Err(ModelError::Script(_))), "{result:?}");

    let model = play(&yaml);
    let mut request = first_turn();
    let reply = chat(&*model, &request, &CallContext::new("a")).await.0.unwrap();
    answer(&mut request, &reply);
    if let Some(ChatMessage::Tool { results }) = request.messages.last_mut() {
        results[0].is_error = true;
    }
    let (result, _) = chat(&*model, &request, &CallContext::new("a")).await;
    assert!(matches!(result, Err(ModelError::Script(_))), "{result:?}");
}

#[tokio::test]
async fn all_models_of_a_run_record_into_one_transcript_by_agent_and_spawn() {
    let script = r#"{"transcript": 1, "agents": [
        {"agent": "b", "spawn": "any", "turns": [{"say": "b"}]}, {"agent": "a", "turns": [{"say": "a"}]}]}"#;
    let recording = Recording::new();
    let models = ModelRegistry::from_single(play(script)).with_recording(recording.clone());
    for (agent, spawn) in [("b", 1), ("a", 0), ("b", 0)] {
        let mut cx = CallContext::new(agent);
        cx.spawn_index = spawn;
        let model = models.resolve_model("main", None).unwrap().model;
        chat(&*model, &first_turn(), &cx).await.0.unwrap();
    }
    let yaml = recording.to_yaml().unwrap();
    let place = |text: &str| yaml.find(text).unwrap_or_else(|| panic!("{text}: {yaml}"));
    assert!(place("agent: a") < place("agent: b"));
    assert_eq!(yaml.matches("agent: b").count(), 2);
    assert_eq!(yaml, recording.to_yaml().unwrap(), "writing it changes nothing");
}

#[tokio::test]
async fn what_a_model_thought_is_recorded_and_plays_back() {
    let details = json!([{"type": "reasoning.encrypted", "data": "ab+/=", "index": 0}]);
    let events = [
        delta(json!({"reasoning": "I need ", "reasoning_details": details})),
        delta(json!({"reasoning": "it."})),
        delta(json!({"content": "Done."})),
        finish("stop"),
        DONE.to_owned(),
    ];
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    let server = HttpPeer::with_replies(vec![stream(&events)]);
    let recorder = RecordingModel::new(Arc::new(openai(&server)));
    let (live, told) = chat(&recorder, &first_turn(), &CallContext::new("a")).await;
    let yaml = recorder.to_yaml().unwrap();
    let (played, told_again) = chat(&*play(&yaml), &first_turn(), &CallContext::new("a")).await;
    let live = live.unwrap();
    assert!(live.reasoning.is_some());
    assert_eq!(played.unwrap(), live, "{yaml}");
    let thought = |told: &[StreamEvent]| -> String {
        let thought = told.iter().filter_map(|event| match event {
            StreamEvent::ThinkingDelta(text) => Some(text.as_str()),
            _ => None,
        });
        thought.collect()
    };
    assert_eq!((thought(&told), thought(&told_again)), ("I need it.".into(), "I need it.".into()));
}

#[tokio::test]
async fn a_request_that_was_too_long_is_recorded_as_that() {
    let server =
        HttpPeer::with_replies(vec![status(400, "", "maximum context length is 8 tokens")]);
    let recorder = RecordingModel::new(Arc::new(openai(&server)));
    let (live, _) = chat(&recorder, &first_turn(), &CallContext::new("a")).await;
    assert!(matches!(live, Err(ModelError::ContextLength { .. })), "{live:?}");
    let yaml = recorder.to_yaml().unwrap();
    let (played, _) = chat(&*play(&yaml), &first_turn(), &CallContext::new("a")).await;
    assert!(matches!(played, Err(ModelError::ContextLength { .. })), "{yaml}");
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        Just("no".to_owned()),
        Just("~".to_owned()),
        Just("1e3".to_owned()),
        Just("0x1F".to_owned()),
        Just(" lead".to_owned()),
        Just("trail \n\n".to_owned()),
        Just("\n  x\n y".to_owned()),
        Just("- a: b # c".to_owned()),
        Just("\u{85}\u{2028}\t\u{feff}".to_owned()),
        Just("---\n...".to_owned()),
        Just("|\n>".to_owned()),
        Just("\r\n\r".to_owned()),
        Just("2026-01-01".to_owned()),
        Just("<<".to_owned()),
    ]
}

fn value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<u64>().prop_map(Into::into),
        (-1e9..1e9_f64).prop_map(Into::into),
        text().prop_map(Into::into),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::btree_map(text(), inner, 0..4)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_a_model_says_plays_back_the_same(
        turns in prop::collection::vec(
            (text(), prop::collection::vec((text(), prop_oneof![value().prop_map(|v| v.to_string()), text()]), 0..3)),
            1..4,
        ),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let turns: Vec<serde_json::Value> = turns.iter().map(|(say, calls)| {
            let calls: Vec<_> = calls.iter().map(|(name, raw)| json!({"name": name, "raw_arguments": raw})).collect();
            json!({"say": say, "calls": calls, "usage": {"input": 1, "output": 2}})
        }).collect();
        let count = turns.len();
        let yaml = yaml(&json!({"transcript": 1, "agents": [{"agent": "a", "turns": turns}]}));
        let first = RecordingModel::new(play(&yaml));
        let said = runtime.block_on(converse(&first, count));
        let recorded = first.to_yaml().unwrap();
        let second = RecordingModel::new(play(&recorded));
        let played = runtime.block_on(converse(&second, count));
        prop_assert_eq!(played.len(), said.len());
        for (played, said) in played.iter().zip(&said) {
            let (played, said) = (played.as_ref().unwrap(), said.as_ref().unwrap());
            prop_assert_eq!(&played.text, &said.text);
            prop_assert_eq!(&played.stop, &said.stop);
            prop_assert_eq!(played.calls.len(), said.calls.len());
            for (played, said) in played.calls.iter().zip(&said.calls) {
                prop_assert_eq!(&played.name, &said.name);
                let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text);
                match parse(&said.arguments) {
                    Ok(value @ serde_json::Value::Object(_)) => prop_assert_eq!(parse(&played.arguments).unwrap(), value),
                    _ => prop_assert_eq!(&played.arguments, &said.arguments),
                }
            }
        }
        prop_assert_eq!(second.to_yaml().unwrap(), recorded);
    }
}

#[test]
fn stop_reasons_play_back() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for word in ["end-turn", "tool-use", "max-tokens", "refusal", "pause_turn"] {
        let yaml = json!({"transcript": 1, "agents": [{"agent": "a", "turns": [{"say": "x", "stop": word}]}]});
        let recorder = RecordingModel::new(play(&yaml.to_string()));
        let first = runtime.block_on(converse(&recorder, 1)).remove(0).unwrap();
        let again =
            runtime.block_on(converse(&*play(&recorder.to_yaml().unwrap()), 1)).remove(0).unwrap();
        assert_eq!(first.stop, again.stop);
        assert_eq!(matches!(first.stop, StopReason::Other(_)), word == "pause_turn");
    }
}
