//! Tests of one agent with a scripted model and real tools.

use std::sync::Arc;

use belljar_agent::{EventKind, RunError, RunStatus, run};
use belljar_kit::world::{Plan, World, agent, results, tool_names};
use belljar_model::ChatMessage;
use belljar_policy::{BudgetLevel, LimitsRequest, Meter};
use belljar_sandbox::CallEnding;
use tokio_util::sync::CancellationToken;

const TWO_READS: &str = r#"
transcript: 1
agents:
  - agent: reader
    turns:
      - calls:
          - {name: file_read, arguments: {path: a.txt}}
          - {name: file_read, arguments: {path: b.txt}}
        usage: {input: 100, cached: 40, output: 10}
      - calls: [{name: file_read, arguments: {path: missing.txt}}]
        usage: {input: 200, cached: 90, output: 10}
      - say: all read
        usage: {input: 300, cached: 190, output: 10}
"#;

/// A world with the agent `reader` and these limits.
fn reader(transcript: &str, limits: &str) -> World {
    let settings = format!("[grants.reader]\nlimits = {{ {limits} }}\n");
    World::new(Plan {
        transcript,
        settings: &settings,
        agents: &[("reader.md", &agent("reader", "tools: [file_read]\n"))],
        files: &[("a.txt", "text of a\n"), ("b.txt", "text of b\n")],
        ..Plan::default()
    })
}

#[tokio::test]
async fn a_run_reads_files_in_the_order_asked_and_reports_all_of_it() {
    let world = reader(TWO_READS, "");
    let outcome = world.go("reader").await;
    assert_eq!((outcome.status, outcome.output.as_str()), (RunStatus::Completed, "all read"));
    assert_eq!(outcome.error, None);
    let sent = world.sent();
    let first = results(&sent[1]);
    assert!(first[0].0.contains("text of a") && first[1].0.contains("text of b"), "{first:?}");
    assert!(results(&sent[2])[0].1, "a missing file is an error result");
    let usage = outcome.usage;
    assert_eq!((usage.steps, usage.input_tokens, usage.cached_tokens), (3, 600, 320));
    assert_eq!((usage.output_tokens, usage.tool_calls), (30, 3));
    assert!(usage.fuel > 0);
    assert_eq!(outcome.total, usage);
    let places: Vec<_> =
        outcome.receipts.iter().map(|call| (call.step, call.tool.as_str())).collect();
    assert_eq!(places, [(1, "file_read"), (1, "file_read"), (2, "file_read")]);
    assert_eq!(outcome.paths_read(), ["/workspace/a.txt", "/workspace/b.txt"]);
}

/// INV-485: old results are removed from a request that exceeds the model's context.
#[tokio::test]
async fn a_run_whose_results_are_longer_than_its_model_reads_goes_on_without_the_oldest() {
    let read =
        |path: &str| format!("      - calls: [{{name: file_read, arguments: {{path: {path}}}}}]\n");
    let too_long = "      - fail: {kind: context, message: the prompt is too long}\n";
    let script = |answers: &[&str]| {
        format!("transcript: 1\nagents:\n  - agent: reader\n    turns:\n{}", answers.concat())
    };
    let (a, b) = (read("a.txt"), read("b.txt"));
    let world = reader(&script(&[&a, &b, too_long, "      - say: all read\n"]), "");
    for (name, text) in [("a.txt", "text of a\n"), ("b.txt", "text of b\n")] {
        belljar_kit::world::write(&world.workspace.path().join(name), &text.repeat(500));
    }
    let outcome = world.go("reader").await;
    assert_eq!((outcome.status, outcome.output.as_str()), (RunStatus::Completed, "all read"));
    assert_eq!((outcome.usage.steps, outcome.receipts.len()), (3, 2), "nothing is called twice");
    let sent = world.sent();
    assert_eq!(sent.len(), 4);
    let ChatMessage::Tool { results: first } = &sent[3].messages[2] else { panic!("{sent:?}") };
    assert!(first[0].content.contains("were taken out"), "{}", first[0].content);
    assert!(results(&sent[3])[0].0.contains("text of b"), "the model has not read that one");
    assert!(
        outcome.warnings.iter().any(|it| it.contains("were taken out")),
        "{:?}",
        outcome.warnings
    );

    // Two requests with a result to remove; only one without.
    for (answers, sent) in [(&[a.as_str(), too_long][..], 2), (&[too_long], 1)] {
        let world = reader(&script(answers), "");
        let outcome = world.go("reader").await;
        assert_eq!(outcome.status, RunStatus::Failed);
        let too_long = matches!(outcome.error, Some(RunError::Model { too_long: true, .. }));
        assert!(too_long, "{:?}", outcome.error);
        assert_eq!(world.sent().len(), sent);
    }
}

#[tokio::test]
async fn the_system_prompt_is_the_body_byte_for_byte() {
    let body = "  You \u{202e}are\r\n---\nodd: {x}\n\n\n";
    let file = format!("---\nname: odd\ndescription: Odd.\nvisibility: user-facing\n---\n{body}");
    let world = World::new(Plan {
        transcript: "transcript: 1\nagents: [{agent: odd, turns: [{say: hm}]}]",
        agents: &[("odd.md", &file)],
        ..Plan::default()
    });
    world.go("odd").await;
    let sent = world.sent();
    // The host's own texts are blocks of their own.
    assert_eq!(sent[0].system[0], world.spec("odd", "").agent.definition.body);
    assert_eq!(sent[0].system[0], body);
}

#[tokio::test]
async fn the_first_message_is_the_task_alone_or_framed_with_its_context() {
    let world = World::new(Plan {
        transcript: "transcript: 1\nagents: [{agent: a, turns: [{say: x}, {say: x}, {say: x}]}]",
        agents: &[("a.md", &agent("a", ""))],
        ..Plan::default()
    });
    let mut messages = Vec::new();
    for context in [None, Some(" \n"), Some("known\n")] {
        let mut spec = world.spec("a", " the task\n");
        spec.context = context.map(str::to_owned);
        world.run(spec).await;
        let sent = world.sent();
        messages.push(sent.last().unwrap().messages[0].clone());
    }
    let user = |text: &str| ChatMessage::from_user(text);
    assert_eq!(
        messages,
        [user(" the task\n"), user(" the task\n"), user("Context:\nknown\n\n\nTask:\n the task\n")]
    );
}

#[tokio::test]
async fn malformed_unknown_and_disallowed_calls_are_refused_and_the_neighbour_works() {
    let world = World::new(Plan {
        transcript: r#"
transcript: 1
agents:
  - agent: reader
    turns:
      - calls:
          - {name: file_read, raw_arguments: '{"path": '}
          - {name: file_reed, arguments: {path: a.txt}}
          - {name: spawn_agent, arguments: {agent: reader, task: x}}
          - {name: file_read, arguments: {path: a.txt}}
      - say: done
"#,
        agents: &[("reader.md", &agent("reader", "tools: [file_read]\n"))],
        files: &[("a.txt", "text of a\n")],
        ..Plan::default()
    });
    let outcome = world.go("reader").await;
    assert_eq!(outcome.status, RunStatus::Completed);
    let sent = world.sent();
    assert_eq!(tool_names(&sent[0]), ["file_read"], "only permitted tools are advertised");
    let answers = results(&sent[1]);
    assert!(answers[0].1 && answers[0].0.starts_with("invalid arguments: not valid JSON"));
    let refused = "tool not allowed: the available tools are `file_read`".to_owned();
    assert_eq!(answers[1..3], [(refused.clone(), true), (refused, true)]);
    assert!(!answers[3].1 && answers[3].0.contains("text of a"));
    let endings: Vec<_> = outcome.receipts.iter().map(|call| &call.receipt.ending).collect();
    assert!(matches!(
        endings[..],
        [
            CallEnding::Refused(_),
            CallEnding::Refused(_),
            CallEnding::Refused(_),
            CallEnding::Completed
        ]
    ));
    let effects: Vec<u64> = outcome.receipts.iter().map(|call| call.receipt.fuel).collect();
    assert_eq!(effects[..3], [0, 0, 0], "no guest ran");
    assert!(outcome.children.is_empty());
}

#[tokio::test]
async fn running_out_of_steps_gives_one_last_turn_without_tools() {
    let transcript = r#"
transcript: 1
agents:
  - agent: reader
    turns:
      - calls: [{name: file_read, arguments: {path: a.txt}}]
      - calls: [{name: file_read, arguments: {path: b.txt}}]
      - expect: {no_tools: true, last_user_contains: "steps are used up"}
        say: what I have
"#;
    let world = reader(transcript, "steps = 2");
    let outcome = world.go("reader").await;
    assert_eq!((outcome.status, outcome.output.as_str()), (RunStatus::Partial, "what I have"));
    let Some(RunError::Budget { exhausted }) = outcome.error else { panic!("{outcome:?}") };
    assert_eq!((exhausted.meter, exhausted.limit), (Meter::Steps, 2));
    assert_eq!((outcome.usage.steps, outcome.receipts.len()), (3, 2));
}

#[tokio::test]
async fn used_up_tokens_end_the_run_before_the_next_effect() {
    let world = reader(
        r#"
transcript: 1
agents:
  - agent: reader
    turns:
      - say: I will look
        calls: [{name: file_read, arguments: {path: a.txt}}]
        usage: {input: 900, output: 200}
"#,
        "tokens = 1000",
    );
    let outcome = world.go("reader").await;
    assert_eq!((outcome.status, outcome.output.as_str()), (RunStatus::Partial, "I will look"));
    let error = outcome.error.unwrap().to_string();
    assert_eq!(error, "the token budget of the agent is used up (1000)");
    assert!(outcome.receipts.is_empty());
}

#[tokio::test]
async fn a_server_that_counts_no_tokens_does_not_make_them_free() {
    let transcript = format!(
        "transcript: 1\nagents: [{{agent: reader, turns: [{{say: '{}', calls: [{{name: file_read, arguments: {{path: a.txt}}}}], usage: {{input: 0, output: 0}}}}]}}]",
        "x".repeat(8_000)
    );
    let world = reader(&transcript, "tokens = 1000");
    let outcome = world.go("reader").await;
    assert_eq!(outcome.status, RunStatus::Partial);
    assert!(outcome.usage.output_tokens == 2_000, "{:?}", outcome.usage);
}

#[tokio::test]
async fn used_up_fuel_ends_the_run_with_what_there_is() {
    let world = reader(TWO_READS, "fuel = 1000");
    let outcome = world.go("reader").await;
    assert_eq!(outcome.status, RunStatus::Partial, "{outcome:?}");
    let Some(RunError::Budget { exhausted }) = outcome.error else { panic!("{outcome:?}") };
    assert_eq!(exhausted.meter, Meter::Fuel);
    assert_eq!(world.sent().len(), 1, "no model call follows");
    assert!(matches!(outcome.receipts[0].receipt.ending, CallEnding::Exhausted(_)));
}

const HANGS: &str = r#"
transcript: 1
agents:
  - agent: reader
    turns:
      - say: first
        calls: [{name: file_read, arguments: {path: a.txt}}]
      - say: half a sen
        hang: true
"#;

#[tokio::test(start_paused = true)]
async fn used_up_time_ends_the_run_with_what_was_heard() {
    let world = reader(HANGS, "timeout_seconds = 30");
    let outcome = world.go("reader").await;
    assert_eq!((outcome.status, outcome.output.as_str()), (RunStatus::Partial, "half a sen"));
    assert_eq!(outcome.error, Some(RunError::WallTime { seconds: 30 }));
    assert_eq!(outcome.receipts.len(), 1);
    // The provider has counted the partial answer, so both answers are billed: 8 tokens as the script counts
    // the first answer, and one token for every four bytes of the partial one.
    assert_eq!(outcome.usage.output_tokens, 8 + 2);
    assert_eq!(outcome.usage.steps, 2);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_stays_silent_fails_after_the_prefill_timeout() {
    let world = reader(
        "transcript: 1\nagents: [{agent: reader, turns: [{hang: true}]}]",
        "prefill_timeout_seconds = 7",
    );
    let outcome = world.go("reader").await;
    assert_eq!(outcome.status, RunStatus::Failed);
    let error = outcome.error.unwrap().to_string();
    assert!(error.contains("7 s") && error.contains("first token"), "{error}");
}

#[tokio::test]
async fn after_a_cancelled_run_returns_nothing_more_happens() {
    let world = reader(HANGS, "");
    let cancel = CancellationToken::new();
    // Cancelled from inside the stream, in the middle of the model's second answer.
    let (token, kept) = (cancel.clone(), Arc::clone(&world.events));
    let sink = belljar_agent::EventSink::with_listener(move |event| {
        kept.lock().unwrap().push(event.clone());
        if matches!(&event.kind, EventKind::TextDelta { text } if text == "half a sen") {
            token.cancel();
        }
    });
    let outcome = run(&world.host, world.spec("reader", "t"), sink, cancel).await;
    assert_eq!((outcome.status, outcome.output.as_str()), (RunStatus::Cancelled, "half a sen"));
    assert_eq!((outcome.receipts.len(), outcome.unfinished.len()), (1, 0));
    let (calls, events) = (world.sent().len(), world.kinds().len());
    tokio::task::yield_now().await;
    assert_eq!((world.sent().len(), world.kinds().len()), (calls, events));
    assert!(matches!(world.kinds().last(), Some(EventKind::RunFinished { .. })));
}

#[tokio::test]
async fn a_run_cancelled_beforehand_asks_no_model() {
    let world = reader(TWO_READS, "");
    let cancel = CancellationToken::new();
    cancel.cancel();
    let outcome = run(&world.host, world.spec("reader", "t"), world.sink(), cancel).await;
    assert_eq!(outcome.status, RunStatus::Cancelled);
    assert!(world.sent().is_empty());
}

#[tokio::test]
async fn a_model_that_fails_midway_leaves_what_there_was() {
    let world = reader(
        r#"
transcript: 1
agents:
  - agent: reader
    turns:
      - say: found something
        calls: [{name: file_read, arguments: {path: a.txt}}]
      - fail: {status: 500, message: broken}
"#,
        "",
    );
    let outcome = world.go("reader").await;
    assert_eq!((outcome.status, outcome.output.as_str()), (RunStatus::Failed, "found something"));
    assert!(outcome.error.unwrap().to_string().contains("500"));
    assert_eq!(outcome.receipts.len(), 1);
}

#[tokio::test]
async fn a_panic_in_the_host_is_an_outcome_with_what_there_was() {
    let world = reader(TWO_READS, "");
    let sink = belljar_agent::EventSink::with_listener(|event| {
        if matches!(event.kind, EventKind::StepStarted { step: 2, .. }) {
            panic!("a bug");
        }
    });
    let spec = world.spec("reader", "t");
    let outcome = run(&world.host, spec, sink, CancellationToken::new()).await;
    assert_eq!(outcome.status, RunStatus::Failed);
    assert_eq!(outcome.error, Some(RunError::Internal { message: "a bug".into() }));
    assert_eq!(outcome.receipts.len(), 2);
}

#[tokio::test]
async fn limits_of_a_run_only_narrow() {
    let world = reader(TWO_READS, "steps = 1");
    let mut spec = world.spec("reader", "t");
    spec.limits = LimitsRequest { steps: Some(100), ..LimitsRequest::default() };
    let outcome = world.run(spec).await;
    let Some(RunError::Budget { exhausted }) = outcome.error else { panic!("{outcome:?}") };
    assert_eq!((exhausted.limit, exhausted.level), (1, BudgetLevel::Subagent));
}

#[tokio::test]
async fn a_tool_granted_as_ask_is_denied_where_nobody_can_be_asked() {
    let world = World::new(Plan {
        transcript: r#"
transcript: 1
agents:
  - agent: reader
    turns:
      - calls: [{name: file_read, arguments: {path: a.txt}}]
      - say: denied then
"#,
        settings: "[grants.reader]\ntools = { file_read = \"ask\" }\n",
        agents: &[("reader.md", &agent("reader", ""))],
        files: &[("a.txt", "text of a\n")],
        ..Plan::default()
    });
    let outcome = world.go("reader").await;
    let answers = results(&world.sent()[1]);
    assert_eq!(answers, [("permission needed and nobody to ask".to_owned(), true)]);
    assert_eq!(outcome.receipts[0].receipt.fuel, 0);
    assert!(outcome.paths_read().is_empty());
}

#[tokio::test]
async fn a_blocked_agent_runs_only_in_part() {
    let world = World::new(Plan {
        transcript: "transcript: 1\nagents: [{agent: writer, turns: [{expect: {tools: [file_read]}, say: ok}]}]",
        agents: &[("writer.md", &agent("writer", "tools: [file_read, spawn_agent]\n"))],
        settings: "[grants.writer]\ntools = [\"file_read\"]\n",
        ..Plan::default()
    });
    let outcome = world.go("writer").await;
    assert_eq!(outcome.status, RunStatus::Failed);
    let Some(RunError::Setup { message, hint }) = outcome.error else { panic!("not refused") };
    assert!(message.contains("blocked") && message.contains("spawn_agent"), "{message}");
    assert!(hint.unwrap().contains("--partial"));
    assert!(world.sent().is_empty());
    let mut spec = world.spec("writer", "t");
    spec.partial = true;
    assert_eq!(world.run(spec).await.status, RunStatus::Completed);
}

#[tokio::test]
async fn events_tell_the_run_in_order() {
    let world = reader(TWO_READS, "");
    world.go("reader").await;
    let events = world.events.lock().unwrap();
    let shown: Vec<serde_json::Value> =
        events.iter().map(|event| serde_json::to_value(event).unwrap()).collect();
    let place = |what: &str, call: &str| {
        shown.iter().position(|event| event["type"] == what && event["call_id"] == call).unwrap()
    };
    for call in ["call_1_1", "call_1_2", "call_2_1"] {
        assert!(place("tool_call_started", call) < place("tool_call_finished", call));
    }
    let names = shown.iter().map(|event| event["type"].as_str().unwrap());
    let others: Vec<&str> = names.filter(|name| !name.starts_with("tool_call")).collect();
    assert_eq!(
        others,
        [
            "run_started",
            "step_started",
            "step_started",
            "step_started",
            "text_delta",
            "run_finished"
        ]
    );
    let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (0..12).collect::<Vec<u64>>());
}

/// A model that never answers and ignores the cancellation token.
struct Deaf;

#[async_trait::async_trait]
impl belljar_model::ChatModel for Deaf {
    fn id(&self) -> &str {
        "test:deaf"
    }

    async fn chat(
        &self,
        _request: &belljar_model::ChatRequest,
        _cx: &belljar_model::CallContext<'_>,
        _events: &mut (dyn FnMut(belljar_model::StreamEvent) + Send),
    ) -> Result<belljar_model::ModelReply, belljar_model::ModelError> {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_that_ignores_its_token_cannot_hold_a_run() {
    let mut world = reader(TWO_READS, "");
    world.host.models = Arc::new(belljar_model::ModelRegistry::from_single(Arc::new(Deaf)));
    let cancel = CancellationToken::new();
    let running = run(&world.host, world.spec("reader", "t"), world.sink(), cancel.clone());
    let stop = async {
        tokio::task::yield_now().await;
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(running, stop);
    assert_eq!(outcome.status, RunStatus::Cancelled);
}
