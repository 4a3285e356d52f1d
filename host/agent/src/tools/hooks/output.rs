//! The meaning of a hook command's exit status and output, compatible with Claude Code's hooks. Pure.
//!
//! | exit | meaning |
//! | --- | --- |
//! | 0 | stdout is parsed if it is a JSON object. Other text means nothing, unless the text has a decision: a malformed decision, or a decision in a wrong place, is a denial |
//! | 2 | no, with the reason in stderr. Before a call: the call is not made. After a call: the model reads the reason. At an agent's end: the agent continues. At a subagent's start: no effect |
//! | 126, 127, 128 and more, a signal | the command did not run to its end: an error |
//! | other | a fault without effect, unless stdout has a decision; the person reads stderr |

use belljar_definition::HookEvent;
use serde::Deserialize;
use serde_json::Value;

use super::command::EndedCommand;
use super::{EventVerdict, HookJudgement};
use crate::limits::{MAX_HOOK_TEXT, truncate_str};

/// The reason shown if a hook refuses without stating one.
const NO_REASON: &str = "no reason given";

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct CommandOutput {
    #[serde(rename = "continue")]
    go_on: Option<bool>,
    stop_reason: Option<String>,
    system_message: Option<String>,
    decision: Option<String>,
    reason: Option<String>,
    hook_specific_output: Option<EventOutput>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct EventOutput {
    hook_event_name: Option<String>,
    permission_decision: Option<String>,
    permission_decision_reason: Option<String>,
    updated_input: Option<Value>,
    additional_context: Option<String>,
}

/// Parses the answer of a hook's command. An error means that the answer cannot be understood.
pub(crate) fn read_judgement(
    event: HookEvent,
    ran: &EndedCommand,
) -> Result<HookJudgement, String> {
    match ran.code {
        Some(0) => parse_output(event, ran),
        Some(2) => Ok(block_event(event, clip_text(&ran.stderr))),
        Some(code) if code < 126 && (ran.cut || names_decision(&ran.stdout)) => Err(format!(
            "it ended with status {code} after what may be a decision: {}",
            clip_text(&ran.stderr)
        )),
        Some(code) if code < 126 => Ok(HookJudgement::from_fault(format!(
            "it ended with status {code}: {}",
            clip_text(&ran.stderr)
        ))),
        Some(127) => Err(format!("it was not found: {}", clip_text(&ran.stderr))),
        Some(126) => Err(format!("it cannot be executed: {}", clip_text(&ran.stderr))),
        Some(code) => Err(format!("it was ended by signal {}", code - 128)),
        None => Err("it was ended by a signal".to_owned()),
    }
}

/// Returns whether an output that is no JSON object may still contain a decision, for example after a banner,
/// among debug lines, or in another program's format.
fn names_decision(stdout: &[u8]) -> bool {
    const WORDS: [&str; 7] = [
        "decision",
        "hookspecificoutput",
        "hook_specific_output",
        "stopreason",
        "stop_reason",
        "\"continue\"",
        "'continue'",
    ];
    // Each ASCII letter in UTF-16 has a zero byte, which is removed for the search.
    let plain: Vec<u8> = stdout.iter().copied().filter(|byte| *byte != 0).collect();
    let text = String::from_utf8_lossy(&plain).to_ascii_lowercase();
    WORDS.iter().any(|word| text.contains(word))
}

/// Returns whether a JSON object has a decision where none is read: under a name in other letter case, at the
/// top instead of in `hookSpecificOutput`, or in a nested object. Arguments for the tool and repeated input
/// are skipped.
fn has_stray_decision(value: &Value, place: &str) -> bool {
    const READ: [(&str, &str); 8] = [
        ("", "continue"),
        ("", "stopReason"),
        ("", "decision"),
        ("", "hookSpecificOutput"),
        ("hookSpecificOutput", "permissionDecision"),
        ("hookSpecificOutput", "permissionDecisionReason"),
        ("hookSpecificOutput", "updatedInput"),
        ("", "reason"),
    ];
    const WORDS: [&str; 7] = [
        "decision",
        "permission",
        "permissiondecision",
        "permissiondecisionreason",
        "hookspecificoutput",
        "continue",
        "stopreason",
    ];
    match value {
        Value::Object(fields) => fields.iter().any(|(name, value)| {
            let read = READ.contains(&(place, name.as_str()));
            let letters = name.chars().filter(|c| c.is_alphanumeric());
            let plain: String = letters.flat_map(char::to_lowercase).collect();
            match (place, name.as_str()) {
                ("hookSpecificOutput", "updatedInput") | ("", "tool_input" | "tool_response") => {
                    false
                }
                ("", "hookSpecificOutput") => has_stray_decision(value, name),
                _ => !read && WORDS.contains(&plain.as_str()) || has_stray_decision(value, "?"),
            }
        }),
        Value::Array(items) => items.iter().any(|item| has_stray_decision(item, "?")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Parses the stdout of a command that ended with 0. Plain text means no decision; a decision that cannot be
/// read is an error.
fn parse_output(event: HookEvent, ran: &EndedCommand) -> Result<HookJudgement, String> {
    if ran.cut {
        return Err("it wrote more than is read".to_owned());
    }
    let text = String::from_utf8_lossy(&ran.stdout);
    let text = text.trim_start_matches('\u{feff}').trim();
    if !text.starts_with('{') {
        return match names_decision(&ran.stdout) {
            true => Err("something stands before its decision, so it cannot be read".to_owned()),
            false => Ok(HookJudgement::default()),
        };
    }
    let output: CommandOutput = belljar_received::json::from_str(text)
        .map_err(|error| format!("its output is not understood: {error}"))?;
    let whole = belljar_received::json::from_str::<Value>(text);
    if whole.is_ok_and(|whole| has_stray_decision(&whole, "")) {
        return Err("a decision stands where none is read: `decision` stands at the top, \
                    `permissionDecision` in `hookSpecificOutput`"
            .to_owned());
    }
    let specific = output.hook_specific_output.unwrap_or_default();
    if specific.hook_event_name.as_deref().is_some_and(|name| name != event.as_str()) {
        return Err(format!("its output is not for `{event}`"));
    }
    let mut judgement = match event {
        HookEvent::PreToolUse => {
            let reason = specific.permission_decision_reason.or(output.reason);
            let own = before_call(specific.permission_decision.as_deref(), reason.clone())?;
            let old = before_call(output.decision.as_deref(), reason)?;
            HookJudgement::from_verdict(stricter_verdict(own, old))
        }
        HookEvent::PostToolUse
        | HookEvent::SessionStart
        | HookEvent::UserPromptSubmit
        | HookEvent::SubagentStart
        | HookEvent::SubagentStop
        | HookEvent::Stop => match output.decision.as_deref() {
            Some("block") => block_event(event, reason_text(output.reason)),
            None | Some("approve") => HookJudgement::default(),
            Some(_) => return Err("its `decision` is not understood".to_owned()),
        },
    };
    match specific.updated_input {
        None | Some(Value::Null) => {}
        Some(input) if event == HookEvent::PreToolUse && input.is_object() => {
            judgement.arguments = Some(input.to_string());
        }
        Some(_) if event == HookEvent::PreToolUse => {
            return Err("its `updatedInput` is not an object".to_owned());
        }
        Some(_) => judgement.fault = Some("`updatedInput` has no place here".to_owned()),
    }
    match specific.additional_context.filter(|text| !text.trim().is_empty()) {
        Some(text) if takes_context(event) => judgement.context = Some(clip_text(&text)),
        Some(_) => judgement.fault = Some("`additionalContext` has no place here".to_owned()),
        None => {}
    }
    judgement.message = output.system_message.map(|text| clip_text(&text));
    if output.go_on == Some(false) {
        judgement.halt = Some(reason_text(output.stop_reason));
    }
    Ok(judgement)
}

/// Returns whether a hook at the event may add a text for the model.
fn takes_context(event: HookEvent) -> bool {
    match event {
        HookEvent::PreToolUse
        | HookEvent::PostToolUse
        | HookEvent::SessionStart
        | HookEvent::UserPromptSubmit
        | HookEvent::SubagentStart => true,
        HookEvent::SubagentStop | HookEvent::Stop => false,
    }
}

/// The verdict for a call, from the word in `permissionDecision`, for example `deny`.
fn before_call(word: Option<&str>, text: Option<String>) -> Result<EventVerdict, String> {
    Ok(match word {
        None => EventVerdict::Pass,
        Some("allow" | "approve") => EventVerdict::Allow,
        Some("ask") => EventVerdict::Ask,
        Some("deny" | "block") => EventVerdict::Deny(reason_text(text)),
        Some(_) => return Err("its `permissionDecision` is not understood".to_owned()),
    })
}

/// The stricter of two verdicts: the `permissionDecision` and the older `decision`.
fn stricter_verdict(own: EventVerdict, old: EventVerdict) -> EventVerdict {
    match (own, old) {
        (EventVerdict::Deny(reason), _) | (_, EventVerdict::Deny(reason)) => {
            EventVerdict::Deny(reason)
        }
        (EventVerdict::Ask, _) | (_, EventVerdict::Ask) => EventVerdict::Ask,
        (EventVerdict::Allow, _) | (_, EventVerdict::Allow) => EventVerdict::Allow,
        (EventVerdict::Pass, EventVerdict::Pass) => EventVerdict::Pass,
    }
}

/// The judgement of a hook that blocks its event, for example by exit status 2.
fn block_event(event: HookEvent, reason: String) -> HookJudgement {
    match event {
        HookEvent::SubagentStart => {
            HookJudgement::from_fault(format!("it cannot keep a subagent from starting: {reason}"))
        }
        HookEvent::SessionStart => {
            HookJudgement::from_fault(format!("it cannot keep a session from starting: {reason}"))
        }
        HookEvent::PreToolUse
        | HookEvent::PostToolUse
        | HookEvent::UserPromptSubmit
        | HookEvent::SubagentStop
        | HookEvent::Stop => HookJudgement::from_verdict(EventVerdict::Deny(reason)),
    }
}

fn reason_text(text: Option<String>) -> String {
    clip_text(&text.unwrap_or_default())
}

/// Cuts a hook's text at [`MAX_HOOK_TEXT`].
fn clip_text(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() {
        NO_REASON.to_owned()
    } else {
        truncate_str(text, MAX_HOOK_TEXT).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(code: i32, stdout: &str, stderr: &str) -> EndedCommand {
        let stdout = stdout.as_bytes().to_vec();
        EndedCommand { code: Some(code), stdout, cut: false, stderr: stderr.to_owned() }
    }

    fn json(event: HookEvent, stdout: &str) -> HookJudgement {
        read_judgement(event, &ran(0, stdout, "")).unwrap()
    }

    fn before(stdout: &str) -> HookJudgement {
        json(HookEvent::PreToolUse, stdout)
    }

    #[test]
    fn half_a_surrogate_pair_in_a_hooks_output_is_replaced() {
        let deny = r#"{"decision": "block", "reason": "cut \ud83d"}"#;
        assert_eq!(before(deny).verdict, EventVerdict::Deny("cut \u{fffd}".into()));
    }

    #[test]
    fn exit_codes_mean_what_claude_codes_mean() {
        let pass = read_judgement(HookEvent::PreToolUse, &ran(0, "all fine", "noise")).unwrap();
        assert_eq!(pass, HookJudgement::default());
        let no = |event| {
            read_judgement(event, &ran(2, r#"{"decision":"approve"}"#, " not that\n")).unwrap()
        };
        for event in [HookEvent::PreToolUse, HookEvent::PostToolUse, HookEvent::Stop] {
            assert_eq!(no(event).verdict, EventVerdict::Deny("not that".into()), "{event}");
        }
        let start = no(HookEvent::SubagentStart);
        assert_eq!(start.verdict, EventVerdict::Pass);
        assert!(start.fault.unwrap().contains("not that"));
        let other = read_judgement(HookEvent::PreToolUse, &ran(1, "", "oops")).unwrap();
        assert_eq!((other.verdict.clone(), other.event_word()), (EventVerdict::Pass, "error"));
        assert!(other.fault.unwrap().contains("oops"));
    }

    #[test]
    fn a_command_that_is_missing_or_was_killed_gave_no_answer() {
        for code in [126, 127, 137, 139] {
            assert!(read_judgement(HookEvent::PreToolUse, &ran(code, "", "")).is_err(), "{code}");
        }
        let killed = EndedCommand { code: None, ..ran(0, "", "") };
        assert!(read_judgement(HookEvent::PreToolUse, &killed).is_err());
    }

    #[test]
    fn decisions_reasons_and_new_input_are_read() {
        let specific = |rest: &str| {
            before(&format!(
                r#"{{"hookSpecificOutput":{{"hookEventName":"PreToolUse",{rest}}},"other":1}}"#
            ))
        };
        assert_eq!(specific(r#""permissionDecision":"allow""#).verdict, EventVerdict::Allow);
        assert_eq!(specific(r#""permissionDecision":"ask""#).verdict, EventVerdict::Ask);
        let denied =
            specific(r#""permissionDecision":"deny","permissionDecisionReason":"because""#);
        assert_eq!(denied.verdict, EventVerdict::Deny("because".into()));
        let narrowed = specific(r#""updatedInput":{"b":1,"a":2}"#);
        assert_eq!(narrowed.arguments.as_deref(), Some(r#"{"b":1,"a":2}"#));
        assert_eq!(narrowed.event_word(), "narrow");
        assert_eq!(
            before(r#"{"decision":"block","reason":"old form"}"#).verdict,
            EventVerdict::Deny("old form".into())
        );
        let both =
            before(r#"{"decision":"approve","hookSpecificOutput":{"permissionDecision":"deny"}}"#);
        assert_eq!(both.verdict, EventVerdict::Deny(NO_REASON.into()));
    }

    #[test]
    fn an_answer_that_is_not_understood_is_an_error() {
        for bad in [
            "{",
            r#"{"decision": 1}"#,
            r#"{"decision": "perhaps"}"#,
            r#"{"hookSpecificOutput":{"permissionDecision":"defer"}}"#,
            r#"{"hookSpecificOutput":{"hookEventName":"Stop"}}"#,
            r#"{"hookSpecificOutput":{"updatedInput":["a"]}}"#,
        ] {
            assert!(read_judgement(HookEvent::PreToolUse, &ran(0, bad, "")).is_err(), "{bad}");
        }
        let cut = EndedCommand { cut: true, ..ran(0, "{}", "") };
        assert!(read_judgement(HookEvent::PreToolUse, &cut).is_err());
    }

    #[test]
    fn a_decision_that_cannot_be_read_whole_is_no_pass() {
        let no = r#"{"decision":"block","reason":"r"}"#;
        for around in [
            format!("Welcome!\n{no}"),
            format!("{no}\nbye"),
            format!("{no}{no}"),
            format!("[{no}]"),
            format!("```json\n{no}\n```"),
            "debug: {'permissionDecision': 'deny'}".to_owned(),
            "note\n{\"continue\":false}".to_owned(),
            r#"{"decision":"block","decision":"approve"}"#.to_owned(),
        ] {
            for event in [HookEvent::PreToolUse, HookEvent::PostToolUse, HookEvent::Stop] {
                assert!(read_judgement(event, &ran(0, &around, "")).is_err(), "{event}: {around}");
            }
        }
        assert!(read_judgement(HookEvent::PreToolUse, &ran(1, no, "crash")).is_err());
        assert_eq!(before(&format!("\u{feff}\n {no}\n")).verdict, EventVerdict::Deny("r".into()));
        assert_eq!(before("formatted 3 files {a, b}"), HookJudgement::default());
    }

    #[test]
    fn a_decision_where_none_is_read_is_no_pass() {
        for stray in [
            r#"{"permissionDecision":"deny"}"#,
            r#"{"Decision":"block"}"#,
            r#"{"DECISION":"block","reason":"r"}"#,
            r#"{"hook_specific_output":{"permission_decision":"deny"}}"#,
            r#"{"hookSpecificOutput":{"permission_decision":"deny"}}"#,
            r#"{"hookSpecificOutput":{"decision":"block"}}"#,
            r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","decision":{"behavior":"deny"}}}"#,
            r#"{"result":{"decision":"block"}}"#,
            r#"{"results":[{"hookSpecificOutput":{"permissionDecision":"deny"}}]}"#,
            r#"{"Continue":false}"#,
            r#"{"permission":"deny"}"#,
            r#"{"hookSpecificOutput":{"continue":false}}"#,
        ] {
            assert!(read_judgement(HookEvent::PreToolUse, &ran(0, stray, "")).is_err(), "{stray}");
        }
        // Arguments are the tool's.
        let input = r#"{"hookSpecificOutput":{"updatedInput":{"decision":"yes"}}}"#;
        assert!(before(input).arguments.is_some());
        assert_eq!(before(r#"{"note":{"a":[1]},"other":"decision"}"#), HookJudgement::default());
    }

    #[test]
    fn of_two_decisions_the_stricter_one_counts() {
        let both = |old: &str, own: &str| {
            before(&format!(
                r#"{{"decision":"{old}","reason":"r","hookSpecificOutput":{{"permissionDecision":"{own}"}}}}"#
            ))
            .verdict
        };
        for (old, own) in [("block", "allow"), ("approve", "deny"), ("deny", "ask")] {
            assert_eq!(both(old, own), EventVerdict::Deny("r".into()), "{old} {own}");
        }
        assert_eq!(both("approve", "ask"), EventVerdict::Ask);
        assert_eq!(both("ask", "allow"), EventVerdict::Ask);
        assert_eq!(both("approve", "allow"), EventVerdict::Allow);
    }

    #[test]
    fn output_in_another_encoding_or_cut_off_after_an_error_is_no_pass() {
        let wide: Vec<u8> =
            "\u{feff}{\"decision\":\"block\"}".encode_utf16().flat_map(u16::to_le_bytes).collect();
        for code in [0, 1] {
            let wide = EndedCommand { stdout: wide.clone(), ..ran(code, "", "") };
            assert!(read_judgement(HookEvent::PreToolUse, &wide).is_err(), "{code}");
        }
        let cut = EndedCommand { cut: true, ..ran(1, "noise", "") };
        assert!(read_judgement(HookEvent::PreToolUse, &cut).is_err());
        let bytes =
            EndedCommand { stdout: b"{\"decision\":\"bl\xffock\"}".to_vec(), ..ran(0, "", "") };
        assert!(read_judgement(HookEvent::PreToolUse, &bytes).is_err());
    }

    #[test]
    fn the_rest_of_the_fields_is_read_where_it_has_a_place() {
        let stop = json(
            HookEvent::Stop,
            r#"{"continue":false,"stopReason":"enough","decision":"block","systemMessage":"hi"}"#,
        );
        assert_eq!(stop.halt.as_deref(), Some("enough"));
        assert_eq!((stop.message.as_deref(), stop.event_word()), (Some("hi"), "halt"));
        let context = r#"{"hookSpecificOutput":{"additionalContext":"note"}}"#;
        for event in [HookEvent::PreToolUse, HookEvent::PostToolUse, HookEvent::SubagentStart] {
            assert_eq!(json(event, context).context.as_deref(), Some("note"), "{event}");
        }
        assert!(json(HookEvent::Stop, context).fault.is_some(), "told, not dropped");
        let input = r#"{"hookSpecificOutput":{"updatedInput":{}}}"#;
        let late = json(HookEvent::PostToolUse, input);
        assert!(late.arguments.is_none() && late.fault.is_some());
    }

    #[test]
    fn a_long_reason_is_cut() {
        let long = "x".repeat(MAX_HOOK_TEXT * 2);
        let EventVerdict::Deny(reason) =
            read_judgement(HookEvent::Stop, &ran(2, "", &long)).unwrap().verdict
        else {
            panic!("not denied")
        };
        assert_eq!(reason.len(), MAX_HOOK_TEXT);
    }
}
