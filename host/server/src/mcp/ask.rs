//! Questions to the person who uses an MCP client, as forms (elicitation).

use belljar_agent::Approval;
use belljar_policy::ShownText;
use belljar_session::{PersonAnswer, QuestionKind};
use rmcp::model::{ElicitRequest, ElicitRequestParams, ElicitationAction, InputRequest};
use rmcp::{Peer, RoleServer};
use serde_json::{Value, json};

/// The most characters of a call's arguments in a question.
const MAX_ARGUMENTS: usize = 2_000;

/// The most characters of an agent's question.
const MAX_QUESTION: usize = 4_000;

/// A question as a form with one field; `None` if the protocol cannot express it.
pub(super) fn question_form(agent: &str, kind: &QuestionKind) -> Option<ElicitRequestParams> {
    let agent = ShownText::clip_line(agent, 100);
    let (message, field) = match kind {
        QuestionKind::Permission { tool, arguments, .. } => {
            let (tool, arguments) =
                (ShownText::clip_line(tool, 100), ShownText::clip_line(arguments, MAX_ARGUMENTS));
            let choice = json!({
                "type": "string",
                "title": "May it?",
                "enum": ["yes", "for_run", "no"],
                "enumNames": ["Yes, this once", "Yes, and do not ask again", "No"],
            });
            (format!("`{agent}` wants to call `{tool}` with {arguments}"), choice)
        }
        QuestionKind::Clarify { question, options } => {
            let mut field = json!({"type": "string", "title": "Answer"});
            if !options.is_empty() {
                let shown = options.iter().map(|one| ShownText::clip_line(one, 200).to_string());
                field["description"] = json!(shown.collect::<Vec<_>>().join(" / "));
            }
            (format!("`{agent}` asks: {}", ShownText::clip_line(question, MAX_QUESTION)), field)
        }
    };
    let form = json!({
        "mode": "form",
        "message": message,
        "requestedSchema": {
            "type": "object",
            "properties": {"answer": field},
            "required": ["answer"],
        },
    });
    serde_json::from_value(form).ok()
}

/// Wraps a form for an answer that requires input before the client repeats its call.
pub(super) fn input_request(form: ElicitRequestParams) -> InputRequest {
    InputRequest::Elicitation(ElicitRequest::new(form))
}

/// Shows a form to the client's person; returns the client's result, or `None` if it returns none.
pub(super) async fn show_form(peer: &Peer<RoleServer>, form: ElicitRequestParams) -> Option<Value> {
    let answer = peer.create_elicitation(form).await.ok()?;
    let action = match answer.action {
        ElicitationAction::Accept => "accept",
        ElicitationAction::Decline => "decline",
        _ => "cancel",
    };
    Some(json!({"action": action, "content": answer.content}))
}

/// Parses the person's answer in the client's result: `action`, and for `accept` also `content`.
/// INV-390: a closed form is neither a refusal nor a blank answer, and an unknown action is no answer.
pub(super) fn parse_answer(kind: &QuestionKind, brought: &Value) -> PersonAnswer {
    let text = brought["content"]["answer"].as_str();
    match (kind, brought["action"].as_str()) {
        (QuestionKind::Permission { .. }, _) => PersonAnswer::Permission(read_permission(brought)),
        (QuestionKind::Clarify { .. }, Some("accept")) => {
            PersonAnswer::Text(text.map(str::to_owned))
        }
        (QuestionKind::Clarify { .. }, Some("decline")) => PersonAnswer::Declined,
        (QuestionKind::Clarify { .. }, Some(_) | None) => PersonAnswer::Cancelled,
    }
}

/// Parses the person's decision about a call. INV-293: only the two values of the form that allow the
/// call are a yes.
pub(super) fn read_permission(brought: &Value) -> Approval {
    match (brought["action"].as_str(), brought["content"]["answer"].as_str()) {
        (Some("accept"), Some("yes")) => Approval::Yes,
        (Some("accept"), Some("for_run")) => Approval::ForRun,
        (Some("accept" | "decline"), _) => Approval::No,
        _ => Approval::Cancelled,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell() -> QuestionKind {
        QuestionKind::Permission {
            tool: "shell".into(),
            arguments: "{}".into(),
            reach: Default::default(),
        }
    }

    #[test]
    fn nothing_but_an_accepted_yes_is_one() {
        let word = |brought: Value| parse_answer(&shell(), &brought).into_approval();
        assert_eq!(word(json!({"action": "accept", "content": {"answer": "yes"}})), Approval::Yes);
        for other in [
            json!({"action": "decline", "content": {"answer": "yes"}}),
            json!({"action": "accept", "content": {"answer": "YES"}}),
            json!({"action": "accept", "content": {"answer": true}}),
            json!({"action": "accept"}),
        ] {
            assert_eq!(word(other.clone()), Approval::No, "{other}");
        }
        for other in [
            json!({"action": "cancel", "content": {"answer": "yes"}}),
            json!({"action": "Accept", "content": {"answer": "yes"}}),
            json!({"content": {"answer": "yes"}}),
            json!("yes"),
            Value::Null,
        ] {
            assert_eq!(word(other.clone()), Approval::Cancelled, "{other}");
        }
    }

    #[test]
    fn a_no_to_a_question_is_told_apart_from_a_form_that_is_closed() {
        let clarify = QuestionKind::Clarify { question: "which?".into(), options: Vec::new() };
        let word = |action: &str| parse_answer(&clarify, &json!({"action": action}));
        assert!(matches!(word("decline"), PersonAnswer::Declined));
        assert!(matches!(word("accept"), PersonAnswer::Text(None)));
        for other in ["cancel", "Accept", ""] {
            assert!(matches!(word(other), PersonAnswer::Cancelled), "{other}");
        }
        assert!(matches!(parse_answer(&clarify, &Value::Null), PersonAnswer::Cancelled));
    }

    #[test]
    fn every_question_is_a_form_of_the_protocol() {
        assert!(question_form("mcp", &shell()).is_some());
        let clarify = QuestionKind::Clarify {
            question: "which\u{202e}?".into(),
            options: vec!["a".into(), "b".into()],
        };
        let form = serde_json::to_value(question_form("mcp", &clarify).unwrap()).unwrap();
        assert!(!form["message"].as_str().unwrap().contains('\u{202e}'));
    }
}
