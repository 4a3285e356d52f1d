//! Tests of the loop alone, without a model, a tool or a clock.

use std::collections::BTreeMap;

use belljar_model::{TokenUsage, ToolSpec};
use belljar_policy::{AskedRights, CallPermission, Grants, Rights, ToolName};

use super::*;
use crate::limits::MAX_KEPT_RESULT;
use crate::tools::alias::ToolAliases;
use crate::tools::caller::CallerTools;
use crate::tools::dispatch::ToolProvider;

const FREE: BudgetGauge = BudgetGauge { halt: None, next: NextStep::Whole, tokens_left: u64::MAX };

fn used_up(meter: Meter) -> ExhaustedLimit {
    ExhaustedLimit { meter, level: BudgetLevel::Subagent, limit: 3 }
}

/// A loop with the task `task`, whose agent has one tool, `look`.
fn new_loop() -> AgentLoop {
    let name = ToolName::new("look").unwrap();
    let mut grants = Grants::none();
    grants.tools.insert(name.clone(), CallPermission::Allow);
    let (rights, _) = Rights::intersect_rights(&AskedRights::default(), &grants, None);
    let request = ChatRequest {
        system: vec!["body".into()],
        messages: vec![ChatMessage::from_user("task")],
        tools: vec![ToolSpec {
            name: "look".into(),
            description: String::new(),
            schema: serde_json::json!({}),
        }],
        ..ChatRequest::default()
    };
    AgentLoop::new(
        request,
        Dispatcher::new(
            rights,
            BTreeMap::from([(name, ToolProvider::Jar)]),
            ToolAliases::default(),
        ),
    )
}

/// An answer of the model with a text and calls, each as (id, tool).
fn reply(text: &str, calls: &[(&str, &str)]) -> LoopInput {
    let call = |(id, name): &(&str, &str)| ToolCall {
        id: (*id).into(),
        name: (*name).into(),
        arguments: "{}".into(),
    };
    LoopInput::Replied(ModelReply {
        text: text.into(),
        calls: calls.iter().map(call).collect(),
        reasoning: None,
        usage: TokenUsage::default(),
        stop: if calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse },
    })
}

fn answer(text: &str) -> CallAnswer {
    CallAnswer { content: text.into(), is_error: false }
}

/// The ending in the one effect, which must be [`LoopEffect::Finish`].
fn finish(effects: Vec<LoopEffect>) -> AgentEnding {
    match effects.into_iter().last() {
        Some(LoopEffect::Finish(ending)) => ending,
        other => panic!("it goes on: {other:?}"),
    }
}

/// A loop whose first step has one call of `look`, not answered yet.
fn calling() -> AgentLoop {
    let mut it = new_loop();
    it.handle_input(LoopInput::Begin, &FREE);
    let effects = it.handle_input(reply("first", &[("a", "look")]), &FREE);
    assert!(matches!(effects.as_slice(), [LoopEffect::Call(decisions)] if decisions.len() == 1));
    it
}

#[test]
fn a_conversation_is_made_shorter_and_what_the_model_has_not_read_stays() {
    let long = |text: &str| format!("{text} {}", "x".repeat(MAX_KEPT_RESULT));
    let mut it = new_loop().with_past(0);
    it.handle_input(LoopInput::Begin, &FREE);
    for (id, text) in [("a", long("one")), ("b", "two".to_owned()), ("c", long("three"))] {
        it.handle_input(reply("", &[(id, "look")]), &FREE);
        it.handle_input(LoopInput::Answered(vec![answer(&text)]), &FREE);
    }
    let before = it.request_bytes();
    let by = it.cut_results();
    assert!(by > 800 && it.request_bytes() == before - by, "{by}");
    assert_eq!(it.request_bytes(), prompt_bytes(it.request()));
    let results = it.request().messages.iter().filter_map(|message| match message {
        ChatMessage::Tool { results } => Some(results[0].content.clone()),
        ChatMessage::User { .. } | ChatMessage::Assistant { .. } => None,
    });
    let results: Vec<String> = results.collect();
    assert!(results[0].starts_with("[the 1028 bytes of this result"), "{results:?}");
    assert_eq!(results[1..], ["two".to_owned(), long("three")]);
    assert_eq!(it.cut_results(), 0, "there is no more to take out");
    it.replace_past(vec![ChatMessage::from_user("summary"), ChatMessage::from_assistant("noted")]);
    assert_eq!(it.request().messages.len(), 2 + 7);
    assert_eq!(it.request_bytes(), prompt_bytes(it.request()));
    it.replace_past(vec![ChatMessage::from_user("shorter")]);
    assert_eq!(
        it.request().messages[..2],
        [ChatMessage::from_user("shorter"), ChatMessage::from_user("task")]
    );
}

#[test]
fn a_reply_without_calls_completes_the_run_with_its_text() {
    let mut it = new_loop();
    assert!(matches!(
        it.handle_input(LoopInput::Begin, &FREE)[..],
        [LoopEffect::AskModel { last: false }]
    ));
    assert_eq!(finish(it.handle_input(reply("done", &[]), &FREE)), AgentEnding::completed());
    assert_eq!(it.into_transcript().output, "done");
}

#[test]
fn a_blank_last_answer_leaves_the_last_text_that_was_not() {
    let mut it = calling();
    it.handle_input(LoopInput::Answered(vec![answer("x")]), &FREE);
    assert_eq!(finish(it.handle_input(reply(" \n", &[]), &FREE)).status, RunStatus::Completed);
    assert_eq!(it.into_transcript().output, "first");
}

#[test]
fn no_text_at_all_is_a_failure() {
    let mut it = new_loop();
    it.handle_input(LoopInput::Begin, &FREE);
    assert_eq!(
        finish(it.handle_input(reply("", &[]), &FREE)),
        AgentEnding::failed(RunError::NoAnswer)
    );
}

#[test]
fn used_up_steps_give_one_last_step_without_tools() {
    let mut it = calling();
    let gauge = BudgetGauge { next: NextStep::Last(used_up(Meter::Steps)), ..FREE };
    let effects = it.handle_input(LoopInput::Answered(vec![answer("x")]), &gauge);
    assert!(matches!(effects[..], [LoopEffect::AskModel { last: true }]));
    assert!(it.request().tools.is_empty());
    let last = it.request().messages.last().unwrap();
    assert_eq!(*last, ChatMessage::from_user(LAST_STEP));
    // Calls in an answer of the last step are ignored, because that step has no tools.
    let ending = finish(it.handle_input(reply("so far", &[("b", "look")]), &gauge));
    assert_eq!(ending.status, RunStatus::Partial);
    assert_eq!(it.into_transcript().output, "so far");
}

#[test]
fn used_up_steps_of_a_budget_above_end_the_run_without_another_turn() {
    let mut it = calling();
    let exhausted = used_up(Meter::Steps);
    let gauge = BudgetGauge { next: NextStep::None(exhausted), ..FREE };
    let ending = finish(it.handle_input(LoopInput::Answered(vec![answer("x")]), &gauge));
    assert_eq!(ending, AgentEnding::partial(RunError::Budget { exhausted }));
    assert_eq!(it.into_transcript().output, "first");
}

#[test]
fn used_up_tokens_or_fuel_end_the_run_at_once_with_what_there_is() {
    for meter in [Meter::Tokens, Meter::Fuel] {
        let gauge = BudgetGauge { halt: Some(used_up(meter)), ..FREE };
        let exhausted = used_up(meter);
        let mut it = new_loop();
        it.handle_input(LoopInput::Begin, &FREE);
        let ending = finish(it.handle_input(reply("text", &[("a", "look")]), &gauge));
        assert_eq!(ending, AgentEnding::partial(RunError::Budget { exhausted }));
        assert_eq!(it.into_transcript().output, "text");
        let mut it = calling();
        let ending = finish(it.handle_input(LoopInput::Answered(vec![answer("x")]), &gauge));
        assert_eq!(ending, AgentEnding::partial(RunError::Budget { exhausted }));
    }
}

#[test]
fn a_whole_answer_completes_the_run_even_with_the_last_token() {
    let mut it = new_loop();
    it.handle_input(LoopInput::Begin, &FREE);
    let gauge = BudgetGauge { halt: Some(used_up(Meter::Tokens)), ..FREE };
    assert_eq!(finish(it.handle_input(reply("whole", &[]), &gauge)), AgentEnding::completed());
}

#[test]
fn a_prompt_that_cannot_fit_the_tokens_is_never_sent() {
    let mut it = new_loop();
    it.push_message(ChatMessage::from_user("x".repeat(1_000)));
    let gauge = BudgetGauge { tokens_left: 10, ..FREE };
    assert_eq!(finish(it.handle_input(LoopInput::Begin, &gauge)).status, RunStatus::Partial);
}

#[test]
fn an_answer_cut_at_the_models_own_limit_is_partial() {
    let mut it = new_loop();
    it.handle_input(LoopInput::Begin, &FREE);
    let cut = ModelReply {
        text: "half".into(),
        calls: vec![],
        reasoning: None,
        usage: TokenUsage::default(),
        stop: StopReason::MaxTokens,
    };
    assert_eq!(
        finish(it.handle_input(LoopInput::Replied(cut), &FREE)),
        AgentEnding::partial(RunError::OutputCut)
    );
}

#[test]
fn an_answer_that_ended_for_an_unknown_reason_is_not_completed() {
    let reason = || StopReason::Other("pause_turn".into());
    let stopped = || RunError::Stopped { reason: "pause_turn".into() };
    for (text, ending) in
        [("half", AgentEnding::partial(stopped())), (" ", AgentEnding::failed(stopped()))]
    {
        let mut it = new_loop();
        it.handle_input(LoopInput::Begin, &FREE);
        let LoopInput::Replied(answer) = reply(text, &[]) else { panic!("no reply") };
        let answer = ModelReply { stop: reason(), ..answer };
        assert_eq!(finish(it.handle_input(LoopInput::Replied(answer), &FREE)), ending);
    }
}

#[test]
fn calls_of_a_filtered_answer_are_not_made_and_those_of_an_odd_reason_are() {
    let answer = |stop| match reply("", &[("a", "look")]) {
        LoopInput::Replied(answer) => LoopInput::Replied(ModelReply { stop, ..answer }),
        other => other,
    };
    let mut it = new_loop();
    it.handle_input(LoopInput::Begin, &FREE);
    let ending = finish(it.handle_input(answer(StopReason::Refusal), &FREE));
    assert_eq!(ending, AgentEnding::failed(RunError::Declined));
    let mut it = new_loop();
    it.handle_input(LoopInput::Begin, &FREE);
    let effects = it.handle_input(answer(StopReason::Other("odd".into())), &FREE);
    assert!(matches!(effects.last(), Some(LoopEffect::Call(_))), "{effects:?}");
}

#[test]
fn ids_are_made_unique_and_results_pair_in_order() {
    let mut it = new_loop();
    it.handle_input(LoopInput::Begin, &FREE);
    it.handle_input(reply("", &[("a", "look"), ("a", "nope"), ("", "look")]), &FREE);
    let answers = vec![answer("1"), answer("2"), answer("3")];
    it.handle_input(LoopInput::Answered(answers), &FREE);
    it.handle_input(reply("", &[("a", "look")]), &FREE);
    let ChatMessage::Tool { results } = &it.request().messages[2] else { panic!("no results") };
    let pairs: Vec<_> = results.iter().map(|r| (&*r.id, &*r.name, &*r.content)).collect();
    assert_eq!(pairs, [("a", "look", "1"), ("a-2", "nope", "2"), ("call_1_2", "look", "3")]);
    assert_eq!(it.calls()[0].id, "a-3");
}

#[test]
fn an_interrupted_answer_keeps_its_part() {
    let mut it = calling();
    it.handle_input(LoopInput::Answered(vec![answer("x")]), &FREE);
    let ending = AgentEnding::cancelled();
    let input = LoopInput::Interrupted {
        partial: "half a sen".into(),
        answers: vec![],
        ending: ending.clone(),
    };
    assert_eq!(finish(it.handle_input(input, &FREE)), ending);
    assert_eq!(it.into_transcript().output, "half a sen");
}

#[test]
fn an_event_out_of_turn_ends_the_run_instead_of_the_host() {
    let mut it = new_loop();
    let ending = finish(it.handle_input(LoopInput::Answered(vec![]), &FREE));
    assert_eq!(ending.status, RunStatus::Failed);
}

#[test]
fn an_interruption_keeps_the_answers_that_are_there() {
    let mut it = new_loop();
    it.handle_input(LoopInput::Begin, &FREE);
    it.handle_input(reply("", &[("a", "look"), ("b", "look")]), &FREE);
    let answers = vec![Some(answer("done")), None];
    let input = LoopInput::Interrupted {
        partial: String::new(),
        answers,
        ending: AgentEnding::cancelled(),
    };
    it.handle_input(input, &FREE);
    let transcript = it.into_transcript();
    let Some(ChatMessage::Tool { results }) = transcript.messages.last() else {
        panic!("no results")
    };
    let texts: Vec<_> = results.iter().map(|result| result.content.as_str()).collect();
    assert_eq!(texts, ["done", crate::prompt::frame::INTERRUPTED]);
}

#[test]
fn two_messages_of_a_user_in_a_row_become_one() {
    let mut it = new_loop();
    let before = it.request().messages.len();
    it.add_note("one".into());
    it.add_note("two".into());
    assert_eq!(it.request().messages.len(), before);
    let Some(ChatMessage::User { text, .. }) = it.request().messages.last() else {
        panic!("no user")
    };
    assert!(text.ends_with("\n\none\n\ntwo"), "{text}");
}

/// A loop whose caller has brought a tool `ask` and requires a JSON object as answer.
fn of_caller() -> AgentLoop {
    let callers = CallerTools::for_tests("ask", &serde_json::json!({"type": "object"}));
    let AgentLoop { request, dispatcher, .. } = new_loop();
    let form = crate::schema::tests::compiled(&serde_json::json!({"type": "object"})).unwrap();
    AgentLoop::new(Arc::unwrap_or_clone(request), dispatcher.with_caller_tools(callers))
        .held_to(Some(form))
}

/// Feeds an answer of the model, and makes its schema checks.
fn checked(it: &mut AgentLoop, reply: LoopInput) -> Vec<LoopEffect> {
    let effects = it.handle_input(reply, &FREE);
    let [LoopEffect::Check(checks)] = &effects[..] else { panic!("no checks: {effects:?}") };
    let verdicts = SchemaCheck::run_all(checks, &belljar_work::StopSignal::never_raised()).unwrap();
    it.handle_input(LoopInput::Checked(verdicts), &FREE)
}

/// INV-401: the loop requests checks as an effect and believes the verdicts.
#[test]
fn the_loop_checks_nothing_itself() {
    let mut it = of_caller();
    it.handle_input(LoopInput::Begin, &FREE);
    let effects = it.handle_input(reply("", &[("1", "look"), ("2", "ask")]), &FREE);
    assert!(matches!(&effects[..], [LoopEffect::Check(checks)] if checks.len() == 1));
    // A verdict is believed, and no call is decided on before it.
    let effects = it.handle_input(LoopInput::Checked(vec![Err("not so".to_owned())]), &FREE);
    let [LoopEffect::Call(decisions)] = &effects[..] else { panic!("no calls: {effects:?}") };
    let [CallDecision::Tool(_), CallDecision::Refuse(refusal)] = &decisions[..] else {
        panic!("{decisions:?}")
    };
    assert_eq!(refusal.text, "invalid arguments: not so");
}

#[test]
fn an_agent_that_ends_while_its_answer_is_checked_keeps_the_text() {
    let mut it = of_caller();
    it.handle_input(LoopInput::Begin, &FREE);
    assert!(matches!(it.handle_input(reply("[1", &[]), &FREE)[..], [LoopEffect::Check(_)]));
    let ending = AgentEnding::cancelled();
    let interrupted =
        LoopInput::Interrupted { partial: String::new(), answers: Vec::new(), ending };
    assert_eq!(finish(it.handle_input(interrupted, &FREE)), AgentEnding::cancelled());
    assert_eq!(it.into_transcript().output, "[1");
}

#[test]
fn a_call_of_the_callers_tool_ends_the_loop_behind_the_agents_own_calls() {
    let mut it = of_caller();
    it.handle_input(LoopInput::Begin, &FREE);
    let effects = checked(&mut it, reply("", &[("1", "look"), ("2", "ask"), ("3", "ask")]));
    let Some(LoopEffect::Call(decisions)) = effects.into_iter().next() else { panic!("no calls") };
    assert!(matches!(
        decisions[..],
        [CallDecision::Tool(_), CallDecision::HandOver, CallDecision::Refuse(_)]
    ));
    let ending = finish(
        it.handle_input(LoopInput::Answered(vec![answer("a"), answer("b"), answer("c")]), &FREE),
    );
    assert_eq!((ending, it.hands_over()), (AgentEnding::completed(), true));
    let transcript = it.into_transcript();
    let ids: Vec<_> = transcript.calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["2"]);
    assert!(
        matches!(transcript.messages.last(), Some(ChatMessage::Tool { results }) if results.len() == 3)
    );
}

#[test]
fn an_interrupted_loop_hands_nothing_over() {
    let mut it = of_caller();
    it.handle_input(LoopInput::Begin, &FREE);
    checked(&mut it, reply("", &[("2", "ask")]));
    let ending = AgentEnding::cancelled();
    let interrupted =
        LoopInput::Interrupted { partial: String::new(), answers: Vec::new(), ending };
    assert_eq!(finish(it.handle_input(interrupted, &FREE)), AgentEnding::cancelled());
    assert!(it.into_transcript().calls.is_empty());
}

#[test]
fn an_answer_without_its_form_is_told_and_the_tries_are_counted() {
    let mut it = of_caller();
    let mut input = LoopInput::Begin;
    for again in [true, true, false] {
        it.handle_input(input, &FREE);
        finish(checked(&mut it, reply("no", &[])));
        assert_eq!(it.unfit_reason().map(|(_, note)| note.is_some()), Some(again));
        input = it.reopen();
    }
    it.handle_input(input, &FREE);
    finish(checked(&mut it, reply("{}", &[])));
    assert_eq!(it.unfit_reason(), None);
}

#[test]
fn a_commands_text_is_replaced_in_the_task_and_not_in_a_note_behind_it() {
    let mut it = new_loop();
    let task = it.task_bytes();
    it.add_note("a hook repeats the task".to_owned());
    it.replace_task("task", "file's content", task);
    let text = "file's content\n\na hook repeats the task";
    assert_eq!(it.request().messages, [ChatMessage::from_user(text)]);
    it.replace_task("hook", "x", task);
    assert_eq!(it.request().messages, [ChatMessage::from_user(text)]);
}
