//! Asks the person in the editor: whether a call may be made, and questions of agents.

use std::collections::BTreeMap;

use agent_client_protocol::v1::schema::{
    CreateElicitationRequest, ElicitationAction, ElicitationContentValue, ElicitationFormMode,
    ElicitationSchema, ElicitationSessionScope, EnumOption, PermissionOption, PermissionOptionKind,
    RequestPermissionOutcome, RequestPermissionRequest, SessionId, StringPropertySchema,
    ToolCallUpdate, ToolCallUpdateFields,
};
use belljar_agent::Approval;
use belljar_policy::ShownText;
use belljar_session::{OpenQuestion, PersonAnswer, QuestionKind};

use crate::door::{ACTOR, AcpDoor, Connection};
use crate::limits::{MAX_OFFERED, MAX_TITLE};
use crate::tool_call;
use crate::updates::ClarifyRequest;

/// The name of the form's field with the answer.
const FIELD: &str = "answer";

/// An option of a question: a unique id, a text, and a kind.
pub(crate) struct QuestionOption {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) kind: PermissionOptionKind,
}

/// The editor's answer to a question with options.
pub(crate) enum ChosenOption {
    /// An option, by its id.
    One(String),
    /// The person cancelled the question, or the editor could not show it.
    Cancelled,
    /// An id that is not among the question's options.
    Other,
}

/// Asks the person at the editor to choose one of the options, by a permission request.
pub(crate) async fn ask_choice(
    to: &Connection,
    session: &str,
    call: ToolCallUpdate,
    choices: Vec<QuestionOption>,
) -> ChosenOption {
    let ids: Vec<String> = choices.iter().map(|choice| choice.id.clone()).collect();
    let option =
        |choice: QuestionOption| PermissionOption::new(choice.id, choice.name, choice.kind);
    let options = choices.into_iter().map(option).collect();
    let request = RequestPermissionRequest::new(SessionId::from(session.to_owned()), call, options);
    let answered = to.send_request(request).block_task().await;
    match answered.map(|answered| answered.outcome) {
        Ok(RequestPermissionOutcome::Selected(selected)) => {
            // INV-303: an option of another question is refused.
            let known = ids.into_iter().find(|id| **id == *selected.option_id.0);
            known.map_or(ChosenOption::Other, ChosenOption::One)
        }
        // INV-390: a closed question is no answer.
        Ok(_) | Err(_) => ChosenOption::Cancelled,
    }
}

impl ChosenOption {
    /// The last part of the option's id, which states its meaning, for example `yes`.
    pub(crate) fn option_word(&self) -> Option<&str> {
        match self {
            Self::One(id) => id.rsplit('.').next(),
            Self::Cancelled | Self::Other => None,
        }
    }

    /// Converts an answer to a decision about a call. A closed question is cancelled; any other answer that is not clearly a yes is a no.
    pub(crate) fn to_approval(&self) -> Approval {
        match (self, self.option_word()) {
            (Self::Cancelled, _) => Approval::Cancelled,
            (_, Some("yes")) => Approval::Yes,
            (_, Some("for_run")) => Approval::ForRun,
            (_, Some(_) | None) => Approval::No,
        }
    }
}

/// Asks whether a call may be made, and passes the answer to the turn.
pub(crate) async fn ask_permission(
    door: &AcpDoor,
    to: &Connection,
    shown_in: &str,
    turn: &str,
    id: u64,
    call: ToolCallUpdate,
) {
    let choice = |word: Approval, name: &str, kind| QuestionOption {
        id: format!("{turn}.{id}.{}", word.as_str()),
        name: name.to_owned(),
        kind,
    };
    let choices = vec![
        choice(Approval::Yes, "Allow once", PermissionOptionKind::AllowOnce),
        choice(Approval::ForRun, "Allow for this turn", PermissionOptionKind::AllowAlways),
        choice(Approval::No, "No", PermissionOptionKind::RejectOnce),
    ];
    let chosen = ask_choice(to, shown_in, with_whole_subject(door, turn, id, call), choices).await;
    answer_question(door, turn, id, PersonAnswer::Permission(chosen.to_approval()));
}

/// Asks the person an agent's question, if the editor supports such questions.
pub(crate) async fn ask_clarification(
    door: &AcpDoor,
    to: &Connection,
    shown_in: &str,
    turn: &str,
    asked: ClarifyRequest,
) {
    let ClarifyRequest { id, question, private, options } = asked;
    let options = options.as_slice();
    // The event of a private question contains only the text that may be stored. INV-361: a question whose
    // whole text is missing is not asked.
    let whole = match find_open_question(door, turn, id) {
        Some((_, OpenQuestion { kind: QuestionKind::Clarify { question, .. }, .. })) => question,
        Some(_) | None if private => {
            return answer_question(door, turn, id, PersonAnswer::Cancelled);
        }
        Some(_) | None => question,
    };
    let question = whole.as_str();
    let word = match door.editor_capabilities().forms {
        true => ask_by_form(to, shown_in, question, options).await,
        // The editor cannot show the question, so no answer is invented.
        false if options.is_empty() => PersonAnswer::Cancelled,
        false => ask_by_options(to, shown_in, turn, id, question, options).await,
    };
    answer_question(door, turn, id, word);
}

/// Adds the whole arguments to a question, because the event contains only their beginning.
fn with_whole_subject(
    door: &AcpDoor,
    turn: &str,
    id: u64,
    mut call: ToolCallUpdate,
) -> ToolCallUpdate {
    if let Some((_, OpenQuestion { kind: QuestionKind::Permission { tool, arguments, .. }, .. })) =
        find_open_question(door, turn, id)
    {
        let input = tool_call::parse_arguments(&arguments);
        let fields = std::mem::replace(&mut call.fields, ToolCallUpdateFields::new());
        call.fields =
            fields.content(tool_call::call_diffs(&tool, &input, door.workspace())).raw_input(input);
    }
    call
}

/// The open question with the given number in a turn, with its session.
fn find_open_question(door: &AcpDoor, turn: &str, id: u64) -> Option<(String, OpenQuestion)> {
    let mut all = door.service.open_questions(None).into_iter();
    all.find(|(_, question)| question.message == turn && question.id == id)
}

/// Passes an answer to the waiting turn. INV-303: an answer names its turn and its question, and a question
/// accepts one answer.
fn answer_question(door: &AcpDoor, turn: &str, id: u64, answer: PersonAnswer) {
    let Some((session, _)) = find_open_question(door, turn, id) else { return };
    // An error means: the turn has ended, or that the question was answered elsewhere.
    let _ = door.service.answer_question(&session, id, answer, ACTOR);
}

/// Asks the question with a form of one field.
async fn ask_by_form(
    to: &Connection,
    session: &str,
    question: &str,
    options: &[String],
) -> PersonAnswer {
    let mut field = StringPropertySchema::new().title("Answer".to_owned());
    if !options.is_empty() {
        let options = options.iter().take(MAX_OFFERED);
        let options = options.map(|option| EnumOption::new(option.clone(), option_text(option)));
        field = field.one_of(options.collect::<Vec<_>>());
    }
    let schema = ElicitationSchema::new().property(FIELD, field, true);
    let scope = ElicitationSessionScope::new(SessionId::from(session.to_owned()));
    let message = ShownText::multiline(question).to_string();
    let request = CreateElicitationRequest::new(ElicitationFormMode::new(scope, schema), message);
    let answered = to.send_request(request).block_task().await;
    match answered.map(|answered| answered.action) {
        Ok(ElicitationAction::Accept(accepted)) => {
            let content: BTreeMap<_, _> = accepted.content.unwrap_or_default();
            PersonAnswer::Text(match content.get(FIELD) {
                Some(ElicitationContentValue::String(text)) => Some(text.clone()),
                Some(_) | None => None,
            })
        }
        Ok(ElicitationAction::Decline) => PersonAnswer::Declined,
        // INV-390: a closed form is not a blank answer.
        Ok(_) | Err(_) => PersonAnswer::Cancelled,
    }
}

/// Asks for one of the options, in an editor without forms.
async fn ask_by_options(
    to: &Connection,
    session: &str,
    turn: &str,
    id: u64,
    question: &str,
    options: &[String],
) -> PersonAnswer {
    let option = |(at, option): (usize, &String)| QuestionOption {
        id: format!("{turn}.{id}.{at}"),
        name: option_text(option),
        kind: PermissionOptionKind::AllowOnce,
    };
    let choices: Vec<_> = options.iter().take(MAX_OFFERED).enumerate().map(option).collect();
    let fields = ToolCallUpdateFields::new().title(ShownText::clip_line(question, 400).to_string());
    let call = ToolCallUpdate::new(format!("{turn}.question.{id}"), fields);
    let chosen = ask_choice(to, session, call, choices).await;
    let at = chosen.option_word().and_then(|at| at.parse::<usize>().ok());
    at.and_then(|at| options.get(at).cloned())
        .map_or(PersonAnswer::Cancelled, |option| PersonAnswer::Text(Some(option)))
}

fn option_text(option: &str) -> String {
    ShownText::clip_line(option, MAX_TITLE).to_string()
}
